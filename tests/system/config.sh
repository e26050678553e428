#!/bin/bash
# config.sh - all errors of a stack file at once, from the top; the memory that it needs.
#
# timeout: 60
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host jq

cat >good.conf <<END
# a stack
[segment]
memory = 96M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M

[peer kvd]
downstream = cached
size = 64M

[peer volumed]
downstream = cached
END

# ---- a file that is right ----

t "a good file is sound" xseg config check good.conf
is "and says so" "$(xseg config check good.conf | head -n 1)" "good.conf: it is sound, 4 peers"
expect_json '.ok and .errors == [] and .peers == 4 and .segment == null' "in JSON, too" \
	xseg --json config check good.conf
expect_json '.memory | .needed_bytes == ([.needed_bytes_by[]] | add) and .given_bytes == 96 * 1048576
	and .needed_bytes < .given_bytes and .suggested_bytes > .needed_bytes' \
	"the memory of all peers is told, beside what the file gives" xseg --json config check good.conf
t "nothing was made" test ! -e objects -a ! -e "/dev/shm/xseg.$XSEG_SEGMENT"
t "the file may come from a pipe" eval "xseg config check /dev/stdin <good.conf"
expect_err 4 "config check: none.conf: No such file" "one that is not there is refused" \
	xseg config check none.conf
printf '[segment]\nmemory = 64M\n' >empty.conf
expect_err 2 "empty.conf: it has no \[peer NAME\] section; add one" "one without peers is wrong" \
	xseg --quiet config check empty.conf

# ---- one with many errors ----

cat >bad.conf <<END
[segment]
memroy = 64M
memory = 4M

[peer filed]
dir = $TMP/none/objects

what is this
[peer cached]
downstream = filed
dirty_hihg = 50
dirty_age = soon

[peer memcached]
kvd = cached
listen = unix:$TMP/none/socket

[peer sosd]
conf = $TMP/none.conf

[peer volumed]
downstream = cache

[export disk]
nbd = $TMP/none/disk.sock
quenes = 3
[export other]
nbd = 10809
END
lines()		# those of the errors on stdin
{
	sed -n 's/^xseg: .*: line \([0-9]*\): .*/\1/p' | xargs
}
wrong="2 3 6 8 11 12 15 16 18 19 22 25 26 28"
command -v sosd >/dev/null || wrong=${wrong/18 19/18}
xseg config check bad.conf >out.txt 2>err.txt
is "its end is that of a wrong usage" "$?" 2
is "all errors are told, from the top" "$(lines <err.txt)" "$wrong"
is "each once" "$(sort err.txt | uniq -d | wc -l)" 0
t "with what may be meant" grep -q "line 11: .*did you mean 'dirty_high'?" err.txt
t "and the directory that is missing" grep -q \
	"line 6: dir: $TMP/none/objects cannot be made, as $TMP/none is not there: .*; make that first" err.txt
xseg up bad.conf >out.txt 2>up.txt
is "up tells the same, and nothing else" "$? $(diff <(sed 's/config check/up/' err.txt) up.txt)" "2 "
t "and makes nothing" test ! -e "/dev/shm/xseg.$XSEG_SEGMENT"
xseg --json config check bad.conf >bad.json
is "its end is the same with JSON" "$?" 2
expect_json ".ok == false and [.errors[].line] == [${wrong// /, }]" "which has the lines" cat bad.json
expect_json '.errors[0] | .key == "memroy" and (.what | test("has no .memroy.")) and (.next | test("it has name"))' \
	"the key, what is wrong, and what to do" cat bad.json
expect_json '.errors | all(has("line", "key", "what", "next"))' "in each error" cat bad.json

# ---- keys that are checked together with others, or with the machine ----

cat >late.conf <<END
[segment]
group = no-such-group
memory = 512M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
objects = 0
dirty_high = 40

[peer kvd]
downstream = cached
threads = 2
size = 64M

[peer other]
kind = kvd
downstream = cached
tail = 65k
size = 64M

[peer memcached]
kvd = kvd
threads = 4
connections = 2

[peer volumed]
downstream = cached

[export a]
queues = 2
tls_certificates = $TMP
tls = on
nbd = $TMP/a.sock

[export b]
queues = 2
nbd = $TMP/b.sock
volumed = v2
group = no-such-group

[export c]
queues = 2
nbd = 127.0.0.1:1
tls_verify_peer = yes
mode = 0660
END
xseg --json config check late.conf >late.json
is "a file with such errors is wrong" "$?" 2
is "each error names the line of its key" \
	"$(jq -c '.errors[] | [.line, .key]' late.json | tr -d '[]"' | xargs)" \
	"2,group 11,dirty_high 15,threads 21,tail 27,connections 34,tls_certificates $(
	)41,volumed 42,group 47,tls_verify_peer 48,mode"
sed 's/^dirty_high.*/dirty_low = 80/' late.conf >low.conf
xseg config check low.conf >out.txt 2>err.txt
t "of two keys that do not fit, the error names the one that the file has" grep -q \
	"line 11: peer 'cached': dirty_low=80 would be above dirty_high=70; set both" err.txt

# ---- memory ----

sed 's/memory = 96M/memory = 32M/' good.conf >small.conf
expect_err 2 "line 3: memory: 32.0M is too little, the peers need [0-9.]+M \(filed 2.0M, cached 34.0M, kvd [0-9.]+M, volumed 2.0M\); set memory = [0-9]+M" \
	"memory that is too little is an error, with a good value" xseg --quiet config check small.conf
expect_err 2 "line 3: memory: 32.0M is too little" "up says it before it makes a segment" xseg up small.conf
xseg --json config check small.conf >small.json
good=$(jq .memory.suggested_bytes small.json)
sed "s/memory = 96M/memory = $((good >> 20))M/" good.conf >enough.conf
t "with that value it is sound" xseg config check enough.conf
t "and comes up" xseg up enough.conf
t "it goes down" xseg down
sed '/^memory = 96M/d' good.conf >none.conf
expect_err 2 "line 2: \[segment\] has no memory; add memory = [0-9]+M" "one without memory gets one" \
	xseg --quiet config check none.conf
sed 's/^memory = 96M/&\nports = 4/' good.conf >ports.conf
expect_err 2 "line 4: ports: 4 are too few, .* need 5; set ports" "ports are counted" \
	xseg --quiet config check ports.conf

cat enough.conf - >export.conf <<END
[export disk]
nbd = $TMP/disk.sock
queues = 8
END
sed "s/^memory = $((good >> 20))M/memory = 256M/" export.conf >large.conf
expect_json '.ok and .memory.needed_bytes_by["export disk"] == 16777216' "what exports take is told, too" \
	xseg --json config check large.conf

# ---- keys ----

live_keys()	# KIND: those of the tables
{
	xseg-host --keys | awk -F '\t' -v kind="$1" '$1 == kind && $6 ~ /l/ { print $2 }' | sort
}
helped()	# COMMAND: those before the second list of its help
{
	xseg "$@" --help | sed -n '/^keys that hold at its/q; s/^  \([a-z_]*\)=.*/\1/p' | sort
}
is "cache set --help names the live keys of a cache" "$(helped cache set)" "$(live_keys cached)"
is "peer set --help those of all kinds" "$(helped peer set | uniq)" \
	"$(for kind in volumed cached filed memd kvd memcached sosd; do live_keys $kind; done | sort -u)"
t "with their ranges and defaults" eval \
	"xseg cache set --help | grep -qE '^  dirty_low=PERCENT .*' && xseg cache set --help | grep -q '0 to 100 .60.'"
t "and those that need a restart apart" eval \
	"xseg cache set --help | sed -n '/^keys that hold at its next start/,\$p' | grep -q '^  objects=N'"

# ---- rights ----

as_nobody()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/bin/xseg" "$@"
}
sentence="a directory that this user may not write to is an error"
if [ "$(id -u)" = 0 ] && as_nobody --version >/dev/null 2>&1; then
	mkdir objects -m 0755 2>/dev/null
	chmod 755 objects
	expect_err 2 "line 6: dir: directory .*/objects may not be written to; give it to this user" \
		"$sentence" as_nobody --quiet config check /dev/fd/3 3<good.conf
else
	skip "$sentence" "nobody else may run the program from here"
fi
finish
