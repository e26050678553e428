#!/bin/bash
# benches_kv.sh - the benchmarks of values: the short form of each makes its reports, and so do the
# evaluations of others. Nothing here judges a figure that depends on time.
# tags: long
# timeout: 480
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/benches.sh"
need jq

bench kv 22 14 "runs.tsv:11:22 results.tsv:11:23" ""
if PATH=$PATH:/usr/sbin command -v memcached >/dev/null; then
	bench memcached 16 8 "runs.tsv:9:16 results.tsv:8:17" ""
else
	skip "bench/memcached.sh --quick runs to its end" "there is no memcached (make bench-deps)"
fi
# The evaluations of others, in one run, with the sides that are here; a memory group needs root.
sides=()
for side in memcached redis-server:redis; do
	! PATH=$PATH:/usr/sbin command -v "${side%:*}" >/dev/null || sides+=("${side#*:}")
done
t "the evaluations run to their end" env -u XSEG_SEGMENT BENCH_SEGMENT="$XSEG_SEGMENT" \
	BENCH_OUT="all of them" BENCH_PARTS="offload lustre filecache" BENCH_SECONDS=0.05 \
	BENCH_SIDES="capi spill xasync xseg ${sides[*]}" BENCH_FACTORS=1.5 BENCH_SIZES=16k \
	BENCH_MEMORY=136 BENCH_SET=16 BENCH_OPS=16 BENCH_ONE="4k 1m" BENCH_TWO=4m BENCH_THREE=16m \
	BENCH_THREADS=1 BENCH_MODES="overflow preload" BENCH_CONTENTS=value \
	"$root/bench/kv.sh" --quick
evaluations="all of them/kv/report.txt"
if grep -q '^left out: kv_offload, which needs' "$evaluations"; then
	skip "kvd drops nothing" "no memory group can be had here"
else
	is "kvd drops nothing" "$(grep -c '^wanted offload: nothing is dropped.*: met$' "$evaluations")" 1
	is "it passes all stages" "$(grep -c '^wanted all stages pass.*: met$' "$evaluations")" 1
	is "what it reads before it serves is said" \
		"$(grep -c '^preload, xseg preload value 16k no: [0-9.]* s$' "$evaluations")" 1
	mkdir kept_runs
	cp "all of them"/kv_offload/raw/*.json kept_runs
	t "a report can be made of pieces" env -u XSEG_SEGMENT BENCH_SEGMENT="$XSEG_SEGMENT" \
		BENCH_OUT=pieces BENCH_FROM="$TMP/kept_runs" BENCH_FACTORS=1.5 BENCH_SIZES=16k \
		"$root/bench/kv_offload.sh" --quick
	t "it is the same" cmp pieces/kv_offload/results.tsv "all of them/kv_offload/results.tsv"
	# its index takes more while the log is opened
	t "a group has memory enough for the index of many small values" env -u XSEG_SEGMENT \
		BENCH_SEGMENT="$XSEG_SEGMENT" BENCH_OUT=small BENCH_SECONDS=0.05 BENCH_SIDES=capi \
		BENCH_FACTORS=3 BENCH_SIZES=1k BENCH_MEMORY=128 "$root/bench/kv_offload.sh" --quick
	is "all of them were put" "$(jq -s 'map(.how) | join(" ")' \
		small/kv_offload/raw/capi-3-1k-run.1.json)" '"ok"'
fi
finish
