# literature.awk - the report of literature.sh (see lib.awk).
#
# Variables: sizes (from large to small), depths
# The keys that tables have: nr_points points, from small blocks to large ones
function find_points(	w, i, j)
{
	for (w = 1; w <= 2; w++)
		for (i = nr_sizes; i; i--)
			for (j = 1; j <= nr_depths; j++)
				point[++nr_points] = rws[w] " " size[i] " " depth[j]
}

function rate(k)
{
	return show(k, "%8.1fk %6.0f %7.1f", "iops/1e3 bytes/1e6 mean_ns/1e3")
}

function cell(k)
{
	return rate(k) show(k, " %6.2f %6.2f-%-6.2f", "ratio low high")
}

function table(store,	i, p)
{
	printf "over %-11s | %-24s | %-45s | %s\n", store, "alone", "fits", "twice"
	printf "%-5s %4s %5s | %9s %6s %7s | %9s %6s %7s %6s %-13s | %9s %6s %7s %6s %s\n", "",
		"bs", "depth", "IOPS", "MB/s", "us", "IOPS", "MB/s", "us", "ratio", "low-high",
		"IOPS", "MB/s", "us", "ratio", "low-high"
	for (i = 1; i <= nr_points; i++) {
		split(point[i], p, " ")
		printf "%-5s %4s %5d | %s | %s | %s\n", p[1], p[2], p[3],
			rate(store " alone " point[i] " 2"), cell(store " fits " point[i] " 2"),
			cell(store " twice " point[i] " 2")
	}
	print ""
}

function by_threads(	w, i, t, k, j)
{
	printf "%-16s | %-24s | %s\n", "fits, by threads", "4 in flight each", "published, 12 cores"
	printf "%-5s %4s %5s | %9s %6s %7s |\n", "", "bs", "", "IOPS", "MB/s", "us"
	for (w = 1; w <= 2; w++)
		for (i = nr_sizes; i; i--)
			for (t = 1; t <= 4; t++) {
				j = rws[w] " " size[i]
				k = "memd fits " j " 4 " t
				if (!(k in has))
					continue
				printf "%-5s %4s %5d | %s | ", rws[w], size[i], t, rate(k)
				if (t == 2 && j in published)
					printf "%dk%s", published[j], published_us[j]
				print ""
			}
	print ""
}

function beside(bs,	m)
{
	m = mid("iops", "memd fits write " bs " 4 2") / 1e3
	wanted(bs " writes, 2 threads, depth 4: the published " published["write " bs] \
		" K/s of 12 cores", sprintf("%.0f K/s", m), m >= published["write " bs])
}

function never_slower(store, who,	i, keys, r, word)
{
	for (i = 1; i <= nr_points; i++)
		keys = keys (i > 1 ? "," : "") store " " who " " point[i] " 2"
	r = smallest(keys)
	split(worst, word, " ")
	wanted("over " store ", " who ": nowhere less than 1.0 of the store alone",
		sprintf("%.2f (%s %s depth %d)", r, word[3], word[4], word[5]), r >= 1)
}

END {
	nr_sizes = split(sizes, size, " ")
	nr_depths = split(depths, depth, " ")
	split("read write", rws, " ")
	published["write 4k"] = 679
	published["write 64k"] = 113
	published_us["write 4k"] = ", 5.0 us"
	write_results("store system rw bs depth threads", "bytes mean_ns", 1)
	find_points()
	table("memd")
	table("filed")
	by_threads()
	beside("4k")
	beside("64k")
	never_slower("memd", "fits")
	never_slower("memd", "twice")
	never_slower("filed", "fits")
	never_slower("filed", "twice")
}
