#!/bin/bash
# commands.sh - commands that remove peers, insert them and let them die, in any order. Whatever
# they leave behind, no command waits for ever for an event that cannot come, and `down` comes to an
# end.
#
# A command that cannot end names, at once or after a few seconds, the missing thing and the command
# that provides it. A command that hangs here would run into the time limits, which are long.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

rounds=$([ -n "$LONG" ] && echo 20 || echo 2)
log=$TMP/xseg-$XSEG_SEGMENT.log
limit=60s			# of what has to end by itself

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 128M
[peer filed]
dir = $TMP/objects
[peer lower]
kind = cached
downstream = filed
memory = 16M
dirty_age = 1h
[peer upper]
kind = cached
downstream = lower
memory = 8M
dirty_age = 1h
[peer volumed]
downstream = upper
END

up()			# WHAT
{
	what=$1
	rm -f "$log"
	t "$what: the stack comes up" xseg up stack.conf
}

route()			# PEER
{
	peer_field "$1" downstream
}

# ---- two caches that are off the path ----

both_off()
{
	t "$what: one cache leaves the path" xseg unplug upper
	t "$what: and the other" xseg unplug lower
	t "$what: the first one is stopped" xseg peer stop upper
	t "$what: and started" xseg peer start upper
}

up "a cache names one that is off the path"
t "$what: a volume is made" xseg volume create vol --size 16M
both_off
is "$what: it is off the path, too" "$(route upper)" null
t "$what: and says so" [ "$(field_of state cache status upper)" = drained ]
t "$what: it is killed" xseg peer kill upper
t "$what: and serves again" wait_for 60 state_is upper running
is "$what: off the path" "$(route upper)" null
t "$what: one is plugged" xseg plug lower --above filed --below volumed
t "$what: and the other above it" xseg plug upper --above lower --below volumed
t "$what: data is written" xbench --volume=vol --rw=write --bs=64k --size=1M --number_ios=16
t "$what: all stops" xseg --timeout $limit down

up "the same, then down"
both_off
t "$what: all stops" xseg --timeout $limit down

up "the same, one process killed"
both_off
t "$what: it is killed" xseg peer kill upper
t "$what: it serves again" wait_for 60 state_is upper running
t "$what: it stops" xseg --timeout $limit peer stop upper --force
t "$what: all stops" xseg --timeout $limit down

# ---- a peer below is stopped, and nobody starts it ----

up "the store is stopped"
t "$what: data is there" xbench --volume=vol --rw=write --bs=64k --size=1M --number_ios=16
t "$what: it stops" xseg peer stop filed --force
needs="needs filed, which is stopped; 'xseg peer start filed' starts it"
expect_err 1 "volume flush vol: .*$needs" "$what: a flush says what it needs" \
	xseg --quiet --timeout $limit volume flush vol
expect_err 1 "cache flush upper: .*$needs" "$what: so does that of a cache" \
	xseg --quiet --timeout $limit cache flush upper
expect_err 1 "volume export vol: .*$needs" "$what: an export" \
	xseg --quiet --timeout $limit volume export vol out.raw
expect_err 1 "volume create new: .*$needs" "$what: a new volume" \
	xseg --quiet --timeout $limit volume create new --size 1M
expect_err 1 "unplug upper: it needs filed, which is stopped, and " "$what: one that is to leave the path" \
	xseg --quiet --timeout $limit unplug upper
t "$what: which is taken back" xseg unplug upper --cancel
expect_err 4 "needs filed for that, which is stopped; 'xseg peer start filed'" "$what: down" \
	xseg --quiet --timeout $limit down
t "$what: it is started" xseg peer start filed
t "$what: the flush ends" xseg --timeout $limit volume flush vol
t "$what: all stops" xseg --timeout $limit down

# ---- anything, in any order ----

# Nothing of it may last longer than 3 s here, which are no limit: it goes on.
chaos()			# SEED
{
	local nr cache peer
	RANDOM=$1
	for nr in $(seq 12); do
		cache=$([ $((RANDOM % 2)) = 0 ] && echo lower || echo upper)
		peer=$(shuf -e -n 1 --random-source=<(yes "$RANDOM") filed lower upper volumed)
		case $((RANDOM % 9)) in
		0) set -- unplug "$cache" ;;
		1) set -- unplug "$cache" --cancel ;;
		2) set -- plug "$cache" --above filed --below volumed ;;
		3) set -- plug upper --above lower --below volumed ;;
		4) set -- peer stop "$peer" --force ;;
		5) set -- peer start "$peer" ;;
		6) set -- peer kill "$peer" ;;
		7) set -- peer restart "$peer" ;;
		8) set -- volume create "v$nr" --size 1M ;;
		esac
		echo "xseg $*"
		xseg --quiet --timeout 3s "$@"
		echo "	$?"
	done
}

# Ends with 0, or says what is missing: then that is started, and it ends with 0.
comes_down()		# SEED
{
	local try
	for try in 1 2 3 4 5; do
		timeout -k 1 120 xseg --quiet --timeout 100s down >down.log 2>&1
		case $? in
		0) return 0 ;;
		1 | 4) ;;
		*) break ;;
		esac
		cat down.log
		for peer in filed lower upper volumed; do
			state_is $peer stopped && xseg --quiet --timeout 10s peer start $peer
		done
	done
	cat down.log chaos.log
	xseg status
	return 1
}

for round in $(seq $rounds); do
	seed=$RANDOM
	up "chaos $seed"
	chaos $seed >chaos.log 2>&1
	t "$what: all stops" comes_down $seed ||
		xseg down --force
done
finish
