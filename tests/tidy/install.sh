#!/bin/bash
# install.sh - a program outside the repository builds with the files of `make install`. uninstall
# leaves no file, and takes none that is not its own, also where a path has spaces.
# timeout: 120
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
CC=${CC:-gcc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
command -v pkg-config >/dev/null 2>&1 || skip_all "pkg-config is not there"
[ -e xseg/xseg.h ] || skip_all "there is no xseg.h"

# The flags that the caller's make was given hold here too, or all would be built anew; its job
# server does not.
MAKEFLAGS=$(echo "${MAKEFLAGS:-}" | sed -E 's/ ?--jobserver-[a-z]+=[^ ]*//g; s/ ?-j[0-9]*//g')
export MAKEFLAGS
unset MFLAGS MAKELEVEL
target=$work/root
# dpkg-buildflags has -D_FORTIFY_SOURCE in CPPFLAGS.
if make --no-print-directory -n BUILD="$work/none" CPPFLAGS=-DCPP_GIVEN CFLAGS=-DC_GIVEN \
		"$work/none/obj/xtypes/xhist.o" 2>&1 | grep -q -- '-DCPP_GIVEN.* -c '; then
	ok "CPPFLAGS are the compiler's, too"
else
	not_ok "CPPFLAGS are the compiler's, too"
fi

# make_it TARGET [DESTDIR] [PREFIX]; make has no names with spaces: the repository may be in such a one
make_it()
{
	make --no-print-directory BUILD="${BUILD#"$root"/}" CC="$CC" PREFIX="${3:-/usr}" \
		DESTDIR="${2:-$target}" "$1" >"$work/log" 2>&1
}

if make_it install; then ok "make install succeeds"; else not_ok "make install succeeds" \
		"$work/log"; finish; fi

cat >"$work/outside.c" <<'END'
#include <stdio.h>
#include <xseg/xseg.h>
int main(void)
{
	struct xseg_error err;
	return xseg_fail(&err, 0, "%s", "linked") || puts(err.text) < 0;
}
END
export PKG_CONFIG_PATH=$target/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$target
flags=$(pkg-config --cflags --libs xseg 2>"$work/log")
# shellcheck disable=SC2086
if [ -n "$flags" ] && $CC -Wall -Wextra -Werror -o "$work/outside" "$work/outside.c" \
		-I"$target/usr/include" $flags >>"$work/log" 2>&1 &&
		[ "$(LD_LIBRARY_PATH=$target/usr/lib "$work/outside")" = linked ]; then
	ok "a program outside builds with pkg-config and the installed header and library"
else
	not_ok "a program outside builds with pkg-config and the installed header and library" \
		"$work/log"
fi

# Of what is shown, what the installed headers do not declare.
sentence="the installed library shows what the installed headers declare, and nothing else"
printf '#include <xseg/xseg.h>\n#include <xseg/volume.h>\n#include <xseg/kv.h>\n' |
	$CC -E -P -I"$target/usr/include" -x c - | grep -oE '\b(xseg|xhist)_[a-z0-9_]+ *\(' |
	tr -d ' (' | sort -u >"$work/declared"
nm -D --defined-only "$target/usr/lib/libxseg.so" | sed -E 's/.* //; s/@.*//; /^XSEG_[0-9]+$/d' |
	sort -u >"$work/shown"
comm -23 "$work/shown" "$work/declared" >"$work/log"
if [ -s "$work/shown" ] && [ ! -s "$work/log" ]; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

# package_of DESTDIR: the directory that the Python package is in
package_of()
{
	local file
	file=$(find "$1" -path '*/xseg/_lib.py')
	echo "${file%/xseg/_lib.py}"
}

sentence="the installed Python package finds the installed library"
if ! command -v python3 >/dev/null 2>&1; then
	skip "$sentence" "python3 is not there"
elif (cd "$work" && PYTHONPATH=$(package_of "$target") python3 -c '
import sys, xseg.aio
from xseg import _lib
assert all(m.__file__.startswith(sys.argv[1]) for m in (xseg, xseg.aio)), xseg.__file__
assert _lib.lib._name == sys.argv[1] + "/usr/lib/" + _lib.SONAME, _lib.lib._name
' "$target") >"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

sentence="fio's engine is installed"
if [ ! -e "$BUILD/lib/fio-xseg.so" ]; then
	skip "$sentence" "it is not built: fio's source could not be had (make deps)"
elif cmp "$BUILD/lib/fio-xseg.so" "$target/usr/lib/fio/fio-xseg.so" >"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

sentence="only commands for users are in the path, and they find the others"
if [ "$(cd "$target/usr/bin" && echo *)" = "xbench xseg" ] && printf '[segment]\nmemory = 64M\n[peer memd]\nmemory = 16M\n' |
		"$target/usr/libexec/xseg/xseg-host" --check=- >"$work/log" 2>&1 &&
		{ "$target/usr/bin/xseg" -s "install-test-$$" up /dev/null 2>&1 || true; } |
		tee "$work/log" | grep -q "no .peer NAME. section"; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

# Where the packages have a folder of another name, its name here.
sentence="each installed file is in a package of debian"
sed "s|/lib/\*/|/lib/|; s|vendor-completions|site-functions|; s|usr/lib/python3/dist-packages|$(
	package_of "$target" | sed "s|^$target/||")|; s|^|./|" debian/*.install >"$work/packaged"
(cd "$target" && find . ! -type d ! -name folders) | while read -r file; do
	while read -r pattern; do
		# shellcheck disable=SC2254
		case $file in $pattern | $pattern/*) continue 2 ;; esac
	done <"$work/packaged"
	echo "$file"
done >"$work/log"
if [ -s "$work/packaged" ] && [ ! -s "$work/log" ]; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

mkdir "$target/of-others"
make_it uninstall
find "$target" >"$work/log"
if [ "$(wc -l <"$work/log")" = 2 ] && [ -e "$target/of-others" ]; then
	ok "make uninstall leaves nothing but what was there"
else
	not_ok "make uninstall leaves nothing but what was there" "$work/log"
fi
rmdir "$target/of-others"

# files_of DIR: their names, relative to it
files_of()
{
	(cd "$1" && find . ! -type d | sort)
}

make_it install && files_of "$target" >"$work/files"
sentence="it is installed into a directory with spaces, too"
if make_it install "$work/a root" && files_of "$work/a root" | cmp - "$work/files" >>"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi
mkdir -p "$work/a"
echo precious >"$work/a/file"
make_it uninstall "$work/a root"

if [ ! -e "$work/a root" ] && [ -e "$work/a/file" ]; then
	ok "and uninstall removes that, and nothing else"
else
	not_ok "and uninstall removes that, and nothing else" "$work/log"
fi

# in_home TARGET: for one user, without DESTDIR
in_home()
{
	HOME=$work/home make --no-print-directory BUILD="${BUILD#"$root"/}" CC="$CC" PREFIX='~/xseg' "$1" >"$work/log" 2>&1
}

cat >"$work/stack.conf" <<'END'
[segment]
memory = 64M
[peer memd]
memory = 8M
[peer volumed]
downstream = memd
END
mkdir "$work/home"
xseg=$work/home/xseg/bin/xseg
export XDG_STATE_HOME=$work XSEG_SEGMENT=install-test-$$
sentence="it is installed in a home, and a stack runs from there"
if in_home install && "$xseg" up "$work/stack.conf" >"$work/log" 2>&1 &&
		"$xseg" volume create v --size 1M >"$work/log" 2>&1 &&
		"$xseg" down >"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

# exports_from_home: a stack with an export runs, whose volume a client finds
exports_from_home()
{
	local try
	printf '[export v]\nnbd = %s\nqueues = 1\n' "$work/nbd.sock" >>"$work/stack.conf"
	"$xseg" up "$work/stack.conf" && "$xseg" volume create v --size 1M || return 1
	for try in {1..100}; do
		[ "$(nbdinfo --size "nbd+unix:///?socket=$work/nbd.sock")" = 1048576 ] && break
		sleep 0.1
	done
	[ "$try" -lt 100 ] && "$xseg" down
}

sentence="so does an export"
if [ ! -e "$work/home/xseg/lib/nbdkit/plugins/nbdkit-xseg-plugin.so" ] ||
		! command -v nbdkit >/dev/null || ! command -v nbdinfo >/dev/null; then
	skip "$sentence" "nbdkit, its header or nbdinfo is not there"
elif exports_from_home >"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi
in_home uninstall
find "$work/home" >"$work/log"
if [ "$(wc -l <"$work/log")" = 1 ]; then ok "and leaves nothing there"; else not_ok "and leaves nothing there" "$work/log"; fi

# looks_in DIR: a python3 of this machine does, for packages
looks_in()
{
	local python
	for python in python3 /usr/bin/python3; do
		"$python" -I -c 'import site, sys
sys.exit(not any(d.startswith(sys.argv[1]) for d in site.getsitepackages()))' "$1" && return
	done 2>/dev/null
}

sentence="below /usr/local, too, the Python package is where Python looks for it"
if ! looks_in /usr/local/lib/; then
	skip "$sentence" "no python3 of this machine looks there"
elif make_it install "$work/local" /usr/local &&
		package=$(package_of "$work/local") && looks_in "${package#"$work/local"}"; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi
finish
