#!/bin/bash
# cluster.sh - a Ceph cluster for tests, from Debian's packages: a monitor and an OSD as plain
# processes on loopback, with all their files in one directory. No manager, no root, nothing outside
# the directory; up in some 5 s.
#
# Usage: tests/system/ceph/cluster.sh COMMAND DIR
#   up DIR          makes it and starts it; prints nothing. `export CEPH_CONF=DIR/ceph.conf` then
#                   tells rados, ceph and librados
#   down DIR        ends it and removes the directory
#   kill-osd DIR    SIGKILL; start-osd DIR starts it again, and returns when it serves
#   stop-osd DIR    SIGSTOP, and returns when it stands still; cont-osd DIR SIGCONT
#   kill-mon DIR    SIGKILL; start-mon DIR starts it again
# By hand:
#   tests/system/ceph/cluster.sh up /tmp/ceph
#   CEPH_CONF=/tmp/ceph/ceph.conf rados -p xseg ls
#   tests/system/ceph/cluster.sh down /tmp/ceph
#
# The pool xseg is the tests'. client.xseg has the rights that sosd(8) asks for. The store is
# bluestore on a sparse file of CLUSTER_SIZE (4G), because memstore's data is gone with its process.
# The OSD is put into the CRUSH map by hand, and does not do so itself (osd crush update on start):
# with both, it could be moved just when the pool is made. Every call of a tool is under a time
# limit. A failure is one line on stderr, and exit code 1.
set -u

pool=xseg
# For what hangs, not for a machine that is slow: seconds that a tool may take, and until all serves.
limit=300
up_limit=600
patience=2	# seconds that it has to answer; who asks before it serves may ask in vain

# What was not whole does not run; its directory stays, for whoever wants to know why.
fail()		# WORDS...
{
	echo "cluster.sh: $*; the logs are in $dir" >&2
	[ "$command" != up ] || { end osd; end mon; }
	exit 1
}

tool()		# COMMAND...: quiet while it succeeds
{
	timeout -k 1 "$limit" "$@" >"$dir/tool.out" 2>&1 </dev/null ||
		fail "'$1 ${2-} ${3-} ${4-}' failed: $(tail -n 1 "$dir/tool.out")"
}

# A port of loopback that nobody listens on. The monitor takes it some seconds later. Scripts that
# run side by side do not choose the same one meanwhile, as each begins at its own process id.
# Another program may take it before the monitor does, which then says so.
free_port()
{
	local port
	for ((port = 20000 + $$ % 10000; ; port++)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

write_conf()	# FSID PORT
{
	cat >"$dir/ceph.conf" <<-END
	[global]
	fsid = $1
	mon_host = [v2:127.0.0.1:$2/0]
	public_addr = 127.0.0.1
	ms_bind_msgr1 = false
	keyring = $dir/\$name.keyring
	run_dir = $dir
	crash_dir = $dir
	admin_socket =
	osd_pool_default_size = 1
	osd_pool_default_min_size = 1
	osd_pool_default_pg_num = 8
	osd_pool_default_pg_autoscale_mode = off
	osd_crush_chooseleaf_type = 0

	[mon]
	mon_data = $dir/mon
	log_file = $dir/mon.log
	mon_cluster_log_file = $dir/cluster.log
	mon_allow_pool_size_one = true
	mon_allow_pool_delete = true
	mon_osd_min_up_ratio = 0
	mon_data_avail_crit = 1
	mon_data_avail_warn = 1
	paxos_propose_interval = 0.1
	paxos_min_wait = 0.01

	[osd]
	osd_data = $dir/osd
	log_file = $dir/osd.log
	osd_objectstore = bluestore
	bluestore_block_size = $(numfmt --from=iec "$size")
	osd_crush_update_on_start = false
	osd_class_update_on_start = false
	osd_memory_target = 939524096
	bluestore_cache_autotune = false
	bluestore_cache_size = 134217728
	END
}

# The monitor takes all keys in when it is made: none has to be asked for later.
write_keys()
{
	local all=$dir/all.keyring name
	tool ceph-authtool -C "$all" --gen-key -n mon. --cap mon 'allow *'
	tool ceph-authtool "$all" --gen-key -n client.admin --cap mon 'allow *' \
		--cap osd 'allow *' --cap mgr 'allow *'
	tool ceph-authtool "$all" --gen-key -n osd.0 --cap mon 'allow profile osd' \
		--cap osd 'allow *'
	tool ceph-authtool "$all" --gen-key -n client.xseg --cap mon 'profile rbd' \
		--cap osd "allow rwx pool=$pool"
	for name in mon. client.admin osd.0 client.xseg; do
		timeout "$limit" ceph-authtool "$all" -n "$name" --print-key >"$dir/key" ||
			fail "no key for $name"
		printf '[%s]\n\tkey = %s\n' "$name" "$(<"$dir/key")" >"$dir/${name%.}.keyring"
	done
	mv "$dir/mon.keyring" "$dir/mon.a.keyring"
}

# daemon NAME PROGRAM ARGUMENTS...: in the background, in a session of its own
daemon()
{
	local name=$1
	shift
	setsid "$@" -f >>"$dir/$name.out" 2>&1 </dev/null &
	echo $! >"$dir/$name.pid"
}

start_mon()
{
	daemon mon ceph-mon -i a
}

start_osd()
{
	daemon osd ceph-osd -i 0
}

pid()		# mon|osd
{
	[ -s "$dir/$1.pid" ] || fail "there is no $1"
	cat "$dir/$1.pid"
}

# Whether objects can be written and read. Who was not answered in time waits for longer, next time.
serves()
{
	timeout -k 1 "$patience" \
		rados -p "$pool" stat cluster-serves >"$dir/tool.out" 2>&1 </dev/null && return
	[ $? -lt 124 ] || patience=$((2 * patience))
	grep -q 'No such file' "$dir/tool.out"
}

wait_until_it_serves()
{
	local end=$((SECONDS + up_limit))
	until serves; do
		[ $SECONDS -lt $end ] ||
			fail "it does not serve after $up_limit s: $(tail -n 1 "$dir/tool.out")"
		sleep 0.1
	done
}

up()
{
	local fsid uuid port
	[ ! -e "$dir" ] || {
		echo "cluster.sh: $dir is there already; 'down' it, or take another" >&2
		exit 1
	}
	mkdir -p "$dir/mon" "$dir/osd" || exit 1
	fsid=$(</proc/sys/kernel/random/uuid)
	uuid=$(</proc/sys/kernel/random/uuid)
	port=$(free_port)
	write_conf "$fsid" "$port"
	write_keys
	tool monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$port/0]" "$dir/monmap"
	tool ceph-mon --mkfs -i a --monmap "$dir/monmap" --keyring "$dir/all.keyring"
	start_mon
	tool ceph-osd --mkfs -i 0 --osd-uuid "$uuid" --monmap "$dir/monmap"
	tool ceph osd new "$uuid" 0
	tool ceph osd crush add osd.0 1.0 root=default
	start_osd
	tool ceph osd pool create "$pool" 8
	wait_until_it_serves
}

end()		# mon|osd
{
	local pid
	[ -s "$dir/$1.pid" ] || return 0
	pid=$(<"$dir/$1.pid")
	kill -KILL "$pid" 2>/dev/null
	rm -f "$dir/$1.pid"
	while [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do
		sleep 0.01
	done
}

# It stands still a while after the signal: until then its threads do what they are asked for.
stop_osd()
{
	local pid
	pid=$(pid osd) || exit 1
	kill -STOP "$pid" || exit 1
	while grep -hs '^State:' "/proc/$pid/task"/*/status | grep -qv '[TZ] ('; do
		sleep 0.01
	done
}

[ $# -eq 2 ] || { sed -n '/^# Usage/,/^# By hand/ { /By hand/d; s/^# //p }' "$0" >&2; exit 2; }
command=$1
dir=$(realpath -m "$2")
size=${CLUSTER_SIZE:-4G}
export CEPH_CONF=$dir/ceph.conf CEPH_ARGS=
if [ "$command" != up ] && [ ! -e "$CEPH_CONF" ]; then
	echo "cluster.sh: there is no cluster in $dir" >&2
	exit 1
fi
case $command in
up)        up ;;
down)      end osd; end mon; rm -rf "$dir" ;;
kill-osd)  end osd ;;
kill-mon)  end mon ;;
stop-osd)  stop_osd ;;
cont-osd)  kill -CONT "$(pid osd)" ;;
start-osd) start_osd; wait_until_it_serves ;;
start-mon) start_mon; wait_until_it_serves ;;
*)         echo "cluster.sh: no command $command" >&2; exit 2 ;;
esac
