#!/bin/bash
# manual.sh - every program has a manual page, which has the same options as its --help and renders
# cleanly.
#
# The keys of stack files in xseg.conf.5 are those of the programs' tables (conf_page.py).
#
# An option counts as described where a paragraph of the page begins with it, so pages may mention
# the options of other programs in their text. bench-* programs are measuring tools of the
# repository: no pages. `xseg COMMAND --help` is asked for every command that `xseg --help` lists,
# if it is answered.
#
# A page's SEE ALSO names all pages of the project that its text names. The words of other tools
# for which `xseg` says "did you mean" (main.c) are no commands, and mean commands.
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
shopt -s nullglob

programs=("$BUILD"/bin/*)
[ ${#programs[@]} -gt 0 ] || skip_all "no program is built"

page_of()	# NAME
{
	local page
	for page in docs/"$1".[18] peers/*/"$1".[18] tools/*/"$1".[18] bench/*/"$1".[18]; do
		echo "$page"
		return
	done
}

commands()	# PROGRAM: those that its --help lists
{
	timeout 10 "$1" --help </dev/null 2>&1 | sed -n -E 's/^  ?([a-z]+( [a-z]+)?)  .*/\1/p' |
		sort -u
}

# verdict SENTENCE FILE: ok when the file of findings is empty
verdict()
{
	if [ -s "$2" ]; then not_ok "$1" "$2"; else ok "$1"; fi
}

help_of()	# PROGRAM
{
	local command
	timeout 10 "$1" --help </dev/null 2>&1
	[ "$(basename "$1")" = xseg ] || return 0
	commands "$1" |
	while read -r command; do
		# shellcheck disable=SC2086
		out=$(timeout 10 "$1" $command --help </dev/null 2>&1) && echo "$out"
	done
}

options()	# the options named in the text on stdin, without their arguments
{
	grep -oE -- '(^|[^A-Za-z0-9_-])--[a-z][a-z0-9_-]*' | sed -E 's/^[^-]//; s/[-_]$//' |
		tr _ - | sort -u
}

for program in "${programs[@]}"; do
	name=$(basename "$program")
	[ -x "$program" ] || continue
	case $name in bench-*) continue ;; esac

	page=$(page_of "$name")
	if [ -z "$page" ]; then
		not_ok "$name has a manual page"
		continue
	fi
	ok "$name has a manual page"
	if ! timeout 10 "$program" --help >/dev/null 2>&1 </dev/null; then
		not_ok "$name --help succeeds"
		continue
	fi
	if [ "$name" = xseg ]; then
		commands "$program" | while read -r command; do
			grep -qE "^\.SS $command( |\$)" "$page" ||
				echo "$command: $page has no paragraph '.SS $command'; add it"
		done >"$work/bad"
		verdict "each command of $name has a paragraph in its manual page" "$work/bad"
		sed -n '/^static const char \*known_elsewhere/,/^}/p' tools/xseg/main.c |
			grep -oE '\{ "[a-z ]+", "[a-z -]+" \}' | tr -d '{}"' >"$work/elsewhere"
		commands "$program" >"$work/commands"
		{
			[ -s "$work/elsewhere" ] || echo "main.c has no words of other tools"
			while IFS=, read -r typed meant; do
				grep -qxF -- "$(xargs <<<"$typed")" "$work/commands" &&
					echo "$typed: it is a command"
				grep -qxF -- "$(xargs <<<"$meant")" "$work/commands" ||
					[[ $meant = *--version* ]] || echo "$meant: it is no command"
			done <"$work/elsewhere"
		} >"$work/bad"
		verdict "each word of other tools means a command of $name" "$work/bad"
	fi
	if ! command -v groff >/dev/null 2>&1; then
		skip "the options of $name are those of its manual page" "groff is not there"
		continue
	fi

	# Lines so long that nothing is broken or hyphenated.
	groff -t -mandoc -Tascii -P-cbou -rLL=2000n -rHY=0 "$page" >"$work/page" 2>/dev/null
	help_of "$program" >"$work/help"
	options <"$work/page" >"$work/mentioned"
	grep -E '^ +(-[A-Za-z0-9]( [A-Z]+)?, )?--[a-z]' "$work/page" | options >"$work/described"
	options <"$work/help" | grep -vxE -- '--(help|version)' >"$work/offered"
	{
		comm -23 "$work/offered" "$work/mentioned" | sed "s|$|: in --help, not in $page|"
		comm -23 "$work/described" <(options <"$work/help") |
			sed "s|$|: in $page, not in --help|"
	} >"$work/bad"
	if [ -s "$work/bad" ]; then
		not_ok "the options of $name are those of its manual page" "$work/bad"
	else
		ok "the options of $name are those of its manual page"
	fi
done

if [ -x "$BUILD/bin/xseg-host" ]; then
	tests/tidy/conf_page.py "$BUILD/bin/xseg-host" >"$work/bad" 2>&1
	verdict "xseg.conf.5 has the keys of stack files, as the tables have them" "$work/bad"
fi

pages=(docs/*.[1-8] peers/*/*.[1-8] tools/*/*.[1-8] bench/*/*.[1-8] debian/*.[1-8])

# named PAGE: "NAME SECTION" of each page that it names, in the text (-) or behind SEE ALSO (+)
named()
{
	sed 's/\\-/-/g; s/\\f[A-Z]//g; s/^\.\(B\|I\|BR\|IR\) //; s/"//g' "$1" |
		awk '/^\.SH SEE ALSO/ { sign = "+" } { print (sign ? sign : "-") $0 }' |
		grep -oE '^[-+]|[A-Za-z][A-Za-z0-9.@-]* ?\([1-8]\)' |
		awk '/^[-+]$/ { sign = $0; next }
			{ sub(/ ?\(/, " "); sub(/\)/, ""); print sign, $0 }' | sort -u
}

for page in "${pages[@]}"; do
	basename "$page" | sed -E 's/\.([1-8])$/ \1/'
done | sort -u >"$work/ours"
for page in "${pages[@]}"; do
	self=$(basename "$page" | sed -E 's/\.([1-8])$/ \1/')
	named "$page" >"$work/named"
	comm -23 <(sed -n 's/^- //p' "$work/named" | grep -vxF "$self" | sort -u) \
		<(sed -n 's/^+ //p' "$work/named" | sort -u) | sort -u |
		comm -12 - "$work/ours" | sed "s|^|$page: SEE ALSO lacks |" >"$work/bad"
	grep -nE '[^ ] \.[A-Z]{1,2}( |$)' "$page" | grep -v '^[0-9]*:\.\\"' |
		sed "s|^|$page: a request inside a line, which is shown as it is: |" >>"$work/bad"
	verdict "$page has its requests at the begin of lines, and a whole SEE ALSO" "$work/bad"
done

for page in "${pages[@]}"; do
	if command -v groff >/dev/null 2>&1; then
		# on one long page, as man shows it: a page that ends breaks tables
		if groff -t -mandoc -Tutf8 -ww -z <(echo ".pl 2000i") "$page" >"$work/bad" 2>&1 &&
				[ ! -s "$work/bad" ]; then
			ok "$page renders without a warning"
		else
			not_ok "$page renders without a warning" "$work/bad"
		fi
	else
		skip "$page renders without a warning" "groff is not there"
	fi
done
finish
