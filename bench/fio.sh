#!/bin/bash
# fio.sh - the cost of fio's engine, and so of the library for volumes, against xbench. xbench needs
# no library.
#
# Usage: bench/fio.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.6, of one run)
#
# The load is 4 KiB at random, 16 in flight, by copy: reads, and writes. The volume fits into the
# cache and is in it. Each round measures three programs on one stack, one after the other: xbench;
# fio with the engine; fio with its own null engine, which shows the cost of fio itself. fio fills
# its buffers once and keeps no map of the blocks that it has used, because xbench does neither.
#
# In $BUILD/bench/fio: raw/SYSTEM-RW-run.ROUND.json. From these files alone are made runs.tsv and
# report.txt.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.6}
set_mib=256
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.05}
	set_mib=16
fi
rws=(read write)
systems=(xbench engine null)
engine=$BUILD/lib/fio-xseg.so

# ---- one run ----

run_fio()	# FILE OPTION...
{
	local file=$1
	shift
	quietly fio --name=bench --thread --cpus_allowed="$client_cpus" --bs=4k --iodepth=16 \
		--size="${set_mib}M" --time_based --runtime="$run_time" \
		--ramp_time=100ms --norandommap --scramble_buffers=0 --output-format=json \
		--output="$file" "$@"
}

run_system()	# SYSTEM RW ROUND
{
	local file=$raw/$1-$2-run.$3.json
	case $1 in
	xbench) measure "$file" --volume=vol --rw="rand$2" --bs=4k --iodepth=16 \
		--runtime="$run_time" --ramp_time=100ms --randseed="$3" ;;
	engine) run_fio "$file" --ioengine="external:$engine" --segment="$XSEG_SEGMENT" \
		--volume=vol --rw="rand$2" --randseed="$3" ;;
	null) run_fio "$file" --ioengine=null --rw="rand$2" --randseed="$3" ;;
	esac
}

# ---- what came out ----

# One line a run: SYSTEM RW ROUND IOPS ERRORS
collect()
{
	raw_rows '$n + [([.jobs[] | .[$n[1]].iops] | add), ([.jobs[].error] | add)]'
}

report()
{
	echo "xseg, fio's engine, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random, depth 16, a volume of $set_mib MiB in the cache;" \
		"medians of $runs rounds of $seconds s a run."
	machine
	echo
	awk -f bench/lib.awk -f bench/fio.awk "$out/runs.tsv"
}

choose_time
command -v fio >/dev/null || usage "fio is not there; run make deps"
[ -e "$engine" ] || usage "$engine is not there; run make deps, then make"
bench_begin fio xseg xseg-host xbench
store_up $((3 * set_mib + 192)) memd "memory = $((set_mib + 16))M" \
	"memory = $((set_mib + set_mib / 4 + 16))M" volumed
quietly xseg volume create vol --size "${set_mib}M"
measure "$tmp/fill.json" --volume=vol --rw=write --bs=256k --iodepth=4 --size="${set_mib}M"
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	for rw in "${rws[@]}"; do
		for system in "${systems[@]}"; do
			run_system "$system" "$rw" "$round"
		done
	done
done
quietly xseg down --force
collect >"$out/runs.tsv"
bench_end
