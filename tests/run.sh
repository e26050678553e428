#!/bin/bash
# run.sh - runs every test and counts them.
#
# Usage: tests/run.sh [PATTERN]      an extended regular expression over names such as unit/xq_test,
#                                    model, sim/1-500, sim-mutants (LONG), fuzz/request,
#                                    tidy/layers, system/plug
# Environment: BUILD (build), LONG=1 (long versions), SAN=asan|tsan (tests fit for sanitizers),
#   STATIC=1 (static analysis too), SEEDS (of the simulator; else 100, LONG 10000, SAN 100),
#   PARANOID_SEEDS (LONG: with a check after each step; else 200),
#   TEST_JOBS (how many programs run at a time at most; else twelve more than there are processors, as
#   many sleep, but no more than /dev/shm has room for). While the processors have too much to run,
#   there are fewer.
#
# The longest begin first, so that all processors are busy to the end. tests/times has what each
# took; one that is not in it begins before all. A whole run without LONG and SAN writes such a list
# anew, $BUILD/tests/log/times; copy it when tests came or changed their length.
# One line a test program, as they end:
#   ok NAME (time)    or    FAIL NAME (time) with the end of its log; logs are in $BUILD/tests/log.
# How tests in a program are counted:
#   unit     one for each test that cmocka reports, one more for a program that crashed
#   others   their lines `ok - `, `not ok - `, `skip - ` (tests/lib/report.sh), else their own last
#            `N passed, N failed`, else one by exit code. A bad exit without a failed test is one
#            failed.
# A bash script says how it is run in comments of its own:
#   # tags: long      only with LONG=1        # tags: san    under sanitizers too (others are not)
#   # tags: static    only with STATIC=1      # timeout: 90  seconds, else 60
# Skipped tests are shown with their reasons and counted apart. The last line is `N passed, N
# failed`; exit 1 if any failed or none passed. Exit 2, and nothing is run or changed: the pattern
# matches no test, or another run has its results in the same BUILD.
set -u
shopt -s nullglob

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 1
. tests/lib/leftovers.sh

BUILD=${BUILD:-build}
LONG=${LONG:-}
SAN=${SAN:-}
STATIC=${STATIC:-}
pattern=${1:-.}
export BUILD LONG SAN
export CC=${CC:-gcc}

jobs_max=${TEST_JOBS:-}
logs=$BUILD/tests/log
# NAME.running: its segment, while it runs; NAME: `FAILED PASSED TIME NAME`, then what it skipped
results=$logs/results.$$

declare -A times
while read -r seconds name; do
	times[$name]=$seconds
done <tests/times
queue=()	# of each: its time, a tab, the words that run_one is given
left_out=()	# tests that the pattern matches and this run does not have, with the reason

case $SAN in
asan)
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_stack_use_after_return=1:strict_string_checks=1"
	export UBSAN_OPTIONS="${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}print_stacktrace=1"
	;;
tsan)
	export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}second_deadlock_stack=1"
	;;
'') ;;
*)
	echo "run.sh: SAN is asan, tsan or empty" >&2
	exit 2
	;;
esac
[[ '' =~ $pattern ]]
if [ $? -gt 1 ]; then
	echo "run.sh: '$pattern' is no extended regular expression" >&2
	exit 2
fi

if [ -n "${SEEDS:-}" ]; then seeds=$SEEDS
elif [ -n "$SAN" ]; then seeds=100
elif [ -n "$LONG" ]; then seeds=10000
else seeds=100
fi
# What a test may take is for those that hang, not for those whose machine is taken away from them.
slower=15
[ -z "$LONG" ] || slower=$((slower * 10))

interrupted()
{
	local file
	trap - INT TERM HUP
	for file in "$results"/*.running; do
		end_segment "$(cat "$file")"
	done
	echo "interrupted"
	exit 130
}
trap interrupted INT TERM HUP

# count_cmocka LOG: prints passed, failed, skipped. A test that began and never ended is not counted
# here: its program ends badly, which is one failed.
count_cmocka()
{
	awk '
	/\[ RUN      \] /                       { sub(/.*\[ RUN      \] /, ""); run = $0; next }
	run != "" && index($0, "[       OK ] " run) { pass++; run = ""; next }
	run != "" && index($0, "[  FAILED  ] " run) { fail++; run = ""; next }
	run != "" && index($0, "[  SKIPPED ] " run) { skip++; run = ""; next }
	END { print pass + 0, fail + 0, skip + 0 }' "$1"
}

# count_lines LOG: the same for ok, not ok and skip lines, or for a last `N passed, N failed`
count_lines()
{
	awk '
	/^ok - /     { pass++; any = 1 }
	/^not ok - / { fail++; any = 1 }
	/^skip - /   { skip++; any = 1 }
	/^[0-9]+ passed, [0-9]+ failed$/ { p = $1; f = $3; sum = 1 }
	/^skipped: / { skip_line++ }
	END {
		if (!any && sum) { pass = p; fail = f; skip = skip_line }
		print pass + 0, fail + 0, skip + 0
	}' "$1"
}

matches()	# NAME
{
	[[ $1 =~ $pattern ]]
}

# run KIND NAME SECONDS COMMAND...: queues one program; its tests are counted by count_KIND
run()
{
	matches "$2" || return 0
	queue+=("${times[$2]:-inf}"$'\t'"$(printf '%q ' "$@")")
}

# Sleeps, without a process.
pause()	# SECONDS
{
	read -r -t "$1" <&"$silent"
}

# Whether twice as many threads want to run as there are processors, by the mean of some looks. The load
# average, which make -l reads, follows too slowly for that.
processors_are_busy()
{
	local look running sum=0
	for ((look = 0; look < 6; look++)); do
		pause 0.02
		read -r _ _ _ running _ </proc/loadavg
		sum=$((sum + ${running%/*} - 1))		# without this shell
	done
	[ "$sum" -ge $((6 * 2 * processors)) ]
}

# Takes those that have ended out of $running.
count_running()
{
	local pid alive=()
	for pid in "${running[@]}"; do
		kill -0 "$pid" 2>/dev/null && alive+=("$pid")
	done
	running=("${alive[@]}")
}

# Runs all of the queue, several tests beside each other. No further test begins while the processors
# are busy: it would only slow the others down.
run_queue()
{
	local entry sorted running=() silent processors
	[ ${#queue[@]} -gt 0 ] || return 0
	processors=$(nproc)
	exec {silent}<> <(:)
	mapfile -t sorted < <(printf '%s\n' "${queue[@]}" | sort -s -k 1,1gr)
	for entry in "${sorted[@]}"; do
		count_running
		while [ ${#running[@]} -ge "$jobs_max" ] ||
			{ [ ${#running[@]} -ge "$processors" ] && processors_are_busy; }; do
			pause 0.05
			count_running
		done
		eval "run_one ${entry#*$'\t'}" {lock}>&- {silent}>&- &
		running+=($!)
	done
	exec {silent}>&-
	wait
}

# The largest segments of a test are of 320 MiB; few tests have two, and small ones.
shm_a_test_mib=400

choose_jobs()
{
	local free room
	[ -z "$jobs_max" ] || return
	jobs_max=$(($(nproc) + 12))
	free=$(($(df --output=avail -m /dev/shm | tail -n 1)))
	room=$((free / shm_a_test_mib > 0 ? free / shm_a_test_mib : 1))
	[ "$room" -lt "$jobs_max" ] && [ "$room" -lt "${#queue[@]}" ] || return
	jobs_max=$room
	echo "run.sh: /dev/shm has $free MiB free, so $room of $(($(nproc) + 12)) tests run at a time"
}

# Results and logs are of one run at a time. The kernel gives the lock back however this run ends;
# no test inherits it.
only_one()
{
	local pid
	mkdir -p "$logs" || exit 1
	exec {lock}>>"$BUILD/tests/lock" || exit 1
	if flock -n "$lock"; then
		echo $$ >"$BUILD/tests/lock"
		return
	fi
	pid=$(cat "$BUILD/tests/lock")
	[ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && pid="process $pid" || pid="another process"
	echo "run.sh: $pid runs tests in $BUILD already; wait until it ends, or give another" \
		"BUILD" >&2
	exit 2
}

nothing_to_run()
{
	echo "run.sh: no test that can run matches '$pattern'"
	printf '    %s\n' "${left_out[@]}"
	[ -x "$BUILD/tests/sim" ] ||
		echo "    $BUILD has no unit, sim and fuzz tests yet; 'make -j2' builds them"
	exit 2
} >&2

# Lines of a log that tell of a failure, wherever they are in it: the scripts' and cmocka's own, a
# sanitizer's, assert()'s.
of_failure='^not ok - |^FAIL |\[  FAILED  \] [^0-9]|\[  ERROR   \] --- |\[   LINE   \] |^ERROR: '
of_failure+='|^SUMMARY: |: Assertion .* failed'

# Everything that it says is said at once, so that two do not mix.
run_one()
{
	local kind=$1 name=$2 seconds=$3 log status before took p f s segment result
	shift 3
	log=$logs/${name//\//-}.log
	result=$results/${name//\//-}
	segment=test-$$-$(basename "$name" | cut -c 1-36)
	echo "$segment" >"$result.running"
	before=$(date +%s%N)
	# The braces swallow the shell's own word on a crash.
	{ timeout -k 10 "$((seconds * slower))" "$@" >"$log" 2>&1 </dev/null; } 2>/dev/null
	status=$?
	end_segment "$segment"
	took=$(awk -v ns=$(($(date +%s%N) - before)) 'BEGIN { printf "%.1f s", ns / 1e9 }')

	read -r p f s < <("count_$kind" "$log")
	case $status in
	0)
		# A program that counts nothing is one test by its exit code; a script that says
		# nothing is broken.
		if [ $((p + f + s)) -eq 0 ]; then
			case $name in
			system/* | tidy/*)
				echo "run.sh: the script reported no test" >>"$log"
				f=1 ;;
			*) p=1 ;;
			esac
		fi
		[ "$f" -eq 0 ] || status=1
		;;
	124 | 137)
		echo "run.sh: killed after $((seconds * slower)) s" >>"$log"
		f=$((f + 1))
		;;
	*)
		if [ $status -gt 128 ]; then
			echo "run.sh: ended by SIG$(kill -l $((status - 128)) 2>/dev/null)" >>"$log"
			f=$((f + 1))
		elif [ "$f" -eq 0 ]; then
			echo "run.sh: ended with exit code $status" >>"$log"
			f=1
		fi
		;;
	esac
	{
		echo "$f $p ${took% s} $name"
		[ "$s" -eq 0 ] || skip_lines "$kind" "$log" | sed "s|^|$name: |"
	} >"$result"
	rm -f "$result.running"
	printf '%s\n' "$(
		if [ $status -eq 0 ]; then
			echo "ok $name ($took, $p passed$([ "$s" -eq 0 ] || echo ", $s skipped"))"
			exit
		fi
		echo "FAIL $name ($took, $p passed, $f failed)"
		grep -aE "$of_failure" "$log" | awk '!seen[$0]++' | head -n 20 | sed 's/^/    /'
		echo "    --- end of $log"
		tail -n 25 "$log" | sed 's/^/    | /'
	)"
}

skip_lines()	# KIND LOG
{
	if [ "$1" = cmocka ]; then
		awk '
		/\[ RUN      \] / { on = 1; next }
		on && /\[       OK \] |\[  FAILED  \] / { on = 0 }
		on && sub(/.*\[  SKIPPED \] /, "") { print; on = 0 }' "$2"
	else
		sed -n -E 's/^(skip - |skipped: )//p' "$2"
	fi
}

has_tag()	# SCRIPT TAG
{
	grep -qE "^# tags:.*\b$2\b" "$1"
}

# why_not SCRIPT: prints the reason if this run is not to have it
why_not()
{
	if [ -n "$SAN" ] && ! has_tag "$1" san; then
		echo "it does not run under sanitizers"
	elif [ -z "$LONG" ] && has_tag "$1" long; then
		echo "only LONG=1 ('make check-long') runs it"
	elif [ -z "$STATIC" ] && has_tag "$1" static; then
		echo "only STATIC=1 ('make tidy') runs it"
	fi
}

run_scripts()	# FOLDER
{
	local script seconds name reason
	for script in tests/"$1"/*.sh; do
		name=$1/$(basename "$script" .sh)
		matches "$name" || continue
		reason=$(why_not "$script")
		if [ -n "$reason" ]; then
			left_out+=("$name: $reason")
			continue
		fi
		seconds=$(sed -n 's/^# timeout: *\([0-9]*\).*/\1/p' "$script" | head -n 1)
		run lines "$name" "${seconds:-60}" \
			env TEST_SEGMENT="test-$$-$(basename "$name" | cut -c 1-36)" bash "$script"
	done
}

# gcc's ThreadSanitizer does not start under every layout of the address space; a fixed one always
# does.
fixed=()
if [ "$SAN" = tsan ] && command -v setarch >/dev/null 2>&1; then
	fixed=(setarch -R)
fi

if [ -z "$SAN" ] && [ -x tests/model/run.sh ]; then
	run lines model 240 tests/model/run.sh ${LONG:+--long} "$BUILD/model"
fi
# The simulator, in pieces that run side by side: two, or of 2500 seeds.
if [ -x "$BUILD/tests/sim" ]; then
	piece=$((seeds > 5000 ? 2500 : (seeds + 1) / 2))
	for ((first = 1; first <= seeds; first += piece)); do
		last=$((first + piece - 1 < seeds ? first + piece - 1 : seeds))
		run lines "sim/$first-$last" 240 "${fixed[@]}" "$BUILD/tests/sim" --seed "$first" \
			--seeds $((last - first + 1))
	done
	# kvd alone: a run takes a tenth of the time
	run lines sim/values 120 "${fixed[@]}" "$BUILD/tests/sim" --values --seed 1 \
		--seeds "$((seeds < 60 || LONG ? seeds : 60))" --with cached=0,cached-low=0,volumed=0
	if [ -n "$LONG" ] && [ -z "$SAN" ]; then
		run lines sim/paranoid 120 "$BUILD/tests/sim" --paranoid --seed 1000001 \
			--seeds "${PARANOID_SEEDS:-200}"
	fi
fi
if [ -n "$LONG" ] && [ -z "$SAN" ]; then
	run lines sim-mutants 120 tests/sim/mutants.sh
fi
run_scripts system
run_scripts tidy
# Inputs that were interesting, or went wrong once, are played again. None of it is for
# ThreadSanitizer: races are its purpose.
for program in "$BUILD"/tests/fuzz_*; do
	name=${program##*/fuzz_}
	[ -x "$program" ] && [ -d "tests/fuzz/corpus/$name" ] && [ "$SAN" != tsan ] || continue
	run lines "fuzz/$name" 60 env XSEG_SEGMENT="test-$$-fuzz-$name" "$program" \
		"tests/fuzz/corpus/$name"
done
if [ -x "$BUILD/tests/scribble" ] && [ "$SAN" != tsan ]; then
	run lines fuzz/scribble 60 "$BUILD/tests/scribble" \
		--seconds "$([ -n "$LONG" ] && echo 300 || echo 6)"
fi
for program in "$BUILD"/tests/*_test; do
	[ -x "$program" ] || continue
	name=${program##*/}
	matches "unit/$name" || continue
	# left over: its source is gone
	[ -n "$(find tests/unit -name "$name.c")" ] || continue
	run cmocka "unit/$name" 120 env XSEG_SEGMENT="test-$$-${name:0:36}" \
		CMOCKA_MESSAGE_OUTPUT=stdout \
		"${fixed[@]}" "$program"
done

[ ${#queue[@]} -gt 0 ] || nothing_to_run
only_one
rm -rf "$logs"/results.*
mkdir -p "$results" || exit 1
choose_jobs
run_queue
for file in "$results"/*.running; do
	echo "1 0" >"${file%.running}"	# its shell came to an end before it
done
passed=$(sed -s -n 1p "$results"/* /dev/null | awk '{ n += $2 } END { print n + 0 }')
failed=$(sed -s -n 1p "$results"/* /dev/null | awk '{ n += $1 } END { print n + 0 }')
skipped=$(sed -s 1d "$results"/* /dev/null)
if [ -n "$skipped" ]; then
	echo "skipped $(wc -l <<<"$skipped"):"
	sed 's/^/    /' <<<"$skipped"
fi
if [ "$failed" -gt 0 ]; then
	echo "failed: $(grep -lE '^[1-9][0-9]* ' "$results"/* | sed 's|.*/||' | tr '\n' ' ')"
fi
if [ "$pattern" = . ] && [ -z "$LONG$SAN" ]; then
	sed -s -n 1p "$results"/* | awk 'NF == 4 { print $3, $4 }' |
		sort -k 1,1nr -k 2 >"$logs/times"
fi
rm -rf "$results"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
