/* grave - emptied zones are deleted, one after the other, in the order in which they were emptied.
 *
 * Contract: see inside.h.
 *
 * Invariants
 *   L5  A zone of which a flush promised something is deleted when `stable` has passed the end that
 *       the log had when the zone was emptied, and a flush of this opening has succeeded. All
 *       copies and superseders are before that end, or were found by this opening.
 *   L6  A zone of which no flush was ever sent is deleted when that end is written.
 *   L7  The order of deletions is the order in which gone() was told. A promised zone whose
 *       compaction dropped a tombstone is deleted only when all earlier deletions are stable.
 *   E1  A DELETE goes out only when no write of the zone is out, and none will follow.
 */
#include <assert.h>
#include <errno.h>

#include "peers/alog/inside.h"

void grave_add(struct alog *l, struct zone *z)
{
	struct graves *g = &l->g;

	assert(z->state == ZONE_CLOSED && g->nr < l->z.nr);
	z->state = ZONE_EMPTY;
	z->after = l->s.end;
	g->list[(g->from + g->nr++) % l->z.nr] = (uint32_t)(z - l->z.table);
}

/* L5, L6, L7 */
static bool may_go(struct alog *l, const struct zone *z)
{
	if (!zone_promised(l, z))
		return l->s.written >= z->after;
	return l->s.stable >= z->after && l->s.flushed &&
	       (!z->drops || l->g.stable == l->g.deleted);
}

/* A zone in doubt may come back after a loss of power, and what its hints say is not there. So it
 * is dying in the head, for good, before other zones behind it may be called flushed. */
static bool is_dying(struct alog *l, struct zone *z)
{
	if (!z->mark) {
		bit_set(l->z.dying, l, z->id, true);
		z->mark = head_want(l);
	}
	return l->head.in.mark >= z->mark;
}

/* L9: the zones in doubt are dying from the next head on, and those before them in the list, since
 * L7 needs the order. Their copies and superseders are before `stable`. The mark of that head. */
uint64_t grave_name(struct alog *l, uint64_t stable)
{
	struct graves *g = &l->g;
	uint64_t mark = head_want(l);
	uint32_t nr = 0;

	for (uint32_t i = 0; i < g->nr; i++)
		if (l->z.table[g->list[(g->from + i) % l->z.nr]].doomed)
			nr = i + 1;
	for (uint32_t i = 0; i < nr; i++) {
		struct zone *z = &l->z.table[g->list[(g->from + i) % l->z.nr]];

		assert(z->after <= stable);
		bit_set(l->z.dying, l, z->id, true);
		z->mark = mark;
	}
	return mark;
}

/* While there is space no flush is sent for deletions alone, if the user does not ask for it. */
static void ask_for_flush(struct alog *l, const struct zone *z)
{
	if (zones_free(l) > l->cfg.reserve + 1 + l->own.wanted && !l->repair.fua &&
		!grave_hastens(l))
		return;
	if (!zone_promised(l, z))
		alog_push(l, z->after);
	else if (l->s.stable < z->after)
		alog_force(l, z->after);
	else if (!l->s.flushed)
		l->g.want_flush = true;
	else
		l->head.wanted |= !l->head.out;	/* a FLUSH may fail until the next zones are gone */
}

bool grave_pump(struct alog *l)
{
	struct graves *g = &l->g;
	struct zone *z;
	struct io *io;

	if (grave_hastens(l) && g->deleted >= g->hasten)	/* H3: a head makes them stable */
		l->head.wanted |= !l->head.out;
	if (!g->nr || l->io_out[IO_DELETE] || l->now < g->retry_ns ||
		l->repair.state != REPAIR_NONE)
		return false;
	z = &l->z.table[g->list[g->from]];
	if (walk_holds(l, z))
		return false;
	if (!may_go(l, z)) {
		ask_for_flush(l, z);
		return false;
	}
	if (z->doomed && !is_dying(l, z))
		return false;
	if (!(io = io_get(l, IO_DELETE)))
		return false;
	bit_set(l->z.dying, l, z->id, true);	/* H3 */
	z->state = ZONE_DELETING;
	io->pub.op = XSEG_OP_DELETE;
	io_target(l, io, z->id);
	io_send(l, io);
	return true;
}

void grave_done(struct alog *l, struct io *io, int64_t result)
{
	struct graves *g = &l->g;
	struct zone *z;

	io_put(l, io);
	z = &l->z.table[g->list[g->from]];
	if (result < 0 && result != -ENOENT) {
		z->state = ZONE_EMPTY;
		g->retry_ns = l->now + ALOG_RETRY_NS;
		return;
	}
	g->from = (g->from + 1) % l->z.nr;
	g->nr--;
	grave_count(l, z->id);
	zone_remove(l, z);
	if (z->doomed)
		doubt_forget(l);
}
