#!/bin/bash
# publish.sh - keeps the results of `make bench` in the repository: docs/bench/NAME.
#
# Usage: bench/publish.sh NAME
# Environment: BUILD (build)
#
# NAME is the machine's and the day's, such as amd-zen5-2026-11-26. docs/bench/NAME gets report.txt,
# ratios.txt, all plots as BENCHMARK-PLOT.png, and raw.tar.xz. That archive has the JSON of each run
# as BENCHMARK/raw/RUN.json. Older contents of docs/bench/NAME are replaced. None of it names the
# folder of the measurement. Exit codes: 0; 1: something is missing; 2: wrong usage.
set -u

fail()	# CODE TEXT...
{
	local code=$1
	shift
	echo "publish: $*" >&2
	exit "$code"
}

case ${1:-} in
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0"
	exit 0
	;;
'' | -* | *[!A-Za-z0-9._-]*) fail 2 "usage: bench/publish.sh NAME, such as amd-zen5-2026-11-26" ;;
esac
[ $# -eq 1 ] || fail 2 "one NAME, not $#"
cd "$(dirname "$0")/.." || exit 1
from=$(realpath "${BUILD:-build}")/bench
to=docs/bench/$1
[ -s "$from/ratios.txt" ] || fail 1 "there is no $from/ratios.txt; run make bench first"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Only of what the report has: an older run of something else may lie beside it.
mapfile -t names < <(sed -n 's/^==== \([a-z_]*\) ====$/\1/p' "$from/report.txt")
rm -rf "$to"
mkdir -p "$to" || exit 1
for name in "${names[@]}"; do
	# as a whole, for what it needs is not there
	! grep -q "^left out: $name," "$from/$name/report.txt" || continue
	mkdir -p "$tmp/$name/raw"
	for file in "$from/$name"/raw/*.json; do
		[ -e "$file" ] || fail 1 "$from/$name/raw has no JSON"
		sed "s|${from%/*/*}/||g" "$file" >"$tmp/$name/raw/${file##*/}" || exit 1
	done
	for file in "$from/$name"/*.png; do
		[ ! -e "$file" ] || cp "$file" "$to/$name-${file##*/}" || exit 1
	done
done
for file in report.txt ratios.txt; do
	sed "s|${from%/*/*}/||g; s/[ \t]*$//" "$from/$file" >"$to/$file" || exit 1
done
tar -C "$tmp" --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner -cf - . | xz -9e >"$to/raw.tar.xz" ||
	fail 1 "tar failed"
echo "published: $to, $(du -sh "$to" | cut -f 1)"
