# series.awk - endless writes, for the reports of benchmarks that source series.sh: awk -f lib.awk -f
# series.awk -f NAME.awk
#
# Keys are STORE PATTERN SYSTEM, and of slices STORE PATTERN SYSTEM SLICE. Variables of series_bar()
# say what is wanted.
BEGIN {
	who["alone"] = "the store alone"
	who["back"] = "write-back"
	who["half"] = "write-back, objects for half"
	who["through"] = "write-through"
}

# For plots: STORE PATTERN SYSTEM SLICE BYTES_A_SECOND RATIO
function series_rows(k, file,	i)
{
	for (i = 1; i <= 20; i++)
		print tabs(k), i, mid("bytes_a_second", k " " i),
			to_base("bytes_a_second", k " " i) >file
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
function find_worst(k,	i, m, at_slice)
{
	for (i = 1; i <= 20; i++) {
		m = to_base("bytes_a_second", k " " i)
		if (i == 1 || m < worst) {
			worst = m
			at_slice = i
		}
	}
	return at_slice
}

# The figures of each round that are made of those that were counted
function series_figures(k,	i, r, n)
{
	for (i = 1; i <= nr_rounds; i++) {
		r = round[i]
		at["rate", k, r] = 1 / at["ns", k, r]
		at["flushed", k, r] = 1 / (at["ns", k, r] + at["flush_ns", k, r])
		n = at["store_writes", k, r]
		all["mb_a_second", k] = all["mb_a_second", k] " " at["bytes", k, r] / at["ns", k, r] * 1e3
		all["store_kib", k] = all["store_kib", k] " " (n ? at["store_bytes", k, r] / n / 1024 : 0)
	}
}

function series_line(k,	word, m, at_slice)
{
	split(k, word, " ")
	series_figures(k)
	printf "%-6s %-8s %-28s | %7.1f %9.1f %9.1f ", word[1], word[2], who[word[3]],
		mid("mb_a_second", k), mid("store_kib", k), mid("dirty", k) / 2^20
	if (word[3] == "alone") {
		print "|"
		return
	}
	m = to_base("rate", k)
	printf "| %6.2f  %.2f-%-6.2f %6.2f ", m, low, high, to_base("flushed", k)
	at_slice = find_worst(k)
	printf "| %6.2f at %d-%d %%\n", worst, at_slice * 5 - 5, at_slice * 5
}

# series_bar(KEY, WHOLE, SLICE): at least so much of the store alone, over the run and in each slice;
# 0 is no bar
function series_bar(k, whole, slice,	word, what)
{
	split(k, word, " ")
	what = word[1] ", " word[2] ", " who[word[3]]
	if (whole + 0)
		at_least(what, to_base("rate", k), whole, "%.2f", "of the store alone over the run")
	if (slice + 0) {
		find_worst(k)
		at_least(what, worst, slice, "%.2f", "in each slice of 5 %")
	}
}
