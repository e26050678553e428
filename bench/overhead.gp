# overhead.gp - the plot of bench/overhead.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# overhead.gp
#
# overhead.png: rates to that of the store alone, and what is added to its latency, without hits over
# a store of 1 ms and with nothing else over a store in memory; bars show the lowest and the highest
# round. data is the table whose columns overhead.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 900,800 font "sans,10"
set style fill solid 0.6
set grid ytics
set boxwidth 0.5
set bmargin 3
set xrange [-0.6:3.6]
unset key
name(x) = sprintf("%s\ndepth %s", strcol(3), strcol(4))
set output out."/overhead.png"
set multiplot layout 2,2 title "a cache without hits, and one with nothing else"
do for [block = 0:1] {
	# lines of the table: a head, `none` to `alone`, `all` to `alone`, `all` to `fast`
	from = block ? 9 : 1
	where = block ? "all hits, to a store in memory" : "no hits, over a store of 1 ms"
	set yrange [0:*]
	set title where.": rate"
	plot data every ::from::from+3 using 0:7:8:9:(0.5):xtic(name(0)) with boxerrorbars, \
		1 with lines
	set yrange [*:*]
	set title where.": mean latency, us above"
	plot data every ::from::from+3 using 0:($12/1e3):($13/1e3):($14/1e3):(0.5):xtic(name(0)) \
		with boxerrorbars
}
unset multiplot
