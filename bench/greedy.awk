# greedy.awk - how much a greedy log copies: uniform puts of records of one size.
#
# Variables: zones, free (of them, that are kept free), records (of a zone), keys. Each key is put
# once, then at random. If no more than `free` zones are free, the live records of the zone with the
# fewest are copied. Prints the records appended for each one put, of the second half.
function append(key,	old)
{
	if (key in at)
		live[at[key]]--
	if (fill == records)
		next_zone()
	at[key] = open
	place[key] = fill
	live[open]++
	has[open, fill++] = key
	appended++
}

function next_zone(	z)
{
	for (z = 0; z < zones && used[z]; z++)
		;
	open = z
	used[z] = 1
	nr_used++
	live[z] = fill = 0
}

function compact(	z, best, i, key)
{
	best = -1
	for (z = 0; z < zones; z++)
		if (used[z] && z != open && (best < 0 || live[z] < live[best]))
			best = z
	for (i = 0; i < records; i++) {
		key = has[best, i]
		if (at[key] == best && place[key] == i)
			move[nr_moves++] = key
	}
	for (i = 0; i < nr_moves; i++)
		append(move[i])
	nr_moves = 0
	used[best] = 0
	nr_used--
}

function put(key)
{
	append(key)
	while (zones - nr_used < free)
		compact()
}

BEGIN {
	srand(1)
	next_zone()
	for (k = 0; k < keys; k++)
		put(k)
	for (i = 0; i < keys * 4; i++)
		put(int(rand() * keys))
	before = appended
	for (i = 0; i < keys * 4; i++)
		put(int(rand() * keys))
	printf "%.4f\n", (appended - before) / (keys * 4)
}
