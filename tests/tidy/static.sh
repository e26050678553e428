#!/bin/bash
# static.sh - clang-tidy and cppcheck over the sources; only in `make tidy`, because it takes
# minutes.
# tags: static
# timeout: 900
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
defines=(-D_GNU_SOURCE '-DXSEG_VERSION="0"')

find xtypes xseg peers tools bench tests -name '*.c' 2>/dev/null | sort >"$work/files"
sed -i '\|^bench/fio/|d' "$work/files"		# fio's headers are not ours, and not always there
[ -e /usr/include/nbdkit-plugin.h ] || sed -i '\|^tools/nbdkit/|d' "$work/files"
[ -e /usr/include/rados/librados.h ] || sed -i '\|^peers/sosd/|d' "$work/files"
[ -s "$work/files" ] || skip_all "there are no sources"

sentence="cppcheck finds nothing"
if ! command -v cppcheck >/dev/null 2>&1; then
	skip "$sentence" "cppcheck is not there"
elif cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,portability \
		--inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --template=gcc "${defines[@]}" -I. \
		--file-list="$work/files" >"$work/log" 2>&1; then
	ok "$sentence"
else
	not_ok "$sentence" "$work/log"
fi

checks='-*,bugprone-*,clang-analyzer-*,misc-redundant-expression'
checks=$checks,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier,-bugprone-narrowing-conversions
checks=$checks,-bugprone-implicit-widening-of-multiplication-result,-bugprone-assignment-in-if-condition
checks=$checks,-bugprone-macro-parentheses,-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
# Known false alarms of this version (va_list), and matters of taste.
checks=$checks,-bugprone-branch-clone,-bugprone-suspicious-string-compare,-clang-analyzer-valist.Uninitialized
checks=$checks,-clang-analyzer-optin.performance.Padding
sentence="clang-tidy finds nothing"
if ! command -v clang-tidy >/dev/null 2>&1; then
	skip "$sentence" "clang-tidy is not there"
elif xargs -P "$(nproc)" -n 4 sh -c 'clang-tidy --quiet --warnings-as-errors="*" --checks="$0" \
		--header-filter="(xtypes|xseg|peers|tools|bench)/" "$@" \
		-- -std=gnu11 -I. -D_GNU_SOURCE "-DXSEG_VERSION=\"0\""' "$checks" <"$work/files" >"$work/log" 2>&1; then
	ok "$sentence"
else
	grep -E ': (warning|error): ' "$work/log" | sort -u >"$work/short"
	not_ok "$sentence" "$work/short"
fi
finish
