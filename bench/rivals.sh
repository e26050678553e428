#!/bin/bash
# rivals.sh - Debian's other stores under the same load: 4 KiB at random, one CPU for clients and
# one for a server.
#
# Usage: bench/rivals.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.15, of one run), BENCH_RIVALS (only
#   these systems)
#
# ram: a set of 128 MiB in memory, with 1 and with 16 in flight, read and written by
#   cached        xbench -> cached, memd below, in one reactor; by copy
#   volume        xbench -> volumed -> cached -> memd, the same
#   direct        fio with its engine on the same volume; reads find the cache's data without a
#                 request
#   pagecache     fio on a file in the page cache: system calls, no server (psync; with 16 in flight
#                 io_uring)
#   nbdkit        fio -> a socket -> nbdkit memory
#   nbdkitcache   the same with nbdkit's cache filter over a file
#   qemunbd       fio -> a socket -> qemu-nbd --cache=writeback over a file in the page cache
#   memcached     bench-rival-socket -> a socket -> memcached with one thread: a value of 4 KiB is a
#                 block
#   redis         the same with redis, which saves nothing
#   rocksdb       bench-rival-rocksdb: a library with a block cache; I/Os in flight are threads
#                 on both CPUs
#   leveldb       the same with LevelDB
#
# disk: a set of 128 MiB on the disk that holds BUILD, four times the cache, with 16 in flight, by
#   filed         xbench -> filed, past the page cache: the store alone
#   cacheddisk    xbench -> cached -> filed
#   rocksdbdisk   RocksDB with a block cache as large, past the page cache
#   extstore      memcached with so much memory and the rest in a file (extstore), which is in the
#                 page cache
#
# A system that is missing is skipped, and named with its package; `make bench-deps` installs all.
# Each round starts every system once, one after the other; figures are medians of the rounds.
# docs/BENCHMARKS.md says which figures can be compared.
#
# In $BUILD/bench/rivals: raw/SYSTEM-RW-DEPTH-run.ROUND.json, by fio or with fio's fields. From
# these files alone are made runs.tsv, results.tsv (medians), report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.15}
set_mib=128
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	set_mib=32
fi
cache_mib=$((set_mib / 4))
engine=$BUILD/lib/fio-xseg.so
ram_systems=(cached volume direct pagecache nbdkit nbdkitcache qemunbd memcached redis
	rocksdb leveldb)
disk_systems=(filed cacheddisk rocksdbdisk extstore)

# ---- what is there ----

has_program()	# PROGRAM
{
	command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]
}

has_fio_nbd()
{
	has_program fio && fio --enghelp 2>/dev/null | grep -qw nbd
}

# package_of SYSTEM: what is missing for it; nothing when all is there
package_of()
{
	case $1 in
	direct)                [ -e "$engine" ] && has_program fio ||
		echo "make deps, then make: fio's engine" ;;
	pagecache)             has_program fio || echo fio ;;
	nbdkit | nbdkitcache)  has_program nbdkit && has_fio_nbd ||
		echo "nbdkit, fio with its nbd engine" ;;
	qemunbd)               has_program qemu-nbd && has_fio_nbd ||
		echo "qemu-utils, fio with its nbd engine" ;;
	memcached | extstore)  has_program memcached || echo memcached ;;
	redis)                 has_program redis-server || echo redis-server ;;
	rocksdb | rocksdbdisk) has_program bench-rival-rocksdb ||
		echo "librocksdb-dev, then make" ;;
	leveldb)               has_program bench-rival-leveldb ||
		echo "libleveldb-dev, then make" ;;
	esac
}

check_names()
{
	local system
	for system in ${BENCH_RIVALS:-}; do
		[[ " ${ram_systems[*]} ${disk_systems[*]} " == *" $system "* ]] ||
			usage "BENCH_RIVALS: there is no $system; there are ${ram_systems[*]} ${disk_systems[*]}"
	done
}

choose_systems()
{
	local system missing there=()
	for system in ${BENCH_RIVALS:-${ram_systems[*]} ${disk_systems[*]}}; do
		missing=$(package_of "$system")
		if [ -n "$missing" ]; then
			echo "left out: $system, which needs $missing" | tee -a "$out/left_out.txt"
		else
			there+=("$system")
		fi
	done
	systems=("${there[@]}")
	[ ${#systems[@]} -gt 0 ] || usage "nothing is left; run make bench-deps, or name others in BENCH_RIVALS"
}

# ---- servers ----

server=
socket=

# serve COMMAND...: a server on its CPU; $socket is there when it returns
serve()
{
	local i
	rm -f "$socket"
	PATH=$PATH:/usr/sbin taskset -c "$server_cpu" "$@" >>"$log" 2>&1 </dev/null &
	server=$!
	for i in $(seq 200); do
		[ ! -S "$socket" ] || return 0
		kill -0 $server 2>/dev/null || fail "'$*' ended"
		sleep 0.05
	done
	fail "'$*' made no socket"
}

server_down()
{
	[ -n "$server" ] || return 0
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
}

# A file of the set, in the page cache. What was written to it before is on the disk, so that
# nothing is written meanwhile.
make_file()	# NAME
{
	[ -e "$tmp/$1" ] || quietly dd if=/dev/zero of="$tmp/$1" bs=1M count="$set_mib"
	sync "$tmp/$1"
	cat "$tmp/$1" >/dev/null
}

stack_options()	# CACHE_MIB
{
	printf '%s\n' "memory = $1M" "objects = $((set_mib / 2 + 64))" "dirty_age = 1h"
}

up()	# SYSTEM
{
	local room=$((set_mib * 3 + 512)) keep
	keep=$(printf '%s\n' "$(stack_options $((set_mib * 5 / 4)))" "dirty_high = 99" \
		"dirty_low = 98")
	socket=$sockets/socket
	case $1 in
	cached)      store_up $room memd "memory = 64M" "$keep" ;;
	volume | direct)
		     store_up $room memd "memory = 64M" "$keep" volumed
		     quietly xseg volume create bench --size "${set_mib}M" ;;
	filed)       store_up $room filed "dir = $tmp/store" ;;
	cacheddisk)  store_up $room filed "dir = $tmp/store" "$(stack_options $cache_mib)" ;;
	pagecache)   make_file file ;;
	nbdkit)      serve nbdkit -f -U "$socket" memory "${set_mib}M" ;;
	nbdkitcache) make_file file
		     TMPDIR=$tmp serve nbdkit -f -U "$socket" --filter=cache file "$tmp/file" \
			cache=writeback cache-on-read=true ;;
	qemunbd)     make_file file
		     serve qemu-nbd -t -k "$socket" -f raw --cache=writeback "$tmp/file" ;;
	memcached)   serve memcached -u "$(id -un)" -s "$socket" -m $((set_mib * 2)) -t 1 ;;
	extstore)    serve memcached -u "$(id -un)" -s "$socket" -m $cache_mib -t 1 \
			-o "ext_path=$tmp/ext:$((set_mib * 4 + 512))M,ext_wbuf_size=4,ext_item_age=0" ;;
	redis)       serve redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no \
		--dir "$tmp" ;;
	esac
	fill "$1"
}

down()	# SYSTEM
{
	case $1 in
	cached | volume | direct | filed | cacheddisk) quietly xseg down --force ;;
	*)                                             server_down ;;
	esac
	rm -rf "$tmp/store" "$tmp/ext" "$tmp/db"
}

# ---- loads ----

to_xseg()	# SYSTEM
{
	case $1 in
	volume | direct) echo --volume=bench ;;
	*)               echo --target="${1%disk}" --objects=$((set_mib / 4)) ;;
	esac
}

# rival SYSTEM ARGUMENT...: one of our own clients
rival()
{
	local program=bench-rival-socket args=(--path="$socket" --size="${set_mib}M"
		--cpus="$client_cpus")
	case $1 in
	memcached | extstore) args+=(--protocol=memcached) ;;
	rocksdb | leveldb)    program=bench-rival-$1 ;;
	rocksdbdisk)          program=bench-rival-rocksdb ;;
	esac
	case $1 in
	rocksdb | leveldb) args+=(--path="$tmp/db" --cache=$((set_mib * 2))M
		--cpus="$client_cpus,$server_cpu") ;;
	rocksdbdisk)       args+=(--path="$tmp/db" --cache=${cache_mib}M
		--cpus="$client_cpus,$server_cpu" --direct) ;;
	esac
	shift
	"$program" "${args[@]}" "$@" 2>>"$log" || fail "$program ${args[*]} $* failed"
}

# fio_on SYSTEM FILE ARGUMENT...
fio_on()
{
	local system=$1 file=$2 where
	case $system in
	pagecache) where=(--filename="$tmp/file" --direct=0 --fallocate=none) ;;
	direct)    where=(--ioengine="external:$engine" --segment="$XSEG_SEGMENT" --volume=bench
		--direct_reads=1 --thread) ;;
	*)         where=(--ioengine=nbd --uri="nbd+unix:///?socket=$socket") ;;
	esac
	shift 2
	fio --name=load --size="${set_mib}M" --cpus_allowed="$client_cpus" --output-format=json \
		--output="$file" \
		--norandommap --invalidate=0 --allow_file_create=0 "${where[@]}" \
		"$@" >>"$log" 2>&1 </dev/null || fail "fio $system $* failed"
}

fill()	# SYSTEM
{
	case $1 in
	cached | volume | direct | filed | cacheddisk)
		# shellcheck disable=SC2046 # words
		measure "$tmp/fill.json" $(to_xseg "$1") --size="${set_mib}M" --rw=write \
			--bs=1M --iodepth=4
		[ "$1" != cacheddisk ] || quietly xseg cache flush cached
		[ "$1" != direct ] ||
			fio_on direct "$tmp/fill.json" --rw=read --bs=4k --iodepth=16 ;;
	memcached | redis | extstore)      rival "$1" --fill --iodepth=16 >/dev/null ;;
	rocksdb | leveldb | rocksdbdisk)   mkdir -p "$tmp/db"; rival "$1" --fill >/dev/null ;;
	nbdkit | nbdkitcache | qemunbd)    fio_on "$1" "$tmp/fill.json" --rw=write --bs=1M \
		--iodepth=4 ;;
	esac
}

load()	# SYSTEM RW DEPTH ROUND
{
	local file=$raw/$1-$2-$3-run.$4.json by=() warm=()
	case $1 in
	cached | volume | filed | cacheddisk)
		# shellcheck disable=SC2046 # words
		measure "$file" $(to_xseg "$1") --size="${set_mib}M" --rw="rand$2" --iodepth="$3" \
			--runtime="$run_time" \
			--ramp_time=50ms --randseed="$4" ;;
	direct | pagecache | nbdkit | nbdkitcache | qemunbd)
		[ "$1" != pagecache ] ||
			by=(--ioengine="$([ "$3" = 1 ] && echo psync || echo io_uring)")
		fio_on "$1" "$file" "${by[@]}" --rw="rand$2" --bs=4k --iodepth="$3" \
			--runtime="$run_time" --time_based \
			--ramp_time=50ms --randseed="$4" ;;
	*)
		[ "$1" != rocksdb ] && [ "$1" != leveldb ] || [ "$2" = write ] || warm=(--warm)
		rival "$1" --rw="rand$2" --iodepth="$3" --runtime="$run_time" \
			--randseed="$4" "${warm[@]}" >"$file" ;;
	esac
}

run_system()	# SYSTEM ROUND
{
	local rw depth depths="1 16"
	[[ " ${disk_systems[*]} " != *" $1 "* ]] || depths=16
	up "$1"
	for rw in read write; do
		for depth in $depths; do
			load "$1" $rw "$depth" "$2"
		done
	done
	down "$1"
}

# ---- what came out ----

# One line a run: SYSTEM RW DEPTH ROUND IOPS MEAN_NS P99_NS ERRORS. fio has percentiles of the
# completion only.
collect()
{
	raw_rows '.jobs[0] | .[$n[1]] as $j |
		$n + [($j.iops | floor), ($j.lat_ns.mean | floor),
			(($j.lat_ns.percentile // $j.clat_ns.percentile)["99.000000"]), .error]'
}

report()
{
	echo "xseg and its rivals, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random over $set_mib MiB, medians of $runs rounds of" \
		"$seconds s a run; disk: a cache of $cache_mib MiB."
	machine
	[ ! -e "$out/left_out.txt" ] || cat "$out/left_out.txt"
	echo
	awk -v ram="${ram_systems[*]}" -v disk="${disk_systems[*]}" -v results="$out/results.tsv" \
		-f bench/lib.awk \
		-f bench/rivals.awk "$out/runs.tsv"
}

choose_time
check_names
bench_begin rivals xseg xseg-host xbench bench-rival-socket
also_at_the_end server_down
choose_systems
for round in $(seq "$runs"); do
	echo "round $round of $runs: ${systems[*]} ..."
	for system in "${systems[@]}"; do
		run_system "$system" "$round"
	done
done
collect >"$out/runs.tsv"
bench_end rivals.gp rivals.png
