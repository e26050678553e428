# medians.awk - from one line a run to one line a point: medians over the rounds. Used by run.sh.
#
# In:  SYSTEM RW BS DEPTH THREADS IOPS BYTES MEAN_NS P50_NS P99_NS ERRORS, with tabs
# Out: a line of names, then SYSTEM RW BS DEPTH THREADS IOPS LOWEST HIGHEST BYTES MEAN_NS P50_NS P99_NS
BEGIN {
	FS = OFS = "\t"
	print "system", "rw", "bs", "depth", "threads", "iops", "low", "high", "bytes", "mean_ns", \
		"p50_ns", "p99_ns"
}

# The median of a list of numbers; low and high are set.
function median(list,	v, n, i, k, t)
{
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && v[k - 1] + 0 > v[k] + 0; k--) {
			t = v[k]
			v[k] = v[k - 1]
			v[k - 1] = t
		}
	low = v[1]
	high = v[n]
	return int(n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2)
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
		m = median(iops[k])
		l = low
		h = high
		print k, m, l, h, median(bytes[k]), median(mean[k]), median(p50[k]), median(p99[k])
	}
}
