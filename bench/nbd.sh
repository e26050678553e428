#!/bin/bash
# nbd.sh - the cost of a volume by NBD, beside nbdkit's own memory plug-in, which does nothing but
# copy.
#
# Usage: bench/nbd.sh [--quick]
# Environment: BENCH_SECONDS (0.2, of one run)
#
# The load is 4 KiB at random by fio's nbd engine, one connection, 1, 4, 16 and 64 in flight, reads
# and writes:
#   memory        fio -> a socket -> nbdkit memory
#   export        fio -> a socket -> xseg export -> volumed -> cached; the volume fits into the
#                 cache and is in it
#
# Both serve the whole time, side by side, and each point of a round measures one right after the
# other. An idle process sleeps.
#
# A round begins with a read of all, so the reads that follow find pages that were read before: they
# send no request then. It ends with `reread`: reads of the set just after it was written as a
# whole. They count from the first one on, so they include the first read of many pages. Nothing is
# bound to a CPU: the export is two processes where the other is one, and two CPUs are for them and
# the client.
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.2 0.05
by_form set_mib 256 16
by_form ramp 100ms 10ms
by_form depths "1 4 16 64" "1 16"
by_form reread_depths "16 64" 16
columns="system rw depth round = iops mean_ns errors"
systems="memory export"
unbound=1
need fio nbdkit nbdinfo
fio --enghelp=nbd 2>/dev/null | grep -q '^uri' || usage "fio has no engine for NBD"
need_made lib/nbdkit-xseg-plugin.so

fio_on()	# SYSTEM FILE OPTION...
{
	run_fio "$2" --ioengine=nbd --uri="nbd+unix:///?socket=$sockets/$1" "${@:3}"
}

fio_all()	# RW SYSTEM
{
	fio_on "$2" "$tmp/all.json" --rw="$1" --bs=1M --iodepth=4
}

point()	# RW DEPTH SYSTEM
{
	local rw=$1 before=$ramp
	[ "$1" != reread ] || { fio_all write "$3"; rw=read before=0; }
	fio_on "$3" "$raw/$3-$1-$2-run.$round.json" --rw="rand$rw" --bs=4k --iodepth="$2" \
		--time_based --runtime="$run_time" --ramp_time="$before" --randseed="$round"
}

bench_begin xseg xseg-host
store_up $((3 * set_mib + 256)) memd "memory = $((set_mib + 16))M" "$(holding "$set_mib")" "vol=${set_mib}M"
serve "nbdinfo --size 'nbd+unix:///?socket=$sockets/memory'" \
	nbdkit --foreground --unix "$sockets/memory" memory "${set_mib}M"
serve "nbdinfo --size 'nbd+unix:///?socket=$sockets/export'" xseg export vol --nbd "$sockets/export"
each "fio_all write" "$systems"
while next_round; do
	each "fio_all read" "$systems"
	each point "read write" "$depths" "$systems"
	each "point reread" "$reread_depths" "$systems"
done
servers_down
quietly xseg down --force
bench_report "xseg by NBD, DATE: 4 KiB at random in $set_mib MiB by fio's nbd engine, one connection; medians of $runs rounds of $seconds s a run."
bench_end
