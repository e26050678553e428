# plugs.awk - the report of plugs.sh (see lib.awk, pauses.awk).
BEGIN {
	nr_loads = split("one two beside", load, " ")
	printf "%-6s | %-5s | %17s | %11s | %8s | %15s | %s\n", "load", "round",
		"plugs and unplugs", "longest, ms", "IOPS", "slowest I/O, ms", "slowest of store, ms"
}

{
	printf "%-6s | %-5d | %17d | %11d | %8d | %15.2f | %.2f\n", $1, $2, $3, $4, $5, pause / 1e6,
		$8 / 1e6
	plugs[$1] += $3
}

END {
	print ""
	for (i = 1; i <= nr_loads; i++) {
		l = load[i]
		if (l != "beside")
			wanted(l ": a hundred plugs and unplugs", plugs[l], plugs[l] >= 100)
		no_errors(l ": ", l)
		no_pause(l ": ", l)
	}
}
