#!/bin/bash
# truncated.sh - the segment's file is truncated under load. Each affected process says so and
# leaves, an export and programs of the library too, and none hangs. A new segment over the same
# store has all flushed data.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq python3

file=/dev/shm/xseg.$XSEG_SEGMENT
mkdir objects
cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 64M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 8M
[peer volumed]
downstream = cached
END

verify()
{
	xbench --volume=vol --rw=randwrite --bs=4k --size=16M --number_ios=4000 --iodepth=8 \
		--verify=crc32c --verify_state="$TMP/state" "$@"
}

# Also those who had no need of what is gone: they look each second.
peers_left()
{
	local pid
	for pid in $(segment_pids "$XSEG_SEGMENT"); do
		tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null |
			grep -E 'bin/(filed|cached|volumed|xseg-host) '
	done
}

nobody_left()
{
	[ -z "$(peers_left)" ]
}

log=$TMP/xseg-$XSEG_SEGMENT.log
engine=$BUILD/lib/fio-xseg.so
export PYTHONPATH=$root/tools/python PYTHONDONTWRITEBYTECODE=1
export XSEG_LIBRARY=$BUILD/lib/libxseg.so.1

# Has a volume and a queue that does nothing, and closes both when the file is truncated.
cat >idle.py <<'END'
import errno, os, sys, time, xseg
file, size = sys.argv[1], os.stat(sys.argv[1]).st_size
with xseg.Volume("vol") as volume:
    with volume.queue(depth=4) as queue:
        queue.fileno()
        volume.pwrite(bytes(4096), 0)
        print("ready", flush=True)
        while os.stat(file).st_size == size:
            time.sleep(0.02)
    for call in volume.refresh, volume.queue:
        try:
            call()
        except OSError as e:
            assert e.errno == errno.EPROTO, e
            print(e)
        else:
            raise AssertionError(f"{call} succeeds")
print("left")
END

# An export has a client that reads until it cannot.
export_begins()
{
	local uri
	exported=
	[ -e "$plugin" ] && command -v nbdkit nbdcopy >/dev/null || return
	export_up export vol --queues 2
	exported=$server
	start reader eval "while nbdcopy '$uri' null:; do :; done"
	reader=$started
}

# One that was ended by the signal says so when it has begun anew; one that nobody asks for data
# touches nothing that is gone.
export_says_why()
{
	nbdcopy "$(head -n 1 export.log)" null:
	grep -qE "is truncated|truncated its file" export.log
}

export_has_ended()	# SENTENCE
{
	if [ -z "$exported" ]; then
		skip "$1: an export ends" "nbdkit, its plug-in or nbdcopy is not there"
		return
	fi
	t "$1: who reads through an export gets an error" wait_for 60 eval "! kill -0 $reader"
	t "$1: and the export says why" wait_for 60 export_says_why
	export_down "$exported"
}

fio_begins()
{
	fio=
	[ -e "$engine" ] && command -v fio >/dev/null || return
	start fio fio --name=job --ioengine="external:$engine" --segment="$XSEG_SEGMENT" \
		--volume=vol --rw=randread --bs=4k --iodepth=8 --size=8M --rate_iops=2000 \
		--time_based --runtime=3600
	fio=$started
}

fio_has_ended()		# SENTENCE
{
	if [ -z "$fio" ]; then
		skip "$1: fio ends" "fio or its engine is not there"
		return
	fi
	t "$1: fio ends" wait_for 60 eval "! kill -0 $fio"
	wait "$fio"
	t "$1: with an error" [ $? -ne 0 ]
}

# cut SENTENCE LESS never|auto: a stack under load loses the last LESS bytes of the file; so the
# load's reads are requests, or need none
cut()
{
	local load idle exported reader fio
	t "$1: the stack comes up" xseg up stack.conf
	xseg volume info vol >/dev/null 2>&1 ||
		t "$1: a volume is made" xseg volume create vol --size 16M
	rm -f "$TMP/state"
	t "$1: data is written" verify
	t "$1: and flushed" xseg volume flush vol
	start load xbench --volume=vol --direct="$3" --rw=randread --bsrange=4k-64k \
		--iodepth=16 --rate_iops=2000 --runtime=1h
	load=$started
	start idle python3 idle.py "$file"
	idle=$started
	export_begins
	fio_begins
	t "$1: all of them work with it" wait_for 60 grep -q ready idle.log
	t "$1: so does a load" wait_for 60 is_user xbench
	[ -z "$fio" ] || t "$1: and fio" wait_for 60 is_user fio
	sleep 0.5
	truncate -s "$(($(stat -c %s "$file") - $2))" "$file"
	t "$1: who works with it ends" wait_for 60 eval "! kill -0 $load"
	wait "$load"
	is "$1: with an exit code of its own, and no signal" $? 1
	grep -q "somebody truncated its file" load.log && ok "$1: and says why" ||
		not_ok "$1: and says why" load.log
	t "$1: who did not work with it can close it" wait_for 60 grep -q left idle.log
	wait "$idle"
	is "$1: and ends well" $? 0
	is "$1: he is refused for that reason, too" \
		"$(grep -c "somebody truncated its file" idle.log)" 1
	export_has_ended "$1"
	fio_has_ended "$1"
	expect_err 1 "truncated" "$1: whoever looks is told" xseg check
	expect_err 1 "truncated" "$1: a peer cannot begin" cached --name=another
	t "$1: all peers and the supervisor leave" wait_for 60 nobody_left
	t "$1: what is left can be removed" xseg destroy --force
	grep -qE "^[0-9-]{10}T[0-9:.]{12}Z cached: error: memory of segment.*truncated" "$log" &&
		ok "$1: the log says why, and when" || not_ok "$1: the log says why, and when" "$log"
}

# What filed has not synced, which is in its arena, only its workers look at for a FLUSH.
filed_alone()
{
	t "a segment is made" xseg create --memory 64M
	start filed filed --dir="$TMP/alone"
	t "a store alone serves" wait_for 60 state_is filed running
	t "it has an object" xbench --target=filed --objects=1 --rw=write --bs=64k --number_ios=8
	start load xbench --target=filed --objects=1 --rw=read --bs=64k --opmix=flush:100 \
		--iodepth=4 --runtime=1h
	load=$started
	ios=$(counted peers filed ops)
	t "a load works with it" wait_for 60 counts_more peers filed ops $((ios + 100))
	truncate -s "$(($(stat -c %s "$file") - (67 << 20)))" "$file"
	t "who works with it ends" wait_for 60 eval "! kill -0 $load"
	t "the store leaves" wait_for 60 nobody_left
	t "and says why, whichever thread it is" \
		grep -qE "Z filed: error: memory of segment.*truncated" filed.log
	t "what is left can be removed" xseg destroy --force
}

filed_alone
cut "nearly all pages" $((63 << 20)) never
cut "nearly all" $((76 << 20)) auto
t "a new segment over the same store" xseg up stack.conf
t "has all that was flushed" verify --verify_only
t "and stops" xseg down
finish
