#!/bin/bash
# deps.sh - finds missing Debian packages, says why they are wanted, and installs them.
#
# Usage: tests/lib/deps.sh [--quiet | --list] [--without=FILE] GROUP... [--optional GROUP...]
#   --quiet         no output if nothing is missing
#   --list          only lists the missing packages, on stderr; exit 1 if any is missing
#   --optional      the groups behind it are optional: a package that cannot be installed is named,
#                   and is no error
#   --without=FILE  all groups are optional, and are not tried again while FILE is there
#   GROUP           build, unit, deb, rados, check, ceph, long, demo, bench, rivals, tidy or fuzz
#
# A package may be written a|b: either will do, and the first one is installed.
set -u

# groups (comma)     package           why
packages='
build               gcc               compiles everything
build               libc6-dev         headers of the C library
build               make              runs the Makefile
build               libaio-dev        filed: asynchronous file I/O
build               liburcu-dev       lists: a header, no library
build               libjansson-dev    JSON output
build               libinih-dev       reads the stack file
build               libxxhash-dev     hashes of object names
build               libsodium-dev     kvd: keyed hashes of keys (SipHash)
unit,check          libcmocka-dev     unit tests
deb,check,bench     nbdkit-plugin-dev  the plug-in for nbdkit, which exports volumes
rados               librados-dev      sosd: objects in a pool of Ceph RADOS
ceph                ceph-mon          a cluster for the tests of sosd and bench/headline.sh
ceph                ceph-osd          the same
ceph                ceph-common       the same
check               pkg-config|pkgconf  test of the installed library
check               python3           test of the Python package
check               universal-ctags   test of the shape of the tree
check               codespell         test of the spelling
check               spin              model checks of queues and doorbells
check,demo,bench    jq                reads JSON output in the test and benchmark scripts
check,demo          e2fsprogs         a real file system inside a volume
check,bench         procps            finds and ends processes in the test scripts
check               groff-base        test of the manual pages
check,bench,deb     fio               the load generator to compare with, and that has an engine here
deb                 build-essential   builds packages: needed by policy
deb                 debhelper         builds packages
deb                 dh-python         builds the package for Python
deb                 fakeroot          builds packages, for a user who is not root
deb,long            lintian           looks for faults in packages
long                debootstrap       a bare Debian to install packages in: tests/system/packages.sh
long                systemd-container  the same: it boots that
check               zsh               test of the completion of commands
check,bench,deb     dpkg-dev          builds packages; unpacks the source of fio, for headers of its engine
bench               gnuplot-nox       plots
check,bench,rivals  nbdkit            `xseg export`; and what bench/nbd.sh and bench/rivals.sh compare with
check,bench         libnbd-bin        clients of an export: nbdinfo, nbdcopy, nbdfuse
check               python3-libnbd    the same: every command of the protocol
check,rivals        memcached         its answers and those of the gateway are compared; bench/rivals.sh
check               libmemcached-tools  clients of the gateway: memccapable
check               python3-pymemcache  the same
check               python3-pylibmc   the same
check               netcat-openbsd    the same: the examples of its manual page
check,rivals        qemu-utils        the same: qemu-img, qemu-io; and qemu-nbd for bench/rivals.sh
long,rivals         qemu-system-x86   virtual machines with a volume for their disk: tests/system/guest.sh, bench/guest.sh
long,rivals         busybox-static    what runs in them
long,rivals         cpio              packs it
long                  xfsprogs          power cuts of kvd on XFS, too: tests/system/kvd_power.sh
rivals              redis-server      bench/rivals.sh, bench/kv.sh
rivals              libhiredis-dev    the same: its client
rivals              librocksdb-dev    the same: RocksDB
rivals              libleveldb-dev    the same: LevelDB
rivals              liblmdb-dev       bench/kv.sh: LMDB
bench               valgrind          bench/scale.sh: counts instructions and cache lines
tidy                clang-format      formatting
tidy                clang-tidy        static analysis
tidy                cppcheck          static analysis
fuzz                clang             libFuzzer: programs that find their own inputs
fuzz                libclang-rt-14-dev|libclang-rt-dev  what they are linked with
'

quiet=
list=
without=
needed=			# groups
optional=
to=needed
for arg; do
	case $arg in
	--quiet) quiet=1 ;;
	--list)  list=1 ;;
	--without=*) without=${arg#*=} to=optional ;;
	--optional) to=optional ;;
	-*)      echo "deps: unknown option $arg" >&2; exit 2 ;;
	*)       printf -v "$to" '%s' "${!to} $arg" ;;
	esac
done

installed()	# PACKAGE
{
	[ "$(dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | head -n 1)" = installed ]
}

# is_in GROUPS GROUP...: whether one of the groups is among GROUPS, which commas join
is_in()
{
	local all=,$1, g
	shift
	for g; do
		case $all in *,"$g",*) return 0 ;; esac
	done
	return 1
}

if ! command -v dpkg-query >/dev/null 2>&1; then
	[ -n "$list$quiet" ] || {
		echo "deps: this is not Debian; install the contents of these Debian packages:"
		echo "$packages"
	} >&2
	exit 0
fi

missing=()
reasons=()
must=()			# those of the missing packages that are not optional
# shellcheck disable=SC2086
while read -r in_groups package why; do
	[ -n "$in_groups" ] && is_in "$in_groups" $needed $optional || continue
	for alternative in ${package//|/ }; do
		installed "$alternative" && continue 2
	done
	missing+=("${package%%|*}")
	reasons+=("$why")
	! is_in "$in_groups" $needed || must+=("${package%%|*}")
done <<<"$packages"

if [ ${#missing[@]} -eq 0 ]; then
	[ -n "$quiet$list" ] || echo "deps: all packages are there"
	exit 0
fi

if [ -n "$list" ]; then
	echo "missing Debian packages: ${missing[*]} (\`make deps\` installs them)" >&2
	exit 1
fi

[ -z "$without" ] || [ ! -e "$without" ] || exit 0

# give_up WORDS: an error, or something to be done without
give_up()
{
	echo "deps: $*" >&2
	[ ${#must[@]} -eq 0 ] || exit 1
	echo "deps: going on without ${missing[*]}; \`make deps\` tries again" >&2
	[ -z "$without" ] || { mkdir -p "$(dirname "$without")" && echo "$*" >"$without"; }
	exit 0
}

echo "deps: missing Debian packages, to be installed now:"
for i in "${!missing[@]}"; do
	printf '  %-16s %s\n' "${missing[i]}" "${reasons[i]}"
done

root=()
if [ "$(id -u)" -ne 0 ]; then
	as_root="as root run: apt-get install ${missing[*]}"
	command -v sudo >/dev/null 2>&1 || give_up "installing needs root and there is no sudo; $as_root"
	# The second one asks for a password.
	sudo -n true 2>/dev/null || sudo -v ||
		give_up "installing needs root, which sudo does not give; $as_root"
	root=(sudo)
fi

apt()
{
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@"
}

# install PACKAGE...
install()
{
	apt install -y --no-install-recommends "$@"
}

# The lists may be absent or too old: then they are fetched, once.
updated=
update()
{
	[ -z "$updated" ] || return 1
	updated=1
	apt update
}

if ! apt-cache show "${missing[@]}" >/dev/null 2>&1 && ! update; then
	give_up "apt-get update failed (see above): check the network and /etc/apt/sources.list, then \`make deps\` again"
fi
if install "${missing[@]}" || { update && install "${missing[@]}"; }; then
	echo "deps: installed ${missing[*]}"
	exit 0
fi
# One that is optional may be the reason.
if [ ${#must[@]} -gt 0 ] && [ ${#must[@]} -lt ${#missing[@]} ] && install "${must[@]}"; then
	echo "deps: installed ${must[*]}"
	mapfile -t missing < <(printf '%s\n' "${missing[@]}" | grep -vxFf <(printf '%s\n' "${must[@]}"))
	must=()
fi
give_up "apt-get could not install: ${missing[*]} (see above); install them by hand, then go on"
