# plugs.awk - the report of plugs.sh, and its verdict: awk -f lib.awk -f plugs.awk RUNS
#
# In: ROUND PLUGS LONGEST_PLUG_MS IOPS READ_MAX_NS WRITE_MAX_NS STORE_MAX_NS VERIFY_ERRORS ERRORS,
# with tabs
BEGIN {
	FS = "\t"
	printf "%-5s | %17s | %11s | %8s | %15s | %s\n", "round", "plugs and unplugs",
		"longest, ms", "IOPS", "slowest I/O, ms", \
		"slowest of store, ms"
}

{
	pause = $5 > $6 ? $5 : $6
	allowed = 2 * $7 > 20e6 ? 2 * $7 : 20e6
	printf "%-5d | %17d | %11d | %8d | %15.2f | %.2f\n", $1, $2, $3, $4, pause / 1e6, $7 / 1e6
	over = over " " pause / allowed
	plugs += $2
	errors += $8 + $9
}

END {
	print ""
	wanted("a hundred plugs and unplugs", plugs, plugs >= 100)
	wanted("no errors", errors, errors == 0)
	median(over)
	wanted("no pause over twice the slowest request of the store, or 20 ms, in any round",
		sprintf("%.2f of that", high), high <= 1)
}
