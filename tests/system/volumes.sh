#!/bin/bash
# volumes.sh - volumes are renamed, copied, removed several at once, and made from images: what is
# refused, what a kill leaves, and that no byte differs.
# tags: san
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed jq

mkdir store
cat >stack.conf <<END
[segment]
name = $XSEG_SEGMENT
memory = 96M
[peer filed]
dir = $TMP/store
[peer cached]
downstream = filed
memory = 32M
[peer volumed]
downstream = cached
END

sum() { xseg volume export "$1" - | sha256sum; }	# VOLUME
names() { xseg --json volume list | jq -r '[.[] | select(.state == "ok").name] | sort | join(" ")'; }

# use VOLUME: a program reads it, until it is killed
use()
{
	start load xbench --volume="$1" --rw=randread --direct=never --rate_iops=200 --runtime=1h \
		--time_based
	t "a program has $1 open" wait_for 60 is_read "$1"
}

is_read() { [ "$(json_of ".volumes[] | select(.name == \"$1\") | .reads" xseg --json stat)" -gt "${reads:-0}" ]; }

end_use()
{
	kill "$started"
	wait "$started" 2>/dev/null
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create a --size 22M
t "and written, here and there" xbench --volume=a --rw=randwrite --bsrange=512-256k --size=13M \
	--number_ios=60 --verify=crc32c --output=/dev/null
before=$(sum a)

# ---- rename ----

t "a volume has a setting in the cache" xseg cache set cached policy=write-through --volume a
expect_json '.name == "b" and .size_bytes == 23068672' "it is renamed" xseg --json volume rename a b
is "its data is the same" "$(sum b)" "$before"
expect_json '.policy == "write-through" and .policy_from == "volume"' "and its setting in the cache" \
	xseg --json cache status --volume b
t "another one gets the old name" xseg volume create a --size 1M
t "and a setting" xseg cache set cached policy=write-around --volume a
expect_json '.policy == "write-through"' "which takes none from the first" \
	xseg --json cache status --volume b
t "the log says so" grep -q "volume 'a' is named 'b' now$" "$TMP/xseg-$XSEG_SEGMENT.log"
expect_err 4 "there is a volume 'a' already" "a name that is taken is refused" xseg volume rename b a
expect_err 4 "no volume 'none'" "a volume that is not there, too" xseg volume rename none c
expect_err 2 "a name is 1 to 63" "and a name that none may have" xseg volume rename b -- -c
use a
expect_err 4 "in use by xbench" "a volume in use is refused" xseg volume rename a c
end_use
t "when it is not, it is renamed" wait_for 60 xseg volume rename a c
t "volumed is killed" xseg peer kill volumed
is "the names are what they were" "$(names)" "b c"

# A cache that does not serve is not told of a rename, nor is any if xseg is killed before.
begin_spare()
{
	start spare cached --name=spare --downstream=filed --memory=8M
	wait_for 60 state_is spare running
}
name_without_volumed()		# what the cache itself calls the volume
{
	xseg --quiet peer stop volumed
	xseg --json cache status spare | jq -r '.volumes[0].name'
	xseg --quiet peer start volumed
}
t "another cache waits to be plugged" begin_spare
t "it has a setting of a volume" xseg cache set spare policy=write-through --volume b
kill -9 "$started"
wait "$started" 2>/dev/null
t "it is dead, and the volume is renamed" xseg volume rename b other
t "it comes back" begin_spare
is "it has the old name" "$(name_without_volumed)" b
expect_json '.volumes[0] | .name == "other" and .policy == "write-through"' \
	"its status has the name that volumed has" xseg --json cache status spare
is "which the cache has then, too" "$(name_without_volumed)" other
t "it stops" xseg peer stop spare
t "the volume gets its name back" xseg volume rename other b

# ---- copy ----

t "a copy is made" xseg volume copy b d
is "which has the data" "$(sum d)" "$before"
expect_json '.bytes == 23068672 and .data_bytes > 0 and .data_bytes < .bytes and .source == "b"' \
	"a larger one is made, without the holes" xseg --json volume copy b large --size 40M
t "it has the size" test "$(json_of .size_bytes xseg --json volume info large)" = 41943040
is "and the data" "$(xseg volume export large - | head -c 22M | sha256sum)" "$before"
t "what is written to the copy" xbench --volume=d --rw=write --bs=64k --size=4M --output=/dev/null
is "is not in the source" "$(sum b)" "$before"
expect_err 4 "there is a volume 'd' already" "a copy does not overwrite" xseg volume copy b d
expect_err 4 "would lose" "nor is it smaller" xseg volume copy b e --size 1M
expect_exit 4 "a volume that is not there is not copied" xseg volume copy none e
reads=$(json_of '.volumes[] | select(.name == "b") | .reads' xseg --json stat)
use b
expect_err 4 "in use by xbench" "one in use is refused" xseg volume copy b e
is "and leaves nothing" "$(names)" "b c d large"
t "unless it is forced" xseg volume copy b e --force
end_use
is "it was only read" "$(sum e)" "$before"

# An interrupted copy: the store stands still meanwhile. On a fast machine it may be done before.
t "a larger volume is made" xseg volume create big --size 64M
t "and written" xbench --volume=big --rw=write --bs=256k --size=64M --output=/dev/null
filed=$(peer_field filed pid)
start copy xseg volume copy big f
until xseg volume info f.partial >/dev/null 2>&1 || ! kill -0 "$started" 2>/dev/null; do :; done
freeze "$filed"
kill -INT "$started"
sleep 0.3
kill -CONT "$filed"
wait "$started"
code=$?
if [ $code = 0 ]; then
	t "the copy was done before" xseg volume remove f
else
	is "a copy that is interrupted says so" "$code $(grep -c 'interrupted: volume copy big' copy.log)" "3 1"
fi
is "and leaves nothing" "$(names)" "b big c d e large"
t "the larger one goes" xseg volume remove big

# Ctrl-C while volumed makes the volume of the copy: it is made a moment later, and goes.
is_client() { xseg --json peer list | jq -e "any(.[]; .name == \"xseg.$1\")"; }
freeze "$(peer_field filed pid)"
start copy xseg volume copy b late
t "a copy begins" wait_for 60 is_client "$started"
looks_again "$started"
kill -INT "$started"
sleep 0.5
kill -CONT "$(peer_field filed pid)"
wait "$started"
is "it was interrupted" "$? $(grep -c 'interrupted: volume copy b' copy.log)" "3 1"
is "and leaves nothing" "$(names)" "b c d e large"

# One of which xseg is killed has a name that says so.
xseg volume copy large g >/dev/null 2>&1 &
kill -9 $!
wait $! 2>/dev/null
if xseg volume info g.partial >/dev/null 2>&1; then
	expect_err 4 "g.partial.*already" "another one waits for a person" xseg volume copy b g
	t "who removes it" xseg volume remove g.partial
fi
t "then the copy is made" xseg volume copy b g
is "and is right" "$(sum g)" "$before"
start copy xseg volume copy large h
for _ in 1 2 3; do
	xseg peer kill volumed >/dev/null 2>&1
	sleep 0.2
done
t "a copy over kills of volumed ends well" wait "$started"
is "and is right, too" "$(xseg volume export h - | head -c 22M | sha256sum)" "$before"

# ---- remove ----

all=$(names)
expect_err 4 "no volume 'none'" "of several, one is not there" xseg volume remove d none e
expect_err 2 "named twice" "or is named twice" xseg volume remove d e d
is "then none is removed" "$(names)" "$all"
t "several are removed" xseg volume remove d e g
is "with a line each" "$(cat "$TMP/.out")" "$(printf 'volume %s is removed\n' d e g)"
expect_json '[.[].name] == ["c", "h"] and all(.[]; .state == "removed")' "in JSON they are a list" \
	xseg --json volume remove c h
expect_json '.name == "large" and .state == "removed"' "and one is an object" \
	xseg --json volume remove large
is "the others are there" "$(names)" "b"

# ---- import ----

xseg volume export b image.raw >/dev/null
t "a volume is made of an image" xseg volume import new image.raw --create
is "of its size" "$(json_of .size_bytes xseg --json volume info new)" 23068672
is "with its data" "$(sum new)" "$before"
expect_err 4 "there is a volume 'new' already" "only a new one" xseg volume import new image.raw --create
expect_err 2 "size of - is not known" "a pipe has no size" xseg volume import pipe - --create
expect_exit 4 "no image, no volume" xseg volume import pipe nothing.raw --create
: >empty.raw
expect_err 2 "is empty" "nor of an empty one" xseg volume import pipe empty.raw --create
head -c 1000 image.raw >odd.raw
t "an odd size is rounded up" xseg volume import odd odd.raw --create
is "to a sector" "$(json_of .size_bytes xseg --json volume info odd)" 1024

# other FILE BYTES WORDS: an image that begins so is refused, and named
other()
{
	{ printf "$2"; head -c 100000 /dev/zero; } >"$1"
	expect_err 4 "$3" "$1 is refused" xseg volume import odd "$1"
	expect_err 4 "$3" "also as a new volume" xseg volume import made "$1" --create
	expect_exit 4 "and from a pipe" eval "cat $1 | xseg volume import odd -"
}
t "there is a volume for it" xseg volume resize odd --size 1M
other disk.qcow2 'QFI\xfb' "a qcow2 image.*qemu-img convert -O raw disk.qcow2"
other disk.vmdk KDMV "a VMDK image.*qemu-img convert"
other disk.vhdx vhdxfile "a VHDX image.*qemu-img convert"
other disk.vdi "$(printf 'x%.0s' {1..64})\x7f\x10\xda\xbe" "a VDI image.*qemu-img convert"
other disk.gz '\x1f\x8b\x08' "gzip.*zcat disk.gz \| xseg"
other disk.xz '\xfd7zXZ\x00' "xz.*xzcat disk.xz \| xseg"
other disk.zst '\x28\xb5\x2f\xfd' "zstd.*zstdcat disk.zst \| xseg"
is "nothing was made" "$(names)" "b new odd"
is "and nothing written" "$(xseg volume export odd - | head -c 2000 | sha256sum)" \
	"$({ cat odd.raw; head -c 1000 /dev/zero; } | sha256sum)"
t "it is taken as raw if wanted" xseg volume import odd disk.qcow2 --raw
is "as it is" "$(xseg volume export odd - | head -c 100004 | sha256sum)" "$(sha256sum <disk.qcow2)"

t "the stack goes down" xseg down
finish
