#!/bin/bash
# memcached.sh - values by memcached's protocol, beside Debian's memcached.
#
# Usage: bench/memcached.sh [--quick]
# Environment: BENCH_SECONDS (0.5, of one run), BENCH_SIZES (only these sizes of values)
#
# The load is 64 MiB of values at random, of 1 KiB and of 16 KiB, in memory. bench-rival-memcached has
# 32 connections by a socket of the file system. Each has 1 or 16 commands in flight, gets or sets, and
# each value is checked:
#   memcached     memcached with one thread
#   gateway       xseg-memcached -> kvd -> cached, memd below, in one reactor
#
# Servers have the first CPU, the client the others. Both serve the whole time, side by side, and each
# point of a round measures one right after the other. An idle server sleeps. Before a size is measured
# all values of that size are set. Without Debian's memcached this benchmark is skipped, and says so.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.5 0.02
by_form set_mib 64 8
columns="system size rw depth round = iops mean_ns p99_ns errors"
systems="memcached gateway"
sizes=${BENCH_SIZES:-1k 16k}
vars="sizes"
for size in $sizes; do
	[[ $size =~ ^[1-9][0-9]*k$ ]] && [ "${size%k}" -le 512 ] ||
		usage "BENCH_SIZES: $size is not a size such as 1k, up to 512k"
done

# A log of four times the values has little to compact.
gateway_up()
{
	local cache_mib=$((set_mib * 5 + 32)) peer
	{
		printf '[segment]\nname = %s\nmemory = %dM\n' "$XSEG_SEGMENT" $((cache_mib + 128))
		printf '\n[peer memd]\nmemory = 32M\n\n[peer cached]\ndownstream = memd\n'
		printf '%s\n' "memory = ${cache_mib}M" "$no_flush"
		printf '\n[peer kvd]\ndownstream = cached\nsync = never\n'
		printf '%s\n' "size = $((set_mib * 4))M" "keys = $((set_mib * 1024 + 1000))"
		printf '\n[peer gate]\nkind = memcached\nkvd = kvd\nlisten = unix:%s\n' \
			"$sockets/gateway"
		printf '\n[run]\ntogether = memd cached kvd gate\n'
	} >"$out/stack.conf"
	for peer in memd cached kvd gate; do
		sed -i "s/^\[peer $peer\]/&\ncpus = $server_cpu/" "$out/stack.conf"
	done
	quietly xseg up "$out/stack.conf"
}

# on_server SYSTEM SIZE FILE DEPTH ARGUMENT...: a thread of the driver has 256 in flight at most
on_server()
{
	local threads=$((32 * $4 > 256 ? 32 * $4 / 256 : 1))
	bench-rival-memcached --path="$sockets/$1" --cpus="$client_cpus" --value_size="$2" \
		--keys=$((set_mib * 1024 / ${2%k})) --threads=$threads \
		--connections=$((32 / threads)) --iodepth=$((32 * $4 / threads)) \
		"${@:5}" >"$3" 2>>"$log" || fail "$1 does not pass ${*:5} of $2"
}

set_all()	# SIZE SYSTEM
{
	on_server "$2" "$1" "$tmp/fill.json" 1 --rw=fill
}

point()		# SIZE RW DEPTH SYSTEM
{
	local rw=get
	[ "$2" = read ] || rw=put
	on_server "$4" "$1" "$raw/$4-$1-$2-$3-run.$round.json" "$3" --rw=$rw \
		--runtime="$run_time" --randseed="$round"
}

of_size()	# SIZE
{
	each "set_all $1" "$systems"
	each "point $1" "read write" "1 16" "$systems"
}

bench_begin xseg xseg-host xseg-memcached bench-rival-memcached
PATH=$PATH:/usr/sbin command -v memcached >/dev/null || {
	echo "left out: memcached, which needs memcached (make bench-deps)" | tee "$out/report.txt"
	exit 0
}
gateway_up
PATH=$PATH:/usr/sbin serve "[ -S '$sockets/memcached' ]" taskset -c "$server_cpu" memcached \
	-u "$(id -un)" -s "$sockets/memcached" -m $((set_mib * 4)) -t 1
while next_round; do
	each of_size "$sizes"
done
servers_down
quietly xseg down --force
bench_report "xseg by memcached's protocol, DATE: $set_mib MiB of values, 32 connections, 1 and 16 in flight of each; medians of $runs rounds of $seconds s a run."
bench_end
