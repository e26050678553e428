#!/bin/bash
# manual_examples.sh - every example of every manual page is run, as it stands there: commands, stack
# files, options, a unit, programs in C and Python, parts of programs. So are the documents' commands.
#
# Names of segments, paths, sizes and times are made small (`small`). What a command needs is there
# before: a stack, a volume, values (`ready`). A command that cannot run here is in `elsewhere`, with
# the test that runs it, or the reason. Pages are found by their names, and examples.awk tells which
# kind an example is. So one that is new runs, or fails.
# timeout: 300
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed kvd memd xseg-memcached jq
CC=${CC:-gcc}

cd "$root" || exit 1
mapfile -t pages < <(find . -path './build*' -prune -o -path ./.git -prune -o \
	-name '*.[1-8]' -printf '%P\n' | sort)
mkdir "$TMP/blocks"
awk -v dir="$TMP/blocks" -f tests/lib/examples.awk "${pages[@]}" >"$TMP/index"
cd "$TMP" || exit 1
t "there are pages" test ${#pages[@]} -ge 16
t "they have examples" test "$(wc -l <index)" -gt 60

# examples_of KIND: each as PAGE:LINE FILE
examples_of()
{
	awk -v kind="$1" '$1 == kind { print $2, $3 }' index
}

# ---- a new example is found, whatever it is ----

mkdir other
cat >other/new.8 <<'END'
.SH EXAMPLES
.nf
frobnicate \-\-all \e
    it
[ -e /x ] || xseg list
.fi
.EX
xseg nonsense 'a\en'
.EE
.nf
.RS
[peer x]
kind = memd
.RE
.fi
.EX
import sys
    sys.exit(1)
.EE
.EX
fail = never
.EE
END
awk -v dir=other -f "$root/tests/lib/examples.awk" other/new.8 >other/index
is "examples of a new page have their kinds" "$(cut -d ' ' -f 1 other/index | xargs)" \
	"commands commands stack python options"
is "and are all that stands there, as it is typed" "$(cut -d ' ' -f 3 other/index | xargs cat)" \
	"frobnicate --all it
[ -e /x ] || xseg list
xseg nonsense 'a\\n'
[peer x]
kind = memd
import sys
    sys.exit(1)
fail = never"
is "each kind of an example has a part of this test that runs it" \
	"$(cut -d ' ' -f 1 index | sort -u | while read -r kind; do
		grep -q "examples_of $kind\b" "$root/tests/system/manual_examples.sh" || echo "$kind"
	done)" ""

# ---- commands ----

# elsewhere LINE: why it is not run here: a test that runs its words, or a reason
elsewhere()
{
	case $1 in
	sysctl*|mount*) echo "hugetlb.sh: it changes the machine" ;;
	"kill PID") echo "found_day.sh: it is of a segment whose file was removed" ;;
	modprobe*|nbd-client*|mkfs.ext4*|qemu-nbd*)
		echo "guest.sh: needs the kernel's module nbd, and root" ;;
	qemu-system*|qemu-storage-daemon*) echo "guest.sh: needs a virtual machine" ;;
	*LD_PRELOAD*|nbdkit\ -r*) echo "nbd.sh: nbdkit with the plug-in" ;;
	"xseg export "[a-z]*" disk0"|"xseg export list"*|"xseg --json export list")
		echo "exports.sh: needs a stack file with exports" ;;
	"xseg top") echo "xseg_tool.sh: needs a terminal" ;;
	"xseg down --cancel") echo "down.sh: needs a stop that has not ended" ;;
	*--salvage) echo "kvd_damage.sh: needs a log that is lost" ;;
	"adduser "*|"systemctl "*) echo "packages.sh: it changes the machine" ;;
	ceph\ *) echo "readme_ceph.sh: needs a cluster" ;;
	*) return 1 ;;
	esac
}

# The sizes and names of a line, for this machine.
small()
{
	sed -E -e "s|STACK\.conf|$TMP/STACK.conf|; s|/run/disk0\.sock|$TMP/disk0.sock|g" \
		-e "s|/backup/|$TMP/kept/|; s| -s old | -s $XSEG_SEGMENT-old |" \
		-e 's/--memory 8G --mode/--memory 8M --mode/; s/--group disk/--group 0/' \
		-e 's/memory=2G/memory=24M/; s/min=512M max=2G/min=8M max=24M/' \
		-e 's/runtime=(10s|1m)/runtime=300ms/; s/keys=1M/keys=1000/; s/objects=1M/objects=1000/' \
		-e 's/volume=vm1/volume=disk0/; s/--size (2|4)0G/--size \10M/' \
		-e "s|/run/values\.sock|$TMP/values.sock|; s/127\.0\.0\.1([ :])11211/127.0.0.1\1$port/" \
		-e "s|/tmp/xseg-SEGMENT\.log|$TMP/xseg-$XSEG_SEGMENT.log|" \
		-e "s|build/lib/nbdkit-xseg-plugin\.so|$plugin segment=$XSEG_SEGMENT|" \
		-e "s|^xseg -s xseg |xseg -s $XSEG_SEGMENT |; s|/etc/xseg/stack\.conf|$TMP/STACK.conf|" \
		-e 's/--count 10/--count 2/; s/ --interval 1s$/& --count 1/' <<<"$1"
}

port=$(free_port)
mkdir kept objects
cat >STACK.conf <<END
[segment]
memory = 300M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M

[peer volumed]
downstream = cached

[peer memd]
memory = 64M
[peer kvd]
downstream = memd
size = 24M
zone_size = 256k
[peer other]
kind = kvd
downstream = memd
size = 24M
zone_size = 256k
END
# the gateway's section is the one of its page
examples_of stack | while read -r page file; do
	[[ $page != */xseg-memcached.8:* ]] || sed "s/^\[/\n&/" "$file"
done | while IFS= read -r line; do small "$line"; done >>STACK.conf
t "the page of the gateway has its section" grep -q '^listen = unix:' STACK.conf
cp STACK.conf first.conf

head -c 3M /dev/urandom >debian.raw
gzip -k debian.raw
echo '{"user": 17}' >session.json
cp debian.raw image.raw

# ready LINE: what that line needs is there
ready()
{
	case $1 in
	xseg*" up "*)
		[ ! -e "/dev/shm/xseg.$XSEG_SEGMENT" ] || xseg --quiet down || return
		cp first.conf STACK.conf
		return
		;;
	*" -s "*-old*) xseg -s "$XSEG_SEGMENT-old" --quiet create --memory 8M || return ;;
	esac
	if [ ! -e "/dev/shm/xseg.$XSEG_SEGMENT" ]; then
		cp first.conf STACK.conf
		xseg --quiet up STACK.conf || return
	fi
	for peer in filed cached volumed memd kvd other memcached; do
		! state_is $peer stopped || xseg --quiet --timeout 20s peer start $peer || return
	done
	wait_for 60 all_serve || return
	case $1 in
	"xseg plug"*) xseg --quiet unplug cached 2>/dev/null ;;
	"xseg peer start"*)
		xseg --quiet peer stop --force cached
		return
		;;
	*) [ "$(path_of volumed)" = cached ] || xseg --quiet plug cached || return ;;
	esac
	rm -f backup.raw backup.raw.gz disk0.sock vm1.state
	rm -rf backup kept
	mkdir kept
	case $1 in
	*"volume create"*|*"volume resize"*)
		xseg --quiet volume remove disk0 --force 2>/dev/null
		;;
	esac
	case $1 in
	*"volume create"*) return ;;
	esac
	xseg --json volume info disk0 >/dev/null 2>&1 ||
		xseg --quiet volume create disk0 --size 20M || return
	case $1 in
	qemu-img\ convert*) qemu-img convert -O qcow2 debian.raw debian.qcow2 ;;
	*"volume copy root "*|*"volume rename disk0 "*)
		for volume in root larger root-before; do
			xseg --quiet volume remove $volume 2>/dev/null
		done
		[[ $1 = *rename* ]] || xseg --quiet volume create root --size 8M
		;;
	*burst=*) xseg --quiet volume set disk0 iops=500 ;;
	*"'mg "*) printf hello | xseg --quiet kv put greeting --kvd kvd ;;
	*"kv get"*|*"kv export"*|*"kv backup"*) xseg --quiet kv put sessions/17 session.json --kvd kvd ;;
	*"kv restore"*)
		xseg --quiet kv put sessions/17 session.json --kvd kvd
		xseg --quiet kv backup kept/values --kvd kvd
		;;
	*"--verify_only"*)
		xbench --volume=disk0 --rw=randrw --bsrange=512-64k --runtime=500ms \
			--verify_state=vm1.state >/dev/null
		;;
	esac
}

# Of the two kvds the page's is the first one.
named()
{
	case $1 in
	*--kvd*|*--kvd=*) echo "$1" ;;
	"xseg kv "*) echo "$1 --kvd kvd" ;;
	"xbench --target=cached"*) echo "${1/--target=cached/--target=memd}" ;;
	*) echo "$1" ;;
	esac
}

# run_one LINE: as it is typed
run_one()
{
	local line
	line=$(named "$(small "$1")")
	ready "$line" || return
	case $line in
	"xseg create"*--mode*)
		XSEG_SEGMENT=$XSEG_SEGMENT-new bash -c "$line && xseg destroy"
		;;
	"xseg export disk0 --nbd"*)
		timeout -s INT 3 bash -c "exec $line"
		[ $? -eq 124 ] || [ $? -eq 0 ]
		;;
	qemu-img*|nbdinfo*|nbdcopy*)
		rm -f "$TMP/export.log"
		start export xseg export disk0 --nbd "$TMP/disk0.sock"
		wait_for 60 grep -q '^nbd' "$TMP/export.log" && bash -c "$line"
		local status=$?
		kill -INT "$started"
		wait "$started"
		return $status
		;;
	*"| nc "*)
		timeout 60 bash -c "set -o pipefail; $line" >answer && tr -d '\r' <answer | grep -qx hello
		;;
	tail*)
		timeout 1 bash -c "exec $line"
		[[ $? = @(0|124) ]]
		;;
	*) timeout 60 bash -c "set -o pipefail; $line" ;;
	esac
}

# with_all COMMAND...: whether they are there, and the plug-in
with_all()
{
	[ -e "$plugin" ] && command -v "$@" >/dev/null
}

# A unit's commands are run, too.
{
	examples_of commands | cut -d ' ' -f 2 | xargs cat
	examples_of unit | cut -d ' ' -f 2 | xargs sed -n 's|^Exec[A-Za-z]*=/usr/bin/||p'
} | sort -u >examples
while read -r line; do
	if why=$(elsewhere "$line"); then
		[ -e "$root/tests/system/${why%%:*}" ] || not_ok "${why%%:*}, which runs '$line', is there"
		echo "# not run here: $line ($why)"
		continue
	fi
	case $line in
	"xseg export"*|qemu-img*|nbdkit*|nbdinfo*|nbdcopy*)
		if ! with_all nbdkit qemu-img nbdcopy nbdinfo; then
			skip "$line" "nbdkit, its plug-in, qemu-img, nbdcopy or nbdinfo is not there"
			continue
		fi
		;;
	*"| nc "*)
		if ! command -v nc >/dev/null || ! nc -h 2>&1 | grep -q -- '-U'; then
			skip "$line" "there is no nc that knows Unix sockets"
			continue
		fi
		;;
	*"--group disk"*)
		if [ "$(id -u)" != 0 ] && ! id -Gn | grep -qw disk; then
			skip "$line" "this user cannot give files to the group disk"
			continue
		fi
		;;
	esac
	t "$line" run_one "$line"
done <examples

# ---- stack files, and sections of them ----

# whole FILE: with the sections that it lacks, if it is only a part, and directories of this test
whole()
{
	if grep -q '^\[segment' "$1" && grep -q '^\[peer' "$1"; then
		cat "$1"
	else
		awk '/^\[/ { keep = !(FNR != NR && has[$0]) }
			FNR == NR { if (/^\[/) has[$0] = 1; next }
			keep' "$1" first.conf
		cat "$1"
	fi | while IFS= read -r line; do small "$line"; done |
		sed -E -e "s|/srv/objects|$TMP/objects|; s|/run/xseg/([^ ]*/)?([^ /]*\.sock)|$TMP/\2|" \
			-e "s/^group = .*/group = $(id -gn)/"
}

while read -r page file; do
	whole "$file" >whole.conf
	t "$page: the stack file is right" xseg config check whole.conf
done < <(examples_of stack)

# ---- options ----

while read -r page file; do
	peer=$(basename "${page%%.*}")
	while read -r key _ value; do
		t "$page: $key = $value" xseg peer set "$peer" "$key=$value"
		t "$page: and without it" xseg peer set "$peer" "$key="
	done <"$file"
done < <(examples_of options)

# ---- what the pages say of JSON ----

# json_of_page PAGE: of the command that the fields are of
json_of_page()
{
	case $1 in
	docs/xseg.1:*) xseg --json volume info disk0 ;;
	docs/xbench.1:*)
		xbench --volume=disk0 --rw=randread --number_ios=10 --output-format=json
		;;
	esac
}

# lacking PAGE FILE: the fields of it that are not there
lacking()
{
	json_of_page "$1" | jq -r '.. | objects | keys[]' | sort -u >keys
	sed -E -e 's/  .*//; s/[][{}"]/ /g; s/\.\.\.//g' "$2" | xargs -n 1 | sort -u |
		comm -23 - keys
}

xseg --json volume info disk0 >/dev/null 2>&1 || xseg --quiet volume create disk0 --size 20M
while read -r page file; do
	is "$page: the fields are there" "$(lacking "$page" "$file" | xargs)" ""
done < <(examples_of fields)

# ---- elements for libvirt ----

while read -r page file; do
	small "$(cat "$file")" >disk.xml
	is "$page: the element is a disk by NBD, at the socket of the page" "$(python3 -c '
import sys, xml.etree.ElementTree as tree
disk = tree.parse(sys.argv[1]).getroot()
print(disk.get("type"), disk.find("source").get("protocol"), disk.find("source/host").get("socket"))
' disk.xml)" "network nbd $TMP/disk0.sock"
done < <(examples_of xml)

# ---- a unit, and the rotation of a log ----

while read -r page file; do
	if ! command -v systemd-analyze >/dev/null; then
		skip "$page: systemd takes the unit" "systemd-analyze is not there"
		continue
	fi
	sed -e "s|/usr/bin/xseg|$BUILD/bin/xseg|; /^User=/d" "$file" >xseg-example.service
	t "$page: systemd takes the unit" systemd-analyze verify --man=no "$TMP/xseg-example.service"
done < <(examples_of unit)
while read -r page file; do
	if ! command -v logrotate >/dev/null; then
		skip "$page: logrotate takes it" "logrotate is not there"
		continue
	fi
	sed -E "s|/var/lib/xseg/|$TMP/|; s/su xseg xseg/su $(id -un) $(id -gn)/" "$file" >rotate.conf
	chmod 0644 rotate.conf
	t "$page: logrotate takes it" logrotate --debug --state "$TMP/rotate.state" rotate.conf
done < <(examples_of rotate)

# ---- programs in C ----

# frame NAME FILE: a program around a part of one. A page about volumes has an open volume and its
# queue, one about values an open store and its queue
frame()
{
	local of=kv open='xseg_kv_open(\&params, \&kv, \&err) || xseg_kv_queue_create(kv, NULL, \&queue, \&err)'
	local header=kv params='.kvd = "kvd"' close='xseg_kv_close(kv)'

	case $1 in
	*libxseg.3:*)
		of=volume header=volume params='.volume = "disk0"' close='xseg_volume_close(volume)'
		open='xseg_volume_open(\&params, \&volume, \&err) ||
			xseg_queue_create(volume, NULL, \&queue, \&err)'
		;;
	esac
	sed -e "s|EXAMPLE|$2|; s|OF|$of|g; s|HEADER|$header|; s|PARAMS|$params|; s|CLOSE|$close|" \
		-e "s/OPEN/${open//$'\n'/ }/" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xseg/HEADER.h>

int main(void)
{
	struct xseg_OF_params params = { .segment = getenv("XSEG_SEGMENT"), PARAMS };
	struct xseg_OF_stream *stream = NULL;
	struct xseg_QUEUE *queue;
	struct xseg_error err;
	static char buf[65536];
	struct xseg_OF *OF;
	ssize_t n = 0;

	if (OPEN)
		return puts(err.text), 1;
	(void)stream, (void)buf, (void)n;
	{
#include "EXAMPLE"
	}
	xseg_QUEUE_destroy(queue);
	CLOSE;
	return 0;
}
END
}

# build PROGRAM SOURCE FLAG...: with the headers and the library of this build
build()
{
	local program=$1 source=$2
	shift 2
	"$CC" -std=gnu11 -Wall -Wextra -Werror "$@" -o "$program" "$source" -I"$root" -L"$BUILD/lib" \
		-lxseg -Wl,-rpath,"$BUILD/lib"
}

# part_runs PAGE FILE: the part is built in its frame, runs, and did what its page says
part_runs()
{
	local queue=kv_queue
	[[ $1 != *libxseg.3:* ]] || queue=queue
	frame "$1" "$2" | sed "s/xseg_QUEUE/xseg_$queue/g" >part.c
	build part part.c -Wno-unused-result -Wno-unused-variable || return
	./part <debian.raw >part.out || return
	case $queue in
	kv_queue) xseg kv get a --kvd kvd | cmp - debian.raw ;;
	queue) xseg volume export disk0 - | cmp -n "$(stat -c %s part.out)" - part.out ;;
	esac
}

# header_part_runs HEADER QUEUE: what the head of a header shows of its use
header_part_runs()
{
	awk '/^ \* How / { on = 1; next }
		on && /^ \* [A-Z]/ { exit }
		on && /^ \*      / { print substr($0, 9) }' "$root/xseg/$1" |
		sed "s/\"xseg\"/\"$XSEG_SEGMENT\"/; s/\"disk\"/\"disk0\"/" >part.inc
	[ "$(wc -l <part.inc)" -gt 5 ] || { echo "xseg/$1 shows nothing"; return 1; }
	cat >part.c <<END
#include <xseg/volume.h>
#include <xseg/kv.h>

int main(void)
{
	static char buf[65536];
	struct xseg_error err;
	struct xseg_volume *v;
	struct xseg_kv *kv;
	struct $2 *q;
	int64_t n = 0;

	{
#include "part.inc"
		return done != &io || io.result < 0 || n < 0;
	}
	return v || kv;
}
END
	build part part.c -Wno-unused-result -Wno-unused && ./part
}

# synopsis_holds FILE: its declarations are those of the header
synopsis_holds()
{
	grep -v '^cc ' "$1" >synopsis.c && grep -q '^#include' synopsis.c &&
		"$CC" -std=gnu11 -Wall -Werror -fsyntax-only -I"$root" synopsis.c
}

if command -v "$CC" >/dev/null; then
	t "an image is in the volume" xseg volume import disk0 debian.raw
	while read -r page file; do
		t "$page: the part runs" part_runs "$page" "$file"
	done < <(examples_of c)
	while read -r page file; do
		[[ $page != *python* ]] || continue
		t "$page: the declarations are those of the header" synopsis_holds "$file"
	done < <(examples_of synopsis)
	t "of two kvds one is stopped" xseg peer stop other
	t "xseg/volume.h: what it shows runs" header_part_runs volume.h xseg_queue
	t "xseg/kv.h: what it shows runs" header_part_runs kv.h xseg_kv_queue
	for source in $(cd "$root" && grep -ohE 'docs/[a-z_]+\.c\b' "${pages[@]}" README.md | sort -u); do
		object=disk0
		! grep -q 'xseg/kv\.h' "$root/$source" || object=kvd
		t "$source is built" build program "$root/$source"
		t "and runs" eval "./program '$XSEG_SEGMENT' $object | grep -q '^all .* there\$'"
	done
else
	skip "programs in C of the pages" "$CC is not there"
fi

# ---- programs in Python ----

export PYTHONPATH=$root/tools/python PYTHONDONTWRITEBYTECODE=1 XSEG_LIBRARY=$BUILD/lib/libxseg.so.1

# runs_in_python FILE ARGUMENT...: with no error and no warning. asyncio says of a step of its loop
# that it took more than 100 ms: that is the machine's
runs_in_python()
{
	local module python=python3
	while read -r module; do
		python=$(python_of "$module") || return 77
	done < <(sed -nE 's/^from ([a-z]+)[. ].*/\1/p' "$1")
	"$python" -X dev -W error "$@" >python.out 2>python.err || { cat python.err; return 1; }
	! grep -v '^Executing <.* took [0-9.]* seconds$' python.err
}

# The words in brackets are the parameters of what stands before them.
cat >synopsis.py <<'END'
import inspect, re, sys
import xseg, xseg.aio
text = open(sys.argv[1]).read()
found = re.findall(r"(xseg(?:\.\w+)+)(\((.*?)\))?(?:$| )", text, re.M)
assert len(found) >= 6, found
for name, called, words in found:
    thing = eval(name)
    if called:
        have = [p.name for p in inspect.signature(thing).parameters.values()]
        said = re.findall(r"(?:^|, )(\w+)", words)
        assert said and set(said) <= set(have), (name, said, have)
END

while read -r page file; do
	small_file=$TMP/example.py
	while IFS= read -r line; do small "$line"; done <"$file" >"$small_file"
	runs_in_python "$small_file" "$XSEG_SEGMENT" disk0 >python.log
	case $? in
	0) ok "$page: the program runs" ;;
	77) skip "$page: the program runs" "a module that it imports is not there" ;;
	*) not_ok "$page: the program runs" python.log python.out ;;
	esac
	case $page in
	*python3-xseg.3:*) is "and finds what it wrote" "$(cat python.out)" "all of it is there" ;;
	esac
done < <(examples_of python)
while read -r page file; do
	[[ $page = *python* ]] || continue
	t "$page: the parameters are those of the package" python3 synopsis.py "$file"
done < <(examples_of synopsis)

# ---- what the documents have to type ----
#
# Beside the blocks marked sh of README.md, which readme.sh and readme_ceph.sh run: lines that are
# indented. Those of xseg are run. Of the others, which build and measure, the program, its options
# and the targets have to be there.

documents_commands()
{
	(cd "$root" && awk '
		/^```/ { inside = !inside }
		!inside && /^    [A-Za-z]/ { sub(/^ +/, ""); sub(/  +#.*/, ""); print }' README.md docs/*.md) |
		grep -E '^([A-Z_]+=("[^"]*"|[^ ]*) )*(bash )?(make|sudo|xseg|tail|bench/|build/|tests/)' |
		grep -v '   '
}

# has_options FILE... -- WORD...: the files know each of the words that is an option
has_options()
{
	local files=()
	while [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	shift
	for word; do
		[[ $word != --* ]] || grep -rqE -- "(--|\")${word#--}\b" "${files[@]}" ||
			{ echo "no option $word"; return 1; }
	done
}

# is_there LINE: what a document has to type
is_there()
{
	local words word
	read -ra words <<<"$(sed -E 's/^([A-Z_]+=("[^"]*"|[^ ]*) )*(bash )?//' <<<"$1")"
	case ${words[0]} in
	make)
		for word in "${words[@]:1}"; do
			[[ $word = -* || $word = *=* ]] ||
				grep -qE "^([a-z-]+ )*$word( [a-z-]+)*:" "$root/Makefile" ||
				{ echo "no target $word"; return 1; }
		done
		;;
	sudo)
		sed -nE "s/.*\(readme ('([^']*)'|([a-z]*)).*/\2\3/p" \
			"$root/tests/system/packages.sh" |
			while read -r word; do
				[[ $1 != *$word* ]] || echo "$word"
			done | grep -q .
		;;
	xseg|tail) run_one "$1" ;;
	build/tests/sim)
		test -x "$BUILD/tests/sim" && has_options "$root/tests/sim" -- "${words[@]:1}"
		;;
	build/*) test -x "$BUILD/${words[0]#build/}" ;;
	*)
		test -e "$root/${words[0]}" &&
			has_options "$root/${words[0]}" "$root/bench/lib.sh" -- "${words[@]:1}"
		;;
	esac
}

documents_commands >typed
t "the documents have commands" test "$(wc -l <typed)" -gt 30
while read -r line; do
	t "$line" is_there "$line"
done <typed

[ ! -e "/dev/shm/xseg.$XSEG_SEGMENT" ] || t "the stack goes down" xseg down
finish
