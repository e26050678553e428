# index.awk - the report of index.sh (see lib.awk). Lines are sorted by the number of objects.
!seen[$1]++ {
	objects[++nr] = $1
}

function line(kd, n,	m, r)
{
	m = mid("iops", n " " kd)
	r = ratio("iops", n " " kd, objects[1] " " kd)
	printf "%-28s %8d | %8.0fk | %5.2f  %.2f-%.2f\n", name[kd], n, m / 1000, r, low, high
	print kd, n, m, r, low, high >results
}

END {
	nr_kinds = names("read=hits, reads|write=hits, writes|cold=cold cache, reads|" \
		"coldwrite=cold cache, writes|slow=cold cache over 1 ms, reads", kind)
	split("0.7 0.7 0.7 0.7 0.9", least, " ")
	print tabs("kind objects iops ratio low high") >results
	printf "%-28s %8s | %9s | %s\n", "", "objects", "IOPS", "ratio  low-high"
	for (i = 1; i <= nr_kinds; i++)
		for (j = 1; j <= nr; j++)
			line(kind[i], objects[j])
	print ""
	for (i = 1; i <= nr_kinds; i++)
		for (j = 2; j <= nr; j++)
			at_least(name[kind[i]] ", " objects[j] " objects",
				ratio("iops", objects[j] " " kind[i], objects[1] " " kind[i]),
				least[i], "%.2f", "of the rate with " objects[1])
}
