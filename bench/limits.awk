# limits.awk - the report of limits.sh (see lib.awk).
#
# What is wanted are the figures of a machine of two cores on which a line of memory comes in about
# 150 ns.
!seen_row[$1, $2, $3]++ {
	rows[$1, ++nr_rows[$1]] = $1 " " $2 " " $3
}

$1 !~ /small/ && $10 != "true" {
	few_huge = 1
}

function cell(key)
{
	return key in has ? show(key, "%7.2f %5.2f-%-5.2f", "iops/1e6 low/1e6 high/1e6") : sprintf("%19s", "")
}

function row(s,	p)
{
	split(s, p, " ")
	printf "%-37s %-5s %4s | %s | %s | %s | %s\n", name[p[1]], p[2], p[3], cell(s " 1"), cell(s " 16"),
		cell(s " 64"), (s " 1") in has ? show(s " 1", "%5.2f", "mean_ns/1e3") : ""
}

# rate(STEP, DEPTH, M/s, WHAT): at least 0.9 of that
function rate(s, depth, there, what,	m)
{
	m = mid("iops", s " read 4k " depth) / 1e6
	wanted(what ", depth " depth ": at least 0.9 of " there " M/s", sprintf("%.2f M/s", m),
		m >= 0.9 * there)
}

# latency(STEP, US, WHAT): at most that, and a tenth more
function latency(s, there, what,	m)
{
	m = mid("mean_ns", s " read 4k 1") / 1e3
	wanted(what ", depth 1: at most 1.1 of " there " us", sprintf("%.2f us", m), m <= 1.1 * there)
}

END {
	write_results("step rw bs depth", "mean_ns")
	nr_steps = names("chase=memory: a line after the other|lines=memory: first lines of pages|" \
		"linesany=memory: any lines|memcpy=memory: copies, no requests|echo=echo of a request|" \
		"lookup=+ lookup|loan=+ page reference, first line|loanall=+ page reference, all lines|" \
		"copy=+ copy instead, first line|copyall=+ copy instead, all lines|" \
		"loansmall=reference, first line, no huge pages|copysmall=copy, first line, no huge pages", step)
	printf "%-37s %-5s %4s | %-19s | %-19s | %-19s | %s\n", "M/s  low-high", "", "bs", "depth 1",
		"depth 16", "depth 64", "us at depth 1"
	for (i = 1; i <= nr_steps; i++)
		for (j = 1; j <= nr_rows[step[i]]; j++)
			row(rows[step[i], j])
	print ""
	if (few_huge)
		print "NOTE: the system gave no huge pages, or not to all runs."
	printf "A line of memory comes in %d ns here. Where the wanted figures were taken it came in about 150 ns: that is a third\n" \
		"of what lookup and reference, three lines one after the other, add to an echo there.\n\n",
		1e9 / mid("iops", "chase read 4k 16")
	rate("echo", 16, 21, "echo")
	latency("echo", 0.27, "echo")
	rate("lookup", 16, 16, "lookup")
	rate("loan", 16, 13, "reference")
	rate("loan", 64, 18, "reference")
	latency("loan", 0.73, "reference")
	rate("loanall", 16, 2.4, "reference and all lines")
	latency("loanall", 1.05, "reference and all lines")
	rate("copy", 16, 2.5, "copy")
	rate("copyall", 16, 2, "copy and all lines")
	latency("copy", 1.9, "copy")
	rate("copysmall", 16, 1.2, "copy without huge pages")
}
