#!/bin/bash
# killed.sh - any peer is killed under verified load and started again: the clients see a pause, nothing is lost.
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed memd jq

kills=${LONG:+100}
kills=${kills:-6}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
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
END
mkdir objects

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 64M

# One run after the other until the kills are over: how long they take nobody knows beforehand.
load()
{
	local n=0
	until [ -e over ]; do
		n=$((n + 1))
		xbench --volume=vol --rw=randrw --bsrange=512-64k --iodepth=16 --numjobs=2 --fsync=100 --verify=crc32c --runtime=4s \
			--output-format=json --output=load.$n.json || return
	done
}
start load load
load=$started

state_of()
{
	xseg --json peer list | jq -r ".[] | select(.name == \"$1\").state"
}

serves()
{
	[ "$(state_of "$1")" = running ]
}

sleep 1
for i in $(seq "$kills"); do
	case $((i % 3)) in
	0) victim=filed ;;
	1) victim=cached ;;
	*) victim=volumed ;;
	esac
	t "$victim is killed (number $i)" xseg peer kill $victim
	sleep 0.2
	t "the supervisor starts $victim again" wait_for 10 serves $victim
	sleep 0.8
done
touch over
wait $load
is "the load saw no error" "$?" 0
t "and says so" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' load.*.json
t "a flush succeeds" xseg volume flush vol
t "no request or page is leaked" xseg check
is "all requests are free" "$(xseg --json info | jq '.requests - .free_requests')" 0
t "everything stops" xseg down
finish
