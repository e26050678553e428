#!/bin/bash
# sustained.sh - endless writes: a cache over a store against the store alone, in every part of the
# run.
#
# Usage: bench/sustained.sh [--quick | --full]
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
# Store and cache are in one reactor on the first CPU, the clients on the others. At the start the
# set is in the store, and the cache is empty.
#
# Runs and their slices are those of bench/series.sh.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
. bench/series.sh
by_form cache_mib 16 4 64
by_form passes 3 1
by_form sample 10ms 2ms
columns=$series_columns
set_mib=$((2 * cache_mib))
nr_objects=32

options_of()	# STORE|SYSTEM
{
	case $1 in
	memd)    echo "memory = $((set_mib + 16))M" ;;
	filed)   echo "dir = $tmp/store" ;;
	alone)   ;;
	back)    echo "memory = ${cache_mib}M" ;;
	half)    printf 'memory = %dM\nobjects = %d\n' "$cache_mib" $((nr_objects / 2)) ;;
	through) printf 'memory = %dM\npolicy = write-through\n' "$cache_mib" ;;
	esac
}

# What the store has is made without its delays, through the cache where there is one, which has
# forgotten it then; a store in files has it from the first run on.
fill_store()	# STORE SYSTEM TO...
{
	if [ "$1" != filed ] || [ ! -e "$tmp/filled" ]; then
		fill "${@:3}"
		[ "$2" = alone ] || forget
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

run_one()	# STORE PATTERN-SYSTEM
{
	local side=${2#*-} to=(--target=cached --objects=$nr_objects
		--object_size=$((set_mib * 1024 / nr_objects))k)
	[ "$side" != alone ] || to[0]=--target=$1
	store_up $((2 * set_mib + 2 * cache_mib + 128)) "$1" "$(options_of "$1")" \
		"$(options_of "$side")"
	fill_store "$1" "$side" "${to[@]}"
	[ "$side" = alone ] || note_depth
	series_run "$1-$2" $set_mib "$passes" "$sample" "${to[@]}"
	quietly xseg down
}

collect()
{
	series_each series_slices >"$out/slices.tsv"
	series_each series_row
	more_files=("columns=$slice_columns" "$out/slices.tsv")
}

direct_words()
{
	if grep -q 'has no O_DIRECT' "$out"/log/xseg-*.log; then
		echo "through the page cache, for there is no O_DIRECT here"
	else
		echo "past the page cache (O_DIRECT)"
	fi
}

bench_begin
while next_round; do
	each run_one "memd filed" "random-alone random-back random-half random-through streams-alone streams-back"
done
bench_report "xseg, sustained writes, DATE: a set of $set_mib MiB, a cache of $cache_mib MiB, $passes passes, medians of $runs rounds." \
	"memd: 1 ms, 8000 IOPS. filed: $(direct_words). The flusher may have $((requests * 3 / 4)) writes at the store, three quarters of cached's $requests requests; the load has 16."
for store in memd filed; do
	page $store.png 1100,480 1,2 "4 KiB writes over $store, set twice the cache, depth 16" \
		"logscale y" "xrange [0:100]" "xlabel 'percent of the bytes of the run'" "ylabel 'MB/s'"
	panel "at random"
	slice_curves random $store
	panel "four streams in sequence"
	slice_curves streams $store
done
bench_end
