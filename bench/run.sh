#!/bin/bash
# run.sh - runs every benchmark, one after the other, and compares each with its bar (`make bench`).
#
# Usage: bench/run.sh [--quick] [NAME...]
# Environment: BUILD (build); BENCH_RUNS and others are those of the single scripts, see their
#   --help
#
# Each benchmark is a script that can be run alone, and has its results in $BUILD/bench/NAME.
# Without names all but guest and kv_* are run, in about 21 minutes on two cores. run.sh collects their
# reports in $BUILD/bench/report.txt. At the end it prints one table of all bars, each with its
# result and whether it was met. The table is in $BUILD/bench/ratios.txt too. A bar that is not met
# is no failure.
# Exit codes: 0, or 1 if a benchmark could not be run to its end.
set -u

benchmarks=(limits hit reactors sustained ratio overhead switches plugs fio nbd index literature
	    headline scale rivals pagecache kv memcached)
# take minutes alone, or hours, so they have to be asked for
by_name=(guest kv_offload kv_lustre kv_filecache)
[ -z "${BENCH_OUT:-}" ] || BENCH_OUT=$(realpath -m "$BENCH_OUT")
script=$0
cd "$(dirname "$0")/.." || exit 1
. bench/only.sh
BUILD=${BUILD:-build}
out=${BENCH_OUT:-$BUILD/bench}
report=$out/report.txt
ratios=$out/ratios.txt
running=
failed=()
args=()

case ${1:-} in
--quick)
	args=(--quick)
	shift
	;;
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' bench/run.sh
	exit 0
	;;
-*)
	echo "bench: unknown option $1; bench/run.sh --help lists the options" >&2
	exit 2
	;;
esac
for name; do
	[[ " ${benchmarks[*]} ${by_name[*]} " == *" $name "* ]] || {
		echo "bench: there is no benchmark $name; there are ${benchmarks[*]} ${by_name[*]}" >&2
		exit 2
	}
done
[ $# = 0 ] || benchmarks=("$@")

# A benchmark that runs in the background is ended by us, whatever signal we got.
interrupted()	# CODE
{
	trap - HUP INT TERM
	rm -f "$out/pid"
	[ -z "$running" ] || { kill -TERM "$running" && wait "$running"; } 2>/dev/null
	exit "$1"
}
trap 'interrupted 129' HUP
trap 'interrupted 130' INT
trap 'interrupted 143' TERM

why=$(mkdir -p "$out" 2>&1) || {
	echo "bench: $why; give another BENCH_OUT" >&2
	exit 2
}
only_one "$out" "$script" || exit 2
: >"$report" || exit 1
started=$SECONDS
for name in "${benchmarks[@]}"; do
	printf '\n==== %s ====\n' "$name"
	before=$SECONDS
	"bench/$name.sh" "${args[@]}" &
	running=$!
	if wait "$running"; then
		{ printf '==== %s ====\n' "$name"; cat "$out/$name/report.txt"; echo; } >>"$report"
	else
		failed+=("$name")
	fi
	running=
	echo "$name: $((SECONDS - before)) s"
done
rm -f "$out/pid"
printf '\n==== what was wanted ====\n'
awk -f bench/run.awk "$report" | tee "$ratios"
echo "all of it took $(((SECONDS - started + 59) / 60)) minutes; all reports: $report"
if [ ${#failed[@]} -gt 0 ]; then
	echo "bench: not run to the end: ${failed[*]}; see above, and $out/NAME/log" >&2
	exit 1
fi
