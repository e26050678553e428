#!/bin/bash
# filesystem.sh - a real file system on a volume: nbdfuse shows an export as a file, a loop device
# is made of it, and ext4 on that. Trees of real files are unpacked, checked and compared, while the
# peers below come and go. Once the export is killed under it.
#
# Nothing of it outlives the script, whatever its end. It runs in a mount namespace of its own, so
# mounts go with its last process. The loop device goes with the last process that has it open
# (losetup --detach, while it is).
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed jq nbdkit nbdfuse losetup mkfs.ext4 e2fsck \
	dumpe2fs tar unshare
need_plugin
[ "$(id -u)" = 0 ] || skip_all "only root may mount"
[ -c /dev/fuse ] || skip_all "/dev/fuse is not there"
losetup --find >/dev/null 2>&1 || skip_all "there is no loop device to be had"
grep -qw ext4 /proc/filesystems || skip_all "the kernel has no ext4"
if [ -z "${OWN_MOUNTS:-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "mount namespaces are not allowed"
	exec env OWN_MOUNTS=1 unshare --mount bash "$root/tests/system/$test_name.sh"
fi

times=$(bound 1 20)		# of each kill, policy and plug
tree_mb=$(bound 4 300)		# of /usr
# Folders that are left out: those that a build or git changes while the archive is made and compared,
# and in the short form those of many files.
left_out=(-path "$root/.git" -o -path "$root/build*")
[ -n "$LONG" ] || left_out+=(-o -path "$root/tests" -o -path "$root/docs")
volume_size=$(bound 512M 4G)
cat >stack.conf <<END
[segment]
memory = 256M
ports = 128
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 32M
[peer volumed]
downstream = cached
END

# ---- from the volume to a mount ----

# device_up: the loop device is in $loop. Its own reads and writes go past the kernel's page cache,
# so that all of them are requests.
device_up()
{
	export_up disk disk || return
	start nbdfuse nbdfuse "$TMP/fuse/disk" "$uri"
	t "nbdfuse shows it as a file" wait_for 60 test -s "$TMP/fuse/disk" || return
	t "a loop device is made of it" loop_open
}

loop_open()
{
	loop=$(losetup --find --show --direct-io=on "$TMP/fuse/disk") && exec 9<>"$loop" &&
		losetup --detach "$loop" &&
		[ "$(cat "/sys/block/${loop#/dev/}/loop/dio")" = 1 ]
}

loop_is_closed()
{
	! grep -qF "$TMP" "/sys/block/${loop#/dev/}/loop/backing_file"
}

device_down()
{
	exec 9>&-
	t "the loop device goes with its last user" wait_for 60 loop_is_closed
	t "the file too" umount "$TMP/fuse"
	export_down "$server"
	is "and the export" "$?" "${1:-0}"
}

mounted()
{
	mount -t ext4 -o discard,errors=remount-ro "$loop" "$TMP/disk"
}

no_damage()
{
	e2fsck -fn "$loop"
}

journal_has_something()
{
	dumpe2fs -h "$loop" | grep -q '^Filesystem features:.* needs_recovery'
}

# ---- trees ----

# files DIRECTORY MEGABYTES: the first of its files, of so many bytes in all
files()
{
	find "$1" -xdev \( "${left_out[@]}" \) -prune -o \
		\( -type f -o -type l \) -printf '%s\t%p\n' | sort -t $'\t' -k 2 |
		awk -F '\t' -v max=$(($2 << 20)) '(sum += $1) <= max { print $2 }'
}

pack()
{
	{
		files "$root" 20
		files /usr/include $((tree_mb / 2))
		files /usr/share $((tree_mb / 2))
	} >list
	tar --create --file=tree.tar --absolute-names --transform='s,^/,,' \
		--verbatim-files-from --files-from=list
}

unpack()	# NAME
{
	mkdir "disk/$1" &&
		tar --extract --preserve-permissions --directory="disk/$1" --file=tree.tar
}

unpack_on_and_on()
{
	local n
	for ((n = 0; ; n++)); do
		unpack unsynced.$n && sync --file-system disk || return
	done
}

# same NAME: bytes, owners, modes and times are those of the archive, and nothing else is there
same()
{
	tar --compare --directory="disk/$1" --file=tree.tar &&
		diff <(tar --list --quoting-style=literal --file=tree.tar | sort) \
			<(cd "disk/$1" && find . ! -type d -printf '%P\n' | sort)
}

# one_round N: a tree comes, one of two before goes
one_round()
{
	local n=$1
	t "tree $n is unpacked" unpack "$n"
	((n < 3)) || t "tree $((n - 2)) is removed" rm -r "disk/$((n - 2))"
	t "it is unmounted" umount disk
	t "e2fsck finds nothing" no_damage
	t "it is mounted" mounted || return
	t "tree $n is the same" same "$n"
}

t "an archive is made" pack
nr_files=$(bound 300 3000)
t "of $nr_files real files or more" [ "$(wc -l <list)" -ge "$nr_files" ]
is "all sources are among them, and nothing that was built" \
	"$(grep -cxF "$root/Makefile" list) $(grep -cxF "$root/xtypes/xhash.c" list) $(
		grep -cE "^$root/(\.git|build[^/]*)(/|\$)" list)" "1 1 0"
mkdir fuse disk
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size $volume_size
free=$(free_of_segment)
device_up || finish
t "a file system is made" mkfs.ext4 -q "$loop"
t "it is mounted" mounted || finish

# ---- while what is below comes and goes ----

disturb filed cached volumed filed
for ((round = 1; round <= 2 || $(nr_disturbed) < times; round++)); do
	one_round $round || break
done
disturbed $times
t "it is unmounted" umount disk
device_down
t "nobody has a request left" wait_for 60 no_clients
t "pages and requests are free that were before" wait_for 60 is_as_before
t "all of it stops" xseg down

# ---- all of it anew: what is read now is from the store's files ----

t "the stack comes up again" xseg up stack.conf
device_up || finish
t "e2fsck finds nothing" no_damage
t "it is mounted" mounted || finish
for tree in disk/[0-9]*; do
	t "tree ${tree#disk/} is the same" same "${tree#disk/}"
done

# ---- the export is killed: what fsync promised is there ----

t "a tree is unpacked" unpack synced
t "and is synced" sync --file-system disk
start writer unpack_on_and_on
writer=$started
t "others are under way" wait_for 60 test -d disk/unsynced.1
kill -KILL "$server"
{ wait "$writer"; } 2>/dev/null
t "who writes is told" [ $? -ne 0 ]
t "it is unmounted" umount disk
device_down 137
device_up || finish
t "it was not unmounted as it should" journal_has_something
t "so its journal is played" mounted || finish
for tree in synced unsynced.0; do
	t "what was synced is the same" same $tree
done
t "it is unmounted" umount disk
t "e2fsck finds nothing" no_damage
device_down
t "nobody has a request left" wait_for 60 no_clients
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
