# headline.gp - plots of bench/headline.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# headline.gp
#
# headline.png: 4 KiB reads and writes by depth; series.png: the rate in each slice of the runs that
# do not end. Medians of the rounds. data, and series.tsv beside it, are tables whose columns
# headline.awk names in their first lines.
set datafile separator "\t"
set terminal pngcairo size 1100,480 font "sans,10"
set grid ytics
set key below
set logscale y

points(who, rw) = sprintf("<awk -F '\\t' '$1 == \"%s\" && $2 == \"%s\" && $3 == \"4k\"' %s | " . \
	"sort -t '\t' -k4,4n", who, rw, data)
systems = "alone fitsback fitsthrough twiceback twicethrough"
titles = "'the store alone' 'fits, write-back' 'fits, write-through' " . \
	"'set twice the cache, write-back' 'the same, write-through'"
set output out."/headline.png"
set multiplot layout 1,2 title "4 KiB at random over Ceph's bluestore"
set xlabel "in flight"
set ylabel "IOPS"
do for [rw in "read write"] {
	set title rw."s"
	plot for [i=1:5] points(word(systems, i), rw) using 4:5 with linespoints linewidth 2 \
		title word(titles, i)
}
unset multiplot

slices(pattern, who) = \
	sprintf("<awk -F '\\t' '$2 == \"%s\" && $3 == \"%s\"' %s/series.tsv", pattern, who, out)
kinds = "alone back through"
names = "'the store alone' 'write-back' 'write-through'"
set output out."/series.png"
set multiplot layout 1,2 title "4 KiB writes over Ceph's bluestore, set twice the cache"
set xrange [0:100]
set xlabel "percent of the bytes of the run"
set ylabel "MB/s"
do for [pattern in "random streams"] {
	set title pattern
	plot for [i=1:3] slices(pattern, word(kinds, i)) using ($4*5-2.5):($5/1e6) \
		with linespoints linewidth 2 title word(names, i)
}
unset multiplot
