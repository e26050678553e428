#!/bin/bash
# codespell.sh - no text of the tree has a misspelt word that codespell knows: documents, comments,
# messages, scripts. The list below has the words that stay, with their reasons.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
need codespell
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# word		reason
cat >"$work/allowed" <<-'END'
	alog		peers/alog: the append-only log
	bu		\(bu in roff: the point of a list
	hendler		an author: xtypes/xworkq.h
	inflight	a name in the code, as in Linux
	te		.TE in roff: the end of a table
	fro		to and fro
	vlarge		a large value of the simulator, as vio is a request
	fileds		several of filed
	anothers	ANOTHERS, a value in tests/model/direct.pml
	datas		a variable in bench/hit.sh
	tread		\tread in printf is a tab and a word
	nnumber		the form of the names in tests/unit/stores/filed_list_test.c
	levle		misspelt options and commands that the tests ask for:
	lsit		the same
	memroy		the same
END
cut -f 1 "$work/allowed" >"$work/words"

# Not figures, plots and inputs of tests.
{ git ls-files 2>/dev/null || find . -type f -not -path './build*' -not -path './.git/*' -printf '%P\n'; } |
	grep -vE '^(docs/bench|tests/data|tests/fuzz/corpus)/|^tests/tidy/codespell\.sh$|\.(png|gz)$' |
	while read -r name; do [ -f "$name" ] && echo "$name"; done >"$work/files"
check()		# OPTION... FILE...
{
	xargs -d '\n' codespell --disable-colors "$@" <"$work/files"
}

if check -I "$work/words" >"$work/log" 2>&1; then
	ok "no word is misspelt in $(wc -l <"$work/files") files"
else
	not_ok "no word is misspelt" "$work/log"
fi

# The check itself. (The word is in two parts, so that this file has none.)
echo "A cache rec""ieves requests." >"$work/page.md"
echo "$work/page.md" >"$work/files"
if check -I "$work/words" >"$work/log" 2>&1; then
	not_ok "a misspelt word is found" "$work/log"
else
	ok "a misspelt word is found"
fi
finish
