#!/bin/bash
# guest.sh - a virtual machine (tests/lib/guest.sh) has a volume as its disk. It makes a file
# system, writes, reads back and compares while a cache comes and goes, is killed, and changes its
# policy. The store alone has all its data. First by NBD, then with the same disk by vhost-user-blk.
# tags: long
# timeout: 30
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/guest.sh"
need xseg xseg-host volumed cached filed jq nbdkit debugfs qemu-storage-daemon
need_plugin
missing=$(guest_missing)
[ -z "$missing" ] || skip_all "$missing"
guest_fetch || skip_all "$guest_why"

boot_s=120		# without KVM, on a machine that has other things to do
round_s=60

# In the guest. A round is a folder of files with their checksums; after `stop` all folders are
# looked through once more.
cat >job <<'END'
say()
{
	echo "guest: $*"
}

fail()
{
	say "failed: $*"
	poweroff -f
}

all_hold()
{
	for at in /mnt/[0-9]*; do
		(cd "$at" && sha256sum -s -c sums) || fail "what $at has"
	done
}

one_round()
{
	mkdir "/mnt/$1" && cd "/mnt/$1" || return 1
	head -c 4194304 /dev/urandom >random || return 1
	dd if=random of=direct bs=4k oflag=direct conv=fsync 2>/dev/null || return 1
	i=1
	while [ $i -le 30 ]; do
		head -c $((i * 1017)) random >small$i || return 1
		i=$((i + 1))
	done
	sha256sum * >/tmp/sums && cp /tmp/sums sums && cd / && sync || return 1
	echo 3 >/proc/sys/vm/drop_caches
	(cd "/mnt/$1" && sha256sum -s -c sums)
}

until [ -b /dev/vda ]; do sleep 0.1; done
(read -r word; : >/tmp/stop) </dev/console &
if grep -q guest.new /proc/cmdline; then
	mkfs.ext4 -q -F /dev/vda || fail mkfs.ext4
	nr=100
else
	mount -t ext4 -o ro /dev/vda /mnt && all_hold && umount /mnt || fail "what was there"
	nr=200
fi
mount -t ext4 -o discard /dev/vda /mnt || fail mount
say serves
while [ ! -e /tmp/stop ]; do
	one_round $nr || fail "round $nr"
	say "round $nr holds"
	rm -rf "/mnt/$((nr - 4))"
	nr=$((nr + 1))
done
umount /mnt || fail umount
e2fsck -fn /dev/vda >/dev/null 2>&1 || fail e2fsck
mount -t ext4 -o ro /dev/vda /mnt && all_hold || fail "the end"
say "digest $(cat /mnt/[0-9]*/sums | sha256sum | cut -c 1-64)"
umount /mnt
END
t "an initramfs is made" guest_image "$TMP/initrd" job mkfs.ext4 e2fsck || finish

cat >stack.conf <<END
[segment]
memory = 128M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 16M
[peer volumed]
downstream = filed
END

# ---- what the guest says ----

console=

said()		# PATTERN
{
	grep -q "^guest: $1" "$console"
}

rounds()
{
	grep -c '^guest: round .* holds' "$console"
}

more_rounds()	# THAN
{
	said failed || [ "$(rounds)" -gt "$1" ]
}

# goes_on SENTENCE: a round begins and ends after this
goes_on()
{
	local before
	before=$(rounds)
	wait_for $((2 * round_s)) more_rounds $((before + 1))
	if ! said failed && [ "$(rounds)" -gt $((before + 1)) ]; then
		ok "$1"
	else
		not_ok "$1" "$console"
		! said failed || finish
	fi
}

# begins NAME SENTENCE OPTION...: a guest with this disk
begins()
{
	local name=$1 sentence=$2
	shift 2
	guest_start "$name" initrd "$@"
	console=$name.console
	wait_for $boot_s grep -q '^guest: \(serves\|failed\)' "$console"
	t "$sentence" said serves || { cat "$console" "$name.qemu"; finish; }
}

is_off()
{
	! kill -0 "$guest" 2>/dev/null
}

# ends SENTENCE: it looks through all that it has, and switches itself off
ends()
{
	guest_tell stop
	wait_for $((2 * round_s)) is_off
	if is_off && said digest && ! said failed; then
		ok "$1"
	else
		not_ok "$1" "$console"
	fi
}

# ---- what is below it comes and goes ----

is_killed()	# PEER
{
	local before
	before=$(peer_field "$1" generation)
	t "$1 is killed" xseg peer kill "$1"
	t "and serves again" wait_for 60 state_is "$1" running
	t "as another one" [ "$(peer_field "$1" generation)" -gt "$before" ]
}

plugged()
{
	t "a cache is plugged" xseg plug cached --above filed --below volumed
}

unplugged()
{
	t "it is unplugged" xseg --timeout 60s unplug cached
	is "so volumed stands on the store" "$(peer_field volumed downstream)" filed
}

disturbed()
{
	local policy
	goes_on "the guest goes on with the store alone"
	plugged
	goes_on "and with a cache"
	for policy in write-through write-around write-back; do
		t "its policy is $policy" xseg cache set cached policy=$policy
		goes_on "and it goes on"
	done
	t "it was written to" [ "$(field_of writes cache status cached)" -gt "$writes" ]
	is_killed cached
	goes_on "and the guest has seen nothing of it"
	is_killed volumed
	goes_on "nor of that"
	unplugged
	goes_on "and it goes on without it"
	plugged
	goes_on "and with it"
	is_killed cached
	writes=$(field_of writes cache status cached)
}

# ---- what the store has ----

same_as_digest()
{
	[ "$(cat files/[0-9]*/sums | sha256sum | cut -c 1-64)" = \
		"$(sed -n 's/^guest: digest \([0-9a-f]*\).*/\1/p' "$console")" ]
}

sums_hold()
{
	local at
	for at in files/[0-9]*; do
		(cd "$at" && sha256sum --quiet -c sums) || return 1
	done
}

store_holds()
{
	unplugged
	t "the volume is an image" xseg volume export disk disk.raw
	t "whose file system is sound" e2fsck -fn disk.raw
	rm -rf files
	mkdir files
	t "its files can be had" debugfs -R "rdump / files" disk.raw
	t "they are those that the guest had in the end" same_as_digest
	t "and have the checksums that it has written" sums_hold
	rm -rf disk.raw
}

# ---- a disk by NBD ----

writes=0
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 96M
export_up nbd disk
nbd=driver=nbd,node-name=disk,server.type=unix,server.path=$TMP/nbd.sock,discard=unmap
guest_append=guest.new
begins nbd "a guest has it for a disk, and makes a file system" -blockdev "$nbd" \
	-device virtio-blk-pci,drive=disk
disturbed
ends "all that it wrote holds, and it switches itself off"
store_holds

# ---- the same disk by vhost-user-blk ----

start vhost qemu-storage-daemon --blockdev "$nbd" \
	--export "type=vhost-user-blk,id=disk,node-name=disk,writable=on,addr.type=unix,addr.path=$TMP/vhost.sock"
vhost=$started
t "qemu-storage-daemon makes a vhost-user-blk of the export" wait_for 60 test -S vhost.sock
guest_append=
begins vhost "a guest has that for a disk, with all that the first one wrote" \
	-object memory-backend-memfd,id=memory,size=256M,share=on \
	-chardev "socket,id=disk,path=$TMP/vhost.sock" -device vhost-user-blk-pci,chardev=disk
disturbed
ends "all that both wrote holds"
kill "$vhost"
wait "$vhost" 2>/dev/null
store_holds

export_down "$server"
is "the export ends" "$?" 0
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
