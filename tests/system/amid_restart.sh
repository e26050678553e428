#!/bin/bash
# amid_restart.sh - commands and clients that begin while a peer is restarted: the peer is stopped
# for a moment, and they wait until it serves again.
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"
need xseg xbench volumed kvd filed memd

cat >stack.conf <<-END
	[segment]
	memory = 128M
	[peer filed]
	dir = $TMP/objects
	[peer volumed]
	downstream = filed
	[peer memd]
	memory = 40M
	[peer kvd]
	downstream = memd
	size = 32M
END

# again UNTIL COMMAND...: runs it again and again until there is such a file, and twice at least
again()
{
	local until=$1 nr=0
	shift
	until [ $nr -ge 2 ] && [ -e "$until" ]; do
		"$@" || return
		nr=$((nr + 1))
	done
}

# restarts NAME: some
restarts()
{
	local i
	for i in {1..8}; do
		xseg peer restart "$1" || return
	done
}

t "a stack is started" xseg up stack.conf
t "it has a volume" xseg volume create v --size 4M
echo value >value
t "and a value" xseg kv put k value

commands=("volume info v" "volume list" "volume flush v" "kv get k" "kv list" "kv put k2 value")
pids=()
for command in "${commands[@]}"; do
	# shellcheck disable=SC2086 # words
	start "${command// /_}" again over xseg $command
	pids+=("$started")
done
start xbench again over xbench --volume=v --rw=read --number_ios=1
t "volumed is restarted again and again" restarts volumed
t "and kvd" restarts kvd
touch over
wait "$started"
is "xbench never failed" $? 0 || cat xbench.log
for i in "${!commands[@]}"; do
	wait "${pids[i]}"
	is "nor did ${commands[i]}" $? 0 || cat "${commands[i]// /_}.log"
done

t "a volumed that 'peer stop' has stopped is not waited for" xseg peer stop volumed
expect_err 4 "volumed: it is stopped; start it with 'xseg peer start volumed'" "and is named" \
	xseg volume info v
t "it stops" xseg down
finish
