#!/bin/bash
# plugs.sh - plugs and unplugs the cache again and again under verified load: is there ever a pause?
#
# Usage: bench/plugs.sh [--quick]
# Environment: BENCH_SECONDS (6, of one run)
#
# A load is reads and writes of 4 KiB at random, 16 in flight, all verified. The store is memd with a
# latency of 1 ms, and the data of a load is three times the cache:
#   one      through volumed, the only peer that sends to the cache
#   two      the same, and `beside` at the same time
#   beside   through a second peer that sends to the cache (tests/tools/relay.c)
# Meanwhile the cache leaves the path and enters it again, each 50 ms after the one before is done: at
# least a hundred times in five rounds. The peers are in one reactor, the second peer in a process of
# its own on the same CPU, the clients on the other CPUs.
#
# Pauses are those of bench/pauses.sh. Beside the raw files is LOAD-done.ROUND, a line for each plug
# and unplug with its time in ms.
set -u

. "$(dirname "$0")/lib.sh"
. bench/pauses.sh
by_form seconds 6 0.6
columns="load round = plugs longest_ms iops read_max_ns write_max_ns store_max_ns verify_errors errors"
loads="one two beside"
need_made tests/relay

timed()		# LOAD WHAT COMMAND...: a line with what was done, and how long it took
{
	local began
	began=$(date +%s%N)
	quietly "${@:3}"
	echo "$2 $(($(($(date +%s%N) - began)) / 1000000))" >>"$raw/$1-done.$round"
	sleep 0.05
}

# Each begins and ends with the cache on the path.
below_one()
{
	timed one unplug xseg unplug cached
	timed one plug xseg plug cached --above memd --below volumed
}

below_two()
{
	timed two unplug xseg unplug cached
	timed two plug xseg plug cached --above memd --below volumed,second
}

run_one()
{
	pauses_while below_one one --rw=randrw --bs=4k --iodepth=16
}

run_two()
{
	local serves='xseg --json peer list | jq -e ".[] | select(.name == \"second\").state == \"running\""'
	pauses_up
	serve "$serves" ${server_cpu:+taskset -c "$server_cpu"} "$BUILD/tests/relay" --name second \
		--downstream cached
	pauses_begin two --volume=vol --rw=randrw --bs=4k --iodepth=16
	pauses_begin beside --target=second --objects=$((set_mib / 4)) --rw=randrw --bs=4k --iodepth=16
	pauses_do below_two two beside
	cp "$raw/two-done.$round" "$raw/beside-done.$round"
	servers_down
}

run_line()	# LOAD ROUND
{
	pauses_line "$1" "$2" '[$done | split("\n")[] | select(. != "") | split(" ")[1] | tonumber] |
		{ plugs: length, longest_ms: max }' --rawfile done "$raw/$1-done.$2"
}

collect()
{
	each_run run_line "$loads"
}

bench_begin
while next_round; do
	for load in one two; do
		run_$load
		quietly xseg check
		quietly xseg down
	done
done
bench_report "xseg, plug and unplug, DATE: one after the other, $set_mib MiB for each load, a cache of $cache_mib MiB, over memd with 1 ms; $runs rounds of $seconds s a load."
bench_end
