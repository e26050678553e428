#!/bin/bash
# full_store.sh - a store whose file system is full. The status names the volume, the time of the
# first failure, and the directory that needs room. That alone is enough to mend it, under
# write-back and under write-through. store_full=fail refuses writes, wait lets them wait. Meanwhile
# volumes are listed, read and removed. When there is room again all acknowledged data gets there.
#
# Its mounts are in a mount namespace of its own, so they go with its last process.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq unshare
[ "$(id -u)" = 0 ] || skip_all "only root may mount"
if [ -z "${OWN_MOUNTS:-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "mount namespaces are not allowed"
	exec env OWN_MOUNTS=1 unshare --mount bash "$root/tests/system/$test_name.sh"
fi
mkdir "$TMP/disk"
mount -t tmpfs -o size=24M tmpfs "$TMP/disk" || skip_all "no tmpfs may be mounted"
mkdir "$TMP/disk/objects"

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 96M
[peer filed]
dir = $TMP/disk/objects
[peer cached]
downstream = filed
memory = 8M
dirty_age = 200ms
[peer volumed]
downstream = cached
END

load()		# VOLUME options
{
	xbench --volume="$1" --rw=write --bs=64k --iodepth=4 "${@:2}"
}

is_full()
{
	[ "$(field_of full cache status cached)" = "{" ]
}

has_room()
{
	[ "$(field_of full cache status cached)" = null ] && is_clean
}

# Writes until the store is full and the cache, too.
fill()		# VOLUME
{
	start load load "$1" --size=64M --number_ios=1024 --verify=crc32c \
		--verify_state="$TMP/state"
	t "$1: the store gets full" wait_for 60 is_full
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create small --size 4M
t "and one that is larger than the store" xseg volume create big --size 64M
t "the small one is written" load small --size=1M
t "and flushed" xseg volume flush small

# ---- who waits ----

fill big
expect_json '.store_full == "wait" and .full.volume == "big" and .full.ms >= 0 and .full.volumes >= 1 and
	(.full.object | length > 0)' "the status says since when, and for what" \
	xseg --json cache status cached
is "also for people" \
	"$(xseg cache status | grep -cE 'the store is full since .* for volume big(, and .*)?:$')" 1
is "and that of all" "$(xseg status | grep -c 'the store is full since ')" 1
is "which says no more of flushes" "$(xseg status | grep -c 'fails flushes')" 0
t "volumes are listed" xseg --timeout 20s volume list
t "another volume is read" xbench --volume=small --rw=read --bs=4k --size=1M
t "and discarded" xbench --volume=small --rw=trim --bs=64k --size=256k

# ---- who is refused ----

t "writes are to fail" xseg cache set cached store_full=fail
wait "$started"
is "those that waited do, and say so" "$?" 1
expect_exit 1 "and a new one" load big --size=64k --number_ios=1
t "others can be made" xseg --timeout 20s volume create tiny --size 1M
t "and be removed" xseg --timeout 20s volume remove tiny
t "writes are to wait again" xseg cache set cached store_full=wait

# ---- room ----

expect_exit 1 "what is full cannot be flushed" xseg --timeout 20s volume flush big
t "the volume is removed, which makes room" xseg --timeout 30s volume remove big
t "so all that is dirty gets to the store" wait_for 60 has_room
t "the other volume is flushed" xseg volume flush small
t "a volume of that name is made again" xseg volume create big --size 8M
is "nothing is in it" "$(xseg volume export big - | tr -d '\0' | wc -c)" 0
t "it can be written" load big --size=4M
t "and flushed" xseg volume flush big
t "nothing is leaked" xseg check
t "the volume is removed again" xseg --timeout 30s volume remove big

# ---- found and mended by what status says alone ----

log=$TMP/xseg-$XSEG_SEGMENT.log

# The directory in which the status wants room to be made.
full_dir()
{
	xseg status | sed -n 's/^WARNING  *filed: .*; make room in \(.*\), or remove volumes$/\1/p' |
		sort -u
}

is_mended()
{
	[ "$(xseg --json status | jq -c '[.warnings, .store.failing, .caches[0].full,
		.caches[0].flushes_fail]')" = '[[],null,null,null]' ]
}

# Each line on little room has been followed by one on enough of it.
all_is_told()
{
	[ "$(grep -c 'filed: .* is nearly full' "$log")" = "$(grep -c 'filed: .* has room again' "$log")" ]
}

for policy in write-back write-through; do
	t "$policy: there is no warning before" wait_for 60 is_mended
	t "$policy: nor does the log end with one" wait_for 60 all_is_told
	head -c 12M /dev/zero >"$TMP/disk/ballast"
	: >"$log"
	t "$policy: it is set" xseg cache set cached policy=$policy
	t "$policy: a volume is made" xseg volume create fill --size 16M
	start load load fill --size=16M --number_ios=256
	t "$policy: the store gets full" wait_for 60 is_full
	xseg status >status.txt
	t "$policy: the status says what is wrong and since when" grep -qE \
		'^WARNING +filed: No space left on device since [0-9:]+ \(.*\): [0-9]+ requests? failed' \
		status.txt
	t "$policy: and of which volume, beside the object that the log has" grep -qE \
		'failed, the last a [a-z_]+ of volume fill, object -[0-9a-f]+[a-z]:[0-9a-f]+; its log' \
		status.txt
	t "$policy: and how little is left" grep -qE '^store +filed: .* of 24.0M free' status.txt
	t "$policy: it warns of that" grep -qE '^WARNING +filed: .* of 24.0M are free' status.txt
	then=fail
	[ $policy = write-through ] || then="wait when memory runs out"
	t "$policy: and says what becomes of writes" grep -q \
		"the store is full since .* for volume fill.*: new writes of it $then; make room" \
		<(tr -s '\n ' ' ' <status.txt)
	is "$policy: each thing once" "$(grep -c ' are free' status.txt)" 1
	expect_json '.store.failing.error == "No space left on device" and .store.failing.ms >= 0 and
		.store.failing.volume == "fill" and (.store.failing.object | test("^-.*:")) and
		([.warnings[].kind] | contains(["low_space", "store_fails"]))' \
		"$policy: the same for scripts" xseg --json status
	dir=$(full_dir)
	is "$policy: it names the directory" "$dir" "$TMP/disk/objects"
	t "$policy: the log says that there is little room" wait_for 60 grep -q \
		'is nearly full: .* MiB are left; make room there' "$log"
	t "$policy: room is made there" rm "$(dirname "$dir")/ballast"
	t "$policy: the state, its time and the warnings go away" wait_for 60 is_mended
	wait "$started"
	is "$policy: writes have waited, or have failed" $? $([ $policy = write-back ]; echo $?)
	t "$policy: now they go on" load fill --size=16M
	t "$policy: and are flushed" xseg volume flush fill
	is "$policy: the log has said so once" \
		"$(grep -c 'is nearly full: .* MiB are left; make room there' "$log")" 1
	t "$policy: and once that there is enough" wait_for 60 grep -q 'has room again: .* MiB' "$log"
	t "$policy: the volume goes" xseg --timeout 30s volume remove fill
done
t "everything stops" xseg down
finish
