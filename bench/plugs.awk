# plugs.awk - the report of plugs.sh (see lib.awk, pauses.awk).
BEGIN {
	printf "%-5s | %17s | %11s | %8s | %15s | %s\n", "round", "plugs and unplugs",
		"longest, ms", "IOPS", "slowest I/O, ms", "slowest of store, ms"
}

{
	printf "%-5d | %17d | %11d | %8d | %15.2f | %.2f\n", $1, $2, $3, $4, pause / 1e6, $7 / 1e6
	plugs += $2
}

END {
	print ""
	wanted("a hundred plugs and unplugs", plugs, plugs >= 100)
	no_errors("", key)
	no_pause("", key)
}
