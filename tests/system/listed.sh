#!/bin/bash
# listed.sh - a volume whose data is in caches only is removed: nothing of it is left, and no
# request asks for objects that were never there. Two caches, one above the other, list their own
# objects.
# tags: san
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench

cat >stack.conf <<END
[segment]
memory = 160M

[peer filed]
dir = $TMP/objects

[peer lower]
kind = cached
downstream = filed
memory = 16M
dirty_age = 1h

[peer cached]
downstream = lower
memory = 16M
dirty_age = 1h
dirty_high = 95

[peer volumed]
downstream = cached
END

# of volumes, which the catalogue's are not
files_of_objects()
{
	find objects -mindepth 3 -type f ! -name ':catalog*' | wc -l
}

fill()
{
	xbench --volume="$1" --rw=randwrite --bs=4k --size=16T --number_ios=64 --iodepth=4
}

t "a store with two caches serves" xseg --quiet up stack.conf
t "a volume is made" xseg volume create upper --size 16T
t "another one" xseg volume create both --size 16T
t "data is written to it" fill both
t "and is in the lower cache, of which nothing is flushed" \
	xseg peer set cached policy=write-through
t "more of it" fill both
t "the upper cache keeps what is written again" xseg peer set cached policy=write-back
t "data is written to the first one" fill upper
# it would take days to ask for each of its objects
t "it is removed" xseg volume remove upper
t "the other one too" xseg volume remove both
t "all is at the store" xseg --quiet down
is "nothing of them is left" "$(files_of_objects)" 0
finish
