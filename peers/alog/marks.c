/* marks - what head and arena keep of zones: which are live, dying and poor; which are in doubt, or
 * got fillers; and which deletions are answered, and stable.
 *
 * Contract: see inside.h. A range of ids in the arena that is too wide costs copies or scans, and
 * nothing else.
 *
 * Invariants
 *   D1  Deletions are counted in the order in which they were answered. A zone's bits are cleared
 *       when a FLUSH has made its deletion stable. If none comes for long the oldest are forgotten,
 *       and the next opening deletes these zones again.
 */
#include "peers/alog/inside.h"

/* ---- bits of the head ---- */

bool bit_get(const uint64_t *bits, const struct alog *l, uint64_t id)
{
	uint64_t i = id % l->z.span;

	return bits[i / 64] >> i % 64 & 1;
}

void bit_set(uint64_t *bits, const struct alog *l, uint64_t id, bool on)
{
	uint64_t i = id % l->z.span;

	if (on)
		bits[i / 64] |= 1ull << i % 64;
	else
		bits[i / 64] &= ~(1ull << i % 64);
}

void bits_clear(struct alog *l, uint64_t id)
{
	bit_set(l->z.live, l, id, false);
	bit_set(l->z.dying, l, id, false);
	bit_set(l->z.poor, l, id, false);
}

void grave_count(struct alog *l, uint64_t id)
{
	struct graves *g = &l->g;

	g->id[g->deleted++ % ALOG_DELETED_MAX] = id;
	if (g->deleted - g->cleared > ALOG_DELETED_MAX)
		g->cleared = g->deleted - ALOG_DELETED_MAX;	/* the next opening deletes again */
	l->stats.zones_deleted++;
}

/* The first `deleted` deletions hold: a FLUSH says so, or a head, in which their zones are
 * dying. */
void grave_stable(struct alog *l, uint64_t deleted, bool flushed)
{
	struct graves *g = &l->g;

	if (g->stable < deleted)
		g->stable = deleted;
	for (; flushed && g->cleared < deleted; g->cleared++)
		bits_clear(l, g->id[g->cleared % ALOG_DELETED_MAX]);
}

uint64_t alog_gone_next(const struct alog *l)
{
	return l->g.deleted + l->g.nr + 1;
}

uint64_t alog_gone_stable(const struct alog *l)
{
	return l->g.stable;
}

void alog_gone_hasten(struct alog *l)
{
	l->g.hasten = l->g.deleted + l->g.nr;
}

bool grave_hastens(const struct alog *l)
{
	return l->g.hasten > l->g.stable;
}

/* ---- own zones ---- */

uint32_t own_slots(const struct alog_config *cfg)
{
	return cfg->own ? 3 * cfg->own + 8 : 0;	/* with gaps, and those that were freed since */
}

bool own_leaves(const struct alog *l)
{
	if (!l->own.leaving)
		return false;
	for (uint32_t i = 0; i < l->own.top; i++)
		if (l->own.run[i].state == OWN_FREED || l->own.run[i].state == OWN_DELETING)
			return true;
	return false;
}

/* The first `deleted` of them are stable. */
void own_stable(struct alog *l, uint64_t deleted)
{
	if (deleted <= l->own.stable)
		return;
	l->own.stable = deleted;
	for (uint32_t i = 0; i < l->own.top; i++)
		if (l->own.run[i].state == OWN_DELETED && l->own.run[i].after <= deleted) {
			l->own.run[i].state = OWN_NONE;
			l->own.taken--;
			l->own.hint = i < l->own.hint ? i : l->own.hint;
		}
	while (l->own.top && l->own.run[l->own.top - 1].state == OWN_NONE)
		l->own.top--;
	l->own.hint = l->own.hint < l->own.top ? l->own.hint : l->own.top;
}

/* ---- ranges of the arena ---- */

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

/* A predecessor's words are input: a range beyond the ids of the head is cut. False: none is in
 * doubt. */
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
