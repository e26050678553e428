#!/bin/bash
# completion.sh - `complete` says how a word may go on: all commands and options of the help texts,
# and the names of what there is. bash and zsh complete command lines by it.
# timeout: 90
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd xbench jq

cat >stack.conf <<END
[segment]
memory = 64M

[peer memd]
memory = 24M

[peer cached]
downstream = memd
memory = 16M

[peer volumed]
downstream = cached
END
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create alpha --size 1M
t "and another one" xseg volume create beta --size 1M

# words WORD...: how the last one may go on, in one line
words()
{
	xseg complete -- "$@" | sort | tr '\n' ' ' | sed 's/ $//'
}

commands=$(xseg --help | sed -n -E 's/^  ([a-z]+( [a-z]+)?)  .*/\1/p')
t "there are commands" test "$(wc -l <<<"$commands")" -gt 40
for first in $(cut -d' ' -f1 <<<"$commands" | sort -u); do
	xseg complete -- "" | grep -qx -- "$first" || echo "$first"
	for second in $(sed -n "s/^$first //p" <<<"$commands"); do
		xseg complete -- "$first" "" | grep -qx -- "$second" || echo "$first $second"
	done
done >missing
is "each command of the help is offered" "$(cat missing)" ""
while read -r command; do
	# shellcheck disable=SC2086
	xseg $command --help | grep -oE '^  --[a-z_-]+' | tr -d ' ' | tr _ - >options
	# shellcheck disable=SC2086
	xseg complete -- $command -- | tr -d = | tr _ - | grep -vxFf - options | sed "s/^/$command /"
done <<<"$commands" >missing
is "and each option of each command" "$(cat missing)" ""
xbench --help | grep -oE '^  --[a-z_-]+' | tr -d ' ' | tr _ - >options
is "and each option of xbench" "$(xbench complete -- -- | tr -d = | tr _ - | grep -vxFf - options)" ""

is "volumes are offered" "$(words volume info "")" "alpha beta"
is "those that begin so" "$(words volume info al)" alpha
is "as the value of an option, too" "$(words cache get cached --volume=b)" --volume=beta
is "or apart from it" "$(words cache get cached --volume b)" beta
is "limits of a volume" "$(words volume set alpha "")" "bandwidth= burst= iops="
is "or those that begin so" "$(words volume set alpha b)" "bandwidth= burst="
is "peers" "$(words peer kill "")" "cached memd volumed"
is "caches" "$(words cache set "")" cached
is "keys that may be set" "$(words cache set cached dirty)" "dirty_age= dirty_high= dirty_low="
is "of each peer its own" "$(words peer set memd lat)" latency=
is "values of a key" "$(words cache set cached policy=write-)" \
	"policy=write-around policy=write-back policy=write-through"
is "of a volume in a cache its own" "$(words cache set cached --volume alpha "")" "max= min= policy="
is "and their values" "$(words cache set cached --volume=alpha policy=p)" policy=pass-through
is "help is offered" "$(words he)" help
is "and the commands behind it" "$(words help volume rem)" remove
is "but no names behind these" "$(words help volume remove "")" ""
t "segments" eval 'xseg complete -- -s "" | grep -qx "$XSEG_SEGMENT"'
is "names of the segment that is named" "$(XSEG_SEGMENT=none words -s "$XSEG_SEGMENT" volume info a)" alpha
is "none where there is no segment" "$(XSEG_SEGMENT=none words volume info "" 2>&1)" ""
is "files are the shell's" "$(words up "")" @files
is "values of an option of xbench" "$(xbench complete -- --rw=randr | tr '\n' ' ')" "--rw=randread --rw=randrw "

# ---- shells ----

cat >complete.bash <<'END'
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
compopt() { :; }
_xseg
printf '%s\n' "${COMPREPLY[@]}"
END
in_bash()	# LINE
{
	bash complete.bash "$root/tools/completion/xseg.bash" "$1" | tr '\n' ' ' | sed 's/ $//'
}
is "bash completes a command" "$(in_bash "xseg vol")" volume
is "a name" "$(in_bash "xseg volume info b")" beta
is "a value behind =" "$(in_bash "xseg cache set cached policy=write-b")" write-back
is "a volume of xbench" "$(in_bash "xbench --volume=a")" alpha
is "in the segment of the command line" \
	"$(XSEG_SEGMENT=none in_bash "xbench -s $XSEG_SEGMENT --volume=b")" beta
is "however that is given" "$(XSEG_SEGMENT=none in_bash "xbench --segment=$XSEG_SEGMENT --volume=b")" beta
is "a file" "$(in_bash "xseg up stack.c")" stack.conf
t "the file loads in an interactive bash" bash --norc -ic \
	". '$root/tools/completion/xseg.bash' && complete -p xseg xbench"

sentences=("zsh completes a command" "a name" "a value behind =" "a volume of xbench" "a file" \
	"a volume in the segment of the command line")
if ! command -v zsh >/dev/null 2>&1; then
	for sentence in "${sentences[@]}"; do skip "$sentence" "zsh is not there"; done
	finish
fi
cat >complete.zsh <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; TERM=dumb; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; echo be''gun"
zpty -r -m z out '*begun*'
for line want in ${@[2,-1]}; do
	zpty -w -n z "${line}"$'\t'
	zpty -r -m z out "*$want*"
	print -r -- "$out"
	zpty -w -n z $'\x15'
	sleep 0.3
done
END
lines=("xseg volume inf" "xseg volume info" "xseg volume info b" "xseg volume info beta"
	"xseg cache set cached policy=write-b" "xseg cache set cached policy=write-back"
	"xbench --volume=a" "xbench --volume=alpha" "xseg up stack.c" "xseg up stack.conf"
	"xbench -s $XSEG_SEGMENT --volume=b" "xbench -s $XSEG_SEGMENT --volume=beta")
timeout 60 zsh -f complete.zsh "$root/tools/completion" "${lines[@]}" >zsh.log 2>&1
for i in "${!sentences[@]}"; do
	t "${sentences[i]}" grep -qF "${lines[2 * i + 1]}" zsh.log
done
t "the stack goes down" xseg down
finish
