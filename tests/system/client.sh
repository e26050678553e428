#!/bin/bash
# client.sh - programs that use the library for volumes, while the peers below them are killed,
# plugged, stopped, resized and removed. They work by copy, from memory of the segment, by loan and
# gift, and in an event loop. Each checks all that it reads.
# tags: san
# timeout: 150
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd jq volume_load

seconds=$([ -n "$LONG" ] && echo 30 || echo 2)
cat >stack.conf <<END
[segment]
memory = 192M
requests = 4096
[peer memd]
memory = 48M
latency = 50us
jitter = 200us
[peer cached]
downstream = memd
memory = 16M
[peer volumed]
downstream = cached
object_size = 64k
END

# load WAY THREADS [GONE_MS]: begins it, and waits until it runs; ended SENTENCE ERROR [REFRESHED]:
# it has ended with that, and read nothing wrong
load()
{
	local ops
	ops=$(counted volumes vol ops)
	start "load.$1" volume_load "$XSEG_SEGMENT" vol "$2" "$seconds" "$1" "${3:-}"
	load=$started
	log=$TMP/load.$1.log
	wait_for 60 counts_more volumes vol ops "$ops"
	sleep 0.5
}

# It ends by an error or a kill, however long the commands take that bring that about.
until_refused() { seconds=60 load "$@"; }

ended()
{
	wait "$load"
	is "$1" "$(tail -n 1 "$log" | sed 's/^ios=[1-9][0-9]* //')" \
		"wrong=0 error=$2 refreshed=${3:-0}"
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 16M
free=$(free_of_segment)

# ---- pauses ----

for way in copy memory lend loop; do
	load $way 2
	for victim in cached volumed memd volumed; do
		xseg peer kill $victim >/dev/null 2>&1
		wait_for 60 state_is $victim running
	done
	ended "$way: kills of what is below are pauses" 0
done

load lend 2
t "the cache is taken out" xseg unplug cached
t "and put in" xseg plug cached --above memd --below volumed
t "the policy is changed" xseg cache set cached policy=write-through
t "and back" xseg cache set cached policy=write-back
t "volumed is stopped" xseg peer stop volumed --force
t "and started" xseg peer start volumed
ended "I/O saw nothing of that" 0

# ---- the client is killed ----

until_refused copy 2
t "a client is killed" kill -KILL $load
wait $load 2>/dev/null
t "nothing is left of it" wait_for 60 no_clients

# ---- errors ----

load copy 2
t "the volume grows" xseg volume resize vol --size 20M
ended "which disturbs nobody" 0
until_refused loop 1
t "it is made much smaller" xseg volume resize vol --size 512 --force
ended "who was beyond is told so" ENXIO
t "it is made larger" xseg volume resize vol --size 16M
until_refused memory 2
expect_err 4 "in use by volume_load \\(pid [0-9]+\\);" "it is not removed while it is used" \
	xseg volume remove vol
expect_err 4 "in use by volume_load" "nor cut" xseg volume resize vol --size 1M
t "it is removed all the same" xseg volume remove vol --force
ended "who used it is told so" ESTALE ESTALE
t "another one of its name is made" xseg volume create vol --size 16M
for way in copy loop; do
	until_refused $way 2 500
	t "volumed is stopped" xseg peer stop volumed --force
	ended "$way: who had I/O out is told that it stays away" ENOTCONN ENOTCONN
	t "volumed is started again" xseg peer start volumed
	t "what was left behind is gone" wait_for 60 no_clients
done
load copy 1
ended "new clients go on" 0
t "pages and requests are free that were before" wait_for 60 is_as_before
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
