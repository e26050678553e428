# kv_filecache.awk - the report of kv_filecache.sh (see lib.awk). Keys are SIDE MODE WHAT SIZE FORCE.
#
# Variables: modes, contents, sizes, forces (lists), set_mib, memory

function how(k,	i)
{
	for (i = 1; i <= nr_rounds; i++)
		if (at["how", k, round[i]] != "ok" && at["how", k, round[i]] != "")
			return at["how", k, round[i]]
	return "ok"
}

function cell(k, figure)
{
	if (!(k in has))
		return sprintf("%9s", "-")
	if (how(k) != "ok")
		return sprintf("%9s", "fails")
	return sprintf("%8.1fk", mid(figure, k) / 1e3)
}

function line(mode, what, size, force,	i, k, any)
{
	for (i = 1; i <= nr_sides; i++)
		any += (side[i] " " mode " " what " " size " " force) in has
	if (!any)
		return
	printf "%-10s %-5s %3s %-3s", mode, what, size, force
	for (i = 1; i <= nr_sides; i++) {
		k = side[i] " " mode " " what " " size " " force
		printf " | %s %s %s", mode == "persistent" ? sprintf("%9s", "") : cell(k, "read_rate"),
			cell(k, "write_rate"), mode == "persistent" ? sprintf("%9s", "") : cell(k, "iops")
	}
	print ""
}

function bar(what, mine, than, figure, least)
{
	if (!(mine in has) || !(than in has) || how(than) != "ok")
		return
	if (how(mine) != "ok")
		wanted(what, how(mine), 0)
	else
		at_least(what, ratio(figure, mine, than), least, "%.2f")
}

function bars(mode, what, size, force,	k)
{
	k = " " mode " " what " " size " " force
	if (mode == "persistent")
		bar("persistent, puts, " what " of " size ", forced: " force ": to LevelDB", "xseg" k,
			"leveldb" k, "write_rate", force == "yes" ? 2 : 5)
	if (mode == "overflow") {
		bar("overflow, gets, " what " of " size ", forced: " force ": to LevelDB", "xseg" k,
			"leveldb" k, "read_rate", 2)
		bar("overflow, puts, " what " of " size ", forced: " force ": to LevelDB", "xseg" k,
			"leveldb" k, "write_rate", 5)
		bar("overflow, both by the clock, " what " of " size ", forced: " force ": to LevelDB", "xseg" k,
			"leveldb" k, "iops", 2)
	}
}

function each_line(f,	m, w, s, o, mode, what, size, force, nm, nw, ns, no)
{
	nm = split("persistent overflow", mode, " ")
	nw = split(contents, what, " ")
	ns = split(sizes, size, " ")
	no = split(forces, force, " ")
	for (m = 1; m <= nm; m++)
		for (w = 1; w <= nw; w++)
			for (s = 1; s <= ns; s++)
				for (o = 1; o <= no; o++)
					if (f == "line")
						line(mode[m], what[w], size[s], force[o])
					else
						bars(mode[m], what[w], size[s], force[o])
}

function preloads(	i, k)
{
	for (i = 1; i <= nr_keys; i++)
		if (order[i] ~ / preload /)
			printf "preload, %s: %.2f s\n", order[i], mid("seconds", order[i])
}

# Like write_results(), for rates.
function results_of_rates(	i, m, line_, part)
{
	print tabs("side mode what size force kib read_rate read_low read_high write_rate write_low write_high seconds") >results
	for (i = 1; i <= nr_keys; i++) {
		if (how(order[i]) != "ok")
			continue
		split(order[i], part, " ")
		m = mid("read_rate", order[i])
		line_ = tabs(order[i]) OFS part[4] + 0 OFS m OFS low OFS high
		m = mid("write_rate", order[i])
		print line_, m, low, high, mid("seconds", order[i]) >results
	}
}

END {
	nr_sides = split("xseg leveldb rocksdb lmdb", side, " ")
	results_of_rates()
	print "gets and puts a second of the time that they took, ten threads; in overflow also both by the clock"
	printf "%-24s", "the last word: forced"
	for (i = 1; i <= nr_sides; i++)
		printf " | %9s %9s %9s", side[i], "", ""
	print ""
	each_line("line")
	print ""
	preloads()
	for (i = 1; i <= nr_keys; i++)
		if (how(order[i]) != "ok")
			printf "fails: %s: %s\n", order[i], how(order[i])
	print "Published: preload of 1 GB in 9.8 to 14 s.\n"
	each_line("bar")
}
