#!/bin/bash
# resize.sh - a cache grows and shrinks again and again under verified load, and is killed in
# between. No error, nothing lost. At the end the cache has the requested size, and the segment has
# the rest.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

seconds=${LONG:+60}
seconds=${seconds:-6}
sizes=(40M 8M 64M 4M 16M 12M)

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 192M
[peer store]
kind = memd
memory = 64M
latency = 100us
jitter = 200us
[peer cached]
downstream = store
memory = 16M
objects = 1000
threads = 2
[peer volumed]
downstream = cached
END

load()
{
	xbench --volume=vol --data=direct --rw=randrw --rwmixread=50 --bsrange=512-64k --iodepth=8 \
		--numjobs=2 --fsync=50 --opmix=trim:3,write_zeroes:3 --rate_iops="$(bound 2000 0)" \
		--runtime=${seconds}s --verify=crc32c --verify_state="$TMP/state" \
		--randseed=$RANDOM --output-format=json
}

# A size every 0.25 s, and a kill now and then
resize_and_kill()
{
	local i
	for ((i = 0; i < seconds * 4; i++)); do
		xseg cache set cached memory="${sizes[i % 6]}" >/dev/null || return 1
		sleep 0.2
		((i % 7 != 6)) || xseg peer kill cached >/dev/null || return 1
		sleep 0.05
	done
}

status()
{
	xseg --json cache status cached
}

# has BYTES: the cache has that size
has()
{
	status | jq -e ".resizing == null and .memory_bytes == $1"
}

free_mb()
{
	xseg --json info | jq -e '.free_pages / 256'
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 48M
free=$(free_mb)
resize_and_kill &
resizer=$!
expect_json "$no_errors" \
	"verified I/O has no error while the size changes and the cache is killed" load
t "every size was accepted" wait $resizer

t "it is asked to hold the whole volume" xseg cache set cached memory=64M
t "and does" wait_for 60 has $((64 << 20))
is "the segment has less" "$(free_mb)" $((free - 48))
expect_err 1 "memory=1.0G needs 960M more .* the segment has [0-9.]+M left" \
	"more than the segment has is refused" \
	xseg cache set cached memory=1G
expect_json '.memory == "64M"' "and nothing is changed by that" xseg --json cache get cached

t "the store gets slow" xseg peer set store latency=2s
expect_json '[.jobs[].error] | add == 0' "the cache is full of dirty data" \
	xbench --volume=vol --rw=write --bs=64k --iodepth=16 --size=40M --output-format=json
store=$(peer_field store pid)
t "the store takes nothing" freeze "$store"
t "the cache is asked to shrink" xseg cache set cached memory=8M
expect_json '.resizing.to_bytes == 8388608 and .resizing.left_bytes > 0 and .memory_bytes > 8388608' "that takes time, and status shows it" status
xseg cache status cached >status.txt
t "in words, too" grep -qE "^memory +[0-9.]+[kMG] \(resizing to 8(\.0)?M, [0-9.]+[kMG]? left\), " \
	status.txt
t "it is killed in the middle" xseg peer kill cached
kill -CONT "$store"
t "the store is fast again" xseg peer set store latency=0 jitter=0
t "the next one ends it" wait_for 60 has $((8 << 20))
is "and the segment has it back" "$(free_mb)" $((free + 8))
expect_json '.memory == "8M"' "what it says of its size is true, whatever the stack file says" \
	xseg --json cache get cached
t "the segment is sound" xseg check
t "everything stops" xseg down

finish
