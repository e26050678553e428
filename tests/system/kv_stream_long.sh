#!/bin/bash
# kv_stream_long.sh - one value of 20 GiB (STREAM_GIB=N) goes through a pipe into a store on the disk
# and back. The memory of kvd, of the cache and of the command is printed, and stays bounded.
# tags: long
# timeout: 3000
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg kvd cached filed openssl python3 cmp

gib=${STREAM_GIB:-20}
free=$(df --output=avail -B1G "$TMP" | tail -n 1)
[ "$free" -gt $((gib + 10)) ] || skip_all "it needs $((gib + 10)) GiB of disk, and $free are free"
cat >stack.conf <<END
[segment]
memory = 256M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 64M

[peer values]
kind = kvd
downstream = cached
size = $((gib + 4))G
keys = 10000
END
t "a stack comes up" xseg up stack.conf

bytes() { head -c "${gib}G" /dev/zero | openssl enc -aes-128-ctr -K 0 -iv 0 2>/dev/null; }
# own PID: its most memory, and what it has now without the segment, in KiB
own() { awk '$1 == "VmHWM:" { hwm = $2 } $1 == "RssAnon:" { print hwm " " $2 }' "/proc/$1/status"; }
anon() { own "$1" | cut -d' ' -f2; }
# peak COMMAND...: runs it, and writes the most memory that it has had, in KiB, to `peak`
peak()
{
	python3 -c 'import resource, subprocess, sys
rc = subprocess.call(sys.argv[1:])
open("peak", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(rc)' "$@"
}
say() { printf '    %s: kvd %s, cached %s (most, own; KiB)\n' "$1" "$(own "$kvd")" "$(own "$cached")"; }
kvd=$(peer_field values pid) cached=$(peer_field cached pid)
say before
kvd_before=$(anon "$kvd") cached_before=$(anon "$cached")
begin=$SECONDS
t "a stream of $gib GiB is put by a pipe" eval 'bytes | peak xseg --quiet kv put stream'
put=$(cat peak)
echo "    put: $((SECONDS - begin)) s, the command $put KiB"
say put
is "the store has all of it" "$(field_of value_bytes kv info stream)" $((gib << 30))
begin=$SECONDS
t "it comes back the same" eval 'peak xseg --quiet kv get stream | cmp - <(bytes)'
get=$(cat peak)
echo "    get: $((SECONDS - begin)) s, the command $get KiB"
say got
t "kvd has 4 MiB more of its own at most" [ $(($(anon "$kvd") - kvd_before)) -lt 4096 ]
t "the cache too" [ $(($(anon "$cached") - cached_before)) -lt 4096 ]
t "the put had less than 32 MiB" [ "$put" -lt 32768 ]
t "the get had less than 32 MiB beside the cache's pages" [ "$get" -lt $((32768 + 65536)) ]
t "it is deleted" xseg kv delete stream
t "its space is free again" wait_for 300 eval '[ "$(field_of large_zones kv info)" = 0 ]'
t "the stack goes down" xseg down
finish
