# hits.awk - the table, the limit's parts and the verdict, from the medians of hits_medians.awk. Used by hits.sh.
#
# Variables: sizes, depths, threads (lists), goal (IOPS), load (load average before the run)
BEGIN {
	FS = "\t"
	nr_sizes = split(sizes, size, " ")
	nr_depths = split(depths, depth, " ")
	nr_threads = split(threads, thread, " ")
	split("read write", rws, " ")
	spread_name = "IOPS  low-high %"
}

NR > 1 {
	k = $1 SUBSEP $2 $3 "," $4 "," $5
	iops[k] = $6 ? $6 : 1			# 0 in a run that failed
	low[k] = $7
	high[k] = $8
	mean[k] = $10
	if ($1 == "limit" && $6) {
		spread += ($8 - $7) / $6
		nr_limits++
	}
}

function cell(who, k,	i)
{
	i = who SUBSEP k
	return sprintf("%8.0fk %4.0f-%-4.0f", iops[i] / 1000, low[i] / iops[i] * 100, \
		high[i] / iops[i] * 100)
}

function ratio(who, k)
{
	return sprintf("%5.2f", iops[who SUBSEP k] / iops["limit" SUBSEP k])
}

function line(rw, bs, d, t,	k)
{
	k = rw bs "," d "," t
	printf "%-5s %4s %5d %7d | %19s ", rw, bs, d, t, cell("limit", k)
	printf "| %19s %6s ", cell("cached", k), ratio("cached", k)
	printf "| %19s %6s ", cell("volume", k), ratio("volume", k)
	printf "| %6d %6d %7d\n", mean["limit" SUBSEP k], mean["cached" SUBSEP k], \
		mean["volume" SUBSEP k]
}

function table(	w, i, h, j)
{
	printf "%-24s | %19s | %19s %6s | %19s %6s | %21s\n", "", "bare limit", "cached", "ratio", \
		"volumed + cached", "ratio", "mean latency, ns"
	printf "%-5s %4s %5s %7s | %19s | %19s %6s | %19s %6s | %6s %6s %7s\n", "", "bs", "depth", \
		"threads", spread_name, spread_name, "", spread_name, "", "limit", "cached", "volume"
	for (w = 1; w <= 2; w++)
		for (i = 1; i <= nr_sizes; i++)
			for (h = 1; h <= nr_threads; h++)
				for (j = 1; j <= nr_depths; j++)
					line(rws[w], size[i], depth[j], thread[h])
}

function parts(	j, k)
{
	for (j = 1; j <= nr_depths; j++) {
		k = SUBSEP "read4k," depth[j] ",1"
		printf "The limit in parts, 4k, depth %2d, one thread: lanes alone %dk, with a lookup %dk, " \
			"with one memcpy %dk\n", depth[j], iops["echo" k] / 1000, iops["lookup" k] / 1000, \
			iops["limit" k] / 1000
	}
}

function verdict(	w, s, who, half, need, got, k)
{
	split("cached volume", who, " ")
	for (w = 1; w <= 2; w++)
		for (s = 1; s <= 2; s++) {
			k = SUBSEP rws[w] "4k,16,1"
			half = iops["limit" k] / 2
			need = (half < goal) ? half : goal
			got = iops[who[s] k]
			printf "4k %s, depth 16, by copy, through %s: %d IOPS, wanted %d (%s): %s\n", rws[w], \
				(who[s] == "volume" ? "volumed and cached" : "cached"), got, need, \
				(half < goal ? "half of the bare limit" : "1.0 M/s"), \
				(got >= need ? "met" : "NOT MET")
		}
}

# Other work on the machine shows as spread of the bare limit.
function trust()
{
	if (nr_limits && spread / nr_limits > 0.3) {
		printf "NOTE: the bare limit itself varied by %d%% between runs (load average before: %s):\n" \
			"      something else was running, and none of these figures can be trusted.\n" \
			"      Run it again on a quiet machine.\n", spread / nr_limits * 100, load
	}
}

END {
	table()
	print ""
	parts()
	print ""
	verdict()
	trust()
}
