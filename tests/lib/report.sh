# report.sh - how a test script reports its results; sourced by every test script written in bash.
#
# Contract: one line a test on standard output, which tests/run.sh counts:
#	ok - SENTENCE
#	not ok - SENTENCE          followed by indented lines of what happened
#	skip - SENTENCE: REASON
# The script ends by `finish` (or exit "$(status)"): 0 when nothing failed, else 1.
# No `set -e` in test scripts: a failed command is a result, not an end.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
export BUILD
export LC_ALL=C

nr_failed=0

ok()		# SENTENCE
{
	echo "ok - $1"
}

# not_ok SENTENCE [FILE...]: with the files' last lines
not_ok()
{
	local file
	nr_failed=$((nr_failed + 1))
	echo "not ok - $1"
	shift
	for file; do
		tail -n 30 -- "$file" | sed 's/^/    /'
	done
}

skip()		# SENTENCE REASON
{
	echo "skip - $1: $2"
}

# skip_all REASON: the whole script
skip_all()
{
	skip "$(basename "$0" .sh)" "$1"
	exit 0
}

# need PROGRAM...: skips the whole script when one is not there
need()
{
	local program
	for program; do
		command -v "$program" >/dev/null 2>&1 || skip_all "$program is not there"
	done
}

finish()
{
	[ ! -s "${TMP:-}/.unknown" ] || not_ok "every command that it calls exists" "$TMP/.unknown"
	[ "$nr_failed" -eq 0 ]
	exit
}
