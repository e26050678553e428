#!/bin/bash
# benches.sh - the benchmarks: bench-lru counts right, and the short form of each makes its reports.
# Nothing here judges a figure that depends on time. `make check` runs the benchmarks that take a
# second or two; `make check-long` runs all.
# timeout: 480
. "$(dirname "$0")/../lib/system.sh"
. "$root/tests/lib/benches.sh"
need jq

# ---- the exact LRU ----

# trace FILE OFFSET/SIZE...: reads, as xbench logs them
trace()
{
	local file=$1 io
	shift
	{
		printf 'fio version 2 iolog\nmemd add\nmemd open\n'
		for io; do
			echo "memd read ${io%/*} ${io#*/}"
		done
		echo "memd close"
	} >"$file"
}

# hits SENTENCE "READS HITS" ARGUMENT...: of bench-lru with a cache of two blocks
hits()
{
	local sentence=$1 wanted=$2
	shift 2
	is "$sentence" "$(json_of '"\(.reads) \(.hits)"' bench-lru --cache=8k "$@")" "$wanted"
}

trace three 0/4096 4096/4096 0/4096 8192/4096 4096/4096 8192/4096
hits "the block that was used least recently goes" "6 2" three
hits "what fills the cache is not counted" "3 1" --warmup=50 three
trace wide 0/8192 0/512 4000/200 0/12288 4096/8192
hits "a read is a hit when all its blocks are there" "5 3" wide
trace other 1048576/4096 1052672/4096 1056768/4096 1060864/4096 1064960/4096 1069056/4096
hits "traces beside each other are merged evenly" "12 0" three other
is "each trace has its own counts" \
	"$(json_of '[.traces[] | .reads, .hits] | tostring' bench-lru --cache=1M three three \
	other)" "[6,3,6,6,6,0]"
cat three three >twice
hits "traces that are concatenated are one after the other" "12 4" twice
sed 's/read/write/' three >writes
hits "writes are not counted" "0 0" writes
expect_err 1 "line 1, is not of fio's iolog version 2" "what is no trace is refused" \
	bench-lru "$root/Makefile"
expect_err 1 "cannot open none" "a trace that is not there is named" bench-lru none
expect_err 2 "give 1 to 16 traces" "a trace is wanted" bench-lru

# ---- clients of others ----

expect_err 2 "^bench-rival: give --path" "a store is wanted" bench-rival-memcached
expect_err 2 "^bench-rival: 'word' is not an option" "and no word" bench-rival-memcached word
expect_err 2 "--readers is for --rw=counter" "readers belong to one load" \
	bench-rival-memcached --path=none --readers=2
expect_err 2 "--rw=scan is for libraries" "a server is not gone through" \
	bench-rival-memcached --path=none --rw=scan
expect_err 1 "no connection to none: No such file" "a server that is not there is named" \
	bench-rival-memcached --path=none --runtime=20ms
t "help needs no store" bench-rival-memcached --help

# loads PROGRAM PATH [OPTION...]: each load of the driver runs, and finds what it put
loads()
{
	local set=(--path="$2" --keys=256 "${@:3}") rw
	expect_err 1 "^bench-rival: [0-9]+ operations failed, .* --rw=fill" \
		"$1: what is not there is an error" "$1" "${set[@]}" --runtime=20ms
	is "but where it may be missing" "$(json_of '.jobs[0] | .error == 0 and
		.read.misses == .read.total_ios' "$1" "${set[@]}" --may_drop --runtime=20ms)" true
	is "it puts and gets each" "$(json_of '.jobs[0] | "\(.write.total_ios) \(.read.total_ios)"' \
		"$1" "${set[@]}" --rw=both --threads=2)" "256 256"
	is "however short the time" "$(json_of '.jobs[0].read.total_ios > 0' "$1" "${set[@]}" \
		--runtime=1ms --ramp_time=0)" true
	is "both at random" "$(json_of '.jobs[0] | .read.total_ios > 0 and .write.total_ios > 0' \
		"$1" "${set[@]}" --rw=mixed --rwmixread=50 --threads=3 --iodepth=2 --runtime=100ms)" true
	is "readers beside writers" \
		"$(json_of '.jobs[0] | "\(.write.total_ios) \(.read.total_ios)"' \
		"$1" "${set[@]}" --rw=counter --threads=2 --readers=3)" "512 768"
	is "values of many sizes" "$(json_of '.jobs[0].write | .io_bytes > 100000 and
		.io_bytes < 900000' "$1" "${set[@]}" --rw=both --value_size=2k --exponential)" true
	is "and each value that is not the key's is counted" \
		"$("$1" "${set[@]}" --rw=read 2>/dev/null | jq '.jobs[0].wrong')" 256
}

for program in bench-rival-rocksdb bench-rival-leveldb bench-rival-lmdb; do
	[ -x "$BUILD/bin/$program" ] || continue
	mkdir "$program.db"
	loads "$program" "$program.db"
	is "$program goes through all" \
		"$(json_of '.jobs[0].read.total_ios' "$program" --path="$program.db" --rw=scan)" 256
done
if PATH=$PATH:/usr/sbin command -v memcached >/dev/null; then
	PATH=$PATH:/usr/sbin memcached -u "$(id -un)" -s "$TMP/memcached" -m 64 -t 1 2>/dev/null &
	wait_for 10 test -S "$TMP/memcached"
	loads bench-rival-memcached "$TMP/memcached" --iodepth=4 --connections=2
	kill $!
fi
if [ -x "$BUILD/bin/bench-rival-redis" ] && command -v redis-server >/dev/null; then
	redis-server --port 0 --unixsocket "$TMP/redis" --save '' --dir "$TMP" >/dev/null &
	wait_for 10 test -S "$TMP/redis"
	loads bench-rival-redis "$TMP/redis" --iodepth=4 --connections=2
	kill $!
fi
cat >kv.conf <<-END
	[segment]
	name = $XSEG_SEGMENT
	memory = 96M
	[peer memd]
	memory = 64M
	[peer kvd]
	downstream = memd
	size = 48M
END
t "kvd is there" xseg up kv.conf
loads bench-rival-xseg "$XSEG_SEGMENT" --iodepth=4
is "large values go in pieces" "$(json_of '.jobs[0] | "\(.write.io_bytes) \(.read.io_bytes)"' \
	bench-rival-xseg --path="$XSEG_SEGMENT" --keys=2 --value_size=5000000 --rw=both --iodepth=3)" \
	"10000000 10000000"
t "kvd is ended" xseg down

# ---- the page cache ----

expect_err 2 "either --file or --volume" "a file or a volume is wanted" bench-pagecache
expect_err 2 "--data=direct is not for a file" "a file is not read like a volume" \
	bench-pagecache --file=file --data=direct
expect_err 2 "--data=map only reads" "nothing is written through a mapping" \
	bench-pagecache --file=file --data=map --rw=randwrite
expect_err 1 "none: No such file" "a file that is not there is named" bench-pagecache --file=none
truncate -s 1M zeroes
expect_err 1 "ended after 0 bytes; --make writes all data" "a file that is too short is refused" \
	bench-pagecache --file=zeroes --size=2M --runtime=20ms
is "a page with wrong data is an error" "$(json_of '.jobs[0] | .error > 0 and .total_err > 0' \
	bench-pagecache --file=zeroes --size=1M --runtime=20ms)" true
t "a file is made" bench-pagecache --file=full --make --size=1M --touch=all
for data in copy map; do
	is "its pages are right, by $data" "$(json_of '.jobs[0] | .error == 0 and .read.total_ios > 0' \
		bench-pagecache --file=full --size=1M --runtime=20ms --data=$data --numjobs=2)" true
done
is "written pages, too" "$(json_of '.jobs[0].write.total_ios > 0' bench-pagecache --file=full \
	--size=1M --runtime=20ms --rw=randwrite) $(json_of '.jobs[0].error' \
	bench-pagecache --file=full --size=1M --runtime=20ms)" "true 0"
expect_err 1 "not bound to CPU 1000: " "a CPU that is not there is named" \
	bench-pagecache --file=full --size=1M --runtime=20ms --cpus=1000
is "and CPU time is counted" "$(json_of '.client_cpu_ns > 0' \
	bench-pagecache --file=full --size=1M --runtime=20ms)" true

# ---- how they are called ----

for script in hit run demo; do
	expect_err 2 "unknown option --fast; .*--help lists" "$script.sh has no such option" \
		"$root/bench/$script.sh" --fast
	is "it says what it has" \
		"$("$root/bench/$script.sh" --help | grep -c "^Usage: bench/$script.sh")" 1
done
expect_err 2 "not also --full" "one option is enough" "$root/bench/hit.sh" --quick --full
expect_err 2 "BENCH_SECONDS=soon is not a number" "so it is to a script for guests" \
	env BENCH_SECONDS=soon "$root/bench/guest.sh"
expect_err 2 "there is no mysql; there are cached " "who is no rival is named" \
	env BENCH_RIVALS="cached mysql" "$root/bench/rivals.sh" --quick
expect_err 2 "BENCH_SECONDS=1.2.3 is not a number" "a number has one point" \
	env BENCH_SECONDS=1.2.3 "$root/bench/limits.sh"
expect_err 2 "BENCH_SECONDS=0.004 is too short; give 0.005" "a run of no time would not end" \
	env BENCH_SECONDS=0.004 "$root/bench/overhead.sh"
mkdir -p kept/scale bare
touch kept/scale/report.txt
for program in bash sed awk cat grep cut realpath dirname basename; do
	ln -s "$(command -v $program)" bare
done
expect_err 2 "valgrind is not there" "what is needed is named" \
	env PATH="$TMP/bare" BENCH_OUT=kept "$root/bench/scale.sh" --quick
t "and what there was before is kept" test -e kept/scale/report.txt
mkdir -p taken/limits
bash -c 'echo $$ >taken/limits/pid; exec -a limits.sh sleep 60' &
until [ -s taken/limits/pid ]; do sleep 0.01; done
expect_err 2 "limits.sh runs already, as process $!, .* another BENCH_OUT" \
	"one does not take another's folder" \
	env BENCH_OUT=taken "$root/bench/limits.sh" --quick
kill $!
touch file
for script in "run.sh --quick limits" "limits.sh --quick"; do
	# shellcheck disable=SC2086 # words
	expect_err 2 "/file.*: Not a directory; give another BENCH_OUT" \
		"where nothing can be made is said by ${script%% *}" \
		env BENCH_OUT=file/bench "$root"/bench/$script
done
expect_err 2 "DEMO_SECONDS=soon is not a number" "a time is a number" \
	env DEMO_SECONDS=soon "$root/bench/demo.sh"

# ---- the bare limit ----

set_file='a "set"\of mine'
is "what a file is called is right in JSON" "$(json_of '.options.set' \
	bench-limit --size=4M --runtime=1ms --set="$set_file" --output-format=json)" "$set_file"
t "however short the time, something is counted" [ "$(json_of '.jobs[0].read.iops' bench-limit \
	--mode=memcpy --bs=1M --size=64M --runtime=1ms --ramp_time=0 --output-format=json)" -gt 0 ]
expect_err 1 "/dev/null is no regular file" "a set is a file" \
	bench-limit --size=4M --set=/dev/null
mkdir -p folder
expect_err 1 "folder cannot be opened: Is a directory; give another --set" "and no directory" \
	bench-limit --size=4M --set=folder
bench-limit --size=4M --runtime=60s --set=used >used.log 2>&1 &
t "a set is used" wait_for 60 test -s used
t "for a while" wait_for 60 grep -q ":$(stat -c %i used 2>/dev/null) " /proc/locks
expect_err 1 "used is in use by another bench-limit; wait" "it is refused to another one" \
	bench-limit --size=4M --runtime=1ms --set=used
kill $!
wait $! 2>/dev/null
touch fixed
if chattr +i fixed 2>/dev/null; then
	expect_err 1 "fixed cannot be opened: Operation not permitted" \
		"one that may not be written to is not left out" \
		bench-limit --size=4M --runtime=1ms --set=fixed
	chattr -i fixed
else
	skip "one that may not be written to is not left out" "no file can be made immutable here"
fi
# A disk of 8 MiB, in a namespace of its own.
if unshare -m true 2>/dev/null; then
	mkdir -p small
	expect_err 1 "small/set takes .* MiB, and there are 8 MiB left" \
		"a set that does not fit is refused" \
		unshare -m sh -c 'mount -t tmpfs -o size=8M none small &&
			bench-limit --size=64M --runtime=1ms --set=small/set'
	expect_err 1 \
		"failed; the logs are in .*; last was said: bench-limit: .* use a smaller --size" \
		"a benchmark that fails says why" env -u XSEG_SEGMENT \
		BENCH_SEGMENT="$XSEG_SEGMENT" \
		BENCH_OUT=shm unshare -m sh -c \
		"mount -t tmpfs -o size=8M none /dev/shm && exec '$root/bench/limits.sh' --quick"
else
	skip "a set that does not fit is refused" "no namespace can be had here"
	skip "a benchmark that fails says why" "no namespace can be had here"
fi

# ---- the short forms ----

cat >bars <<-END
	==== hit ====
	wanted 4k read, depth 1: at least 0.85, is 0.9: met
	wanted writes, depth 16: a rate of 2 (redis: 3): at least 1, is 0.5 (worst: 0): not met
	==== ratio ====
	wanted uniform, is -0.2 points: met
END
is "the table of all bars has what was wanted, and whether it is met" \
	"$(awk -f "$root/bench/run.awk" bars | sed 1d | tr -s ' ' | tr '\n' ';')" \
	"hit 4k read, depth 1 at least 0.85 0.9 met;hit writes, depth 16: a rate of 2 (redis: 3) at least 1 0.5 (worst: 0) not met;ratio uniform -0.2 points met;2 of 3 bars are met.;"

is "what was never counted meets nothing, either" \
	"$(awk -f "$root/bench/lib.awk" -f "$root/bench/pauses.awk" \
		-f "$root/bench/switches.awk" </dev/null | grep -c 'no errors.*: met$')" 0
is "a figure that is none meets nothing that was wanted" \
	"$(printf '%s\tserver\tread\t8\town\t8\t0\t0\t0\t0\n' 1 16 |
		awk -v results=/dev/null -v columns="reactors part rw batch form = ios" \
			-f "$root/bench/lib.awk" -f "$root/bench/scale.awk" |
		grep -c ': met$')" 0

[ -z "$LONG" ] || bench hit 45 24 "runs.tsv:12:45 results.tsv:12:46" "iops.png bandwidth.png"
[ -z "$LONG" ] || bench limits 39 12 "runs.tsv:11:39 results.tsv:8:40" limits.png
# Of the rivals, those that are here.
bench_rivals()
{
	local rivals=(cached filed) runs=6 rival
	for rival in redis-server:redis memcached:memcached bench-rival-rocksdb:rocksdb \
		bench-rival-leveldb:leveldb; do
		PATH=$PATH:/usr/sbin command -v "${rival%:*}" >/dev/null || continue
		rivals+=("${rival#*:}")
		runs=$((runs + 4))
	done
	# a bar for each of the points in memory, where there is one to compare with
	BENCH_RIVALS="${rivals[*]}" bench rivals $runs $((runs > 6 ? 4 : 0)) \
		"runs.tsv:8:$runs results.tsv:7:$((runs + 1))" rivals.png
}
[ -z "$LONG" ] || bench_rivals
[ -z "$LONG" ] || bench pagecache 88 8 "runs.tsv:11:88 results.tsv:11:89" pagecache.png
[ -z "$LONG" ] || bench literature 52 6 "runs.tsv:11:52 results.tsv:14:53" literature.png
# A cluster's takes as long as a third of the others.
if [ -n "$LONG" ] && command -v ceph-mon >/dev/null && command -v ceph-osd >/dev/null &&
		[ -x "$BUILD/bin/sosd" ]; then
	bench headline 48 11 "runs.tsv:9:42 results.tsv:12:43 sustained.tsv:11:6 slices.tsv:6:120
		series.tsv:6:121" "headline.png series.png"
elif [ -n "$LONG" ]; then
	skip "bench/headline.sh --quick runs to its end" "there is no Ceph (make deps)"
fi

# ends_badly REGEX SENTENCE: a benchmark whose first run made the file that standard input is, and the
# second one a good file, ends with such a line; its report fails
ends_badly()
{
	{
		echo ". '$root/bench/lib.sh'"
		echo "bench_begin xseg; cp '$TMP/run' \"\$raw/cached-run.1.json\""
		echo "echo '{ \"error\": 0 }' >\"\$raw/cached-run.2.json\""
		echo "report() { echo 'half of it'; false; }; collect() { raw_rows '[.error]' | sort; }"
		echo "bench_report; bench_end"
	} >broken.sh
	cat >run
	expect_err 1 "$1" "$2" env -u XSEG_SEGMENT BENCH_SEGMENT="$XSEG_SEGMENT" \
		BENCH_OUT="$TMP/broken" \
		bash broken.sh
}

ends_badly "run.1.json is empty" "a run that said nothing is named" </dev/null
ends_badly "run.1.json is damaged" "so is a run that is no JSON" <<<'{ "error": 0'
ends_badly "run.1.json lacks something: Cannot index number with" \
	"so is a run without a field, though a good file follows" <<<'5'
ends_badly "the report could not be made" "a report that could not be made is no success" \
	<<<'{ "error": 0 }'

# An xbench to which three sectors of each verified run are wrong.
mkdir -p wrong/bin wrong/tests
ln -s "$BUILD"/bin/* wrong/bin
ln -s "$BUILD/tests/relay" wrong/tests
rm wrong/bin/xbench
cat >wrong/bin/xbench <<-END
	#!/bin/bash
	"$BUILD/bin/xbench" "\$@" || exit
	[[ " \$*" == *" --verify=crc32c"* && " \$*" =~ \ --output=([^\ ]*) ]] || exit 0
	file=\${BASH_REMATCH[1]}
	jq '.jobs[0].verify_errors = 3' "\$file" >"\$file.new" && mv "\$file.new" "\$file"
	exit 1
END
chmod +x wrong/bin/xbench
for name in ${LONG:+hit} plugs; do
	t "bench/$name.sh runs to its end where sectors are wrong" env -u XSEG_SEGMENT \
		BUILD="$TMP/wrong" BENCH_SEGMENT="$XSEG_SEGMENT" BENCH_OUT="$TMP/wrong/out" \
		"$root/bench/$name.sh" --quick
	is "which its report says" "$(nr_wrong "wrong/out/$name/report.txt")" \
		"$([ $name = plugs ] && echo 3 || echo 1)"
done

mkdir -p no-ceph/bin
ln -s "$BUILD"/bin/{xseg,xseg-host,xbench} no-ceph/bin
BUILD=$TMP/no-ceph BENCH_OUT=$TMP/left "$root/bench/headline.sh" --quick >left_out
t "without sosd it is left out, by name" \
	grep \
	-qx 'left out: headline, which needs .*sosd, which is built where librados is (make deps)' \
	left_out
mkdir -p published/bench published/build/bench/{hit/raw,headline/raw}
cp "$root/bench/publish.sh" published/bench
echo '{ "jobs": [] }' >published/build/bench/hit/raw/cached-run.1.json
cp left_out published/build/bench/headline/report.txt
echo "0 of 0 bars are met." >published/build/bench/ratios.txt
{ echo "==== hit ===="; echo "==== headline ===="; cat left_out; } >published/build/bench/report.txt
cp published/build/bench/report.txt published/build/bench/hit
t "what was left out does not keep the rest from being published" \
	env BUILD=build published/bench/publish.sh here
is "of which the runs are there" "$(tar -tf published/docs/bench/here/raw.tar.xz | grep json)" \
	./hit/raw/cached-run.1.json
if [ -n "$LONG" ] && command -v valgrind >/dev/null && [ -e /usr/include/valgrind/callgrind.h ]; then
	bench scale 2 6 "runs.tsv:10:24 results.tsv:8:25" scale.png
elif [ -n "$LONG" ]; then
	skip "bench/scale.sh --quick runs to its end" "valgrind is not there"
fi
bench reactors 12 8 "runs.tsv:6:12 results.tsv:6:13" reactors.png
[ -z "$LONG" ] || bench sustained 12 14 "runs.tsv:11:12 slices.tsv:6:240 results.tsv:6:241" "memd.png filed.png"
[ -z "$LONG" ] || bench ratio 3 3 "runs.tsv:9:3 results.tsv:6:4" ratio.png
[ -z "$LONG" ] || bench overhead 40 8 "runs.tsv:7:16 results.tsv:14:13" overhead.png
bench switches 2 6 runs.tsv:9:2 switches.png
bench plugs 3 8 runs.tsv:10:3 ""
if command -v fio >/dev/null && [ -e "$BUILD/lib/fio-xseg.so" ]; then
	bench fio 6 2 runs.tsv:5:6 ""
else
	skip "bench/fio.sh --quick runs to its end" \
		"there is no fio, or its headers could not be had (make deps)"
fi
if [ -n "$LONG" ] && command -v nbdkit >/dev/null && command -v nbdinfo >/dev/null &&
		[ -e "$plugin" ] && fio --enghelp=nbd 2>/dev/null | grep -q '^uri'; then
	bench nbd 10 3 runs.tsv:7:10 ""
elif [ -n "$LONG" ]; then
	skip "bench/nbd.sh --quick runs to its end" \
		"nbdkit, its header, nbdinfo or fio's engine for NBD is not there"
fi
. "$root/tests/lib/guest.sh"
if [ -n "$LONG" ] && [ -z "$(guest_missing)" ] && command -v nbdkit >/dev/null &&
		[ -e "$plugin" ] && guest_fetch; then
	bench guest 10 8 runs.tsv:6:10 ""
elif [ -n "$LONG" ]; then
	skip "bench/guest.sh --quick runs to its end" "$(guest_missing) $guest_why"
fi
bench index 15 10 "runs.tsv:6:15 results.tsv:6:16" index.png
finish
