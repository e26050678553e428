#!/bin/sh
# run.sh - checks every model in its good form and with each of its rules broken.
#
# Usage: tests/model/run.sh [--long] [DIRECTORY]     (default: build/model of the repository)
#
# The good form must be searched to the end, without a failed assertion or an invalid end state.
# Each BUG_ variant named anywhere in a model must fail an assertion, or the model proves nothing
# about that rule; without --long one variant in twelve is tried. One line a case; the last line
# counts them; exit 1 if one failed. It takes under a minute, and 900 MiB for each of the models
# that are checked at the same time, one a processor. A model that has a smaller form (SHORT) is
# searched in that.
#
# --long checks one model at a time, as it is. It also shows that the good forms cannot run for ever
# (no cycle at all, so no livelock). It searches the larger form of a model that has one (LONG). It
# takes some minutes and 2 GiB.
set -u

models=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$models/../.." && pwd)
long=no
if [ "${1:-}" = --long ]; then
	long=yes
	shift
fi
out=${1:-$root/build/model}
cc=${CC:-cc}
depth=200000
memory=-DMEMLIM=900
jobs=$(nproc)
# In the short form building a program takes longer than the search.
optimize=-O0 table=-w20 short=-DSHORT
[ $long = no ] || jobs=1 optimize=-O2 table= short=

if ! command -v spin >/dev/null 2>&1; then
	echo "skipped: model checks (spin is not installed; make deps installs it)"
	echo "0 passed, 0 failed"
	exit 0
fi
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
work=$(mktemp -d "$out/run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

ok()
{
	echo "ok $1"
}

fail()
{
	echo "FAIL $1: $2"
}

# build NAME MODEL SPIN_FLAG CC_FLAGS...: makes $work/NAME/pan; its messages go to $work/NAME/log
build()
{
	dir=$work/$1 file=$models/$2.pml flag=$3
	shift 3
	mkdir "$dir" && cd "$dir" &&
	spin $short $flag -a "$file" >log 2>&1 &&
	"$cc" -w "$@" -o pan pan.c >>log 2>&1
}

first_error()
{
	grep -m1 -i -E 'error' "$1" | head -c 200
}

# good NAME MODEL SPIN_FLAG PAN_FLAG CC_FLAGS...
good()
{
	name=$1 model=$2 spin_flag=$3 pan_flag=$4
	shift 4
	if ! build "$name" "$model" "$spin_flag" $optimize "$@"; then
		fail "$name" "does not build: $(first_error "$work/$name/log")"
		return
	fi
	./pan $pan_flag $table -m$depth >result 2>&1
	if grep -q 'max search depth too small' result; then
		fail "$name" "the search depth $depth is too small"
	elif grep -q -i -E 'MEMLIM bound|out of memory|search not completed' result; then
		fail "$name" "$(grep -m1 '^pan:' result)"
	elif ! grep -q 'errors: 0' result; then
		fail "$name" "$(grep -m1 '^pan:' result || tail -n1 result)"
	else
		ok "$name ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' result) states)"
	fi
}

# bug NAME MODEL VARIANT
bug()
{
	if ! build "$1" "$2" "-D$3" -O0 -DSAFETY $memory; then
		fail "$1" "does not build: $(first_error "$work/$1/log")"
		return
	fi
	# A small table and stack: the first error is near. Invalid end states (-E) do not count,
	# only assertions.
	./pan -E -w20 -m20000 >result 2>&1
	if grep -q '^pan:1: assertion violated' result; then
		ok "$1"
	else
		fail "$1" "the broken rule was not caught: $(grep -m1 'errors:' result || tail -n1 result)"
	fi
}

# check FILE: one model, in all its forms
check()
{
	file=$1
	model=$(basename "$file" .pml)
	good "$model" "$model" "" "" -DSAFETY $memory
	if [ $long = yes ]; then
		good "$model-livelock" "$model" "" -l -DNP -DMEMLIM=2000
	fi
	if [ $long = yes ] && grep -q '^#ifdef LONG' "$file"; then
		good "$model-larger" "$model" -DLONG "" -DSAFETY -DCOLLAPSE -DMEMLIM=2000
	fi
	# Most of the time goes into compiling a search for each variant: in the short form one in
	# twelve is tried.
	nr=0
	for variant in $(grep -o 'BUG_[A-Z0-9_]*[A-Z0-9]' "$file" | sort -u); do
		nr=$((nr + 1))
		[ $long = yes ] || [ $((nr % 12)) -eq 1 ] || continue
		# A name that stands only in the comment would change nothing, and so is not caught.
		bug "$model-$variant" "$model" "$variant"
	done
}

started=0
for file in "$models"/*.pml; do
	(check "$file") >"$work/$(basename "$file").lines" &
	started=$((started + 1))
	[ $((started % jobs)) -ne 0 ] || wait
done
wait

cat "$work"/*.lines
passed=$(cat "$work"/*.lines | grep -c '^ok ')
failed=$(cat "$work"/*.lines | grep -c '^FAIL ')
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
