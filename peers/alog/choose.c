/* choose - which zone is compacted, when, and how fast.
 *
 * Contract: see inside.h.
 *
 * A zone without a live record is emptied at once. Otherwise a zone is chosen if free zones are
 * fewer than the reserve and a margin: the one with the fewest live bytes, and of equal ones the
 * oldest. The log-structured file system of Rosenblum and Ousterhout (1991) weighs space with age.
 * Here copies and puts share a zone, so zones do not become hot and cold, and age does not help
 * (docs/design/alog.md has the figures).
 *
 * Copies are paid for by appends: each appended byte gives credit, and more of it the fewer zones
 * are free. At the reserve copies need no credit. A log that evicts takes the zone that
 * was closed first.
 *
 * A pass takes each zone once, in the order of their ids. The open zone is sealed first, so no copy
 * goes into a zone of the pass. When space is short, zones that gain space go first.
 */
#include "peers/alog/inside.h"

/* All of it is written: its pages may leave the tail. */
static bool may_be_chosen(const struct alog *l, const struct zone *z)
{
	return z->state == ZONE_CLOSED && !z->doomed &&
	       (z->old ? l->s.recovered <= l->s.written : z->to <= l->s.written);
}

/* Beyond the span that the head's bits are for: the zone with the lowest id. */
static bool span_is_long(const struct alog *l)
{
	return l->head.next_id - l->head.lowest > 4ull * l->cfg.zones;
}

static bool is_better(const struct alog *l, const struct zone *z, const struct zone *than)
{
	if (!than)
		return true;
	if (span_is_long(l))
		return z->id < than->id;
	if (l->cfg.evicts)
		return z->sequence < than->sequence;
	return z->live == than->live ? z->sequence < than->sequence : z->live < than->live;
}

static struct zone *best(struct alog *l)
{
	struct zone *found = NULL;

	for (uint32_t i = 0; i < l->z.nr; i++) {
		struct zone *z = &l->z.table[i];

		if (may_be_chosen(l, z) && (space_gains(l, z) || span_is_long(l)) &&
			is_better(l, z, found))
			found = z;
	}
	return found;
}

static struct zone *without_life(struct alog *l)
{
	if (!l->z.some_dead)
		return NULL;
	for (uint32_t i = 0; i < l->z.nr; i++)
		if ((l->z.table[i].live == 0 || l->z.table[i].sick) &&
			may_be_chosen(l, &l->z.table[i]))
			return &l->z.table[i];
	l->z.some_dead = l->s.written < l->s.end;
	return NULL;
}

/* ---- a pass ---- */

static bool is_short(const struct alog *l)
{
	return space_soon(l) < l->cfg.reserve + space_margin(l) + l->own.wanted;
}

bool alog_pass_begin(struct alog *l)
{
	const struct zone *open = l->z.open;

	if (!serves(l) || l->cfg.evicts || l->repair.state != REPAIR_NONE || is_short(l) ||
		(l->w.state.active && l->w.walk.hold))
		return false;
	l->pass = open && !open->nr_hints ? open->id - 1 : l->head.next_id - 1;
	return l->pass > 0;
}

bool alog_pass_goes_on(struct alog *l)
{
	if (l->pass)				/* C6 */
		l->credit = l->cfg.zone_bytes;
	return l->pass > 0;
}

/* NULL: it has to wait, or the pass is over. A walk that wants the scratch gets it first. */
static struct zone *next_of_pass(struct alog *l)
{
	struct zone *z = NULL;

	if (l->w.state.active && !l->w.state.waits)
		return NULL;
	if (l->z.open && l->z.open->id <= l->pass && !alog_seal(l))
		return NULL;
	for (uint32_t i = 0; i < l->z.nr; i++) {
		struct zone *other = &l->z.table[i];

		if (other->state == ZONE_CLOSED && other->id <= l->pass && !other->doomed &&
			(!z || other->id < z->id))
			z = other;
	}
	if (!z)
		l->pass = 0;
	else if (!may_be_chosen(l, z))
		alog_push(l, l->s.end);
	return z && may_be_chosen(l, z) ? z : NULL;
}

/* ---- all of it ---- */

bool choose_pump(struct alog *l)
{
	struct zone *z;

	if (l->job != JOB_NONE || l->repair.state != REPAIR_NONE || !serves(l))
		return false;
	if (zones_free(l) >= l->cfg.reserve + l->own.wanted)
		l->own.wanted = 0;
	z = without_life(l);
	if (!z && (l->evict || span_is_long(l) || is_short(l))) {
		z = best(l);
		if (l->evict)
			l->credit = l->cfg.zone_bytes;
		l->evict = false;
		if (!z)
			l->pass = 0;
	} else if (!z && l->pass) {
		z = next_of_pass(l);
	}
	return z && copy_begin(l, z, COPY_COMPACT);
}

/* ---- an eviction ---- */

/* No zone can be emptied now. True: one is closed and not written yet, or all that there is stands
 * in the open zone, which is closed then. */
static bool may_soon(struct alog *l)
{
	bool some = false;

	for (uint32_t i = 0; i < l->z.nr; i++)
		some |= l->z.table[i].state == ZONE_CLOSED && !l->z.table[i].doomed;
	if (!some) {
		if (!l->z.open || !l->z.open->nr_hints)
			return false;
		(void)!alog_seal(l);		/* or the next poll does it */
	}
	alog_push(l, l->s.end);
	return true;
}

bool alog_evict(struct alog *l)
{
	l->evict = l->cfg.evicts && best(l);
	if (l->job == JOB_COPY) {		/* C6 */
		l->credit = l->cfg.zone_bytes;
		return true;
	}
	return l->evict || (l->cfg.evicts && serves(l) && may_soon(l));
}
