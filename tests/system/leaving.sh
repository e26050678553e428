#!/bin/bash
# leaving.sh - the exit of a cache with dirty data: SIGTERM flushes, a second SIGINT leaves the data
# in the arena and says so. Peers with nothing to do sleep.
# tags: san
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench volumed cached memd jq

start_cached()
{
	start cached cached --downstream memd --memory 32M --dirty_high 90 --dirty_age 1h
	cached=$started
	wait_for 60 state_is cached running
}

fill()
{
	xbench --volume=vol --rw=write --bs=64k --size=16M --number_ios=256 --iodepth=4
}

t "a segment is made" xseg create --memory 160M
start memd memd --memory 64M
t "memd serves" wait_for 60 state_is memd running
t "cached serves" start_cached
start volumed volumed --downstream cached
t "volumed serves" wait_for 60 state_is volumed running
t "a volume is made" xseg volume create vol --size 32M

# ---- SIGTERM ----

t "data is written" fill
is "and is dirty" "$(is_clean && echo clean || echo dirty)" dirty
t "the store is slow from now on" xseg peer set memd bandwidth=8M/s
kill -TERM $cached
wait $cached
is "SIGTERM ends cached in order" "$?" 0
t "it has said how much was left to flush" grep -q 'left to flush' cached.log
t "nothing is left behind" state_is cached stopped
t "the store is fast again" xseg peer set memd bandwidth=0

# ---- the second SIGINT ----

# Two of them that it has not taken yet would be one.
nothing_pends()
{
	grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$cached/status"
}

t "cached serves again" start_cached
t "the same data is read back and written again" fill
t "the store stalls" xseg peer set memd latency=3s
kill -INT $cached
t "it has taken the first one" wait_for 60 nothing_pends
kill -INT $cached
wait $cached
is "a second SIGINT ends it at once, with work left" "$?" 3
cp cached.log left.log
t "it says how much data stays" grep -qE '[0-9.]+M of data .* stay in the segment' left.log
t "and that a reboot would lose it" grep -qi 'reboot' left.log
expect_exit 4 "the segment is not destroyed with that in it" xseg destroy
t "the store works again" xseg peer set memd latency=0
t "a successor serves" start_cached
t "it has found the data" grep -q 'recovered' cached.log
t "and can flush it" xseg volume flush vol
t "nothing is dirty then" is_clean

# ---- at rest ----

ticks()
{
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# rests PID: for three seconds it has used no processor time
rests()
{
	local before
	before=$(ticks "$1")
	sleep 3
	[ $(($(ticks "$1") - before)) -le 2 ]
}

if [ -z "$SAN" ]; then
	t "a cache with nothing to do uses no processor time" wait_for 60 rests $cached
fi
t "everything stops" xseg down
finish
