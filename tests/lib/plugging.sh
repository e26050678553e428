# plugging.sh - kills while a cache is plugged or unplugged, for the tests of plugging.
#
#	. "$root/tests/lib/plugging.sh"		# after system.sh
#	while_killing volumed running xseg plug cached --above store --below volumed
#
# A test defines all_serve, which succeeds when each peer serves, and kill_peer NAME.

is_in()	# STATE
{
	[ "$(field_of state cache status cached)" = "$1" ]
}

# while_killing VICTIM STATE COMMAND...: kills the peer, or the command, soon after the command was
# started; the cache comes into that state. Where the command had not asked yet, or was refused
# since the peer was dead, it is run again.
while_killing()
{
	local victim=$1 state=$2 pid
	shift 2
	"$@" >"$TMP/command.out" 2>&1 &
	pid=$!
	sleep 0.00$((RANDOM % 9 + 1))
	if [ "$victim" = command ]; then
		kill -KILL $pid
	else
		kill_peer "$victim"
	fi >/dev/null 2>&1
	wait $pid 2>/dev/null
	wait_for 60 all_serve
	wait_for 1 is_in "$state" || { "$@"; wait_for 60 is_in "$state"; }
}
