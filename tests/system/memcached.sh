#!/bin/bash
# memcached.sh - values by key for clients of memcached's protocol: its answers are those of Debian's
# memcached, clients of others work with it, and hostile ones harm only themselves.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xseg-memcached kvd cached memd jq python3 memcached

# python_of MODULE: a Python that has it
python_of()
{
	local candidate
	for candidate in python3 /usr/bin/python3; do
		"$candidate" -c "import $1" 2>/dev/null && echo "$candidate" && return
	done
	return 1
}

# client MODULE: of Python
client()
{
	local python
	if python=$(python_of "$1"); then
		t "$1 works with it, by both kinds of socket" timeout 100 \
			"$python" "$root/tests/system/memcached_clients.py" "$1" "$TMP/ours" "$port"
	else
		skip "$1 works with it" "python3-$1 is not there"
	fi
}

free_port()
{
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# write_stack FILE OPTION...: of the gateway called gate
write_stack()
{
	local file=$1
	shift
	{
		printf '[segment]\nmemory = 256M\n[peer memd]\nmemory = 96M\n'
		printf '[peer cached]\ndownstream = memd\nmemory = 48M\n'
		printf '[peer kvd]\ndownstream = cached\nsize = 64M\n'
		printf '[peer gate]\nkind = memcached\n'
		printf '%s\n' "$@"
	} >"$file"
}

# ---- what is refused at the start ----

write_stack wrong.conf
expect_err 2 "peer 'gate' needs kvd =" "a gateway without a kvd is refused" xseg up wrong.conf
write_stack wrong.conf "kvd = kvd" "listen = nowhere"
expect_err 2 "neither unix:PATH nor HOST:PORT" "so is a listen that is neither" xseg up wrong.conf
write_stack wrong.conf "kvd = kvd" "listen = 127.0.0.1:0"
expect_err 2 "port" "and port 0" xseg up wrong.conf
write_stack wrong.conf "kvd = cached" "listen = unix:$TMP/o"
expect_err 2 "kvd" "and a peer that is no kvd" xseg up wrong.conf

# ---- answers, and clients ----

port=$(free_port)
write_stack stack.conf "kvd = kvd" "listen = unix:$TMP/ours" "listen = 127.0.0.1:$port" \
	"threads = 2"
t "a stack with a gateway comes up" xseg up stack.conf
is "its socket is the user's only" "$(stat -c %a ours)" 600
start theirs memcached -u "$(id -un)" -s "$TMP/theirs" -m 64
their_pid=$started
t "Debian's memcached runs" wait_for 60 [ -S theirs ]
t "the same bytes have the same answers of both" \
	python3 "$root/tests/system/memcached_judge.py" "$TMP/ours" "$TMP/theirs"
kill "$their_pid"
if ! command -v memccapable >/dev/null; then
	skip "memccapable finds that it is a memcached" "libmemcached-tools is not there"
else
	t "memccapable finds that it is a memcached" \
		memccapable -a -v -t 60 -h 127.0.0.1 -p "$port"
fi
client pymemcache
client pylibmc
# In `make check-long`, since it is fetched.
if [ -n "$LONG" ] && mkdir npm && timeout 120 npm --prefix npm install --no-audit --no-fund \
		memcached >npm.log 2>&1; then
	t "npm's memcached works with it" env NODE_PATH="$TMP/npm/node_modules" \
		node "$root/tests/system/memcached_client.js" "127.0.0.1:$port"
else
	skip "npm's memcached works with it" "only in check-long, and where npm can fetch it"
fi
t "hostile clients harm only themselves" \
	python3 "$root/tests/system/memcached_hostile.py" "$TMP/ours" "$(bound 200 1000)"
t "the segment is sound" wait_for 60 xseg check
t "all stops" xseg down
t "no socket is left" [ ! -e ours ]
finish
