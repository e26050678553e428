#!/bin/bash
# switches.sh - switches the policy ten times a second under verified load: is there ever a pause?
#
# Usage: bench/switches.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (4, of one run)
#
# The load is reads and writes through volumed and cached over memd with a latency of 1 ms, all
# verified. The volume is three times the cache. Meanwhile the four policies of the cache follow
# each other, one every 100 ms. With the defaults each load runs half a minute:
#   small   blocks of 4 KiB at random, 16 in flight
#   mixed   512 bytes to 64 KiB on sectors, with discards, write-zeroes and FLUSHes, two clients
#           with 8 in flight each
#
# Each round runs both, each on a stack of its own. The peers are in one reactor, the clients on the
# other CPUs.
# Each round runs both, each on a stack of its own. The peers are in one reactor, the clients on the
# other CPUs.
#
# A pause is the time of the slowest read or write of a run. It is compared with the slowest request
# that memd served in the same run. FLUSHes take as long as the data that they flush, and are not
# compared.
#
# In $BUILD/bench/switches: raw/LOAD-WHAT.ROUND.json, where WHAT is run, stat (`xseg stat`) or cache
# (`xseg cache status`). From these files alone are made runs.tsv, results.tsv (a line for each 100
# ms of the first round, for the plot), report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-4}
cache_mib=32
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-1.2}
	cache_mib=16
fi
set_mib=$((3 * cache_mib))
policies=(write-back write-around write-through pass-through)
loads=(small mixed)

# ---- one run ----

load_options()	# LOAD
{
	case $1 in
	small) echo --rw=randrw --bs=4k --iodepth=16 ;;
	mixed) echo --rw=randrw --rwmixread=40 --bsrange=512-64k --iodepth=8 \
		--numjobs=2 --fsync=50 \
		--opmix=trim:3,write_zeroes:3 ;;
	esac
}

# One switch every 100 ms, until the load is over.
switch_while()	# PID
{
	local i=0
	while kill -0 "$1" 2>>"$log"; do
		quietly xseg cache set cached policy="${policies[i++ % 4]}"
		sleep 0.1
	done
}

run_load()	# LOAD ROUND
{
	local load
	store_up $((2 * set_mib + 256)) memd "memory = $((set_mib + 16))M
latency = 1ms" "memory = ${cache_mib}M" volumed
	quietly xseg volume create vol --size "${set_mib}M"
	# shellcheck disable=SC2046 # options are words
	measure "$raw/$1-run.$2.json" --volume=vol $(load_options "$1") --runtime="$run_time" \
		--verify=crc32c \
		--randseed="$2" --status-interval=100ms &
	load=$!
	switch_while $load
	wait $load || exit 1
	stat_to "$raw/$1-stat.$2.json"
	xseg --json cache status cached >"$raw/$1-cache.$2.json" 2>>"$log" ||
		fail "xseg cache status failed"
	quietly xseg down --force
}

# ---- what came out ----

# One line a run: LOAD ROUND IOPS READ_MAX_NS WRITE_MAX_NS STORE_MAX_NS LEAST_SHARE_PERCENT
# VERIFY_ERRORS ERRORS
collect()
{
	local load round
	for load in "${loads[@]}"; do
		for round in $(seq "$runs"); do
			jq -r --arg load "$load" --arg round "$round" \
				--slurpfile stat "$raw/$load-stat.$round.json" --slurpfile cache \
				"$raw/$load-cache.$round.json" '
				.jobs as $jobs | $cache[0] as $c |
				[$load, $round, ([$jobs[] | .read.iops + .write.iops] | add),
					([$jobs[].read.lat_ns.max] | max), ([$jobs[].write.lat_ns.max] | max),
					($stat[0].peers[] | select(.name == "memd") | .lat_ns.max),
					([$c.writes_by[]] | min * 100 / $c.writes),
					([$jobs[].verify_errors] | add), ([$jobs[].error] | add)] | @tsv' \
				"$raw/$load-run.$round.json" ||
				fail "$raw/$load-run.$round.json is damaged"
		done
	done
}

# One line a sample of the first round: LOAD SECONDS IOPS READ_MAX_NS WRITE_MAX_NS
samples()
{
	local load
	printf 'load\tseconds\tiops\tread_max_ns\twrite_max_ns\n'
	for load in "${loads[@]}"; do
		jq -r --arg load "$load" '.samples | to_entries[] |
			[$load, (.key + 1) / 10, .value.read.iops + .value.write.iops, .value.read.lat_ns.max, .value.write.lat_ns.max] |
			@tsv' "$raw/$load-run.1.json" || fail "$raw/$load-run.1.json is damaged"
	done
}

report()
{
	echo "xseg, switching policies, $(date '+%Y-%m-%d %H:%M'): one switch every 100 ms, a volume of $set_mib MiB, a cache of" \
		"$cache_mib MiB, over memd with 1 ms; $runs rounds of $seconds s a load."
	machine
	echo
	awk -f bench/lib.awk -f bench/switches.awk "$out/runs.tsv"
}

choose_time
bench_begin switches xseg xseg-host xbench
for round in $(seq "$runs"); do
	for load in "${loads[@]}"; do
		echo "round $round of $runs: $load ..."
		run_load "$load" "$round"
	done
done
collect >"$out/runs.tsv"
samples >"$out/results.tsv"
bench_end switches.gp switches.png
