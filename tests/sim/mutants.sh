#!/bin/bash
# mutants.sh - shows that the simulator finds bugs. Each file of tests/sim/mutants describes one bug
# (tests/sim/mutate.py has the format). The bug is put into a copy of the tree, and some seed must
# fail there.
#
# Usage: tests/sim/mutants.sh [PATTERN]     an extended regular expression over the mutants' names
# Environment: BUILD (build), SEEDS (2000, tried for each), JOBS (as many as there are processors)
#
# Before its first hunk a mutant may say what finds it. With `sim: OPTIONS` the simulator has these
# options. The seed of `seed: N` is tried first; if the code has changed and that seed passes, all
# seeds are tried as without it. With `test: unit/NAME` that test must fail in place of a seed. It
# may abort before it says FAILED, so its first ERROR counts, an assertion of the code, and the seed
# of a random test with its error.
#
# One line a mutant names what caught it, the message, and the seconds of CPU that the build and the
# search took. A mutant that survives is a hole in the tests. A mutant that does not fit, or does not
# compile, must follow the code. Objects that a mutant does not touch are taken from $BUILD, which is
# made first.
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
	cp -a Makefile "$1" && cp -a "$BUILD/flags" "$BUILD"/packages-* "$1/build"
}

# say MUTANT KEY: what it says of that, if anything
say()
{
	sed -n "/^@@/q; s,^$2: ,,p" "$1"
}

# search TREE MUTANT: runs what shall find it. Succeeds if nothing does.
search()
{
	local unit seed sim
	unit=$(say "$2" test)
	seed=$(say "$2" seed)
	read -ra sim <<<"$(say "$2" sim)"
	if [ -n "$unit" ]; then
		timeout 600 "$1/build/tests/${unit#unit/}"
		return
	fi
	if [ -n "$seed" ]; then
		timeout 300 "$1/build/tests/sim" --no-shrink "${sim[@]}" --seed "$seed" || return
	fi
	timeout 1200 "$1/build/tests/sim" --no-shrink "${sim[@]}" --seeds "$SEEDS"
}

# hint MUTANT LINE: a late seed that it does not name
hint()
{
	local seed
	seed=$(sed -n 's,^not ok - seed \([0-9]*\)\,.*,\1,p' <<<"$2")
	[ "${seed:-0}" -le 20 ] || [ "$seed" = "$(say "$1" seed)" ] || echo ", name \`seed: $seed\`"
}

# cpu FILE: the seconds that programs had taken, of what `times` wrote there
cpu()
{
	sed -n '2s,[ms], ,gp' "$1" | awk '{ printf "%d", $1 * 60 + $2 + $3 * 60 + $4 + 0.5 }'
}

# try MUTANT: one line of report.sh
try()
{
	local name tree line program built failed='(not ok - seed |\[  (FAILED|ERROR ) *\] [a-z]|ERROR: |.*: Assertion |seed [0-9]+: )'
	name=$(basename "$1" .mutant)
	program=$(say "$1" test)
	program=${program#unit/}
	tree=$work/$name
	if ! copy_tree "$tree" ${program:+tests/unit} >"$tree.log" 2>&1; then
		not_ok "$name is caught" "$tree.log"
	elif ! tests/sim/mutate.py "$tree" "$1" >"$tree.log" 2>&1; then
		echo "$1 does not fit: it must follow the code" >>"$tree.log"
		not_ok "$name is caught" "$tree.log"
	elif ! make -C "$tree" BUILD=build "build/tests/${program:-sim}" >"$tree.log" 2>&1; then
		echo "$1 does not compile" >>"$tree.log"
		not_ok "$name is caught" "$tree.log"
	elif times >"$tree.built" && search "$tree" "$1" >"$tree.log" 2>&1; then
		head -n 1 "$1" >>"$tree.log"
		not_ok "$name survives ${program:-$SEEDS seeds}: a hole in it" "$tree.log"
	elif line=$(grep -aEm1 "^$failed" "$tree.log"); then
		times >"$tree.done"
		built=$(cpu "$tree.built")
		ok "$name is caught ($built + $(($(cpu "$tree.done") - built)) s)$(hint "$1" "$line"): ${line#not ok - }"
	else
		not_ok "$name is caught" "$tree.log"
	fi | cut -c 1-240
	rm -rf "$tree"
}
export -f try search say hint cpu copy_tree ok not_ok

need python3
make -s "BUILD=${BUILD#"$root"/}" "${BUILD#"$root"/}/tests/sim" >"$work/log" 2>&1 ||
	{ not_ok "the simulator is built" "$work/log"; finish; }
find tests/sim/mutants -name '*.mutant' | sort | grep -E -- "${1:-.}" >"$work/list"
[ -s "$work/list" ] || { not_ok "there are mutants"; finish; }
xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'try "$1"' try {} <"$work/list" | tee "$work/result"
nr_failed=$(grep -c '^not ok - ' "$work/result")
finish
