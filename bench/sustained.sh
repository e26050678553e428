#!/bin/bash
# sustained.sh - writes that do not end: a cache over a store against the store alone, in every part
# of the run.
#
# Usage: bench/sustained.sh [--quick | --full]
# Environment: BUILD (build), BENCH_RUNS (5)
#
# A set of 64 MiB, twice the cache, is written three times over (--full: 128 MiB), in blocks of 4
# KiB with 16 in flight. Stores are memd with a latency of 1 ms and 8000 IOPS, and filed on the disk
# that holds BUILD. Patterns:
#   random    at random over the set, one client
#   streams   four clients, each in sequence through its quarter: all neighbours can be merged
# Systems:
#   alone     xbench -> store
#   back      xbench -> cached -> store, write-back, objects as many as it likes
#   half      the same, with objects for half of the set
#   through   the same as back, with write-through
# Store and cache are in one reactor on the first CPU, the clients on the others. The set is in the
# store before, the cache is empty.
#
# A run is a number of bytes, not a time, and is cut into 20 slices of the same number of bytes;
# when a slice was over is interpolated between samples of xbench. Each round runs every system once
# on a stack of its own, ratios are to `alone` of the same round, and figures are medians of the
# rounds. What is dirty at the end of the run is flushed afterwards, and counts in the column that
# says so.
#
# In $BUILD/bench/sustained: raw/STORE-PATTERN-SYSTEM-WHAT.ROUND.json, where WHAT is run, flush,
# before or after (`xseg stat`); from these alone runs.tsv, slices.tsv, results.tsv (medians),
# report.txt and the plots are made.
set -u

. "$(dirname "$0")/lib.sh"
has_full=1
bench_options "$@"
cache_mib=32
passes=3
sample=10ms
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	cache_mib=8
	passes=1
	sample=2ms
elif [ -n "$full" ]; then
	cache_mib=64
fi
set_mib=$((2 * cache_mib))
nr_objects=32
nr_ios=$((passes * set_mib * 256))
kinds=(random-alone random-back random-half random-through streams-alone streams-back)

# ---- one run ----

options_of()	# STORE|SYSTEM
{
	case $1 in
	memd)    echo "memory = $((set_mib + 16))M" ;;
	filed)   echo "dir = $tmp/store" ;;
	alone)   ;;
	back)    echo "memory = ${cache_mib}M" ;;
	half)    printf 'memory = %dM\nobjects = %d\n' $cache_mib $((nr_objects / 2)) ;;
	through) printf 'memory = %dM\npolicy = write-through\n' $cache_mib ;;
	esac
}

# to PEER: xbench's options for the set
to()
{
	echo --target="$1" --objects=$nr_objects --object_size=$((set_mib * 1024 / nr_objects))k
}

pattern_of()	# PATTERN
{
	if [ "$1" = random ]; then
		echo --rw=randwrite --iodepth=16 --number_ios=$nr_ios
	else
		echo --rw=write --iodepth=4 --numjobs=4 --size=$((set_mib / 4))M \
			--offset_increment=$((set_mib / 4))M --number_ios=$((nr_ios / 4))
	fi
}

# What the store has is made without its delays, through the cache where there is one, which has
# forgotten it then; a store in files has it from the first run on.
fill()	# STORE TARGET
{
	if [ "$1" != filed ] || [ ! -e "$tmp/filled" ]; then
		# shellcheck disable=SC2046
		measure "$tmp/fill.json" $(to "$2") --rw=write --bs=1M --iodepth=4
		[ "$2" != cached ] || { quietly xseg cache flush cached; quietly xseg cache drop cached; }
	fi
	[ "$1" = memd ] || : >"$tmp/filled"
	[ "$1" = filed ] || quietly xseg peer set memd latency=1ms iops=8000
}

# The options of a cache that runs are the ones that it really has.
note_depth()
{
	xseg --json cache get cached >"$tmp/options.json" 2>>"$log" || fail "xseg cache get failed"
	requests=$(jq -r '.requests' "$tmp/options.json")
}

run_one()	# STORE PATTERN SYSTEM ROUND
{
	local target=cached at=$raw/$1-$2-$3
	[ "$3" != alone ] || target=$1
	store_up $((2 * set_mib + 2 * cache_mib + 128)) "$1" "$(options_of "$1")" "$(options_of "$3")"
	fill "$1" "$target"
	[ "$3" = alone ] || note_depth
	stat_to "$at-before.$4.json"
	# shellcheck disable=SC2046
	measure "$tmp/run.json" $(to $target) $(pattern_of "$2") --bs=4k --randseed="$4" --status-interval=$sample
	stat_to "$at-after.$4.json"
	# shellcheck disable=SC2046
	measure "$at-flush.$4.json" $(to $target) --opmix=flush:100 --number_ios=1
	quietly xseg down
	# Of the samples, what is needed: else they are a hundred times as long.
	jq '.samples |= map({ start_ns, end_ns, write: (.write | { total_ios, io_bytes }) })' "$tmp/run.json" \
		>"$at-run.$4.json" || fail "what xbench says is no JSON"
}

round()	# STORE ROUND
{
	local kind
	for kind in "${kinds[@]}"; do
		run_one "$1" "${kind%-*}" "${kind#*-}" "$2"
	done
}

# ---- what came out ----

# each_run FUNCTION: with STORE PATTERN SYSTEM ROUND and the path of the raw files but for
# `-WHAT.ROUND.json`
each_run()
{
	local file name round
	for file in "$raw"/*-run.*.json; do
		name=$(basename "$file" .json)
		round=${name##*.}
		name=${name%-run.*}
		# shellcheck disable=SC2086
		"$1" ${name//-/ } "$round" "$raw/$name" || fail "$file is damaged"
	done
}

run_line()
{
	jq -n -r --arg key "$1 $2 $3 $4" --arg store "$1" --slurpfile run "$5-run.$4.json" \
		--slurpfile flush "$5-flush.$4.json" --slurpfile before "$5-before.$4.json" \
		--slurpfile after "$5-after.$4.json" '
		def store(file): file[0].peers[] | select(.name == $store);
		($key | split(" ")) + [
			($run[0].jobs | map(.write.io_bytes) | add),
			($run[0].jobs | map(.job_runtime_ns) | max),
			$flush[0].jobs[0].sync.lat_ns.max,
			($after[0].caches[0].dirty_bytes // 0),
			store($after).writes - store($before).writes,
			store($after).write_bytes - store($before).write_bytes,
			($run[0].jobs + $flush[0].jobs | map(.error) | add)
		] | @tsv'
}

# The bytes written by the end of each sample, then of the run.
slice_lines()
{
	jq -r '
		(.jobs | map(.write.io_bytes) | add) as $bytes | (.jobs | map(.job_runtime_ns) | max) as $ns |
		[foreach .samples[] as $s ([0, 0]; [$s.end_ns, .[1] + $s.write.io_bytes])] |
		map(select(.[0] < $ns)) + [[$ns, $bytes]] | .[] | @tsv' "$5-run.$4.json" >"$tmp/points" &&
	awk -v key="$1\t$2\t$3\t$4" -f bench/sustained_slices.awk "$tmp/points"
}

report()
{
	echo "xseg, sustained writes, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, a cache of $cache_mib MiB," \
		"$passes passes, medians of $runs rounds."
	machine
	echo "memd: 1 ms, 8000 IOPS. filed: $direct. The flusher may have $((requests * 3 / 4)) writes at the store, three" \
		"quarters of cached's $requests requests; the load has 16."
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/sustained.awk "$out/runs.tsv" "$out/slices.tsv"
}

bench_begin sustained xseg xseg-host xbench
echo "bench: ${#kinds[@]} loads on 2 stores, $runs rounds of $((nr_ios / 256)) MiB each: about" \
	"$((runs * ${#kinds[@]} * (nr_ios / 8000 + 3) / 60 + 1)) minutes"
for round in $(seq "$runs"); do
	for store in memd filed; do
		echo "round $round of $runs: over $store ..."
		round $store "$round"
	done
done
direct="past the page cache (O_DIRECT)"
grep -q 'has no O_DIRECT' "$out"/log/xseg-*.log && direct="through the page cache, for there is no O_DIRECT here"
each_run run_line >"$out/runs.tsv"
each_run slice_lines >"$out/slices.tsv"
bench_end sustained.gp memd.png filed.png
