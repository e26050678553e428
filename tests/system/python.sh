#!/bin/bash
# python.sh - the Python package on a real stack: volumes as files, queues, threads, asyncio, the
# command's functions, kills, plugs and errors (python_test.py). manual_examples.sh runs the example
# of its manual page.
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"
need python3 xseg xseg-host volumed cached memd kvd jq
cat >stack.conf <<END
[segment]
memory = 192M
requests = 4096
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 16M
[peer volumed]
downstream = cached
[peer values]
kind = kvd
downstream = cached
size = 32M
END
export PYTHONPATH=$root/tools/python PYTHONDONTWRITEBYTECODE=1
export XSEG_LIBRARY=$BUILD/lib/libxseg.so.1 CC=${CC:-gcc}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M
t "nobody has a request" wait_for 60 no_clients
free=$(free_of_segment)
python3 -X dev -W error "$root/tests/system/python_test.py" >python.log 2>&1
status=$?
cat python.log
is "python_test.py ends well" $status 0
t "nothing is left of it" wait_for 60 no_clients
t "pages and requests are free that were before" wait_for 60 is_as_before

if [ "$BUILD" = "$root/build" ]; then
	t "in the sources it finds the library of the build" env -u XSEG_LIBRARY python3 -c '
import os, sys
from xseg import _lib
assert os.path.samefile(_lib.lib._name, sys.argv[1]), _lib.lib._name' "$XSEG_LIBRARY"
else
	skip "in the sources it finds the library of the build" "the build is in another folder"
fi

# ---- the manual page ----

for name in $(python3 -c '
import xseg, xseg.aio
for c in xseg.Volume, xseg.KV, xseg.Queue, xseg.IO, xseg.Segment, xseg.XsegError, xseg.aio.AsyncQueue:
    print(c.__name__, *(n for n in vars(c) if not n.startswith("_")))'); do
	grep -qE "\b$name\b" "$root/docs/python3-xseg.3" || echo "$name"
done >undescribed
is "it describes all that the classes have" "$(tr '\n' ' ' <undescribed)" ""
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
