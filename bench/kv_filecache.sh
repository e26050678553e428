#!/bin/bash
# kv_filecache.sh - repeats a published evaluation of the store below a data grid, beside libraries
# that keep keys and values in files.
#
# Usage: bench/kv_filecache.sh [--quick | --full]
# Environment: BENCH_SECONDS (3; 60 with --full; of one run, after a quarter of it), BENCH_SIDES,
#   BENCH_MODES (persistent overflow preload), BENCH_CONTENTS (value key), BENCH_SIZES (1k 4k 16k),
#   BENCH_FORCE (no yes), BENCH_SET (2048, MiB of data), BENCH_MEMORY (204, MiB of overflow),
#   BENCH_FROM (a folder of raw files: only the report)
#
# The data is 2 GiB: keys of 23 bytes with values of 1, 4 or 16 KiB, or keys of that size with empty
# values. It is put once. Then ten threads work at random, each with one call at a time, unforced or
# with each put forced to the disk:
#   persistent   the data grid has all data in memory, so only puts reach the store, which has three
#                times the data and 128 MiB for memory
#   overflow     20 % puts and 80 % gets; memory is a tenth of the data
#   preload      with values of 1 KiB, files in the page cache: from the start until all data was
#                read. kvd reads it into the cache, a library goes through all of it
#
# Each side has one memory cgroup for all, with its driver, and the disk that holds BUILD:
#   xseg      kvd -> cached -> filed, by the C API; a server on one CPU, the threads on the other
#   leveldb, rocksdb, lmdb   the library, with its threads on both CPUs. LMDB has no keys of more than
#                            511 bytes
#
# Gets and puts of one thread follow each other, so their rates by the clock are always 4 to 1. The
# report has rates of gets by the time that gets took, and of puts by that of puts, as the published
# one has. Beside them is the rate of both by the clock.
#
# Published: preload of 1 GB in 9.8 to 14 s.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
. bench/eval.sh
by_form runs 3 1 3
by_form seconds 3 0.5 60
by_form set_mib 2048 320
by_form memory 204 96
by_form modes "persistent overflow preload"
by_form contents "value key"
by_form sizes "1k 4k 16k" 4k
by_form forces "no yes"
by_env set_mib memory modes contents sizes
forces=${BENCH_FORCE:-$forces}
sides="xseg leveldb rocksdb lmdb"
columns="side mode what size force round = read_ns write_ns read_rate write_rate iops seconds how errors"
vars="modes contents sizes forces set_mib memory"
ramp=$(milliseconds 0.25)
threads=10
driver_in=1

keys_of()	# SIZE
{
	echo $((set_mib * 1024 / ${1%k}))
}

# memory_of MODE: MiB of a side
memory_of()
{
	case $1 in
	overflow) echo "$memory" ;;
	*)        echo $((set_mib * 3 + 128)) ;;
	esac
}

# kvd_up MODE SIZE [KVD OPTION]
kvd_up()
{
	local keys beside_mib cached=$'dirty_high = 80\ndirty_age = 1s'
	keys=$(keys_of "$2")
	beside_mib=$((12 + keys * 8 / 1048576))
	[ "$1" != preload ] || cached="$no_flush"
	stack side "$(memory_of "$1")" $((set_mib * 5 / 4 + keys * 150 / 1048576 + 64)) \
		$((keys + keys / 20 + 1000)) "$(rooms_of $threads 1 "${2%k}")" "$cached" \
		$'sync = 1s\n'"${3:-}"
}

# What a side's cache gets of the memory of a library, beside tables that are being written.
cache_of()	# MODE
{
	case $1 in
	overflow) echo $((memory / 4))M ;;
	*)        echo $((set_mib * 3 / 2))M ;;
	esac
}

side_up()	# SIDE MODE SIZE
{
	if [ "$1" = xseg ]; then
		kvd_up "$2" "$3"
	else
		mkdir -p "$tmp/db"
	fi
}

side_down()	# SIDE
{
	[ "$1" != xseg ] || stack_down side
	rm -rf "$tmp/db"
	group_end side
}

# driver SIDE MODE WHAT SIZE
driver()
{
	local to="--path=$tmp/db --cache=$(cache_of "$2") --cpus=$client_cpus,$server_cpu"
	[ "$1" != xseg ] || to="--path=$XSEG_SEGMENT-side --cpus=$client_cpus"
	echo "bench-rival-$1 $to --keys=$(keys_of "$4") --threads=$threads"
	if [ "$3" = key ]; then
		echo "--key_size=$4 --value_size=0"
	else
		echo "--value_size=$4"
	fi
}

# put_all SIDE MODE WHAT SIZE FILE: FILE has how it failed, if it did
put_all()
{
	group_make side "$(memory_of "$2")" || fail "there is no memory cgroup"
	side_up "$1" "$2" "$4" || fail "$1 does not start"
	# shellcheck disable=SC2046 # words
	load side "$tmp/fill.json" $(driver "$@") --rw=fill && return
	cp "$tmp/fill.json" "$5"
	echo "$1, $2, $3 of $4: $(jq -r .how "$5")"
	return 1
}

point()		# MODE WHAT SIZE SIDE
{
	local file args force forced
	[ "$1" != preload ] || { preload "$@"; return; }
	put_all "$4" "$1" "$2" "$3" "$raw/$4-$1-$2-$3-no-run.$round.json" ||
		{ cp "$raw/$4-$1-$2-$3-no-run.$round.json" "$raw/$4-$1-$2-$3-yes-run.$round.json"
		  side_down "$4"; return; }
	for force in $forces; do
		file=$raw/$4-$1-$2-$3-$force-run.$round.json
		args=(--rw=put)
		[ "$1" = persistent ] || args=(--rw=mixed --rwmixread=80)
		# shellcheck disable=SC2046 # words
		load side "$file" $(driver "$4" "$1" "$2" "$3") "${args[@]}" --force="$force" \
			--runtime="$run_time" --ramp_time="$ramp" --randseed="$round" ||
			echo "$4, $1, $2 of $3, forced: $force: $(jq -r .how "$file")"
	done
	side_down "$4"
}

# ---- preload ----

loaded()	# BYTES
{
	[ "$(XSEG_SEGMENT=$XSEG_SEGMENT-side xseg --json kv info --kvd kvd 2>>"$log" |
		jq .preloaded_bytes)" -ge "$1" ] 2>>"$log"
}

# preload MODE WHAT SIZE SIDE
preload()
{
	local file=$raw/$4-preload-$2-$3-no-run.$round.json began i
	[ "$2 $3" = "value ${sizes%% *}" ] || return 0
	put_all "$4" preload "$2" "$3" "$file" || { side_down "$4"; return; }
	if [ "$4" != xseg ]; then
		# shellcheck disable=SC2046 # words
		load side "$file" $(driver "$4" preload "$2" "$3") --threads=1 --rw=scan
		side_down "$4"
		return
	fi
	XSEG_SEGMENT=$XSEG_SEGMENT-side quietly xseg down
	cat "$tmp"/store-side/* >/dev/null 2>&1
	sed -i 's/^sync = .*/&\npreload = all/; s/^dir = .*/&\ndirect = no/' "$out/side.conf"
	began=$(date +%s%N)
	stack_begin side || fail "xseg does not start again"
	for ((i = 0; i < 3000; i++)); do
		! loaded $((set_mib * 1048576)) || break
		sleep 0.01
	done
	began=$(($(date +%s%N) - began))
	jq -n --argjson ns $began --argjson keys "$(keys_of "$3")" --argjson bytes $((set_mib * 1048576)) '
		{jobs: [{error: 0, read: {total_ios: $keys, iops: ($keys * 1e9 / $ns), misses: 0,
		bw_bytes: ($bytes * 1e9 / $ns), runtime_ns: $ns, lat_ns: {mean: 0}},
		write: {total_ios: 0, iops: 0, bw_bytes: 0, runtime_ns: 0, misses: 0, lat_ns: {mean: 0}}}],
		how: "ok"}' >"$file"
	side_down "$4"
}

all_points()
{
	each point "$modes" "$contents" "$sizes" "$sides"
}

# ---- the report ----

# A rate by the time that operations of a kind took, of all threads.
collect()
{
	raw_rows 'def rate: if .lat_ns.mean > 0 then 1e9 * '$threads' / .lat_ns.mean else 0 end;
		.jobs[0] as $j | $n + [$j.read.lat_ns.mean, $j.write.lat_ns.mean, ($j.read | rate),
		($j.write | rate), $j.read.iops + $j.write.iops, ([$j.read.runtime_ns, $j.write.runtime_ns] | max) / 1e9, .how, $j.error]'
}

bench_begin xseg xseg-host bench-rival-xseg
eval_begin
eval_rounds all_points
eval_report "xseg, the store below a data grid, DATE: $set_mib MiB of data, $threads threads; memory: $(memory_of persistent) MiB, in overflow $memory MiB; medians of $runs rounds of $run_time."
page filecache.png 1100,760 2,2 "operations a second of the time that they took" "logscale y" \
	"ylabel 'a second'" "logscale x" "xrange [0.8:20]" "xtics (1, 4, 16)" "xlabel 'KiB of a value'"
for force in no yes; do
	panel "persistent, puts of values, forced: $force"
	for side in xseg leveldb rocksdb lmdb; do
		curve $side "$side persistent value * $force" kib write_rate:write_low:write_high
	done
	panel "overflow, gets of values, forced: $force"
	for side in xseg leveldb rocksdb lmdb; do
		curve $side "$side overflow value * $force" kib read_rate:read_low:read_high
	done
done
bench_end
