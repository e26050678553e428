# overhead.gp - the plot of bench/overhead.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# overhead.gp
#
# overhead.png: rates to that of the store alone, and what is added to its latency; bars show the
# lowest and the highest round. data is the table whose columns overhead.awk names in its first
# line.
set datafile separator "\t"
set terminal pngcairo size 900,420 font "sans,10"
set style fill solid 0.6
set grid ytics
set boxwidth 0.5
set xrange [-0.6:3.6]
unset key
name(x) = sprintf("%s\ndepth %s", strcol(1), strcol(2))
set output out."/overhead.png"
set multiplot layout 1,2 title "a cache without hits over a store of 1 ms"
set yrange [0:*]
set title "rate, to the store alone"
plot data every ::1 using 0:5:6:7:(0.5):xtic(name(0)) with boxerrorbars, 1 with lines
set yrange [*:*]
set title "mean latency, us above the store alone"
plot data every ::1 using 0:($10/1e3):($11/1e3):($12/1e3):(0.5):xtic(name(0)) \
	with boxerrorbars
unset multiplot
