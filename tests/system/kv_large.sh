#!/bin/bash
# kv_large.sh - values of many MiB by `xseg kv`: from pipes and back with bounded memory, while kvd,
# the cache and programs are killed; backups and damage.
# tags: san
# timeout: 240
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg kvd cached filed jq cmp python3

stream=$(bound 64 200)				# MiB
cat >stack.conf <<END
[segment]
memory = 256M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 24M

[peer values]
kind = kvd
downstream = cached
size = 600M
END
t "a stack comes up" xseg up stack.conf
info() { xseg --json kv info | jq -r ".$1"; }
# no handle is left, and the store has so many large values
has_large() { [ "$(info handles) $(info large_keys)" = "0 $1" ]; }

# ---- values ----

head -c 9000001 /dev/urandom >value
head -c 3000000 /dev/urandom >other
t "a large file is put" xseg kv put file value
t "and comes back into a file" xseg kv get file copy
t "which has the same bytes" cmp value copy
t "and into a pipe" bash -c 'xseg kv get file | cmp - value'
t "one is put from a pipe" bash -c 'cat other | xseg kv put piped'
t "and is there" bash -c 'xseg kv get piped | cmp - other'
for size in 1040000 1048575 1048576 1048577; do
	head -c $size value >edge
	t "a value of $size bytes is put" xseg kv put edge edge
	t "and is there" bash -c 'xseg kv get edge | cmp - edge'
done
is "info tells its size" "$(field_of value_bytes kv info file)" 9000001
is "a list too" "$(xseg --json kv list | jq -c 'sort_by(.key) | map([.key, .value_bytes])')" \
	'[["edge",1048577],["file",9000001],["piped",3000000]]'
t "it exists" xseg kv exists file
is "JSON has the value" "$(xseg --json kv get edge | jq -r .value_base64 | base64 -d | sha256sum)" \
	"$(sha256sum <edge)"
is "a put tells the size" "$(xseg --json kv put edge edge --client-flags 5 --stable | jq .value_bytes)" \
	1048577
xseg kv info >info.txt
t "people see how many there are" grep -q '^large     [0-9] values of .* in [0-9]* zones of their own$' info.txt
is "flags are kept" "$(field_of client_flags kv info edge)" 5
expect_err 4 "is there already" "--if-absent refuses it" xseg kv put file other --if-absent
t "and changes nothing" bash -c 'xseg kv get file | cmp - value'
t "a small value replaces a large one" bash -c 'echo small | xseg kv put edge'
is "and is there" "$(xseg kv get edge)" small
t "a large one replaces it" xseg kv put edge other
t "and is there" bash -c 'xseg kv get edge | cmp - other'
t "one gets a time to live" xseg kv put soon other --ttl 1s
gone() { ! xseg kv exists soon 2>/dev/null; }
t "and is gone after it" wait_for 60 gone
t "a small value takes its place" bash -c 'echo small | xseg kv put soon'
t "which is deleted" xseg kv delete soon
t "a large value is deleted" xseg kv delete edge
expect_err 4 "no key" "and is gone" xseg kv get edge
t "nothing of those that were replaced is left" wait_for 60 has_large 2
expect_err 1 "No space left" "a value that the store has no room for is refused" \
	bash -c 'head -c 700M /dev/zero | xseg kv put much'
t "nothing of it is left" wait_for 60 has_large 2

# ---- streams, with bounded memory ----

# most PID: the most memory that it has had, in KiB; with the pages of the segment that it mapped
most() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$1/status"; }
# own PID: in KiB, without the segment
own() { awk '$1 == "RssAnon:" { print $2 }' "/proc/$1/status"; }
bytes() { head -c "${stream}M" /dev/zero | openssl enc -aes-128-ctr -K 0 -iv 0 2>/dev/null; }
# peak COMMAND...: runs it, and writes the most memory that it has had, in KiB, to `peak`
peak()
{
	python3 -c 'import resource, subprocess, sys
rc = subprocess.call(sys.argv[1:])
open("peak", "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(rc)' "$@"
}
kvd=$(peer_field values pid) cached=$(peer_field cached pid)
before="$(most "$kvd") $(most "$cached")"
own_before=$(own "$kvd")
t "a stream of $stream MiB is put by a pipe" eval 'bytes | peak xseg kv put stream'
put=$(cat peak)
is "and is there" "$(peak xseg kv get stream | sha256sum)" "$(bytes | sha256sum)"
get=$(cat peak)
echo "    VmHWM in KiB: kvd, cached $before before, $(most "$kvd") $(most "$cached") after;" \
	"kv put $put, kv get $get"
if [ -z "$SAN" ]; then
	t "kvd has no more memory of its own than before" \
		[ "$(own "$kvd")" -le $((own_before + 2048)) ]
	t "a put has less than 32 MiB of memory" [ "$put" -lt 32768 ]
	t "a get has as little, beside the cache's pages that it reads" \
		[ "$get" -lt $((32768 + 24576)) ]
fi

# ---- kills in the middle ----

# feed: the value, with a pause in its middle until `go` is there
feed() { head -c 5M value; touch middle; until [ -e go ]; do sleep 0.05; done; tail -c +5242881 value; }
# drain FILE: the same of standard input
drain() { head -c 3M; touch middle; until [ -e go ]; do sleep 0.05; done; cat; }
middle() { [ -e middle ]; }
for victim in values cached filed; do
	rm -f middle go
	start put eval "feed | xseg --quiet kv put $victim"
	put=$started
	t "a put is in its middle" wait_for 60 middle
	t "$victim is killed" xseg peer kill "$victim"
	touch go
	wait "$put"
	is "the put goes on" "$?" 0
	rm -f middle go
	start get eval "xseg kv get $victim | drain >copy"
	get=$started
	t "a get is in its middle" wait_for 60 middle
	t "$victim is killed" xseg peer kill "$victim"
	touch go
	wait "$get"
	is "the get goes on" "$?" 0
	t "and has all of the value" cmp value copy
done
t "all is let go" wait_for 60 has_large 6

rm -f middle go
start get eval "xseg kv get file | drain >copy"
t "a get is in its middle" wait_for 60 middle
t "another value is put" xseg kv put file other
t "which is there" bash -c 'xseg kv get file | cmp - other'
first=$started
mkfifo still
sleep 100 <still &
sleeper=$!
start get eval 'exec xseg kv get piped >still'
two_handles() { [ "$(info handles)" = 2 ]; }
t "another get is in its middle" wait_for 60 two_handles
kill -9 "$started"
one_handle() { [ "$(info handles)" = 1 ]; }
t "it is killed, and holds nothing any more" wait_for 60 one_handle
kill "$sleeper"
touch go
wait "$first"
t "the first has the value of its begin" cmp value copy
t "all is let go" wait_for 60 has_large 6

rm -f middle go
mkfifo pipe
feed >pipe &
feeder=$!
start put xseg kv put killed pipe
t "a put is in its middle" wait_for 60 middle
kill -9 "$started"
touch go
wait "$started" "$feeder" 2>/dev/null
expect_err 4 "no key" "a put that was killed puts nothing" xseg kv get killed
t "and leaves nothing" wait_for 60 has_large 6

# ---- backup, restart, damage ----

list_of() { xseg --json kv list | jq -cS 'map(del(.version)) | sort_by(.key)'; }
echo small | xseg --quiet kv put small
all=$(list_of)
is "a verify reads all" "$(xseg --json kv verify | jq -c '[.bad, .bad_keys]')" "[0,[]]"
is "a backup has all records" "$(field_of bad kv backup saved)" 0
for key in $(xseg kv list); do xseg --quiet kv delete "$key"; done
t "the values are deleted" wait_for 60 has_large 0
head -c -100 saved >"cut"
expect_err 1 "not a whole backup" "a backup that is cut is refused" xseg kv restore "cut"
is "nothing was put" "$(xseg kv list)" "no keys"
t "a backup is restored" xseg kv restore saved
is "all values are there" "$(list_of)" "$all"
t "a large one is whole" bash -c 'xseg kv get values | cmp - value'
t "the stream is, too" [ "$(xseg kv get stream | sha256sum)" = "$(bytes | sha256sum)" ]
t "the stack goes down" xseg down
t "and comes up again" xseg up stack.conf
is "all values are there" "$(list_of)" "$all"
t "a large one is whole" bash -c 'xseg kv get values | cmp - value'
t "nothing is held" has_large 6
t "the cache forgets" xseg cache drop cached

# Damages the object that has the bytes at 2 MiB of the value.
damage()
{
	python3 - "$TMP/objects" value <<'END'
import os, sys
where = open(sys.argv[2], "rb").read()[2 << 20:(2 << 20) + 64]
for root, _, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(root, name)
        data = open(path, "rb").read()
        at = data.find(where)
        while at >= 0:
            with open(path, "r+b") as f:
                f.seek(at)
                f.write(b"damaged!")
            at = data.find(where, at + 1)
END
}
damage
expect_err 1 "get values: .*damaged: 'xseg kv verify'" "a damaged piece is an error" \
	xseg kv get values spoilt
t "no file is made of it" [ ! -e spoilt ]
t "other values are whole" bash -c 'xseg kv get piped | cmp - other'
xseg --json kv verify >verified 2>/dev/null
is "a verify fails" "$?" 1
is "and names the keys" "$(jq -c '.bad_keys | map(.key) | sort' verified)" \
	'["cached","filed","values"]'
xseg --json kv backup partial 2>/dev/null >answer
is "a backup of it fails" "$?" 1
is "and counts them" "$(jq .bad answer)" 3
for key in $(xseg kv list); do xseg --quiet kv delete "$key"; done
t "but can be restored" xseg kv restore partial
is "without them" "$(xseg kv list | sort | tr '\n' ' ')" "file piped small stream "
is "the segment is sound" "$(field_of ok check)" true
t "the stack goes down" xseg down
finish
