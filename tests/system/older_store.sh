#!/bin/bash
# older_store.sh - a store that commit 05ab3fc made opens and serves, and is brought over volume by
# volume. Objects that are made in it from now on have an identity, and an older program refuses it.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"

need tar

t "the kept store is unpacked" tar -xzf "$root/tests/data/store-05ab3fc.tar.gz" || finish
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
object_size = 64k
END

image()		# FILE SIZE [FROM LENGTH]...: what tests/data/README.md says of the volume
{
	local file=$1
	truncate -s "$2" "$file.raw"
	shift 2
	while [ $# -gt 0 ]; do
		yes "$file at $1" | head -c "$2" |
			dd of="$file.raw" bs=512 seek=$(($1 / 512)) conv=notrunc status=none
		shift 2
	done
}

same_data()	# VOLUME: it is as large as its image, and has the same bytes
{
	xseg volume export "$1" - >"$TMP/.data" && cmp "$TMP/.data" "$1.raw"
}

all_same()
{
	local v
	for v in "$@"; do
		same_data "$v" || return 1
	done
}

is_zero()	# VOLUME
{
	xseg volume export "$1" - >"$TMP/.data" && [ "$(tr -d '\0' <"$TMP/.data" | wc -c)" = 0 ]
}

prefix_of()	# VOLUME: how its objects' names begin
{
	local identity
	identity=$(json_of .identity xseg --json volume info "$1") || return 1
	if [ "$identity" = 0 ]; then
		echo "$1:"
	else
		printf -- '-%016xe:\n' "$identity"
	fi
}

nr_objects()	# PREFIX
{
	find store -type f -name "$1*" | wc -l
}

versions()	# of all records that are used, in the order of their slots
{
	od -An -v -tu4 -w512 -j 8 "$(find store -name :catalog)" | awk '$1 { printf "%s ", $1 }'
}

image plain 262144 0 65536 200704 10240
image holes 1048576 524288 4096
image empty 1048576
image cut 102400 0 102400
image grown 196608 0 65536
image again 131072 65536 4096
volumes="plain holes empty cut grown again"

# ---- it opens and serves ----

is "its records have version 1" "$(versions)" "1 1 1 1 1 1 1 "
xseg up stack.conf >up.txt 2>up.err
is "it comes up, without a word about its catalogue" "$? $(grep -c catalogue up.err)" "0 0"
expect_json '.volumes == 6 and .catalogue_damage == null' "with six volumes" xseg --json status
# shellcheck disable=SC2086
t "each has its data" all_same $volumes
has_both() { [ "$(find store -name ':catalog.*' | wc -l)" = 2 ]; }
t "it got a header and a copy" wait_for 60 has_both
is "volumes keep the names of their objects" "$(prefix_of plain) $(prefix_of again)" "plain: again:"
t "check finds nothing" xseg check
t "it goes down" xseg down
t "it comes up again" xseg up stack.conf
# shellcheck disable=SC2086
t "with all data" all_same $volumes

# ---- it is used ----

yes changed | head -c 131072 >new.raw
t "data is written over old data" xseg volume import plain new.raw
dd if=new.raw of=plain.raw conv=notrunc status=none
t "and into what was never written" xseg volume import empty new.raw
dd if=new.raw of=empty.raw conv=notrunc status=none
t "a volume grows" xseg volume resize grown --size 512k
truncate -s 512k grown.raw
t "one is cut" xseg volume resize cut --size 64k --force
t "and grows again" xseg volume resize cut --size 256k
truncate -s 64k cut.raw
truncate -s 256k cut.raw
# shellcheck disable=SC2086
t "all have the data that they should have" all_same $volumes
is "no record has another version yet" "$(versions)" "1 1 1 1 1 1 1 "

# ---- names are used again ----

leak=$(nr_objects gone:)
is "an object of a removed volume was left by the older program" "$leak" 1
t "a volume of its name is made" xseg volume create gone --size 128k
t "and shows nothing of it" is_zero gone
t "it has objects of other names" [ "$(prefix_of gone)" != gone: ]
for v in plain again; do
	t "$v is removed" xseg volume remove $v
	is "$v: none of its objects is left" "$(nr_objects $v:)" 0
	t "$v is made again" xseg volume create $v --size 256k
	t "$v shows zeroes" is_zero $v
	t "$v is written" xseg volume import $v new.raw
done
truncate -s 256k new.raw
cp new.raw plain.raw
cp new.raw again.raw
t "new volumes have what was written" all_same plain again
t "older ones have their data" all_same holes empty cut grown
t "their records have version 2, which an older program refuses" \
	[ "$(versions | tr ' ' '\n' | grep -c '^2$')" = 3 ]

# ---- over restarts, to the end ----

t "it goes down" xseg down
t "it comes up" xseg up stack.conf
# shellcheck disable=SC2086
t "with all data" all_same $volumes
t "and a new volume that is empty" is_zero gone
t "volumed is killed" xseg peer kill volumed --force
t "and serves again" wait_for 60 state_is volumed running
# shellcheck disable=SC2086
t "with all data, again" all_same $volumes
for v in $volumes gone; do
	t "$v is removed" xseg volume remove $v
done
is "nothing is left but the leak" "$(find store -type f -name '*:0*' | wc -l)" "$leak"
t "check finds nothing" xseg check
t "nothing is to be recovered" xseg volume recover
t "it goes down at last" xseg down

finish
