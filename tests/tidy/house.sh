#!/bin/bash
# house.sh - the shape of the tree: rooms use those on lower floors (tests/tidy/floors), no cycles
# of rooms or of files, no structure and no folder that is too large (tests/tidy/house.py). It also
# tests that the check itself finds faults.
# timeout: 90
. "$(dirname "$0")/../lib/report.sh"
cd "$root" || exit 1
need python3 ctags
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

tests/tidy/house.py . >"$work/found" 2>&1 || echo "check	house.py failed" >>"$work/found"
sentence()	# CHECK SENTENCE
{
	grep "^$1" "$work/found" | cut -f 2- >"$work/bad"
	if [ -s "$work/bad" ]; then not_ok "$2" "$work/bad"; else ok "$2"; fi
}
sentence floor "every room uses rooms on lower floors only, but for the exceptions"
sentence rooms "no rooms are a cycle that was none"
sentence cycle "no cycle of files has grown"
sentence structure "no structure has more members than it may"
sentence folder "no folder has more files than it may"
if grep -qvE '^(floor|rooms|cycle|structure|folder)	' "$work/found"; then
	not_ok "house.py ran to its end" "$work/found"
else
	ok "house.py ran to its end"
fi

# An upward include, an upward call without one, and a room without a floor, planted into a copy of
# the two lowest floors.
mkdir -p "$work/tree/tests/tidy" "$work/tree/peers"
cp -r xtypes xseg "$work/tree"
cp tests/tidy/floors "$work/tree/tests/tidy"
echo '#include "peers/cached/flush/flush.h"' >>"$work/tree/xtypes/xlist.c"
printf 'void planted(void);\nvoid planted(void) { xseg_peer_close(0, 0); }\n' >>"$work/tree/xtypes/xpool.c"
mkdir "$work/tree/peers/planted"
cp xtypes/xlist.c "$work/tree/peers/planted"
tests/tidy/house.py "$work/tree" >"$work/planted" 2>&1
for planted in 'peers/planted is not in tests/tidy/floors' 'xtypes/xlist.c includes peers/cached/flush/flush.h' 'xtypes/xpool.c calls xseg_peer_close of xseg/peer.c'; do
	if grep -q "^floor	$planted" "$work/planted"; then
		ok "it is found that ${planted/ / }"
	else
		not_ok "it is found that $planted" "$work/planted"
	fi
done

finish
