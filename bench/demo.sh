#!/bin/bash
# demo.sh - the main job on real data (`make demo`). An image of real files goes through the cache
# to a real disk and comes back unchanged. Random I/O is measured with and without the cache, side
# by side. Reads are those of any client by default: without a request where the cache has the data.
#
# Usage: bench/demo.sh [--help]
# Environment: BUILD (build), DEMO_SECONDS (4, of one measurement), DEMO_DIR ($BUILD/demo: a
#   directory on the disk to be used, which is made and removed)
#
# Needs 1.6 GiB on the disk, 1 GiB of memory and under 3 minutes; no root, no mount, no terminal.
#
# Two stacks run one after the other on the same directory:
#   1  volumed -> cached -> filed   the image is imported, read at random and exported; a second
#                                   volume is written at random
#   2  volumed -> filed             the image is exported again, from the files; the same random I/O
#
# The script always ends its processes and removes its segment and files. The logs stay in
# $BUILD/demo-log. Exit codes: 0; 1 with one line that names the step; 2: wrong usage.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
[ -z "${DEMO_DIR:-}" ] || DEMO_DIR=$(realpath -m "$DEMO_DIR")
cd "$root" || exit 1
case ${1:-} in
'') ;;
-h | --help)
	sed -n '2,/^set -u/s/^# \{0,1\}//p' bench/demo.sh
	exit 0
	;;
*)
	echo "demo: unknown option $1; bench/demo.sh --help lists the options" >&2
	exit 2
	;;
esac
. tests/lib/leftovers.sh
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
work=${DEMO_DIR:-$BUILD/demo}
seconds=${DEMO_SECONDS:-4}
case $seconds in
'' | *[!0-9]* | 0*)
	echo "demo: DEMO_SECONDS=$seconds is not a number such as 4" >&2
	exit 2
	;;
esac
logs=$BUILD/demo-log
log=$logs/demo.log
cache_mib=128
fits_mib=96
content_mib=240
min_image_mib=320
step="getting ready"

export PATH="$BUILD/bin:$PATH:/usr/sbin:/sbin"
export XSEG_SEGMENT=demo-$$
export XDG_STATE_HOME=$logs

# ---- how it speaks and ends ----

heading()	# TEXT
{
	step=$1
	printf '\n== %s\n' "$step"
	echo "== $step" >>"$log"
}

say()
{
	echo "   $*"
}

fail()	# TEXT...
{
	echo "demo: step '$step': $*; the logs are in $logs" >&2
	exit 1
}

# run COMMAND...: output into the log; its last line is shown when it fails
run()
{
	echo "+ $*" >>"$log"
	"$@" >"$logs/last" 2>&1 </dev/null
	local status=$?
	cat "$logs/last" >>"$log"
	[ $status -eq 0 ] || fail "'$*' ended with $status: $(tail -n 1 "$logs/last")"
}

cleanup()
{
	local status=$?
	trap - EXIT HUP INT TERM
	{ end_segment "$XSEG_SEGMENT"; } 2>/dev/null
	[ -z "${made_work:-}" ] || rm -rf "$work"
	rm -f "$logs/last"
	exit "$status"
}

interrupted()	# CODE
{
	echo "demo: interrupted in step '$step'; cleaning up" >&2
	exit "$1"
}

now_ms()
{
	echo $(($(date +%s%N) / 1000000))
}

# ---- getting ready ----

check_tools()
{
	local tool
	for tool in xseg xseg-host xbench; do
		[ -x "$BUILD/bin/$tool" ] || fail "$BUILD/bin/$tool is not there; run make first"
	done
	for tool in mke2fs e2fsck jq sha256sum; do
		command -v $tool >/dev/null || fail "$tool is not there; run make deps"
	done
}

check_disk()
{
	local free type
	[ ! -e "$work" ] || [ "$work" = "$BUILD/demo" ] ||
		fail "$work is there already; give another DEMO_DIR"
	rm -rf "$work"
	mkdir -p "$work" || fail "$work cannot be made; give another DEMO_DIR"
	made_work=1
	type=$(df --output=fstype "$work" | tail -n 1)
	case $type in
	tmpfs | ramfs) fail "$work is in RAM ($type), no real disk; give a DEMO_DIR on a disk" ;;
	esac
	free=$(($(stat -f -c '%a * %S' "$work") >> 20))
	[ "$free" -ge 1600 ] ||
		fail "only $free of 1600 MiB are free in $work; give another DEMO_DIR"
	say "The disk: $(df -P "$work" |
		awk 'NR == 2 { print $1 ", mounted on " $6 }'), file system $type," \
		"$free MiB free."
	free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
	[ "$free" -ge 1024 ] || fail "only $free of 1024 MiB of memory are free"
	tests/lib/shm.sh 520 "the demo" 2>"$logs/last" || fail "$(cat "$logs/last")"
}

# Real files, as many as fill content_mib: their names, one a line.
list_files()
{
	find /usr/share/doc /usr/include /usr/lib/*-linux-gnu* /usr/lib /usr/share \
		-xdev -type f -readable \
		-size +0 -size -65536k -printf '%s %p\n' 2>/dev/null |
	awk -v limit=$((content_mib << 20)) '
	{ size = $1; sub(/^[0-9]+ /, "") }
	seen[$0]++ { next }
	{ sum += int((size + 4095) / 4096) * 4096 }
	sum > limit { exit }
	{ print }'
}

make_image()
{
	local nr mib
	mkdir "$work/files" || fail "no directory for the files"
	list_files >"$work/list"
	nr=$(wc -l <"$work/list")
	sed 's|^/||' "$work/list" |
		tar -C / --no-recursion --verbatim-files-from -cf - -T - 2>>"$log" |
		tar -C "$work/files" -xf - 2>>"$log" ||
		fail "files could not be copied: $(tail -n 1 "$log")"
	mib=$(du -sm "$work/files" | cut -f 1)
	image_mib=$((mib + mib / 8 + 32))
	[ $image_mib -ge $min_image_mib ] || image_mib=$min_image_mib
	run mke2fs -q -F -t ext4 -m 0 -N $((nr + nr / 2 + 2000)) -d "$work/files" "$work/image" \
		"${image_mib}M"
	rm -rf "$work/files" "$work/list"
	run e2fsck -fn "$work/image"
	image_sum=$(sha256sum <"$work/image")
	say "$nr files, $mib MiB, in an ext4 image of $image_mib MiB; e2fsck -fn finds no error in it."
}

# ---- the stacks ----

write_stack()	# with|without
{
	local lower=cached
	[ "$1" = with ] || lower=filed
	cat <<-END
		[segment]
		name = $XSEG_SEGMENT
		memory = 512M

		[peer filed]
		dir = $work/store

		[peer volumed]
		downstream = $lower
	END
	if [ "$1" = with ]; then
		printf '\n[peer cached]\ndownstream = filed\nmemory = %dM\n' "$cache_mib"
		printf '\n[run]\ntogether = volumed cached filed\n'
	else
		printf '\n[run]\ntogether = volumed filed\n'
	fi
}

stack_up()	# with|without
{
	write_stack "$1" >"$work/$1.conf"
	run xseg up "$work/$1.conf"
}

# Whether the store's open files are open with O_DIRECT: asked of the kernel, not of filed.
direct_in_use()
{
	local pid fd flags bit=$((040000))
	case $(uname -m) in
	aarch64 | arm*) bit=$((0200000)) ;;
	ppc64*)         bit=$((0400000)) ;;
	esac
	pid=$(xseg --json peer list | jq -r '.[] | select(.name == "filed").pid')
	for fd in /proc/"$pid"/fd/*; do
		case $(readlink "$fd") in "$work"/store/*) ;; *) continue ;; esac
		[ -f "$fd" ] || continue
		flags=$(sed -n 's/^flags:[[:space:]]*//p' "/proc/$pid/fdinfo/${fd##*/}")
		[ $((flags & bit)) -eq 0 ] || return 0
	done
	return 1
}

say_direct()
{
	if direct_in_use; then
		direct="O_DIRECT was had: the store alone is the disk, not the kernel's page cache."
	else
		direct="O_DIRECT was NOT had: the store alone is the kernel's page cache."
	fi
	say "$direct"
}

# ---- measuring ----

counters()
{
	xseg --json cache status cached 2>>"$log" |
		jq -r '"\(.hits + .direct_reads) \(.hits + .direct_reads + .partial + .misses)"'
}

# measure STACK RW VOL MIB: 4 KiB at random, 16 in flight, over the first MIB of VOL. Makes
# $work/STACK-RW-MIB.json, .hits (reads that hit, all reads) and .flush (ms that a flush took
# afterwards).
measure()
{
	local to=$work/$1-$2-$4 before=() after=() from
	[ "$1" = without ] || read -r -a before < <(counters)
	run xbench --volume="$3" --rw="rand$2" --bs=4k --iodepth=16 --size="$4M" \
		--runtime="${seconds}s" \
		--ramp_time=500ms --randseed="$4" --output-format=json --output="$to.json"
	if [ "$1" = with ]; then
		read -r -a after < <(counters)
		echo $((after[0] - before[0])) $((after[1] - before[1])) >"$to.hits"
	fi
	from=$(now_ms)
	run xseg volume flush "$3"
	echo $(($(now_ms) - from)) >"$to.flush"
}

# scan STACK VOL MIB: reads it once in sequence, so that the cache is as full as it can be. By
# default a cache keeps nothing of such a long sequence (seq_cutoff).
scan()
{
	[ "$1" = without ] || run xseg cache set cached seq_cutoff=0
	run xbench --volume="$2" --rw=read --bs=1M --iodepth=4 --size="$3M"
	[ "$1" = without ] || run xseg cache set cached seq_cutoff=4M
}

measure_all()	# STACK
{
	local mib rw vol
	for rw in read write; do
		vol=image
		[ $rw = read ] || vol=scratch
		for mib in $fits_mib "$image_mib"; do
			scan "$1" $vol "$mib"
			measure "$1" $rw $vol "$mib"
		done
	done
}

# check_export WHAT
check_export()
{
	run xseg volume export image "$work/export"
	[ "$(sha256sum <"$work/export")" = "$image_sum" ] ||
		fail "the exported image is another than the imported one"
	run e2fsck -fn "$work/export"
	say "Exported $1:"
	say "sha256sum ${image_sum:0:16}... is the same, e2fsck -fn finds no error."
	rm -f "$work/export"
}

# row TEXT RW MIB: both stacks, side by side
row()
{
	local a=$work/without-$2-$3 b=$work/with-$2-$3 hits flush=-
	hits=$(awk '{ printf "%.1f%%", $2 ? $1 * 100 / $2 : 0 }' "$b.hits")
	[ "$2" = read ] || { hits=-; flush="$(cat "$b.flush") ms"; }
	jq -n -r --arg rw "$2" --slurpfile a "$a.json" --slurpfile b "$b.json" '
		[$a, $b] | map(.[0].jobs[0][$rw] | .iops, .lat_ns.mean, .lat_ns.percentile["99.000000"]) |
		@tsv' |
	awk -F '\t' -v text="$1" -v hits="$hits" -v flush="$flush" '{
		printf "   %-24s | %7d %7.0f %7.0f ", text, $1, $2 / 1000, $3 / 1000
		printf "| %7d %7.0f %7.0f %6s %8s | %5.1f\n", $4, $5 / 1000, $6 / 1000, hits, flush,
			($1 ? $4 / $1 : 0)
	}'
}

table()
{
	printf '   %-24s | %23s | %39s |\n' "4 KiB, 16 in flight" "the store alone" \
		"through cached ($cache_mib MiB)"
	printf '   %-24s | %7s %7s %7s ' "" IOPS "mean us" "p99 us"
	printf '| %7s %7s %7s %6s %8s | %s\n' IOPS "mean us" "p99 us" hits flush ratio
	row "reads, $fits_mib MiB (fits)" read $fits_mib
	row "reads, $image_mib MiB (larger)" read "$image_mib"
	row "writes, $fits_mib MiB (fits)" write $fits_mib
	row "writes, $image_mib MiB (larger)" write "$image_mib"
	say "hits: of the reads. flush: until all that was written was on the disk, after the run."
	say "ratio: IOPS through cached to IOPS of the store alone."
	say "The larger set has $image_mib MiB and the cache $cache_mib MiB, so most reads miss at random" \
		"offsets."
	say "A miss costs the read of the disk, and cached's work as well. So on a fast disk the ratio" \
		"of"
	say "these reads can be below 1. It rises if some data is read more often than other data."
	say "$direct"
}

# ---- all together ----

rm -rf "$logs"
mkdir -p "$logs" || exit 1
: >"$log"
trap cleanup EXIT
trap 'interrupted 129' HUP
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
began=$(now_ms)

heading "an ext4 image of this machine's own files"
check_tools
check_disk
make_image

heading "a stack: volumed -> cached -> filed, on a directory of that disk"
stack_up with
run xseg volume create image --size "${image_mib}M"
run xseg volume create scratch --size "${image_mib}M"
say "A segment in shared memory, a cache of $cache_mib MiB (write-back), two volumes of $image_mib MiB."

heading "the image is imported through the cache"
from=$(now_ms)
run xseg volume import image "$work/image"
run xseg volume flush image
say "Imported and flushed to the disk in $(($(now_ms) - from)) ms."
run xbench --volume=scratch --rw=write --bs=1M --iodepth=4
run xseg volume flush scratch
say "The second volume is filled with other data, for the writes: the image itself is only read."

heading "random I/O through the cache"
say "Over $fits_mib MiB, which fit, and over $image_mib MiB, which do not; $seconds s each." \
	"Reads are of the image."
measure_all with
check_export "through the cache"

heading "the same directory without the cache: volumed -> filed"
run xseg down
say "All peers stopped in order: the cache flushed, its segment is gone."
stack_up without
check_export "again, from what the files hold"

heading "random I/O on the store alone"
measure_all without
say_direct

heading "side by side"
table

heading "everything stops"
run xseg down
[ ! -e "/dev/shm/xseg.$XSEG_SEGMENT" ] || fail "the segment is still in /dev/shm"
left=$(segment_pids "$XSEG_SEGMENT")
[ -z "$left" ] || fail "processes are still there: ${left//$'\n'/ }"
rm -rf "$work" || fail "$work could not be removed"
say "No process is left, nothing is left in shared memory, $work is removed."
printf '\ndemo: done in %d s\n' $((($(now_ms) - began) / 1000))
