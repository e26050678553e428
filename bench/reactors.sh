#!/bin/bash
# reactors.sh - two reactors and two clients on two CPUs, against one of each.
#
# Usage: bench/reactors.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.3, of one run)
#
# The load is hits of 4 KiB at random by copy, 16 in flight a client. The set is 256 MiB in cached
# over memd. A and B are the first two available CPUs:
#   pair    one reactor and one client, both on A
#   pairs   two caches in one segment, each with one reactor and a client of its own, one such pair
#           on A and one on B
#   shared  one cache with two reactors, on A and on B, two clients, on A and on B; a client's
#           requests go to both reactors
#   one2    one reactor on A, two clients, on A and on B
#   one1    one reactor on A, one client on B
#   two1    one cache with two reactors, on A and on B, one client on B
#
# Each round runs each system on a stack of its own; ratios are within a round, and figures are
# medians of the rounds.
# Each round runs each system on a stack of its own; ratios are within a round, and figures are
# medians of the rounds.
#
# In $BUILD/bench/reactors: raw/SYSTEM-RW-run.ROUND.json (of pairs the second pair's is
# SYSTEM-RW-beside.ROUND.json). From these files alone are made runs.tsv, results.tsv (medians),
# report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.3}
set_mib=256
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	set_mib=16
fi
systems=(pair pairs shared one2 one1 two1)

# ---- the stacks ----

# peers_of NAME STORE CPUS: a cache and its store, in one process, with a reactor on each of the
# CPUs
peers_of()
{
	local cpus=$3 threads
	threads=$(awk -F , '{ print NF }' <<<"$cpus")
	cat <<-END

		[peer $2]
		kind = memd
		memory = 16M
		threads = $threads
		cpus = $cpus

		[peer $1]
		kind = cached
		downstream = $2
		memory = $((set_mib + set_mib / 4))M
		objects = $((set_mib / 2 + 64))
		$no_flush
		threads = $threads
		cpus = $cpus
	END
}

stack_of()	# SYSTEM
{
	printf '[segment]\nname = %s\nmemory = %dM\n' "$XSEG_SEGMENT" $((set_mib * 3 + 512))
	case $1 in
	pairs)         peers_of cache0 store0 "$a"; peers_of cache1 store1 "$b" ;;
	shared | two1) peers_of cache0 store0 "$a,$b" ;;
	*)             peers_of cache0 store0 "$a" ;;
	esac
}

# Each program that makes load is in a session of its own: the scheduler divides a processor between
# sessions (autogroup), and two programs in one session, on two processors, would have half of a
# processor's weight each.
xbench()
{
	setsid --wait "$BUILD/bin/xbench" "$@"
}

# load FILE TARGET CPUS ARGUMENT...: a client on each of the CPUs
load()
{
	local file=$1 target=$2 client_cpus=$3 nr
	nr=$(awk -F , '{ print NF }' <<<"$3")
	shift 3
	measure "$file" --target="$target" --objects=$((set_mib / 4)) --size=${set_mib}M \
		--numjobs="$nr" "$@"
}

# ---- one run ----

clients_of()	# SYSTEM
{
	case $1 in
	shared | one2) echo "$a,$b" ;;
	one1 | two1)   echo "$b" ;;
	*)             echo "$a" ;;
	esac
}

run_system()	# SYSTEM ROUND
{
	local rw beside='' args
	stack_of "$1" >"$out/stack.conf"
	quietly xseg up "$out/stack.conf"
	load "$tmp/fill.json" cache0 "$b" --rw=write --bs=1M --iodepth=4
	[ "$1" != pairs ] || load "$tmp/fill.json" cache1 "$b" --rw=write --bs=1M --iodepth=4
	for rw in read write; do
		args=(--rw=rand$rw --iodepth=16 --runtime="$run_time" --ramp_time=50ms
			--randseed="$2")
		if [ "$1" = pairs ]; then
			load "$raw/$1-$rw-beside.$2.json" cache1 "$b" "${args[@]}" &
			beside=$!
		fi
		load "$raw/$1-$rw-run.$2.json" cache0 "$(clients_of "$1")" "${args[@]}"
		[ -z "$beside" ] || wait "$beside" || exit 1
	done
	quietly xseg down --force
}

# ---- what came out ----

# One line a run: SYSTEM RW ROUND IOPS MEAN_NS ERRORS. Rates are sums of the clients, means are
# weighted.
collect()
{
	local system rw round
	for system in "${systems[@]}"; do
		for rw in read write; do
			for round in $(seq "$runs"); do
				# `beside` is there for pairs only
				cat "$raw/$system-$rw"-{run,beside}."$round.json" 2>/dev/null |
					jq -s -r --arg system "$system" --arg rw $rw \
					--arg round "$round" '
					[.[].jobs[] | .[$rw] + {error}] as $j | ($j | map(.total_ios) | add) as $ios |
					[$system, $rw, $round, ($j | map(.iops) | add),
						(($j | map(.lat_ns.mean * .total_ios) | add) / ([$ios, 1] | max) | floor),
						($j | map(.error) | add)] | @tsv' || fail "a run of $system is damaged"
			done
		done
	done
}

report()
{
	echo "xseg, reactors and clients on two CPUs, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random over $set_mib MiB by copy, depth 16," \
		"medians of $runs rounds of $seconds s a run."
	machine
	echo "A is CPU $a, B is CPU $b."
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/reactors.awk "$out/runs.tsv"
}

choose_time
bench_begin reactors xseg xseg-host xbench
a=$server_cpu
b=${client_cpus%%,*}
[ "$a" != "$b" ] || echo "bench: with one CPU the figures of reactors.sh say nothing"
for round in $(seq "$runs"); do
	echo "round $round of $runs: ${systems[*]} ..."
	for system in "${systems[@]}"; do
		run_system "$system" "$round"
	done
done
collect >"$out/runs.tsv"
bench_end reactors.gp reactors.png
