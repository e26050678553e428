# pauses.sh - a verified load while something is done to the cache again and again; switches.sh and
# plugs.sh source it after lib.sh.
#
# A pause is the time of the slowest read or write of a run. It is compared with the slowest request
# that memd served in the same run. Reads are those of any client by default: without a request where
# that pays. Verifying covers them, too.

common_awk=bench/pauses.awk
by_form cache_mib 32 16
set_mib=$((3 * cache_mib))

# pauses_up: a new stack of volumed, cached and memd. The store has room for as much data of
# another peer as volumed has.
pauses_up()
{
	store_up $((3 * set_mib + 256)) memd "memory = $((2 * set_mib + 16))M
latency = 1ms" "memory = ${cache_mib}M" "vol=${set_mib}M"
	load_pids=()
}

# pauses_begin LOAD ARGUMENT...: a load in the background, which makes LOAD-run
pauses_begin()
{
	measure "$raw/$1-run.$round.json" --runtime="$run_time" --direct=auto --verify=crc32c \
		--randseed="$round" "${@:2}" &
	load_pids+=($!)
}

# pauses_do COMMAND LOAD...: the command is done until the first load is over; makes LOAD-stat
pauses_do()
{
	local load
	while kill -0 "${load_pids[0]}" 2>>"$log"; do
		"$1"
	done
	for load in "${load_pids[@]}"; do
		wait "$load" || exit 1
	done
	for load in "${@:2}"; do
		stat_to "$raw/$load-stat.$round.json"
	done
}

# pauses_while COMMAND LOAD ARGUMENT...: all of that for one load of the volume; the stack is left
# running
pauses_while()
{
	pauses_up
	pauses_begin "$2" --volume=vol "${@:3}"
	pauses_do "$1" "$2"
}

# pauses_line LOAD ROUND FIGURES ARGUMENT...: the line of a run, as `columns` has it; FIGURES are an
# object in jq, of files that the ARGUMENTs name
pauses_line()
{
	jq -r --arg load "$1" --arg round "$2" --arg columns "$columns" \
		--slurpfile stat "$raw/$1-stat.$2.json" "${@:4}" '
		.jobs as $jobs | ({
			load: $load, round: $round,
			iops: ([$jobs[] | .read.iops + .write.iops] | add),
			read_max_ns: ([$jobs[].read.lat_ns.max] | max),
			write_max_ns: ([$jobs[].write.lat_ns.max] | max),
			store_max_ns: ($stat[0].peers[] | select(.name == "memd") | .lat_ns.max),
			verify_errors: ([$jobs[].verify_errors] | add),
			errors: ([$jobs[].error] | add)
		} + ('"$3"')) as $f | [$f[$columns | split(" ")[] | select(. != "=")]] | @tsv' \
		"$raw/$1-run.$2.json" || fail "$raw/$1-run.$2.json is damaged"
}
