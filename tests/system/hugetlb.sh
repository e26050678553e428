#!/bin/bash
# hugetlb.sh - a segment whose pages are in reserved huge pages, in a hugetlbfs. It is used where it
# may be, as any other, and nothing of it stays behind.
# timeout: 120
#
# The hugetlbfs is mounted in a namespace of this test, so that no other test's segment gets there.
if [ -z "${HUGETLB_TEST:-}" ] && unshare --mount true 2>/dev/null; then
	HUGETLB_TEST=1 exec unshare --mount bash "$0" "$@"
fi
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq
[ -n "${HUGETLB_TEST:-}" ] || skip_all "it has to mount a file system, which root may"

pages=$TMP/pages
# One at a time on a machine changes how many there are.
exec 8</proc/sys/vm/nr_hugepages
flock 8
before=$(cat /proc/sys/vm/nr_hugepages)
set_aside()	# NUMBER
{
	echo "$1" >/proc/sys/vm/nr_hugepages
}
restore()
{
	local status=$?
	set_aside "$before"
	rm -f "/dev/shm/xseg.$XSEG_SEGMENT".*
	return $status
}
trap 'restore; cleanup' EXIT
mkdir pages objects
umount -a -t hugetlbfs 2>/dev/null
mount -t hugetlbfs -o pagesize=2M,size=192M xseg-test pages || skip_all "there is no hugetlbfs"
# 32 pages for the segment, the rest for tables, and for those of others that run meanwhile
set_aside $((before + 96))
[ "$(cat /proc/sys/vm/nr_hugepages)" -ge $((before + 96)) ] ||
	skip_all "the kernel has no 192 MiB that it could set aside"

own=/dev/shm/xseg.$XSEG_SEGMENT
files()
{
	ls "$pages"
}
nr_files()
{
	files | wc -l
}
huge_kind()	# WANTED SENTENCE
{
	expect_json ".huge_kind == \"$1\"" "$2" xseg --json info
}

t "a segment is made" xseg create --memory 64M --mode 0640
huge_kind hugetlb "its pages are in huge pages that were set aside"
expect_json '.huge_bytes == .memory_bytes' "all of them" xseg --json info
is "they are a file with the mode that was asked for" \
	"$(stat -c '%a %s' "$pages/$(files)")" "640 $((64 << 20))"
t "its own file has nothing in their place" \
	[ "$(stat -c '%b * %B' "$own" | xargs expr)" -lt $((48 << 20)) ]
t "it is sound" xseg check
t "it is destroyed" xseg destroy
is "and its pages with it" "$(nr_files)" 0
t "huge pages may be refused" xseg create --memory 64M --huge never
huge_kind none "then there are none"
is "and no file of them" "$(nr_files)" 0
t "that one is destroyed" xseg destroy
t "more than it has room for" xseg create --memory 1G
t "is had elsewhere" [ "$(field_of huge_kind info)" != hugetlb ]
is "and leaves nothing here" "$(nr_files)" 0
t "that one is destroyed, too" xseg destroy

# ---- peers, and one that dies ----

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 64M
huge = require
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 24M
dirty_high = 90
dirty_age = 1h
[peer volumed]
downstream = cached
END
verified()	# MORE...
{
	xbench --volume=vol --bs=4k --size=16M --iodepth=8 --verify=crc32c \
		--verify_state="$TMP/state" "$@"
}

t "a stack requires them" xseg up stack.conf
huge_kind hugetlb "and has them"
t "a volume is made" xseg volume create vol --size 16M
t "it is written" verified --rw=write
t "the cache dies with dirty data" xseg peer kill cached
t "and is begun anew on its arena" wait_for 60 state_is cached running
t "nothing is lost" verified --rw=read --verify_only
t "the segment is sound" xseg check
t "the stack stops" xseg down
is "and leaves no page" "$(nr_files)" 0
t "it stands again" xseg up stack.conf
t "the store has all of it" verified --rw=read --verify_only
t "it stops" xseg down

# ---- what goes wrong ----

t "a segment is made for what goes wrong" xseg create --memory 64M
file=$(files)
mv "$pages/$file" "$pages/away"
expect_err 1 "mount that one, or destroy the segment" "without its pages it cannot be used" \
	xseg info
mv "$pages/away" "$pages/$file"
t "with them it can" xseg info
truncate -s 32M "$pages/$file"
expect_err 1 "truncated: the file $file" "nor where they are truncated" xseg info
t "it is destroyed even so" xseg destroy --force
is "as a whole" "$(nr_files) $(test -e "$own"; echo $?)" "0 1"
# The name of another one, up to the device's number.
dotted=$XSEG_SEGMENT.$(printf %x "$(stat -c %d /dev/shm)")
t "a segment is made whose name goes on" xseg -s "$dotted" create --memory 16M
t "a segment is made whose own file somebody removes" xseg create --memory 64M
rm "$own"
is "its pages stay" "$(nr_files)" 2
t "until one of that name is made" xseg create --memory 64M
is "which has its own" "$(nr_files) $(field_of huge_kind info)" "2 hugetlb"
t "the other one has lost nothing" xseg -s "$dotted" check
t "it is destroyed" xseg -s "$dotted" destroy
t "and so is that" xseg destroy
is "nothing is left of either" "$(nr_files)" 0
finish
