#!/bin/bash
# run.sh - runs the programs of tests/fuzz, one after the other, for a time each. `make fuzz` calls
# it.
#
# Usage: tests/fuzz/run.sh [PATTERN]      an extended regular expression over names such as segment
# Environment: BUILD (build-fuzz), SECONDS_EACH (60)
#
# New inputs are in $BUILD/fuzz/NAME, and the next run continues with them. Inputs that failed are
# in $BUILD/fuzz/NAME-*. Make such an input small by `$BUILD/tests/fuzz_NAME -minimize_crash=1
# FILE`. It goes into tests/fuzz/corpus/NAME with its fix.
# Exit codes: 0; 1 if anything is found; 2 if no program matches.
set -u
cd "$(dirname "$0")/../.." || exit 1

BUILD=${BUILD:-build-fuzz}
seconds=${SECONDS_EACH:-60}
pattern=${1:-.}
failed=0 found=
mkdir -p "$BUILD/fuzz" || exit 1

for program in "$BUILD"/tests/fuzz_*; do
	name=${program##*/fuzz_}
	[ -x "$program" ] && [ -d "tests/fuzz/corpus/$name" ] && echo "$name" |
		grep -qE -- "$pattern" || continue
	found=1
	log=$BUILD/fuzz/$name.log
	mkdir -p "$BUILD/fuzz/$name"
	if "$program" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=3000 -max_len=1000 \
			-len_control=0 -print_final_stats=1 \
			-artifact_prefix="$BUILD/fuzz/$name-" "$BUILD/fuzz/$name" \
			"tests/fuzz/corpus/$name" >"$log" 2>&1; then
		inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok $name ($inputs inputs in $seconds s)"
	else
		echo "FAIL $name: see $log"
		grep -aE 'ERROR|Assertion|runtime error|written to' "$log" | head -n 5 |
			sed 's/^/    /'
		failed=1
	fi
done
if [ -z "$found" ]; then
	echo "fuzz: no fuzz program matches '$pattern' in $BUILD; 'make fuzz T=PATTERN' builds" \
		"them" >&2
	exit 2
fi
exit $failed
