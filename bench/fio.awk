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
	keep($1 SUBSEP $2, $3, $4)
}

# The engine's rate by the smaller one of xbench and fio alone
function ratio(rw,	i, k)
{
	for (i = 1; i <= nr_rounds; i++) {
		k = at["null", rw, round[i]] < at["xbench", rw, round[i]] ? "null" : "xbench"
		at["smaller", rw, round[i]] = at[k, rw, round[i]]
	}
	return median(by_round("engine" SUBSEP rw, "smaller" SUBSEP rw))
}

END {
	printf "%-6s | %10s %10s %10s | %s\n", "IOPS", "xbench", "engine", "fio alone",
		"engine by the smaller one  low-high"
	for (i = 1; i <= nr_rws; i++) {
		printf "%-6s |", rws[i]
		for (k = 1; k <= nr_systems; k++)
			printf " %10d", median(iops[systems[k], rws[i]])
		r[i] = ratio(rws[i])
		printf " | %5.3f  %.3f-%.3f\n", r[i], low, high
	}
	print ""
	for (i = 1; i <= nr_rws; i++)
		wanted(rws[i] "s through fio: at least 0.8 of xbench, or of fio alone",
			sprintf("%.3f", r[i]), r[i] >= 0.8)
}
