#!/bin/bash
# restart.sh - other programs take the places of those that run, and `peer restart --replaced` has all
# peers and the supervisor run them, under I/O and without an error. The supervisor starts what is
# restarted; without a supervisor the command does.
# timeout: 150
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed xbench jq

mkdir bin
cp "$BUILD"/bin/{xseg,xseg-host,volumed,cached,filed} bin
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
