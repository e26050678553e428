# series.awk - writes that do not end, for the awk programs of scripts that source series.sh: awk -f
# lib.awk -f series.awk -f NAME.awk
#
# Rows have tabs, and begin with STORE PATTERN SYSTEM ROUND; of a store and a pattern `alone` comes
# first, as files are sorted by name.
#   series_run()     ... BYTES NS FLUSH_NS DIRTY STORE_WRITES STORE_BYTES ERRORS
#   series_slice()   ... SLICE BYTES_A_SECOND
#
# Wanted: name[SYSTEM] for people, whole_bar[PATTERN-SYSTEM] and slice_bar[PATTERN-SYSTEM], where 0,
# or none, is no bar.

# ---- reading ----

function series_run(	k, alone)
{
	k = $1 SUBSEP $2 SUBSEP $3
	alone = $1 SUBSEP $2 SUBSEP "alone" SUBSEP $4
	ns[k, $4] = $6
	flushed_ns[k, $4] = $6 + $7
	rates[k] = rates[k] " " $5 / $6 * 1e3
	ratios[k] = ratios[k] " " ns[alone] / $6
	flush_ratios[k] = flush_ratios[k] " " flushed_ns[alone] / ($6 + $7)
	dirty[k] = dirty[k] " " $8 / 2^20
	store_sizes[k] = store_sizes[k] " " ($9 ? $10 / $9 / 1024 : 0)
}

function series_slice(	k, alone)
{
	k = $1 SUBSEP $2 SUBSEP $3 SUBSEP $5
	alone = $1 SUBSEP $2 SUBSEP "alone" SUBSEP $5 SUBSEP $4
	slice_rate[k, $4] = $6
	slice_rates[k] = slice_rates[k] " " $6
	slice_ratios[k] = slice_ratios[k] " " (slice_rate[alone] ? $6 / slice_rate[alone] : 0)
}

# ---- writing ----

# For plots: STORE PATTERN SYSTEM SLICE BYTES_A_SECOND RATIO
function series_rows(s, load_name, file,	part, k, i)
{
	split(load_name, part, "-")
	for (i = 1; i <= 20; i++) {
		k = s SUBSEP part[1] SUBSEP part[2] SUBSEP i
		print s, part[1], part[2], i, median(slice_rates[k]), median(slice_ratios[k]) >file
	}
}

function series_head(	form)
{
	form = "%-44s | %7s %9s %9s | %6s  %-11s %6s | %s\n"
	printf form, "", "MB/s", "KiB a", "MiB dirty", "ratio", "low-high", "with", "smallest ratio"
	printf form, "", "", "write", "at end", "", "", "flush", "of a slice"
}

function series_foot()
{
	print "\nKiB a write: mean size of the writes that the store got. With flush: until what was"
	print "dirty at the end was written and the store had flushed.\n"
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

function series_line(s, load_name,	part, k, m, at)
{
	split(load_name, part, "-")
	k = s SUBSEP part[1] SUBSEP part[2]
	printf "%-6s %-8s %-28s | %7.1f %9.1f %9.1f ", s, part[1], name[part[2]], median(rates[k]),
		median(store_sizes[k]), median(dirty[k])
	if (part[2] == "alone") {
		print "|"
		return
	}
	m = median(ratios[k])
	printf "| %6.2f  %.2f-%-6.2f %6.2f ", m, low, high, median(flush_ratios[k])
	at = find_worst(k)
	printf "| %6.2f at %d-%d %%\n", worst, at * 5 - 5, at * 5
}

function series_verdict(s, load_name,	part, k, m, what, whole, slice)
{
	split(load_name, part, "-")
	k = s SUBSEP part[1] SUBSEP part[2]
	what = s ", " part[1] ", " name[part[2]]
	whole = whole_bar[load_name]
	slice = slice_bar[load_name]
	if (whole) {
		m = median(ratios[k])
		wanted(what ": at least " whole " of the store alone over the run",
			sprintf("%.2f", m), m >= whole + 0)
	}
	if (slice) {
		find_worst(k)
		wanted(what ": at least " slice " in each slice of 5 %", sprintf("%.2f", worst),
			worst >= slice + 0)
	}
}
