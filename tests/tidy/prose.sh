#!/bin/bash
# prose.sh - the prose is in plain English, by tests/tidy/prose.py: short sentences that name their
# things, and no word that only this project would use. Measured are README.md, docs, the manual pages
# and the heads of sources, scripts and tests.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
need python3
log=$(mktemp) || exit 1
trap 'rm -rf "$log" "$work"' EXIT
work=$(mktemp -d) || exit 1

if tests/tidy/prose.py --show >"$log"; then
	ok "the prose of the project: $(head -n 1 "$log")"
else
	not_ok "the prose of the project is in plain English" "$log"
fi

# The check itself: each of these has to be refused.
refused()	# NAME TEXT
{
	printf '%s\n' "$2" >"$work/page.md"
	if tests/tidy/prose.py "$work/page.md" >"$log" 2>&1; then
		not_ok "$1 is found" "$log"
	else
		ok "$1 is found"
	fi
}
refused "a sentence that is too long" "This is the one sentence of a page that goes on and on with words and \
more words until it has so many of them that no reader can still know at its end how it began."
refused "a clause that stands for a thing" "What was lent goes back. What is read stays here for long."
refused "a private word" "The cache tells whoever waits for the page."
finish
