#!/bin/bash
# stopped.sh - processes that stand still are not dead: peers, the supervisor and a client are
# stopped for seconds under verified load and go on. Nothing is taken over from them meanwhile,
# nothing is lost, nothing is done twice.
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

stand=$(bound 3 5)				# seconds

cat >stack.conf <<END
[segment]
memory = 256M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 16M
objects = 40
threads = 2

[peer volumed]
downstream = cached
object_size = 1M
END

peers()		# FIELD: of the three, in a line
{
	xseg --json peer list | jq -r "[.[] | select(.kind != \"client\")] | sort_by(.name) | map(.$1) | join(\" \")"
}

# stand_still SENTENCE PID...: these for some seconds
stand_still()
{
	local what=$1
	shift
	local pid
	for pid; do
		freeze "$pid"
	done
	sleep $((stand - 1))
	is "$what: whoever stands still is not dead" "$(peers state)" "running running running"
	is "$what: status says who it is, and what lets it go on" \
		"$(xseg status | sed -n "s/^halted .*'kill -CONT \([0-9]*\)' continues it$/\1/p" | sort -nu | xargs)" \
		"$(printf '%s\n' "$@" | sort -n | xargs)"
	expect_err 4 "is running already" "$what: and nobody takes its place" \
		cached --name=cached --downstream=filed --memory=16M
	xseg --timeout 1s check >/dev/null
	sleep 1
	kill -CONT "$@"
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 64M
free=$(free_of_segment)
generations=$(peers generation)
pids=$(peers pid)

start load xbench --volume=vol --rw=randrw --bsrange=512-64k --iodepth=16 --numjobs=2 --fsync=100 \
	--rate_iops="$(bound 2000 0)" --verify=crc32c --runtime=1h \
	--verify_state="$TMP/state" --output-format=json --output=load.json
load=$started
t "a load runs" wait_for 60 counts_more volumes vol ops 500
for peer in volumed cached filed; do
	stand_still "$peer" "$(peer_field $peer pid)"
	sleep 0.5
done
cache=$(peer_field cached pid)
freeze "$cache"
t "a peer that is silent says nothing about others: status has what those say" wait_for 60 \
	json_of '.volumes == 1 and .caches[0].answers == false' xseg --json status
expect_json 'map(select(.halted).name) == ["cached"]' "peer list says who is halted" \
	xseg --json peer list
kill -CONT "$cache"
sleep 0.5
stand_still "all of them and the supervisor" "$(peer_field volumed pid)" \
	"$(peer_field cached pid)" "$(peer_field filed pid)" \
	"$(xseg --json status | jq .supervisor.pid)"
sleep 0.5
stand_still "the client" "$load"
sleep 1
kill -INT $load
wait $load
is "the load ended when it was told to" "$?" 3
expect_json "$no_errors" "it saw no error" cat load.json
t "for as long it got no answer" \
	[ "$(jq '[.jobs[] | .read.lat_ns.max, .write.lat_ns.max] | max' load.json)" \
	-gt $((stand - 1))000000000 ]
is "all peers are who they were" "$(peers generation)" "$generations"
is "and the same processes" "$(peers pid)" "$pids"
is "none began to serve once more" "$(grep -c ': serving (' "$TMP/xseg-$XSEG_SEGMENT.log")" 3
t "a flush succeeds" xseg volume flush vol
t "pages and requests are free that were before" wait_for 60 is_as_before
expect_json "$no_errors" "all that was acknowledged is there" \
	xbench --volume=vol --rw=randrw --bs=64k --iodepth=16 \
	--numjobs=2 --verify=crc32c --verify_only --verify_state="$TMP/state" --output-format=json

# ---- a command ----

# It waits for a peer that nobody starts again, which it gives up after two seconds; of what goes by
# while it stands still it knows nothing.
store=$(peer_field filed pid)
kill_hard "$(xseg --json status | jq .supervisor.pid)"

milliseconds()
{
	echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# The volumed of a flush is killed, and the flush stands still for three seconds. $awake_ms: how long it
# could look at the dead peer. On a slow machine that alone may be two seconds.
flush_stands_still()
{
	local flush from
	freeze "$store"
	start flush xseg volume flush vol
	flush=$started
	wait_for 60 has_requests "$flush" || return 1
	from=$(milliseconds)
	xseg peer kill volumed || return 1
	sleep 0.4
	freeze "$flush"
	awake_ms=$(($(milliseconds) - from))
	sleep 3
	from=$(milliseconds)
	kill -CONT "$flush"
	sleep 0.3
	kill -CONT "$store"
	wait "$flush"
	flushed=$?
	awake_ms=$((awake_ms + $(milliseconds) - from))
	xseg peer start volumed
}

for ((i = 0; i < 20; i++)); do
	t "a command waits for a peer that is killed, and stands still" flush_stands_still
	[ "$flushed" != 0 ] && [ "$awake_ms" -ge 2000 ] || break
done
is "the command did not give up because it stood still" "$flushed" 0

# ---- the supervisor, which is to stop all ----

t "there is a supervisor again" xseg up stack.conf
supervisor=$(xseg --json status | jq .supervisor.pid)
freeze "$supervisor"
start down xseg down
until_said down "^xseg: stopping: supervisor is halted"
is "down waits for it" $? 3
is "and says for whom, not that it is the store" \
	"$(grep '^xseg: stopping: ' down.log | grep -v 'peers left' | sed 's/ is halted.* wait;/ .../')" \
	"xseg: stopping: supervisor ... 'kill -CONT $supervisor' continues it"
kill -CONT "$supervisor"
t "everything stops" xseg down
finish
