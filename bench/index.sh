#!/bin/bash
# index.sh - the cost of many small objects against few large ones, over the same set of pages, cold
# and warm.
#
# Usage: bench/index.sh [--quick | --full]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.35, of one run)
#
# A set of 4 GiB is cut into objects of 4 MiB, of 32 KiB and of 4 KiB: 1 K, 128 K and 1 M objects.
# With --full also 256 K and 512 K. The set is 64 MiB with --quick, and smaller on a machine with
# little memory. Blocks of 4 KiB at random, by copy, with 16 in flight:
#   cold       reads of the first quarter of the set while the cache is empty: all but repeated
#              blocks are loaded, and each of a new object makes an entry; memd has no delay
#   coldwrite  writes of the second quarter, the same
#   slow       reads of the second half, the same, while memd takes 1 ms
#   read       hits, after the whole set was written once in sequence
#   write      the same
#
# Everything but the client is in one reactor. The cache holds the whole set and flushes nothing by
# itself. memd holds nothing: data that was never written reads as zeroes.
#
# Each round runs the cuts one after the other, each on a stack of its own; every second round runs
# them in reverse. Ratios are to the largest objects in the same round, and figures are medians of
# the rounds.
#
# In $BUILD/bench/index: raw/OBJECTS-KIND-run.ROUND.json. From these files alone are made runs.tsv,
# results.tsv (medians), report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
has_full=1
bench_options "$@"
seconds=${BENCH_SECONDS:-0.35}
set_mib=4096
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.05}
	set_mib=64
fi
object_kibs=(4096 32 4)
[ -z "$full" ] || object_kibs=(4096 32 16 8 4)

# ---- one run ----

# The cache has room for the set, for an eighth of it as slots of objects with one page, and for a
# quarter more.
choose_set()
{
	fit_set 170 1024
	cache_mib=$((set_mib * 11 / 8 + 64))
}

stack_of()	# OBJECTS
{
	store_up $((cache_mib + $1 * 600 / 1048576 + cache_mib / 50 + 384)) memd "memory = 64M" "$(
		printf '%s\n' "memory = ${cache_mib}M" "objects = $(($1 + $1 / 16 + 64))" \
			"$no_flush")"
}

# xbench_on OBJECT_KIB FILE ARGUMENT...
xbench_on()
{
	local kib=$1 file=$2
	shift 2
	measure "$file" --target=cached --objects=$((set_mib * 1024 / kib)) \
		--object_size="${kib}k" --iodepth=16 "$@"
}

run_cut()	# OBJECT_KIB ROUND
{
	local nr=$((set_mib * 1024 / $1)) rw
	stack_of $nr
	xbench_on "$1" "$raw/$nr-cold-run.$2.json" --rw=randread --size=$((set_mib / 4))M \
		--number_ios=$((set_mib * 24)) --randseed="$2"
	xbench_on "$1" "$raw/$nr-coldwrite-run.$2.json" --rw=randwrite --size=$((set_mib / 4))M \
		--offset=$((set_mib / 4))M --number_ios=$((set_mib * 24)) --randseed="$2"
	quietly xseg peer set memd latency=1ms
	xbench_on "$1" "$raw/$nr-slow-run.$2.json" --rw=randread --offset=$((set_mib / 2))M \
		--size=$((set_mib / 2))M --runtime="$run_time" --ramp_time=50ms --randseed="$2"
	quietly xseg peer set memd latency=0
	xbench_on "$1" "$tmp/fill.json" --rw=write --bs=1M
	stat_to "$tmp/before.json"
	for rw in read write; do
		xbench_on "$1" "$raw/$nr-$rw-run.$2.json" --rw=rand$rw --runtime="$run_time" \
			--ramp_time=50ms \
			--randseed="$2"
	done
	stat_to "$tmp/after.json"
	jq -s -r 'map(.caches[0]) | (.[1].misses + .[1].partial - .[0].misses - .[0].partial) as $missed |
		"\($missed) \(.[1].flushed_bytes - .[0].flushed_bytes)"' "$tmp/before.json" "$tmp/after.json" \
		>>"$out/hits.txt" || fail "cached shows no counters"
	quietly xseg down --force
}

# in_turn ROUND WORD...: every second round the other way round, for what comes first on a machine
# may be slower
in_turn()
{
	local round=$1
	shift
	if [ $((round % 2)) = 1 ]; then
		printf '%s\n' "$@"
	else
		printf '%s\n' "$@" | tac
	fi
}

# ---- what came out ----

# One line a run: OBJECTS KIND ROUND IOPS MEAN_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | (if $n[1] == "write" or $n[1] == "coldwrite" then .write else .read end) as $j |
		$n + [$j.iops, $j.lat_ns.mean, .error]'
}

report()
{
	echo "xseg, the cost of many objects, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, 4 KiB at random," \
		"depth 16, medians of $runs rounds of $seconds s a run."
	machine
	awk '{ miss += $1; flushed += $2 } END {
		printf "While hits were measured %d reads were no hits, and %d bytes were flushed.\n", miss, flushed
	}' "$out/hits.txt"
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/index.awk "$out/runs.tsv"
}

choose_time
choose_set
bench_begin index xseg xseg-host xbench
minutes=$(awk -v n="${#object_kibs[@]}" -v r="$runs" -v s="$seconds" -v m="$set_mib" \
	'BEGIN { printf "%d", r * n * (3 * s + m / 400 + 2) / 60 + 1 }')
echo "bench: 5 points on ${#object_kibs[@]} cuts of $set_mib MiB, $runs rounds: about $minutes minutes"
for round in $(seq "$runs"); do
	for kib in $(in_turn "$round" "${object_kibs[@]}"); do
		echo "round $round of $runs: $((set_mib * 1024 / kib)) objects ..."
		run_cut "$kib" "$round"
	done
done
collect >"$tmp/runs"
sort -t $'\t' -k1,1n -k2,2 -k3,3n "$tmp/runs" >"$out/runs.tsv"
bench_end index.gp index.png
