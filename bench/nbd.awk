# nbd.awk - the report of nbd.sh (see lib.awk).
END {
	nr = split("read 1,read 4,read 16,read 64,write 1,write 4,write 16,write 64,reread 16,reread 64", points, ",")
	printf "%-6s %5s | %-19s | %-19s | %s\n", "", "depth", "nbdkit, memory", "xseg export", "export by memory  low-high"
	for (i = 1; i <= nr; i++) {
		if (!(("export " points[i]) in has))
			continue
		split(points[i], word, " ")
		printf "%-6s %5d", word[1], word[2]
		printf show("memory " points[i], " | %7.1fk %7.1f us", "iops/1e3 mean_ns/1e3")
		printf show("export " points[i], " | %7.1fk %7.1f us", "iops/1e3 mean_ns/1e3")
		r[i] = ratio("iops", "export " points[i], "memory " points[i])
		printf " | %5.2f  %.2f-%.2f\n", r[i], low, high
	}
	print ""
	for (i = 1; i <= nr; i++) {
		split(points[i], word, " ")
		if (i in r && word[2] >= 16)
			at_least(word[1] "s by NBD, depth " word[2], r[i], 0.7, "%.2f", "of nbdkit's memory plug-in")
	}
}
