# scale.gp - the plot of bench/scale.sh: gnuplot -e "data='results.tsv'; out='FOLDER'" scale.gp
#
# scale.png: instructions and lines of a hit, by the number of reactors.
# data is the table whose columns scale.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 1100,480 font "sans,10"
set style data linespoints
set grid ytics
set key below
set logscale x 2
set xrange [0.8:20]
set yrange [0:*]
set xlabel "reactors"
set output out."/scale.png"
rows(part, rw, batch, form) = sprintf("<awk -F '\\t' '$2 == \"%s\" && $3 == \"%s\" && $4 == %d && $5 == \"%s\"' %s", part, rw, batch, form, data)
set multiplot layout 1,2 title "one hit of 4 KiB by copy"
do for [column in "6 7"] {
	set ylabel column eq "6" ? "instructions" : "lines of data"
	plot for [part in "server client"] for [rw in "read write"] for [form in "own spread"] \
		rows(part, rw, 8, form) using 1:int(column) linewidth 2 title part." ".rw.", 8 ".form, \
		for [rw in "read write"] rows("server", rw, 1, "own") using 1:int(column) linewidth 2 title "server ".rw.", 1"
}
unset multiplot
