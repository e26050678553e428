#!/bin/bash
# catalogue.sh - the objects of the catalogue are cut short, emptied or removed in a stopped store.
# The damage is reported, the certain part is served, no lost name is given away, and lost volumes
# come back with their data.
# tags: san
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"

cat >stack.conf <<END
[segment]
memory = 128M

[peer filed]
dir = $TMP/store

[peer cached]
downstream = filed
memory = 32M

[peer volumed]
downstream = cached
object_size = 1M
END

file_of()	# OBJECT
{
	find "$TMP/store" -name "$1"
}

up()
{
	xseg up stack.conf >up.txt 2>up.err
}

keep()
{
	rm -rf kept
	cp -a --sparse=always store kept
}

put_back()
{
	rm -rf store
	cp -a --sparse=always kept store
}

same_data()	# VOLUME IMAGE: the volume has the image's bytes, and zeroes after them
{
	xseg volume export "$1" - >"$TMP/.data" &&
		cmp -n "$(stat -c %s "$2")" "$TMP/.data" "$2"
}

all_there()
{
	same_data a a.raw && same_data b b.raw && same_data c c.raw
}

identity_of()	# VOLUME
{
	json_of .identity xseg --json volume info "$1"
}

tells_of_damage()	# WHAT
{
	ok_if "$1: up says so" grep -q "up: the catalogue of volumes is damaged.*xseg volume recover" up.err
	ok_if "$1: status does" grep -q "^DAMAGE .*xseg volume recover --list" <(xseg status)
	expect_json '.catalogue_damage | type == "string"' "$1: in JSON, too" xseg --json status
	expect_err 1 "catalogue of volumes is damaged.*'xseg volume recover --list'" \
		"$1: check does not call it sound" xseg check
}

ok_if()	# SENTENCE COMMAND...
{
	local sentence=$1
	shift
	if "$@" >"$TMP/.out" 2>&1; then
		ok "$sentence"
	else
		not_ok "$sentence" "$TMP/.out" up.err
	fi
}

data_is_found()	# WHAT: the volumes, of any names, have the three images; they are removed
{
	local v r found=0
	for v in a b c; do
		for r in $(xseg --json volume list | jq -r '.[].name'); do
			same_data "$r" $v.raw && xseg volume remove "$r" >/dev/null && found=$((found + 1))
		done
	done
	is "$1: the data of each is there" "$found" 3
	t "$1: and there is nothing else" [ "$(xseg --json volume list)" = "[]" ]
}

t "a stack comes up" up
for v in a b c; do
	t "volume $v is made" xseg volume create $v --size 3M
	yes "$v was here" | head -c 1310720 >$v.raw
	t "and has data" xseg volume import $v $v.raw
done
t "a volume is made and removed" xseg volume create gone --size 4M
t "so that its identity is used" xseg volume remove gone
t "and a last one" xseg volume create last --size 4M
last=$(identity_of last)
expect_json '.catalogue_damage == null and .lost_volumes == 0' "nothing is lost" xseg --json status
t "nothing is to be recovered" xseg volume recover
t "it goes down" xseg down
keep

harm()	# cut, empty or gone OBJECT
{
	case $1 in
	cut) truncate -s 512 "$(file_of "$2")" ;;
	empty) truncate -s 0 "$(file_of "$2")" ;;
	gone) rm "$(file_of "$2")" ;;
	esac
}

# ---- one of the three is wrong: nothing is lost ----

while read -r how object; do
	what="$object is $how"
	put_back
	t "$what: it is harmed" harm "$how" "$object"
	t "$what: the stack comes up" up
	tells_of_damage "$what"
	t "$what: all volumes are served" all_there
	expect_exit 4 "$what: a name is not given away" xseg volume create b --size 3M
	expect_json '. == []' "$what: no volume is lost" xseg --json volume recover --list
	t "$what: it is mended" xseg volume recover
	expect_json '.catalogue_damage == null' "$what: and whole" xseg --json status
	t "$what: check finds nothing" xseg check
	t "$what: it goes down" xseg down
	t "$what: and comes up" up
	is "$what: without a word" "$(notes up.err)" ""
	t "$what: with all volumes" all_there
	t "$what: one more is made" xseg volume create next --size 4M
	ok_if "$what: identities go on" [ "$(identity_of next)" -gt "$last" ]
	t "$what: down" xseg down
done <<END
cut :catalog
gone :catalog
empty :catalog.copy
gone :catalog.head
END

# ---- more is wrong: what no record proves comes back by recover ----

put_back
harm cut :catalog
harm gone :catalog.head
t "catalogue cut, header gone: the stack comes up" up
tells_of_damage "catalogue cut, header gone"
expect_exit 4 "what the copy alone has is not served" xseg volume info b
expect_err 4 "xseg volume recover" "nor is its name given away" xseg volume create b --size 3M
expect_json 'map(.name) == ["a", "b", "c", "last"] and all(.[]; .found_in == "record" and .usable)' \
	"it is listed as lost" xseg --json volume recover --list
xseg volume recover --list >list.txt
ok_if "in words, too" grep -E "^b +3.0M +2 +record +ok" list.txt 
expect_err 4 "the object :catalog cannot be read.*xseg volume recover" \
	"none is made meanwhile" xseg volume create other --size 4M
expect_json '.recovered == 4 and .left == 0' "it comes back" xseg --json volume recover
t "with all data" all_there
t "another one can be made" xseg volume create other --size 4M
t "it goes down" xseg down
t "it comes up" up
t "and has all data" all_there
t "it goes down again" xseg down

put_back
harm cut :catalog
harm cut :catalog.copy
t "catalogue and copy cut: the stack comes up" up
tells_of_damage "catalogue and copy cut"
expect_err 4 "objects? :catalog.* cannot be read.*xseg volume recover" \
	"catalogue and copy cut: none is made meanwhile" xseg volume create b --size 3M
expect_json 'length == 3 and all(.[]; .found_in == "objects" and .usable)' \
	"catalogue and copy cut: the objects tell" xseg --json volume recover --list
expect_json '.recovered == 3 and .left == 0' "catalogue and copy cut: they come back" \
	xseg --json volume recover
t "catalogue and copy cut: check finds nothing" xseg check
t "it goes down" xseg down
t "catalogue and copy cut: it comes up again" up
is "catalogue and copy cut: without a word" "$(notes up.err)" ""
data_is_found "catalogue and copy cut"
t "catalogue and copy cut: one more is made" xseg volume create next --size 4M
ok_if "catalogue and copy cut: identities go on" [ "$(identity_of next)" -gt "$last" ]
t "it goes down again" xseg down

# Without records nothing tells of a volume that was never written; so none may be called served.
put_back
harm cut :catalog
harm cut :catalog.copy
find "$TMP/store" -name '-*:*' -delete
t "no object is left: the stack comes up" up
ok_if "no object is left: up promises no more than it knows" \
	grep -q "cannot be read, and no volume is known to be lost" up.err
ok_if "no object is left: the log says the same" \
	grep -q "volumed: .*cannot be read, and no volume is known to be lost" "$TMP"/xseg*.log
t "no object is left: it is mended" xseg volume recover
t "no object is left: it goes down" xseg down

put_back
for object in :catalog :catalog.copy :catalog.head; do
	harm gone $object
done
t "all three are gone: the stack comes up" up
tells_of_damage "all three are gone"
expect_json 'length == 3 and all(.[]; .found_in == "objects" and .size_bytes == 2097152)' \
	"what has objects is listed, as large as these reach" xseg --json volume recover --list
ok_if "with what is not certain" grep -q "may have been larger" <(xseg volume recover --list)
t "they come back" xseg volume recover
data_is_found "all three are gone"
t "the stack goes down at last" xseg down

finish
