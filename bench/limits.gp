# limits.gp - the plot of bench/limits.sh: gnuplot -e "data='results.tsv'; out='FOLDER'" limits.gp
#
# limits.png: 4 KiB reads, each step at its depths; bars show the slowest and the fastest run.
# data is the table whose columns limits.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 800,480 font "sans,10"
set title "what a hit is made of, 4 KiB reads, one client"
set style data linespoints
set grid ytics
set key top left
set logscale xy
set xrange [0.8:80]
set xtics (1, 16, 64)
set xlabel "I/Os in flight"
set ylabel "million a second"
set output out."/limits.png"
steps = "echo lookup loan copy loanall copyall"
titles = "echo lookup 'reference, first line' 'copy, first line' 'reference, all lines' 'copy, all lines'"
rows(step) = sprintf("<awk -F '\\t' '$1 == \"%s\" && $2 == \"read\" && $3 == \"4k\"' %s", step, data)
plot for [i=1:6] rows(word(steps, i)) using 4:($5/1e6):($6/1e6):($7/1e6) with yerrorlines linewidth 2 title word(titles, i)
