#!/bin/bash
# policies.sh - the policy is switched again and again under verified load: no error, nothing lost,
# and each policy has its share.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

seconds=${LONG:+60}
seconds=${seconds:-4}
rate=${LONG:+0}			# I/Os a second of each job; 0: as many as it can
rate=${rate:-2000}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 160M
[peer store]
kind = memd
memory = 64M
latency = 200us
jitter = 400us
[peer cached]
downstream = store
memory = 16M
[peer volumed]
downstream = cached
[run]
together = volumed cached store
END

# Requests alone, or also reads that need none
load()
{
	local direct=(never auto)
	xbench --volume=vol --direct=${direct[RANDOM % 2]} --rw=randrw --rwmixread=40 \
		--bsrange=512-64k --iodepth=8 --numjobs=2 --fsync=50 --opmix=trim:3,write_zeroes:3 \
		--rate_iops="$rate" --runtime=${seconds}s --verify=crc32c --randseed=$RANDOM --output-format=json
}

# To the one that carried least so far: a machine that stands still meanwhile gives the one that it
# has a share that a fixed order would not make good.
next_policy()
{
	xseg --json cache status cached | jq -r '.writes_by | to_entries | min_by(.value).key'
}

switch_policies()
{
	local i
	for ((i = 0; i < seconds * 10; i++)); do
		xseg cache set cached policy="$(next_policy)" >/dev/null || return 1
		sleep 0.1
	done
}

drained()
{
	xseg --json cache status cached | jq -e '.state == "running" and .dirty_bytes == 0'
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 48M
each_has_its_share()
{
	xseg --json cache status cached |
		jq -e '.writes_by as $by | .writes as $all | [$by[] | . * 10 >= $all] | all'
}

# Again, where the machine stood still under one of them for too long.
for _ in {1..20}; do
	switch_policies &
	switcher=$!
	expect_json "$no_errors" \
		"verified I/O under switching policies has no error" load
	t "every switch was answered" wait $switcher
	each_has_its_share >/dev/null && break
done
t "each policy carried a tenth of the writes" each_has_its_share
expect_json '.reads == .hits + .partial + .misses + .bypassed and .bypassed_by.policy > 0' \
	"every read is counted once" \
	xseg --json cache status cached
t "the policy is write-back" xseg cache set cached policy=write-back
expect_json '[.jobs[].error] | add == 0' "the cache has dirty data" \
	xbench --volume=vol --rw=randwrite --bs=4k --iodepth=16 --number_ios=2000 \
	--output-format=json
t "the store gets slow" xseg peer set store latency=5s
t "a switch is answered at once" xseg cache set cached policy=pass-through
expect_json '.policy == "pass-through" and .state == "draining" and .draining.from == "write-back"' "and status shows the rest" \
	xseg --json cache status cached
xseg cache status cached >status.txt
t "in words, too" grep -qE "^policy +write-back -> pass-through \(draining [0-9]+%, [0-9.]+[kMG]? dirty, [0-9.]+[kMG]?/s, ETA ([?]|[0-9]+)" status.txt
is "of one volume, too, it is said what is not in the store yet" \
	"$(xseg cache status cached --volume vol | grep -cE 'all goes to the store, nothing is kept; [0-9.]+[kM] are in RAM only until flushed')" 1
t "the segment has the new policy" wait_for 60 json_of '.caches[0].policy == "pass-through"' xseg --json stat
freeze "$(peer_field cached pid)"
is "and of a cache that does not answer" \
	"$(xseg status | grep -cE 'all goes to store, nothing is kept; [0-9.]+[kM] are in RAM only until flushed')" 1
expect_json '.caches[0] | .answers == false and .dirty_bytes > 0' "as JSON has it" xseg --json status
kill -CONT "$(peer_field cached pid)"
t "the store is fast again" xseg peer set store latency=0 jitter=0
t "what was dirty gets to the store" wait_for 60 drained
t "everything stops" xseg down

finish
