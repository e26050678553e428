#!/bin/bash
# run.sh - every benchmark, one after the other (`make bench`).
#
# Usage: bench/run.sh [--quick]
# Environment: BUILD (build); BENCH_RUNS and others are those of the single scripts, see their --help
#
# Each benchmark is a script that can be run alone, and has its results in $BUILD/bench/NAME. This one
# collects their reports in $BUILD/bench/report.txt. A bar that is not met is no failure.
# Exit codes: 0, or 1 when a benchmark could not be run to its end.
set -u

benchmarks=(hits sustained ratio overhead switches objects)
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
out=${BENCH_OUT:-$BUILD/bench}
report=$out/report.txt
running=
failed=()

case ${1:-} in
'' | --quick) ;;
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' bench/run.sh
	exit 0
	;;
*)
	echo "bench: unknown option $1; there is only --quick" >&2
	exit 2
	;;
esac

# A benchmark that runs in the background is ended by us, whatever signal we got.
interrupted()	# CODE
{
	trap - HUP INT TERM
	[ -z "$running" ] || { kill -TERM "$running" && wait "$running"; } 2>/dev/null
	exit "$1"
}
trap 'interrupted 129' HUP
trap 'interrupted 130' INT
trap 'interrupted 143' TERM

mkdir -p "$out" || exit 1
: >"$report"
for name in "${benchmarks[@]}"; do
	printf '\n==== %s ====\n' "$name"
	"bench/$name.sh" "$@" &
	running=$!
	if wait "$running"; then
		{ printf '==== %s ====\n' "$name"; cat "$out/$name/report.txt"; echo; } >>"$report"
	else
		failed+=("$name")
	fi
	running=
done
echo "all reports: $report"
if [ ${#failed[@]} -gt 0 ]; then
	echo "bench: not run to the end: ${failed[*]}; see above, and $out/NAME/log" >&2
	exit 1
fi
