# series.sh - endless writes of 4 KiB, and their slices; sustained.sh and headline.sh source it after
# lib.sh.
#
# A run is a number of bytes, not a time. It is cut into 20 slices of the same number of bytes. The
# end of a slice is interpolated between samples of xbench. Data that is dirty at the end of the run
# is flushed afterwards. Each run leaves $raw/STORE-PATTERN-SYSTEM-WHAT.ROUND.json, where WHAT is
# run, flush, before or after (`xseg stat`). From these files alone the tables are made that
# series.awk reads.

common_awk=bench/series.awk
series_columns="store pattern system round = bytes ns flush_ns dirty store_writes store_bytes errors"
slice_columns="store pattern system round slice = bytes_a_second"

# series_run STORE-PATTERN-SYSTEM MIB PASSES SAMPLE TO...: a set of MIB is written PASSES times
# over; TO says to xbench what is written to. `random` is at random by one client, 16 in flight;
# `streams` are four clients, each in sequence through its quarter.
series_run()
{
	local at=$raw/$1 nr=$(($2 * $3 * 256)) how
	how=(--rw=randwrite --iodepth=16 --number_ios=$nr)
	[[ $1 = *-random-* ]] || how=(--rw=write --iodepth=4 --numjobs=4 --number_ios=$((nr / 4))
		--size=$(($2 / 4))M --offset_increment=$(($2 / 4))M)
	stat_to "$at-before.$round.json"
	measure "$tmp/run.json" "${@:5}" --bs=4k --randseed="$round" "${how[@]}" \
		--status-interval="$4"
	stat_to "$at-after.$round.json"
	measure "$at-flush.$round.json" "${@:5}" --opmix=flush:100 --number_ios=1
	# Of the samples, what is needed: else they are a hundred times as long.
	jq '.samples |= map({ start_ns, end_ns, write: (.write | { total_ios, io_bytes }) })' \
		"$tmp/run.json" >"$at-run.$round.json" || fail "the result of xbench is no JSON"
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

# STORE PATTERN SYSTEM ROUND SLICE BYTES_A_SECOND of each slice. jq makes lines of what was written
# by the end of each sample, and of the run; between two of them the bytes are taken to have come at
# a constant rate.
series_slices()
{
	jq -r '
		(.jobs | map(.write.io_bytes) | add) as $bytes |
		(.jobs | map(.job_runtime_ns) | max) as $ns |
		[foreach .samples[] as $s ([0, 0]; [$s.end_ns, .[1] + $s.write.io_bytes])] |
		map(select(.[0] < $ns)) + [[$ns, $bytes]] | .[] | @tsv' "$5-run.$4.json" \
		>"$tmp/points" &&
	awk -v key="$1\t$2\t$3\t$4" '
		{ ns[NR] = $1; bytes[NR] = $2 }
		END {
			ns[0] = bytes[0] = begin = 0
			all = bytes[NR]
			for (i = slice = 1; slice <= 20; slice++) {
				want = all * slice / 20
				while (i < NR && bytes[i] < want)
					i++
				step = bytes[i] - bytes[i - 1]
				end = ns[i] - (step ? (bytes[i] - want) / step * (ns[i] - ns[i - 1]) : 0)
				rate = (end > begin) ? all / 20 / (end - begin) * 1e9 : 0
				printf "%s\t%d\t%.0f\n", key, slice, rate
				begin = end
			}
		}' "$tmp/points"
}

# slice_curves PATTERN STORE: the rate in each slice, of the table that $table names
slice_curves()
{
	local across='$1*5-2.5' who title
	while read -r who title; do
		curve "$title" "$2 $1 $who" slice bytes_a_second 1e6
	done <<-END
		alone the store alone
		back write-back
		half write-back, objects for half of the set
		through write-through
	END
}
