#!/bin/bash
# together.sh - peers of one process and one thread hand requests to each other without lanes. Under
# verified load one after the other leaves it for a process of its own.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

rounds=${LONG:+15}
rounds=${rounds:-1}
rate=${LONG:+0}			# I/Os a second of each job; 0: as many as it can
rate=${rate:-3000}

cat >stack.conf <<-END
	[segment]
	memory = 192M
	[peer memd]
	memory = 64M
	latency = 200us
	[peer cached]
	downstream = memd
	memory = 8M
	[peer volumed]
	downstream = cached
	object_size = 64k
	[run]
	together = memd cached volumed
END

processes()	# how many the peers that run have
{
	xseg --json peer list |
		jq '[.[] | select(.kind != "client" and .state == "running") | .pid] | unique | length'
}

# goes_on SENTENCE: the load does
goes_on()
{
	local before
	before=$(counted peers volumed ops)
	t "$1" wait_for 60 counts_more peers volumed ops "$before"
}

# leaves PEER NR: it goes to a process of its own, the NRth
leaves()
{
	t "$1 leaves" xseg peer stop "$1" --force
	sleep 0.2		# what is on its way to it lies in lanes
	t "$1 is in a process of its own" xseg peer start "$1"
	is "the peers have $2 processes" "$(processes)" "$2"
	goes_on "the load goes on without $1 beside the others"
}

round()	# PEER...: in that order
{
	local nr=1 peer
	t "three peers start in one process" xseg up stack.conf
	t "a volume is made" xseg volume create vol --size 16M
	start load xbench --volume=vol --rw=randrw --bsrange=512-128k --iodepth=16 --numjobs=2 \
		--rate_iops="$rate" --fsync=50 --verify=crc32c --runtime=1h --verify_state="$TMP/state" \
		--output-format=json --output=load.json
	load=$started
	t "the load runs" wait_for 60 counts_more peers volumed ops 1000
	for peer; do
		nr=$((nr + 1))
		leaves "$peer" $nr
	done
	kill -INT "$load"
	wait "$load"
	is "the load ended when it was told to" "$?" 3
	expect_json "$no_errors" "it saw no error" cat load.json
	t "what it wrote is there" xbench --volume=vol --rw=randrw --bs=64k --iodepth=16 \
		--numjobs=2 --verify_only --verify_state="$TMP/state"
	t "the segment is sound" xseg check
	is "nothing wrong was found in it" "$(field_of bad_count info)" 0
	t "everything stops" xseg down
	rm -rf "$TMP"/state* load.json
}

for _ in $(seq "$rounds"); do
	round volumed cached
	round cached volumed
	round memd
done
finish
