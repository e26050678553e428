# limits.awk - the table of limits.sh, and its verdict: awk -f lib.awk -f limits.awk RUNS
#
# In:  STEP RW BS DEPTH ROUND IOPS MEAN_NS P50_NS P99_NS HUGE ERRORS, with tabs
# Out: the report; and into the file `results`, for plots: STEP RW BS DEPTH IOPS LOW HIGH MEAN_NS
#
# What is wanted are the figures of a machine of two cores on which a line of memory comes in about
# 150 ns.
BEGIN {
	FS = OFS = "\t"
	nr_steps = split("chase lines linesany memcpy echo lookup loan loanall copy copyall loansmall copysmall", step, " ")
	name["chase"] = "memory: a line after the other"
	name["lines"] = "memory: first lines of pages"
	name["linesany"] = "memory: any lines"
	name["memcpy"] = "memory: copies, no requests"
	name["echo"] = "echo of a request"
	name["lookup"] = "+ lookup"
	name["loan"] = "+ page reference, first line"
	name["loanall"] = "+ page reference, all lines"
	name["copy"] = "+ copy instead, first line"
	name["copyall"] = "+ copy instead, all lines"
	name["loansmall"] = "reference, first line, no huge pages"
	name["copysmall"] = "copy, first line, no huge pages"
}

{
	k = $1 OFS $2 OFS $3 OFS $4
	if (!(k in iops)) {
		order[++nr] = k
		s = $1 OFS $2 OFS $3
		if (!(s in seen))
			rows[$1, ++nr_rows[$1]] = s
		seen[s] = 1
	}
	iops[k] = iops[k] " " $6
	mean[k] = mean[k] " " $7
	if ($10 == "true" && $1 !~ /small/)
		huge++
	all += $1 !~ /small/
}

function cell(k,	m)
{
	if (!(k in iops))
		return sprintf("%19s", "")
	m = median(iops[k])
	return sprintf("%7.2f %5.2f-%-5.2f", m / 1e6, low / 1e6, high / 1e6)
}

function row(s,	p, k1)
{
	split(s, p, OFS)
	k1 = s OFS 1
	printf "%-37s %-5s %4s | %s | %s | %s | %s\n", name[p[1]], p[2], p[3], cell(k1), cell(s OFS 16), cell(s OFS 64), \
		(k1 in mean) ? sprintf("%5.2f", median(mean[k1]) / 1e3) : ""
}

# at least 0.9 of `there` M/s
function rate(k, there, what,	m)
{
	gsub(" ", OFS, k)
	m = median(iops[k]) / 1e6
	wanted(what ": at least 0.9 of " there " M/s", sprintf("%.2f M/s", m), m >= 0.9 * there)
}

# at most `there` us, and a tenth more
function latency(k, there, what,	m)
{
	gsub(" ", OFS, k)
	m = median(mean[k]) / 1e3
	wanted(what ": at most 1.1 of " there " us", sprintf("%.2f us", m), m <= 1.1 * there)
}

END {
	print "step", "rw", "bs", "depth", "iops", "low", "high", "mean_ns" >results
	for (i = 1; i <= nr; i++) {
		m = median(iops[order[i]])
		l = low
		h = high
		print order[i], m, l, h, median(mean[order[i]]) >results
	}
	printf "%-37s %-5s %4s | %-19s | %-19s | %-19s | %s\n", "M/s  low-high", "", "bs", "depth 1", "depth 16", "depth 64", \
		"us at depth 1"
	for (i = 1; i <= nr_steps; i++)
		for (j = 1; j <= nr_rows[step[i]]; j++)
			row(rows[step[i], j])
	print ""
	if (huge < all)
		print "NOTE: the system gave no huge pages, or not to all runs."
	k = "chase read 4k 16"
	gsub(" ", OFS, k)
	printf "A line of memory comes in %d ns here. Where the wanted figures were taken it came in about 150 ns: that is a third\n" \
		"of what lookup and reference, three lines one after the other, add to an echo there.\n\n", 1e9 / median(iops[k])
	rate("echo read 4k 16", 21, "echo, depth 16")
	latency("echo read 4k 1", 0.27, "echo, depth 1")
	rate("lookup read 4k 16", 16, "lookup, depth 16")
	rate("loan read 4k 16", 13, "reference, depth 16")
	rate("loan read 4k 64", 18, "reference, depth 64")
	latency("loan read 4k 1", 0.73, "reference, depth 1")
	rate("loanall read 4k 16", 2.4, "reference and all lines, depth 16")
	latency("loanall read 4k 1", 1.05, "reference and all lines, depth 1")
	rate("copy read 4k 16", 2.5, "copy, depth 16")
	rate("copyall read 4k 16", 2.0, "copy and all lines, depth 16")
	latency("copy read 4k 1", 1.9, "copy, depth 1")
	rate("copysmall read 4k 16", 1.2, "copy without huge pages, depth 16")
}
