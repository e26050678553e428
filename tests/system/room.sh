#!/bin/bash
# room.sh - `xseg up` looks whether the segment has room for all peers, before it makes it, and
# before it starts the first.
. "$(dirname "$0")/../lib/system.sh"

log=$TMP/xseg-$XSEG_SEGMENT.log
cat >stack.conf <<END
[segment]
memory = 24M
[peer memd]
kind = memd
memory = 4M
[peer cached]
kind = cached
memory = 32M
downstream = memd
[peer volumed]
kind = volumed
downstream = cached
END
sed 1,2d stack.conf >peers.conf		# for a segment that is there
sed 's/^kind = cached/&\nthreads = 7/' peers.conf >threads.conf

# refused SENTENCE REGEX FILE: so is an `up`, and no peer was started
refused()
{
	: >"$log"
	expect_err 1 "^xseg: the supervisor did not start: $2; .* \\(log: " "$1" xseg up "$3"
	is "and no peer was started" "$(grep -c 'supervisor: started' "$log")" 0
}

expect_err 2 "line 2: memory: 24.0M is too little, the peers need 42.0M .memd 6.0M, cached 34.0M, \
volumed 2.0M.; set memory = 64M, or give them less" "a new segment that is too small is refused" \
	xseg up stack.conf
sed 's/^memory = 24M/memory = 1M/' stack.conf >tiny.conf
expect_err 2 "line 2: memory: 1M is out of range, it must be 4M to 1T, the peers need 42.0M .memd 6.0M, \
cached 34.0M, volumed 2.0M.; set memory = 64M" "one that no segment can have, in the same line" \
	xseg up tiny.conf
sed 's/^memory = 24M/memory = 3T/' stack.conf >huge.conf
expect_err 2 "line 2: memory: 3T is out of range, .*; set memory = 64M" "or one that is too large" \
	xseg up huge.conf
expect_exit 4 "and not made" xseg info
t "a segment is made" xseg create --memory 40M
free=$(free_of_segment)
refused "one that is there and lacks one extent is refused" \
	"the segment has 40.0M of memory left and its peers need 42.0M .*" peers.conf
t "and is as it was before" is_as_before
t "it goes" xseg destroy
t "a segment is made with few requests" xseg create --memory 64M --requests 256
refused "it is refused to peers that need more of them" \
	"the segment has 256 requests left and its peers need 992" threads.conf
t "it goes as well" xseg destroy
t "a segment is made with few ports" xseg create --memory 64M --ports 8
refused "so is one with too few ports" \
	"the segment has 7 ports left and its peers need 9" threads.conf
t "and that goes" xseg destroy

# What is asked for is what is taken.
t "a segment is made that has just enough" xseg create --memory 42M
t "it is served" xseg up peers.conf
is "with nothing left" "$(field_of free_bytes info)" 0
t "a peer dies" kill_hard "$(peer_field cached pid)"
supervisor=$(xseg --json status | jq .supervisor.pid)
t "the supervisor, too" kill_hard "$supervisor"
t "peers that the segment has already need no more room" wait_for 60 xseg up peers.conf
t "all serve" wait_for 60 all_serve
t "it ends" xseg down

# ---- values by key, and their gateway ----

cat >values.conf <<END
[segment]
memory = 20M
[peer memd]
memory = 16M
[peer values]
kind = kvd
downstream = memd
size = 16M
zone_size = 1M
tail = 1M
keys = 1000
[peer memcached]
kvd = values
listen = unix:$TMP/socket
threads = 2
END
xseg up values.conf 2>err.txt
is "a message has what each part needs" "$(grep -cE \
	'line 2: memory: 20.0M is too little, the peers need [0-9.]+M .memd 18.0M, values [0-9.]+M, memcached 20.0M.; set memory = [0-9]+M' err.txt)" 1
is "and is the only one" "$(wc -l <err.txt)" 1
t "what is needed is known" eval "xseg --json config check values.conf >check.json; jq -e '.memory.needed_bytes > 0' check.json"
sed -i "s/^memory = 20M/memory = $(($(jq .memory.needed_bytes check.json) >> 20))M/" values.conf
t "with just that much it comes up" xseg up values.conf
t "and the gateway has its queues" wait_for 60 \
	grep -q "memcached: the store of values values is open" "$log"
is "nothing is left" "$(field_of free_bytes info)" 0
t "it ends" xseg down
finish
