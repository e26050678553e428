#!/bin/bash
# hits.sh - what a hit of 4 KiB to 64 KiB costs.
#
# Usage: bench/hits.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (1, of one run), BENCH_SET (size of the set;
#   else 2G, or what a quarter of the free memory allows)
#
# Three systems do the same I/O at random over the same set, by copy, everything in RAM:
#   limit    bench-limit: lanes, a lookup, one memcpy() a page; no cache (bench/limits/limit.c)
#   cached   xbench -> cached, with memd below it, in one process and one reactor
#   volume   xbench -> volumed -> cached -> memd, in one process and one reactor
# The server has the first CPU that is there, the clients have the others. `threads` are clients: each
# has a port of its own and `depth` I/Os in flight. The set is written once in sequence before it is
# measured; watermark and age of dirty data are set so that nothing is flushed meanwhile.
#
# One round measures every point once on every system, on a stack made for it; points are medians of
# the rounds, with the lowest and the highest beside them. What xbench and bench-limit say is kept as
# JSON in $BUILD/bench/hits/raw, one file a run: SYSTEM-RW-BS-DEPTH-THREADS.ROUND.json. From these alone
# runs.tsv, results.tsv, report.txt and the plots are made.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-1}
sizes=(4k 16k 64k)
depths=(1 4 16)
threads=(1 2)
goal=1000000

if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-3}
	seconds=${BENCH_SECONDS:-0.3}
	sizes=(4k)
	depths=(1 16)
	threads=(1)
fi

# ---- the machine ----

choose_set()
{
	local free fit
	free=$(free_mib)
	fit=$((free / 4 / 256 * 256))
	set_mib=$((fit < 2048 ? fit : 2048))
	if [[ ${BENCH_SET:-} =~ ^([1-9][0-9]{0,5})([mMgG])$ ]]; then
		case ${BASH_REMATCH[2]} in
		[gG]) set_mib=$((BASH_REMATCH[1] * 1024)) ;;
		*)    set_mib=$((BASH_REMATCH[1] / 4 * 4)) ;;
		esac
	elif [ -n "${BENCH_SET:-}" ]; then
		usage "BENCH_SET=$BENCH_SET is not a size such as 512M or 2G"
	fi
	[ "$set_mib" -ge 64 ] || usage "a set of $set_mib MiB is too small; $free MiB of memory are free"
}

# ---- one run ----

# point SYSTEM RW BS DEPTH THREADS ROUND: the name of its raw file
point()
{
	echo "$raw/$1-$2-$3-$4-$5.$6.json"
}

limit_run()	# MODE SYSTEM RW BS DEPTH THREADS ROUND
{
	local mode=$1
	shift
	bench-limit --mode="$mode" --rw="rand$2" --bs="$3" --iodepth="$4" --numjobs="$5" \
		--size="${set_mib}M" --runtime="$run_time" --randseed="$6" \
		--cpus="$server_cpu,$client_cpus" --output-format=json >"$(point "$@")" 2>>"$log" ||
		fail "bench-limit --mode=$mode failed"
}

# load SYSTEM ARGUMENT...: xbench on the clients' CPUs
load()
{
	local to=(--target=cached --objects=$((set_mib / 4)) --object_size=4M)
	[ "$1" = cached ] || to=(--volume=bench)
	shift
	xbench "${to[@]}" --size="${set_mib}M" --cpus="$client_cpus" --output-format=json "$@" \
		2>>"$log" || fail "xbench ${to[*]} $* failed"
}

stack_run()	# SYSTEM RW BS DEPTH THREADS ROUND
{
	load "$1" --rw="rand$2" --bs="$3" --iodepth="$4" --numjobs="$5" --runtime="$run_time" \
		--ramp_time=50ms --randseed="$6" --output="$(point "$@")"
}

# each FUNCTION ARGUMENT... -- ROUND: with every point
each()
{
	local front=() rw bs depth nr
	while [ "$1" != -- ]; do
		front+=("$1")
		shift
	done
	for rw in read write; do
		for bs in "${sizes[@]}"; do
			for depth in "${depths[@]}"; do
				for nr in "${threads[@]}"; do
					"${front[@]}" "$rw" "$bs" "$depth" "$nr" "$2"
				done
			done
		done
	done
}

limit_round()	# ROUND
{
	local depth
	each limit_run copy limit -- "$1"
	for depth in "${depths[@]}"; do
		limit_run echo echo read 4k "$depth" 1 "$1"
		limit_run loan lookup read 4k "$depth" 1 "$1"
	done
}

# ---- the stacks ----

write_stack()	# SYSTEM
{
	local peers="cached memd"
	[ "$1" = cached ] || peers="volumed cached memd"
	cat <<-END
		# Everything is in one reactor on CPU $server_cpu.
		# The cache holds the whole set and flushes nothing by itself.
		[segment]
		name = $XSEG_SEGMENT
		memory = $((set_mib + set_mib / 3 + 512))M

		[peer memd]
		memory = 64M
		cpus = $server_cpu

		[peer cached]
		downstream = memd
		memory = $((set_mib + set_mib / 4))M
		objects = $((set_mib / 2 + 64))
		dirty_high = 99
		dirty_low = 98
		dirty_age = 1h
		cpus = $server_cpu
	END
	[ "$1" = cached ] ||
		printf '\n[peer volumed]\ndownstream = cached\ncpus = %s\n' "$server_cpu"
	printf '\n[run]\ntogether = %s\n' "$peers"
}

stack_up()	# SYSTEM
{
	write_stack "$1" >"$out/$1.conf"
	quietly xseg up "$out/$1.conf"
	[ "$1" = cached ] || quietly xseg volume create bench --size "${set_mib}M"
	load "$1" --rw=write --bs=1M --iodepth=4 >/dev/null
}

# What did not hit or was flushed between two looks makes the figures another thing than hits.
counters()
{
	xseg --json cache status cached 2>>"$log" |
		jq -r '"\(.reads + .writes) \(.misses + .partial) \(.flushed_bytes)"'
}

stack_round()	# SYSTEM ROUND
{
	local before after
	stack_up "$1"
	read -r -a before < <(counters) || fail "cached shows no counters"
	each stack_run "$1" -- "$2"
	read -r -a after < <(counters) || fail "cached shows no counters"
	echo "$1 $((after[0] - before[0])) $((after[1] - before[1])) $((after[2] - before[2]))" \
		>>"$out/hits.txt"
	quietly xseg down --force
}

# ---- what came out ----

# One line a run, as hits_medians.awk wants it. Rates are sums of the clients, means are weighted, percentiles
# are those of the worst client.
collect()
{
	local file name
	for file in "$raw"/*.json; do
		name=$(basename "$file" .json)
		name=${name%.*}
		jq -r --arg name "${name//-/ }" '
			($name | split(" ")) as $n |
			[.jobs[] | .[$n[1]] + {error}] as $j |
			($j | map(.total_ios) | add) as $ios |
			$n + [
				($j | map(.iops) | add),
				($j | map(.bw_bytes) | add),
				(($j | map(.lat_ns.mean * .total_ios) | add) / ([$ios, 1] | max) | floor),
				($j | map(.lat_ns.percentile["50.000000"]) | max),
				($j | map(.lat_ns.percentile["99.000000"]) | max),
				($j | map(.error) | add)
			] | @tsv' "$file" || fail "$file is damaged"
	done
}

hits()
{
	awk '{ all[$1] += $2; miss[$1] += $3; flushed[$1] += $4 }
	END {
		for (s in all)
			printf "%s: of %.0f requests %d were no hits; %d bytes were flushed meanwhile\n", s,
				all[s], miss[s], flushed[s]
	}' "$out/hits.txt" | sort
}

report()
{
	echo "xseg benchmarks of $(date '+%Y-%m-%d %H:%M'): hits by copy, at random over $set_mib MiB," \
		"$runs runs of $seconds s each."
	machine
	echo "IOPS are medians; low-high are the slowest and the fastest run in percent of the median;" \
		"ratios are to the bare limit."
	echo
	awk -v sizes="${sizes[*]}" -v depths="${depths[*]}" -v threads="${threads[*]}" -v goal="$goal" \
		-v load="$load_before" -f bench/hits.awk "$out/results.tsv"
	hits
}

choose_time
choose_set
bench_begin hits xseg xseg-host xbench bench-limit
points=$((2 * ${#sizes[@]} * ${#depths[@]} * ${#threads[@]}))
minutes=$(awk -v n="$points" -v s="$seconds" -v r="$runs" \
	'BEGIN { printf "%d", r * (n * 3 * (s + 0.4) + 20) / 60 + 1 }')
echo "bench: $points points on 3 systems, $runs rounds of $run_time each: about $minutes minutes"
for round in $(seq "$runs"); do
	echo "round $round of $runs: the bare limit ..."
	limit_round "$round"
	echo "round $round of $runs: through cached ..."
	stack_round cached "$round"
	echo "round $round of $runs: through volumed and cached ..."
	stack_round volume "$round"
done
collect >"$out/runs.tsv"
awk -f bench/lib.awk -f bench/hits_medians.awk "$out/runs.tsv" >"$out/results.tsv"
bench_end hits.gp iops.png bandwidth.png
