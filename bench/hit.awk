# hit.awk - the report of hit.sh (see lib.awk). Keys are SYSTEM RW BS DEPTH THREADS.
#
# Variables: load_before (load average before the run), verified (the last lines)
# The points, and how much the bare limit varied
function read_points(	i, word, m, p)
{
	for (i = 1; i <= nr_keys; i++) {
		split(order[i], word, " ")
		p = word[3] " " word[4] " " word[5]
		if (!seen[p]++)
			insert(p)
		if (word[1] == "limit" && (m = mid("iops", order[i]))) {
			varied += (high - low) / m
			nr_limits++
		}
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

# The IOPS of one by those of another; 1 stands for those of a run that failed.
function by(k, than,	a, b)
{
	a = int(mid("iops", k))
	b = int(mid("iops", than))
	return (a ? a : 1) / (b ? b : 1)
}

function latency(k)
{
	return int(mid("mean_ns", k))
}

function spread(k)
{
	return show(k, "%8.0fk %4.0f-%-4.0f", "iops/1e3 low% high%")
}

# ---- tables ----

function line(rw, p, data,	n, at_point)
{
	split(p, n, " ")
	at_point = data " " rw " " p
	printf "%-5s %4s %5d %7d | %19s | %19s  %5.2f | %19s  %5.2f | %6d %6d %7d\n", rw, n[1], n[2], n[3],
		spread("limit" at_point),
		spread("cached" at_point), by("cached" at_point, "limit" at_point),
		spread("volume" at_point), by("volume" at_point, "limit" at_point),
		latency("limit" at_point), latency("cached" at_point), latency("volume" at_point)
}

function table(data,	w, i)
{
	printf "%-24s | %19s | %19s %6s | %19s %6s | %21s\n", data == "" ? "by copy" : "by loan",
		"bare limit", "cached", "ratio", "volumed + cached", "ratio", "mean latency, ns"
	printf "%-5s %4s %5s %7s | %19s | %19s %6s | %19s %6s | %6s %6s %7s\n", "", "bs", "depth", "threads",
		"IOPS  low-high %", "IOPS  low-high %", "", "IOPS  low-high %", "", "limit", "cached", "volume"
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr; i++)
			line(rws[w], point[i], data)
	print ""
}

# Of each page that they are lent clients read the first line.
function lines_of(bs, pages,	k)
{
	k = "cachedloan read " bs " 16 1"
	if (k in has)
		printf "; of loans of %s, depth 16: %.1f", bs, mid("iops", k) * pages / 1e6
}

function direct_row(who,	direct, met)
{
	direct = who "direct read" one
	met = who "met read" one
	printf "  %-6s %s, mean latency %d ns; by loan %s, %d ns\n", who, spread(direct), latency(direct),
		spread(met), latency(met)
}

# ---- what was wanted ----

# Through cached, to the bare limit; with volumed in the path; and the latency at depth 1
function to_limit(what, rw, data, bar)
{
	at_least(what "16, through cached, to the bare limit",
		by("cached" data " " rw deep, "limit" data " " rw deep), bar, "%.3f")
}

function in_path(what, rw, data)
{
	at_least(what "16, volumed in the path, to that without",
		by("volume" data " " rw deep, "cached" data " " rw deep), 0.8, "%.3f")
}

function slower(what, rw, data, bar,	got)
{
	got = latency("cached" data " " rw one) / latency("limit" data " " rw one)
	wanted(what "1: latency less than " bar " of the bare limit's", sprintf("%.2f", got), got < bar)
}

function copy_bars(rw,	what, got, i, n, at_point)
{
	what = "4k " rw " by copy, depth "
	to_limit(what, rw, "", 0.85)
	in_path(what, rw, "")
	slower(what, rw, "", 1.3)
	got = mid("iops", "volume " rw deep)
	wanted(what "16, through volumed and cached: half of the bare limit or 1.0 M/s",
		sprintf("%.2f M/s", got / 1e6), got >= 1e6 || got >= mid("iops", "limit " rw deep) / 2)
	for (i = 1; i <= nr; i++) {
		split(point[i], n, " ")
		if (n[1] == "4k" || n[2] != 16 || n[3] != 1)
			continue
		at_point = " " rw " " point[i]
		what = n[1] " " rw " by copy, depth 16, through cached, to the bandwidth of memory by copy"
		at_least(what, by("cached" at_point, "memory" at_point), 0.9, "%.3f")
		at_least(what ", its pages anywhere as those of the cache",
			by("cached" at_point, "memoryscatter" at_point), 0.9, "%.3f")
	}
}

# Larger blocks by loan, in requests a second, to those of 4 KiB.
function loan_size_bar(rw, bs, bar,	k)
{
	k = "cachedloan " rw " " bs " 16 1"
	if (k in has)
		at_least(bs " " rw " by loan, depth 16, through cached, to the requests a second of 4k",
			by(k, "cachedloan " rw deep), bar, "%.3f")
}

function loan_bars(rw,	what, got)
{
	what = "4k " rw " by loan, depth "
	if (!(("cachedloan " rw deep) in has)) {
		wanted(what "16, through cached, to the bare limit: at least 0.6", "not there", 0)
		return
	}
	to_limit(what, rw, "loan", 0.6)
	got = by("cachedloan " rw deep, "cached " rw deep)
	wanted(what "16, through cached: more than 3 times the rate by copy", sprintf("%.2f", got), got > 3)
	in_path(what, rw, "loan")
	slower(what, rw, "loan", 2)
	loan_size_bar(rw, "16k", 0.9)
	loan_size_bar(rw, "64k", 0.7)
}

END {
	split("read write", rws, " ")
	deep = " 4k 16 1"
	one = " 4k 1 1"
	write_results("system rw bs depth threads", "bytes mean_ns p50_ns p99_ns")
	read_points()
	table("")
	if (("cachedloan read " point[1]) in has)
		table("loan")
	printf "first lines of pages, M/s, one core that reads nothing else: %.1f", mid("iops", "lines read" deep) / 1e6
	lines_of("4k", 1)
	lines_of("16k", 4)
	lines_of("64k", 16)
	print "\n"
	if (("cacheddirect read" one) in has) {
		print "without a request, 4k read, depth 1"
		direct_row("cached")
		direct_row("volume")
		print ""
		at_least("4k read without a request, depth 1, to the rate by loan",
			by("cacheddirect read" one, "cachedmet read" one), 2, "%.3f")
	}
	for (w = 1; w <= 2; w++) {
		copy_bars(rws[w])
		loan_bars(rws[w])
	}
	# Other work on the machine shows as spread of the bare limit.
	if (nr_limits && varied / nr_limits > 0.3)
		printf "NOTE: the bare limit itself varied by %d%% between runs (load average before: %s):\n" \
			"      something else was running, and none of these figures can be trusted.\n" \
			"      Run it again on a quiet machine.\n", varied / nr_limits * 100, load_before
	print verified
}
