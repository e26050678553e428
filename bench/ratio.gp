# ratio.gp - the plot of bench/ratio.sh: gnuplot -e "data='results.tsv'; out='FOLDER'" ratio.gp
#
# ratio.png: what cached and an exact LRU hit in each load; bars show the lowest and the highest
# round. data is the table whose columns ratio.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 700,480 font "sans,10"
set title "4 KiB reads, set eight times the cache"
set style fill solid 0.6
set grid ytics
set key below
set boxwidth 0.35
set yrange [0:100]
set xrange [-0.6:2.6]
set ylabel "hits, percent of the reads"
set output out."/ratio.png"
plot data every ::1 using ($0-0.18):3:4:5:(0.35):xtic(2) with boxerrorbars title "cached", \
	data every ::1 using ($0+0.18):6 with boxes title "exact LRU"
