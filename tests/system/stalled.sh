#!/bin/bash
# stalled.sh - the cache is killed while its store stands still, with its flushes and loads in
# flight. The successor serves cached data at once. Only the data of those requests waits until the
# store goes on. Nothing is lost.
# timeout: 60
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq holds

cat >stack.conf <<END
[segment]
memory = 256M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 64M
dirty_age = 10ms

[peer volumed]
downstream = cached
object_size = 1M
END

runs_again()	# PEER GENERATION
{
	state_is "$1" running && [ "$(peer_field "$1" generation)" -gt "$2" ]
}

# Stopped in the middle of something, however fast it is: it has accepted requests that it has not
# answered.
stop_at_work()	# PID
{
	local tries

	for tries in $(seq 200); do
		freeze "$1"
		[ "$(holds "$XSEG_SEGMENT" filed)" -gt 0 ] && return 0
		kill -CONT "$1"
		sleep "0.0$((tries % 7 + 1))"
	done
	return 1
}

has_flushed()
{
	[ "$(field_of flushed_bytes cache status cached)" -gt 0 ]
}

hot()
{
	xbench --volume=hot --direct=never --rw=write --bs=64k --iodepth=4 --size=8M --verify=crc32c \
		--verify_state="$TMP/hot.state" \
		--output-format=json "$@"
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create hot --size 8M
t "it is written" hot
t "and flushed" xseg volume flush hot
t "another one is made" xseg volume create busy --size 16M
free=$(free_of_segment)
start load xbench --volume=busy --rw=randrw --bsrange=4k-64k --iodepth=16 --numjobs=2 \
	--rate_iops="$(bound 2000 0)" --verify=crc32c --verify_state="$TMP/busy.state" \
	--runtime=1h --output-format=json --output=load.json
load=$started
t "a load runs" wait_for 60 counts_more volumes busy ops 500

store=$(peer_field filed pid)
generation=$(peer_field cached generation)
t "the store is stopped in the middle of something" stop_at_work "$store"
t "something is dirty, and due" wait_for 60 is_dirty
sleep 0.5
t "the cache is killed while its store stands still" xseg peer kill cached
t "it serves again" wait_for 60 runs_again cached "$generation"
t "though something is at the store" grep 'requests of its predecessor are at the store' \
	"$TMP/xseg-$XSEG_SEGMENT.log"
expect_json "$no_errors" "what is cached is served, without the store" hot --verify_only
t "the store stood still all the time" stands_still "$store"
generation=$(peer_field cached generation)
t "it is killed once more" xseg peer kill cached
t "it serves again" wait_for 60 runs_again cached "$generation"
expect_json "$no_errors" "and what is cached is served" hot --verify_only
ios=$(counted volumes busy ops)
kill -CONT "$store"
t "the other load goes on" wait_for 60 counts_more volumes busy ops $((ios + 100))
t "its data gets to the store" wait_for 60 has_flushed
kill -INT $load
wait $load
is "the other load ended when it was told to" "$?" 3
expect_json "$no_errors" "it saw no error" cat load.json
t "a flush succeeds" xseg volume flush busy
t "pages and requests are free that were before" wait_for 60 is_as_before
t "everything stops" xseg down
t "and starts again" xseg up stack.conf
expect_json "$no_errors" "all that was acknowledged is in the store" \
	xbench --volume=busy --rw=randrw --bs=64k --iodepth=16 --numjobs=2 --verify=crc32c \
	--verify_only --verify_state="$TMP/busy.state" --output-format=json
expect_json "$no_errors" "in both volumes" hot --verify_only
t "everything stops again" xseg down
finish
