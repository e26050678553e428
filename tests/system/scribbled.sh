#!/bin/bash
# scribbled.sh - a hostile client writes into every table of the segment, and peers are killed
# meanwhile. Service comes back by itself, by `check --fix`, or when the peers are started again.
# Acknowledged data of other clients is not lost.
#
# Exempt are pages, owner words and extents, which name the owner of memory, and the superblock's
# head, without which no process can attach. The tables of peers and ports have copies
# (xseg/kept.c). The copies are overwritten only where the tables are not: data that is lost twice
# cannot come back.
#
# `make check-long` overwrites each table alone first, then several or all of them. By hand:
#   LONG=1 PART=2/3 tests/run.sh system/scribbled     the second third of these rounds
#   SEED=4711 ...                                     the same rounds again
# timeout: 240
. "$(dirname "$0")/../lib/system.sh"
need xseg xseg-host xbench volumed cached filed poke_tables jq

tables=(super members peers ports bells lanes rings requests touched stats stack kept)
rounds=$(bound 2 $((2 * ${#tables[@]})))
part=${PART:-1/1}

cat >stack.conf <<END
[segment]
memory = 160M

[peer filed]
dir = $TMP/objects

[peer cached]
downstream = filed
memory = 32M
dirty_age = 1h

[peer volumed]
downstream = cached
object_size = 1M
END

# pids: of all peers that run; as the kernel says, for the segment's word may be any number
pids()
{
	pgrep -P "$host"
}

# load: a client that has come just now has its I/O done
load()
{
	xbench --volume=used --rw=randrw --bs=4k --iodepth=8 --size=16M --number_ios=500 \
		--verify=crc32c --io_timeout=15s
}

# comes_back COMMAND...: it succeeds, if need be after check --fix, or when all peers are new: their
# supervisor starts them, or `up` where it has gone; by which of them is in $by
comes_back()
{
	by="itself"
	"$@" && return
	by="check --fix"
	xseg check --fix
	"$@" && return
	by="a restart of the peers"
	# shellcheck disable=SC2046
	[ -z "$(pids)" ] || kill -9 $(pids)
	sleep 2
	[ "$(xseg --json status | jq -r .supervisor.alive)" = true ] || xseg up stack.conf
	"$@"
}

is_kept()	# what was acknowledged before
{
	xbench --volume=kept --verify_only --verify_state=kept.state --iodepth=8
}

choose_tables()	# ROUND: three or fewer in six rounds of ten; in the others all
{
	local n=$((RANDOM % 10)) i
	chosen=("${tables[@]}")
	if [ -n "$LONG" ] && [ "$1" -le ${#tables[@]} ]; then
		chosen=("${tables[$1 - 1]}")
	elif [ $n -lt 6 ]; then
		chosen=()
		for i in 1 2 3; do
			chosen+=("${tables[RANDOM % ${#tables[@]}]}")
		done
	fi
	mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | sort -u | without_both)
}

without_both()	# of peers or ports and their copies one: the copies where there is a choice of two
{
	local chosen
	chosen=$(cat)
	if grep -qx 'peers\|ports' <<<"$chosen"; then
		grep -vx kept <<<"$chosen"
	else
		echo "$chosen"
	fi
}

direct=(never auto)
seed=${SEED:-$$}
echo "# SEED=$seed"
for ((round = ${part%/*}; round <= rounds; round += ${part#*/})); do
	RANDOM=$((seed + round))
	rm -rf objects
	t "$round: the stack comes up" xseg up stack.conf || break
	host=$(xseg --json status | jq -r .supervisor.pid)
	t "$round: volumes are made" xseg volume create kept --size 64M
	t "$round: both" xseg volume create used --size 64M
	t "$round: one has data that stays" xbench --volume=kept --rw=randwrite --bs=4k --iodepth=8 \
		--size=8M --number_ios=3000 --verify=crc32c --do_verify=no --verify_state=kept.state
	choose_tables $round
	mapfile -t running < <(pids)
	victim=
	[ $((RANDOM % 2)) -eq 1 ] && victim=${running[RANDOM % ${#running[@]}]}
	echo "# $round: ${chosen[*]}${victim:+, with a kill}"
	start bystander xbench --volume=used --direct=${direct[round % 2]} --rw=randrw --bs=4k --iodepth=8 \
		--size=16M --rate_iops="$(bound 2000 0)" --time_based --runtime=3s --verify=crc32c --io_timeout=10s
	bystander=$started
	start poke poke_tables "$XSEG_SEGMENT" 2 $RANDOM "${chosen[@]}"
	poke=$started
	sleep 0.7
	[ -z "$victim" ] || kill -9 "$victim"
	wait "$poke"
	wait "$bystander"
	t "$round: service comes back" comes_back load && echo "# by $by"
	t "$round: all that was written is there" is_kept
	t "$round: the stack goes down" comes_back xseg --timeout 60s down && echo "# by $by"
	t "$round: and comes up" xseg up stack.conf
	t "$round: all that was written is in the store" is_kept
	t "$round: down" xseg down
done
finish
