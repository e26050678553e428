/* deleted - which zones the head calls live, dying and poor; deletions that are answered, and
 * stable.
 *
 * Contract: see inside.h.
 *
 * Invariants
 *   D1  Deletions are counted in the order in which they were answered. A zone's bits are cleared
 *       when a FLUSH has made its deletion stable. If none comes for long the oldest are forgotten,
 *       and the next opening deletes these zones again.
 */
#include "peers/alog/inside.h"

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
