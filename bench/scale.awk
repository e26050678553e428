# scale.awk - the tables of scale.sh, and its verdict: awk -f lib.awk -f scale.awk RUNS
#
# In: REACTORS PART RW BATCH FORM IOS INSTRUCTIONS LINES CODE_LINES ERRORS, with tabs; sorted by the
# first as a number Out: the report; and into the file `results`, for plots: REACTORS PART RW BATCH
# FORM and of one I/O INSTRUCTIONS LINES CODE_LINES
BEGIN {
	FS = OFS = "\t"
	print "reactors", "part", "rw", "batch", "form", "instructions", "lines",
		"code_lines" >results
}

{
	if (!($1 in seen)) {
		seen[$1] = 1
		reactors[++nr] = $1
	}
	k = $2 " " $3 " " $4 " " $5
	if (!(k in known)) {
		known[k] = 1
		step[++nr_steps] = k
	}
	work[k, $1] = $7 / $6
	lines[k, $1] = $8 / $6
	code[k, $1] = $9 / $6
	print $1, $2, $3, $4, $5, work[k, $1], lines[k, $1], code[k, $1] >results
}

function row(k,	i)
{
	printf "%-22s", k
	for (i = 1; i <= nr; i++)
		printf " | %6d %5.0f %5.0f", work[k, reactors[i]], lines[k, reactors[i]],
			code[k, reactors[i]]
	print ""
}

# What the most reactors cost to what one costs.
function verdict(k, what,	most, r)
{
	most = reactors[nr]
	r = work[k, most] / work[k, reactors[1]]
	wanted(what ": with " most " reactors' tables at most 1.1 of the instructions with " reactors[1], sprintf("%.2f", r), r <= 1.1)
	r = lines[k, most] / lines[k, reactors[1]]
	wanted(what ": with " most " reactors' tables at most 1.1 of the lines with " reactors[1],
		sprintf("%.2f", r), r <= 1.1)
}

END {
	printf "%-22s", "of one I/O:"
	for (i = 1; i <= nr; i++)
		printf " | %18s", reactors[i] " reactor" (reactors[i] > 1 ? "s" : "")
	printf "\n%-22s", ""
	for (i = 1; i <= nr; i++)
		printf " | %6s %5s %5s", "instr.", "lines", "code"
	print ""
	for (i = 1; i <= nr_steps; i++)
		row(step[i])
	print ""
	verdict("server read 8 own", "a reactor, reads, 8 at a time")
	verdict("server write 8 own", "a reactor, writes, 8 at a time")
	verdict("client read 8 own", "a client, reads, 8 at a time")
}
