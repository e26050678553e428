/* logged - what the log asks of its user: requests to the peer below, the pages of the arena, and
 * the index.
 *
 * Contract: see alog.h for the upcalls.
 *
 * Invariants
 *   I1  After the opening the index has of each identity the record with the highest sequence; of
 *       equal ones that in the higher zone. All others are dead for the log.
 *   I2  An entry whose record is gone, but whose identity has records, stays as a ghost: its count
 *       would be lost otherwise (K8).
 *   I4  A value that is evicted has no other record that could come back: else a tombstone stays in
 *       its place. At most half of a zone is kept for having been got (K10).
 *   I5  A large value whose record does not count any more is told to table/large.c.
 *   I6  The record of a put that is on its way (paged.c) is live, and its entry counts it; but no
 *       entry points to it.
 *   I7  A record that cannot be read stays an error for its key when its zone goes (C7 of
 *       alog/copy.c): not "not found", and no older value.
 *   I8  An entry whose last record goes with a zone is owed (X5 of table/index.h) until the
 *       deletion of the zone is stable. Else a successor could find more keys than the index can
 *       have.
 *   I3  A record is copied as a tombstone if it has expired (K9), and a tombstone goes when no
 *       other record of its identity is left.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/common/log/log.h"
#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

/* ---- requests ---- */

static bool log_send(void *ctx, struct alog_io *io)
{
	struct kvd *k = ctx;
	struct xreq *r = xseg_req_alloc(k->pp->port);

	if (!r)
		return false;
	r->op = io->op;
	r->flags = (io->fua ? XSEG_REQ_FUA : 0) | (io->once ? XSEG_REQ_ONCE : 0);
	r->offset = r->obj_offset = io->offset;
	r->size = io->size;
	r->nr_pages = io->nr_pages;
	memcpy(r->page, io->page, io->nr_pages * sizeof(r->page[0]));
	xseg_req_set_target(r, io->target, strlen(io->target));
	if (!kvd_submit(k, r, (struct kvd_context){ .io = io }))
		return false;
	k->log_out++;
	XKILL(KVD_LOG_SENT);
	return true;
}

/* ---- the index ---- */

static bool is_at(const struct index_entry *e, uint64_t zone, uint32_t place)
{
	return e->type != INDEX_GHOST && e->zone == zone && e->place == place;
}

static void count_more(struct index_entry *e)
{
	if (e->count < INDEX_COUNT_MAX)
		e->count++;
}

static void point(struct index_entry *e, uint64_t zone, const struct alog_hint *h)
{
	e->zone = zone;
	e->place = h->place;
	e->bytes = h->bytes;
	e->type = h->type == ALOG_TOMBSTONE ? INDEX_TOMBSTONE : INDEX_VALUE;
	e->expires = h->expiry != 0;
	e->large = h->flags & ALOG_LARGE && h->type == ALOG_VALUE;
	e->hit = e->bad = false;
}

static void soon(void *ctx, const uint64_t identity[2])
{
	struct kvd *k = ctx;

	index_prefetch(&k->index, identity[0]);
}

/* I1 */
static void found(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	struct kvd *k = ctx;
	struct index *ix = &k->index;
	uint64_t slot = index_find(ix, hint->identity);
	struct index_entry e = { .count = 1 };

	kvd_change_found(k, hint);
	if (kvd_clear_found(k, zone, hint))
		return;
	k->time.used |= hint->expiry != 0;
	if (slot == INDEX_NONE) {
		point(&e, zone, hint);
		slot = index_insert(ix, hint->identity, &e);
		if (slot == INDEX_NONE)
			k->error = -ENOSPC;	/* life.c tells it */
		else
			ix->sequence[slot] = hint->sequence;
		return;
	}
	index_get(ix, slot, &e);
	count_more(&e);
	if (e.type != INDEX_GHOST && (ix->sequence[slot] > hint->sequence ||
		(ix->sequence[slot] == hint->sequence && e.zone > zone))) {
		alog_dead(k->log, zone, hint->bytes);
	} else {
		if (e.type != INDEX_GHOST)
			alog_dead(k->log, e.zone, e.bytes);
		point(&e, zone, hint);
		ix->sequence[slot] = hint->sequence;
	}
	index_set(ix, slot, &e);
}

/* What the entry pointed to is dead. */
static void point_to(struct kvd *k, struct index_entry *e, const struct alog_place *at,
	enum index_type type, uint32_t expiry)
{
	if (e->type != INDEX_GHOST || e->has_record)
		alog_dead(k->log, e->zone, e->bytes);
	e->zone = at->zone;
	e->place = at->place;
	e->bytes = at->bytes;
	e->type = (uint8_t)type;
	e->expires = expiry != 0;
	k->time.used |= e->expires;
	e->hit = e->bad = false;
}

void kvd_index_put(struct kvd *k, const uint64_t id[2], const struct alog_place *at,
	const struct xrecord *rec)
{
	uint64_t slot = index_find(&k->index, id);
	struct index_entry e = { .count = 0 };

	if (slot != INDEX_NONE)
		index_get(&k->index, slot, &e);
	if (e.cleared)
		e.count = 0;			/* E2 of clear.c */
	count_more(&e);
	point_to(k, &e, at, rec->type == ALOG_TOMBSTONE ? INDEX_TOMBSTONE : INDEX_VALUE,
		rec->expiry);
	e.large = rec->flags & ALOG_LARGE;
	if (slot != INDEX_NONE) {
		index_set(&k->index, slot, &e);
	} else {
		slot = index_insert(&k->index, id, &e);
		assert(slot != INDEX_NONE);
	}
}

/* I6: as a ghost, if the key has no record. That ghost bears the place of the put, so no sweep
 * takes it for one of before (X4 of table/index.h). */
void kvd_index_expect(struct kvd *k, const uint64_t id[2], const struct alog_place *at)
{
	const struct index_entry ghost = { .zone = at->zone, .place = at->place, .count = 1 };
	uint64_t slot = index_find(&k->index, id);
	struct index_entry e;

	if (slot == INDEX_NONE) {
		slot = index_insert(&k->index, id, &ghost);
		assert(slot != INDEX_NONE);
		return;
	}
	index_get(&k->index, slot, &e);
	if (e.has_record)
		alog_dead(k->log, e.zone, e.bytes);
	if (e.cleared)
		e = ghost;
	else
		count_more(&e);
	index_set(&k->index, slot, &e);
}

/* I5 */
static void lose_large(struct kvd *k, const uint64_t id[2], struct index_entry *e)
{
	if (e->large)
		large_gone(&k->large.t, id);
	e->large = false;
}

void kvd_index_show(struct kvd *k, const struct paged_put *p)
{
	uint64_t slot = index_find(&k->index, p->id);
	struct index_entry e;

	assert(slot != INDEX_NONE);		/* I6 */
	index_get(&k->index, slot, &e);
	lose_large(k, p->id, &e);
	point_to(k, &e, &p->at, INDEX_VALUE, p->expiry);
	index_set(&k->index, slot, &e);
}

/* I2 */
static void become_ghost(struct kvd *k, uint64_t slot, struct index_entry *e)
{
	e->type = INDEX_GHOST;
	if (e->count) {
		index_set(&k->index, slot, e);
		return;
	}
	index_remove(&k->index, slot);
	room_freed(&k->room);
}

/* I4. Full, and it was not got since it was last looked at. The log asks again for a record that it
 * cannot copy yet: it counts once. */
static bool is_evicted(struct kvd *k, uint64_t zone, const struct alog_hint *hint,
	const struct index_entry *e)
{
	if (k->opt.full != KVD_EVICT)
		return false;
	if (k->evicted.zone != zone) {
		k->evicted.zone = zone;
		k->evicted.kept = k->evicted.decided = 0;
	}
	if (!e->hit)
		return true;
	if (hint->place < k->evicted.decided)
		return false;
	if (k->evicted.kept + hint->bytes > k->cfg.zone_bytes / 2)
		return true;
	k->evicted.kept += hint->bytes;
	k->evicted.decided = hint->place + hint->bytes;
	return false;
}

static enum alog_verdict evict(struct kvd *k, uint64_t zone, const struct alog_hint *hint,
	uint64_t slot, struct index_entry *e)
{
	kvd_count(k, KS_EVICTED, 1);
	if (e->count > 1)
		return ALOG_EXPIRED;
	lose_large(k, hint->identity, e);
	become_ghost(k, slot, e);
	alog_dead(k->log, zone, hint->bytes);
	return ALOG_EVICTED;
}

/* E1 of clear.c: it may be in the index yet. */
static enum alog_verdict judge_cleared(struct kvd *k, uint64_t zone, const struct alog_hint *hint,
	uint64_t slot, struct index_entry *e)
{
	if ((e->type == INDEX_GHOST && !e->has_record) || e->zone != zone ||
		e->place != hint->place)
		return ALOG_DEAD;
	alog_dead(k->log, zone, hint->bytes);
	e->type = INDEX_GHOST;
	e->large = false;
	index_set(&k->index, slot, e);
	return ALOG_DEAD;
}

static enum alog_verdict judge(void *ctx, uint64_t zone, const struct alog_hint *hint, bool keep)
{
	struct kvd *k = ctx;
	uint64_t slot;
	struct index_entry e;

	if (hint->type == ALOG_CLEAR)
		return kvd_clear_judge(k, zone, hint);
	slot = index_find(&k->index, hint->identity);
	if (slot == INDEX_NONE)
		return ALOG_DEAD;
	index_get(&k->index, slot, &e);
	if (hint->sequence < k->clear.sequence)
		return judge_cleared(k, zone, hint, slot, &e);
	if (!is_at(&e, zone, hint->place))	/* I6 */
		return paged_at(&k->paged, hint->identity, zone, hint->place) ? ALOG_LIVE
									      : ALOG_DEAD;
	if (e.type == INDEX_TOMBSTONE && e.count == 1 && !keep) {
		become_ghost(k, slot, &e);
		alog_dead(k->log, zone, hint->bytes);
		return ALOG_DEAD;
	}
	if (e.type == INDEX_TOMBSTONE)
		return ALOG_LIVE;
	if (kvd_is_expired(k, hint->expiry))
		return ALOG_EXPIRED;
	return !keep && is_evicted(k, zone, hint, &e) ? evict(k, zone, hint, slot, &e) : ALOG_LIVE;
}

/* Whoever reads the original finds it for as long as its zone is there. */
static void copied(void *ctx, uint64_t from_zone, const struct alog_hint *from, uint64_t to_zone,
	const struct alog_hint *to)
{
	struct kvd *k = ctx;
	struct paged_put *p;
	uint64_t slot;
	struct index_entry e;
	bool was_value, was_bad;

	if (from->type == ALOG_CLEAR) {
		kvd_clear_copied(k, from_zone, from, to_zone, to);
		return;
	}
	slot = from->sequence < k->clear.counted_from ? INDEX_NONE
						      : index_find(&k->index, from->identity);
	if (slot == INDEX_NONE)
		return;
	p = paged_at(&k->paged, from->identity, from_zone, from->place);
	if (p)					/* I6 */
		p->at = (struct alog_place){ .zone = to_zone, .sequence = to->sequence,
			.end = p->at.end, .place = to->place, .bytes = to->bytes };
	index_get(&k->index, slot, &e);
	count_more(&e);
	if (is_at(&e, from_zone, from->place)) {
		was_value = e.type == INDEX_VALUE;
		was_bad = e.bad;
		if (to->type != ALOG_VALUE)
			lose_large(k, from->identity, &e);
		point(&e, to_zone, to);
		e.bad = was_bad && to->type == ALOG_LOST;
		if (was_value && e.type == INDEX_TOMBSTONE) {
			kvd_count(k, KS_EXPIRED, from->expiry && kvd_is_expired(k, from->expiry));
			e.expires = false;
		}
	}
	index_set(&k->index, slot, &e);
	XKILL(KVD_COPIED);
}

/* X2 of index.h */
static void gone(void *ctx, uint64_t zone, const struct alog_hint *hint)
{
	struct kvd *k = ctx;
	uint64_t slot;
	struct index_entry e;

	(void)zone;
	if (hint->type == ALOG_CLEAR || hint->sequence < k->clear.counted_from)
		return;
	slot = index_find(&k->index, hint->identity);
	if (slot == INDEX_NONE)
		return;
	index_get(&k->index, slot, &e);
	if (e.count && e.count < INDEX_COUNT_MAX)
		e.count--;
	if (e.type == INDEX_GHOST && !e.count)	/* I8 */
		index_owe(&k->index, alog_gone_next(k->log));
	if (e.type == INDEX_GHOST)
		become_ghost(k, slot, &e);
	else
		index_set(&k->index, slot, &e);
}

/* I7. Each call goes on where the last one of this zone ended. */
static bool lost(void *ctx, uint64_t zone, struct alog_hint *hint)
{
	struct kvd *k = ctx;
	uint64_t slot = index_from(
		&k->index, k->evicted.lost_zone == zone ? k->evicted.lost_hash : 0);
	struct index_entry e;

	paged_lose(&k->paged, zone);
	if (kvd_clear_lost(k, zone, hint))
		return true;
	for (; slot != INDEX_NONE; slot = index_next(&k->index, slot)) {
		index_get(&k->index, slot, &e);
		if (e.type == INDEX_GHOST || e.zone != zone)
			continue;
		kvd_record_bad(k, slot, &e);
		index_identity(&k->index, slot, hint->identity);
		hint->sequence = UINT64_MAX;	/* no clear is newer */
		hint->place = e.place;
		hint->bytes = e.bytes;
		hint->type = e.type == INDEX_TOMBSTONE ? ALOG_TOMBSTONE : ALOG_VALUE;
		k->evicted.lost_zone = zone;
		k->evicted.lost_hash = index_hash(&k->index, slot);
		return true;
	}
	k->evicted.lost_zone = 0;
	return false;
}

static void damaged(void *ctx, enum alog_damage what, uint64_t zone, uint32_t place,
	uint32_t bytes)
{
	struct kvd *k = ctx;
	const char *name = k->peer.name;
	unsigned long long z = zone;

	if (k->state == KVD_OPENING)		/* K1 of keep.c */
		k->large.unread += what == ALOG_BAD_RECORD || what == ALOG_BAD_HINTS;
	switch (what) {
	case ALOG_BAD_RECORD:
		kvd_count(k, KS_BAD_RECORDS, 1);
		log_error("%s: %u bytes at %u of +%s:%016llx are damaged; that value is lost, "
			"or an older one of its key shows; see 'xseg kv verify'",
			name, bytes, place, k->cfg.prefix, z);
		break;
	case ALOG_BAD_HINTS:
		log_error("%s: the end or the begin of +%s:%016llx is damaged: older values of "
			"lost keys may show; see 'xseg kv verify'", name, k->cfg.prefix, z);
		break;
	case ALOG_BAD_HEAD:
		log_warn("%s: one of the two heads of the log is damaged; the other one is used "
			"and it is written anew", name);
		break;
	case ALOG_HOLE:
		log_info("%s: %u bytes at %u of +%s:%016llx were not stable when the power "
			"failed; they were not promised", name, bytes, place, k->cfg.prefix, z);
		break;
	}
}

/* Of a client that has lent it. */
static const void *page_at(void *ctx, uint32_t page)
{
	struct kvd *k = ctx;

	return xseg_page(k->peer.seg, page);
}

const struct alog_user kvd_log_user = {
	.send = log_send, .page = kvd_page_of, .found = found, .judge = judge, .soon = soon,
	.copied = copied, .gone = gone, .lost = lost, .damage = damaged, .at = page_at
};

/* ---- changes that a predecessor had begun; change.c finishes them when the log is OPEN ----- */

void kvd_change_begun(struct kvd *k, struct xreq *r)
{
	r->user = NULL;
	fifo_push(&k->q.begun, r);
}

/* C1. No two openings give one sequence. A copy has that of its original, at another place. */
void kvd_change_found(struct kvd *k, const struct alog_hint *hint)
{
	struct xseg *seg = k->peer.seg;

	for (struct xreq *r = k->q.begun.first; r; r = r->next)
		if (r->state == XSEG_REQ_STARTED &&
			xseg_req_note(seg, r, KVD_NOTE_SEQUENCE) == hint->sequence)
			r->user = r;
}

/* ---- why there is none ---- */

const char *kvd_why_broken(int error)
{
	return error == -ESTALE ?
		"another segment has opened it since; values that were put here and not written "
		"are in this segment alone: use one segment for a log" :
		error == -EINVAL ? "it was made with another size, zone_size or tail; start it "
		"with those"
		: error == -ENOSPC ? "it has more keys than keys= allows; start it with more"
		: error == -EBADMSG ? "both of its heads are damaged; bring back +PREFIX:head.0 "
		"or +PREFIX:head.1 from a copy of the store, or save its values with 'xseg kv "
		"backup FILE --salvage', give another prefix= and restore them"
		: error == -EPROTONOSUPPORT ? "another version of xseg has made it; start that "
		"version and make a backup, or give another prefix=" :
		"its head is not that of a kvd; give another prefix=";
}
