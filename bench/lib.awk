# lib.awk - what the benchmarks' awk programs share: awk -f bench/lib.awk -f bench/NAME.awk

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

# Keeps the rate of a round: in round[1 .. nr_rounds] are the rounds, in at[KEY, ROUND] the rates. A
# key may have several parts, with SUBSEP between them.
function keep(key, in_round, rate)
{
	at[key, in_round] = rate
	if (!kept[in_round]++)
		round[++nr_rounds] = in_round
}

# One's rate by that of another, of each round: for median(). Rates are those of keep().
function by_round(who, than,	i, of, list)
{
	for (i = 1; i <= nr_rounds; i++) {
		of = at[than, round[i]]
		list = list " " (of ? at[who, round[i]] / of : 0)
	}
	return list
}

# The last lines of a report: what was wanted, what came out, and whether that will do. A figure that
# is none never does: 0 by 0 is equal to every number, to mawk, and what was never counted to 0.
function wanted(what, is, ok)
{
	if (is == "" || is ~ /nan/)
		ok = 0
	printf "wanted %s, is %s: %s\n", what, is, ok ? "met" : "not met"
}
