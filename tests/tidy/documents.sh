#!/bin/bash
# documents.sh - the documents name only functions, files and links that are there, and their tables
# of states and floors are those of the sources (tests/tidy/tables.py).
#
# A function is a name with () in backquotes, a file one that ends as a source does. Both may be
# anywhere in the tree. Names of liburcu are not checked.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
docs=(README.md docs/*.md docs/design/*.md docs/decisions/*.md)
find . \( -path './build*' -o -path ./.git \) -prune -o -type f -print | sed 's|^\./||' >"$work/files"

quoted()	# the words of the documents in backquotes, once each
{
	sed '/^```/,/^```/d' "${docs[@]}" | grep -o '`[^` ]*`' | tr -d '`' | sort -u
}

told()	# WHAT: each line of $work/missing is one that is not there
{
	if [ "$(wc -l <"$work/looked_at")" -gt 0 ] && [ ! -s "$work/missing" ]; then
		ok "$1 that the documents name are there"
	else
		not_ok "$1 that the documents name are there" "$work/missing"
	fi
}

quoted | sed -n 's/^\([a-z_0-9]\{3,\}\)()$/\1/p' >"$work/looked_at"
grep -E '\.[ch]$' "$work/files" | xargs -d '\n' cat | grep -oE '\b[a-z_0-9]{3,}\(' | tr -d '(' |
	sort -u >"$work/functions"
comm -23 "$work/looked_at" "$work/functions" >"$work/missing"
told functions

quoted | grep -v '^urcu/' |
	grep -E '^[a-z_0-9/]+\.([ch]|sh|awk|gp|pml|py|fio|[1-8])$' >"$work/looked_at"
while read -r file; do
	grep -qE "(^|/)${file//./\\.}\$" "$work/files" || echo "$file"
done <"$work/looked_at" >"$work/missing"
told files

# As they are rendered: small letters, blanks as hyphens, nothing else but letters and digits.
anchors()	# DOCUMENT
{
	sed '/^```/,/^```/d' "$1" | sed -n 's/^#\+ //p' | tr '[:upper:]' '[:lower:]' |
		sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

leads()	# DOCUMENT LINK
{
	local file=${2%%#*} target=$1
	if [ -n "$file" ]; then
		target=$(dirname "$1")/$file
		[ -e "$target" ] || return 1
	fi
	case $2 in *\#*) anchors "$target" | grep -qx -- "${2#*#}" ;; esac
}

for doc in "${docs[@]}"; do
	# a link may go over two lines
	tr '\n' ' ' <"$doc" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//' |
		grep -v '^[a-z]*://' | sed "s|^|$doc |"
done | sort -u >"$work/looked_at"
while read -r doc link; do
	leads "$doc" "$link" || echo "$doc: $link"
done <"$work/looked_at" >"$work/missing"
told "the ends of links"

if tests/tidy/tables.py >"$work/missing" 2>&1; then
	ok "tables of states and of floors are those of their sources"
else
	not_ok "tables of states and of floors are those of their sources" "$work/missing"
fi
finish
