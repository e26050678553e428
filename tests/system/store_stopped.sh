#!/bin/bash
# store_stopped.sh - while a store is stopped, commands that need it end, and say which peer it is
# and how to start it: alone, and beside each other.
# timeout: 90
. "$(dirname "$0")/../lib/system.sh"

cat >stack.conf <<END
[segment]
memory = 96M
[peer filed]
dir = $TMP/objects
[peer cached]
downstream = filed
memory = 32M
dirty_age = 1h
[peer volumed]
downstream = cached
END
head -c 4M /dev/urandom >data
commands=("volume flush v" "cache flush cached" "volume import v data" "volume export x out --force"
	"volume create w --size 4M")

# refused COMMAND PID: it has ended with 1, and its last line names the store and the next step
refused()
{
	local log=${1// /-}.log code what
	wait "$2"
	code=$?
	what=$(cut -d ' ' -f 1-3 <<<"$1")
	is "xseg $1: it names the store and what to do" "$code $(tail -n 1 "$log")" \
		"1 xseg: $what: it needs filed, which is stopped; $next"
}
next="'xseg peer start filed' starts it, then do this again"

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create v --size 16M
t "so is one for the export, which an import beside it would refuse" \
	xseg volume create x --size 16M
t "both have data" xseg volume import v data
t "that is at the store alone" xseg volume import x data
t "for it is dropped" xseg cache drop cached
t "and some that is not there yet" xbench --volume=v --rw=write --bs=64k --number_ios=16 \
	--offset=8M --size=1M
t "the store is stopped" xseg peer stop filed --force

pids=()
for command in "${commands[@]}"; do
	# shellcheck disable=SC2086 # words
	start "${command// /-}" xseg $command
	pids+=("$started")
done
t "a list waits for none of them" timeout 20 xseg volume list
t "nor does a look at one volume" timeout 20 xseg volume info v
t "nor a list of what is lost" timeout 20 xseg volume recover --list
for i in "${!commands[@]}"; do
	refused "${commands[i]}" "${pids[i]}"
done

t "the store is started" xseg peer start filed
t "all is flushed" xseg volume flush v
t "and can be exported" xseg volume export v out --force
t "it is what was written" cmp -n $((4 << 20)) out data
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
