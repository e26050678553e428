# nbd.awk - the report of nbd.sh, and its verdict: awk -f lib.awk -f nbd.awk RUNS
#
# In: SYSTEM RW DEPTH ROUND IOPS MEAN_NS ERRORS, with tabs
BEGIN {
	FS = "\t"
	nr_rws = split("read write reread", rws, " ")
}

{
	k = $1 SUBSEP $2 SUBSEP $3
	iops[k] = iops[k] " " $5
	mean[k] = mean[k] " " $6
	keep(k, $4, $5)
	if (!seen_depth[$3]++)
		depth[++nr_depths] = $3 + 0
}

function cell(who, rw, d)
{
	return sprintf("%7.1fk %7.1f us", median(iops[who, rw, d]) / 1e3,
		median(mean[who, rw, d]) / 1e3)
}

# The export's rate by that of nbdkit's memory
function ratio(rw, d)
{
	return median(by_round("export" SUBSEP rw SUBSEP d, "memory" SUBSEP rw SUBSEP d))
}

function sort_depths(	i, k, t)
{
	for (i = 2; i <= nr_depths; i++)
		for (k = i; k > 1 && depth[k - 1] > depth[k]; k--) {
			t = depth[k]
			depth[k] = depth[k - 1]
			depth[k - 1] = t
		}
}

END {
	sort_depths()
	printf "%-6s %5s | %-19s | %-19s | %s\n", "", "depth", "nbdkit, memory", "xseg export",
		"export by memory  low-high"
	for (w = 1; w <= nr_rws; w++)
		for (i = 1; i <= nr_depths; i++) {
			d = depth[i]
			if (!(("export", rws[w], d) in iops))
				continue
			printf "%-6s %5d | %s | %s | %5.2f  %.2f-%.2f\n", rws[w], d,
				cell("memory", rws[w], d), cell("export", rws[w], d), \
				(r[w, d] = ratio(rws[w], d)), low, high
		}
	print ""
	for (w = 1; w <= nr_rws; w++)
		for (i = 1; i <= nr_depths; i++)
			if (depth[i] >= 16 && (w, depth[i]) in r)
				wanted(rws[w] "s by NBD, depth " depth[i] ": at least 0.7 of nbdkit's memory plug-in", sprintf("%.2f", r[w, depth[i]]), \
					r[w, depth[i]] >= 0.7)
}
