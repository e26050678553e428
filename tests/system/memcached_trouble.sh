#!/bin/bash
# memcached_trouble.sh - the gateway without descriptors, with its kvd or itself killed under load,
# with a kvd that is slow, stands still or is gone, with uploads that stall, and stopped while they
# do.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xseg-memcached kvd cached memd python3

# trouble SENTENCE CASE [ARGUMENT]
trouble()
{
	t "$1" timeout 200 python3 "$root/tests/system/memcached_trouble.py" "$2" "$TMP/gate" "${@:3}"
}

gate_pid()
{
	peer_field gate pid
}

said()	# TEXT
{
	grep -c "$1" "$TMP/xseg-$XSEG_SEGMENT.log"
}

cat >stack.conf <<-END
	[segment]
	memory = 256M
	[peer memd]
	memory = 96M
	[peer cached]
	downstream = memd
	memory = 48M
	[peer kvd]
	downstream = cached
	size = 64M
	[peer gate]
	kind = memcached
	kvd = kvd
	listen = unix:$TMP/gate
	threads = 2
END
t "a stack with a gateway comes up" xseg up stack.conf
trouble "without a free descriptor clients wait, others go on, and the gateway sleeps" \
	descriptors "$(gate_pid)"
is "the log says it once" "$(said 'clients wait to be accepted: Too many open files')" 1
trouble "the gateway sleeps while values that the store has not taken fill its memory" \
	full "$(gate_pid)" "$(peer_field kvd pid)"
trouble "uploads that stall while the kvd is killed hold nobody, and are finished or forgotten" \
	stalled "$(gate_pid)"
trouble "with commands in flight a kill of the kvd does each of them once" \
	kvd_killed "$(bound 3 20)"
trouble "a kill of the gateway loses nothing that was answered" killed "$(bound 3 20)"
trouble "an upload that ends without a kvd gets an error, and its connection goes on" without_kvd
trouble "commands that are in flight when the kvd is given up get errors, and connections go on" lost
trouble "a get that is answered late has the value from before a later change" order
trouble "a stop waits neither for half an upload nor for a client that does not read" stopped
t "the segment is sound" wait_for 60 xseg check
t "all stops" xseg down

# the hard limit is too low for the connections that were asked for
t "a stack with a low limit of descriptors comes up" \
	bash -c "ulimit -n 256 && xseg up stack.conf"
is "the log says that they are too few for its connections" \
	"$(said 'this process may open [0-9]* more files, and 1024 connections need')" 1
t "it serves" python3 -c "
import sys
sys.path.insert(0, '$root/tests/system')
from memcached_wire import connect, put_and_got
assert put_and_got(connect('$TMP/gate'), b'a', b'x')"
t "all stops again" xseg down
finish
