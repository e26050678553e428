# ratio.awk - hit ratios of ratio.sh and its verdict: awk -f lib.awk -f ratio.awk RUNS
#
# In:  LOAD ROUND READS HITS LRU_READS LRU_HITS NS BESIDE_NS ERRORS, with tabs
# Out: the report; and into the file `results`, for plots: LOAD NAME CACHED LOWEST HIGHEST LRU, in
#   percent
BEGIN {
	FS = OFS = "\t"
	nr_loads = split("uniform zipf scan", load, " ")
	name["uniform"] = "uniform"
	name["zipf"] = "zipf:1.0"
	name["scan"] = "zipf:1.0 beside a scan"
}

{
	hit = $3 ? $4 / $3 * 100 : 0
	best = $5 ? $6 / $5 * 100 : 0
	hits[$1] = hits[$1] " " hit
	lru[$1] = lru[$1] " " best
	over[$1] = over[$1] " " hit - best
	if ($3 > $5 + 1 || $5 > $3 + 1)
		notes = notes sprintf("NOTE: %s, round %d: cached counted %d reads, the trace has %d.\n", $1, $2, $3, $5)
	if ($7 > $8 * 1.1 || $8 > $7 * 1.1)
		notes = notes sprintf("NOTE: %s, round %d: the two loads took %.1f and %.1f s; their traces may not be " \
			"merged in the order of time.\n", $1, $2, $7 / 1e9, $8 / 1e9)
}

function line(l,	hit, best)
{
	best = median(lru[l])
	hit = median(hits[l])
	printf "%-24s | %8.2f  %6.2f-%-6.2f | %9.2f | %+8.2f\n", name[l], hit, low, high, best,
		median(over[l])
	print l, name[l], hit, low, high, best >results
}

END {
	print "load", "name", "cached", "low", "high", "lru" >results
	printf "%-24s | %8s  %-13s | %9s | %8s\n", "hits in percent of reads", "cached", "low-high",
		"exact LRU", "points"
	for (i = 1; i <= nr_loads; i++)
		line(load[i])
	print ""
	printf "%s", notes
	for (i = 1; i <= nr_loads; i++) {
		l = load[i]
		m = median(over[l])
		if (l == "scan")
			wanted(name[l] ": more hits than an exact LRU",
				sprintf("%+.2f points", m), m > 0)
		else
			wanted(name[l] ": at most 2 points below an exact LRU",
				sprintf("%+.2f points", m), m >= -2)
	}
}
