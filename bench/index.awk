# index.awk - ratios of index.sh, and its verdict: awk -f lib.awk -f index.awk RUNS
#
# In:  OBJECTS KIND ROUND IOPS MEAN_NS ERRORS, with tabs; sorted by the first as a number
# Out: the report; and into the file `results`, for plots: KIND OBJECTS IOPS RATIO LOWEST HIGHEST
BEGIN {
	FS = OFS = "\t"
	nr_kinds = split("read write cold coldwrite slow", kind, " ")
	split("0.7 0.7 0.7 0.7 0.9", bar, " ")
	name["read"] = "hits, reads"
	name["write"] = "hits, writes"
	name["cold"] = "cold cache, reads"
	name["coldwrite"] = "cold cache, writes"
	name["slow"] = "cold cache over 1 ms, reads"
}

{
	if (!($1 in seen)) {
		seen[$1] = 1
		objects[++nr] = $1
	}
	if (nr == 1)
		first[$2, $3] = $4
	iops[$2, $1] = iops[$2, $1] " " $4
	ratios[$2, $1] = ratios[$2, $1] " " (first[$2, $3] ? $4 / first[$2, $3] : 0)
}

function line(kd, n,	i, r)
{
	i = median(iops[kd, n])
	r = median(ratios[kd, n])
	printf "%-28s %8d | %8.0fk | %5.2f  %.2f-%.2f\n", name[kd], n, i / 1000, r, low, high
	print kd, n, i, r, low, high >results
}

END {
	print "kind", "objects", "iops", "ratio", "low", "high" >results
	printf "%-28s %8s | %9s | %s\n", "", "objects", "IOPS", "ratio  low-high"
	for (i = 1; i <= nr_kinds; i++)
		for (j = 1; j <= nr; j++)
			line(kind[i], objects[j])
	print ""
	for (i = 1; i <= nr_kinds; i++)
		for (j = 2; j <= nr; j++) {
			r = median(ratios[kind[i], objects[j]])
			what = name[kind[i]] ", " objects[j] " objects"
			wanted(what ": at least " bar[i] " of the rate with " objects[1],
				sprintf("%.2f", r), r >= bar[i])
		}
}
