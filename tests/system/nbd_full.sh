#!/bin/bash
# nbd_full.sh - an export over a store whose file system is full. A client's writes get ENOSPC where
# store_full=fail, or in write-through. With store_full=wait they wait, and are done when there is
# room. Small writes, which the guard does in batches, and large ones, which nbdkit does, behave the
# same.
#
# Its mounts are in a mount namespace of its own, so they go with its last process.
# tags: san
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed jq unshare nbdkit nbdinfo python3
need_plugin
[ "$(id -u)" = 0 ] || skip_all "only root may mount"
if [ -z "${OWN_MOUNTS:-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "mount namespaces are not allowed"
	exec env OWN_MOUNTS=1 unshare --mount bash "$root/tests/system/$test_name.sh"
fi
. "$root/tests/lib/nbdkit.sh"
mkdir "$TMP/objects"
mount -t tmpfs -o size=24M tmpfs "$TMP/objects" || skip_all "no tmpfs may be mounted"

cat >stack.conf <<END
[segment]
memory = 128M
ports = 64
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 8M
dirty_age = 200ms
[peer volumed]
downstream = cached
END

nbd()		# MODE ARGUMENT...
{
	python3 "$root/tests/system/nbd_wide.py" "$1" "$TMP/big.sock" "${@:2}"
}

mib()		# N
{
	echo $(($1 << 20))
}

is_full()
{
	[ "$(field_of full cache status cached)" = "{" ]
}

has_room()
{
	[ "$(field_of full cache status cached)" = null ] && is_clean
}

# Another file takes what is left.
take_room()
{
	dd if=/dev/zero of="$TMP/objects/other" bs=64k 2>/dev/null
	[ "$(df --output=avail -B 1 "$TMP/objects" | tail -n 1)" -eq 0 ]
}

t "the stack comes up" xseg up stack.conf
t "a volume is made that is larger than the store" xseg volume create big --size 64M
export_up big big
export=$server
is "16 small writes are done" "$(nbd probe 0 4096 16)" "16 ok"
is "and 4 large ones" "$(nbd probe "$(mib 1)" 262144 4)" "4 ok"
t "and they are flushed" xseg volume flush big
t "the store gets full" take_room

# ---- write-through ----

t "the cache writes through" xseg cache set cached policy=write-through store_full=fail
is "small writes get ENOSPC" "$(nbd probe "$(mib 8)" 4096 16)" "16 ENOSPC"
is "and large ones" "$(nbd probe "$(mib 12)" 262144 4)" "4 ENOSPC"
is "what was written before is there" "$(nbd read 0 65536)" 65536

# ---- write-back ----

t "the cache writes back" xseg cache set cached policy=write-back
nbd probe "$(mib 16)" 262144 64 >probe.out
t "many writes fill the cache, too" is_full
is "after that small writes get ENOSPC" "$(nbd probe "$(mib 40)" 4096 16)" "16 ENOSPC"
is "and large ones" "$(nbd probe "$(mib 41)" 262144 4)" "4 ENOSPC"
is "reads go on" "$(nbd read "$(mib 1)" 1048576)" 1048576

# ---- waiting, and room ----

t "writes are to wait" xseg cache set cached store_full=wait
start large nbd probe "$(mib 45)" 262144 32		# more than the clean data in the cache
large=$started
sleep 1
start small nbd probe "$(mib 44)" 4096 16
small=$started
sleep 1
t "small ones do" kill -0 "$small"
t "and large ones" kill -0 "$large"
t "nbdinfo is answered meanwhile" nbdinfo --size "$uri"
rm "$TMP/objects/other"
mount -o remount,size=96M "$TMP/objects"
wait "$small" && wait "$large"
is "when there is room, they are done" "$? $(cat small.log) $(cat large.log)" "0 16 ok 32 ok"
t "all that is dirty gets to the store" wait_for 60 has_room
is "small writes are done again" "$(nbd probe "$(mib 56)" 4096 16)" "16 ok"
is "and large ones" "$(nbd probe "$(mib 57)" 262144 4)" "4 ok"
t "they are flushed" xseg volume flush big
for range in "44 65536" "45 8388608" "56 65536" "57 1048576"; do
	is "what was written from ${range% *} MiB on is there" \
		"$(nbd read "$(mib "${range% *}")" "${range#* }")" "${range#* }"
done
export_down "$export"
is "the export ends" "$?" 0
t "the segment is sound" xseg check
t "everything stops" xseg down
nbdkit_is_clean
finish
