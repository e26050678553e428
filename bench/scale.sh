#!/bin/bash
# scale.sh - the cost of a hit in instructions and in lines of memory, with the tables of 1 to 16
# reactors.
#
# Usage: bench/scale.sh [--quick]
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
set -u

. "$(dirname "$0")/lib.sh"
by_form reactors "1 2 4 8 16" "1 16"
by_form ios 48 8
by_form size 32M 8M
columns="reactors part rw batch form = ios instructions lines code_lines errors"

need valgrind

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
		--LL=8388608,16,64 --dump-line=no --combine-dumps=yes \
		--callgrind-out-file="$tmp/counts.$1" "$BUILD/bin/bench-scale" --reactors="$1" \
		--ios="$ios" --size="$size" >"$tmp/said.$1.json" 2>>"$log" </dev/null ||
		fail "bench-scale --reactors=$1 failed under valgrind"
	counted "$tmp/counts.$1" >"$tmp/counts.$1.json"
	[ "$(cat "$tmp/counts.$1.json")" != "{}" ] ||
		fail "nothing was counted: bench-scale was made without valgrind/callgrind.h; run make deps, then make"
	jq -s '.[0] + { counts: .[1] }' "$tmp/said.$1.json" \
		"$tmp/counts.$1.json" >"$raw/$1-run.1.json" || fail "no counts"
	rm -f "$tmp/counts.$1"
}

# One line a step
collect()
{
	raw_rows '.reactors as $nr | .jobs[0].error as $error | .counts as $counts | .steps[] |
		$counts[.name] as $c | [$nr] + (.name | split(" ")) +
		[.ios, $c.Ir, $c.D1mr + $c.D1mw, $c.I1mr, $error]' | sort -t $'\t' -k1,1n -s
}

bench_begin bench-scale
echo "with the tables of $reactors reactors, as many at a time as there are CPUs ..."
for nr in $reactors; do
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
		wait -n || exit 1
	done
	run_one "$nr" &
done
for job in $(jobs -p); do
	wait "$job" || exit 1
done
bench_report "xseg, what a hit costs with the tables of many reactors, DATE: $(valgrind --version), $ios hits of each kind over $size."
page scale.png 1100,480 1,2 "one hit of 4 KiB by copy" "logscale x 2" "xrange [0.8:20]" "yrange [0:*]" \
	"xlabel 'reactors'"
for column in instructions lines; do
	panel "" "ylabel '${column/lines/lines of data}'"
	for line in {server,client}" "{read,write}" 8 "{own,spread} "server "{read,write}" 1 own"; do
		curve "$line" "* $line" reactors $column
	done
done
bench_end
