#!/bin/bash
# supervisor.sh - a group of `together` of which one peer was started elsewhere by hand. A dead peer
# is started again, in the process where it was, and a live one is left alone. Also the group's log,
# which no other user can lead elsewhere.
# tags: san
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need python3 xseg xseg-host volumed cached memd filed jq

runs_again()	# PEER PID: it runs, and in another process than this one
{
	state_is "$1" running && [ "$(peer_field "$1" pid)" != "$2" ]
}

log_has()	# TEXT
{
	grep -q "$1" "$TMP/xseg-$XSEG_SEGMENT.log"
}

processes()	# of the three, how many: "1 2" says that memd is alone and the others share one
{
	xseg --json peer list | jq -r '[.[] | select(.state == "running")] | group_by(.pid) | map(length) | sort | map(tostring) | join(" ")'
}

cat >stack.conf <<-END
	[segment]
	memory = 96M
	[peer memd]
	memory = 16M
	[peer cached]
	downstream = memd
	memory = 16M
	[peer volumed]
	downstream = cached
	[run]
	together = memd cached volumed
END
exec 9>lock
flock 9
t "three peers start in one process" xseg up stack.conf
exec 9>&-
t "a lock that whoever started them had is free when it lets go" flock -n lock true
is "one process is what they share" "$(processes)" 3
t "the middle one is stopped" xseg peer stop cached --force
exec 9>lock
flock 9
t "and started by hand, in a process of its own" xseg peer start cached
exec 9>&-
t "which has not kept that lock either" flock -n lock true
is "the others still share theirs" "$(processes)" "1 2"

# ---- at once: perhaps before the supervisor has seen it ----

alone=$(peer_field cached pid)
group=$(peer_field memd pid)
t "the process of the others is killed" xseg peer kill memd --force
t "memd is started again" wait_for 60 runs_again memd "$group"
t "volumed is started again" wait_for 60 runs_again volumed "$group"
is "the one that lived was left alone" "$(peer_field cached pid)" "$alone"
is "the others share a process again" "$(processes)" "1 2"
t "the supervisor has seen it" wait_for 60 log_has 'apart from the rest'

# ---- and each side by itself, later ----

t "the one by itself is killed" xseg peer kill cached
t "it is started again" wait_for 60 runs_again cached "$alone"
alone=$(peer_field cached pid)
group=$(peer_field memd pid)
t "the process of the others is killed once more" xseg peer kill volumed --force
t "memd is back" wait_for 60 runs_again memd "$group"
t "volumed is back" wait_for 60 runs_again volumed "$group"
is "the one that lived was left alone again" "$(peer_field cached pid)" "$alone"
t "the path works" xseg volume create v --size 1M

# ---- a new supervisor ----

kill_hard "$(xseg --json status | jq .supervisor.pid)"
alone=$(peer_field cached pid)
t "a new supervisor watches them" xseg up stack.conf
t "one of its strangers is killed" xseg peer kill cached
t "and started again" wait_for 60 runs_again cached "$alone"
is "the others still share a process" "$(processes)" "1 2"
kill_hard "$(xseg --json status | jq .supervisor.pid)"
echo "[nothing]" >bad.conf
expect_err 2 "the stack file: line 1: unknown section" "one with a wrong stack file does not begin" \
	xseg-host --supervise --stack=bad.conf
t "and the segment keeps the right one" xseg peer stop volumed
t "of which a peer is started" xseg peer start volumed
t "and stopped once more" xseg peer stop volumed
alone=$(peer_field cached pid)
{ cat stack.conf && printf '[peer filed]\ndir = /dev/null/objects\n'; } >more.conf
expect_err 2 "line 13: dir: .*Not a directory" "a new supervisor with one peer too many fails" xseg up more.conf
is "what ran before runs on" "$(peer_field memd state) $(peer_field cached pid)" "running $alone"
is "what it began has stopped" "$(peer_field volumed state)" stopped
t "everything stops in order" xseg down

# ---- a process that could not begin for a while ----

mkdir disk
cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
cat >disk.conf <<-END
	[segment]
	memory = 96M
	[peer filed]
	dir = $TMP/disk/objects
	[peer cached]
	downstream = filed
	memory = 16M
	cpus = $cpu
	[peer volumed]
	downstream = cached
	threads = 2
	[run]
	together = filed cached volumed
END

group_serves()
{
	[ "$(processes)" = 3 ]
}

t "a group with a directory comes up" xseg up disk.conf
is "each of it has the threads that it was given" \
	"$(peer_field filed ports) $(peer_field cached ports) $(peer_field volumed ports)" "1 1 2"
t "and all the processors that one of them was" \
	grep -qE "^Cpus_allowed_list:[[:space:]]*$cpu\$" "/proc/$(peer_field filed pid)"/task/*/status
t "its disk is taken away" eval 'mv disk away && mkdir disk'
t "its process is killed" xseg peer kill volumed --force
t "it cannot begin" wait_for 60 log_has "directory $TMP/disk/objects has none of the files"
t "and is not given up by who waits for it" wait_for 60 state_is filed dead
t "the disk is there again, in whose place nothing was made" eval 'rmdir disk && mv away disk'
t "and all of the group serve again" wait_for 60 group_serves
t "the path works again" xseg volume create v --size 1M
t "one of them is stopped" xseg peer stop volumed
t "and the process of the others killed" xseg peer kill cached --force
t "they are back" wait_for 60 state_is cached running
is "without the one that was stopped" "$(peer_field volumed state)" stopped
t "everything stops" xseg down

# ---- it leaves the segment before its process ends ----

# As its lock is at the end: held, while nobody is listed.
hold_lock()
{
	exec python3 -c '
import fcntl, struct, sys, time
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi0q", fcntl.F_WRLCK, 0, 1, 1, 0))	# F_OFD_SETLK
print("held", flush=True)
time.sleep(2)' "/dev/shm/xseg.$XSEG_SEGMENT"
}

t "a segment is made" xseg create --memory 8M
start holder hold_lock
t "a supervisor is about to end" wait_for 60 grep -q held "$TMP/holder.log"
t "down waits for that" xseg down

# ---- its log is a file of its own ----

log=$TMP/xseg-$XSEG_SEGMENT.log

expect_log()	# REGEX: why it is not written to
{
	cp "$log" before 2>/dev/null
	expect_err 1 "cannot write the log $log: $1; remove it, or set XDG_STATE_HOME" "up: $1" \
		xseg up stack.conf
	cmp -s before "$log" || not_ok "nothing was written to it"
	expect_exit 4 "up: $1: no segment is left" xseg info
	rm "$log"
}

mv "$log" whole.log
ln -s whole.log "$log"
expect_log "it is a symbolic link"
ln whole.log "$log"
expect_log "it has more than one name"
mkfifo "$log"
expect_err 1 "cannot write the log $log: " "up: a fifo without a reader is not waited for" \
	xseg up stack.conf
rm "$log"
if [ "$(id -u)" = 0 ]; then
	touch "$log"
	chown nobody "$log"
	expect_log "it belongs to another user"
else
	skip "up: it belongs to another user" "only root can give a file away"
fi
t "one that is not there is made" xseg up stack.conf
is "for its user alone" "$(stat -c %a "$log")" 600
is "status has it from who writes it" "$(XDG_STATE_HOME='' xseg --json status | jq -r .supervisor.log)" \
	"$(realpath "$log")"
t "volumed is stopped" xseg peer stop volumed
rm "$log"
ln -s whole.log "$log"
expect_err 1 "volumed did not start: cannot write the log $log: it is a symbolic link" \
	"peer start: it is a symbolic link" xseg peer start volumed
rm "$log"
t "peer start makes one, too" xseg peer start volumed
t "everything stops once more" xseg down

# ---- nobody waits for it ----

all_run()
{
	xseg --json peer list | jq -e 'length == 3 and (map(.state == "running") | all)'
}

expect_err 3 "timed out: .*the start goes on" "up gives up after its time" \
	xseg --timeout 1ms up stack.conf
t "but who was begun starts all" wait_for 60 all_run
t "everything stops" xseg down

# ---- two that begin at once ----

cat >other.conf <<-END
	[segment]
	memory = 96M
	[peer other]
	kind = memd
	memory = 16M
END
mkdir slow
cp "$BUILD/bin/xseg" slow
cat >slow/xseg-host <<-END
	#!/bin/sh
	[ "\$1" = --check ] || touch "$TMP/slow/begun"
	until [ "\$1" = --check ] || [ -e "$TMP/slow/go" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
	exec "$BUILD/bin/xseg-host" "\$@"
END
chmod +x slow/xseg-host
t "a segment is made" xseg create --memory 96M
start slow timeout 60 slow/xseg up other.conf
slow=$started
t "one begins, and is slow" wait_for 60 test -e slow/begun
t "the second one is quicker" xseg up stack.conf
touch slow/go
wait "$slow"
is "the first one is refused, as the second one would be" "$? $(grep -c 'a stack that runs' "$TMP/slow.log")" \
	"4 1"
t "and what runs is left alone" all_run
t "its file is the segment's" xseg peer stop volumed
t "of which peers are started" xseg peer start volumed
t "everything stops" xseg down

# ---- one that is not to be started again ----

cat >left.conf <<-END
	[segment]
	memory = 32M
	[peer memd]
	memory = 1M
	[peer volumed]
	downstream = memd
	restart = no
END
t "a stack is up" xseg up left.conf
t "one that is not started again is killed" xseg peer kill volumed
expect_err 4 "volumed: it is dead; start it with 'xseg .*peer start volumed'" \
	"nobody waits for it while the supervisor lives" timeout 20 xseg volume list
t "it is started by hand" xseg peer start volumed
t "and serves" xseg volume list
t "it is killed once more" xseg peer kill volumed
start other volumed --name other
t "another one is begun, which the stack does not have" wait_for 60 state_is other running
kill -KILL "$started"
wait "$started" 2>/dev/null
expect_err 4 "other: it is dead; start it" "nobody waits for that either" \
	timeout 20 xseg volume list --volumed other
kill_hard "$(xseg --json status | jq .supervisor.pid)"
t "another one is begun" xseg up left.conf
t "all serve" xseg volume list
t "everything stops" xseg down

mkdir bin
cp "$BUILD/bin/xseg" "$BUILD/bin/xseg-host" bin
cat >bin/memd <<-'END'
	#!/bin/sh
	kill -SEGV $$
END
chmod +x bin/memd
cat >once.conf <<-END
	[segment]
	memory = 32M
	[peer memd]
	restart = no
	memory = 8M
	[peer volumed]
	downstream = memd
END
t "a segment is made, which stays" xseg create --memory 32M
expect_err 1 "up: supervisor: .* memd was killed by signal 11; it is not started again" \
	"up does not wait for one that has crashed" timeout 60 bin/xseg up once.conf
sed '/restart/d' once.conf >again.conf
expect_err 1 "up: memd did not start: its process was killed by signal 11, the last of 5 times \(log: " \
	"nor for ever for one that crashes whenever it is started" timeout 60 bin/xseg up again.conf
expect_json '.supervisor.alive == false' "which is not tried any more" xseg --json status

again_after()	# how long the supervisor has waited each time, in ms
{
	sed -n 's/.*starting it again in \([0-9]*\) ms$/\1/p' "$TMP/xseg-$XSEG_SEGMENT.log" | xargs
}

is "each time later than before" "$(again_after | cut -d ' ' -f 1-4)" "100 200 400 800"
sed -i 's/SEGV/KILL/' bin/memd
expect_err 3 "memd does not yet \(killed by signal 9 [0-9]+ times(, perhaps by the kernel because memory ran out)?; see" \
	"up waits for one that the kernel may kill, and says so" \
	timeout 60 bin/xseg --quiet --timeout 10s up again.conf
t "its supervisor is stopped" xseg down
t "a segment is made again" xseg create --memory 32M
cp "$BUILD/bin/volumed" bin
cat >bin/memd <<-END
	#!/bin/sh
	echo >>tries
	[ "\$(wc -l <tries)" -gt 2 ] || kill -SEGV \$\$
	exec "$BUILD/bin/memd" "\$@"
END
rm "$TMP/xseg-$XSEG_SEGMENT.log"
t "one that crashes twice comes up" bin/xseg up again.conf
sleep 1.2
t "it is killed" xseg peer kill memd
t "and started again" wait_for 60 state_is memd running
is "at once, as it has lived for a while" "$(again_after)" "100 200 100"

# ---- what it has not seen ----

who=$(xseg --json status | jq .supervisor.pid)
t "volumed is stopped" xseg peer stop volumed
t "the supervisor knows that" wait_for 60 log_has 'supervisor: volumed stopped'
t "it stands still" freeze "$who"
t "volumed is started by hand" xseg peer start volumed
t "and killed" xseg peer kill volumed
kill -CONT "$who"
t "it is started again, though nobody has seen it alive" wait_for 60 state_is volumed running
t "everything stops" bin/xseg down

# ---- a group that crashes before all serve ----

cat >crash.conf <<-END
	[segment]
	memory = 32M
	[peer memd]
	memory = 8M
	[peer other]
	kind = memd
	memory = 1M
	[peer volumed]
	downstream = memd
	[run]
	together = memd other
END
printf '#!/bin/sh\nexec sleep 600\n' >bin/volumed
start up timeout 60 bin/xseg up crash.conf
up=$started
while kill -0 "$up" 2>/dev/null; do
	pid=$(peer_field memd pid 2>/dev/null)
	[ "${pid:-null}" = null ] || kill -ABRT "$pid"
	sleep 0.05
done
wait "$up"
is "up does not wait for a group for ever either" "$? $(grep -o "memd did not start: its process was killed by signal 6" "$TMP/up.log")" \
	"1 memd did not start: its process was killed by signal 6"
start up timeout 60 bin/xseg up crash.conf
up=$started
t "all but one of them serve" wait_for 60 state_is other running
kill -KILL "$(xseg --json status | jq .supervisor.pid)"
wait "$up"
is "nor when its supervisor dies" "$? $(grep -o "up: the supervisor went away" "$TMP/up.log")" \
	"1 up: the supervisor went away"
cp "$BUILD/bin/volumed" bin
printf '#!/bin/sh\nexit 2\n' >bin/memd
t "a segment is made once more" xseg create --memory 32M
expect_err 1 "up: supervisor: .* memd cannot be started with these options; correct the stack file" \
	"one that does not know its options is not tried again" bin/xseg up again.conf

# ---- a machine that is slow ----

cat >bin/xseg-host <<-END
	#!/bin/sh
	touch "$TMP/asked"
	sleep 1
	until ! [ -e "$TMP/held" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
	exec "$BUILD/bin/xseg-host" "\$@"
END
chmod +x bin/xseg-host
sed 's/restart/restrat/' once.conf >bad.conf
expect_err 2 "line 4: .*'restrat'" "what is wrong with a file is told after its time, too" \
	bin/xseg --timeout 300ms up bad.conf
rm -f asked
touch held
has_asked()		# PID: it takes signals, and waits for its xseg-host
{
	takes_signals "$1" && [ -e asked ]
}
expect_err 3 "interrupted: up: nothing was begun" "Ctrl-C is not taken for a wrong file" \
	interrupting has_asked bin/xseg up once.conf
rm held

# ---- two that start the same peer ----

start first xseg peer start volumed
first=$started
t "one starts it, and it waits for memd" wait_for 60 state_is volumed opening
expect_err 3 "volumed is not serving yet, it goes on starting" "another one waits as long as he likes" \
	timeout 20 xseg --timeout 300ms peer start volumed
start second xseg peer start volumed
second=$started
t "and one more waits for it" wait_for 60 is_waiting "$second"
t "it is killed before it serves" xseg peer kill volumed
wait "$first"
is "who started it fails" "$?" 1
wait "$second"
is "who has waited for that, too" "$? $(cut -d ';' -f 1 "$TMP/second.log")" \
	"1 xseg: volumed did not start: the process that was starting it has ended"
t "the segment is removed" xseg destroy
finish
