#!/bin/bash
# ratio.sh - the hits of the cache, against an exact LRU of the same size with the same reads.
#
# Usage: bench/ratio.sh [--quick | --full]
#
# The loads are all reads of a set eight times the cache, of a volume over memd without delays. Each
# read is a request, because cached counts its hits by request:
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
# Raw files are LOAD-WHAT.ROUND.json, where WHAT is run, beside (the scan), before or after (`xseg
# stat`) or lru.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
by_form cache_mib 64 4
by_form nr_ios 200000 10000 400000
columns="load round = reads hits lru_reads lru_hits ns beside_ns errors"
set_mib=$((8 * cache_mib))
rate=80000
loads="uniform zipf scan"

# load FILE TRACE ARGUMENT...: reads
load()
{
	measure "$1" --volume=bench --size=${set_mib}M --write_iolog="$2" "${@:3}"
}

# half LOAD NR: the first or the second one
half()
{
	local args=(--rw=randread --iodepth=16 --number_ios="$nr_ios" --randseed=$((2 * round + $2)))
	local scan=
	[ "$1" = uniform ] || args+=(--random_distribution=zipf:1.0)
	if [ "$1" = scan ]; then
		args+=(--rate_iops=$rate)
		load "$raw/$1-beside.$round.json" "$tmp/beside.$2" --rw=read --bs=64k --iodepth=4 \
			--offset=${set_mib}M --number_ios=$((nr_ios / 16)) --rate_iops=$((rate / 16)) &
		scan=$!
	fi
	load "$raw/$1-run.$round.json" "$tmp/trace.$2" "${args[@]}"
	[ -z "$scan" ] || wait "$scan" || fail "the scan beside it failed"
}

run_one()	# LOAD
{
	local trace traces=("$tmp/trace")
	store_up $((3 * set_mib + 192)) memd "memory = $((2 * set_mib + 16))M" \
		"memory = ${cache_mib}M" "bench=$((2 * set_mib))M"
	fill --volume=bench
	forget
	half "$1" 1
	stat_to "$raw/$1-before.$round.json"
	half "$1" 2
	stat_to "$raw/$1-after.$round.json"
	quietly xseg down --force
	# both halves are one trace for each process
	[ "$1" != scan ] || traces+=("$tmp/beside")
	for trace in "${traces[@]}"; do
		cat "$trace.1" "$trace.2" >"$trace"
	done
	bench-lru --cache="${cache_mib}M" --warmup=50 "${traces[@]}" \
		>"$raw/$1-lru.$round.json" 2>>"$log" || fail "bench-lru failed"
}

# One line a run; without a scan BESIDE_NS is NS.
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

collect()
{
	each_run run_line "$loads"
}

bench_begin xseg xseg-host xbench bench-lru
while next_round; do
	each run_one "$loads"
done
bench_report "xseg, hit ratios, DATE: a set of $set_mib MiB, a cache of $cache_mib MiB, $nr_ios reads of 4 KiB after as many that do not count, medians of $runs rounds."
page ratio.png 700,480 1,1 "4 KiB reads, set eight times the cache" "yrange [0:100]" \
	"ylabel 'hits, percent of the reads'"
bars cached "*" name cached:low:high
bars "exact LRU" "*" name lru:lru:lru
bench_end
