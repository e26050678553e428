#!/bin/bash
# kv.sh - `xseg kv`: values from files and back, keys of any bytes, directories, JSON, exit codes;
# nothing is lost when kvd or the cache below it is killed.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg kvd cached memd jq cmp

cat >stack.conf <<END
[segment]
memory = 160M

[peer memd]
memory = 48M

[peer cached]
downstream = memd
memory = 24M

[peer values]
kind = kvd
downstream = cached
size = 40M
END
expect_err 4 "none of that name" "without a segment it says so" xseg kv list
t "a stack comes up" xseg up stack.conf
is "a store is empty at first" "$(xseg kv list)" "no keys"
is "and in JSON" "$(xseg --json kv list | jq -c .)" "[]"

# ---- one value ----

head -c 100000 /dev/urandom >value
t "a file is put" xseg kv put file value
t "standard input is put" bash -c 'printf hello | xseg kv put greeting'
t "and by its name -" bash -c 'printf "" | xseg kv put empty -'
is "a value comes back on standard output" "$(xseg kv get greeting)" "hello"
is "one of no bytes too" "$(xseg kv get empty | wc -c)" 0
t "and into a file" xseg kv get file copy
t "which has the same bytes" cmp value copy
expect_err 4 "copy exists; .*--force" "a file that is there is not replaced" xseg kv get file copy
echo old >copy
t "but with --force" xseg kv get file copy --force
t "which has the bytes again" cmp value copy
errors() { json_of '.peers[] | select(.name == "values").errors' xseg --json stat; }
before=$(errors)
expect_err 4 "no key 'none'; 'xseg kv list'" "an absent key is 4" xseg kv get none
expect_err 4 "no key 'none'" "for exists too" xseg kv exists none
expect_err 4 "no key 'none'" "and for delete" xseg kv delete none
expect_err 4 "no key 'none'" "and for info" xseg kv info none
is "which counts as no error" "$(errors)" "$before"
t "a key that is there exists" xseg kv exists greeting
expect_err 4 "is there already" "--if-absent refuses it" \
	bash -c 'echo other | xseg kv put greeting --if-absent'
is "and changes nothing" "$(xseg kv get greeting)" "hello"
t "a put replaces a value" bash -c 'printf bye | xseg kv put greeting --stable'
is "by the new one" "$(xseg kv get greeting)" "bye"
t "a key is deleted" xseg kv delete greeting
expect_err 4 "no key" "and is gone" xseg kv exists greeting
expect_err 4 "No such file" "a file that is not there is told" xseg kv put a nofile
expect_err 1 "put large: No space left" "a value that the store has no room for is refused" \
	bash -c 'head -c 60M /dev/zero | xseg kv put large'

# ---- JSON, flags, expiry ----

t "flags are kept with a value" bash -c 'printf x | xseg kv put flags --client-flags 77'
is "and told" "$(xseg --json kv info flags | jq -c '[.key, .value_bytes, .client_flags]')" \
	'["flags",1,77]'
is "a value is text in JSON" "$(field_of value kv get flags)" x
t "a value that is no text is put" bash -c 'printf "\377\0" | xseg kv put flags'
is "and is base64 in JSON" "$(xseg --json kv get flags | jq -r .value_base64)" "/wA="
t "a value gets a time to live" bash -c 'printf x | xseg kv put soon --ttl 1h'
is "it is there" "$(xseg kv get soon)" x
t "it gets a shorter one" bash -c 'printf x | xseg kv put soon --ttl 1s'
gone() { ! xseg kv exists soon 2>/dev/null; }
t "until that time has passed" wait_for 60 gone
t "it may be put again" bash -c 'printf x | xseg kv put soon'

# ---- keys of any bytes ----

t "a key of any bytes is put" bash -c "printf 1 | xseg kv put --encoded 'a%00%FF%0A/../%25'"
is "it is listed percent-encoded" "$(xseg kv list | grep '^a')" 'a%00%FF%0A/../%25'
is "that leads back to it" "$(xseg kv get --encoded 'a%00%FF%0A/../%25')" 1
is "JSON has it in base64" "$(xseg --json kv list | jq -r '.[].key_base64 | values')" \
	"$(printf 'a\0\377\n/../%%' | base64)"
t "a key of letters is put" bash -c 'printf 2 | xseg kv put "größe 50%"'
is "it is listed as it is, but for the %" "$(xseg kv list --prefix gr)" "größe 50%25"
is "and is text in JSON" "$(xseg --json kv list --prefix gr | jq -r '.[].key')" "größe 50%"
expect_err 2 "without two digits" "a bad encoding is refused" xseg kv get --encoded '50%'
is "a list has sizes" "$(xseg kv list --long --prefix gr | awk 'NR == 2 { print $1, $5 }')" \
	"1 größe"

# ---- directories of one name a key ----

long=$(head -c 300 /dev/zero | tr '\0' x)
printf 3 | xseg --quiet kv put "$long"
printf 4 | xseg --quiet kv put ../escaped
printf 5 | xseg --quiet kv put .hidden
mkdir outside
ln -s ../outside link
t "all values are exported" xseg kv export dir --flat
is "nothing is outside of the directory" "$(ls -A outside; find .. -maxdepth 1 -name "*escaped*")" ""
is "names are percent-encoded" "$(find dir -name "%2E.%2Fescaped" | wc -l)" 1
t "values are in the files" cmp value dir/file
is "a long name is cut" "$(find dir -type d | wc -l)" 2
expect_err 4 "exists; .*--force" "files are not replaced" xseg kv export dir --flat
t "but with --force" xseg kv export dir --flat --force
is "no partial file is left" "$(find dir -name '*partial*')" ""
xseg --json kv list | jq -S 'map(del(.version)) | sort_by(.key, .key_base64)' >before
keys=$(jq length before)
for key in $(xseg kv list | sed 's/ /%20/g'); do xseg --quiet kv delete --encoded "$key"; done
is "all keys are deleted" "$(xseg kv list)" "no keys"
ln -s /etc/passwd dir/passwd
mkdir dir/sub
printf 6 >dir/sub/name
t "all values are imported" xseg kv import dir --flat
xseg --json kv list | jq -S 'map(del(.version)) | sort_by(.key, .key_base64)' >after
is "and are those that were exported" \
	"$(jq -c 'map(select(.key != "sub/name"))' after)" "$(jq -c 'map(.client_flags = 0)' before)"
is "a file of a directory has a / in its key" "$(xseg kv get sub/name)" 6
expect_err 4 "no key" "links are left out" xseg kv exists passwd
is "an import says how many" "$(xseg --json kv import dir --flat --prefix p/ | jq -c '[.keys, .skipped]')" \
	"[$((keys + 1)),1]"
is "behind the prefix" "$(xseg kv get p/sub/name)" 6
is "an export of a prefix has no other" \
	"$(xseg kv export part --flat --prefix p/sub >/dev/null && ls part)" "p%2Fsub%2Fname"
ln -s outside part/evil%
t "a link in the place of a part of a name is made" \
	bash -c "rm -r dir && mkdir dir && ln -s ../outside 'dir/${long:0:254}%'"
expect_err 4 "Not a directory|Too many levels" "it is not followed" xseg kv export dir --flat
is "and nothing is behind it" "$(ls -A outside)" ""

# ---- the whole store ----

is "info of one key begins with it" "$(xseg kv info sub/name | head -n 2 | paste -sd ' ')" \
	"key      sub/name value    1 bytes"
nr=$(xseg --json kv list | jq length)
is "kv info counts the keys" "$(field_of keys kv info)" "$nr"
is "and has the fields that scripts use" "$(xseg --json kv info | jq -c '[.keys, .live_bytes,
	.log_bytes, .zones, .index_bytes, .puts, .gets, .deletes, .hits, .misses, .compacted_bytes,
	.bad_records, .opened_ns | numbers] | length')" 13
is "sync too" "$(field_of sync kv info)" 1s
xseg kv info >info.txt
for line in "^keys      $nr of [0-9]* *" '^log       .* live, in [0-9]* zones* of' '^sync      1s: ' \
	'^requests  [0-9]* gets (' '^index     .* of RAM, built in'; do
	t "people read it, too: $(cut -c2-7 <<<"$line")" grep -q "$line" info.txt
done
is "a verify reads all" "$(xseg --json kv verify | jq -c '[.keys, .bad, .bad_keys]')" "[$nr,0,[]]"
t "and says so" xseg kv verify
t "a flush returns" xseg kv flush
expect_err 4 "no kvd called other" "another kvd is not there" xseg kv list --kvd other
t "this one is known by its name" xseg kv list --kvd values

# ---- backup and restore ----

list_of() { xseg --json kv list | jq -cS 'map(del(.version)) | sort_by(.key, .key_base64)'; }
printf old | xseg --quiet kv put twice
printf new | xseg --quiet kv put twice --client-flags 5
printf x | xseg --quiet kv put deleted
xseg --quiet kv delete deleted
before=$(list_of)
is "a backup has all records" "$(xseg --json kv backup saved | jq '.bad == 0 and .records > 10')" true
expect_err 4 "exists; .*--force" "it replaces no file" xseg kv backup saved
t "but with --force" xseg kv backup saved --force
is "it may go into a pipe" "$(xseg kv backup - | wc -c)" "$(stat -c %s saved)"
expect_err 4 "has keys already; .*--force" "a store with keys is not restored" xseg kv restore saved
for key in $(xseg kv list | sed 's/ /%20/g'); do xseg --quiet kv delete --encoded "$key"; done
printf y | xseg --quiet kv put other
xseg --quiet kv delete other
head -c -100 saved >"cut"
expect_err 1 "not a whole backup" "a backup that is cut is refused" xseg kv restore cut
sed 's/hello/jello/; s/new/wen/' saved >damaged
expect_err 1 "not a whole backup" "and one that is damaged" xseg kv restore damaged
expect_err 2 "is no backup" "and another file" xseg kv restore value
is "nothing was put" "$(xseg kv list)" "no keys"
t "a backup is restored" xseg kv restore saved
is "all values are there with their flags" "$(list_of)" "$before"
is "in their newest form" "$(xseg kv get twice)" new
t "a value of it is whole" bash -c 'xseg kv get file - | cmp - value'
nr=$(xseg --json kv list | jq length)

# ---- status, statistics, the cache's settings ----

has_line() { xseg status | grep -qE "^values +values: open, $nr of [0-9]+ keys"; }
t "status shows the store" has_line
is "and not that there are no volumes" "$(xseg status | grep -c '^volumes')" 0
is "in JSON as well" "$(xseg --json status | jq -c '.values[] | [.name, .state, .keys]')" \
	"[\"values\",\"open\",$nr]"
is "stat counts gets, puts and keys" "$(xseg --json stat |
	jq -c '.values[] | [.name, .keys, .gets > 0, .puts > 0, .ops > 0]')" \
	"[\"values\",$nr,true,true,true]"
is "and in a table" "$(xseg stat | awk '$1 == "VALUES" { getline; print $1 }')" values
t "a cache is set for the values of a kvd" \
	xseg cache set cached --volume +values policy=write-through
is "which it tells" "$(xseg cache get cached --volume +values | grep policy)" \
	"policy=write-through"
is "by its name" "$(xseg --json cache status cached | jq -r '.volumes[].name')" "+values"
expect_err 4 "no kvd that sends through the cache has that prefix" "another prefix is refused" \
	xseg cache set cached --volume +other policy=write-through
t "the setting is taken back" xseg cache set cached --volume +values policy=
mkfifo slow
start put bash -c 'xseg kv put slow slow'
has_client() { xseg --json peer list | jq -e 'any(.[]; .kind == "client")' >/dev/null; }
t "a program has the store open" wait_for 60 has_client
expect_err 4 "have its .*open: xseg" "kvd is not stopped meanwhile" xseg peer stop values
echo x >slow
wait "$started"
is "which goes on" "$?" 0
t "kvd is restarted" xseg peer restart values
is "and has its values" "$(xseg kv get slow)" x

# ---- all at once ----

expect_err 2 "a KEY, or --all" "a delete without a key is refused" xseg kv delete
expect_err 2 "--all takes no KEY" "and one of a key and all" xseg kv delete soon --all
expect_err 2 "--in goes with --all" "and a time for one key" xseg kv delete soon --in 3s
# Once more where the machine took longer than these 2 s to put it.
delete_soon()
{
	local began
	until began=${EPOCHREALTIME/./} && xseg kv delete --all --in 2s &&
			printf x | xseg kv put meanwhile &&
			[ $((${EPOCHREALTIME/./} - began)) -lt 2000000 ]; do
		[ $((++delays)) -lt 20 ] || return
	done
}
delays=0
t "all are to be deleted in a while, and a value is put meanwhile" delete_soon
no_keys() { [ "$(xseg kv list)" = "no keys" ]; }
t "then all are gone" wait_for 60 no_keys
t "some are put again" bash -c 'for k in 1 2 3 meanwhile; do printf x | xseg kv put "$k"; done'
is "and deleted at once" "$(xseg --json kv delete --all --stable | jq -c .state)" '"deleted"'
t "so none is there" no_keys
is "nor counted" "$(xseg --json kv info | jq -c '[.keys, .live_bytes]')" "[0,0]"

# ---- kills ----

mkdir many
for i in $(seq 200); do head -c $((i * 97)) /dev/urandom >"many/$i"; done
t "many values are put" xseg kv import many --prefix many-
for victim in values cached memd; do
	t "$victim is killed" xseg peer kill "$victim"
	t "all values are there again" xseg kv export "after-$victim" --prefix many-
	for i in $(seq 200); do cmp "many/$i" "after-$victim/many-$i"; done >differences 2>&1
	is "and are what was put, after $victim was killed" "$(cat differences)" ""
done
is "the segment is sound" "$(field_of ok check)" true
is "no client is left" "$(xseg --json peer list | jq '[.[] | select(.kind == "client")] | length')" 0
t "the stack stops" xseg down
finish
