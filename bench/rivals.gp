# rivals.gp - the plot of bench/rivals.sh: gnuplot -e "data='results.tsv'; out='FOLDER'" rivals.gp
#
# rivals.png: reads and writes of each system in memory, with 16 in flight; bars show the slowest
# and the fastest run. data is the table whose columns rivals.awk names in its first line.
set datafile separator "\t"
set terminal pngcairo size 900,480 font "sans,10"
set title "4 KiB at random in memory, 16 in flight"
set style data histogram
set style histogram errorbars gap 1 linewidth 1
set style fill solid 0.6
set logscale y
set grid ytics
set key top right
set xtics rotate by -30
set ylabel "IOPS"
set yrange [1000:*]
set output out."/rivals.png"
ram = "cached|volume|direct|pagecache|nbdkit|nbdkitcache|qemunbd|memcached|redis|rocksdb|leveldb"
rows(rw) = sprintf("<awk -F '\\t' '$1 ~ /^(%s)$/ && $2 == \"%s\" && $3 == 16' %s", ram, rw, data)
plot rows("read") using 4:5:6:xtic(1) title "read", rows("write") using 4:5:6 title "write"
