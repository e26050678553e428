# lib.sh - the runner of the benchmarks: forms, rounds, tables, report, plots. Every script of this
# folder that measures sources it first.
#
#	#!/bin/bash
#	# hit.sh - what is measured; this comment, up to `set -u`, is the text of --help
#	set -u
#	has_full=1			# only where there is a form --full
#	. "$(dirname "$0")/lib.sh"
#	by_form seconds 0.15 0.02	# a setting: the usual value, that of --quick, that of --full
#	columns="system rw depth round = iops mean_ns errors"
#	bench_begin			# from here on there are folders, and all is ended at the end
#	while next_round; do		# measures every side once, one right after the other
#		...			# $raw/WORD-WORD-run.$round.json: by xbench, or with its fields
#	done
#	bench_report "xseg, hits, DATE: the first line of the report"
#	page ...			# plots (plot.sh)
#	bench_end
#
# The words of the files' names are the first part of `columns`, the second part are figures that
# raw_rows() knows: that makes $out/runs.tsv. NAME.awk makes the report of it, and $out/results.tsv
# for the plots (lib.awk). A script sets, where it needs to:
#   collect()      another way to make runs.tsv
#   vars           names of shell variables that NAME.awk wants
#   common_awk, more_files   an awk program before NAME.awk, and more arguments behind
#   more_figures, raw_only   objects and a condition in jq, for raw_rows()
#   unbound=1      nothing is bound to a CPU
#
# A script has:
#   quick, full    not empty in this form
#   runs, round    how many rounds, and the present one; run_time is $seconds as xbench takes it
#   BUILD          absolute; PATH begins with its bin; the working directory is the repository
#   out, raw       $BUILD/bench/NAME ($BENCH_OUT/NAME if BENCH_OUT is set), new and empty, and its
#                  folder for JSON
#   tmp            a folder in $out that is removed at the end
#   sockets        a folder for sockets, also removed: its name is short and has no blank, whatever
#                  $out is
#   log            the file for the output of commands
#   XSEG_SEGMENT   a name of its own, exported (BENCH_SEGMENT chooses it)
#   server_cpu, client_cpus   the first available CPU, and a list of the others

script=$(realpath "$0")
name=$(basename "$script" .sh)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -z "${BENCH_OUT:-}" ] || BENCH_OUT=$(realpath -m "$BENCH_OUT")
cd "$root" || exit 1
. tests/lib/leftovers.sh
. bench/only.sh
. bench/plot.sh
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
export PATH="$BUILD/bin:$PATH"
export XSEG_SEGMENT=${BENCH_SEGMENT:-bench-$$}
export LC_ALL=C
out=${BENCH_OUT:-$BUILD/bench}/$name
raw=$out/raw
tmp=$out/tmp
log=$out/log/bench.log

fail()	# TEXT...
{
	local last
	last=$(grep -v '^[[:space:]]*$' "$log" 2>/dev/null | tail -n 1)
	echo "bench: $*; the logs are in $out/log${last:+; last was said: $last}" >&2
	exit 1
}

usage()	# TEXT...
{
	echo "bench: $*" >&2
	exit 2
}

# ---- the form of a run ----

quick=
full=
case ${1:-} in
--quick) quick=1 ;;
--full) [ -n "${has_full:-}" ] && full=1 || usage "this one has no form --full" ;;
'') ;;
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' "$script"
	cat <<-'END'

		Environment of each benchmark: BUILD (build), BENCH_OUT ($BUILD/bench, where the
		  results go), BENCH_RUNS (5, the rounds)

		A round measures every system once, one right after the other. Ratios are made
		within a round; figures are medians of the rounds. In $BENCH_OUT/NAME is raw/, the
		JSON of each run. From these files alone are made runs.tsv, results.tsv (medians),
		report.txt and the plots.
	END
	exit 0
	;;
*) usage "unknown option $1; $script --help lists the options" ;;
esac
[ $# -le 1 ] || usage "one option at most, and not also $2; $script --help"

# by_form NAME USUAL [QUICK [FULL]]: a setting; a form without a value has the usual one. Those of
# runs and seconds may come from the environment.
by_form()
{
	local value=$2
	[ -z "$quick" ] || value=${3:-$2}
	[ -z "$full" ] || value=${4:-$2}
	printf -v "$1" %s "$value"
	case $1 in
	runs)
		runs=${BENCH_RUNS:-$runs}
		case $runs in '' | *[!0-9]* | 0*) usage "BENCH_RUNS=$runs is not a number such as 5" ;; esac ;;
	seconds)
		seconds=${BENCH_SECONDS:-$seconds}
		case $seconds in
		*[!0-9.]* | *.*.*) usage "BENCH_SECONDS=$seconds is not a number such as 1 or 0.5" ;;
		esac
		run_time=$(milliseconds 1)
		[ "$run_time" != 0ms ] || usage "BENCH_SECONDS=$seconds is too short" ;;
	esac
}

# milliseconds FACTOR: so much of $seconds, as xbench takes it
milliseconds()
{
	awk -v s="$seconds" -v f="$1" 'BEGIN { printf "%dms", s * f * 1000 }'
}

by_form runs 5 1

# need PROGRAM...
need()
{
	local tool
	for tool; do
		command -v "$tool" >/dev/null || usage "$tool is not there; run make deps"
	done
}

# need_made FILE...: of $BUILD
need_made()
{
	local file
	for file; do
		[ -e "$BUILD/$file" ] || usage "$BUILD/$file is not there; run make deps, then make"
	done
}

# ---- the whole of a benchmark ----

# bench_begin [PROGRAM...]: these are checked, or xseg and xbench; the folders are made
bench_begin()
{
	local tool why
	export XDG_STATE_HOME=$out/log
	[ $# -gt 0 ] || set -- xseg xseg-host xbench
	for tool; do
		[ -x "$BUILD/bin/$tool" ] || usage "$BUILD/bin/$tool is not there; run make first"
	done
	need jq
	only_one "$out" "$script" || exit 2
	rm -rf "$out"
	why=$(mkdir -p "$raw" "$tmp" "$out/log" 2>&1) || usage "${why%%$'\n'*}; give another BENCH_OUT"
	sockets=$(mktemp -d /tmp/bench.XXXXXX) || exit 2
	only_one "$out" "$script" || exit 2
	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	choose_cpus
	load_before=$(cut -d ' ' -f 1 /proc/loadavg)
	word_before=$(word_us)
}

# also_at_the_end COMMAND...: done before the processes are ended, however the script ends
at_the_end=()
also_at_the_end()
{
	at_the_end+=("$(printf '%q ' "$@")")
}

cleanup()
{
	local status=$? command
	trap - EXIT HUP INT TERM
	for command in "${at_the_end[@]}"; do
		eval "$command"
	done
	servers_down
	{ end_segment "$XSEG_SEGMENT"; } 2>/dev/null
	rm -rf "$tmp" "$sockets" "$out/pid"
	exit "$status"
}

# next_round: for `while`; counts $round up, which a script sets to 0 for more rounds
round=0
next_round()
{
	[ $round != 1 ] || [ "$runs" = 1 ] ||
		echo "about $(((SECONDS - round_began) * (runs - 1) / 60 + 1)) minutes for the other rounds"
	[ $round -lt "$runs" ] || return
	round_began=$SECONDS
	echo "round $((++round)) of $runs ..."
}

# each FUNCTION WORDS [WORDS...]: called with each combination, of which the last word changes first
each()
{
	local call=$1 word words=$2
	shift 2
	for word in $words; do
		if [ $# -gt 0 ]; then
			each "$call $word" "$@"
		else
			$call "$word"
		fi
	done
}

# The report of NAME.awk, under its head
report()
{
	local args=() name_of note
	for name_of in ${vars:-}; do
		args+=(-v "$name_of=${!name_of}")
	done
	echo "${1/DATE/$(date '+%Y-%m-%d %H:%M')}"
	machine
	for note in "${@:2}"; do
		[ -z "$note" ] || echo "$note"
	done
	echo
	awk -v results="$out/results.tsv" -v columns="$columns" "${args[@]}" -f bench/lib.awk \
		${common_awk:+-f "$common_awk"} -f "bench/$name.awk" "$out/runs.tsv" "${more_files[@]}"
}

# bench_report HEAD [NOTE...]: makes the tables of the raw files, and the report; in HEAD the word
# DATE is replaced, and each NOTE is a line below it, unless it is empty
more_files=()
bench_report()
{
	set -o pipefail		# of a collect() that sorts what raw_rows() says
	collect >"$out/runs.tsv" || exit 1
	report "$@" >"$out/report.txt" || fail "the report could not be made; see $out/report.txt"
	cat "$out/report.txt"
}

# The plots are made, and it fails when an I/O did. runs.tsv has the errors in its last column.
bench_end()
{
	draw_plots
	echo "report: $out/report.txt; every run's JSON: $raw"
	awk -F '\t' '$NF != 0 { bad = 1 } END { exit bad }' "$out/runs.tsv" ||
		fail "I/O failed in some runs: see the last column of $out/runs.tsv"
}

# ---- the machine ----

choose_cpus()
{
	local list
	[ -z "${unbound:-}" ] || { server_cpu='' client_cpus=''; return; }
	mapfile -t list < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
		while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
	server_cpu=${list[0]}
	client_cpus=$(IFS=,; echo "${list[*]:1}")
	if [ ${#list[@]} -eq 1 ]; then
		client_cpus=$server_cpu
		echo "bench: there is one CPU only, so server and clients share it"
	fi
}

# What is free in memory and in /dev/shm, the less of both.
free_mib()
{
	local free shm
	free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
	shm=$(df --output=avail -m /dev/shm | tail -n 1)
	echo $((shm < free ? shm : free))
}

# fit_set PERCENT MIB: halves $set_mib, to 64 at the least, until so much of it, and so much more, is
# free
fit_set()
{
	local free
	free=$(free_mib)
	while [ $((set_mib * $1 / 100 + $2)) -gt "$free" ] && [ "$set_mib" -gt 64 ]; do
		set_mib=$((set_mib / 2))
	done
}

# How long a word takes to the clients' CPU and back, in us: less than 0.15 of two threads of one
# core, more than 0.4 of cores that are far apart. Where a machine is a guest, that changes.
by_form word_time 50ms 5ms
word_us()
{
	[ -x "$BUILD/bin/bench-limit" ] && [ -n "$server_cpu" ] || return 0
	bench-limit --mode=echo --iodepth=1 --size=4M --runtime="$word_time" --ramp_time=10ms \
		--cpus="$server_cpu,$client_cpus" --output-format=json 2>/dev/null |
		jq -r '.jobs[0].read.lat_ns.mean / 10 | round / 100'
}

# For the head of a report.
machine()
{
	local where="the server on CPU $server_cpu, clients on $client_cpus"
	[ -z "${unbound:-}" ] || where="nothing is bound to a CPU"
	echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, Linux" \
		"$(uname -r); $where; load average before: $load_before."
	[ -z "$word_before" ] ||
		echo "A word to the clients' CPU and back: $word_before us before," \
			"$(word_us) us at the end."
}

# ---- doing things ----

quietly()	# COMMAND...
{
	"$@" >>"$log" 2>&1 </dev/null || fail "'$*' failed"
}

# Options of a cache that flushes nothing by itself, and of one that holds MIB beside.
no_flush=$'dirty_high = 99\ndirty_low = 98\ndirty_age = 1h'

holding()	# MIB
{
	echo "memory = $(($1 + $1 / 4 + 16))M"
	echo "$no_flush"
}

# Of a segment, beside the set and its cache.
by_form spare_mib 512 224

# store_up MIB STORE "OPTIONS" ["CACHED OPTIONS" [VOLUME=SIZE]]: a stack of one reactor in a segment
# of MIB; options are lines of a stack file. Without options for a cache there is none, and a
# volumed only for a volume. Where server_cpu is empty the reactor is bound to no CPU.
store_up()
{
	local peers=$2 bound=${server_cpu:+cpus = $server_cpu}
	{
		printf '[segment]\nname = %s\nmemory = %dM\n' "$XSEG_SEGMENT" "$1"
		printf '\n[peer %s]\n%s\n%s\n' "$2" "$bound" "$3"
		if [ -n "${4:-}" ]; then
			printf '\n[peer cached]\ndownstream = %s\n%s\n%s\n' "$2" "$bound" "$4"
			peers="cached $2"
		fi
		if [ -n "${5:-}" ]; then
			printf '\n[peer volumed]\ndownstream = %s\n%s\n' "${peers%% *}" "$bound"
			peers="volumed $peers"
		fi
		printf '\n[run]\ntogether = %s\n' "$peers"
	} >"$out/stack.conf"
	quietly xseg up "$out/stack.conf"
	[ -z "${5:-}" ] || quietly xseg volume create "${5%=*}" --size "${5#*=}"
}

# on STACK COMMAND...: in a segment of its own, where several stacks stand side by side
on()
{
	local -x XSEG_SEGMENT=$XSEG_SEGMENT-$1
	shift
	"$@"
}

# only_wrong FILE: whether all that an xbench failed for is that sectors were wrong, which it counted:
# a report says that
only_wrong()
{
	jq -e '[.jobs[]] | (map(.error) | add) == 0 and (map(.verify_errors) | add) > 0' \
		"$1" >/dev/null 2>>"$log"
}

# measure FILE ARGUMENT...: xbench on the clients' CPUs; its JSON goes to FILE, its lines to the log
# only when it fails. Each read is a request, unless an ARGUMENT says otherwise: a figure of hits is
# of the queue then.
measure()
{
	local file=$1 said=$tmp/said.$BASHPID
	shift
	xbench ${client_cpus:+--cpus="$client_cpus"} --direct=never --output-format=json \
		--output="$file" "$@" >"$said" 2>&1 </dev/null &
	wait $! && return	# in the background, for a trap does not wait for it then
	cat "$said" >>"$log"
	only_wrong "$file" || fail "xbench $* failed"
}

# at_random NAME RW DEPTH ARGUMENT...: xbench for $run_time, after $ramp that does not count, into
# the raw file NAME-run
by_form ramp 50ms 5ms
at_random()
{
	measure "$raw/$1-run.$round.json" --rw="rand$2" --iodepth="$3" --randseed="${round/./}" \
		--runtime="$run_time" --ramp_time="$ramp" "${@:4}"
}

# fill ARGUMENT...: writes once, in sequence
fill()
{
	measure "$tmp/fill.json" --rw=write --bs=1M --iodepth=4 "$@"
}

# run_fio FILE ARGUMENT...
run_fio()
{
	local file=$1
	shift
	quietly fio --name=load --size="${set_mib}M" --norandommap --output-format=json \
		--output="$file" "$@"
}

# limit NAME RW BS DEPTH ARGUMENT...: runs bench-limit on $set_file; the raw file is NAME-run
by_form limit_ramp 20ms 5ms
limit()
{
	bench-limit --rw="rand$2" --bs="$3" --iodepth="$4" --randseed="$round" --set="$set_file" \
		--runtime="$run_time" --ramp_time="$limit_ramp" --cpus="$server_cpu,$client_cpus" \
		--output-format=json "${@:5}" >"$raw/$1-run.$round.json" 2>>"$log" ||
		fail "bench-limit ${*:5} failed"
}

# forget: the store has all, and the cache nothing
forget()
{
	quietly xseg cache flush cached
	quietly xseg cache drop cached
}

# What each peer and cached count.
stat_to()	# FILE
{
	xseg --json stat >"$1" 2>>"$log" || fail "xseg stat failed"
}

# serve READY COMMAND...: starts a server, and waits until the command READY succeeds; its process is
# then $!
servers=()
serve()
{
	local ready=$1 i
	shift
	"$@" >>"$log" 2>&1 </dev/null &
	servers+=($!)
	for i in $(seq 200); do
		! eval "$ready" >>"$log" 2>&1 || return 0
		kill -0 $! 2>/dev/null || fail "'$*' ended"
		sleep 0.05
	done
	fail "'$*' does not serve"
}

servers_down()
{
	[ ${#servers[@]} -gt 0 ] || return 0
	kill "${servers[@]}" 2>/dev/null
	wait "${servers[@]}" 2>/dev/null
	servers=()
}

# ---- tables of the raw files ----

# raw_rows EXPRESSION: prints a line for each raw file: the array that the jq expression makes of the
# file's JSON, with tabs. A file for which it selects nothing has no line. $n are the words of the
# file's name, and the last word is the round. There are hundreds of files, so one jq reads them
# all. figures(RW) are sums and worst values of the clients; means are weighted. If jq fails on one
# file and not on the last one, it exits with 0, so its messages count and not its status.
raw_rows()
{
	local file name='input_filename | split("/")[-1] | rtrimstr(".json")' hint=${raw_hint:-}
	for file in "$raw"/*-run.*.json; do
		[ -s "$file" ] || fail "$file is empty$hint"	# of which jq says nothing
	done
	jq -r '
		def percentile(p): (.lat_ns.percentile // .clat_ns.percentile // {})[p];
		def figures(rw): [.jobs[] | .[rw] + {error}] as $j | ($j | map(.total_ios) | add) as $ios | {
			iops: ($j | map(.iops) | add),
			bytes: ($j | map(.bw_bytes) | add),
			mean_ns: (($j | map(.lat_ns.mean * .total_ios) | add) / ([$ios, 1] | max) | floor),
			p50_ns: ($j | map(percentile("50.000000")) | max),
			p99_ns: ($j | map(percentile("99.000000")) | max),
			errors: ($j | map(.error) | add)
		};'"($name | split(\"-run.\") | join(\"-\") | split(\"-\")) as \$n | $1 | @tsv" \
		"$raw"/*-run.*.json 2>"$tmp/jq" && [ ! -s "$tmp/jq" ] && return
	for file in "$raw"/*-run.*.json; do
		jq empty "$file" 2>/dev/null || fail "$file is damaged$hint"
	done
	# jq: error (at FILE:LINE): CAUSE
	file=$(sed -n '1s/^jq: error (at \(.*\):[0-9]*): .*/\1/p' "$tmp/jq")
	fail "${file:-a file of $raw} lacks something: $(sed '1!d; s/^jq: error[^)]*): //' "$tmp/jq")$hint"
}

# each_run FUNCTION WORDS: called with each word and round
each_run()
{
	each "$1" "$2" "$(seq "$runs")"
}

# table_of COLUMNS: the words of the files' names, and the figures that are named. What `rw` (or
# `kind`) is called says whether reads or writes count. $raw_only is a condition in jq.
table_of()
{
	local words=${1% = *} figures=${1#* = } rw
	rw=${words%%rw*}
	[ "$rw" != "$words" ] || rw=${words%%kind*}
	rw=$(wc -w <<<"$rw")
	raw_rows "select(${raw_only:-true}) |
		(figures(if \$n[$rw] | test(\"write\") then \"write\" else \"read\" end)
		${more_figures:++ $more_figures}) as \$f |
		\$n + [\$f[\"${figures// /\",\"}\"]]"
}

collect()
{
	table_of "$columns"
}
