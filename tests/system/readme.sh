#!/bin/bash
# readme.sh - the first hour of README.md, command by command as it stands there, and the start from
# source. Its start from packages is run by packages.sh.
#
# The blocks marked sh from the heading on are one script, run by `bash -e` in order. Only the
# segment's name, the programs' path and the tour's directory are changed.
# timeout: 180
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/readme.sh"
need xseg xseg-host xbench volumed kvd cached filed

export XDG_STATE_HOME=$TMP
# What the tour takes from the clone.
mkdir -p clone/build
ln -s "$root/docs" "$root/xseg" "$root/xtypes" "$root/tools" "$root/bench" clone
ln -s "$BUILD/lib" clone/build/lib
left_out=()

# lacks THING COMMAND...: true if the command fails; then the tour goes without that thing
lacks()
{
	local thing=$1
	shift
	! "$@" >/dev/null 2>&1 || return 1
	skip "README, first hour: $thing" "$thing is not there"
}
lacks cc command -v cc && left_out+=(-e '/^cc /d' -e '/^\.\/(kv_)?example /d')
lacks python3 command -v python3 && left_out+=(-e '/^python3 /d')
lacks "fio with its engine" eval "command -v fio && [ -e '$BUILD/lib/fio-xseg.so' ]" &&
	left_out+=(-e '/^ENGINE=/d')
lacks "nbdkit with its plug-in" \
	eval "command -v nbdkit && command -v nbdcopy && [ -e '$BUILD/lib/nbdkit-xseg-plugin.so' ]" &&
	left_out+=(-e '/^xseg export /,/^wait .*true$/d')

# hour: the blocks of the tour, each followed by a line that tells which one has ended
hour()
{
	readme_blocks "A first hour" |
	sed -E -e '/^make( deps)?$/d' -e "s|=hour\$|=$XSEG_SEGMENT|" \
		-e "s|xseg-hour\\.log|xseg-$XSEG_SEGMENT.log|" "${left_out[@]}"
}

# title N: the words in bold before block N, or its number
title()
{
	awk -v wanted="$1" '
	/^## / { on = /^## A first hour/ }
	on && /^\*\*/ { split($0, part, /\*\*/); bold = part[2]; sub(/\.$/, "", bold) }
	on && /^```sh$/ && ++n == wanted { print bold == "" ? "Build" : bold; exit }' "$readme"
}

# ---- memory for clients ----

grep -E '^\| [0-9]+ \| [0-9]+ MiB .*`--clients' "$readme" >rows
is "README says what two numbers of clients need" "$(wc -l <rows)" 2
while IFS='|' read -r _ clients memory _ options _; do
	options=${options//\`/}
	# shellcheck disable=SC2086 # words
	is "README, memory for $clients clients" "$(xseg create --dry-run --memory 4G --cache 2G $options |
		awk '/^clients: their memory/ { print $(NF - 1) / 1048576 " MiB" }')" "$(echo $memory)"
done <rows

hour >hour.sh
blocks=$(grep -c '^echo "@ block' hour.sh)
t "the README has a first hour of at least eight blocks" test "$blocks" -ge 8
(cd clone && bash -e "$TMP/hour.sh") >hour.log 2>&1 </dev/null
status=$?
for i in $(seq "$blocks"); do
	if grep -q "^@ block $i\$" hour.log; then
		ok "README, first hour: $(title "$i")"
	else
		tail -n 20 hour.log >rest.log
		not_ok "README, first hour: $(title "$i")" rest.log
		break
	fi
done
is "the hour ends well" "$status" 0
t "no sector was wrong" test "$(grep -c 'verify errors=0' hour.log)" -ge 2
t "the killed cache found its dirty data" grep -q 'cached: recovered .* of dirty data' hour.log
t "nothing is left of it" test ! -e "/dev/shm/xseg.$XSEG_SEGMENT" -a ! -e clone/build/hour

# ---- the start from source ----

# From its own directory, with what is built already, into a home of its own.
awk '/^## / { on = /^## Two ways to start/ } /^```$/ { inside = 0 } on && inside; /^```sh$/ { inside = 1 }' \
	"$readme" | sed -e '/^make deps$/d' \
	-e "s|^make |&-C '$root' --no-print-directory BUILD='${BUILD#"$root"/}' CC='${CC:-gcc}' |" >start.sh
mkdir home
t "the README has a start from source" grep -q "install PREFIX=~/xseg" start.sh
t "it works" env HOME="$TMP/home" bash -ec '. ./start.sh && [ "$(command -v xseg)" = "$HOME/xseg/bin/xseg" ]'
sed -n "s|^\(make .*\) install |\1 uninstall |p" start.sh >uninstall.sh
t "and uninstall leaves nothing" eval 'env HOME="$TMP/home" bash -e uninstall.sh && rmdir home'

# ---- the rest of the page ----

grep -oE '\]\([A-Za-z0-9_./-]+\)' "$readme" | tr -d '])(' | sort -u |
	while read -r file; do [ -e "$root/$file" ] || echo "$file"; done >missing.log
t "every file that the README links to is there" test ! -s missing.log
for target in demo check deps; do
	t "make $target is a target" grep -q "^$target:" "$root/Makefile"
done
finish
