# hit.gp - plots of bench/hit.sh: gnuplot -e "data='results.tsv'; out='FOLDER'" hit.gp
#
# iops.png: 4 KiB blocks, one thread, by depth; bars show the slowest and the fastest run.
# bandwidth.png: depth 16, one thread, by block size, beside what one core copies without requests.
# Of loans, lines are made where they were measured.
# data is a table of medians whose columns hit_medians.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 1100,480 font "sans,10"
set style data linespoints
set grid ytics
set key top left
set yrange [0:*]
set logscale x 2

# The rows of one thread of a system for which awk's condition `only` is true.
rows(who, rw, only) = sprintf("<awk -F '\\t' '$1 == \"%s\" && $2 == \"%s\" && $5 == 1 && %s' %s | sort -t '\t' -k3,3n -k4,4n", who, rw, only, data)
systems = "limit cached volume limitloan cachedloan volumeloan"
titles = "'bare limit' cached 'volumed + cached' 'bare limit, loan' 'cached, loan' 'volumed + cached, loan'"
lines = system("grep -c loan ".data) + 0 > 0 ? 6 : 3
deepest = system("awk -F '\\t' 'NR > 1 && $4 > d { d = $4 } END { print d + 0 }' ".data)

set output out."/iops.png"
set multiplot layout 1,2 title "4 KiB hits, one thread"
set xlabel "I/Os in flight"
set ylabel "million IOPS"
set xrange [0.8:deepest * 1.25]
do for [rw in "read write"] {
	set title rw
	plot for [i=1:lines] rows(word(systems, i), rw, "$3 == \"4k\"") \
		using 4:($6/1e6):($7/1e6):($8/1e6) with yerrorlines linewidth 2 title word(titles, i)
}
unset multiplot

set output out."/bandwidth.png"
set multiplot layout 1,2 title "hits by copy, depth 16, one thread"
set xlabel "block size, KiB"
set ylabel "GiB/s"
set xrange [3.2:80]
do for [rw in "read write"] {
	set title rw
	plot for [i=1:3] rows(word(systems, i), rw, "$4 == 16") \
		using ($3 + 0):($9/2**30) linewidth 2 title word(titles, i), \
		rows("memory", rw, "$4 == 16") using ($3 + 0):($9/2**30) linewidth 2 title "memory alone"
}
unset multiplot
