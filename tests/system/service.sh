#!/bin/bash
# service.sh - `up --service` as a service manager runs it: it says when all serve, that it stops,
# and that a stop goes on; it shows the log, also of one that was rotated; a supervisor may be
# replaced meanwhile; at the end the segment is gone. A stop during the start ends it in order, too.
# timeout: 200
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd filed xbench jq python3

cat >stack.conf <<END
[segment]
memory = 192M

[peer memd]
memory = 64M

[peer cached]
downstream = memd
memory = 48M
dirty_high = 90
dirty_low = 80
dirty_age = 1h

[peer volumed]
downstream = cached
END

. "$root/tests/lib/manager.sh"
log=$TMP/xseg-$XSEG_SEGMENT.log

mkdir bin
for program in xseg xseg-host volumed cached memd; do ln -s "$BUILD/bin/$program" bin; done
rm bin/xseg && cp "$BUILD/bin/xseg" bin
NOTIFY_SOCKET=$manager start front "$TMP/bin/xseg" up stack.conf --service
front=$started
t "the manager is told when all serve" wait_for 60 grep -qx READY=1 notes
is "and not before" "$(xseg --json peer list | jq -c '[.[].state] | unique')" '["running"]'
t "the log is shown" wait_for 60 grep -q "supervisor: started" front.log

: >"$log"
t "the front looks at its length" looks_again "$front"
t "all are restarted" xseg peer restart --all
t "a log that was cut is shown, too" wait_for 60 grep -q "memd is restarted, as asked" front.log
is "the front stays" "$(kill -0 "$front" && echo yes)" yes
t "it sees the other supervisor" looks_again "$front"
cp bin/xseg bin/new && mv bin/new bin/xseg
t "and looks whether its program is another one" looks_again "$front"
is "a new program alone does not change it: it may not know this segment" \
	"$(readlink "/proc/$front/exe")" "$TMP/bin/xseg (deleted)"
t "all are restarted once more" xseg peer restart --all
is_new()
{
	[ "$(readlink "/proc/$front/exe")" = "$TMP/bin/xseg" ]
}
t "the front becomes the new program, and is the same process" wait_for 60 is_new
t "the manager is told once more that all serve" wait_for 60 eval '[ "$(grep -cx READY=1 notes)" = 2 ]'
is "no line of the log is shown twice" "$(grep -E '^[0-9]{4}-' front.log | sort | uniq -d)" ""
is "the front stays" "$(kill -0 "$front" && echo yes)" yes
t "a volume is made" xseg volume create v --size 32M
write_dirty()
{
	xbench --volume=v --rw=write --bs=64k --iodepth=8 --size=32M --number_ios=512
}

# ---- a reload and a restart that flush for long ----

# noted: what the manager was told since the last time
noted()
{
	all_noted
	tail -n +"$((seen + 1))" notes | grep -v '^MARK'
	seen=$(wc -l <notes)
}
seen=0
t "data is written, which stays dirty" write_dirty
t "the store is slow" xseg peer set memd bandwidth=8M/s
sed 's/^memory = 64M/&\nbandwidth = 8M\/s/' stack.conf >joined.conf
printf '[run]\ntogether = volumed cached\n' >>joined.conf
noted >before.txt
t "peers are replaced, after their data is flushed" env NOTIFY_SOCKET="$manager" xseg reload joined.conf
noted >told.txt
t "meanwhile the manager is told that it takes longer" \
	test "$(grep -c '^EXTEND_TIMEOUT_USEC=60000000$' told.txt)" -ge 3
t "with what is left" grep -q '^STATUS=reload: .* dirty$' told.txt
is "at the end all serve again" "$(grep . told.txt | tail -n 1)" "STATUS=all peers serve"
is "it is told nothing else" "$(grep -vE '^(EXTEND_TIMEOUT_USEC|STATUS)=|^$' told.txt)" ""
t "data is written, which stays dirty" write_dirty
t "all are restarted" env NOTIFY_SOCKET="$manager" xseg peer restart --all
noted >told.txt
t "that takes longer, too" test "$(grep -c '^EXTEND_TIMEOUT_USEC=60000000$' told.txt)" -ge 3
t "with what is left" grep -q '^STATUS=peer restart: .* dirty$' told.txt
t "a reload that only looks is quick" env NOTIFY_SOCKET="$manager" xseg reload --dry-run
sleep 1		# the front looks at its program now and then
noted >told.txt
is "and tells nothing" "$(grep -c EXTEND told.txt)" 0

# ---- a stop ----

t "data is written, which stays dirty" write_dirty
t "the store is slow" xseg peer set memd bandwidth=16M/s
kill -TERM "$front"
wait "$front"
is "SIGTERM ends it in order" "$?" 0
all_noted
t "the manager is told that it stops" grep -qx STOPPING=1 notes
t "and, while data is written, that it takes longer" \
	test "$(grep -c '^EXTEND_TIMEOUT_USEC=60000000$' notes)" -ge 3
t "with what is left" grep -q '^STATUS=stopping: .* dirty$' notes
expect_exit 4 "the segment is gone" xseg info

# ---- a start that fails, and no manager ----

sed -i 's/^\[peer memd\]/&\nkind = filed\ndir = \/proc\/none/; /memory = 64M/d' stack.conf
: >notes
# root may write everywhere, so only the peer finds that nothing can be made there
code=1 why="memd did not start"
[ "$(id -u)" = 0 ] || code=2 why="dir: nothing may be made in /proc: Permission denied"
NOTIFY_SOCKET=$manager expect_err $code "$why" "a start that fails is a failed start" \
	xseg up stack.conf --service
all_noted
is "the manager is not told that all serve" "$(grep -c READY notes)" 0
expect_exit 4 "and nothing is left" xseg info
sed -i '/^kind = filed/d; /^dir = /d; s/^\[peer memd\]/&\nmemory = 64M/' stack.conf
start alone xseg up stack.conf --service
alone=$started
t "it runs without a manager, too" wait_for 60 grep -q "all 3 peers serve" alone.log
# As a command does that replaces the supervisor.
exec 9<"/dev/shm/xseg.$XSEG_SEGMENT"
flock 9
kill_hard "$(xseg --json status | jq .supervisor.pid)"
sleep 4
is "it stays while a command replaces the supervisor, however long that takes" \
	"$(kill -0 "$alone" && echo yes)" yes
t "there is another supervisor" xseg up stack.conf
exec 9<&-
t "somebody else stops it" xseg down
wait "$alone"
is "then it ends well" "$?" 0

# ---- a stop during the start ----

sed 's/^\[peer memd\]/[peer store]\nkind = filed\ndir = objects/; /^memory = 64M/d; s/= memd/= store/' \
	stack.conf >kept.conf
mkdir objects
rm bin/xseg-host bin/volumed
cp "$BUILD/bin/xseg-host" bin		# so that it takes the programs beside it
ln -s "$BUILD/bin/filed" bin
cat >bin/volumed <<-END
	#!/bin/sh
	until grep -q "stopping all peers" "$log"; do sleep 0.1; done
	exec "$BUILD/bin/volumed" "\$@"
END
chmod +x bin/volumed
has_started_volumed()	# PID
{
	takes_signals "$1" && grep -q "started volumed" "$log"
}
begins()		# OPTION: up, until it waits for its volumed
{
	rm -f "$log"
	: >notes
	NOTIFY_SOCKET=$manager start front bin/xseg up kept.conf "$1"
	front=$started
	t "a start waits for its volumed" wait_for 60 has_started_volumed "$front"
}
stopped_in_order()
{
	grep -o 'supervisor: stopping [a-z]*$' "$log" | sed 's/.* //' | xargs
}

t "a stack has dirty data" eval "xseg up kept.conf && xseg volume create v --size 8M &&
	xbench --volume=v --rw=write --bs=64k --size=8M --number_ios=128 --verify=crc32c --verify_state=state"
t "all of its processes are killed" eval 'xseg --json peer list |
	jq ".[].pid | numbers" | xargs kill -KILL "$(xseg --json status | jq .supervisor.pid)"'
begins --service
kill -TERM "$front"
wait "$front"
is "a service that is stopped then ends in order" "$?" 0
is "from the top down" "$(stopped_in_order)" "volumed cached store"
all_noted
is "the manager is told of a stop" "$(grep -cx STOPPING=1 notes)" 1
is "and of nothing that serves" "$(grep -c READY notes)" 0
is "whoever looks at its log, too" \
	"$(grep -cx "xseg: up: asked to stop before all of segment $XSEG_SEGMENT served; stopping all of it" front.log)" 1
is "it says nothing of a start that goes on" "$(grep -c 'goes on' front.log)" 0
expect_exit 4 "the segment is gone" xseg info
t "the stack comes up again" xseg up kept.conf
t "with what was dirty" xbench --volume=v --rw=write --bs=64k --size=8M --number_ios=128 --verify_only \
	--verify_state=state
t "it is stopped" xseg down

rm -f "$log"
expect_exit 0 "Ctrl-C during a start in the foreground ends it in order" \
	interrupting has_started_volumed bin/xseg up kept.conf --foreground
is "from the top down, too" "$(stopped_in_order)" "volumed cached store"
is "it says that the segment stays" "$(grep -c "the segment stays, and 'xseg destroy' removes it" .out)" 1
t "which is removed" xseg destroy

rm -f "$log"
expect_err 3 "^xseg: interrupted: 2 of 3 peers serve, volumed does not yet, the start goes on; .* or stop it by 'xseg down'" \
	"Ctrl-C during a start in the background says that it goes on" \
	interrupting has_started_volumed bin/xseg up kept.conf
t "and down stops it" xseg down
is "from the top down, as well" "$(stopped_in_order)" "volumed cached store"

rm bin/xseg-host
cat >bin/xseg-host <<-END
	#!/bin/sh
	case " \$* " in
	*" --supervise "*) touch "$TMP/asked" && sleep 1 ;;
	esac
	exec "$BUILD/bin/xseg-host" "\$@"
END
chmod +x bin/xseg-host
has_asked()		# PID: it waits for its supervisor
{
	takes_signals "$1" && [ -e asked ]
}
expect_exit 0 "Ctrl-C before there is a supervisor does not end that, and stops it" \
	interrupting has_asked bin/xseg up kept.conf --service
expect_exit 4 "the segment is gone" xseg info
finish
