#!/bin/bash
# kvd_points.sh - kvd dies at each of its kill points under a load that sees what is lost or done
# twice; on a cache, which dies now and then, and on a store in files. The supervisor starts them
# again.
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"
need_kill_points kvd
need xseg xseg-host kvd cached filed killpoint kv_load kv_large_load jq

patience=60

# KVD_NAMED once, when the log is made; KVD_COPIED when zones are compacted, which the load causes;
# KVD_CLEARED at the end, as it takes all values.
first="KVD_NAMED"
points="KVD_LOG_SENT KVD_LOG_ANSWERED KVD_NOTED REQ_STARTED KVD_APPENDED KVD_WRITTEN
	KVD_INDEXED REQ_APPLIED
	KVD_HANDED KVD_PART_SENT KVD_COMMITTED
	KVD_PROMISED KVD_COPIED RESULT_WRITTEN REQ_ANSWERED REQ_ADDRESSED"
last="KVD_CLEARED"
is "every point of kvd is in a list" "$(killpoint list | grep '^KVD_' | sort)" \
	"$(printf '%s\n' $first $points $last | grep '^KVD_' | sort)"

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 256M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 16M
[peer kv]
kind = kvd
downstream = cached
size = 32M
zone_size = 512k
tail = 1M
END

generation() { peer_field kv generation; }
is_armed() { [ -n "$(killpoint armed "$XSEG_KILL_TABLE")" ]; }
nothing_is_armed() { ! is_armed; }
serves_since()
{
	local now
	now=$(generation)
	state_is kv running && [ "$now" -gt "$1" ]
}

# die POINT N: at the Nth pass
die()
{
	local before
	before=$(generation)
	killpoint arm "$XSEG_KILL_TABLE" kvd "$1" "$2"
	if ! wait_for $patience nothing_is_armed; then
		not_ok "kvd dies at $1" "$TMP/xseg-$XSEG_SEGMENT.log"
		killpoint disarm "$XSEG_KILL_TABLE"
		return
	fi
	t "kvd dies at $1, pass $2, and serves again" wait_for $patience serves_since "${before:-0}"
	sleep 1.1			# of life, or the supervisor takes its time
}

# ended SENTENCE PID NAME: what start() began under that name
ended()
{
	if wait "$2"; then
		ok "$1"
	else
		not_ok "$1" "$TMP/$3.log"
	fi
}

killpoint make "$XSEG_KILL_TABLE"
killpoint arm "$XSEG_KILL_TABLE" kvd $first
t "the stack comes up, though kvd dies at $first" xseg up stack.conf
t "it did" wait_for $patience nothing_is_armed

# This load is alone, so each pass is an answer to it. The 7th is that to a DROP, which the successor does
# again, though the handle is gone.
before=$(generation)
killpoint arm "$XSEG_KILL_TABLE" kvd RESULT_WRITTEN 7
start first kv_large_load "$XSEG_SEGMENT" kv load 2 "$TMP/first" "$TMP/dropped"
first_load=$started
t "kvd dies in a drop of a large value" wait_for $patience nothing_is_armed
t "it serves again" wait_for $patience serves_since "$before"
touch dropped
ended "that load goes on" "$first_load" first
is "the successor did the drop again" "$(sed -n 's/.*drops_done_again=//p' "$TMP/first.log")" 1
t "all its values are as they should be" kv_large_load "$XSEG_SEGMENT" kv verify "$TMP/first"
t "they are deleted" xseg kv delete --all
sleep 1.1

# as long as `over` is not there
load()
{
	until [ -e over ]; do
		kv_load "$XSEG_SEGMENT" kv load 2000 3 4000 "$TMP/state" fua || return 1
	done
}
start load load
load=$started
start large kv_large_load "$XSEG_SEGMENT" kv load 2 "$TMP/large" "$TMP/over"
large=$started
sleep 1
for point in $points; do
	case $point in
	KVD_WRITTEN | KVD_COPIED | REQ_APPLIED | KVD_PROMISED | KVD_HANDED | KVD_COMMITTED) die "$point" $((RANDOM % 5 + 1)) ;;
	*) die "$point" $((RANDOM % 100 + 1)) ;;
	esac
done
t "the cache is killed beside it" xseg peer kill cached
sleep 0.5
touch over
ended "the load saw nothing lost or done twice" "$load" load
ended "the load of large values saw none lost, torn or put twice" "$large" large
t "all values are as they should be" kv_load "$XSEG_SEGMENT" kv verify "$TMP/state"
t "all large values, too" kv_large_load "$XSEG_SEGMENT" kv verify "$TMP/large"
t "nothing is leaked" xseg check
t "the stack goes down" xseg down
t "and comes up again" xseg up stack.conf
t "all values are as they should be" kv_load "$XSEG_SEGMENT" kv verify "$TMP/state"
t "all large values, too" kv_large_load "$XSEG_SEGMENT" kv verify "$TMP/large"
before=$(generation)
killpoint arm "$XSEG_KILL_TABLE" kvd $last
t "all are deleted, though kvd dies at $last" xseg kv delete --all
t "it did" serves_since "$before"
is "so none is there" "$(xseg kv list)" "no keys"
t "a value is put" bash -c 'printf new | xseg kv put key'
t "the stack goes down" xseg down
t "and comes up again" xseg up stack.conf
is "with that one value" "$(xseg kv list) $(xseg kv get key)" "key new"
t "the stack goes down" xseg down
finish
