# run.awk - one table of all bars, from the reports that run.sh collects: awk -f run.awk REPORT
#
# A bar is a line that lib.awk's wanted() prints, "wanted WHAT: TARGET, is FIGURE: met" or "not
# met", under the line "==== NAME ====" of its benchmark. TARGET is what stands behind the last ":
# "; where there is none, WHAT says it all.
function last(text, mark,	at, from)
{
	at = 0
	while ((from = index(substr(text, at + 1), mark)) > 0)
		at += from
	return at
}

/^==== / {
	bench = $2
	next
}

/^wanted .*, is .*: (met|not met)$/ {
	text = substr($0, 8)
	at = last(text, ": ")
	verdict = substr(text, at + 2)
	text = substr(text, 1, at - 1)
	at = last(text, ", is ")
	figure = substr(text, at + 5)
	text = substr(text, 1, at - 1)
	at = last(text, ": ")
	target = at ? substr(text, at + 2) : ""
	what = at ? substr(text, 1, at - 1) : text
	if (!nr++)
		printf "%-10s  %-80s  %-66s  %-24s  %s\n", "", "what", "target", "is", ""
	printf "%-10s  %-80s  %-66s  %-24s  %s\n", bench, what, target, figure, verdict
	met += verdict == "met"
}

END {
	printf "%d of %d bars are met.\n", met, nr
}
