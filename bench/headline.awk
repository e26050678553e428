# headline.awk - the tables of headline.sh, and its verdict: awk -f lib.awk -f series.awk -f
# headline.awk RUNS SUSTAINED SLICES
#
# In:  RUNS, with tabs, `alone` first: SYSTEM RW BS DEPTH ROUND IOPS BYTES MEAN_NS ERRORS;
#      SUSTAINED and SLICES, as series.awk says
# Out: the report; and for plots, into the file `results`, SYSTEM RW BS DEPTH IOPS LOW HIGH BYTES
#      MEAN_NS RATIO LOWEST HIGHEST, where the ratio is to `alone`; and into `series`, STORE PATTERN
#      SYSTEM SLICE BYTES_A_SECOND RATIO
# Variables: sizes, depths, results, series
BEGIN {
	FS = OFS = "\t"
	nr_sizes = split(sizes, size, " ")
	nr_depths = split(depths, depth, " ")
	split("read write", rws, " ")
	nr_systems = split("fitsback fitsthrough twiceback twicethrough", system_of, " ")
	title["fitsback"] = "fits, write-back"
	title["fitsthrough"] = "fits, write-through"
	title["twiceback"] = "twice, write-back"
	title["twicethrough"] = "twice, write-through"
	name["alone"] = "the store alone"
	name["back"] = "write-back"
	name["through"] = "write-through"
	nr_loads = split("random-alone random-back random-through " \
		"streams-alone streams-back streams-through", load, " ")
	whole_bar["random-back"] = "1.00"
	whole_bar["random-through"] = "0.95"
	whole_bar["streams-back"] = "1.30"
	slice_bar["random-back"] = slice_bar["streams-back"] = "0.95"
}

# ---- reading ----

FNR == 1 {
	file++
}

file == 2 {
	series_run()
	next
}

file == 3 {
	series_slice()
	next
}

{
	p = $2 SUBSEP $3 SUBSEP $4
	k = $1 SUBSEP p
	if (!(k in iops))
		order[++nr] = $1 OFS $2 OFS $3 OFS $4
	iops[k] = iops[k] " " $6
	bytes[k] = bytes[k] " " $7
	mean[k] = mean[k] " " $8
	rate[k, $5] = $6
	if (rate["alone", p, $5])
		gain[k] = gain[k] " " $6 / rate["alone", p, $5]
	if ($1 == "memd" && rate["fitsback", p, $5])
		of_memd[p] = of_memd[p] " " rate["fitsback", p, $5] / $6
}

# ---- writing ----

function write_results(	i, n, k, m, l, h, r)
{
	print "system", "rw", "bs", "depth", "iops", "low", "high", "bytes", "mean_ns", "ratio", \
		"lowest", "highest" >results
	for (i = 1; i <= nr; i++) {
		split(order[i], n, OFS)
		k = n[1] SUBSEP n[2] SUBSEP n[3] SUBSEP n[4]
		m = median(iops[k])
		l = low
		h = high
		r = (k in gain) ? median(gain[k]) : 0
		print order[i], m, l, h, median(bytes[k]), median(mean[k]), r, r ? low : 0, \
			r ? high : 0 >results
	}
	print "store", "pattern", "system", "slice", "bytes_a_second", "ratio" >series
	for (i = 1; i <= nr_loads; i++)
		series_rows("sosd", load[i], series)
}

function cell(k,	m, r)
{
	m = median(iops[k])
	r = median(gain[k])
	return sprintf("%8.2f %6.*f %6.*f-%-6.*f", m / 1e3, r < 10 ? 2 : 0, r,
		low < 10 ? 2 : 0, low, high < 10 ? 2 : 0, high)
}

function row(rw, bs, d,	p, s)
{
	p = rw SUBSEP bs SUBSEP d
	printf "%-5s %4s %5d | %8.2f %7.0f", rw, bs, d, median(iops["alone", p]) / 1e3,
		median(mean["alone", p]) / 1e3
	for (s = 1; s <= nr_systems; s++)
		printf " | %s", cell(system_of[s] SUBSEP p)
	print ""
}

function points(	w, i, j, s)
{
	printf "%-16s | %-16s", "points", "alone"
	for (s = 1; s <= nr_systems; s++)
		printf " | %-29s", title[system_of[s]]
	printf "\n%-5s %4s %5s | %8s %7s", "", "bs", "depth", "K IOPS", "us"
	for (s = 1; s <= nr_systems; s++)
		printf " | %8s %6s %-13s", "K IOPS", "times", "  low-high"
	print ""
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (j = 1; j <= nr_depths; j++)
				row(rws[w], size[i], depth[j])
	printf "\nOver memd, 4k, depth 16, fits, write-back: reads %.0f, writes %.0f K IOPS.\n",
		median(iops["memd", "read", "4k", 16]) / 1e3,
		median(iops["memd", "write", "4k", 16]) / 1e3
	print "Published, over disks: 4k writes 100 times the store alone and reads 50 times at the"
	print "peak; with a set twice the cache, reads in write-through 1.25 times, and in write-back"
	print "less than the store alone.\n"
}

# A store that is fast enough is no measure of the cache any more: then its own rate over memd is.
function peak(rw, bar, fast,	p, a, m, what)
{
	p = rw SUBSEP "4k" SUBSEP 16
	a = median(iops["alone", p])
	m = median(gain["fitsback", p])
	what = "peak, 4k " rw "s, depth 16"
	if (a <= fast) {
		wanted(what ": at least " bar " times the store alone", sprintf("%.0f", m),
			m >= bar)
		return
	}
	what = sprintf("%s, over a store of %.1f K/s (%.0f times that)", what, a / 1e3, m)
	m = median(of_memd[p])
	wanted(what ": at least 0.8 of the rate over memd", sprintf("%.2f", m), m >= 0.8)
}

# The least of the gains of a system
function least(s, rw, blocks,	i, j, k, m, min)
{
	min = 1e9
	for (i = 1; i <= nr_sizes; i++)
		for (j = 1; j <= nr_depths; j++) {
			k = s SUBSEP rw SUBSEP size[i] SUBSEP depth[j]
			m = median(gain[k])
			if (m < min && (blocks == "" || blocks == size[i])) {
				min = m
				where = size[i] " depth " depth[j]
			}
		}
	return min
}

function nowhere_less(s, rw, bar,	m)
{
	m = least(s, rw, "")
	wanted(title[s] ", " rw "s: nowhere less than " bar " of the store alone",
		sprintf("%.2f (%s)", m, where), m >= bar + 0)
}

END {
	write_results()
	points()
	series_head()
	for (i = 1; i <= nr_loads; i++)
		series_line("sosd", load[i])
	series_foot()
	peak("write", 200, 5000)
	peak("read", 50, 20000)
	m = least("twicethrough", "read", "4k")
	wanted(title["twicethrough"] ", 4k reads: at least the published 1.25 of the store alone",
		sprintf("%.2f (%s)", m, where), m >= 1.25)
	nowhere_less("twicethrough", "read", "1.0")
	for (w = 1; w <= 2; w++)
		nowhere_less("twiceback", rws[w], "1.0")
	for (i = 1; i <= nr_loads; i++)
		series_verdict("sosd", load[i])
}
