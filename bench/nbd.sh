#!/bin/bash
# nbd.sh - the cost of a volume by NBD, beside nbdkit's own memory plug-in, which does nothing but
# copy.
#
# Usage: bench/nbd.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.2, of one run)
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
#
# In $BUILD/bench/nbd: raw/SYSTEM-RW-DEPTH-run.ROUND.json, by fio. From these files alone are made
# runs.tsv and report.txt.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
seconds=${BENCH_SECONDS:-0.2}
set_mib=256
depths=(1 4 16 64)
reread_depths=(16 64)
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.05}
	set_mib=16
	depths=(1 16)
	reread_depths=(16)
fi
systems=(memory export)
rws=(read write)

# ---- servers ----

servers=()

# serve SYSTEM COMMAND...: a server; it listens when this returns
serve()
{
	local system=$1 i
	shift
	"$@" >>"$log" 2>&1 </dev/null &
	servers+=($!)
	for i in $(seq 200); do
		[ ! -S "$sockets/$system" ] || ! nbdinfo --size "$(uri_of "$system")" >>"$log" 2>&1 ||
			return 0
		kill -0 $! 2>/dev/null || fail "'$*' ended"
		sleep 0.05
	done
	fail "'$*' does not serve"
}

servers_down()
{
	[ ${#servers[@]} -gt 0 ] || return 0
	kill "${servers[@]}" 2>/dev/null
	wait "${servers[@]}" 2>/dev/null
	servers=()
}

uri_of()	# SYSTEM
{
	echo "nbd+unix:///?socket=$sockets/$1"
}

# ---- one run ----

fio_on()	# SYSTEM FILE OPTION...
{
	local system=$1 file=$2
	shift 2
	quietly fio --name=load --ioengine=nbd --uri="$(uri_of "$system")" --size="${set_mib}M" \
		--norandommap --output-format=json --output="$file" "$@"
}

write_all()	# SYSTEM
{
	fio_on "$1" "$tmp/fill.json" --rw=write --bs=1M --iodepth=4
}

run_system()	# SYSTEM RW DEPTH ROUND
{
	local rw=$2 ramp=100ms
	if [ "$rw" = reread ]; then
		write_all "$1"
		rw=read
		ramp=0
	fi
	fio_on "$1" "$raw/$1-$2-$3-run.$4.json" --rw="rand$rw" --bs=4k --iodepth="$3" \
		--time_based --runtime="$run_time" --ramp_time=$ramp --randseed="$4"
}

run_all()	# RW DEPTH ROUND
{
	local system
	for system in "${systems[@]}"; do
		run_system "$system" "$@"
	done
}

# ---- what came out ----

# One line a run: SYSTEM RW DEPTH ROUND IOPS MEAN_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | .[if $n[1] == "reread" then "read" else $n[1] end] as $j |
		$n + [($j.iops | floor), ($j.lat_ns.mean | floor), .error]'
}

report()
{
	echo "xseg by NBD, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random in $set_mib MiB by fio's nbd engine, one connection; medians of $runs rounds of" \
		"$seconds s a run."
	echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, Linux $(uname -r); nothing is bound to a CPU;" \
		"load average before: $load_before."
	echo
	awk -f bench/lib.awk -f bench/nbd.awk "$out/runs.tsv"
}

choose_time
for tool in fio nbdkit nbdinfo; do
	command -v $tool >/dev/null || usage "$tool is not there; run make deps"
done
fio --enghelp=nbd 2>/dev/null | grep -q '^uri' || usage "fio has no engine for NBD"
[ -e "$BUILD/lib/nbdkit-xseg-plugin.so" ] ||
	usage "$BUILD/lib/nbdkit-xseg-plugin.so is not there; run make deps, then make"
bench_begin nbd xseg xseg-host
also_at_the_end servers_down
server_cpu=
store_up $((3 * set_mib + 256)) memd "memory = $((set_mib + 16))M" \
	"memory = $((set_mib + set_mib / 4 + 16))M
$no_flush" volumed
quietly xseg volume create vol --size "${set_mib}M"
serve memory nbdkit --foreground --unix "$sockets/memory" memory "${set_mib}M"
serve export xseg export vol --nbd "$sockets/export"
for system in "${systems[@]}"; do
	write_all "$system"
done
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	for system in "${systems[@]}"; do
		fio_on "$system" "$tmp/warm.json" --rw=read --bs=1M --iodepth=4
	done
	for rw in "${rws[@]}"; do
		for depth in "${depths[@]}"; do
			run_all "$rw" "$depth" "$round"
		done
	done
	for depth in "${reread_depths[@]}"; do
		run_all reread "$depth" "$round"
	done
done
servers_down
quietly xseg down --force
collect >"$out/runs.tsv"
bench_end
