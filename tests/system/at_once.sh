#!/bin/bash
# at_once.sh - two commands that come together: neither fails, loses its order or hangs because of
# the other one. If they contradict each other, one may be refused, and says so.
# timeout: 300
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd jq

cat >stack.conf <<END
[segment]
memory = 160M
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 8M
objects = 16
[peer volumed]
downstream = cached
[peer spare]
kind = cached
memory = 4M
objects = 8
END

# together COMMAND COMMAND: begun at the same time, each a text of words; if $halt is not empty,
# while the supervisor stands still for a second. Their exit codes are in $codes.
together()
{
	local supervisor first second
	supervisor=$(xseg --json status | jq .supervisor.pid)
	[ -z "$halt" ] || freeze "$supervisor"
	# shellcheck disable=SC2086	# words
	start first xseg --timeout 60 $1
	first=$started
	# shellcheck disable=SC2086
	start second xseg --timeout 60 $2
	second=$started
	if [ -n "$halt" ]; then
		sleep 1
		kill -CONT "$supervisor"
	fi
	wait "$first"
	codes=$?
	wait "$second"
	codes+=" $?"
}
# both COMMAND COMMAND: both succeed, and then all serve
both()
{
	together "$1" "$2"
	[ "$codes" = "0 0" ] && wait_for 60 all_serve && return
	echo "exit codes $codes"
	cat "$TMP/first.log" "$TMP/second.log"
	xseg peer list
	return 1
}
# one_of REGEX COMMAND COMMAND: both succeed, or one is refused, and says why
one_of()
{
	together "$2" "$3"
	case $codes in
	"0 0") return ;;
	"0 4" | "4 0") grep -qE "$1" "$TMP/first.log" "$TMP/second.log" && return ;;
	esac
	echo "exit codes $codes"
	cat "$TMP/first.log" "$TMP/second.log"
	return 1
}
# as_the_file: the segment knows its file, and nothing differs
as_the_file()
{
	[ "$(xseg --json reload --dry-run | jq '.differences | length')" = 0 ]
}

# is_left PEER: the supervisor's last word of it is that it has stopped, and it is not started
is_left()
{
	[ "$(grep -E "supervisor: (started )?$1( |$)" "$log" | tail -n 1 | sed 's/.*supervisor: //')" = "$1 stopped" ]
}
log=$TMP/xseg-$XSEG_SEGMENT.log

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 4M
for halt in "" halted; do
	n=${halt:+1}
	t "two restarts of one peer${halt:+, $halt}" both "peer restart volumed" "peer restart volumed"
	kill -TERM "$(peer_field volumed pid)"
	t "no order is left: one that ends by itself then stays away" wait_for 60 is_left volumed
	t "until it is started" xseg peer start volumed
	t "two restarts of peers above each other" both "peer restart volumed" "peer restart cached"
	t "two restarts of all" both "peer restart --all" "peer restart --all"
	t "a restart of all, and a setting that is saved" \
		both "peer restart --all" "cache set cached flush_rate=1${n}M --save"
	t "the file and the segment have the setting" as_the_file
	t "two settings that are saved" \
		both "cache set cached dirty_age=2${n}s --save" "cache set cached dirty_high=6${n:-0} --save"
	t "the file and the segment have both" as_the_file
	is "none is lost" "$(grep -cE "^(flush_rate = 1${n}M|dirty_age = 2${n}s|dirty_high = 6${n:-0})$" stack.conf)" 3
	t "a restart of all, and a reload" both "peer restart --all" reload
	sed -i "s/^\[peer memd\]/[peer extra${n:-0}]\nkind = memd\nmemory = 4M\n&/" stack.conf
	t "a restart, and a reload that gives peers other places in the file" \
		both "peer restart volumed" "reload stack.conf"
	t "two volumes that are made" both "volume create a$n --size 1M" "volume create b$n --size 1M"
	t "one that is renamed, and one that is copied" both "volume rename a$n c$n" "volume copy b$n d$n"
	t "two that are removed" both "volume remove c$n" "volume remove b$n d$n"

	t "a stop and a restart of one peer" one_of \
		"'xseg peer stop' has stopped it meanwhile|has started it again meanwhile|is stopped already" \
		"peer stop volumed" "peer restart volumed"
	xseg peer start volumed >/dev/null 2>&1
	t "then it serves" state_is volumed running
	t "a stop, and a restart of all" together "peer stop volumed" "peer restart --all"
	is "both are done" "$codes" "0 0"
	is "the peer stays stopped" "$(peer_field volumed state)" stopped
	t "two starts" one_of "is running already" "peer start volumed" "peer start volumed"
	t "a setting, and a restart of another peer" both "peer set memd latency=0" "peer restart volumed"
	t "a start and a stop of a peer that runs" one_of \
		"is running already|is stopping; start it when|has started it again meanwhile" \
		"peer start volumed" "peer stop volumed"
	xseg peer start volumed >/dev/null 2>&1
	t "a cache enters the path, and another is restarted" both \
		"plug spare --above memd --below cached" "peer restart cached"
	t "it leaves the path, and is restarted" both "unplug spare" "peer restart spare"
	is "no cache is left between" "$(path_of cached spare)" "memd "
done

# ---- a restart of a peer that another command has stopped for its own restart ----

log=$TMP/xseg-$XSEG_SEGMENT.log
: >"$log"
supervisor=$(xseg --json status | jq .supervisor.pid)
freeze "$supervisor"
start first xseg --timeout 60 peer restart volumed
first=$started
t "a peer stops, and is not started yet" wait_for 60 state_is volumed stopped
start second xseg --timeout 60 peer restart volumed
second=$started
sleep 1
kill -CONT "$supervisor"
wait "$first"
codes=$?
wait "$second"
is "both restarts are done" "$codes $?" "0 0"
t "it serves" state_is volumed running
is "no process was refused" "$(grep -c 'ended with exit code' "$log")" 0
t "all stops" xseg down

# ---- a process that takes a while until it is in the segment ----

mkdir bin
for program in cached memd; do ln -s "$BUILD/bin/$program" bin; done
cp "$BUILD/bin/xseg" "$BUILD/bin/xseg-host" bin
cat >bin/volumed <<END
#!/bin/sh
until ! [ -e "$TMP/slow" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
exec $BUILD/bin/volumed "\$@"
END
chmod +x bin/volumed
nr_started()
{
	[ "$(grep -c "supervisor: started volumed" "$log")" -ge "$1" ]
}
: >"$log"
t "a stack comes up" bin/xseg up stack.conf
touch slow
start restart bin/xseg --timeout 60 peer restart volumed
restart=$started
t "it is restarted" wait_for 60 nr_started 2
t "it is stopped before it is there" bin/xseg peer stop volumed
wait "$restart"
is "the restart is refused" "$?" 4
rm slow
t "what it had begun is stopped, when it is there" wait_for 60 grep -q "supervisor: stopping volumed" "$log"
t "it has ended then" wait_for 60 is_left volumed
is "and stays so" "$(peer_field volumed state)" stopped
t "all stops" bin/xseg down
finish
