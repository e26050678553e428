#!/bin/bash
# killed.sh - peers are killed, one or several at a time, under verified load and started again;
# clients are killed beside them, with requests in flight. All of them read by loan and write by
# give. The load sees a pause, no acknowledged data is lost, and at the end nothing is missing from
# the segment.
#
# The cache is write-back, and dirty when it dies. The load is one run of xbench, so its writes
# before a kill are checked after it. At the end all of it is read from the store, through peers
# that were started anew. First with a process for each peer, then with all in one.
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

apart=14 together=4			# kills
[ -z "$LONG" ] || apart=200 together=60
per_kill=${LONG:+5000}			# I/Os between two of them, at least
per_kill=${per_kill:-500}
rate=${LONG:+0}				# I/Os a second of each job of the load; 0: as many as it can
rate=${rate:-3000}

# All of them in processes of their own, or in one. They keep their objects where the part of the
# test says.
write_stack()		# PART THREADS RUN
{
	cat >stack.conf <<-END
	[segment]
	name = $XSEG_SEGMENT
	memory = 256M
	[peer filed]
	dir = $TMP/objects.$1
	[peer cached]
	downstream = filed
	memory = 16M
	objects = 40
	threads = $2
	dirty_high = 90
	dirty_low = 80
	[peer volumed]
	downstream = cached
	object_size = 1M
	$3
	END
}

serve()		# PEER...: all of them
{
	local peer
	for peer; do
		state_is "$peer" running || return 1
	done
}

has_none_of()	# PID...
{
	local pid
	while read -r _ _ _ pid _; do
		[[ " $* " != *" $pid "* ]] || return 1
	done <<<"$(xseg peer list)"
}

# Kills all of them at once: none has seen the other's end when it dies. On a slow machine it takes
# a moment until they are gone.
kill_all()	# PEER...
{
	local pids
	pids=$(xseg --json peer list |
		jq --arg names "$*" \
		'.[] | select(.name as $n | $names | split(" ") | index($n)).pid' | sort -u)
	# shellcheck disable=SC2086
	kill -KILL $pids
	# shellcheck disable=SC2086
	wait_for 60 has_none_of $pids
}

# kill_some KILLS VICTIMS...: each of these as often as the others, when the load has done some I/O since
# the one before; says how often the cache died, and was dirty just before. A slow machine may need a
# moment until it is dirty again.
kill_some()
{
	local kills=$1 i ops now victims direct=(never auto)
	shift
	victims=("$@")
	dirty=0 of_cached=0
	for ((i = 0; i < kills; i++)); do
		read -ra now <<<"${victims[i % ${#victims[@]}]}"
		ops=$(counted volumes vol ops)
		start client xbench --volume=doomed --data=loan --direct=${direct[i % 2]} --rw=randrw \
			--bsrange=512-256k --iodepth=8 --rate_iops="$rate" --runtime=1h
		sleep "${LONG:+1}.$((RANDOM % 700 + 300))"
		wait_for 60 counts_more volumes vol ops $((ops + per_kill * 11 / 10))	# flushes are some of these
		if [[ " ${now[*]} " == *" cached "* ]]; then
			of_cached=$((of_cached + 1))
			wait_for 60 is_dirty && dirty=$((dirty + 1))
		fi
		t "${now[*]}: killed (number $((i + 1)))" kill_all "${now[@]}"
		kill -KILL "$started"
		wait "$started" 2>/dev/null
		t "${now[*]}: started again" wait_for 60 serve "${now[@]}"
	done
}

# storm KILLS VICTIMS...: under the load of one client, whose reads are all requests, or need none
# where that is possible
storm()
{
	local load ios data datas=(loan direct) kills=$1
	data=${datas[RANDOM % 2]}
	echo "# the load is by $data"
	t "the stack comes up" xseg up stack.conf
	t "a volume is made" xseg volume create vol --size 64M
	t "another one is made, for clients that will be killed" \
		xseg volume create doomed --size 16M
	free=$(free_of_segment)
	start load xbench --volume=vol --data=$data --direct=never --rw=randrw \
		--bsrange=512-32k --iodepth=16 --numjobs=2 --rate_iops="$rate" --fsync=500 --opmix=trim:1,write_zeroes:1 \
		--verify=crc32c --verify_state="$TMP/state" --runtime=1h --output-format=json \
		--output=load.json
	load=$started
	kill_some "$@"
	sleep 0.5
	kill -INT $load
	wait $load
	is "the load ended when it was told to" "$?" 3
	expect_json "$no_errors" "it saw no error" cat load.json
	ios=$(jq '[.jobs[] | .read.total_ios + .write.total_ios] | add' load.json)
	t "it was a load: $ios I/Os" [ "$ios" -ge $((kills * per_kill)) ]
	t "the cache was dirty at $dirty of its $of_cached deaths" \
		[ $((dirty * 10)) -ge $((of_cached * 9)) ]
	expect_json '.given_bytes > 0 and .lent_bytes > 0' "it was by loan and by give" \
		xseg --json cache status cached
	t "a flush succeeds" xseg volume flush vol
	t "the segment is sound" xseg check
	t "pages and requests are free that were before" wait_for 60 is_as_before
	is "nothing wrong was found in the segment" "$(field_of bad_count info)" 0
	t "everything stops" xseg down
	t "and starts again" xseg up stack.conf
	expect_json "$no_errors" "all that was acknowledged is in the store" \
		xbench --volume=vol --rw=randrw --bs=64k --iodepth=16 --numjobs=2 --verify=crc32c \
		--verify_only --verify_state="$TMP/state" --output-format=json
	t "everything stops again" xseg down
}

write_stack apart 2 ""
storm "$apart" cached filed volumed "cached filed" "cached volumed" "filed volumed" \
	"cached filed volumed"
write_stack together 1 "[run]
together = filed cached volumed"
storm "$together" "cached filed volumed"
finish
