# headline.awk - the report of headline.sh (see lib.awk, series.awk): keys are SYSTEM RW BS DEPTH.
#
# Variables: sizes, depths; series: the file for the slices
# Points come first, the series behind them.
FNR == NR {
	nr_points = nr_keys
}

function cell(k,	m, r)
{
	m = mid("iops", k)
	r = to_base("iops", k)
	return sprintf("%8.2f %6.*f %6.*f-%-6.*f", m / 1e3, r < 10 ? 2 : 0, r,
		low < 10 ? 2 : 0, low, high < 10 ? 2 : 0, high)
}

function row(rw, bs, d,	p, s)
{
	p = " " rw " " bs " " d
	printf "%-5s %4s %5d | %8.2f %7.0f", rw, bs, d, mid("iops", "alone" p) / 1e3,
		mid("mean_ns", "alone" p) / 1e3
	for (s = 1; s <= nr_systems; s++)
		printf " | %s", cell(system_of[s] p)
	print ""
}

function points(	w, i, j, s)
{
	printf "%-16s | %-16s", "points", "alone"
	for (s = 1; s <= nr_systems; s++)
		printf " | %-29s", name[system_of[s]]
	printf "\n%-5s %4s %5s | %8s %7s", "", "bs", "depth", "K IOPS", "us"
	for (s = 1; s <= nr_systems; s++)
		printf " | %8s %6s %-13s", "K IOPS", "times", "  low-high"
	print ""
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (j = 1; j <= nr_depths; j++)
				row(rws[w], size[i], depth[j])
	printf "\nOver memd, 4k, depth 16, fits, write-back: reads %.0f, writes %.0f K IOPS.\n",
		mid("iops", "memd read 4k 16") / 1e3, mid("iops", "memd write 4k 16") / 1e3
	print "Published, over disks: 4k writes 100 times the store alone and reads 50 times at the"
	print "peak; with a set twice the cache, reads in write-through 1.25 times, and in write-back"
	print "less than the store alone.\n"
}

# A store that is fast enough is no measure of the cache any more: then its own rate over memd is.
function peak(rw, bar, fast,	p, alone, m, what)
{
	p = " " rw " 4k 16"
	alone = mid("iops", "alone" p)
	m = to_base("iops", "fitsback" p)
	what = "peak, 4k " rw "s, depth 16"
	if (alone <= fast) {
		at_least(what, m, bar, "%.0f", "times the store alone")
		return
	}
	what = sprintf("%s, over a store of %.1f K/s (%.0f times that)", what, alone / 1e3, m)
	at_least(what, ratio("iops", "fitsback" p, "memd" p), 0.8, "%.2f", "of the rate over memd")
}

# least(SYSTEM, RW, [BS]): the least of a system's gains, with its place
function least(s, rw, bs,	i, j, keys, r, word)
{
	for (i = 1; i <= nr_sizes; i++)
		for (j = 1; j <= nr_depths; j++)
			if (!bs || bs == size[i])
				keys = keys (keys ? "," : "") s " " rw " " size[i] " " depth[j]
	r = smallest(keys)
	split(worst, word, " ")
	where = word[3] " depth " word[4]
	return r
}

function nowhere_less(s, rw,	m)
{
	m = least(s, rw)
	wanted(name[s] ", " rw "s: nowhere less than 1.0 of the store alone",
		sprintf("%.2f (%s)", m, where), m >= 1)
}

END {
	nr_sizes = split(sizes, size, " ")
	nr_depths = split(depths, depth, " ")
	split("read write", rws, " ")
	nr_systems = names("fitsback=fits, write-back|fitsthrough=fits, write-through|" \
		"twiceback=twice, write-back|twicethrough=twice, write-through", system_of)
	nr_loads = split("random alone,random back,random through,streams alone,streams back,streams through", load, ",")
	split("0 1.00 0.95 0 1.30 0", whole, " ")
	split("0 0.95 0 0 0.95 0", slice, " ")
	print tabs("store pattern system slice bytes_a_second ratio") >series
	for (i = 1; i <= nr_loads; i++)
		series_rows("sosd " load[i], series)
	nr_keys = nr_points
	write_results("system rw bs depth", "bytes mean_ns", 1)
	points()
	series_head()
	for (i = 1; i <= nr_loads; i++)
		series_line("sosd " load[i])
	series_foot()
	peak("write", 200, 5000)
	peak("read", 50, 20000)
	m = least("twicethrough", "read", "4k")
	wanted(name["twicethrough"] ", 4k reads: at least the published 1.25 of the store alone",
		sprintf("%.2f (%s)", m, where), m >= 1.25)
	nowhere_less("twicethrough", "read")
	nowhere_less("twiceback", "read")
	nowhere_less("twiceback", "write")
	for (i = 1; i <= nr_loads; i++)
		series_bar("sosd " load[i], whole[i], slice[i])
}
