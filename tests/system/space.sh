#!/bin/bash
# space.sh - where the space is: what volumes take in the store and in the cache, who has them open
# and since when, how much room the store has, and what is said before it is full.
#
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench volumed cached filed memd jq

cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 96M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 16M
dirty_age = 1h
dirty_high = 90
dirty_low = 80
[peer volumed]
downstream = cached
END

volume()	# NAME FIELD: of the list
{
	json_of ".[] | select(.name == \"$1\") | .$2" xseg --json volume list
}

volume_is()	# NAME FIELD VALUE
{
	[ "$(volume "$1" "$2")" = "$3" ]
}

load()		# VOLUME options
{
	xbench --volume="$1" --bs=64k --iodepth=4 "${@:2}"
}

t "a stack comes up" xseg up stack.conf
for name in zed abe mid; do
	t "volume $name is made" xseg volume create $name --size 8M
done

# ---- the list ----

expect_json 'map(.name) == ["abe", "mid", "zed"]' "volumes are listed by name" xseg --json volume list
is "to people, too" "$(xseg volume list | awk 'NR > 1 { print $1 }' | paste -sd ' ')" "abe mid zed"
t "one is written" load zed --rw=write --size=4M
is "its data is in the cache" "$(volume zed cached_bytes)" $((4 << 20))
is "and dirty" "$(volume zed dirty_bytes)" $((4 << 20))
is "the store has none of it" "$(volume zed used_bytes)" 0
t "it is flushed" xseg volume flush zed
t "then the store has it" wait_for 60 volume_is zed used_bytes $((4 << 20))
is "in one object" "$(volume zed used_objects)" 1
is "the cache keeps it" "$(volume zed cached_bytes)" $((4 << 20))
is "clean" "$(volume zed dirty_bytes)" 0
is "another one has nothing" "$(volume abe used_bytes) $(volume abe cached_bytes)" "0 0"
t "people see both" eval "xseg volume list | grep -qE '^zed +[0-9]+ +8.0M +4.0M +4.0M +- +ok +-\$'"
t "also of the volume alone" eval \
	"xseg volume info zed | grep -qE '^used +4.0M in the store, in 1 object; counted .* ago\$'"
t "and the cache's part" eval "xseg volume info zed | grep -q '^cached   4.0M, of which 0 bytes are dirty\$'"
t "nobody has it open" eval "xseg volume info zed | grep -q '^open by  nobody\$'"
t "blocks are discarded" load zed --rw=trim --size=2M
t "and that is flushed" xseg volume flush zed
t "the figure follows" wait_for 60 volume_is zed used_bytes $((2 << 20))

# ---- who has it open ----

before=$(date +%s)
start user xbench --volume=mid --rw=randwrite --bs=4k --numjobs=2 --size=1M --rate_iops=500 \
	--runtime=1h --time_based
user=$started
t "a program opens one" wait_for 60 volume_is mid "open_by | length" 1
is "which is named, with its process" "$(volume mid 'open_by[0] | "\(.program) \(.pid) \(.queues)"')" \
	"xbench $user 2"
since=$(volume mid 'open_by[0].since_s')
t "and since when" [ "$since" -ge "$before" -a "$since" -le "$(date +%s)" ]
t "people see it in the list" eval \
	"xseg volume list | grep -qE '^mid .* xbench \(pid $user\) since [0-9:]+ \(.*\)\$'"
t "and of the volume" eval \
	"xseg volume info mid | grep -qE '^open by  xbench \(pid $user\) since [0-9:]+ \(.*\)\$'"
kill $user
wait $user
t "it is closed with the program" wait_for 60 volume_is mid "open_by | length" 0

# ---- the status ----

expect_json '.store.name == "filed" and .store.size_bytes > 0 and .store.free_bytes > 0 and
	.store.volumes_bytes == 25165824 and .store.used_bytes > 0 and .store.failing == null and
	.store.dir == "'"$TMP/objects"'" and (.space | length) == 1 and .space == .rooms' \
	"the status has the store's size, what is free, and what volumes may take" xseg --json status
t "to people, too" eval \
	"xseg status | grep -A1 -E '^store +filed: .* of .* free \(.*%\), in $TMP/objects\$' |
		grep -qE '^ +objects take .*, volumes may take 24.0M\$'"
t "another volume is made" xseg volume create late --size 2M
t "and written" load late --rw=write --size=2M
t "and flushed" xseg volume flush late
sleep 1.1			# a count is no older than that when it is asked for
t "the status has a count of now, as a list has" eval \
	'[ "$(xseg --json status | jq .store.used_bytes)" -ge $(($(volume zed used_bytes) + (2 << 20))) ]'
t "it goes" xseg volume remove late
expect_json '.volumes == 3 and .volumes_being_removed == 0' "there are three volumes" xseg --json status
t "the sizes of all together are told where they are too much" eval \
	"xseg volume create huge --size 8T 2>&1 | grep -q 'its 8.0T are more than the .* of its store, filed'"
t "which is allowed" xseg volume remove huge

# ---- a store that stands still ----

pid=$(json_of '.[] | select(.name == "filed") | .pid' xseg --json peer list)
freeze "$pid"
timeout 60 xseg --json volume list >list.txt 2>note.txt
is "a list comes at once" $? 0
is "without the figures of the store" "$(jq -c 'map(.used_bytes)' list.txt)" "[null,null,null]"
t "and says why" eval \
	"jq -e '.note | .what == \"volume list\" and (.why | startswith(\"filed does not answer\"))' note.txt"
kill -CONT "$pid"
t "then it has them again" wait_for 60 volume_is zed used_bytes $((2 << 20))

# ---- a directory that somebody removes ----

t "all is flushed" xseg cache flush cached
rm -rf objects
expect_json '[.warnings[].kind] | contains(["dir_removed"])' "the status knows of a removed directory" \
	xseg --json status
t "and says so" eval "xseg status | grep -q '^WARNING     filed: $TMP/objects was removed while it is in use'"
t "all is thrown away" xseg down --force

# ---- memory ----

sed -e 's/filed/memd/; s/^dir = .*/memory = 8M/; s/downstream = filed/downstream = memd/' stack.conf >memory.conf
t "a stack on memd" xseg up memory.conf
t "a volume" xseg volume create small --size 4M
expect_err 0 "all volumes together may take 9.0M, more than the 8.0M of their store, memd" \
	"the sizes of two are too much" xseg volume create more --size 5M
head -c 1M /dev/zero >image.raw
is "an import that makes its volume says so, too, and once" \
	"$(xseg volume import image image.raw --create 2>&1 | grep -c 'more than the')" 1
t "that one goes" xseg volume remove image
is "a command says it once" "$(xseg volume create image --size 9M 2>&1 | grep -c 'more than the')" 1
t "that one goes, too" xseg volume remove image
t "one is filled" load small --rw=write --size=4M
t "and flushed" xseg volume flush small
t "it takes what was written" wait_for 60 volume_is small used_bytes $((4 << 20))
t "and the other half but a bit, too" load more --rw=write --size=3584k --bs=64k
t "which is flushed" xseg volume flush more
expect_json '.warnings | map(.kind) == ["low_space"]' "there is a warning before it is full" xseg --json status
t "which is a line" eval \
	"xseg status | grep -qE '^WARNING +memd: .* of 8.0M are free \([0-9.]+%\); remove volumes\$'"
t "data that has no room is written" load more --rw=write --size=1M --offset=3584k
expect_json '[.warnings[].kind] | contains(["dirty_exceeds_free"])' "that is a warning, too" \
	xseg --json status
t "room is made" xseg volume remove small
t "and all is well" wait_for 60 eval "[ \"\$(xseg --json status | jq -c .warnings)\" = '[]' ]"
# ---- volumes that are being removed ----

for name in one two; do
	t "volume $name is made" xseg volume create $name --size 1M
	t "and written" load $name --rw=write --size=1M
done
t "all is flushed" xseg cache flush cached
t "the store refuses to delete" xseg peer set memd fail=delete:100%:EIO
for name in one two; do
	expect_exit 3 "the removal of $name goes on" xseg --timeout 3s volume remove $name
done
same_counts()
{
	xseg --json status >status.txt && xseg --json volume list >list.txt &&
		[ "$(jq -c '[.volumes, .volumes_being_removed]' status.txt)" = \
		"$(jq -c '[map(select(.state != "removing")), map(select(.state == "removing"))] |
			map(length)' list.txt)" ] && [ "$(jq .volumes_being_removed status.txt)" = 2 ]
}
t "status and list count the same" wait_for 60 same_counts
t "also for people" eval "xseg status | grep -qE '^volumes +1, and 2 being removed\$'"
t "the store deletes again" xseg peer set memd fail=
t "then none is left" wait_for 60 eval \
	"[ \"\$(xseg --json status | jq -c '[.volumes, .volumes_being_removed]')\" = '[1,0]' ]"
t "it goes down" xseg down
finish
