#!/bin/bash
# overhead.sh - what a cache costs of whose requests none hit, and of whose all do, against the store
# alone.
#
# Usage: bench/overhead.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (1, of one run over a store of 1 ms; the
#   others take a fifth of that)
#
# 4 KiB at random, with 16 and with 1 in flight, reads and writes:
#   alone   memd with a latency of 1 ms, over a set 128 times the cache (32 times with --quick)
#   none    a cache over that, write-through: reads are all loaded, writes all go to the store
#   fast    memd without any latency, over a set of 256 MiB (32 with --quick): a store that is as
#           fast as memory
#   all     a cache that holds that set, write-back, over memd with 1 ms: all are hits, and nothing
#           is flushed
# Cache and store are in one reactor. Each round runs them one after the other on stacks of their
# own (alone and fast are one); ratios and differences are to the store alone of the same round: of
# `none` and `all` to `alone`, of `all` also to `fast`, where a cache has nothing to gain. Figures
# are medians of the rounds.
#
# In $BUILD/bench/overhead: raw/SYSTEM-RW-DEPTH-run.ROUND.json and raw/SYSTEM-stat.ROUND.json (of
# none and all); from these alone runs.tsv, results.tsv (medians), report.txt and the plot are made.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-1}
cache_mib=8
times=128
hit_mib=256
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.3}
	cache_mib=4
	times=32
	hit_mib=32
fi
set_mib=$((times * cache_mib))
rws=(read write)
depths=(1 16)

# ---- one run ----

fill()	# TARGET MIB
{
	measure "$tmp/fill.json" --target="$1" --objects=$(($2 / 4)) --rw=write --bs=1M --iodepth=4
}

# points SYSTEM TARGET MIB TIME ROUND: all of them
points()
{
	local rw depth
	for depth in "${depths[@]}"; do
		for rw in "${rws[@]}"; do
			measure "$raw/$1-$rw-$depth-run.$5.json" --target="$2" \
				--objects=$(($3 / 4)) --rw="rand$rw" --iodepth="$depth" \
				--runtime="$4" --ramp_time=100ms --randseed="$5"
		done
	done
}

run_alone()	# ROUND
{
	store_up $((set_mib + set_mib / 16 + 256)) memd "memory = $((set_mib + 16))M"
	fill memd $set_mib
	points fast memd $hit_mib "$fast_time" "$1"
	quietly xseg peer set memd latency=1ms
	points alone memd $set_mib "$run_time" "$1"
	quietly xseg down --force
}

run_none()	# ROUND
{
	store_up $((set_mib + set_mib / 16 + 256)) memd "memory = $((set_mib + 16))M" \
		"$(printf 'memory = %dM\npolicy = write-through\n' $cache_mib)"
	fill cached $set_mib
	# the store serves nobody but the cache; what that has kept of it goes
	quietly xseg cache drop cached
	quietly xseg peer set memd latency=1ms
	points none cached $set_mib "$run_time" "$1"
	stat_to "$raw/none-stat.$1.json"
	quietly xseg down --force
}

run_all()	# ROUND
{
	store_up $((hit_mib * 2 + 384)) memd "$(printf 'memory = 16M\nlatency = 1ms\n')" "$(
		printf '%s\n' "memory = $((hit_mib + hit_mib / 4))M" "$no_flush")"
	fill cached $hit_mib
	points all cached $hit_mib "$fast_time" "$1"
	stat_to "$raw/all-stat.$1.json"
	quietly xseg down --force
}

# ---- what came out ----

# One line a run: SYSTEM RW DEPTH ROUND IOPS MEAN_NS P99_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | .[$n[1]] as $j |
		$n + [$j.iops, $j.lat_ns.mean, $j.lat_ns.percentile["99.000000"], .error]'
}

hits_of()	# SYSTEM
{
	jq -s -r 'map(.caches[0]) | (map(.reads) | add) as $reads | (map(.hits) | add) as $hits |
		"\($hits) of \($reads)"' "$raw/$1"-stat.*.json
}

report()
{
	echo "xseg, the cost of a cache without hits, and of one with nothing else, $(date '+%Y-%m-%d %H:%M'):" \
		"medians of $runs rounds; over memd with 1 ms a set of $set_mib MiB, a cache of $cache_mib MiB" \
		"and $run_time a run, else a set of $hit_mib MiB that fits, and $fast_time."
	machine
	echo "Reads that hit: $(hits_of none) where none should, $(hits_of all) where all should."
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/overhead.awk "$out/runs.tsv"
}

choose_time
fast_time=$(awk -v s="$seconds" 'BEGIN { printf "%dms", s * 200 }')
bench_begin overhead xseg xseg-host xbench
echo "bench: 4 points on 4 systems, $runs rounds of $run_time and $fast_time each: about" \
	"$(awk -v r="$runs" -v s="$seconds" 'BEGIN { printf "%d", r * (9.6 * s + 16 * 0.2 + 8) / 60 + 1 }') minutes"
for round in $(seq "$runs"); do
	for stack in alone none all; do
		echo "round $round of $runs: $stack ..."
		"run_$stack" "$round"
	done
done
collect >"$out/runs.tsv"
bench_end overhead.gp overhead.png
