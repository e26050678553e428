# plot.sh - the plots of a benchmark; lib.sh sources it. Calls between bench_report and bench_end:
#
#	page iops.png 1100,480 1,2 "4 KiB hits" "xlabel 'in flight'"	# a picture of 1 x 2 panels
#	panel read					# the next one of these; alone it may be left out
#	curve "bare limit" "limit read 4k *" depth iops:low:high 1e6
#	bars ...					# the same, as bars beside each other
#	mark 20 "20 ms"					# a line across; without a title if there is none
#
# A curve has the rows of $table (results.tsv) that begin with its words; `*` is any word, and
# a|b either one. Columns are named as in the table's first line; figures are divided by the last
# argument. A curve without rows is left out. $across is gnuplot's expression for the horizontal
# value, $1 if it is not set. Further arguments of page and panel are settings of gnuplot.

table=results.tsv
across='$1'
pictures=()
parts=()
nr_data=0

settings()	# SETTING...
{
	local setting
	for setting; do
		echo "set $setting"
	done >>"$tmp/plot.gp"
}

panel_end()
{
	local IFS=,
	[ ${#parts[@]} -eq 0 ] || echo "plot ${parts[*]}" >>"$tmp/plot.gp"
	parts=()
}

# page FILE SIZE LAYOUT TITLE [SETTING...]
page()
{
	page_end
	pictures+=("$1")
	settings "terminal pngcairo size $2 font 'sans,10'" "output '$1'" "grid ytics" "key below" \
		"style fill solid 0.6" "style histogram errorbars gap 1 linewidth 1" "${@:5}" \
		"multiplot layout $3 title \"$4\""
}

page_end()
{
	panel_end
	[ ${#pictures[@]} -eq 0 ] || printf 'unset multiplot\nreset\n' >>"$tmp/plot.gp"
}

# panel TITLE [SETTING...]
panel()
{
	panel_end
	settings "title '$1'" "${@:2}"
}

# rows LABEL TITLE WORDS X Y [DIVISOR]: the rows of a curve become a data block; its name is in
# $data. LABEL is how X is printed, which may be several columns. Fails without any row.
rows()
{
	data=\$rows_$((++nr_data))
	awk -F '\t' -v label="$1" -v words="$3" -v x="$4" -v y="$5" -v by="${6:-1}" '
	FNR == 1 {
		for (i = 1; i <= NF; i++)
			at[$i] = i
		nr_words = split(words, word, " ")
		nr_x = split(x, xs, ",")
		nr_y = split(y, ys, ":")
		next
	}
	{
		for (i = 1; i <= nr_words; i++)
			if (word[i] != "*" && $i !~ "^(" word[i] ")$")
				next
		text = $at[xs[1]]
		for (i = 2; i <= nr_x; i++)
			text = text " " $at[xs[i]]
		printf label, text
		for (i = 1; i <= nr_y; i++)
			printf " %s", $at[ys[i]] / by
		print ""
	}' "$out/$table" >"$tmp/rows"
	[ -s "$tmp/rows" ]
}

# draw USING WITH TITLE: what is in $tmp/rows
draw()
{
	{ echo "$data << END"; cat "$tmp/rows"; echo END; } >>"$tmp/plot.gp"
	parts+=("$data using $1 with $2 title '$3'")
}

# curve TITLE WORDS X Y[:LOW:HIGH] [DIVISOR]
curve()
{
	local using="($across):2" with=linespoints
	rows %g "$@" || return 0
	sort -g -o "$tmp/rows" "$tmp/rows"
	case $4 in
	*:*) using+=:3:4 with=yerrorlines ;;
	esac
	draw "$using" "$with linewidth 2" "$1"
}

# bars TITLE WORDS X[,X] Y:LOW:HIGH [DIVISOR]
bars()
{
	rows '"%s"' "$@" || return 0
	draw 2:3:4:xtic\(1\) histogram "$1"
}

# mark VALUE [TITLE]
mark()
{
	local title=notitle
	[ -z "${2:-}" ] || title="title '$2'"
	parts+=("$1 with lines dashtype 2 $title")
}

# draw_plots: makes the pages, and says so
draw_plots()
{
	[ ${#pictures[@]} -gt 0 ] || return 0
	page_end
	if ! command -v gnuplot >/dev/null; then
		echo "no plots: gnuplot is not there (make deps)"
	elif ! (cd "$out" && gnuplot "$tmp/plot.gp") 2>>"$log"; then
		echo "no plots: gnuplot failed, see $log"
	else
		echo "plots: ${pictures[*]/#/$out/}"
	fi
}
