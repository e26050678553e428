# literature.gp - the plot of bench/literature.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# literature.gp
#
# literature.png: bandwidth by block size with two threads and 4 in flight, over memd and over
# filed. data is the table whose columns literature.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 1100,760 font "sans,10"
set style data linespoints
set grid ytics
set key top left
set logscale xy
set xrange [3.2:80]
set xtics (4, 16, 64)
set xlabel "block size, KiB"
set ylabel "MB/s"
systems = "alone fits twice"
titles = "'store alone' 'set fits into the cache' 'set twice the cache'"
rows(st, sy, rw) = sprintf("<awk -F '\\t' '$1 == \"%s\" && $2 == \"%s\" && $3 == \"%s\" && $5 == 4 && $6 == 2' %s | sort -t '\t' -k4,4n", st, sy, rw, data)
set output out."/literature.png"
set multiplot layout 2,2 title "two threads, 4 in flight each"
do for [st in "memd filed"] {
	do for [rw in "read write"] {
		set title rw." over ".st
		plot for [i=1:3] rows(st, word(systems, i), rw) using ($4 + 0):($10/1e6) linewidth 2 title word(titles, i)
	}
}
unset multiplot
