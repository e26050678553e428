#!/bin/bash
# unsynced.sh - the storage below filed fails to sync. Only the affected volume is told, and data
# that was not written again is not forgotten with the segment.
#
# The filed is one that cannot sync while there is a file `sick` (tests/tools/sick_filed.c).
# tags: san
# timeout: 60
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed sick_filed jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 64M
[peer filed]
dir = $TMP/objects
[peer volumed]
downstream = filed
END
mkdir bin
cp "$BUILD"/bin/{xseg,xseg-host,volumed} bin
cp "$BUILD/tests/sick_filed" bin/filed
export PATH="$TMP/bin:$PATH"
export SICK_SYNC=$TMP/sick

write()		# VOLUME
{
	xbench --volume="$1" --rw=write --bs=64k --size=64k --number_ios=1
}

is_there()
{
	test -e "/dev/shm/xseg.$XSEG_SEGMENT"
}

t "the stack comes up" xseg up stack.conf
for volume in one other; do
	t "volume $volume is made" xseg volume create $volume --size 8M
	t "and written" write $volume
	t "and flushed" xseg volume flush $volume
done

# ---- FLUSH ----

touch sick
t "one volume is written, and cannot be synced" write one
t "the other's FLUSH ends well" xseg volume flush other
expect_err 1 "Input/output error" "its own FLUSH has the error" xseg volume flush one
t "the other is written" write other
expect_err 1 "Input/output error" "which fails, too, then" xseg volume flush other
rm sick
expect_err 1 "Input/output error" "what was lost stays so when it can sync again" \
	xseg volume flush one
t "until it is written again" write one
t "then its FLUSH ends well" xseg volume flush one
expect_err 1 "Input/output error" "the other's does not" xseg volume flush other

t "the log says what to do" grep -q "flush of .* failed: .*; lost data has to be written again" \
	"$TMP/xseg-$XSEG_SEGMENT.log"

# ---- the end ----

lost="filed is stopped, and 64.0k \(65536 bytes\) of data written to it could not be synced"
expect_err 4 "down .*$lost.*'xseg up STACK.conf'.*--force" "down leaves the segment there" xseg down
t "and it is there" is_there
is "all have stopped" "$(xseg --json peer list | jq -c 'map(.state)')" '["stopped","stopped"]'
expect_err 4 "destroy .*$lost" "destroy does, too" xseg destroy
t "the stack comes up again" xseg up stack.conf
expect_err 4 "$lost" "what was lost is still lost" xseg down
t "it comes up once more" xseg up stack.conf
t "what was lost is written again" write other
t "then it stops" xseg down
expect_exit 1 "and the segment is gone" is_there

t "a new one comes up" xseg up stack.conf
t "one volume is written" write one
touch sick
expect_err 4 "$lost" "a stop that cannot sync leaves the segment there" xseg down
t "the log says so" grep -q "filed: warning: some data written .* could not be synced" \
	"xseg-$XSEG_SEGMENT.log"
t "by force it goes" xseg down --force
expect_exit 1 "and is gone" is_there
finish
