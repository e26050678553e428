#!/bin/bash
# runner.sh - tests/run.sh itself: what it refuses to run, and why; one run at a time in one BUILD.
#
# The runs here have a BUILD of their own, with one program in it: a unit test that waits.
. "$(dirname "$0")/../lib/system.sh"

mkdir -p b/tests/log
cat >b/tests/xq_test <<END
#!/bin/bash
touch "$TMP/began"
until [ -e "$TMP/go" ] || ! [ -d "$TMP" ]; do sleep 0.05; done
echo "[ RUN      ] it_waited"
echo "[       OK ] it_waited"
END
chmod +x b/tests/xq_test
run=(env LONG= SAN= STATIC= BUILD="$TMP/b" "$root/tests/run.sh")

# refused SENTENCE REGEX WORD...: run.sh with these words says this, and runs nothing
refused()
{
	local sentence=$1 regex=$2
	shift 2
	"$@" >out 2>&1 </dev/null
	if [ $? = 2 ] && grep -qE -- "$regex" out && ! [ -e began ]; then
		ok "$sentence"
	else
		not_ok "$sentence" out
	fi
}

# ---- a pattern without a test ----

refused "a pattern that matches no test is an error" "no test that can run matches 'unit/none'" \
	"${run[@]}" unit/none
refused "a test of another target is named, with the target" "tidy/static: only .*'make tidy'" \
	"${run[@]}" '^tidy/static'
refused "a long one as well" "system/guest: only .*'make check-long'" "${run[@]}" 'system/guest$'
refused "a test without a sanitizer's tag as well" "system/runner: .* under sanitizers" \
	"${run[@]/#SAN=/SAN=asan}" 'system/runner$'
refused "tests that are not built are said to be missing" "no unit, sim and fuzz tests yet" \
	"${run[@]}" '^sim/'
refused "a pattern is an expression" "'unit/\(' is no extended regular expression" \
	"${run[@]}" 'unit/('
mkdir -p fuzz/tests
expect_err 2 "no fuzz program matches 'none'" "fuzzing nothing is an error, too" \
	env BUILD="$TMP/fuzz" "$root/tests/fuzz/run.sh" none

# ---- two at once ----

start first "${run[@]}" '^unit/xq_test$'
t "a run begins" wait_for 60 test -e began
first=$(cat b/tests/lock)
is "it says its process" "$(readlink "/proc/$first/cwd")" "$root"
rm began
refused "a second one in the same BUILD is refused, and told the first one's process" \
	"process $first runs tests in .* already; wait .*another BUILD" "${run[@]}" unit/xq_test
refused "one whose pattern is wrong hears of that" "no test that can run matches" \
	"${run[@]}" unit/none
touch go
wait "$started"
is "the first one ends well" "$?" 0
is "and has all its results" "$(tail -n 1 first.log)" "1 passed, 0 failed"

# ---- one that is killed ----

rm -f go began
start killed "${run[@]}" '^unit/xq_test$'
t "a run begins again" wait_for 60 test -e began
kill -KILL "$(cat b/tests/lock)"
wait "$started" 2>/dev/null
rm began
start next "${run[@]}" '^unit/xq_test$'
t "a killed run's test, which still runs, does not keep the next run out" \
	wait_for 60 test -e began
touch go
wait "$started"
is "and that one ends well" "$?" 0
finish
