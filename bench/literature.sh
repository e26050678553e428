#!/bin/bash
# literature.sh - repeats the published evaluation of a cache of this kind: bandwidth and latency by
# block size, depth and threads, against the store alone.
#
# Usage: bench/literature.sh [--quick]
# Environment: BENCH_SECONDS (0.1, of one run)
#
# The set is 128 MiB, at random, in blocks of 4, 16 and 64 KiB, with 4, 8 and 16 in flight. Two
# threads each have a port of their own. The stores are memd with the delays of a disk (1 ms, 8000
# IOPS, 400 MB/s), and filed on the disk that holds BUILD:
#   alone   the store without a cache
#   fits    a cache of twice the set, in write-back: all are hits
#   twice   a cache of half the set
#
# `fits` over memd with 4 in flight also runs with 1, 3 and 4 threads. Store and cache are in one
# reactor on the first CPU, the clients on the others, by copy. Each read is a request, as in the
# published evaluation.
#
# The published figures are of 12 cores, 2 threads, 4 in flight, in memory: 4 KiB writes 679 K/s at
# 5.0 us, 64 KiB writes 113 K/s. bench/index.sh repeats the published figures of many objects. Sizes
# go from large to small. A run of small blocks in `twice` leaves dirty data that costs the store a
# write for each block, and the next run would pay for it.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.1 0.02
by_form set_mib 128 16
by_form sizes "64k 16k 4k" "64k 4k"
by_form depths "4 8 16" "4 16"
by_form more_threads "1 3 4" 1
columns="store system rw bs depth threads round = iops bytes mean_ns errors"
vars="sizes depths"
by_form ramp 20ms 5ms

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

# points STORE-SYSTEM: RW BS DEPTH THREADS
points()
{
	local rw bs
	for rw in read write; do
		for bs in $sizes; do
			each "echo $rw $bs" "$depths" 2
			[ "$1" != memd-fits ] || each "echo $rw $bs 4" "$more_threads"
		done
	done
}

run_system()	# STORE SYSTEM
{
	local rw bs depth nr to=(--target=cached --objects=$((set_mib / 4)) --size=${set_mib}M)
	[ "$2" != alone ] || to[0]=--target=$1
	store_up $((set_mib * 5 + 256)) "$1" "$(store_options "$1")" "$(cache_options "$2")"
	fill "${to[@]}"
	[ "$1" = filed ] || quietly xseg peer set memd latency=1ms iops=8000 bandwidth=400M/s
	while read -r rw bs depth nr; do
		at_random "$1-$2-$rw-$bs-$depth-$nr" "$rw" "$depth" "${to[@]}" --bs="$bs" --numjobs="$nr"
	done < <(points "$1-$2")
	quietly xseg down --force
	rm -rf "$tmp/store"
}

bench_begin
while next_round; do
	each run_system "memd filed" "alone fits twice"
done
bench_report "xseg, the published evaluation repeated, DATE: a set of $set_mib MiB, at random, by copy; medians of $runs rounds of $seconds s a run." \
	"memd: 1 ms, 8000 IOPS, 400 MB/s. fits: the cache is twice the set; twice: the set is twice the cache."
page literature.png 1100,760 2,2 "two threads, 4 in flight each" "logscale xy" "xrange [3.2:80]" \
	"xtics (4, 16, 64)" "xlabel 'block size, KiB'" "ylabel 'MB/s'"
for store in memd filed; do
	for rw in read write; do
		panel "$rw over $store"
		curve "store alone" "$store alone $rw * 4 2" bs bytes 1e6
		curve "set fits into the cache" "$store fits $rw * 4 2" bs bytes 1e6
		curve "set twice the cache" "$store twice $rw * 4 2" bs bytes 1e6
	done
done
bench_end
