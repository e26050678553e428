#!/bin/bash
# manual_examples.sh - every command in an example of a manual page is run, as it stands there.
#
# Names of segments, paths, sizes and times are made small (`small`). What a command needs is there
# before: a stack, a volume, values (`ready`). A command that cannot run here is in `elsewhere`, with
# the test that runs it, or the reason. A new example without either fails.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed kvd memd jq

cd "$root" || exit 1
pages=(docs/*.[1-8] peers/*/*.[1-8] tools/*/*.[1-8])
awk -f tests/lib/examples.awk "${pages[@]}" | sort -u >"$TMP/examples"
cd "$TMP" || exit 1
t "the pages have examples" test "$(wc -l <examples)" -gt 60

# elsewhere LINE: why it is not run here, or the test that runs its words
elsewhere()
{
	case $1 in
	sysctl*|mount*) echo "changes the machine; see tests/system/hugetlb.sh" ;;
	kill*|tail*) echo "stands for what a person does; see tests/system/removed, down" ;;
	qemu-system*|qemu-storage-daemon*) echo "needs a virtual machine" ;;
	*LD_PRELOAD*|nbdkit*) echo "tests/system/nbd.sh, nbd_tools.sh: nbdkit with the plug-in" ;;
	"xseg export "[a-z]*" disk0"|"xseg export list"*)
		echo "tests/system/exports.sh: needs a stack file with exports" ;;
	"xseg top") echo "tests/system/xseg_tool.sh: needs a terminal" ;;
	"xseg down --cancel") echo "tests/system/down.sh: needs a stop that has not ended" ;;
	*--salvage) echo "tests/system/kvd_damage.sh: needs a log that is lost" ;;
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
		-e 's/runtime=(10s|1m)/runtime=1s/; s/keys=1M/keys=1000/; s/objects=1M/objects=1000/' \
		-e 's/volume=vm1/volume=disk0/; s/--size (2|4)0G/--size \10M/' \
		-e 's/--count 10/--count 2/' <<<"$1"
}

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
cp STACK.conf first.conf

head -c 3M /dev/urandom >debian.raw
gzip -k debian.raw
echo '{"user": 17}' >session.json

# ready LINE: what that line needs is there
ready()
{
	case $1 in
	"xseg up "*)
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
	for peer in filed cached volumed memd kvd other; do
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
	qemu-img*)
		start export xseg export disk0 --nbd "$TMP/disk0.sock"
		wait_for 60 test -S "$TMP/disk0.sock" && bash -c "$line"
		local status=$?
		kill -INT "$started"
		wait "$started"
		return $status
		;;
	*) timeout 60 bash -c "set -o pipefail; $line" ;;
	esac
}

while read -r line; do
	if why=$(elsewhere "$line"); then
		echo "# not run here: $line ($why)"
		continue
	fi
	case $line in
	"xseg export"*|qemu-img*)
		if [ ! -e "$plugin" ] || ! command -v nbdkit >/dev/null ||
				! command -v "${line%% *}" >/dev/null; then
			skip "$line" "nbdkit, its plug-in or qemu-img is not there"
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

# ---- the stack files of the pages ----

# stacks PAGE: each stack file of it as FILE.N, with directories of this test
stacks()
{
	awk -v name="$TMP/$(basename "$1")" '
		/^\.nf/ { on = 1; n++; next }
		/^\.fi/ { on = 0; next }
		on && !/^\./ { sub(/^ +/, ""); print > (name "." n) }' "$root/$1"
	for file in "$TMP/$(basename "$1")".*; do
		grep -q '^\[peer' "$file" || rm "$file"
	done
}
for page in docs/xseg.1 docs/xseg.conf.5 peers/host/xseg-host.8; do
	stacks $page
	for file in "$TMP/$(basename $page)".*; do
		sed -i "s|/srv/objects|$TMP/objects|" "$file"
		t "the stack file of $page is right" xseg config check "$file"
	done
done
[ ! -e "/dev/shm/xseg.$XSEG_SEGMENT" ] || t "the stack goes down" xseg down
finish
