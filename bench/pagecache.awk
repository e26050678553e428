# pagecache.awk - the report of pagecache.sh (see lib.awk). Keys are SYSTEM RW TOUCH DEPTH CPUS.
#
# Variables: disk_is (its file system), huge (true: tmpfshuge is in huge pages)
function cell(key)
{
	if (!(key in has))
		return sprintf("%22s", "-")
	if (key ~ /^limit /)
		return show(key, "%6.2f %4.0f-%-4.0f     -", "iops/1e6 low% high%")
	return show(key, "%6.2f %4.0f-%-4.0f %5.2f", "iops/1e6 low% high% cpu_ns/1e3")
}

function table(rw, touch,	i, k)
{
	printf "%-48s | %-22s | %-22s | %-22s | %s\n", rw "s, " (touch == "all" ? "all lines" : "first line"),
		"depth 1, one CPU", "depth 1, two CPUs", "depth 16, one CPU", "depth 16, two CPUs"
	for (i = 1; i <= nr; i++) {
		k = system_of[i] " " rw " " touch
		if ((k " 1 2") in has)
			printf "%-48s | %s | %s | %s | %s\n", name[system_of[i]], cell(k " 1 1"), cell(k " 1 2"),
				cell(k " 16 1"), cell(k " 16 2")
	}
	print ""
}

# The system of the fastest loop of system calls.
function fastest(rw, cpus,	i, m, best)
{
	best = "tmpfs"
	for (i = 1; i <= nr_loops; i++)
		if ((m = mid("iops", loops[i] " " rw " all 1 " cpus)) > mid("iops", best " " rw " all 1 " cpus))
			best = loops[i]
	return best
}

function cpus_text(cpus)
{
	return cpus == 1 ? "one CPU" : "two CPUs"
}

# Every byte is read, or written, by both.
function to_loop(what, mine, rw, depth, cpus, bar,	best)
{
	best = fastest(rw, cpus)
	at_least(rw "s " what ", all lines, depth " depth ", " cpus_text(cpus),
		ratio("iops", mine " " rw " all " depth " " cpus, best " " rw " all 1 " cpus), bar, "%.2f",
		"of the fastest p" rw "() (" best ")")
}

# In the order of directions, lines, systems, depths and CPUs
function set_order(	w, t, i, d, c, k)
{
	nr_keys = 0
	for (w = 1; w <= 2; w++)
		for (t = 1; t <= 2; t++)
			for (i = 1; i <= nr; i++)
				for (d = 1; d <= 16; d += 15)
					for (c = 1; c <= 2; c++) {
						k = system_of[i] " " rws[w] " " touches[t] " " d " " c
						if (k in has)
							order[++nr_keys] = k
					}
}

END {
	split("read write", rws, " ")
	split("all line", touches, " ")
	nr = names("tmpfs=page cache, tmpfs|tmpfshuge=page cache, tmpfs in huge pages|disk=page cache, " disk_is \
		"|map=page cache, mapped tmpfs in huge pages|copy=xseg, copy|loan=xseg, loans and gifts|" \
		"directcopy=xseg, without requests, copied|direct=xseg, without requests, in place|" \
		"limit=bare limit of copies", system_of)
	nr_loops = split("tmpfs tmpfshuge disk", loops, " ")
	set_order()
	write_results("system rw touch depth cpus", "mean_ns cpu_ns server_ns")
	print "M/s, lowest and highest round in percent, us of CPU an I/O (program and server)\n"
	for (w = 1; w <= 2; w++)
		for (t = 1; t <= 2; t++)
			table(rws[w], touches[t])
	if (huge != "true")
		print "NOTE: the system gave no huge pages to tmpfs.\n"
	for (c = 1; c <= 2; c++)
		for (d = 1; d <= 16; d += 15)
			to_loop("without requests, in place", "direct", "read", d, c, 1.5)
	m = mid("mean_ns", "copy read all 1 1") / 1e3
	wanted("reads by copy, all lines, depth 1, one CPU: at most 6 us",
		sprintf("%.2f us", m), m && m <= 6)
	m = mid("iops", "copy read all 16 1") / 1e6
	at_least("reads by copy, all lines, depth 16, one CPU", m, 0.47, "%.2f M/s", "M/s")
	for (c = 1; c <= 2; c++)
		to_loop("by copy", "copy", "write", 16, c, 1)
}
