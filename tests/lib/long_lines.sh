#!/bin/bash
# long_lines.sh - finds lines of C sources with more than 100 columns. A tab reaches to the next
# multiple of 8.
#
# Usage: tests/lib/long_lines.sh FILE...      prints FILE:LINE of each; exit 1 if there is any
#
# The name of a test is a sentence and is not broken, so its line may be longer.
set -u
[ $# -gt 0 ] || exit 0
awk '
{
	line = $0
	while ((i = index(line, "\t")))
		line = substr(line, 1, i - 1) substr("        ", 1 + (i - 1) % 8) substr(line, i + 1)
}
length(line) > 100 && !/_[a-z]+_[a-z]+_[a-z]+(\(void \*\*state)?\),?$/ {
	print FILENAME ":" FNR ": more than 100 columns"
	bad = 1
}
END { exit bad }' "$@"
