#!/bin/bash
# packages.sh - the Debian packages, on a bare Debian that is booted. They are built, and lintian finds
# no fault. They are installed, and a stack runs as a service, which exports a volume by NBD. Its data
# outlives a kill of all its processes, a reboot, a power cut, and an upgrade under I/O. An upgrade that
# cannot restart a store says so, and is completed by a second try. One to programs of another format
# leaves the old ones running. After a purge nothing is left but the stores.
#
# Environment: PACKAGES, a directory with packages of version 0.1.0 in old, 0.1.0+1 in new, and 0.1.0+2
#   of another format in other, where they have been built already.
# tags: long
# timeout: 120
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/booted.sh"
missing=$(booted_missing)
[ -z "$missing" ] || skip_all "$missing"
need dpkg-buildpackage lintian fakeroot jq openssl

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

# Packages xseg and xseg-nbdkit, whose cached has tables of another format. Nothing else in the segment
# is different.
other_format()	# FROM TO VERSION
{
	local package tree
	if [ -d "${PACKAGES:-}/other" ]; then
		mkdir -p "$2" && cp "$PACKAGES"/other/*.deb "$2"
		return
	fi
	mkdir -p "$TMP/sources" "$2"
	(cd "$root" && tar -c --exclude=./.git --exclude='./build*' .) | tar -x -C "$TMP/sources" &&
		sed -i 's/XSEG_FORMAT_CACHED = /&1 + /' "$TMP/sources/xseg/arenas.h" &&
		make -C "$TMP/sources" -j"$(nproc)" LTO= CFLAGS=-O1 BUILD=build RADOS_HEADER=/nonexistent \
			build/bin/{xseg,xbench,xseg-host,volumed,cached,filed,kvd,xseg-memcached,memd} \
			build/lib/{nbdkit-xseg-plugin.so,xseg-nbdkit-guard.so} || return 1
	for package in xseg xseg-nbdkit; do
		dpkg-deb -R "$1/${package}"_[0-9]*.deb "$TMP/new-$package" &&
			sed -i "s/^Version: .*/Version: $3/; s/xseg (= [^)]*)/xseg (= $3)/" \
				"$TMP/new-$package/DEBIAN/control" || return 1
	done
	tree=$TMP/new-xseg
	install -m 755 "$TMP"/sources/build/bin/{xseg,xbench} "$tree/usr/bin" &&
		install -m 755 "$TMP"/sources/build/bin/{xseg-host,volumed,cached,filed,kvd,xseg-memcached,memd} \
			"$tree/usr/libexec/xseg" || return 1
	tree=$TMP/new-xseg-nbdkit
	install -m 755 "$TMP/sources/build/lib/nbdkit-xseg-plugin.so" "$tree"/usr/lib/*/nbdkit/plugins &&
		install -m 755 "$TMP/sources/build/lib/xseg-nbdkit-guard.so" "$tree/usr/libexec/xseg" ||
		return 1
	for package in xseg xseg-nbdkit; do
		dpkg-deb --root-owner-group -b "$TMP/new-$package" "$2" || return 1
	done
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

# nbd_rounds NAME URI [URI]: a user of the group xseg copies an image by the first, and back by the last,
# until the file `end` is there
nbd_rounds()
{
	local n=0
	until [ -e end ]; do
		as_guest sh -c 'nbdcopy /srv/image.raw "$1" && nbdcopy "$2" "$3" &&
			cmp /srv/image.raw "$3"' - "$2" "${3:-$2}" "/tmp/$1.raw" || return 1
		echo $((++n)) >"rounds.$1"
	done
}

# goes_on NAME [ROUNDS]: there were more
goes_on()
{
	[ "$(cat "rounds.$1")" -gt "${2:-0}" ]
}

# goes_on_now NAME: one more round begins and ends
goes_on_now()
{
	local rounds
	rounds=$(cat "rounds.$1")
	wait_for 60 goes_on "$1" $((rounds + 1))
}

# export_field EXPORT FIELD, of the exports of the service
export_field()
{
	admin --json export list | jq -r ".[] | select(.name == \"$1\") | .$2"
}

serves()	# EXPORT
{
	[ "$(export_field "$1" state)" = serving ]
}

unix="nbd+unix:///disk0?socket=/run/xseg/disk/nbd.sock"
tcp=nbd://127.0.0.1:10809/disk0-tcp

# An image is on the volume disk0: by the socket, and by TCP.
has_image()
{
	as_guest sh -c 'for uri; do nbdcopy "$uri" /tmp/copy.raw && cmp /srv/image.raw /tmp/copy.raw ||
		exit 1; done' - "$unix" "$tcp"
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

# The same of plug-ins.
old_plugins()
{
	processes xseg sh -c 'grep -o "nbdkit-xseg-plugin.so.*(deleted)" "$0/maps"'
}

main_pid()
{
	in_it systemctl show -p MainPID --value xseg@disk
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
t "package xseg is installed alone" in_it sh -c \
	'apt-get -q install -y --no-install-recommends /packages/xseg_*.deb'
cat >"$TMP/debian/etc/xseg/lone.conf" <<'END'
[segment]
memory = 96M
[peer memd]
memory = 16M
[peer volumed]
downstream = memd
[export v]
nbd = /run/xseg/lone/nbd.sock
queues = 1
END
t "its stack file is right: the service makes the directory of the socket" in_it xseg config check \
	/etc/xseg/lone.conf
expect_exit 1 "then a service with an export does not start" in_it systemctl start xseg@lone
t "and says which package is missing" wait_for 20 eval \
	"in_it journalctl -u xseg@lone | grep -q 'install the package xseg-nbdkit'"
t "it is given up" in_it sh -c \
	'systemctl stop xseg@lone; rm /etc/xseg/lone.conf; systemctl reset-failed xseg@lone || true'
is "no segment is left" "$(in_it sh -c 'ls /dev/shm')" ""
t "all packages are installed, as README.md says" in_it sh -c "$(readme 'apt install' |
	sed 's|\./build/deb|/packages|; s/apt install/& -q -y --no-install-recommends/')"
is "only commands for users are in the path" \
	"$(in_it sh -c 'cd /usr/bin && ls -d xseg* xbench* volumed cached filed memd kvd sosd 2>/dev/null' | tr '\n' ' ')" \
	"xbench xseg "
t "the unit is right" in_it systemd-analyze verify --man=no xseg@disk.service
t "and lets the service do little beside its work" \
	in_it systemd-analyze security --no-pager --threshold=20 xseg@disk.service
is "its supervisor starts a peer again that the kernel has killed for its memory" \
	"$(in_it systemctl show -p OOMPolicy --value xseg@disk)" continue
t "users complete its commands" in_it test -e /usr/share/bash-completion/completions/xseg \
	-a -e /usr/share/zsh/vendor-completions/_xseg

# ---- a service ----

t "one stack file" in_it sh -c "$(readme 'cp ')"
sed -i 's/^memory = 1G/memory = 208M/; s/^memory = 512M/memory = 64M/' "$TMP/debian/etc/xseg/disk.conf"
cat >>"$TMP/debian/etc/xseg/disk.conf" <<'END'

[export disk0]
nbd = /run/xseg/disk/nbd.sock
queues = 4

[export disk0-tcp]
volume = disk0
nbd = 127.0.0.1:10809
queues = 2
END
t "a user joins the group" in_it sh -c "useradd guest && adduser guest xseg"
t "and the service is enabled and started" in_it sh -c "$(readme systemctl)"
is "it is active" "$(is_active xseg@disk)" active
is "all seven processes are of the user xseg" "$(processes xseg echo | wc -l)" 7
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
expect_exit 4 "another user may not" in_it setpriv --reuid=nobody --clear-groups xseg -s disk info
t "python3-xseg reads the volume" in_it python3 -c 'import xseg
with xseg.Volume("v", segment="disk", owner="xseg") as v: v.pread(4096, 0)'

# ---- exports ----

t "clients of NBD are installed" in_it apt-get -q install -y --no-install-recommends libnbd-bin
t "a volume is made for a guest" admin volume create disk0 --size 8M
t "it is exported" wait_for 20 serves disk0
t "also by TCP" wait_for 20 serves disk0-tcp
is "the socket has the rights of the segment" "$(in_it stat -c '%U %G %a' /run/xseg/disk/nbd.sock)" "xseg xseg 660"
is "its directory keeps nobody away" "$(in_it stat -c '%U %G %a' /run/xseg/disk)" "xseg xseg 755"
in_it dd if=/dev/urandom of=/srv/image.raw bs=1M count=8 status=none
t "a user of the group writes an image" as_guest nbdcopy --flush /srv/image.raw "$unix"
t "and reads it, also by TCP" has_image
expect_exit 1 "another user may not connect to the socket" \
	in_it setpriv --reuid=nobody --clear-groups nbdinfo --size "$unix"
server=$(export_field disk0 pid)
is "its server is as confined as the peers" \
	"$(in_it grep -hE '^(CapBnd|NoNewPrivs|Seccomp):' "/proc/$server/status" | tr -d '[:space:]')" \
	"CapBnd:0000000000000000NoNewPrivs:1Seccomp:2"
t "the server is killed" in_it sh -c "kill -KILL $server"
is_another()
{
	serves disk0 && [ "$(export_field disk0 pid)" != "$server" ]
}
t "there is another one" wait_for 20 is_another
t "which has the image" has_image

# ---- another stack file ----

before_pid=$(main_pid)
server=$(export_field disk0 pid)
cp "$TMP/debian/etc/xseg/disk.conf" disk.conf
printf '\n[export late]\nvolume = disk0\nnbd = /run/xseg/disk/late.sock\nqueues = 1\n' \
	>>"$TMP/debian/etc/xseg/disk.conf"
t "reload takes another export from the stack file" in_it systemctl reload xseg@disk
t "it is served" wait_for 20 serves late
is "the service is the same" "$(main_pid)" "$before_pid"
is "so is the server of the others" "$(export_field disk0 pid)" "$server"
echo nonsense >>"$TMP/debian/etc/xseg/disk.conf"
expect_exit 1 "a wrong stack file is refused" in_it systemctl reload xseg@disk
is "the service is still active" "$(is_active xseg@disk)" active
cp disk.conf "$TMP/debian/etc/xseg/disk.conf"
t "reload takes the export away" in_it systemctl reload xseg@disk
is "it is gone" "$(export_field late state)" ""
cached_pid()
{
	admin --json peer list | jq '.[] | select(.name == "cached").pid'
}
old_cached=$(cached_pid)
t "a program is replaced" in_it sh -c \
	'cp /usr/libexec/xseg/cached /usr/libexec/xseg/new && mv /usr/libexec/xseg/new /usr/libexec/xseg/cached'
t "a reload applies the stack file" in_it systemctl reload xseg@disk
is "and restarts nothing for that" "$(cached_pid)" "$old_cached"
t "an upgrade does" in_it sh -c 'echo $$ >/run/xseg.upgrade && systemctl reload xseg@disk'
is "it runs the new program" "$([ "$(cached_pid)" != "$old_cached" ] && echo yes)" yes
printf '\n[export late]\nvolume = disk0\nnbd = /run/xseg/disk/late.sock\nqueues = 1\n' \
	>>"$TMP/debian/etc/xseg/disk.conf"
t "an upgrade that was killed has left its mark" in_it test -e /run/xseg.upgrade
t "a reload applies the stack file nevertheless" in_it systemctl reload xseg@disk
t "it is served" wait_for 20 serves late
cp disk.conf "$TMP/debian/etc/xseg/disk.conf"
t "reload takes the export away" in_it sh -c 'systemctl reload xseg@disk && rm /run/xseg.upgrade'

# ---- an export for another group, as the manual page has it ----

as_vm()
{
	in_it setpriv --reuid=libvirt-qemu --regid=libvirt-qemu --init-groups "$@"
}
# man LETTERS: the lines of the page between .nf and .fi, one of which begins with these letters
man_lines()
{
	awk -v begin="$1" '/^\.fi/ { if (index(text, "\n" begin)) printf "%s", text; on = 0 }
		on { text = text $0 "\n" } /^\.nf/ { on = 1; text = "\n" }' "$root/debian/xseg@.8" |
		sed 's/\\-/-/g; s/NAME/disk/g'
}
vm="nbd+unix:///?socket=/run/xseg/disk/vm1.sock"
t "there is a user of virtual machines" in_it sh -c 'addgroup --quiet --system libvirt-qemu &&
	adduser --quiet --system --no-create-home --ingroup libvirt-qemu libvirt-qemu'
t "its disk is made" admin volume create vm1 --size 4M
{
	man_lines '[export vm1]'
	echo 'queues = 1'
} >>"$TMP/debian/etc/xseg/disk.conf"
expect_exit 1 "the service cannot give it the socket" in_it systemctl reload xseg@disk
t "the journal says why" wait_for 20 eval "in_it journalctl -u xseg@disk |
	grep -q 'vm1.sock cannot have group .* user has to be in that group'"
t "it is told so, as the page says" in_it sh -c "$(man_lines adduser)"
t "it is served" wait_for 20 serves vm1
is "the socket is of that group" "$(in_it stat -c '%U %G %a' /run/xseg/disk/vm1.sock)" \
	"xseg libvirt-qemu 660"
is "the virtual machine has its disk" "$(as_vm nbdinfo --size "$vm")" 4194304
expect_exit 1 "and no other one" as_vm nbdinfo --size "$unix"
expect_exit 4 "nor the segment" as_vm xseg -s disk --owner xseg info
cp disk.conf "$TMP/debian/etc/xseg/disk.conf"
t "reload takes it away" in_it systemctl reload xseg@disk
t "its disk is removed" wait_for 20 admin volume remove vm1

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
t "its exports serve" has_image

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
t "it gets a volume" in_it xseg -s slow --owner xseg volume create v --size 16M
is_dirty_for_8s()
{
	in_it xbench -s slow --owner xseg --volume=v --rw=write --bs=64k --size=16M --number_ios=256 &&
		in_it xseg -s slow --owner xseg peer set memd bandwidth=2M/s
}
t "its cache has dirty data, which the store takes in 8 s" is_dirty_for_8s
printf '[Service]\nTimeoutStartSec=4\n' >"$TMP/debian/etc/systemd/system/xseg@slow.service.d/start.conf"
in_it systemctl daemon-reload
printf '[run]\ntogether = volumed cached\n' >>"$TMP/debian/etc/xseg/slow.conf"
SECONDS=0
t "a reload that may take 4 s replaces peers" in_it systemctl reload xseg@slow
t "in more than that: while data is written, the time is put off" test "$SECONDS" -ge 5
is "the service is active" "$(is_active xseg@slow)" active
rm "$TMP/debian/etc/systemd/system/xseg@slow.service.d/start.conf"
in_it systemctl daemon-reload
t "there is dirty data again" is_dirty_for_8s
SECONDS=0
t "it is stopped" in_it systemctl stop xseg@slow
t "in more than 4 s" test "$SECONDS" -ge 5
is "and in order: while data is written, the time is put off" \
	"$(in_it systemctl show -p Result --value xseg@slow)" success

cat >"$TMP/debian/etc/xseg/late.conf" <<'END'
[segment]
memory = 96M
[peer memd]
memory = 32M
latency = 1s
[peer kvd]
downstream = memd
size = 16M
zone_size = 256k
tail = 512k
END
t "a service is started, which takes seconds to open its log" in_it systemctl start --no-block xseg@late
t "it has begun" wait_for 60 in_it grep -q "kvd: serving" /var/log/xseg/xseg-late.log
is "and is not active yet" "$(is_active xseg@late)" activating
t "it is stopped then" in_it systemctl stop xseg@late
is "it is inactive, and has not failed" "$(in_it systemctl show -p ActiveState --value xseg@late) \
$(in_it systemctl show -p Result --value xseg@late)" "inactive success"
is "its peers stopped from the top down" "$(in_it journalctl -o cat -u xseg@late |
	sed -n 's/.*supervisor: stopping \([a-z]*\)$/\1/p' | xargs)" "kvd memd"
is "and its segment is gone" "$(in_it sh -c 'ls /dev/shm | grep late')" ""

t "data is written that is dirty then" write_dirty 32
t "the machine is switched off" booted_end
t "and on" booted_start "$TMP/debian"
is "the service is active by itself" "$(is_active xseg@disk)" active
t "and has what was written" is_there 32
t "its exports serve" has_image
t "data is written" write_dirty 24
t "and flushed" admin volume flush v
t "the power is cut: all is killed, and the segment is gone" booted_cut
t "it comes back" booted_start "$TMP/debian"
is "the service is active by itself" "$(is_active xseg@disk)" active
t "and has what was flushed" is_there 24
t "its exports serve" has_image

# ---- upgrade ----

t "the packages are built anew" build "$TMP/packages/new" 0.1.0+1
mkdir "$TMP/debian/packages/new"
cp "$TMP"/packages/new/*.deb "$TMP/debian/packages/new"
t "a volume is made for an export by hand" admin volume create image --size 8M
start export as_guest xseg -s disk --owner xseg export image --nbd /tmp/image.sock
export_pid=$started
t "it is exported" wait_for 60 in_it test -S /tmp/image.sock
load 60
t "there is a load" wait_for 60 loads
start nbd nbd_rounds image "nbd+unix:///?socket=/tmp/image.sock"
nbd=$started
start own nbd_rounds own "$unix" "$tcp"
own=$started
t "and one by NBD" wait_for 60 goes_on image
t "and one by the exports of the service" wait_for 60 goes_on own
server=$(export_field disk0 pid)
sed 's/^queues = 4/queues = 3/' disk.conf >"$TMP/debian/etc/xseg/disk.conf"
t "they are installed under it" in_it sh -c 'apt-get -q install -y --no-install-recommends /packages/new/*.deb'
is "each process runs the new program" "$(old_programs)" ""
is "the service was not restarted" "$(restarts)" 0
is "systemd has the new unit" "$(in_it systemctl show -p NeedDaemonReload --value xseg@disk)" no
is "a change of the stack file waits for a reload: the server is the same" \
	"$(export_field disk0 pid)" "$server"
cp disk.conf "$TMP/debian/etc/xseg/disk.conf"
t "the load goes on" loads
t "so does the one by NBD" goes_on_now image
t "so does the one by the exports" goes_on_now own
touch end
wait "$nbd"
is "the load by NBD got back what it had written each time" "$?" 0
wait "$own"
is "so did the one by the exports" "$?" 0
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
processes guest sh -c '[ "$(cat "$0/comm" 2>/dev/null)" != xseg ] || kill -INT "${0#/proc/}"'
wait "$export_pid"
is "the export ends well" "$?" 0

t "needrestart is installed" in_it apt-get -q install -y --no-install-recommends needrestart
t "it finds that the exports have an old plug-in" eval \
	'in_it needrestart -b -r l | grep -q "^NEEDRESTART-SVC: xseg@disk.service"'
before_pid=$(main_pid)
in_it needrestart -r a >needrestart.log 2>&1
is "it restarts services" "$?" 0
t "but defers this one, whose clients would lose their volumes" eval \
	"sed -n '/deferred/,\$p' needrestart.log | grep -q xseg@disk.service"
is "it is the same" "$(main_pid)" "$before_pid"
t "the exports are restarted" eval \
	'admin export restart disk0 --force && admin export restart disk0-tcp --force'
is "each has the new plug-in" "$(old_plugins)" ""
t "and serves" has_image

# ---- a second stack, with a gateway and an export by TLS; an upgrade that is not complete ----

# certificate NAME SUBJECT OPTION...: of the authority in the directory tls, for the address 127.0.0.1
certificate()
{
	local name=$1 subject=$2
	shift 2
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$subject" -keyout "$tls/$name-key.pem" \
		-out "$tls/$name-cert.pem" "$@"
}
tls=$TMP/debian/etc/xseg/tls
certificates()
{
	mkdir "$tls" && certificate ca authority &&
		certificate server localhost -CA "$tls/ca-cert.pem" -CAkey "$tls/ca-key.pem" \
			-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE &&
		chmod 644 "$tls/server-key.pem" && in_it install -D -m 644 /etc/xseg/tls/ca-cert.pem /srv/pki/ca-cert.pem
}
t "there are certificates" certificates
port=$(free_port)
nbd_port=$(free_port)
cat >"$TMP/debian/etc/xseg/second.conf" <<END
[segment]
memory = 96M

[peer objects]
kind = filed
dir = /var/lib/xseg/second

[peer volumed]
downstream = objects

[peer values]
kind = kvd
downstream = objects
size = 64M

[peer gate]
kind = memcached
kvd = values
listen = 127.0.0.1:$port

[export safe]
nbd = 127.0.0.1:$nbd_port
tls = require
tls_certificates = /etc/xseg/tls
queues = 2
END
second()	# WORD...: xseg, by root, on the segment of that service
{
	in_it xseg -s second --owner xseg "$@"
}
t "its stack file is right" in_it xseg config check /etc/xseg/second.conf
t "a second service is enabled and started beside the first" in_it systemctl enable --now xseg@second
t "a volume is made" second volume create safe --size 8M
safe="nbds://127.0.0.1:$nbd_port/safe?tls-certificates=/srv/pki"
safe_has_image()
{
	in_it sh -c 'nbdcopy "$1" /tmp/safe.raw && cmp /srv/image.raw /tmp/safe.raw' - "$safe"
}
is_safe()
{
	in_it nbdinfo --size "$safe"
}
t "it is exported by TLS" wait_for 60 is_safe
t "an image is written to it" in_it nbdcopy --flush /srv/image.raw "$safe"
t "and read" safe_has_image
expect_exit 1 "without TLS nobody reads it" in_it nbdinfo "nbd://127.0.0.1:$nbd_port/safe"

connected()	# NUMBER
{
	[ "$(second --json stat | jq '.gateways[] | select(.name == "gate").curr_connections')" = "$1" ]
}
ask()		# what the client of the gateway gets for these lines
{
	local line
	printf '%s\r\n' "$@" >&9
	read -r -t 60 line <&9
	echo "${line%$'\r'}"
}
exec 9<>"/dev/tcp/127.0.0.1/$port"
is "a client sets a value by the gateway" "$(ask "set key 0 0 5" value)" STORED
t "and stays connected" wait_for 60 connected 1
t "its store may not be opened any more" in_it chown root: /var/lib/xseg/second
in_it sh -c 'dpkg -i /packages/new/*.deb' >incomplete.log 2>&1
is "the programs are replaced once more" "$?" 0
t "the upgrade says what could not be restarted, and why" grep -q "^xseg@second.service was not restarted \
completely (peer restart: objects did not start: .*Permission denied.*dpkg-reconfigure xseg" incomplete.log
t "and which processes are old ones" grep -q "values: its process, .*; 'dpkg-reconfigure xseg' starts" \
	incomplete.log
is "none of them is of the first service" "$(admin peer list 2>&1 | grep -c 'was replaced')" 0
is "the service is active" "$(is_active xseg@second)" active
t "the store is mended" in_it chown xseg: /var/lib/xseg/second
in_it dpkg-reconfigure xseg >again.log 2>&1
is "the next try ends well" "$?" 0
is "and says nothing of old programs but those that clients are connected to" \
	"$(grep 'was replaced' again.log | sed 's/: its .*//; s/^xseg: //' | sort -u | tr '\n' ,)" \
	"export disk0,export disk0-tcp,export safe,gate,"
is "the client of the gateway is still connected" "$(ask "get key")" "VALUE key 0 5"
command=$(sed -n "s/.*gate: its process.*'\(runuser .*\)' starts it anew; connections that it cuts then: 1/\1/p" again.log)
is "it names a command of the service's user" "${command%% --*}" "runuser -u xseg"
t "the command that it names restarts the gateway" in_it sh -c "$command"
exec 9>&-
is "then each process runs the new program" "$(old_programs)" ""
exec 9<>"/dev/tcp/127.0.0.1/$port"
is "the value is there" "$(ask "get key")" "VALUE key 0 5"
exec 9>&-
t "and so is the image" safe_has_image
t "the power is cut" booted_cut
t "the machine comes back" booted_start "$TMP/debian"
is "both services are active by themselves" "$(is_active xseg@disk xseg@second | tr '\n' ,)" active,active,
t "the image is there" safe_has_image
t "the service is disabled" in_it systemctl disable --now xseg@second

# ---- another format ----

t "xseg-ceph, which needs the same version, is removed" in_it sh -c \
	'dpkg-query -f "\${Package}\n" -W "xseg-*" | grep -v nbdkit | xargs -r dpkg --purge'
t "data is written that is dirty then" write_dirty 24
t "there are programs of another format" \
	other_format "$TMP/packages/new" "$TMP/debian/packages/other" 0.1.0+2
load 30
t "there is a load again" wait_for 60 loads
rm end rounds.own
start own nbd_rounds own "$unix" "$tcp"
own=$started
t "and one by the exports of the service" wait_for 60 goes_on own
before_pid=$(main_pid)
in_it sh -c 'dpkg -i --force-depends --force-breaks /packages/other/*.deb' >other.log 2>&1
t "the upgrade says that the old ones run on, and what to do" \
	grep -q "xseg@disk.service goes on with the programs of before.*systemctl restart" other.log
t "the load by the exports goes on" goes_on_now own
touch end
wait "$own"
is "and got back what it had written each time" "$?" 0
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
is "the service is active" "$(is_active xseg@disk)" active
is "with the old processes" "$(main_pid)" "$before_pid"
t "restart starts the new ones" in_it systemctl restart xseg@disk
is "then it is active" "$(is_active xseg@disk)" active
is "each process runs the new program" "$(old_programs)$(old_plugins)" ""
t "and has what was dirty" is_there 24
t "its exports serve" has_image

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
t "xseg-nbdkit, which went before that, is installed again" in_it sh -c \
	'dpkg -i /packages/other/xseg-nbdkit_*.deb'
t "the other service goes on" in_it systemctl start xseg@disk
in_it sh -c 'dpkg -L xseg libxseg1 xseg-nbdkit | while read -r f; do [ -d "$f" ] || echo "$f"; done' >owned
t "it is removed while that runs" in_it apt-get -q remove -y xseg
is "nothing of it runs" "$(processes xseg echo)" ""
is "no segment is left: the stop was in order" "$(in_it sh -c 'ls /dev/shm')" ""
t "the stack file is still there" in_it test -e /etc/xseg/disk.conf
t "it is installed again" in_it sh -c 'dpkg -i --force-depends /packages/other/*.deb'
t "the service is started again" in_it systemctl start xseg@disk
t "and has its data" is_there 24
t "its exports serve" has_image
t "it is purged while that runs" in_it sh -c 'dpkg --purge xseg-nbdkit xseg libxseg1'
is "none of its files is left" "$(in_it sh -c 'while read -r f; do [ ! -e "$f" ] || echo "$f"; done' <owned)" ""
is "nothing is left but the store" "$(files | grep -v '^./packages')" \
	"$(printf '%s\n' "$before" ./var/lib/xseg | sort | sed '/^$/d')"
is "systemd knows no unit of it" "$(in_it systemctl list-units --all --full --no-legend 'xseg@*')" ""
t "the store is the user's" in_it test -d /var/lib/xseg/disk
t "it ends" booted_end
finish
