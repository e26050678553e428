#!/bin/bash
# strangers.sh - a process that is not part of the stack is never signalled, whatever pid stands in
# the segment. No other user reads the files of a store. A segment that another user made is
# accepted only if the caller says so.
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"

# ---- pids ----

cat >stack.conf <<-END
	[segment]
	memory = 64M
	[peer memd]
	memory = 16M
	[peer cached]
	downstream = memd
	memory = 8M
	[peer volumed]
	downstream = cached
END
t "a stack is started" xseg up stack.conf
setsid sleep 1000 &
victim=$!
disown $victim
pid=$(peer_field memd pid)
t "the segment says that a foreign process serves memd" forge_pid "$XSEG_SEGMENT" "$pid" "$victim"
expect_err 4 "process $victim, but process $pid serves it" "peer kill refuses" xseg peer kill memd
t "the foreign process lives" kill -0 $victim
t "and so does memd" kill -0 "$pid"
freeze $victim
expect_json 'map(select(.halted)) == []' "its being halted is not memd's" xseg --json peer list
kill -CONT $victim
xseg check >check.out 2>&1
t "check sees it" grep -q "says process $victim, but process $pid has its lock" check.out
t "check --fix corrects it" xseg check --fix
is "memd's pid is right again" "$(peer_field memd pid)" "$pid"
t "and it can be killed" xseg peer kill memd
for wrong in 1 0 4294967295; do		# not ours to look at, no process, none that can be
	t "memd runs" wait_for 60 state_is memd running
	pid=$(peer_field memd pid)
	t "the segment says that process $wrong serves it" forge_pid "$XSEG_SEGMENT" "$pid" $wrong
	expect_err 4 "process $wrong, but process $pid serves it" "peer kill refuses" \
		xseg peer kill memd
	expect_exit 1 "check sees it" xseg check
	t "check --fix corrects it" xseg check --fix
	is "the pid is right again" "$(peer_field memd pid)" "$pid"
	forge_pid "$XSEG_SEGMENT" "$pid" $wrong
	t "all the same it can be restarted" xseg peer restart memd
done
t "it is started again" wait_for 60 state_is memd running
pid=$(peer_field memd pid)
t "the pid is wrong once more" forge_pid "$XSEG_SEGMENT" "$pid" "$victim"
t "all is stopped in order all the same" xseg down
t "the foreign process lives" kill -0 $victim
t "a stack is started again" xseg up stack.conf
for peer in volumed cached memd; do
	forge_pid "$XSEG_SEGMENT" "$(peer_field $peer pid)" "$victim"
done
forge_pid "$XSEG_SEGMENT" "$(xseg --json status | jq .supervisor.pid)" "$victim"
t "down --force ends what is the segment's" xseg down --force
t "and nothing else" kill -0 $victim
kill_hard $victim

# ---- files ----

cat >files.conf <<-END
	[segment]
	memory = 64M
	[peer filed]
	dir = $TMP/objects
	[peer volumed]
	downstream = filed
END

# everything_has DIRECTORIES FILES: these modes
everything_has()
{
	[ "$(find objects -type f | wc -l)" -ge 3 ] &&
		! find objects \( -type d ! -perm "$1" \) -o \( -type f ! -perm "$2" \) | grep .
}

head -c 5M /dev/urandom >image
log=$TMP/xseg-$XSEG_SEGMENT.log
for mask in 000 022 077; do
	t "a stack is started with umask $mask" bash -c "umask $mask; xseg up files.conf"
	t "a volume is written" xseg volume create vol$mask --size 8M
	t "with data" xseg volume import vol$mask image
	t "its files are this user's alone" everything_has 700 600
	t "all is stopped" xseg down
done
find objects -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
: >"$log"
t "a stack is started on a store that everybody may read" xseg up files.conf
t "nobody else may any more" everything_has 700 600
is "one line says so" "$(grep -c 'had other rights than 0700 and 0600; they are corrected' "$log")" 1
t "all is stopped" xseg down
sed -i "s/^dir = .*/&\ngroup = $(id -g)/" files.conf
t "a stack is started whose group may read the store" xseg up files.conf
t "it may, and nobody else" everything_has 750 640
t "all is stopped" xseg down
sed -i "s/^group = .*/group = no-such-group/" files.conf
expect_err 2 "files.conf: line 5: .*no group 'no-such-group'; make it, or name another" \
	"a group that does not exist is wrong usage" xseg up files.conf

# ---- users ----

if [ "$(id -u)" -ne 0 ]; then
	skip "segments of other users" "only root can be two users"
	finish
fi
other=65534
name=$(id -nu $other)
chmod 755 "$TMP"
mkdir -m 777 "$TMP/state"
as_other()
{
	setpriv --reuid=$other --regid=$other --clear-groups \
		env XDG_STATE_HOME="$TMP/state" "$@"
}
if ! as_other xseg --version >/dev/null 2>&1; then
	skip "segments of other users" "user $name may not run what is in $BUILD"
	finish
fi
theirs=$XSEG_SEGMENT-theirs
export XSEG_SEGMENT
t "another user makes a segment that everybody may write" \
	as_other xseg -s "$theirs" create --memory 64M --mode 0666
refused="is not yours, user $name made it"
for command in status info "peer list" "check" "check --fix" "volume list" "cache status" stat destroy \
		"destroy --force" "up stack.conf" down "peer kill memd"; do
	expect_err 4 "$refused" "root's 'xseg $command' refuses it" xseg -s "$theirs" $command
done
expect_err 4 "$refused" "so does xbench" xbench -s "$theirs" --volume=v --rw=read
expect_err 4 "$refused" "and a peer's program" memd -s "$theirs" --memory=1M
expect_err 4 "$refused" "and the host of several" xseg-host -s "$theirs" memd
xseg list >list.out
t "list says whose it is" grep -q "^$theirs *not yours (user $name)" list.out
expect_json "map(select(.name == \"$theirs\"))[0] | .state == \"not yours\" and .user == \"$name\"" \
	"and its JSON does" xseg --json list
expect_err 2 "no user 'nobody-of-that-name'" "a user that does not exist is wrong usage" \
	xseg -s "$theirs" --owner nobody-of-that-name status
t "--owner lets it in" xseg -s "$theirs" --owner "$name" status
t "by number, too" xseg -s "$theirs" --owner $other info
t "so does the environment" env XSEG_OWNER="$name" xseg -s "$theirs" status
expect_err 4 "$refused" "another owner's name does not" xseg -s "$theirs" --owner daemon status
{ cat stack.conf; echo "[run]"; echo "together = cached volumed"; } >group.conf
expect_exit 4 "a group, whose options are read from the segment, is not started in it" \
	xseg -s "$theirs" --owner "$name" --timeout 60s up group.conf
t "and the log says why" grep -q "nothing is started from its stack file" "$TMP/xseg-$theirs.log"
sed -i "s/memory = 64M/&\nowner = $name/" stack.conf
t "a stack file that names its owner is started in it" xseg -s "$theirs" up stack.conf
t "its peers attach as well" xseg -s "$theirs" --owner "$name" volume create v --size 1M
expect_err 4 "$refused" "without the name nobody else does" xseg -s "$theirs" volume list
t "a peer is killed" xseg -s "$theirs" --owner "$name" peer kill cached
t "its supervisor, which has the file's text, starts it again" wait_for 60 \
	json_of 'map(select(.name == "cached"))[0].state == "running"' \
	xseg -s "$theirs" --owner "$name" --json peer list
xseg -s "$theirs" --owner "$name" peer stop volumed >/dev/null
expect_err 4 "nothing is started from its stack file" "peer start refuses" \
	xseg -s "$theirs" --owner "$name" peer start volumed
t "it is stopped" xseg -s "$theirs" --owner "$name" down --force

ours=$XSEG_SEGMENT-ours
t "root makes one that everybody may write" xseg -s "$ours" create --memory 64M --mode 0666
t "others take it, as they have to trust root" as_other xseg -s "$ours" info
xseg -s "$ours" destroy >/dev/null

t "a user makes one for a group" as_other xseg -s "$theirs" create --memory 64M --mode 0660
t "another user of the group is let in" setpriv --reuid=1 --regid=1 --groups $other \
	env XDG_STATE_HOME="$TMP/state" xseg -s "$theirs" info
expect_err 4 "$refused" "root is not" xseg -s "$theirs" info
chmod 0666 "/dev/shm/xseg.$theirs"
expect_err 4 "$refused" "nor is a user without the group, whatever the mode" \
	setpriv --reuid=1 --regid=1 --clear-groups xseg -s "$theirs" info
t "it is removed" as_other xseg -s "$theirs" destroy
finish
