#!/bin/bash
# nbd_hostile.sh - clients of an export that close under their answers, send nonsense or stand still
# harm only themselves. A client that works beside them goes on, and its data is right all along.
# tags: san
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host volumed cached memd jq nbdkit nbdinfo python3 pgrep
need_plugin
. "$root/tests/lib/nbdkit.sh"

hostile()	# MODE ARGUMENT...
{
	python3 "$root/tests/system/nbd_hostile.py" "$@"
}

# work SOCKET: in the background, until work_ends
work()
{
	rm -f until begun
	hostile work "$1" begun until >work.log 2>&1 &
	worker=$!
	t "one works" wait_for 60 [ -e begun ]
}

work_ends()	# WHAT
{
	touch until
	wait "$worker"
	is "$1" $? 0
	t "it has done something" [ "$(cat work.log)" -gt 0 ]
}

is_refused()	# COMMAND...
{
	! "$@"
}

cat >stack.conf <<END
[segment]
memory = 256M
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 32M
[peer volumed]
downstream = cached
END

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create disk --size 16M

# ---- without the guard there is no export ----

mkdir -p elsewhere/bin elsewhere/lib
cp "$BUILD/bin/xseg" elsewhere/bin
expect_err 1 'xseg-nbdkit-guard.so .*install the package xseg-nbdkit' "an export without the guard is refused" \
	elsewhere/bin/xseg export disk --nbd "$TMP/unguarded.sock"
t "and leaves no socket" [ ! -e unguarded.sock ]
ln -s "$plugin" elsewhere/lib
echo "no library" >elsewhere/lib/xseg-nbdkit-guard.so
chmod +x elsewhere/lib/xseg-nbdkit-guard.so
expect_err 1 "begun without xseg-nbdkit-guard.so, .* cannot be preloaded.*; build or install" \
	"so is one whose guard cannot be loaded" \
	elsewhere/bin/xseg export disk --nbd "$TMP/unguarded.sock"
t "it leaves no socket, either" [ ! -e unguarded.sock ]
# A library as any other: it can be loaded, and no client goes through it.
if [ -n "$SAN" ]; then
	skip "and one that has another library in its place" \
		"a sanitizer's runtime refuses to come after another library"
else
	cp "$BUILD/lib/libxseg.so" elsewhere/lib/xseg-nbdkit-guard.so
	expect_err 1 "begun without xseg-nbdkit-guard.so" \
		"and one that has another library in its place" \
		elsewhere/bin/xseg export disk --nbd "$TMP/unguarded.sock"
fi
long=$(printf '%070000d' 0)
expect_err 1 "Argument list too long; shorten LD_PRELOAD" \
	"libraries that leave no room for the guard are not cut off" \
	bash -c 'LD_PRELOAD=$1 exec "${@:2}"' - "$long" xseg export disk --nbd "$TMP/unguarded.sock"
if [ -z "$SAN" ]; then
	other=$(realpath "$BUILD/lib/libxseg.so")
	LD_PRELOAD=$other export_up beside disk
	t "a library that is preloaded anyway is there beside the guard" \
		grep -qF "$other" "/proc/$(pgrep -P "$server")/maps"
	t "and the guard is" grep -q xseg-nbdkit-guard.so "/proc/$(pgrep -P "$server")/maps"
	export_down "$server"
fi

# ---- what bounds the connections ----

# fill SOCKET: clients in the background that take all places, until emptied
fill()
{
	mkfifo fill
	hostile fill "$1" <fill >fill.log 2>&1 &
	filler=$!
	exec 6>fill
}

emptied()
{
	exec 6>&-
	wait "$filler"
	rm fill
}

export_up idle disk
hostile idle "$TMP/idle.sock" 11 >idle.said 2>&1 &		# longer than a handshake may take
idler=$!
t "a client has nothing to ask" wait_for 60 grep -q idle idle.said
few()
{
	ulimit -Sn 100 && ulimit -Hn 130 && exec "$@"
}
start few few xseg export disk --nbd "$TMP/few.sock"
few=$started
t "an export with few descriptors is served" wait_for 60 grep -q '^nbd' few.log
fill "$TMP/few.sock"
t "clients take all places" wait_for 60 test -s fill.log
is "there are as many as there are descriptors for" "$(cat fill.log)" $(((130 - 64) / 3))
t "its log says what bounds them" \
	grep -qE 'all 22 connections are taken, .* descriptors \(ulimit -n\)' few.log
emptied
t "then others have a place" wait_for 60 nbdinfo --size "$(head -n 1 few.log)"
export_down "$few"
is "and the export ends in order" "$?" 0
wait "$idler"
is "whoever is idle after the handshake is served on" "$?" 0
export_down "$server"

# ---- they close under their answers ----

seed=${SEED:-$RANDOM}
times=${LONG:+20}			# for each way to leave
times=${times:-6}
for queues in 16 1; do
	export_up "disk$queues" disk --queues "$queues"
	child=$(pgrep -P "$server")
	work "$TMP/disk$queues.sock"
	t "clients of $queues queues leave, in any state (seed $seed)" \
		hostile leave "$TMP/disk$queues.sock" "$times" "$seed"
	work_ends "one that works beside them has its data all along"
	is "nbdkit is the one that it was" "$(pgrep -P "$server")" "$child"
	is "and nothing has ended it" "$(grep -c 'ended by signal' "disk$queues.log")" 0
	export_down "$server"
done

# ---- they stand still ----

# hold SOCKET: clients in the background that stand still, until let_go
hold()
{
	mkfifo hold
	hostile hold "$1" <hold >hold.log 2>&1 &
	holder=$!
	exec 5>hold
}

let_go()
{
	exec 5>&-
	wait "$holder"
	rm hold
}

export_up still disk --connections 6
child=$(pgrep -P "$server")
work "$TMP/still.sock"
hold "$TMP/still.sock"
t "clients stand still, in any state" wait_for 60 grep -q held hold.log
t "no other is let in: those that have only begun count" is_refused nbdinfo --size "$uri"
t "who does not go on with a handshake is ended" wait_for 60 grep -q 'handshake ended' hold.log
t "and others have that place" wait_for 60 nbdinfo --size "$uri"
work_ends "one that works beside them has its data all along"
is "nbdkit is the one that it was" "$(pgrep -P "$server")" "$child"
kill "$server"
wait "$server"
is "the export ends in order, whoever stands still" $? 0
t "nbdkit with it" has_ended "$child"
t "the socket is gone" [ ! -e "$TMP/still.sock" ]
let_go

export_up killed disk
child=$(pgrep -P "$server")
hold "$TMP/killed.sock"
t "clients stand still" wait_for 60 grep -q held hold.log
kill -KILL "$server"
t "an export that is killed ends nbdkit, whoever stands still" wait_for 60 has_ended "$child"
let_go

# ---- their small writes are lost ----

export_up lost disk
child=$(pgrep -P "$server")
t "writes wait for the store" xseg cache set cached policy=write-through
t "the store is slow" xseg peer set memd latency=15s
t "small writes are answered once if volumed goes, also without descriptors to wait by" \
	hostile lost "$TMP/lost.sock" "$child"
is "nbdkit is the one that it was" "$(pgrep -P "$server")" "$child"
export_down "$server"

t "the segment is sound" wait_for 60 xseg check
nbdkit_is_clean
t "all stops" xseg down
finish
