# overhead.awk - ratios and differences of overhead.sh, and its verdict: awk -f lib.awk -f
# overhead.awk RUNS
#
# In:  SYSTEM RW DEPTH ROUND IOPS MEAN_NS ERRORS, with tabs
# Out: the report; and into the file `results`, for plots: CACHED ALONE RW DEPTH ALONE_IOPS
#   CACHED_IOPS RATIO LOWEST HIGHEST ALONE_NS CACHED_NS DIFFERENCE_NS LOWEST HIGHEST, of which CACHED
#   and ALONE are systems, IOPS and ns medians
BEGIN {
	FS = OFS = "\t"
	nr_rws = split("read write", rws, " ")
	nr_depths = split("1 16", depths, " ")
}

{
	k = $1 SUBSEP $2 SUBSEP $3
	iops[k] = iops[k] " " $5
	mean[k] = mean[k] " " $6
	keep(k, $4, $5)
	mean_at[k, $4] = $6
}

# What is added to the mean latency, of each round: for median().
function over(c, a,	i, list)
{
	for (i = 1; i <= nr_rounds; i++)
		list = list " " (mean_at[c, round[i]] - mean_at[a, round[i]])
	return list
}

function line(cached, alone, rw, depth,	c, a, c_iops, a_iops, c_ns, a_ns, r, r_low, r_high, d)
{
	c = cached SUBSEP rw SUBSEP depth
	a = alone SUBSEP rw SUBSEP depth
	a_iops = median(iops[a])
	c_iops = median(iops[c])
	a_ns = median(mean[a])
	c_ns = median(mean[c])
	r = median(by_round(c, a))
	r_low = low
	r_high = high
	d = median(over(c, a))
	printf "%-6s %5d | %8d %8d | %6.4g  %-14s ", rw, depth, a_iops, c_iops, r,
		sprintf("%.4g-%.4g", r_low, r_high)
	printf "| %10.1f %10.1f | %+8.1f  %+.1f to %+.1f\n", a_ns / 1e3, c_ns / 1e3, d / 1e3,
		low / 1e3, high / 1e3
	print cached, alone, rw, depth, a_iops, c_iops, r, r_low, r_high, a_ns, c_ns, d, low,
		high >results
}

function table(title, cached, alone,	i, j)
{
	print title
	printf "%-12s | %17s | %-22s | %21s | %s\n", "", "IOPS", " ratio  low-high",
		"mean latency, us", \
		"difference  low to high"
	printf "%-6s %5s | %8s %8s | %-22s | %10s %10s |\n", "", "depth", "alone", "cached", "",
		"alone", "cached"
	for (j = 1; j <= nr_depths; j++)
		for (i = 1; i <= nr_rws; i++)
			line(cached, alone, rws[i], depths[j])
	print ""
}

# Bars: the rate at depth 16, and what is added at depth 1, in us.
function verdict(what, cached, alone, rw, us,	r, d)
{
	r = median(by_round(cached SUBSEP rw SUBSEP 16, alone SUBSEP rw SUBSEP 16))
	d = median(over(cached SUBSEP rw SUBSEP 1, alone SUBSEP rw SUBSEP 1))
	wanted(rw "s, " what ", depth 16: a rate of at least 0.95 of the store alone",
		sprintf("%.3f", r), r >= 0.95)
	wanted(rw "s, " what ", depth 1: less than " us " us above the store alone",
		sprintf("%+.1f us", d / 1e3), d < us * 1e3)
}

END {
	print "cached", "alone", "rw", "depth", "alone_iops", "cached_iops", "ratio", "low", "high",
		"alone_ns", "cached_ns", "over_ns", "low_ns", "high_ns" >results
	table("no hits, over a store of 1 ms", "none", "alone")
	table("all hits, over a store of 1 ms", "all", "alone")
	table("all hits, to a store in memory", "all", "fast")
	for (i = 1; i <= nr_rws; i++)
		verdict("no hits", "none", "alone", rws[i], 10)
	for (i = 1; i <= nr_rws; i++)
		verdict("all hits, to a store in memory", "all", "fast", rws[i], 1)
}
