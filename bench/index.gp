# index.gp - the plot of bench/index.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# index.gp
#
# index.png: the rate with so many objects to that with the fewest; bars show the lowest and the
# highest round. data is the table whose columns index.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 700,480 font "sans,10"
set title "the same pages in more and smaller objects, 4 KiB, depth 16"
set logscale x 2
set grid ytics
set key below
set yrange [0:*]
set xlabel "objects"
set ylabel "rate, to that with the fewest objects"
set output out."/index.png"
kinds = "read write cold coldwrite slow"
titles = "'hits, reads' 'hits, writes' 'cold cache, reads' 'cold cache, writes' 'cold cache over 1 ms, reads'"
rows(kind) = sprintf("<awk -F '\\t' '$1 == \"%s\"' %s", kind, data)
plot for [i=1:5] rows(word(kinds, i)) using 2:4:5:6 with yerrorlines linewidth 2 title word(titles, i)
