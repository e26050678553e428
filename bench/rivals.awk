# rivals.awk - the tables of rivals.sh, and its verdict: awk -f lib.awk -f rivals.awk RUNS
#
# In:  SYSTEM RW DEPTH ROUND IOPS MEAN_NS P99_NS ERRORS, with tabs
# Out: the report; and into the file `results`, for plots: SYSTEM RW DEPTH IOPS LOW HIGH MEAN_NS
# Variables: ram, disk (lists of systems), results
BEGIN {
	FS = OFS = "\t"
	nr_ram = split(ram, in_ram, " ")
	nr_disk = split(disk, on_disk, " ")
	split("read write", rws, " ")
	name["cached"] = "xseg: cached"
	name["volume"] = "xseg: volumed, cached"
	name["direct"] = "xseg: fio, reads without requests"
	name["pagecache"] = "page cache, fio"
	name["nbdkit"] = "nbdkit, memory"
	name["nbdkitcache"] = "nbdkit, cache filter"
	name["qemunbd"] = "qemu-nbd"
	name["rocksdb"] = "RocksDB (library)"
	name["leveldb"] = "LevelDB (library)"
	name["filed"] = "xseg: filed, store alone"
	name["cacheddisk"] = "xseg: cached over filed"
	name["rocksdbdisk"] = "RocksDB, direct"
	name["extstore"] = "memcached with extstore"
}

{
	k = $1 SUBSEP $2 SUBSEP $3
	iops[k] = iops[k] " " $5
	mean[k] = mean[k] " " $6
}

function cell(k,	m)
{
	if (!(k in iops))
		return sprintf("%31s", "-")
	m = median(iops[k])
	return sprintf("%7.1fk %3.0f-%-4.0f%% %8.2f us", m / 1e3, m ? low / m * 100 : 0, m ? high / m * 100 : 0, median(mean[k]) / 1e3)
}

function label(who_is)
{
	return (who_is in name) ? name[who_is] : who_is
}

function table(systems, nr, depth,	i)
{
	printf "%-34s | %-31s | %-31s\n", "depth " depth, "read: IOPS, low-high, mean", "write"
	for (i = 1; i <= nr; i++)
		printf "%-34s | %s | %s\n", label(systems[i]), \
			cell(systems[i] SUBSEP "read" SUBSEP depth), cell(systems[i] SUBSEP "write" SUBSEP depth)
	print ""
}

# The fastest of a list but for those of xseg.
function fastest(systems, nr, rw, depth,	i, k, m, best)
{
	best = 0
	for (i = 1; i <= nr; i++) {
		k = systems[i] SUBSEP rw SUBSEP depth
		if (label(systems[i]) ~ /^xseg/ || !(k in iops))
			continue
		m = median(iops[k])
		if (m > best) {
			best = m
			who = label(systems[i])
		}
	}
	return best
}

# None where there is nothing to compare.
function verdict(mine, systems, nr, rw, depth, where,	m, best)
{
	best = fastest(systems, nr, rw, depth)
	if (!best || !((mine, rw, depth) in iops))
		return
	m = median(iops[mine, rw, depth])
	wanted(where ", " rw "s, depth " depth ": no slower than the fastest rival (" who ", " int(best / 1e3) "k)", \
		int(m / 1e3) "k", m >= best)
}

END {
	print "system", "rw", "depth", "iops", "low", "high", "mean_ns" >results
	for (w = 1; w <= 2; w++)
		for (d = 1; d <= 16; d += 15)
			for (i = 1; i <= nr_ram + nr_disk; i++) {
				s = i <= nr_ram ? in_ram[i] : on_disk[i - nr_ram]
				if (!((s, rws[w], d) in iops))
					continue
				m = median(iops[s, rws[w], d])
				l = low
				h = high
				print s, rws[w], d, m, l, h, median(mean[s, rws[w], d]) >results
			}
	print "In memory"
	table(in_ram, nr_ram, 1)
	table(in_ram, nr_ram, 16)
	print "On disk, the set four times the cache"
	table(on_disk, nr_disk, 16)
	for (w = 1; w <= 2; w++)
		for (d = 1; d <= 16; d += 15)
			verdict("cached", in_ram, nr_ram, rws[w], d, "in memory")
	if (("direct", "read", 1) in iops)
		verdict("direct", in_ram, nr_ram, "read", 1, "in memory, without requests")
	for (w = 1; w <= 2; w++)
		verdict("cacheddisk", on_disk, nr_disk, rws[w], 16, "on disk")
}
