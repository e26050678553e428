# hit.awk - the tables and the verdict of hit.sh, from the medians of hit_medians.awk: awk -f
# lib.awk -f hit.awk RESULTS
#
# Variables: goal (IOPS), load (load average before the run)
BEGIN {
	FS = "\t"
	split("read write", rws, " ")
	spread_name = "IOPS  low-high %"
}

NR > 1 {
	k = $1 SUBSEP $2 SUBSEP $3 " " $4 " " $5
	iops[k] = $6 ? $6 : 1			# 0 in a run that failed
	lowest[k] = $7
	highest[k] = $8
	mean[k] = $10
	p = $3 " " $4 " " $5
	if (!(p in seen)) {
		seen[p] = 1
		insert(p)
	}
	if ($1 == "limit" && $6) {
		spread += ($8 - $7) / $6
		nr_limits++
	}
}

# Points in the order of size, clients, depth
function rank(p,	n)
{
	split(p, n, " ")
	return (n[1] + 0) * 1e6 + n[3] * 1e3 + n[2]
}

function insert(p,	i)
{
	for (i = ++nr; i > 1 && rank(point[i - 1]) > rank(p); i--)
		point[i] = point[i - 1]
	point[i] = p
}

function cell(k)
{
	return sprintf("%8.0fk %4.0f-%-4.0f", iops[k] / 1000, lowest[k] / iops[k] * 100,
		highest[k] / iops[k] * 100)
}

function to_limit(who, rw, p, data)
{
	return iops[who data, rw, p] / iops["limit" data, rw, p]
}

function line(rw, p, data,	n)
{
	split(p, n, " ")
	printf "%-5s %4s %5d %7d | %19s ", rw, n[1], n[2], n[3],
		cell("limit" data SUBSEP rw SUBSEP p)
	printf "| %19s  %5.2f ", cell("cached" data SUBSEP rw SUBSEP p),
		to_limit("cached", rw, p, data)
	printf "| %19s  %5.2f ", cell("volume" data SUBSEP rw SUBSEP p),
		to_limit("volume", rw, p, data)
	printf "| %6d %6d %7d\n", mean["limit" data, rw, p], mean["cached" data, rw, p],
		mean["volume" data, rw, p]
}

function table(data,	w, i)
{
	printf "%-24s | %19s | %19s %6s | %19s %6s | %21s\n", data == "" ? "by copy" : "by loan",
		"bare limit", "cached", \
		"ratio", "volumed + cached", "ratio", "mean latency, ns"
	printf "%-5s %4s %5s %7s | %19s | %19s %6s | %19s %6s | %6s %6s %7s\n", "", "bs", "depth", \
		"threads", spread_name, spread_name, "", spread_name, "", "limit",
			"cached", "volume"
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr; i++)
			line(rws[w], point[i], data)
	print ""
}

# Of each page that they are lent clients read the first line.
function lines_of(bs, pages)
{
	if (("cachedloan", "read", bs " 16 1") in iops)
		printf "; of loans of %s, depth 16: %.1f", bs,
			iops["cachedloan", "read", bs " 16 1"] * pages / 1e6
}

function lines_table()
{
	printf "first lines of pages, M/s, one core that reads nothing else: %.1f",
		iops["lines", "read", "4k 16 1"] / 1e6
	lines_of("4k", 1)
	lines_of("16k", 4)
	lines_of("64k", 16)
	print "\n"
}

function direct_table(	p, i)
{
	p = "4k 1 1"
	split("cached volume", who, " ")
	print "without a request, 4k read, depth 1"
	for (i = 1; i <= 2; i++)
		printf "  %-6s %s, mean latency %d ns; by loan %s, %d ns\n", who[i],
			cell(who[i] "direct" SUBSEP "read" SUBSEP p), \
			mean[who[i] "direct", "read", p], cell(who[i] "met" SUBSEP "read" SUBSEP p),
				mean[who[i] "met", "read", p]
	print ""
}

# ---- what was wanted ----

function at_least(what, is, bar)
{
	wanted(what ": at least " bar, sprintf("%.3f", is), is >= bar)
}

function copy_bars(rw,	deep, one, got)
{
	deep = "4k 16 1"
	one = "4k 1 1"
	at_least("4k " rw " by copy, depth 16, through cached, to the bare limit",
		to_limit("cached", rw, deep, ""), 0.85)
	at_least("4k " rw " by copy, depth 16, volumed in the path, to that without", \
		iops["volume", rw, deep] / iops["cached", rw, deep], 0.8)
	got = mean["cached", rw, one] / mean["limit", rw, one]
	wanted("4k " rw " by copy, depth 1: latency less than 1.3 of the bare limit's",
		sprintf("%.2f", got), got < 1.3)
	got = iops["volume", rw, deep]
	wanted("4k " rw " by copy, depth 16, through volumed and cached: half of the bare limit or 1.0 M/s", sprintf("%.2f M/s", got / 1e6), \
		got >= goal || got >= iops["limit", rw, deep] / 2)
}

function size_bars(rw,	i, n, what)
{
	for (i = 1; i <= nr; i++) {
		split(point[i], n, " ")
		if (n[1] == "4k" || n[2] != 16 || n[3] != 1)
			continue
		what = n[1] " " rw " by copy, depth 16, through cached, to the bandwidth of memory by copy"
		at_least(what, iops["cached", rw, point[i]] / iops["memory", rw, point[i]], 0.9)
		at_least(what ", its pages anywhere as those of the cache",
			iops["cached", rw, point[i]] / iops["memoryscatter", rw, point[i]], 0.9)
	}
}

# Larger blocks by loan, in requests a second, to those of 4 KiB.
function loan_size_bar(rw, bs, bar)
{
	if (("cachedloan", rw, bs " 16 1") in iops && ("cachedloan", rw, "4k 16 1") in iops)
		at_least(bs " " rw " by loan, depth 16, through cached, to the requests a second of 4k", \
			iops["cachedloan", rw, bs " 16 1"] / iops["cachedloan", rw, "4k 16 1"], bar)
}

function loan_bars(rw,	deep, one, got)
{
	deep = "4k 16 1"
	one = "4k 1 1"
	if (!(("cachedloan", rw, deep) in iops)) {
		wanted("4k " rw " by loan, depth 16, through cached, to the bare limit: at least 0.6", "not there", 0)
		return
	}
	at_least("4k " rw " by loan, depth 16, through cached, to the bare limit",
		to_limit("cached", rw, deep, "loan"), 0.6)
	got = iops["cachedloan", rw, deep] / iops["cached", rw, deep]
	wanted("4k " rw " by loan, depth 16, through cached: more than 3 times the rate by copy",
		sprintf("%.2f", got), got > 3)
	at_least("4k " rw " by loan, depth 16, volumed in the path, to that without", \
		iops["volumeloan", rw, deep] / iops["cachedloan", rw, deep], 0.8)
	got = mean["cachedloan", rw, one] / mean["limitloan", rw, one]
	wanted("4k " rw " by loan, depth 1: latency less than 2 of the bare limit's",
		sprintf("%.2f", got), got < 2)
	loan_size_bar(rw, "16k", 0.9)
	loan_size_bar(rw, "64k", 0.7)
}

# Other work on the machine shows as spread of the bare limit.
function trust()
{
	if (nr_limits && spread / nr_limits > 0.3) {
		printf "NOTE: the bare limit itself varied by %d%% between runs (load average before: %s):\n" \
			"      something else was running, and none of these figures can be trusted.\n" \
			"      Run it again on a quiet machine.\n", spread / nr_limits * 100, load
	}
}

END {
	table("")
	if (("cachedloan", "read", point[1]) in iops)
		table("loan")
	lines_table()
	if (("cacheddirect", "read", "4k 1 1") in iops) {
		direct_table()
		at_least("4k read without a request, depth 1, to the rate by loan", \
			iops["cacheddirect", "read", "4k 1 1"] / iops["cachedmet", "read", "4k 1 1"], 2)
	}
	for (w = 1; w <= 2; w++) {
		copy_bars(rws[w])
		size_bars(rws[w])
		loan_bars(rws[w])
	}
	trust()
}
