# guest.awk - the report of guest.sh, and its verdict: awk -f lib.awk -f guest.awk RUNS
#
# In: SYSTEM RW ROUND IOPS MEAN_NS ERRORS, with tabs
BEGIN {
	FS = "\t"
	nr_rws = split("write read", rws, " ")
	nr_systems = split("alone fits few many through", systems, " ")
	name["alone"] = "store alone"
	name["fits"] = "cache larger than the set"
	name["few"] = "of half, few objects"
	name["many"] = "of half, many objects"
	name["through"] = "write-through"
}

{
	iops[$1, $2] = iops[$1, $2] " " $4
	mean[$1, $2] = mean[$1, $2] " " $5
	keep($1 SUBSEP $2, $3, $4)
}

END {
	for (w = 1; w <= nr_rws; w++) {
		printf "%-26s | %8s  %-17s %9s | %s\n", rws[w] "s", "IOPS", "low-high", "mean",
			"to the store alone"
		for (i = 1; i <= nr_systems; i++) {
			m = median(iops[systems[i], rws[w]])
			printf "%-26s | %8d  %7d-%-9d", name[systems[i]], m, low, high
			printf " %6d us", median(mean[systems[i], rws[w]]) / 1e3
			r[i, w] = median(by_round(systems[i] SUBSEP rws[w], \
				"alone" SUBSEP rws[w]))
			printf " | %5.2f  %.2f-%.2f\n", r[i, w], low, high
		}
		print ""
	}
	for (w = 1; w <= nr_rws; w++)
		for (i = 2; i <= nr_systems; i++) {
			least = systems[i] == "through" ? 0.95 : 1
			wanted(rws[w] "s, " name[systems[i]] ": at least " least " of the store alone", sprintf("%.2f", r[i, w]), r[i, w] >= least)
		}
}
