#!/bin/bash
# stays_stopped.sh - a peer that `xseg peer stop` has stopped stays so under each supervisor that
# follows, and through reload and peer restart --all, until it is started by its name.
# timeout: 200
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd jq

log=$TMP/xseg-$XSEG_SEGMENT.log
says="it stays stopped, as 'xseg peer stop' has stopped it; 'xseg peer start"

# stack EXTRA...: with more lines of the cache's section
stack()
{
	cat <<-END
		[segment]
		memory = 128M
		[peer memd]
		memory = 32M
		[peer cached]
		downstream = memd
		memory = 8M
		objects = 16
		$*
		[peer volumed]
		downstream = cached
		[peer top]
		kind = memd
		memory = 4M
	END
}
stack >stack.conf

supervisor_is_another()		# PID
{
	[ "$(xseg --json status | jq .supervisor.pid)" != "$1" ]
}
# says_once WORDS COMMAND...: its output and its errors have them, once
says_once()
{
	local words=$1
	shift
	"$@" >"$TMP/said" 2>&1
	local code=$?
	[ "$(grep -cF "$words" "$TMP/said")" = 1 ] || { cat "$TMP/said"; return 1; }
	return $code
}
# kill_supervisor: SIGKILL, and wait for its end
kill_supervisor()
{
	local pid
	pid=$(xseg --json status | jq .supervisor.pid)
	kill -KILL "$pid"
	wait_for 20 supervisor_is_another "$pid"
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 4M
t "volumed is stopped" xseg peer stop volumed
expect_json '.[] | select(.name == "volumed") | .stays_stopped and .state == "stopped"' \
	"peer list has it so" xseg --json peer list
expect_json '[.[] | select(.name != "volumed") | .stays_stopped | not] | all' \
	"and no other one" xseg --json peer list
t "peer list says what starts it" says_once "volumed: $says volumed' starts it" xseg peer list
t "so does status" says_once "stopped     volumed: $says volumed' starts it" xseg status
expect_err 4 "volumed: it is stopped already; start it with 'xseg peer start volumed'" \
	"it is stopped once" xseg peer stop volumed

# ---- another supervisor ----

t "all others are restarted" says_once \
	"peer restart: these stay stopped, as 'xseg peer stop' has stopped them: volumed; 'xseg peer start NAME' starts one" \
	xseg peer restart --all
is "it is still stopped" "$(peer_field volumed state)" stopped
t "the new supervisor's log says so" grep -q "supervisor: volumed stays stopped, as " "$log"

t "the supervisor is killed" kill_supervisor
t "up begins another one, and names the peer" says_once "volumed: $says volumed' starts it" \
	xseg up stack.conf
t "it says how many serve" grep -q "^3 of 4 peers serve" "$TMP/said"
is "it is stopped even so" "$(peer_field volumed state)" stopped
t "the supervisor is killed once more" kill_supervisor
expect_json '.away == ["volumed"] and (.peers | length) == 4' "up's JSON names it" \
	xseg --json up stack.conf

# ---- reload ----

stack flush_rate = 8M >stack.conf
t "reload applies another file, and names the peer" says_once \
	"volumed: $says volumed' starts it" xseg reload stack.conf
is "it is stopped after a live key" "$(peer_field volumed state)" stopped
cat >>stack.conf <<-END
	[peer more]
	kind = memd
	memory = 4M
END
t "reload with another supervisor names it, too" says_once "volumed: $says volumed' starts it" \
	xseg reload stack.conf
is "it is stopped" "$(peer_field volumed state)" stopped
is "the new peer runs" "$(peer_field more state)" running
sed -i '/^\[peer volumed\]/,/^\[peer top\]/s/^downstream = .*/downstream = more/' stack.conf
t "reload gives it another place, and does not wait for it" says_once \
	"volumed: $says volumed' starts it" xseg --timeout 60 reload stack.conf
is "it is stopped at none" "$(peer_field volumed state) $(path_of volumed)" "stopped "
sed -i '/^\[peer volumed\]/a threads = 2' stack.conf
is "reload says what differs of it alone" "$(xseg reload stack.conf 2>reload.err)" \
	"volumed does not run, and begins with the new threads when it is started; 'xseg peer start volumed' starts it"
is "it stays stopped" "$(peer_field volumed state)" stopped

# ---- until it is started by its name ----

t "it is started by its name" xseg peer start volumed
is "at its new place" "$(peer_field volumed state) $(path_of volumed)" "running more"
expect_json '[.[].stays_stopped | not] | all' "nothing stays stopped" xseg --json peer list
t "it is stopped once more" xseg peer stop volumed
t "peer restart with its name starts it, too" xseg peer restart volumed
t "it is killed with the supervisor" eval 'kill_supervisor && xseg peer kill volumed'
t "one that has died is started again" xseg up stack.conf
is "as it had been started" "$(peer_field volumed state)" running

# ---- what stands above it ----

sed -i '/^\[peer volumed\]/,/^\[peer top\]/s/^downstream = .*/downstream = cached/' stack.conf
t "it gets its old place" xseg reload stack.conf
t "the cache below it is stopped" xseg peer stop cached --force
t "the supervisor is killed" kill_supervisor
t "and so is volumed" xseg peer kill volumed
t "up does not wait for what stands on it, and says which stays stopped" says_once \
	"cached: $says cached' starts it" xseg --timeout 60 up stack.conf
t "and which waits for that" grep -qF "volumed: it is not started while cached is stopped" "$TMP/said"
t "the cache is started" xseg peer start cached
t "then volumed is, too" wait_for 60 state_is volumed running
t "all stops" xseg down
t "the stack comes up anew" xseg up stack.conf
t "without a peer that is stopped" all_serve
t "volumed is stopped" xseg peer stop volumed
t "all stops again" xseg down
t "and comes up" xseg up stack.conf
is "down has ended that" "$(peer_field volumed state)" running
t "all stops at last" xseg down

# ---- peers of one process ----

{ stack; printf '[run]\ntogether = memd cached volumed\n'; } >group.conf
t "a group comes up" xseg up group.conf
t "one of it is stopped" xseg peer stop volumed
t "all of the process are restarted" xseg peer restart --all
is "without that one" "$(peer_field memd state) $(peer_field cached state) $(peer_field volumed state)" \
	"running running stopped"
t "a second one of it is stopped" xseg peer stop cached --force
t "the first is started by its name" xseg peer start cached
is "and the other is not" "$(peer_field cached state) $(peer_field volumed state)" "running stopped"
t "the process of the rest is killed with the supervisor" \
	eval 'kill_supervisor && xseg peer kill memd --force && xseg peer kill cached --force'
t "up starts it" xseg --timeout 60 up group.conf
is "without that one, too" "$(peer_field memd state) $(peer_field cached state) $(peer_field volumed state)" \
	"running running stopped"
t "it is started" xseg peer start volumed
t "all of the group serve" all_serve
t "all stops in order" xseg down
finish
