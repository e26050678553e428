# reactors.awk - the table of reactors.sh, and its verdict: awk -f lib.awk -f reactors.awk RUNS
#
# In:  SYSTEM RW ROUND IOPS MEAN_NS ERRORS, with tabs
# Out: the report; and into the file `results`, for plots: SYSTEM RW IOPS LOW HIGH MEAN_NS
BEGIN {
	FS = OFS = "\t"
	nr = split("pair pairs shared one2 one1 two1", sys, " ")
	split("read write", rws, " ")
	name["pair"] = "a pair on A"
	name["pairs"] = "two pairs, on A and B"
	name["shared"] = "two reactors, two clients"
	name["one2"] = "one reactor, two clients"
	name["one1"] = "one reactor, one client on B"
	name["two1"] = "two reactors, one client on B"
}

{
	iops[$1, $2] = iops[$1, $2] " " $4
	mean[$1, $2] = mean[$1, $2] " " $5
	keep($1 SUBSEP $2, $3, $4)
}

function cell(s, rw,	m, l, h)
{
	m = median(iops[s, rw])
	l = low
	h = high
	print s, rw, m, l, h, median(mean[s, rw]) >results
	return sprintf("%7.0fk %5.0f-%-5.0f %6.1f us", m / 1e3, l / 1e3, h / 1e3,
		median(mean[s, rw]) / 1e3)
}

function ratio(s, t, rw)
{
	return median(by_round(s SUBSEP rw, t SUBSEP rw))
}

function verdict(rw,	r)
{
	r = ratio("pairs", "pair", rw)
	wanted(rw "s, two pairs, each on a CPU: at least 1.7 of one pair on one CPU",
		sprintf("%.2f", r), r >= 1.7)
	r = ratio("shared", "pair", rw)
	wanted(rw "s, one cache with two reactors and two clients: at least 1.7 of one pair on one CPU", sprintf("%.2f", r), r >= 1.7)
	r = ratio("shared", "one2", rw)
	wanted(rw "s, two clients: two reactors at least 1.0 of one", sprintf("%.2f", r), r >= 1)
	r = ratio("two1", "one1", rw)
	wanted(rw "s, one client: two reactors at least 1.0 of one", sprintf("%.2f", r), r >= 1)
}

END {
	print "system", "rw", "iops", "low", "high", "mean_ns" >results
	printf "%-30s | %-31s | %s\n", "IOPS, low-high, mean latency", "read", "write"
	for (i = 1; i <= nr; i++)
		printf "%-30s | %s | %s\n", name[sys[i]], cell(sys[i], "read"),
			cell(sys[i], "write")
	print ""
	for (w = 1; w <= 2; w++)
		verdict(rws[w])
}
