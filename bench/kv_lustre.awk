# kv_lustre.awk - the report of kv_lustre.sh (see lib.awk). Keys are SIDE STAGE SIZE THREADS.
#
# Variables: stages, one, two, three, threads (lists), memory, ops, set_mib

function kib(size)
{
	return substr(size, 1, length(size) - 1) * (size ~ /g$/ ? 1048576 : size ~ /m$/ ? 1024 : 1)
}

function how(k,	i)
{
	for (i = 1; i <= nr_rounds; i++)
		if (at["how", k, round[i]] != "ok" && at["how", k, round[i]] != "")
			return at["how", k, round[i]]
	return "ok"
}

function cell(k)
{
	if (!(k in has))
		return sprintf("%15s", "-")
	if (how(k) != "ok")
		return sprintf("%15.15s", "fails")
	if (k ~ /^memcached [23]/ && mid("missed", k) > 0)
		return sprintf("%9.3f -%3.0f%%", mid("seconds", k), mid("missed", k))
	return sprintf("%9.3f      ", mid("seconds", k))
}

function what_of(stage, nr_threads)
{
	if (stage == 1)
		return nr_threads " that put, " nr_threads " that get, " ops " values each"
	return stage == 2 ? set_mib " MiB" : set_mib * 8 " MiB, 2 threads"
}

function table(stage, nr_threads, list,	n, size, i, s, any, line)
{
	n = split(list, size, " ")
	for (s = 1; s <= n; s++) {
		line = sprintf("%-8s", size[s])
		any = 0
		for (i = 1; i <= nr_sides; i++) {
			line = line " | " cell(side[i] " " stage " " size[s] " " nr_threads)
			any += (side[i] " " stage " " size[s] " " nr_threads) in has
		}
		if (any && !head[stage, nr_threads]++) {
			printf "stage %d, %s: seconds; -N%%: so many gets found nothing\n%-8s", stage,
				what_of(stage, nr_threads), "size"
			for (i = 1; i <= nr_sides; i++)
				printf " | %15s", side[i]
			print ""
		}
		if (any)
			print line
	}
	if (head[stage, nr_threads])
		print ""
}

function rate(mine, than, stage, size, nr_threads, least, text,	k, t)
{
	k = mine " " stage " " size " " nr_threads
	t = than " " stage " " size " " nr_threads
	if (!(k in has) || !(t in has) || how(t) != "ok")
		return
	if (how(k) != "ok")
		wanted(text, how(k), 0)
	else
		at_least(text, ratio("seconds", t, k), least, "%.3f")
}

# Against each rival, the better of xsync and xasync.
function bars(stage, nr_threads, list,	n, size, s, i, k, best)
{
	n = split(list, size, " ")
	for (s = 1; s <= n; s++) {
		k = " " stage " " size[s] " " nr_threads
		best = ("xasync" k) in has && how("xasync" k) == "ok" &&
			(!(("xsync" k) in has) || mid("seconds", "xasync" k) < mid("seconds", "xsync" k)) ? "xasync" : "xsync"
		for (i = 3; i <= 6 && stage < 3; i++)
			rate(best, side[i], stage, size[s], nr_threads, 1,
				"stage " stage ", " size[s] ", " nr_threads " threads: " best " to " side[i])
		if (stage < 3)
			rate("xasync", "xsync", stage, size[s], nr_threads, 1,
				"stage " stage ", " size[s] ", " nr_threads " threads: xasync to xsync")
	}
}

function passes(	i, bad, n)
{
	for (i = 1; i <= nr_keys; i++)
		if (order[i] ~ /^x/) {
			n++
			bad += how(order[i]) != "ok"
		}
	if (n)
		wanted("all stages pass with kvd: no failure of " n " loads", bad + 0, !bad)
}

# Like write_results(), with the size as a number.
function results_of_sizes(	i, part)
{
	print tabs("side stage size threads kib seconds put_bytes got_bytes missed") >results
	for (i = 1; i <= nr_keys; i++) {
		split(order[i], part, " ")
		if (how(order[i]) == "ok")
			print tabs(order[i]), kib(part[3]), mid("seconds", order[i]), mid("put_bytes", order[i]),
				mid("got_bytes", order[i]), mid("missed", order[i]) >results
	}
}

END {
	nr_sides = split("xsync xasync rsync rasync leveldb rocksdb memcached", side, " ")
	nr_threads = split(threads, thread, " ")
	results_of_sizes()
	for (t = 1; t <= nr_threads; t++)
		table(1, thread[t], one)
	table(2, 1, two)
	table(3, 2, three)
	for (i = 1; i <= nr_keys; i++)
		if (how(order[i]) != "ok")
			printf "fails: %s: %s\n", order[i], how(order[i])
	print "Published, stage 3: Redis ran out of memory, LevelDB took 1,000 to 1,700 s.\n"
	for (t = 1; t <= nr_threads; t++)
		bars(1, thread[t], one)
	bars(2, 1, two)
	passes()
}
