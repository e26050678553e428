#!/bin/bash
# clients_wait.sh - a peer is not stopped under clients; restarted, it lets them wait; down names
# them, and continues.
# tags: san
# timeout: 150
# shellcheck source=tests/lib/system.sh
. "$(dirname "$0")/../lib/system.sh"
need xseg volumed cached filed xbench jq

cat >stack.conf <<END
[segment]
memory = 128M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M

[peer volumed]
downstream = cached
END
t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 16M

# load SECONDS: verified I/O; its process is $load
load()
{
	start load xbench --volume=v --rw=randrw --bs=4k --iodepth=8 --runtime="$1" --time_based \
		--verify=crc32c --rate_iops=500
	load=$started
}

start holder xbench --volume=v --rw=randread --runtime=600s --time_based --rate_iops=1
load=$started
in_use()
{
	xseg volume import v /dev/null 2>&1 | grep -q "in use by xbench"
}
t "a program has the volume open" wait_for 60 in_use
expect_err 4 "^xseg: peer stop volumed: these have its volumes open: xbench \(pid $load\); .*restart.*--force" \
	"volumed is not stopped under it" xseg peer stop volumed
kill "$load"
wait "$load" 2>/dev/null
t "it is when the program has ended" xseg peer stop volumed
t "restart begins one that is stopped" xseg peer restart volumed
load "$(bound 5s 12s)"
t "there is a load" wait_for 60 in_use
for peer in volumed cached filed volumed; do
	old=$(peer_field "$peer" generation)
	t "$peer is restarted under it" xseg peer restart "$peer"
	is "it is another incarnation, and runs" \
		"$([ "$(peer_field "$peer" generation)" != "$old" ] && peer_field "$peer" state)" running
done
wait "$load"
is "no I/O failed, and all of it is right" "$?" 0
expect_err 4 "no peer of that name" "a peer that is not there is not restarted" xseg peer restart nobody

import_uses()
{
	xseg volume import v /dev/null 2>&1 | grep -q "in use by xseg (pid $import)"
}
mkfifo pipe
exec 7<>pipe
start import xseg volume import v pipe --force 7>&-
import=$started
t "an import has the volume open" wait_for 60 import_uses
is "down names it, and goes on" \
	"$(xseg down 2>&1 | grep -c -e "these clients get errors.*xseg (pid $import)" -e "segment is removed")" 2
expect_exit 4 "the segment is gone" xseg info
head -c 300k /dev/zero >&7
exec 7>&-
wait "$import"
is "the import gets an error" "$?" 1
t "and says why" grep -q "its volumed went away" import.log
finish
