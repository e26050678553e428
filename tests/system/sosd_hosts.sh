#!/bin/bash
# sosd_hosts.sh - two segments, as of two hosts, and one pool: one at a time serves the objects of a
# prefix. The second is refused, and told which host serves it. It takes over when the first one was
# not heard of for too long. When the first one wakes, it changes nothing any more, not even by its
# cache's dirty data, and does not serve its old copies. A volume with a prefix of its own moves
# from one host to the other, while the rest stays.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need ceph-mon ceph-osd ceph rados xseg xseg-host xbench volumed cached sosd jq

first=$XSEG_SEGMENT
second=$XSEG_SEGMENT-b
cluster=$TMP/ceph

write_stack()	# FILE SEGMENT
{
	cat >"$1" <<-END
	[segment]
	name = $2
	memory = 96M
	[peer sosd]
	pool = xseg
	conf = $cluster/ceph.conf
	user = xseg
	lock_expiry = 5s
	[peer cached]
	downstream = sosd
	memory = 16M
	dirty_age = 1h
	dirty_high = 90
	dirty_low = 80
	[peer volumed]
	downstream = cached
	END
}

write_all()	# SEGMENT SEED: every sector of the volume, by one job
{
	xbench -s "$1" --volume=vol --rw=write --bs=64k --size=4M --iodepth=8 --randseed="$2" \
		--verify=crc32c --verify_state="$TMP/$2.state" \
		--number_ios=64 --output-format=json
}

reads_back()	# SEGMENT SEED
{
	xbench -s "$1" --volume=vol --rw=write --bs=64k --size=4M --iodepth=8 --randseed="$2" \
		--verify=crc32c --verify_only \
		--verify_state="$TMP/$2.state" --output-format=json
}

dirty_bytes()	# SEGMENT
{
	xseg -s "$1" --json cache status cached | jq .dirty_bytes
}

log_says()	# SEGMENT REGEX
{
	grep -qE "$2" "$TMP/xseg-$1.log"
}

t "a cluster comes up" "$root/tests/system/ceph/cluster.sh" up "$cluster" || finish
export CEPH_CONF=$cluster/ceph.conf
write_stack first.conf "$first"
write_stack second.conf "$second"
t "the first host serves" xseg up first.conf
t "a volume is made" xseg volume create vol --size 4M
expect_json "$no_errors" "it is written" write_all "$first" 1
t "and flushed" xseg volume flush vol

# ---- one at a time ----

holder="$(hostname)/$first/sosd/[0-9]+"
expect_err 4 "sosd did not start: .* are served by $holder; stop that one" \
	"the second host is refused, and told who serves" \
	xseg -s "$second" up second.conf
expect_exit 4 "and its segment is removed again" xseg -s "$second" info
t "a segment without a stack" xseg -s "$second" create --memory 32M
expect_err 4 "are served by $holder; stop that one" \
	"sosd itself says by its exit code that it was refused" \
	timeout 30 sosd -s "$second" --pool=xseg --user=xseg
t "the segment is removed" xseg -s "$second" destroy --force
t "Ceph's tools say who serves, too" bash -c "rados -p xseg lock info xseg:owner xseg | jq -er '.lockers[0].cookie' | grep -qE '^$holder\$'"
t "another prefix is free" bash -c "sed 's/^pool = .*/&\nprefix = other/' second.conf >other.conf && xseg -s $second up other.conf && xseg -s $second down"

# ---- a host that stands still ----

expect_json "$no_errors" "the first host writes again, into its cache" write_all "$first" 2
t "and is dirty" [ "$(dirty_bytes "$first")" -ge $((4 << 20)) ]
stopped=$(peer_field sosd pid)
t "it stands still" freeze "$stopped"
t "the second takes over when its lock has expired" wait_for 60 xseg -s "$second" up second.conf
t "and says whom the OSDs refuse" log_says "$second" \
	"the OSDs refuse requests from .*, which served these objects before"
expect_json "$no_errors" "what had been flushed is there" reads_back "$second" 1
expect_json "$no_errors" "the second host writes" write_all "$second" 3
t "and flushes" xseg -s "$second" volume flush vol
kill -CONT "$stopped"
expect_exit 1 "the first host cannot flush what it holds" timeout 120 xseg volume flush vol
t "it is dirty as before" [ "$(dirty_bytes "$first")" -ge $((4 << 20)) ]
t "its log says who serves" wait_for 60 log_says "$first" "sosd: error: ($(hostname)/$second/sosd/[0-9]+ serves these objects now|the cluster has blocklisted)"
t "the second host's cache is emptied" xseg -s "$second" cache drop cached
expect_json "$no_errors" "what the second host wrote is in the pool" reads_back "$second" 3
t "the second host stops" xseg -s "$second" down
t "the first one's sosd is killed" xseg peer kill sosd
t "it does not serve what its cache has old copies of" wait_for 60 log_says "$first" \
	"sosd: error: $(hostname)/$second/sosd/[0-9]+ has served the objects of prefix 'xseg'"
t "the first host gives up what it holds" xseg down --force
t "it starts anew" wait_for 60 xseg up first.conf
expect_json "$no_errors" "and serves what the second wrote" reads_back "$first" 3
t "it is killed, all of it" bash -c "kill -KILL \$(xseg --json peer list | jq '.[].pid' | sort -u) \$(xseg --json status | jq .supervisor.pid)"
t "the second host takes over when its lock has expired" wait_for 60 xseg -s "$second" \
	up second.conf
expect_json "$no_errors" "nothing is lost" reads_back "$second" 3
t "the second host stops" xseg -s "$second" down

# ---- a volume that moves by itself ----

write_chains()	# SEGMENT PREFIX...: a chain of peers for each
{
	local prefix
	printf '[segment]\nname = %s\nmemory = 96M\n' "$1"
	shift
	for prefix; do
		cat <<-END
		[peer sosd-$prefix]
		kind = sosd
		pool = xseg
		conf = $cluster/ceph.conf
		user = xseg
		prefix = $prefix
		[peer cached-$prefix]
		kind = cached
		downstream = sosd-$prefix
		memory = 8M
		dirty_age = 1h
		[peer volumed-$prefix]
		kind = volumed
		downstream = cached-$prefix
		END
	done
}

chain_stop()	# PREFIX
{
	local kind
	for kind in volumed cached sosd; do
		xseg peer stop "$kind-$1" || return 1
	done
}

write_chains "$first" stays moves >first.conf
write_chains "$second" moves >second.conf
t "the first host serves two prefixes" xseg up first.conf
t "one has the volume" xseg volume create vol --size 4M --volumed volumed-moves
t "the other one of the same name" xseg volume create vol --size 4M --volumed volumed-stays
t "data is written to the first" bash -c "head -c 4M /dev/urandom >moves &&
	xseg volume import vol moves --volumed volumed-moves"
expect_err 4 "the objects of prefix 'moves' are served by" "the second host is refused" \
	xseg -s "$second" up second.conf
t "its chain stops" chain_stop moves
t "the second host serves it" wait_for 60 xseg -s "$second" up second.conf
t "its data is there" bash -c "xseg -s '$second' volume export vol copy && cmp moves copy"
t "the first one serves the other" bash -c "xseg volume export vol rest --volumed volumed-stays &&
	cmp -n 4194304 rest /dev/zero"
t "the second host stops" xseg -s "$second" down
t "the first one, too" xseg down
finish
