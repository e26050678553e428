#!/bin/bash
# direct.sh - clients read past the cache's queue, under verified load of several of them. Meanwhile
# the cache evicts, is killed, leaves the path and enters it again, and changes its policy. No read
# is wrong; and some reads were direct.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/beside.sh"
need xseg xseg-host xbench volumed cached memd jq

seconds=${LONG:+30}
seconds=${seconds:-3}
jobs=4
# ThreadSanitizer does not see what another process has put in order
[ "${SAN:-}" != tsan ] || jobs=1

# A cache smaller than the volume, with few objects: buckets, chunks and entries come and go.
cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 192M
[peer store]
kind = memd
memory = 64M
[peer cached]
downstream = store
memory = 8M
objects = 20
threads = 2
[peer volumed]
downstream = cached
object_size = 256k
threads = 2
END

load()	# more options
{
	xbench --volume=vol --data=direct --rw=randrw --rwmixread=85 --iodepth=4 --numjobs=$jobs \
		--random_distribution=zipf:1.1 --fsync=200 --rate_iops="$(bound 3000 0)" \
		--runtime=${seconds}s --verify=crc32c --randseed=$RANDOM --output-format=json "$@"
}

reads_are_direct()	# SENTENCE [MORE THAN]
{
	is "$1" "$(json load.json "[.jobs[].direct_ios] | add > ${2:-100}")" true
}

# A short load needs no request for many of its reads. A slow machine needs more than one try.
is_direct_again()
{
	load --bs=4k --runtime=1s --output=load.json &&
		[ "$(json load.json '[.jobs[].direct_ios] | add > 100')" = true ]
}

generation()
{
	peer_field cached generation
}

switch_policies()
{
	local policy
	for policy in pass-through write-around write-through write-back; do
		xseg cache set cached policy=$policy && sleep 0.2 || return
	done
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 12M

expect_json "$no_errors" "while buckets are evicted nothing is read that is wrong" load --bs=4k
load --bs=4k --output=load.json
reads_are_direct "and much is read without a request"
load --bsrange=512-16k --output=load.json
t "the cache says so" test "$(field_of direct_reads cache status cached)" -gt 100
t "and so does stat" test "$(xseg --json stat | jq '.caches[0].direct_bytes')" -gt 409600
is_read_well "so it is with parts of pages, and with several"

before=$(generation)
beside kill_cache
load --bs=4k --output=load.json
is_read_well "while the cache is killed nothing is read that is wrong"
end_beside "it was killed whenever it was there"
is "and came back" "$([ "$(generation)" -gt $((before + 1)) ] && echo yes)" yes
reads_are_direct "and some was read without a request" 0

beside unplug_and_plug store
load --bs=4k --output=load.json
is_read_well "while it leaves the path and enters it"
end_beside "it did each time"
t "and when it stays, reads need no request again" wait_for 60 is_direct_again

beside switch_policies
load --bs=4k --output=load.json
is_read_well "while its policy changes"
end_beside "it changed each time"

t "a volume that is removed is not read any more" xseg volume remove vol
expect_exit 4 "as any client is told" load --bs=4k
t "everything stops" xseg down
finish
