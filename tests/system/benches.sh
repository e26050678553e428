#!/bin/bash
# benches.sh - the benchmarks: bench-lru counts right. Nothing here judges a figure that depends on time.
. "$(dirname "$0")/../lib/system.sh"
need jq

# ---- the exact LRU ----

# trace FILE OFFSET/SIZE...: reads, as xbench logs them
trace()
{
	local file=$1 io
	shift
	{
		printf 'fio version 2 iolog\nmemd add\nmemd open\n'
		for io; do
			echo "memd read ${io%/*} ${io#*/}"
		done
		echo "memd close"
	} >"$file"
}

# hits SENTENCE "READS HITS" ARGUMENT...: of bench-lru with a cache of two blocks
hits()
{
	local sentence=$1 wanted=$2
	shift 2
	is "$sentence" "$(json_of '"\(.reads) \(.hits)"' bench-lru --cache=8k "$@")" "$wanted"
}

trace three 0/4096 4096/4096 0/4096 8192/4096 4096/4096 8192/4096
hits "the block that was used least recently goes" "6 2" three
hits "what fills the cache is not counted" "3 1" --warmup=50 three
trace wide 0/8192 0/512 4000/200 0/12288 4096/8192
hits "a read is a hit when all its blocks are there" "5 3" wide
trace other 1048576/4096 1052672/4096 1056768/4096 1060864/4096 1064960/4096 1069056/4096
hits "traces beside each other are merged evenly" "12 0" three other
is "each trace has its own counts" \
	"$(json_of '[.traces[] | .reads, .hits] | tostring' bench-lru --cache=1M three three other)" "[6,3,6,6,6,0]"
cat three three >twice
hits "traces that are concatenated are one after the other" "12 4" twice
sed 's/read/write/' three >writes
hits "writes are not counted" "0 0" writes
expect_err 1 "line 1, is not of fio's iolog version 2" "what is no trace is refused" bench-lru "$root/Makefile"
expect_err 1 "cannot open none" "a trace that is not there is named" bench-lru none
expect_err 2 "give 1 to 16 traces" "a trace is wanted" bench-lru
finish
