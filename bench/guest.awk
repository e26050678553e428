# guest.awk - the report of guest.sh (see lib.awk).
function table(rw,	i)
{
	printf "%-26s | %8s  %-17s %9s | %s\n", rw "s", "IOPS", "low-high", "mean", "to the store alone"
	for (i = 1; i <= nr; i++)
		printf "%-26s %s", name[system_of[i]], show(system_of[i] " " rw,
			"| %8d  %7d-%-9d %6d us | %5.2f  %.2f-%.2f\n", "iops low high mean_ns/1e3 ratio low high")
	print ""
}

function bars(rw,	i)
{
	for (i = 2; i <= nr; i++)
		at_least(rw "s, " name[system_of[i]], to_base("iops", system_of[i] " " rw),
			system_of[i] == "through" ? 0.95 : 1, "%.2f", "of the store alone")
}

END {
	nr = names("alone=store alone|fits=cache larger than the set|few=of half, few objects|" \
		"many=of half, many objects|through=write-through", system_of)
	table("write")
	table("read")
	bars("write")
	bars("read")
}
