# switches.awk - the report of switches.sh (see lib.awk, pauses.awk).
BEGIN {
	nr_loads = split("small mixed", load, " ")
}

!($1 in share) || $7 < share[$1] {
	share[$1] = $7
}

END {
	printf "%-6s | %8s | %-26s | %-26s | %s\n", "load", "IOPS", "slowest I/O, ms  low-high",
		"slowest of store  low-high", "least share"
	for (i = 1; i <= nr_loads; i++) {
		l = load[i]
		printf "%-6s | %8d | ", l, mid("iops", l)
		m = mid("pause", l)
		printf "%15.2f  %4.1f-%-4.1f | ", m / 1e6, low / 1e6, high / 1e6
		m = mid("store_max_ns", l)
		printf "%16.2f  %.2f-%-4.2f | %d %%\n", m / 1e6, low / 1e6, high / 1e6, share[l]
	}
	print ""
	for (i = 1; i <= nr_loads; i++) {
		l = load[i]
		no_errors(l ": ", l)
		wanted(l ": each policy at least 10 % of the writes", sprintf("%.1f %%", share[l]),
			share[l] >= 10)
		no_pause(l ": ", l)
	}
}
