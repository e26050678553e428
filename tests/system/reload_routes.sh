#!/bin/bash
# reload_routes.sh - reload changes what cannot be set: where peers send, their kinds, the processes
# that they share, and who may attach. What can be done under I/O is done under a load that checks
# itself; what would give clients other data is refused. Kills of reload and of the supervisor in the
# middle leave what the next reload ends.
#
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed memd jq

# stack FILE [LINE...]: the peers of all stacks here, and these lines; DOWN is volumed's downstream
stack()
{
	local file=$1
	shift
	cat >"$file" <<-END
		[segment]
		memory = 256M
		[peer filed]
		dir = $TMP/objects
		[peer volumed]
		downstream = ${DOWN:-cached}
		[peer cached]
		downstream = ${BELOW:-filed}
		memory = 32M
		dirty_age = 30s
	END
	printf '%s\n' "$@" >>"$file"
}
lower="[peer lower]
kind = cached
downstream = filed
memory = 16M"
other="[peer other]
kind = memd
memory = 32M"

load()			# verified I/O until end_load
{
	start load xbench --volume=disk --rw=randrw --bsrange=4k-64k --iodepth=8 --rate_iops=300 \
		--runtime=1h --verify=crc32c --output-format=json --output=load.json
	load=$started
	t "a load runs" wait_for 60 in_use
}
in_use()
{
	xseg --json clients | jq -e "any(.[]; .program == \"xbench\" and .volumes != [])"
}
end_load()
{
	kill -INT "$load"
	wait "$load"
	is "the load was told to end" "$?" 3
	expect_json "$no_errors" "and saw no error" cat load.json
}
path()			# what volumed sends to, and what that sends to, ...
{
	local at=volumed
	while at=$(peer_field $at downstream) && [ "$at" != null ]; do echo "$at"; done | xargs
}
differences()		# FILE: how each would be applied
{
	xseg --json reload --dry-run "$1" | jq -c '[.differences[] | .how] | unique'
}
pids()
{
	xseg --json peer list | jq -c '[.[] | select(.kind != "client") | .pid] | sort'
}

stack cached.conf
t "a stack comes up" xseg up cached.conf
t "a volume is made" xseg volume create disk --size 64M
t "and written" xbench --volume=disk --rw=write --bs=64k --size=32M --verify=crc32c \
	--verify_state="$TMP/state" --output=/dev/null

# ---- caches enter and leave the path ----

load
before=$(pids)
DOWN=filed stack plain.conf
is "a file without the cache on the path differs" "$(differences plain.conf)" '["route"]'
t "reload takes it off the path" xseg reload plain.conf
is "which is as the file says" "$(path)" filed
is "no process is another one" "$(pids)" "$before"
is "nothing is left" "$(differences plain.conf)" "[]"
t "reload puts it back" xseg reload cached.conf
is "there it is" "$(path)" "cached filed"
BELOW=lower stack two.conf "$lower"
t "a second cache comes between the first and the store" xseg reload two.conf
is "there it is" "$(path)" "cached lower filed"
DOWN=lower BELOW=filed stack swapped.conf "$lower"
sed -i '/^\[peer cached\]/,/^memory/d; /^dirty_age/d' swapped.conf
t "the upper one goes" xseg reload swapped.conf
is "the lower one is left" "$(path)" "lower filed"
is "the other is not listed" "$(xseg --json peer list | jq 'any(.[]; .name == "cached")')" false
t "one replaces another" xseg reload cached.conf
is "at its place" "$(path)" "cached filed"
t "a cache is plugged by hand, off the file" bash -c "xseg unplug cached && xseg peer restart volumed"
is "the file has another path" "$(differences cached.conf)" '["route"]'
t "reload puts it back" xseg reload
is "there it is again" "$(path)" "cached filed"

# ---- processes ----

stack together.conf "[run]" "together = volumed cached"
is "peers that share a process differ" "$(differences together.conf)" '["replace"]'
t "they come together under the load" xseg reload together.conf
is "in one process" "$(peer_field volumed pid)" "$(peer_field cached pid)"
is "the store is the same process" "$(jq "index($(peer_field filed pid)) != null" <<<"$before")" true
is "the path is the same" "$(path)" "cached filed"
stack all.conf "[run]" "together = volumed cached filed"
t "another one joins them" xseg reload all.conf
is "all are in one" "$(pids | jq 'unique | length')" 1
t "and apart again" xseg reload cached.conf
is "each has its own" "$(pids | jq 'unique | length')" 3
is "nothing is left" "$(differences cached.conf)" "[]"

# ---- another store ----

BELOW=other stack other.conf "$other"
expect_err 4 "by other.conf, volumed has the data of another store, and these have its volumes open: xbench" \
	"a volume in use does not get another store" xseg reload other.conf
is "nothing has changed" "$(path)" "cached filed"
end_load
t "there is dirty data" xbench --volume=disk --rw=write --bs=64k --size=32M --verify=crc32c \
	--verify_state="$TMP/state" --output=/dev/null
is "what goes to another store is replaced" "$(differences other.conf)" '["add","replace"]'
t "it goes there" xseg reload other.conf
is "with its cache" "$(path)" "cached other"
is "it has no volumes there" "$(xseg --json volume list)" "[]"
t "one is made" xseg volume create small --size 4M
t "and written" xbench --volume=small --rw=write --bs=64k --size=4M --output=/dev/null
is "back it is replaced, too" "$(differences cached.conf)" '["remove","replace"]'
t "it comes back, and the other store goes" xseg reload cached.conf
is "with its cache" "$(path)" "cached filed"
is "the volumes are those of before" "$(xseg --json volume list | jq -r '.[].name')" disk
t "with all that was dirty" xbench --volume=disk --rw=write --bs=64k --size=32M --verify=crc32c \
	--verify_only --verify_state="$TMP/state" --output=/dev/null
is "the other store is not listed" "$(xseg --json peer list | jq 'any(.[]; .name == "other")')" false

# ---- another kind ----

BELOW=other stack other.conf "$other"
t "a store of a kind" xseg reload other.conf
BELOW=other stack kind.conf "[peer other]" "kind = filed" "dir = $TMP/other"
expect_json '.differences | map(select(.key == "kind")) == [{"section": "peer other", "key": "kind",
	"now": "memd", "file": "filed", "how": "replace"}]' "another kind is told" \
	xseg --json reload --dry-run kind.conf
t "it gets the other kind" xseg reload kind.conf
is "which it is" "$(peer_field other kind)" filed
is "above it nothing else is" "$(path)" "cached other"
t "a volume is made there" xseg volume create there --size 1M
t "and back" xseg reload cached.conf
stack odd.conf "[peer odd]" "kind = memd" "memory = 4M"
t "a peer that nobody uses" xseg reload odd.conf
stack odd.conf "[peer odd]" "kind = cached" "downstream = base" "memory = 4M" "[peer base]" \
	"kind = memd" "memory = 4M"
t "becomes a cache" xseg reload odd.conf
is "which has its place" "$(peer_field odd kind) $(peer_field odd downstream)" "cached base"
stack odd.conf "[peer odd]" "kind = memd" "memory = 4M"
t "and a store again" xseg reload odd.conf
is "which it is" "$(peer_field odd kind)" memd
t "and goes" xseg reload cached.conf

# ---- who may attach ----

is "one user may attach" "$(stat -c %a "/dev/shm/xseg.$XSEG_SEGMENT")" 600
stack mode.conf
sed -i 's/^memory = 256M/memory = 256M\nmode = 0660/' mode.conf
is "another mode is set live" "$(differences mode.conf)" '["live"]'
before=$(pids)
t "reload does" xseg reload mode.conf
is "now the group may" "$(stat -c %a "/dev/shm/xseg.$XSEG_SEGMENT")" 660
t "and takes it back" xseg reload cached.conf
is "as the file says" "$(stat -c %a "/dev/shm/xseg.$XSEG_SEGMENT")" 600
if [ "$(id -u)" = 0 ]; then
	sed -i 's/^mode = 0660/mode = 0640\ngroup = daemon/' mode.conf
	t "so is a group" xseg reload mode.conf
	is "both hold" "$(stat -c '%a %G' "/dev/shm/xseg.$XSEG_SEGMENT")" "640 daemon"
	t "and back" xseg reload cached.conf
	is "both hold" "$(stat -c '%a %G' "/dev/shm/xseg.$XSEG_SEGMENT")" "600 $(id -gn)"
else
	skip "so is a group" "only root can give a file to any"
fi
is "all processes are the same" "$(pids)" "$before"
sed -i 's/^memory = 256M/memory = 128M\nrequests = 4096/' mode.conf
expect_err 4 "holds but memory, requests of \[segment\], .*; use 'xseg down', then 'xseg up mode.conf'" \
	"what only down and up can change is named" xseg reload mode.conf
t "all is as before" xseg reload cached.conf

# ---- two at once ----

freeze "$(peer_field filed pid)"
start first xseg reload together.conf
first=$started
has_the_lock()
{
	grep -q "FLOCK.* $1 " /proc/locks
}
t "a reload is at work" wait_for 60 has_the_lock "$first"
second_is_refused()
{
	xseg reload cached.conf 2>&1 | grep -q "another command changes the stack of segment $XSEG_SEGMENT"
}
t "while one is at work, another is refused" wait_for 60 second_is_refused
expect_err 4 "another command changes the stack" "so is what saves a setting" \
	xseg cache set cached dirty_high=60 --save
kill -CONT "$(peer_field filed pid)"
wait "$first"
is "the first one ends well" "$?" 0
t "then others work" xseg reload cached.conf

# ---- a cache that dies while it is replaced ----

# It goes back to its old place, flushes there, and is replaced then. Where it has stopped before it
# could be killed, nothing has to be done.
t "there is dirty data" xbench --volume=disk --rw=write --bs=64k --size=16M --verify=crc32c \
	--verify_state="$TMP/state" --output=/dev/null
log=$TMP/xseg-$XSEG_SEGMENT.log
asked()			# how often cached was to be replaced
{
	grep -c "cached is replaced, as asked" "$log"
}
before=$(asked) filed=$(peer_field filed pid) victim=$(peer_field cached pid)
start reload xseg reload other.conf
until [ "$(asked)" -gt "$before" ] || ! kill -0 "$started" 2>/dev/null; do :; done
freeze "$filed"
sleep 0.5
[ "$(peer_field cached pid)" != "$victim" ] || kill_hard "$victim"
sleep 0.5
kill -CONT "$filed"
wait "$started"
is "reload ends well" "$?" 0
is "it has its new place" "$(path)" "cached other"
t "and goes back" xseg reload cached.conf
t "nothing is lost" xbench --volume=disk --rw=write --bs=64k --size=16M --verify=crc32c \
	--verify_only --verify_state="$TMP/state" --output=/dev/null

# ---- kills ----

# A reload that is killed anywhere, and one whose supervisor is: the next one ends it.
supervisor()
{
	xseg --json status | jq .supervisor.pid
}
converges()		# FILE PATH
{
	wait_for 60 xseg --quiet reload "$1" && [ "$(path)" = "$2" ] && wait_for 60 all_serve
}
load
turn=0
for pause in $(bound "0.05 0.15 0.3 0.6" "0.02 0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.5 0.6 0.8 1 1.2"); do
	set -- plain.conf filed two.conf "cached lower filed" all.conf "cached filed"
	shift $((turn++ % 3 * 2))
	timeout -s KILL "$pause" xseg --quiet reload "$1" >out.txt 2>&1
	t "reload after one that was killed after $pause s ends well ($1)" converges "$1" "$2"
done
end_load
turn=0
for pause in $(bound "0.1 0.25 0.5" "0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.5 0.7 0.9"); do
	set -- other.conf "cached other" kind.conf "cached other" cached.conf "cached filed"
	shift $((turn % 3 * 2))
	if [ $((turn++ % 2)) = 0 ]; then
		timeout -s KILL "$pause" xseg --quiet reload "$1" >out.txt 2>&1
	else
		start reload xseg --quiet reload "$1"
		sleep "$pause"
		kill -KILL "$(supervisor)"
		wait "$started"
	fi
	t "so does one where peers are replaced ($pause s, $1)" converges "$1" "$2"
done
t "the first stack is back" converges cached.conf "cached filed"
t "with its data" xseg volume info disk
t "the segment is sound" xseg check
t "it goes down" xseg down
finish
