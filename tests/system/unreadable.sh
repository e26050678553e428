#!/bin/bash
# unreadable.sh - a stack runs with dirty data, and its segment cannot be read. It is of another
# version, as after an upgrade, or its file was removed, as at a logout by logind's RemoveIPC=. The
# command says how to stop that stack, and its advice loses nothing.
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

segment=/dev/shm/xseg.$XSEG_SEGMENT
log=$TMP/xseg-$XSEG_SEGMENT.log
cat >stack.conf <<END
[segment]
memory = 64M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 16M
dirty_high = 90
dirty_age = 1h

[peer volumed]
downstream = cached
END

up()		# WHAT
{
	what=$1
	t "$what: the stack comes up" xseg up stack.conf
	xseg --quiet volume create vol --size 8M >/dev/null 2>&1
	t "$what: something is written" xbench --volume=vol --rw=write --bs=64k --size=4M \
		--number_ios=64 --verify=crc32c --verify_state="$TMP/state" --randseed=$RANDOM
	t "$what: and dirty" [ "$(field_of dirty_bytes cache status cached)" -gt 0 ]
	pid=$(xseg --json status | jq .supervisor.pid)
	volumed=$(peer_field volumed pid)
}

# What is told to be done is done, and everything is there.
all_is_there()
{
	t "$what: that is done" kill "$pid"
	t "$what: and it ends" wait_for 60 has_ended "$pid"
	[ ! -e "$segment" ] || t "$what: the segment is removed" xseg destroy --force
	t "$what: the stack comes up anew" xseg up stack.conf
	t "$what: nothing is lost" xbench --volume=vol --rw=read --bs=64k --size=4M \
		--verify=crc32c --verify_only --verify_state="$TMP/state"
	t "$what: it stops" xseg down
}

# The stamp of its layout is the superblock's second word.
other_version()
{
	printf 'another!' | dd of="$segment" bs=1 seek=8 conv=notrunc status=none
}

up "another version"
other_version
tells="made by another version of xseg, and its stack runs; stop that by 'kill $pid'"
expect_err 1 "$tells" "$what: status tells how it ends" xseg status
expect_err 1 "$tells" "$what: so does down" xseg down
expect_err 1 "$tells" "$what: so does up" xseg up stack.conf
expect_err 4 "$tells" "$what: so does destroy" xseg destroy
all_is_there

up "another version is removed by force"
other_version
expect_exit 0 "$what: it is removed" xseg destroy --force
is "$what: with how the stack ends" "$(grep -c "its stack runs on.*'kill $pid'" .out)" 1
all_is_there

up "its file is removed"
rm "$segment"
tells="its file was removed from /dev/shm, and its stack runs on; 'kill $pid' stops that in order"
expect_err 4 "$tells" "$what: status tells how it ends" xseg status
expect_err 4 "$tells" "$what: so does down" xseg down
kill_hard "$volumed"
t "$what: where a peer has died the log tells, too" wait_for 60 grep -q \
	"supervisor: error: the segment's file was removed from /dev/shm.*'kill $pid'" "$log"
all_is_there

t "one that nobody has is said not to be there" [ ! -e "$segment" ]
expect_err 4 "there is none of that name" "and nothing else" xseg status
finish
