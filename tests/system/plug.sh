#!/bin/bash
# plug.sh - a cache is plugged and unplugged again and again under verified load, and every process
# is killed in the middle: no error, nothing lost. Also the refused commands.
# tags: san
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/plugging.sh"
need xseg xseg-host xbench volumed cached memd jq

rounds=${LONG:+100}
rounds=${rounds:-10}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 256M
[peer store]
kind = memd
memory = 80M
latency = 100us
jitter = 300us
[peer cached]
downstream = store
memory = 16M
threads = 2
[peer volumed]
downstream = store
threads = 2
END

load()	# more options
{
	xbench --volume=vol --direct=never --rw=randrw --rwmixread=50 --bsrange=512-64k \
		--iodepth=16 --fsync=50 --opmix=trim:3,write_zeroes:3 \
		--verify=crc32c --randseed=$RANDOM --output-format=json "$@"
}

# One run after the other until the rounds are over: how long they take nobody knows beforehand. By
# turns clients read past the cache's queue.
load_until_over()
{
	local n=0 datas=(direct copy)
	until [ -e over ]; do
		n=$((n + 1))
		load --data=${datas[n % 2]} --rate_iops="$(bound 2000 0)" --runtime=1s --verify_state="$TMP/state" \
			--output="load.$n.json" || return
	done
}

begin_load()
{
	rm -f over load.*.json
	start load load_until_over
	load=$started
}

end_load()	# SENTENCE
{
	touch over
	wait "$load"
	is "$1" "$?" 0
	t "and says so" jq -es '[.[].jobs[] | .error, .verify_errors] | add == 0' load.*.json
	t "all that was acknowledged is there" xbench --volume=vol --rw=read --bs=64k \
		--iodepth=16 --verify=crc32c --verify_only --verify_state="$TMP/state"
}

# path: where volumed and the cache send to
path()
{
	path_of volumed cached
}

state()
{
	field_of state cache status cached
}

kill_peer()	# NAME
{
	xseg peer kill "$1"
}

plug()
{
	xseg plug cached --above store --below volumed
}

plug_and_unplug()
{
	local i
	for ((i = 0; i < rounds; i++)); do
		plug || return
		[ "$(path)" = "cached store" ] || return
		sleep 0.02
		xseg unplug cached || return
		[ "$(path)" = "store " ] || return
	done
}

t "a stack comes up whose cache nobody names" xseg up stack.conf
is "the cache waits" "$(path) $(state)" "store  drained"
is "and promises nothing" "$(xseg status | grep -c 'off the path')$(xseg cache status cached |
	grep -c 'off the path')" 11
t "a volume is made" xseg volume create vol --size 24M

# pauses: the slowest read or write, and the slowest request of the store, in us. Only told here,
# where other tests run beside it: bench/plugs.sh compares them with what is wanted.
pauses()
{
	local slowest store
	slowest=$(jq -s '[.[].jobs[] | .read.lat_ns.max, .write.lat_ns.max] | max / 1000 | floor' \
		load.*.json)
	store=$(xseg --json stat |
		jq '.peers[] | select(.name == "store") | .lat_ns.max / 1000 | floor')
	echo "$slowest $store"
}

begin_load
t "the cache is plugged and unplugged $rounds times" plug_and_unplug
end_load "verified I/O saw nothing of that"
read -r slowest store < <(pauses)
echo "# longest pause: the slowest read or write took $slowest us, the slowest request of the store $store us"

# ---- what is refused ----

expect_err 4 "no peer of that name" "an unknown peer" \
	xseg plug cached --above nobody --below volumed
expect_err 4 "no peer of that name" "an unknown cache" xseg unplug nobody
expect_err 2 "of kind memd, not a cache" "what is no cache" \
	xseg plug store --above store --below volumed
expect_err 2 "plug: --above volumed: it is of kind volumed, which has no objects" "what has no objects" \
	xseg plug cached --above volumed --below volumed
expect_err 4 "'volumed' sends to 'store', not to 'cached'|above itself" "a loop" \
	xseg plug cached --above cached --below volumed
expect_err 4 "off the path and has nothing to write" "nothing is flushed there" xseg cache flush cached
expect_err 4 "off the path already" "one that is off the path does not leave" xseg unplug cached
expect_err 4 "there is nothing to take back" "nor has anything to be taken back" xseg unplug cached --cancel
freeze "$(xseg --json status | jq .supervisor.pid)"
kill_hard "$(peer_field cached pid)"
t "the cache dies" wait_for 60 state_is cached dead
expect_err 4 "'cached' does not serve yet, as it is being started" \
	"one that is about to be started again need not be started" plug
kill -CONT "$(xseg --json status | jq .supervisor.pid)"
t "and comes back" wait_for 60 all_serve
expect_json '.state == "running" and .above == "store" and .below == "volumed"' \
	"plug says in JSON what came out" \
	xseg --json plug cached --above store --below volumed
expect_err 4 "is between 'volumed' and 'store' already" "it is there already" \
	xseg plug cached --above store --below volumed
expect_err 4 "these send to it: cached" "the store is not stopped under it" xseg peer stop store
expect_err 4 "these send to it: volumed; take it off the path with 'xseg unplug cached'" \
	"nor is the cache" xseg peer stop cached
xbench --target=store --objects=1 --number_ios=1 >direct.out 2>&1
is "the store serves nobody but the cache" "$?:$(grep -c 'store serves only its cache' direct.out)" 4:1

# ---- draining ----

t "the store is slow" xseg peer set store bandwidth=100k
t "the cache has much that is dirty" xbench --volume=vol --rw=write --bs=64k --iodepth=4 \
	--size="$(bound 3M 8M)"
expect_err 3 "timed out: unplug cached: it goes on draining" "unplug gives up after its time" \
	xseg --timeout 300ms unplug cached
is "and the cache goes on" "$(state)" draining
expect_err 3 "interrupted: unplug cached: it goes on draining" "so it does after Ctrl-C" \
	interrupting is_waiting xseg unplug cached
is "and no other state is left" "$(state) $(path)" "draining cached store"
expect_json '.policy == "write-through" and .draining.bytes_left > 0' \
	"new writes wait for the store" xseg --json cache status cached
is "but what is dirty is not said to be there" \
	"$(xseg status | grep -c ' is in store, too; [0-9.]*[kM] from before are in RAM only')" 1
t "it is killed" xseg peer kill cached
t "its successor drains, too" wait_for 60 is_in draining
is "unplug is taken back, which says so" "$(xseg unplug cached --cancel)" "cached stays on the path"
is "and the cache stays" "$(path) $(state)" "cached store running"
start unplug xseg unplug cached
t "it is to leave once more" wait_for 60 is_in draining
expect_json '.name == "cached" and .state == "running" and .above == "store" and .below == "volumed"' \
	"that is taken back, and in JSON so" xseg --json unplug cached --cancel
wait "$started"
is "who waited for it is told" "$? $(grep -c '^xseg: unplug cached: another command took it back; it is on the path' unplug.log)" "1 1"
t "the store is fast" xseg peer set store bandwidth=0
t "all is flushed" xseg volume flush vol
upper=$(peer_field volumed pid)
t "the peer above stands still" freeze "$upper"
expect_err 3 "timed out: unplug cached: it is clean, and leaves when" \
	"a cache that is clean waits for the peer above it" \
	xseg --timeout 300ms unplug cached
kill -CONT "$upper"
t "and leaves when that goes on" wait_for 60 is_in drained
t "the peer above stands still once more" freeze "$upper"
expect_err 3 "timed out: plug cached: it goes on, and ends with the requests in flight; 'xseg unplug cached --cancel'" \
	"who enters waits for it, too" xseg --timeout 300ms plug cached --above store --below volumed
start plug xseg plug cached --above store --below volumed
t "so does another one" wait_for 60 is_waiting "$started"
is "plug is taken back, which says so" "$(xseg unplug cached --cancel)" "cached stays off the path"
wait "$started"
is "who waited for that is told" "$? $(grep -c '^xseg: plug cached: another command took it back' plug.log)" "1 1"
kill -CONT "$upper"
is "and the cache stays outside" "$(path)" "store "
t "it enters again" plug

# ---- back to where it was ----

expect_err 4 "plug cached: it is on the path already" "who is there need not go back" xseg plug cached
t "the cache leaves" xseg unplug cached
is "it goes back to where it was, without a word" "$(xseg plug cached)" "cached is on the path, above store"
is "which is between the same" "$(path)" "cached store"
t "it leaves once more" xseg unplug cached
expect_json '.above == "store" and .below == "volumed" and .state == "running"' \
	"of two words each may be left out" xseg --json plug cached --above store
t "it leaves a third time" xseg unplug cached
t "and the other" xseg plug cached --below volumed

# ---- kills ----

begin_load
for victim in cached volumed store command; do
	t "it leaves though the $victim is killed" \
		while_killing $victim drained xseg --timeout 20s unplug cached
	t "and enters" while_killing $victim running xseg --timeout 20s plug cached
done
end_load "verified I/O saw no kill"

# ---- a cache that the path has never had ----

start fresh cached --name fresh --memory 8M
t "another cache begins" wait_for 60 state_is fresh running
expect_err 2 "plug fresh: it was not on the path before, .* name its place with --above LOWER" \
	"which was nowhere before" xseg plug fresh
kill "$started"
wait "$started"
t "the segment is sound" xseg check
is "all requests are free" "$(xseg --json info | jq '.requests - .idle_requests')" 0
t "everything stops" xseg down
finish
