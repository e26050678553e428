#!/bin/bash
# export_rights.sh - which users may connect to the socket of an export: the users that may attach to
# the segment, or those that mode and group of the export name. A reload changes both, and clients that
# are connected stay. What cannot be had is refused in a line. `xseg export` has both as options.
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed memd nbdkit nbdinfo jq
need_plugin
[ "$(id -u)" = 0 ] || skip_all "root is needed: sockets are given to groups, and used by other users"
python=$(python_of nbd) || skip_all "Python has no module nbd (python3-libnbd)"

short=$(mktemp -d "/tmp/xseg-rights.XXXXXX")	# a socket's path has at most 107 bytes
trap 'rm -rf "$short"; cleanup' EXIT
chmod 755 "$short"
socket=$short/nbd.sock
uri="nbd+unix:///?socket=$socket"

# stack [KEYS OF SEGMENT] [KEYS OF EXPORT]: writes stack.conf
stack()
{
	printf '%s\n' "[segment]" "memory = 64M" ${1:+"$1"} "[peer memd]" "memory = 16M" \
		"[peer volumed]" "downstream = memd" "[export disk]" "nbd = $socket" "queues = 1" \
		${2:+"$2"} >stack.conf
}

rights()		# FILE
{
	stat -c '%a %g' "$1"
}
server()
{
	xseg --json export list | jq '.[0].pid'
}
# as GID COMMAND...: by a user that is in this group alone
as()
{
	local group=$1
	shift
	setpriv --reuid=65534 --regid="$group" --clear-groups "$@"
}

# ---- of the segment ----

stack
t "a stack comes up that names no users" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 1M
is "nor may others connect to its export" "$(rights "$socket")" "600 $(id -g)"
expect_exit 1 "another user does not" as 1 nbdinfo --size "$uri"
mkfifo wait
exec 9<>wait
"$python" -c 'import nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
print("there", flush=True)
sys.stdin.readline()
h.pread(4096, 0)' "$uri" <wait >client.log 2>&1 &
client=$!
t "a client connects" wait_for 60 grep -q there client.log
before=$(server)
stack "mode = 0660
group = 1"
t "the segment is given to a group" xseg reload stack.conf
is "so is the socket" "$(rights "$socket")" "660 1"
is "a user of that group connects" "$(as 1 nbdinfo --size "$uri")" 1048576
expect_exit 1 "one of another group does not" as 2 nbdinfo --size "$uri"

# ---- of the export ----

stack "mode = 0660
group = 1" "mode = 0620
group = 2"
t "the export is given to another group" xseg reload stack.conf
is "its socket has mode and group" "$(rights "$socket")" "620 2"
is "a user of that group connects" "$(as 2 nbdinfo --size "$uri")" 1048576
expect_exit 1 "one of the segment's group does not" as 1 nbdinfo --size "$uri"
expect_exit 4 "who connects may not attach" as 2 xseg info
is "all that was one server" "$(server)" "$before"
echo >&9
wait "$client"
is "and its client is served still" "$?" 0
stack "mode = 0600" "mode = 0660"
t "a key alone goes with the other one of the segment" xseg reload stack.conf
is "which is its user's group then" "$(rights "$socket")" "660 $(id -g)"
kill_hard "$before"
t "a server that died comes again" wait_for 60 bash -c \
	"xseg --json export list | jq -e '.[0].state == \"serving\" and .[0].pid != $before'"
is "with the same rights" "$(rights "$socket")" "660 $(id -g)"

# ---- refused ----

stack "" "group = no-such-group"
expect_err 2 "line 10: group: this machine has no group 'no-such-group'" \
	"a group that there is not is refused by a reload" xseg reload stack.conf
is "nothing has changed" "$(rights "$socket")" "660 $(id -g)"
t "the stack stops" xseg down
expect_err 2 "line 10: group: this machine has no group 'no-such-group'" "also by up" xseg up stack.conf
expect_exit 2 "and by config check" xseg config check stack.conf
stack "" "group ="
expect_err 2 "group: it is empty" "an empty one is refused" xseg up stack.conf
stack "" "group = 1
[export other]
volume = disk
nbd = $socket
group = 2"
expect_err 2 "another group; one server serves both" "two exports of one socket have one group" \
	xseg up stack.conf
stack "" "group = 1"
sed -i "s|^nbd = .*|nbd = 127.0.0.1:10809|" stack.conf
expect_err 2 "has group, and no socket with a path" "a port has none" xseg up stack.conf
mkdir -m 777 "$short/other"
stack "" "group = 1"
sed -i "s|^nbd = .*|nbd = $short/other/nbd.sock|" stack.conf
cp stack.conf "$short/stack.conf"
expect_err 1 "socket $short/other/nbd.sock cannot have group .*server's user has to be in that group" \
	"a user gives a socket to none but its own groups" \
	as 2 env XDG_STATE_HOME="$short/other" XSEG_SEGMENT="$XSEG_SEGMENT-other" \
	xseg up "$short/stack.conf"

# ---- xseg export ----

stack
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create lone --size 1M
export_up lone lone
is "an export by hand is its user's" "$(rights "$TMP/lone.sock")" "600 $(id -g)"
t "it ends" export_down "$server"
export_up given lone --mode=0660 --group=1
is "it is given to a group" "$(rights "$TMP/given.sock")" "660 1"
t "it ends" export_down "$server"
expect_err 2 "this machine has no group 'no-such-group'" "if there is one" \
	xseg export lone --nbd "$TMP/x.sock" --group=no-such-group
expect_err 2 "mode: '0999' is not a file mode" "and if the mode is one" \
	xseg export lone --nbd "$TMP/x.sock" --mode=0999
t "the stack stops" xseg down
finish
