#!/bin/bash
# layers.sh - the rules of docs/OVERVIEW.md for includes and calls between rooms, and rules for
# every file.
# timeout: 150
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
CC=${CC:-gcc}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

find xtypes xseg peers tools bench tests -name '*.[ch]' 2>/dev/null | sort >"$work/files"
[ -s "$work/files" ] || skip_all "there are no sources"

# Every source as FILE:LINE:TEXT, without comments and what stands in quotes. An #include keeps its
# name.
xargs awk '
FNR == 1 { inside = 0 }
{
	out = ""
	s = $0
	if (!inside && s ~ /^[ \t]*#[ \t]*include/) {
		print FILENAME ":" FNR ":" s
		next
	}
	while (s != "") {
		if (inside) {
			i = index(s, "*/")
			if (!i) break
			s = substr(s, i + 2)
			inside = 0
		} else if (!match(s, /\/\*|\/\/|["\047]/)) {
			out = out s
			break
		} else {
			mark = substr(s, RSTART, RLENGTH)
			out = out substr(s, 1, RSTART - 1)
			s = substr(s, RSTART + RLENGTH)
			if (mark == "//") break
			if (mark == "/*") {
				inside = 1
				continue
			}
			out = out mark mark
			while (s != "") {
				c = substr(s, 1, 1)
				s = substr(s, c == "\\" ? 3 : 2)
				if (c == mark) break
			}
		}
	}
	if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
}' <"$work/files" >"$work/code"

# verdict SENTENCE FILE: ok when the file of findings is empty
verdict()
{
	if [ -s "$2" ]; then not_ok "$1" "$2"; else ok "$1"; fi
}

# ---- includes ----

# may_include FILE HEADER
may_include()
{
	local program name		# program: tools/xseg of tools/xseg/cmd/peer_cmds.c
	name=${1#*/}
	program=${1%%/*}/${name%%/*}
	case $1 in
	tests/*)        return 0 ;;
	xtypes/*)       case $2 in xtypes/*) return 0 ;; esac ;;
	xseg/*)         case $2 in xtypes/* | xseg/*) return 0 ;; esac ;;
	peers/common/*)
		case $2 in
		xseg/layout.h | xseg/internal.h) ;;
		xtypes/* | xseg/* | peers/common/*) return 0 ;;
		esac ;;
	peers/host/*)   case $2 in xtypes/* | xseg/xseg.h | xseg/ops.def | peers/*) return 0 ;; esac ;;
	peers/*)
		name=${1#peers/}
		case $1:$2 in		# a client of kvd, as a program is
		peers/memcached/*:xseg/kv.h) return 0 ;;
		esac
		case $2 in
		peers/alog/alog.h | peers/alog/record.h) return 0 ;;
		xseg/xseg.h | xseg/arenas.h | xseg/kv_wire.h | xseg/ops.def) return 0 ;;
		xtypes/* | peers/common/* | peers/"${name%%/*}"/*) return 0 ;;
		esac ;;
	bench/limits/*)	# no segment at all: the bare structures are what is measured
		case $2 in xtypes/* | peers/common/* | bench/common/* | "$program"/*) return 0 ;; esac ;;
	tools/* | bench/*)
		case $2 in
		xtypes/xcrc.h | xtypes/xhist.h | xtypes/xhot.h | xtypes/xstate.h | xseg/xseg.h | xseg/volume.h | xseg/kv.h) return 0 ;;
		peers/common/* | "$program"/*) return 0 ;;
		bench/common/*) [ "${1%%/*}" != bench ] || return 0 ;;
		esac ;;
	esac
	return 1
}

: >"$work/bad"
while IFS=: read -r file line text; do
	header=${text#*\"}
	header=${header%%\"*}
	[ ! -e "${file%/*}/$header" ] || header=${file%/*}/$header
	may_include "$file" "$header" || echo "$file:$line: may not include $header" >>"$work/bad"
done < <(grep -E ':[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$work/code")
verdict "every folder includes only what its layer may" "$work/bad"

grep -E '^(xtypes|xseg)/.*#[[:space:]]*include[[:space:]]*<(jansson|ini|libaio|getopt|syslog|err|rados/.*)\.h>' \
	"$work/code" >"$work/bad"
verdict "xtypes and xseg include no header for options, logs, JSON or stores" "$work/bad"

# ---- calls ----

# calls FOLDERS_REGEX NAMES_REGEX: where they are called; members and longer names are something
# else
calls()
{
	grep -E "^($1)[^:]*:[0-9]+:(.*[^A-Za-z0-9_.>])?($2)[[:space:]]*\(" "$work/code" >"$work/bad"
}

calls 'xtypes/|xseg/' 'v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|v?syslog|_?exit|quick_exit|(secure_)?getenv|getopt(_long)?|v?errx?|v?warnx?'
verdict "nothing below peers/common prints, exits, reads the environment or parses options" \
	"$work/bad"

calls 'xtypes/|xseg/' 'sigaction|signal|sigset|siglongjmp|raise|v?fork|execv?[pe]*'
verdict "nor does it handle signals, or make processes" "$work/bad"

calls 'peers/(volumed|cached|alog)/' 'clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|clock_nanosleep|v?f?printf|exit|getenv|syscall'
verdict "volumed, cached and alog read no clock, sleep nowhere and print nothing" "$work/bad"

calls '' 'strcpy|strcat|v?sprintf|gets|atoi|atol|s?rand'
verdict "no strcpy, strcat, sprintf, gets, atoi or rand anywhere" "$work/bad"

calls '' 'bucket_leave'
grep -vE '^peers/cached/(evict/step\.c|object/object\.[ch]):|^tests/' "$work/bad" >"$work/others"
verdict "data leaves the cache by evict_step() only" "$work/others"

# ---- files ----

# Headers that a source includes before anything else: the build has compiled them alone. In `make
# tidy` and `make check-long` they are compiled here, too. Some sources are built only where a
# library is.
: >"$work/first"
[ -n "${STATIC:-}${LONG:-}" ] ||
	awk -F : '$1 ~ /\.c$/ && $1 !~ /^(peers\/sosd|bench\/(fio|rivals|scale)|tools\/nbdkit)\// &&
		/#[ \t]*include/ && !seen[$1]++ && split($0, part, "\"") > 2 {
			print $1, part[2] }' "$work/code" | while read -r file header; do
		[ ! -e "${file%/*}/$header" ] || header=${file%/*}/$header
		echo "$header"
	done | sort -u >"$work/first"

mkdir "$work/alone" || exit 1
grep '\.h$' "$work/files" | grep -vxFf "$work/first" | while read -r header; do
	case $header in peers/sosd/*) [ -e /usr/include/rados/librados.h ] || continue ;; esac
	echo "#include \"$header\"" >"$work/alone/${header//\//-}.c"
done
# One process: starting a compiler a header is most of what this takes.
$CC -std=gnu11 -D_GNU_SOURCE -DXSEG_VERSION='"0"' -I. -Wall -Wextra -Werror -fsyntax-only \
	"$work"/alone/*.c >"$work/bad" 2>&1
verdict "every header compiles alone" "$work/bad"

xargs awk 'FNR == 1 && !/^(\/\*|\/\/)/ { print FILENAME }' <"$work/files" >"$work/bad"
verdict "every file begins with a comment that says what it is for" "$work/bad"

{ cat "$work/files"; find docs -name '*.[ch]'; } | xargs tests/lib/long_lines.sh >"$work/bad"
verdict "no line of a C source has more than 100 columns, but for names of tests" "$work/bad"

# 100 columns, 101, the same with a tab, and the name of a test.
printf '%0100d\n%0101d\n\t%092d\n1234567\t%093d\n\tM(a_%080d_name_of_a_test),\n' \
	0 0 0 0 0 >"$work/planted.c"
tests/lib/long_lines.sh "$work/planted.c" | cut -d : -f 2 >"$work/long"
if [ "$(tr '\n' ' ' <"$work/long")" = "2 4 " ]; then
	ok "lines of 101 columns are found, with a tab and without"
else
	not_ok "lines of 101 columns are found, with a tab and without" "$work/long"
fi

find tools bench tests .ci -name '*.sh' -o -path .ci/run | while read -r script; do
	bash -n "$script" || echo "$script"
done >"$work/bad" 2>&1
verdict "bash can read every script" "$work/bad"

xargs wc -l <"$work/files" |
	awk '$1 > 900 && $2 != "total" { print "warning - " $2 " has " $1 " lines" }'

finish
