#!/bin/bash
# plug_many.sh - a cache is plugged and unplugged below two and three upper peers, each under a
# verified load of its own, and every process is killed in the middle: no error, nothing lost. Also
# who must be named, who waits, and that one that stands still does not stop the others.
# tags: san
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/plugging.sh"
. "$root/tests/lib/uppers.sh"
need xseg xseg-host xbench volumed cached memd relay jq

rounds=${LONG:+100}
rounds=${rounds:-8}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 256M
[peer store]
kind = memd
memory = 96M
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

plug()	# UPPER[,UPPER...]
{
	xseg plug cached --above store --below "$1"
}

plug_and_unplug()	# UPPER[,UPPER...]
{
	local i
	for ((i = 0; i < rounds; i++)); do
		plug "$1" && all_send "$1" cached && [ "$(path_of cached)" = store ] || return
		sleep 0.02
		xseg unplug cached && all_send "$1" store && [ "$(path_of cached)" = "" ] || return
	done
}

kill_peer()	# NAME
{
	kill_hard "$(peer_field "$1" pid)"
}

kill_each()	# UPPER[,UPPER...]
{
	local victim
	for victim in cached ${1//,/ } store command; do
		t "it enters though the $victim is killed" while_killing "$victim" running \
			xseg --timeout 20s plug cached --above store --below "$1"
		t "and all send to it" all_send "$1" cached
		t "it leaves though the $victim is killed" while_killing "$victim" drained \
			xseg --timeout 20s unplug cached
		t "and all send past it" all_send "$1" store
	done
}

has_begun()	# PEER
{
	[ -n "$(peer_field "$1" pid)" ]
}

# One upper peer was there while the others were asked; its load has to go on.
serves()	# UPPER
{
	load_of "$1" --number_ios=200 --output=/dev/null
}

t "a stack comes up whose cache waits" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 16M
relay_begin kv store
t "a second upper peer serves" wait_for 60 state_is kv running
is "both are shown above the store" "$(xseg status | grep -c -e '-> store')" 2

# ---- two ----

expect_err 4 "name these, too: kv" "one of them is not named" plug volumed
expect_err 4 "name these, too: volumed" "the other is not named" plug kv
expect_err 4 "web: segment $XSEG_SEGMENT has no peer of that name" "one is named that is not there" \
	plug volumed,kv,web
is "nothing is wanted" "$(path_of volumed kv cached)" "store store "
begin_loads volumed,kv
t "the cache is plugged and unplugged $rounds times below two" plug_and_unplug volumed,kv
kill_each volumed,kv
end_loads "verified I/O of both saw nothing of that"
expect_json '.state == "running" and .above == "store" and .below == "kv,volumed"' \
	"plug says in JSON what came out" \
	xseg --json plug cached --above store --below kv,volumed
expect_err 4 "web: .*cannot send to 'store': only its cache may send there" \
	"a third one would write past the cache" relay --name web --downstream store
is "one status line a path" \
	"$(xseg status | grep -c -e 'volumed -> cached -> store' -e 'kv -> cached -> store')" 2
expect_err 4 "between 'volumed' and 'store' already" "it is there already" plug volumed,kv
expect_err 4 "these send to it:.* kv|these send to it: kv" "the cache is not stopped under them" \
	xseg peer stop cached
expect_json '.state == "drained" and (.below | split(",") | sort) == ["kv", "volumed"]' \
	"and unplug, too" xseg --json unplug cached

# ---- three ----

relay_begin web store
t "a third upper peer serves" wait_for 60 state_is web running
expect_err 4 "name these, too: web" "it is not named" plug volumed,kv
begin_loads volumed,kv,web
t "the cache is plugged and unplugged $rounds times below three" plug_and_unplug volumed,kv,web
kill_each volumed,kv,web
end_loads "verified I/O of all three saw nothing of that"

# ---- one stands still, one comes late ----

begin_loads kv,web
still=$(peer_field volumed pid)
t "volumed stands still" freeze "$still"
start plug xseg plug cached --above store --below volumed,kv,web
plugging=$started
for upper in kv web; do
	t "$upper is served all the same" xbench --target=$upper --objects=6 --object_size=1M \
		--rw=randread --number_ios=1000
done
relay_begin late store
t "a fourth one begins meanwhile" wait_for 60 has_begun late
kill -CONT "$still"
wait "$plugging"
is "the cache enters when volumed goes on" "$?" 0
t "and the others are below it no more" all_send volumed,kv,web cached
t "it leaves" xseg unplug cached
t "who came late is served" wait_for 60 state_is late running
t "and sends where the others do" all_send volumed,kv,web,late store
end_loads "verified I/O saw nothing of that"

t "the segment is sound" xseg check
is "all requests are free" "$(xseg --json info | jq '.requests - .idle_requests')" 0
t "everything stops" xseg down
finish
