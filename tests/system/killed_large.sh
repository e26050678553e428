#!/bin/bash
# killed_large.sh - a cache with 1 GiB of dirty data is killed: it serves again within a second,
# with all of it, and hits as before.
# tags: long
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq
[ "$(free_memory_mb)" -gt 5000 ] || skip_all "it needs 5 GiB of free memory"

cat >stack.conf <<END
[segment]
memory = 3300M
[peer memd]
memory = 1536M
[peer cached]
downstream = memd
memory = 1536M
dirty_high = 100
dirty_age = 1h
[peer volumed]
downstream = cached
END

cache()		# FIELD
{
	xseg --json cache status cached | jq ".$1"
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 1G
t "it is written" xbench --volume=vol --rw=write --bs=1M --iodepth=4 --size=1G --verify=crc32c \
	--verify_state="$TMP/state"
t "all of it is dirty" [ "$(cache dirty_bytes)" -ge $((1 << 30)) ]
for kill in 1 2 3; do
	generation=$(cache generation)
	start load xbench --volume=vol --direct=never --rw=randread --bs=4k --iodepth=4 --runtime=4s \
		--output-format=json --output=load.json
	sleep 1.5
	t "the cache is killed (number $kill)" xseg peer kill cached
	wait "$started"
	is "the load saw no error" "$?" 0
	t "it was another process then" [ "$(cache generation)" -gt "$generation" ]
	longest=$(jq '.jobs[0].read.lat_ns.max' load.json)
	t "the longest pause was below a second: $((longest / 1000000)) ms" \
		[ "$longest" -lt 1000000000 ]
	t "all is still dirty" [ "$(cache dirty_bytes)" -ge $((1 << 30)) ]
done
t "every read was a hit, but a few of the catalogue" [ "$(cache misses)" -lt 10 ]
expect_json "$no_errors" "all that was acknowledged is there" \
	xbench --volume=vol --rw=write \
	--bs=1M --iodepth=4 --size=1G --verify=crc32c --verify_only --verify_state="$TMP/state" \
	--output-format=json
t "everything stops" xseg down --force
finish
