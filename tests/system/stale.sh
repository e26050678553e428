#!/bin/bash
# stale.sh - everything dies at once, peers, supervisor and a client with requests in flight: only
# the segment is left. It says in which state it is. `xseg up` takes it over, with data that was
# acknowledged and never flushed.
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

rounds=${LONG:+20}
rounds=${rounds:-3}

cat >stack.conf <<END
[segment]
memory = 256M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M
dirty_high = 90
dirty_age = 1h

[peer volumed]
downstream = cached
object_size = 1M
END

fields()	# FIELD: of all peers that are listed
{
	xseg --json peer list | jq -r "sort_by(.name) | map(.$1) | join(\" \")"
}

is_stale()
{
	[ "$(field_of state check)" = stale ]
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 16M
t "another one is made" xseg volume create doomed --size 64M
is "a stack that runs says so" "$(field_of state check)" running
free=$(free_of_segment)

for ((i = 1; i <= rounds; i++)); do
	t "something is written, and not flushed (round $i)" \
		xbench --volume=vol --rw=randwrite --bsrange=512-64k --iodepth=8 \
		--number_ios=300 --verify=crc32c --verify_state="$TMP/state.$i"
	start client xbench --volume=doomed --rw=randrw --bsrange=512-256k --iodepth=32 --runtime=1h
	sleep "0.$((RANDOM % 500 + 300))"
	t "the cache is dirty" [ "$(field_of dirty_bytes cache status cached)" -gt 0 ]
	# shellcheck disable=SC2046
	kill -KILL "$(xseg --json status | jq .supervisor.pid)" $(fields pid)
	wait "$started" 2>/dev/null
	t "nobody is there" wait_for 60 is_stale
	t "but for that nothing is wrong with the segment" xseg check
	expect_err 4 "xseg up" "it is not removed, as it holds data" xseg down
	[ $((i % 2)) = 0 ] || t "what is derived may be rebuilt before" xseg check --fix
	t "a stack comes up on it" xseg up stack.conf
	expect_json "$no_errors" \
		"what was acknowledged is there" xbench --volume=vol --rw=randwrite --bs=64k \
		--iodepth=16 --verify=crc32c --verify_only --verify_state="$TMP/state.$i" \
		--output-format=json
	t "what the client had is free" wait_for 60 is_as_before
	is "and it is not listed any more" "$(fields name)" "cached filed volumed"
done
t "the segment is sound" xseg check
t "everything stops" xseg down
t "and starts again" xseg up stack.conf
expect_json "$no_errors" \
	"what was acknowledged last is in the store" xbench --volume=vol \
	--rw=randwrite --bs=64k --iodepth=16 --verify=crc32c --verify_only \
	--verify_state="$TMP/state.$rounds" --output-format=json
t "everything stops again" xseg down
finish
