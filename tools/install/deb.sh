#!/bin/bash
# deb.sh - builds the Debian packages (`make deb`) from a copy of the sources, which debian/ would
# fill with files otherwise, and has lintian look at them.
#
# Usage: tools/install/deb.sh DIR      DIR gets the packages; DIR/src has the copy
# Environment: DEB_VERSION (else debian/changelog's), FIO_DIR (fio's headers), RADOS_HEADER,
#   DEB_BUILD_OPTIONS (noautodbgsym: no packages with debugging symbols)
set -eu
cd "$(dirname "$0")/../.."
dir=$1
profiles=()
[ -e "${RADOS_HEADER:-/usr/include/rados/librados.h}" ] || profiles+=(pkg.xseg.noceph)
[ -e "${FIO_DIR:-}/src/config-host.h" ] || profiles+=(pkg.xseg.nofio)
export DEB_BUILD_PROFILES="${profiles[*]-}" DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-noautodbgsym}

rm -rf "$dir"
mkdir -p "$dir/src"
tar -c --exclude=./.git --exclude='./build*' --exclude='*/__pycache__' . | tar -x -C "$dir/src"
cd "$dir/src"
if [ -n "${DEB_VERSION:-}" ]; then
	{
		printf 'xseg (%s) unstable; urgency=medium\n\n  * Built anew.\n\n' "$DEB_VERSION"
		printf ' -- the xseg authors <maintainers@xseg.example>  %s\n\n' "$(LC_ALL=C date -R)"
		cat debian/changelog
	} >debian/changelog.new
	mv debian/changelog.new debian/changelog
fi
unset MAKEFLAGS MAKELEVEL MFLAGS PREFIX DESTDIR BUILD
[ "${#profiles[@]}" = 0 ] || echo "left out by profile: ${profiles[*]}"
echo "deb: building; the log is $dir/log"
if ! dpkg-buildpackage -b -us -uc -j"$(nproc)" >../log 2>&1; then
	tail -n 30 ../log >&2
	echo "deb: the packages could not be built; the log is $dir/log" >&2
	exit 1
fi
cd ..
rm -rf src
lintian --allow-root --fail-on error,warning ./*.changes
ls -- *.deb
