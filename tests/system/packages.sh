#!/bin/bash
# packages.sh - the Debian packages, on a bare Debian that is booted. They are built, and lintian finds
# no fault. They are installed, and a stack runs as a service. Its data outlives a kill of all its
# processes, a reboot, a power cut, and an upgrade under I/O. An upgrade to programs of another
# layout leaves the old ones running. After a purge nothing is left but the stores.
#
# Environment: PACKAGES, a directory with packages of version 0.1.0 in old, 0.1.0+1 in new, and 0.1.0+2
#   of another layout in other, where they have been built already.
# tags: long
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/booted.sh"
missing=$(booted_missing)
[ -z "$missing" ] || skip_all "$missing"
need dpkg-buildpackage lintian fakeroot

# build DIR [VERSION]: the packages, into DIR
build()
{
	if [ -d "${PACKAGES:-}/${1##*/}" ]; then
		mkdir -p "$1" && cp "$PACKAGES/${1##*/}"/*.deb "$1"
		return
	fi
	(cd "$root" && unset MAKEFLAGS MAKELEVEL MFLAGS &&
		DEB_VERSION=${2:-} make --no-print-directory deb BUILD="$BUILD" &&
		mkdir -p "$1" && mv "$BUILD"/deb/*.deb "$1")
}

# Package xseg, its programs changed so that they lay a segment out in another way.
other_layout()	# FROM TO VERSION
{
	local deb
	if [ -d "${PACKAGES:-}/other" ]; then
		mkdir -p "$2" && cp "$PACKAGES"/other/*.deb "$2"
		return
	fi
	mkdir -p "$TMP/sources" "$TMP/new"
	(cd "$root" && tar -c --exclude=./.git --exclude='./build*' .) | tar -x -C "$TMP/sources" &&
		sed -i 's/sizeof(struct xs_super),/sizeof(struct xs_super) + 1,/' \
			"$TMP/sources/xseg/layout.c" &&
		make -C "$TMP/sources" -j"$(nproc)" LTO= CFLAGS=-O1 BUILD=build RADOS_HEADER=/nonexistent \
			build/bin/{xseg,xbench,xseg-host,volumed,cached,filed,kvd,xseg-memcached,memd} || return 1
	for deb in "$1"/xseg_*.deb; do
		dpkg-deb -R "$deb" "$TMP/new" &&
			sed -i "s/^Version: .*/Version: $3/" "$TMP/new/DEBIAN/control" || return 1
	done
	install -m 755 "$TMP"/sources/build/bin/{xseg,xbench} "$TMP/new/usr/bin" &&
		install -m 755 "$TMP"/sources/build/bin/{xseg-host,volumed,cached,filed,kvd,xseg-memcached,memd} \
			"$TMP/new/usr/libexec/xseg" &&
		mkdir -p "$2" && dpkg-deb --root-owner-group -b "$TMP/new" "$2"
}

# readme WORDS: the command with these words in README.md that is to be run by sudo
readme()
{
	sed -n "s/^    sudo \(.*$1.*\)/\1/p" "$root/README.md"
}

# files: what is there that has to do with xseg, but for the stores, and what dpkg and apt keep of all
# packages
files()
{
	(cd "$TMP/debian" && find . -xdev \( -path ./packages -o -path ./proc -o -path ./sys \
		-o -path './var/lib/xseg/*' \) -prune -o \
		-name '*xseg*' -print -o -name '*xbench*' -print) |
		grep -v -e '^./var/lib/dpkg/' -e '^./var/cache/' -e '^./var/lib/systemd/deb-systemd' | sort
	ls -d "$TMP"/debian/dev/shm/xseg.* 2>/dev/null
}

admin()	# WORD...: xseg, by root, on the segment of the service
{
	in_it xseg -s disk --owner xseg "$@"
}

as_guest()
{
	in_it setpriv --reuid=guest --regid=guest --init-groups "$@"
}

# load SECONDS: verified I/O by a user of the group xseg, in the background; its process is $load
load()
{
	start load as_guest timeout 300 xbench -s disk --owner xseg --volume=w --rw=randrw --bsrange=4k-64k \
		--iodepth=8 --runtime="$1" --time_based --verify=crc32c --rate_iops=500
	load=$started
}

# write_dirty MIB: writes so much, and keeps in the file state what was answered
write_dirty()
{
	in_it xbench -s disk --owner xseg --volume=v --rw=write --bs=64k --size="$1M" \
		--number_ios=$(($1 * 16)) --verify=crc32c --verify_state=/root/state
}

# is_there MIB: what write_dirty has written last is what is read
is_there()
{
	in_it xbench -s disk --owner xseg --volume=v --rw=write --bs=64k --size="$1M" \
		--number_ios=$(($1 * 16)) --verify_only --verify_state=/root/state
}

# Copies an image to the volume `image` and back through its export by NBD, until the file `end` is there.
nbd_rounds()
{
	local n=0
	until [ -e end ]; do
		in_it sh -c 'nbdcopy /root/image.raw "$1" && nbdcopy "$1" /root/copy.raw &&
			cmp /root/image.raw /root/copy.raw' - 'nbd+unix:///?socket=/tmp/image.sock' || return 1
		echo $((++n)) >rounds
	done
}

nbd_goes_on()	# ROUNDS
{
	[ "$(cat rounds)" -gt "$1" ]
}

is_active()
{
	in_it systemctl is-active "$@"
}

restarts()
{
	in_it systemctl show -p NRestarts --value xseg@disk
}

loads()
{
	admin volume import w /dev/null 2>&1 | grep -q "in use by xbench"
}

# processes USER COMMAND...: runs COMMAND with the directory in /proc of each process of this user
processes()
{
	local user=$1
	shift
	in_it sh -c 'user=$1; shift; for p in /proc/[0-9]*; do
		[ "$(stat -c %U "$p" 2>/dev/null)" != "$user" ] || "$@" "$p"; done' - "$user" "$@"
}

# The programs of the service's processes that were replaced.
old_programs()
{
	processes xseg sh -c 'readlink "$0/exe"' | grep '(deleted)'
}

t "the packages are built, and lintian finds no fault" build "$TMP/packages/old" || finish
for package in xseg libxseg1 libxseg-dev python3-xseg xseg-nbdkit; do
	t "there is $package" eval 'ls "$TMP/packages/old/${package}_"*.deb'
done
t "a bare Debian is made" booted_make "$TMP/debian" || finish
mkdir "$TMP/debian/packages"
cp "$TMP"/packages/old/*.deb "$TMP/debian/packages"
t "and booted" booted_start "$TMP/debian" || finish
is "its first process is systemd" "$(in_it cat /proc/1/comm)" systemd
before=$(files | grep -v '^./packages')

# ---- install ----

t "apt's lists are fetched" in_it apt-get -q update
t "all packages are installed, as README.md says" in_it sh -c "$(readme 'apt install' |
	sed 's|\./build/deb|/packages|; s/apt install/& -q -y --no-install-recommends/')"
is "only commands for users are in the path" \
	"$(in_it sh -c 'cd /usr/bin && ls -d xseg* xbench* volumed cached filed memd kvd sosd 2>/dev/null' | tr '\n' ' ')" \
	"xbench xseg "
t "the unit is right" in_it systemd-analyze verify --man=no xseg@disk.service
t "and lets the service do little beside its work" \
	in_it systemd-analyze security --no-pager --threshold=20 xseg@disk.service
t "users complete its commands" in_it test -e /usr/share/bash-completion/completions/xseg \
	-a -e /usr/share/zsh/vendor-completions/_xseg

# ---- a service ----

t "one stack file" in_it sh -c "$(readme 'cp ')"
sed -i 's/^memory = 1G/memory = 160M/; s/^memory = 512M/memory = 64M/' "$TMP/debian/etc/xseg/disk.conf"
in_it useradd --groups xseg guest
t "and the service is enabled and started" in_it sh -c "$(readme systemctl)"
is "it is active" "$(is_active xseg@disk)" active
is "all five processes are of the user xseg" "$(processes xseg echo | wc -l)" 5
t "a volume is made" in_it sh -c "$(readme 'volume create v')"
t "and one for a load" admin volume create w --size 64M
load 5
t "a user of the group xseg does verified I/O" wait "$load"
t "the journal has the log" eval "in_it journalctl -u xseg@disk | grep -q 'supervisor: started'"
t "so has the file, which can be rotated" in_it sh -c 'grep -q "supervisor: started" /var/log/xseg/xseg-disk.log'
t "the log is rotated" in_it sh -c 'apt-get -q install -y --no-install-recommends logrotate &&
	logrotate --force /etc/logrotate.d/xseg && test -e /var/log/xseg/xseg-disk.log.1'
t "a process is killed" admin peer kill cached
t "the rotated log goes on" wait_for 20 in_it grep -q "process of cached was killed" /var/log/xseg/xseg-disk.log
t "so does the journal" wait_for 20 eval "in_it journalctl -u xseg@disk | grep -q 'process of cached was killed'"
expect_exit 1 "another user may not" in_it setpriv --reuid=nobody --clear-groups xseg -s disk info
t "python3-xseg reads the volume" in_it python3 -c 'import xseg
with xseg.Volume("v", segment="disk", owner="xseg") as v: v.pread(4096, 0)'

# ---- the packages' own tests ----

cp -r "$root/debian/tests" "$TMP/debian/packages/tests"
for own in "$root"/debian/tests/*; do
	[ -x "$own" ] || continue
	own=${own##*/}
	depends=$(awk -v RS= -v own="$own" '$2 == own' FS='[: \n]+' "$root/debian/tests/control" |
		sed -n 's/^Depends: //p' | tr -d ,)
	# shellcheck disable=SC2086
	t "debian/tests/$own has what it needs" in_it apt-get -q install -y --no-install-recommends $depends
	t "debian/tests/$own" in_it "/packages/tests/$own"
done

# ---- stops of all kinds ----

t "data is written that is dirty then" write_dirty 32
t "all processes of the service are killed" in_it systemctl kill --signal=KILL xseg@disk
t "it is started again" wait_for 60 eval '[ "$(restarts)" = 1 ] && is_active xseg@disk'
t "with the dirty data" is_there 32

cat >"$TMP/debian/etc/xseg/slow.conf" <<'END'
[segment]
memory = 160M
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 48M
dirty_high = 90
dirty_low = 80
dirty_age = 1h
[peer volumed]
downstream = cached
END
in_it mkdir /etc/systemd/system/xseg@slow.service.d
printf '[Service]\nTimeoutStopSec=4\n' >"$TMP/debian/etc/systemd/system/xseg@slow.service.d/stop.conf"
t "a service whose stop may take 4 s is started" in_it systemctl start xseg@slow
t "its cache has 16 MiB of dirty data" in_it sh -c 'xseg -s slow --owner xseg volume create v --size 16M &&
	xbench -s slow --owner xseg --volume=v --rw=write --bs=64k --size=16M --number_ios=256'
t "which its store takes in 8 s" in_it xseg -s slow --owner xseg peer set memd bandwidth=2M/s
SECONDS=0
t "it is stopped" in_it systemctl stop xseg@slow
t "in more than 4 s" test "$SECONDS" -ge 5
is "and in order: while data is written, the time is put off" \
	"$(in_it systemctl show -p Result --value xseg@slow)" success

t "data is written that is dirty then" write_dirty 32
t "the machine is switched off" booted_end
t "and on" booted_start "$TMP/debian"
is "the service is active by itself" "$(is_active xseg@disk)" active
t "and has what was written" is_there 32
t "data is written" write_dirty 24
t "and flushed" admin volume flush v
t "the power is cut: all is killed, and the segment is gone" booted_cut
t "it comes back" booted_start "$TMP/debian"
is "the service is active by itself" "$(is_active xseg@disk)" active
t "and has what was flushed" is_there 24

# ---- upgrade ----

t "the packages are built anew" build "$TMP/packages/new" 0.1.0+1
mkdir "$TMP/debian/packages/new"
cp "$TMP"/packages/new/*.deb "$TMP/debian/packages/new"
in_it dd if=/dev/urandom of=/root/image.raw bs=1M count=8 status=none
t "a volume is made for an image" admin volume create image --size 8M
start export as_guest xseg -s disk --owner xseg export image --nbd /tmp/image.sock
export_pid=$started
t "it is exported" wait_for 60 in_it test -S /tmp/image.sock
load 60
t "there is a load" wait_for 60 loads
start nbd nbd_rounds
nbd=$started
t "and one by NBD" wait_for 60 nbd_goes_on 0
t "they are installed under it" in_it sh -c 'apt-get -q install -y --no-install-recommends /packages/new/*.deb'
is "each process runs the new program" "$(old_programs)" ""
is "the service was not restarted" "$(restarts)" 0
t "the load goes on" loads
rounds=$(cat rounds)
t "so does the one by NBD" wait_for 60 nbd_goes_on $((rounds + 1))
touch end
wait "$nbd"
is "which got back what it had written each time" "$?" 0
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
processes guest sh -c '[ "$(cat "$0/comm" 2>/dev/null)" != xseg ] || kill -INT "${0#/proc/}"'
wait "$export_pid"
is "the export ends well" "$?" 0

# ---- another layout ----

t "xseg-ceph, which needs the same version, is removed" in_it sh -c 'dpkg --purge $(dpkg-query -f "\${Package}\n" -W "xseg-*")'
t "data is written that is dirty then" write_dirty 24
t "there are programs of another layout" \
	other_layout "$TMP/packages/new" "$TMP/debian/packages/other" 0.1.0+2
load 30
t "there is a load again" wait_for 60 loads
before_pid=$(in_it systemctl show -p MainPID --value xseg@disk)
in_it dpkg -i --force-depends --force-breaks /packages/other/xseg_0.1.0+2_amd64.deb >other.log 2>&1
t "the upgrade says that the old ones run on, and what to do" \
	grep -q "xseg@disk.service goes on with the programs of before.*systemctl restart" other.log
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
is "the service is active" "$(is_active xseg@disk)" active
is "with the old processes" "$(in_it systemctl show -p MainPID --value xseg@disk)" "$before_pid"
t "restart starts the new ones" in_it systemctl restart xseg@disk
is "then it is active" "$(is_active xseg@disk)" active
is "each process runs the new program" "$(old_programs)" ""
t "and has what was dirty" is_there 24

# ---- remove, purge ----

t "what depends on it is removed" in_it dpkg --purge python3-xseg libxseg-dev
t "a service whose store fails is started" in_it systemctl start xseg@slow
t "it gets dirty data" in_it sh -c 'xseg -s slow --owner xseg volume create v --size 4M &&
	xseg -s slow --owner xseg peer set memd fail=write:1:EIO &&
	xbench -s slow --owner xseg --volume=v --rw=write --bs=64k --size=4M --number_ios=64'
in_it apt-get -q remove -y xseg >remove.log 2>&1
is "a remove that would lose the data is refused" "$?" 100
t "which is said, with what to do" grep -q "xseg.slow .*could not be written.*destroy --force" remove.log
t "the data is given up" in_it xseg -s slow --owner xseg destroy --force
t "the other service goes on" in_it systemctl start xseg@disk
in_it sh -c 'dpkg -L xseg libxseg1 | while read -r f; do [ -d "$f" ] || echo "$f"; done' >owned
t "it is removed while that runs" in_it apt-get -q remove -y xseg
is "nothing of it runs" "$(processes xseg echo)" ""
is "no segment is left: the stop was in order" "$(in_it sh -c 'ls /dev/shm')" ""
t "the stack file is still there" in_it test -e /etc/xseg/disk.conf
t "it is installed again" in_it dpkg -i --force-depends /packages/other/xseg_0.1.0+2_amd64.deb
t "the service is started again" in_it systemctl start xseg@disk
t "and has its data" is_there 24
t "it is purged while that runs" in_it sh -c 'dpkg --purge xseg libxseg1'
is "none of its files is left" "$(in_it sh -c 'while read -r f; do [ ! -e "$f" ] || echo "$f"; done' <owned)" ""
is "nothing is left but the store" "$(files | grep -v '^./packages')" \
	"$(printf '%s\n' "$before" ./var/lib/xseg | sort | sed '/^$/d')"
t "which is the user's" in_it test -d /var/lib/xseg/disk
t "it ends" booted_end
finish
