# xseg.bash - completion of xseg and xbench for bash: the programs themselves say how a word may go
# on, from their tables of options and from what there is. It needs no bash-completion.

# A line with @KIND is one for each name of that kind, in the segment of the command line.
_xseg_names()
{
	local line kind
	while read -r line; do
		kind=${line##*@}
		case $line in
		*@volumes) set -- volume info '' ;;
		*@segments) set -- -s '' ;;
		*@volumed | *@kvd | *@peers) set -- peer set '' ;;
		*) echo "$line"; continue ;;
		esac
		xseg complete -- "${segment[@]}" "$@" 2>/dev/null | sed "s|^|${line%@"$kind"}|"
	done
}

_xseg()
{
	local line=${COMP_LINE:0:COMP_POINT} words word before answers answer segment=() i
	read -ra words <<<"$line"
	case $line in *[[:space:]]) words+=('') ;; esac
	word=${words[${#words[@]} - 1]}
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		case ${words[i]} in
		--segment=* | --owner=* | -s?*) segment+=("${words[i]}") ;;
		--segment | --owner | -s) segment+=("${words[@]:i++:2}") ;;
		esac
	done
	mapfile -t answers < <("${words[0]/#\~/$HOME}" complete -- "${words[@]:1}" 2>/dev/null | _xseg_names)
	# where = ends a word, as bash has it, only what stands behind is replaced
	before=
	case $COMP_WORDBREAKS in *=*) before=${word%"${word##*=}"} ;; esac
	COMPREPLY=()
	for answer in "${answers[@]}"; do
		case $answer in
		*@files)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "${word##*=}")
			return
			;;
		"$word"*) COMPREPLY+=("${answer#"$before"}") ;;
		esac
	done
	case ${COMPREPLY[*]} in *=) compopt -o nospace ;; esac
}

complete -F _xseg xseg xbench
