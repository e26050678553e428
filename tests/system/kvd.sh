#!/bin/bash
# kvd.sh - values by key: commands, refusals, a full log, and kvd killed, stopped and started under
# a load that sees what is lost or done twice.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host kvd cached filed memd kv_load jq

rounds=${LONG:+30}			# kills
rounds=${rounds:-3}

# write_stack FILE SIZE OPTION...: of the kvd called kv
write_stack()
{
	local file=$1 size=$2
	shift 2
	{
		printf '[segment]\nname = %s\nmemory = 256M\n' "$XSEG_SEGMENT"
		printf '[peer store]\nkind = memd\nmemory = 48M\n'
		printf '[peer cached]\ndownstream = store\nmemory = 16M\n'
		printf '[peer kv]\nkind = kvd\ndownstream = cached\nsize = %s\n' "$size"
		printf 'zone_size = 512k\ntail = 1M\n'
		printf '%s\n' "$@"
	} >"$file"
}

kv() { kv_load "$XSEG_SEGMENT" kv "$@"; }
says() { [[ "$(kv "${@:2}")" == $1 ]]; }
info() { peer_info | sed -n "s/^$1=//p"; }
peer_info() { kv info; }

# ---- what is refused at the start ----

for wrong in 'prefix = volumed:reserved' 'sync = often:never, written' 'preload = most:preload' \
	'reserve = 99:reserve'; do
	write_stack wrong.conf 32M "${wrong%%:*}"
	expect_err 2 "${wrong#*:}" "a stack with ${wrong%%:*} is refused" xseg up wrong.conf
done
write_stack wrong.conf 1M
expect_err 2 "too small" "so is a size of 1M" xseg up wrong.conf
write_stack wrong.conf 32M "threads = 2"
expect_err 2 "one thread" "and more than one thread" xseg up wrong.conf

# ---- commands ----

write_stack stack.conf 32M "keys = 20k"
t "a stack with a kvd comes up" xseg up stack.conf
is "20k keys are 20480" "$(field_of keys_max kv info)" 20480
t "a value is put" kv put a hello
t "and is there" says hello get a
t "a value of no bytes is put" kv put empty ""
t "and is there" says "" get empty
expect_exit 4 "a key that is not there is exit 4" kv get nothing
t "an absent key is added" kv add b world
expect_exit 4 "a present one is not" kv add b other
t "and has its value" says world get b
expect_exit 4 "an absent key is not replaced" kv replace c x
t "a value is appended" kv append a " world"
t "and prepended" kv prepend a "> "
t "the value is both" says "> hello world" get a
expect_exit 4 "nothing is appended to an absent key" kv append c x
t "a number is put" kv put n 18446744073709551615
t "it wraps around" says "result=0 version=* number=4" incr n 5
t "it does not go below 0" says "result=0 version=* number=0" decr n 5
t "a value that is no number is not counted" says "result=-22 *" incr a 1
t "a key exists" kv exists n
t "it is deleted" kv delete n
expect_exit 4 "and does not exist" kv exists n
expect_exit 4 "an absent key is not deleted" kv delete n
t "a flush succeeds" kv flush
t "a value that expires is put" kv put soon x $(($(date +%s) + 1000))
t "and is there" says x get soon
t "it is to expire soon" kv touch soon $(($(date +%s) + 2))
t "another one expires later" kv put later x $(($(date +%s) + 1000))
t "its expiry is changed" kv touch later $(($(date +%s) - 5))
expect_exit 4 "so it is gone" kv get later
expect_exit 4 "and cannot be replaced" kv replace later x
t "but added" kv add later y
is "a scan names all keys" "$(kv scan | grep -v '^soon ' | sort | tr '\n' ' ')" \
	"a 13 b 5 empty 0 later 1 "
is "a scan with a prefix names those" "$(kv scan la)" "later 1"
sleep 2.2
expect_exit 4 "a value that has expired is gone" kv get soon
expect_exit 4 "and does not exist" kv exists soon
t "the peers are sound" xseg check

# ---- the same data after a stop, and after a kill ----

t "kvd is stopped" xseg peer stop kv
xseg status >stopped.txt
t "status says so, and what starts it" grep -q "kv: stopped; .xseg peer start kv. starts it" stopped.txt
t "and started" xseg peer start kv
t "a value is still there" says "> hello world" get a
t "kvd is killed" xseg peer kill kv
t "a value is still there" says "> hello world" get a
expect_exit 4 "what was deleted is not" kv get n
expect_exit 4 "nor what has expired" kv get soon

# ---- another with the same prefix ----

expect_exit 4 "another kvd with its prefix is refused" \
	timeout 20 kvd -s "$XSEG_SEGMENT" --name=other --prefix=kv --size=32M --downstream=store

# ---- kills under load ----

start load kv_load "$XSEG_SEGMENT" kv load 3000 $((rounds * 3 / 2)) 3000 "$TMP/state" fua
load=$started
kills=0
while [ $kills -lt $rounds ]; do
	sleep 1.$((RANDOM % 900 + 100))	# of life, or the supervisor takes its time
	wait_for 60 state_is kv running && xseg peer kill kv >/dev/null && kills=$((kills + 1))
done
wait "$load"
is "a load saw nothing lost or done twice in $kills kills" "$?" 0
t "all values are as they should be" kv verify "$TMP/state"
t "the cache is killed, and kvd" xseg peer kill cached
t "kvd too" xseg peer kill kv
t "all values are still as they should be" kv verify "$TMP/state"
t "nothing is leaked" xseg check

# ---- down and up again, over a store that stays ----

t "it is stopped in order" xseg peer stop kv
t "and started" xseg peer start kv
t "all values are as they should be" kv verify "$TMP/state"
t "the stack goes down" xseg down

# ---- the tail of a dead one ----

cat >dead.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 128M
[peer filed]
dir = $TMP/objects
[peer kv]
kind = kvd
downstream = filed
size = 32M
sync = never
restart = no
END
t "a stack whose kvd is not started again comes up" xseg up dead.conf
t "a value is put" kv put a "in the tail"
t "kvd is killed" xseg peer kill kv
expect_exit 4 "the segment is not destroyed with that" xseg destroy
expect_err 4 "the store does not have" "nor does the stack go down" xseg down
t "up starts it again" xseg up dead.conf
t "the value is there" says "in the tail" get a
t "and goes down" xseg down

# ---- full ----

write_stack small.conf 8M
t "a small log comes up" xseg up small.conf
value=$(head -c 100000 /dev/zero | tr '\0' v)
n=0
while [ $n -lt 200 ] && kv put "k$n" "$value" >full.out 2>&1; do
	n=$((n + 1))
done
sed 's/^size = 8M/size = 16M/' small.conf >larger.conf
expect_err 4 "size of kv is 16M, and its log in the store has 8M, which cannot be changed" \
	"a reload to another size is refused" xseg reload larger.conf
expect_json '.applied == false and ([.differences[] | [.key, .how]] == [["size", "fixed"]])' \
	"as its differences say" xseg --json reload --dry-run larger.conf
is "and changes nothing" "$(xseg --json status | jq -r '.values[0].state')" open
t "it is full at some time" [ $n -lt 200 ]
t "a put says why" grep -q 'No space left' full.out
t "what was put is there" says "$value" get k$((n - 1))
for ((i = 0; i < n; i += 2)); do
	kv delete "k$i" >/dev/null || break
done
t "deletes work all the same" [ "$i" -ge "$n" ]
t "then there is room again" wait_for 60 kv put again "$value"
t "what was not deleted is there" says "$value" get k1
expect_err 1 "No space left.*; delete values, or move all to a larger kvd: 'xseg kv backup'" \
	"a value that is too large for what is left has a way out" \
	bash -c 'head -c 25M /dev/zero | xseg kv put large'
t "a kvd that is stopped gets another size" eval "xseg peer stop kv && xseg reload larger.conf"
expect_err 2 "kv runs and does not serve: its log .* was made with another size" \
	"its start says that it does not serve" xseg peer start kv
t "its log cannot be opened" wait_for 60 eval \
	"[ \$(xseg --json status | jq -r '.values[0].state') = broken ]"
is "which status says" "$(xseg status | sed -n 's/^values  *//p')" \
	"kv: broken: its log +kv cannot be opened: it was made with another size, zone_size or tail; start it with those"
t "it gets the right size again" xseg reload small.conf
t "the values are there" wait_for 60 says "$value" get again
t "the small stack goes down" xseg down

# ---- too many keys ----

write_stack few.conf 32M "keys = 50"
t "a stack for few keys comes up" xseg up few.conf
is "a verify right then waits for the log" "$(xseg --json kv verify | jq .bad)" 0
for ((n = 0; n < 50; n++)); do kv put "k$n" x >/dev/null || break; done
is "as many as it may have are put" "$n" 50
expect_err 1 "No space left.*; it has as many keys as it may.* keys=" \
	"one more is refused, and it is told why" bash -c 'echo x | xseg kv put more'
t "the stack goes down" xseg down
finish
