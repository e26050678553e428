/* append - records are put at the end of the log.
 *
 * Contract: see alog.h. append_ready() finds or makes the place, append_records() fills it; nothing
 * stands between the two. The store of `end` in tail_publish() is the append: all records of a
 * batch, or none.
 *
 * Invariants
 *   A1  Sequences rise, and are below the reservation in the head. A copy keeps its own.
 *   A2  Callers leave `reserve` zones free, and copies of a compaction one. A repair may go beyond
 *       the size of the log for a while: it can delete nothing before all of its copies are
 *       written. A compaction may, too, when no zone waits for its deletion: each process leaves a
 *       zone that was not full, so kills can use up all of them.
 */
#include <assert.h>
#include <errno.h>

#include "peers/alog/inside.h"

/* A2. Whether a new zone may be begun (or, `within`, an open one filled) with so few free zones. */
static bool has_space(const struct alog *l, enum tail_use use, bool tombstone, bool within)
{
	uint32_t least = tombstone ? (l->cfg.reserve + 2) / 2 : l->cfg.reserve;

	if (use >= TAIL_REST)
		return within || l->z.used < l->z.nr;
	if (use == TAIL_COPY)
		return within || zones_free(l) > 1 || (!l->g.nr && l->z.used < l->z.nr);
	return within ? zones_free(l) >= least : zones_free(l) > least;
}

static int no_space(const struct alog *l, enum tail_use use)
{
	return use == TAIL_CALLER && space_is_hopeless(l) ? -ENOSPC : -EAGAIN;
}

static uint32_t pages_over(uint32_t at, uint32_t bytes)
{
	uint32_t used = (at + ALOG_PAGE - 1) / ALOG_PAGE;

	return (at + bytes + ALOG_PAGE - 1) / ALOG_PAGE - used;
}

static int begin_zone(struct alog *l, uint32_t bytes, enum tail_use use, bool tombstone)
{
	if (!has_space(l, use, tombstone, false))
		return no_space(l, use);
	if (l->head.next_id >= l->head.in.id || l->head.next_id - l->head.lowest >= l->z.span - 1) {
		l->head.wanted = true;
		return -EAGAIN;
	}
	if (!tail_room(l, pages_over(0, ALOG_ZONE_HEAD_END + bytes), use))
		return -EAGAIN;
	zone_begin(l);
	return 0;
}

/* Whether the open zone has room for nr records of `bytes`; where it has not, it is sealed. */
static bool leaves_zone(struct alog *l, uint32_t bytes, uint32_t nr, enum tail_use use)
{
	if (l->z.open->state == ZONE_OPEN && zone_room(l, nr) >= bytes)
		return false;
	if (use >= TAIL_REST)
		zone_close(l);
	else
		zone_seal(l);
	return true;
}

/* `bytes` of a PAGED record are the most that it may take: up to two pages more than record_max. */
int append_ready(struct alog *l, uint32_t bytes, uint32_t nr, enum tail_use use, bool tombstone)
{
	if (bytes > l->record_max + 2 * ALOG_PAGE || nr > ALOG_BATCH_MAX ||
		bytes + nr * ALOG_HINT_BYTES + ALOG_FOOTER_BYTES + ALOG_ZONE_HEAD_END >
			l->cfg.zone_bytes)
		return -E2BIG;
	if (l->s.sequence + nr > l->head.in.sequence) {
		l->head.wanted = true;
		return -EAGAIN;
	}
	if (l->z.open && leaves_zone(l, bytes, nr, use) && l->z.open)
		return -EAGAIN;			/* half sealed */
	if (!l->z.open)
		return begin_zone(l, bytes, use, tombstone);
	if (!has_space(l, use, tombstone, true))
		return no_space(l, use);
	return tail_room(l, pages_over(l->z.open->end, bytes), use) ? 0 : -EAGAIN;
}

/* The value of a PAGED record, in the pages of its user. */
static void put_lent(struct alog *l, const uint32_t *lent, uint32_t behind, uint32_t end,
	uint64_t *pos, uint64_t begun)
{
	for (uint32_t i = 0; behind < end; i++, behind += ALOG_PAGE)
		tail_lend(l, pos, behind, lent[i], begun);
}

static void put_record(struct alog *l, const struct alog_put *put, uint8_t flags,
	const uint32_t *lent, uint64_t *pos, uint64_t begun, struct alog_place *at)
{
	struct zone *z = l->z.open;
	struct xrecord rec = put->rec;
	struct xrecord_header h;
	uint32_t place = z->end, key = place + xrecord_data_at(place, rec.key_bytes, flags),
		 bytes = xrecord_bytes_at(place, rec.key_bytes, rec.value_bytes, flags),
		 behind = place + ALOG_HEADER_BYTES;

	rec.flags = flags;
	if (!rec.sequence)
		rec.sequence = l->s.sequence++;
	if (!rec.version)
		rec.version = rec.sequence;
	xrecord_encode(&rec, l->z.seed, place, &h);
	tail_put(l, pos, place, &h, sizeof(h), begun);
	tail_put(l, pos, behind, NULL, key - behind, begun);
	tail_put(l, pos, key, put->key, rec.key_bytes, begun);
	behind = key + rec.key_bytes;
	if (lent) {
		put_lent(l, lent, behind, place + bytes, pos, begun);
	} else {
		if (put->laid)
			tail_skip(l, pos, behind, rec.value_bytes, begun);
		else
			tail_put(l, pos, behind, put->value, rec.value_bytes, begun);
		behind += rec.value_bytes;
		tail_put(l, pos, behind, NULL, place + bytes - behind, begun);
	}
	scan_hint(&rec, place, bytes, &l->z.hints[z->nr_hints++]);
	z->end += bytes;
	zone_live(l, z, bytes);
	z->total += bytes;
	*at = (struct alog_place){ .zone = z->id, .sequence = rec.sequence, .place = place,
		.bytes = bytes };
}

/* append_ready() has said yes. A record with a sequence is a copy. */
void append_records(struct alog *l, const struct alog_put *put, uint32_t nr, const uint32_t *lent,
	struct alog_place *at)
{
	uint64_t begun = l->s.end, pos = begun;
	bool fresh = !put[0].rec.sequence;
	uint8_t flags;

	assert(l->z.open->state == ZONE_OPEN);
	for (uint32_t i = 0; i < nr; i++) {
		flags = put[i].rec.flags & (uint8_t)~ALOG_OF_BATCH;
		flags |= (uint8_t)((i + 1 < nr ? ALOG_MORE : 0) | (i ? ALOG_CONTINUED : 0));
		put_record(l, &put[i], flags, lent, &pos, begun, &at[i]);
		l->stats.appended_bytes += at[i].bytes;
	}
	assert(l->z.open->end <= alog_hints_at(l->cfg.zone_bytes, l->z.open->nr_hints));
	tail_publish(l, pos);
	for (uint64_t k = begun / ALOG_PAGE; k * ALOG_PAGE < pos; k++)
		tail_state(l, k)->fresh |= fresh;
	for (uint32_t i = 0; i < nr; i++)
		at[i].end = pos;
	l->stats.records += nr;
}

/* None of them is PAGED: those are alog_append_paged()'s. */
static uint32_t bytes_of(const struct alog_put *put, uint32_t nr, bool *tombstone)
{
	uint64_t bytes = 0;

	*tombstone = true;
	for (uint32_t i = 0; i < nr; i++) {
		if (put[i].rec.key_bytes > ALOG_KEY_MAX ||
			put[i].rec.value_bytes > ALOG_ZONE_MAX || put[i].rec.flags & ALOG_PAGED)
			return UINT32_MAX;
		bytes += xrecord_bytes(put[i].rec.key_bytes, put[i].rec.value_bytes);
		*tombstone &= put[i].rec.type != ALOG_VALUE;
	}
	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

int alog_append(struct alog *l, const struct alog_put *put, uint32_t nr, struct alog_place *at)
{
	bool tombstone;
	uint32_t bytes = bytes_of(put, nr, &tombstone);
	int rc;

	if (!serves(l))
		return -EAGAIN;
	rc = append_ready(l, bytes, nr, TAIL_CALLER, tombstone);
	if (rc)
		return rc;
	append_records(l, put, nr, NULL, at);
	space_credit(l, bytes);
	return 0;
}

int alog_next(struct alog *l, uint32_t bytes, uint32_t nr, bool tombstone, struct alog_place *at)
{
	int rc = serves(l) ? append_ready(l, bytes, nr, TAIL_CALLER, tombstone) : -EAGAIN;

	if (rc)
		return rc;
	*at = (struct alog_place){ .zone = l->z.open->id, .sequence = l->s.sequence,
		.place = l->z.open->end, .end = l->s.end + bytes, .bytes = bytes };
	return 0;
}

/* Bytes of a page that is out must not change but by an append, which sends the page again. */
void *alog_lay(struct alog *l, const struct alog_place *next, uint32_t at, uint32_t *bytes)
{
	uint64_t pos = l->s.end + at, k = pos / ALOG_PAGE;

	assert(next->zone == l->z.open->id && next->place == l->z.open->end);
	if (k < l->s.next_page && tail_state(l, k)->out)
		return NULL;
	*bytes = ALOG_PAGE - pos % ALOG_PAGE;
	return tail_page(l, k) + pos % ALOG_PAGE;
}

/* The least room that such a record needs wherever the log goes on. */
static int ready_paged(struct alog *l, uint32_t key_bytes, uint32_t value_bytes)
{
	if (key_bytes > ALOG_KEY_MAX || value_bytes > ALOG_ZONE_MAX ||
		xrecord_bytes(key_bytes, value_bytes) > l->record_max)
		return -E2BIG;
	if (!serves(l))
		return -EAGAIN;
	return append_ready(l, alog_bytes_most(key_bytes, value_bytes, ALOG_PAGED), 1,
		TAIL_CALLER, false);
}

int alog_append_paged(struct alog *l, const struct alog_put *put, const uint32_t *page,
	struct alog_place *at)
{
	struct alog_put paged = *put;
	int rc = ready_paged(l, put->rec.key_bytes, put->rec.value_bytes);

	if (rc)
		return rc;
	paged.rec.flags |= ALOG_PAGED;
	append_records(l, &paged, 1, page, at);
	space_credit(l, at->bytes);
	return 0;
}

int alog_next_paged(
	struct alog *l, uint32_t key_bytes, uint32_t value_bytes, struct alog_place *at)
{
	int rc = ready_paged(l, key_bytes, value_bytes);
	uint32_t place, bytes;

	if (rc)
		return rc;
	place = l->z.open->end;
	bytes = xrecord_bytes_at(place, key_bytes, value_bytes, ALOG_PAGED);
	*at = (struct alog_place){ .zone = l->z.open->id, .sequence = l->s.sequence,
		.place = place, .end = l->s.end + bytes, .bytes = bytes };
	return 0;
}

void alog_dead(struct alog *l, uint64_t zone, uint32_t bytes)
{
	struct zone *z = zone_find(l, zone);

	if (!z)
		return;
	zone_dead(l, z, bytes);
	l->z.some_dead |= z->live == 0;
}
