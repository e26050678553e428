#!/bin/bash
# failures.sh - the tests that docs/FAILURES.md names beside each failure are there. Each mutant of
# the simulator fits the current code. No code reads a clock that can jump.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
doc=docs/FAILURES.md
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# The names in the last column, one a line; a sentence without a program is of the program before
# it.
names()
{
	grep '^| ' "$doc" |
		awk -F '|' 'NR > 1 { print $(NF - 1) }' | grep -o '`[^`]*`' | tr -d '`'
}

has_sentence()	# PROGRAM SENTENCE
{
	grep -qsE "^static void $2\(void \*\*" tests/unit/*/"$1.c" tests/rig/"$1.c"
}

program=
nr=0
while read -r name; do
	nr=$((nr + 1))
	case $name in
	*.pml) [ -f "tests/model/$name" ] ;;
	mutant\ *) [ -f "tests/sim/mutants/${name#* }.mutant" ] ;;
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

nr=$(find tests/sim/mutants -name '*.mutant' | wc -l)
if [ "$nr" -gt 0 ] && tests/sim/mutate.py --check . tests/sim/mutants/*.mutant >"$log" 2>&1; then
	ok "the $nr mutants of the simulator fit the code"
else
	not_ok "mutants of the simulator fit the code: they must follow it" "$log"
fi

# Each of these must be refused: a place that is not there, one that is there twice, a function that
# is not there.
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$log" "$tree"' EXIT
mkdir "$tree/xtypes" "$tree/xseg" "$tree/peers"
printf 'int one(int a)\n{\n\ta++;\n\treturn a;\n}\n\nint two(int a)\n{\n\ta++;\n\ta++;\n\treturn a;\n}\n' \
	>"$tree/xseg/code.c"
cp "$tree/xseg/code.c" "$tree/before"
for hunk in '@@ one\n-\ta--;\n' '@@ two\n-\ta++;\n' '@@ three\n-\ta++;\n' '@@ one\n+\ta++;\n' '@@ one\n\ta++;\n' 'a++;\n'; do
	printf "A bug.\n$hunk" >"$tree/wrong.mutant"
	! tests/sim/mutate.py "$tree" "$tree/wrong.mutant" >/dev/null 2>&1 &&
		cmp -s "$tree/before" "$tree/xseg/code.c" || echo "$hunk is not refused"
done >"$log"
printf 'A bug.\n@@ one\n-a++;\n+\ta += 2;\n return a;\n@@ two\n \ta++;\n+\treturn 0;\n \ta++;\n' >"$tree/right.mutant"
tests/sim/mutate.py "$tree" "$tree/right.mutant" >>"$log" 2>&1
printf 'int one(int a)\n{\n\ta += 2;\n\treturn a;\n}\n\nint two(int a)\n{\n\ta++;\n\treturn 0;\n\ta++;\n\treturn a;\n}\n' |
	diff - "$tree/xseg/code.c" >>"$log"
if [ -s "$log" ]; then
	not_ok "a mutant goes where its lines stand once, and nowhere else" "$log"
else
	ok "a mutant goes where its lines stand once, and nowhere else"
fi

# The date a segment was made, the date a client opened a volume, the time of a line of the log, and
# how a run of xbench is named, are for people. clock_date_s() is for expiry, which must outlive a
# reboot: kvd's time never goes back.
if grep -rnE 'CLOCK_REALTIME|gettimeofday|[^_a-z]time\((NULL|0)\)' xtypes xseg peers tools \
		--include='*.[ch]' | grep -v -e made_at_s -e XSEG_CLIENT_WORD_SINCE \
		-e '^peers/common/log/log_time\.c:' \
		-e '^peers/common/clock/clock\.c:.*system_ns(CLOCK_REALTIME)' >"$log"; then
	not_ok "nobody reads a clock that can jump" "$log"
else
	ok "nobody reads a clock that can jump"
fi
finish
