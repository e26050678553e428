#!/bin/bash
# packages.sh - the Debian packages, on a bare Debian that is booted. They are built, and lintian finds
# no fault. They are installed, and a stack runs as a service. It survives a reboot, and an upgrade
# under I/O. An upgrade to programs of another layout leaves the old ones running. After a purge
# nothing is left but the stores.
#
# Environment: PACKAGES, a directory with packages of version 0.1.0 in old and 0.1.0+1 in new, where
#   they have been built already.
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

# files: what is there that has to do with xseg, but for what dpkg and apt keep of all packages
files()
{
	(cd "$TMP/debian" && find . -xdev \( -path ./packages -o -path ./proc -o -path ./sys \) -prune -o \
		-name '*xseg*' -print -o -name '*xbench*' -print) |
		grep -v -e '^./var/lib/dpkg/' -e '^./var/cache/' -e '^./var/lib/systemd/deb-systemd' | sort
	ls -d "$TMP"/debian/dev/shm/xseg.* 2>/dev/null
}

admin()	# WORD...: xseg, by root, on the segment of the service
{
	in_it xseg -s disk --owner xseg "$@"
}

# load SECONDS: verified I/O by a user of the group xseg, in the background; its process is $load
load()
{
	start load in_it setpriv --reuid=guest --regid=guest --init-groups xbench -s disk --owner xseg --volume=v \
		--rw=randrw --bsrange=4k-64k --iodepth=8 --runtime="$1" --time_based --verify=crc32c \
		--rate_iops=500
	load=$started
}

loads()
{
	admin volume import v /dev/null 2>&1 | grep -q "in use by xbench"
}

# The programs of processes that were replaced.
old_programs()
{
	in_it sh -c 'readlink /proc/[0-9]*/exe' | grep 'xseg.* (deleted)'
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
t "all packages are installed" in_it sh -c 'apt-get -q install -y --no-install-recommends /packages/*.deb'
is "only commands for users are in the path" \
	"$(in_it sh -c 'cd /usr/bin && ls -d xseg* xbench* volumed cached filed memd kvd sosd 2>/dev/null' | tr '\n' ' ')" \
	"xbench xseg "
t "the unit is right" in_it systemd-analyze verify --man=no xseg@disk.service
t "users complete its commands" in_it test -e /usr/share/bash-completion/completions/xseg \
	-a -e /usr/share/zsh/vendor-completions/_xseg

# ---- a service ----

sed 's/^memory = 1G/memory = 160M/; s/^memory = 512M/memory = 64M/' "$root/debian/examples/disk.conf" \
	>"$TMP/debian/etc/xseg/disk.conf"
in_it useradd --groups xseg guest
t "one stack file, and the service is enabled and started" in_it systemctl enable --now xseg@disk
is "it is active" "$(in_it systemctl is-active xseg@disk)" active
is "all processes are of the user xseg" "$(in_it sh -c 'for p in /proc/[0-9]*; do
	case $(readlink $p/exe) in /usr/libexec/xseg/* | /usr/bin/xseg) stat -c %U $p ;; esac; done' | sort | uniq -c |
	tr -s " ")" " 5 xseg"
t "a volume is made" admin volume create v --size 64M
load 5
t "a user of the group xseg does verified I/O" wait "$load"
t "the journal has the log" eval "in_it journalctl -u xseg@disk | grep -q 'supervisor: started'"
t "so has the file, which can be rotated" in_it sh -c 'grep -q "supervisor: started" /var/log/xseg/xseg-disk.log'
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

# ---- reboot ----

t "data is written that is dirty then" in_it xbench -s disk --owner xseg --volume=v --rw=write --bs=64k \
	--size=32M --number_ios=512 --verify=crc32c --verify_state=/root/state
t "the machine reboots" booted_reboot "$TMP/debian"
is "the service is active by itself" "$(in_it systemctl is-active xseg@disk)" active
t "and has what was written" in_it xbench -s disk --owner xseg --volume=v --verify_only \
	--verify_state=/root/state --rw=write --bs=64k --size=32M --number_ios=512

# ---- upgrade ----

t "the packages are built anew" build "$TMP/packages/new" 0.1.0+1
mkdir "$TMP/debian/packages/new"
cp "$TMP"/packages/new/*.deb "$TMP/debian/packages/new"
load 60
t "there is a load" wait_for 60 loads
t "they are installed under it" in_it sh -c 'apt-get -q install -y --no-install-recommends /packages/new/*.deb'
is "each process runs the new program" "$(old_programs)" ""
is "the service was not restarted" "$(in_it systemctl show -p NRestarts --value xseg@disk)" 0
t "the load goes on" loads
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0

# ---- another layout ----

t "xseg-ceph, which needs the same version, is removed" in_it sh -c 'dpkg --purge $(dpkg-query -f "\${Package}\n" -W "xseg-*")'
t "there are programs of another layout" other_layout "$TMP/packages/new" "$TMP/debian/packages/other" 0.1.0+2
load 30
t "there is a load again" wait_for 60 loads
in_it dpkg -i --force-depends --force-breaks /packages/other/xseg_0.1.0+2_amd64.deb >other.log 2>&1
t "the upgrade says that the old ones run on, and what to do" \
	grep -q "xseg@disk.service goes on with the programs of before.*systemctl restart" other.log
wait "$load" 2>/dev/null
is "and they do" "$(in_it systemctl is-active xseg@disk)" active
is "no I/O failed" "$(grep -c 'errors=0' load.log)" 1
t "restart starts the new ones" in_it systemctl restart xseg@disk
is "then it is active" "$(in_it systemctl is-active xseg@disk)" active
t "and has the volume" admin volume info v
is "each process runs the new program" "$(old_programs)" ""

# ---- remove, purge ----

t "what depends on it is removed" in_it dpkg --purge python3-xseg libxseg-dev
t "it is removed while the service runs" in_it apt-get -q remove -y xseg
is "nothing of it runs" "$(in_it sh -c 'cat /proc/[0-9]*/comm' | grep -cE '^(xseg|volumed|cached|filed)')" 0
is "no segment is left: the stop was in order" "$(in_it sh -c 'ls /dev/shm')" ""
t "the stack file is still there" in_it test -e /etc/xseg/disk.conf
t "it is purged" in_it sh -c 'dpkg --purge xseg libxseg1'
is "nothing is left but the store" "$(files | grep -v '^./packages')" "$(printf '%s\n' "$before" ./var/lib/xseg | sort | sed '/^$/d')"
t "which is the user's" in_it test -d /var/lib/xseg/disk
t "it ends" booted_end
finish
