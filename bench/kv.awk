# kv.awk - the report of kv.sh (see lib.awk). Keys are SYSTEM RW BS DEPTH DATA.
#
# Variables: times_file (WORD and a figure, a line for each round), once_file (WORD and figures),
# verified (the last lines)

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
	if (!(key_of(who, rw, bs, 16, data) in has))
		return
	got = ratio("iops", key_of(who, rw, bs, 16, data),
		key_of("volume", rw, "4k", 16, data == "header" ? "loan" : data))
	at_least(what, got, least, "%.3f")
}

# ---- times ----

function read_times(	line, word)
{
	while ((getline line <times_file) > 0) {
		split(line, word, "\t")
		time[word[1]] = time[word[1]] " " word[2]
	}
	close(times_file)
	while ((getline line <once_file) > 0) {
		split(line, word, "\t")
		once[word[1]] = word[2]
		beside[word[1]] = word[3]
		third[word[1]] = word[4]
	}
	close(once_file)
}

function time_line(what, word)
{
	if (word in time)
		printf "%-58s %10.1f  %.1f-%.1f\n", what, median(time[word]), low, high
}

function once_line(what, word, figure)
{
	if (word in once)
		printf "%-58s %10.1f\n", what, figure
}

function at_most(what, word, most, text,	got)
{
	if (!(word in time))
		return
	got = sprintf(text, median(time[word]))
	wanted(what, got, got + 0 <= most)
}

function paced_line(rw, part)
{
	time_line(rw "s beside compaction, 50 % puts at 100 K/s: p" part ", us", "full_" rw "_" part)
	time_line("  without compaction", "roomy_" rw "_" part)
}

function amplification(live,	word)
{
	word = "amp_" live
	if (!(word in once))
		return
	printf "%-58s %10.3f  greedy %.3f, %d zones free\n",
		"bytes appended for each byte put, " live " % live", once[word], beside[word], third[word]
}

function amplification_bar(live,	word)
{
	word = "amp_" live
	if (word in once)
		wanted("bytes appended, " live " % live, to the greedy simulation: at most 1.05",
			sprintf("%.3f", once[word] / beside[word]), once[word] <= beside[word] * 1.05)
}

function many_lines()
{
	if (!("many_keys" in once))
		return
	printf "%-58s %10d\n", "many: keys", once["many_keys"]
	once_line("many: opening of the log from its hints, ms", "many_open", once["many_open"])
	once_line("  the same, ns a key", "many_open", once["many_open"] * 1e6 / once["many_keys"])
	once_line("many: bytes of the index a key", "many_index", once["many_index"] / once["many_keys"])
	once_line("many: memory of the process that no other has, MiB", "many_rss", once["many_rss"] / 1048576)
}

END {
	write_results("system rw bs depth data", "mean_ns p50_ns p99_ns")
	if (nr_keys)
		printf "%-31s | %20s | %17s | %s\n", "", "a second", "latency, us", "to the volume"
	if (nr_keys)
		printf "%-8s %-5s %3s %5s %-6s | %20s | %8s %8s | %s\n", "system", "", "", "depth",
			"data", "low-high %", "mean", "p99", "ratio  low-high"
	rows("read", 16)
	rows("write", 16)
	rows("read", 1)
	rows("write", 1)
	row("unforced", "write", "1k", 64, "copy")
	row("forced", "write", "1k", 64, "copy")
	print ""
	read_times()
	time_line("preload: until kvd serves, ms", "preload_serves")
	time_line("preload: until the cache has all values, ms", "preload_loaded")
	time_line("preload: misses of the cache afterwards", "preload_missed")
	time_line("kill: slowest get, ms", "kill_slowest")
	time_line("kill: opening of the log, ms", "kill_opened")
	time_line("kill: bytes of the index a key that it has room for, but for 84 KiB", "kill_index")
	many_lines()
	paced_line("read", "50.0")
	paced_line("read", "99.9")
	paced_line("write", "50.0")
	paced_line("write", "99.9")
	amplification(50)
	amplification(70)
	amplification(90)
	if ("spill" in once)
		printf "%-58s %10.0f  %.1f MiB reached the store, %.0f K/s\n", "spill-over: MiB put",
			once["spill"] / 1048576, beside["spill"] / 1048576, third["spill"] / 1e3
	print ""
	bar("get of 4 KiB, lent, to reads by loan", "kvd", "read", "4k", "loan", 0.2)
	bar("get of 4 KiB, lent, the header checked, to reads by loan", "kvd", "read", "4k", "header", 0.4)
	bar("get of 4 KiB, copied, to copied reads", "kvd", "read", "4k", "copy", 0.4)
	bar("put of 4 KiB, kvd and cached apart, to copied writes", "apart", "write", "4k", "copy", 0.4)
	bar("put of 1 KiB, kvd and cached apart, to copied writes", "apart", "write", "1k", "copy", 0.4)
	if (("forced write 1k 64 copy") in has)
		at_least("forced puts of 1 KiB, 64 at once, to unforced",
			ratio("iops", key_of("forced", "write", "1k", 64, "copy"),
				key_of("unforced", "write", "1k", 64, "copy")), 0.4, "%.3f")
	at_most("preload: all is in memory within 1 s", "preload_loaded", 1000, "%.0f ms")
	at_most("preload: all is there: no misses afterwards", "preload_missed", 0, "%d")
	at_most("kill: serves within 1 s", "kill_slowest", 1000, "%.0f ms")
	at_most("index: at most 25 bytes a key, and 84 KiB", "kill_index", 25, "%.1f")
	if ("many_open" in once) {
		got = once["many_open"] * 1e6 / once["many_keys"]
		wanted("many: opening from hints, at most 250 ns a key", sprintf("%.0f ns", got), got <= 250)
	}
	amplification_bar(50)
	amplification_bar(70)
	amplification_bar(90)
	if ("spill" in once) {
		got = once["spill"] ? beside["spill"] / once["spill"] * 100 : 100
		wanted("spill-over: less than 1 % of the bytes put reach the store", sprintf("%.2f %%", got),
			got < 1)
	}
	print verified
}
