#!/bin/bash
# restart.sh - other programs take the places of those that run, and `peer restart --replaced` has all
# peers and the supervisor run them, under I/O and without an error. The supervisor starts what is
# restarted; without a supervisor the command does. A store that cannot be started keeps what is above
# it from being restarted, and a gateway goes on while clients are connected to it.
# timeout: 150
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed kvd xseg-memcached xbench jq

mkdir bin
cp "$BUILD"/bin/{xseg,xseg-host,volumed,cached,filed,kvd,xseg-memcached} bin
export PATH=$TMP/bin:$PATH

# upgrade: the files of all programs are other ones, of the same names, as dpkg makes them
upgrade()
{
	local program
	for program in bin/*; do
		cp "$program" "$program.new" && mv "$program.new" "$program" || return 1
	done
}

# stack [LINE...]: the stack file, with these lines behind it
stack()
{
	cat <<END
[segment]
memory = 128M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M

[peer volumed]
downstream = cached
END
	printf '%s\n' "$@"
}

load()	# SECONDS: verified I/O in the background; its process is $load
{
	start load xbench --volume=v --rw=randrw --bsrange=4k-64k --iodepth=8 --runtime="$1" --time_based \
		--verify=crc32c --rate_iops=500
	load=$started
}

in_use()
{
	xseg volume import v /dev/null 2>&1 | grep -q "in use by xbench"
}

supervisor()	# its process
{
	xseg --json status | jq .supervisor.pid
}

# all_new: each process of the stack runs the file that is in its place now
all_new()
{
	local pid
	for pid in $(supervisor) $(xseg --json peer list | jq '.[] | select(.kind != "client") | .pid'); do
		case $(readlink "/proc/$pid/exe") in
		*' (deleted)') echo "process $pid is an old program"; return 1 ;;
		esac
	done
}

parent_of()	# PEER: the process that started it
{
	awk '$1 == "PPid:" { print $2 }' "/proc/$(peer_field "$1" pid)/status"
}

stack >stack.conf
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 64M
expect_err 2 "NAME of a peer, --all or --replaced" "restart needs a name or --all" xseg peer restart
expect_err 2 "NAME of a peer, --all or --replaced" "and only one of both" xseg peer restart filed --all

load "$(bound 4s 20s)"
t "there is a load" wait_for 60 in_use
for peer in volumed cached filed; do
	t "$peer is restarted under it" xseg peer restart "$peer"
	is "the supervisor has started it" "$(parent_of "$peer")" "$(supervisor)"
done
before=$(supervisor)
t "without another program none is restarted" xseg peer restart --replaced
is "neither is the supervisor" "$(supervisor)" "$before"
generations=$(xseg --json peer list | jq -c '[.[] | select(.kind != "client") | .generation]')
upgrade
t "programs that were replaced are seen" eval '! all_new'
t "those that run them are restarted under it" xseg peer restart --replaced
t "each process is of the new programs" all_new
is "the supervisor is another one" "$([ "$(supervisor)" != "$before" ] && echo yes)" yes
is "and so is each peer" "$(xseg --json peer list | jq -c --argjson old "$generations" \
	'[.[] | select(.kind != "client") | .generation] | [., $old] | transpose | all(.[0] > .[1])')" true
t "the log says that it was asked for" grep -q "supervisor: filed is restarted, as asked" "xseg-$XSEG_SEGMENT.log"
kill_hard "$(peer_field cached pid)"
is_back()
{
	[ "$(peer_field cached state)" = running ]
}
t "the new supervisor starts what dies" wait_for 60 is_back
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
t "the segment is whole" xseg check

# ---- a peer that was started by hand a moment ago ----

# The supervisor looks for such a peer ten times a second, so most of these find it unseen.
again_and_again()
{
	local i
	for i in 1 2 3 4 5 6; do
		xseg peer stop volumed && xseg peer start volumed &&
			xseg --timeout 20s peer restart volumed || return 1
	done
}
t "a peer is restarted that the supervisor may not have seen yet" again_and_again
t "it serves" state_is volumed running

# ---- a store that cannot be started ----

t "there is dirty data" xbench --volume=v --rw=write --bs=64k --size=8M --verify=crc32c \
	--verify_state="$TMP/state" --output=/dev/null
upgrade
mv objects away && : >objects
t "the store dies" xseg peer kill filed
before=$(peer_field cached pid)
said="peer restart: filed did not start: .*objects cannot be opened"
expect_err 1 "$said" "peers are not restarted while it does not start" xseg peer restart --replaced
expect_err 1 "$said" "nor are all" xseg peer restart --all
is "the cache above it goes on" "$(peer_field cached state) $(peer_field cached pid)" "running $before"
t "peer list says that it is of before" bash -c \
	"xseg peer list 2>&1 | grep 'cached: its process, $before, .* was replaced; .*peer restart --replaced'"
expect_json 'map(select(.name == "cached" or .name == "volumed")) | length == 2 and all(.replaced)' \
	"and so does its JSON" xseg --json peer list
rm objects && mv away objects
t "when the store is mended, the next try does the rest" xseg peer restart --replaced
t "each process is of the new programs" all_new
is "which peer list sees" "$(xseg peer list 2>&1 | grep -c 'was replaced')" 0
t "the data is there" xbench --volume=v --rw=write --bs=64k --size=8M --verify_only \
	--verify_state="$TMP/state" --output=/dev/null
t "the stack goes down" xseg down

# ---- a gateway ----

port=$(free_port)
stack "[peer kvd]" "size = 8M" "zone_size = 256k" "downstream = cached" "[peer memcached]" "kvd = kvd" \
	"listen = 127.0.0.1:$port" >gateway.conf
t "a stack with a gateway comes up" xseg up gateway.conf
exec 9<>"/dev/tcp/127.0.0.1/$port"
ask()		# what the client gets for its line
{
	local line
	printf '%s\r\n' "$@" >&9
	read -r -t 60 line <&9
	echo "${line%$'\r'}"
}
is "a client connects" "$(ask "set key 0 0 5" value)" STORED
connected()		# N
{
	[ "$(xseg --json stat | jq '.gateways[] | select(.name == "memcached").curr_connections')" = "$1" ]
}
t "and is counted" wait_for 60 connected 1
upgrade
before=$(peer_field memcached pid)
xseg peer restart --replaced 2>said
is "the others are restarted" "$?" 0
is "the gateway goes on" "$(peer_field memcached pid)" "$before"
t "which is said, with the number of connections" grep -qE "memcached: its process, $before, .*; \
'xseg.* peer restart memcached' starts it anew; connections that it cuts then: 1" said
is "the client goes on" "$(ask "get key")" "VALUE key 0 5"
exec 9>&-
t "the client leaves" wait_for 60 connected 0
t "then the gateway is restarted, too" xseg peer restart --replaced
t "each process is of the new programs" all_new
t "the stack goes down" xseg down

# ---- peers of one process ----

stack "[run]" "together = volumed cached filed" >together.conf
t "the same comes up in one process" xseg up together.conf
load "$(bound 3s 12s)"
t "there is a load on it" wait_for 60 in_use
before=$(peer_field filed pid)
upgrade
t "all are restarted under it" xseg peer restart --all
t "each process is of the new programs" all_new
is "the peers are in one process again, another one" "$(xseg --json peer list |
	jq --argjson old "$before" '[.[] | select(.kind != "client") | .pid] | unique | length == 1 and .[0] != $old')" true
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0

# ---- without a supervisor ----

load "$(bound 3s 12s)"
t "there is a load again" wait_for 60 in_use
kill_hard "$(supervisor)"
upgrade
t "without a supervisor all are restarted, too" xseg peer restart --all
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
t "the stack goes down" xseg down
finish
