#!/bin/bash
# nbd_tools.sh - exports as the tools of libnbd and QEMU see them: nbdinfo, nbdcopy past holes,
# every command, flag and error by libnbd's Python module, bytes that are not NBD (nbd_tools.py),
# qemu-io's patterns, qemu-img's maps.
# tags: san
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd filed jq nbdkit nbdinfo nbdcopy greedy
need_plugin
. "$root/tests/lib/nbdkit.sh"

cat >stack.conf <<END
[segment]
memory = 320M
ports = 128
[peer memd]
memory = 64M
[peer cached]
downstream = memd
memory = 32M
[peer volumed]
downstream = cached
object_size = 1M
[peer filed]
dir = $TMP/objects
[peer files]
kind = volumed
downstream = filed
END

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M --volumed volumed
t "and one for nonsense" xseg volume create scratch --size 16M --volumed volumed
t "and a large one on files" xseg volume create sparse --size 2G --volumed files
free=$(free_of_segment)
export_up disk disk --volumed volumed --queues 8
disk=$server disk_uri=$uri
export_up reader disk --volumed volumed --read-only --queues 8
reader=$server reader_uri=$uri
export_up scratch scratch --volumed volumed --queues 8
scratch=$server scratch_uri=$uri

# ---- every command, and what is none ----

python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import nbd' 2>/dev/null || python=$candidate
done
if [ -n "$python" ]; then
	env URI="$disk_uri" READER="$reader_uri" SCRATCH="$scratch_uri" \
		SCRATCH_SOCKET="$TMP/scratch.sock" \
		"$python" "$root/tests/system/nbd_tools.py" >tools.log 2>&1
	status=$?
	cat tools.log
	is "nbd_tools.py ends well" $status 0
else
	skip "every command, flag and error by libnbd" "Python has no module nbd (python3-libnbd)"
fi
for server in $disk $reader $scratch; do
	t "the export is the one that it was" kill -0 "$server"
done

if [ -n "$python" ]; then
	for why in "beyond the end of the volume, which was made smaller" \
		"volumed does not run; start it with 'xseg -s $XSEG_SEGMENT peer start volumed'" \
		"write of 4096 bytes at 0: the segment has no port left" \
		"volume scratch: segment $XSEG_SEGMENT has no port or request left"; do
		t "its log says: $why" grep -qF "$why" scratch.log
	done
fi
for name in disk reader scratch; do	# which got the nonsense
	is "no nbdkit of $name has died" "$(grep -c 'nbdkit was ended by signal' $name.log)" 0
done

# ---- nbdkit dies ----

is_served_anew()	# PID URI
{
	nbdinfo --size "$2" && [ "$(pgrep -P "$1")" != "$child" ]
}

child=$(pgrep -P "$scratch")
head -c 1M /dev/urandom >piece.raw
t "data is written" nbdcopy --flush piece.raw "$scratch_uri"
kill -ABRT "$child"
t "an nbdkit that a signal ends is begun anew" wait_for 60 \
	is_served_anew "$scratch" "$scratch_uri"
t "with what was written" cmp -n $((1 << 20)) piece.raw <(nbdcopy "$scratch_uri" -)

began=$SECONDS
export_up limited scratch --volumed volumed --queues 1 --timeout 10s
child=$(pgrep -P "$server")
while [ $((SECONDS - began)) -le 11 ]; do sleep 0.2; done
kill -ABRT "$child"
t "also when the time that the first one had is long over" wait_for 60 \
	is_served_anew "$server" "$uri"
export_down "$server"

export_up ended scratch --volumed volumed --queues 1
kill -TERM "$(pgrep -P "$server")"
t "one that ends by itself is not" wait_for 60 \
	grep -q 'export scratch: nbdkit has ended by itself; begin it anew' ended.log
export_down "$server"
is "which is an error" "$?" 1

has_died()	# PID
{
	! kill -0 "$1" || grep -q '^State:.*Z' "/proc/$1/status"
}

# What was nbdkit's socket is somebody else's by then.
export_up taken scratch --volumed volumed --queues 1
child=$(pgrep -P "$server")
freeze "$server"
kill -ABRT "$child"
t "an nbdkit dies" wait_for 60 has_died "$child"
rm "$TMP/taken.sock"
start listener python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
time.sleep(3600)' "$TMP/taken.sock"
listener=$started
t "and somebody else serves on its socket" wait_for 60 grep -q listens listener.log
kill -CONT "$server"
wait "$server"
is "then it is not begun anew" "$?" 4
t "and that is said" grep -q "another process serves on $TMP/taken.sock; choose another" taken.log
t "and the other's socket is left to it" test -S "$TMP/taken.sock"
kill "$listener"
rm -f "$TMP/taken.sock"

# ---- nbdinfo ----

expect_json '.exports | length == 1 and .[0]["export-size"] == 16777216 and .[0].contexts == ["base:allocation"]' "nbdinfo lists the export" \
	nbdinfo --list --json "$disk_uri"
for can in fua trim zero multi-conn structured-reply; do
	t "nbdinfo says it can do $can" nbdinfo --can $can "$disk_uri"
done
is "nbdinfo maps all of it" "$(nbdinfo --map --json "$disk_uri" | jq '[.[].length] | add')" \
	$((16 << 20))

# ---- what is no data is not copied ----

export_up sparse sparse --volumed files --queues 8
is "a volume without data is a hole" \
	"$(nbdinfo --map --json "$uri" | jq -c '[.[] | [.offset, .length, .type]]')" \
	"[[0,$((2 << 30)),3]]"
# same_data FILE OTHER: as cmp, but reads no hole that both have
same_data()
{
	python3 -c '
import os, sys

def data(fd, at=0):
    while at < os.fstat(fd).st_size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        for begin in range(at, end, 1 << 20):
            yield begin, min(1 << 20, end - begin)
        at = end

a, b = (os.open(name, os.O_RDONLY) for name in sys.argv[1:])
same = os.fstat(a).st_size == os.fstat(b).st_size
for fd in a, b:
    for at, size in data(fd):
        same = same and os.pread(a, size, at) == os.pread(b, size, at)
sys.exit(not same)' "$@"
}

truncate -s 2G in.raw
head -c 5M /dev/urandom | dd of=in.raw bs=1M seek=1027 conv=notrunc status=none iflag=fullblock
t "an image with holes goes in" nbdcopy --destination-is-zero in.raw "$uri"
before=$(counted volumes sparse read_bytes)
t "and out" nbdcopy "$uri" out.raw
took=$(($(counted volumes sparse read_bytes) - before))
is "of which little was read" "$((took >= 5 << 20 && took <= 16 << 20)) ($took)" "1 ($took)"
t "it is the same" same_data in.raw out.raw
is "the file has holes, too" "$(($(stat -c %b out.raw) * 512 < 64 << 20))" 1

with_qemu()
{
	local before took
	is "qemu-img maps what is data" "$(qemu-img map -f raw --output=json "$uri" |
		jq -c '[.[] | select(.data) | [.start, .length]]')" \
		"[[$((1024 << 20)),$((8 << 20))]]"
	before=$(counted volumes sparse read_bytes)
	t "qemu-img converts" qemu-img convert -f raw -O qcow2 "$uri" out.qcow2
	took=$(($(counted volumes sparse read_bytes) - before))
	is "past the holes" "$((took <= 16 << 20)) ($took)" "1 ($took)"
	t "to the same" qemu-img compare -f raw -F qcow2 in.raw out.qcow2
	for ((n = 0; n < 32; n++)); do
		echo "write -P $((n + 1)) $((n * 100))k 100k"
		echo "aio_write -P $((n + 101)) $((n * 100 + 8))k 12k"
	done >patterns
	echo aio_flush >>patterns
	for ((n = 0; n < 32; n++)); do
		echo "read -P $((n + 1)) $((n * 100))k 8k"
		echo "read -P $((n + 101)) $((n * 100 + 8))k 12k"
		echo "read -P $((n + 1)) $((n * 100 + 20))k 80k"
		echo "write -z $((n * 100 + 50))k 4k"
		echo "read -P 0 $((n * 100 + 50))k 4k"
	done >>patterns
	qemu-io -f raw "$disk_uri" <patterns >qemu.out 2>&1
	is "qemu-io reads its patterns" \
		"$? $(grep -c 'read 8192/8192' qemu.out) $(grep -ciE 'failed|error' qemu.out)" \
		"0 32 0"
}

if command -v qemu-io >/dev/null 2>&1 && command -v qemu-img >/dev/null 2>&1; then
	with_qemu
else
	skip "qemu-img and qemu-io" "qemu-utils are not there"
fi

for server in $disk $reader $scratch $server; do
	export_down "$server"
done
t "nothing is left of the exports" wait_for 60 no_clients
t "pages and requests are free that were before" wait_for 60 is_as_before
t "the segment is sound" xseg check
t "everything stops" xseg down
nbdkit_is_clean
finish
