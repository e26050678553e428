# sustained.gp - plots of bench/sustained.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# sustained.gp
#
# STORE.png: the rate in each slice of the run, for each system; medians of the rounds.
# data is the table whose columns sustained.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 1100,480 font "sans,10"
set grid ytics
set key below
set logscale y
set xrange [0:100]
set xlabel "percent of the bytes of the run"
set ylabel "MB/s"

rows(store, pattern, who) = \
	sprintf("<awk -F '\\t' '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\"' %s", store, pattern, who, data)
titles = "'the store alone' 'write-back' 'write-back, objects for half of the set' 'write-through'"
systems = "alone back half through"

do for [store in "memd filed"] {
	set output out."/".store.".png"
	set multiplot layout 1,2 title "4 KiB writes over ".store.", set twice the cache, depth 16"
	set title "at random"
	plot for [i=1:4] rows(store, "random", word(systems, i)) using ($4*5-2.5):($5/1e6) \
		with linespoints linewidth 2 title word(titles, i)
	set title "four streams in sequence"
	plot for [i=1:2] rows(store, "streams", word(systems, i)) using ($4*5-2.5):($5/1e6) \
		with linespoints linewidth 2 title word(titles, i)
	unset multiplot
}
