/* zone - the table of zones, and how much space is free; beginning, closing and sealing the open
 * one.
 *
 * Contract: see inside.h. The states of a zone:
 *
 *   from     to        when                                              by
 *   FREE     OPEN      an append finds no open zone                      zone_begin
 *   FREE     CLOSED    the opening finds it in the store                 open.c
 *   OPEN     SEALING   the next record does not fit                      append_ready
 *   OPEN     SEALING   the user stops                                    alog_seal
 *   OPEN     CLOSED    it failed, or the tail is short: without hints    zone_close
 *   SEALING  CLOSED    hints and footer are appended; or it failed       zone_seal, zone_close
 *   CLOSED   EMPTY     all live records of it are copied                 grave_add
 *   EMPTY    DELETING  L5 or L6 holds, and its DELETE goes out           grave_pump
 *   DELETING EMPTY     the DELETE failed                                 grave_done
 *   DELETING FREE      the DELETE is answered                            grave_done
 *
 * Invariants
 *   L3  Appends go to the open zone alone, whose id this opening took from its reservation. A zone
 *       of an earlier opening (`old`) is never open.
 *   Z1  An id is taken only below `reserved`, which is in the head on stable storage. Ids rise.
 *   Z2  of_id[] finds each zone of the table; ids differ by less than the span.
 *   Z3  A zone is called flushed only if all zones below it were, too, or are stably deleted.
 */
#include <assert.h>
#include <string.h>

#include "peers/alog/inside.h"
#include "xtypes/xcrc.h"

#define LEAST_GAIN 32u				/* a zone with less than this part dead is left */

struct zone *zone_find(struct alog *l, uint64_t id)
{
	uint32_t at = l->z.of_id[id % l->z.span];

	return at && l->z.table[at - 1].id == id ? &l->z.table[at - 1] : NULL;
}

struct zone *zone_add(struct alog *l, uint64_t id)
{
	assert(l->z.of_id[id % l->z.span] == 0);
	for (uint32_t i = 0; i < l->z.nr; i++) {
		struct zone *z = &l->z.table[i];

		if (z->state != ZONE_FREE)
			continue;
		*z = (struct zone){ .id = id, .state = ZONE_CLOSED };
		l->z.of_id[id % l->z.span] = i + 1;
		l->z.used++;
		return z;
	}
	return NULL;
}

void zone_remove(struct alog *l, struct zone *z)
{
	zone_dead(l, z, z->live);
	l->z.of_id[z->id % l->z.span] = 0;
	z->state = ZONE_FREE;
	l->z.used--;
}

uint32_t zones_free(const struct alog *l)
{
	uint32_t used = l->z.used + l->own.used;

	return l->cfg.zones > used ? l->cfg.zones - used : 0;
}

/* L6: whether a flush has promised, or may promise, any of it. */
bool zone_promised(const struct alog *l, const struct zone *z)
{
	return z->old || z->from < l->s.flush_sent || z->from < l->s.stable;
}

bool zone_is_durable(const struct alog *l, const struct zone *z)
{
	if (z->doomed)
		return false;
	if (z->old)
		return l->s.flushed || z->id <= l->opening.durable;
	return z->state != ZONE_OPEN && z->state != ZONE_SEALING && z->to <= l->s.stable;
}

/* A zone that was deleted may come back after a loss of power, before its deletion is stable: then
 * nothing is known of it (Z3). */
static uint64_t not_yet_gone(const struct alog *l)
{
	uint64_t low = UINT64_MAX;

	if (l->g.deleted - l->g.stable > ALOG_DELETED_MAX)
		return 1;
	for (uint64_t i = l->g.stable; i < l->g.deleted; i++)
		if (l->g.id[i % ALOG_DELETED_MAX] < low)
			low = l->g.id[i % ALOG_DELETED_MAX];
	return low;
}

uint64_t zone_durable(const struct alog *l)
{
	uint64_t durable = l->head.next_id - 1, gone = not_yet_gone(l);

	if (durable >= gone)
		durable = gone - 1;

	for (uint32_t i = 0; i < l->z.nr; i++) {
		const struct zone *z = &l->z.table[i];

		if (z->state != ZONE_FREE && z->id <= durable && !zone_is_durable(l, z))
			durable = z->id - 1;
	}
	return durable;
}

/* The caller has looked for an id, a free entry and room in the tail. */
void zone_begin(struct alog *l)
{
	struct alog_zone_info info = { .epoch = l->head.epoch, .durable = zone_durable(l),
		.previous = l->head.next_id - 1 };
	uint8_t header[ALOG_ZONE_HEAD_END];
	struct zone *z;
	uint64_t pos = l->s.next_page * ALOG_PAGE;

	memcpy(info.uuid, l->cfg.uuid, sizeof(info.uuid));
	assert(!l->z.open && l->head.next_id < l->head.in.id);
	z = zone_add(l, l->head.next_id++);
	assert(z);
	z->epoch = l->head.epoch;
	z->base = l->s.next_page;
	z->from = pos;
	z->to = UINT64_MAX;
	z->end = ALOG_ZONE_HEAD_END;
	z->state = ZONE_OPEN;
	l->z.open = z;
	l->z.seed = xrecord_seed(l->cfg.uuid, z->id, z->epoch);
	l->z.sealing = 0;
	alog_zone_encode(l->cfg.uuid, z->id, &info, header);
	tail_put(l, &pos, 0, header, sizeof(header), pos);
	tail_publish(l, pos);
}

static void closed(struct alog *l, bool sealed)
{
	struct zone *z = l->z.open;

	tail_zero_rest(l, l->s.next_page - 1);
	z->state = ZONE_CLOSED;
	z->sealed = z->believed = sealed;
	z->to = l->s.end;
	z->sequence = l->s.sequence;
	l->z.some_dead |= z->live == 0;
	l->z.open = NULL;
}

void zone_close(struct alog *l)
{
	if (l->z.open)
		closed(l, false);
}

uint32_t zone_room(const struct alog *l, uint32_t nr)
{
	uint32_t hints = (l->z.open->nr_hints + nr) * ALOG_HINT_BYTES + ALOG_FOOTER_BYTES;

	return l->cfg.zone_bytes - hints < l->z.open->end
		       ? 0
		       : l->cfg.zone_bytes - hints - l->z.open->end;
}

/* The footer stands behind the hints in memory, as it does in the zone. */
static void make_footer(struct alog *l, const struct zone *z)
{
	struct alog_footer f = { .epoch = z->epoch, .nr = z->nr_hints, .end = z->end };

	f.hints_crc = xcrc32c(0, l->z.hints, z->nr_hints * ALOG_HINT_BYTES);
	alog_footer_encode(l->cfg.uuid, z->id, l->cfg.zone_bytes, &f);
	memcpy(&l->z.hints[z->nr_hints], &f, sizeof(f));
}

/* A page at a time, as far as the tail has room. */
bool zone_seal(struct alog *l)
{
	struct zone *z = l->z.open;
	uint32_t start = alog_hints_at(l->cfg.zone_bytes, z->nr_hints), at, part;
	uint64_t pos = l->s.end;

	if (z->state == ZONE_OPEN) {
		z->state = ZONE_SEALING;
		tail_zero_rest(l, l->s.next_page - 1);
		make_footer(l, z);
	}
	if (l->z.sealing == 0)			/* the gap is left out */
		pos = start / ALOG_PAGE == (z->end - 1) / ALOG_PAGE
			      ? (l->s.next_page - 1) * ALOG_PAGE + start % ALOG_PAGE
			      : l->s.next_page * ALOG_PAGE + start % ALOG_PAGE;
	while ((at = start + l->z.sealing) < l->cfg.zone_bytes) {
		if (pos / ALOG_PAGE == l->s.next_page && !tail_room(l, 1, TAIL_CALLER))
			return false;
		part = ALOG_PAGE - at % ALOG_PAGE;
		tail_put(l, &pos, at, (uint8_t *)l->z.hints + l->z.sealing, part, pos);
		l->z.sealing += part;
		tail_publish(l, pos);
	}
	closed(l, true);
	return true;
}

bool alog_seal(struct alog *l)
{
	const struct zone *z = l->z.open;

	return !z || (z->state == ZONE_OPEN && !z->nr_hints) || zone_seal(l);
}

/* ---- how much space there is -------------------------------------------------------------- */

/* A part of the space that is not live: each zone of the margin is one that its dead records cannot
 * fill, and a full log has few of these. */
uint32_t space_margin(const struct alog *l)
{
	uint32_t live = (uint32_t)(l->z.live_bytes / l->cfg.zone_bytes) + l->own.used,
		 part = live < l->cfg.zones ? (l->cfg.zones - live) / 32 : 0;

	return part < 2 ? 2 : part;
}

uint32_t space_soon(const struct alog *l)
{
	return zones_free(l) + l->g.nr;
}

void space_credit(struct alog *l, uint32_t bytes)
{
	uint32_t low = l->cfg.reserve + space_margin(l), have = space_soon(l), lack;

	if (have >= low)
		return;
	lack = low - have;
	l->credit += bytes + 8ull * bytes * lack / space_margin(l);
	if (l->credit > l->cfg.zone_bytes)
		l->credit = l->cfg.zone_bytes;
}

uint32_t space_dead(const struct alog *l, const struct zone *z)
{
	return l->cfg.zone_bytes - z->live;
}

bool space_gains(const struct alog *l, const struct zone *z)
{
	return l->cfg.evicts || z->total - z->live >= l->cfg.zone_bytes / LEAST_GAIN ||
	       (z->old && space_dead(l, z) >= l->cfg.zone_bytes / LEAST_GAIN);
}

bool space_is_hopeless(const struct alog *l)
{
	if (l->g.nr || own_leaves(l) || l->job == JOB_COPY || l->repair.state != REPAIR_NONE)
		return false;
	for (uint32_t i = 0; i < l->z.nr; i++)
		if (l->z.table[i].state == ZONE_CLOSED && space_gains(l, &l->z.table[i]))
			return false;
	return true;
}
