# booted.sh - a Debian of its own that is booted, with systemd as its first process, in a container
# (systemd-nspawn), for tests of packages and services.
#
#	. "$root/tests/lib/booted.sh"	# after system.sh
#	booted_missing                  prints what such a test lacks on this machine, or nothing
#	booted_make DIR                 makes a bare Debian in DIR
#	booted_start DIR                boots it; returns when it is up
#	in_it COMMAND...                runs a command in it, as root
#	booted_reboot DIR               ends it in order and boots it; returns when it is up again
#	booted_end                      ends it
#
# All its processes end with systemd-nspawn, which is a child of the test.

booted=			# the process of systemd-nspawn

booted_missing()
{
	local program
	[ "$(id -u)" = 0 ] || { echo "root is needed"; return; }
	for program in debootstrap systemd-nspawn nsenter; do
		command -v $program >/dev/null 2>&1 || { echo "$program is not there"; return; }
	done
	grep -qs cgroup /proc/mounts || echo "there are no control groups"
}

booted_make()
{
	debootstrap --variant=minbase --include=ca-certificates,dbus,systemd,systemd-sysv bookworm "$1" &&
		rm -f "$1/etc/hostname"
}

# Its first process, as this machine counts.
booted_first()
{
	pgrep -P "$booted" | head -n 1
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
	start booted systemd-nspawn -D "$1" --register=no --keep-unit --boot --console=read-only
	booted=$started
	wait_for 120 booted_is_up
}

booted_end()
{
	in_it systemctl poweroff
	wait_for 60 eval '! kill -0 "$booted"'
}

# The container ends in between: what was in memory is gone.
booted_reboot()
{
	booted_end && booted_start "$1"
}
