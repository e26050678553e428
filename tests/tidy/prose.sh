#!/bin/bash
# prose.sh - the prose is in plain English, by tests/tidy/prose.py: short sentences that name their
# things, and no word that only this project would use. Measured are README.md, docs, the manual pages
# and the heads of sources, scripts and tests; and, apart from these, the messages and help texts of
# all programs.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
need python3
log=$(mktemp) || exit 1
trap 'rm -rf "$log" "$work"' EXIT
work=$(mktemp -d) || exit 1

if tests/tidy/prose.py --show >"$log"; then
	ok "the prose of the project: $(sed -n 's|^prose: ||p' "$log")"
	ok "its messages and help texts: $(sed -n 's|^messages: ||p' "$log")"
else
	grep -v '^[0-9]* words: ' "$log" >"$work/short"
	not_ok "the prose and the messages of the project are in plain English" "$work/short"
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

# The same of messages: of C, of Python, of a script. A string that is no message is not refused.
said()	# NAME FILE LINE...
{
	local name=$1 file=$work/$2
	shift 2
	printf '%s\n' "$@" >"$file"
	tests/tidy/prose.py "$file" >"$log" 2>&1
}
refused_message()	# NAME FILE LINE...
{
	if said "$@"; then
		not_ok "$1 is found" "$log"
	else
		ok "$1 is found"
	fi
}
refused_message "a private word over two lines of C" one.c \
	'log_warn("%s: the cache tells %" PRIu64 " times "' '	"whoever waits", name, nr);'
refused_message "a bare clause in a help text" two.c '.help = "flush what is dirty for so long" },'
refused_message "a bare clause of Python" three.py 'raise Error(f"{name}: it is told what was lost")'
refused_message "a bare clause of a script" four.sh '#!/bin/bash' '# A script.' \
	'true || fail "it cannot tell what was lost"'
if said "" five.c '#include "what/is/in/here.h"' '/* "what is in here" */' \
	'assert(x && "what is in here");' 'f("%s %s %s %s\n");' 'puts("the cache is full of pages");'; then
	ok "strings that are no messages pass"
else
	not_ok "strings that are no messages pass" "$log"
fi
finish
