# only.sh - a folder of results belongs to one run at a time; sourced by lib.sh and run.sh.

# only_one FOLDER SCRIPT: fails, and says why, where such a script still runs that has its results there;
# else this one has them there now. Another PID of the same number is another script's.
only_one()
{
	local pid
	pid=$(cat "$1/pid" 2>/dev/null)
	if [ -n "$pid" ] && [ "$pid" != $$ ] &&
			grep -qzE "(^|/)${2##*/}\$" "/proc/$pid/cmdline" 2>/dev/null; then
		echo "bench: ${2##*/} runs already, as process $pid, and its results go to $1;" \
			"wait until it ends, or give another BENCH_OUT" >&2
		return 1
	fi
	! [ -d "$1" ] || echo $$ >"$1/pid"
}
