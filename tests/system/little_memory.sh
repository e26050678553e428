#!/bin/bash
# little_memory.sh - there is less memory than a segment needs, or no /dev/shm to make it in. The
# command says so before it takes any, because the kernel would kill the process that takes it.
#
# Files of this test replace the kernel's figures, in a mount namespace of its own.
# timeout: 60
if [ -z "${LITTLE_TEST:-}" ] && unshare --mount true 2>/dev/null; then
	LITTLE_TEST=1 exec unshare --mount bash "$0" "$@"
fi
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host filed memd kvd
[ -n "${LITTLE_TEST:-}" ] || skip_all "it has to mount file systems, which root may"

cat >stack.conf <<END
[segment]
memory = 64M
[peer filed]
dir = $TMP/objects
END
no_segment()
{
	! ls /dev/shm/xseg."$XSEG_SEGMENT"* >/dev/null 2>&1
}
refused()	# REGEX SENTENCE
{
	expect_err 1 "create: .*$1" "$2" xseg --quiet create --memory 64M
	expect_err 1 "up: .*$1" "and a stack" xseg up stack.conf
	t "and nothing is left" no_segment
}
made()		# SENTENCE
{
	t "$1" xseg create --memory 64M
	t "and goes" xseg destroy
}

# ---- the machine ----

meminfo()	# FREE CACHED SHMEM SWAP, in MiB
{
	printf '%s: %d kB\n' MemTotal 1000000 MemFree $(($1 << 10)) Buffers 0 \
		Cached $(($2 << 10)) Shmem $(($3 << 10)) SReclaimable 0 SwapFree $(($4 << 10)) >meminfo
}
meminfo 40 60 30 0
t "the machine has little memory" mount --bind meminfo /proc/meminfo
refused "machine has 70 MiB of memory left .* 80 MiB" "a segment is refused where the machine has too little"
meminfo 40 60 10 0
made "what could be given back counts"
meminfo 40 60 30 20
made "so does what could be swapped out"
echo nonsense >meminfo
made "who does not know does not refuse"
t "that was the machine" umount /proc/meminfo

# ---- a control group ----

group()		# LIMIT STAT
{
	echo "$1" >"$limit"
	printf "$2\n" >"${limit%/*}/memory.stat"
}

# kvd_up KEYS: a stack with a kvd of so many
kvd_up()
{
	printf '%s\n' '[segment]' 'memory = 64M' '[peer memd]' 'memory = 32M' '[peer kvd]' \
		'downstream = memd' 'size = 32M' "keys = $1" >kvd.conf
	xseg up kvd.conf
}

# A kvd takes all of its index at its start.
index_in_group()
{
	group $((100 << 20)) "anon 0\nshmem 0"
	expect_err 1 "control group .* 100 MiB .* kvd of 4000000 keys needs 1[0-9]* MiB; give fewer keys=" \
		"a kvd whose index a group may not have is refused" kvd_up 4000000
	xseg down --force >/dev/null 2>&1
	t "with fewer keys it starts" kvd_up 1000000
	t "and stops" xseg down
}

version_2()
{
	limit=/sys/fs/cgroup/memory.max
	group $((60 << 20)) "anon 0\nshmem 0"
	refused "control group .* 60 MiB of memory .* 80 MiB" \
		"a segment is refused where a group may have less"
	group $((120 << 20)) "anon $((50 << 20))\nfile $((60 << 20))\nshmem $((10 << 20))"
	refused "control group .* 60 MiB" "where it has the rest already"
	group $((120 << 20)) "anon $((10 << 20))\nfile $((60 << 20))\nshmem $((10 << 20))"
	made "its page cache is given back"
	group max "anon 0\nshmem 0"
	made "one may have no limit"
	index_in_group
	rm /sys/fs/cgroup/memory.*
}

version_1()
{
	mkdir /sys/fs/cgroup/memory
	limit=/sys/fs/cgroup/memory/memory.limit_in_bytes
	group $((120 << 20)) "rss 0\ntotal_rss $((50 << 20))\ntotal_shmem $((10 << 20))"
	refused "control group .* 60 MiB" "the same of version 1"
	group 9223372036854771712 "total_rss 0\ntotal_shmem 0"
	made "which may have no limit either"
}

meminfo 900 0 0 0
t "the machine has enough, and no swap space" mount --bind meminfo /proc/meminfo
t "control groups are this test's" mount -t tmpfs xseg-test /sys/fs/cgroup
if grep -q '^0::' /proc/self/cgroup; then version_2; else
	skip "version 2" "the kernel has no such groups"
fi
if grep -qE '[:,]memory[:,]' /proc/self/cgroup; then version_1; else
	skip "version 1" "the kernel has no such groups of memory"
fi
t "those were control groups" umount /sys/fs/cgroup /proc/meminfo

# ---- /dev/shm ----

t "/dev/shm is this test's" mount -t tmpfs -o size=40M xseg-test /dev/shm
refused "/dev/shm has 40 MiB left .* 80 MiB" "a segment is refused where it does not fit"
t "it is larger" mount -o remount,size=100M /dev/shm
t "a segment is made there" xseg --quiet create --memory 64M
t "it can only be read" mount -o remount,ro /dev/shm
expect_err 1 "Read-only file system; mount /dev/shm for reading and writing" \
	"who would use it is told" xseg info
t "it can be written" mount -o remount,rw /dev/shm
t "it goes" xseg destroy
t "it can only be read" mount -o remount,ro /dev/shm
refused "Read-only file system; is /dev/shm mounted, and may you write there?" \
	"nor is a segment made where nothing can be written"
finish
