#!/bin/bash
# literature.sh - repeats the published evaluation of a cache of this kind: bandwidth and latency by
# block size, depth and threads, against the store alone.
#
# Usage: bench/literature.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.1, of one run)
#
# The set is 128 MiB, at random, in blocks of 4, 16 and 64 KiB, with 4, 8 and 16 in flight. Two
# threads each have a port of their own. The stores are memd with the delays of a disk (1 ms, 8000
# IOPS, 400 MB/s), and filed on the disk that holds BUILD:
#   alone   the store without a cache
#   fits    a cache of twice the set, in write-back: all are hits
#   twice   a cache of half the set
#
# `fits` over memd with 4 in flight also runs with 1, 3 and 4 threads. Store and cache are in one
# reactor on the first CPU, the clients on the others, by copy.
#
# The published figures are of 12 cores, 2 threads, 4 in flight, in memory: 4 KiB writes 679 K/s at
# 5.0 us, 64 KiB writes 113 K/s. bench/index.sh repeats the published figures of many objects. Sizes
# go from large to small. A run of small blocks in `twice` leaves dirty data that costs the store a
# write for each block, and the next run would pay for it.
#
# Each round runs every system on a stack of its own, ratios are to `alone` of the same round,
# figures are medians of the rounds.
#
# In $BUILD/bench/literature: raw/STORE-SYSTEM-RW-BS-DEPTH-THREADS-run.ROUND.json. From these files
# alone are made runs.tsv, results.tsv (medians), report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.1}
set_mib=128
sizes=(64k 16k 4k)
depths=(4 8 16)
more_threads=(1 3 4)
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	set_mib=16
	sizes=(64k 4k)
	depths=(4 16)
	more_threads=(1)
fi
stores=(memd filed)
systems=(alone fits twice)

# ---- one run ----

cache_options()	# SYSTEM
{
	case $1 in
	fits)  printf '%s\n' "memory = $((set_mib * 2))M" "$no_flush" ;;
	twice) echo "memory = $((set_mib / 2))M" ;;
	esac
}

store_options()	# STORE
{
	case $1 in
	memd)  echo "memory = $((set_mib + 16))M" ;;
	filed) echo "dir = $tmp/store" ;;
	esac
}

load()	# FILE TARGET ARGUMENT...
{
	local file=$1 target=$2
	shift 2
	measure "$file" --target="$target" --objects=$((set_mib / 4)) --size=${set_mib}M "$@"
}

point()	# STORE SYSTEM RW BS DEPTH THREADS ROUND
{
	local target=cached
	[ "$2" != alone ] || target=$1
	load "$raw/$1-$2-$3-$4-$5-$6-run.$7.json" "$target" --rw="rand$3" --bs="$4" --iodepth="$5" \
		--numjobs="$6" \
		--runtime="$run_time" --ramp_time=20ms --randseed="$7"
}

run_system()	# STORE SYSTEM ROUND
{
	local rw bs depth nr target=cached
	[ "$2" != alone ] || target=$1
	store_up $((set_mib * 5 + 256)) "$1" "$(store_options "$1")" "$(cache_options "$2")"
	load "$tmp/fill.json" $target --rw=write --bs=1M --iodepth=4
	[ "$1" = filed ] || quietly xseg peer set memd latency=1ms iops=8000 bandwidth=400M/s
	for rw in read write; do
		for bs in "${sizes[@]}"; do
			for depth in "${depths[@]}"; do
				point "$1" "$2" $rw "$bs" "$depth" 2 "$3"
			done
			[ "$1-$2" = memd-fits ] || continue
			for nr in "${more_threads[@]}"; do
				point "$1" "$2" $rw "$bs" 4 "$nr" "$3"
			done
		done
	done
	quietly xseg down --force
	rm -rf "$tmp/store"
}

# ---- what came out ----

# One line a run: STORE SYSTEM RW BS DEPTH THREADS ROUND IOPS BYTES MEAN_NS ERRORS. Rates are sums
# of the clients, means are weighted.
collect()
{
	raw_rows '[.jobs[] | .[$n[2]] + {error}] as $j |
		($j | map(.total_ios) | add) as $ios |
		$n + [($j | map(.iops) | add), ($j | map(.bw_bytes) | add),
			(($j | map(.lat_ns.mean * .total_ios) | add) / ([$ios, 1] | max) | floor), ($j | map(.error) | add)]'
}

ascending()	# SIZE...
{
	printf '%s\n' "$@" | sort -h | paste -sd ' '
}

report()
{
	echo "xseg, the published evaluation repeated, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, at random, by copy; medians of" \
		"$runs rounds of $seconds s a run."
	machine
	echo "memd: 1 ms, 8000 IOPS, 400 MB/s. fits: the cache is twice the set; twice: the set is twice the cache."
	echo
	awk -v results="$out/results.tsv" -v sizes="$(ascending "${sizes[@]}")" \
		-v depths="${depths[*]}" -v more="${more_threads[*]}" \
		-f bench/lib.awk -f bench/literature.awk "$out/runs.tsv"
}

choose_time
bench_begin literature xseg xseg-host xbench
for round in $(seq "$runs"); do
	for store in "${stores[@]}"; do
		echo "round $round of $runs: over $store ..."
		for system in "${systems[@]}"; do
			run_system "$store" "$system" "$round"
		done
	done
done
collect >"$tmp/runs"
sort -t $'\t' -k1,2 -s "$tmp/runs" >"$out/runs.tsv"
bench_end literature.gp literature.png
