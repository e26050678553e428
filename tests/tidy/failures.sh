#!/bin/bash
# failures.sh - the tests that docs/ARCHITECTURE.md names beside each failure are there; each mutant of
# the simulator is a change of the code as it is; and nobody reads a clock that can jump.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
doc=docs/ARCHITECTURE.md
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# The names in the last column, one a line; a sentence without a program is of the program before
# it.
names()
{
	sed -n '/^## What can go wrong/,/^## /p' "$doc" | grep '^| ' |
		awk -F '|' 'NR > 1 { print $(NF - 1) }' | grep -o '`[^`]*`' | tr -d '`'
}

has_sentence()	# PROGRAM SENTENCE
{
	[ -f "tests/unit/$1.c" ] && grep -qE "^static void $2\(void \*\*" "tests/unit/$1.c"
}

program=
nr=0
while read -r name; do
	nr=$((nr + 1))
	case $name in
	*.pml) [ -f "tests/model/$name" ] ;;
	mutant\ *) [ -f "tests/sim/mutants/${name#* }.patch" ] ;;
	system/* | tidy/*) [ -f "tests/$name.sh" ] ;;
	fuzz/*) [ -f "tests/$name.c" ] ;;
	*:\ *) program=${name%%:*}; has_sentence "$program" "${name#*: }" ;;
	*) has_sentence "$program" "$name" ;;
	esac || echo "$name" >>"$log"
done < <(names)
if [ "$nr" -gt 0 ] && [ ! -s "$log" ]; then
	ok "the $nr tests named beside failures in $doc are there"
else
	not_ok "the tests named beside failures in $doc are there: $nr, but not" "$log"
fi

nr=0
: >"$log"
for mutant in tests/sim/mutants/*.patch; do
	nr=$((nr + 1))
	git apply --check --unidiff-zero "$mutant" 2>/dev/null || echo "$mutant" >>"$log"
done
if [ "$nr" -gt 0 ] && [ ! -s "$log" ]; then
	ok "the $nr mutants of the simulator apply"
else
	not_ok "mutants of the simulator apply: they have to follow the code" "$log"
fi

# The date a segment was made, the time of a line of the log, and how a run of xbench is named, are
# for people.
if grep -rnE 'CLOCK_REALTIME|gettimeofday|[^_a-z]time\((NULL|0)\)' xtypes xseg peers tools \
		--include='*.[ch]' | grep -v -e made_at_s -e '^peers/common/log_time\.c:' >"$log"; then
	not_ok "nobody reads a clock that can jump" "$log"
else
	ok "nobody reads a clock that can jump"
fi
finish
