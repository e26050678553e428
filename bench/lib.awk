# lib.awk - reads the runs of a benchmark, and has the medians, ratios and bars of its report: awk
# -v columns="..." -f lib.awk -f NAME.awk RUNS
#
# Lines have tabs. `columns` names them: those that say what was measured, "=", and the figures, as
# in "system rw round = iops mean_ns errors". A *key* is the words of the first part but for the
# round, with a blank between them: "cached read". A further file has its columns as an assignment
# before it on the command line.
#
#   at[FIGURE, KEY, ROUND]   what a round measured
#   all[FIGURE, KEY]         the same of all rounds, as a list
#   order[1 .. nr_keys]      the keys, in the order of the file
#   round[1 .. nr_rounds]    the rounds
#   base_of[KEY]             the key of what others are compared with: system `alone`, all else the same
BEGIN {
	FS = OFS = "\t"
}

FNR == 1 {
	nr_words = split(columns, column, " ")
	for (nr_key = 0; nr_key < nr_words && column[nr_key + 1] != "=";)
		nr_key++
}

{
	key = base = ""
	for (i = 1; i <= nr_key; i++)
		if (column[i] == "round") {
			in_round = $i
		} else {
			key = key (key == "" ? "" : " ") $i
			base = base (base == "" ? "" : " ") (column[i] == "system" ? "alone" : $i)
		}
	if (nr_key && !(key in has)) {
		has[key]
		base_of[key] = base
		order[++nr_keys] = key
	}
	if (nr_key && !seen_round[in_round]++)
		round[++nr_rounds] = in_round
	for (i = nr_key + 2; i <= nr_words; i++) {
		at[column[i], key, in_round] = $(i - 1)
		all[column[i], key] = all[column[i], key] " " $(i - 1)
	}
}

# ---- figures ----

# The median of a list of numbers; low and high are set.
function median(list,	v, n, i, k, t)
{
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && v[k - 1] + 0 > v[k] + 0; k--) {
			t = v[k]
			v[k] = v[k - 1]
			v[k - 1] = t
		}
	low = v[1]
	high = v[n]
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function mid(figure, key)
{
	return median(all[figure, key])
}

# The median of one key's figure by that of another, within each round
function ratio(figure, key, than,	i, of, list)
{
	for (i = 1; i <= nr_rounds; i++) {
		of = at[figure, than, round[i]]
		list = list " " (of ? at[figure, key, round[i]] / of : 0)
	}
	return median(list)
}

function to_base(figure, key)
{
	return ratio(figure, key, base_of[key])
}

# The smallest to_base() of IOPS of some keys, which have a comma between them; worst is its key.
function smallest(keys,	key_of, n, i, r, least)
{
	n = split(keys, key_of, ",")
	for (i = 1; i <= n; i++) {
		r = to_base("iops", key_of[i])
		if (i == 1 || r < least) {
			least = r
			worst = key_of[i]
		}
	}
	return least
}

# The median of what one key's figure is above that of another, within each round
function above(figure, key, than,	i, list)
{
	for (i = 1; i <= nr_rounds; i++)
		list = list " " (at[figure, key, round[i]] - at[figure, than, round[i]])
	return median(list)
}

# ---- text ----

# names("KEY=TEXT|KEY=TEXT", LIST): name[KEY] for people; LIST has the keys, as many as are returned
function names(text, list,	n, i, at_sign)
{
	n = split(text, list, "|")
	for (i = 1; i <= n; i++) {
		at_sign = index(list[i], "=")
		name[substr(list[i], 1, at_sign - 1)] = substr(list[i], at_sign + 1)
		list[i] = substr(list[i], 1, at_sign - 1)
	}
	return n
}

# show(KEY, FORMAT, "FIGURE FIGURE/DIVISOR ..."): medians of the rounds. FIGURE may also be `ratio`, of
# IOPS to the base; and after either one `low` and `high`, of the same rounds, and low% and high%
# of the median.
function show(key, format, figures,	n, figure, part, i, of, v, text)
{
	n = split(figures, figure, " ")
	for (i = 1; i <= n; i++) {
		split(figure[i] "/1", part, "/")
		if (part[1] ~ /^(low|high)/)
			v = (part[1] ~ /^low/) ? low : high
		else
			v = of = (part[1] == "ratio") ? to_base("iops", key) : mid(part[1], key)
		if (part[1] ~ /%$/)
			v = of ? v / of * 100 : 0
		match(format, /%[-+0-9.]*[dfgs]/)
		text = text sprintf(substr(format, 1, RSTART + RLENGTH - 1), v / part[2])
		format = substr(format, RSTART + RLENGTH)
	}
	return text sprintf(format)
}

# ---- the table for plots ----

function tabs(words)
{
	gsub(" ", OFS, words)
	return words
}

# write_results(KEY_COLUMNS, FIGURES, ALSO_RATIO): in the file `results` a head, and then a line for
# each key with its IOPS, the lowest and highest of the rounds, and the medians of FIGURES; with
# ALSO_RATIO also the ratio of IOPS to the base with its lowest and highest, or zeroes without a base.
function write_results(key_columns, figures, also_ratio,	i, k, n, name, m, line)
{
	print tabs(key_columns " iops low high " figures \
		(also_ratio ? " ratio lowest highest" : "")) >results
	n = split(figures, name, " ")
	for (i = 1; i <= nr_keys; i++) {
		m = mid("iops", order[i])
		line = tabs(order[i]) OFS m OFS low OFS high
		for (k = 1; k <= n; k++)
			line = line OFS mid(name[k], order[i])
		if (also_ratio && base_of[order[i]] in has) {
			m = to_base("iops", order[i])
			line = line OFS m OFS low OFS high
		} else if (also_ratio) {
			line = line OFS 0 OFS 0 OFS 0
		}
		print line >results
	}
}

# ---- bars ----

# The last lines of a report: what was wanted, what came out, and whether that will do. A figure that
# is none never does: 0 by 0 is equal to every number, to mawk, and what was never counted to 0.
function wanted(what, is, ok)
{
	if (is == "" || is ~ /nan/)
		ok = 0
	printf "wanted %s, is %s: %s\n", what, is, ok ? "met" : "not met"
}

# at_least(WHAT, IS, BAR, FORMAT, [OF]): the figure in FORMAT; OF stands after the bar
function at_least(what, is, bar, format, of)
{
	wanted(what ": at least " bar (of ? " " of : ""), sprintf(format, is), is >= bar + 0)
}
