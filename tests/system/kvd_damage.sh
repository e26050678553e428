#!/bin/bash
# kvd_damage.sh - a kvd whose store was changed behind its back, and what a kvd refuses: each is one
# line with the cause and the next step, and an exit code. Nothing else is lost.
# tags: san
# timeout: 150
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host kvd filed jq python3

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

# harm.py CHARACTER: changes a byte of the value that consists of these
cat >harm.py <<'END'
import glob, sys

for name in glob.glob("objects/*/*/*"):
    with open(name, "r+b") as file:
        at = file.read().find(sys.argv[1].encode() * 2000)
        if at >= 0:
            file.seek(at + 1000)
            file.write(b"?")
            print(name)
END

value() { head -c 9000 /dev/zero | tr '\0' "$1"; }
serves() { xseg kv verify >/dev/null 2>&1 || [ $? -eq 1 ]; }
up()
{
	t "the stack comes up" xseg up stack.conf
	t "the log is open" wait_for 60 serves
}
head_of() { ls objects/*/*/*head."$1"; }
log=$TMP/xseg-$XSEG_SEGMENT.log

t "a stack comes up" xseg up stack.conf
for letter in a b c d e f g h i j k l; do
	value $letter | xseg --quiet kv put "key $letter" || not_ok "$letter is put"
done
t "all is below and stable" xseg down

# ---- a record ----

up
is "no record is bad" "$(field_of bad_records kv info)" 0
is "a byte of a value is changed in its file" "$(python3 harm.py d | wc -l)" 1
damaged="Input/output error; .*'xseg kv verify' shows which"
for _ in 1 2 3; do
	expect_err 1 "kv get key d: $damaged" "a get of it fails, and says how to go on" \
		xseg kv get "key d"
done
is "it is counted once" "$(field_of bad_records kv info)" 1
is "and told once, with its place" "$(grep -c 'record of 9[0-9]* bytes at [0-9]* of +kv:0*1 is damaged' "$log")" 1
for letter in c e l; do
	is "the rest is served" "$(xseg kv get "key $letter")" "$(value $letter)"
done
expect_err 1 "kv info key d: $damaged" "what is known of it is an error, too" xseg kv info "key d"
xseg kv verify >verify.out 2>verify.err
is "a verify fails" "$?" 1
is "it names the key and sums up" "$(sed 's/[0-9][0-9]*/N/g' verify.err)" \
	"xseg: kv verify key d: Input/output error; the value or the store is damaged: 'xseg kv verify' shows which
xseg: kv verify: N of N records are damaged, N of them live; put these values again, or delete them"
t "and the place" grep -qE '^damaged  \+kv:0*1 place=[0-9]+ bytes=9[0-9]+ live=yes$' verify.out
is "in JSON, too" "$(xseg --json kv verify 2>/dev/null |
	jq -c '[.keys, .bad, .bad_live, (.bad_records | length), .bad_keys[].key]')" '[12,1,1,1,"key d"]'
is "it counts the bytes of all records" \
	"$(xseg --json kv verify 2>/dev/null | jq '.bytes > 100000 and .records == 12')" true
expect_err 1 "kv export key d: $damaged" "an export says that it is not whole" xseg kv export dir
t "kvd is stopped" xseg peer stop kv
t "and started" xseg peer start kv
t "the log is open" wait_for 60 serves
expect_err 1 "$damaged" "the value is still an error" xseg kv get "key d"
t "it is put again" bash -c "printf new | xseg kv put 'key d'"
is "and is there" "$(xseg kv get "key d")" new
t "a value that is damaged may be deleted" bash -c "python3 harm.py f && ! xseg kv get 'key f' &&
	xseg kv delete 'key f'"
expect_err 4 "no key" "and is gone" xseg kv get "key f"
xseg --json kv verify >verify.json 2>/dev/null
is "no live record is damaged then" "$(jq -c '[.keys, .bad_live, .bad_keys]' verify.json)" '[11,0,[]]'
t "an export is whole" xseg kv export whole
is "it has all others" "$(ls whole | wc -l)" 11
t "the stack goes down" xseg down

# ---- heads ----

cp -a objects good
spoil() { printf 'spoiled' | dd of="$1" bs=1 seek="${2:-100}" conv=notrunc status=none; }

for nr in 0 1; do
	spoil "$(head_of $nr)"
	rm -f "$log"
	up
	t "one damaged head is told" grep -q "one of the two heads of the log is damaged" "$log"
	is "all values are there" "$(xseg --json kv list | jq length)" $((11 + nr))
	is "and whole" "$(xseg kv get "key a")" "$(value a)"
	t "more is put" bash -c "printf $nr | xseg kv put more"
	t "the stack goes down" xseg down
done

# no_log CAUSE [CODE]: the log cannot be opened
no_log()
{
	local before code=${2:-1}
	before=$(find objects -type f -exec sha256sum {} + | sort)
	rm -f "$log"
	expect_err "$code" "kv runs and does not serve: .*$1" "up says why, and what to do" xseg up stack.conf
	t "so does the log" grep -qE "$1" "$log"
	expect_err "$code" "its log cannot be opened; the log of the stack says why" "a get fails" \
		xseg kv get "key a"
	expect_err "$code" "its log cannot be opened" "a put does" bash -c 'printf x | xseg kv put x'
	expect_err 4 "its log cannot be opened" "a verify is refused" xseg kv verify
	is "its state is told" "$(field_of state kv info)" broken
	t "the stack goes down" xseg down
	is "and nothing was changed" "$(find objects -type f -exec sha256sum {} + | sort)" "$before"
}

# twice: the zones of the first one are gone
head -c 1500000 /dev/urandom >large.bin
up
head -c 1200000 /dev/zero >old.bin
t "a large value is put" xseg kv put large old.bin
t "and put again" xseg kv put large large.bin
t "the stack goes down" xseg down
cp -a objects newest
spoil "$(head_of 0)"
spoil "$(head_of 1)"
no_log "both of its heads are damaged; bring back .*head.1 from a copy of the store, or .*--salvage'"

# ---- salvage ----

rm -f "$log"
expect_err 1 "xseg.* kv backup FILE --salvage'" "up of a log with two bad heads names the salvage" \
	xseg up stack.conf
t "so does the log of the stack" grep -q "xseg.* kv backup FILE --salvage'" "$log"
expect_err 1 "'xseg kv backup FILE --salvage' saves its values" "a backup names the salvage" \
	xseg kv backup saved
t "a salvage writes a file" xseg kv backup saved --salvage
is "its state is told" "$(field_of state kv info)" salvaged
expect_err 1 "'xseg kv backup FILE --salvage' saves its values" "a get is refused still" \
	xseg kv get "key a"
expect_err 1 "its log cannot be opened" "a put, too" bash -c 'printf x | xseg kv put x'
t "the stack goes down" xseg down
sed 's/^kind = kvd/&\nprefix = new/' stack.conf >new.conf
t "the stack comes up with another prefix" xseg up new.conf
t "the log is open" wait_for 60 serves
expect_err 4 "its log is open; leave out --salvage" "it has no need of a salvage" \
	xseg kv backup other --salvage
t "what was saved is restored" xseg kv restore saved
is "all keys are there" "$(xseg --json kv list | jq -r '.[].key' | sort | md5sum)" \
	"$(printf '%s\n' "key "{a,b,c,d,e,g,h,i,j,k,l} more large | sort | md5sum)"
is "those that were put again are the last ones" "$(xseg kv get "key d") $(xseg kv get more)" "new 1"
for letter in a b c e g h i j k l; do
	[ "$(xseg kv get "key $letter")" = "$(value $letter)" ] || not_ok "key $letter is whole"
done
is "a large value is whole" "$(xseg kv get large | md5sum)" "$(md5sum <large.bin)"
t "the stack goes down" xseg down
rm -rf objects && cp -a newest objects
spoil "$(head_of 0)"
spoil "$(head_of 1)"

t "one head is brought back" cp newest/${first:=$(cd newest && ls ./*/*/*head.0)} "objects/$first"
up
is "all values are there again" "$(xseg --json kv list | jq length)" 13
t "the stack goes down" xseg down

# ---- a log of another version, or of another size ----

rm -rf objects && cp -a newest objects
for nr in 0 1; do
	python3 - "$(head_of $nr)" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    at = file.read().find(b"XSGLOG01")
    file.seek(at)
    file.write(b"XSGLOG77")
END
done
no_log "another version of xseg has made it; start that version and make a backup, or give another"
rm -rf objects && cp -a newest objects
sed -i 's/size = 8M/size = 16M/' stack.conf
no_log "it was made with another size, zone_size or tail; start it with those" 2
sed -i 's/size = 16M/size = 8M/' stack.conf
sed -i 's/^tail/keys = 5\ntail/' stack.conf
rm -f "$log"
few="more keys than keys= allows; start it with more"
expect_err 1 "$few" "with too few keys up says what to do" xseg up stack.conf
t "so does the log" grep -q "$few" "$log"
t "the stack goes down" xseg down
sed -i '/^keys/d' stack.conf

# ---- a prefix in use ----

up
expect_err 4 "'kv' has that prefix, or one with the same number; give this kvd another prefix=" \
	"another kvd with its prefix is refused, with what to do" \
	timeout 20 kvd -s "$XSEG_SEGMENT" --name=other --prefix=kv --size=64M --downstream=filed
is "the first one serves on" "$(xseg kv get "key a")" "$(value a)"

# ---- keys ----

long=$(head -c 65536 /dev/zero | tr '\0' k)
t "a key of 64 KiB is put" bash -c "printf long | xseg kv put '$long'"
is "and is there" "$(xseg kv get "$long")" long
for command in put get delete exists info; do
	args=()
	[ $command != put ] || args=(stack.conf)
	expect_err 2 "a key has at most 64 KiB; use a shorter one" "a longer one is refused by $command" \
		xseg kv $command "${long}k" "${args[@]}"
	expect_err 2 "word 1 is empty" "and an empty one" xseg kv $command "" "${args[@]}"
done
t "it is deleted" xseg kv delete "$long"

# ---- a full log ----

filling="No space left on device; delete values, or move all to a larger kvd"
big=$(head -c 100000 /dev/zero | tr '\0' v)
nr=0
while [ $nr -lt 200 ] && printf '%s' "$big" | xseg --quiet kv put "big $nr" 2>full.err; do
	nr=$((nr + 1))
done
t "the log is full at some time" test $nr -lt 200 -a $nr -gt 20
is "a put says so in one line" "$(grep -cE "^xseg: kv put big $nr: $filling" full.err)" 1
expect_err 1 "$filling" "that is exit 1" bash -c "printf %s $big | xseg kv put more"
is "the value that was there stays" "$(xseg kv get more)" 1
for n in $(seq 0 $((nr - 1))); do
	[ "$(xseg kv get "big $n")" = "$big" ] || not_ok "value $n is there"
done
is "all others, too" "$(xseg kv get "key a")" "$(value a)"
t "a delete works" xseg kv delete "big 0"
t "and another" xseg kv delete "big 1"
is "kvd counts what it refused" "$(xseg --json kv info | jq '.refused >= 2')" true
puts_again() { printf '%s' "$big" | xseg kv put again; }
t "then there is room" wait_for 60 puts_again
is "nothing is damaged" "$(xseg --json kv verify 2>/dev/null | jq .bad_live)" 0
t "nothing is leaked" xseg check
t "the stack goes down" xseg down
up
is "all is there after a stop" "$(xseg --json kv list | jq length)" $((13 + nr - 2 + 1))
t "the stack goes down" xseg down
finish
