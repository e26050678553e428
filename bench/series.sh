# series.sh - endless writes, and their slices; the benchmarks with such runs source it after
# lib.sh.
#
# A run is a number of bytes, not a time. It is cut into 20 slices of the same number of bytes. The
# end of a slice is interpolated between samples of xbench. Data that is dirty at the end of the run
# is flushed afterwards. Each run leaves $raw/STORE-PATTERN-SYSTEM-WHAT.ROUND.json, where WHAT is
# run, flush, before or after (`xseg stat`). From these files alone the tables are made that
# series.awk reads.

# series_run STORE-PATTERN-SYSTEM ROUND TO... -- ARGUMENT...: TO says to xbench what is written to,
# ARGUMENTs how
series_run()
{
	local at=$raw/$1 round=$2 to=()
	shift 2
	while [ "$1" != -- ]; do
		to+=("$1")
		shift
	done
	shift
	stat_to "$at-before.$round.json"
	measure "$tmp/run.json" "${to[@]}" --bs=4k --randseed="$round" "$@"
	stat_to "$at-after.$round.json"
	measure "$at-flush.$round.json" "${to[@]}" --opmix=flush:100 --number_ios=1
	# Of the samples, what is needed: else they are a hundred times as long.
	jq '.samples |= map({ start_ns, end_ns, write: (.write | { total_ios, io_bytes }) })' \
		"$tmp/run.json" >"$at-run.$round.json" || fail "what xbench says is no JSON"
}

# series_each FUNCTION: with STORE PATTERN SYSTEM ROUND and the path of the raw files but for
# `-WHAT.ROUND.json`
series_each()
{
	local file name round
	for file in "$raw"/*-before.*.json; do
		name=$(basename "$file" .json)
		round=${name##*.}
		name=${name%-before.*}
		# shellcheck disable=SC2086
		"$1" ${name//-/ } "$round" "$raw/$name" || fail "$file is damaged"
	done
}

series_row()
{
	jq -n -r --arg key "$1 $2 $3 $4" --arg store "$1" --slurpfile run "$5-run.$4.json" \
		--slurpfile flush "$5-flush.$4.json" --slurpfile before "$5-before.$4.json" \
		--slurpfile after "$5-after.$4.json" '
		def store(file): file[0].peers[] | select(.name == $store);
		($key | split(" ")) + [
			($run[0].jobs | map(.write.io_bytes) | add),
			($run[0].jobs | map(.job_runtime_ns) | max),
			$flush[0].jobs[0].sync.lat_ns.max,
			($after[0].caches[0].dirty_bytes // 0),
			store($after).writes - store($before).writes,
			store($after).write_bytes - store($before).write_bytes,
			($run[0].jobs + $flush[0].jobs | map(.error) | add)
		] | @tsv'
}

# The bytes written by the end of each sample, then of the run.
series_slices()
{
	jq -r '
		(.jobs | map(.write.io_bytes) | add) as $bytes |
		(.jobs | map(.job_runtime_ns) | max) as $ns |
		[foreach .samples[] as $s ([0, 0]; [$s.end_ns, .[1] + $s.write.io_bytes])] |
		map(select(.[0] < $ns)) + [[$ns, $bytes]] | .[] | @tsv' "$5-run.$4.json" \
		>"$tmp/points" &&
	awk -v key="$1\t$2\t$3\t$4" -f bench/series_slices.awk "$tmp/points"
}

# series_tables RUNS: the tables $out/RUNS and $out/slices.tsv
series_tables()
{
	series_each series_row >"$out/$1"
	series_each series_slices >"$out/slices.tsv"
}
