#!/bin/bash
# nbd.sh - volumes by NBD, through `xseg export` and nbdkit with the plug-in: the export's answers,
# images in and out, promises, errors, and clients that verify while the peers below come and go.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd filed jq nbdkit nbdinfo nbdcopy
need_plugin
. "$root/tests/lib/nbdkit.sh"

seconds=$([ -n "$LONG" ] && echo 90 || echo 3)
times=$([ -n "$LONG" ] && echo 20 || echo 1)
image_size=$([ -n "$LONG" ] && echo 2G || echo 64M)
# disk is on a cache and RAM, image on files
cat >stack.conf <<END
[segment]
memory = 256M
ports = 128
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 16M
[peer volumed]
downstream = cached
[peer filed]
dir = $TMP/objects
[peer files]
kind = volumed
downstream = filed
END

count()		# PEER COUNTER
{
	xseg --json stat | jq "[.peers[] | select(.name == \"$1\").$2] | add"
}

info()		# EXPRESSION
{
	nbdinfo --json "$uri" | jq -r ".exports[0] | $1"
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 24M --volumed volumed
t "and one of files" xseg volume create image --size $image_size --volumed files
t "status counts the volumes of both volumeds" [ "$(field_of volumes status)" = 2 ]
free=$(free_of_segment)

# ---- what clients are told ----

export_up disk disk --volumed volumed
disk=$server disk_uri=$uri
is "the URI is that of the socket" "$uri" "nbd+unix:///?socket=${TMP// /%20}/disk.sock"
for can in can_flush can_fua can_trim can_zero can_multi_conn; do
	is "$can" "$(info .$can)" true
done
is "it is not only to be read" "$(info .is_read_only)" false
is "block sizes are the volume's" \
	"$(info '"\(.block_size_minimum) \(.block_size_preferred) \(.block_size_maximum)"')" \
	"512 4096 33554432"
is "so is its size" "$(info '."export-size"')" $((24 << 20))
expect_err 4 "another process serves on" "its socket is its own" \
	xseg export disk --volumed volumed --nbd disk.sock
mkdir slow
cat >slow/nbdkit <<-END
	#!/bin/bash
	touch "$TMP/slow/begun"
	until [ -e "$TMP/slow/go" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
	exec "$(command -v nbdkit)" "\$@"
END
chmod +x slow/nbdkit
start slow env PATH="$TMP/slow:$PATH" xseg export disk --volumed volumed --nbd both.sock
slow=$started
t "an export has begun, and does not serve yet" wait_for 60 test -e slow/begun
export_up both disk --volumed volumed
touch slow/go
wait "$slow"
is "of two that begin at once the second one is refused" "$? $(cat "$TMP/slow.log")" \
	"4 xseg: export: another process serves on $TMP/both.sock; choose another socket"
is "and leaves the first one its socket" "$(info '."export-size"')" $((24 << 20))
export_down "$server"
uri=$disk_uri
t "a volume grows" xseg volume resize disk --volumed volumed --size 25M
is "which the next connection sees" "$(info '."export-size"')" $((25 << 20))

# ---- qemu ----

# io URI COMMAND...
io()
{
	local uri=$1 command commands=()
	shift
	for command; do
		commands+=(-c "$command")
	done
	qemu-io -f raw "${commands[@]}" "$uri" >qemu.out 2>&1
	local status=$?
	cat qemu.out
	[ $status -eq 0 ] && ! grep -q failed qemu.out
}

with_qemu()
{
	local before
	t "qemu-io writes and reads" io "$uri" 'write -P 0xa1 1M 3M' 'read -P 0xa1 1M 3M' \
		'write -P 0xb2 4097 511' 'read -P 0xb2 4097 511' \
		'aio_write -P 0xc3 8M 64k' 'aio_write -P 0xc4 9M 64k' aio_flush \
		'read -P 0xc3 8M 64k' 'read -P 0xc4 9M 64k'
	t "zeroes and trims" io "$uri" 'write -z 1M 64k' 'write -z -u 1088k 64k' \
		'discard 2M 64k' flush \
		'read -P 0 1M 128k' 'read -P 0xa1 1152k 896k' 'read -P 0 2M 64k' \
		'read -P 0xa1 2112k 64k'
	t "and all of it is there for another connection" io "$uri" 'read -P 0 1M 128k' \
		'read -P 0xa1 3M 1M' 'read -P 0xb2 4097 511'
	before=$(count memd bytes)
	t "a write with FUA" io "$uri" 'write -f -P 0xd5 16M 1M'
	t "is in the store when it is answered" \
		[ $(($(count memd bytes) - before)) -ge $((1 << 20)) ]
	t "a write" io "$uri" 'write -P 0xd6 18M 1M' flush
	is "and a flush leave nothing dirty" \
		"$(field_of dirty_bytes cache status cached)" 0
	head -c 20M /dev/urandom >small.raw
	truncate -s 25M small.raw
	t "an image has another format" qemu-img convert -f raw -O qcow2 small.raw small.qcow2
	t "and goes in" qemu-img convert -n -f qcow2 -O raw small.qcow2 "$uri"
	t "and is the same" qemu-img compare -f raw -F raw small.raw "$uri"
	# a shell with that sanitizer's runtime, as which nbdkit begins the command, dies
	if [ "$SAN" = tsan ]; then
		skip "nbdkit's blocksize filter serves who knows no sectors" \
			"not under ThreadSanitizer"
		return
	fi
	t "nbdkit's blocksize filter serves who knows no sectors" nbdkit -U - --filter=blocksize \
		"$plugin" disk "segment=$XSEG_SEGMENT" volumed=volumed \
		minblock=512 --run "$alone"' qemu-io -f raw -c "write -P 7 100 100" -c "read -P 7 100 100" "$uri"'
}

if command -v qemu-io >/dev/null 2>&1 && command -v qemu-img >/dev/null 2>&1; then
	with_qemu
else
	skip "qemu-io and qemu-img work on it" "qemu-utils are not there"
fi

# ---- errors ----

# refused SENTENCE PATTERN PARAMETERS...: what nbdkit says of them. The socket is ours, as nbdkit
# leaves the folder of one of its own when it is refused something
refused()
{
	local sentence=$1 pattern=$2
	shift 2
	nbdkit -U refused.sock "$plugin" "segment=$XSEG_SEGMENT" volumed=volumed "$@" \
		--run true >refused.out 2>&1
	is "$sentence" "$(grep -c "error: .*$pattern" refused.out)" 1
}

export_up reader disk --volumed volumed --read-only
is "an export may be only to be read" "$(info .is_read_only)" true
head -c 1M /dev/zero >zero
expect_exit 1 "then nobody writes" nbdcopy zero "$uri"
export_down "$server"
is "an interrupt ends an export well" "$?" 0
t "and its socket is gone" test ! -e reader.sock
export_up stuck disk --volumed volumed
child=$(pgrep -P "$server")
store=$(peer_field memd pid)
freeze "$store"
start stuck_copy nbdcopy "$uri" null:
copy=$started
t "a client waits for it" wait_for 60 has_requests "$child"
kill -TERM "$server"
t "an export that cannot end, as its store stands still, says so" wait_for 60 \
	grep -q "export disk: nbdkit waits for I/O that is not answered; 'xseg status'" stuck.log
kill -TERM "$server"
wait "$server"
is "and a second interrupt does not wait for that" "$?" 3
kill -CONT "$store"
t "nbdkit ends when it can" wait_for 60 bash -c '! kill -0 "$0"' "$child"
wait "$copy"
expect_err 2 "--nbd is missing" "a socket has to be named" xseg export disk --volumed volumed
expect_err 4 "no volume 'none'" "a volume that is there" \
	xseg export none --volumed volumed --nbd x.sock
expect_err 4 "not a socket" "a file is not overwritten" \
	xseg export disk --volumed volumed --nbd stack.conf
export_up many disk --volumed volumed --queues 64
expect_err 1 "queue [0-9]+ of 64: .*has (no|less|fewer) " "more than the segment has is refused" \
	xseg export disk --volumed volumed --nbd x.sock --queues 64
export_down "$server"
expect_err 1 "install the package nbdkit" "without nbdkit it says what to do" env PATH="$BUILD/bin" \
	xseg export disk --volumed volumed --nbd x.sock
refused "a parameter that the plug-in does not know" "unknown parameter 'wrong'" disk wrong=1
refused "a volume that is not there" "no volume 'none'" volume=none
refused "too many queues" "give 1 to 64" disk queues=65
refused "a way to read that is none" "give auto or never" disk direct=always
refused "no volume" "name a volume"
is "its manual has the parameters that it says it has" \
	"$(sed -n 's/^\.BI \([a-z]*\)= .*/\1/p' "$root/tools/nbdkit/nbdkit-xseg-plugin.1" | sort |
	tr '\n' ' ')" \
	"$(nbdkit "$plugin" --help | grep -oE '^\[?(volume|[a-z]+)=\]?[A-Z]+ ' | grep -oE '[a-z]+' |
	sort | tr '\n' ' ')"
export_up killed disk --volumed volumed
kill -KILL "$server"
{ wait "$server"; } 2>/dev/null
t "when it is killed, so is nbdkit" wait_for 60 bash -c '! nbdinfo --size "$0"' "$uri"
export_up killed disk --volumed volumed
is "and the next one takes its socket" "$(info '."export-size"')" $((25 << 20))
export_down "$server"
t "the cache is flushed" xseg cache flush cached
t "and passed by" xseg cache set cached policy=pass-through
t "the store fails" xseg peer set memd fail=any:1:EIO
expect_err 1 "Input/output error" "a client is told" nbdcopy "$disk_uri" failed.raw
t "the store works" xseg peer set memd fail=
t "and the cache" xseg cache set cached policy=write-back
t "and so do clients" nbdcopy "$disk_uri" works.raw

# ---- an image in and out, while the other volume has nobody to serve it ----

t "volumed is stopped" xseg peer stop volumed --force
start gone nbdcopy "$disk_uri" "$TMP/gone.raw"
gone=$started
export_up image image --volumed files
head -c $((40 << 20)) /dev/urandom >in.raw
truncate -s $image_size in.raw
t "an image goes in" nbdcopy --connections=4 in.raw "$uri"
t "and out" nbdcopy --connections=4 "$uri" out.raw
t "and is the same" cmp in.raw out.raw
t "so it is for others" bash -c 'xseg volume export image - --volumed files | cmp - in.raw'
rm -f in.raw out.raw
export_down "$server"
wait "$gone"
is "who waited for volumed is told that it stays away" "$?" 1
t "volumed is started again" xseg peer start volumed
t "and the export goes on" nbdcopy "$disk_uri" again.raw
t "with the data that was there" cmp works.raw again.raw

# ---- while what is below comes and goes ----

uri=$disk_uri
disturb memd cached volumed
if fio --enghelp=nbd 2>/dev/null | grep -q '^uri'; then
	t "kills and plugs are pauses to fio" fio --name=job --ioengine=nbd --uri="$uri" \
		--rw=randrw --bsrange=4k-32k --iodepth=16 --size=16M --loops=1000 \
		--time_based --runtime="$seconds" --verify=crc32c --verify_fatal=1 \
		--verify_backlog=256
else
	skip "kills and plugs are pauses to fio" "fio has no engine for NBD"
fi
head -c 25M /dev/urandom >in.raw
for i in $(seq $times); do
	if ! nbdcopy in.raw "$uri" || ! nbdcopy "$uri" out.raw || ! cmp in.raw out.raw; then
		echo "$i" >>differ
	fi
done
t "and to nbdcopy" test ! -e differ
disturbed $times

# ---- the end ----

expect_err 4 "in use by nbdkit" "the volume is not removed while it is exported" \
	xseg volume remove disk --volumed volumed
expect_err 4 "have its volumes open: nbdkit \(pid [0-9]+\); end" \
	"nor does volumed stop; a program with many ports is named once" xseg peer stop volumed
t "it is by force" xseg volume remove disk --volumed volumed --force
expect_exit 1 "which new connections are told" nbdinfo --size "$uri"
export_down "$disk"
is "the export ends" "$?" 0
t "nothing is left of it" wait_for 60 no_clients
t "pages and requests are free that were before" wait_for 60 is_as_before
t "the segment is sound" xseg check
t "everything stops" xseg down
nbdkit_is_clean
finish
