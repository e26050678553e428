#!/bin/bash
# down.sh - peers die while their stack is being stopped. Only the peers that are needed to lose
# nothing are started again, `down` comes to an end, and acknowledged data is in the store. A stop
# that cannot flush is taken back, and so is a stop that another command cancels: all serves again.
#
# Caches flush while all serves, and nothing is stopped before. So in most of these tests another
# command has told cached to stop just before, as when a machine shuts down: then all stops at once.
#
# SIGSTOP places an event in the middle of a stop. A frozen peer does not stop, and neither do the
# peers above it, which have sent it something.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

log=$TMP/xseg-$XSEG_SEGMENT.log

stack()		# [TOGETHER]
{
	cat >stack.conf <<-END
		[segment]
		name = $XSEG_SEGMENT
		memory = 128M
		[peer filed]
		dir = $TMP/store/objects
		[peer cached]
		downstream = filed
		memory = 32M
		dirty_high = 100
		dirty_low = 90
		dirty_age = 1h
		[peer volumed]
		downstream = cached
		${1:+[run]
		together = $1}
	END
}

supervisor()
{
	xseg --json status | jq .supervisor.pid
}

said()		# TEXT
{
	grep -q "$1" "$log"
}

has_started()	# PEER TIMES: the supervisor has
{
	[ "$(grep -c "started $1 (" "$log")" -ge "$2" ]
}

is_watched()	# PEER TIMES: the supervisor has found it running so often
{
	[ "$(grep -c "$1 runs already" "$log")" -ge "$2" ]
}

times_started()	# PEER
{
	grep -c "$1: serving" "$log"
}

# All of the volume is written, and 8 MiB of it are dirty.
fill()
{
	xbench --volume=vol --rw=write --bs=64k --iodepth=8 --size=8M --number_ios=128 \
		--verify=crc32c --verify_state="$TMP/state" --randseed=$RANDOM &&
		[ "$(field_of dirty_bytes cache status)" -ge 8388608 ]
}

all_dead()
{
	xseg --json peer list | jq -e 'map(.state == "dead") | all'
}

kill_all()
{
	xseg --json status | jq '.supervisor.pid, .peers[].pid' | xargs kill -KILL
	wait_for 60 all_dead
}

runs_again()	# PEER GENERATION
{
	state_is "$1" running && [ "$(peer_field "$1" generation)" -gt "$2" ]
}

nothing_is_lost()
{
	[ -z "$unseen" ] || t "$unseen: nothing is lost" xbench --volume=vol --rw=read --bs=64k \
		--iodepth=8 --size=8M --verify=crc32c --verify_only --verify_state="$TMP/state"
	unseen=
}

# begin WHAT STACK [XSEG]: a stack comes up, with a log of its own
begin()
{
	what=$1
	rm -f "$log"
	t "$what: the stack comes up" "${3:-xseg}" up "$2"
	boss=$(supervisor)	# now: while a peer stands still, status waits two seconds for it
	nothing_is_lost
}

up()		# WHAT: the stack runs, and has dirty data
{
	begin "$1" stack.conf
	t "$what: data is written and dirty" fill
}

freeze_peer()	# PEER
{
	frozen=$(peer_field "$1" pid)
	freeze "$frozen"
}

has_taken_signals()	# PID
{
	grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"
}

# What cached has cannot get to the store, and it is told to stop, by nobody of ours.
freeze_store()
{
	local cached
	cached=$(peer_field cached pid)
	freeze_peer filed
	kill -TERM "$cached"
	t "$what: cached is stopping" wait_for 60 has_taken_signals "$cached"
}

thaw()
{
	kill -CONT "$frozen"
}

begin_down()	# LINE: begins, and waits until the log has that
{
	start down timeout -k 1 60 xseg down
	down=$started
	t "$what: the stop has got so far" wait_for 60 said "$1"
}

down_waits()	# what begin_down began does; its process is timeout(1)
{
	is_waiting "$(pgrep -P "$down" -x xseg)"
}

ends_with()	# CODE
{
	wait "$down"
	is "$what: down ends so" "$?" "$1" || sed 's/^/    /' down.log "$log"
}

# Whether it has, from the store alone, the next stack says.
unseen=
all_is_there()
{
	t "$what: the segment is gone" test ! -e "/dev/shm/xseg.$XSEG_SEGMENT"
	unseen=$what
}

mkdir store
stack
t "the stack comes up" xseg up stack.conf
expect_json '.supervisor | .alive and (.stopping | not)' "and nobody stops it" xseg --json status
t "a volume is made" xseg volume create vol --size 8M
t "and the stack stops" xseg down

# ---- each of them ----

up "cached is killed"
freeze_store
begin_down 'stopping cached'
start status xseg status
expect_json '.supervisor | .alive and .stopping' "$what: and so does status" xseg --json status
wait "$started"
t "$what: in words, too" grep -q '^supervisor .* is stopping the stack' status.log
kill_hard "$(peer_field cached pid)"
t "$what: it is started again" wait_for 60 said 'recovered .* of dirty data'
kill_hard "$(peer_field cached pid)"
t "$what: and once more" wait_for 60 has_started cached 3
thaw
ends_with 0
is "$what: volumed was not started again" "$(times_started volumed)" 1
all_is_there

# It leaves what is dirty in the segment, and is stopped.
interrupt_until_left()
{
	kill -INT "$cached"
	said 'the process of cached ended with exit code 3'
}

up "cached is interrupted"
freeze_store
cached=$(peer_field cached pid)
begin_down 'stopping cached'
t "$what: it leaves" wait_for 60 interrupt_until_left
t "$what: it is started again" wait_for 60 said 'recovered .* of dirty data'
thaw
ends_with 0
is "$what: it alone was" "$(times_started filed) $(times_started cached) $(times_started volumed)" "1 2 1"
all_is_there

up "filed is killed"
freeze_store
begin_down 'stopping cached'
sleep 0.2
is "$what: cached is asked to stop once" "$(grep -c 'stopping cached' "$log")" 1
kill_hard "$frozen"
ends_with 0
is "$what: it was started again for cached" "$(times_started filed)" 2
all_is_there

up "filed is killed when nothing is dirty"
t "$what: all is flushed" xseg volume flush vol
freeze_store
begin_down 'stopping cached'
kill_hard "$frozen"
ends_with 0
is "$what: it was started again, to make it stable" "$(times_started filed)" 2
is "$what: the others were not" "$(times_started cached) $(times_started volumed)" "1 1"
all_is_there

up "filed is killed when there is no cache above it"
t "$what: the cache leaves the path" xseg unplug cached
freeze_peer filed
begin_down 'stopping filed'
kill_hard "$frozen"
ends_with 0
is "$what: it was started again, to sync" "$(times_started filed)" 2
is "$what: the others were not" "$(times_started cached) $(times_started volumed)" "1 1"
all_is_there

up "volumed is killed"
freeze_peer volumed
begin_down 'stopping volumed'
kill_hard "$frozen"
ends_with 0
is "$what: nothing was started again" "$(grep -c ': serving' "$log")" 3
t "$what: the log says so" said 'volumed is dead and had nothing to lose'
all_is_there

up "all are killed"
freeze_store
begin_down 'stopping cached'
kill_hard "$(peer_field cached pid)" "$frozen"
ends_with 0
is "$what: the two that were needed were started again" \
	"$(times_started filed) $(times_started cached) $(times_started volumed)" "2 2 1"
all_is_there

up "the supervisor is killed"
freeze_store
begin_down 'stopping cached'
kill_hard "$boss"
thaw
ends_with 0
all_is_there

up "two at once"
freeze_peer volumed
begin_down 'stopping volumed'
first=$down
begin_down 'stopping volumed'
t "$what: the other one waits, too" wait_for 60 down_waits
thaw
ends_with 0
wait "$first"
is "$what: and the other one, too" "$?" 0
all_is_there

up "asked twice, and left twice"
freeze_store
begin_down 'stopping cached'
# not timeout(1): until it has run once more since it forked, a signal ends it alone
pkill -INT -x -P "$down" xseg
ends_with 3
expect_err 3 "still stopping" "$what: the second one gives up, too" xseg --timeout 500ms down
t "$what: the supervisor goes on" kill -0 "$boss"
thaw
t "$what: all stop" wait_for 60 said 'all peers have stopped'
t "$what: the next one finds that" xseg down
all_is_there

up "interrupted twice"
freeze_store
kill -INT "$boss"
t "$what: it stops all" wait_for 60 said 'stopping cached'
kill -INT "$boss"
t "$what: and leaves" wait_for 60 said 'left; peers that have not stopped run on'
t "$what: it is gone" wait_for 60 has_ended "$boss"
is "$what: what has not stopped runs on" "$(peer_field filed state)" running
thaw
t "$what: the next one stops it" xseg down
all_is_there

# ---- a process that ends badly after its peer has stopped ----

mkdir bin
cp "$BUILD"/bin/{xseg,xseg-host,cached,filed} bin
cat >bin/volumed <<END
#!/bin/bash
"$BUILD/bin/volumed" "\$@"
exit 66
END
chmod +x bin/volumed
begin "volumed ends with 66" stack.conf bin/xseg
t "$what: data is written and dirty" fill
freeze_store
begin_down 'ended with exit code 66'
t "$what: it is cached's turn" wait_for 60 said 'stopping cached'
thaw
ends_with 0
is "$what: it was not started again" "$(times_started volumed)" 1
all_is_there

# ---- all of them are told to end at once, as at a shutdown ----

# A supervisor that leaves what it could not stop has all_stopped say so.
all_stopped()
{
	xseg --json status | jq -e '(.supervisor.alive | not) and (.peers | map(.state == "stopped") | all)'
}

up "all processes get SIGTERM, and SIGHUP"
pids=$(xseg --json status | jq '.peers[].pid, .supervisor.pid')
# shellcheck disable=SC2086
{ kill -TERM $pids; kill -HUP $pids; } 2>/dev/null
t "$what: all stop" wait_for 60 all_stopped
t "$what: with nothing left in the segment" xseg destroy
all_is_there

up "the store gets SIGTERM before the others"
kill -TERM "$(peer_field filed pid)"
t "$what: it stops" wait_for 60 said 'supervisor: filed stopped'
# shellcheck disable=SC2046
kill -TERM $(xseg --json status | jq '.supervisor.pid, (.peers[] | select(.pid) | .pid)')
t "$what: all stop" wait_for 60 all_stopped
is "$what: what is not needed was not started again" "$(times_started volumed)" 1
t "$what: with nothing left in the segment" xseg destroy
all_is_there

# ---- what is needed does not come back ----

# While down waits for it, which says why it cannot go on.
filed_dies()	# WHY
{
	kill_hard "$frozen"
	ends_with 1
	t "$what: down says why" grep -q "$1" down.log
}

start_filed()
{
	t "$what: it is started by hand" xseg peer start filed
	t "$what: and all stops" xseg down
}

# Dirty data, and a filed that has died and cannot be started, for its store is no folder of its own
# any more.
store_breaks()	# FREEZE; LINE: of the log, when that happens; WHY: what down says
{
	$1
	begin_down "$2"
	mv store elsewhere && mkdir store && touch store/objects
	filed_dies "$3"
}

needs_filed='cached cannot stop: it needs filed, which is dead'

store_is_mended()
{
	rm -r store && mv elsewhere store
	start_filed
}

up "filed cannot be started"
store_breaks freeze_store 'stopping cached' "$needs_filed"
is "$what: it was tried three times" "$(grep -c 'started filed' "$log")" 4
t "$what: the supervisor leaves what stands on it" \
	wait_for 60 said 'cached cannot stop without filed, which is not started again; the supervisor leaves'
store_is_mended
all_is_there

up "filed cannot be started, to sync"
t "$what: the cache leaves the path" xseg unplug cached
store_breaks 'freeze_peer filed' 'stopping filed' 'filed: it died while it was stopping'
is "$what: it was tried three times" "$(grep -c 'started filed' "$log")" 4
t "$what: the log says that it holds something" \
	said 'filed is dead and could not be started to stop in order; its data stays'
store_is_mended
all_is_there

what="filed cannot be started, and up waits in the foreground"
rm -f "$log"
start front xseg up stack.conf --foreground
front=$started
t "$what: all serve" wait_for 60 grep -q 'all 3 peers serve' front.log
nothing_is_lost
t "$what: data is written and dirty" fill
freeze_store
kill -INT "$front"
t "$what: Ctrl-C begins the stop" wait_for 60 said 'stopping cached'
mv store elsewhere && mkdir store && touch store/objects
kill -KILL "$frozen"
wait "$front"
is "$what: it is no good end when not all has stopped" \
	"$? $(tail -n 1 front.log | cut -d ';' -f 1)" "1 xseg: up: the supervisor went away"
store_is_mended
all_is_there

# The file says nothing of what the cache stands on, or of what stands on it: routes do.
{
	sed '/^\[peer cached/,$d' stack.conf
	printf '[peer volumed]\ndownstream = filed\n'
	sed '1,/^downstream/{/^\[peer cached/!d}; /^\[peer volumed/,$d' stack.conf
} >plugged.conf
begin "filed cannot be started, and cached was plugged" plugged.conf
t "$what: the cache is plugged" xseg plug cached --above filed --below volumed
t "$what: data is written and dirty" fill
store_breaks freeze_store 'stopping cached' "$needs_filed"
is "$what: who stands on it stops first" \
	"$(sed -n 's/.*supervisor: stopping \([a-z]*\)$/\1/p' "$log" | head -n 2 | xargs)" "volumed cached"
store_is_mended
all_is_there

up "filed is stopped before"
t "$what: it is" xseg peer stop filed --force
expect_err 4 "cached has 8.0M .* needs filed for that, which is stopped; .*'xseg peer start filed'" \
	"$what: down says at once what it needs" xseg down
is "$what: and has stopped nothing" "$(peer_field volumed state) $(peer_field cached state)" \
	"running running"
t "$what: it is started" xseg peer start filed
t "$what: and all stops" xseg down
all_is_there

up "the cache stands on one by hand"
hand()
{
	start hand cached --name hand --downstream filed --memory 8M
	t "$what: that serves" wait_for 60 state_is hand running
}
hand
t "$what: it is plugged" xseg plug hand --above filed --below cached
kill -KILL "$started"
t "$what: it is dead" wait_for 60 state_is hand dead
expect_err 4 "needs hand for that, which is dead; it is not in the stack; start it as it was started before" \
	"$what: down says that peer start does not start it" xseg down
hand
t "$what: all stops when it is there" xseg down
all_is_there

up "the cache stands on one by hand, and no supervisor"
hand
t "$what: it is plugged" xseg plug hand --above filed --below cached
kill_hard "$(supervisor)"
t "$what: all stops, from the top down" xseg down
all_is_there

# ---- a cache that the stack does not have ----

sed '/^\[peer cached/,/^dirty_age/d; s/^downstream = cached/downstream = filed/' stack.conf >less.conf

up "all are killed, and up with less"
t "$what: all are dead" kill_all
expect_err 4 "less.conf has no cached, which is dead .* has 8.0M .* add it" \
	"$what: a file without what has dirty data is refused" xseg up less.conf
t "$what: and nothing was started" all_dead
t "$what: the right file is taken" xseg up stack.conf
t "$what: all is flushed" xseg volume flush vol
t "$what: all are dead" kill_all
expect_err 4 "less.conf has no cached, which is dead .* volumed still sends to it; add it" \
	"$what: nor is one without what is on the path" xseg up less.conf
sed '/^\[peer cached/,$d' stack.conf >least.conf
t "$what: one without all that is above the store is taken" xseg up least.conf
kill_hard "$(supervisor)"
t "$what: the right file is taken again" xseg up stack.conf
t "$what: it stops" xseg down
all_is_there

sed 's/^dir = .*/&\nrestart = no/' less.conf >once.conf
begin "filed is killed, and is not to be started again" once.conf
freeze_peer filed
begin_down 'stopping filed'
filed_dies 'filed: it died while it was stopping'
start_filed
all_is_there

begin "a cache by hand" less.conf
start cached cached --downstream filed --memory 32M --dirty_high 100 --dirty_age 1h
by_hand=$started
t "$what: it serves" wait_for 60 state_is cached running
t "$what: it is plugged" xseg plug cached --above filed --below volumed
t "$what: data is written and dirty" fill
kill_hard "$(supervisor)"
t "$what: as it runs, a file without it is taken" xseg up less.conf
kill_hard "$by_hand"
t "$what: it is dead" wait_for 60 state_is cached dead
expect_err 3 "unplug cached: it is dead; it is not in the stack; start it as it was started before, 'xseg unplug" \
	"$what: of which unplug does not say that peer start would start it" \
	xseg --timeout 300ms unplug cached
t "$what: which is taken back" xseg unplug cached --cancel
generation=$(peer_field volumed generation)
t "$what: volumed is begun anew" xseg peer kill volumed
t "$what: and wants the catalogue from it" wait_for 60 runs_again volumed "$generation"
expect_err 1 "volumed cannot stop: it needs cached, which is dead and not in the stack" \
	"$what: what stands on it is not waited for" xseg peer stop volumed
expect_err 1 "volumed cannot stop: it needs cached" "$what: nor by down" xseg --quiet down
t "$what: a file that has it is taken" xseg up stack.conf
t "$what: and all stops" xseg down
all_is_there

# ---- without a supervisor ----

up "no supervisor, cached is killed"
kill_hard "$(supervisor)"
freeze_store
begin_down 'volumed: stopped'
kill_hard "$(peer_field cached pid)"
ends_with 4
t "$what: down says what would be lost" grep -q 'cached is dead and has 8.0M' down.log
thaw
t "$what: a new supervisor starts it" xseg up stack.conf
t "$what: and all stops" xseg down
all_is_there

up "no supervisor, filed is killed"
kill_hard "$(supervisor)"
freeze_store
begin_down 'volumed: stopped'
filed_dies "$needs_filed"
start_filed
all_is_there

# What it wrote since its last sync may not be on the disk.
up "no supervisor, filed is killed when it is its turn"
kill_hard "$(supervisor)"
t "$what: the others have stopped" xseg peer stop volumed
t "$what: and nothing is dirty" xseg peer stop cached
freeze_peer filed
start down timeout -k 1 60 xseg down
down=$started
t "$what: it is asked to stop" wait_for 60 grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$frozen/status"
filed_dies 'filed: it died while it was stopping'
start_filed
all_is_there

up "no supervisor, volumed is killed"
kill_hard "$(supervisor)"
freeze_peer volumed
start down timeout -k 1 60 xseg down
down=$started
t "$what: it is asked to stop" wait_for 60 grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$frozen/status"
kill_hard "$frozen"
ends_with 0
all_is_there

up "no supervisor, volumed is killed when it alone is to stop"
kill_hard "$(supervisor)"
freeze_peer volumed
start stop timeout -k 1 60 xseg peer stop volumed
t "$what: it is asked to stop" wait_for 60 grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$frozen/status"
kill -KILL "$frozen"
wait "$started"
is "$what: that is no good end" "$? $(tail -n 1 stop.log | cut -d ';' -f 1)" \
	"1 xseg: volumed: it died while it was stopping"
t "$what: the others stop" xseg down
all_is_there

up "no supervisor, and up again meanwhile"
kill_hard "$(supervisor)"
freeze_store
expect_err 3 "still stopping" "$what: down gives up after its time" xseg --timeout 500ms down
expect_err 4 "cached: it is stopping" "$what: what is stopping cannot be started yet" \
	xseg peer start cached
start up timeout -k 1 30 xseg up stack.conf
up=$started
t "$what: somebody begins to look after all" wait_for 60 said 'cached runs already'
start down timeout -k 1 30 xseg down
wait_for 60 said 'stopping all peers' || not_ok "$what: down asks him"
thaw
wait "$started"
is "$what: down ends with 0 in the end" "$?" 0
wait "$up"
is "$what: up says who ended it" "$? $(tail -n 1 up.log)" \
	"1 xseg: up: the stack was stopped before all of it served, by 'xseg down' or a signal to its supervisor; the log is $log"
all_is_there

up "no supervisor, and up again in the end"
kill_hard "$(supervisor)"
freeze_store
expect_err 3 "still stopping" "$what: down gives up after its time" xseg --timeout 500ms down
start up timeout -k 1 30 xseg up stack.conf
t "$what: somebody begins to look after all" wait_for 60 said 'cached runs already'
thaw
wait "$started"
is "$what: up ends with 0" "$?" 0
t "$what: what was stopping did, and came back" \
	said 'cached stopped, as it was asked to before; starting it'
is "$what: all serve" "$(xseg --json peer list | jq -c 'map(.state)')" \
	'["running","running","running"]'
for nr in 2 3; do
	t "$what: cached is stopped by hand" xseg peer stop cached --force
	sleep 0.5
	is "$what: and stays so, as the supervisor has begun before" "$(peer_field cached state)" stopped
	t "$what: it is started by hand" xseg peer start cached
	t "$what: and watched" wait_for 60 is_watched cached $nr
done
t "$what: it stops" xseg down
all_is_there

# ---- one process ----

stack "filed cached volumed"
up "one process is killed"
t "$what: volumed is stopped before" xseg peer stop volumed
freeze_peer filed
start down timeout -k 1 60 xseg down
down=$started
t "$what: the stop has begun" wait_for 60 said 'stopping all peers'
kill_hard "$frozen"
ends_with 0
is "$what: without volumed it was started again" \
	"$(times_started filed) $(times_started cached) $(times_started volumed)" "2 2 1"
all_is_there
stack

# ---- a stop is taken back ----

is_stopping()
{
	xseg --json status | jq -e .supervisor.stopping
}

# The caches flush, and cannot.
up "the stop is taken back while all flush"
freeze_peer filed
begin_down 'caches flush first'
t "$what: status says that it stops" is_stopping
expect_err 3 "still stopping" "$what: another one gives up after its time" \
	xseg --timeout 500ms down
t "$what: nothing was stopped" all_serve
expect_json '.state == "running"' "$what: it is taken back" xseg --json down --cancel
ends_with 1
t "$what: down says so" grep -q "was taken back by 'xseg down --cancel' or 'xseg up'" down.log
expect_err 4 "no supervisor stops the stack" "$what: nothing is left to take back" \
	xseg down --cancel
expect_err 2 "give one" "$what: it is no force" xseg down --cancel --force
thaw
t "$what: no process was begun anew" \
	test "$(times_started filed) $(times_started cached) $(times_started volumed)" = "1 1 1"
t "$what: it stops" xseg down
all_is_there

up "the stop is taken back when most has stopped"
freeze_store
begin_down 'stopping cached'
start up timeout -k 1 60 xseg up stack.conf
up=$started
t "$what: up takes it back" wait_for 60 said 'asked to take the stop back'
thaw
wait "$up"
is "$what: up ends with 0" "$? $(notes up.log)" \
	"0 the stop of segment $XSEG_SEGMENT is taken back"
ends_with 1
t "$what: all serve" all_serve
is "$what: what had stopped was started again, and what would not" \
	"$(times_started filed) $(times_started cached) $(times_started volumed)" "1 2 2"
t "$what: nothing is lost so far" xbench --volume=vol --rw=read --bs=64k --iodepth=8 --size=8M \
	--verify=crc32c --verify_only --verify_state="$TMP/state"
t "$what: it stops" xseg down
all_is_there

sed 's/^downstream = cached/downstream = filed/' stack.conf >beside.conf
begin "one that was stopped before" beside.conf
t "$what: the cache is stopped" xseg peer stop cached
freeze_peer volumed
begin_down 'stopping volumed'
t "$what: the stop is taken back" xseg down --cancel
ends_with 1
is "$what: it stays so, and the other was killed" \
	"$(peer_field cached state) $(times_started cached) $(times_started volumed)" "stopped 1 2"
t "$what: it stops" xseg down
all_is_there
begin "one more time" stack.conf
t "$what: it stops" xseg down

# ---- a store that is full ----

full_stack()		# [TOGETHER]
{
	cat >full.conf <<-END
		[segment]
		name = $XSEG_SEGMENT
		memory = 64M
		[peer memd]
		memory = 8M
		[peer cached]
		downstream = memd
		memory = 4M
		dirty_age = 100s
		[peer volumed]
		downstream = cached
		${1:+[run]
		together = $1}
	END
}

full_up()		# WHAT: the store has no room for what is dirty
{
	what=$1
	rm -f "$log"
	t "$what: the stack comes up" xseg up full.conf
	t "$what: a volume is made" xseg volume create old --size 8M
	t "$what: and another" xseg volume create new --size 8M
	t "$what: the store is nearly full" \
		xbench --volume=old --rw=write --bs=64k --size=7M --number_ios=112
	t "$what: that is in the store" xseg volume flush old
	t "$what: more is dirty than has room" \
		xbench --volume=new --rw=write --bs=64k --size=2M --number_ios=32
}

no_room="cached cannot flush: the store has no space left \(ENOSPC\), and .* are dirty; the stack serves on: make room by 'xseg volume remove VOL'"

room_is_made()
{
	t "$what: all serve" all_serve
	t "$what: room is made" xseg volume remove old
	t "$what: and used" xseg volume flush new
	t "$what: it stops" xseg down
}

full_stack
full_up "a full store"
expect_err 1 "$no_room" "$what: down says so" xseg --timeout 60s down
expect_err 1 "$no_room" "$what: and again" xseg --timeout 60s down
is "$what: nothing was stopped" "$(grep -c ': serving' "$log")" 3
room_is_made

full_up "a full store, and no supervisor"
kill_hard "$(supervisor)"
expect_err 1 "$no_room" "$what: down says so" xseg --timeout 60s down
is "$what: nothing was stopped" "$(grep -c ': serving' "$log")" 3
room_is_made

# What is written between the flush and the end of volumed finds no room.
late()			# WHAT [TOGETHER]
{
	what=$1
	full_stack ${2:+"$2"}
	rm -f "$log"
	t "$what: the stack comes up" xseg up full.conf
	t "$what: a volume is made" xseg volume create vol --size 2M
	t "$what: data is written" xbench --volume=vol --rw=write --bs=64k --size=1M \
		--number_ios=16 --verify=crc32c --verify_state="$TMP/state"
}

late "the store is full when volumed has stopped"
freeze_peer volumed
begin_down 'stopping volumed'
t "$what: the cache is written to beside volumed" \
	xbench --target=cached --rw=write --bs=64k --size=1M --objects=1 --object_size=1M \
	--number_ios=16
t "$what: the store takes no more" xseg peer set memd fail=write:1:ENOSPC
thaw
ends_with 1
t "$what: down says why" grep -qE "$no_room" down.log
t "$what: all serve again" all_serve
is "$what: what had stopped was started again" \
	"$(times_started memd) $(times_started cached) $(times_started volumed)" "1 1 2"
t "$what: the store takes it" xseg peer set memd fail=
t "$what: nothing is lost" xbench --volume=vol --rw=read --bs=64k --size=1M \
	--verify=crc32c --verify_only --verify_state="$TMP/state"
t "$what: it stops" xseg down

late "the same without a supervisor"
kill_hard "$(supervisor)"
freeze_peer volumed
start down timeout -k 1 60 xseg down
down=$started
t "$what: volumed is asked to stop" wait_for 60 grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$frozen/status"
t "$what: the cache is written to beside volumed" \
	xbench --target=cached --rw=write --bs=64k --size=1M --objects=1 --object_size=1M \
	--number_ios=16
t "$what: the store takes no more" xseg peer set memd fail=write:1:ENOSPC
thaw
ends_with 1
t "$what: down says why" grep -qE "$no_room" down.log
t "$what: all serve again" all_serve
t "$what: the store takes it" xseg peer set memd fail=
t "$what: nothing is lost" xbench --volume=vol --rw=read --bs=64k --size=1M \
	--verify=crc32c --verify_only --verify_state="$TMP/state"
t "$what: it stops" xseg down

late "the same in one process" "memd cached volumed"
freeze_peer volumed
begin_down 'caches flush first'
t "$what: the stop is taken back" xseg down --cancel
thaw
ends_with 1
t "$what: nothing is lost" xbench --volume=vol --rw=read --bs=64k --size=1M \
	--verify=crc32c --verify_only --verify_state="$TMP/state"
t "$what: the store takes no more" xseg peer set memd fail=write:1:ENOSPC
t "$what: and something is dirty" xbench --volume=vol --rw=write --bs=64k --size=64k --number_ios=1
expect_err 1 "$no_room" "$what: down says so" xseg --timeout 60s down
t "$what: all serve" all_serve
t "$what: the store takes it" xseg peer set memd fail=
t "$what: it stops" xseg down
finish
