# benches.sh - runs the short form of a benchmark and looks at its report, for the tests of them.
#
#	. "$root/tests/lib/benches.sh"		# after system.sh
#	bench plugs 3 8 runs.tsv:10:3 ""

# rows FILE COLUMNS: how many lines a table with so many columns has; 0 when one has another number,
# or an empty field
rows()
{
	awk -F '\t' \
		-v n="$2" 'NF != n { bad = 1 } { for (i = 1; i <= NF; i++) if ($i == "") bad = 1 }
		END { print bad ? 0 : NR }' "$1"
}

# nr_wrong REPORT: how many bars say that a sector was wrong
nr_wrong()
{
	grep -cE '^wanted .*no (errors|wrong sector), is [0-9]+: not met$' "$1"
}

# bench NAME RUNS WANTED "TABLE:COLUMNS:LINES ..." "PICTURE ...": bench/NAME.sh --quick makes so
# many JSON files of runs, lines that say what was wanted, tables and plots
bench()
{
	local at="$TMP/all of them/$1" table part picture
	t "bench/$1.sh --quick runs to its end" env -u XSEG_SEGMENT BENCH_SEGMENT="$XSEG_SEGMENT" \
		BENCH_OUT="all of them" "$root/bench/$1.sh" --quick || return
	is "its raw files are JSON" "$(jq -es 'length' "$at"/raw/*-run.*.json)" "$2"
	is "no I/O failed in them" "$(jq -es 'map(.jobs[].error) | add' "$at"/raw/*-run.*.json)" 0
	is "nor was a sector wrong" "$(nr_wrong "$at/report.txt")" 0
	is "its report says what was wanted, and whether it is met" \
		"$(grep -cE '^wanted .*, is .*: (met|not met)$' "$at/report.txt") $(grep -c ^wanted "$at/report.txt")" "$3 $3"
	for table in $4; do
		IFS=: read -r -a part <<<"$table"
		is "it makes a table ${part[0]} of ${part[2]} lines" \
			"$(rows "$at/${part[0]}" "${part[1]}")" "${part[2]}"
	done
	for picture in $5; do
		if command -v gnuplot >/dev/null; then
			t "it plots $picture" test -s "$at/$picture"
		else
			skip "it plots $picture" "gnuplot is not there"
		fi
	done
}
