#!/bin/bash
# headers.sh - fetches fio's headers for the engine (engine.c), from Debian's source package of
# exactly the installed fio.
#
# Usage: bench/fio/headers.sh [--once] [DIR]
#   --once  no second try after a failure, and no output if there is nothing to do
#   DIR     the target folder; build/fio by default
#
# An engine is a part of fio's process, so it must know fio's structures as they were compiled.
# apt's data is in DIR alone: a list of source packages, made from the lists of packages that this
# machine already has. Nothing under /etc is changed, and no root is needed. Git ignores the fetched
# files. DIR/src exists only if all went well.
set -u
cd "$(dirname "$0")/../.." || exit 1
once=
[ "${1:-}" != --once ] || { once=1; shift; }
dir=${1:-build/fio}

say()
{
	echo "fio headers: $*" >&2
}

give_up()
{
	say "$*: the engine is left out; \`make deps\` tries again"
	echo "$*" >"$dir/failed"
	exit 1
}

version=$(dpkg-query -W -f '${db:Status-Status} ${source:Version}\n' fio 2>/dev/null |
	sed -n 's/^installed //p' | head -n 1)
if [ -z "$version" ]; then
	[ -n "$once" ] || say "fio is not installed as a Debian package: no engine is built for it"
	exit 0
fi
[ "$(cat "$dir/version" 2>/dev/null)" != "$version" ] || [ ! -e "$dir/src/config-host.h" ] || exit 0
[ -z "$once" ] || [ ! -e "$dir/failed" ] || exit 1
rm -rf "$dir"
mkdir -p "$dir/sources.d" "$dir/lists/partial" "$dir/cache/archives/partial" || exit 1
dir=$(cd "$dir" && pwd)
command -v dpkg-source >/dev/null 2>&1 || give_up "dpkg-source is not there (package dpkg-dev)"

# The machine's own lists, of packages, as lists of source packages.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ -e "$list" ] && sed -n 's/^deb[[:space:]]/deb-src /p' "$list"
done >"$dir/sources.list"
for list in /etc/apt/sources.list.d/*.sources; do
	[ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$dir/sources.d/${list##*/}"
done

apt_get()
{
	(cd "$dir" &&
		apt-get -q -o Dir::Etc::sourcelist="$dir/sources.list" \
		-o Dir::Etc::sourceparts="$dir/sources.d" \
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" \
		-o APT::Sandbox::User=root \
		-o Acquire::http::Timeout=20 -o Acquire::Retries=1 "$@") >>"$dir/log" 2>&1
}

say "fetching the source package of fio $version, through a deb-src list made from this machine's own in ${dir#"$PWD"/}/"
apt_get update || say "not all lists could be fetched; see ${dir#"$PWD"/}/log"
apt_get source --download-only "fio=$version" ||
	give_up "the source of fio $version cannot be had; see ${dir#"$PWD"/}/log"
dpkg-source --no-check -x "$dir"/fio_*.dsc "$dir/unpacked" >>"$dir/log" 2>&1 ||
	give_up "the source cannot be unpacked; see ${dir#"$PWD"/}/log"
(cd "$dir/unpacked" && ./configure --disable-native) >>"$dir/log" 2>&1 ||
	give_up "fio's configure failed; see ${dir#"$PWD"/}/log"
mv "$dir/unpacked" "$dir/src" && echo "$version" >"$dir/version" || exit 1
rm -rf "$dir/lists" "$dir/cache" "$dir/sources.d" "$dir/sources.list"
say "they are in ${dir#"$PWD"/}/src"
