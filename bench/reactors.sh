#!/bin/bash
# reactors.sh - two reactors and two clients on two CPUs, against one of each.
#
# Usage: bench/reactors.sh [--quick]
# Environment: BENCH_SECONDS (0.3, of one run)
#
# The load is hits of 4 KiB at random by copy, 16 in flight a client. Each read is a request, because
# one without takes no time of a reactor. The set is 256 MiB in cached over memd. A and B are the
# first two available CPUs:
#   pair    one reactor and one client, both on A
#   pairs   two caches in one segment, each with one reactor and a client of its own, one such pair
#           on A and one on B
#   shared  one cache with two reactors, on A and on B, two clients, on A and on B; a client's
#           requests go to both reactors
#   one2    one reactor on A, two clients, on A and on B
#   one1    one reactor on A, one client on B
#   two1    one cache with two reactors, on A and on B, one client on B
set -u

. "$(dirname "$0")/lib.sh"
by_form seconds 0.3 0.02
by_form set_mib 256 16
columns="system rw round = iops mean_ns errors"

# peers_of NUMBER CPUS: a cache and its store, in one process, with a reactor on each of the CPUs
peers_of()
{
	local where
	where=$(printf 'threads = %d\ncpus = %s' "$(wc -w <<<"${2//,/ }")" "$2")
	cat <<-END

		[peer store$1]
		kind = memd
		memory = 16M
		$where

		[peer cache$1]
		kind = cached
		downstream = store$1
		memory = $((set_mib + set_mib / 4))M
		objects = $((set_mib / 2 + 64))
		$no_flush
		$where
	END
}

stack_of()	# SYSTEM
{
	printf '[segment]\nname = %s\nmemory = %dM\n' "$XSEG_SEGMENT" $((set_mib * 3 + spare_mib))
	case $1 in
	pairs)         peers_of 0 "$a"; peers_of 1 "$b" ;;
	shared | two1) peers_of 0 "$a,$b" ;;
	*)             peers_of 0 "$a" ;;
	esac
}

# Each program that makes load is in a session of its own: the scheduler divides a processor between
# sessions (autogroup), and two programs in one session, on two processors, would have half of a
# processor's weight each.
xbench()
{
	setsid --wait "$BUILD/bin/xbench" "$@"
}

to()	# NUMBER
{
	echo --target="cache$1" --objects=$((set_mib / 4)) --size=${set_mib}M
}

# load NAME RW NUMBER CPUS: a client on each of the CPUs
load()
{
	local client_cpus=$4
	# shellcheck disable=SC2046 # words
	at_random "$1" "$2" 16 $(to "$3") --numjobs="$(wc -w <<<"${4//,/ }")"
}

run_system()	# SYSTEM
{
	local rw beside file clients=$a
	case $1 in
	shared | one2) clients=$a,$b ;;
	one1 | two1)   clients=$b ;;
	esac
	stack_of "$1" >"$out/stack.conf"
	quietly xseg up "$out/stack.conf"
	# shellcheck disable=SC2046 # words
	client_cpus=$b fill $(to 0)
	# shellcheck disable=SC2046 # words
	[ "$1" != pairs ] || client_cpus=$b fill $(to 1)
	for rw in read write; do
		if [ "$1" = pairs ]; then
			raw=$tmp load beside $rw 1 "$b" &
			beside=$!
		fi
		load "$1-$rw" $rw 0 "$clients"
		[ "$1" = pairs ] || continue
		wait $beside || exit 1
		file=$raw/$1-$rw-run.$round.json	# has both
		jq -s '.[0] + { jobs: map(.jobs) | add }' "$file" "$tmp/beside-run.$round.json" \
			>"$tmp/both" && mv "$tmp/both" "$file" || fail "a run of $1 is damaged"
	done
	quietly xseg down --force
}

bench_begin
a=$server_cpu
b=${client_cpus%%,*}
[ "$a" != "$b" ] || echo "bench: with one CPU the figures of reactors.sh say nothing"
while next_round; do
	each run_system "pair pairs shared one2 one1 two1"
done
bench_report "xseg, reactors and clients on two CPUs, DATE: 4 KiB at random over $set_mib MiB by copy, depth 16, medians of $runs rounds of $seconds s a run." \
	"A is CPU $a, B is CPU $b."
page reactors.png 800,480 1,1 "4 KiB hits by copy on two CPUs, 16 in flight a client" \
	"yrange [0:*]" "ylabel 'million IOPS'"
for rw in read write; do
	bars $rw "* $rw" system iops:low:high 1e6
done
bench_end
