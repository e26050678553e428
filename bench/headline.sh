#!/bin/bash
# headline.sh - the published headline of a cache of this kind, over a store as slow as real ones:
# Ceph's bluestore alone, and a cache over it.
#
# Usage: bench/headline.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.1, of one point)
#
# The store is sosd over the cluster for tests (tests/system/ceph/cluster.sh). It is a monitor and
# an OSD with bluestore on a file of the disk that holds BUILD, on the same CPUs as all else.
# Without Ceph's packages this benchmark is skipped, and says so.
#
# Points, at random over a set of 64 MiB, one client: reads and writes, blocks of 64, 16 and 4 KiB,
# 4, 8 and 16 in flight.
#   alone         xbench -> sosd
#   fitsback      a cache of twice the set in write-back: the peak, because all are hits
#   fitsthrough   the same in write-through
#   twiceback     a cache of half the set; for writes it is full of dirty data from the start
#   twicethrough  the same in write-through
#   memd          fitsback over memd, 4 KiB, depth 16: a hit over a store that takes no CPU
#
# Series, endless 4 KiB writes: a set of 16 MiB, twice the cache, is written twice over. `random`:
# at random over the set, 16 in flight. `streams`: four clients, each in sequence through its
# quarter, 4 in flight.
#   alone, back, through   the store; a cache in write-back, in write-through, empty at first
#
# Store and cache are in one reactor on the first CPU, clients on the others. The kernel places
# Ceph's processes and librados' threads. All systems run side by side, each with objects of its own
# in the pool. They are measured one right after the other, because the disk's time for a sync
# changes from minute to minute. Ratios are to `alone` of the same round, figures are medians of the
# rounds.
#
# In $BUILD/bench/headline: raw/SYSTEM-RW-BS-DEPTH-run.ROUND.json, and raw/sosd-PATTERN-SYSTEM-...
# as in series.sh. From these files alone are made runs.tsv, sustained.tsv, slices.tsv, results.tsv
# (medians of the points), series.tsv (of the slices), report.txt and the plots.
set -u

. "$(dirname "$0")/lib.sh"
. bench/series.sh
bench_options "$@"
seconds=${BENCH_SECONDS:-0.1}
set_mib=64
cache_mib=8
passes=2
sizes=(64k 16k 4k)
depths=(4 8 16)
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	set_mib=16
	cache_mib=4
	passes=1
	sizes=(64k 4k)
	depths=(4 16)
fi
systems=(alone fitsback fitsthrough twiceback twicethrough)
series=(alone back through)

# ---- Ceph ----

ceph_cluster()	# COMMAND
{
	tests/system/ceph/cluster.sh "$1" "$tmp/ceph" >>"$log" 2>&1
}

# What is not there, in words.
ceph_missing()
{
	local program missing=
	for program in ceph ceph-mon ceph-osd rados; do
		command -v $program >/dev/null || missing+="${missing:+, }$program"
	done
	[ -x "$BUILD/bin/sosd" ] || missing+="${missing:+, }sosd, which is built where librados is"
	echo "$missing"
}

leave_out_without_ceph()
{
	local missing
	missing=$(ceph_missing)
	[ -n "$missing" ] || return 0
	echo "left out: headline, which needs $missing (make deps)" | tee "$out/report.txt"
	exit 0
}

# ---- the stacks ----

# cache_options SYSTEM SET_MIB: nothing where there is none
cache_options()
{
	case $1 in
	alone)        return ;;
	fits* | memd) echo "memory = $(($2 * 2))M" ;;
	*)            echo "memory = $(($2 / 2))M" ;;
	esac
	case $1 in
	fits* | twice* | memd) echo "$no_flush" ;;
	esac
	case $1 in
	*through) echo "policy = write-through" ;;
	esac
}

# to STACK: what says to xbench what it writes to
to()
{
	local mib=$set_mib target=cached
	case $1 in
	series*) mib=$((2 * cache_mib)) ;;
	esac
	case $1 in
	*alone) target=sosd ;;
	esac
	echo --target=$target --objects=16 --object_size=$((mib * 64))k
}

load()		# STACK FILE ARGUMENT...
{
	local stack=$1 file=$2
	shift 2
	# shellcheck disable=SC2046 # options are words
	on "$stack" measure "$file" $(to "$stack") "$@"
}

begin()		# STACK SYSTEM SET_MIB
{
	local store=sosd options
	options=$(printf '%s = %s\n' pool xseg prefix "$1" user xseg conf "$tmp/ceph/ceph.conf")
	if [ "$2" = memd ]; then
		store=memd
		options="memory = $(($3 + 16))M"
	fi
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	on "$1" store_up $(($3 * 3 + 256)) $store "$options" "$(cache_options "$2" "$3")"
	load "$1" "$tmp/fill.json" --rw=write --bs=1M --iodepth=4
}

begin_all()
{
	local system
	for system in "${systems[@]}" memd; do
		begin "$system" "$system" $set_mib
	done
	for system in "${series[@]}"; do
		begin "series-$system" "$system" $((2 * cache_mib))
	done
}

forget()	# STACK
{
	on "$1" quietly xseg cache flush cached
	on "$1" quietly xseg cache drop cached
}

# ---- points ----

# What is dirty stays so while others are measured.
flushing()	# HIGH LOW
{
	on twiceback quietly xseg cache set cached dirty_high="$1" dirty_low="$2"
}

point()		# SYSTEM RW BS DEPTH ROUND
{
	[ "$1-$2" != twiceback-write ] || flushing 80 79
	load "$1" "$raw/$1-$2-$3-$4-run.$5.json" --rw="rand$2" --bs="$3" --iodepth="$4" \
		--runtime="$run_time" --ramp_time=20ms --randseed="$5"
	[ "$1-$2" != twiceback-write ] || flushing 99 98
}

# What the small caches have at first: half of the set; the one in write-back, for writes, as much
# dirty data as it keeps.
prepare()	# RW
{
	local system as=(--rw=read --bs=1M --iodepth=4)
	for system in twicethrough twiceback; do
		forget $system
		load $system "$tmp/fill.json" "${as[@]}"
		[ "$1" = read ] || as=(--rw=randwrite --bs=64k --iodepth=16)
	done
}

points()	# ROUND
{
	local rw bs depth system
	for rw in read write; do
		prepare $rw
		for bs in "${sizes[@]}"; do
			for depth in "${depths[@]}"; do
				for system in "${systems[@]}"; do
					point "$system" $rw "$bs" "$depth" "$1"
				done
			done
		done
		point memd $rw 4k 16 "$1"
	done
	forget twiceback
}

# ---- series ----

pattern_of()	# PATTERN
{
	local nr=$((passes * 2 * cache_mib * 256))
	if [ "$1" = random ]; then
		echo --rw=randwrite --iodepth=16 --number_ios=$nr
	else
		echo --rw=write --iodepth=4 --numjobs=4 --number_ios=$((nr / 4)) \
			--size=$((cache_mib / 2))M --offset_increment=$((cache_mib / 2))M
	fi
}

one_series()	# PATTERN SYSTEM ROUND
{
	local stack=series-$2
	[ "$2" = alone ] || forget "$stack"
	# shellcheck disable=SC2046 # options are words
	on "$stack" series_run "sosd-$1-$2" "$3" $(to "$stack") -- $(pattern_of "$1") \
		--status-interval=10ms
}

all_series()	# ROUND
{
	local pattern system
	for pattern in random streams; do
		for system in "${series[@]}"; do
			one_series $pattern "$system" "$1"
		done
	done
}

# ---- what came out ----

# One line a run: SYSTEM RW BS DEPTH ROUND IOPS BYTES MEAN_NS ERRORS
collect()
{
	raw_rows 'select($n[0] != "sosd") | .jobs[0] | .[$n[1]] as $j |
		$n + [$j.iops, $j.bw_bytes, ($j.lat_ns.mean | floor), .error]'
}

report()
{
	echo "xseg over Ceph's bluestore, $(date '+%Y-%m-%d %H:%M'): points of $seconds s in a set of" \
		"$set_mib MiB; series in $((2 * cache_mib)) MiB, twice the cache, $passes passes;" \
		"medians of $runs rounds."
	machine
	echo
	awk -v results="$out/results.tsv" -v series="$out/series.tsv" \
		-v sizes="${sizes[*]}" -v depths="${depths[*]}" \
		-f bench/lib.awk -f bench/series.awk -f bench/headline.awk \
		"$out/runs.tsv" "$out/sustained.tsv" "$out/slices.tsv"
}

choose_time
bench_begin headline xseg xseg-host xbench
leave_out_without_ceph
also_at_the_end ceph_cluster down
ceph_cluster up || fail "there is no cluster"
begin_all
for round in $(seq "$runs"); do
	echo "round $round of $runs: points ..."
	points "$round"
	echo "round $round of $runs: series ..."
	all_series "$round"
done
collect >"$out/runs.tsv"
series_tables sustained.tsv
bench_end headline.gp headline.png series.png
