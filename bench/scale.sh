#!/bin/bash
# scale.sh - the cost of a hit in instructions and in lines of memory, with the tables of 1 to 16
# reactors.
#
# Usage: bench/scale.sh [--quick]
# Environment: BUILD (build)
#
# Two cores cannot run sixteen reactors, but the work of one request can be counted. bench-scale
# (bench/scale/scale.c) has a cache of 1, 2, 4, 8 and 16 ports and as many clients in one thread.
# valgrind's callgrind counts hits of 4 KiB by copy, one at a time and 8 at a time. The hits are all
# for one port (own: a client and a reactor that are a pair) or as they come (spread):
#   instructions   of the server's rounds, and of the client's calls
#   lines          of 64 bytes that they touch, of data and of code: the simulated caches are empty
#                  before each round. 128 of the server's are the copied 4 KiB, source and target
#
# Nothing depends on time or on other work on the machine: so there is one round.
#
# In $BUILD/bench/scale: raw/REACTORS-run.1.json. From these files alone are made runs.tsv,
# results.tsv, report.txt and the plot.
set -u

. "$(dirname "$0")/lib.sh"
bench_options "$@"
reactors=(1 2 4 8 16)
ios=48
size=32M
if [ -n "$quick" ]; then
	reactors=(1 16)
	ios=8
	size=8M
fi

# counted FILE: what callgrind dumped, as an object of JSON
counted()
{
	awk '
		/^desc: Trigger: Client Request: / { name = substr($0, 32) }
		/^events:/ { for (i = 2; i <= NF; i++) event[i] = $i }
		/^totals:/ && name != "" {
			printf "%s\"%s\": {", (some++ ? ", " : "{"), name
			for (i = 2; i <= NF; i++)
				printf "%s\"%s\": %d", (i > 2 ? ", " : ""), event[i], $i
			printf "}"
			name = ""
		}
		END { print (some ? "}" : "{}") }' "$1"
}

run_one()	# REACTORS
{
	local cache=1048576,16,64
	valgrind --tool=callgrind --instr-atstart=no --cache-sim=yes --I1=$cache --D1=$cache \
		--LL=8388608,16,64 --dump-line=no \
		--combine-dumps=yes --callgrind-out-file="$tmp/counts.$1" "$BUILD/bin/bench-scale" \
		--reactors="$1" --ios=$ios \
		--size=$size >"$tmp/said.$1.json" 2>>"$log" </dev/null ||
		fail "bench-scale --reactors=$1 failed under valgrind"
	counted "$tmp/counts.$1" >"$tmp/counts.$1.json"
	[ "$(cat "$tmp/counts.$1.json")" != "{}" ] ||
		fail "nothing was counted: bench-scale was made without valgrind/callgrind.h; run make deps, then make"
	jq -s '.[0] + { counts: .[1] }' "$tmp/said.$1.json" \
		"$tmp/counts.$1.json" >"$raw/$1-run.1.json" || fail "no counts"
	rm -f "$tmp/counts.$1"
}

# One line a step: REACTORS PART RW BATCH FORM IOS INSTRUCTIONS LINES CODE_LINES ERRORS
collect()
{
	local file
	for file in "$raw"/*-run.*.json; do
		jq -r '.reactors as $n | .jobs[0].error as $error | .counts as $counts | .steps[] | $counts[.name] as $c |
			[$n] + (.name | split(" ")) + [.ios, $c.Ir, $c.D1mr + $c.D1mw, $c.I1mr, $error] | @tsv' "$file" ||
			fail "$file is damaged"
	done
}

report()
{
	echo "xseg, what a hit costs with the tables of many reactors, $(date '+%Y-%m-%d %H:%M'): $(valgrind --version)," \
		"$ios hits of each kind over $size."
	machine
	echo
	awk -v results="$out/results.tsv" -f bench/lib.awk -f bench/scale.awk "$out/runs.tsv"
}

command -v valgrind >/dev/null || usage "valgrind is not there; run make deps"
bench_begin scale bench-scale
echo "with the tables of ${reactors[*]} reactors, as many at a time as there are CPUs ..."
for nr in "${reactors[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
		wait -n || exit 1
	done
	run_one "$nr" &
done
for job in $(jobs -p); do
	wait "$job" || exit 1
done
collect >"$tmp/runs"
sort -t $'\t' -k1,1n -s "$tmp/runs" >"$out/runs.tsv"
bench_end scale.gp scale.png
