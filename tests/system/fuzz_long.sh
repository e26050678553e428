#!/bin/bash
# fuzz_long.sh - each program of tests/fuzz looks for new inputs for some minutes, if there is a
# clang.
# tags: long
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need clang

minutes=${FUZZ_MINUTES:-3}

cd "$root" || exit 1
t "the programs are built" make fuzz-build FUZZ_BUILD="$BUILD/fuzz-build"
for name in tests/fuzz/corpus/*/; do
	name=$(basename "$name")
	t "$name: nothing is found in $minutes minutes" env BUILD="$BUILD/fuzz-build" \
		SECONDS_EACH=$((minutes * 60)) tests/fuzz/run.sh "^$name\$"
done
finish
