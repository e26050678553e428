#!/bin/bash
# exports.sh - [export NAME] of a stack file: several volumes in one server, read-only ones, TCP,
# TLS, volumes that are made later; the server, the supervisor and all are killed under I/O; what
# `xseg export list` and `status` say; `down` with clients; no nbdkit.
# timeout: 300
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached filed xbench jq nbdkit nbdinfo nbdcopy openssl
need_plugin
python=
for candidate in python3 /usr/bin/python3; do
	[ -n "$python" ] || ! "$candidate" -c 'import nbd' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || skip_all "Python has no module nbd (python3-libnbd)"
nbdkit --dump-config | grep -qx tls=yes || skip_all "this nbdkit has no TLS"

short=$(mktemp -d "/tmp/xseg-exports.XXXXXX")	# a socket's path has at most 107 bytes
trap 'rm -rf "$short"; cleanup' EXIT
log=$TMP/xseg-$XSEG_SEGMENT.log

port=$(free_port) secure=$(free_port)

peers="[segment]
memory = 256M
ports = 128
[peer filed]
dir = $TMP/objects
direct = no
[peer cached]
downstream = filed
memory = 32M
[peer volumed]
downstream = cached"
exports="[export disk]
nbd = $short/nbd.sock
mode = 0660
queues = 4
[export safe]
volume = disk
nbd = $short/nbd.sock
mode = 0660
read_only = yes
queues = 2
[export later]
nbd = $short/nbd.sock
mode = 0660
queues = 2
[export tcp]
volume = disk
nbd = 127.0.0.1:$port
queues = 2
connections = 2
[export once]
volume = disk
nbd = $short/once.sock
restart = no
queues = 1"
printf '%s\n' "$peers" "$exports" >stack.conf
uri="nbd+unix:///disk?socket=$short/nbd.sock"
tcp="nbd://127.0.0.1:$port"

field()			# EXPORT FIELD
{
	xseg --json export list | jq -r ".[] | select(.name == \"$1\") | .$2"
}
field_is()		# EXPORT FIELD VALUE
{
	[ "$(field "$1" "$2")" = "$3" ]
}
# connections_are NUMBER: of all exports; a server sees the end of one a while after its client
connections_are()
{
	[ "$(xseg --json export list | jq '[.[].connections] | add')" = "$1" ]
}

# ---- up ----

t "a stack comes up before its volumes are made" bash -c "xseg up stack.conf 2>said"
t "up says that one is not there" grep -q "export disk: its volume is not there" said
is "so does the list" "$(field disk state)" "no volume"
t "a volume is made" xseg volume create disk --size 16M
t "and is served then" wait_for 60 field_is disk state serving
t "by all of its exports" wait_for 60 field_is tcp state serving
is "the socket has its mode" "$(stat -c %a "$short/nbd.sock")" 660
nbdinfo --list "nbd+unix:///?socket=$short/nbd.sock" >list
is "the server lists those whose volume is there" \
	"$(grep -o 'export="[a-z]*"' list | tr '\n' ' ')" 'export="disk" export="safe" '
is "one of them cannot be written" "$(nbdinfo --json "${uri/disk/safe}" |
	jq '.exports[0].is_read_only')" true
t "a volume is made under clients" xseg volume create later --size 1M
t "it is served" wait_for 60 field_is later state serving
is "with its own size" "$(nbdinfo --size "${uri/disk/later}")" 1048576
expect_exit 1 "a name that is none is refused" nbdinfo --size "${uri/disk/none}"
is "an export that is alone is the default" "$(nbdinfo --size "$tcp")" 16777216
expect_exit 1 "no export is, where there are several" nbdinfo --size "nbd+unix:///?socket=$short/nbd.sock"

head -c 16M /dev/urandom >image
t "an image is written by one" nbdcopy --flush image "$uri"
t "and read by another" nbdcopy "${uri/disk/safe}" copy
t "it is the same" cmp image copy
t "also by TCP" nbdcopy "$tcp/tcp" copy
t "it is the same" cmp image copy
expect_exit 1 "it is not written where clients only read" nbdcopy image "${uri/disk/safe}"
head -c 1M /dev/zero >zeroes
t "what is written to another volume" nbdcopy zeroes "${uri/disk/later}"
t "is not in the first" nbdcopy "$uri" copy
t "which is the same" cmp image copy

# ---- what is said ----

t "the servers see that their clients have left" wait_for 60 connections_are 0
expect_json '.[0] | .name == "disk", .volume == "disk", .read_only == false, .tls == "off",
	.state == "serving", .connections == 0, (.pid | type) == "number", .since_s > 1000000000,
	.address == "'"$short/nbd.sock"'", .uri == "'"$uri"'"' \
	"export list --json has all of it" xseg --json export list
expect_json '[.exports[].name] == ["disk", "safe", "later", "tcp", "once"]' "so has status" \
	xseg --json status
is "exports with one address have one server" "$(field disk pid)" "$(field safe pid)"
expect_err 4 "in use by (export [a-z]+ \(nbdkit, pid [0-9]+\)[,;] ){4}end" \
	"a volume in use is not removed, and the exports are named" xseg volume remove disk
t "volume list names one of them" bash -c \
	"xseg volume list | grep -Eq '^disk .* export [a-z]+ \(pid [0-9]+\) since .*, 2 more$'"
expect_json '.[] | select(.name == "disk").open_by | map(.export) | sort == ["disk", "once", "tcp"]' \
	"its JSON has one for each server" xseg --json volume list
t "status names the volume" bash -c \
	"xseg status | grep -q '^export      disk: volume disk on .*nbd.sock, 0 connections'"

# ---- a client, and orders ----

connected()		# URI: until fd 9 is closed
{
	mkfifo wait 2>/dev/null
	exec 9<>wait
	"$python" -c 'import nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
print("there", flush=True)
sys.stdin.readline()' "$1" <wait >client.log 2>&1 &
	client=$!
	wait_for 60 grep -q there client.log
}
t "a client connects" connected "$tcp/tcp"
is "it is counted" "$(field tcp connections)" 1
expect_json '.[] | select(.exports[0].name == "tcp") | .program == "nbdkit", .pid == '"$(field tcp pid)"',
	.exports == [{"name": "tcp", "connections": 1, "clients": 1}], .volumes == [{"name": "disk", "volumed": "volumed"}],
	.values == [], .ports >= 3, .queues == .clients, (.requests_in_flight | type) == "number",
	.since_s > 1000000000, .user == "'"$(id -un)"'"' "clients has the server" xseg --json clients
is "each server has a line" "$(xseg clients | grep -c nbdkit)" 3
is "with its exports" "$(xseg --json clients | jq -c '[.[].exports[].name] | sort')" \
	'["disk","later","once","safe","tcp"]'
t "peer list has the volumes of its clients" bash -c \
	"xseg peer list | grep -Eq '^export.tcp .* nbdkit +- +disk$'"
# it writes: a read that the cache answers without a request is never in flight
start load xbench --volume=later --rw=randwrite --iodepth=4 --runtime=1h
load=$started
t "a program is a client, too" wait_for 60 bash -c \
	"xseg --json clients | jq -e '.[] | select(.pid == $load) | .requests_in_flight > 0'"
kill -9 "$load"
wait "$load" 2>/dev/null
t "until it ends" wait_for 60 bash -c "! xseg --json clients | jq -e '.[] | select(.pid == $load)'"
is "names of exports are completed" "$(xseg complete -- export start s)" safe
is "so are the commands of exports" "$(xseg complete -- export st)" "$(printf 'start\nstop')"
expect_err 4 "export stop tcp: it has 1 connection; end the clients first" "a server with clients is not stopped" \
	xseg export stop tcp
t "but by force" xseg export stop tcp --force
is "it is stopped" "$(field tcp state)" stopped
echo >&9
wait "$client"
expect_exit 1 "nobody serves it" nbdinfo --size "$tcp"
expect_err 4 "is stopped already" "it is not stopped twice" xseg export stop tcp
t "it is started" xseg export start tcp
is "and serves" "$(nbdinfo --size "$tcp")" 16777216
expect_err 4 "is served already" "it is not started twice" xseg export start tcp
expect_err 4 "same address" "one of several in a server is not stopped" xseg export stop disk
expect_err 4 "no export of that name" "nor one that is none" xseg export stop none
before=$(field disk pid)
t "but they are restarted together by force" xseg export restart disk --force
t "the server is another one" test "$(field disk pid)" != "$before"
kill_hard "$(field once pid)"
t "one with restart = no has failed when it is killed" wait_for 60 field_is once state failed
t "it is started by an order" xseg export start once
is "and serves" "$(field once state)" serving

# ---- kills under I/O ----

kill_server()
{
	local pid
	pid=$(field disk pid)
	kill_hard "$pid"
	wait_for 60 field_is disk state serving
	wait_for 60 bash -c "xseg --json export list | jq -e '.[0].pid != $pid'"
}
goes_on()		# the client has written all blocks once more
{
	local turns
	turns=$(cat go.turns 2>/dev/null || echo 0)
	wait_for 60 bash -c "[ \$(cat go.turns) -gt $((turns + 1)) ]"
}
touch go
start client "$python" "$root/tests/system/exports_client.py" "$uri" "$TMP/go"
client=$started
for turn in 1 2 3; do
	t "a client writes ($turn)" goes_on
	t "its server is killed, and is there again ($turn)" kill_server
done
t "the client goes on" goes_on
t "an export is stopped" xseg export stop once
pid=$(field disk pid)
supervisor=$(xseg --json status | jq .supervisor.pid)
kill_hard "$supervisor"
t "also when the supervisor is killed" goes_on
is "its server is the same" "$(field disk pid)" "$pid"
is "an export whose server is there is served" "$(field disk state)" serving
expect_err 4 "no supervisor" "nobody takes orders" xseg export restart disk --force
t "another supervisor comes" bash -c "xseg up stack.conf 2>said"
is "an export that was stopped stays so" "$(field once state)" stopped
t "which up says" grep -q "export once: it stays stopped, .*'xseg .*export start once'" said
kill_hard "$(xseg --json status | jq .supervisor.pid)"
cp stack.conf changed.conf
sed -i '/^\[export once\]/,$s/^queues = 1/queues = 2/' changed.conf
t "also with a changed file" xseg up changed.conf
is "it stays so" "$(field once state)" stopped
t "until it is started" xseg export start once
is "then it serves" "$(field once state)" serving
kill_hard "$(xseg --json status | jq .supervisor.pid)"
t "nor does the next supervisor stop it" xseg up stack.conf
t "it serves" wait_for 60 field_is once state serving
is "the server is the same" "$(field disk pid)" "$pid"
t "the supervisor watches it" grep -q "exports disk, safe, later runs already" "$log"
t "which is killed, and is there again" kill_server
t "the client goes on" goes_on
t "a cache below is killed" xseg peer kill cached
t "the client goes on" goes_on
t "volumed is restarted" xseg peer restart volumed
t "the client goes on" goes_on
rm go
wait "$client"
is "a client that writes and connects again ends well" "$?" 0
cat client.log
t "nothing is lost" grep -q "^connections=[5-9] bad=0$" client.log

# ---- another stack file ----

kill_hard "$(xseg --json status | jq .supervisor.pid)"
sed -i '/^volume = disk/,/^read_only/s/^read_only = yes/read_only = no/; /^\[export once\]/,$d' stack.conf
t "a supervisor comes with other settings" xseg up stack.conf
is "the server has them when up returns" "$(nbdinfo --json "${uri/disk/safe}" | jq .exports[0].is_read_only)" false
sed -i '/^\[export safe\]/,/^$/s/^read_only = no/read_only = yes/' stack.conf
t "a reload has other settings" xseg reload stack.conf
is "the server has them when the reload returns" "$(nbdinfo --json "${uri/disk/safe}" | jq .exports[0].is_read_only)" true
is "the list is that of the file" "$(xseg --json export list | jq -c '[.[].name]')" \
	'["disk","safe","later","tcp"]'
t "an export that the file has no more is ended" wait_for 60 bash -c \
	"! nbdinfo --size 'nbd+unix:///once?socket=$short/once.sock'"

# ---- down, up, and a machine that begins anew ----

t "a client connects" connected "$tcp/tcp"
t "an export is stopped" xseg export stop later --force
t "no other client is there" wait_for 60 connections_are 1
t "down ends a server with a client" bash -c "xseg down 2>said"
t "it names the export" grep -q "lose their connections: tcp (1)" said
echo >&9
wait "$client"
t "the socket is removed" test ! -e "$short/nbd.sock"
t "the stack comes up again" xseg up stack.conf
is "what was stopped before that is served" "$(field later state)" serving
t "with its data" nbdcopy "$uri" copy
supervisor=$(xseg --json status | jq .supervisor.pid)
mapfile -t pids < <(xseg --json peer list | jq '.[].pid' | sort -u)
kill_hard "$supervisor" "${pids[@]}"
t "all is killed" wait_for 60 bash -c "! kill -0 ${pids[*]}"
rm "/dev/shm/xseg.$XSEG_SEGMENT"
t "a socket is left" test -S "$short/nbd.sock"
t "a machine that begins anew starts the stack" xseg up stack.conf
is "the volume is served" "$(nbdinfo --size "$uri")" 16777216
kill_hard "$(xseg --json status | jq .supervisor.pid)"
server=$(field disk pid)
t "down ends servers without a supervisor" xseg down
t "they have ended" wait_for 60 bash -c "! grep -q nbdkit /proc/$server/cmdline"

# ---- an upgrade ----

mkdir -p new/bin new/lib
cp "$BUILD"/bin/{xseg,xseg-host,volumed,cached,filed} new/bin
cp "$BUILD"/lib/{nbdkit-xseg-plugin.so,xseg-nbdkit-guard.so} new/lib
replace()		# FILE: another one of the same contents, as dpkg makes it
{
	cp "$1" "$1.new" && mv "$1.new" "$1"
}
printf '%s\n' "$peers" "[export disk]" "nbd = $short/nbd.sock" "queues = 2" "[export tcp]" \
	"volume = disk" "nbd = 127.0.0.1:$port" "queues = 2" >upgrade.conf
t "a stack comes up by programs of another folder" new/bin/xseg up upgrade.conf
is "they are those that are there" "$(xseg --json export list | jq -c '[.[].replaced]')" '[false,false]'
t "a client connects" connected "$tcp/tcp"
t "the plug-in is replaced" replace new/lib/nbdkit-xseg-plugin.so
is "which is seen" "$(xseg --json export list | jq -c '[.[].replaced]')" '[true,true]'
before=$(field disk pid),$(field tcp pid)
t "peer restart --replaced leaves servers alone" bash -c "xseg peer restart --replaced 2>said"
is "and names them, each with the command that starts the new one" \
	"$(grep -o 'export [a-z]*: its server\|[a-z]*restart [a-z]*\( --force\)\?. starts it anew' said | tr \' ' ' | xargs)" \
	"export disk: its server restart disk starts it anew export tcp: its server restart tcp --force starts it anew"
is "they are the same" "$(field disk pid),$(field tcp pid)" "$before"
t "the list names them, too" bash -c "xseg export list 2>&1 >list | grep -q 'export tcp: .* cuts then: 1'"
t "one of them is restarted" xseg export restart disk
is "it runs the new plug-in" "$(xseg --json export list | jq -c '[.[].replaced]')" '[false,true]'
echo >&9
wait "$client"
t "the library that guards it is replaced" replace new/lib/xseg-nbdkit-guard.so
is "that counts, too" "$(field disk replaced)" true
t "an export is stopped" xseg export stop disk
is "nothing runs, so nothing is old" "$(field disk replaced)" null
t "the stack stops" xseg down

# ---- addresses that cannot be had ----

start holder "$python" -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(3600)' "$short/held.sock"
holder=$started
t "another process has a socket" wait_for 60 test -S "$short/held.sock"
printf '%s\n' "$peers" "[export disk]" "nbd = $short/held.sock" "queues = 2" >held.conf
expect_err 4 "another process serves on $short/held.sock" "its address is not taken" \
	xseg up held.conf
is "nothing is left of that start" "$(xseg list | grep -cw "$XSEG_SEGMENT")" 0
kill "$holder"
wait "$holder" 2>/dev/null
rm "$short/held.sock"
echo data >"$short/held.sock"
expect_err 4 "is not a socket" "a file is no socket" xseg up held.conf
is "it stays as it was" "$(cat "$short/held.sock")" data
start holder "$python" -c 'import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); time.sleep(3600)' "$port"
holder=$started
printf '%s\n' "$peers" "[export disk]" "nbd = 127.0.0.1:$port" "queues = 2" >held.conf
t "another process has a port" wait_for 60 grep -q "$(printf ':%04X 00000000:0000 0A' "$port")" /proc/net/tcp
expect_err 4 "Address already in use" "its port is not taken" xseg up held.conf
kill "$holder"
wait "$holder" 2>/dev/null
printf '%s\n' "$peers" "[export disk]" "nbd = 192.0.2.1:$port" "queues = 2" >held.conf
expect_err 1 "bind: Cannot assign requested address; .*process of export disk ended" \
	"nor an address that the machine does not have" xseg up held.conf
printf '%s\n' "$peers" "[export disk]" "nbd = 10809" >held.conf
expect_err 2 "line 13: .*number alone" "a number alone is refused" xseg up held.conf
printf '%s\n' "${peers/ports = 128/ports = 16}" "[export disk]" "nbd = $short/x" >held.conf
expect_err 2 "ports: 16 are too few, .*exports.* need" "more ports than there are are refused" \
	xseg up held.conf

# ---- programs that are not there ----

printf '%s\n' "$peers" "[export disk]" "nbd = $short/alone.sock" "queues = 2" >alone.conf
expect_err 1 "cannot start export disk: .*install the package nbdkit," \
	"without nbdkit up says what to install" env PATH="$BUILD/bin" xseg up alone.conf
mkdir -p alone/bin
cp "$BUILD"/bin/{xseg,xseg-host,volumed,cached,filed} alone/bin
expect_err 1 "cannot start export disk: .*install the package xseg-nbdkit," \
	"also without the guard" alone/bin/xseg up alone.conf
is "nothing is left of that start" "$(xseg list | grep -cw "$XSEG_SEGMENT")" 0

# ---- TLS ----

certificate()		# NAME SUBJECT EXTENSION
{
	openssl req -newkey rsa:2048 -nodes -keyout "pki/$1-key.pem" -subj "/CN=$2" \
		-out "$1.csr" 2>/dev/null &&
		openssl x509 -req -in "$1.csr" -CA pki/ca-cert.pem -CAkey ca-key.pem -CAcreateserial \
			-days 2 -extfile <(echo "$3") -out "pki/$1-cert.pem" 2>/dev/null
}
mkdir pki other
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -subj /CN=authority -days 2 \
	-addext keyUsage=keyCertSign,cRLSign -out pki/ca-cert.pem 2>/dev/null
t "a server has a certificate" certificate server localhost \
	"subjectAltName=DNS:localhost,IP:127.0.0.1"
t "a client has one" certificate client client "extendedKeyUsage=clientAuth"
cp pki/ca-cert.pem other
printf '%s\n' "$peers" "[export disk]" "nbd = 127.0.0.1:$secure" "tls = require" \
	"tls_certificates = $TMP/pki" "tls_verify_peer = yes" "queues = 2" "[export open]" \
	"volume = disk" "nbd = $short/nbd.sock" "tls = on" "tls_certificates = $TMP/pki" \
	"queues = 2" >tls.conf
mv pki/server-key.pem .
expect_exit 2 "a directory without one of the files is refused" xseg up tls.conf
is "and each export with it" "$(xseg up tls.conf 2>&1 |
	grep -c "tls_certificates: $TMP/pki/server-key.pem: No such file")" 2
mv server-key.pem pki
t "a stack with TLS comes up" xseg up tls.conf
nbds="nbds://localhost:$secure/disk?tls-certificates=$TMP"
is "the list says so" "$(xseg --json export list | jq -c '[.[] | [.tls, .uri[0:4]]]')" \
	'[["require","nbds"],["on","nbds"]]'
t "a client with a certificate reads" nbdcopy "$nbds/pki" copy
t "what is on the volume" test "$(wc -c <copy)" = 16777216
t "and writes" nbdcopy --flush image "$nbds/pki"
t "with several connections" nbdcopy --connections=4 "$nbds/pki" copy
t "it is the same" cmp image copy
expect_exit 1 "one without a certificate is refused" nbdinfo --size "$nbds/other"
expect_exit 1 "so is one without TLS" nbdinfo --size "nbd://localhost:$secure/disk"
t "where TLS may be used a client without reads" nbdcopy "nbd+unix:///open?socket=$short/nbd.sock" copy
t "it is the same" cmp image copy
# its handshake is over in time; then it may be idle for longer than that takes
t "an idle client keeps its connection" "$python" -c 'import nbd, sys, time
h = nbd.NBD()
h.connect_uri(sys.argv[1])
time.sleep(12)
assert h.pread(4096, 0) == open("image", "rb").read(4096)' "nbd+unix:///open?socket=$short/nbd.sock"
server=$(field disk pid)
start client "$python" -c 'import nbd, os, sys, time
h = nbd.NBD()
h.connect_uri(sys.argv[1])
for i in range(16): h.aio_pread(nbd.Buffer(1 << 20), i << 20)
os.kill(os.getpid(), 9)' "$nbds/pki"
wait "$started" 2>/dev/null
t "a client that vanishes harms no other" nbdcopy "$nbds/pki" copy
is "the server is the same" "$(field disk pid)" "$server"
t "the stack stops" xseg down
finish
