#!/bin/bash
# sosd.sh - volumes in a pool of Ceph RADOS, on a cluster of the test's own. Written data is there,
# also for Ceph's tools. An OSD that is killed or stands still is a pause, in both policies; so is a
# sosd, cached or volumed that is killed.
#
# One load writes, reads and verifies for each policy, through all of it. At the end its
# acknowledged data is read back through a stack that has no cache.
# timeout: 200
. "$(dirname "$0")/../lib/system.sh"
need ceph-mon ceph-osd ceph rados xseg xseg-host xbench volumed cached sosd jq

away=$(bound 2 10)		# seconds that the OSD is
cluster=$TMP/ceph

ceph_cluster()	# COMMAND
{
	"$root/tests/system/ceph/cluster.sh" "$1" "$cluster"
}

write_stack()	# PEER: that volumed sends to
{
	cat >stack.conf <<-END
	[segment]
	name = $XSEG_SEGMENT
	memory = 128M
	[peer sosd]
	pool = xseg
	conf = $cluster/ceph.conf
	user = xseg
	$([ "$1" = sosd ] || printf '[peer cached]\ndownstream = sosd\nmemory = 16M\ndirty_age = 200ms')
	[peer volumed]
	downstream = $1
	object_size = 1M
	END
}

# has_done VOLUME NUMBER: its load has been answered so often
has_done()
{
	counts_more volumes "$1" ops "$2"
}

# all_verified VOLUME: what the load of that volume was acknowledged is there
all_verified()
{
	xbench --volume="$1" --rw=randrw --bs=64k --iodepth=16 --numjobs=2 --verify=crc32c \
		--verify_only --verify_state="$TMP/$1.state" --output-format=json
}

# ---- the cluster, and what is in it ----

t "a cluster comes up" ceph_cluster up || finish
export CEPH_CONF=$cluster/ceph.conf
write_stack cached
t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create data --size 16M
expect_json "$no_errors" "verified I/O sees no error" \
	xbench --volume=data --rw=randrw --bsrange=512-256k --iodepth=16 --numjobs=2 --fsync=50 \
	--opmix=trim:5,write_zeroes:5 --verify=crc32c --verify_state="$TMP/data.state" \
	--number_ios=1500 --output-format=json
t "a flush succeeds" xseg volume flush data
t "nothing is dirty" wait_for 60 is_clean
t "the volume is exported" xseg volume export data data.raw
# data_object NUMBER: the name of that object of the only volume
data_object()
{
	rados -p xseg ls | grep -x "xseg\.-[0-9a-f]\{16\}[a-k]:$(printf %016x "$1")"
}
t "rados lists its objects and the list of volumes" \
	bash -c "rados -p xseg ls | grep -qx 'xseg.:catalog' &&
	[ \$(rados -p xseg ls | grep -c '^xseg.-[0-9a-f]\{16\}[a-k]:[0-9a-f]\{16\}\$') -eq 16 ]"
t "rados tells the size of one" \
	bash -c "rados -p xseg stat '$(data_object 3)' | grep -q ', size [1-9][0-9]*\$'"
t "rados gets one" rados -p xseg get "$(data_object 3)" object
t "it is what the volume holds" cmp -n "$(stat -c %s object)" object data.raw 0 $((3 << 20))

# The set is as large as the cache, so some of what fio checks comes from the pool.
sentence="what fio writes is what it reads"
if [ -e "$BUILD/lib/fio-xseg.so" ] && command -v fio >/dev/null; then
	t "$sentence" env ENGINE="$BUILD/lib/fio-xseg.so" SEGMENT="$XSEG_SEGMENT" \
		VOLUME=data fio "$root/bench/fio/verify.fio"
else
	skip "$sentence" "fio's engine is not built (make deps)"
fi

# ---- an OSD that is away ----

# osd_is_away VOLUME COMMAND UNDO: under the volume's load
osd_is_away()
{
	t "$1: the OSD is away ($2)" ceph_cluster "$2"
	sleep $away
	t "$1: it is back ($3)" ceph_cluster "$3"
	sleep 1
}

# Only who does not know the map yet needs a monitor.
monitor_is_away()
{
	t "$1: the monitor is killed" ceph_cluster kill-mon
	ios_before=$(counted peers sosd ops)
	t "$1: sosd goes on without it" \
		wait_for 60 counts_more peers sosd ops $((ios_before + 100))
	t "$1: the monitor is started again" ceph_cluster start-mon
}

# run_load VOLUME: in the background, pid in $load
run_load()
{
	local direct=(never auto)
	start "$1" xbench --volume="$1" --data=loan --direct=${direct[RANDOM % 2]} \
		--rw=randrw --bsrange=512-32k --iodepth=16 --numjobs=2 --fsync=200 --opmix=trim:1,write_zeroes:1 \
		--rate_iops="$(bound 1000 0)" --verify=crc32c --verify_state="$TMP/$1.state" --runtime=1h \
		--output-format=json \
		--output="$1.json"
	load=$started
	sleep 1
}

# end_load VOLUME AT_LEAST: and look at what it saw
end_load()
{
	t "$1: it was a load" wait_for 60 has_done "$1" "$2"
	kill -INT "$load"
	wait "$load"
	is "$1: the load ended when it was told to" "$?" 3
	expect_json "$no_errors" "$1: it saw no error" cat "$1.json"
	t "$1: all that is dirty arrives" wait_for 60 is_clean
	t "$1: a flush succeeds" xseg volume flush "$1"
	expect_json "$no_errors" "$1: all that was acknowledged is there" all_verified "$1"
}

for policy in write-back write-through; do
	t "$policy" xseg cache set cached policy=$policy
	t "$policy: a volume is made" xseg volume create $policy --size 32M
	run_load $policy
	osd_is_away $policy kill-osd start-osd
	osd_is_away $policy stop-osd cont-osd
	monitor_is_away $policy
	end_load $policy 300
done

# ---- peers that are killed ----

t "write-back" xseg cache set cached policy=write-back
t "a volume is made" xseg volume create killed --size 32M
free=$(free_of_segment)
run_load killed
for peer in sosd cached volumed sosd; do
	t "$peer is killed" xseg peer kill $peer
	t "$peer is started again" wait_for 60 state_is $peer running
	sleep 1
done
t "the OSD stands still" ceph_cluster stop-osd
t "sosd is killed" xseg peer kill sosd
t "it is started again, with nobody to write to" wait_for 60 state_is sosd running
t "the OSD goes on" ceph_cluster cont-osd
end_load killed 300
t "the segment is sound" xseg check
t "pages and requests are free that were before" wait_for 60 is_as_before
is "nothing wrong was found in the segment" "$(field_of bad_count info)" 0
t "the log says that the OSDs refuse what the killed ones sent" [ "$(grep -c 'the OSDs refuse requests from .*, which served' "$TMP/xseg-$XSEG_SEGMENT.log")" -ge 3 ]

# ---- an OSD that is away for too long ----

small="--rw=write --bs=4k --size=64k --number_ios=16 --iodepth=16 --output-format=json"
t "sosd gives up sooner" xseg peer set sosd io_timeout=2s
t "the OSD is killed" ceph_cluster kill-osd
# shellcheck disable=SC2086
expect_json "$no_errors" "write-back goes on taking writes" xbench --volume=data $small
expect_exit 1 "a flush says that it cannot" timeout 120 xseg volume flush data
t "the data is still dirty" is_dirty
t "write-through" xseg cache set cached policy=write-through
# shellcheck disable=SC2086
expect_exit 1 "write-through: the writer is told" timeout 120 xbench --volume=data $small
t "sosd is as patient as before" xseg peer set sosd io_timeout=60s
t "the OSD is started again" ceph_cluster start-osd
t "all that is dirty arrives" wait_for 60 is_clean
t "a flush succeeds" xseg volume flush data

# ---- an OSD that is full ----

osd_is_full_at()	# RATIO
{
	printf "osd set-%s-ratio $1\n" nearfull backfillfull full | ceph
}

# Ceph's command takes a third of a second of a processor, so it is not asked all the time.
is_full()
{
	sleep 0.5
	ceph health 2>/dev/null | grep -q '1 full osd'
}

is_told_that_it_is_full()
{
	# shellcheck disable=SC2086
	timeout 120 xbench --volume=full $small 2>&1 | grep -q 'failed: No space left on device'
}

t "a volume is made" xseg volume create full --size 1M
t "the OSD is full" osd_is_full_at 0.001
t "and has said so" wait_for 60 is_full
t "write-through: the writer is told why" is_told_that_it_is_full
t "the log says what to look at" wait_for 60 grep -q "an OSD is full: 'ceph health detail'" \
	"$TMP/xseg-$XSEG_SEGMENT.log"
t "write-back" xseg cache set cached policy=write-back
# shellcheck disable=SC2086
expect_json "$no_errors" "write-back goes on taking writes" xbench --volume=full $small
expect_err 1 "No space left on device" "a flush says why it cannot" xseg volume flush full
expect_json "$no_errors" "what is in the pool can be read" all_verified write-back
t "there is room again" osd_is_full_at 0.9
t "all that is dirty arrives" wait_for 60 is_clean
t "the OSD is full once more" osd_is_full_at 0.001
t "and has said so once more" wait_for 60 is_full
t "the stack stops" xseg down
t "and comes up" xseg up stack.conf
expect_json "$no_errors" "what is in the pool can be read then, too" all_verified write-back
t "a volume is removed to make room" timeout 60 xseg volume remove full

log_says()	# REGEX
{
	grep -qE "$1" "$TMP/xseg-$XSEG_SEGMENT.log"
}

t "the object of the lock is removed, too" rados -p xseg rm xseg:owner --force-full
t "the log says why it cannot be made again" wait_for 60 log_says \
	"the lock of its objects .* cannot be taken: No space left on device; .* OSD is full: 'ceph"
t "there is room" osd_is_full_at 0.9
t "it is made again" wait_for 60 log_says "the lock of its objects can be taken again"
t "and says who serves" bash -c "rados -p xseg get xseg:owner - | grep -q '/$XSEG_SEGMENT/sosd/'"

# ---- a sosd that an administrator has blocklisted ----

blocklist()
{
	ceph osd blocklist add "$(rados -p xseg get xseg:owner - | cut -d ' ' -f 1)"
}

pool_is()	# OWNER
{
	[ "$(xseg --json status | jq -r '.pools[0].owner')" = "$1" ]
}

says_that_it_is_lost()
{
	xseg status | grep -q '^pool  *sosd: xseg, prefix xseg: LOST: another host serves'
}

t "sosd is blocklisted" blocklist
# shellcheck disable=SC2086
expect_json "$no_errors" "write-back goes on taking writes" xbench --volume=data $small
expect_exit 1 "a flush says that it cannot" timeout 120 xseg volume flush data
t "the status shows it" wait_for 60 pool_is lost
t "and what it means" says_that_it_is_lost
t "sosd is stopped, as it said" xseg peer stop sosd --force
expect_json '.pools == [{name: "sosd", pool: null, prefix: null, owner: null, pending: null, tried_again: null, timeouts: null}]' \
	"of which nothing is known then" xseg --json status
t "and started" xseg peer start sosd
t "a flush succeeds" timeout 120 xseg volume flush data
t "the status shows that, too" pool_is yes
t "everything stops" xseg down

# ---- without a cache ----

write_stack sosd
t "a stack without a cache comes up" xseg up stack.conf
for volume in write-back write-through killed; do
	expect_json "$no_errors" "$volume: all that was acknowledged is in the pool" \
		all_verified $volume
done
expect_json "$no_errors" "verified I/O sees no error without a cache, either" \
	xbench --volume=killed --rw=randrw --bsrange=512-64k --iodepth=16 \
	--numjobs=2 --opmix=trim:5,write_zeroes:5 --verify=crc32c --number_ios=500 \
	--output-format=json
t "a volume is removed" xseg volume remove killed
t "and its objects" wait_for 60 bash -c "! rados -p xseg ls | grep -q '^xseg.killed:'"
t "everything stops again" xseg down

odd="a b%c"
t "a pool with an odd name" ceph osd pool create "$odd" 1
sed "s/^pool = .*/pool = $odd/; s/^user = .*/user = admin/" stack.conf >odd.conf
t "is served" xseg up odd.conf
expect_json ".pools[0].pool == \"$odd\"" "and named" xseg --json status
t "that stops, too" xseg down
sed -i 's/^pool = xseg/pool = nowhere/' stack.conf
expect_err 1 "there is no pool 'nowhere'; 'ceph osd pool ls' shows the pools" \
	"a pool that is not there is named" xseg up stack.conf
sed -i 's/^user = xseg/user = client.xseg/' stack.conf
expect_err 2 "user: 'client.xseg' begins with 'client.'; leave that out" \
	"a user who is written with 'client.' is refused" xseg up stack.conf
sed -i 's/^user = .*/user =/' stack.conf
expect_err 2 "user: it is empty" "so is one without a name" xseg up stack.conf

daemons=$(paste -sd, "$cluster"/mon.pid "$cluster"/osd.pid)
t "the cluster is ended" ceph_cluster down
t "without a trace" bash -c "[ ! -e '$cluster' ] && ! ps -o stat= -p '$daemons' | grep -q '^[^Z]'"
finish
