#!/bin/bash
# kvd_ready.sh - a kvd runs, and its log is not open: commands that start it wait while it is being
# opened, and say why it cannot be. Each ends with an exit code that is not 0 then.
# timeout: 200
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host kvd filed memd jq python3

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 128M
[peer filed]
dir = $TMP/objects
[peer kv]
kind = kvd
downstream = filed
size = 8M
zone_size = 256k
tail = 512k
END

spoil_heads()
{
	local head
	for head in objects/*/*/*head.[01]; do
		printf 'spoiled' | dd of="$head" bs=1 seek=100 conv=notrunc status=none
	done
}

# ---- a log that cannot be opened ----

t "a stack comes up" xseg up stack.conf
t "a value is put" bash -c "printf value | xseg kv put key"
t "the stack goes down" xseg down
cp -a objects good
spoil_heads
bad="kv runs and does not serve: its log \+kv cannot be opened: both of its heads are damaged; bring back .*--salvage'"
expect_err 1 "^xseg: up: $bad" "up says what is wrong, and what to do" xseg up stack.conf
is "and how many serve" "$(grep -c '^1 of 2 peers serve; ' .out)" 1
is "no line says that all do" "$(grep -c '^all ' .out)" 0
t "the other peer serves" state_is filed running
is "status has the reason" \
	"$(xseg status | grep -cE '^values +kv: broken: its log \+kv cannot be opened: both of its heads are damaged')" 1
is "JSON, too" "$(xseg --json status | jq '.values[0].reason | test("both of its heads")')" true
is "kv info has the error" "$(field_of error kv info)" EBADMSG
t "values are saved from there" xseg kv backup saved --salvage
expect_err 1 "^xseg: peer restart: $bad" "a restart of the peer says it" xseg peer restart kv
expect_err 1 "^xseg: peer restart: $bad" "a restart of all" xseg peer restart --all
t "the peer is stopped" xseg peer stop kv
expect_err 1 "^xseg: peer start: $bad" "a start" xseg peer start kv
sed -i 's/^tail = .*/tail = 768k/' stack.conf
expect_err 1 "^xseg: reload: $bad" "a reload that restarts it" xseg reload
t "one that changes nothing says nothing of it" xseg reload
sed 's/^size = 8M/&\nprefix = new/' stack.conf >new.conf
t "another prefix is applied" xseg reload new.conf
t "and it serves then" bash -c "printf value | xseg --timeout 5 kv put key"
t "the stack goes down" xseg down

rm -rf objects && cp -a good objects
sed -i 's/^tail = .*/tail = 512k/; s/^size = .*/size = 16M/' stack.conf
expect_err 2 "kv cannot be opened: it was made with another size, zone_size or tail; start it with those" \
	"up with another size is wrong usage" xseg up stack.conf
sed -i 's/^size = .*/size = 8M/' stack.conf
t "a reload with the right one mends that" xseg reload stack.conf
is "all is there" "$(xseg kv get key)" value

# ---- a store that is away ----

generation=$(peer_field kv generation)
t "the store is stopped" xseg peer stop filed --force
expect_err 1 "kv cannot stop: it needs filed, which is stopped; start that \('xseg peer start filed'\)" \
	"a restart above a stopped store says that" xseg peer restart kv
t "the store is started" xseg peer start filed
t "then the restart goes on" wait_for 60 eval '[ "$(peer_field kv generation)" -gt $generation ] && all_serve'
t "the peer is stopped" xseg peer stop kv
t "the store is stopped" xseg peer stop filed
expect_err 1 "peer start: kv runs and does not serve: its log is not open, as it needs filed, which is stopped; 'xseg peer start filed' starts it" \
	"so does a start" xseg peer start kv
t "the store is started" xseg peer start filed
t "then the log is opened" wait_for 60 eval '[ "$(field_of state kv info)" = open ]'
t "the stack goes down" xseg down

# ---- a log that takes long to be opened ----

cat >slow.conf <<END
[segment]
memory = 160M
[peer memd]
memory = 32M
[peer kv]
kind = kvd
downstream = memd
size = 16M
zone_size = 256k
tail = 512k
END
. "$root/tests/lib/manager.sh"

t "a stack comes up" xseg up slow.conf
head -c 100000 /dev/zero >value
for n in $(seq 40); do
	xseg --quiet kv put "key $n" value || not_ok "value $n is put"
done
t "the store is slow, also as a new process" xseg peer set memd latency=50ms --save
# The store stands still as soon as the log is being opened, so that this goes on until the time ends.
# A slow machine takes longer until then, and has more time.
begins_after()		# GENERATION: there is another process, or the restart has ended
{
	[ "$(peer_field kv generation)" -gt "$1" ] || ! kill -0 "$started"
}
restarts_for_too_long()
{
	local seconds generation code store
	store=$(peer_field memd pid)
	for seconds in 3 6 12 24; do
		generation=$(peer_field kv generation)
		start restart xseg --timeout $seconds peer restart kv
		wait_for 60 begins_after "$generation"
		freeze "$store"
		wait "$started"
		code=$?
		kill -CONT "$store"
		[ $code -ne 3 ] || ! tail -n 1 restart.log |
			grep -E '^xseg: timed out: peer restart: kv runs and does not serve yet: its log is being opened.*, and that goes on' ||
			return 0
		cat restart.log
	done
	return 1
}
t "a restart that may not wait so long says so" restarts_for_too_long
t "a restart of all waits until it is" env NOTIFY_SOCKET="$manager" xseg peer restart --all
is "it is open" "$(field_of state kv info)" open
all_noted
t "meanwhile the manager is told that it takes longer" \
	grep -qE '^STATUS=peer restart: kv opens its log \([0-9]+%\)$' notes
t "and for how long" grep -qx 'EXTEND_TIMEOUT_USEC=60000000' notes
supervisor=$(xseg --json status | jq .supervisor.pid)
t "the supervisor is killed" kill_hard "$supervisor"
t "so is the peer" xseg peer kill kv
: >notes
NOTIFY_SOCKET=$manager start front xseg up slow.conf --service
front=$started
t "the manager is told when all serve" wait_for 60 grep -qx READY=1 notes
is "the log is open then" "$(field_of state kv info)" open
all_noted
t "before, that it takes longer" eval "sed '/^READY=1$/q' notes | grep -q '^STATUS=up: kv opens its log'"
is "at the end all serve" "$(grep STATUS notes | tail -n 1)" "STATUS=all peers serve"
t "the supervisor is killed" kill_hard "$(xseg --json status | jq .supervisor.pid)"
wait "$front"
t "so is the peer" xseg peer kill kv
: >notes
NOTIFY_SOCKET=$manager start front xseg up slow.conf --service
front=$started
t "the log is opened once more" wait_for 60 grep -q '^STATUS=up: kv opens its log' notes
kill -TERM "$front"
wait "$front"
is "SIGTERM meanwhile ends the service in order" "$?" 0
all_noted
is "the manager was told of the stop alone" "$(grep -xE 'READY=1|STOPPING=1' notes)" STOPPING=1
expect_exit 4 "and nothing is left" xseg info

# ---- a service whose kvd is broken ----

spoil_heads
: >notes
NOTIFY_SOCKET=$manager start front xseg up stack.conf --service
front=$started
t "the service starts" wait_for 60 grep -qx READY=1 notes
t "its state says that not all serve" \
	grep -qx "STATUS=1 peer does not serve, see 'xseg -s $XSEG_SEGMENT status'; the others do" notes
t "its journal says why" grep -qE "^xseg: up: $bad" front.log
kill -TERM "$front"
wait "$front"
is "SIGTERM ends it in order" "$?" 0
finish
