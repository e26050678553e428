# kv_offload.awk - the report of kv_offload.sh (see lib.awk). Keys are SIDE FACTOR SIZE.
#
# Variables: factors, sizes (lists), memory (MiB of a side)

function key_of(side, factor, size)
{
	return side " " factor " " size
}

# What a side did, or how it failed.
function cell(side, factor, size,	k)
{
	k = key_of(side, factor, size)
	if (!(k in has))
		return sprintf("%16s", "-")
	if (mid("iops", k) == 0)
		return sprintf("%16.16s", how(k))
	if (mid("missed", k) >= 0.05)
		return sprintf("%8.1fk -%4.1f%%", mid("iops", k) / 1e3, mid("missed", k))
	return sprintf("%8.1fk       ", mid("iops", k) / 1e3)
}

function how(k,	i)
{
	for (i = 1; i <= nr_rounds; i++)
		if (at["how", k, round[i]] != "ok" && at["how", k, round[i]] != "")
			return at["how", k, round[i]]
	return "ok"
}

function table(size,	i, f)
{
	printf "%s on average: operations a second; -N%%: so many gets found nothing\n", size
	printf "%-6s", "data"
	for (i = 1; i <= nr_sides; i++)
		printf " | %16s", side[i]
	print ""
	for (f = 1; f <= nr_factors; f++) {
		printf "%-6s", factor[f]
		for (i = 1; i <= nr_sides; i++)
			printf " | %16s", cell(side[i], factor[f], size)
		print ""
	}
	print ""
}

# The same with latencies and the CPU of the server.
function more(size,	i, f, k)
{
	printf "%s on average: us of a get, of a put, %% of the server's CPU\n", size
	for (f = 1; f <= nr_factors; f++) {
		printf "%-6s", factor[f]
		for (i = 1; i <= nr_sides; i++) {
			k = key_of(side[i], factor[f], size)
			if (k in has)
				printf " | %-9s %6.0f %6.0f %3d", side[i], mid("read_ns", k) / 1e3,
					mid("write_ns", k) / 1e3, mid("cpu", k)
		}
		print ""
	}
	print ""
}

function failures(	i)
{
	for (i = 1; i <= nr_keys; i++)
		if (how(order[i]) != "ok")
			printf "failed: %s: %s\n", order[i], how(order[i])
}

# bar(SIDE, THAN, FACTOR, SIZE, LEAST)
function bar(mine, than, f, size, least,	k, t)
{
	k = key_of(mine, f, size)
	t = key_of(than, f, size)
	if (k in has && t in has && mid("iops", t))
		at_least("offload, " size ", factor " f ": " mine " to " than, ratio("iops", k, t), least,
			"%.3f")
}

function bars(mine, size,	f)
{
	for (f = 1; f <= nr_factors; f++) {
		if (factor[f] < 1) {
			bar(mine, "memcached", factor[f], size, factor[f] < 0.7 ? 0.95 : 0.85)
			bar(mine, "through", factor[f], size, 2)
		} else {
			bar(mine, "sync", factor[f], size, 1)
			bar(mine, "through", factor[f], size, 1)
		}
	}
}

function dropped(	i, k, any, most)
{
	for (i = 1; i <= nr_keys; i++)
		if (order[i] ~ /^(spill|sync|through|capi) /) {
			any = 1
			if (mid("missed", order[i]) > most)
				most = mid("missed", order[i])
		}
	if (any)
		wanted("offload: nothing is dropped by kvd", sprintf("%.1f %%", most), most == 0)
}

END {
	nr_sides = split("spill sync through capi memcached extstore redis", side, " ")
	nr_factors = split(factors, factor, " ")
	nr_sizes = split(sizes, size_of, " ")
	write_results("side factor size", "read_ns write_ns missed cpu")
	for (s = 1; s <= nr_sizes; s++)
		table(size_of[s])
	for (s = 1; s <= nr_sizes; s++)
		more(size_of[s])
	failures()
	print "Published: spill-over to memory alone 0.97 to 0.98 if all fits, synchronous 0.38 to 0.58;"
	print "spill-over to synchronous up to 3.23 if it does not fit.\n"
	for (s = 1; s <= nr_sizes; s++)
		bars("spill", size_of[s])
	dropped()
}
