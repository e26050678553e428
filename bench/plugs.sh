#!/bin/bash
# plugs.sh - plugs and unplugs the cache again and again under verified load: is there ever a pause?
#
# Usage: bench/plugs.sh [--quick]
# Environment: BENCH_SECONDS (6, of one run)
#
# The load is reads and writes of 4 KiB at random through volumed, 16 in flight, all verified. The
# store is memd with a latency of 1 ms, and the volume is three times the cache. Meanwhile the cache
# leaves the path and enters it again, each 50 ms after the one before is done: at least a hundred
# times in five rounds. The peers are in one reactor, the client on the other CPUs.
#
# Pauses are those of bench/pauses.sh. Beside the raw files is done.ROUND, a line for each plug and
# unplug with its time in ms.
set -u

. "$(dirname "$0")/lib.sh"
. bench/pauses.sh
by_form seconds 6 0.6
columns="round = plugs longest_ms iops read_max_ns write_max_ns store_max_ns verify_errors errors"

timed()		# WHAT COMMAND...: a line with what was done, and how long it took
{
	local began
	began=$(date +%s%N)
	quietly "${@:2}"
	echo "$1 $(($(($(date +%s%N) - began)) / 1000000))" >>"$raw/done.$round"
	sleep 0.05
}

# Begins and ends with the cache on the path.
unplug_and_plug()
{
	timed unplug xseg unplug cached
	timed plug xseg plug cached --above memd --below volumed
}

run_line()	# LOAD ROUND
{
	pauses_line "$1" "$2" '[$done | split("\n")[] | select(. != "") | split(" ")[1] | tonumber] |
		{ plugs: length, longest_ms: max }' --rawfile done "$raw/done.$2"
}

collect()
{
	each_run run_line plugs
}

bench_begin
while next_round; do
	pauses_while unplug_and_plug plugs --rw=randrw --bs=4k --iodepth=16
	quietly xseg check
	quietly xseg down
done
bench_report "xseg, plug and unplug, DATE: one after the other, a volume of $set_mib MiB, a cache of $cache_mib MiB, over memd with 1 ms; $runs rounds of $seconds s."
bench_end
