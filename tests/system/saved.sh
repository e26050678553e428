#!/bin/bash
# saved.sh - settings that last: --save writes the stack file, with all comments in it.
#
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host jq

cat >stack.conf <<END
# what this is for
[segment]
memory = 96M

[peer memd]
memory = 16M
fail = read:0.5@1000000:EIO	; seldom
fail = write:0.5@1000000:EIO
# behind all keys

[peer cached]
downstream = memd	; the store
memory = 32M
  ; indented
dirty-high=60 ; percent

[peer volumed]
downstream = cached
END
cp stack.conf first.conf
chmod 640 stack.conf
ln -s stack.conf link.conf
t "a stack comes up" xseg up link.conf
inode=$(stat -c %i stack.conf)

# ---- a key that is there, and one that is not ----

t "two keys are set and saved" xseg cache set cached dirty_high=65 dirty_age=7s --save
is "they hold" "$(xseg cache get cached | grep -E '^dirty_(high|age)' | xargs)" "dirty_high=65 dirty_age=7s"
is "the file has them, and all else as before" "$(diff first.conf stack.conf)" "15c15,16
< dirty-high=60 ; percent
---
> dirty-high=65 ; percent
> dirty_age = 7s"
is "it is another file, with the same mode" \
	"$([ "$(stat -c %i stack.conf)" != "$inode" ] && stat -c %a stack.conf)" 640
t "the link still leads to it" test -L link.conf
is "nothing is left beside it" "$(ls stack.conf*)" stack.conf
t "without --save the file stays" eval \
	"cp stack.conf before.conf && xseg cache set cached dirty_age=8s && cmp before.conf stack.conf"
t "a list is saved" xseg peer set memd --save fail=flush:0.5@1000000:EIO
is "with one line for each value" "$(grep -n ^fail stack.conf | xargs)" \
	"7:fail = flush:0.5@1000000:EIO ; seldom"
t "a longer list" xseg peer set memd --save fail=read:0.5@1000000:EIO fail=write:0.5@1000000:EIO \
	fail=discard:0.5@1000000:EIO
is "has more lines" "$(grep -c ^fail stack.conf)" 3
t "the file is right" xseg config check stack.conf
expect_json '.state == "set"' "JSON says it" xseg --json peer set memd latency=0 --save

# ---- it lasts ----

xseg peer kill cached
t "a cache that was killed serves again" wait_for 60 state_is cached running
is "with what was saved" "$(xseg cache get cached | grep -E '^dirty_(high|age)' | xargs)" "dirty_high=65 dirty_age=7s"
t "a cache is restarted" xseg peer restart cached
is "with the same" "$(xseg cache get cached | grep -E '^dirty_(high|age)' | xargs)" "dirty_high=65 dirty_age=7s"

# ---- what is refused ----

expect_err 2 "a stack file has no keys of volumes" "settings of a volume are not saved there" \
	xseg cache set cached policy=write-through --volume x --save
expect_err 2 "requests cannot be changed while the peer runs" "nor what cannot be set" \
	xseg cache set cached requests=16 --save
cp stack.conf saved.conf
expect_err 2 "200 is out of range" "nor what is wrong" xseg cache set cached dirty_high=200 --save
t "which leaves the file" cmp saved.conf stack.conf
sed -i 's/^dirty_age = 7s/dirty_age = 9s/' stack.conf
expect_err 4 "stack.conf was changed since it was used: line 18 is 'dirty_age = 9s', and was 'dirty_age = 7s'; 'xseg reload'" \
	"a file that was changed since is left alone" xseg cache set cached dirty_high=80 --save
is "and nothing is set" "$(xseg cache get cached | grep ^dirty_high)" dirty_high=65
mv stack.conf away.conf
expect_err 4 "stack.conf: No such file or directory, so nothing can be saved" "one that is gone is said to be" \
	xseg peer set memd latency=1ms --save
mv saved.conf stack.conf
t "with the old one it is saved" xseg peer set memd latency=1ms --save
is "as a new key of its section" "$(sed -n '/peer memd/,/^$/p' stack.conf | grep -n latency)" "6:latency = 1ms"
t "it goes down" xseg down
t "it comes up from a pipe" eval "cat stack.conf | xseg up /dev/stdin"
expect_err 4 "does not know its stack file, so nothing can be saved; 'xseg reload STACK.conf' names it" \
	"of which nothing is remembered" xseg peer set memd latency=2ms --save
t "that goes down, too" xseg down
finish
