# fio.awk - the report of fio.sh, and its verdict: awk -f lib.awk -f fio.awk RUNS
#
# In: SYSTEM RW ROUND IOPS ERRORS, with tabs
BEGIN {
	FS = "\t"
	nr_rws = split("read write", rws, " ")
	nr_systems = split("xbench engine null", systems, " ")
}

{
	iops[$1, $2] = iops[$1, $2] " " $4
	at[$1, $2, $3] = $4
	if (!seen[$3]++)
		rounds[++nr_rounds] = $3
}

# The engine's rate by the smaller one of xbench and fio alone, of each round.
function ratios(rw,	i, least, list)
{
	for (i = 1; i <= nr_rounds; i++) {
		least = at["xbench", rw, rounds[i]]
		if (at["null", rw, rounds[i]] < least)
			least = at["null", rw, rounds[i]]
		list = list " " (least ? at["engine", rw, rounds[i]] / least : 0)
	}
	return list
}

END {
	printf "%-6s | %10s %10s %10s | %s\n", "IOPS", "xbench", "engine", "fio alone", "engine by the smaller one  low-high"
	for (i = 1; i <= nr_rws; i++) {
		printf "%-6s |", rws[i]
		for (k = 1; k <= nr_systems; k++)
			printf " %10d", median(iops[systems[k], rws[i]])
		r[i] = median(ratios(rws[i]))
		printf " | %5.3f  %.3f-%.3f\n", r[i], low, high
	}
	print ""
	for (i = 1; i <= nr_rws; i++)
		wanted(rws[i] "s through fio: at least 0.8 of xbench, or of fio alone", sprintf("%.3f", r[i]), r[i] >= 0.8)
}
