#!/bin/bash
# nbd_wide.sh - an export with all the connections that it allows, each of which writes in batches,
# and a volume by TCP, which nbdkit serves with the plug-in alone. Meanwhile the peers are killed.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd jq nbdkit nbdinfo nbdcopy python3
need_plugin
. "$root/tests/lib/nbdkit.sh"

rounds=${LONG:+20}
rounds=${rounds:-2}

cat >stack.conf <<END
[segment]
memory = 320M
ports = 128
[peer memd]
memory = 80M
[peer cached]
downstream = memd
memory = 32M
[peer volumed]
downstream = cached
END

many()		# CONNECTIONS
{
	python3 "$root/tests/system/nbd_wide.py" many "$TMP/disk.sock" "$1" $RANDOM
}

same()		# the volume is larger than the image
{
	cmp -n "$(stat -c %s in.raw)" in.raw out.raw
}

t "the stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 64M
free=$(free_of_segment)

# ---- 64 connections ----

export_up disk disk
export=$server
for round in $(seq "$rounds"); do
	is "64 connections at a time write and read, time $round" "$(many 64)" 64
done
for connections in 1 64; do
	head -c 16M /dev/urandom >in.raw
	t "nbdcopy puts an image in, with $connections connections" \
		nbdcopy --connections="$connections" --request-size=4096 in.raw "$uri"
	t "and gets it out" nbdcopy --connections="$connections" "$uri" out.raw
	t "and it is the same" same
done
disturb memd cached volumed
for round in $(seq "$rounds"); do
	is "64 connections work while peers are killed, time $round" "$(many 64)" 64
done
disturbed 1
export_down "$export"
is "the export ends" "$?" 0

# ---- TCP ----

port=$(free_port)
start tcp nbdkit --foreground --ipaddr=127.0.0.1 --port="$port" "$plugin" disk \
	"segment=$XSEG_SEGMENT"
tcp=$started
uri=nbd://127.0.0.1:$port
t "nbdkit serves the volume by TCP" wait_for 60 nbdinfo --size "$uri"
is "with its size" "$(nbdinfo --size "$uri")" $((64 << 20))
t "what the export wrote is there" nbdcopy "$uri" out.raw
t "and is what a program of the library reads" \
	bash -c 'xseg volume export disk - | cmp - out.raw'
head -c 16M /dev/urandom >in.raw
for connections in 1 64; do
	t "an image goes in by TCP, with $connections connections" \
		nbdcopy --connections="$connections" in.raw "$uri"
	t "and out" nbdcopy --connections="$connections" "$uri" out.raw
	t "and it is the same" same
done
disturb memd cached volumed
t "an image goes in by TCP while peers are killed" nbdcopy in.raw "$uri"
t "and out while they are" nbdcopy "$uri" out.raw
t "and it is the same after all" same
disturbed 1
kill -TERM "$tcp"
wait "$tcp"
is "nbdkit ends" "$?" 0

t "nothing is left of both" wait_for 60 no_clients
t "pages and requests are free that were before" wait_for 60 is_as_before
t "the segment is sound" xseg check
t "everything stops" xseg down
nbdkit_is_clean
finish
