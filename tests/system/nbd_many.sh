#!/bin/bash
# nbd_many.sh - many connections to an export, and many clients of volumes: commands work meanwhile,
# and a client that was there before goes on.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed memd jq nbdkit nbdcopy python3
need_plugin

cat >stack.conf <<END
[segment]
memory = 256M
ports = 64
[peer memd]
memory = 48M
[peer volumed]
downstream = memd
END

# Connects N times at once, holds all until its input ends, and says how many were let in.
cat >many.py <<'END'
import socket, struct, sys, threading
path, n = sys.argv[1], int(sys.argv[2])
held, let_in = [], []
def one():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    held.append(s)
    try:
        s.connect(path)
        if len(s.recv(18, socket.MSG_WAITALL)) != 18:
            return
        s.sendall(struct.pack('>I', 3) + b'IHAVEOPT' + struct.pack('>II', 1, 0))
        if len(s.recv(10, socket.MSG_WAITALL)) == 10:
            let_in.append(s)
    except OSError:
        pass
threads = [threading.Thread(target=one) for _ in range(n)]
for t in threads: t.start()
for t in threads: t.join()
print(len(let_in), flush=True)
sys.stdin.read()
END

ports_free()
{
	field_of free_ports info
}

commands_work()
{
	local i
	for i in $(seq 10); do
		xseg volume list && xseg status || return
	done
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M
export_up disk disk --connections 8
before=$(ports_free)
mkfifo hold
python3 many.py "$TMP/disk.sock" 200 >many.log <hold &
many=$!
exec 5>hold
t "commands work while 200 connect" commands_work
t "all are answered" wait_for 60 test -s many.log
t "some are let in, and no more than are allowed" \
	[ "$(cat many.log)" -ge 1 -a "$(cat many.log)" -le 8 ]
is "they take no port" "$(ports_free)" "$before"
t "commands work while they stay" commands_work
exec 5>&-
wait "$many"
t "others are let in when they have left" wait_for 60 nbdinfo --size "$uri"

# ---- a client is there before the export has looked whether it serves ----

cat >quick.py <<'END'
import signal, socket, sys
while True:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(sys.argv[1])
        if len(s.recv(18, socket.MSG_WAITALL)) == 18:
            break
    except OSError:
        pass
    s.close()
print("greeted", flush=True)
s.sendall(b"\0\0\0\3IHAVEOPT\0\0\0\1\0\0\0\0")
signal.pause()
END
python3 quick.py "$TMP/one.sock" >quick.log &
quick=$!
export_up one disk --connections 1
one=$server
t "a quick client has the only place" wait_for 60 grep -q greeted quick.log
t "and the export goes on" kill -0 "$one"
kill "$quick"
wait "$quick"
export_down "$one"

# ---- nobody answers how large it is ----

export_up line disk --connections 20
line=$server
volumed=$(peer_field volumed pid)
freeze "$volumed"
python3 many.py "$TMP/line.sock" 20 >line.log <hold &
many=$!
exec 5>hold
t "20 that begin while volumed stands still do not wait in line" wait_for 60 test -s line.log
kill -CONT "$volumed"
exec 5>&-
wait "$many"
t "they are let in when it goes on" wait_for 60 nbdinfo --size "$uri"
export_down "$line"

# ---- the reserve ----

for nr in $(seq 4); do
	start "more$nr" xseg export disk --nbd "$TMP/more$nr.sock" --queues 64
	t "an export that is larger than what is left is refused" \
		wait_for 60 grep -q 'reserve for administration' "more$nr.log"
done
export_up last disk --queues 24
t "one that leaves the reserve is served" kill -0 "$server"
expect_err 1 "reserve|no port" "another one is not" xseg export disk --nbd "$TMP/x.sock" --queues 24
t "commands work" commands_work
t "a peer is begun anew" xseg peer restart volumed
export_down "$server"
t "all stops" xseg down

# ---- the segment has no room for what only makes small writes faster ----

cat >small.conf <<END
[segment]
memory = 64M
ports = 40
requests = 160
[peer memd]
memory = 24M
[peer volumed]
downstream = memd
END

writes_small()
{
	head -c 1M /dev/urandom >in.raw &&
		nbdcopy --request-size=4096 in.raw "$uri" &&
		nbdcopy "$uri" out.raw &&
		cmp -n "$(stat -c %s in.raw)" in.raw out.raw
}

t "a small stack comes up" xseg up small.conf
t "a volume is made there" xseg volume create disk --size 16M
requests=$(field_of free_requests info)
queues=$((requests / 16))
left=$((requests % 16 + 16))		# for the next client, and for commands
export_up full disk --queues $((queues - 1))
is "an export without queues for small writes leaves room for a client" \
	"$(field_of free_requests info)" "$left"
t "it does small writes" writes_small
export_down "$server"
export_up most disk --queues $((queues - 3))
is "of the queues for small writes there are as many as fit" \
	"$(field_of free_requests info)" "$left"
t "they do small writes" writes_small
export_down "$server"
t "the small stack stops" xseg down
finish
