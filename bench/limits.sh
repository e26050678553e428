#!/bin/bash
# limits.sh - the limits of a machine: bare programs that do the work of a hit, one step after the
# other.
#
# Usage: bench/limits.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.15, of one run)
#
# bench-limit (bench/limits/limit.c) runs over 4 GiB in huge pages: less on a machine with little
# memory, 64 MiB with --quick. Blocks are 4 KiB at random, and the index has as many entries as
# there are blocks. A server is on the first CPU and one client on another:
#   chase     no server: one line after the other, each at the address that the last one gave; the
#             latency of memory
#   lines     no server: first lines of pages, each at random, as many at a time as a core can have
#             in flight; linesany: any line of each page, because first lines all compete for the
#             same set of the first cache
#   memcpy    no server: blocks are copied; the bandwidth of memory, also in blocks of 64 KiB
#   echo      a word there and back
#   lookup    the same, and its block is found in the index
#   loan      the same, and the client reads the first line of the block where it is, or gives a
#             page in its place
#   loanall   the same with all lines
#   copy      the block is copied into or from a buffer; the client touches the first line of each
#             of its pages
#   copyall   the same with all lines
#   loansmall copysmall   without huge pages, over a quarter of the set: mapping takes seconds
#
# Each round measures every point once; figures are medians of the rounds.
#
# In $BUILD/bench/limits: raw/STEP-RW-BS-DEPTH-run.ROUND.json. From these files alone are made
# runs.tsv, results.tsv (medians), report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.15}
set_mib=4096
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	set_mib=64
fi

# STEP RW BS DEPTHS
points()
{
	cat <<-END
		chase read 4k 16
		lines read 4k 16
		linesany read 4k 16
		memcpy read 4k 16
		memcpy write 4k 16
		memcpy read 64k 16
		memcpy write 64k 16
		echo read 4k 1 16 64
		lookup read 4k 1 16 64
		loan read 4k 1 16 64
		loan write 4k 1 16 64
		loanall read 4k 1 16
		loanall write 4k 1 16
		copy read 4k 1 16 64
		copy write 4k 1 16 64
		copy read 64k 16
		copy write 64k 16
		copyall read 4k 1 16
		copyall write 4k 1 16
	END
}

small_points()
{
	cat <<-END
		loansmall read 4k 16
		loansmall write 4k 16
		copysmall read 4k 16
		copysmall write 4k 16
	END
}

# ---- one run ----

# run_point STEP RW BS DEPTH ROUND: with an index of blocks
run_point()
{
	local args=(--mode="$1") size=$set_mib
	case $1 in
	*small) args=(--mode="${1%small}" --huge=no) size=$((set_mib / 4)) ;;
	*all)   args=(--mode="${1%all}" --touch=all) ;;
	*any)   args=(--mode="${1%any}" --scatter=yes) ;;
	esac
	bench-limit "${args[@]}" --rw="rand$2" --bs="$3" --object_size="$3" --iodepth="$4" \
		--size="${size}M" \
		--runtime="$run_time" --ramp_time=20ms --randseed="$5" --set="$set_file" \
		--cpus="$server_cpu,$client_cpus" \
		--output-format=json >"$raw/$1-$2-$3-$4-run.$5.json" 2>>"$log" ||
		fail "bench-limit ${args[*]} failed"
}

# round POINTS ROUND: all that the function says
round()
{
	local step rw bs depths depth
	while read -r step rw bs depths; do
		for depth in $depths; do
			run_point "$step" "$rw" "$bs" "$depth" "$2"
		done
	done < <("$1")
}

# The first who uses the file makes its pages, which takes longer than a run.
rounds()	# POINTS
{
	local i
	rm -f "$set_file"
	for i in $(seq "$runs"); do
		echo "round $i of $runs: $1 ..."
		round "$1" "$i"
	done
}

# ---- what came out ----

# One line a run: STEP RW BS DEPTH ROUND IOPS MEAN_NS P50_NS P99_NS HUGE ERRORS
collect()
{
	raw_rows '.huge_pages as $huge | .jobs[0] | .[$n[1]] as $j |
		$n + [$j.iops, $j.lat_ns.mean, $j.lat_ns.percentile["50.000000"], $j.lat_ns.percentile["99.000000"],
			$huge, .error]'
}

report()
{
	echo "xseg, the bare limits of this machine, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random over $set_mib MiB," \
		"medians of $runs rounds of $seconds s a run."
	machine
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/limits.awk "$out/runs.tsv"
}

choose_time
bench_begin limits bench-limit
fit_set 113 512
set_file=/dev/shm/$XSEG_SEGMENT.set
also_at_the_end rm -f "$set_file"
rounds points
rounds small_points
collect >"$out/runs.tsv"
bench_end limits.gp limits.png
