/* doubt - ranges of ids that the arena keeps for a successor: of zones in doubt, and of zones that
 * got fillers in place of records that their hints name.
 *
 * Contract: see inside.h. A range that is too wide costs copies, or scans, and nothing else.
 */
#include "peers/alog/inside.h"

uint64_t doubt_low(const struct alog *l)
{
	return atomic_load_explicit(&l->arena->doubt_low, memory_order_relaxed);
}

uint64_t doubt_high(const struct alog *l)
{
	return atomic_load_explicit(&l->arena->doubt_high, memory_order_relaxed);
}

/* The arena says that the zone is in doubt. */
bool doubt_has(const struct alog *l, uint64_t id)
{
	return doubt_low(l) && id >= doubt_low(l) && id <= doubt_high(l);
}

/* The high end first: a kill between the two leaves a range that is the old one, or wider. */
void doubt_note(struct alog *l, uint64_t low, uint64_t high)
{
	uint64_t was_low = doubt_low(l), was_high = was_low ? doubt_high(l) : 0;

	if (was_low && was_low < low)
		low = was_low;
	if (was_high > high)
		high = was_high;
	atomic_store_explicit(&l->arena->doubt_high, high, memory_order_release);
	atomic_store_explicit(&l->arena->doubt_low, low, memory_order_release);
}

/* A zone in doubt is deleted: was it the last? */
void doubt_forget(struct alog *l)
{
	for (uint32_t i = 0; i < l->z.nr; i++)
		if (l->z.table[i].state != ZONE_FREE && l->z.table[i].doomed)
			return;
	atomic_store_explicit(&l->arena->doubt_low, 0, memory_order_release);
}

/* A predecessor's words are input: a range beyond the ids of the head is cut. Then it is known which
 * zones are meant, or none. False: none is in doubt. */
bool doubt_take_over(struct alog *l)
{
	uint64_t low = doubt_low(l), high = doubt_high(l);

	if (!low)
		return false;
	if (low < l->head.lowest)
		low = l->head.lowest;
	if (high >= l->head.next_id)
		high = l->head.next_id - 1;
	atomic_store_explicit(&l->arena->doubt_high, high, memory_order_release);
	atomic_store_explicit(&l->arena->doubt_low, low <= high ? low : 0, memory_order_release);
	return low <= high;
}

/* T5: their hints do not count until a head says so (`poor`). */
bool filled_has(const struct alog *l, uint64_t id)
{
	uint64_t low = atomic_load_explicit(&l->arena->filled_low, memory_order_relaxed);

	return low && id >= low &&
	       id <= atomic_load_explicit(&l->arena->filled_high, memory_order_relaxed);
}

void filled_note(struct alog *l, uint64_t id)
{
	uint64_t low = atomic_load_explicit(&l->arena->filled_low, memory_order_relaxed);

	if (!low || id > atomic_load_explicit(&l->arena->filled_high, memory_order_relaxed))
		atomic_store_explicit(&l->arena->filled_high, id, memory_order_release);
	if (!low || id < low)
		atomic_store_explicit(&l->arena->filled_low, id, memory_order_release);
}
