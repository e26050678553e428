# sustained.awk - ratios and medians of sustained.sh, and its verdict: awk -f lib.awk -f
# sustained.awk RUNS SLICES
#
# In:  RUNS    STORE PATTERN SYSTEM ROUND BYTES NS FLUSH_NS DIRTY STORE_WRITES STORE_BYTES ERRORS
#      SLICES  STORE PATTERN SYSTEM ROUND SLICE BYTES_A_SECOND
# Out: the report; and into the file `results`, for plots: STORE PATTERN SYSTEM SLICE BYTES_A_SECOND
# RATIO
BEGIN {
	FS = OFS = "\t"
	nr_loads = split("random-back random-half random-through streams-back", load, " ")
	nr_stores = split("memd filed", store, " ")
	name["alone"] = "the store alone"
	name["back"] = "write-back"
	name["half"] = "write-back, objects for half"
	name["through"] = "write-through"
	split("1.00 1.00 0.95 1.30", whole_bar, " ")
	split("0.95 0.95 0 0.95", slice_bar, " ")
}

# ---- reading ----

# Files are sorted by name, so `alone` comes first, and is there when it is divided by.
FNR == NR {
	k = $1 SUBSEP $2 SUBSEP $3
	alone = $1 SUBSEP $2 SUBSEP "alone" SUBSEP $4
	ns[k, $4] = $6
	flushed_ns[k, $4] = $6 + $7
	rates[k] = rates[k] " " $5 / $6 * 1e3
	ratios[k] = ratios[k] " " ns[alone] / $6
	flush_ratios[k] = flush_ratios[k] " " flushed_ns[alone] / ($6 + $7)
	dirty[k] = dirty[k] " " $8 / 2^20
	sizes[k] = sizes[k] " " ($9 ? $10 / $9 / 1024 : 0)
	next
}

{
	k = $1 SUBSEP $2 SUBSEP $3 SUBSEP $5
	alone = $1 SUBSEP $2 SUBSEP "alone" SUBSEP $5 SUBSEP $4
	rate[k, $4] = $6
	slice_rates[k] = slice_rates[k] " " $6
	slice_ratios[k] = slice_ratios[k] " " (rate[alone] ? $6 / rate[alone] : 0)
}

# ---- writing ----

function series(s, load_name,	part, k, i)
{
	split(load_name, part, "-")
	for (i = 1; i <= 20; i++) {
		k = s SUBSEP part[1] SUBSEP part[2] SUBSEP i
		print s, part[1], part[2], i, median(slice_rates[k]), median(slice_ratios[k]) >results
	}
}

# The slice with the smallest ratio; worst is that ratio.
function find_worst(k,	i, m, at)
{
	for (i = 1; i <= 20; i++) {
		m = median(slice_ratios[k, i])
		if (i == 1 || m < worst) {
			worst = m
			at = i
		}
	}
	return at
}

function line(s, load_name,	part, k, m, at)
{
	split(load_name, part, "-")
	k = s SUBSEP part[1] SUBSEP part[2]
	printf "%-6s %-8s %-28s | %7.1f %9.1f %9.1f ", s, part[1], name[part[2]], median(rates[k]), median(sizes[k]),
		median(dirty[k])
	if (part[2] == "alone") {
		print "|"
		return
	}
	m = median(ratios[k])
	printf "| %6.2f  %.2f-%-6.2f %6.2f ", m, low, high, median(flush_ratios[k])
	at = find_worst(k)
	printf "| %6.2f at %d-%d %%\n", worst, at * 5 - 5, at * 5
}

function table(	i, j)
{
	printf "%-44s | %7s %9s %9s | %6s  %-11s %6s | %s\n", "", "MB/s", "KiB a", "MiB dirty", "ratio", "low-high", "with",
		"smallest ratio"
	printf "%-44s | %7s %9s %9s | %6s  %-11s %6s | %s\n", "", "", "write", "at end", "", "", "flush", "of a slice"
	for (i = 1; i <= nr_stores; i++) {
		line(store[i], "random-alone")
		for (j = 1; j <= nr_loads; j++) {
			if (load[j] ~ /^streams/)
				line(store[i], "streams-alone")
			line(store[i], load[j])
		}
	}
}

function verdict(s, j,	part, k, m, what)
{
	split(load[j], part, "-")
	k = s SUBSEP part[1] SUBSEP part[2]
	what = s ", " part[1] ", " name[part[2]]
	m = median(ratios[k])
	wanted(sprintf("%s: at least %s of the store alone over the run", what, whole_bar[j]), sprintf("%.2f", m),
		m >= whole_bar[j])
	if (slice_bar[j] == 0)
		return
	find_worst(k)
	wanted(sprintf("%s: at least %s in each slice of 5 %%", what, slice_bar[j]), sprintf("%.2f", worst),
		worst >= slice_bar[j])
}

END {
	print "store", "pattern", "system", "slice", "bytes_a_second", "ratio" >results
	for (i = 1; i <= nr_stores; i++) {
		series(store[i], "random-alone")
		series(store[i], "streams-alone")
		for (j = 1; j <= nr_loads; j++)
			series(store[i], load[j])
	}
	table()
	print "\nKiB a write: mean size of the writes that the store got. With flush: until what was dirty at the end was"
	print "written and the store had flushed.\n"
	for (i = 1; i <= nr_stores; i++)
		for (j = 1; j <= nr_loads; j++)
			verdict(store[i], j)
}
