#!/bin/bash
# readme_ceph.sh - the section of README.md on Ceph, command by command as it stands there, on a
# cluster that the section makes itself.
#
# Only the segment's name, the programs' path and the directory of the cluster are changed.
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/readme.sh"
need ceph-mon ceph-osd ceph rados xseg xseg-host xbench volumed cached sosd

mkdir clone
ln -s "$root/tests" clone
readme_blocks "A Ceph cluster below" |
	sed -e "s|XSEG_SEGMENT=disks\$|XSEG_SEGMENT=$XSEG_SEGMENT|" -e "s|/tmp/ceph|$TMP/ceph|g" \
		>section.sh
is "the section is one block" "$(grep -c '^echo "@ block' section.sh)" 1
(cd clone && bash -e "$TMP/section.sh") >section.log 2>&1 </dev/null
status=$?
tail -n 20 section.log >rest.log
if [ $status -eq 0 ]; then
	ok "README: every command of the section on Ceph succeeds"
else
	not_ok "README: every command of the section on Ceph succeeds" rest.log
	[ ! -d ceph ] || "$root/tests/system/ceph/cluster.sh" down "$TMP/ceph"
fi
t "the load verifies" grep -q 'verify errors=0' section.log
t "the pool has the catalogue of volumes" grep -q '^xseg\.:catalog$' section.log
t "the volume is there after the second start" grep -qE '^disk +[0-9]+ +1\.0G' section.log
t "nothing is left" test ! -e "/dev/shm/xseg.$XSEG_SEGMENT" -a ! -e clone/disks.conf -a ! -e ceph
finish
