#!/bin/bash
# hit.sh - the cost of a hit of 4 KiB to 64 KiB, by copy, by loan and without a request.
#
# Usage: bench/hit.sh [--quick | --full]
# Environment: BUILD (build), BENCH_RUNS (5), BENCH_SECONDS (0.15, of one run), BENCH_SET (size of
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
# them. They come last, because a later overwrite of pages that were read so is more expensive.
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
# One round measures every point once: all systems one right after the other, so that other work on
# the machine affects all alike. Points are medians of the rounds, with the lowest and the highest
# beside them. The points are those of the bars, and a line through them by depth, by size and by
# clients. --full measures all of 4, 16 and 64 KiB, 1 to 64 in flight, one and two clients: half an
# hour.
#
# The output of xbench and bench-limit is kept as JSON in $BUILD/bench/hit/raw, one file a run:
# SYSTEM-RW-BS-DEPTH-THREADS-run.ROUND.json. runs.tsv, results.tsv, report.txt and the plots are
# made from these files alone.
set -u

. "$(dirname "$0")/lib.sh"
has_full=1
bench_options "$@"
seconds=${BENCH_SECONDS:-0.15}
# BS DEPTH THREADS
points=("4k 1 1" "4k 4 1" "4k 16 1" "4k 64 1" "4k 16 2" "16k 16 1" "64k 16 1")
meet_time=3s
verified_ios=200000
goal=1000000
if [ -n "$quick" ]; then
	runs=${BENCH_RUNS:-1}
	seconds=${BENCH_SECONDS:-0.02}
	points=("4k 1 1" "4k 16 1" "64k 16 1")
	meet_time=50ms
	verified_ios=2000
elif [ -n "$full" ]; then
	points=()
	for bs in 4k 16k 64k; do
		for depth in 1 4 16 64; do
			points+=("$bs $depth 1" "$bs $depth 2")
		done
	done
fi
systems=(cached volume)
datas=(copy loan)
directs=(direct)

# ---- the machine ----

choose_set()
{
	local free fit
	free=$(free_mib)
	fit=$((free / 5 / 256 * 256))
	set_mib=$((fit < 2048 ? fit : 2048))
	[ -z "$quick" ] || set_mib=64
	if [[ ${BENCH_SET:-} =~ ^([1-9][0-9]{0,5})([mMgG])$ ]]; then
		case ${BASH_REMATCH[2]} in
		[gG]) set_mib=$((BASH_REMATCH[1] * 1024)) ;;
		*)    set_mib=$((BASH_REMATCH[1] / 4 * 4)) ;;
		esac
	elif [ -n "${BENCH_SET:-}" ]; then
		usage "BENCH_SET=$BENCH_SET is not a size such as 512M or 2G"
	fi
	[ "$set_mib" -ge 64 ] ||
		usage "a set of $set_mib MiB is too small; $free MiB are free, in memory or in /dev/shm"
}

# ---- one run ----

# point SYSTEM RW BS DEPTH THREADS ROUND: the name of its raw file
point()
{
	echo "$raw/$1-$2-$3-$4-$5-run.$6.json"
}

limit_run()	# MODE SYSTEM RW BS DEPTH THREADS ROUND
{
	local mode=$1
	shift
	# shellcheck disable=SC2086 # words
	bench-limit --mode=$mode --rw="rand$2" --bs="$3" --iodepth="$4" --numjobs="$5" \
		--size="${set_mib}M" \
		--set="$set_file" --runtime="$run_time" --ramp_time=20ms --randseed="$6" \
		--cpus="$server_cpu,$client_cpus" --output-format=json >"$(point "$@")" 2>>"$log" ||
		fail "bench-limit --mode=$mode failed"
}

segment_of()	# SYSTEM
{
	echo "$XSEG_SEGMENT-$1"
}

# load SYSTEM ARGUMENT...: xbench on the clients' CPUs
load()
{
	local to=(--target=cached --objects=$((set_mib / 4)) --object_size=4M)
	[ "$1" = cached ] || to=(--volume=bench)
	to+=(-s "$(segment_of "$1")")
	shift
	xbench "${to[@]}" --size="${set_mib}M" --cpus="$client_cpus" --output-format=json \
		"$@" 2>>"$log"
}

stack_run()	# STACK DATA SYSTEM RW BS DEPTH THREADS ROUND
{
	local stack=$1 data=$2
	shift 2
	load "$stack" --data="$data" --rw="rand$2" --bs="$3" --iodepth="$4" --numjobs="$5" \
		--runtime="$run_time" \
		--ramp_time=20ms --randseed="$6" --output="$(point "$@")" ||
		fail "xbench failed: $stack $data $*"
}

# suffix DATA: of the names of systems
suffix()
{
	[ "$1" = copy ] || echo "$1"
}

# all_systems RW BS DEPTH THREADS ROUND: one after the other
all_systems()
{
	local data system
	if [ "$2" != 4k ] && [ "$4" = 1 ]; then
		limit_run memcpy memory "$@"
		limit_run "memcpy --scatter" memoryscatter "$@"
	fi
	for data in "${datas[@]}"; do
		limit_run "$data" "limit$(suffix "$data")" "$@"
		for system in "${systems[@]}"; do
			stack_run "$system" "$data" "$system$(suffix "$data")" "$@"
		done
	done
}

round()	# ROUND
{
	local rw at
	for rw in read write; do
		for at in "${points[@]}"; do
			# shellcheck disable=SC2086 # words
			all_systems $rw $at "$1"
		done
	done
	limit_run lines lines read 4k 16 1 "$1"
}

direct_round()	# ROUND
{
	local system
	for system in "${systems[@]}"; do
		stack_run "$system" loan "${system}met" read 4k 1 1 "$1"
		stack_run "$system" direct "${system}direct" read 4k 1 1 "$1"
	done
}

# Reads and writes at random, and then a read of all that was written.
verify_stacks()
{
	local system data file
	for system in "${systems[@]}"; do
		for data in "${datas[@]}" "${directs[@]}"; do
			file=$raw/verified-$system-$data.json
			load "$system" --data="$data" --rw=randrw --bs=4k --iodepth=16 \
				--number_ios=$verified_ios --verify=crc32c --output="$file" ||
				only_wrong "$file" ||
				fail "xbench failed: $system $data, verified"
		done
	done
}

# What is met for the first time is asked for.
meet_pages()
{
	local system
	for system in "${systems[@]}"; do
		load "$system" --data=direct --rw=randread --bs=4k --iodepth=16 \
			--runtime="$meet_time" >/dev/null ||
			fail "xbench failed: $system direct"
	done
}

# ---- the stacks ----

write_stack()	# SYSTEM
{
	local peers="cached memd"
	[ "$1" = cached ] || peers="volumed cached memd"
	cat <<-END
		# Everything is in one reactor on CPU $server_cpu.
		# The cache holds the whole set and flushes nothing by itself.
		[segment]
		name = $(segment_of "$1")
		memory = $((set_mib + set_mib / 3 + 512))M

		[peer memd]
		memory = 64M
		cpus = $server_cpu

		[peer cached]
		downstream = memd
		memory = $((set_mib + set_mib / 4))M
		objects = $((set_mib / 2 + 64))
		$no_flush
		cpus = $server_cpu
	END
	[ "$1" = cached ] ||
		printf '\n[peer volumed]\ndownstream = cached\ncpus = %s\n' "$server_cpu"
	printf '\n[run]\ntogether = %s\n' "$peers"
}

stack_up()	# SYSTEM
{
	write_stack "$1" >"$out/$1.conf"
	also_at_the_end end_segment "$(segment_of "$1")"
	quietly xseg -s "$(segment_of "$1")" up "$out/$1.conf"
	[ "$1" = cached ] ||
		quietly xseg -s "$(segment_of "$1")" volume create bench --size "${set_mib}M"
	load "$1" --rw=write --bs=1M --iodepth=4 >/dev/null || fail "the set cannot be written"
}

# Whether peers lend pages is asked by doing it once.
choose_datas()
{
	load cached --data=loan --rw=randread --number_ios=1 >/dev/null && return
	datas=(copy)
	directs=()
	echo "left out: loan; the peers of this build lend no pages" | tee "$out/left_out.txt"
}

# What did not hit or was flushed between two looks makes the figures another thing than hits.
counters()	# SYSTEM
{
	xseg -s "$(segment_of "$1")" --json cache status cached >"$tmp/status.json" 2>>"$log" &&
		jq -r '"\(.reads + .writes) \(.misses + .partial) \(.flushed_bytes)"' \
			"$tmp/status.json" || fail "cached shows no counters"
}

note_counters()	# WHEN
{
	local system now
	for system in "${systems[@]}"; do
		now=$(counters "$system") || exit 1
		echo "$system $1 $now" >>"$out/hits.txt"
	done
}

# ---- what came out ----

# One line a run, as hit_medians.awk wants it. Rates are sums of the clients, means are weighted,
# percentiles are those of the worst client.
collect()
{
	raw_rows '[.jobs[] | .[$n[1]] + {error}] as $j |
		($j | map(.total_ios) | add) as $ios |
		$n[:-1] + [
			($j | map(.iops) | add),
			($j | map(.bw_bytes) | add),
			(($j | map(.lat_ns.mean * .total_ios) | add) / ([$ios, 1] | max) | floor),
			($j | map(.lat_ns.percentile["50.000000"]) | max),
			($j | map(.lat_ns.percentile["99.000000"]) | max),
			($j | map(.error) | add)
		]'
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
		"Verified, each byte read: \($jobs | map(.read.total_ios + .verify.total_ios) | add) reads in \(length) runs."
		+ "\nwanted verified runs: no wrong sector, is \($wrong): "
		+ if $wrong == 0 then "met" else "not met" end' "$raw"/verified-*.json
}

report()
{
	echo "xseg benchmarks of $(date '+%Y-%m-%d %H:%M'): hits at random over $set_mib MiB, $runs runs of $seconds s each."
	machine
	echo "IOPS are medians; low-high are the slowest and the fastest run in percent of the median;" \
		"ratios are to the bare limit."
	[ ! -e "$out/left_out.txt" ] || cat "$out/left_out.txt"
	hits
	echo
	awk -v goal="$goal" -v load="$load_before" -f bench/lib.awk -f bench/hit.awk \
		"$out/results.tsv"
	verified
}

choose_time
choose_set
bench_begin hit xseg xseg-host xbench bench-limit
set_file=/dev/shm/$XSEG_SEGMENT.set
also_at_the_end rm -f "$set_file"
for system in "${systems[@]}"; do
	stack_up "$system"
done
choose_datas
nr_points=$((2 * ${#points[@]}))
minutes=$(awk -v n="$nr_points" -v d="${#datas[@]}" -v s="$seconds" -v r="$runs" \
	'BEGIN { printf "%d", r * n * d * 3 * (s + 0.2) / 60 + 1 }')
echo "bench: $nr_points points, $runs rounds of $run_time a run: about $minutes minutes"
note_counters before
for round in $(seq "$runs"); do
	echo "round $round of $runs ..."
	round "$round"
done
note_counters after
verify_stacks
if [ "${#directs[@]}" -gt 0 ]; then
	meet_pages
	for round in $(seq "$runs"); do
		direct_round "$round"
	done
fi
collect >"$out/runs.tsv"
awk -f bench/lib.awk -f bench/hit_medians.awk "$out/runs.tsv" >"$out/results.tsv"
bench_end hit.gp iops.png bandwidth.png
