# reactors.gp - the plot of bench/reactors.sh: gnuplot -e "data='results.tsv'; out='FOLDER'"
# reactors.gp
#
# reactors.png: each system, reads and writes; bars show the slowest and the fastest run.
# data is the table whose columns reactors.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 800,480 font "sans,10"
set title "4 KiB hits by copy on two CPUs, 16 in flight a client"
set style data histogram
set style histogram errorbars gap 1 linewidth 1
set style fill solid 0.6
set grid ytics
set yrange [0:*]
set ylabel "million IOPS"
set output out."/reactors.png"
rows(rw) = sprintf("<awk -F '\\t' '$2 == \"%s\"' %s", rw, data)
plot rows("read") using ($3/1e6):($4/1e6):($5/1e6):xtic(1) title "read", rows("write") using ($3/1e6):($4/1e6):($5/1e6) title "write"
