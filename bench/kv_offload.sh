#!/bin/bash
# kv_offload.sh - repeats a published evaluation of values that spill from memory to disk, beside
# memcached and redis in as much memory.
#
# Usage: bench/kv_offload.sh [--quick | --full]
# Environment: BENCH_SECONDS (5; 60 with --full; of one run, after a quarter of it), BENCH_MEMORY
#   (500, MiB of a side), BENCH_FACTORS, BENCH_SIZES, BENCH_SIDES (only these), BENCH_FROM (a folder
#   of raw files: only the report)
#
# The data is 0.6 to 12 times the memory, in values whose sizes are exponential, of 1 KiB or 16 KiB
# on average. A client on its own CPU gets and puts at random, 20 % puts, with 32 in flight, each on
# a connection of its own. A server has one CPU, and a memory cgroup: processes, shared memory and
# page cache together. Each side is filled, and then runs:
#   spill      kvd -> cached -> filed, by memcached's protocol: write-back, dirty_high = 95, nothing
#              is written for its age; sync = never
#   sync       the same with dirty_age = 1s: memory and disk agree
#   through    the same in write-through with sync = written
#   capi       spill, by the C API
#   memcached  drops what does not fit
#   extstore   memcached with values in a file, too; drops what does not fit
#   redis      with maxmemory and allkeys-lru: drops what does not fit
#
# Published (one core at 100 %): in spill-over 2 to 3 % less than memory alone if all fits, and in
# synchronous 42 to 62 % less. If it does not fit, spill-over had up to 3.23 times synchronous.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
. bench/eval.sh
by_form runs 3 1 3
by_form seconds 5 1 60
by_form memory 500 50 500
by_form factors "0.6 0.8 1.5 3 5 7.5 10 12" "0.6 0.8 1.5 3 5 7.5 10 12"
by_form sizes "1k 16k" "1k 16k"
by_env memory factors sizes
sides="spill sync through capi memcached extstore redis"
columns="side factor size round = iops read_ns write_ns missed cpu how errors"
vars="factors sizes memory"
ramp=$(milliseconds 0.25)
depth=32

keys_of()	# FACTOR SIZE
{
	awk -v f="$1" -v m="$memory" -v k="${2%k}" 'BEGIN { printf "%d", f * m * 1024 / k }'
}

# A log has its records with their headers, and a fifth more if all of it is to stay in memory; else
# three fifths more, so that less is compacted.
log_of()	# FACTOR KEYS SIZE
{
	awk -v f="$1" -v n="$2" -v k="${3%k}" 'BEGIN {
		printf "%d", n * (k * 1024 + 120) * (f < 1 ? 1.2 : 1.6) / 1048576 + 48 }'
}

# kvd_up SIDE FACTOR KEYS SIZE
kvd_up()
{
	local cached kvd="sync = never" gate= rooms=$((${4%k} / 4 + 2)) beside_mib=0
	case $1 in
	spill | capi) cached=$'dirty_high = 95\ndirty_low = 90\ndirty_age = 24h' ;;
	sync)         cached="dirty_age = 1s" ;;
	through)      cached="policy = write-through" kvd="sync = written" ;;
	esac
	if [ "$1" != capi ]; then
		rooms=14 beside_mib=$((3 + ${4%k} / 4))
		gate=$(printf '%s\n' "kind = memcached" "kvd = kvd" \
			"listen = unix:$socket" "connections = 64")
	fi
	rm -f "$socket"
	stack side "$memory" "$(log_of "${@:2}")" $(($3 + $3 / 20 + 1000)) $rooms \
		"$cached" "$kvd" "$gate"
}

# All of the group's memory, but for what memcached and its connections need; redis needs more, for its
# memory becomes fragmented.
most_of()
{
	echo $((memory * 92 / 100 - 4))
}

side_up()	# SIDE FACTOR KEYS SIZE
{
	case $1 in
	memcached) memcached_up side -m "$(most_of)" ;;
	extstore)  mkdir -p "$tmp/ext"
		   memcached_up side -m $((memory * 60 / 100)) \
			-o "ext_path=$tmp/ext/file:$(($(log_of "${@:2}") * 2 + 512))M,ext_wbuf_size=4" ;;
	redis)     redis_up side --appendonly no --maxmemory $((memory * 7 / 10))mb \
			--maxmemory-policy allkeys-lru ;;
	*)         kvd_up "$@" ;;
	esac
}

side_down()	# SIDE
{
	case $1 in
	memcached | extstore | redis) servers_gone ;;
	*)                            stack_down side ;;
	esac
	group_end side
}

one_point()	# SIZE FACTOR SIDE
{
	local file=$raw/$3-$2-$1-run.$round.json keys args program=bench-rival-memcached
	keys=$(keys_of "$2" "$1")
	args=(--keys="$keys" --value_size="$1" --exponential --cpus="$client_cpus" --iodepth=$depth
		--may_drop --path="$socket" --connections=$depth)
	case $3 in
	redis) program=bench-rival-redis ;;
	capi)  program=bench-rival-xseg args+=(--path="$XSEG_SEGMENT-side") ;;
	esac
	group_make side "$memory" || fail "there is no memory cgroup"
	side_up "$3" "$2" "$keys" "$1" || fail "$3 does not start"
	load side "$tmp/fill.json" "$program" "${args[@]}" --rw=fill &&
		load side "$file" "$program" "${args[@]}" --rw=mixed --rwmixread=80 \
			--runtime="$run_time" --ramp_time="$ramp" --randseed="$round" ||
		{ [ -e "$file" ] || cp "$tmp/fill.json" "$file"; }
	side_down "$3"
}

all_points()
{
	each one_point "$sizes" "$factors" "$sides"
}

collect()
{
	raw_rows '.jobs[0] as $j | $n + [$j.read.iops + $j.write.iops, $j.read.lat_ns.mean,
		$j.write.lat_ns.mean,
		(if $j.read.total_ios > 0 then $j.read.misses * 1000 / $j.read.total_ios | round / 10
		 else 0 end), .server_cpu, .how, $j.error]'
}

bench_begin xseg xseg-host bench-rival-xseg bench-rival-memcached
socket=$sockets/socket
eval_begin
eval_rounds all_points
eval_report "xseg, values that spill from memory to disk, DATE: $memory MiB a side, 20 % puts, $depth in flight; medians of $runs rounds of $run_time."
page offload.png 1100,480 1,2 "data to memory, 20 % puts" "logscale x" "xrange [0.5:15]" \
	"xtics (0.6, 0.8, 1.5, 3, 5, 7.5, 10, 12)" "xlabel 'data to memory'" "ylabel 'K operations a second'"
for size in $sizes; do
	panel "$size on average"
	for side in spill sync through capi memcached extstore redis; do
		curve $side "$side * $size" factor iops:low:high 1e3
	done
done
bench_end
