# rivals.awk - the report of rivals.sh (see lib.awk).
#
# Variables: ram, disk (lists of systems)
function cell(k)
{
	return k in has ? show(k, "%7.1fk %3.0f-%-4.0f%% %8.2f us", "iops/1e3 low% high% mean_ns/1e3") : sprintf("%31s", "-")
}

function table(systems, nr, depth,	i)
{
	printf "%-34s | %-31s | %-31s\n", "depth " depth, "read: IOPS, low-high, mean", "write"
	for (i = 1; i <= nr; i++)
		printf "%-34s | %s | %s\n", name[systems[i]], cell(systems[i] " read " depth),
			cell(systems[i] " write " depth)
	print ""
}

# Against the fastest of a list but for those of xseg; no bar where there is nothing to compare.
function verdict(mine, systems, nr, rw, depth, where,	i, k, m, best, who)
{
	for (i = 1; i <= nr; i++) {
		k = systems[i] " " rw " " depth
		if (name[systems[i]] !~ /^xseg/ && k in has && (m = mid("iops", k)) > best + 0) {
			best = m
			who = name[systems[i]]
		}
	}
	k = mine " " rw " " depth
	if (!best || !(k in has))
		return
	m = mid("iops", k)
	wanted(where ", " rw "s, depth " depth ": no slower than the fastest rival (" who ", " \
		int(best / 1e3) "k)", int(m / 1e3) "k", m >= best)
}

# In the order of directions, depths and systems, as the tables have them
function set_order(	w, d, i, k, s)
{
	nr_keys = 0
	for (w = 1; w <= 2; w++)
		for (d = 1; d <= 16; d += 15)
			for (i = 1; i <= nr_ram + nr_disk; i++) {
				s = i <= nr_ram ? in_ram[i] : on_disk[i - nr_ram]
				k = s " " rws[w] " " d
				if (k in has)
					order[++nr_keys] = k
			}
}

END {
	nr_ram = split(ram, in_ram, " ")
	nr_disk = split(disk, on_disk, " ")
	split("read write", rws, " ")
	names("cached=xseg: cached|volume=xseg: volumed, cached|direct=xseg: fio, reads without requests|" \
		"pagecache=page cache, fio|nbdkit=nbdkit, memory|nbdkitcache=nbdkit, cache filter|" \
		"qemunbd=qemu-nbd|memcached=memcached|redis=redis|rocksdb=RocksDB (library)|" \
		"leveldb=LevelDB (library)|filed=xseg: filed, store alone|cacheddisk=xseg: cached over filed|" \
		"rocksdbdisk=RocksDB, direct|extstore=memcached with extstore")
	set_order()
	write_results("system rw depth", "mean_ns")
	print "In memory"
	table(in_ram, nr_ram, 1)
	table(in_ram, nr_ram, 16)
	print "On disk, the set four times the cache"
	table(on_disk, nr_disk, 16)
	for (w = 1; w <= 2; w++)
		for (d = 1; d <= 16; d += 15)
			verdict("cached", in_ram, nr_ram, rws[w], d, "in memory")
	if ("direct read 1" in has)
		verdict("direct", in_ram, nr_ram, "read", 1, "in memory, without requests")
	for (w = 1; w <= 2; w++)
		verdict("cacheddisk", on_disk, nr_disk, rws[w], 16, "on disk")
}
