#!/bin/bash
# kv.sh - values by key: the rate of gets and puts beside reads and writes of a volume on the same
# cache, forced puts, opening, preload, compaction, and what a cache keeps from the store.
#
# Usage: bench/kv.sh [--quick | --full]
# Environment: BENCH_SECONDS (0.5, of one run), BENCH_PARTS (some of them: deep single forced
#   preload kill many compact spill offload lustre filecache; else all but the last three, which
#   --full has, too), BENCH_MANY (10000000, the keys of `many`),
#   BENCH_SPILL (300s, the time of `spill`)
#
# In each round:
#   deep, single  One client on its own CPU does 4 KiB, or 1 KiB, at random, with 16 and with 1 in
#            flight; nothing is flushed meanwhile:
#              volume  xbench -> volumed -> cached -> memd, in one reactor: the rates that others
#                      are compared with; each read is a request
#              kvd     xbench -> kvd -> the same cached, in the same reactor
#              apart   kvd in the server's reactor; cached and memd on the client's CPU
#            A read or a get is by copy or by `loan`; `header` is a get by loan of which the client
#            checks only the header. A value of 4 KiB with its header lies in two pages of the
#            cache. Puts copy. The library writes each value to its memory; writes of the volume
#            send the same bytes again and again. The log of kvd is four times its values, so puts
#            make it compact.
#   forced   Over a memd whose FLUSH takes 100 us, without a cache, 64 puts are in flight, each with
#            force or without. The store has flushed before a forced put is answered.
#   preload  Values of 1 KiB are in files that the page cache has: from the start of kvd until it
#            serves, and until the cache has all values. Then all are got, and misses of the cache
#            are counted.
#   kill     kvd, with keys of 16 bytes and values of 100, gets SIGKILL under a load of gets: the
#            slowest get, with the supervisor's 100 ms; the time in which the log was opened; the
#            bytes of its index a key.
#   compact  50 % puts of 1 KiB at 100 K/s, in a log that is compacted all the time (`full`), and in
#            one that is not (`roomy`): the percentiles of both.
# Once:
#   many     the same keys as `kill`, ten million of them: the time to open the log from its hints,
#            and the memory of the process. All peers are in one, and get SIGKILL.
#   compact  Uniform puts of 1 KiB in logs of 64 zones with 50, 70 and 90 % of them live: the bytes
#            appended for each byte put, beside a greedy simulation with as many zones and as many
#            of them free (greedy.awk): the most that were free at two looks.
#   offload, lustre, filecache   published evaluations: kv_offload.sh, kv_lustre.sh, kv_filecache.sh,
#            in this form. Each has its own results, and its report is a part of this one. With
#            --full they take hours.
#   spill    20 % puts, values of 0.6 of the cache's memory, a log of 0.9: the bytes that reach the
#            store, to the bytes put.
#
# At the end the values of the load are verified: verified.json.
set -u

has_full=1
. "$(dirname "$0")/lib.sh"
usual="deep single forced preload kill many compact spill"
by_form parts "$usual" "$usual" "$usual offload lustre filecache"
parts=" ${BENCH_PARTS:-$parts} "
by_form seconds 0.5 0.05
by_form set_mib 64 16
by_form beside_mib 512 160	# of a segment, beside caches and stores
by_form preload_mib 1024 16
by_form kill_keys 1000000 20000
by_form kill_time 4s 1s
by_form kill_after 1 0.3
by_form many_keys 10000000 40000
by_form spill_mib 256 128
by_form spill_time 300s 500ms
many_keys=${BENCH_MANY:-$many_keys}
spill_time=${BENCH_SPILL:-$spill_time}
by_form full_mib 128 64
by_form roomy_mib 1024 128
by_form amp_live "50 70 90" 50
by_form amp_rounds 8 1
by_form put_depth 16 256		# of puts that only make a log old
by_form paced_time 3s 300ms
by_form paced_rounds 2 1
by_form verified_ios 200000 4000
columns="system rw bs depth data round = iops mean_ns p50_ns p99_ns errors"
vars="times_file once_file"
times_file=$out/times.tsv
once_file=$out/once.tsv
fill_depth=256

# ---- the stacks ----

# peer NAME LINES...: a section of a stack file
peer()
{
	printf '\n[peer %s]\n' "$1"
	printf '%s\n' "${@:2}"
}

# kv_up STACK MIB TOGETHER: the rest of the stack file is standard input. That is not a pipe, because
# a pipe would run kv_up in a shell of its own, and this shell has to know what to end.
kv_up()
{
	{
		printf '[segment]\nname = %s-%s\nmemory = %dM\n' "$XSEG_SEGMENT" "$1" "$2"
		cat
		printf '\n[run]\n'
		[ -z "$3" ] || printf 'together = %s\n' "$3"
	} >"$out/$1.conf"
	also_at_the_end end_segment "$XSEG_SEGMENT-$1"
	on "$1" quietly xseg up "$out/$1.conf"
}

log_mib=$((set_mib * 4 + 64))
hold=$((log_mib + set_mib))
keys_of()	# BYTES
{
	echo $((set_mib * 1048576 / $1))
}

# cache DOWNSTREAM MIB CPU
cache()
{
	peer cached "downstream = $1" "memory = $(($2 + $2 / 4 + 16))M" "objects = $(($2 / 2 + 64))" \
		"cpus = $3" "$no_flush"
}

# One log has values of 4 KiB, the other one of 1 KiB.
store()		# NAME DOWNSTREAM CPU OPTION...
{
	peer "$1" "kind = kvd" "downstream = $2" "cpus = $3" "size = ${log_mib}M" \
		"keys = $(($(keys_of 1024) + 5000))" "sync = never" "${@:4}"
}

rates_up()
{
	kv_up near $(((hold + log_mib) * 2 + beside_mib)) "memd cached kvd4k kvd1k volumed" < <(
		peer memd "cpus = $server_cpu" "memory = 64M"
		cache memd $((hold + log_mib)) "$server_cpu"
		store kvd4k cached "$server_cpu"
		store kvd1k cached "$server_cpu"
		peer volumed "downstream = cached" "cpus = $server_cpu"
	)
	on near quietly xseg volume create bench --size "${set_mib}M"
	on near fill --volume=bench
	kv_up apart $((log_mib * 4 + beside_mib)) "memd cached" < <(
		peer memd "cpus = ${client_cpus%%,*}" "memory = 64M"
		cache memd $((2 * log_mib)) "${client_cpus%%,*}"
		store kvd4k cached "$server_cpu"
		store kvd1k cached "$server_cpu"
	)
	each fill_values "near apart" "4k 1k"
}

forced_up()
{
	kv_up forced $((log_mib * 2 + beside_mib)) "memd kvd1k" < <(
		peer memd "cpus = $server_cpu" "memory = $((log_mib + beside_mib / 2))M" "fail = flush:1:stall=100us"
		store kvd1k memd "$server_cpu"
	)
	fill_values forced 1k
}

# of STACK BYTES: the options of a load on its values
of()
{
	local name=$((${2%k}))k
	echo "--kvd=kvd$name --keys=$(keys_of $((${2%k} * 1024))) --value_size=$2"
}

fill_values()	# STACK SIZE
{
	# shellcheck disable=SC2046 # words
	on "$1" measure "$tmp/fill.json" $(of "$1" "$2") --rw=fill --iodepth="$fill_depth"
}

# ---- rates ----

# run_one STACK NAME RW DEPTH ARGUMENT...
run_one()
{
	on "$1" measure "$raw/$2-run.$round.json" --rw="$3" --iodepth="$4" --randseed="$round" \
		--runtime="$run_time" --ramp_time="$ramp" "${@:5}"
}

volume_run()	# RW DEPTH DATA
{
	run_one near "volume-$1-4k-$2-$3" "rand$1" "$2" --volume=bench --size="${set_mib}M" --data="$3"
}

# shellcheck disable=SC2046 # words
kvd_run()	# SYSTEM STACK RW SIZE DEPTH DATA ARGUMENT...
{
	local rw=get
	[ "$3" = read ] || rw=put
	run_one "$2" "$1-$3-$4-$5-$6" $rw "$5" $(of "$2" "$4") "${@:7}"
}

rates()		# DEPTH
{
	volume_run read $1 copy
	kvd_run kvd near read 4k $1 copy
	volume_run read $1 loan
	kvd_run kvd near read 4k $1 loan --data=loan
	kvd_run kvd near read 4k $1 header --data=loan --unchecked
	volume_run write $1 copy
	kvd_run kvd near write 4k $1 copy
	kvd_run kvd near write 1k $1 copy
	kvd_run apart apart write 4k $1 copy
	kvd_run apart apart write 1k $1 copy
}

forced()
{
	kvd_run unforced forced write 1k 64 copy
	kvd_run forced forced write 1k 64 copy --force
}

# ---- times ----

now_ms()
{
	echo $(($(date +%s%N) / 1000000))
}

info()	# FIELD
{
	xseg --json kv info --kvd kvd | jq "${1:-.}"
}

loaded()	# BYTES
{
	[ "$(info .preloaded_bytes 2>>"$log")" -ge "$1" ] 2>>"$log"
}

# preload_stack no|all
preload_stack()
{
	kv_up preload $((preload_mib * 3 + beside_mib)) "" < <(
		peer filed "dir = $tmp/objects" "direct = no" "cpus = $server_cpu"
		cache filed $((preload_mib * 3 / 2 + 64)) "$server_cpu"
		peer kvd "downstream = cached" "size = $((preload_mib * 3 / 2 + 64))M" \
			"keys = $((preload_mib * 1024 + 5000))" "cpus = $server_cpu" "preload = $1"
	)
}

misses()
{
	xseg --json cache status cached | jq '.misses + .partial'
}

# shellcheck disable=SC2031 # each stack has its segment
preload()
{
	local load=(--kvd=kvd --keys=$((preload_mib * 1024)) --value_size=1k) began serve bytes before i
	if [ ! -d "$tmp/objects" ]; then
		mkdir "$tmp/objects"
		preload_stack no
		on preload measure "$tmp/fill.json" "${load[@]}" --rw=fill \
			--iodepth="$fill_depth"
		on preload quietly xseg down
	fi
	preload_stack all
	# the stack is up; kvd alone begins again, with a cache that is empty
	on preload quietly xseg peer stop kvd --force
	on preload quietly xseg cache drop cached
	began=$(now_ms)
	on preload quietly xseg peer start kvd
	serve=$(($(now_ms) - began))
	bytes=$((preload_mib * 1048576))
	for ((i = 0; i < 1000; i++)); do
		! on preload loaded $bytes || break
		sleep 0.01
	done
	echo "$serve $(($(now_ms) - began))" >"$raw/preload.$round"
	before=$(on preload misses)
	on preload measure "$tmp/get.json" "${load[@]}" --rw=get --iodepth="$fill_depth" \
		--number_ios=$((preload_mib * 64))
	echo "$(($(on preload misses) - before))" >>"$raw/preload.$round"
	on preload quietly xseg down
}

# keys_up STACK KEYS TOGETHER: keys of 16 bytes with values of 100
keys_up()
{
	local mib=$(($2 * 256 / 1048576 + 64))
	kv_up "$1" $((mib * 2 + 256 + beside_mib)) "$3" < <(
		peer memd "cpus = $server_cpu" "memory = 64M"
		cache memd $mib "$server_cpu"
		peer kvd "downstream = cached" "size = ${mib}M" "keys = $(($2 + $2 / 10))" \
			"cpus = $server_cpu" "sync = never"
	)
	on "$1" measure "$tmp/fill.json" --kvd=kvd --keys="$2" --value_size=100 --rw=fill \
		--iodepth="$fill_depth"
}

kill_kvd()
{
	local load
	on kill measure "$raw/kill.$round.json" --kvd=kvd --keys="$kill_keys" --value_size=100 --rw=get \
		--iodepth=1 --runtime="$kill_time" --randseed="$round" &
	load=$!
	sleep "$kill_after"
	on kill quietly xseg peer kill kvd
	wait $load || fail "a get failed while kvd was killed"
	on kill xseg --json kv info --kvd kvd >"$raw/info.$round.json"
}

until_open()
{
	local i
	for ((i = 0; i < 3000; i++)); do
		[ "$(info .state 2>>"$log")" != '"open"' ] || return 0
		sleep 0.01
	done
	fail "kvd does not open its log"
}

# once WHAT FIGURE...: a line for the report
once()
{
	(IFS=$'\t'; echo "$*") >>"$once_file"
}

# opened WHAT: how long its log took to open
opened()
{
	on many until_open
	once "$1" "$(on many info '.opened_ns / 1e6')"
}

many()
{
	local pid
	keys_up many "$many_keys" "memd cached kvd"
	on many quietly xseg peer kill kvd --force
	sleep 1
	opened many_open
	pid=$(on many xseg --json peer list | jq '.[] | select(.name == "kvd") | .pid')
	once many_keys "$(on many info .keys)"
	once many_index "$(on many info .index_bytes)"
	once many_rss "$(awk '$1 == "RssAnon:" { print $2 * 1024 }' "/proc/$pid/status")"
	on many quietly xseg down --force
}

# ---- compaction and spill-over ----

# full_up STACK LOG_MIB OPTION...
full_up()
{
	kv_up "$1" $(($2 * 3 + beside_mib)) "memd cached kvd" < <(
		peer memd "cpus = $server_cpu" "memory = 64M"
		cache memd "$2" "$server_cpu"
		peer kvd "downstream = cached" "cpus = $server_cpu" "size = ${2}M" "sync = never" \
			"${@:3}"
	)
}

# How many values of 1 KiB are so many percent of what zones hold: a record of 1,104 bytes and its
# hint.
keys_in()	# ZONES PERCENT ZONE_BYTES
{
	echo $(($1 * ($3 - 168) / 1144 * $2 / 100))
}

load_of()	# KEYS
{
	echo "--kvd=kvd --keys=$1 --value_size=1k"
}

# shellcheck disable=SC2046 # words
paced_up()
{
	paced_keys=$(keys_in $((full_mib / 4)) 60 4194304)
	full_up full "$full_mib"
	full_up roomy "$roomy_mib"
	on full measure "$tmp/fill.json" $(load_of "$paced_keys") --rw=fill --iodepth="$fill_depth"
	on full measure "$tmp/fill.json" $(load_of "$paced_keys") --rw=put --iodepth="$put_depth" \
		--number_ios=$((paced_keys * paced_rounds))
	on roomy measure "$tmp/fill.json" $(load_of "$paced_keys") --rw=fill --iodepth="$fill_depth"
}

# A paced load is given by its own file, and not by run_one(): its time is another.
# shellcheck disable=SC2046 # words
paced_run()	# STACK
{
	[ "$1" != roomy ] || [ "$round" = 1 ] || {
		on roomy quietly xseg down --force
		full_up roomy "$roomy_mib"
		on roomy measure "$tmp/fill.json" $(load_of "$paced_keys") --rw=fill \
			--iodepth="$fill_depth"
	}
	on "$1" measure "$raw/paced-$1.$round.json" $(load_of "$paced_keys") --rw=getput --iodepth=16 \
		--rate_iops=100000 --runtime="$paced_time" --randseed="$round"
}

# shellcheck disable=SC2046 # words
amplification()		# PERCENT
{
	local keys before after free reserve=4
	full_up amp 64 "zone_size = 1M" "reserve = 2" "keys = 80000"
	keys=$(keys_in $((64 - reserve)) "$1" 1048576)
	on amp measure "$tmp/fill.json" $(load_of "$keys") --rw=fill --iodepth="$fill_depth"
	on amp measure "$tmp/fill.json" $(load_of "$keys") --rw=put --iodepth="$put_depth" \
		--number_ios=$((keys * amp_rounds))
	before=$(on amp info '[.appended_bytes, .puts, .zones_free]')
	on amp measure "$tmp/fill.json" $(load_of "$keys") --rw=put --iodepth="$put_depth" \
		--number_ios=$((keys * amp_rounds)) --randseed=7
	after=$(on amp info '[.appended_bytes, .puts, .zones_free]')
	free=$(jq -n "[$after, $before] | map(.[2]) | max")
	once "amp_$1" "$(jq -n "$after as \$a | $before as \$b | (\$a[0] - \$b[0]) / (\$a[1] - \$b[1]) / 1104")" \
		"$(awk -v zones=64 -v free="$free" -v records=$(((1048576 - 168) / 1144)) \
			-v keys="$keys" -f bench/greedy.awk)" "$free"
	on amp quietly xseg down --force
}

# Bytes that the store was sent.
store_bytes()
{
	xseg --json stat | jq '.peers[] | select(.name == "memd") | .write_bytes'
}

# shellcheck disable=SC2046 # words
spill()
{
	local keys=$((spill_mib * 1024 * 6 / 10)) before puts
	kv_up spill $((spill_mib * 3 + beside_mib)) "memd cached kvd" < <(
		peer memd "cpus = $server_cpu" "memory = $((spill_mib * 2))M"
		peer cached "downstream = memd" "memory = ${spill_mib}M" "cpus = $server_cpu" \
			"dirty_high = 95" "dirty_age = 24h"
		peer kvd "downstream = cached" "size = $((spill_mib * 9 / 10))M" "cpus = $server_cpu" \
			"keys = $((keys + keys / 10))" "sync = never"
	)
	on spill measure "$tmp/fill.json" $(load_of "$keys") --rw=fill --iodepth="$fill_depth"
	before=$(on spill store_bytes)
	puts=$(on spill info .puts)
	on spill measure "$raw/spill.json" $(load_of "$keys") --rw=getput --rwmixread=80 --iodepth=16 \
		--runtime="$spill_time"
	puts=$(($(on spill info .puts) - puts))
	once spill $((puts * 1024)) $(($(on spill store_bytes) - before)) \
		"$(jq '.jobs[0] | .read.iops + .write.iops' "$raw/spill.json")"
	on spill xseg --json cache status cached >"$raw/spill-cache.json"
	on spill quietly xseg down --force
}

# ---- the tables ----

# The lines of a round, of those parts that were measured: WORDS, then a figure.
times_of()	# ROUND
{
	local at serve loaded missed
	if has preload; then
		{ read -r serve loaded; read -r missed; } <"$raw/preload.$1"
		printf '%s\t%s\n' preload_serves "$serve" preload_loaded "$loaded" preload_missed "$missed"
	fi
	! has kill || jq -r -n --slurpfile load "$raw/kill.$1.json" --slurpfile info "$raw/info.$1.json" \
		'["kill_slowest", $load[0].jobs[0].read.lat_ns.max / 1e6],
		["kill_opened", $info[0].opened_ns / 1e6],
		["kill_index", ($info[0].index_bytes - 86016) / $info[0].keys_max] | @tsv'
	! has compact || for at in full roomy; do
		jq -r '.jobs[0] | ["read", "write"][] as $rw | ["50.000000", "99.900000"][] as $p |
			["'$at'_" + $rw + "_" + $p[0:4], .[$rw].lat_ns.percentile[$p] / 1e3] | @tsv' \
			"$raw/paced-$at.$1.json"
	done
}

times()
{
	local round
	for ((round = 1; round <= runs; round++)); do
		times_of "$round"
	done
}

verify()
{
	# shellcheck disable=SC2046 # words
	on near measure "$raw/verified.json" $(of near 4k) --rw=getput --iodepth=16 --data=loan \
		--number_ios="$verified_ios" --opmix=delete:5,add:5,cas:5,incr:5 --verify=crc32c
}

verified()
{
	[ -e "$raw/verified.json" ] || return 0
	jq -r '.jobs[0] | "Verified: \(.read.total_ios + .verify.total_ios) gets.\\n" +
		"wanted verified run: no wrong answer, is \(.verify_errors): " +
		if .verify_errors == 0 then "met" else "not met" end' "$raw/verified.json"
}

has()		# PART
{
	[[ $parts == *" $1 "* ]]
}

# Some parts have no rates.
collect()
{
	! { has deep || has single || has forced; } || table_of "$columns"
}

# evaluation NAME: bench/kv_NAME.sh, with a folder of its own
evaluation()
{
	local pid
	"bench/kv_$1.sh" ${quick:+--quick} ${full:+--full} &
	pid=$!
	also_at_the_end end_child "$pid"
	wait $pid || fail "bench/kv_$1.sh failed"
	{ echo; cat "${out%/*}/kv_$1/report.txt"; } >>"$evaluations"
}

end_child()	# PID
{
	{ kill -TERM "$1" && wait "$1"; } 2>/dev/null
}

bench_begin xseg xseg-host xbench kvd
evaluations=$out/evaluations.txt
: >"$evaluations"
: >"$once_file"
! { has deep || has single; } || rates_up
! has forced || forced_up
! has kill || keys_up kill "$kill_keys" "memd cached"
! has compact || paced_up
while next_round; do
	! has deep || rates 16
	! has single || rates 1
	! has forced || forced
	! has preload || preload
	! has kill || kill_kvd
	! has compact || each paced_run "full roomy"
done
! has deep || verify
! has many || many
! has compact || each amplification "$amp_live"
! has spill || spill
! has offload || evaluation offload
! has lustre || evaluation lustre
! has filecache || evaluation filecache
times >"$times_file"
verified=$(verified)
vars="$vars verified"
bench_report "xseg, values by key, DATE: $set_mib MiB of values, a log of $log_mib MiB, $runs rounds of $run_time a run."
cat "$evaluations" >>"$out/report.txt"
bench_end
