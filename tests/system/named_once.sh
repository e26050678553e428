#!/bin/bash
# named_once.sh - many things go wrong, and no line of error or log names a thing twice.
#
# The names are a user's: of segment, peers, volumes, files, and all that a line has in quotes.
# Commands to type, such as 'xseg peer start NAME', may have them once more. With --json the same
# error is one object, with the code that the command ends with.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed memd kvd jq

names="$XSEG_SEGMENT vols-1 ram-1 spare-1 files-1 mem-1 values-1 disk-1 disk-2 none-1 new-1 key-1 \
wrong.conf other.conf image.raw missing.raw small.raw there.raw $XSEG_SEGMENT-foreign \
$XSEG_SEGMENT-short $XSEG_SEGMENT-empty exp-1"

# twice FILE: its lines that name a thing twice, after that thing
twice()
{
	awk -v names="$names" '
	function is_part(c) { return c ~ /[A-Za-z0-9_.\/-]/ }
	function count(text, word,	at, nr, before) {
		before = ""
		while ((at = index(text, word))) {
			if (at > 1) before = substr(text, at - 1, 1)
			nr += !is_part(before) && before != ":" && !is_part(substr(text, at + length(word), 1))
			before = substr(text, at + length(word) - 1, 1)
			text = substr(text, at + length(word))
		}
		return nr
	}
	{
		line = $0
		while (match(line, /\047(xseg|xbench|kill|qemu-img|ceph|zcat|ulimit) [^\047]*\047/))
			line = substr(line, 1, RSTART - 1) "COMMAND" substr(line, RSTART + RLENGTH)
		sub(/usage: .*/, "", line)
		gsub(/see [a-z-]+ --help/, "", line)
		gsub(/--owner [^ ]+/, "", line)
		nr = split(names, word, " ")
		quoted = line
		while (match(quoted, /\047[^\047 ]*[A-Za-z0-9][A-Za-z0-9][^\047 ]*\047/)) {
			word[++nr] = substr(quoted, RSTART + 1, RLENGTH - 2)
			quoted = substr(quoted, RSTART + RLENGTH)
		}
		for (i = 1; i <= nr; i++)
			if (count(line, word[i]) > 1) {
				print word[i] ": " $0
				break
			}
	}' "$1"
}

cat >sample <<'END'
xseg: segment none-1: cannot open segment 'none-1': Permission denied
xseg: peer set ram-1: ram-1 has no option
xseg: 'odd' is not one; choose 'odd' or none
xseg: peer start ram-1: it is dead; start it with 'xseg peer start ram-1'
xseg: volume list: disk-1x, disk-1, /disk-1 and disk-1.raw are four
END
is "a name that stands twice in a line is found, but in a command" "$(twice sample | cut -d : -f 1 | xargs)" \
	"none-1 ram-1 odd"

# objects FILE CODE: all its lines are objects: errors with that code, at least one, and notes
objects()
{
	jq -se --argjson code "$2" 'any(.[]; .error) and all(.[];
		(.error // .note | .what != "" and has("why") and has("next")) and
		(.error.code // $code) == $code)' "$1" >/dev/null 2>&1
}

# fails COMMAND: it does, and says why; as JSON, too, if it is xseg's
fails()
{
	local status
	timeout 30 bash -c "$1" >out 2>err </dev/null
	status=$?
	if [ $status -eq 0 ] || [ $status -ge 124 ] || [ ! -s err ]; then
		not_ok "fails: $1" out err
		echo "    exit code $status"
		return
	fi
	twice err >found
	[[ $1 != xseg\ * ]] || {
		timeout 30 bash -c "xseg --json ${1#xseg }" >out 2>err.json </dev/null
		status=$?
		objects err.json $status || sed 's/^/no object with its code: /' err.json >>found
		twice err.json >>found
	}
	if [ -s found ]; then not_ok "names each thing once: $1" found; else ok "names each thing once: $1"; fi
}

all_fail()
{
	local line
	while IFS= read -r line; do
		[ -z "$line" ] || fails "$line"
	done
}

mkdir objects folder
head -c 4M /dev/zero >image.raw
head -c 100 /dev/zero >small.raw
touch there.raw
cat >stack.conf <<END
[segment]
memory = 256M
[peer files-1]
kind = filed
dir = $TMP/objects
[peer ram-1]
kind = cached
downstream = files-1
memory = 16M
dirty_age = 1h
[peer vols-1]
kind = volumed
downstream = ram-1
[peer mem-1]
kind = memd
memory = 32M
[peer values-1]
kind = kvd
downstream = mem-1
size = 16M
zone_size = 256k
END
sed 's/memory = 16M/memory = 8M/' stack.conf >other.conf

# ---- without a segment, and with what is none ----

all_fail <<'END'
xseg info
xseg status
xseg check
xseg down
xseg destroy
xseg stat
xseg peer list
xseg peer start ram-1
xseg volume info disk-1
xseg cache status ram-1
xseg clients
xseg reload
xseg reload stack.conf
xseg kv get key-1
xseg export disk-1 --nbd s.sock
xseg up missing.conf
xseg config check missing.conf
xbench --volume=disk-1 --rw=read
xbench --kvd=values-1 --rw=get
memd --name mem-1
cached --name ram-1 --memory 8M
xseg-host mem-1
xseg -s a/b info
xseg --owner nobody-such info
END
printf 'no segment%1000000d' 0 >"/dev/shm/xseg.$XSEG_SEGMENT-foreign"
echo short >"/dev/shm/xseg.$XSEG_SEGMENT-short"
: >"/dev/shm/xseg.$XSEG_SEGMENT-empty"
for kind in foreign short; do
	all_fail <<END
xseg -s $XSEG_SEGMENT-$kind info
xseg -s $XSEG_SEGMENT-$kind up stack.conf
xseg -s $XSEG_SEGMENT-$kind create --memory 8M
xseg -s $XSEG_SEGMENT-$kind down
xseg -s $XSEG_SEGMENT-$kind destroy
xbench -s $XSEG_SEGMENT-$kind --volume=disk-1 --rw=read
memd -s $XSEG_SEGMENT-$kind --name mem-1
END
done
fails "xseg -s $XSEG_SEGMENT-empty info"
fails "xseg -s $XSEG_SEGMENT-empty check"
xseg list >said
is "a list has three that are none, and names each once" \
	"$(grep -c "^$XSEG_SEGMENT-.* unusable " said) $(twice said)" "3 "
for kind in foreign short empty; do
	xseg -s "$XSEG_SEGMENT-$kind" destroy --force >said 2>&1
	is "$kind: what is removed is named once" "$(cat said; twice said)" "$(cat said)"
done

# wrong TEXT: a stack file with it at its end
wrong()
{
	cp stack.conf wrong.conf
	printf %b "$1" >>wrong.conf
	fails "xseg config check wrong.conf"
	fails "xseg up wrong.conf"
}
wrong '[peer ram-1]\nkind = cached\n'
wrong '[peer new-1]\nkind = nothing\n'
wrong '[peer new-1]\nkind = cached\ndownstream = none-1\n'
wrong '[peer new-1]\nkind = cached\ndownstream = new-1\n'
wrong '[peer new-1]\nkind = memd\nmemroy = 4M\n'
wrong '[peer new-1]\nkind = memd\nmemory = x\n'
wrong '[peer new-1]\nkind = memd\nfail = x\n'
wrong '[peer new-1]\nkind = filed\n'
wrong '[peer new-1]\nkind = filed\ndir = /nowhere/at/all\n'
wrong '[peer new-1]\nkind = memcached\n'
wrong '[peer new-1]\nkind = memcached\nkvd = mem-1\n'
wrong '[peer a/b]\nkind = memd\n'
wrong '[sgement]\nmemory = 1M\n'
wrong '[run]\ntogether = none-1 mem-1\n'
wrong '[run]\ntogether = mem-1 mem-1\n'
wrong '[export disk-1]\n'
wrong '[export disk-1]\nnbd = 10809\n'
wrong '[export disk-1]\nnbd = s.sock\n'
wrong '[export exp-1]\nvolume = disk-1\nnbd = /tmp/s.sock\nvolumed = none-1\n'
wrong '[export exp-1]\nnbd = /tmp/s.sock\n[export exp-1]\nnbd = /tmp/s.sock\n'
wrong '[export exp-1]\nnbd = /tmp/s.sock\nmode = 0600\n[export disk-1]\nnbd = /tmp/s.sock\nmode = 0660\n'

# ---- on a stack ----

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk-1 --size 8M
t "and another" xseg volume create disk-2 --size 1M
t "with dirty data" xbench --volume=disk-1 --rw=write --number_ios=16
start spare cached --name spare-1 --memory 4M
t "a cache off the path runs" wait_for 60 state_is spare-1 running
start load xbench --volume=disk-2 --rw=randread --runtime=600s --rate_iops=10
user=$started
in_use()
{
	xseg volume info disk-2 | grep -q xbench
}
t "a volume is in use" wait_for 60 in_use
echo value | xseg kv put key-1
all_fail <<'END'
xseg create --memory 64M
xseg destroy
xseg up other.conf
xseg up missing.conf
xseg reload missing.conf
xseg reload wrong.conf
xseg down --cancel
xseg volume create disk-1 --size 1M
xseg volume create a/b --size 1M
xseg volume create new-1 --size 100
xseg volume create new-1 --size 8E
xseg volume create new-1
xseg volume info none-1
xseg volume info
xseg volume info disk-1 --volumed none-1
xseg volume info disk-1 --volumed mem-1
xseg volume resize none-1 --size 1M
xseg volume resize disk-1 --size 100
xseg volume resize disk-1 --size 1M
xseg volume remove none-1
xseg volume remove disk-2
xseg volume remove disk-1 disk-1
xseg volume rename none-1 new-1
xseg volume rename disk-1 disk-2
xseg volume rename disk-2 new-1
xseg volume rename disk-1 a/b
xseg volume copy none-1 new-1
xseg volume copy disk-1 disk-2
xseg volume copy disk-2 new-1
xseg volume copy disk-1 new-1 --size 1M
xseg volume import none-1 image.raw
xseg volume import disk-1 missing.raw
xseg volume import disk-1 folder
xseg volume import disk-2 image.raw
xseg volume import disk-1 image.raw --create
xseg volume export none-1 new.raw
xseg volume export disk-1 there.raw
xseg volume export disk-1 folder
xseg volume export disk-1 nowhere/new.raw
xseg volume set none-1 iops=5
xseg volume set disk-1 iops=x
xseg volume set disk-1 speed=5
xseg volume set disk-1 burst=1s
xseg volume get none-1
xseg volume flush none-1
xseg peer start ram-1
xseg peer start none-1
xseg peer stop none-1
xseg peer stop files-1
xseg peer stop vols-1
xseg peer stop spare-1 --speed
xseg peer restart none-1
xseg peer restart spare-1
xseg peer kill none-1
xseg peer set none-1 latency=1ms
xseg peer set mem-1 latencyy=1ms
xseg peer set mem-1 zzz=1
xseg peer set mem-1 latency
xseg peer set mem-1 latency=x
xseg peer set mem-1 fail=x
xseg peer set mem-1 memory=1M
xseg peer set ram-1 objects=5
xseg cache status none-1
xseg cache status mem-1
xseg cache status ram-1 --volume none-1
xseg cache set none-1 policy=write-back
xseg cache set mem-1 policy=write-back
xseg cache set ram-1 policy=writeback
xseg cache set ram-1 speed=1
xseg cache set ram-1 memory=1T
xseg cache set ram-1 memory=1
xseg cache set ram-1 objects=5
xseg cache set ram-1 dirty_low=90 dirty_high=10
xseg cache set ram-1 policy=write-back --volume none-1
xseg cache set ram-1 policy=writeback --volume disk-1
xseg cache set ram-1 min=1T --volume disk-1
xseg cache set ram-1 min=15M --volume disk-1
xseg cache set ram-1 min=2M max=1M --volume disk-1
xseg cache set ram-1 speed=1 --volume disk-1
xseg cache get none-1
xseg cache get ram-1 --volume none-1
xseg cache flush none-1
xseg cache flush spare-1
xseg cache flush ram-1 --volume none-1
xseg cache drop none-1
xseg cache drop ram-1
xseg plug none-1
xseg plug mem-1
xseg plug ram-1
xseg plug ram-1 --above files-1 --below vols-1
xseg plug spare-1
xseg plug spare-1 --above none-1
xseg plug spare-1 --above vols-1
xseg plug spare-1 --above files-1 --below none-1
xseg plug spare-1 --above files-1 --below vols-1
xseg plug spare-1 --above spare-1 --below vols-1
xseg unplug none-1
xseg unplug mem-1
xseg unplug spare-1
xseg unplug ram-1 --cancel
xseg export none-1 --nbd s.sock
xseg export disk-1 --nbd there.raw
xseg export disk-1 --nbd 10809
xseg export start none-1
xseg export stop none-1
xseg kv get none-1
xseg kv get key-1 --kvd none-1
xseg kv get key-1 --kvd mem-1
xseg kv get 'key-1%'
xseg kv put key-1 missing.raw
xseg kv put key-1 small.raw --if-absent
xseg kv delete none-1
xseg kv delete
xseg kv import missing
xseg kv export there.raw
xseg kv backup folder
xseg kv restore missing.raw
xseg kv restore small.raw
xseg stat --interval x
xseg nonsense none-1
xseg volume nonsense none-1
xseg info --nonsense
memd --name mem-1
memd --name vols-1
memd --name new-1 --memory 1T
memd --name new-1 --fail x
memd --name new-1 --nonsense
cached --name new-1 --memory 1T
cached --name new-1 --memory 4M --downstream new-1
volumed --name new-1 --downstream files-1
filed --name new-1 --dir objects
filed --name new-1 --dir nowhere/at/all
filed --name new-1 --dir there.raw
kvd --name new-1 --downstream mem-1 --size 1T
kvd --name new-1 --downstream mem-1 --size 16M --prefix=values-1
xseg-memcached --name new-1 --kvd values-1 --listen nowhere
xseg-host none-1
xbench --volume=none-1 --rw=read
xbench --volume=disk-1 --rw=read --offset=1T
xbench --volume=disk-1 --rw=read --offset=4M --size=8M
xbench --target=none-1 --rw=read
xbench --target=vols-1 --rw=read
xbench --target=files-1 --rw=read --number_ios=1
xbench --kvd=none-1 --rw=get
xbench --kvd=mem-1 --rw=get
xbench --volume=disk-1 --rw=read --output=nowhere/x
xbench --volume=disk-1 --verify_only --verify_state=missing.raw
xbench --volume=disk-1 --verify_only --verify_state=small.raw
xbench --volume=disk-1 --filename=x
END
"$root/bench/demo.sh" --nonsense >out 2>err
is "the demo names it once" "$? $(twice err)" "2 "
if [ -e "$BUILD/lib/fio-xseg.so" ] && command -v fio >/dev/null; then
	fio --name=x --thread --rw=read --size=4k --ioengine=external:"$BUILD/lib/fio-xseg.so" \
		--volume=none-1 >err 2>&1
	grep '^fio: xseg: ' err >said
	is "fio's engine names it once" "$(grep -c none-1 said) $(twice said)" "1 "
else
	skip "fio's engine names it once" "fio or its engine is not there"
fi
if [ -e "$plugin" ] && command -v nbdkit >/dev/null; then
	nbdkit -f -U - "$plugin" segment="$XSEG_SEGMENT" volume=none-1 --run true >out 2>err
	is "the nbdkit plug-in names it once" "$(grep -c none-1 err) $(twice err)" "1 "
	nbdkit -f -U - "$plugin" segment=none-1 volume=disk-1 --run true >out 2>err
	is "also the segment" "$(grep -c none-1 err) $(twice err)" "1 "
else
	skip "the nbdkit plug-in names it once" "nbdkit or its plug-in is not there"
fi
if command -v python3 >/dev/null; then
	PYTHONPATH=$root/tools/python XSEG_LIBRARY=$BUILD/lib/libxseg.so.1 python3 -c '
import xseg
for open in lambda: xseg.Volume("none-1"), lambda: xseg.KV("none-1"), lambda: xseg.Segment().volume_info("none-1"), \
        lambda: xseg.Segment().peer("none-1"):
    try:
        open()
    except xseg.XsegError as e:
        print(e)' >said 2>&1
	is "Python's package names it once" "$(grep -c none-1 said) $(twice said)" "4 "
fi

# ---- what is dead, and what is told while it is waited for ----

kill "$user"
wait "$user"
kill_hard "$(xseg --json status | jq .supervisor.pid)"
t "the cache dies, with nobody to start it" xseg peer kill ram-1
all_fail <<'END'
xseg peer kill ram-1
xseg --timeout 300ms unplug ram-1
xseg --timeout 300ms cache flush ram-1
xseg --timeout 300ms volume flush disk-1
xseg down
xseg destroy
xbench --volume=disk-1 --rw=randread --number_ios=1 --io_timeout=1s
END
t "all serves again" xseg up stack.conf
start plain memd --memory 1M
t "a peer with the name of its kind runs" wait_for 60 grep -q 'memd: serving (segment ' plain.log
is "and says it once" "$(names=memd twice plain.log)" ""
t "the stack goes down" xseg down
sed -E 's/^[0-9T:.Z+-]+ //' "xseg-$XSEG_SEGMENT.log" >log
t "there is a log" test "$(wc -l <log)" -gt 20
twice log >found
if [ -s found ]; then not_ok "no line of the log names a thing twice" found; else ok "no line of the log names a thing twice"; fi

expect_err 4 "make it with 'xseg --owner $(id -un) -s none-1 create' or 'xseg --owner $(id -un) -s none-1 up " \
	"commands in a message have the user that was named" \
	xseg -s none-1 --owner "$(id -un)" volume list
expect_err 4 "make it with 'xseg --owner $(id -un) -s none-1 create'" "so it is in xbench" \
	xbench -s none-1 --owner "$(id -un)" --volume=v --rw=read
expect_err 4 "make it with 'xseg --owner $(id -un) -s none-1 create'" "the environment names it as well" \
	env XSEG_OWNER="$(id -un)" xseg -s none-1 info
expect_err 4 "'xseg --owner $(id -un) -s none-1 create'" "also to peers" \
	env XSEG_OWNER="$(id -un)" filed -s none-1 --dir="$TMP"
finish
