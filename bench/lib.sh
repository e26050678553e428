# lib.sh - the shared part of the benchmarks; every script of this folder that measures sources it
# first.
#
#	#!/bin/bash
#	# hit.sh - what is measured; this comment, up to `set -u`, is the text of --help
#	set -u
#	. "$(dirname "$0")/lib.sh"
#	bench_options "$@"	# sets $quick, $full, $runs
#	bench_begin hit xseg xseg-host xbench
#	...			# JSON files in $raw, and from them runs.tsv and results.tsv in $out
#	bench_end hit.gp iops.png
#
# A script has after this:
#   BUILD         absolute; PATH begins with its bin; the working directory is the repository
#   out, raw      $BUILD/bench/NAME ($BENCH_OUT/NAME if BENCH_OUT is set), new and empty, and its
#                 folder for JSON
#   tmp           a folder in $out that is removed at the end
#   sockets       a folder for sockets, also removed: its name is short and has no blank, whatever
#                 $out is
#   log           the file for the output of commands
#   XSEG_SEGMENT  a name of its own, exported (BENCH_SEGMENT chooses it)
#   server_cpu, client_cpus   the first available CPU, and a list of the others
#
# However the script ends, its processes are ended and its segment is removed.

script=$(realpath "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -z "${BENCH_OUT:-}" ] || BENCH_OUT=$(realpath -m "$BENCH_OUT")
cd "$root" || exit 1
. tests/lib/leftovers.sh
. bench/only.sh
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
export PATH="$BUILD/bin:$PATH"
export XSEG_SEGMENT=${BENCH_SEGMENT:-bench-$$}
export LC_ALL=C

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

# bench_options [--quick | --full]: reads the command line, and how many rounds there are; --full is
# there where the script says has_full=1 before
bench_options()
{
	quick=
	full=
	case ${1:-} in
	--quick) quick=1 ;;
	--full) [ -n "${has_full:-}" ] && full=1 || usage "this one has no form --full" ;;
	'') ;;
	-h | --help)
		sed -n '2,/^set -u/s/^# \{0,1\}//p' "$script"
		exit 0
		;;
	*) usage "unknown option $1; $script --help shows those that there are" ;;
	esac
	[ $# -le 1 ] || usage "one option at most, and not also $2; $script --help"
	runs=${BENCH_RUNS:-5}
	case $runs in '' | *[!0-9]* | 0*) usage "BENCH_RUNS=$runs is not a number such as 5" ;; esac
}

# bench_begin NAME PROGRAM...: the programs are checked, the folders made
bench_begin()
{
	local tool why
	out=${BENCH_OUT:-$BUILD/bench}/$1
	raw=$out/raw
	tmp=$out/tmp
	log=$out/log/bench.log
	export XDG_STATE_HOME=$out/log
	shift
	for tool; do
		[ -x "$BUILD/bin/$tool" ] || usage "$BUILD/bin/$tool is not there; run make first"
	done
	command -v jq >/dev/null || usage "jq is not there; run make deps"
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

# The length of a run: $seconds as xbench takes it, in $run_time.
choose_time()
{
	case $seconds in
	*[!0-9.]* | *.*.*) usage "BENCH_SECONDS=$seconds is not a number such as 1 or 0.5" ;;
	esac
	run_time=$(awk -v s="$seconds" 'BEGIN { printf "%dms", s * 1000 }')
	[ "$run_time" != 0ms ] || usage "BENCH_SECONDS=$seconds is too short"
}

cleanup()
{
	local status=$? command
	trap - EXIT HUP INT TERM
	for command in "${at_the_end[@]}"; do
		eval "$command"
	done
	{ end_segment "$XSEG_SEGMENT"; } 2>/dev/null
	rm -rf "$tmp" "$sockets" "$out/pid"
	exit "$status"
}

# ---- the machine ----

choose_cpus()
{
	local list
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
word_us()
{
	[ -x "$BUILD/bin/bench-limit" ] || return 0
	bench-limit --mode=echo --iodepth=1 --size=4M --runtime=50ms --ramp_time=10ms \
		--cpus="$server_cpu,$client_cpus" --output-format=json 2>/dev/null |
		jq -r '.jobs[0].read.lat_ns.mean / 10 | round / 100'
}

# For the head of a report.
machine()
{
	echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, Linux" \
		"$(uname -r); the server on CPU $server_cpu, clients on $client_cpus; load average before: $load_before."
	[ -z "$word_before" ] ||
		echo "A word to the clients' CPU and back: $word_before us before," \
			"$(word_us) us at the end."
}

# ---- doing things ----

quietly()	# COMMAND...
{
	"$@" >>"$log" 2>&1 </dev/null || fail "'$*' failed"
}

# Options of a cache that flushes nothing by itself.
no_flush=$'dirty_high = 99\ndirty_low = 98\ndirty_age = 1h'

# store_up MIB STORE "OPTIONS" ["CACHED OPTIONS" [volumed]]: a stack of one reactor in a segment of
# MIB; options are lines of a stack file. Without options for a cache there is none, and a volumed
# only when it is asked for. Where server_cpu is empty the reactor is bound to no CPU.
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
# only when it fails
measure()
{
	local file=$1 said=$tmp/said.$BASHPID
	shift
	xbench --cpus="$client_cpus" --output-format=json \
		--output="$file" "$@" >"$said" 2>&1 </dev/null &
	wait $! && return	# in the background, for a trap does not wait for it then
	cat "$said" >>"$log"
	only_wrong "$file" || fail "xbench $* failed"
}

# What each peer and cached count.
stat_to()	# FILE
{
	xseg --json stat >"$1" 2>>"$log" || fail "xseg stat failed"
}

# plot SCRIPT PICTURE...: a gnuplot script of this folder, which reads results.tsv
plot()
{
	local script=$1
	shift
	if ! command -v gnuplot >/dev/null; then
		echo "no plots: gnuplot is not there (make deps)"
	# from there, as these have shells read the names
	elif ! (cd "$out" && gnuplot -e "data='results.tsv'; out='.'" "$root/bench/$script") 2>>"$log"; then
		echo "no plots: gnuplot failed, see $log"
	else
		echo "plots: ${*/#/$out/}"
	fi
}

# raw_rows EXPRESSION [HINT]: for each raw file a line, with tabs, of what jq makes of its JSON;
# none where it selects nothing. $n are the words of the file's name, the last of them the round.
# All go through one jq, as there are hundreds.
raw_rows()
{
	local file name='input_filename | split("/")[-1] | rtrimstr(".json")'
	for file in "$raw"/*-run.*.json; do
		[ -s "$file" ] || fail "$file is empty${2:+: $2}"	# of which jq says nothing
	done
	jq -r "($name | split(\"-run.\") | join(\"-\") | split(\"-\")) as \$n | $1 | @tsv" \
		"$raw"/*-run.*.json && return
	for file in "$raw"/*-run.*.json; do
		jq empty "$file" 2>/dev/null || fail "$file is damaged${2:+: $2}"
	done
	fail "a file of $raw lacks something${2:+: $2}"
}

# bench_end [SCRIPT PICTURE...]: what the script's report() says becomes the report, the plots are
# made, and it fails when an I/O did. runs.tsv has the errors in its last column.
bench_end()
{
	report >"$out/report.txt" || fail "the report could not be made; see $out/report.txt"
	cat "$out/report.txt"
	[ $# -eq 0 ] || plot "$@"
	echo "report: $out/report.txt; every run's JSON: $raw"
	awk -F '\t' '$NF != 0 { bad = 1 } END { exit bad }' "$out/runs.tsv" ||
		fail "I/O failed in some runs: see the last column of $out/runs.tsv"
}
