# eval.sh - sides of the published evaluations: each in one memory cgroup, under the driver of
# rivals/. kv_offload.sh, kv_lustre.sh and kv_filecache.sh source it after lib.sh.
#
#	bench_begin xseg xseg-host bench-rival-xseg bench-rival-memcached
#	eval_begin			# leaves the script out where no cgroup can be had
#	group_make NAME MIB		# the memory of a side
#	in_group NAME COMMAND...	# with what it starts, and the pages that it touches first
#	load NAME FILE PROGRAM ARGUMENT...	# the driver; FILE gets its JSON, or how it failed
#	group_end NAME
#
# A group counts the memory of its processes, shared memory and the page cache. The process that touches a
# page first pays for it. `xseg up` in a group takes all of the segment's memory there.
#
# BENCH_LIMIT (900s): a load that takes longer is ended, and its report says so.
# BENCH_FROM=FOLDER: nothing is measured; the report is made of the raw files in that folder, where
# the pieces of a long measurement were collected.

groups=()

# ---- memory groups ----

# The folder of the memory controller, and what its files are called.
group_root()
{
	if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
		cgroups=/sys/fs/cgroup/memory limit_file=memory.limit_in_bytes
		peak_file=memory.max_usage_in_bytes kills_file=memory.oom_control
	elif grep -qw memory /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
		echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
		cgroups=/sys/fs/cgroup limit_file=memory.max
		peak_file=memory.peak kills_file=memory.events
	else
		return 1
	fi
}

group_dir()	# NAME
{
	echo "$cgroups/xseg-bench-$$-$1"
}

group_make()	# NAME MIB
{
	local dir
	dir=$(group_dir "$1")
	mkdir "$dir" 2>>"$log" && echo $(($2 * 1048576)) >"$dir/$limit_file" 2>>"$log" || return 1
	[ ! -e "$dir/memory.swap.max" ] || echo 0 >"$dir/memory.swap.max"
	groups+=("$1")
}

# in_group NAME COMMAND...
in_group()
{
	# shellcheck disable=SC2016 # of the inner shell
	bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$(group_dir "$1")" "${@:2}"
}

group_kills()	# NAME
{
	awk '$1 == "oom_kill" { print $2; n = 1 } END { if (!n) print 0 }' \
		"$(group_dir "$1")/$kills_file" 2>/dev/null || echo 0
}

group_peak()	# NAME
{
	cat "$(group_dir "$1")/$peak_file" 2>/dev/null || echo 0
}

# What the processes of a group have used of the CPUs, in ticks of 10 ms.
group_ticks()	# NAME
{
	local pid
	while read -r pid; do
		sed 's/.*) //' "/proc/$pid/stat"
	done 2>/dev/null <"$(group_dir "$1")/cgroup.procs" | awk '{ n += $12 + $13 } END { print n + 0 }'
}

# What is left in it is ended: a side may have lost its own way to end.
group_end()	# NAME
{
	local dir pid i
	dir=$(group_dir "$1")
	[ -d "$dir" ] || return 0
	for i in $(seq 100); do
		while read -r pid; do
			kill -KILL "$pid" 2>/dev/null
		done <"$dir/cgroup.procs"
		rmdir "$dir" 2>/dev/null && return
		sleep 0.05
	done
	echo "bench: $dir cannot be removed" >&2
}

groups_end()
{
	local name
	for name in "${groups[@]}"; do
		group_end "$name"
	done
}

# Leaves the script out where a group cannot be had.
eval_begin()
{
	local why=
	if [ -n "${BENCH_FROM:-}" ]; then
		cp "$BENCH_FROM"/*-run.*.json "$raw" || fail "there are no runs in $BENCH_FROM"
		machine()	# as it is now says nothing of the runs
		{
			echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs," \
				"Linux $(uname -r). Of runs that were measured in pieces."
		}
		return
	fi
	also_at_the_end groups_end
	if [ "$(id -u)" != 0 ]; then
		why="root, to make cgroups"
	elif ! group_root || ! group_make try 64; then
		why="the memory controller of cgroups"
	fi
	if [ -n "$why" ]; then
		echo "left out: $name, which needs $why" | tee "$out/report.txt"
		exit 0
	fi
	group_end try
}

# ---- settings, rounds, report ----

# by_env NAME...: a setting that BENCH_NAME of the environment has another value for
by_env()
{
	local setting variable
	for setting; do
		variable=${setting%_mib}
		variable=BENCH_${variable^^}
		[ -z "${!variable:-}" ] || printf -v "$setting" %s "${!variable}"
	done
}

# eval_rounds COMMAND...: is done in each round, when the sides are known
eval_rounds()
{
	[ -z "${BENCH_FROM:-}" ] || return 0
	# shellcheck disable=SC2086 # words
	choose_sides $sides
	while next_round; do
		"$@"
	done
}

eval_report()	# HEAD
{
	bench_report "$1" "$(cat "$out/left_out.txt" 2>/dev/null)"
}

# ---- which sides take part ----

has()	# PROGRAM...
{
	PATH=$PATH:/usr/sbin command -v "$@" >/dev/null
}

# What is missing for a side; nothing when all is there.
missing_for()
{
	case $1 in
	spill | sync | through) has xseg-memcached ||
				      echo "xseg's server of memcached's protocol" ;;
	memcached | extstore) has memcached || echo memcached ;;
	redis | rsync | rasync) has redis-server && has bench-rival-redis ||
				      echo "redis-server, libhiredis-dev, then make" ;;
	leveldb)              has bench-rival-leveldb || echo "libleveldb-dev, then make" ;;
	rocksdb)              has bench-rival-rocksdb || echo "librocksdb-dev, then make" ;;
	lmdb)                 has bench-rival-lmdb || echo "liblmdb-dev, then make" ;;
	esac
}

# choose_sides SIDE...: those of them that BENCH_SIDES names, and that can take part, are in $sides
choose_sides()
{
	local side missing
	sides=
	for side; do
		[ -z "${BENCH_SIDES:-}" ] || [[ " $BENCH_SIDES " == *" $side "* ]] || continue
		missing=$(missing_for "$side")
		if [ -n "$missing" ]; then
			echo "left out: $side, which needs $missing" | tee -a "$out/left_out.txt"
		else
			sides+=" $side"
		fi
	done
}

# ---- sides ----

# What a group has beside the segment's memory, in MiB: the segment's requests, programs, the index
# of KEYS, tables of the cache. The index has 25 bytes a key, and 9.5 more while the log is opened
# (docs/design/kvd.md). With less the kernel kills kvd at each start.
beside_segment()	# MIB KEYS
{
	echo $((26 + $1 / 90 + $2 * 37 / 1048576))
}

# What a client of kvd takes, in MiB: of the segment for THREADS with DEPTH values of KIB in flight
# each, and of its own memory.
rooms_of()	# THREADS DEPTH KIB
{
	local kib=$(($3 < 1024 ? $3 + 16 : 1040))
	echo $(($1 * (($2 * kib + 1024 + 2047) / 2048 * 2) + 2))
}

driver_of()	# THREADS DEPTH KIB
{
	local kib=$(($3 < 1024 ? $3 + 8 : 1024))
	echo $(($1 * $2 * kib / 1024 + $1 / 4 + 12))
}

# stack NAME MIB LOG_MIB KEYS ROOMS_MIB "CACHED OPTIONS" "KVD OPTIONS" [GATE]: the stack of kvd, in the
# group NAME of MIB; the cache has what is left of it. All peers are in one reactor, with a peer of
# the options GATE, too. ROOMS_MIB is what clients take of the segment's memory, $beside_mib what
# driver takes of the group.
stack()
{
	local segment=$(($2 - ${beside_mib:-0} - $(beside_segment "$2" "$4"))) zone=4 tail=4 objects memory
	[ "$2" -ge 200 ] || zone=1 tail=1
	objects=$(($3 / zone * 5 / 4 + 64))
	memory=$((segment - zone - tail - 11 - $5 - objects * 224 / 1048576))
	[ $memory -ge 4 ] || fail "$2 MiB is too little memory for a kvd of $4 keys"
	mkdir -p "$tmp/store-$1"
	{
		printf '[segment]\nname = %s-%s\nmemory = %dM\nrequests = 768\n' \
			"$XSEG_SEGMENT" "$1" "$segment"
		printf '\n[peer filed]\ndir = %s\ncpus = %s\n' "$tmp/store-$1" "$server_cpu"
		printf '\n[peer cached]\ndownstream = filed\nmemory = %dM\nobjects = %d\ncpus = %s\n%s\n' \
			"$memory" "$objects" "$server_cpu" "$6"
		printf '\n[peer kvd]\ndownstream = cached\nsize = %dM\nkeys = %d\ncpus = %s\n' \
			"$3" "$4" "$server_cpu"
		printf 'zone_size = %dM\ntail = %dM\n%s\n' $zone $tail "$7"
		[ -z "${8:-}" ] || printf '\n[peer gate]\n%s\ncpus = %s\n' "$8" "$server_cpu"
		printf '\n[run]\ntogether = filed cached kvd%s\n' "${8:+ gate}"
	} >"$out/$1.conf"
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	ours=1
	stack_begin "$1"
}

# stack_begin NAME: of its stack file. A peer that cannot begin is tried again and again, so a limit
# ends it.
stack_begin()
{
	XSEG_SEGMENT=$XSEG_SEGMENT-$1 in_group "$1" xseg --timeout 60s up "$out/$1.conf" >>"$log" 2>&1 </dev/null
}

stack_down()	# NAME
{
	ours=0
	{ XSEG_SEGMENT=$XSEG_SEGMENT-$1 xseg down --force >>"$log" 2>&1; } || true
	{ end_segment "$XSEG_SEGMENT-$1"; } 2>/dev/null
	rm -rf "$tmp/store-$1"
}

# server NAME COMMAND...: a server in the group NAME, which listens on $socket
server()
{
	rm -f "$socket"
	PATH=$PATH:/usr/sbin serve "[ -S '$socket' ]" in_group "$1" taskset -c "$server_cpu" "${@:2}"
}

# redis_up NAME OPTION...: redis has its files in the folder of the disk
redis_up()
{
	mkdir -p "$tmp/redis"
	server "$1" redis-server --port 0 --unixsocket "$socket" --dir "$tmp/redis" --save '' "${@:2}"
}

memcached_up()	# NAME OPTION...
{
	server "$1" memcached -u "$(id -un)" -s "$socket" -t 1 "${@:2}"
}

servers_gone()
{
	servers_down
	rm -rf "$tmp/redis" "$tmp/ext"
}

# ---- a load ----

# Why a driver failed, in one line: out of memory, too long, or what it said first.
why_failed()	# NAME KILLS CODE SAID
{
	if [ "$(group_kills "$1")" -gt "$2" ]; then
		echo "out of memory, killed"
	elif [ "$3" = 124 ]; then
		echo "not done in $limit"
	else
		sed -n 's/^bench-rival: //p' "$4" | head -n 1
	fi
}

limit=${BENCH_LIMIT:-900s}

# load NAME FILE PROGRAM ARGUMENT...: FILE gets the driver's JSON, with `server_cpu`, the share of a
# CPU that the processes of the group NAME had, and its peak. If the driver failed, all figures are
# 0, and `how` says why; of our own sides that is an error. $driver_in: the driver is in that group.
load()
{
	local group=$1 file=$2 kills ticks began code=0 said=$tmp/said.$BASHPID how place=()
	[ -z "${driver_in:-}" ] || place=(in_group "$group")
	kills=$(group_kills "$group")
	ticks=$(group_ticks "$group")
	began=$(date +%s%N)
	"${place[@]}" timeout -k 5 "$limit" "${@:3}" >"$file" 2>"$said" </dev/null &
	{ wait $! || code=$?; } 2>/dev/null	# the shell tells of a killed one
	ticks=$(($(group_ticks "$group") - ticks))
	began=$((($(date +%s%N) - began) / 10000000))
	if [ $code = 0 ]; then
		jq --argjson cpu "$((ticks * 100 / (began + 1)))" --argjson peak "$(group_peak "$group")" \
			'. + {server_cpu: $cpu, peak: $peak, how: "ok"}' "$file" >"$tmp/file" &&
			mv "$tmp/file" "$file"
		return
	fi
	cat "$said" >>"$log"
	how=$(why_failed "$group" "$kills" $code "$said")
	failed_run "$file" "${how:-exit code $code}" ${ours:-0}
	return 1
}

# failed_run FILE WHY ERROR
failed_run()
{
	jq -n --arg how "$2" --argjson error "$3" '
		{total_ios: 0, iops: 0, bw_bytes: 0, runtime_ns: 0, misses: 0, lat_ns: {mean: 0}} as $none |
		{jobs: [{error: $error, read: $none, write: $none}], how: $how, server_cpu: 0, peak: 0}' \
		>"$1"
}
