# examples.awk - the commands in the examples of manual pages: mawk -f examples.awk PAGE...
#
# Prints one command a line, as a person would type it: roff's escapes are undone, and a line that
# ends with a backslash is joined with the next one. Lines of an example that begin with no program
# (stack files, units, C) are left out.

FNR == 1 { inside = 0; joined = "" }
/^\.nf/ { inside = 1; next }
/^\.fi/ { inside = 0; next }
!inside || /^[.'[]/ { next }
{
	text = $0
	gsub(/\\-/, "-", text)
	gsub(/\\\(aq/, "'", text)
	goes_on = sub(/ *\\e$/, "", text)
	sub(/^ +/, joined == "" ? "" : " ", text)
	joined = joined text
	if (goes_on) next
	if (joined ~ /^([A-Z_]+=[^ ]* )*(xseg|xbench|nbdkit|qemu-[a-z0-9_-]+|zcat|sysctl|mount|kill|tail) /)
		print joined
	joined = ""
}
