#!/bin/bash
# fio.sh - the cost of fio's engine, and so of the library for volumes, against xbench. xbench needs
# no library.
#
# Usage: bench/fio.sh [--quick]
# Environment: BENCH_SECONDS (0.6, of one run)
#
# The load is 4 KiB at random, 16 in flight, by copy: reads, and writes. The volume fits into the
# cache and is in it. Each round measures three programs on one stack, one after the other: xbench,
# by requests; fio with the engine, also by requests; fio with its own null engine, to show the cost
# of fio itself.
# fio fills its buffers once and keeps no map of the blocks that it has used, because xbench does
# neither.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.6 0.05
by_form set_mib 256 16
columns="system rw round = iops errors"
by_form ramp 100ms 10ms
need fio
need_made lib/fio-xseg.so

fio_at_random()	# SYSTEM RW OPTION...
{
	run_fio "$raw/$1-$2-run.$round.json" --thread --cpus_allowed="$client_cpus" --bs=4k \
		--iodepth=16 --time_based --runtime="$run_time" --ramp_time=$ramp \
		--scramble_buffers=0 --rw="rand$2" --randseed="$round" "${@:3}"
}

bench_begin
store_up $((3 * set_mib + 192)) memd "memory = $((set_mib + 16))M" \
	"memory = $((set_mib + set_mib / 4 + 16))M" "vol=${set_mib}M"
measure "$tmp/fill.json" --volume=vol --rw=write --bs=256k --iodepth=4 --size="${set_mib}M"
while next_round; do
	for rw in read write; do
		at_random xbench-$rw $rw 16 --volume=vol
		fio_at_random engine $rw --ioengine="external:$BUILD/lib/fio-xseg.so" \
			--segment="$XSEG_SEGMENT" --volume=vol --direct_reads=0
		fio_at_random null $rw --ioengine=null
	done
done
quietly xseg down --force
bench_report "xseg, fio's engine, DATE: 4 KiB at random, depth 16, a volume of $set_mib MiB in the cache; medians of $runs rounds of $seconds s a run."
bench_end
