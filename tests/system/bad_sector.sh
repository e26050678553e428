#!/bin/bash
# bad_sector.sh - the disk has a bad sector in an object of the catalogue. The volumes that are
# certain are served, and a recovery brings the others back and comes to an end.
#
# The filed is one with such a disk (tests/tools/sick_filed.c).
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached sick_filed jq

cat >stack.conf <<END
[segment]
memory = 96M
[peer filed]
dir = $TMP/store
[peer cached]
downstream = filed
memory = 16M
[peer volumed]
downstream = cached
object_size = 1M
END
mkdir bin
cp "$BUILD"/bin/{xseg,xseg-host,volumed,cached} bin
cp "$BUILD/tests/sick_filed" bin/filed
export PATH="$TMP/bin:$PATH"
export SICK_READ=$TMP/sick

is_known()
{
	json_of '.catalogue_damage | type == "string"' xseg --json status
}

wait_for_damage()
{
	wait_for 60 is_known >/dev/null
	xseg --json status
}

all_there()
{
	local v
	for v in a b; do
		xseg volume export $v - | cmp -n 1310720 - $v.raw || return
	done
}

t "a stack comes up" xseg up stack.conf
for v in a b; do
	yes "$v was here" | head -c 1310720 >$v.raw
	t "volume $v is made" xseg volume create $v --size 3M
	t "and has data" xseg volume import $v $v.raw
done
t "it goes down" xseg down
cp -a --sparse=always store kept

while read -r object byte header served; do
	what="byte $byte of $object, header $header"
	rm -rf store
	cp -a --sparse=always kept store
	[ "$header" = there ] || find store -name ":catalog.head" -delete
	echo "$object $byte" >sick
	t "$what: the stack comes up" xseg up stack.conf
	expect_json '.catalogue_damage | type == "string"' "$what: the damage is known" \
		wait_for_damage
	t "$what: the log says which object, and how much of it" grep -q \
		"1 of the 1024 pages of the object $object cannot be read: Input/output error" \
		"$TMP"/xseg*.log
	expect_json "length == $served" "$what: what is certain is listed" xseg --json volume list
	expect_err 4 "$object cannot be read.*xseg volume recover" "$what: no volume is made" \
		xseg volume create c --size 1M
	t "$what: it is recovered" xseg volume recover
	t "$what: which has mended the sector" [ ! -e sick ]
	t "$what: all volumes are there, with their names" all_there
	expect_json '.catalogue_damage == null' "$what: nothing is damaged" xseg --json status
	t "$what: it goes down" xseg down
	rm -f "$TMP"/xseg*.log
	t "$what: and comes up" xseg up stack.conf
	t "$what: with all volumes" all_there
	t "$what: a volume is made" xseg volume create c --size 1M
	t "$what: down" xseg down
done <<END
:catalog 700 there 2
:catalog.copy 100 there 2
:catalog 700 gone 0
:catalog.copy 40000 gone 2
END

# ---- a header that is refused, and nothing else ----

rm -rf store
t "a stack comes up on a new store" xseg up stack.conf
t "a volume is made" xseg volume create a --size 1M
t "and removed" xseg volume remove a
t "it goes down" xseg down
find store -name ":catalog" -delete
find store -name ":catalog.copy" -delete
echo ":catalog.head 0" >sick
t "only the header is left, and is refused: the stack comes up" xseg up stack.conf
expect_json '.catalogue_damage | test("catalog.head cannot be read")' "the damage is known" \
	wait_for_damage
t "a list is answered" xseg volume list
t "it is recovered" xseg volume recover
t "a volume is made" xseg volume create a --size 1M
t "it goes down" xseg down
finish
