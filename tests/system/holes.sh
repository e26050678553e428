#!/bin/bash
# holes.sh - a fresh volume that is discarded and zeroed as a whole has no object in the store,
# through every policy. Objects with data keep it, and emptied objects go.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench

cat >stack.conf <<END
[segment]
memory = 96M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 16M
dirty_age = 1h
dirty_high = 90

[peer volumed]
downstream = cached
END

# of volumes, which the catalogue's are not
files_of_objects()
{
	find objects -mindepth 3 -type f ! -name ':catalog*' | wc -l
}

# Parts of pages, too: ranges begin and end between two pages.
empty()		# VOLUME
{
	xbench --volume="$1" --rw=trim --bs=100k --iodepth=8 --size=32M &&
	xbench --volume="$1" --rw=write --opmix=write_zeroes:100 --bs=100k --iodepth=8 --size=32M &&
	xseg volume flush "$1"
}

t "a stack comes up" xseg --quiet up stack.conf
for policy in write-back write-through write-around pass-through; do
	t "$policy" xseg --quiet peer set cached policy="$policy"
	t "$policy: a volume is made" xseg volume create "$policy" --size 32M
	t "$policy: and emptied, where nothing was" empty "$policy"
	is "$policy: it has no objects" "$(files_of_objects)" 0
	t "$policy: one is written" xbench --volume="$policy" --rw=write --bs=4k --size=4M
	t "$policy: and flushed" xseg volume flush "$policy"
	is "$policy: it is there" "$(files_of_objects)" 1
	t "$policy: it is emptied" empty "$policy"
	is "$policy: it is gone" "$(files_of_objects)" 0
	is "$policy: and reads as zeroes" \
		"$(xseg volume export "$policy" - | tr -d '\0' | wc -c)" 0
done
t "everything stops" xseg down
finish
