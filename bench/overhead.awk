# overhead.awk - ratios and differences of overhead.sh, and its verdict: awk -f lib.awk -f
# overhead.awk RUNS
#
# In:  SYSTEM RW DEPTH ROUND IOPS MEAN_NS P99_NS ERRORS, with tabs; `alone` before `cached`
# Out: the report; and into the file `results`, for plots: RW DEPTH ALONE_IOPS CACHED_IOPS RATIO
#   LOWEST HIGHEST ALONE_NS CACHED_NS DIFFERENCE_NS LOWEST HIGHEST, of which IOPS and ns are medians
BEGIN {
	FS = OFS = "\t"
	nr_rws = split("read write", rws, " ")
	nr_depths = split("1 16", depths, " ")
}

{
	k = $2 SUBSEP $3
	iops[$1, k] = iops[$1, k] " " $5
	mean[$1, k] = mean[$1, k] " " $6
	if ($1 == "alone") {
		alone_iops[k, $4] = $5
		alone_mean[k, $4] = $6
		next
	}
	ratio[k] = ratio[k] " " (alone_iops[k, $4] ? $5 / alone_iops[k, $4] : 0)
	over[k] = over[k] " " $6 - alone_mean[k, $4]
}

function line(rw, depth,	k, a, c, a_ns, c_ns, r, r_low, r_high, d)
{
	k = rw SUBSEP depth
	a = median(iops["alone", k])
	c = median(iops["cached", k])
	a_ns = median(mean["alone", k])
	c_ns = median(mean["cached", k])
	r = median(ratio[k])
	r_low = low
	r_high = high
	d = median(over[k])
	printf "%-6s %5d | %8d %8d | %5.3f  %.3f-%.3f ", rw, depth, a, c, r, r_low, r_high
	printf "| %10.1f %10.1f | %+7.1f  %+.1f to %+.1f\n", a_ns / 1e3, c_ns / 1e3, d / 1e3,
		low / 1e3, high / 1e3
	print rw, depth, a, c, r, r_low, r_high, a_ns, c_ns, d, low, high >results
}

function verdict(rw,	r, d)
{
	r = median(ratio[rw, 16])
	d = median(over[rw, 1])
	wanted(rw "s, depth 16: a rate of at least 0.95 of the store alone",
		sprintf("%.3f", r), r >= 0.95)
	wanted(rw "s, depth 1: less than 10 us above the store alone", sprintf("%+.1f us", d / 1e3),
		d < 10000)
}

END {
	print "rw", "depth", "alone_iops", "cached_iops", "ratio", "low", "high", "alone_ns",
		"cached_ns", "over_ns", \
		"low_ns", "high_ns" >results
	printf "%-12s | %17s | %-18s | %21s | %s\n", "", "IOPS", "ratio  low-high",
		"mean latency, us", \
		"difference  low to high"
	printf "%-6s %5s | %8s %8s | %-18s | %10s %10s |\n", "", "depth", "alone", "cached", "",
		"alone", "cached"
	for (j = 1; j <= nr_depths; j++)
		for (i = 1; i <= nr_rws; i++)
			line(rws[i], depths[j])
	print ""
	for (i = 1; i <= nr_rws; i++)
		verdict(rws[i])
}
