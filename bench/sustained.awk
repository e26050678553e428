# sustained.awk - the report of sustained.sh (see lib.awk, series.awk).
BEGIN {
	nr_loads = split("random alone,random back,random half,random through," \
		"streams alone,streams back", load, ",")
	split("0 1.00 1.00 0.95 0 1.30", whole, " ")
	split("0 0.95 0.95 0 0 0.95", slice, " ")
	split("memd filed", store, " ")
}

END {
	print tabs("store pattern system slice bytes_a_second ratio") >results
	series_head()
	for (s = 1; s <= 2; s++)
		for (j = 1; j <= nr_loads; j++) {
			series_line(store[s] " " load[j])
			series_rows(store[s] " " load[j], results)
		}
	series_foot()
	for (s = 1; s <= 2; s++)
		for (j = 1; j <= nr_loads; j++)
			series_bar(store[s] " " load[j], whole[j], slice[j])
}
