#!/bin/bash
# halting.sh - no test goes on while a process that it halts still runs. SIGSTOP takes a while; scripts
# call freeze (tests/lib/system.sh), Python halt() (tests/system/halting.py), C waitpid().
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

grep -rnE 'kill (-|-s )(SIG)?STOP|os\.kill\(.*SIGSTOP|proc\.send_signal\(.*SIGSTOP' \
	--include='*.sh' --include='*.py' tests bench >"$work/all"
grep -vE '^tests/(lib/system\.sh|system/halting\.py|system/ceph/cluster\.sh|tidy/halting\.sh):' \
	"$work/all" >"$work/wrong"
if [ -s "$work/all" ] && [ ! -s "$work/wrong" ]; then
	ok "whoever halts a process waits until it stands still"
else
	not_ok "whoever halts a process waits until it stands still" "$work/wrong"
fi
finish
