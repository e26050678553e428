#!/bin/bash
# xbench.sh - the load generator against real peers, and its verifier against a store that lies.
# tags: san
# timeout: 120
. "$(dirname "$0")/../lib/system.sh"

t "a segment is created" xseg create --memory 192M
start memd memd --memory 64M
memd_pid=$started
wait_for 60 xbench --target=memd --objects=4 --number_ios=1
run="xbench --target=memd --objects=8 --object_size=1M"
with_json="--output-format=json --output=out.json"

# in_time CONDITION COMMAND...: runs it, up to five times, until its JSON is so: what a machine that
# is slow for a while can spoil, and nothing else. No run may fail
in_time()
{
	local condition=$1 try
	shift
	for try in 1 2 3 4 5; do
		"$@" || return 1
		[ "$(json out.json "$condition")" != true ] || return 0
	done
	echo "not so in $try runs: $condition"
	return 1
}

# ---- what it measures ----

t "a random read load runs for its time" in_time '.jobs[0].job_runtime_ns < 2000000000' \
	$run --rw=randread --iodepth=16 --runtime=300ms $with_json
is "its JSON has fio's shape, in integers" \
	"$(json out.json '[.jobs[0].read | .iops, .bw_bytes, .total_ios, .io_bytes,
	.lat_ns.min, .lat_ns.max, .lat_ns.mean, .lat_ns.percentile["50.000000"], .lat_ns.percentile["99.900000"]]
	| map(type == "number" and . == floor and . > 0) | all')" true
is "iops is total_ios by runtime" \
	"$(json out.json '.jobs[0].read | (.total_ios * 1000000000 / .runtime_ns - .iops) |
	. >= 0 and . < 1')" true
is "io_bytes is total_ios blocks" \
	"$(json out.json '.jobs[0].read | .io_bytes == .total_ios * 4096')" true
is "nothing failed" "$(json out.json '.jobs[0] | "\(.error) \(.verify_errors) \(.total_err)"')" \
	"0 0 0"
is "it ran for the time that was asked for" \
	"$(json out.json '.jobs[0].job_runtime_ns | . >= 250000000 and . < 2000000000')" true
is "it says when that was, and by which build" "$(json out.json '"xbench \(."xbench version")", .timestamp_ms / 86400000 - now / 86400
	| if type == "number" then fabs < 1 else . end')" "$(xbench --version)
true"

t "a name of a file need not be UTF-8" \
	$run --number_ios=1 --output-format=json --output=$'\xfc.json'
is "the JSON is whole all the same" "$(json $'\xfc.json' '.options.output, .jobs[0].error')" "?.json
0"

cat >namesake.sh <<'END'
memd --name "xbench.$$.0" --memory 4M >/dev/null 2>&1 &
until xseg --json peer list | grep -q "\"xbench.$$.0\""; do sleep 0.05; done
exec xbench "$@"
END
t "its names may be those of others" bash namesake.sh --target=memd --objects=4 --number_ios=1

t "one pass of sequential writes ends by itself" $run --rw=write --bs=64k $with_json
is "it wrote every byte once" "$(json out.json '.jobs[0].write.io_bytes')" 8388608
t "number_ios is per job" $run --rw=randrw --number_ios=500 --numjobs=3 --iodepth=4 $with_json
is "there are as many jobs as were asked for" \
	"$(json out.json '.jobs | map(.read.total_ios + .write.total_ios)
	| tostring')" "[500,500,500]"
is "their sum has a line for people" \
	"$($run --rw=randread --number_ios=500 --numjobs=3 | grep -c '^all 3 jobs: read IOPS=[1-9].*, 1500 I/Os$')" 1
t "group_reporting makes one job of them" $run --rw=randrw --number_ios=500 --numjobs=3 \
	--group_reporting --name=mine $with_json
is "with the name and the sum of all" \
	"$(json out.json '.jobs | "\(length) \(.[0].jobname) \(.[0].read.total_ios + .[0].write.total_ios)"')" \
	"1 mine 1500"
$run --rw=randread --number_ios=500 --numjobs=3 --group_reporting --name=mine >normal.out
is "for people as well" "$(grep -c '^mine: 3 jobs, err=0' normal.out)" 1
is "the first words say what will run" "$(head -2 normal.out | xargs)" \
	"mine: target memd, rw=randread, bs=4k, size=8M, iodepth=1, jobs=3, number_ios=500"
t "and the last one has the sum" eval \
	"tail -1 normal.out | grep -qE '^sum: IOPS=[1-9].*, 1500 I/Os, failed=0$'"
t "jobs may have ranges of their own" \
	$run --rw=write --numjobs=4 --size=2M --offset_increment=2M $with_json
is "each wrote its range" "$(json out.json '[.jobs[].write.io_bytes] | unique | tostring')" \
	"[2097152]"
t "a mix of everything runs" $run --rw=randrw --number_ios=2000 --iodepth=8 --bsrange=512-64k \
	--opmix=flush:5,trim:5,write_zeroes:5,copy:5,info:5 --sync=1 $with_json
is "every operation was counted" \
	"$(json out.json '[.jobs[0] | .read, .write, .trim, .sync, .write_zeroes, .copy, .info
	| .total_ios > 0] | all')" true
for mode in trim randtrim rw; do
	t "--rw=$mode runs" $run --rw=$mode --number_ios=200 --iodepth=4
done
t "zipf offsets run" $run --rw=randread --random_distribution=zipf:1.2 --number_ios=2000 --iodepth=4
t "a flush after every ten writes" $run --rw=randwrite --fsync=10 --number_ios=100 \
	--iodepth=8 $with_json
is "makes ten of them" "$(json out.json '.jobs[0].sync.total_ios')" 10
t "a rate is kept" in_time '.jobs[0].read.total_ios > 40' $run --rw=randread --rate_iops=100 \
	--runtime=1s --iodepth=4 $with_json
is "of about what was asked for" \
	"$(json out.json '.jobs[0].read.total_ios | . > 40 and . <= 105')" true
t "a rate in bytes is kept" in_time '.jobs[0].read.io_bytes > 262144' $run --rw=randread \
	--rate=512k --runtime=1s --bs=8k --iodepth=4 $with_json
is "of about what was asked for" \
	"$(json out.json '.jobs[0].read.io_bytes | . > 262144 and . <= 524288 + 8192')" true
t "writes have one of their own" in_time '.jobs[0].write.io_bytes > 131072' $run --rw=randrw \
	--rate=,256k --runtime=1s --iodepth=4 $with_json
is "of about what was asked for" \
	"$(json out.json '.jobs[0].write.io_bytes | . > 131072 and . <= 262144 + 4096')" true
t "a ramp is not counted" in_time '.jobs[0].read.total_ios | . > 10 and . < 90' $run \
	--rw=randread --rate_iops=100 --ramp_time=500ms --runtime=500ms $with_json
is "so about half of it is there" \
	"$(json out.json '.jobs[0].read.total_ios | . > 10 and . < 90')" true
t "time_based repeats a workload" in_time '.jobs[0].read.total_ios > 20' $run --rw=randread \
	--number_ios=10 --rate_iops=200 --runtime=500ms --time_based $with_json
is "until the time is over" "$(json out.json '.jobs[0].read.total_ios > 20')" true
add_up='([.samples[].read.total_ios] | add) as $sum | (.samples | length) >= 3 and
	$sum <= .jobs[0].read.total_ios and $sum >= .jobs[0].read.total_ios * 0.7'
t "samples are taken" in_time "$add_up" $run --rw=randrw --runtime=700ms \
	--status-interval=200ms --iodepth=4 $with_json
is "they add up to what was done" "$(json out.json "$add_up")" true
t "an I/O log is written" $run --rw=rw --number_ios=50 --write_iolog=io.log
is "it has fio's header" "$(head -n 1 io.log)" "fio version 2 iolog"
is "it has every I/O" "$(grep -cE '^memd (read|write) [0-9]+ 4096$' io.log)" 50
if command -v fio >/dev/null 2>&1; then
	truncate -s 8M memd
	t "fio can replay it" fio --name=replay --read_iolog=io.log --ioengine=sync \
		--replay_redirect="$TMP/memd"
else
	skip "fio can replay it" "fio is not there"
fi
t "by loan what a peer does not lend is copied" \
	$run --rw=randread --number_ios=100 --data=loan $with_json
is "and all of it is there" "$(json out.json '.jobs[0] | "\(.read.total_ios) \(.error)"')" "100 0"
t "directly what a peer publishes nothing of is asked for" \
	$run --rw=randread --number_ios=100 --data=direct $with_json
is "and all of it is there" \
	"$(json out.json '.jobs[0] | "\(.read.total_ios) \(.direct_ios) \(.error)"')" "100 0 0"
t "jobs can be pinned" $run --rw=randread --number_ios=100 --numjobs=2 --cpus=0
$run --rw=randread --number_ios=100 >normal.out 2>&1
is "the summary for people names the load" "$(grep -c 'read: IOPS=' normal.out)" 1
$run --rw=randrw --iodepth=16 --numjobs=2 --runtime=300ms --status-interval=100ms \
	--bsrange=512-64k --opmix=flush:5,trim:5,write_zeroes:5,copy:5,info:5 >wide.out 2>&1
is "no line is longer than 100 columns" "$(awk 'length > 100' wide.out)" ""
t "each line of an interval has the longest I/O" eval \
	"grep -E '^xbench: +[0-9.s]* +[a-z_]+ +[0-9]+ IOPS' wide.out | grep -vc ' max=' | grep -qx 0"
if command -v script >/dev/null; then
	timeout 60 script -qec "$run --rw=randread --iodepth=4 --runtime=2s --output=line.out" \
		/dev/null </dev/null >screen
	t "a terminal has a line with what is left" \
		grep -qE '^.*xbench: +[0-9]+%  read [0-9]+ IOPS [0-9.]+[kMGT]/s  eta 00:00:0[0-9]' screen
	is "which is cleared at the end" "$(tail -c 4 screen)" $'\r\033[K'
else
	skip "a terminal has a line with what is left" "script(1) is not there"
fi

# ---- what it refuses ----

expect_err 2 "multiple of 512" "a block size that is no multiple of a sector is refused" \
	$run --bs=1000
expect_err 2 "reach beyond the end" "a size beyond the objects is refused" $run --size=1T
expect_err 2 "mean" "a misspelt option is corrected" $run --iodeph=3
expect_err 2 "CPU 63 " "a CPU that is not there is refused" $run --cpus=63
expect_err 4 "no peer 'nobody'" "an unknown peer is named" xbench --target=nobody
expect_err 4 "no volumed" "a volume without a volumed is refused" xbench --volume=v
expect_err 4 "there is no segment" "an unknown segment is refused" xbench -s "$XSEG_SEGMENT-none" \
	--volume=v
expect_err 1 "has less than the .* MiB left" "too small a segment is said to be too small" \
	$run --bs=1M --iodepth=512
expect_err 1 "output: cannot write /nowhere/out" \
	"results that can be written nowhere are refused before the load" \
	$run --rw=read --output=/nowhere/out --write_iolog=early.log
is "which has not begun" "$(wc -l <early.log)" 4
expect_err 1 "verify_state: cannot write /nowhere/state" "and so is a state" \
	$run --rw=write --verify_state=/nowhere/state
echo kept >one
ln one other
expect_err 2 "write_iolog and output are one file" \
	"nor do two of them go to one, whatever its names" \
	$run --rw=write --number_ios=1 --write_iolog=one --output="$TMP/other"
is "in which nothing is written" "$(cat one)" kept
mkfifo pipe
ln -s out.json link
for file in pipe link; do
	expect_err 2 "$file exists and is not a file" \
		"what would be replaced by a state is no $file" \
		$run --rw=write --number_ios=1 --verify_state=$file
done
is "which both are there" "$(stat -c %F pipe link | tr '\n' ' ')" "fifo symbolic link "
expect_err 1 "verify_state: cannot read /nowhere/state" \
	"one that cannot be opened is said to be so" \
	$run --verify_only --verify_state=/nowhere/state
expect_err 2 "not a file that xbench saved" "a file that is no state is refused" \
	$run --verify_only --verify_state="$root/Makefile"

for option in --help --version; do
	expect_err 1 "No space left" "$option that cannot be printed is an error" \
		bash -c "xbench $option >/dev/full"
done
expect_err 1 "cannot write the results: No space left" "and so are results" \
	bash -c "$run --rw=read --number_ios=1 >/dev/full"
expect_err 1 "output: cannot write /dev/full: No space left" "also as JSON, in a file" \
	$run --rw=read --number_ios=1 --output-format=json --output=/dev/full

(ulimit -f 1; $run --rw=randwrite --number_ios=1000 --verify_state=large) >large.out 2>&1
is "a limit of the size of files is an error, and leaves no half of a state" \
	"$? $(grep -c 'verify_state: cannot write large: File too large' large.out) $(echo large*)" \
	"1 1 large.out"

# ---- verifying what is right ----

verify="--rw=randrw --bsrange=512-16k --iodepth=16 --verify=crc32c"
t "an honest store verifies" \
	$run $verify --number_ios=3000 --numjobs=2 --opmix=trim:3,write_zeroes:3,flush:1
t "what a run saved verifies" $run $verify --number_ios=2000 --verify_state=state
t "and again from the file" $run --verify_only --verify_state=state --iodepth=4
t "a run can be verified from its options alone" \
	$run $verify --number_ios=1000 --randseed=5 --do_verify=no
t "by making it again" $run $verify --number_ios=1000 --randseed=5 --verify_only
expect_err 2 "writes nothing" "a run that wrote nothing is no run to verify" $run --verify_only
expect_exit 1 "but not from other options" $run $verify --number_ios=1000 --randseed=6 --verify_only
t "another run comes in between" $run --rw=randwrite --number_ios=500
expect_exit 1 "what it overwrote is missed" $run --verify_only --verify_state=state --iodepth=16

t "memd is made to fail writes" xseg peer set memd fail=write:0.05:EIO
expect_exit 1 "a failed I/O is exit code 1" $run $verify --number_ios=2000 \
	--verify_state=state $with_json
is "the first errno is kept" "$(json out.json '.jobs[0].error')" 5
is "a failed write may have happened or not" "$(json out.json '.jobs[0].verify_errors')" 0
t "memd is made well again" xseg peer set memd fail=
t "also in the saved state" $run --verify_only --verify_state=state --iodepth=16

for what in write_zeroes discard copy; do
	t "memd is made to do half of each $what" xseg peer set memd fail= fail=$what:1:short
	expect_exit 1 "which is an error for who asks for it" xbench --target=memd --objects=2 \
		--object_size=64k --rw=write --bs=4k --number_ios=200 \
		--opmix="${what/discard/trim}:50" $with_json
	is "and no other" "$(json out.json '.jobs[0].error')" 5
done
t "memd is made well again" xseg peer set memd fail=

# 16 failures of each sector of 96 MiB are more than it tells apart
t "memd is made to fail all writes" xseg peer set memd fail=write:1:ENOSPC
expect_exit 1 "a run whose writes all fail goes on to its end" xbench --target=memd --objects=96 \
	--object_size=1M --rw=write --bs=1M --iodepth=4 --number_ios=2000 \
	--verify_state=full.state \
	$with_json
is "and counts them" "$(json out.json '.jobs[0] | "\(.total_err) \(.error) \(.verify_errors)"')" \
	"2000 28 0"
t "and its state is saved" test -s full.state
t "memd is made well once more" xseg peer set memd fail=

# ---- when answers do not come ----

ios=$(counted peers memd ops)
start cut $run $verify --runtime=1h --verify_state=cut.state $with_json
t "a run has begun" wait_for 60 counts_more peers memd ops $((ios + 500))
kill -INT "$started"
wait "$started"
is "an interrupted run is exit code 3" $? 3
is "and has results" "$(json out.json '.interrupted and .jobs[0].read.total_ios > 0')" true
t "and a state that verifies" $run --verify_only --verify_state=cut.state --iodepth=16
start deaf $run --rw=randwrite --iodepth=4 --runtime=1h --status-interval=100ms
wait_for 60 grep -q IOPS deaf.log
freeze "$memd_pid"
t "no answer comes" wait_for 60 grep -q ' 0 IOPS$' deaf.log
sleep 1.2
freeze "$started"		# so that no time passes until it takes the signal
lines=$(grep -c ' 0 IOPS$' deaf.log)
kill -TERM "$started"
kill -CONT "$started"
wait "$started"
is "SIGTERM ends a run without answers" $? 3
kill -CONT "$memd_pid"
t "at once: it tells of no more idle intervals" [ $(($(grep -c ' 0 IOPS$' deaf.log) - lines)) -le 2 ]
t "it has its report" grep -q '^sum: .*, interrupted$' deaf.log
t "in which it says what it gave up" grep -q 'gave up 4 requests that were not answered' deaf.log
freeze "$memd_pid"
expect_exit 3 "io_timeout ends a run whose peer does not answer" \
	$run --rw=randwrite --verify_state=stopped.state --runtime=100ms --iodepth=4 \
	--io_timeout=500ms $with_json
is "and the time in which there was no answer counts" \
	"$(json out.json '.jobs[0].job_runtime_ns >= 400000000')" true
start waiting $run --rw=randread --number_ios=100
t "a run says that it waits" wait_for 60 grep -q "still waiting for 1 requests" waiting.log
kill -CONT "$memd_pid"
wait "$started"
is "a run waits for a peer that comes back" $? 0
freeze "$memd_pid"
$run --rw=read --runtime=2s --io_timeout=2s --status-interval=200ms >idle.out 2>&1
kill -CONT "$memd_pid"
t "what it tells of an interval without answers is that" grep -q "^xbench: .*s  0 IOPS$" idle.out
t "what was not answered may have been done" $run --verify_only --verify_state=stopped.state \
	--iodepth=16

# ---- a store that lies ----

# lie KIND WANTED: the verifier finds lies of this kind, and counts them as WANTED (a jq condition)
lie()
{
	start "liar-$1" liar -s "$XSEG_SEGMENT" --size=8M --object_size=1M --lie="$1" --every=97
	wait_for 60 xbench --target=liar --objects=8 --object_size=1M --number_ios=1
	rm -f out.json
	xbench --target=liar --objects=8 --object_size=1M $verify --number_ios=4000 \
		$with_json >/dev/null 2>"$1.err"
	is "a run over a store with lie '$1' ends with exit code $3" $? "$3"
	is "its counters are right" "$(json out.json ".verify | $2")" true
	kill -TERM "$started"
	wait "$started"
}
lie none ".stale + .lost + .torn + .misplaced == 0" 0
lie stale ".stale > 0 and .torn + .misplaced == 0" 1
lie lost ".lost > 0 and .stale + .torn + .misplaced == 0" 1
lie torn ".torn > 0 and .stale + .lost + .misplaced == 0" 1
lie misplaced ".misplaced > 0 and .stale + .lost + .torn == 0" 1
is "the first ten are described" \
	"$(grep -c 'misplaced sector at offset [0-9]*: expected .*, found .*, stamped for' \
	misplaced.err)" 10
lie short ".stale + .lost + .torn + .misplaced == 0" 1
is "every stale read is found" "$(sed -n 's/lies=//p' liar-stale.log)" \
	"$(sed -n 's/.*verify: \([0-9]*\) stale, \([0-9]*\) lost.*/\1 + \2/p' stale.err |
	xargs expr)"

# ---- a volume ----

start volumed volumed --downstream memd
volumed_pid=$started
t "a volume is made" wait_for 60 xseg volume create vol --size 8M
t "a volume verifies, across its objects" xbench --volume=vol $verify --number_ios=2000 \
	--opmix=trim:3,info:2,flush:2 \
	--verify_state=vol.state
t "and once more from the state" xbench --volume=vol --verify_only --verify_state=vol.state \
	--iodepth=16
expect_err 2 "serves no objects" "a target that serves no objects is refused" \
	xbench --target=volumed
expect_err 4 "there is no volume 'other'; 'xseg volume list'" \
	"an unknown volume is named, and where to look" xbench --volume=other
expect_err 2 "reach beyond the end" "a size beyond the volume is refused" xbench --volume=vol \
	--size=9M
expect_err 2 "another volume" "the state of something else is refused" \
	xbench --volume=vol --verify_only --verify_state=state
freeze "$volumed_pid"
before=$(date +%s)
expect_err 3 "within io_timeout" "a volumed that does not answer is not waited for any longer" \
	xbench --volume=vol --io_timeout=500ms
t "than io_timeout says" [ $(($(date +%s) - before)) -lt 8 ]
expect_err 3 "interrupted before the load began" "nor after Ctrl-C" \
	interrupting takes_signals xbench --volume=vol
kill -CONT "$volumed_pid"
ops=$(counted volumes vol ops)
start loading xbench --volume=vol --rw=randread --runtime=1h
wait_for 60 counts_more volumes vol ops "$ops"
expect_err 4 "in use by xbench" "its volume is not removed while it runs" xseg volume remove vol
kill -INT "$started"
wait "$started"
t "a volume of three objects is made" xseg volume create cut --size 9M
t "with data in each of them" xbench --volume=cut --rw=write --bs=1M --number_ios=9
t "deletes are made to fail" xseg peer set memd fail=delete:1:EIO
expect_exit 3 "so that a cut lasts" xseg --timeout 3s volume resize cut --size 4M --force
is "it does" "$(json_of .state xseg --json volume info cut)" shrinking
t "a volume that is being cut takes a load, in its new size" xbench --volume=cut --rw=randrw \
	--number_ios=100
expect_err 2 "reach beyond the end" "and no larger one" xbench --volume=cut --size=9M
t "memd is mended" xseg peer set memd fail=
t "the cut comes to its end" wait_for 60 eval \
	'[ "$(json_of .state xseg --json volume info cut)" = ok ]'
t "deletes are made to fail again" xseg peer set memd fail=delete:1:EIO
expect_exit 3 "so that a removal lasts" xseg --timeout 3s volume remove cut
expect_err 4 "volume 'cut' is being removed; use another" \
	"a volume that is being removed takes none" \
	xbench --volume=cut
t "memd is mended again" xseg peer set memd fail=
start othermemd memd --name othermemd --memory 4M
start other volumed --name other --downstream othermemd
t "another volumed has another volume" wait_for 60 xseg volume create else --size 1M --volumed other
expect_err 2 "choose one with --volumed: " "xseg asks which is meant" xseg volume list
t "a load finds the volumed that has its volume" xbench --volume=vol --rw=read --number_ios=1
t "which of them that may be" xbench --volume=else --rw=read --number_ios=1
expect_err 4 \
	"none of the 2 volumeds of segment $XSEG_SEGMENT has a volume 'none'; 'xseg volume list" \
	"which all of them have not is said of all" xbench --volume=none --rw=read --number_ios=1
t "the other one is stopped" xseg peer stop other
expect_err 4 "volumed: .*'none'.* volume list' shows" "but not of one that is stopped" \
	xbench --volume=none --rw=read --number_ios=1
t "one that serves is the only one then" xseg volume info vol
t "and whose volumes it has need not be said" xseg volume create more --size 1M
expect_err 4 "other: it is stopped" "one that is stopped can be named" \
	xseg volume list --volumed other
start other volumed --name other --downstream othermemd
t "it is started again" wait_for 60 xseg volume info else --volumed other
t "and the first one is stopped" xseg peer stop volumed
expect_err 4 "other: .*'none'.* volume list' shows" "then the other one's answer is shown" \
	xbench --volume=none --rw=read --number_ios=1
finish
