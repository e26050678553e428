#!/bin/bash
# limits.sh - the limits of a machine: bare programs that do the work of a hit, one step after the
# other.
#
# Usage: bench/limits.sh [--quick]
# Environment: BENCH_SECONDS (0.15, of one run)
#
# bench-limit (bench/limits/limit.c) runs over 4 GiB in huge pages: less on a machine with little
# memory, 64 MiB with --quick. Blocks are 4 KiB at random, and the index has as many entries as
# there are blocks. A server is on the first CPU and one client on another:
#   chase     no server: one line after the other, each at the address that the last one gave; the
#             latency of memory
#   lines     no server: first lines of pages, each at random, as many at a time as a core can have
#             in flight; linesany: any line of each page, because first lines all compete for the
#             same set of the first cache
#   memcpy    no server: blocks are copied; the bandwidth of memory, also in blocks of 64 KiB
#   echo      a word there and back
#   lookup    the same, and its block is found in the index
#   loan      the same, and the client reads the first line of the block where it is, or gives a
#             page in its place
#   loanall   the same with all lines
#   copy      the block is copied into or from a buffer; the client touches the first line of each
#             of its pages
#   copyall   the same with all lines
#   loansmall copysmall   without huge pages, over a quarter of the set: mapping takes seconds
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.15 0.02
by_form set_mib 4096 64
columns="step rw bs depth round = iops mean_ns p50_ns p99_ns huge errors"
more_figures="{ huge: .huge_pages }"
set_file=/dev/shm/$XSEG_SEGMENT.set

# STEP RW BS DEPTHS
points="chase read 4k 16
lines read 4k 16
linesany read 4k 16
memcpy read 4k 16
memcpy write 4k 16
memcpy read 64k 16
memcpy write 64k 16
echo read 4k 1 16 64
lookup read 4k 1 16 64
loan read 4k 1 16 64
loan write 4k 1 16 64
loanall read 4k 1 16
loanall write 4k 1 16
copy read 4k 1 16 64
copy write 4k 1 16 64
copy read 64k 16
copy write 64k 16
copyall read 4k 1 16
copyall write 4k 1 16"

small_points="loansmall read 4k 16
loansmall write 4k 16
copysmall read 4k 16
copysmall write 4k 16"

# run_points POINTS: with an index of blocks
run_points()
{
	local step rw bs depths depth args size
	while read -r step rw bs depths; do
		args=(--mode="$step") size=$set_mib
		case $step in
		*small) args=(--mode="${step%small}" --huge=no) size=$((set_mib / 4)) ;;
		*all)   args=(--mode="${step%all}" --touch=all) ;;
		*any)   args=(--mode="${step%any}" --scatter=yes) ;;
		esac
		for depth in $depths; do
			limit "$step-$rw-$bs-$depth" "$rw" "$bs" "$depth" --object_size="$bs" \
				--size="${size}M" "${args[@]}"
		done
	done <<<"$1"
}

fit_set 113 512
bench_begin bench-limit
also_at_the_end rm -f "$set_file"
while next_round; do
	run_points "$points"
done
# The first who uses the file makes its pages, which takes longer than a run.
rm -f "$set_file"
round=0
while next_round; do
	run_points "$small_points"
done
bench_report "xseg, the bare limits of this machine, DATE: 4 KiB at random over $set_mib MiB, medians of $runs rounds of $seconds s a run."
page limits.png 800,480 1,1 "what a hit is made of, 4 KiB reads, one client" "logscale xy" \
	"xrange [0.8:80]" "xtics (1, 16, 64)" "xlabel 'I/Os in flight'" "ylabel 'million a second'" \
	"key inside top left"
while read -r step title; do
	curve "$title" "$step read 4k *" depth iops:low:high 1e6
done <<-END
	echo echo
	lookup lookup
	loan reference, first line
	copy copy, first line
	loanall reference, all lines
	copyall copy, all lines
END
bench_end
