#!/bin/bash
# removed.sh - programs that use a segment which `down` takes away: each ends at once, with an error
# that says what to do. While the stack stops they wait, as that may be taken back.
# tags: san
# timeout: 150
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached memd kvd jq python3
. "$root/tests/lib/nbdkit.sh"

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
export XSEG_LIBRARY=$BUILD/lib/libxseg.so.1

nr_clients()	# NUMBER: there are so many processes with clients, or more
{
	[ "$(xseg --json clients | jq length)" -ge "$1" ]
}

up()
{
	t "the stack comes up" xseg up stack.conf
	t "a volume is made" xseg volume create vol --size 16M
}

ends()		# PID CODE
{
	wait "$1"
	is "it ends" "$?" "$2"
}

gone="segment '?$XSEG_SEGMENT'? was removed, as 'xseg [^']*down' does; start its stack with 'xseg [^']*up STACK.conf'"

# ---- xbench ----

up
xbench --volume=vol --rw=randrw --bs=4k --iodepth=16 --numjobs=2 --runtime=600s \
	--output-format=json --output=load.json >load.log 2>&1 &
load=$!
xbench --kvd=values --rw=getput --keys=1000 --value_size=1k --iodepth=8 --runtime=600s >values.log 2>&1 &
values=$!
start stat xseg stat --interval 100ms
stat=$started
t "two loads run" wait_for 60 nr_clients 2
t "and a command that looks on" wait_for 60 test -s stat.log
store=$(peer_field memd pid)
t "the store stands still" freeze "$store"
start down xseg down
down=$started
stopping()
{
	xseg --json status | jq -e '.supervisor.stopping'
}
t "a stop begins" wait_for 60 stopping
t "it is taken back" xseg down --cancel
wait "$down"
is "so down fails" "$?" 1
t "the store goes on" kill -CONT "$store"
t "both loads have waited" nr_clients 2
ios=$(counted volumes vol ops)
t "and go on" wait_for 60 counts_more volumes vol ops "$ios"
timeout 100 xseg --timeout 10m down 2>down.err
is "down does not wait for them, whatever its --timeout" "$?" 0
t "it names them" grep -q \
	"these clients get errors when all has stopped:.* xbench (pid $load)" down.err
ends $load 1
t "it says why, and what to do" grep -qE "^xbench: gave up [0-9]+ requests: $gone, and run xbench again" load.log
t "its results are there" jq -e '.segment_removed and ([.jobs[].error] | min > 0) and
	([.jobs[].total_err] | add > 0)' load.json
ends $values 1
# where down takes long, it has waited for kvd for five seconds by then
t "it says so, too, or that nobody serves it" grep -qE "$gone|nobody serves it, see 'xseg status'" \
	values.log
ends $stat 1
t "nor do figures of nothing follow each other" grep -qE "^xseg: stat: $gone, and run it again" stat.log

# ---- a paced load, which has nothing in flight ----

up
start paced xbench --volume=vol --rw=randread --bs=4k --rate_iops=1 --direct=never --runtime=600s
paced=$started
t "a slow load runs" wait_for 60 nr_clients 1
t "the stack stops" xseg down
ends "$paced" 1
t "it says why" grep -qE "$gone" paced.log

# ---- the library's programs ----

cat >client.py <<'END'
import errno, sys, xseg
volume, kv = xseg.Volume("vol", gone=3600), xseg.KV("values", gone=3600)
kv.put("key", b"value")
print("ready", flush=True)
for call in (lambda: volume.pwrite(b"x" * 4096, 0), lambda: kv.put("key", b"value")):
    try:
        while True:
            call()
    except xseg.XsegError as error:
        print(error.errno == errno.ENOTCONN, error)
END
up
if [ -n "$SAN" ]; then
	skip "a Python program" "Python cannot load a library with a sanitizer's runtime"
else
	start client python3 client.py
	client=$started
	t "a Python program has begun" wait_for 60 grep -q ready client.log
fi
mkfifo pipe
exec 7<>pipe
start import xseg volume import vol pipe --force 7>&-
import=$started
t "an import runs" wait_for 60 is_user "$import"
if [ -e "$BUILD/lib/fio-xseg.so" ] && command -v fio >/dev/null; then
	start fio fio --name=job --ioengine="external:$BUILD/lib/fio-xseg.so" \
		--segment="$XSEG_SEGMENT" --volume=vol --rw=randread --bs=4k --iodepth=4 --size=1M \
		--time_based --runtime=600
	fio=$started
	t "and fio" wait_for 60 is_user fio
fi
if [ -e "$BUILD/lib/nbdkit-xseg-plugin.so" ] && command -v nbdkit >/dev/null; then
	start export xseg export vol --nbd "$TMP/vol.sock"
	export=$started
	t "and an export" wait_for 60 grep -q ^nbd+unix export.log
fi
t "the stack stops" xseg down
head -c 300k /dev/zero >&7
exec 7>&-
if [ -n "${client:-}" ]; then
	ends "$client" 0
	is "both calls say what to do" "$(grep -c "^True .*nobody serves it any more: start the stack \
with 'xseg up STACK.conf'" client.log)" 2
fi
ends "$import" 1
if [ -n "${fio:-}" ]; then
	wait "$fio"
	is "fio fails" "$(($? != 0))" 1
	t "and says why" grep -qE "^fio: xseg: $gone" fio.log
fi
if [ -n "${export:-}" ]; then
	ends "$export" 1
	t "it says why" grep -qE "^xseg: export vol: $gone, and export the volume again" export.log
	t "and leaves no socket" test ! -e vol.sock
fi
nbdkit_is_clean

# ---- a process that is attached and has no client ----

cat >idle.py <<'END'
import sys, xseg

volume = xseg.Volume("vol", gone=3600)		# before its first I/O
print("ready", flush=True)
sys.stdin.readline()
try:
    volume.pread(4096, 0)
except xseg.XsegError as error:
    print(error)
END
cat >attached.py <<'END'
import ctypes, os, sys

lib = ctypes.CDLL(os.environ["XSEG_LIBRARY"])
lib.xseg_is_removed.restype = ctypes.c_bool
segment = ctypes.c_void_p()
if lib.xseg_attach(os.environ["XSEG_SEGMENT"].encode(), 0, ctypes.byref(segment), None):
    sys.exit(1)
print("ready", lib.xseg_is_removed(segment), flush=True)
sys.stdin.readline()
print(lib.xseg_is_removed(segment))
END
idle_programs()
{
	local program idle attached
	up
	for program in idle attached; do
		mkfifo $program.go
		python3 $program.py <>$program.go >$program.log 2>&1 &
		eval "$program=\$!"
		t "a program that is $program begins" wait_for 60 grep -q ready $program.log
	done
	expect_exit 0 "down ends, although they are attached" xseg --timeout 60 down
	for program in idle attached; do
		echo go >$program.go
	done
	ends "$idle" 0
	ends "$attached" 0
	t "the volume says what to do" grep -q "nobody serves it any more: start the stack with 'xseg up STACK.conf'" idle.log
	is "the process that has no client finds the segment removed" "$(xargs <attached.log)" "ready False True"
}
if [ -n "$SAN" ]; then
	skip "down ends, although programs are attached" \
		"Python cannot load a library with a sanitizer's runtime"
else
	idle_programs
fi

# ---- a client that stands still, and may keep lent data ----

up
start still xbench --volume=vol --rw=randread --bs=4k --data=loan --iodepth=32 --runtime=600s
still=$started
t "a load runs" wait_for 60 nr_clients 1
t "its process is stopped" freeze "$still"
start down xseg down
until_said down "^xseg: stopping: xbench is halted"
code=$?
if [ $code -eq 3 ]; then
	ok "down waits for lent data, as long as it may"
	t "it says who keeps that, and what continues it" grep -q \
		"^xseg: stopping: xbench is halted, .*'kill -CONT $still' continues it" down.log
	t "and at the end" grep -q \
		"still stopping, as these clients may keep lent data: xbench (pid $still); see" down.log
	start down xseg down
	kill -CONT "$still"
	wait "$started"
	code=$?
fi
is "the stack stops" $code 0
kill -CONT "$still"
ends "$still" 1
finish
