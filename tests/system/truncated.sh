#!/bin/bash
# truncated.sh - somebody truncates the segment's file under load: everybody whom it concerns says
# so and leaves, nobody hangs, and a new segment over the same store has all that was flushed.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

file=/dev/shm/xseg.$XSEG_SEGMENT
mkdir objects
cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 64M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 8M
[peer volumed]
downstream = cached
END

verify()
{
	xbench --volume=vol --rw=randwrite --bs=4k --size=16M --number_ios=4000 --iodepth=8 \
		--verify=crc32c --verify_state="$TMP/state" "$@"
}

# Also those who had no need of what is gone: they look each second.
peers_left()
{
	local pid
	for pid in $(segment_pids "$XSEG_SEGMENT"); do
		tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null |
			grep -E 'bin/(filed|cached|volumed|xseg-host) '
	done
}

nobody_left()
{
	[ -z "$(peers_left)" ]
}

log=$TMP/xseg-$XSEG_SEGMENT.log

# cut SENTENCE LESS: a stack under load loses the last LESS bytes of the file
cut()
{
	local load
	t "$1: the stack comes up" xseg up stack.conf
	xseg volume info vol >/dev/null 2>&1 ||
		t "$1: a volume is made" xseg volume create vol --size 16M
	rm -f "$TMP/state"
	t "$1: data is written" verify
	t "$1: and flushed" xseg volume flush vol
	start load xbench --volume=vol --rw=randread --bsrange=4k-64k --iodepth=16 --runtime=60s
	load=$started
	sleep 0.5
	truncate -s "$(($(stat -c %s "$file") - $2))" "$file"
	t "$1: who works with it ends" wait_for 20 eval "! kill -0 $load"
	wait "$load"
	is "$1: with an exit code of its own, and no signal" $? 1
	grep -q "somebody truncated its file" load.log && ok "$1: and says why" ||
		not_ok "$1: and says why" load.log
	expect_err 1 "truncated" "$1: whoever looks is told" xseg check
	expect_err 1 "truncated" "$1: a peer cannot begin" cached --name=another
	t "$1: all peers and the supervisor leave" wait_for 20 nobody_left
	t "$1: what is left can be removed" xseg destroy --force
	grep -q "cached: error: memory of segment.*truncated" "$log" && ok "$1: the log says why" ||
		not_ok "$1: the log says why" "$log"
}

cut "nearly all pages" $((63 << 20))
cut "nearly all" $((76 << 20))
t "a new segment over the same store" xseg up stack.conf
t "has all that was flushed" verify --verify_only
t "and stops" xseg down
finish
