# ratio.awk - the report of ratio.sh (see lib.awk). results.tsv has percent.
{
	hit = $3 ? $4 / $3 * 100 : 0
	best = $5 ? $6 / $5 * 100 : 0
	all["hit", $1] = all["hit", $1] " " hit
	all["lru", $1] = all["lru", $1] " " best
	all["over", $1] = all["over", $1] " " hit - best
	if ($3 > $5 + 1 || $5 > $3 + 1)
		notes = notes sprintf("NOTE: %s, round %d: cached counted %d reads, the trace has %d.\n", $1, $2, $3, $5)
	if ($7 > $8 * 1.1 || $8 > $7 * 1.1)
		notes = notes sprintf("NOTE: %s, round %d: the two loads took %.1f and %.1f s; their traces may not be " \
			"merged in the order of time.\n", $1, $2, $7 / 1e9, $8 / 1e9)
}

function line(l,	hit, best)
{
	best = mid("lru", l)
	hit = mid("hit", l)
	printf "%-24s | %8.2f  %6.2f-%-6.2f | %9.2f | ", name[l], hit, low, high, best
	print l, name[l], hit, low, high, best >results
	printf "%+8.2f\n", mid("over", l)
}

END {
	nr_loads = names("uniform=uniform|zipf=zipf:1.0|scan=zipf:1.0 beside a scan", load)
	print tabs("load name cached low high lru") >results
	printf "%-24s | %8s  %-13s | %9s | %8s\n", "hits in percent of reads", "cached", "low-high",
		"exact LRU", "points"
	for (i = 1; i <= nr_loads; i++)
		line(load[i])
	printf "\n%s", notes
	for (i = 1; i <= nr_loads; i++) {
		m = mid("over", load[i])
		if (load[i] == "scan")
			wanted(name[load[i]] ": more hits than an exact LRU",
				sprintf("%+.2f points", m), m > 0)
		else
			wanted(name[load[i]] ": at most 2 points below an exact LRU",
				sprintf("%+.2f points", m), m >= -2)
	}
}
