# booted.sh - a Debian of its own that is booted, with systemd as its first process, in a container
# (systemd-nspawn), for tests of packages and services.
#
#	. "$root/tests/lib/booted.sh"	# after system.sh
#	booted_missing                  prints what such a test lacks on this machine, or nothing
#	booted_make DIR                 makes a bare Debian in DIR
#	booted_start DIR                boots it; returns when it is up
#	in_it COMMAND...                runs a command in it, as root
#	booted_end                      ends it in order
#	booted_cut                      kills all of it at once, as a power cut does
#
# However the test ends, nothing is left: the container is in a process namespace whose first process
# is a child of the test, its mounts are in a namespace of theirs, and its control groups are removed.

booted=			# the process of unshare, whose child is systemd-nspawn

booted_missing()
{
	local program
	[ "$(id -u)" = 0 ] || { echo "root is needed"; return; }
	for program in debootstrap systemd-nspawn nsenter unshare; do
		command -v $program >/dev/null 2>&1 || { echo "$program is not there"; return; }
	done
	grep -qs cgroup /proc/mounts || echo "there are no control groups"
}

booted_make()
{
	debootstrap --variant=minbase --include=ca-certificates,dbus,systemd,systemd-sysv bookworm "$1" &&
		rm -f "$1/etc/hostname"
}

# The control groups that the container's are made in: one in each tree that systemd uses.
booted_groups()
{
	awk '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /name=systemd/) { print $2 }' /proc/mounts |
		sed "s|\$|/$XSEG_SEGMENT|"
}

booted_run()	# DIR
{
	local group
	for group in $(booted_groups); do
		mkdir -p "$group" && echo "$BASHPID" >"$group/cgroup.procs" || exit 1
	done
	exec unshare --pid --fork --kill-child --mount-proc \
		systemd-nspawn -D "$1" --register=no --keep-unit --boot --console=read-only
}

# Its first process, as this machine counts.
booted_first()
{
	pgrep -P "$(pgrep -P "$booted")" | head -n 1
}

in_it()
{
	nsenter -t "$(booted_first)" -m -u -i -p -r -w -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
		DEBIAN_FRONTEND=noninteractive "$@"
}

booted_is_up()
{
	[ -n "$(booted_first)" ] && in_it systemctl is-system-running --wait | grep -qE 'running|degraded'
}

booted_start()
{
	start booted booted_run "$1"
	booted=$started
	wait_for 120 booted_is_up
}

booted_has_ended()
{
	! kill -0 "$booted" 2>/dev/null
}

booted_end()
{
	in_it systemctl poweroff
	wait_for 60 booted_has_ended
}

booted_cut()
{
	{ kill -KILL "$booted" && wait "$booted"; } 2>/dev/null
	wait_for 60 booted_has_ended
}

booted_leave_nothing()
{
	local status=$? group tries
	[ -z "$booted" ] || booted_cut
	for group in $(booted_groups); do
		for tries in 1 2 3 4 5 6 7 8 9 10; do
			[ -d "$group" ] || break
			find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
			sleep 0.1
		done
	done
	return "$status"
}
trap 'booted_leave_nothing; cleanup' EXIT
