# switches.gp - the plot of bench/switches.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# switches.gp
#
# switches.png: the slowest read and write of each 100 ms of the first round, in which one switch of
# the policy falls. data is the table whose columns switches.sh names in its first line.
set datafile separator "\t"
set terminal pngcairo size 900,600 font "sans,10"
set grid
set logscale y
set xlabel "seconds"
set ylabel "ms"
set output out."/switches.png"
set multiplot layout 2,1 title "the policy is switched every 100 ms: the slowest request of each 100 ms"
do for [load in "small mixed"] {
	set title load
	plot data using (strcol(1) eq load ? $2 : NaN):($4/1e6) with lines title "reads", \
		data using (strcol(1) eq load ? $2 : NaN):($5/1e6) with lines title "writes", \
		20 with lines dashtype 2 title "20 ms"
}
unset multiplot
