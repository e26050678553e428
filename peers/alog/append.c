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
 *       written.
 */
#include <assert.h>
#include <errno.h>

#include "peers/alog/inside.h"

/* A2. Whether a new zone may be begun (or, `within`, an open one filled) with so few free zones. */
static bool has_space(const struct alog *l, enum tail_use use, bool tombstone, bool within)
{
	uint32_t least = tombstone ? (l->cfg.reserve + 2) / 2 : l->cfg.reserve;

	if (use == TAIL_REPAIR)
		return within || l->z.used < l->z.nr;
	if (use == TAIL_COPY)
		return within || zones_free(l) > 1;
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
	if (use == TAIL_REPAIR)
		zone_close(l);
	else
		zone_seal(l);
	return true;
}

int append_ready(struct alog *l, uint32_t bytes, uint32_t nr, enum tail_use use, bool tombstone)
{
	if (bytes > l->record_max || nr > ALOG_BATCH_MAX ||
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

static void put_record(struct alog *l, const struct alog_put *put, uint8_t flags, uint64_t *pos,
	uint64_t begun, struct alog_place *at)
{
	struct zone *z = l->z.open;
	struct alog_record rec = put->rec;
	struct alog_header h;
	uint32_t bytes = alog_record_bytes(rec.key_bytes, rec.value_bytes), place = z->end,
		 behind = place + ALOG_HEADER_BYTES;

	rec.flags = flags;
	if (!rec.sequence)
		rec.sequence = l->s.sequence++;
	if (!rec.version)
		rec.version = rec.sequence;
	alog_header_encode(&rec, l->z.seed, place, &h);
	tail_put(l, pos, place, &h, sizeof(h), begun);
	tail_put(l, pos, behind, put->key, rec.key_bytes, begun);
	tail_put(l, pos, behind + rec.key_bytes, put->value, rec.value_bytes, begun);
	behind += rec.key_bytes + rec.value_bytes;
	tail_put(l, pos, behind, NULL, place + bytes - behind, begun);
	scan_hint(&rec, place, bytes, &l->z.hints[z->nr_hints++]);
	z->end += bytes;
	z->live += bytes;
	z->total += bytes;
	*at = (struct alog_place){ .zone = z->id, .sequence = rec.sequence, .place = place,
		.bytes = bytes };
}

/* append_ready() has said yes. A record with a sequence is a copy. */
void append_records(struct alog *l, const struct alog_put *put, uint32_t nr, uint32_t bytes,
	struct alog_place *at)
{
	uint64_t begun = l->s.end, pos = begun;
	uint8_t flags;

	assert(l->z.open->state == ZONE_OPEN && zone_room(l, nr) >= bytes);
	for (uint32_t i = 0; i < nr; i++) {
		flags = (uint8_t)(put[i].rec.flags & (ALOG_PACKED | ALOG_PAGED));
		flags |= (uint8_t)((i + 1 < nr ? ALOG_MORE : 0) | (i ? ALOG_CONTINUED : 0));
		put_record(l, &put[i], flags, &pos, begun, &at[i]);
	}
	tail_publish(l, pos);
	for (uint32_t i = 0; i < nr; i++)
		at[i].end = pos;
	l->stats.records += nr;
	l->stats.appended_bytes += bytes;
}

static uint32_t bytes_of(const struct alog_put *put, uint32_t nr, bool *tombstone)
{
	uint64_t bytes = 0;

	*tombstone = true;
	for (uint32_t i = 0; i < nr; i++) {
		if (put[i].rec.key_bytes > ALOG_KEY_MAX || put[i].rec.value_bytes > ALOG_ZONE_MAX)
			return UINT32_MAX;
		bytes += alog_record_bytes(put[i].rec.key_bytes, put[i].rec.value_bytes);
		*tombstone &= put[i].rec.type == ALOG_TOMBSTONE;
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
	append_records(l, put, nr, bytes, at);
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

void alog_dead(struct alog *l, uint64_t zone, uint32_t bytes)
{
	struct zone *z = zone_find(l, zone);

	if (!z)
		return;
	z->live -= bytes < z->live ? bytes : z->live;
	l->z.some_dead |= z->live == 0;
}
