#!/bin/bash
# exports_orders.sh - orders to the supervisor that come together, of which none is lost; and servers
# of exports that do not end when they are asked to, which are killed.
# timeout: 200
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed memd jq nbdkit
need_plugin

short=$(mktemp -d "/tmp/xseg-orders.XXXXXX")	# a socket's path has at most 107 bytes
trap 'rm -rf "$short"; cleanup' EXIT
log=$TMP/xseg-$XSEG_SEGMENT.log

cat >stack.conf <<END
[segment]
memory = 128M
[peer memd]
memory = 32M
[peer volumed]
downstream = memd
[export a]
volume = disk
nbd = $short/a.sock
queues = 1
[export b]
volume = disk
nbd = $short/b.sock
queues = 1
END

field()			# EXPORT FIELD
{
	xseg --json export list | jq -r ".[] | select(.name == \"$1\") | .$2"
}
is_another()		# EXPORT PID: it is served by another process
{
	[ "$(field "$1" state)" = serving ] && [ "$(field "$1" pid)" != "$2" ]
}
# together COMMAND ARGUMENT...: for a and for b at once, while the supervisor stands still
together()
{
	local supervisor first second
	supervisor=$(xseg --json status | jq .supervisor.pid)
	freeze "$supervisor"
	start first xseg --timeout 60 "$@" a
	first=$started
	start second xseg --timeout 60 "$@" b
	second=$started
	sleep 1			# time to give their orders
	kill -CONT "$supervisor"
	wait "$first" && wait "$second"
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M
t "and served" wait_for 60 is_another a none
t "by both exports" wait_for 60 is_another b none

# ---- orders ----

t "of two orders that come together both are taken: stop" together export stop
is "both have stopped" "$(field a state) $(field b state)" "stopped stopped"
t "start" together export start
a=$(field a pid) b=$(field b pid)
t "restart" together export restart
t "both are others" test "$(field a pid)" != "$a" -a "$(field b pid)" != "$b"

# ---- a lock that is held for a moment ----

# lock_for SECONDS: as another command of this kind locks the segment's file
lock_for()
{
	exec 9<"/dev/shm/xseg.$XSEG_SEGMENT"
	flock 9
	start holder sleep "$1"		# which has the lock, too
	exec 9<&-
}

lock_for 0.3
t "an order waits while another command writes the stack file" xseg export stop a
is "and is carried out" "$(field a state)" stopped
lock_for 0.3
t "so does its start" xseg export start a
lock_for 60
expect_err 4 "another command changes the stack" "a lock that is held for long ends it" \
	xseg export stop a
kill "$started"

lock_for 600
holder=$started
start restart xseg peer restart volumed
t "a restart waits for as long, and says so" wait_for 60 \
	grep -q "^xseg: peer restart: another command changes the stack .*; this one waits for its end" restart.log
kill "$holder"
wait "$started"
is "then it goes on" "$? $(tail -n 1 restart.log)" "0 volumed is running again"

# ---- servers that do not end ----

a=$(field a pid)
freeze "$a"
expect_exit 3 "a stop of all waits for a server that stands still" xseg --timeout 3 down
t "it was asked to end" wait_for 60 grep -q 'stopping export a$' "$log"
t "the stop is taken back" xseg down --cancel
t "the server is killed all the same, and another one serves" wait_for 60 is_another a "$a"
t "the log says so" grep -q 'export a: nbdkit has waited 15 s .* and is killed' "$log"
t "so does the other one" wait_for 60 is_another b none

b=$(field b pid)
freeze "$b"
sed -i 's/^queues = 1/queues = 2/' stack.conf
t "a server with other settings that stands still is killed, too" xseg --timeout 100 reload stack.conf
t "another one serves with those of the file" wait_for 60 is_another b "$b"
is "the log says so once" "$(grep -c 'server of export b, .*has not ended for 15 s, and is killed' "$log")" 1
is "it was asked once" "$(grep -c 'stopping the server of export b, which has other settings' "$log")" 1
t "all stops" xseg down
finish
