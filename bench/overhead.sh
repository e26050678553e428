#!/bin/bash
# overhead.sh - the cost of a cache in which no request hits, and of one in which all hit, against
# the store alone.
#
# Usage: bench/overhead.sh [--quick]
# Environment: BENCH_SECONDS (1, of one point over a store of 1 ms;
#   the others take a fifth of that)
#
# The load is 4 KiB at random, with 16 and with 1 in flight, reads and writes. Each read is a
# request, because the cost of a request is meant:
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
# of `all` also to `fast`, where a cache has nothing to gain. Figures are means of the turns.
#
# Raw files are SYSTEM-RW-DEPTH-run.ROUND.TURN.json, and SYSTEM-stat.ROUND.json of none and all.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 1 0.1
by_form cache_mib 8 4
by_form times 128 32
by_form hit_mib 256 32
set_mib=$((times * cache_mib))
columns="system rw depth round = iops mean_ns errors"
by_form ramp 100ms 10ms

fast_time=$(milliseconds 0.2)
[ "$fast_time" != 0ms ] || usage "BENCH_SECONDS=$seconds is too short; give 0.005 at the least"

# begin STACK TARGET MIB MEMORY MEMD [CACHED]: MIB of it are filled; peers' options as store_up has them
begin()
{
	on "$1" store_up "$4" memd "$5" "${6:-}"
	on "$1" fill --target="$2" --objects=$(($3 / 4))
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

# point DEPTH RW TURN SYSTEM: fast is alone before its store has a latency
point()
{
	local mib=$set_mib stack=$4 target=cached round=$round.$3
	case $4 in
	fast | all) mib=$hit_mib ;;
	esac
	case $4 in
	fast | alone) stack=alone target=memd ;;
	esac
	on "$stack" at_random "$4-$2-$1" "$2" "$1" --target=$target --objects=$((mib / 4))
}

# One line a point and round: means of the turns
collect()
{
	table_of "$columns" | awk '
		BEGIN { FS = OFS = "\t" }
		{ sub(/\..*/, "", $4); k = $1 OFS $2 OFS $3 OFS $4; n[k]++; iops[k] += $5; ns[k] += $6; errors[k] += $7 }
		END { for (k in n) print k, iops[k] / n[k], ns[k] / n[k], errors[k] }' | sort
}

hits_of()	# SYSTEM
{
	jq -s -r 'map(.caches[0]) | (map(.reads) | add) as $reads | (map(.hits) | add) as $hits |
		"\($hits) of \($reads)"' "$raw/$1"-stat.*.json
}

bench_begin
for stack in alone none all; do
	also_at_the_end end_segment "$XSEG_SEGMENT-$stack"
done
usual_time=$run_time
while next_round; do
	begin_all
	run_time=$fast_time
	each point "1 16" "read write" 1 "fast all"
	on alone quietly xseg peer set memd latency=1ms
	run_time=$(milliseconds 0.25)	# four turns
	each point "1 16" "read write" "1 2 3 4" "alone none"
	for stack in none all; do
		on $stack stat_to "$raw/$stack-stat.$round.json"
	done
	for stack in alone none all; do
		on $stack quietly xseg down --force
	done
done
run_time=$usual_time
bench_report "xseg, the cost of a cache without hits, and of one with nothing else, DATE: medians of $runs rounds; over memd with 1 ms a set of $set_mib MiB, a cache of $cache_mib MiB and $run_time a run, else a set of $hit_mib MiB that fits, and $fast_time." \
	"Reads that hit: $(hits_of none) where none should, $(hits_of all) where all should."
page overhead.png 900,800 2,2 "a cache without hits, and one with nothing else" "xrange [-0.6:3.6]"
while IFS=: read -r words what; do
	panel "$what: rate" "yrange [0:*]"
	bars "" "$words" rw,depth ratio:low:high
	mark 1
	panel "$what: mean latency, us above" "yrange [*:*]"
	bars "" "$words" rw,depth over_ns:low_ns:high_ns 1e3
done <<-END
	none alone:no hits, over a store of 1 ms
	all fast:all hits, to a store in memory
END
bench_end
