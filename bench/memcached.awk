# memcached.awk - the report of memcached.sh (see lib.awk).
#
# Variables: sizes (a list)
END {
	split("read 1,read 16,write 1,write 16", points, ",")
	nr_sizes = split(sizes, size_of, " ")
	write_results("system size rw depth", "mean_ns")
	printf "%-5s %5s %5s | %-22s | %-22s | %s\n", "value", "", "depth", "memcached", "gateway",
		"gateway by memcached  low-high"
	for (s = 1; s <= nr_sizes; s++)
		for (i = 1; i <= 4; i++) {
			split(points[i], word, " ")
			key = size_of[s] " " points[i]
			printf "%-5s %5s %5d", size_of[s], word[1] == "read" ? "get" : "set", word[2]
			printf show("memcached " key, " | %8.1fk %8.1f us", "iops/1e3 mean_ns/1e3")
			printf show("gateway " key, " | %8.1fk %8.1f us", "iops/1e3 mean_ns/1e3")
			r[key] = ratio("iops", "gateway " key, "memcached " key)
			printf " | %5.2f  %.2f-%.2f\n", r[key], low, high
		}
	print ""
	for (s = 1; s <= nr_sizes; s++)
		for (i = 1; i <= 4; i++) {
			split(points[i], word, " ")
			at_least((word[1] == "read" ? "gets" : "sets") " of " size_of[s] ", " word[2] " in flight",
				r[size_of[s] " " points[i]], word[2] == 1 ? 0.85 : 1, "%.2f", "of memcached")
		}
}
