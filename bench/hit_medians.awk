# hit_medians.awk - from one line a run to one line a point: medians over the rounds. Used by
# hit.sh, after lib.awk.
#
# In:  SYSTEM RW BS DEPTH THREADS IOPS BYTES MEAN_NS P50_NS P99_NS ERRORS, with tabs
# Out: a line of names, then SYSTEM RW BS DEPTH THREADS IOPS LOWEST HIGHEST BYTES MEAN_NS P50_NS
#   P99_NS
BEGIN {
	FS = OFS = "\t"
	print "system", "rw", "bs", "depth", "threads", "iops", "low", "high", "bytes", "mean_ns", \
		"p50_ns", "p99_ns"
}

{
	key = $1 OFS $2 OFS $3 OFS $4 OFS $5
	if (!(key in iops))
		order[++nr] = key
	iops[key] = iops[key] " " $6
	bytes[key] = bytes[key] " " $7
	mean[key] = mean[key] " " $8
	p50[key] = p50[key] " " $9
	p99[key] = p99[key] " " $10
}

END {
	for (i = 1; i <= nr; i++) {
		k = order[i]
		m = int(median(iops[k]))
		l = low
		h = high
		print k, m, l, h, int(median(bytes[k])), int(median(mean[k])),
			int(median(p50[k])), \
			int(median(p99[k]))
	}
}
