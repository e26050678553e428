#!/bin/bash
# xbench_kv.sh - the load on a store of values, and its verifier: what it measures, what it finds of
# a store whose values were changed behind its back, and kills of kvd and the peers below under load.
#
# The oracle judges gets, puts, deletes, adds, cas, incrs and exists; two jobs use the same few keys,
# so they meet. What a killed kvd was doing is done once: an add or a cas that was done twice is
# refused without a cause, and a number of an incr that was done twice is too large.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench kvd cached filed memd volumed jq

kills=$(bound 6 120)
with_json="--output-format=json --output=out.json"
no_errors='[.jobs[] | .error, .total_err, .verify_errors] | add == 0'

# write_stack STORE...: the lines of the store below the cache
write_stack()
{
	printf '%s\n' "[segment]" "name = $XSEG_SEGMENT" "memory = 256M" "$@" \
		"[peer cached]" "downstream = $1" "memory = 24M" "objects = 64" \
		"[peer kvd]" "downstream = cached" "size = 96M" "keys = 40000" |
		sed "s/downstream = \[peer \(.*\)\]/downstream = \1/" >stack.conf
}

# ---- what it measures ----

write_stack "[peer memd]" "memory = 160M"
t "a stack with a store of values comes up" xseg up stack.conf
run="xbench --kvd=kvd --keys=4k"
t "each key is put once" $run --rw=fill --iodepth=16 --numjobs=3 $with_json
is "as many puts as keys" "$(json out.json '[.jobs[].write.total_ios] | add')" 4096
is "all bytes were put" "$(json out.json '[.jobs[].write.io_bytes] | add')" 4194304
t "all are got" $run --rw=get --iodepth=16 --number_ios=2000 $with_json
is "its JSON has the fields of other loads, in integers" \
	"$(json out.json '[.jobs[0].read | .iops, .bw_bytes, .total_ios, .io_bytes,
	.lat_ns.min, .lat_ns.max, .lat_ns.mean, .lat_ns.percentile["50.000000"], .lat_ns.percentile["99.900000"]]
	| map(type == "number" and . == floor and . > 0) | all')" true
is "no key was absent" "$(json out.json '.jobs[0] | "\(.misses) \(.error) \(.read.io_bytes)"')" \
	"0 0 2048000"
is "what only volumes have is not there" "$(json out.json '.jobs[0] | has("trim", "direct_ios")' |
	sort -u)" false
t "gets by loan" $run --rw=get --iodepth=16 --number_ios=2000 --data=loan $with_json
is "they got the same" "$(json out.json '.jobs[0].read.io_bytes')" 2048000
t "gets that are not checked" $run --rw=get --number_ios=500 --data=loan --unchecked
t "all is flushed" eval 'xseg kv flush && xseg cache flush cached'
t "the cache drops what it has" xseg cache drop cached
used() { counted caches cached used_bytes; }
before=$(used)
t "all is got once" $run --rw=get --once --number_ios=3000
is "so the cache keeps nothing of it" "$(used)" "$before"
t "and counts that" counts_more caches cached bypassed_by.once 1000
t "an absent key is a miss, and no error" xbench --kvd=kvd --keys=8k --rw=get --number_ios=2000 \
	$with_json
is "about half of them are" \
	"$(json out.json '.jobs[0] | .misses > 800 and .misses < 1200 and .read.total_ios == 2000')" true
t "a mix of everything" $run --rw=getput --numjobs=2 --number_ios=3000 --iodepth=8 --force \
	--value_dist=exp:2k --opmix=flush:2,delete:5,add:10,cas:10,incr:10,exists:5 \
	--status-interval=100ms $with_json
is "every operation was counted" \
	"$(json out.json '[.jobs[0] | .read, .write, .sync, .delete, .add, .cas, .incr, .exists
	| .total_ios > 0] | all')" true
is "conditions were refused, too" "$(json out.json '.jobs[0].refused > 0')" true
is "samples have the same operations" "$(json out.json '.samples[0] | has("cas", "read")' | sort -u)" true
is "for people there is a line a job" \
	"$($run --rw=get --number_ios=10 | grep -c '^xbench.0: err=0, failed I/Os=0, misses=0, refused=0$')" 1

# ---- what it refuses ----

expect_err 4 "no peer .*nobody|nobody" "a kvd that is not there" xbench --kvd=nobody
expect_err 4 "memd" "a peer that is no kvd" xbench --kvd=memd
expect_err 2 "bs is for volumes and targets" "a block size" xbench --kvd=kvd --bs=4k
t "a value as large as any" xbench --kvd=kvd --rw=put --keys=4 --value_size=960k --key_size=16k \
	--number_ios=8 --verify=crc32c --io_timeout=30s

# ---- what it finds ----

load="$run --rw=getput --verify=crc32c --randseed=3"
t "a verified load, whose state is kept" $load --iodepth=16 --number_ios=6000 --verify_state=state
t "it is read back by another run" $run --verify_only --verify_state=state $with_json
is "it looked at values" "$(json out.json '.jobs[0].read.total_ios > 2000')" true
t "another load changes some of them" $load --number_ios=200
expect_exit 1 "that is found" $run --verify_only --verify_state=state $with_json
is "they are undone: values of another run" \
	"$(json out.json '.verify | .undone > 0 and .torn == 0 and .lost == 0')" true
t "a load deletes some" $run --rw=get --number_ios=300 --opmix=delete:100 --randseed=9
expect_exit 1 "that is found, too" $run --verify_only --verify_state=state $with_json
is "they are lost" "$(json out.json '.verify.lost > 0')" true
t "a load of values that bear no stamp" $run --rw=put --number_ios=300 --randseed=10
expect_exit 1 "they are told apart" $run --verify_only --verify_state=state $with_json
expect_exit 2 "another size of keys is another set of them" $run --key_size=20 --verify_only \
	--verify_state=state
t "everything stops" xseg down

# ---- kills ----

kill_peer()	# PEER: it dies, and serves again
{
	local pid
	pid=$(peer_field "$1" pid)
	kill_hard "$pid" && wait_for 60 is_another "$1" "$pid"
}

is_another()	# PEER PID
{
	[ "$(peer_field "$1" pid)" != "$2" ] && state_is "$1" running
}

# storm PEER...: each of them dies in turn under a load
storm()
{
	local victims=("$@") i load ios
	t "the stack comes up" xseg up stack.conf
	start load xbench --kvd=kvd --keys=300 --rw=getput --numjobs=2 --iodepth=8 --data=loan \
		--value_dist=exp:3k --rate_iops="$(bound 2000 0)" --runtime=1h --verify=crc32c \
		--opmix=flush:1,delete:5,add:10,cas:15,incr:10,exists:3 $with_json
	load=$started
	start forced xbench --kvd=kvd --keys=100 --key_size=24 --rw=put --iodepth=4 --force \
		--rate_iops="$(bound 300 0)" --runtime=1h --verify_state=forced.state
	for ((i = 0; i < kills; i++)); do
		sleep "0.$((RANDOM % 400 + 100))"
		t "${victims[i % ${#victims[@]}]} dies (number $((i + 1))) and serves again" \
			kill_peer "${victims[i % ${#victims[@]}]}"
	done
	sleep 0.3
	kill -INT "$load" "$started"
	wait "$load"
	is "the load ended when it was told to" "$?" 3
	wait "$started"
	is "so did that of forced puts" "$?" 3
	expect_json "$no_errors" "no error was seen, and nothing wrong" cat out.json
	ios=$(jq '[.jobs[] | .read.total_ios + .write.total_ios + .cas.total_ios] | add' out.json)
	t "it was a load: $ios operations" [ "$ios" -ge $((kills * 20)) ]
	expect_json '[.jobs[].refused] | add > 0' "conditions were refused, too" cat out.json
	t "the segment is sound" xseg check
	t "everything stops" xseg down
}

write_stack "[peer memd]" "memory = 160M"
storm kvd cached kvd
write_stack "[peer filed]" "dir = $TMP/objects"
storm kvd filed cached
t "the stack starts again on what is in the files" xseg up stack.conf
t "all forced puts are there" xbench --kvd=kvd --keys=100 --key_size=24 --verify_only \
	--verify_state=forced.state
t "everything stops at last" xseg down
finish
