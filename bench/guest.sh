#!/bin/bash
# guest.sh - the published job of a cache of this kind, in a virtual machine: fio on the guest's
# disk, which is a volume by NBD.
#
# Usage: bench/guest.sh [--quick]
# Environment: BUILD (build), BENCH_RUNS (3), BENCH_SECONDS (3, of one run)
#
# The load is 4 KiB at random over 1 GiB, 16 in flight, direct: writes, then reads. The guest is
# Debian's cloud kernel in qemu without KVM (tests/lib/guest.sh). So each I/O costs the guest far
# more than all layers below it. A cache's gain shows only where the store is slower than the guest.
# The store is filed on the disk that holds BUILD, past the page cache. Before the runs the volume
# is written once from outside and flushed. The systems are:
#   alone     volumed on the store
#   fits      a cache larger than the set, in write-back
#   few       a cache of half the set, that may have half of the set's objects
#   many      the same, with room for all of them
#   through   as fits, in write-through
#
# Nothing is bound to a CPU. Ratios are to `alone` of the same round, figures are medians of the
# rounds. This one takes minutes: `make bench` leaves it out; bench/run.sh guest runs it.
#
# In $BUILD/bench/guest: raw/SYSTEM-RW-run.ROUND.json, by the guest's fio. From these files alone
# are made runs.tsv and report.txt.
set -u

. "$(dirname "$0")/lib.sh"
. tests/lib/guest.sh
bench_options "$@"
runs=${BENCH_RUNS:-3}
seconds=${BENCH_SECONDS:-3}
set_mib=1024
systems=(alone fits few many through)
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.3}
	set_mib=32
fi

# ---- the guest ----

make_job()
{
	cat <<-END
		until [ -b /dev/vda ]; do sleep 0.1; done
		seed=\$(sed 's/.*guest.seed=//; s/ .*//' /proc/cmdline)
		for rw in write read; do
			fio --name=load --thread --ioengine=libaio --filename=/dev/vda --direct=1 --rw=rand\$rw --bs=4k --iodepth=16 --size=${set_mib}M \
				--time_based --runtime=$run_time --ramp_time=300ms --norandommap --randseed=\$seed --output-format=json --output=/tmp/\$rw >/dev/null
			echo "guest: begin \$rw"
			cat /tmp/\$rw
			echo "guest: end \$rw"
		done
	END
}

# run_guest SYSTEM ROUND: what its console has of each run becomes a raw file
run_guest()
{
	local name=$tmp/$1 rw
	guest_append="guest.seed=$2" guest_start "$name" "$tmp/initrd" \
		-device virtio-blk-pci,drive=disk \
		-blockdev "driver=nbd,node-name=disk,server.type=unix,server.path=$sockets/nbd" ||
		fail "no guest"
	timeout "$limit_s" tail --pid="$guest" -f /dev/null || {
		kill "$guest"
		tail -n 20 "$name.console" >>"$log"
		fail "the guest does not end"
	}
	cat "$name.qemu" "$name.console" >>"$log"
	for rw in write read; do
		tr -d '\r' <"$name.console" |
			sed -n "/^guest: begin $rw\$/,/^guest: end $rw\$/{/^guest: /d;p}" \
			>"$raw/$1-$rw-run.$2.json"
	done
}

# ---- what is below it ----

cache_options()	# SYSTEM
{
	local all=$((set_mib / 4)) large="memory = $((set_mib + set_mib / 4 + 16))M
$no_flush"
	case $1 in
	fits)    echo "$large" ;;
	through) echo "$large"; echo "policy = write-through" ;;
	few)     echo "memory = $((set_mib / 2))M"; echo "objects = $((all / 2))" ;;
	many)    echo "memory = $((set_mib / 2))M"; echo "objects = $((all + 8))" ;;
	esac
}

export_pid=

export_down()
{
	[ -n "$export_pid" ] || return 0
	kill "$export_pid" 2>/dev/null
	wait "$export_pid" 2>/dev/null
	export_pid=
}

export_up()
{
	local i
	xseg export vol --nbd "$sockets/nbd" >"$tmp/uri" 2>>"$log" </dev/null &
	export_pid=$!
	for i in $(seq 200); do
		[ ! -s "$tmp/uri" ] || return 0
		kill -0 "$export_pid" 2>/dev/null || fail "the export ended"
		sleep 0.05
	done
	fail "the export does not serve"
}

run_system()	# SYSTEM ROUND
{
	store_up $((set_mib * 3 / 2 + 256)) filed "dir = $tmp/store" "$(cache_options "$1")" volumed
	quietly xseg volume create vol --size "${set_mib}M"
	measure "$tmp/fill.json" --volume=vol --rw=write --bs=1M --iodepth=4 --size="${set_mib}M"
	quietly xseg volume flush vol
	export_up
	run_guest "$1" "$2"
	export_down
	quietly xseg down
	rm -rf "$tmp/store"
}

# ---- what came out ----

# One line a run: SYSTEM RW ROUND IOPS MEAN_NS ERRORS
collect()
{
	raw_rows '.jobs[0] | .[$n[1]] as $j |
		$n + [($j.iops | floor), ($j.lat_ns.mean | floor), .error]' "the guest's console is in $log"
}

report()
{
	echo "xseg in a guest without KVM, $(date '+%Y-%m-%d %H:%M'): 4 KiB at random over $set_mib MiB, depth 16, by NBD over filed; medians of $runs rounds of" \
		"$seconds s a run."
	echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, Linux $(uname -r); nothing is bound to a CPU;" \
		"load average before: $load_before."
	echo
	awk -f bench/lib.awk -f bench/guest.awk "$out/runs.tsv"
}

choose_time
# for a guest to begin, work and end, on a machine that has other things to do
limit_s=$(awk -v s="$seconds" 'BEGIN { printf "%d", 180 + 4 * s }')
for tool in fio nbdkit; do
	command -v $tool >/dev/null || usage "$tool is not there; run make deps"
done
[ -e "$BUILD/lib/nbdkit-xseg-plugin.so" ] ||
	usage "$BUILD/lib/nbdkit-xseg-plugin.so is not there; run make deps, then make"
missing=$(guest_missing)
[ -z "$missing" ] || usage "$missing"
bench_begin guest xseg xseg-host xbench
guest_fetch || usage "$guest_why"
server_cpu=$(IFS=,; echo "$server_cpu,$client_cpus")
also_at_the_end export_down
make_job >"$tmp/job"
guest_image "$tmp/initrd" "$tmp/job" fio || fail "no initramfs"
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	for system in "${systems[@]}"; do
		run_system "$system" "$round"
	done
done
collect >"$out/runs.tsv"
bench_end
