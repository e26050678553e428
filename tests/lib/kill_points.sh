# kill_points.sh - for tests/system/kill_*.sh, after system.sh. It says which kind of peer dies at
# which kill point (xtypes/xkill.h), which load or command passes there, and how the peer is killed.
#
# Nothing is left to chance. A point that the load does not pass all the time has a cause, a command
# that passes it. The command is repeated until the peer has died. Commands run while peers die, and
# all of them have to succeed.

need_kill_points cached
need xseg xseg-host xbench volumed cached filed memd killpoint jq

# seconds until a peer that does not die, or does not come back, has failed
patience=60
# I/Os a second of each job of the load, and how long those that copy wait in between: who dies and
# comes back is what takes its time in the short form, not the load
rate=2000 apart=1
[ -z "$LONG" ] || rate=0 apart=0.2

# ---- the points ----
#
# POINT or POINT+AGAIN: its successor dies at that one, before it serves.

# Once in the life of a segment, when the stack comes up.
first_volumed="PORT_TAKEN ROUTE_STORED LANE_JOINED"
first_cached="ARENA_MARKED EXTENT_TAKING EXTENT_TAKEN HEAD_WRITTEN DIRECT_OPENED DIRECT_SHUT"
first_filed="PORT_TAKEN"
first_memd=""

points_volumed="REQ_TAKEN+REQ_HOMED REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED ANSWER_ACCEPTED
	PART_SENT+REQ_TAKEN_OVER PART_MARKED REQ_DISOWNED OFFER_WRITTEN OFFERS_PUBLISHED
	OFFERS_MARKED OFFERS_ACCEPTED CHANGE_NOTED+PEER_OPENING RECORD_SENT+CATALOG_PART
	RECORD_WRITTEN+CATALOG_READ JOB_PASSED JOB_DRAINED
	JOB_SENT+PEER_RECOVERED JOB_ZEROED+MEMBER_CLAIMED JOB_FLUSHED"
points_cached="REQ_STARTED+PEER_OPENING REQ_APPLIED REQ_ANSWERED OWNER_STORED BUCKET_STORED
	WRITE_FILLED WRITE_SLOT+REQ_TAKEN_OVER LOAD_SLOT LOADED_SLOT FLUSH_SLOT+RELOADED_SLOT
	FLUSHED_SLOT PAGE_LENT GIFT_EXCHANGED LIMBO_TAKEN EVICTED_SLOT+RELOADED EMPTIED_SLOT
	BYPASS_SLOT BYPASSED_SLOT SYNC_ANSWERED ENTRY_NAMED ENTRY_EMPTIED CHUNK_CLEARED
	CHUNK_DROPPED+PEER_RECOVERED CHUNK_COPIED PAGE_COPIED POLICY_STORED SIZE_STORED EXTENT_GIVEN
	EXTENT_TAKING EXTENT_TAKEN VOLUME_NAMED VOLUME_SET"
points_filed="RESULT_WRITTEN REQ_ANSWERED REQ_ACCEPTED OFFERS_PUBLISHED OFFERS_ACCEPTED MARK_NAMED
	MARK_WRITTEN IO_SUBMITTED+REQ_TAKEN_OVER IO_ENDED+PEER_OPENING BLOCKS_WRITTEN FILE_MADE
	FILE_TAGGED FILE_GROWN+PEER_OPENING FILE_UNLINKED+PEER_RECOVERED FILE_RELEASED SYNC_MARKED FILE_SYNCED"
points_memd="MEMD_COPIED+PEER_OPENING MEMD_OWNED RESULT_WRITTEN"

# What a successor passes before it serves, for pairs.
again_volumed="MEMBER_CLAIMED PEER_OPENING PEER_RECOVERED CATALOG_PART CATALOG_READ REQ_TAKEN_OVER"
again_cached="MEMBER_CLAIMED PEER_OPENING REQ_TAKEN_OVER RELOADED_SLOT RELOADED PEER_RECOVERED"
again_filed="MEMBER_CLAIMED PEER_OPENING REQ_TAKEN_OVER PEER_RECOVERED"
again_memd="MEMBER_CLAIMED PEER_OPENING"

# What other kinds pass at once is enough for once; for pairs all that they pass.
others_cached="REQ_TAKEN REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED RESULT_WRITTEN ANSWER_ACCEPTED
	REQ_DISOWNED OFFER_WRITTEN OFFERS_PUBLISHED OFFERS_MARKED OFFERS_ACCEPTED"
others_filed="OFFER_WRITTEN OFFERS_MARKED"
others_volumed=""
others_memd=""

# as a volume is removed, which is in the cache for sure while nothing else is
removing_cached="DELETED_SLOT"
sweeping="DEAD_MARKED CLIENT_RELEASED"	# by whoever finds a dead client first
last_cached="PEER_EMPTIED"

# Passed some hundred times a second: they kill now or later. All others the first time.
often="REQ_TAKEN REQ_FILLED REQ_ADDRESSED REQ_ACCEPTED ANSWER_ACCEPTED REQ_DISOWNED
	OFFER_WRITTEN OFFERS_PUBLISHED OFFERS_MARKED OFFERS_ACCEPTED PART_SENT PART_MARKED
	REQ_STARTED REQ_ANSWERED RESULT_WRITTEN OWNER_STORED BUCKET_STORED WRITE_FILLED WRITE_SLOT
	LOAD_SLOT LOADED_SLOT FLUSH_SLOT FLUSHED_SLOT EVICTED_SLOT PAGE_LENT GIFT_EXCHANGED
	IO_SUBMITTED IO_ENDED MARK_WRITTEN"

# Those of plugging are gone through by plug_points.sh, and those of kvd by kvd_points.sh.
every_point_is_in_a_list()
{
	is "every point is in a list" "$(killpoint list | grep -v -e '^PLUG_' -e '^KVD_' | sort)" \
		"$(printf '%s\n' $first_volumed $first_cached $first_filed $points_volumed \
		$points_cached $points_filed $points_memd $removing_cached $sweeping $last_cached |
		tr + '\n' | sort -u)"
}

# ---- what passes them ----

# failed WHAT STATUS OUT: it was to succeed
failed()
{
	{
		echo "$1 failed with $2:"
		cat "$3"
	} >>commands.failed
}

# command KIND COMMAND...: one that is given while peers die
command()
{
	local kind=$1
	shift
	xseg --quiet --timeout ${patience}s "$@" >"$kind.out" 2>&1 ||
		failed "xseg $*" "$?" "$kind.out"
}

# A volume comes, is written, grows, shrinks and goes.
come_and_go()		# KIND
{
	local vol=made_for_$1
	command "$1" volume create "$vol" --size 1M
	command "$1" volume import "$vol" "$TMP/image"
	command "$1" volume flush "$vol"
	command "$1" volume resize "$vol" --size 2M
	command "$1" volume resize "$vol" --size 320k --force	# not at an object's end
	command "$1" volume remove "$vol"
}

has_memory()		# BYTES
{
	[ "$(field_of memory_bytes cache status cached)" = "$1" ]
}

# It has the size, or has died, which may take the time of a flush.
resize()		# KIND SIZE
{
	command "$1" cache set cached memory="$2M"
	wait_for 60 has_memory $(($2 << 20))
}

shrink_and_grow()	# KIND
{
	resize "$1" 10
	resize "$1" 16
}

# All of the volume while there are few pages: these run out, and not the objects.
read_all()		# KIND
{
	resize "$1" 10
	xbench --volume=vol --direct=never --rw=read --bs=64k --iodepth=16 >"reads.$1" 2>&1 ||
		failed reads "$?" "reads.$1"
	resize "$1" 16
}

write_through() { command "$1" cache set cached policy=write-through; }
write_around() { command "$1" cache set cached policy=write-around; }
# By the store, which puts what it copies into blocks of its own.
copy_around()		# KIND
{
	write_around "$1"
	copy "copies.$1"
	command "$1" cache set cached policy=write-back
}
# volumed forwards all the time, cached only reads that go around it.
forward()		# KIND
{
	[ "$1" = cached ] || return 0
	command "$1" cache set cached policy=pass-through
	xbench --volume=vol --direct=never --rw=read --bs=64k --iodepth=16 >"reads.$1" 2>&1 ||
		failed reads "$?" "reads.$1"
	command "$1" cache set cached policy=write-back
}
flush() { command "$1" volume flush vol; }
settings()
{
	command "$1" cache set cached policy=write-back --volume vol
	command "$1" cache set cached policy= --volume vol
}

# Commands that are given for a point; else the load passes it.
cause_of()		# POINT
{
	case $1 in
	CHANGE_NOTED | RECORD_SENT | RECORD_WRITTEN | JOB_PASSED | JOB_DRAINED | JOB_SENT | JOB_ZEROED | JOB_FLUSHED)
		echo come_and_go ;;
	VOLUME_NAMED | FILE_MADE | FILE_TAGGED | FILE_GROWN | FILE_UNLINKED | MEMD_*)
		echo come_and_go ;;
	CHUNK_COPIED | PAGE_COPIED | SIZE_STORED | EXTENT_GIVEN | EXTENT_TAKING | EXTENT_TAKEN)
		echo shrink_and_grow ;;
	BLOCKS_WRITTEN) echo copy_around ;;
	REQ_ADDRESSED) echo forward ;;
	EVICTED_SLOT) echo read_all ;;
	REQ_APPLIED | POLICY_STORED) echo write_through ;;
	BYPASS_SLOT | BYPASSED_SLOT) echo write_around ;;
	SYNC_ANSWERED | SYNC_MARKED | FILE_SYNCED) echo flush ;;
	VOLUME_SET) echo settings ;;
	*) echo true ;;
	esac
}

# Verified reads and writes of all sizes: by loan and by copy in turn, with requests alone and with
# reads that need none.
load()
{
	local n=0 data=(copy loan) direct=(never auto)
	until [ -e over ]; do
		n=$((n + 1))
		xbench --volume=vol --data=${data[n % 2]} --direct=${direct[n / 2 % 2]} \
			--rw=randrw --bsrange=512-64k --iodepth=16 --numjobs=2 --opmix=trim:2,write_zeroes:2 --fsync=50 \
			--rate_iops=$rate \
			--verify=crc32c --verify_state="$TMP/state" --runtime=5s \
			--output-format=json --output=load.$n.json || return 1
	done
}

# Writes and copies of objects, which volumes have not.
copy()			# NAME
{
	xbench --target=cached --objects=2 --object_size=1M --rw=write --opmix=copy:50 --bs=64k \
		--number_ios=64 >"$1.out" 2>&1 && return
	failed copies "$?" "$1.out"
	return 1
}

copies()
{
	until [ -e over ]; do
		copy copies || return
		sleep $apart
	done
}

# ---- dying ----

generation()		# KIND
{
	local name state generation
	while read -r name _ state _ generation _; do
		[ "$name" != "$1" ] || [ "$state" != running ] || echo "$generation"
	done <<<"$(xseg peer list)"
}

serves_since()		# KIND GENERATION
{
	local now
	now=$(generation "$1")
	[ -n "$now" ] && [ "$now" -gt "$2" ]
}

is_armed()		# KIND [POINT]
{
	[[ $'\n'$(killpoint armed "$XSEG_KILL_TABLE")$'\n' == *$'\n'"$1 ${2:+$2$'\n'}"* ]]
}

nothing_is_armed()
{
	[ -z "$(killpoint armed "$XSEG_KILL_TABLE")" ]
}

nth()			# POINT
{
	case $1 in
	REQ_TAKEN_OVER | RELOADED_SLOT | CATALOG_PART) echo 1 ;;
	RECORD_SENT | RECORD_WRITTEN | CHANGE_NOTED) echo $((RANDOM % 4 + 1)) ;;
	*)
		case " ${often//[[:space:]]/ } " in
		*" $1 "*) echo $((RANDOM % 200 + 1)) ;;
		*) echo 1 ;;
		esac ;;
	esac
}

# die KIND POINT [AGAIN]: there, then its successor at the other one
die()
{
	local kind=$1 point=$2 again=${3:-} \
		what="$1 dies at $2${3:+, then at $3}, and serves again" before cause end
	cause=$(cause_of "$point")
	before=$(generation "$kind")
	end=$((SECONDS + patience))
	[ -z "$again" ] || killpoint arm "$XSEG_KILL_TABLE" "$kind" "$again"
	killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point" "$(nth "$point")"
	while is_armed "$kind" && [ $SECONDS -lt $end ]; do
		if is_armed "$kind" "$point"; then
			$cause "$kind"
		elif wait_for 1 serves_since "$kind" "${before:-0}" && is_armed "$kind"; then
			# the first one may have left nothing that the successor's point is about
			xseg peer kill "$kind" >/dev/null 2>&1
			before=$(generation "$kind")
		fi
		sleep 0.05
	done
	if is_armed "$kind"; then
		killpoint armed "$XSEG_KILL_TABLE" | grep "^$kind" >"left.$kind"
		not_ok "$what" "left.$kind" "$TMP/xseg-$XSEG_SEGMENT.log"
		killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point" 0
		[ -z "$again" ] || killpoint arm "$XSEG_KILL_TABLE" "$kind" "$again" 0
	elif ! wait_for $patience serves_since "$kind" "${before:-0}"; then
		not_ok "$what" "$TMP/xseg-$XSEG_SEGMENT.log"
	else
		ok "$what"
	fi
}

# Of life, or the supervisor takes its time.
live_a_second() { sleep 1; }

# each KIND: all of its points
each()
{
	local kind=$1 point n=0
	local -n all=points_$1
	for point in $all; do
		if [[ $point == *+* ]]; then
			die "$kind" "${point%+*}" "${point#*+}"
		else
			die "$kind" "$point"
		fi
		n=$((n + 1))
		[ $((n % 2)) = 1 ] || live_a_second
	done
}

# pairs KIND: each point with each of the recovery; then so many at random
pairs()			# KIND NUMBER
{
	local kind=$1 point again points recovery i
	local -n all=points_$1 more=others_$1 of_recovery=again_$1
	read -ra recovery <<<"$of_recovery"
	read -ra points <<<"$(echo $all $more)"
	for point in "${points[@]}"; do
		for again in "${recovery[@]}"; do
			die "$kind" "${point%+*}" "$again"
			live_a_second
		done
	done
	for ((i = 0; i < $2; i++)); do
		point=${points[RANDOM % ${#points[@]}]}
		die "$kind" "${point%+*}" "${recovery[RANDOM % ${#recovery[@]}]}"
		sleep 0.$((RANDOM % 10))
	done
}

# ---- a stack ----

all_free()
{
	local idle
	idle=$(field_of idle_requests info) && [ "$idle" = "$(field_of requests info)" ]
}

expect_nothing_in()	# FILE
{
	! cat "$1" 2>/dev/null
}

free_pages()
{
	field_of free_pages check
}

# come_up STORE OPTION: the stack, with a store of that kind; its peers die meanwhile
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
	objects = 54
	threads = 2
	[peer volumed]
	downstream = cached
	object_size = 256k
	END
	head -c 1M /dev/urandom >image
	killpoint make "$XSEG_KILL_TABLE"
	for kind in volumed cached $1; do
		local -n first=first_$kind
		for point in $first; do
			killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point"
		done
	done
	t "the stack comes up, though its peers die at: $first_volumed $first_cached" \
		xseg up stack.conf
	t "they all did" wait_for $patience nothing_is_armed
	pages=$(free_pages)
	t "a volume is made" xseg volume create vol --size 64M
}

is_removed()
{
	xseg --json volume list | jq -e "[.[] | select(.name == \"$1\")] == []"
}

# Nothing else is in the cache.
remove_one()
{
	t "another one is made" xseg volume create scratch --size 1M
	t "and written" xseg volume import scratch image
	killpoint arm "$XSEG_KILL_TABLE" cached "$removing_cached"
	t "it is removed" xseg volume remove scratch
	t "the cache died at $removing_cached meanwhile" wait_for $patience nothing_is_armed
	t "and nothing is left of it" wait_for $patience is_removed scratch
}

# run HOW KIND...: each of these kinds of the stack that is up goes through its points, all at the
# same time
run()
{
	local kind killers=() log how=$1
	shift
	start load load
	load=$started
	start copies copies
	copies=$started
	sleep 0.5
	for kind; do
		start "$kind" $how "$kind" 20
		killers+=("$started")
	done
	wait "${killers[@]}"
	touch over
	wait "$load"
	is "the load saw no error" "$?" 0
	wait "$copies"
	is "nor did those that copy" "$?" 0
	rm over
	for kind; do
		log=$TMP/$kind.log
		cat "$log"
		nr_failed=$((nr_failed + $(grep -c '^not ok' "$log")))
	done
	t "all commands succeeded" expect_nothing_in commands.failed
	t "the load says so too" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' \
		load.*.json
	t "the cache has its size again" xseg cache set cached memory=16M policy=write-back
	t "a flush succeeds" xseg volume flush vol
	t "no request or page is leaked" xseg check
	t "all requests are free" wait_for 60 all_free
}

somebody_died()
{
	[ "$(killpoint armed "$XSEG_KILL_TABLE" | wc -l)" -lt "$1" ]
}

# Clients die with requests out, until one of the peers dies as it puts away what they leave.
sweep()			# KIND...
{
	local point kind end
	for point in $sweeping; do
		end=$((SECONDS + patience))
		for kind; do
			killpoint arm "$XSEG_KILL_TABLE" "$kind" "$point"
		done
		until somebody_died $# || [ $SECONDS -ge $end ]; do
			start client xbench --volume=vol --direct=never --rw=randread --bs=4k \
				--iodepth=8 --runtime=1h
			sleep 0.3
			kill -KILL "$started"
			wait "$started" 2>/dev/null
			wait_for 1 somebody_died $#
		done
		t "a peer dies at $point of a dead client" somebody_died $#
		killpoint disarm "$XSEG_KILL_TABLE"
		for kind; do
			t "$kind serves" wait_for $patience state_is "$kind" running
		done
	done
	t "nothing is left of the clients" wait_for $patience all_free
}

go_down()
{
	is "all pages are free that were" "$(free_pages)" "$pages"
	killpoint arm "$XSEG_KILL_TABLE" cached "$last_cached"
	t "everything stops, though the cache dies once more at $last_cached" xseg down
	t "it did" nothing_is_armed
}

stores_have_it()
{
	t "the stack comes up again" xseg up stack.conf
	t "what was acknowledged is in the store" \
		xbench --volume=vol --rw=randrw --bs=64k --iodepth=16 --numjobs=2 \
		--verify=crc32c --verify_only --verify_state="$TMP/state"
	t "everything stops" xseg down
}
