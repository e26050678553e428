#!/bin/bash
# kvd_plug.sh - a cache is plugged below a kvd and a volumed, and unplugged, under a load that sees
# what is lost or done twice. The kvd is killed in between.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench kvd cached volumed memd kv_load jq

rounds=${LONG:+10}
rounds=${rounds:-2}

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 320M
[peer store]
kind = memd
memory = 96M
[peer cached]
downstream = store
memory = 16M
[peer kv]
kind = kvd
downstream = store
size = 32M
zone_size = 1M
tail = 1M
[peer volumed]
downstream = store
END

sends_to() { [ "$(peer_field "$1" downstream)" = "$2" ]; }

t "a kvd and a volumed come up on one store" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 16M
load()
{
	until [ -e over ]; do
		kv_load "$XSEG_SEGMENT" kv load 2000 2 3000 "$TMP/state" fua || return 1
	done
}
start load load
load=$started
for ((i = 0; i < rounds; i++)); do
	sleep 0.5
	t "a cache is plugged below both" xseg plug cached --above store --below kv,volumed
	t "the kvd sends to it" wait_for 60 sends_to kv cached
	sleep 1
	t "the kvd is killed" xseg peer kill kv
	t "it serves again" wait_for 60 state_is kv running
	sleep 1
	t "the cache is unplugged" xseg unplug cached
	t "the kvd sends to the store" wait_for 60 sends_to kv store
done
touch over
wait "$load"
is "the load saw nothing lost or done twice" "$?" 0
t "all values are as they should be" kv_load "$XSEG_SEGMENT" kv verify "$TMP/state"
t "the volume is readable" xbench --volume=vol --rw=read --bs=64k --size=1M
t "nothing is leaked" xseg check
t "the stack goes down" xseg down
finish
