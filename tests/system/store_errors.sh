#!/bin/bash
# store_errors.sh - a store that fails, runs full, stalls or does half of a request: which client is
# told, and which data is kept.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd filed jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 128M

[peer memd]
memory = 64M

[peer cached]
downstream = memd
memory = 8M
dirty_age = 200ms

[peer volumed]
downstream = cached
END

cache()	# FIELD
{
	xseg --json cache status | jq -r ".$1"
}

write_some()	# extra options
{
	xbench --volume=vol --rw=write --bs=4k --size=2M --number_ios=256 --iodepth=8 \
		--output-format=json "$@"
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 32M

# ---- a store that cannot write ----

status_tells()
{
	xseg status | grep -qE 'the store fails flushes since [0-9:]+ \([0-9.]+[mu]?s\): Input/output error; each is tried again after 5s at most$'
}

t "the store is told to fail every write" xseg peer set memd fail=write:1:EIO
expect_json '[.jobs[].error] | add == 0' "write-back: writes are acknowledged all the same" \
	write_some
start spare cached --name spare --memory 8M
t "another cache begins, off the path" wait_for 60 state_is spare running
expect_err 1 "see 'xseg cache status cached'" \
	"write-back: a flush says that it failed, and which cache has the data" \
	xseg volume flush vol
kill "$started"
wait "$started"
is "and the data is still dirty" "$([ "$(cache dirty_bytes)" -ge 1048576 ] && echo yes)" yes
is "the failures are counted" "$([ "$(cache flush_errors)" -gt 0 ] && echo yes)" yes
t "and status says so of the cache" status_tells
t "the store's log says why" grep -q \
	"memd: warning: write of .* failed: Input/output error; its option fail asks for that" \
	"$TMP/xseg-$XSEG_SEGMENT.log"
expect_json '.caches[0] | .flush_errors > 0 and .load_errors == 0 and .loads_fail == null and
	(.flushes_fail | .errno == 5 and .error == "Input/output error" and .ms >= 0)' \
	"also as JSON" xseg --json status
expect_exit 4 "clean data is not dropped while any is dirty" xseg cache drop cached
t "the store is healed" xseg peer set memd fail=
t "and the data gets there by itself" wait_for 60 is_clean
expect_json '.caches[0] | .flush_errors > 0 and .flushes_fail == null' \
	"then status says no more of it" xseg --json status
t "and cache status that none fails now" \
	eval "xseg cache status | grep -q '^errors .* of the store: .* of loads; none fails now$'"
t "now a flush succeeds" xseg volume flush vol

# ---- write-through ----

t "the policy is switched to write-through" xseg cache set cached policy=write-through
t "the store is told to run full" xseg peer set memd fail=write:1:ENOSPC
expect_exit 1 "write-through: the writer is told" write_some
expect_json '.dirty_bytes == 0 and .unpromised_bytes >= 1048576 and
	.volumes[0].unpromised_bytes == .unpromised_bytes' \
	"what was not acknowledged is counted apart" xseg --json cache status
is "also for people" "$(xseg cache status | grep -cE '^unpromised [0-9.]+[kM]: ')" 1

all_is_written()
{
	[ "$(cache unpromised_bytes)" = 0 ] && [ "$(cache evicted_by.unpromised)" = 0 ]
}

t "the store is healed" xseg peer set memd fail=
t "what could not be written was kept, and gets there" wait_for 60 all_is_written
t "the store runs full again" xseg peer set memd fail=write:1:ENOSPC
before=$(cache 'writes_by["write-through"]')
expect_exit 1 "writes of twice as much as the cache has are answered with errors" \
	xbench --volume=vol --rw=write --bs=32k --size=16M --number_ios=512 --iodepth=8
is "all of them" "$(($(cache 'writes_by["write-through"]') - before))" 512
expect_json '.dirty_bytes == 0 and .evicted_by.unpromised > 0' \
	"as what was not acknowledged is given up" xseg --json cache status
t "it is dropped where that is asked for" xseg cache drop cached
expect_exit 1 "a write fails again" write_some
t "the cache leaves the path all the same" xseg unplug cached
t "and enters it" xseg plug cached --above memd --below volumed
t "the store is healed" xseg peer set memd fail=
expect_json '[.jobs[].error] | add == 0' "write-through: writes succeed again" write_some

# ---- a store that cannot read ----

t "everything clean is dropped" xseg cache drop cached
t "the store is told to fail one read" xseg peer set memd fail=read:1@1:EIO
before=$(counted volumes vol errors)
expect_exit 1 "a read that misses is told" xbench --volume=vol --rw=read --bs=4k --size=4k \
	--number_ios=1
is "and the volume counts it" "$(($(counted volumes vol errors) - before))" 1
t "and status says so" eval "xseg status | grep -q 'the store fails loads since'"
expect_exit 0 "the next one is not" xbench --volume=vol --rw=read --bs=4k --size=4k --number_ios=1
expect_json '.caches[0].loads_fail == null' "then status says no more of it" xseg --json status
t "no fault is left" xseg peer set memd fail=

# ---- all kinds of faults under verified load ----

faults="xseg peer set memd fail=write:5%:EIO fail=read:2%:short fail=write:2%:ENOSPC fail=any:0.2%:stall=100ms"
t "the policy is switched back" xseg cache set cached policy=write-back
t "the store fails a part of everything" $faults
expect_exit 1 "verified I/O sees errors" xbench --volume=vol --rw=randrw --bsrange=512-64k \
	--iodepth=8 --numjobs=2 \
	--verify=crc32c --runtime=3s --output-format=json --output="$TMP/faults.json"
t "and no wrong data" jq -e '([.jobs[].verify_errors] | add == 0) and ([.jobs[].error] | add > 0)' \
	"$TMP/faults.json"
t "the store is healed" xseg peer set memd fail=
t "nothing stays dirty" wait_for 60 is_clean
is "people are told of what failed" \
	"$(xseg cache status | grep -cE '^errors +of the store: [1-9][0-9]* of flushes, [1-9][0-9]* of loads')" 1
t "a flush succeeds" xseg volume flush vol
t "nothing is leaked" xseg check

# ---- a store that is full when all is to stop: nothing is promised ----

t "the policy is write-through" xseg cache set cached policy=write-through
t "the store fails all writes" xseg peer set memd fail=write:1:ENOSPC
expect_exit 1 "so a write fails" write_some
t "down does not refuse for its sake, nor wait" xseg down
t "the stack comes up again" xseg up stack.conf
t "a volume is made again" xseg volume create vol --size 32M

# ---- the same, of what was acknowledged ----

t "no flush by age" xseg cache set cached dirty_age=1h
t "data is dirty" xbench --volume=vol --rw=write --bs=4k --size=64k
t "the store fails all writes" xseg peer set memd fail=write:1:ENOSPC
expect_err 1 "cached cannot flush: the store has no space left \(ENOSPC\), and 64.0k .*serves on" \
	"down says that the store is full" xseg down
t "and volumed serves on" state_is volumed running
waits="^xseg: stopping cached: 64.0k are dirty and the store has taken nothing for 5 s"
start stop xseg peer stop cached --force
until_said stop "$waits"
is "peer stop waits for it as long as it may" $? 3
is "and says so, once" "$(grep "$waits" stop.log |
		grep -c "'xseg cache status cached'")" 1
supervisor=$(xseg --json status | jq .supervisor.pid)
kill_hard "$supervisor"
t "the supervisor is killed meanwhile" wait_for 60 test ! -e "/proc/$supervisor"
start up xseg up stack.conf
until_said up "$waits"
is "up waits for the cache to stop" $? 3
expect_json '.supervisor | .alive and (.stopping | not)' "which its supervisor does not want any more" \
	xseg --json status
is "and says so, once" \
	"$(grep -c "$waits" up.log)" 1
is "and at the end" "$(grep -c 'cached does not yet (the one before .*: 64.0k dirty)' up.log)" 1
t "the store takes them" xseg peer set memd fail=
t "everything stops" xseg down

# ---- a store that takes all, and makes nothing stable ----

t "the stack comes up again" xseg up stack.conf
t "a volume is made again" xseg volume create vol --size 32M
t "data is dirty again" xbench --volume=vol --rw=write --bs=4k --size=64k
t "the store fails all flushes" xseg peer set memd fail=flush:1:EIO
expect_err 1 "the store failed with Input/output error \(EIO\), and .*; the stack serves on: mend" \
	"down says so" xseg down
stable_fails()
{
	xseg status | grep -qE "the store fails to make its data stable since .*: Input/output error; the cache writes it again, and the next flush makes it stable, such as 'xseg cache flush cached'\$"
}
t "status says what is true of a flush alone" wait_for 60 stable_fails
expect_json '.caches[0].flushes_fail.of == "flush"' "also as JSON" xseg --json status
# What the store has not made stable the cache writes again. Where it is dirty at one look and clean at
# the next, that is told as progress.
waits="^xseg: stopping cached: (nothing is dirty and no peer has stopped for 5 s|[0-9.]+k? (bytes )?(are )?dirty)"
start stop xseg peer stop cached --force
until_said stop "$waits"
is "peer stop waits for that" $? 3
t "and says so" grep -E "$waits" stop.log
is "and how to end it, if nothing goes on" \
	"$(grep ' for 5 s' stop.log | grep -vcE "'xseg peer kill cached' (does not wait|leaves them)")" 0
t "the store does as it is told" xseg peer set memd fail=
t "everything stops again" xseg down

# ---- the same of a slow store, where the cache writes the same data again and again ----

t "the stack comes up again" xseg up stack.conf
t "a volume is made again" xseg volume create vol --size 32M
t "no flush by age" xseg cache set cached dirty_age=1h
t "data is dirty again" xbench --volume=vol --rw=write --bs=64k --size=1M
t "the store is slow, and fails all flushes" xseg peer set memd fail=flush:1:EIO bandwidth=1M/s
circles="^xseg: stopping cached: .* were written to the store, which is more than was dirty, and not all"
start stop xseg --timeout 60 peer stop cached --force
until_said stop "$circles"
is "peer stop waits for that" $? 3
is "and says once why it does not end" \
	"$(grep "$circles" stop.log | grep -c "stable: 'xseg cache status cached' and the log say which")" 1
t "the store does as it is told" xseg peer set memd fail= bandwidth=0
t "everything stops again" xseg down

# ---- a store in memory that is really full ----

t "a segment is made" xseg create --memory 64M
start small memd --memory=1M
t "a store with little room is there" wait_for 60 state_is memd running
expect_exit 1 "what it has no room for fails" xbench --target=memd --objects=1 \
	--object_size=4M --rw=write --bs=64k --size=2M --number_ios=32
t "its log says why, and what to do" grep -q \
	"write of .* failed: No space left on device; its memory is full: make room" "$TMP/small.log"
t "it ends in order" xseg peer stop memd --force
t "the segment is removed" xseg destroy

# ---- a limit of the size of files ----

limited()
{
	ulimit -f 1024				# KiB
	exec filed --name=limited --dir="$TMP/limited"
}

load="xbench --target=limited --objects=1 --object_size=4M --rw=write --bs=64k --number_ios=8"
t "a segment is made" xseg create --memory 64M
start limited limited
t "a store may write no file of more than 1 MiB" wait_for 60 state_is limited running
pid=$(peer_field limited pid)
expect_exit 1 "beyond that writes fail" $load --size=2M --offset=2M
is "and do not end it" "$(peer_field limited pid) $(peer_field limited state)" "$pid running"
expect_exit 0 "below that they do not" $load --size=1M
t "its log says what it is" grep -q "File too large; raise ulimit -f" "$TMP/limited.log"
t "it ends in order" xseg peer stop limited --force

# ---- a directory in which somebody has been ----

strange()
{
	exec filed --name=strange --dir="$TMP/strange"
}

load="xbench --target=strange --objects=1 --object_size=4M --rw=write --bs=64k --number_ios=1"
start strange strange
t "a store is there" wait_for 60 state_is strange running
expect_exit 0 "it has an object" $load
t "it ends" xseg peer stop strange --force
file=$(find "$TMP/strange" -mindepth 3 -type f)
t "its file is taken away" rm "$file"
t "and a directory is in its place" mkdir "$file"
start strange strange
t "the store is there again" wait_for 60 state_is strange running
expect_exit 1 "what is no file cannot be written" $load
t "its log says why" grep -q "write of .* failed: Is a directory; check whether its file" \
	"$TMP/strange.log"
t "it ends in order, too" xseg peer stop strange --force
finish
