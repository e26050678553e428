# sustained.awk - ratios and medians of sustained.sh, and its verdict: awk -f lib.awk -f series.awk
# -f sustained.awk RUNS SLICES
#
# In:  RUNS and SLICES, as series.awk says
# Out: the report; and into the file `results`, for plots: STORE PATTERN SYSTEM SLICE BYTES_A_SECOND
#      RATIO
BEGIN {
	FS = OFS = "\t"
	nr_loads = split("random-back random-half random-through streams-back", load, " ")
	nr_stores = split("memd filed", store, " ")
	name["alone"] = "the store alone"
	name["back"] = "write-back"
	name["half"] = "write-back, objects for half"
	name["through"] = "write-through"
	split("1.00 1.00 0.95 1.30", whole, " ")
	split("0.95 0.95 0 0.95", slice, " ")
	for (i = 1; i <= nr_loads; i++) {
		whole_bar[load[i]] = whole[i]
		slice_bar[load[i]] = slice[i]
	}
}

FNR == NR {
	series_run()
	next
}

{
	series_slice()
}

END {
	print "store", "pattern", "system", "slice", "bytes_a_second", "ratio" >results
	series_head()
	for (i = 1; i <= nr_stores; i++) {
		series_rows(store[i], "random-alone", results)
		series_rows(store[i], "streams-alone", results)
		series_line(store[i], "random-alone")
		for (j = 1; j <= nr_loads; j++) {
			if (load[j] ~ /^streams/)
				series_line(store[i], "streams-alone")
			series_line(store[i], load[j])
			series_rows(store[i], load[j], results)
		}
	}
	series_foot()
	for (i = 1; i <= nr_stores; i++)
		for (j = 1; j <= nr_loads; j++)
			series_verdict(store[i], load[j])
}
