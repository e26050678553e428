#!/bin/bash
# mutants.sh - shows that the simulator finds bugs. Each file of tests/sim/mutants describes one bug
# (tests/sim/mutate.py has the format). The bug is put into a copy of the tree, and some seed must
# fail there.
#
# Usage: tests/sim/mutants.sh [PATTERN]     an extended regular expression over the mutants' names
# Environment: BUILD (build), SEEDS (2000, tried for each), JOBS (as many as there are processors)
#
# A mutant whose second line is `sim: OPTIONS` is looked for with these options of the simulator.
#
# A mutant whose second line is `test: unit/NAME` needs something that the simulator lacks; that
# test must fail in place of a seed. It may abort before it says FAILED, so its first ERROR counts,
# an assertion of the code, and the seed of a random test with its error.
# One line a mutant names the seed that caught it, and the message. A mutant that survives is a hole
# in the simulator. A mutant that does not fit, or does not compile, must follow the code. Objects
# that a mutant does not touch are taken from $BUILD, which is made first.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
SEEDS=${SEEDS:-2000}
export SEEDS root
work=$(mktemp -d) || exit 1
export work
trap 'rm -rf "$work"' EXIT

# copy_tree DIRECTORY [MORE...]: what the simulator is made of, with its objects
copy_tree()
{
	local dir
	for dir in xtypes xseg peers tests/rig tests/sim "${@:2}"; do
		mkdir -p "$1/$dir" "$1/build/obj/$dir" &&
		cp -a "$dir/." "$1/$dir" || return 1
		[ ! -d "$BUILD/obj/$dir" ] || cp -a "$BUILD/obj/$dir/." "$1/build/obj/$dir" || return 1
	done
	cp -a Makefile "$1" && cp -a "$BUILD/flags" "$BUILD/packages" "$1/build"
}

# try MUTANT: one line of report.sh
try()
{
	local name tree sentence line program failed='not ok - seed ' unit
	name=$(basename "$1" .mutant)
	program="sim --no-shrink --seeds $SEEDS $(sed -n '2s,^sim: ,,p' "$1")"
	unit=$(sed -n '2s,^test: unit/,,p' "$1")
	[ -z "$unit" ] || { program=$unit failed='(\[  FAILED  \] [a-z]|ERROR: |.*: Assertion |seed [0-9]+: )'; }
	tree=$work/$name
	sentence="$name is caught"
	if ! copy_tree "$tree" ${unit:+tests/unit} >"$tree.log" 2>&1; then
		not_ok "$sentence" "$tree.log"
	elif ! tests/sim/mutate.py "$tree" "$1" >"$tree.log" 2>&1; then
		echo "$1 does not fit: it must follow the code" >>"$tree.log"
		not_ok "$sentence" "$tree.log"
	elif ! make -C "$tree" BUILD=build "build/tests/${program%% *}" >"$tree.log" 2>&1; then
		echo "$1 does not compile" >>"$tree.log"
		not_ok "$sentence" "$tree.log"
	elif timeout 1200 bash -c "exec $tree/build/tests/$program" >"$tree.log" 2>&1; then
		head -n 1 "$1" >>"$tree.log"
		not_ok "$name survives $program: a hole in it" "$tree.log"
	elif line=$(grep -aEm1 "^$failed" "$tree.log"); then
		ok "$name is caught: ${line#not ok - }"
	else
		not_ok "$sentence" "$tree.log"
	fi | cut -c 1-240
	rm -rf "$tree"
}
export -f try copy_tree ok not_ok

need python3
make -s "BUILD=${BUILD#"$root"/}" "${BUILD#"$root"/}/tests/sim" >"$work/log" 2>&1 ||
	{ not_ok "the simulator is built" "$work/log"; finish; }
find tests/sim/mutants -name '*.mutant' | sort | grep -E -- "${1:-.}" >"$work/list"
[ -s "$work/list" ] || { not_ok "there are mutants"; finish; }
xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'try "$1"' try {} <"$work/list" | tee "$work/result"
nr_failed=$(grep -c '^not ok - ' "$work/result")
finish
