#!/bin/bash
# full_store.sh - a store whose file system is full under write-back. The status says since when and
# for which object. store_full=fail refuses writes, wait lets them wait. Meanwhile volumes are
# listed, read and removed. When there is room again all acknowledged data gets there.
#
# Its mounts are in a mount namespace of its own, so they go with its last process.
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq unshare
[ "$(id -u)" = 0 ] || skip_all "only root may mount"
if [ -z "${OWN_MOUNTS:-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "mount namespaces are not allowed"
	exec env OWN_MOUNTS=1 unshare --mount bash "$root/tests/system/$test_name.sh"
fi
mkdir "$TMP/objects"
mount -t tmpfs -o size=24M tmpfs "$TMP/objects" || skip_all "no tmpfs may be mounted"

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 96M
[peer filed]
dir = $TMP/objects
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
	"$(xseg cache status | grep -c 'the store is full for .*: no room for object .* of volume big')" 1
is "and that of all" "$(xseg status | grep -c 'the store is full for ')" 1
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
t "everything stops" xseg down
finish
