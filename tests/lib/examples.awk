# examples.awk - the examples of manual pages: mawk -v dir=DIR -f examples.awk PAGE...
#
# An example is a block between .nf and .fi, or .EX and .EE. Each becomes a file of DIR, as a person
# would type it: roff's escapes are undone. A line is printed for each: its kind, PAGE:LINE, its file.
#
#   synopsis  of a page about a library        c, python  a program, or a part of one
#   stack     a stack file, or sections of it  options    KEY = VALUE lines of the page's peer
#   unit      a unit of systemd                rotate     a file of logrotate
#   fields    fields of JSON                   xml        an element, as for libvirt
#   commands  all others: one command a line; where a line ends with a backslash the next is joined

function plain(text) {
	gsub(/\\-/, "-", text)
	gsub(/\\\(aq/, "'", text)
	gsub(/\\\(dq/, "\"", text)
	gsub(/\\f[BIRP]/, "", text)
	gsub(/\\&/, "", text)
	gsub(/\\e/, "\\", text)
	return text
}

# The arguments of a macro such as .BI, side by side.
function joined_words(text,	out) {
	sub(/^\.[A-Z]+ */, "", text)
	while (text != "") {
		if (text ~ /^"/) {
			match(text, /^"[^"]*"?/)
			out = out substr(text, 2, RLENGTH - (substr(text, RLENGTH, 1) == "\"" ? 2 : 1))
		} else {
			match(text, /^[^ ]+/)
			out = out substr(text, 1, RLENGTH)
		}
		text = substr(text, RLENGTH + 1)
		sub(/^ +/, "", text)
	}
	return out
}

function kind_of(page, first) {
	if (section == "SYNOPSIS") return "synopsis"
	if (page ~ /libxseg[^\/]*\.3$/) return "c"
	if (page ~ /python[^\/]*\.3$/ || first ~ /^(from|import) /) return "python"
	if (first ~ /^\[(Unit|Service)\]/) return "unit"
	if (first ~ /^\[/) return "stack"
	if (first ~ /^\/.* \{$/) return "rotate"
	if (first ~ /^</) return "xml"
	if (first ~ /^[a-z_]+ = /) return "options"
	if (first ~ /^[a-z]+_[a-z_]+(\[\])? /) return "fields"
	return "commands"
}

function end_of_block(	kind, file, name) {
	name = page
	gsub(/\//, ".", name)
	file = dir "/" name "." begin
	kind = kind_of(page, first)
	if (kind == "commands") gsub(/ *\\\n */, " ", block)
	printf "%s", block >file
	close(file)
	print kind, page ":" begin, file
	inside = 0
}

FNR == 1 { inside = 0; section = "" }
/^\.SH / { section = joined_words($0) }
/^\.(nf|EX)/ { inside = 1; begin = FNR; page = FILENAME; block = first = ""; next }
/^\.(fi|EE)/ { if (inside) end_of_block(); next }
!inside || /^\.(RS|RE|PP|sp|in|ft)/ { next }
{
	text = plain($0 ~ /^\.[A-Z]/ ? joined_words($0) : $0)
	if (first == "") { sub(/^ +/, "", text); first = text }
	if (first ~ /^\[/) sub(/^ +/, "", text)
	block = block text "\n"
}
