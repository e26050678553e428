#!/bin/bash
# plug_points.sh - the cache and the peer above it die at each kill point of plugging and
# unplugging, under verified load. Their successors continue the command, or it can be taken back
# and then done again. No error, nothing lost, nothing leaked.
#
# Each point kills once while the command continues, and once more before it is taken back. Then
# some die at two points, one after the other.
#
# plug_points_many.sh sources this file with UPPERS set, for several upper peers: then a point that
# is passed for each of them kills at each pass.
# tags: long
# timeout: 400
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/uppers.sh"
need_kill_points cached
need xseg xseg-host xbench volumed cached memd relay killpoint jq

uppers=${UPPERS:-volumed}
rounds=${LONG:+20}

# ---- the points ----

# each POINT: that point, and POINT:N for the further upper peers
each_pass()
{
	local n=1 upper
	for upper in ${uppers//,/ }; do
		[ $n -eq 1 ] && echo "$1" || echo "$1:$n"
		n=$((n + 1))
	done
}

asked=$(each_pass PLUG_TURN_ASKED) switched=$(each_pass PLUG_SWITCHED) let_go=$(each_pass PLUG_LET_GO)
plug_cached="$asked PLUG_ABOVE_NOTED PLUG_CLAIMED PLUG_KEPT PLUG_EPOCH_NOTED PLUG_DECIDED $switched $let_go PLUG_ENDED"
unplug_cached="$asked PLUG_PROVEN PLUG_DECIDED $switched PLUG_GIVEN_BACK PLUG_ROUTE_GONE $let_go PLUG_ENDED PLUG_EPOCH_GONE DELETED_SLOT"
plug_volumed="PLUG_TURN_HELD"
unplug_volumed="PLUG_TURN_HELD"
# by the peer above a cache that died, or by the successor of that
undo="PLUG_UNDONE_ABOVE PLUG_UNDONE_ROUTE"

is "every point is in a list" "$(killpoint list | grep '^PLUG_' | sort)" \
	"$(printf '%s\n' $plug_cached $unplug_cached $plug_volumed $unplug_volumed $undo |
	sed 's/:.*//' | grep '^PLUG_' | sort -u)"

# ---- the load ----

load()
{
	local n=0 direct=(never auto)
	until [ -e over ]; do
		n=$((n + 1))
		xbench --volume=vol --direct=${direct[n % 2]} --rw=randrw --bsrange=512-64k --iodepth=16 \
			--opmix=trim:2,write_zeroes:2 --fsync=50 --verify=crc32c \
			--verify_state="$TMP/state" --runtime=5s --output-format=json \
			--output=load.$n.json || [ ! -s load.$n.json ] || return 1
	done
}

# ---- dying ----

is_path()	# plug|unplug: as it is after that
{
	if [ "$1" = plug ]; then
		all_send "$uppers" cached && all_send cached store
	else
		all_send "$uppers" store && all_send cached ""
	fi
}

ask()		# plug|unplug
{
	case $1 in
	plug) xseg --timeout 30s plug cached --above store --below "$uppers" ;;
	unplug) xseg --timeout 30s unplug cached ;;
	esac
}

nothing_is_armed()
{
	[ -z "$(killpoint armed "$XSEG_KILL_TABLE")" ]
}

arm()		# KIND POINT[:PASS]...
{
	local pass
	while [ $# -gt 1 ]; do
		pass=${2#"${2%%:*}"}
		killpoint arm "$XSEG_KILL_TABLE" "$1" "${2%%:*}" ${pass:+"${pass#:}"}
		shift 2
	done
}

live_on()
{
	wait_for 60 all_serve
	sleep 1				# of life, or the supervisor takes its time
}

# One that had no data has no slot to empty.
have_data()
{
	[ "$1" != unplug ] || xbench --volume=vol --rw=read --bs=64k --number_ios=4
}

# goes_on plug|unplug KIND POINT [KIND POINT]
goes_on()
{
	local what=$1
	shift
	have_data "$what" && arm "$@" && ask "$what" && wait_for 60 nothing_is_armed && live_on &&
		is_path "$what" && xseg check
}

# is_taken_back plug|unplug KIND POINT: or it was too late for that; then it is done
is_taken_back()
{
	local what=$1 other=plug pid rc
	shift
	[ "$what" = plug ] && other=unplug
	have_data "$what" && arm "$@" || return
	ask "$what" &
	pid=$!
	wait_for 60 nothing_is_armed || return
	xseg unplug cached --cancel
	rc=$?
	wait $pid
	live_on || return
	case $rc in
	0) is_path "$other" && ask "$what" ;;
	4) ;;
	*) return 1 ;;
	esac
	is_path "$what" && xseg check
}

# each plug|unplug KIND: the path is the other one before, and this one after it
each()
{
	local what=$1 kind=$2 point back=unplug
	local -n all=$1_$2
	[ "$what" = unplug ] && back=plug
	for point in $all; do
		t "$what goes on though $kind dies at $point" goes_on "$what" "$kind" "$point"
		t "and the way back is free" ask "$back"
		t "$what is taken back after $kind has died at $point" is_taken_back "$what" \
			"$kind" "$point"
		t "and the way back is free" ask "$back"
	done
}

# The cache dies when it has made its claim, and whoever undoes that dies at it.
dies_undoing()	# POINT
{
	arm cached PLUG_KEPT cached "$1" volumed "$1"
	ask plug || return
	# one of the two did it; or a relay, which has no kill points
	[ "$uppers" != volumed ] ||
		[ "$(killpoint armed "$XSEG_KILL_TABLE" | grep -c "$1")" -le 1 ] || return
	killpoint disarm "$XSEG_KILL_TABLE"
	live_on && is_path plug && xseg check
}

# Two of them at random. The second may not be passed any more.
dies_twice()	# plug|unplug POINT POINT
{
	arm cached "$2" cached "$3" volumed PLUG_TURN_HELD
	ask "$1" || return
	killpoint disarm "$XSEG_KILL_TABLE"
	live_on && is_path "$1" && xseg check
}

one_of()
{
	local -n from=$1
	local points
	read -ra points <<<"$from"
	echo "${points[RANDOM % ${#points[@]}]}"
}

# ---- the stack ----

cat >stack.conf <<END
[segment]
memory = 256M
[peer store]
kind = memd
memory = 80M
latency = 100us
[peer cached]
downstream = store
memory = 16M
threads = 2
[peer volumed]
downstream = store
threads = 2
END
killpoint make "$XSEG_KILL_TABLE"
t "a stack comes up whose cache waits" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 24M
start load load
load=$started
beside=()
for upper in ${uppers//,/ }; do
	[ $upper != volumed ] || continue
	relay_begin $upper store
	t "$upper serves beside volumed" wait_for 60 state_is $upper running
	start "load.$upper" load_until_over $upper
	beside+=("$started")
done

each plug volumed
each plug cached
t "it is plugged" ask plug
each unplug volumed
each unplug cached
t "it is unplugged" ask unplug
for point in $undo; do
	t "plug goes on though the cache dies, and who undoes what it did, at $point" \
		dies_undoing "$point"
	t "and the way back is free" ask unplug
done
for ((i = 0; i < rounds; i++)); do
	for what in plug unplug; do
		one=$(one_of ${what}_cached) two=$(one_of ${what}_cached)
		t "$what goes on though volumed dies, and cached at $one and perhaps $two" \
			dies_twice "$what" "$one" "$two"
	done
done

touch over
wait "$load"
is "the load saw no error" "$?" 0
t "and says so" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' load.*.json
for load in "${beside[@]}"; do
	wait "$load"
	is "nor did the load beside it" "$?" 0
done
t "all that was acknowledged is there" xbench --volume=vol --rw=read --bs=64k --verify=crc32c \
	--verify_only --verify_state="$TMP/state"
t "the segment is sound" xseg check
is "all requests are free" "$(xseg --json info | jq '.requests - .idle_requests')" 0
t "everything stops" xseg down
finish
