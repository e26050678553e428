# switches.awk - the report of switches.sh, and its verdict: awk -f lib.awk -f switches.awk RUNS
#
# In: LOAD ROUND IOPS READ_MAX_NS WRITE_MAX_NS STORE_MAX_NS LEAST_SHARE_PERCENT VERIFY_ERRORS
# ERRORS, with tabs
BEGIN {
	FS = "\t"
	nr_loads = split("small mixed", loads, " ")
}

{
	pause = $4 > $5 ? $4 : $5
	allowed = 2 * $6 > 20e6 ? 2 * $6 : 20e6
	iops[$1] = iops[$1] " " $3
	pauses[$1] = pauses[$1] " " pause
	stores[$1] = stores[$1] " " $6
	over[$1] = over[$1] " " pause / allowed
	if (!($1 in share) || $7 < share[$1])
		share[$1] = $7
	errors[$1] += $8 + $9
}

END {
	printf "%-6s | %8s | %-26s | %-26s | %s\n", "load", "IOPS", "slowest I/O, ms  low-high",
		"slowest of store  low-high", \
		"least share"
	for (i = 1; i <= nr_loads; i++) {
		l = loads[i]
		printf "%-6s | %8d | ", l, median(iops[l])
		m = median(pauses[l])
		printf "%15.2f  %4.1f-%-4.1f | ", m / 1e6, low / 1e6, high / 1e6
		m = median(stores[l])
		printf "%16.2f  %.2f-%-4.2f | %d %%\n", m / 1e6, low / 1e6, high / 1e6, share[l]
	}
	print ""
	for (i = 1; i <= nr_loads; i++) {
		l = loads[i]
		wanted(l ": no errors", errors[l], errors[l] == 0)
		wanted(l ": each policy at least 10 % of the writes", sprintf("%.1f %%", share[l]),
			share[l] >= 10)
		median(over[l])
		wanted(l ": no pause over twice the slowest request of the store, or 20 ms, in any round", \
			sprintf("%.2f of that", high), high <= 1)
	}
}
