#!/bin/bash
# format.sh - formats C sources by .clang-format, or says where they are not so formatted.
#
# Usage: tests/lib/format.sh [--check] FILE...      exit 1 when --check finds anything
#
# The author breaks statements into lines, and aligns comments, tables and macros; clang-format
# knows one way only. So its output and the source are compared as statements. The lines of a
# statement are joined, and every run of blanks within is taken as one; indentation of a statement
# counts. Only statements that differ are formatted. `/* clang-format off */` and `on` keep a piece
# as it is. No line has more than 100 columns (long_lines.sh).
set -u
cd "$(dirname "$0")/../.." || exit 1

check=
if [ "${1:-}" = --check ]; then
	check=1
	shift
fi
[ $# -gt 0 ] || exit 0
command -v clang-format >/dev/null 2>&1 || {
	echo "format.sh: clang-format is not there: \`make tidy\` installs it" >&2
	exit 1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# statements FILE: each as FIRST_LINE:LAST_LINE<TAB>TEXT; comment blocks line by line
statements()
{
	awk '
	function flush() {
		if (text != "") print first ":" last "\t" text
		text = ""
	}
	function squeeze(s) {
		match(s, /^\t*/)
		indent = substr(s, 1, RLENGTH)
		s = substr(s, RLENGTH + 1)
		gsub(/[ \t]+/, " ", s)
		sub(/^ /, "", s)
		sub(/ $/, "", s)
		return indent s
	}
	# whether the text is an if, for, while or switch with its condition complete
	function head(s) {
		if (s !~ /^\t*(\} )?(else )?(if|for|while|switch) ?\(/) return 0
		gsub(/\\./, "", s)
		gsub(/"[^"]*"|\047[^\047]*\047|\/\*[^*]*\*\//, "", s)
		return gsub(/\(/, "", s) == gsub(/\)/, "", s)
	}
	inside {			# a block comment
		print NR ":" NR "\t" squeeze($0)
		if ($0 ~ /\*\//) inside = 0
		next
	}
	/^[ \t]*$/ { flush(); print NR ":" NR "\t"; next }
	/^[ \t]*\/\*/ && !/\*\// { flush(); print NR ":" NR "\t" squeeze($0); inside = 1; next }
	macro || /^[ \t]*#/ {
		if (!macro) flush()
		print NR ":" NR "\t" squeeze($0)
		macro = ($0 ~ /\\$/)
		next
	}
	{
		s = squeeze($0)
		if (s ~ /^\t*\{$/) flush()		# a brace on its own line is to stay there
		if (text == "") {
			first = NR
			text = s
		} else {
			sub(/^\t+/, "", s)
			text = text (text ~ /[({]$/ || s ~ /^[)]/ ? "" : " ") s
		}
		last = NR
		bare = s
		gsub(/\/\*[^*]*\*\//, "", bare)
		sub(/\/\*.*$/, "", bare)
		sub(/\/\/.*$/, "", bare)
		sub(/[ \t]+$/, "", bare)
		if (bare == "" || bare ~ /[;{}]$/ || bare ~ /^\t*((case .*|default|[A-Za-z0-9_]+) ?:|else|do)$/ || head(text)) {
			if (s ~ /\/\*/ && s !~ /\*\/[^\/]*$/) inside = 1
			flush()
		} else if (s ~ /\/\*/ && s !~ /\*\/[^\/]*$/) {
			flush()
			inside = 1
		}
	}
	END { flush() }' "$1"
}

bad=0
for file; do
	clang-format "$file" >"$work/wanted" || exit 1
	statements "$file" >"$work/a"
	statements "$work/wanted" | cut -f 2- >"$work/b"
	cut -f 2- "$work/a" | diff --unchanged-line-format= --old-line-format='- %dn %L' \
		--new-line-format='+ 0 %L' - "$work/b" >"$work/diff" && continue
	bad=$((bad + 1))
	if [ -n "$check" ]; then
		# The source's line number instead of the statement's.
		awk -F '\t' -v file="$file" '
		NR == FNR { split($1, at, ":"); line[FNR] = at[1]; next }
		{
			split($0, f, " ")
			rest = $0
			sub(/^[-+] [0-9]+ /, "", rest)
			if (f[1] == "-") print file ":" line[f[2]] ":\n\t-" rest
			else print "\t+" rest
		}' "$work/a" "$work/diff"
	else
		ranges=$(awk -F '\t' '
		NR == FNR { at[FNR] = $1; next }
		{ split($0, f, " "); if (f[1] == "-") print "--lines=" at[f[2]] }' "$work/a" "$work/diff")
		# shellcheck disable=SC2086
		[ -z "$ranges" ] || clang-format -i $ranges "$file"
		echo "formatted $file"
	fi
done
if [ -n "$check" ]; then
	long=$(tests/lib/long_lines.sh "$@") || {
		echo "$long"
		bad=$((bad + $(cut -d : -f 1 <<<"$long" | sort -u | wc -l)))
	}
fi
if [ -n "$check" ] && [ $bad -gt 0 ]; then
	echo "$bad of $# files are not formatted as .clang-format says; \`make format\` formats them"
	exit 1
fi
