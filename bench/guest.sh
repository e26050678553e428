#!/bin/bash
# guest.sh - the published job of a cache of this kind, in a virtual machine: fio on the guest's
# disk, which is a volume by NBD.
#
# Usage: bench/guest.sh [--quick]
# Environment: BENCH_RUNS (3), BENCH_SECONDS (3, of one run)
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
# The exported volume is read as by any client of the library: without a request where that pays.
#
# Nothing is bound to a CPU. This one takes minutes: `make bench` leaves it out; bench/run.sh guest
# runs it.
set -u

. "$(dirname "$0")/lib.sh"
. tests/lib/guest.sh
by_form runs 3 1
by_form seconds 3 0.3
by_form set_mib 1024 32
columns="system rw round = iops mean_ns errors"
raw_hint=": the guest's console is in $log"
unbound=1

# for a guest to begin, work and end, on a machine that has other things to do
limit_s=$(awk -v s="$seconds" 'BEGIN { printf "%d", 180 + 4 * s }')
need fio nbdkit
need_made lib/nbdkit-xseg-plugin.so
missing=$(guest_missing)
[ -z "$missing" ] || usage "$missing"

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

# run_guest SYSTEM: what its console has of each run becomes a raw file
run_guest()
{
	local name=$tmp/$1 rw
	guest_append="guest.seed=$round" guest_start "$name" "$tmp/initrd" \
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
			>"$raw/$1-$rw-run.$round.json"
	done
}

cache_options()	# SYSTEM
{
	case $1 in
	fits)    holding $set_mib ;;
	through) holding $set_mib; echo "policy = write-through" ;;
	few)     printf 'memory = %dM\nobjects = %d\n' $((set_mib / 2)) $((set_mib / 8)) ;;
	many)    printf 'memory = %dM\nobjects = %d\n' $((set_mib / 2)) $((set_mib / 4 + 8)) ;;
	esac
}

export_vol()
{
	exec xseg export vol --nbd "$sockets/nbd" >"$tmp/uri"
}

run_system()	# SYSTEM
{
	store_up $((set_mib * 3 / 2 + 256)) filed "dir = $tmp/store" "$(cache_options "$1")" "vol=${set_mib}M"
	fill --volume=vol --size="${set_mib}M"
	quietly xseg volume flush vol
	: >"$tmp/uri"
	serve "[ -s '$tmp/uri' ]" export_vol
	run_guest "$1"
	servers_down
	quietly xseg down
	rm -rf "$tmp/store"
}

bench_begin
guest_fetch || usage "$guest_why"
make_job >"$tmp/job"
guest_image "$tmp/initrd" "$tmp/job" fio || fail "no initramfs"
while next_round; do
	each run_system "alone fits few many through"
done
bench_report "xseg in a guest without KVM, DATE: 4 KiB at random over $set_mib MiB, depth 16, by NBD over filed; medians of $runs rounds of $seconds s a run."
bench_end
