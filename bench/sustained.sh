#!/bin/bash
# sustained.sh - endless writes: a cache over a store against the store alone, in every part of the
# run.
#
# Usage: bench/sustained.sh [--quick | --full]
# Environment: BUILD (build), BENCH_RUNS (5)
#
# A set of 32 MiB, twice the cache, is written three times over (--full: 128 MiB), in blocks of 4
# KiB with 16 in flight. Stores are memd with a latency of 1 ms and 8000 IOPS, and filed on the disk
# that holds BUILD. Patterns:
#   random    at random over the set, one client
#   streams   four clients, each in sequence through its quarter: all neighbours can be merged
#
# Systems:
#   alone     xbench -> store
#   back      xbench -> cached -> store, write-back, objects as many as it likes
#   half      the same, with objects for half of the set
#   through   the same as back, with write-through
#
# Store and cache are in one reactor on the first CPU, the clients on the others. The set is in the
# store before, the cache is empty.
# Store and cache are in one reactor on the first CPU, the clients on the others. At the start the
# set is in the store, and the cache is empty.
#
# A run is a number of bytes, and is cut into 20 slices of the same number of bytes. Each round runs
# every system once on a stack of its own. Ratios are to `alone` of the same round, and figures are
# medians of the rounds. Data that is dirty at the end of the run is flushed afterwards, and counts
# in a column of its own.
#
# In $BUILD/bench/sustained: raw/STORE-PATTERN-SYSTEM-WHAT.ROUND.json, as in series.sh. From these
# files alone are made runs.tsv, slices.tsv, results.tsv (medians), report.txt and the plots.
set -u

. "$(dirname "$0")/lib.sh"
. bench/series.sh
has_full=1
bench_options "$@"
cache_mib=16
passes=3
sample=10ms
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	cache_mib=4
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
		[ "$2" != cached ] ||
			{ quietly xseg cache flush cached; quietly xseg cache drop cached; }
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
	local target=cached
	[ "$3" != alone ] || target=$1
	store_up $((2 * set_mib + 2 * cache_mib + 128)) "$1" "$(options_of "$1")" \
		"$(options_of "$3")"
	fill "$1" "$target"
	[ "$3" = alone ] || note_depth
	# shellcheck disable=SC2046
	series_run "$1-$2-$3" "$4" $(to $target) -- $(pattern_of "$2") --status-interval=$sample
	quietly xseg down
}

round()	# STORE ROUND
{
	local kind
	for kind in "${kinds[@]}"; do
		run_one "$1" "${kind%-*}" "${kind#*-}" "$2"
	done
}

# ---- what came out ----

report()
{
	echo "xseg, sustained writes, $(date '+%Y-%m-%d %H:%M'): a set of $set_mib MiB, a cache of $cache_mib MiB," \
		"$passes passes, medians of $runs rounds."
	machine
	echo "memd: 1 ms, 8000 IOPS. filed: $direct. The flusher may have $((requests * 3 / 4)) writes at the store, three" \
		"quarters of cached's $requests requests; the load has 16."
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/series.awk \
		-f bench/sustained.awk \
		"$out/runs.tsv" "$out/slices.tsv"
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
grep -q 'has no O_DIRECT' "$out"/log/xseg-*.log &&
	direct="through the page cache, for there is no O_DIRECT here"
series_tables runs.tsv
bench_end sustained.gp memd.png filed.png
