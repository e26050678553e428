#!/bin/bash
# ratio.sh - the hits of the cache, against an exact LRU of the same size with the same reads.
#
# Usage: bench/ratio.sh [--quick | --full]
# Environment: BUILD (build), BENCH_RUNS (5)
#
# The loads are all reads of a set eight times the cache, of a volume over memd without delays:
#   uniform   4 KiB at random, 16 in flight
#   zipf      the same with the popularity zipf:1.0
#   scan      the same as zipf at a fixed rate, beside a second process which reads as many bytes a
#             second in sequence, 64 KiB at a time, of another part of the volume, eight times the
#             cache too
#
# A round runs each load on a stack of its own in two halves of 200,000 reads each (--full:
# 400,000). Both halves write the trace of their reads (--write_iolog), and bench-lru replays it.
#
# Only the second half counts, for cached by the difference of its counters. A hit is a request
# whose blocks were all there.
#
# Of `scan` only the reads of zipf are compared. cached counts those of both processes, and its
# read-ahead makes hits of a scan. So here a miss is a block that the store had to read and the scan
# did not ask for. Blocks that are read ahead in vain, or twice, count as misses. The traces are
# merged evenly, because both have fixed rates.
#
# In $BUILD/bench/ratio: raw/LOAD-WHAT.ROUND.json, where WHAT is run, beside (the scan), before or
# after (`xseg stat`) or lru. From these files alone are made runs.tsv, results.tsv (medians),
# report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
has_full=1
bench_options "$@"
cache_mib=64
nr_ios=200000
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	cache_mib=4
	nr_ios=10000
elif [ -n "$full" ]; then
	nr_ios=400000
fi
set_mib=$((8 * cache_mib))
rate=80000
loads=(uniform zipf scan)

# ---- one run ----

# load FILE TRACE ARGUMENT...: reads
load()
{
	local file=$1 trace=$2
	shift 2
	measure "$file" --volume=bench --size=${set_mib}M --write_iolog="$trace" "$@"
}

# half LOAD ROUND NR: the first or the second one
half()
{
	local args=(--rw=randread --iodepth=16 --number_ios=$nr_ios --randseed=$((2 * $2 + $3)))
	local scan=
	local run=$raw/$1-run.$2.json beside=$raw/$1-beside.$2.json
	[ "$1" = uniform ] || args+=(--random_distribution=zipf:1.0)
	if [ "$1" = scan ]; then
		args+=(--rate_iops=$rate)
		load "$beside" "$tmp/beside.$3" --rw=read --bs=64k --iodepth=4 \
			--offset=${set_mib}M \
			--number_ios=$((nr_ios / 16)) --rate_iops=$((rate / 16)) &
		scan=$!
	fi
	load "$run" "$tmp/trace.$3" "${args[@]}"
	[ -z "$scan" ] || wait "$scan" || fail "the scan beside it failed"
}

# replay LOAD ROUND: both halves are one trace for each process
replay()
{
	local traces=("$tmp/trace")
	cat "$tmp/trace.1" "$tmp/trace.2" >"$tmp/trace"
	if [ "$1" = scan ]; then
		cat "$tmp/beside.1" "$tmp/beside.2" >"$tmp/beside"
		traces+=("$tmp/beside")
	fi
	bench-lru --cache=${cache_mib}M \
		--warmup=50 "${traces[@]}" >"$raw/$1-lru.$2.json" 2>>"$log" ||
		fail "bench-lru failed"
}

run_one()	# LOAD ROUND
{
	store_up $((3 * set_mib + 192)) memd "memory = $((2 * set_mib + 16))M" \
		"memory = ${cache_mib}M" volumed
	quietly xseg volume create bench --size $((2 * set_mib))M
	measure "$tmp/fill.json" --volume=bench --rw=write --bs=1M --iodepth=4
	quietly xseg cache flush cached
	quietly xseg cache drop cached
	half "$1" "$2" 1
	stat_to "$raw/$1-before.$2.json"
	half "$1" "$2" 2
	stat_to "$raw/$1-after.$2.json"
	quietly xseg down --force
	replay "$1" "$2"
}

# ---- what came out ----

# One line a run: LOAD ROUND READS HITS LRU_READS LRU_HITS NS BESIDE_NS ERRORS. Without a scan
# BESIDE_NS is NS.
run_line()	# LOAD ROUND
{
	local beside=$raw/$1-beside.$2.json
	[ "$1" = scan ] || beside=$raw/$1-run.$2.json
	jq -s -r --arg load "$1" --arg round "$2" '
		def memd: .peers[] | select(.name == "memd").read_bytes;
		. as [$before, $after, $lru, $run, $beside] | $run.jobs[0] as $job | $beside.jobs[0] as $other |
		(if $load == "scan" then
			$job.read.total_ios |
			[., . - (($after | memd) - ($before | memd) - $other.read.io_bytes) / 4096]
		else
			[$after, $before] | map(.caches[0]) | [.[0].reads - .[1].reads, .[0].hits - .[1].hits]
		end) as $cached |
		[$load, $round] + $cached + [$lru.traces[0].reads, $lru.traces[0].hits, $job.job_runtime_ns,
		$other.job_runtime_ns, $job.error + $other.error] | @tsv' \
		"$raw/$1-before.$2.json" "$raw/$1-after.$2.json" "$raw/$1-lru.$2.json" \
		"$raw/$1-run.$2.json" "$beside" ||
		fail "the JSON of $1, round $2, is damaged"
}

report()
{
	echo "xseg, hit ratios, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, a cache of $cache_mib MiB," \
		"$nr_ios reads of 4 KiB after as many that do not count, medians of $runs rounds."
	machine
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/ratio.awk "$out/runs.tsv"
}

bench_begin ratio xseg xseg-host xbench bench-lru
echo "bench: ${#loads[@]} loads, $runs rounds: about $((runs * 15 / 60 + 1)) minutes"
for round in $(seq "$runs"); do
	for load in "${loads[@]}"; do
		echo "round $round of $runs: $load ..."
		run_one "$load" "$round"
	done
done
for load in "${loads[@]}"; do
	for round in $(seq "$runs"); do
		run_line "$load" "$round"
	done
done >"$out/runs.tsv"
bench_end ratio.gp ratio.png
