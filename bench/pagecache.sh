#!/bin/bash
# pagecache.sh - the kernel's page cache beside xseg: 4 KiB at random in memory, and its CPU time.
#
# Usage: bench/pagecache.sh [--quick]
# Environment: BENCH_SECONDS (0.3, of one run), BENCH_SET (MiB of the set, 1024)
#
# One program (bench/pagecache/pagecache.c) does the same I/O with each of these:
#   tmpfs       a loop of pread() or pwrite() on a file in /dev/shm
#   tmpfshuge   the same, with the file in huge pages
#   disk        the same on a file of the disk that holds BUILD. All of it is in the page cache.
#               Written pages are dirty already, and go to the disk after the runs
#   map         no system call: reads of a mapping of tmpfshuge
#   copy        libxseg -> volumed -> cached: a request, and its data is copied
#   loan        the same; a read is read in the cache's page, a write gives its page to the cache
#   directcopy  libxseg finds the data in the cache without a request, and copies it to the caller
#   direct      the same, and the caller reads in the cache's page
#   limit       bench-limit, a server and a client without a cache: what copy can have on two CPUs
#               of this machine
#
# depth is the number of I/Os in flight; a loop of system calls has one. touch is what the program
# reads or writes of a page itself: its first line, or all of it. cpus is where all runs:
#   1           one thread, and the server on the same CPU
#   2           tmpfs, disk, map, directcopy, direct: a thread on each of two CPUs; copy, loan,
#               limit: the server on one, a thread on the other
#
# Each figure but those of limit has the CPU time of an I/O, of the program and the server together.
# A server that expects work polls for it, so it uses all of its CPU. copy and loan have one stack,
# directcopy and direct another, so that no write meets a page that is read without requests.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.3 0.02
by_form set_mib "${BENCH_SET:-1024}" 64
columns="system rw touch depth cpus round = iops mean_ns cpu_ns server_ns errors"
more_figures="([.ios, 1] | max) as \$all | {
	cpu_ns: (((.client_cpu_ns // 0) + (.server_cpu_ns // 0)) / \$all | floor),
	server_ns: ((.server_cpu_ns // 0) / \$all | floor) }"
set_file=/dev/shm/$XSEG_SEGMENT.set
vars="disk_is huge"
case $set_mib in
'' | *[!0-9]* | 0* | [1-9] | [1-5][0-9])
	usage "BENCH_SET=$set_mib is not a number of MiB, 60 or more"
	;;
esac

# pagecache ARGUMENT...
pagecache()
{
	bench-pagecache --size="${set_mib}M" "$@" 2>>"$log" || fail "bench-pagecache $* failed"
}

file_of()	# SYSTEM
{
	case $1 in
	tmpfs)           echo "/dev/shm/$XSEG_SEGMENT.small" ;;
	tmpfshuge | map) echo "/dev/shm/$XSEG_SEGMENT.huge" ;;
	disk)            echo "$tmp/file" ;;
	esac
}

# ---- what is there ----

make_files()
{
	also_at_the_end rm -f "$(file_of tmpfs)" "$(file_of tmpfshuge)"
	pagecache --file="$(file_of tmpfs)" --make --touch=all >/dev/null
	huge=$(pagecache --file="$(file_of tmpfshuge)" --make --huge --touch=all | jq .huge_pages)
	pagecache --file="$(file_of disk)" --make --touch=all >/dev/null
	sync "$(file_of disk)"
	disk_is=$(findmnt -no FSTYPE -T "$tmp")
}

# The cache holds the whole set and flushes nothing by itself.
stack_up()	# STACK
{
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	on "$1" store_up $((set_mib + set_mib / 3 + spare_mib)) memd "memory = 64M" \
		"$(holding "$set_mib")" bench="${set_mib}M"
	on "$1" pagecache --volume=bench --make --data="$1" --iodepth=16 --touch=all >/dev/null
}

# The process that has all peers of a stack.
server_of()	# STACK
{
	on "$1" xseg --json peer list | jq -r '.[] | select(.name == "volumed").pid'
}

# ---- one run ----

# run_one SYSTEM RW TOUCH DEPTH CPUS: one CPU is the server's
run_one()
{
	local where=("$server_cpu") jobs=1 stack= args=()
	case $1 in
	tmpfs | tmpfshuge | disk) args=(--file="$(file_of "$1")") ;;
	map)                      args=(--file="$(file_of "$1")" --data=map) ;;
	copy | loan)              stack=copy args=(--data="$1") ;;
	direct)                   stack=direct args=(--data=direct) ;;
	directcopy)               stack=direct args=(--data=direct-copy) ;;
	esac
	[ -z "$stack" ] || args+=(--volume=bench --server="${server[$stack]}")
	case $1-$5 in
	*-1) ;;
	copy-* | loan-*) where=("${client_cpus%%,*}") ;;
	*)               where=("$server_cpu,${client_cpus%%,*}") jobs=2 ;;
	esac
	on "${stack:-none}" pagecache "${args[@]}" --rw="rand$2" --touch="$3" --iodepth="$4" \
		--cpus="${where[0]}" --numjobs=$jobs --randseed="$round" --runtime="$run_time" \
		--ramp_time="$ramp" >"$raw/$1-$2-$3-$4-$5-run.$round.json"
}

run_limit()	# RW TOUCH DEPTH
{
	limit "limit-$1-$2-$3-2" "$1" 4k "$3" --mode=copy --touch="$2" --object_size=4k \
		--size="${set_mib}M"
}

# With all pages dirty a write only writes data. They reach the disk before anything else is
# measured.
disk_writes()
{
	pagecache --file="$(file_of disk)" --make --touch=all >/dev/null
	each run_one disk write "line all" 1 "1 2"
	sync "$(file_of disk)"
}

all_systems()
{
	disk_writes
	each run_one "tmpfs tmpfshuge" write "line all" 1 "1 2"
	each run_one "copy loan" write "line all" "1 16" "1 2"
	each run_limit write "line all" "1 16"
	each run_one "tmpfs tmpfshuge disk" read "line all" 1 "1 2"
	each run_one "map direct directcopy copy loan" read "line all" "1 16" "1 2"
	each run_limit read "line all" "1 16"
}

fit_set 750 1024
bench_begin xseg xseg-host bench-pagecache bench-limit
also_at_the_end rm -f "$set_file"
make_files
declare -A server
for stack in copy direct; do
	stack_up $stack
	server[$stack]=$(server_of $stack)
done
while next_round; do
	all_systems
done
bench_report "xseg and the page cache, DATE: 4 KiB at random over $set_mib MiB, medians of $runs rounds of $seconds s a run." \
	"A is CPU $server_cpu, B is CPU ${client_cpus%%,*}. disk is $disk_is."
page pagecache.png 1100,560 1,2 "4 KiB at random in memory, all lines" "key inside top left" \
	"xtics rotate by -40" "yrange [0:*]" "ylabel 'million IOPS'"
shown="tmpfs|tmpfshuge|disk|map|copy|loan|directcopy|direct"
for rw in read write; do
	panel $rw
	bars "one CPU" "$shown $rw all * 1" system,depth iops:low:high 1e6
	bars "two CPUs" "$shown $rw all * 2" system,depth iops:low:high 1e6
done
bench_end
