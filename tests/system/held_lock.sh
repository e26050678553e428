#!/bin/bash
# held_lock.sh - a process is stopped while it has the lock that clients take. --timeout and signals
# end the processes that wait for it, log and status name it within a second, killed peers are
# replaced, and I/O goes on.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed hold_lock jq

cat >stack.conf <<END
[segment]
memory = 128M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 16M
objects = 40

[peer volumed]
downstream = cached
object_size = 1M
END

# is_replaced PEER PID: another process than that one serves it
is_replaced()
{
	[ "$(peer_field "$1" pid)" != "$2" ] && state_is "$1" running
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 64M
log=$(xseg --json status | jq -r .supervisor.log)
is "nobody is named while nothing is wrong" \
	"$(xseg --json status | jq -c .locks) $(xseg status | grep -c '^lock ')" "[] 0"

start load xbench --volume=vol --rw=randrw --bs=4k --iodepth=8 --size=32M --verify=crc32c \
	--rate_iops="$(bound 2000 0)" --time_based --runtime=1h
load=$started
wait_for 60 is_dirty

# The supervisor looks when the holder stands still, not before: it tells once of who has the lock.
supervisor=$(xseg --json status | jq .supervisor.pid)
freeze "$supervisor"
start holder hold_lock "$XSEG_SEGMENT"
holder=$started
wait_for 60 grep -q held "$TMP/holder.log"
freeze "$holder"
kill -CONT "$supervisor"

says="the control lock has been held for [0-9]+ m?s by $holder \(hold_lock\), which is stopped; continue it with kill -CONT $holder, or end it$"
t "the log names the holder" wait_for 60 grep -qE "supervisor: warning: $says" "$log"
is "and so does status" "$(xseg status 2>&1 | grep -cE "^lock +$says")" 1
is "with its pid, in JSON" "$(xseg --json status | jq -c '.locks | map([.pid, .name, .halted])')" \
	"[[$holder,\"hold_lock\",true]]"

for command in "volume list" "volume info vol" "check" "cache status" "volume create other --size 1M" ; do
	# shellcheck disable=SC2086
	expect_err 3 "^xseg: (check: )?$says" "--timeout ends 'xseg $command'" \
		timeout 20 xseg --timeout 500ms $command
done
start waiting xseg volume list
t "a command waits for the lock" wait_for 60 is_waiting "$started"
kill -TERM "$started"
wait "$started"
is "SIGTERM ends a command that waits" $? 3
start peer memd --name=other
t "a peer does, too" wait_for 60 is_waiting "$started"
kill -TERM "$started"
wait "$started"
is "and a peer that waits to begin" $? 3
is "which says why it did not" "$(grep -cE "other: error: $says" peer.log)" 1
before=$(counted peers volumed ops)
t "I/O goes on meanwhile" wait_for 60 counts_more peers volumed ops "$before"

# A client that is stopped has no other lock than this one.
for peer in cached volumed filed; do
	pid=$(peer_field $peer pid)
	kill -KILL "$pid"
	t "$peer is replaced meanwhile" wait_for 60 is_replaced $peer "$pid"
	before=$(counted peers $peer ops)
	t "and I/O goes on" wait_for 60 counts_more peers $peer ops "$before"
done
t "the holder stands still all the time" stands_still "$holder"

kill -CONT "$holder"
kill -KILL "$holder"
wait "$holder" 2>/dev/null
t "the log says when it has let go" wait_for 60 \
	grep -q "process $holder has released the segment's locks" "$log"
t "and commands work again" xseg volume list
kill -INT "$load"
wait "$load"
is "the load ended when it was told to, without an error" $? 3
t "the segment is sound" xseg check
t "the stack goes down" xseg down
finish
