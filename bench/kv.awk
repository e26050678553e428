# kv.awk - the report of kv.sh (see lib.awk). Keys are SYSTEM RW BS DEPTH DATA.
#
# Variables: times_file (a line a round: round, ms until kvd serves, ms until all is in the cache,
# misses after that, ms of the slowest get, ms of opening, bytes of the index, keys), verified (the
# last lines)

function key_of(who, rw, bs, depth, data)
{
	return who " " rw " " bs " " depth " " data
}

# A line of a system beside the volume.
function row(who, rw, bs, depth, data,	k, than)
{
	k = key_of(who, rw, bs, depth, data)
	than = key_of("volume", rw, "4k", depth, data == "header" ? "loan" : data)
	if (!(k in has))
		return
	printf "%-8s %-5s %3s %5d %-6s | %s | %8.1f %8.1f | ", who, rw, bs, depth, data,
		show(k, "%8.0fk %4.0f-%-4.0f", "iops/1e3 low% high%"), mid("mean_ns", k) / 1e3,
		mid("p99_ns", k) / 1e3
	if (than in has && who != "volume")
		printf "%.3f  %.3f-%.3f", ratio("iops", k, than), low, high
	print ""
}

function rows(rw, depth)
{
	row("volume", rw, "4k", depth, "copy")
	row("kvd", rw, "4k", depth, "copy")
	row("kvd", rw, "1k", depth, "copy")
	row("apart", rw, "4k", depth, "copy")
	row("apart", rw, "1k", depth, "copy")
	row("volume", rw, "4k", depth, "loan")
	row("kvd", rw, "4k", depth, "loan")
	row("kvd", rw, "4k", depth, "header")
}

function bar(what, who, rw, bs, data, least,	got)
{
	got = ratio("iops", key_of(who, rw, bs, 16, data),
		key_of("volume", rw, "4k", 16, data == "header" ? "loan" : data))
	at_least(what, got, least, "%.3f")
}

# ---- times ----

function read_times(	line, word, i)
{
	while ((getline line <times_file) > 0) {
		split(line, word, "\t")
		for (i = 2; i <= 8; i++)
			time[i] = time[i] " " word[i]
	}
	close(times_file)
}

function time_line(what, i)
{
	printf "%-58s %10.1f  %.1f-%.1f\n", what, median(time[i]), low, high
}

END {
	write_results("system rw bs depth data", "mean_ns p50_ns p99_ns")
	printf "%-31s | %20s | %17s | %s\n", "", "a second", "latency, us", "to the volume"
	printf "%-8s %-5s %3s %5s %-6s | %20s | %8s %8s | %s\n", "system", "", "", "depth", "data",
		"low-high %", "mean", "p99", "ratio  low-high"
	rows("read", 16)
	rows("write", 16)
	rows("read", 1)
	rows("write", 1)
	row("unforced", "write", "1k", 64, "copy")
	row("forced", "write", "1k", 64, "copy")
	print ""
	read_times()
	time_line("preload: until kvd serves, ms", 2)
	time_line("preload: until the cache has all values, ms", 3)
	time_line("preload: misses of the cache afterwards", 4)
	time_line("kill: slowest get, ms", 5)
	time_line("kill: opening of the log, ms", 6)
	keys = median(time[8])
	time_line("bytes of the index", 7)
	printf "%-58s %10.1f\n\n", "bytes of the index a key", keys ? median(time[7]) / keys : 0
	bar("get of 4 KiB, lent, to reads by loan", "kvd", "read", "4k", "loan", 0.2)
	bar("get of 4 KiB, lent, the header checked, to reads by loan", "kvd", "read", "4k", "header", 0.4)
	bar("get of 4 KiB, copied, to copied reads", "kvd", "read", "4k", "copy", 0.4)
	bar("put of 4 KiB, kvd and cached apart, to copied writes", "apart", "write", "4k", "copy", 0.4)
	bar("put of 1 KiB, kvd and cached apart, to copied writes", "apart", "write", "1k", "copy", 0.4)
	at_least("forced puts of 1 KiB, 64 at once, to unforced",
		ratio("iops", key_of("forced", "write", "1k", 64, "copy"),
			key_of("unforced", "write", "1k", 64, "copy")), 0.4, "%.3f")
	got = median(time[3])
	wanted("preload: all is in memory within 1 s", sprintf("%.0f ms", got), got <= 1000)
	got = median(time[4])
	wanted("preload: all is there: no misses afterwards", sprintf("%d", got), got == 0)
	got = median(time[5])
	wanted("kill: serves within 1 s", sprintf("%.0f ms", got), got > 0 && got <= 1000)
	got = keys ? median(time[7]) / keys : 0
	wanted("index: at most 25 bytes a key", sprintf("%.1f", got), got > 0 && got <= 25)
	print verified
}
