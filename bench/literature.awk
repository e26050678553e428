# literature.awk - the tables of literature.sh, and its verdict: awk -f lib.awk -f literature.awk
# RUNS
#
# In: STORE SYSTEM RW BS DEPTH THREADS ROUND IOPS BYTES MEAN_NS ERRORS, with tabs; of a store
# `alone` first Out: the report; and into the file `results`, for plots: STORE SYSTEM RW BS DEPTH
# THREADS IOPS LOW HIGH BYTES MEAN_NS RATIO LOWEST
#      HIGHEST, where the ratio is to `alone`, and 0 where that was not measured
# Variables: sizes, depths, more (threads, beside 2), results
BEGIN {
	FS = OFS = "\t"
	nr_sizes = split(sizes, size, " ")
	nr_depths = split(depths, depth, " ")
	nr_more = split("2 " more, thread, " ")
	split("memd filed", store, " ")
	split("read write", rws, " ")
	published["write4k"] = 679000
	published["write64k"] = 113000
	published_us["write4k"] = 5.0
}

{
	p = $3 SUBSEP $4 SUBSEP $5 SUBSEP $6
	k = $1 SUBSEP $2 SUBSEP p
	if (!(k in iops))
		order[++nr] = $1 OFS $2 OFS $3 OFS $4 OFS $5 OFS $6
	iops[k] = iops[k] " " $8
	bytes[k] = bytes[k] " " $9
	mean[k] = mean[k] " " $10
	if ($2 == "alone")
		alone[$1, p, $7] = $8
	else if (alone[$1, p, $7])
		ratio[k] = ratio[k] " " $8 / alone[$1, p, $7]
}

function write_results(	i, n, k, m, l, h, r)
{
	print "store", "system", "rw", "bs", "depth", "threads", "iops", "low", "high", "bytes",
		"mean_ns", "ratio", "lowest", \
		"highest" >results
	for (i = 1; i <= nr; i++) {
		split(order[i], n, OFS)
		k = n[1] SUBSEP n[2] SUBSEP n[3] SUBSEP n[4] SUBSEP n[5] SUBSEP n[6]
		m = median(iops[k])
		l = low
		h = high
		r = (k in ratio) ? median(ratio[k]) : 0
		print order[i], m, l, h, median(bytes[k]), median(mean[k]), r, r ? low : 0,
			r ? high : 0 >results
	}
}

function rate(k)
{
	return sprintf("%8.1fk %6.0f %7.1f", median(iops[k]) / 1e3, median(bytes[k]) / 1e6,
		median(mean[k]) / 1e3)
}

function cell(k,	r, l, h)
{
	r = median(ratio[k])
	l = low
	h = high
	return sprintf("%s %6.2f %6.2f-%-6.2f", rate(k), r, l, h)
}

function table(st,	w, i, j, p)
{
	printf "over %-11s | %-24s | %-45s | %s\n", st, "alone", "fits", "twice"
	printf "%-5s %4s %5s | %9s %6s %7s | %9s %6s %7s %6s %-13s | %9s %6s %7s %6s %s\n", "",
		"bs", "depth", "IOPS", "MB/s", "us", \
		"IOPS", "MB/s", "us", "ratio", "low-high", "IOPS", "MB/s", "us", "ratio", "low-high"
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (j = 1; j <= nr_depths; j++) {
				p = SUBSEP rws[w] SUBSEP size[i] SUBSEP depth[j] SUBSEP 2
				printf "%-5s %4s %5d | %s | %s | %s\n", rws[w], size[i], depth[j],
					rate(st SUBSEP "alone" p), \
					cell(st SUBSEP "fits" p), cell(st SUBSEP "twice" p)
			}
	print ""
}

function by_threads(	w, i, j, t, k)
{
	printf "%-16s | %-24s | %s\n", "fits, by threads", "4 in flight each", "published, 12 cores"
	printf "%-5s %4s %5s | %9s %6s %7s |\n", "", "bs", "", "IOPS", "MB/s", "us"
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (t = 1; t <= 4; t++) {
				k = "memd" SUBSEP "fits" SUBSEP rws[w] SUBSEP size[i] SUBSEP 4 SUBSEP t
				if (!(k in iops))
					continue
				printf "%-5s %4s %5d | %s | ", rws[w], size[i], t, rate(k)
				j = rws[w] size[i]
				if (t == 2 && j in published)
					printf "%.0fk%s", published[j] / 1e3,
						(j in published_us) ? sprintf(", %.1f us",
						published_us[j]) : ""
				print ""
			}
	print ""
}

function beside(j, bs,	k, m)
{
	k = "memd" SUBSEP "fits" SUBSEP "write" SUBSEP bs SUBSEP 4 SUBSEP 2
	m = median(iops[k])
	wanted(bs " writes, 2 threads, depth 4: the published " published[j] / 1000 " K/s of 12 cores", sprintf("%.0f K/s", m / 1e3), \
		m >= published[j])
}

# The least of the ratios of a system to its store alone
function never_slower(st, sy, bar,	least, w, i, j, r, k)
{
	least = 1e9
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (j = 1; j <= nr_depths; j++) {
				k = st SUBSEP sy SUBSEP rws[w] SUBSEP size[i] SUBSEP depth[j] SUBSEP 2
				r = median(ratio[k])
				if (r < least) {
					least = r
					where = rws[w] " " size[i] " depth " depth[j]
				}
			}
	wanted("over " st ", " sy ": nowhere less than " bar " of the store alone",
		sprintf("%.2f (%s)", least, where), least >= bar)
}

END {
	write_results()
	table("memd")
	table("filed")
	by_threads()
	beside("write4k", "4k")
	beside("write64k", "64k")
	for (s = 1; s <= 2; s++) {
		never_slower(store[s], "fits", "1.0")
		never_slower(store[s], "twice", "1.0")
	}
}
