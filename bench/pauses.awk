# pauses.awk - pauses of the runs of switches.sh and plugs.sh: awk -f lib.awk -f pauses.awk -f
# NAME.awk

{
	pause = at["read_max_ns", key, in_round]
	if (at["write_max_ns", key, in_round] > pause)
		pause = at["write_max_ns", key, in_round]
	allowed = 2 * at["store_max_ns", key, in_round]
	if (allowed < 20e6)
		allowed = 20e6
	all["pause", key] = all["pause", key] " " pause
	all["over", key] = all["over", key] " " pause / allowed
	errors[key] += at["verify_errors", key, in_round] + at["errors", key, in_round]
}

# Bars; `what` names the load.
function no_errors(what, k)
{
	wanted(what "no errors", errors[k], errors[k] == 0)
}

function no_pause(what, k)
{
	mid("over", k)
	wanted(what "no pause over twice the slowest request of the store, or 20 ms, in any round",
		sprintf("%.2f of that", high), high <= 1)
}
