#!/bin/sh
# folders.sh - the directories that `make install` makes, so that `make uninstall` removes them and
# no others.
#
# Usage: tools/install/folders.sh make LIST DIR...    makes them; adds each new one to the file LIST
#        tools/install/folders.sh remove LIST         removes those that are empty, and LIST
set -eu
what=$1 list=$2
shift 2

# new_ones DIR: it and those above it that are not there, the uppermost last
new_ones()
{
	dir=$1
	while [ ! -d "$dir" ]; do
		printf '%s\n' "$dir"
		dir=$(dirname "$dir")
	done
}

case $what in
make)
	new=$(for dir; do new_ones "$dir"; done)
	mkdir -p "$@"
	[ -z "$new" ] || printf '%s\n' "$new" >>"$list"
	;;
remove)
	[ -e "$list" ] || exit 0
	folders=$(sort -ru "$list")
	rm "$list"
	printf '%s\n' "$folders" | while IFS= read -r dir; do
		rmdir "$dir" 2>/dev/null || true
	done
	;;
*)
	echo "folders.sh: make or remove, not $what" >&2
	exit 2
	;;
esac
