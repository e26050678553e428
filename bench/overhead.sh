#!/bin/bash
# overhead.sh - what a cache costs that hits nothing, against the store alone.
#
# Usage: bench/overhead.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (1, of one run)
#
# 4 KiB at random over a set 128 times the cache (32 times with --quick), over memd with a latency
# of 1 ms, with 16 and with 1 in flight: reads, which are all loaded, and writes, which all go to
# the store, for the cache is write-through. Systems: the store alone, and the cache over it in the
# same reactor. Each round runs both one after the other, each on a stack of its own; ratios and
# differences are to the store alone of the same round, and figures are medians of the rounds.
#
# In $BUILD/bench/overhead: raw/SYSTEM-RW-DEPTH-run.ROUND.json and raw/cached-stat.ROUND.json; from
# these alone runs.tsv, results.tsv (medians), report.txt and the plot are made.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-1}
cache_mib=8
times=128
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.3}
	cache_mib=4
	times=32
fi
set_mib=$((times * cache_mib))
rws=(read write)
depths=(1 16)
systems=(alone cached)

# ---- one run ----

run_system()	# SYSTEM ROUND
{
	local target=memd options='' rw depth
	if [ "$1" = cached ]; then
		target=cached
		options=$(printf 'memory = %dM\npolicy = write-through\n' $cache_mib)
	fi
	store_up $((set_mib + set_mib / 16 + 256)) memd "memory = $((set_mib + 16))M" "$options"
	measure "$tmp/fill.json" --target=$target --objects=$((set_mib / 4)) --rw=write \
		--bs=1M --iodepth=4
	# the store serves nobody but the cache; what that has kept of it goes
	[ "$1" = alone ] || quietly xseg cache drop cached
	quietly xseg peer set memd latency=1ms
	for depth in "${depths[@]}"; do
		for rw in "${rws[@]}"; do
			measure "$raw/$1-$rw-$depth-run.$2.json" --target=$target \
				--objects=$((set_mib / 4)) \
				--rw="rand$rw" --iodepth="$depth" --runtime="$run_time" \
				--ramp_time=100ms --randseed="$2"
		done
	done
	if [ "$1" = cached ]; then
		stat_to "$raw/cached-stat.$2.json"
	fi
	quietly xseg down --force
}

# ---- what came out ----

# One line a run: SYSTEM RW DEPTH ROUND IOPS MEAN_NS P99_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | .[$n[1]] as $j |
		$n + [$j.iops, $j.lat_ns.mean, $j.lat_ns.percentile["99.000000"], .error]'
}

report()
{
	echo "xseg, the cost of a cache without hits, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, a cache of" \
		"$cache_mib MiB, over memd with 1 ms; medians of $runs rounds of $seconds s a run."
	machine
	jq -s -r 'map(.caches[0]) | (map(.reads) | add) as $reads | (map(.hits) | add) as $hits |
		"Of \($reads) reads \($hits) were hits."' "$raw"/cached-stat.*.json
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/overhead.awk "$out/runs.tsv"
}

choose_time
bench_begin overhead xseg xseg-host xbench
echo "bench: 4 points on 2 systems, $runs rounds of $run_time each: about" \
	"$(awk -v r="$runs" -v s="$seconds" 'BEGIN { printf "%d", r * (8 * (s + 0.4) + 6) / 60 + 1 }') minutes"
for round in $(seq "$runs"); do
	for system in "${systems[@]}"; do
		echo "round $round of $runs: $system ..."
		run_system "$system" "$round"
	done
done
collect >"$out/runs.tsv"
bench_end overhead.gp overhead.png
