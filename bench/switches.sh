#!/bin/bash
# switches.sh - switches the policy ten times a second under verified load: is there ever a pause?
#
# Usage: bench/switches.sh [--quick]
# Environment: BENCH_SECONDS (4, of one run)
#
# The load is reads and writes through volumed and cached over memd with a latency of 1 ms, all
# verified. The volume is three times the cache. Meanwhile the four policies of the cache follow
# each other, one every 100 ms. With the defaults each load runs half a minute:
#   small   blocks of 4 KiB at random, 16 in flight
#   mixed   512 bytes to 64 KiB on sectors, with discards, write-zeroes and FLUSHes, two clients
#           with 8 in flight each
#
# Pauses are those of bench/pauses.sh. FLUSHes take as long as the data that they flush, and are not
# compared.
#
# Raw files are LOAD-WHAT.ROUND.json, where WHAT is run, stat (`xseg stat`) or cache (`xseg cache
# status`). results.tsv has a line for each 100 ms of the first round, for the plot.
set -u

. "$(dirname "$0")/lib.sh"
. bench/pauses.sh
by_form seconds 4 0.6
columns="load round = iops read_max_ns write_max_ns store_max_ns least_share verify_errors errors"
policies=(write-back write-around write-through pass-through)
loads="small mixed"

load_options()	# LOAD
{
	case $1 in
	small) echo --rw=randrw --bs=4k --iodepth=16 ;;
	mixed) echo --rw=randrw --rwmixread=40 --bsrange=512-64k --iodepth=8 \
		--numjobs=2 --fsync=50 --opmix=trim:3,write_zeroes:3 ;;
	esac
}

next_policy()
{
	quietly xseg cache set cached policy="${policies[nr_switches++ % ${#policies[@]}]}"
	sleep 0.1
}

run_load()	# LOAD
{
	nr_switches=0
	# shellcheck disable=SC2046 # options are words
	pauses_while next_policy "$1" $(load_options "$1") --status-interval=100ms
	xseg --json cache status cached >"$raw/$1-cache.$round.json" 2>>"$log" ||
		fail "xseg cache status failed"
	quietly xseg down --force
}

run_line()	# LOAD ROUND
{
	pauses_line "$1" "$2" '{ least_share: ($cache[0] | ([.writes_by[]] | min) * 100 / .writes) }' \
		--slurpfile cache "$raw/$1-cache.$2.json"
}

collect()
{
	each_run run_line "$loads"
}

# One line a sample of the first round: for the plot
samples()	# LOAD
{
	jq -r --arg load "$1" '.samples | to_entries[] |
		[$load, (.key + 1) / 10, .value.read.iops + .value.write.iops, .value.read.lat_ns.max, .value.write.lat_ns.max] |
		@tsv' "$raw/$1-run.1.json" || fail "$raw/$1-run.1.json is damaged"
}

bench_begin
while next_round; do
	each run_load "$loads"
done
bench_report "xseg, switching policies, DATE: one switch every 100 ms, a volume of $set_mib MiB, a cache of $cache_mib MiB, over memd with 1 ms; $runs rounds of $seconds s a load."
{
	printf 'load\tseconds\tiops\tread_max_ns\twrite_max_ns\n'
	each samples "$loads"
} >"$out/results.tsv"
page switches.png 900,600 2,1 "the policy is switched every 100 ms: the slowest request of each 100 ms" \
	"logscale y" "xlabel 'seconds'" "ylabel 'ms'"
for load in $loads; do
	panel "$load"
	curve reads "$load" seconds read_max_ns 1e6
	curve writes "$load" seconds write_max_ns 1e6
	mark 20 "20 ms"
done
bench_end
