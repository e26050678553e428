#!/bin/bash
# kvd_power.sh - the power fails below a kvd: the file system of its store is shut down without its
# log, under load. All that was forced or flushed is there, no value and no batch is half there, and
# what the first look does not show never comes back.
#
# A file system that is shut down so forgets all that it has not made durable: data in the page
# cache, new files, and their sizes. Its mounts are in a mount namespace of its own, so they go with
# its last process.
#
# A round that fails leaves $BUILD/tests/log/kvd_power.KIND.POLICY.SYNC.DIRECT: the disk as it was
# after each loss of power, the logs, and what the programs said.
# Environment: ROUNDS (an extended regular expression over such names; the others are left out)
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench kvd cached filed jq python3 unshare mkfs.ext4
[ "$(id -u)" = 0 ] || skip_all "only root may mount"
if [ -z "${OWN_MOUNTS:-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "mount namespaces are not allowed"
	exec env OWN_MOUNTS=1 unshare --mount bash "$root/tests/system/$test_name.sh"
fi
export PYTHONPATH=$root/tools/python PYTHONDONTWRITEBYTECODE=1
export XSEG_LIBRARY=$BUILD/lib/libxseg.so.1
with_json="--output-format=json --output=out.json"
mnt=$TMP/mnt
mkdir "$mnt"

# ---- the file system ----

make_disk()	# ext4 | xfs
{
	rm -f disk
	truncate -s 512M disk
	case $1 in
	ext4) mkfs.ext4 -q -F disk ;;
	xfs) mkfs.xfs -q -f disk ;;
	esac
}

cat >shut.py <<'END'
import fcntl, os, struct, sys

# EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are one number; 2: without the log
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack("I", 2))
END

# Batches of two keys, which have one number; each third batch is forced. A line is written for
# each forced batch when it is answered.
cat >pairs.py <<'END'
import itertools, random, sys
import xseg

pairs = 40

def keys(pair):
    return b"pair.%d.left" % pair, b"pair.%d.right" % pair

def load():
    with xseg.KV("kv") as kv:
        for number in itertools.count(1):
            pair, force = random.randrange(pairs), number % 3 == 0
            value = b"%d " % number + b"." * random.randrange(6000)
            try:
                kv.batch(dict.fromkeys(keys(pair), value), force=force)
            except xseg.XsegError:
                return                  # the power has failed
            if force:
                print(pair, number, flush=True)

def look(log):
    forced = {}
    for line in open(log):
        pair, number = map(int, line.split())
        forced[pair] = number
    with xseg.KV("kv") as kv:
        for pair in range(pairs):
            left, right = (kv.get(key, b"0 ") for key in keys(pair))
            if left != right:
                sys.exit(f"pair {pair} is half: {left[:20]!r} and {right[:20]!r}")
            if int(left.split()[0]) < forced.get(pair, 0):
                sys.exit(f"pair {pair} has {left[:20]!r}, and {forced[pair]} was forced")
    print(len(forced), "of", pairs, "pairs were forced")

load() if sys.argv[1] == "load" else look(sys.argv[2])
END

# ---- the stack ----

write_stack()	# DIRECT POLICY SYNC; policy none: no cache
{
	local below=filed
	{
		printf '%s\n' '[segment]' "name = $XSEG_SEGMENT" 'memory = 192M'
		printf '%s\n' '[peer filed]' "dir = $mnt/objects" "direct = $1"
		if [ "$2" != none ]; then
			printf '%s\n' '[peer cached]' 'downstream = filed' 'memory = 16M' \
				"policy = $2" 'dirty_age = 300ms'
			below=cached
		fi
		printf '%s\n' '[peer kv]' 'kind = kvd' "downstream = $below" 'size = 24M' \
			'zone_size = 512k' 'tail = 1M' "sync = $3" 'keys = 8192'
	} >stack.conf
}

# power_fails NR: the disk first, so that nothing is written after it; then all that runs on it.
# disk.NR is the disk as it is then: a mount changes it.
power_fails()
{
	local pids
	python3 shut.py "$mnt" || return
	pids=$(segment_pids "$XSEG_SEGMENT" | while read -r pid; do
		! grep -qzE '(^|/)(xseg|xseg-host|kvd|cached|filed)$' "/proc/$pid/cmdline" || echo "$pid"
	done)
	# shellcheck disable=SC2086
	kill -KILL $pids
	rm -f "/dev/shm/xseg.$XSEG_SEGMENT" && wait_for 60 umount "$mnt" &&
		cp --sparse=always disk "disk.$1"
}

# keep DIRECTORY: what there is of a round that failed
keep()
{
	local to=$BUILD/tests/log/kvd_power.$1
	rm -rf "$to"
	mkdir -p "$to" && find . -maxdepth 1 -type f -exec cp --sparse=always -t "$to" {} + &&
		echo "kept $to"
}

is_open() { [ "$(field_of state kv info)" = open ]; }

comes_back()
{
	t "the file system comes back" mount -o loop disk "$mnt"
	t "the stack comes up" xseg up stack.conf
	t "its log is open" wait_for 60 is_open
}

# A list reads one record after the other: on a busy machine that takes a while.
listing()
{
	xseg --timeout 10m --json kv list --long >"$1"
}

# end_all PID...: interrupts them, once more if need be: then they do not wait for answers
end_all()
{
	kill -INT "$@" 2>/dev/null
	sleep 0.2
	! kill -0 "$@" 2>/dev/null
}

no_value_is_half='.verify | .torn == 0 and .foreign == 0 and .repeated == 0'
forced="xbench --kvd=kv --keys=200 --key_size=24"
calm="xbench --kvd=kv --keys=400 --key_size=20"
wild="xbench --kvd=kv --keys=300 --key_size=28"

# one_round FILE_SYSTEM DIRECT POLICY SYNC
one_round()
{
	local name=$1.$3.$4.direct-$2 failed=$nr_failed
	[[ $name =~ ${ROUNDS:-.} ]] || return 0
	run_round "$@"
	[ "$nr_failed" -eq "$failed" ] || keep "$name"
	rm -f -- *.json *.state *.log *.out disk.*
}

run_round()
{
	local jobs before
	make_disk "$1"
	t "a file system, $1, is mounted" mount -o loop disk "$mnt" || return
	write_stack "$2" "$3" "$4"
	t "a kvd on it (direct=$2, policy $3, sync=$4)" xseg up stack.conf
	t "a load that ends" $calm --rw=getput --rwmixread=30 --iodepth=8 --value_dist=exp:2k \
		--opmix=delete:10,add:10 --number_ios=2000 --verify_state=calm.state
	t "is flushed" xseg kv flush
	start forced $forced --rw=getput --rwmixread=30 --iodepth=8 --force --value_dist=exp:3k \
		--opmix=delete:10,add:10,cas:10 --runtime=1h --verify_state=forced.state
	jobs=$started
	start wild $wild --rw=put --iodepth=16 --value_dist=exp:4k --opmix=delete:10,flush:1 \
		--runtime=1h --verify_state=wild.state
	jobs="$jobs $started"
	start pairs python3 pairs.py load
	before=$(counted stores kv puts)
	t "a load runs" wait_for 60 counts_more stores kv puts $((before + 500))
	t "and batches of two" wait_for 60 test -s pairs.log
	sleep "$((RANDOM % 2 + 1)).$((RANDOM % 900 + 100))"
	t "the power fails" power_fails 1
	# shellcheck disable=SC2086
	t "the loads end" wait_for 60 end_all $jobs
	kill -KILL "$started"
	wait 2>/dev/null
	comes_back
	t "all keys are listed" listing first.json
	t "all forced changes are there" $forced --verify_only --verify_state=forced.state $with_json
	expect_json '.jobs[0].read.total_ios > 50' "and they were many" cat out.json
	t "all flushed changes are there" $calm --verify_only --verify_state=calm.state
	$wild --verify_only --verify_state=wild.state $with_json >wild.out 2>&1
	expect_json "$no_value_is_half" "no other value is half there" cat out.json
	t "nor is a batch, and forced ones are there" python3 pairs.py look pairs.log
	expect_json '.bad == 0' "no record is damaged" xseg --json kv verify
	t "the power fails once more" power_fails 2
	comes_back
	t "all keys are listed again" listing second.json
	t "what was gone does not come back" cmp first.json second.json
	t "the stack goes down" xseg down
	t "the file system is unmounted" wait_for 60 umount "$mnt"
}

if [ -z "$LONG" ]; then
	one_round ext4 yes write-back 1s
	finish
fi
kinds=ext4
! command -v mkfs.xfs >/dev/null || kinds="ext4 xfs"
for kind in $kinds; do
	for policy in write-back write-through none; do
		for sync in never 200ms always; do
			one_round "$kind" yes $policy $sync
			one_round "$kind" no $policy $sync
		done
	done
done
finish
