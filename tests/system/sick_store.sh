#!/bin/bash
# sick_store.sh - a store that fails, runs full or stalls at one request in twenty, under verified
# load and every policy. Errors reach their requests only, and no acknowledged data is lost. When
# the store is well again no request waits and all is written.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd jq

seconds=${LONG:+20}
seconds=${seconds:-1}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 160M
[peer memd]
memory = 64M
latency = 100us
[peer cached]
downstream = memd
memory = 8M
dirty_age = 500ms
[peer volumed]
downstream = cached
[run]
together = volumed cached memd
END

verify()
{
	xbench --volume=vol --rw=randrw --bsrange=512-64k --iodepth=8 --numjobs=2 --fsync=30 \
		--opmix=write_zeroes:3,trim:3 --rate_iops="$(bound 2000 0)" \
		--verify=crc32c --verify_state="$TMP/state" --randseed=4711 \
		--output-format=json "$@"
}

# Failed I/Os are expected; that none is wrong is not.
sick_load()
{
	verify --runtime="${seconds}s"
	[ $? -le 1 ]
}

is_well()
{
	xseg --json cache status | jq -e '.dirty_bytes == 0 and .waiting == 0 and .evicting == 0'
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 32M
for policy in write-back write-through write-around pass-through; do
	t "$policy" xseg cache set cached policy=$policy
	for fault in any:5%:EIO any:5%:ENOSPC any:0.5%:stall=1s; do
		t "$policy: the store gets sick ($fault)" xseg peer set memd "fail=$fault"
		expect_json '[.jobs[].verify_errors] | add == 0' \
			"$policy, $fault: nothing that is read is wrong" sick_load
		t "$policy, $fault: the store is well again" xseg peer set memd fail=
		expect_json "$no_errors" \
			"$policy, $fault: what was acknowledged is there" verify --verify_only
	done
done
t "all that is dirty gets to the store, and nobody waits" wait_for 60 is_well
t "a flush succeeds" xseg volume flush vol
t "everything stops" xseg down

finish
