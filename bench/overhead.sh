#!/bin/bash
# overhead.sh - the cost of a cache in which no request hits, and of one in which all hit, against
# the store alone.
#
# Usage: bench/overhead.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (1, of one point over a store of 1 ms;
#   the others take a fifth of that)
#
# The load is 4 KiB at random, with 16 and with 1 in flight, reads and writes:
#   alone   memd with a latency of 1 ms, over a set 128 times the cache (32 times with --quick)
#   none    a cache over that, write-through: reads are all loaded, writes all go to the store
#   fast    memd without any latency, over a set of 256 MiB (32 with --quick): a store that is as
#           fast as memory
#   all     a cache that holds that set, write-back, over memd with 1 ms: all are hits, and nothing
#           is flushed
#
# Cache and store are in one reactor. The stacks of a round run side by side (alone and fast are
# one). Compared systems are measured one right after the other; over a store of 1 ms four times by
# turns. On some hosts the delay of a wake-up changes within seconds, by more than a cache costs.
#
# Ratios and differences are to the store alone of the same round: of `none` and `all` to `alone`,
# of `all` also to `fast`, where a cache has nothing to gain. Figures are means of the turns, and
# medians of the rounds.
#
# In $BUILD/bench/overhead: raw/SYSTEM-RW-DEPTH-run.ROUND.TURN.json and raw/SYSTEM-stat.ROUND.json
# (of none and all). From these files alone are made runs.tsv, results.tsv (medians), report.txt and
# the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-1}
cache_mib=8
times=128
hit_mib=256
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.1}
	cache_mib=4
	times=32
	hit_mib=32
fi
set_mib=$((times * cache_mib))
rws=(read write)
depths=(1 16)
stacks=(alone none all)
turns=4

# ---- one run ----

# point SYSTEM RW DEPTH TIME ROUND TURN: fast is alone before its store has a latency
point()
{
	local mib=$set_mib stack=$1 target=cached
	case $1 in
	fast | all) mib=$hit_mib ;;
	esac
	case $1 in
	fast | alone)
		stack=alone
		target=memd
		;;
	esac
	on "$stack" measure "$raw/$1-$2-$3-run.$5.$6.json" --target=$target --objects=$((mib / 4)) \
		--rw="rand$2" --iodepth="$3" --runtime="$4" --ramp_time=100ms --randseed="$5$6"
}

# pairs SYSTEM OTHER TIME TURNS ROUND: what is compared is measured by turns
pairs()
{
	local rw depth turn system
	for depth in "${depths[@]}"; do
		for rw in "${rws[@]}"; do
			for turn in $(seq "$4"); do
				for system in "$1" "$2"; do
					point "$system" "$rw" "$depth" "$3" "$5" "$turn"
				done
			done
		done
	done
}

# begin STACK TARGET MIB MEMORY MEMD [CACHED]: MIB of it are filled; peers' options as store_up has them
begin()
{
	on "$1" store_up "$4" memd "$5" "${6:-}"
	on "$1" measure "$tmp/fill.json" --target="$2" --objects=$(($3 / 4)) --rw=write --bs=1M \
		--iodepth=4
}

begin_all()
{
	local memory=$((set_mib + set_mib / 16 + 256))
	begin alone memd $set_mib $memory "memory = $((set_mib + 16))M"
	begin none cached $set_mib $memory "memory = $((set_mib + 16))M" \
		"$(printf 'memory = %dM\npolicy = write-through\n' $cache_mib)"
	# the store serves nobody but the cache; what that has kept of it goes
	on none quietly xseg cache drop cached
	on none quietly xseg peer set memd latency=1ms
	begin all cached $hit_mib $((hit_mib * 2 + 384)) "$(printf 'memory = 16M\nlatency = 1ms\n')" \
		"$(printf '%s\n' "memory = $((hit_mib + hit_mib / 4))M" "$no_flush")"
}

end_all()	# ROUND
{
	local stack
	for stack in none all; do
		on "$stack" stat_to "$raw/$stack-stat.$1.json"
	done
	for stack in "${stacks[@]}"; do
		on "$stack" quietly xseg down --force
	done
}

# ---- what came out ----

# One line a point and round: SYSTEM RW DEPTH ROUND IOPS MEAN_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | .[$n[1]] as $j | $n[:3] + ($n[3] | split(".")) +
		[$j.iops, $j.lat_ns.mean, .error]' | awk '
		BEGIN { FS = OFS = "\t" }
		{ k = $1 OFS $2 OFS $3 OFS $4; n[k]++; iops[k] += $6; ns[k] += $7; errors[k] += $8 }
		END { for (k in n) print k, iops[k] / n[k], ns[k] / n[k], errors[k] }' | sort
}

hits_of()	# SYSTEM
{
	jq -s -r 'map(.caches[0]) | (map(.reads) | add) as $reads | (map(.hits) | add) as $hits |
		"\($hits) of \($reads)"' "$raw/$1"-stat.*.json
}

report()
{
	echo "xseg, the cost of a cache without hits, and of one with nothing else, $(date '+%Y-%m-%d %H:%M'):" \
		"medians of $runs rounds; over memd with 1 ms a set of $set_mib MiB, a cache of $cache_mib MiB" \
		"and $run_time a run, else a set of $hit_mib MiB that fits, and $fast_time."
	machine
	echo "Reads that hit: $(hits_of none) where none should, $(hits_of all) where all should."
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/overhead.awk "$out/runs.tsv"
}

choose_time
fast_time=$(awk -v s="$seconds" 'BEGIN { printf "%dms", s * 200 }')
turn_time=$(awk -v s="$seconds" -v n=$turns 'BEGIN { printf "%dms", s * 1000 / n }')
[ "$fast_time" != 0ms ] || usage "BENCH_SECONDS=$seconds is too short; give 0.005 at the least"
bench_begin overhead xseg xseg-host xbench
echo "bench: 4 points on 4 systems, $runs rounds of $run_time and $fast_time each: about" \
	"$(awk -v r="$runs" -v s="$seconds" 'BEGIN { printf "%d", r * (9 * s + 16 * 0.2 + 5) / 60 + 1 }') minutes"
for stack in "${stacks[@]}"; do
	also_at_the_end end_segment "$XSEG_SEGMENT-$stack"
done
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	begin_all
	pairs fast all "$fast_time" 1 "$round"
	on alone quietly xseg peer set memd latency=1ms
	pairs alone none "$turn_time" $turns "$round"
	end_all "$round"
done
collect >"$out/runs.tsv"
bench_end overhead.gp overhead.png
