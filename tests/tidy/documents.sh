#!/bin/bash
# documents.sh - the documents name only functions, files and links that are there, their tables of
# states and floors are those of the sources (tests/tidy/tables.py), and no page is too long. It also
# tests that a page that is too long is found.
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

# too_long FOLDER: each page below it that has more lines than it may
too_long()
{
	(cd "$1" && wc -l docs/OVERVIEW.md docs/BENCHMARKS.md docs/design/*.md) | awk '
		BEGIN { most["docs/OVERVIEW.md"] = 150; most["docs/BENCHMARKS.md"] = 300 }
		$2 != "total" {
			limit = $2 in most ? most[$2] : 250
			if ($1 > limit) print $2 " has " $1 " lines, of " limit " at most; shorten it"
		}'
}

too_long . >"$work/missing"
if [ -s "$work/missing" ]; then
	not_ok "no page is too long" "$work/missing"
else
	ok "no page is too long"
fi
for page in docs/OVERVIEW.md:150 docs/BENCHMARKS.md:300 docs/design/client.md:250; do
	lines=${page#*:} page=${page%:*}
	rm -rf "$work/tree"
	mkdir -p "$work/tree/docs/design"
	touch "$work/tree/docs/"{OVERVIEW,BENCHMARKS}.md "$work/tree/docs/design/other.md"
	seq "$lines" >"$work/tree/$page"
	too_long "$work/tree" >"$work/found"
	echo one more >>"$work/tree/$page"
	too_long "$work/tree" >>"$work/found"
	if [ "$(cat "$work/found")" = "$page has $((lines + 1)) lines, of $lines at most; shorten it" ]; then
		ok "$page may have $lines lines, and one more is found"
	else
		not_ok "$page may have $lines lines, and one more is found" "$work/found"
	fi
done

if tests/tidy/tables.py >"$work/missing" 2>&1; then
	ok "tables of states and of floors are those of their sources"
else
	not_ok "tables of states and of floors are those of their sources" "$work/missing"
fi
finish
