#!/bin/bash
# plugs.sh - plugs and unplugs the cache again and again under verified load: is there ever a pause?
#
# Usage: bench/plugs.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (6, of one run)
#
# The load is reads and writes of 4 KiB at random through volumed, 16 in flight, all verified. The
# store is memd with a latency of 1 ms, and the volume is three times the cache. Meanwhile the cache
# leaves the path and enters it again, each 50 ms after the one before is done: at least a hundred
# times in five rounds. The peers are in one reactor, the client on the other CPUs.
#
# A pause is the time of the slowest read or write of a run. It is compared with the slowest request
# that memd served in the same run.
#
# In $BUILD/bench/plugs: raw/plugs-run.ROUND.json, plugs-stat.ROUND.json (`xseg stat`) and
# done.ROUND, a line for each plug and unplug with its time in ms. From these files alone are made
# runs.tsv and report.txt.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-6}
cache_mib=32
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.6}
	cache_mib=16
fi
set_mib=$((3 * cache_mib))

# ---- one run ----

timed()		# FILE WHAT COMMAND...: a line with what was done, and how long it took
{
	local file=$1 what=$2 began
	shift 2
	began=$(date +%s%N)
	quietly "$@"
	echo "$what $(($(($(date +%s%N) - began)) / 1000000))" >>"$file"
	sleep 0.05
}

# Begins and ends with the cache on the path.
plug_while()	# PID FILE
{
	while kill -0 "$1" 2>>"$log"; do
		timed "$2" unplug xseg unplug cached
		timed "$2" plug xseg plug cached --above memd --below volumed
	done
}

run_load()	# ROUND
{
	local load
	store_up $((2 * set_mib + 256)) memd "memory = $((set_mib + 16))M
latency = 1ms" "memory = ${cache_mib}M" volumed
	quietly xseg volume create vol --size "${set_mib}M"
	measure "$raw/plugs-run.$1.json" --volume=vol --rw=randrw --bs=4k --iodepth=16 \
		--runtime="$run_time" --verify=crc32c --randseed="$1" &
	load=$!
	plug_while $load "$raw/done.$1"
	wait $load || exit 1
	stat_to "$raw/plugs-stat.$1.json"
	quietly xseg check
	quietly xseg down
}

# ---- what came out ----

# One line a run: ROUND PLUGS LONGEST_PLUG_MS IOPS READ_MAX_NS WRITE_MAX_NS STORE_MAX_NS
# VERIFY_ERRORS ERRORS
collect()
{
	local round
	for round in $(seq "$runs"); do
		jq -r --arg round "$round" --rawfile done "$raw/done.$round" \
			--slurpfile stat "$raw/plugs-stat.$round.json" '
			.jobs as $jobs | [$done | split("\n")[] | select(. != "") | split(" ")] as $done |
			[$round, ($done | length), ([$done[][1] | tonumber] | max), ([$jobs[] | .read.iops + .write.iops] | add),
				([$jobs[].read.lat_ns.max] | max), ([$jobs[].write.lat_ns.max] | max),
				($stat[0].peers[] | select(.name == "memd") | .lat_ns.max),
				([$jobs[].verify_errors] | add), ([$jobs[].error] | add)] | @tsv' \
			"$raw/plugs-run.$round.json" || fail "$raw/plugs-run.$round.json is damaged"
	done
}

report()
{
	echo "xseg, plug and unplug, $(date '+%Y-%m-%d %H:%M'): one after the other, a volume of $set_mib MiB, a cache of $cache_mib MiB," \
		"over memd with 1 ms; $runs rounds of $seconds s."
	machine
	echo
	awk -f bench/lib.awk -f bench/plugs.awk "$out/runs.tsv"
}

choose_time
bench_begin plugs xseg xseg-host xbench
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	run_load "$round"
done
collect >"$out/runs.tsv"
bench_end
