#!/bin/bash
# headline.sh - the published headline of a cache of this kind, over a store as slow as real ones:
# Ceph's bluestore alone, and a cache over it.
#
# Usage: bench/headline.sh [--quick]
# Environment: BENCH_SECONDS (0.1, of one point)
#
# The store is sosd over the cluster for tests (tests/system/ceph/cluster.sh). It is a monitor and
# an OSD with bluestore on a file of the disk that holds BUILD, on the same CPUs as all else.
# Without Ceph's packages this benchmark is skipped, and says so.
#
# Points, at random over a set of 64 MiB, one client: reads and writes, blocks of 64, 16 and 4 KiB,
# 4, 8 and 16 in flight. Each read is a request, as in the published figures.
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
# in the pool: the disk's time for a sync changes from minute to minute.
#
# Series are those of bench/series.sh. Their tables are sustained.tsv, slices.tsv and series.tsv.
set -u

. "$(dirname "$0")/lib.sh"
. bench/series.sh
by_form seconds 0.1 0.02
by_form set_mib 64 16
by_form cache_mib 8 4
by_form passes 2 1
by_form sizes "64k 16k 4k" "64k 4k"
by_form depths "4 8 16" "4 16"
columns="system rw bs depth round = iops bytes mean_ns errors"
raw_only='$n[0] != "sosd"'
vars="sizes depths series"
series_mib=$((2 * cache_mib))
systems="alone fitsback fitsthrough twiceback twicethrough"
series_systems="alone back through"
series=$out/series.tsv
ramp=20ms

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
	series*) mib=$series_mib ;;
	esac
	case $1 in
	*alone) target=sosd ;;
	esac
	echo --target=$target --objects=16 --object_size=$((mib * 64))k
}

begin()		# STACK SYSTEM SET_MIB
{
	local store=sosd options
	options=$(printf '%s = %s\n' pool xseg prefix "$1" user xseg conf "$tmp/ceph/ceph.conf")
	[ "$2" != memd ] || store=memd options="memory = $(($3 + 16))M"
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	on "$1" store_up $(($3 * 3 + 256)) $store "$options" "$(cache_options "$2" "$3")"
	fill_stack "$1" --rw=write --bs=1M --iodepth=4
}

fill_stack()	# STACK ARGUMENT...
{
	# shellcheck disable=SC2046 # options are words
	on "$1" measure "$tmp/fill.json" $(to "$1") "${@:2}"
}

# ---- points ----

# What is dirty stays so while others are measured.
flushing()	# HIGH LOW
{
	on twiceback quietly xseg cache set cached dirty_high="$1" dirty_low="$2"
}

point()		# RW BS DEPTH SYSTEM
{
	[ "$4-$1" != twiceback-write ] || flushing 80 79
	# shellcheck disable=SC2046 # options are words
	on "$4" at_random "$4-$1-$2-$3" "$1" "$3" $(to "$4") --bs="$2"
	[ "$4-$1" != twiceback-write ] || flushing 99 98
}

# What the small caches have at first: half of the set; the one in write-back, for writes, as much
# dirty data as it keeps.
prepare_caches()	# RW
{
	local system as=(--rw=read --bs=1M --iodepth=4)
	for system in twicethrough twiceback; do
		on $system forget
		fill_stack $system "${as[@]}"
		[ "$1" = read ] || as=(--rw=randwrite --bs=64k --iodepth=16)
	done
}

one_series()	# PATTERN SYSTEM
{
	[ "$2" = alone ] || on "series-$2" forget
	# shellcheck disable=SC2046 # options are words
	on "series-$2" series_run "sosd-$1-$2" $series_mib "$passes" 10ms $(to "series-$2")
}

# ---- what came out ----

collect()
{
	series_each series_row >"$out/sustained.tsv"
	series_each series_slices >"$out/slices.tsv"
	table_of "$columns"
	more_files=("columns=$series_columns" "$out/sustained.tsv" "columns=$slice_columns"
		"$out/slices.tsv")
}

bench_begin
leave_out_without_ceph
also_at_the_end ceph_cluster down
ceph_cluster up || fail "there is no cluster"
for system in $systems memd; do
	begin "$system" "$system" "$set_mib"
done
for system in $series_systems; do
	begin "series-$system" "$system" $series_mib
done
while next_round; do
	for rw in read write; do
		prepare_caches $rw
		each "point $rw" "$sizes" "$depths" "$systems"
		point $rw 4k 16 memd
	done
	on twiceback forget
	each one_series "random streams" "$series_systems"
done
bench_report "xseg over Ceph's bluestore, DATE: points of $seconds s in a set of $set_mib MiB; series in $series_mib MiB, twice the cache, $passes passes; medians of $runs rounds."
page headline.png 1100,480 1,2 "4 KiB at random over Ceph's bluestore" "logscale y" \
	"xlabel 'in flight'" "ylabel 'IOPS'"
for rw in read write; do
	panel ${rw}s
	curve "the store alone" "alone $rw 4k" depth iops
	curve "fits, write-back" "fitsback $rw 4k" depth iops
	curve "fits, write-through" "fitsthrough $rw 4k" depth iops
	curve "set twice the cache, write-back" "twiceback $rw 4k" depth iops
	curve "the same, write-through" "twicethrough $rw 4k" depth iops
done
page series.png 1100,480 1,2 "4 KiB writes over Ceph's bluestore, set twice the cache" "logscale y" \
	"xrange [0:100]" "xlabel 'percent of the bytes of the run'" "ylabel 'MB/s'"
table=series.tsv
for pattern in random streams; do
	panel $pattern
	slice_curves $pattern sosd
done
bench_end
