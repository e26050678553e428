#!/bin/bash
# failing.sh - a store whose process ends soon after each start, as its disk is not mounted: status,
# the list of peers and commands that need it say so, until it serves again. Commands that do not need
# it are not disturbed.
. "$(dirname "$0")/../lib/system.sh"
need xseg volumed filed jq

cat >stack.conf <<-END
	[segment]
	memory = 64M
	[peer filed]
	dir = $TMP/objects
	[peer volumed]
	downstream = filed
END

log=$TMP/xseg-$XSEG_SEGMENT.log

is_failing()
{
	xseg --json peer list | jq -e '.[] | select(.name == "filed").failing' >out.txt
}

is_over()
{
	! is_failing && [ -s out.txt ]
}

# As it does after some failures. The stop of all tries it three times more.
waits_long()
{
	[[ $(grep -o 'starting it again in [0-9]* ms' "$log" | tail -n 1) == *' 5000 ms' ]]
}

t "a stack is started" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 4M
t "it is flushed" xseg volume flush vol
expect_json 'all(.[]; .failing | not)' "no peer fails" xseg --json peer list
mv objects away
kill_hard "$(peer_field filed pid)"
t "its disk is away, and the store cannot begin" wait_for 60 is_failing
t "status says so" grep -q '^failing  *filed: its process ends soon after each start' \
	<(xseg status)
expect_json '.peers[] | select(.name == "filed").failing' "so does its JSON" xseg --json status
t "the figures of the store say why they are away" \
	grep -q '^store .*filed: .*; the log says why it cannot run' <(xseg status)
xseg peer list >list 2>notes
t "the list has a note" grep -q 'filed: its process ends soon after each start' notes
t "the log says why, and what to do" \
	grep -q 'filed: error: .*mount its disk' "$log"

rm -rf objects && mv away objects
t "its disk is there again, and it serves without a command" wait_for 60 is_over
is "nothing of it is left in status" "$(xseg status | grep -c ^failing)" 0
t "the volume is there" xseg volume info vol
kill_hard "$(peer_field filed pid)"
t "one death is no failure" wait_for 60 state_is filed running
expect_json 'all(.[]; .failing | not)' "and the list says none" xseg --json peer list

# ---- another store, which nothing sends to ----

cat >>stack.conf <<-END
	[peer other]
	kind = filed
	dir = $TMP/others
END
t "another store is added" xseg reload
mv others others-away
kill_hard "$(peer_field other pid)"

nr_failures()
{
	grep -c 'the process of other ended with exit code' "$log"
}

# While the other one is tried some times, and fails.
restarts()
{
	until [ "$(nr_failures)" -ge 5 ]; do
		xseg peer restart volumed || return 1
	done
}
t "peers that do not need it are restarted as if it served" restarts
sed -i '/peer volumed/a threads = 2' stack.conf
t "and changed" xseg reload
expect_err 4 "peer restart: other did not start: .*mount its disk" \
	"all are not: it is one of them" xseg peer restart --all
rm -rf others && mv others-away others
t "once its disk is there, all are restarted" xseg peer restart --all
t "it serves" state_is other running

# ---- the end of one that fails ----

mv objects away
kill_hard "$(peer_field filed pid)"
t "it is away again, and the supervisor tries less often" wait_for 60 waits_long
xseg down 2>said
is "the stack cannot stop in order" $? 1
t "down said which peer holds it up, and where to look" \
	grep -q 'stopping: filed: its process ends soon after each start' said
t "it is stopped without" xseg down --force
finish
