# reactors.awk - the report of reactors.sh (see lib.awk).
function cell(key)
{
	return show(key, "%7.0fk %5.0f-%-5.0f %6.1f us", "iops/1e3 low/1e3 high/1e3 mean_ns/1e3")
}

function bar(what, rw, side, than, least, of)
{
	at_least(rw "s, " what, ratio("iops", side " " rw, than " " rw), least, "%.2f", of)
}

END {
	nr = names("pair=a pair on A|pairs=two pairs, on A and B|shared=two reactors, two clients|" \
		"one2=one reactor, two clients|one1=one reactor, one client on B|" \
		"two1=two reactors, one client on B", system_of)
	split("read write", rws, " ")
	nr_keys = 0
	for (i = 1; i <= nr; i++)
		for (w = 1; w <= 2; w++)
			order[++nr_keys] = system_of[i] " " rws[w]
	write_results("system rw", "mean_ns")
	printf "%-30s | %-31s | %s\n", "IOPS, low-high, mean latency", "read", "write"
	for (i = 1; i <= nr; i++)
		printf "%-30s | %s | %s\n", name[system_of[i]], cell(system_of[i] " read"),
			cell(system_of[i] " write")
	print ""
	for (w = 1; w <= 2; w++) {
		rw = rws[w]
		bar("two pairs, each on a CPU", rw, "pairs", "pair", 1.7, "of one pair on one CPU")
		bar("one cache with two reactors and two clients", rw, "shared", "pair", 1.7,
			"of one pair on one CPU")
		wanted(rw "s, two clients: two reactors at least 1.0 of one",
			sprintf("%.2f", r = ratio("iops", "shared " rw, "one2 " rw)), r >= 1)
		wanted(rw "s, one client: two reactors at least 1.0 of one",
			sprintf("%.2f", r = ratio("iops", "two1 " rw, "one1 " rw)), r >= 1)
	}
}
