#!/bin/bash
# index.sh - the cost of many small objects against few large ones, over the same set of pages, cold
# and warm.
#
# Usage: bench/index.sh [--quick | --full]
# Environment: BENCH_SECONDS (0.35, of one run)
#
# A set of 4 GiB is cut into objects of 4 MiB, of 32 KiB and of 4 KiB: 1 K, 128 K and 1 M objects.
# With --full also 256 K and 512 K. The set is 64 MiB with --quick, and smaller on a machine with
# little memory. Blocks of 4 KiB at random, by copy, with 16 in flight, and each read a request:
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
# Each cut has a stack of its own; every second round runs them in reverse. Ratios are to the largest
# objects.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
by_form seconds 0.35 0.05
by_form set_mib 4096 64
by_form object_kibs "4096 32 4" "4096 32 4" "4096 32 16 8 4"
columns="objects kind round = iops mean_ns errors"

missed()	# FILE
{
	stat_to "$1"
	jq -r '.caches[0] | "\(.misses + .partial) \(.flushed_bytes)"' "$1" >>"$tmp/missed" ||
		fail "cached shows no counters"
}

run_cut()	# OBJECT_KIB
{
	local nr=$((set_mib * 1024 / $1)) quarter=$((set_mib / 4)) rw
	local to=(--target=cached --objects=$nr --object_size="${1}k")
	local cold=("${to[@]}" --iodepth=16 --size=${quarter}M --number_ios=$((set_mib * 24))
		--randseed="$round")
	store_up $((cache_mib + nr * 600 / 1048576 + cache_mib / 50 + 384)) memd "memory = 64M" \
		"$(printf '%s\n' "memory = ${cache_mib}M" "objects = $((nr + nr / 16 + 64))" "$no_flush")"
	measure "$raw/$nr-cold-run.$round.json" "${cold[@]}" --rw=randread
	measure "$raw/$nr-coldwrite-run.$round.json" "${cold[@]}" --rw=randwrite --offset=${quarter}M
	quietly xseg peer set memd latency=1ms
	at_random $nr-slow read 16 "${to[@]}" --offset=$((2 * quarter))M --size=$((2 * quarter))M
	quietly xseg peer set memd latency=0
	measure "$tmp/fill.json" --rw=write --bs=1M --iodepth=16 "${to[@]}"
	missed "$tmp/stat.json"
	for rw in read write; do
		at_random $nr-$rw $rw 16 "${to[@]}"
	done
	missed "$tmp/stat.json"
	quietly xseg down --force
}

collect()
{
	table_of "$columns" | sort -t $'\t' -k1,1n -s
}

# The cache has room for the set, for an eighth of it as slots of objects with one page, and for a
# quarter more.
fit_set 170 1024
cache_mib=$((set_mib * 11 / 8 + 64))
bench_begin
while next_round; do
	# every second one the other way round, for what comes first on a machine may be slower
	turn=cat
	[ $((round % 2)) = 1 ] || turn=tac
	each run_cut "$(tr ' ' '\n' <<<"$object_kibs" | $turn)"
done
bench_report "xseg, the cost of many objects, DATE: a set of $set_mib MiB, 4 KiB at random, depth 16, medians of $runs rounds of $seconds s a run." \
	"$(awk '{ s = NR % 2 ? -1 : 1; miss += s * $1; flushed += s * $2 } END {
		printf "While hits were measured %d reads were no hits, and %d bytes were flushed.", miss, flushed
	}' "$tmp/missed")"
page index.png 700,480 1,1 "the same pages in more and smaller objects, 4 KiB, depth 16" "logscale x 2" \
	"yrange [0:*]" "xlabel 'objects'" "ylabel 'rate, to that with the fewest objects'"
curve "hits, reads" read objects ratio:low:high
curve "hits, writes" write objects ratio:low:high
curve "cold cache, reads" cold objects ratio:low:high
curve "cold cache, writes" coldwrite objects ratio:low:high
curve "cold cache over 1 ms, reads" slow objects ratio:low:high
bench_end
