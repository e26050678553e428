#!/bin/bash
# rivals.sh - Debian's other stores under the same load: 4 KiB at random, one CPU for clients and
# one for a server.
#
# Usage: bench/rivals.sh [--quick]
# Environment: BENCH_SECONDS (0.15, of one run), BENCH_RIVALS (only
#   these systems)
#
# ram: a set of 128 MiB in memory, with 1 and with 16 in flight, read and written by
#   cached        xbench -> cached, memd below, in one reactor; by copy, and each read a request
#   volume        xbench -> volumed -> cached -> memd, the same
#   direct        fio with its engine on the same volume; reads find the cache's data without a
#                 request
#   pagecache     fio on a file in the page cache: system calls, no server (psync; with 16 in flight
#                 io_uring)
#   nbdkit        fio -> a socket -> nbdkit memory
#   nbdkitcache   the same with nbdkit's cache filter over a file
#   qemunbd       fio -> a socket -> qemu-nbd --cache=writeback over a file in the page cache
#   memcached     bench-rival-memcached -> a socket -> memcached with one thread: a value of 4 KiB is
#                 a block
#   redis         bench-rival-redis, the same with redis, which saves nothing
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
# docs/BENCHMARKS.md says which figures can be compared.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.15 0.02
by_form set_mib 128 32
columns="system rw depth round = iops mean_ns p99_ns errors"
cache_mib=$((set_mib / 4))
engine=$BUILD/lib/fio-xseg.so
ram="cached volume direct pagecache nbdkit nbdkitcache qemunbd memcached redis rocksdb leveldb"
disk="filed cacheddisk rocksdbdisk extstore"
vars="ram disk"

# ---- what is there ----

# has PROGRAM...
has()
{
	PATH=$PATH:/usr/sbin command -v "$@" >/dev/null
}

has_fio_nbd()
{
	has fio && fio --enghelp 2>/dev/null | grep -qw nbd
}

# package_of SYSTEM: what is missing for it; nothing when all is there
package_of()
{
	case $1 in
	direct)                [ -e "$engine" ] && has fio || echo "make deps, then make: fio's engine" ;;
	pagecache)             has fio || echo fio ;;
	nbdkit | nbdkitcache)  has nbdkit && has_fio_nbd || echo "nbdkit, fio with its nbd engine" ;;
	qemunbd)               has qemu-nbd && has_fio_nbd || echo "qemu-utils, fio with its nbd engine" ;;
	memcached | extstore)  has memcached || echo memcached ;;
	redis)                 has redis-server && has bench-rival-redis ||
				       echo "redis-server, libhiredis-dev, then make" ;;
	rocksdb | rocksdbdisk) has bench-rival-rocksdb || echo "librocksdb-dev, then make" ;;
	leveldb)               has bench-rival-leveldb || echo "libleveldb-dev, then make" ;;
	esac
}

# choose SYSTEM: it takes part if all that it needs is there
choose()
{
	local missing
	missing=$(package_of "$1")
	if [ -n "$missing" ]; then
		echo "left out: $1, which needs $missing" | tee -a "$out/left_out.txt"
	else
		systems+=" $1"
	fi
}

# ---- servers ----

server()	# COMMAND...
{
	rm -f "$socket"
	PATH=$PATH:/usr/sbin serve "[ -S '$socket' ]" taskset -c "$server_cpu" "$@"
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
	local room=$((set_mib * 3 + spare_mib)) keep
	keep=$(printf '%s\n' "$(stack_options $((set_mib * 5 / 4)))" "dirty_high = 99" \
		"dirty_low = 98")
	case $1 in
	cached)      store_up $room memd "memory = 64M" "$keep" ;;
	volume | direct)
		     store_up $room memd "memory = 64M" "$keep" "bench=${set_mib}M" ;;
	filed)       store_up $room filed "dir = $tmp/store" ;;
	cacheddisk)  store_up $room filed "dir = $tmp/store" "$(stack_options $cache_mib)" ;;
	pagecache)   make_file file ;;
	nbdkit)      server nbdkit -f -U "$socket" memory "${set_mib}M" ;;
	nbdkitcache) make_file file
		     TMPDIR=$tmp server nbdkit -f -U "$socket" --filter=cache file "$tmp/file" \
			cache=writeback cache-on-read=true ;;
	qemunbd)     make_file file
		     server qemu-nbd -t -k "$socket" -f raw --cache=writeback "$tmp/file" ;;
	memcached)   server memcached -u "$(id -un)" -s "$socket" -m $((set_mib * 2)) -t 1 ;;
	extstore)    server memcached -u "$(id -un)" -s "$socket" -m $cache_mib -t 1 \
			-o "ext_path=$tmp/ext:$((set_mib * 4 + 512))M,ext_wbuf_size=4,ext_item_age=0" ;;
	redis)       server redis-server --port 0 --unixsocket "$socket" --save '' \
			--appendonly no --dir "$tmp" ;;
	esac
	fill_system "$1"
}

# ---- loads ----

to_xseg()	# SYSTEM
{
	case $1 in
	volume | direct) echo --volume=bench --size="${set_mib}M" ;;
	*)               echo --target="${1%disk}" --objects=$((set_mib / 4)) --size="${set_mib}M" ;;
	esac
}

# rival SYSTEM DEPTH ARGUMENT...: the driver of rivals/. A library's I/Os in flight are threads.
rival()
{
	local program=bench-rival-${1%disk} args=(--keys=$((set_mib * 256)))
	case $1 in
	rocksdb | leveldb)
		args+=(--path="$tmp/db" --cache=$((set_mib * 2))M --threads="$2") ;;
	rocksdbdisk)
		args+=(--path="$tmp/db" --cache=${cache_mib}M --threads="$2" --direct) ;;
	*)
		args+=(--path="$socket" --iodepth="$2") ;;
	esac
	case $1 in
	extstore)                   program=bench-rival-memcached args+=(--cpus="$client_cpus") ;;
	memcached | redis)          args+=(--cpus="$client_cpus") ;;
	*)                          args+=(--cpus="$client_cpus,$server_cpu") ;;
	esac
	"$program" "${args[@]}" "${@:3}" 2>>"$log" || fail "$program ${args[*]} ${*:3} failed"
}

# fio_on SYSTEM FILE ARGUMENT...
fio_on()
{
	local where
	case $1 in
	pagecache) where=(--filename="$tmp/file" --direct=0 --fallocate=none) ;;
	direct)    where=(--ioengine="external:$engine" --segment="$XSEG_SEGMENT" --volume=bench
		--direct_reads=1 --thread) ;;
	*)         where=(--ioengine=nbd --uri="nbd+unix:///?socket=$socket") ;;
	esac
	run_fio "$2" --cpus_allowed="$client_cpus" --invalidate=0 --allow_file_create=0 \
		"${where[@]}" "${@:3}"
}

fill_system()	# SYSTEM
{
	case $1 in
	cached | volume | direct | filed | cacheddisk)
		# shellcheck disable=SC2046 # words
		fill $(to_xseg "$1")
		[ "$1" != cacheddisk ] || quietly xseg cache flush cached
		[ "$1" != direct ] ||
			fio_on direct "$tmp/fill.json" --rw=read --bs=4k --iodepth=16 ;;
	memcached | redis | extstore)      rival "$1" 16 --rw=fill >/dev/null ;;
	rocksdb | leveldb | rocksdbdisk)   mkdir -p "$tmp/db"; rival "$1" 1 --rw=fill >/dev/null ;;
	nbdkit | nbdkitcache | qemunbd)    fio_on "$1" "$tmp/fill.json" --rw=write --bs=1M \
		--iodepth=4 ;;
	esac
}

load()	# SYSTEM RW DEPTH
{
	local file=$raw/$1-$2-$3-run.$round.json by=() verb=get
	[ "$2" = read ] || verb=put
	case $1 in
	cached | volume | filed | cacheddisk)
		# shellcheck disable=SC2046 # words
		at_random "$1-$2-$3" "$2" "$3" $(to_xseg "$1") ;;
	direct | pagecache | nbdkit | nbdkitcache | qemunbd)
		case $1-$3 in
		pagecache-1) by=(--ioengine=psync) ;;
		pagecache-*) by=(--ioengine=io_uring) ;;
		esac
		fio_on "$1" "$file" "${by[@]}" --rw="rand$2" --bs=4k --iodepth="$3" \
			--runtime="$run_time" --time_based --ramp_time="$ramp" --randseed="$round" ;;
	*)
		case $1-$2 in
		rocksdb-read | leveldb-read) by=(--warm) ;;
		esac
		rival "$1" "$3" --rw="$verb" --runtime="$run_time" --ramp_time="$ramp" \
			--randseed="$round" "${by[@]}" >"$file" ;;
	esac
}

run_system()	# SYSTEM
{
	local depths="1 16"
	[[ " $disk " != *" $1 "* ]] || depths=16
	up "$1"
	each "load $1" "read write" "$depths"
	case $1 in
	cached | volume | direct | filed | cacheddisk) quietly xseg down --force ;;
	*)                                             servers_down ;;
	esac
	rm -rf "$tmp/store" "$tmp/ext" "$tmp/db"
}

for system in ${BENCH_RIVALS:-}; do
	[[ " $ram $disk " == *" $system "* ]] ||
		usage "BENCH_RIVALS: there is no $system; there are $ram $disk"
done
bench_begin xseg xseg-host xbench bench-rival-memcached
socket=$sockets/socket
systems=
each choose "${BENCH_RIVALS:-$ram $disk}"
[ -n "$systems" ] || usage "nothing is left; run make bench-deps, or name others in BENCH_RIVALS"
while next_round; do
	each run_system "$systems"
done
bench_report "xseg and its rivals, DATE: 4 KiB at random over $set_mib MiB, medians of $runs rounds of $seconds s a run; disk: a cache of $cache_mib MiB." \
	"$(cat "$out/left_out.txt" 2>/dev/null)"
page rivals.png 900,480 1,1 "4 KiB at random in memory, 16 in flight" "logscale y" \
	"key inside top right" "xtics rotate by -30" "ylabel 'IOPS'" "yrange [1000:*]"
for rw in read write; do
	bars $rw "${ram// /|} $rw 16" system iops:low:high
done
bench_end
