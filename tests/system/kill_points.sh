#!/bin/bash
# kill_points.sh - the real processes die at each kill point under verified load, and at points of their recovery; the supervisor
# starts them again, nothing is lost, no client sees an error, nothing is leaked.
#
# Each kind of peer goes through its points by itself, so they die together as well as apart. Each point kills once,
# with a point of the recovery after it; with LONG=1 each goes with each of them, and then points are chosen at random.
# A point that kills nobody within some seconds fails, and so does one that is in none of the lists.
# Only in `make check-long` for now: beside other tests a rare point is sometimes not reached in time.
# tags: long
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
[ -x "$BUILD/kill/bin/cached" ] || skip_all "there are no programs with kill points; 'make kill-build' makes them"
export PATH="$BUILD/kill/bin:$PATH"
need xseg xseg-host xbench volumed cached filed memd killpoint jq

export XSEG_KILL_TABLE=$TMP/table
rounds=${LONG:+40}

# ---- the points ----

# Once in the life of a segment, when the stack comes up.
first_volumed="PORT_TAKEN ROUTE_STORED LANE_JOINED"
first_cached="ARENA_MARKED EXTENT_TAKEN HEAD_WRITTEN"
first_filed="PORT_TAKEN"
first_memd=""

points_volumed="REQ_TAKEN REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED ANSWER_ACCEPTED PART_MARKED REQ_DISOWNED OFFER_WRITTEN
	OFFERS_PUBLISHED OFFERS_MARKED OFFERS_ACCEPTED PART_SENT CHANGE_NOTED RECORD_SENT RECORD_WRITTEN JOB_SENT JOB_FLUSHED"
points_cached="REQ_STARTED REQ_APPLIED REQ_ANSWERED OWNER_STORED BUCKET_STORED WRITE_FILLED WRITE_SLOT LOAD_SLOT LOADED_SLOT
	FLUSH_SLOT FLUSHED_SLOT EVICTED_SLOT EMPTIED_SLOT BYPASS_SLOT BYPASSED_SLOT SYNC_ANSWERED ENTRY_NAMED
	ENTRY_EMPTIED CHUNK_CLEARED CHUNK_DROPPED CHUNK_COPIED PAGE_COPIED SIZE_STORED EXTENT_GIVEN EXTENT_TAKEN VOLUME_NAMED"
points_filed="RESULT_WRITTEN REQ_ANSWERED REQ_ACCEPTED OFFERS_PUBLISHED OFFERS_ACCEPTED MARK_NAMED MARK_WRITTEN IO_SUBMITTED
	IO_ENDED BLOCKS_WRITTEN FILE_MADE FILE_UNLINKED FILE_RELEASED SYNC_MARKED FILE_SYNCED"
points_memd="MEMD_COPIED MEMD_OWNED RESULT_WRITTEN"

# In what a successor does before it serves.
again_volumed="PEER_OPENING PEER_RECOVERED CATALOG_PART CATALOG_READ REQ_TAKEN_OVER"
again_cached="PEER_OPENING REQ_TAKEN_OVER RELOADED_SLOT RELOADED PEER_RECOVERED"
again_filed="PEER_OPENING REQ_TAKEN_OVER PEER_RECOVERED"
again_memd="PEER_OPENING"

last_cached="PEER_EMPTIED"
removing_cached="DELETED_SLOT"	# as a volume is removed, which is in the cache for sure while nothing else is

if [ -n "$LONG" ]; then
	points_cached+=" REQ_TAKEN REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED RESULT_WRITTEN ANSWER_ACCEPTED REQ_DISOWNED OFFER_WRITTEN
		OFFERS_PUBLISHED OFFERS_MARKED OFFERS_ACCEPTED"
	points_filed+=" OFFER_WRITTEN OFFERS_MARKED"
fi

is "every point is in a list" "$(killpoint list | sort)" "$(printf '%s\n' $first_volumed $first_cached $first_filed $points_volumed \
	$points_cached $points_filed $points_memd $again_volumed $again_cached $again_filed $again_memd $last_cached $removing_cached | sort -u)"

# ---- the load ----

# No read or write fails, whoever dies; what single commands are told when their peer dies is another matter, and so it is when
# xbench asks for the volume and volumed dies: then it has written no report, and is started again.
load()
{
	local n=0
	until [ -e over ]; do
		n=$((n + 1))
		xbench --volume=vol --rw=randrw --bsrange=512-64k --iodepth=16 --numjobs=2 --opmix=trim:2,write_zeroes:2 --fsync=50 \
			--verify=crc32c --verify_state="$TMP/state" --runtime=5s --output-format=json --output=load.$n.json || [ ! -s load.$n.json ] || return 1
	done
}

# Policies, sizes, volumes that come and go; copies, which only the store's own clients can have.
stir()		# STORE
{
	head -c 2M /dev/urandom >image
	until [ -e over ]; do
		rm -f stir.json
		xbench --target="$1" --objects=2 --object_size=1M --rw=write --opmix=copy:50 --bs=4k --number_ios=20 --output-format=json \
			--output=stir.json || { echo "copies in $1 failed with $?"; cat stir.json; } >>stir.failed
		xseg --timeout 5s cache set cached memory=10M
		xseg --timeout 5s cache set cached policy=write-around
		xseg --timeout 5s volume create scratch --size 4M
		xseg --timeout 5s volume import scratch image
		xseg --timeout 5s cache set cached policy=write-through
		xseg --timeout 5s cache set cached memory=16M
		xseg --timeout 5s cache flush cached		# so others make room at once for some of its objects
		xseg --timeout 5s volume import scratch image
		xseg --timeout 5s volume remove scratch
		xseg --timeout 5s cache set cached policy=write-back
		sleep 0.5
	done >stir.log 2>&1
}

# ---- dying ----

generation()
{
	xseg --json peer list | jq -r ".[] | select(.name == \"$1\" and .state == \"running\").generation"
}

nothing_is_armed()
{
	[ -z "$(killpoint armed "$XSEG_KILL_TABLE")" ]
}

has_killed()	# KIND
{
	! killpoint armed "$XSEG_KILL_TABLE" | grep -q "^$1 "
}

serves_since()	# KIND GENERATION
{
	local now
	now=$(generation "$1")
	[ -n "$now" ] && [ "$now" -gt "$2" ]
}

# die KIND POINT N AGAIN M: at the N-th time of that point, and its successor at the M-th time of that of the recovery
die()
{
	local kind=$1 point=$2 n=$3 again=$4 m=$5 what="$1 dies at $2, then at $4, and serves again" tries before
	before=$(generation "$kind")
	killpoint arm "$XSEG_KILL_TABLE" "$kind" "$again" "$m"
	killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point" "$n"
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		wait_for 4 has_killed "$kind" && break
		# it may have had no request that could be taken over
		killpoint armed "$XSEG_KILL_TABLE" | grep -q "^$kind $point\$" || xseg peer kill "$kind" >/dev/null
	done
	if ! has_killed "$kind"; then
		killpoint armed "$XSEG_KILL_TABLE" >"left.$kind"
		not_ok "$what" "left.$kind"
		killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point" 0
		killpoint arm "$XSEG_KILL_TABLE" "$kind" "$again" 0
	elif ! wait_for 15 serves_since "$kind" "${before:-0}"; then
		not_ok "$what" "$TMP/xseg-$XSEG_SEGMENT.log"
	else
		ok "$what"
	fi
	sleep 1				# of life, or the supervisor takes its time
}

# Those that are passed often kill now or later, rare ones the first time.
often=" REQ_TAKEN REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED ANSWER_ACCEPTED REQ_DISOWNED OFFER_WRITTEN OFFERS_PUBLISHED OFFERS_MARKED
 OFFERS_ACCEPTED PART_SENT PART_MARKED REQ_STARTED REQ_ANSWERED RESULT_WRITTEN OWNER_STORED BUCKET_STORED WRITE_FILLED WRITE_SLOT
 LOAD_SLOT LOADED_SLOT FLUSH_SLOT FLUSHED_SLOT EVICTED_SLOT IO_SUBMITTED IO_ENDED MARK_WRITTEN "

nth()		# POINT
{
	case $1 in
	REQ_TAKEN_OVER | RELOADED_SLOT | CATALOG_PART) echo $((RANDOM % 3 + 1)) ;;
	*) if [[ $often == *" $1 "* ]]; then echo $((RANDOM % 200 + 1)); else echo 1; fi ;;
	esac
}

# each KIND: all of its points, with a point of the recovery each in turn
each()
{
	local kind=$1 point i=0 points again
	local -n all=points_$1 recovery=again_$1
	read -ra again <<<"$recovery"
	for point in $all; do
		die "$kind" "$point" "$(nth "$point")" "${again[i]}" 1
		i=$(((i + 1) % ${#again[@]}))
	done
	[ -z "$LONG" ] || more "$kind"
}

# more KIND: each point with each of the recovery; then two at random and one of the recovery
more()
{
	local kind=$1 point other i again points
	local -n all=points_$1 recovery=again_$1
	read -ra again <<<"$recovery"
	read -ra points <<<"$(echo $all)"
	for point in "${points[@]}"; do
		for other in "${again[@]}"; do
			die "$kind" "$point" "$(nth "$point")" "$other" 1
		done
	done
	for ((i = 0; i < rounds; i++)); do
		point=${points[RANDOM % ${#points[@]}]}
		other=${again[RANDOM % ${#again[@]}]}
		die "$kind" "$point" "$(nth "$point")" "$other" "$(nth "$other")"
	done
}

# run STORE KIND...: each of these kinds of the stack that is up goes through its points
run()
{
	local kind killers=() log store=$1
	shift
	start load load
	load=$started
	start stir stir "$store"
	stir=$started
	sleep 0.5
	for kind; do
		start "$kind" each "$kind"
		killers+=("$started")
	done
	wait "${killers[@]}"
	touch over
	wait "$load"
	is "the load saw no error" "$?" 0
	wait "$stir"
	rm over
	for kind; do
		log=$TMP/$kind.log
		cat "$log"
		nr_failed=$((nr_failed + $(grep -c '^not ok' "$log")))
	done
	t "nor did those of the store" expect_nothing_in stir.failed
	t "and says so" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' load.*.json
	t "the cache has its size again" wait_for 10 xseg cache set cached memory=16M policy=write-back
	t "a flush succeeds" xseg volume flush vol
	t "no request or page is leaked" xseg check
	t "all requests are free" wait_for 5 all_free
}

all_free()
{
	xseg --json info | jq -e '.requests == .free_requests'
}

expect_nothing_in()	# FILE
{
	! cat "$1" 2>/dev/null
}

free_pages()
{
	xseg --json check | jq .free_pages
}

# come_up STORE OPTION: the stack, with a store of that kind
come_up()
{
	cat >stack.conf <<-END
	[segment]
	memory = 256M
	[peer $1]
	$2
	[peer cached]
	downstream = $1
	memory = 16M
	objects = 40
	threads = 2
	[peer volumed]
	downstream = cached
	object_size = 256k
	END
	killpoint make "$XSEG_KILL_TABLE"
	for kind in volumed cached $1; do
		local -n first=first_$kind
		for point in $first; do
			killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point"
		done
	done
	t "the stack comes up, though its peers die at: $first_volumed $first_cached" xseg up stack.conf
	t "they all did" wait_for 10 nothing_is_armed
	pages=$(free_pages)
	t "a volume is made" xseg volume create vol --size 64M
}

remove_one()
{
	head -c 2M /dev/urandom >scratch
	t "another one is made" xseg volume create scratch --size 2M
	t "and written" xseg volume import scratch scratch
	killpoint arm "$XSEG_KILL_TABLE" cached "$removing_cached"
	t "it is removed" xseg volume remove scratch
	t "the cache dies at $removing_cached meanwhile" wait_for 20 nothing_is_armed
	t "and nothing is left of it" wait_for 20 is_removed
}

is_removed()
{
	xseg --json volume list | jq -e "[.[] | select(.name == \"scratch\")] == []"
}

go_down()
{
	is "all pages are free that were" "$(free_pages)" "$pages"
	killpoint arm "$XSEG_KILL_TABLE" cached "$last_cached"
	t "everything stops, though the cache dies once more at $last_cached" xseg down
	t "it did" nothing_is_armed
}

come_up filed "dir = $TMP/objects
files = 16"
remove_one
run filed volumed cached filed
go_down
t "the stack comes up again" xseg up stack.conf
t "what was acknowledged is in the store" xbench --volume=vol --rw=randrw --numjobs=2 --verify=crc32c --verify_only \
	--verify_state="$TMP/state"
t "everything stops" xseg down

come_up memd "memory = 100M"
run memd memd
go_down
finish
