#!/bin/bash
# memcached.sh - values by key for clients of memcached's protocol: its answers are those of Debian's
# memcached, clients of others work with it, and hostile ones harm only themselves.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xseg-memcached kvd cached memd jq python3 memcached

# client MODULE: of Python
client()
{
	local python
	if python=$(python_of "$1"); then
		t "$1 works with it, by both kinds of socket" timeout 400 \
			"$python" "$root/tests/system/memcached_clients.py" "$1" "$TMP/ours" "$port"
	else
		skip "$1 works with it" "python3-$1 is not there"
	fi
}

# write_stack FILE OPTION...: of the gateway called gate
write_stack()
{
	local file=$1
	shift
	{
		printf '[segment]\nmemory = 256M\n[peer memd]\nmemory = 96M\n'
		printf '[peer cached]\ndownstream = memd\nmemory = 48M\n'
		printf '[peer kvd]\ndownstream = cached\nsize = 64M\n'
		printf '[peer gate]\nkind = memcached\n'
		printf '%s\n' "$@"
	} >"$file"
}

# ---- what is refused at the start ----

write_stack wrong.conf
expect_err 2 "peer 'gate' needs kvd =" "a gateway without a kvd is refused" xseg up wrong.conf
write_stack wrong.conf "kvd = kvd" "listen = nowhere"
expect_err 2 "neither unix:PATH nor HOST:PORT" "so is a listen that is neither" xseg up wrong.conf
write_stack wrong.conf "kvd = kvd" "listen = 127.0.0.1:0"
expect_err 2 "port" "and port 0" xseg up wrong.conf
write_stack wrong.conf "kvd = cached" "listen = unix:$TMP/o"
expect_err 2 "kvd" "and a peer that is no kvd" xseg up wrong.conf

# ---- answers, and clients ----

port=$(free_port)
write_stack stack.conf "kvd = kvd" "listen = unix:$TMP/ours" "listen = 127.0.0.1:$port" \
	"threads = 2"
t "a stack with a gateway comes up" xseg up stack.conf
is "its socket is the user's only" "$(stat -c %a ours)" 600
start theirs memcached -u "$(id -un)" -s "$TMP/theirs" -m 64
their_pid=$started
t "Debian's memcached runs" wait_for 60 [ -S theirs ]
t "the same bytes have the same answers of both" \
	python3 "$root/tests/system/memcached_judge.py" "$TMP/ours" "$TMP/theirs"
kill "$their_pid"
if ! command -v memccapable >/dev/null; then
	skip "memccapable finds that it is a memcached" "libmemcached-tools is not there"
else
	t "memccapable finds that it is a memcached" \
		memccapable -a -v -t 60 -h 127.0.0.1 -p "$port"
fi
client pymemcache
client pylibmc
# In `make check-long`, since it is fetched.
if [ -n "$LONG" ] && mkdir npm && timeout 120 npm --prefix npm install --no-audit --no-fund \
		memcached >npm.log 2>&1; then
	t "npm's memcached works with it" env NODE_PATH="$TMP/npm/node_modules" \
		node "$root/tests/system/memcached_client.js" "127.0.0.1:$port"
else
	skip "npm's memcached works with it" "only in check-long, and where npm can fetch it"
fi
t "hostile clients harm only themselves" \
	python3 "$root/tests/system/memcached_hostile.py" "$TMP/ours" "$(bound 200 1000)"

# ---- killed, stopped, full ----

# say TEXT SOCKET: what is answered until the server closes
say()
{
	python3 - "$1" "$2" <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[2])
s.sendall(sys.argv[1].encode().decode("unicode_escape").encode() + b"quit\r\n")
got = b""
while part := s.recv(65536):
    got += part
sys.stdout.write(got.decode().replace("\r\n", " "))
END
}

says()	# ANSWER COMMANDS: of the socket `full`
{
	[ "$(say "$2" full)" = "$1 " ]
}

is "a value is put" "$(say 'set kept 5 0 3\r\nabc\r\n' ours)" "STORED "
t "the gateway is killed" xseg peer kill gate
t "and is there again" wait_for 60 say 'mn\r\n' ours
is "the value is there" "$(say 'get kept\r\n' ours)" "VALUE kept 5 3 abc END "
t "the kvd is killed" xseg peer kill kvd
is "commands wait for the next one" "$(say 'get kept\r\nset n 0 0 1\r\n1\r\nincr n 4\r\n' ours)" \
	"VALUE kept 5 3 abc END STORED 5 "
is "another program sees the value" "$(xseg kv get kept)" abc
expect_json '.gateways[0] | .name == "gate" and .cmd_get > 0 and .get_hits > 0' \
	"xseg stat knows its counters" xseg --json stat
is "it has the mode of the segment" "$(stat -c %a ours)" "$(stat -c %a "/dev/shm/xseg.$XSEG_SEGMENT")"

# idle
ticks()
{
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}
gate=$(xseg --json peer list | jq '.[] | select(.name == "gate").pid')
exec 7<>/dev/tcp/127.0.0.1/"$port"
rests()		# PID: for three seconds it has taken hardly any
{
	local before
	before=$(ticks "$1")
	sleep 3
	[ $(($(ticks "$1") - before)) -le 3 ]
}
t "with an idle connection it takes no processor" wait_for 60 rests "$gate"
before=$(counted gateways gate cmd_set)
printf 'set late 0 0 2\r\nok\r\nget late\r\n' >&7
t "a client is read" wait_for 60 counts_more gateways gate cmd_set "$before"
t "the gateway is stopped" xseg peer stop gate
is "what was read is answered" "$(timeout 60 cat <&7 | tr -d '\r' | tr '\n' ' ')" \
	"STORED VALUE late 0 2 ok END "
exec 7>&-
t "its socket is gone" [ ! -e ours ]

t "the segment is sound" wait_for 60 xseg check
t "all stops" xseg down

# ---- a full log, few connections, files in the way ----

port=$(free_port)
write_stack full.conf "kvd = kvd" "listen = unix:$TMP/full" "listen = 127.0.0.1:$port" \
	"connections = 1"
sed -i 's/^size = 64M/size = 8M\nzone_size = 512k\ntail = 1M/' full.conf
echo text >"$TMP/full"
expect_err 1 "is no socket" "a file that is no socket is not replaced" xseg up full.conf
rm full
xseg down --force >/dev/null 2>&1
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("full")'
t "a socket that was left is replaced" xseg up full.conf
t "it is served" wait_for 60 say 'mn\r\n' full
exec 8<>"/dev/tcp/127.0.0.1/$port"
printf 'mn\r\n' >&8
read -r -t 60 answer <&8
is "one connection is served" "${answer%$'\r'}" MN
is "another one is refused" "$(python3 -c 'import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect("full")
print(s.recv(100).decode().strip())')" "ERROR Too many open connections"
exec 8>&-
t "then another one is served" wait_for 60 says MN 'mn\r\n'
is "a full log says so, and deletes work" "$(python3 - <<'END'
import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect("full")
f = s.makefile("rb")
for i in range(200):
    s.sendall(b"set k%d 0 0 100000\r\n%s\r\n" % (i, b"x" * 100000))
    got = f.readline()
    if got != b"STORED\r\n":
        break
print(i > 20, got.decode().strip())
for k in range(i):
    s.sendall(b"delete k%d\r\n" % k)
    got = f.readline()
print(got.decode().strip())
END
)" "True SERVER_ERROR out of memory storing object
DELETED"
t "all stops" xseg down
finish
