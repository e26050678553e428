#!/bin/bash
# limits.sh - volumes with limits: through the tool, with real clients, over kills. A run of N
# requests takes at least N / iops less the burst; how much longer is the machine's matter.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 128M
[peer store]
kind = memd
memory = 64M
[peer cached]
downstream = store
memory = 32M
[peer volumed]
downstream = cached
threads = 2
END

bench()	# VOLUME OPTION...
{
	local volume=$1
	shift
	xbench --volume="$volume" --bs=4k "$@" --output-format=json
}

shows() { "${@:2}" | grep -qF -- "$1"; }	# TEXT COMMAND...

some_wait()	# VOLUME
{
	[ "$(json_of .waiting xseg --json volume get "$1")" -gt 0 ]
}

t "the stack comes up" xseg up stack.conf
for volume in a b; do
	t "volume $volume is made" xseg volume create $volume --size 16M
	t "and written" bench $volume --rw=write --size=16M --iodepth=8
done

# ---- the commands ----

expect_json '.iops == 0 and .bandwidth_bytes == 0 and .burst_ns == 0 and .waiting == 0 and .name == "a"' \
	"a new volume has no limits" xseg --json volume get a
expect_json '.iops == 500 and .bandwidth_bytes == 0 and .burst_ns == 10000000' \
	"it is given one" xseg --json volume set a iops=500
expect_json '.iops == 500 and .bandwidth_bytes == 10485760 and .burst_ns == 2000000000' \
	"others are set beside it" xseg --json volume set a bandwidth=10M/s burst=2s
expect_json '.iops == 500 and .bandwidth_bytes == 10485760 and .burst_ns == 2000000000' \
	"info has them, too" xseg --json volume info a
t "also for people" shows 'limits   500 requests/s, 10.0M/s, burst 2.0s' xseg volume info a
t "and so has get" shows 'bandwidth=10M/s' xseg volume get a
expect_json '.[] | select(.name == "a") | .iops == 500' "and list" xseg --json volume list
expect_err 2 "iops=N" "what is no limit is refused" xseg volume set a speed=3
expect_err 2 "iops" "so is a value out of range" xseg volume set a iops=20000000
expect_err 2 "burst" "and one that is too small" xseg volume set a burst=1ms
expect_err 2 "burst" "and a burst without a limit" xseg volume set b burst=1s
expect_exit 4 "a volume that is not there is refused" xseg volume set nothing iops=1
expect_json '.iops == 0 and .bandwidth_bytes == 10485760' "none takes a limit away" \
	xseg --json volume set a iops=none
expect_json '.iops == 0 and .bandwidth_bytes == 0 and .burst_ns == 0' "0 does so, too" \
	xseg --json volume set a bandwidth=0

# ---- rates ----

# took_at_least SECONDS FILE: of a run's report
took_at_least()
{
	jq -e --argjson least "$1" '.jobs[0].read | .total_ios / .iops >= $least' "$2"
}

t "a is limited" xseg volume set a iops=500
t "a run of 500 reads" bench a --rw=randread --iodepth=16 --number_ios=500 --output=run.json
t "takes a second, less the burst of 10 ms" took_at_least 0.97 run.json
t "a is limited by bytes" xseg volume set a iops=none bandwidth=4M/s
t "a run of 1024 reads of 4k" bench a --rw=randread --iodepth=16 --number_ios=1024 --output=run.json
t "takes a second, less the burst" took_at_least 0.97 run.json
expect_json '.volumes[] | select(.name == "a") | .waited > 500 and .waiting == 0 and .limit_bandwidth_bytes == 4194304' \
	"stat counts the requests that waited, and shows the limit" xseg --json stat
t "also for people" shows '4.0M/s' xseg stat
expect_json '.volumes[] | select(.name == "b") | .waited == 0 and .limit_iops == 0' \
	"the other volume has none" xseg --json stat

# ---- clients ----

# Requests of both wait all the time, however long the machine takes to send another.
t "a is limited by requests" xseg volume set a bandwidth=none iops=50
start many xbench --volume=a --bs=4k --rw=randread --iodepth=32 --runtime=1h
many=$started
t "a client of depth 32 waits" wait_for 60 some_wait a
t "beside it another one, of depth 4," bench a --rw=randread --iodepth=4 --number_ios=100 \
	--output=few.json
t "gets about half of what there is" \
	jq -e '.jobs[0].read | .total_ios * 1000000000 / .runtime_ns | . > 14 and . < 36' few.json
kill -INT $many
wait $many

# ---- direct reads ----

direct_of() { xseg --json stat | jq ".volumes[] | select(.name == \"$1\") | .direct_reads"; }
before=$(direct_of a)
t "a is read again and again" bench a --rw=randread --iodepth=8 --number_ios=300
t "and never directly" test "$(direct_of a)" = "$before"
t "b is read as often" bench b --rw=randread --iodepth=8 --number_ios=3000
t "and directly" test "$(direct_of b)" -gt 0
t "the limit is taken away" xseg volume set a iops=0
t "a is read again" bench a --rw=randread --iodepth=8 --number_ios=3000
t "directly" test "$(direct_of a)" -gt "$before"

# ---- what happens meanwhile ----

t "a is limited strictly" xseg volume set a iops=20
bench a --rw=randwrite --verify=crc32c --iodepth=8 --number_ios=60 --output=run.json &
run=$!
for _ in 1 2 3; do
	sleep 0.3
	wait_for 60 state_is volumed running
	t "volumed is killed" xseg peer kill volumed
done
t "the run ends without an error" wait $run
t "and has written all" jq -e '.jobs[0].error == 0 and .jobs[0].write.total_ios == 60' run.json
expect_json '.iops == 20' "the limit is there still" xseg --json volume get a

bench a --rw=randread --direct=never --iodepth=8 --number_ios=5000 --output=run.json &
run=$!
t "requests wait" wait_for 60 some_wait a
t "a FLUSH does not wait for them" xseg --timeout 20s volume flush a
t "the cache leaves the path" xseg unplug cached
t "and comes back" xseg plug cached --above store --below volumed
t "a is removed" xseg volume remove a --force
wait $run
expect_exit 4 "it is gone" xseg volume info a
t "the run has ended with errors" jq -e '.jobs[0].error != 0' run.json

# ---- the end ----

t "b is limited strictly" xseg volume set b iops=5
t "and so is another, of another thread" xseg volume create c --size 16M
t "which gets its limit" xseg volume set c iops=5
runs=
for volume in b c; do
	xbench --volume=$volume --bs=4k --rw=randread --direct=never --iodepth=8 \
		--number_ios=9000 >$volume.log 2>&1 &
	runs="$runs $!"
	t "requests of $volume wait" wait_for 60 some_wait $volume
done
t "the stack goes down, and waits for none of them" timeout 100 xseg down
# shellcheck disable=SC2086	# several
kill $runs

finish
