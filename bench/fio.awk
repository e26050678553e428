# fio.awk - the report of fio.sh (see lib.awk).

# The engine's rate by the smaller one of xbench and fio alone
function by_smaller(rw,	i, x, n)
{
	for (i = 1; i <= nr_rounds; i++) {
		x = at["iops", "xbench " rw, round[i]]
		n = at["iops", "null " rw, round[i]]
		at["iops", "smaller " rw, round[i]] = n < x ? n : x
	}
	return ratio("iops", "engine " rw, "smaller " rw)
}

END {
	nr = split("read write", rws, " ")
	printf "%-6s | %10s %10s %10s | %s\n", "IOPS", "xbench", "engine", "fio alone",
		"engine by the smaller one  low-high"
	for (i = 1; i <= nr; i++) {
		rw = rws[i]
		printf "%-6s | %10d %10d %10d", rw, mid("iops", "xbench " rw),
			mid("iops", "engine " rw), mid("iops", "null " rw)
		r[i] = by_smaller(rw)
		printf " | %5.3f  %.3f-%.3f\n", r[i], low, high
	}
	print ""
	for (i = 1; i <= nr; i++)
		at_least(rws[i] "s through fio", r[i], 0.8, "%.3f", "of xbench, or of fio alone")
}
