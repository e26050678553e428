# scale.awk - the report of scale.sh (see lib.awk). Lines are sorted by the number of reactors.
# results.tsv has what one I/O costs.
BEGIN {
	print tabs("reactors part rw batch form instructions lines code_lines") >results
}

!seen[$1]++ {
	reactors[++nr] = $1
}

{
	k = $2 " " $3 " " $4 " " $5
	if (!known[k]++)
		step[++nr_steps] = k
	for (i = 7; i <= 9; i++)
		one[i, k, $1] = $i / $6
	print $1, $2, $3, $4, $5, one[7, k, $1], one[8, k, $1], one[9, k, $1] >results
}

function row(k,	i)
{
	printf "%-22s", k
	for (i = 1; i <= nr; i++)
		printf " | %6d %5.0f %5.0f", one[7, k, reactors[i]], one[8, k, reactors[i]],
			one[9, k, reactors[i]]
	print ""
}

# What the most reactors cost to what one costs.
function verdict(what, k, i, of,	most, r)
{
	most = reactors[nr]
	r = one[i, k, most] / one[i, k, reactors[1]]
	wanted(what ": with " most " reactors' tables at most 1.1 of the " of " with " reactors[1],
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
	split("server read 8 own,server write 8 own,client read 8 own", bar_of, ",")
	split("a reactor, reads|a reactor, writes|a client, reads", what, "|")
	for (i = 1; i <= 3; i++) {
		verdict(what[i] ", 8 at a time", bar_of[i], 7, "instructions")
		verdict(what[i] ", 8 at a time", bar_of[i], 8, "lines")
	}
}
