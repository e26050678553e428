# system.sh - helpers of the system tests; every tests/system/*.sh sources it first.
#
#	#!/bin/bash
#	# plug.sh - a cache is plugged and unplugged while I/O runs.
#	# tags: san                (see tests/run.sh)
#	# timeout: 90
#	. "$(dirname "$0")/../lib/system.sh"
#	t "a segment is created" xseg create --memory 64M
#	expect_err 4 "exists" "a second one of that name is refused" xseg create --memory 64M
#	finish
#
# A script has after this:
#   PATH          begins with build/bin and build/tests
#   XSEG_SEGMENT  a name of its own, exported; further segments are called "$XSEG_SEGMENT-WORD"
#   TMP           a directory on a real disk (O_DIRECT works), its working directory, removed at the
#                 end (KEEP=1 keeps it)
#   LONG          1 in `make check-long`, else empty;  SAN  asan, tsan or empty
#
# However the script ends, its processes are killed, its mounts in TMP undone and its segments
# removed. Its processes are known by XSEG_SEGMENT in their environment, so scripts never need a
# pkill.

. "$(dirname "${BASH_SOURCE[0]}")/report.sh"
. "$(dirname "${BASH_SOURCE[0]}")/leftovers.sh"
set -u

test_name=$(basename "$0" .sh)
export PATH="$BUILD/bin:$BUILD/tests:$PATH"
export LONG=${LONG:-} SAN=${SAN:-}
# Not exported by tests/run.sh under this name, or its own processes would look like the test's.
export XSEG_SEGMENT=${TEST_SEGMENT:-test-$$-${test_name:0:36}}
TMP=$BUILD/tests/tmp/$test_name.$$
export TMP
export TMPDIR=$TMP
export XDG_STATE_HOME=$TMP
mkdir -p "$TMP" && cd "$TMP" || exit 1

cleanup()
{
	local status=$?
	trap - EXIT HUP INT TERM
	cd "$root" || exit 1
	if [ -e "/dev/shm/xseg.$XSEG_SEGMENT" ] && [ -x "$BUILD/bin/xseg" ]; then
		timeout -k 1 10 "$BUILD/bin/xseg" -s "$XSEG_SEGMENT" down \
			--force >/dev/null 2>&1 </dev/null
	fi
	exec 2>/dev/null		# the shell's own words on what is killed now
	end_segment "$XSEG_SEGMENT"
	sed -n "s|^[^ ]* \($TMP/[^ ]*\) .*|\1|p" /proc/mounts | tac | xargs -r umount --lazy
	if [ -n "${KEEP:-}" ]; then
		echo "kept $TMP"
	else
		rm -rf "$TMP"
	fi
	exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# A command or a function that does not exist would only make a test say less. finish() fails then.
command_not_found_handle()
{
	echo "$1: command not found" | tee -a "$TMP/.unknown" >&2
	return 127
}

# bound SHORT LONG: the first in `make check`, the second in `make check-long`
bound()
{
	if [ -n "$LONG" ]; then echo "$2"; else echo "$1"; fi
}

# t SENTENCE COMMAND...: ok when the command succeeds; its status is returned
t()
{
	local sentence=$1 status
	shift
	"$@" >"$TMP/.out" 2>&1 </dev/null
	status=$?
	if [ $status -eq 0 ]; then
		ok "$sentence"
	else
		not_ok "$sentence" "$TMP/.out"
		echo "    exit code $status of: $*"
	fi
	return $status
}

# expect_exit CODE SENTENCE COMMAND...: ok when the command ends with exactly this code
expect_exit()
{
	local code=$1 sentence=$2 status
	shift 2
	"$@" >"$TMP/.out" 2>&1 </dev/null
	status=$?
	if [ $status -eq "$code" ]; then
		ok "$sentence"
		return 0
	fi
	not_ok "$sentence" "$TMP/.out"
	echo "    exit code $status, not $code, of: $*"
	return 1
}

# expect_err CODE REGEX SENTENCE COMMAND...: ok when the command ends with this code and says
# exactly one line on stderr, which matches the extended regular expression. A command that takes
# five seconds says what it waits for, so there that line is the last one.
expect_err()
{
	local code=$1 regex=$2 sentence=$3 status said began=${EPOCHREALTIME/./}
	shift 3
	"$@" >"$TMP/.out" 2>"$TMP/.err" </dev/null
	status=$?
	mapfile said <"$TMP/.err"
	[ $((${EPOCHREALTIME/./} - began)) -lt 5000000 ] || said=("${said[@]: -1}")
	if [ $status -eq "$code" ] && [ ${#said[@]} -eq 1 ] &&
			[[ ${said[0]} == *$'\n' && ${said[0]%$'\n'} =~ $regex ]]; then
		ok "$sentence"
		return 0
	fi
	not_ok "$sentence" "$TMP/.out" "$TMP/.err"
	echo "    wanted exit code $code and one line on stderr with /$regex/; exit code $status of: $*"
	return 1
}

# notes FILE: what `xseg up` has said there, but for what it waits for where it takes five seconds
notes()
{
	grep -vE '^xseg: ([0-9]+ of [0-9]+ (peers serve|exports are served), |starting )' "$1"
}

# is SENTENCE ACTUAL WANTED: ok when the texts are the same
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
		return 0
	fi
	not_ok "$1"
	printf '    got    "%s"\n    wanted "%s"\n' "$2" "$3"
	return 1
}

# json FILE EXPRESSION: prints a value of a JSON file (- is standard input); fails on what is no
# JSON
json()
{
	jq -er "$2" "$1"
}

# json_of EXPRESSION COMMAND...: prints a value of the command's output; fails when the command does
json_of()
{
	local expression=$1
	shift
	"$@" >"$TMP/.json_of" </dev/null && jq -er "$expression" "$TMP/.json_of"
}

# expect_json EXPRESSION SENTENCE COMMAND...: ok when the jq expression is true of the command's
# output: it yields a value or several, as has("a", "b") does, and all of them are
expect_json()
{
	local expression=$1 sentence=$2
	shift 2
	if "$@" >"$TMP/.json" 2>"$TMP/.err" </dev/null &&
			jq -e "[$expression] | . != [] and all" "$TMP/.json" >/dev/null \
				2>>"$TMP/.err"; then
		ok "$sentence"
		return 0
	fi
	not_ok "$sentence" "$TMP/.json" "$TMP/.err"
	echo "    not true: $expression, of: $*"
	return 1
}

# wait_for SECONDS COMMAND...: tries the command until it succeeds, after 50 ms first and after 500 ms
# at last; fails after that time
wait_for()
{
	local end=$((SECONDS + $1 + 1)) pause=0.05 tries=0
	shift
	until "$@" >"$TMP/.tried" 2>&1 </dev/null; do
		[ $SECONDS -lt $end ] || { cat "$TMP/.tried"; return 1; }
		# most conditions are asked for by processes, which take time from the other tests
		case $((++tries)) in
		4) pause=0.2 ;;
		20) pause=0.5 ;;
		esac
		sleep $pause
	done
}

# start NAME COMMAND...: runs it in the background; output in $TMP/NAME.log, pid in $started
start()
{
	local name=$1
	shift
	: >"$TMP/$name.log"		# now: whoever reads it next is not to find what was there before
	"$@" >"$TMP/$name.log" 2>&1 </dev/null &
	started=$!
}

# stands_still PID: it is stopped, with all its threads, which a while after the signal it is
stands_still()
{
	! grep -hE '^State:' "/proc/$1/task"/*/status | grep -qv 'T (stopped)'
}

# freeze PID: stops it, and waits until it stands still
freeze()
{
	kill -STOP "$1" && wait_for 60 stands_still "$1"
}

# has_ended PID: no thread of it runs any more; it may be a zombie
has_ended()
{
	! grep -hs '^State:' "/proc/$1/task"/*/status | grep -qv '[ZX] ('
}

# kill_hard PID...: SIGKILL, and waits until all have ended, which a while after the signal they have.
# Only then are their locks free and their peers dead.
kill_hard()
{
	local pid
	kill -KILL "$@" || return
	for pid; do
		wait_for 60 has_ended "$pid" || return
	done
}

# takes_signals PID: it catches SIGTERM or keeps it for later, which a while after its start it does.
# Before, that signal ends it at once. At first it is this shell, which catches signals, too.
takes_signals()
{
	local name mask
	! [ "/proc/$1/exe" -ef "/proc/$$/exe" ] || return 1
	while read -r name mask; do
		case $name in
		SigBlk: | SigCgt:) [ $((16#$mask >> 14 & 1)) = 0 ] || return 0 ;;
		esac
	done <"/proc/$1/status"
	return 1
}

# nr_looks PID: how often it went to sleep, as a program does that looks for something again and again
nr_looks()
{
	awk '$1 == "voluntary_ctxt_switches:" { print $2 }' "/proc/$1/status"
}

# has_looked PID TIMES: more often than that
has_looked()
{
	[ "$(nr_looks "$1")" -gt "$2" ]
}

# is_waiting PID: it has looked so often that it is past its start, and waits
is_waiting()
{
	has_looked "$1" 8
}

# looks_again PID: returns when the program has looked after this
looks_again()
{
	wait_for 60 has_looked "$1" $(($(nr_looks "$1") + 2))
}

# interrupting CONDITION COMMAND...: as the command, which is interrupted with all that it has started,
# as a terminal does, as soon as CONDITION is true of its process
interrupting()
{
	local condition=$1 pid
	shift
	set -m				# a process group of its own
	"$@" &
	pid=$!
	set +m
	wait_for 60 "$condition" "$pid"
	kill -INT -- "-$pid"
	wait "$pid"
}

# until_said NAME REGEX: what was begun as NAME by start is interrupted when it has said that, if it does
# not end before; its exit code
until_said()
{
	wait_for 60 has_said_or_ended "$TMP/$1.log" "$2" "$started"
	kill -INT "$started" 2>/dev/null
	wait "$started"
}

has_said_or_ended()	# FILE REGEX PID
{
	grep -qE "$2" "$1" || ! kill -0 "$3"
}

# is_user PROGRAM|PID: such a program or process uses a volume or a store of values
is_user()
{
	xseg --json clients | jq -e "any(.[]; .program == \"$1\" or (.pid | tostring) == \"$1\")"
}

# has_requests PID: such a process has requests that were not answered yet
has_requests()
{
	xseg --json clients | jq -e "any(.[]; .pid == $1 and .requests_in_flight > 0)"
}

# free_memory_mb: what tests of large segments ask before they start. Segments are in /dev/shm.
free_memory_mb()
{
	{
		awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo
		df --output=avail -m /dev/shm | tail -n 1
	} | sort -n | head -n 1 | tr -d ' '
}

# peer_field PEER FIELD: what `xseg peer list` says of it; null: nothing. This, and what follows, is
# asked again and again: the shell reads a table sooner than another program starts.
peer_field()
{
	local name kind state pid generation ports
	case $2 in
	name | kind | state | pid | generation | ports) ;;
	*)
		xseg --json peer list | jq -r ".[] | select(.name == \"$1\").$2"
		return
		;;
	esac
	while read -r name kind state pid generation ports _; do
		[ "$pid" != - ] || pid=null
		[ "$name" != "$1" ] || echo "${!2}"
	done <<<"$(xseg peer list)"
}

# state_is PEER STATE
state_is()
{
	local name state
	while read -r name _ state _; do
		[ "$name" != "$1" ] || [ "$state" != "$2" ] || return 0
	done <<<"$(xseg peer list)"
	return 1
}

# all_serve: whether there are peers of a stack, and all do
all_serve()
{
	local kind state any=
	while read -r _ kind state _; do
		case $kind in
		'' | KIND | client) continue ;;
		esac
		[ "$state" = running ] || return 1
		any=1
	done <<<"$(xseg peer list)"
	[ -n "$any" ]
}

# path_of PEER...: where each sends to, and nothing of one that sends nowhere
path_of()
{
	local peer name downstream list path=
	list=$(xseg peer list) || return
	for peer; do
		while read -r name _ _ _ _ _ _ downstream _; do
			[ "$name" != "$peer" ] || path+=${downstream#-}
		done <<<"$list"
		path+=" "
	done
	echo "${path% }"
}

# field_of KEY WORDS...: that field of the object which `xseg --json WORDS` prints, but not one of an
# object inside. As the table above, it is read by the shell: jq takes 16 ms to begin.
field_of()
{
	local key=$1 text
	shift
	text=$(xseg --json "$@")
	[[ $text =~ $'\n  "'"$key"'": '([^$'\n']*) ]] || return
	text=${BASH_REMATCH[1]%,}
	text=${text#\"}
	echo "${text%\"}"
}

# no_clients: whether all that used volumes have left, and what the dead had is swept
no_clients()
{
	local kind text
	text=$(xseg peer list) || return
	while read -r _ kind _; do
		[ "$kind" != client ] || return
	done <<<"$text"
}

# is_clean [VOLUME]: nothing in the cache called cached is dirty, or nothing of that volume
is_clean()
{
	[ "$(field_of dirty_bytes cache status cached ${1:+--volume "$1"})" = 0 ]
}

# is_dirty: something in the cache called cached is
is_dirty()
{
	[ "$(field_of dirty_bytes cache status cached)" -gt 0 ]
}

# counted GROUP NAME KEY: what `xseg stat` says of one of its peers, caches or volumes; 0: it has
# none of that name
counted()
{
	case $3 in
	*.*)
		xseg --json stat | jq "[.$1[] | select(.name == \"$2\").$3] | add // 0"
		;;
	*)
		xseg --json stat | awk -v group="\"$1\":" -v name="\"$2\"," -v key="\"$3\":" '
			/^  "/ { in_group = $1 == group }
			in_group && /^      "name":/ { is_it = $2 == name }
			in_group && is_it && /^      "/ && $1 == key { sum += $2 }
			END { printf "%.0f\n", sum }'
		;;
	esac
}

# counts_more GROUP NAME KEY NUMBER: it is more than that
counts_more()
{
	[ "$(counted "$1" "$2" "$3")" -gt "$4" ]
}

# volume_status VOLUME EXPRESSION: what the cache called cached says of a volume
volume_status()
{
	xseg --json cache status cached --volume "$1" | jq "$2"
}

# free_of_segment: how many pages and requests are free; is_as_before compares it with what $free
# held of it
free_of_segment()
{
	xseg --json check | awk '/^  "(free_pages|free_requests|idle_requests)":/ { print $2 }'
}

is_as_before()
{
	[ "$(free_of_segment)" = "$free" ]
}

# need_kill_points PEER: PATH begins with the programs that have kill points, and they share a table;
# skips the whole script where PEER's is not built, or older than a source
need_kill_points()
{
	local newest
	[ -x "$BUILD/kill/bin/$1" ] ||
		skip_all "there are no programs with kill points; 'make kill-build' makes them"
	newest=$BUILD/kill/bin/$(ls -t "$BUILD/kill/bin" | head -n 1)
	[ -z "$(find "$root"/{xtypes,xseg,peers} -name '*.[ch]' -newer "$newest" -print -quit)" ] ||
		skip_all "the programs with kill points are older than the sources; 'make kill-build' makes them anew"
	export PATH="$BUILD/kill/bin:$PATH"
	export XSEG_KILL_TABLE=$TMP/table
}

# python_of MODULE: a Python that has it
python_of()
{
	local candidate
	for candidate in python3 /usr/bin/python3; do
		"$candidate" -c "import $1" 2>/dev/null && echo "$candidate" && return
	done
	return 1
}

# free_port: one of TCP that nobody has, and that the kernel gives to no client meanwhile
free_port()
{
	python3 -c 'import random, socket
low = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
while True:
    port = random.randrange(min(10000, low // 2), low)
    try:
        with socket.socket() as s:
            s.bind(("127.0.0.1", port))
        break
    except OSError:
        pass
print(port)'
}

# ---- volumes by NBD ----

plugin=$BUILD/lib/nbdkit-xseg-plugin.so

# Skips the whole script where `xseg export` has no plug-in.
need_plugin()
{
	[ -e "$plugin" ] ||
		skip_all "$plugin is not built: nbdkit's header is not there (make deps)"
}

# export_up NAME VOLUME OPTION...: begins an export on $TMP/NAME.sock, and waits until it serves;
# its URI is in $uri, its pid in $server
export_up()
{
	local name=$1
	shift
	rm -f "$TMP/$name.log"
	start "$name" xseg export "$@" --nbd "$TMP/$name.sock"
	server=$started
	t "$name is served" wait_for 60 grep -q '^nbd' "$TMP/$name.log" || return
	uri=$(head -n 1 "$TMP/$name.log")
}

# export_down PID: interrupts it, if it still runs; its exit code
export_down()
{
	kill -TERM "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# ---- what comes and goes below a load ----
#
#	disturb memd cached volumed		# from now on
#	t "that is a pause to its client" LOAD
#	disturbed 1				# ends it; sentences that each of it happened
#
# By turns each VICTIM is killed, and serves again; the policy of the cache called cached is another
# one; and it leaves the path between LOWER and volumed, and enters it again. There is a second or
# more between two kills of one, as the supervisor takes its time with those that die at once.

# disturb LOWER VICTIM...
disturb()
{
	rm -f "$TMP/undisturbed"
	disturb_victims=("${@:2}")
	start disturb disturbing "$@"
	disturb_pid=$started
}

# Its words are what is counted; it ends with the script, however that ends.
disturbing()	# LOWER VICTIM...
{
	local lower=$1 victim policy
	shift
	while kill -0 $$ && [ ! -e "$TMP/undisturbed" ]; do
		for victim; do
			xseg peer kill "$victim" && wait_for 60 state_is "$victim" running
		done
		for policy in write-through write-around write-back; do
			xseg cache set cached policy=$policy && echo "policy $policy"
		done
		xseg --timeout 20s unplug cached && echo unplugged &&
			xseg --timeout 20s plug cached --above "$lower" --below volumed &&
			echo plugged
		sleep 1
	done
}

# nr_disturbed: how often the rarest of it happened
nr_disturbed()
{
	local word
	for word in "${disturb_victims[@]/%/ is killed}" "policy write-around" plugged; do
		grep -cxF -- "$word" "$TMP/disturb.log"
	done | sort -n | head -n 1
}

# disturbed TIMES: so often, each of it, or more often
disturbed()
{
	local victim
	touch "$TMP/undisturbed"
	wait "$disturb_pid"
	for victim in "${disturb_victims[@]}"; do
		t "$victim serves again" wait_for 60 state_is "$victim" running
	done
	t "kills, policies and plugs were there" test "$(nr_disturbed)" -ge "$1" ||
		tail -n 30 "$TMP/disturb.log" | sed 's/^/    /'
}

# What is true of the JSON of an xbench that met no error.
no_errors='[.jobs[] | .error, .verify_errors] | add == 0'
