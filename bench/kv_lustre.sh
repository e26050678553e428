#!/bin/bash
# kv_lustre.sh - repeats a published evaluation of stores for a cache of whole files: values of 1 KiB
# to 4 GiB, by C APIs.
#
# Usage: bench/kv_lustre.sh [--quick | --full]
# Environment: BENCH_STAGES (1 2 3), BENCH_SIDES, BENCH_MEMORY (4096, MiB of a side), BENCH_ONE,
#   BENCH_TWO, BENCH_THREE (sizes of the stages), BENCH_THREADS, BENCH_OPS (4096, of a thread in
#   stage 1), BENCH_SET (2048, MiB of stage 2; stage 3 has 8 times that), BENCH_FROM (a folder of
#   raw files: only the report)
#
# stage 1   1 to 4 threads put and as many get 4096 values of one size, 1 KiB to 1 MiB. All go
#           through the same keys in order, so readers also ask for what is not there yet.
# stage 2   2 GiB are put, and then got, in values of 1 to 512 MiB by one thread
# stage 3   16 GiB are put, and then got, in values of 1, 2 and 4 GiB by two threads
#
# Each side has one memory cgroup for all: the driver, the server, shared memory and page cache. Its
# files are on the disk that holds BUILD. A put need not be on the disk when it is answered; each
# side writes what it has within about a second, or when the system does.
#   xsync, xasync   kvd -> cached -> filed by the C API: one call at a time, or 16 in flight (of a
#                   large value 8 pieces)
#   rsync, rasync   redis by hiredis with an append-only file: one request at a time, or 16
#   leveldb, rocksdb   the library; it has one call at a time
#   memcached       no disk; a value of more than 512 MiB is beyond it
# A large value is moved by xseg in pieces. The other interfaces want all of it in memory.
#
# Published: one store stopped at values of 20 MB, Redis ran out of memory in stage 3, and LevelDB
# alone survived it, in 1,000 to 1,700 s.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
. bench/eval.sh
by_form runs 3 1 3
by_form memory 4096 512
by_form stages "1 2 3"
by_form one "1k 4k 16k 64k 256k 1m" "1k 32k 1m" "1k 2k 4k 8k 16k 32k 64k 128k 256k 512k 1m"
by_form two "1m 8m 64m 512m" "1m 64m" "1m 2m 4m 8m 16m 32m 64m 128m 256m 512m"
by_form three "1g 2g 4g" "256m 512m" "1g 2g 4g"
by_form threads "1 4" "1 4" "1 2 3 4"
by_form ops 4096 256
by_form set_mib 2048 256
by_env memory stages one two three threads ops set_mib
sides="xsync xasync rsync rasync leveldb rocksdb memcached"
columns="side stage size threads round = seconds put_bytes got_bytes missed how errors"
vars="stages one two three threads memory ops set_mib"
driver_in=1

bytes_of()	# SIZE
{
	local unit=1024
	case $1 in
	*m) unit=1048576 ;;
	*g) unit=1073741824 ;;
	esac
	echo $((${1%[kmg]} * unit))
}

# Operations in flight of kvd, or pieces of a large value.
async_depth()	# SIZE
{
	if [ "$(bytes_of "$1")" -ge 1048576 ]; then
		echo 8
	else
		echo 16
	fi
}

# How many operations in flight of redis: as many as fit into 64 MiB.
depth_of()	# SIZE
{
	local depth=$((67108864 / $(bytes_of "$1")))
	echo $((depth > 16 ? 16 : depth < 1 ? 1 : depth))
}

# kvd_up SIDE KEYS SIZE THREADS: the log has room for each value twice, in whole zones, and for one
# more of each thread
kvd_up()
{
	local zones bytes depth=1 beside_mib rooms
	[ "$1" = xsync ] || depth=$(async_depth "$3")
	shift
	bytes=$(bytes_of "$2")
	zones=$(((bytes + 8192 + 4194303) / 4194304))
	[ "$bytes" -ge 1000000 ] || zones=0
	rooms=$(rooms_of $(($3 * 2)) $depth $((bytes / 1024)))
	beside_mib=$(driver_of $(($3 * 2)) $depth $((bytes / 1024)))
	stack side "$memory" $((($1 + $3 * 3) * (zones * 4096 + (bytes + 4096) / 512) / 1024 + 256)) \
		$(($1 + $1 / 10 + 1000)) "$rooms" "dirty_age = 1s" "sync = 1s"
}

side_up()	# SIDE KEYS SIZE THREADS
{
	case $1 in
	x*)         kvd_up "$@" ;;
	rsync | rasync) redis_up side --appendonly yes --appendfsync everysec --proto-max-bulk-len 5gb \
			--client-query-buffer-limit 6gb ;;
	memcached)  memcached_up side -m $((memory * 85 / 100)) -I "$((memory / 8 < 1024 ? memory / 8 : 1024))m" ;;
	*)          mkdir -p "$tmp/db" ;;
	esac
}

side_down()	# SIDE
{
	case $1 in
	x*)             stack_down side ;;
	rsync | rasync | memcached) servers_gone ;;
	*)              rm -rf "$tmp/db" ;;
	esac
	group_end side
}

# A library runs on both CPUs, as a server and its client do.
driver()	# SIDE SIZE
{
	case $1 in
	xsync)     echo bench-rival-xseg --path="$XSEG_SEGMENT-side" --cpus="$client_cpus" ;;
	xasync)    echo bench-rival-xseg --path="$XSEG_SEGMENT-side" --cpus="$client_cpus" \
			--iodepth="$(async_depth "$2")" ;;
	rsync)     echo bench-rival-redis --path="$socket" --cpus="$client_cpus" ;;
	rasync)    echo bench-rival-redis --path="$socket" --cpus="$client_cpus" \
			--iodepth="$(depth_of "$2")" ;;
	memcached) echo bench-rival-memcached --path="$socket" --cpus="$client_cpus" --may_drop ;;
	*)         echo "bench-rival-$1" --path="$tmp/db" --cpus="$client_cpus,$server_cpu" \
			--cache=$((memory / 4))M ;;
	esac
}

# point STAGE SIZE THREADS SIDE ARGUMENT...
point()
{
	local file=$raw/$4-$1-$2-$3-run.$round.json keys=${5#--keys=}
	group_make side "$memory" || fail "there is no memory cgroup"
	# shellcheck disable=SC2046 # words
	if side_up "$4" "$keys" "$2" "$3"; then
		load side "$file" $(driver "$4" "$2") --value_size="$2" --threads="$3" "${@:5}" ||
			echo "$4, stage $1, $2: $(jq -r .how "$file")"
	else
		fail "$4 does not start"
	fi
	side_down "$4"
}

stage_1()	# SIZE THREADS SIDE
{
	point 1 "$1" "$2" "$3" --keys="$ops" --rw=counter --readers="$2"
}

stage_2()	# SIZE SIDE
{
	point 2 "$1" 1 "$2" --keys=$((set_mib * 1048576 / $(bytes_of "$1"))) --rw=both
}

stage_3()	# SIZE SIDE
{
	point 3 "$1" 2 "$2" --keys=$((set_mib * 8388608 / $(bytes_of "$1"))) --rw=both
}

all_stages()
{
	[[ $stages != *1* ]] || each stage_1 "$one" "$threads" "$sides"
	[[ $stages != *2* ]] || each stage_2 "$two" "$sides"
	[[ $stages != *3* ]] || each stage_3 "$three" "$sides"
}

# The time until all is done: puts and gets are beside each other in stage 1, else one after the other.
collect()
{
	raw_rows '.jobs[0] as $j | $n + [(if $n[1] == "1" then [$j.read.runtime_ns, $j.write.runtime_ns] | max
		else $j.read.runtime_ns + $j.write.runtime_ns end) / 1e9, $j.write.bw_bytes, $j.read.bw_bytes,
		(if $j.read.total_ios > 0 then $j.read.misses * 1000 / $j.read.total_ios | round / 10
		 else 0 end), .how, $j.error]'
}

bench_begin xseg xseg-host bench-rival-xseg bench-rival-memcached
socket=$sockets/socket
eval_begin
eval_rounds all_stages
eval_report "xseg, values of whole files, DATE: $memory MiB a side with its driver; $ops values a thread in stage 1, $set_mib MiB in stage 2, $((set_mib * 8)) MiB in stage 3; medians of $runs rounds."
page lustre.png 1100,760 2,2 "seconds until all is done" "logscale xy" "ylabel 's'" \
	"xlabel 'KiB of a value'"
across='(column(1))'
for at in "1 1" "1 4" "2 1" "3 2"; do
	panel "stage ${at% *}, threads: ${at#* }"
	for side in xsync xasync rsync rasync leveldb rocksdb memcached; do
		curve $side "$side ${at% *} * ${at#* }" kib seconds
	done
done
bench_end
