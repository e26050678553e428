# manager.sh - a service manager, for the tests of messages to it (NOTIFY_SOCKET, sd_notify(3)).
#
#	. "$root/tests/lib/manager.sh"		# after system.sh; it listens then
#
# A command is told of it by NOTIFY_SOCKET=$manager. The file `notes` has the messages that the
# manager got, with an end of line after each.

cat >listen.py <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[2])
with open(sys.argv[1], "ab", buffering=0) as out:
    while True:
        out.write(s.recv(4096) + b"\n")
END
short=$(mktemp -d /tmp/xseg-notify.XXXXXX)	# a socket's path has at most 107 bytes
trap 'rm -rf "$short"; cleanup' EXIT
manager=$short/socket marks=0
start listen python3 listen.py notes "$manager"
t "a manager listens" wait_for 60 test -S "$manager"

# all_noted: waits until `notes` has all messages that were sent until now
all_noted()
{
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])' \
		"$manager" "MARK $((++marks))"
	wait_for 60 grep -qx "MARK $marks" notes
}
