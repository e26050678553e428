#!/bin/bash
# hit.sh - the cost of a hit of 4 KiB to 64 KiB, by copy, by loan and without a request.
#
# Usage: bench/hit.sh [--quick | --full]
# Environment: BENCH_SECONDS (0.15, of one run), BENCH_SET (size of
#   the set; else 2G, or less if a fifth of the free memory or of free /dev/shm is less)
#
# These systems do the same I/O at random over the same set, everything in RAM:
#   memory   bench-limit without requests: one core copies blocks (bench/limits/limit_alone.c)
#   memoryscatter  the same, and a block's pages lie anywhere, as in the caches, where random 4 KiB
#            gifts change places
#   lines    bench-limit without requests: one core reads the first lines of pages at random; it
#            keeps as many in flight as it can, as a client of large loans does too
#   limit    bench-limit: lanes, a lookup, one memcpy() a page; no cache (bench/limits/limit.c)
#   cached   xbench -> cached, with memd below it, in one process and one reactor
#   volume   xbench -> volumed -> cached -> memd, in one process and one reactor
#
# limitloan, cachedloan and volumeloan do it by loan: a read gets the pages where they are, a write
# gives its pages away. If peers lend nothing, these are left out, and the report says so.
#
# cacheddirect and volumedirect read, without a request, pages that they borrowed before: 4 KiB with
# one in flight, after a run that meets the pages. cachedmet and volumemet do it by loan beside
# them. They come last, because a later overwrite of pages that were read so is more expensive. In
# all other runs each read is a request.
#
# The server has the first available CPU, the clients have the others. `threads` are clients: each
# has a port of its own and `depth` I/Os in flight. Both stacks run from the beginning to the end.
# The set is written once in sequence before it is measured. Watermark and age of dirty data are set
# so that nothing is flushed meanwhile.
#
# In measured runs the clients read the first line of each page, as the limits do. At the end each
# stack has a run in which every byte is read and verified: by copy, by loan, and without requests
# where possible: raw/verified-SYSTEM-DATA.json.
#
# The points are those of the bars, and a line through them by depth, by size and by clients. --full
# measures all of 4, 16 and 64 KiB, 1 to 64 in flight, one and two clients: half an hour.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
by_form seconds 0.15 0.02
# BS DEPTH THREADS
by_form points "4k 1 1,4k 4 1,4k 16 1,4k 64 1,4k 16 2,16k 16 1,64k 16 1" \
	"4k 1 1,4k 16 1,64k 16 1" "$(printf '%s,' {4k,16k,64k}\ {1,4,16,64}\ {1,2})"
by_form meet_time 3s 50ms
by_form verified_ios 200000 2000
columns="system rw bs depth threads round = iops bytes mean_ns p50_ns p99_ns errors"
vars="load_before verified"
set_file=/dev/shm/$XSEG_SEGMENT.set
by_form ramp 20ms 5ms
systems="cached volume"
datas="copy loan"
directs=direct

# The set that fits, or the one that is asked for
fit=$(($(free_mib) / 5 / 256 * 256))
set_mib=$((fit < 2048 ? fit : 2048))
by_form least_mib 64 16
[ -z "$quick" ] || set_mib=$least_mib
if [[ ${BENCH_SET:-} =~ ^([1-9][0-9]{0,5})([mMgG])$ ]]; then
	case ${BASH_REMATCH[2]} in
	[gG]) set_mib=$((BASH_REMATCH[1] * 1024)) ;;
	*)    set_mib=$((BASH_REMATCH[1] / 4 * 4)) ;;
	esac
elif [ -n "${BENCH_SET:-}" ]; then
	usage "BENCH_SET=$BENCH_SET is not a size such as 512M or 2G"
fi
[ "$set_mib" -ge "$least_mib" ] ||
	usage "a set of $set_mib MiB is too small; $(free_mib) MiB are free, in memory or in /dev/shm"

# ---- the stacks ----

to()	# STACK
{
	local what="--target=cached --objects=$((set_mib / 4)) --object_size=4M"
	[ "$1" = cached ] || what=--volume=bench
	echo "$what --size=${set_mib}M"
}

# The cache holds the whole set and flushes nothing by itself.
stack_up()	# STACK
{
	local volume=
	[ "$1" = cached ] || volume=bench=${set_mib}M
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	on "$1" store_up $((set_mib + set_mib / 3 + spare_mib)) memd "memory = 64M" \
		"$(printf '%s\n' "memory = $((set_mib + set_mib / 4))M" \
			"objects = $((set_mib / 2 + 64))" "$no_flush")" $volume
	# shellcheck disable=SC2046 # words
	on "$1" fill $(to "$1")
}

# Whether peers lend pages is asked by doing it once.
choose_datas()
{
	# shellcheck disable=SC2046 # words
	on cached xbench $(to cached) --data=loan --direct=never --rw=randread --number_ios=1 >/dev/null \
		2>>"$log" && return
	datas=copy
	directs=
	echo "left out: loan; the peers of this build lend no pages" | tee "$out/left_out.txt"
}

# What did not hit or was flushed between two looks makes the figures another thing than hits.
note_counters()	# WHEN SYSTEM
{
	on "$2" xseg --json cache status cached >"$tmp/status.json" 2>>"$log" &&
		jq -r --arg key "$2 $1" '"\($key) \(.reads + .writes) \(.misses + .partial) \(.flushed_bytes)"' \
			"$tmp/status.json" >>"$out/hits.txt" || fail "cached shows no counters"
}

# ---- one run ----

# limit_run MODE SYSTEM RW BS DEPTH THREADS
limit_run()
{
	# shellcheck disable=SC2086 # words
	limit "$2-$3-$4-$5-$6" "$3" "$4" "$5" --numjobs="$6" --size="${set_mib}M" --mode=$1
}

# stack_run STACK DATA SYSTEM RW BS DEPTH THREADS
stack_run()
{
	# shellcheck disable=SC2046 # words
	on "$1" at_random "$3-$4-$5-$6-$7" "$4" "$6" $(to "$1") --data="$2" --bs="$5" --numjobs="$7"
}

# all_systems RW BS DEPTH THREADS: one after the other
all_systems()
{
	local data system suffix
	if [ "$2" != 4k ] && [ "$4" = 1 ]; then
		limit_run memcpy memory "$@"
		limit_run "memcpy --scatter" memoryscatter "$@"
	fi
	for data in $datas; do
		suffix=${data#copy}
		limit_run "$data" "limit$suffix" "$@"
		for system in $systems; do
			stack_run "$system" "$data" "$system$suffix" "$@"
		done
	done
}

# Reads and writes at random, and then a read of all that was written.
verify()	# STACK DATA
{
	# shellcheck disable=SC2046 # words
	on "$1" measure "$raw/verified-$1-$2.json" $(to "$1") --data="$2" --rw=randrw --bs=4k \
		--iodepth=16 --number_ios="$verified_ios" --verify=crc32c
}

# What is met for the first time is asked for.
meet()	# STACK
{
	# shellcheck disable=SC2046 # words
	on "$1" measure "$tmp/meet.json" $(to "$1") --data=direct --rw=randread --bs=4k --iodepth=16 \
		--runtime="$meet_time"
}

# One right after the other
direct_run()	# STACK
{
	stack_run "$1" loan "$1met" read 4k 1 1
	stack_run "$1" direct "$1direct" read 4k 1 1
}

hits()
{
	awk '$2 == "before" { all[$1] = $3; miss[$1] = $4; flushed[$1] = $5 }
	$2 == "after" {
		printf "%s: of %.0f requests %d were no hits; %d bytes were flushed meanwhile\n", $1, $3 - all[$1],
			$4 - miss[$1], $5 - flushed[$1]
	}' "$out/hits.txt" | sort
}

# Also the last bar: nothing was read that was not written.
verified()
{
	jq -s -r '[.[].jobs[]] as $jobs | ($jobs | map(.verify_errors) | add) as $wrong |
		"Verified, each byte read: \($jobs | map(.read.total_ios + .verify.total_ios) | add) reads in \(length) runs.\\n"
		+ "wanted verified runs: no wrong sector, is \($wrong): "
		+ if $wrong == 0 then "met" else "not met" end' "$raw"/verified-*.json
}

# curves WORDS X Y DIVISOR [LOAN]: the limit, the cache and the volume; with LOAN also by loan
curves()
{
	local suffix
	for suffix in '' ${5:+loan}; do
		curve "bare limit${suffix:+, loan}" "limit$suffix $1" "${@:2:3}"
		curve "cached${suffix:+, loan}" "cached$suffix $1" "${@:2:3}"
		curve "volumed + cached${suffix:+, loan}" "volume$suffix $1" "${@:2:3}"
	done
}

bench_begin xseg xseg-host xbench bench-limit
also_at_the_end rm -f "$set_file"
each stack_up "$systems"
choose_datas
each "note_counters before" "$systems"
while next_round; do
	for rw in read write; do
		while read -r point; do
			# shellcheck disable=SC2086 # words
			all_systems $rw $point
		done < <(tr , '\n' <<<"${points%,}")
	done
	limit_run lines lines read 4k 16 1
done
each "note_counters after" "$systems"
each verify "$systems" "$datas $directs"
[ -z "$directs" ] || each meet "$systems"
round=0
while [ -n "$directs" ] && next_round; do
	each direct_run "$systems"
done
verified=$(verified)
bench_report "xseg benchmarks of DATE: hits at random over $set_mib MiB, $runs runs of $seconds s each." \
	"IOPS are medians; low-high are the slowest and the fastest run in percent of the median; ratios are to the bare limit." \
	"$(cat "$out/left_out.txt" 2>/dev/null)" "$(hits)"
page iops.png 1100,480 1,2 "4 KiB hits, one thread" "logscale x 2" "yrange [0:*]" "xrange [0.8:80]" \
	"xlabel 'I/Os in flight'" "ylabel 'million IOPS'"
for rw in read write; do
	panel $rw
	curves "$rw 4k * 1" depth iops:low:high 1e6 loan
done
page bandwidth.png 1100,480 1,2 "hits by copy, depth 16, one thread" "logscale x 2" "yrange [0:*]" \
	"xrange [3.2:80]" "xlabel 'block size, KiB'" "ylabel 'GiB/s'"
for rw in read write; do
	panel $rw
	curves "$rw * 16 1" bs bytes 1073741824
	curve "memory alone" "memory $rw * 16 1" bs bytes 1073741824
done
bench_end
