# leftovers.sh - ends the processes that a test left behind; sourced by tests/run.sh and
# tests/lib/system.sh.
#
# Contract: a test's processes are those that were started with XSEG_SEGMENT=NAME in their
# environment, even if they have left their process group, as daemons do. Nothing else is ever
# killed.

# segment_pids NAME: processes of the test, without this shell. One program looks at all of them,
# and was not there when they were listed.
segment_pids()
{
	local environs=(/proc/[0-9]*/environ) pids pid
	pids=$(grep -lzxF "XSEG_SEGMENT=$1" "${environs[@]}" 2>/dev/null)
	for pid in ${pids//[!0-9$'\n']/}; do
		[ "$pid" = "$$" ] || echo "$pid"
	done
}

# end_segment NAME: kills the test's processes and removes its segments (NAME and NAME-anything)
end_segment()
{
	local pids tries
	[ -n "$1" ] || return 0
	for tries in 1 2 3 4 5 6 7 8 9 10; do
		pids=$(segment_pids "$1")
		[ -n "$pids" ] || break
		# shellcheck disable=SC2086
		kill -KILL $pids 2>/dev/null
		sleep 0.05
	done
	rm -f "/dev/shm/xseg.$1" "/dev/shm/xseg.$1"-*
	# their pages, where they are elsewhere (xseg/pool_file.c)
	awk '$3 == "hugetlbfs" { print $2 }' /proc/mounts | while read -r mount; do
		rm -f "$mount/xseg.$1":* "$mount/xseg.$1"-*
	done
}
