#!/bin/bash
# fio.sh - fio's engine on a real stack: fio's own verification in every mode, its state of a run
# that was cut short, syncs, trims, errors.
# timeout: 150
. "$(dirname "$0")/../lib/system.sh"
need fio xseg xseg-host volumed cached memd jq greedy
engine=$BUILD/lib/fio-xseg.so
[ -e "$engine" ] || skip_all "$engine is not built: fio's source could not be had (make deps)"

seconds=$([ -n "$LONG" ] && echo 90 || echo 3)
bounded=()				# what is below it takes the time, not fio
[ -n "$LONG" ] || bounded=(--rate_iops=1500)
times=$([ -n "$LONG" ] && echo 20 || echo 1)
cat >stack.conf <<END
[segment]
memory = 192M
[peer memd]
memory = 48M
[peer cached]
downstream = memd
memory = 16M
[peer volumed]
downstream = cached
END

run()		# OPTIONS...
{
	fio --name=job --ioengine="external:$engine" --segment="$XSEG_SEGMENT" --volume=vol \
		--output-format=json --output="$TMP/fio.json" "$@"
}

value()		# EXPRESSION
{
	jq "$1" fio.json
}

t "a stack comes up" xseg up stack.conf
t "a volume is made" xseg volume create vol --size 24M
free=$(free_of_segment)

# ---- verify ----

# Each mode, with blocks that are smaller and larger than a page, and several jobs that share
# nothing.
for rw in write randwrite rw randrw trimwrite; do
	t "what is written by $rw is what is read" run --rw=$rw --bsrange=512-128k --iodepth=16 \
		--size=8M --verify=crc32c --verify_fatal=1 --fsync=64
	is "and all of it was looked at" \
		"$(value '.jobs[0].read.io_bytes > 0 and .jobs[0].error == 0')" true
done
for rw in read randread; do
	t "it is written" run --rw=write --bs=4k --iodepth=8 --size=4M --verify=crc32c \
		--do_verify=0 --randseed=7
	t "what was written before is what $rw reads" run --rw=$rw --bs=4k --iodepth=16 --size=4M \
		--verify=crc32c --verify_fatal=1 --randseed=7
done
# What was asked for once is found by the next, but for where its object is.
for i in 1 2; do
	before=$(counted peers volumed ops)
	t "what was written before is what is read without requests" \
		run --rw=randread --bs=4k --iodepth=16 --size=4M --verify=crc32c --verify_fatal=1 \
		--randseed=7
done
is "all of it was looked at" "$(value '.jobs[0].read.total_ios')" 1024
t "and hardly any of it asked for" [ $(($(counted peers volumed ops) - before)) -le 64 ]
before=$(counted peers volumed ops)
t "it may be read by requests" run --rw=randread --bs=4k --iodepth=16 --size=4M --verify=crc32c \
	--verify_fatal=1 --randseed=7 --direct_reads=0
t "each of which is sent" [ $(($(counted peers volumed ops) - before)) -ge 1024 ]
for rw in trim randtrim randtrim; do
	t "$rw ends" run --rw=$rw --bs=64k --iodepth=8 --size=8M
	is "and was a trim of all" "$(value .jobs[0].trim.io_bytes)" $((8 << 20))
done
t "what was trimmed is zeroes" run --rw=read --bs=64k --size=8M --verify=pattern \
	--verify_pattern=0x00
t "trims may write zeroes" run --rw=randtrim --bs=64k --iodepth=8 --size=8M --write_zeroes=1
t "four jobs, each in its own part, in threads" run --rw=randrw --bs=4k --iodepth=8 --numjobs=4 \
	--thread --size=4M --offset_increment=4M \
	--verify=crc32c --verify_fatal=1
t "and in processes" run --rw=randrw --bs=4k --iodepth=8 --numjobs=4 --size=4M \
	--offset_increment=4M --verify=crc32c --verify_fatal=1

# ---- verified while what is below comes and goes ----

disturb memd cached volumed
t "kills and plugs are pauses to fio" run --rw=randrw --bsrange=4k-32k --iodepth=16 --size=16M \
	--loops=1000 --time_based --runtime="$seconds" "${bounded[@]}" --verify=crc32c \
	--verify_fatal=1 --verify_backlog=256
disturbed $times

# ---- verify_state and the trigger ----

# fio saves what it knows of its writes when the trigger file appears, and ends; a second one reads
# back what the first was told of.
state()		# OPTIONS...
{
	run --rw=randwrite --bs=4k --iodepth=8 --size=16M --verify=crc32c --randseed=11 \
		--randrepeat=0 "$@"
}
rm -f ./*.state
before=$(counted volumes vol writes)
(wait_for 60 counts_more volumes vol writes $((before + 500)); touch pull) &
state --loops=1000 --time_based --runtime=20 --do_verify=0 --verify_state_save=1 \
	--trigger-file="$TMP/pull" --trigger="touch $TMP/pulled" \
	--aux-path="$TMP" >trigger.out 2>&1
t "the trigger was run" wait_for 60 test -e pulled
t "the state was saved" ls ./*-job-0-verify.state
t "what was acknowledged is there" state --verify_only=1 --verify_state_load=1 --verify_fatal=1 \
	--aux-path="$TMP"

# ---- promises ----

before=$(counted peers memd ops)
t "a run with fsync" run --rw=write --bs=4k --size=1M --fsync=16
t "and one with fdatasync" run --rw=write --bs=4k --size=1M --fdatasync=16
t "were flushes" [ $(($(counted peers memd ops) - before)) -ge $((2 * 256 / 16)) ]
before=$(counted peers memd bytes)
t "a run with sync=1" run --rw=write --bs=4k --size=1M --sync=1 --iodepth=4
t "is in the store when it is answered" [ $(($(counted peers memd bytes) - before)) -ge $((1 << 20)) ]

# ---- errors ----

fails()		# SENTENCE PATTERN OPTIONS...
{
	local sentence=$1 pattern=$2
	shift 2
	fio --name=job --ioengine="external:$engine" --rw=read --size=1M "$@" >fails.out 2>&1
	is "$sentence" "$? $(grep -cE -- "$pattern" fails.out)" "1 1"
}
t "the segment is that of \$XSEG_SEGMENT, where none is named" fio --name=job \
	--ioengine="external:$engine" --volume=vol --rw=read --size=1M
fails "a volume has to be named" "name a volume" --segment="$XSEG_SEGMENT"
fails "one that is there" "there is no volume 'none'" --segment="$XSEG_SEGMENT" --volume=none
fails "in a segment that is there" "there is no segment" --segment=no-such-segment --volume=vol
start greedy greedy "$XSEG_SEGMENT" 1
greedy=$started
wait_for 60 test -s greedy.log
fails "and memory for fio's buffers" "less than the 2 MiB left that fio's buffers need; use a smaller" \
	--segment="$XSEG_SEGMENT" --volume=vol --bs=4k --iodepth=16
kill "$greedy"
wait "$greedy" 2>/dev/null
t "the memory is free again" wait_for 60 is_as_before
t "the store fails" xseg peer set memd fail=any:1:EIO
t "nothing is cached" xseg cache set cached policy=pass-through
run --rw=randread --bs=4k --size=24M --iodepth=4 >error.out 2>&1
is "fio is told the store's error" "$(value .jobs[0].error)" 5
t "the store works" xseg peer set memd fail=
t "and the cache" xseg cache set cached policy=write-back

# ---- job files ----

for job in "$root"/bench/fio/*.fio; do
	sed "s/^runtime=.*/runtime=$([ -n "$LONG" ] && echo 1 || echo 200ms)/" "$job" >job.fio
	t "${job##*/} runs" env ENGINE="$engine" SEGMENT="$XSEG_SEGMENT" \
		VOLUME=vol fio --output="$TMP/job.out" job.fio
done
t "pages and requests are free that were before" wait_for 60 is_as_before
t "the segment is sound" xseg check
t "everything stops" xseg down
finish
