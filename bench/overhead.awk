# overhead.awk - the report of overhead.sh (see lib.awk).
BEGIN {
	split("read write", rws, " ")
	split("1 16", depths, " ")
}

# line(CACHED, ALONE, WORDS): both systems' keys end with the words
function line(cached, alone, words,	c, a, c_iops, a_iops, c_ns, a_ns, r, r_low, r_high, d, p)
{
	c = cached " " words
	a = alone " " words
	split(words, p, " ")
	a_iops = mid("iops", a)
	c_iops = mid("iops", c)
	a_ns = mid("mean_ns", a)
	c_ns = mid("mean_ns", c)
	r = ratio("iops", c, a)
	r_low = low
	r_high = high
	d = above("mean_ns", c, a)
	printf "%-6s %5d | %8d %8d | %6.4g  %-14s ", p[1], p[2], a_iops, c_iops, r,
		sprintf("%.4g-%.4g", r_low, r_high)
	printf "| %10.1f %10.1f | %+8.1f  %+.1f to %+.1f\n", a_ns / 1e3, c_ns / 1e3, d / 1e3,
		low / 1e3, high / 1e3
	print cached, alone, p[1], p[2], a_iops, c_iops, r, r_low, r_high, a_ns, c_ns, d, low,
		high >results
}

function table(title, cached, alone,	w, j)
{
	print title
	printf "%-12s | %17s | %-22s | %21s | %s\n", "", "IOPS", " ratio  low-high",
		"mean latency, us", "difference  low to high"
	printf "%-6s %5s | %8s %8s | %-22s | %10s %10s |\n", "", "depth", "alone", "cached", "",
		"alone", "cached"
	for (j = 1; j <= 2; j++)
		for (w = 1; w <= 2; w++)
			line(cached, alone, rws[w] " " depths[j])
	print ""
}

# Bars: the rate at depth 16, and what is added at depth 1, in us.
function verdict(what, cached, alone, us,	w, r, d)
{
	for (w = 1; w <= 2; w++) {
		r = ratio("iops", cached " " rws[w] " 16", alone " " rws[w] " 16")
		wanted(rws[w] "s, " what ", depth 16: a rate of at least 0.95 of the store alone",
			sprintf("%.3f", r), r >= 0.95)
		d = above("mean_ns", cached " " rws[w] " 1", alone " " rws[w] " 1")
		wanted(rws[w] "s, " what ", depth 1: less than " us " us above the store alone",
			sprintf("%+.1f us", d / 1e3), d < us * 1e3)
	}
}

END {
	print tabs("cached alone rw depth alone_iops cached_iops ratio low high " \
		"alone_ns cached_ns over_ns low_ns high_ns") >results
	table("no hits, over a store of 1 ms", "none", "alone")
	table("all hits, over a store of 1 ms", "all", "alone")
	table("all hits, to a store in memory", "all", "fast")
	verdict("no hits", "none", "alone", 10)
	verdict("all hits, to a store in memory", "all", "fast", 1)
}
