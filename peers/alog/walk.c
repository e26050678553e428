/* walk - each record of the log is told: for verify, and for a backup while the log is used.
 *
 * Contract: alog_walk() in alog.h. A zone at a time has the scratch, so copies and repairs go on in
 * between, also while the user lets the walk wait. Then the zone is read again if another job had
 * the scratch.
 *
 * Invariants
 *   K1  Of a zone with hints that verify each hint is told, with its data or without. Of others all
 *       records are told that verify, and bad places without an identity.
 *   K2  The zones that are open or closed at its begin are told, and no others. Of those that are
 *       empty then, all that counts was copied.
 *   K3  With `hold` a zone that is not told yet is not deleted, and its pages leave the tail only
 *       when they are written. A repair may lose dead records, so it breaks the hold.
 *   K4  A zone is told in one way, from its first record to its last, also if it is read again.
 *   K6  A walk that could go on does not wait for appends to pay for a copy.
 *   K5  A hold that waits for its user gives way when callers have no space, or wait for deletions.
 */
#include <errno.h>
#include <string.h>

#include "peers/alog/inside.h"

#define PATIENCE_NS 1000000000ull		/* of K5 */

int alog_walk(struct alog *l, const struct alog_walk *walk)
{
	struct walker *w = &l->w;

	if (w->state.active || (!serves(l) && !salvages(l)) ||
		(walk->hold && l->repair.state != REPAIR_NONE))
		return -EBUSY;			/* K3 */
	*w = (struct walker){ .walk = *walk, .at = l->head.lowest, .until = l->head.next_id,
		.state = { .before = UINT64_MAX, .active = true } };
	if (walk->hold)				/* it would fill the log with zones that stay */
		l->pass = 0;
	if (serves(l))
		w->state.before = l->s.sequence;
	for (uint32_t i = 0; i < l->z.nr; i++) {
		struct zone *z = &l->z.table[i];

		z->untold = z->state == ZONE_OPEN || z->state == ZONE_SEALING ||
			    z->state == ZONE_CLOSED;
		w->state.zones += z->untold;
	}
	return 0;
}

void alog_walk_go(struct alog *l)
{
	l->w.state.waits = false;
}

void alog_walk_stop(struct alog *l)
{
	l->w.state.active = l->w.state.waits = false;
}

void alog_walk_state(const struct alog *l, struct alog_walk_state *state)
{
	*state = l->w.state;
}

static void over(struct alog *l, int error)
{
	alog_walk_stop(l);
	l->w.state.error = error;
	l->w.walk.over(l->w.walk.ctx);
}

/* K3 */
bool walk_holds(const struct alog *l, const struct zone *z)
{
	return l->w.state.active && l->w.walk.hold && z->untold;
}

void walk_break(struct alog *l, int error)
{
	if (l->w.state.active && l->w.walk.hold && !l->w.state.error)
		l->w.state.error = error;	/* told by the next poll */
}

uint64_t walk_patience(const struct alog *l)
{
	return l->w.state.active && l->w.state.waits && l->w.walk.hold
		       ? l->w.waits_ns + PATIENCE_NS
		       : ALOG_NEVER;
}

/* K5: callers find no space, and zones wait for their deletion. */
static bool gives_way(const struct alog *l)
{
	return l->now >= walk_patience(l) && (l->g.nr || own_leaves(l)) &&
	       (zones_free(l) <= l->cfg.reserve || grave_hastens(l));
}

/* ---- one zone ---- */

static void tell_bad(struct alog *l, enum alog_damage what, uint32_t at, uint32_t bytes)
{
	if (l->w.walk.bad)
		l->w.walk.bad(l->w.walk.ctx, what, l->w.at, at, bytes);
}

/* False: the walk waits before this record. Records that were told before are passed. */
static bool tell(struct alog *l, uint32_t nr, const struct alog_hint *hint,
	const struct xrecord *rec, const void *data)
{
	struct walker *w = &l->w;

	if (nr < w->told)
		return true;
	if (w->walk.ready && !w->walk.ready(w->walk.ctx, hint->bytes)) {
		w->state.waits = true;
		w->waits_ns = l->now;
		return false;
	}
	w->told++;
	w->walk.record(w->walk.ctx, w->at, hint, rec, data);
	return w->state.active;
}

static bool tell_scanned(struct alog *l, const struct zone *z)
{
	struct scan s;
	struct xrecord rec;
	struct alog_hint hint;
	uint32_t at, bytes, nr = 0;
	enum scan_found found;
	bool more = true;

	scan_init(&s, l->scratch, z->end, xrecord_seed(l->cfg.uuid, z->id, z->epoch), l->w.chains);
	while (more && (found = scan_next(&s, &rec, &at, &bytes)) != SCAN_END) {
		scan_hint(&rec, at, bytes, &hint);
		if (found == SCAN_RECORD) {
			more = tell(l, nr++, &hint, &rec, scan_data(s.image, at, &rec));
		} else if (!l->w.chains) {
			hint = (struct alog_hint){ .place = at, .bytes = bytes };
			more = tell(l, nr++, &hint, NULL, NULL);
		}
	}
	return more;
}

/* The hints verify. */
static bool tell_hinted(struct alog *l, const struct zone *z)
{
	struct alog_footer f;
	struct xrecord rec;
	struct alog_hint hint;
	struct scan s;
	uint32_t bytes;
	bool whole, more = true;

	if (!scan_hints_ok(&l->cfg, z->id, l->scratch, &f))
		return true;			/* they did when it began */
	scan_init(&s, l->scratch, f.end, xrecord_seed(l->cfg.uuid, z->id, f.epoch), false);
	for (uint32_t i = l->w.told; i < f.nr && more; i++) {
		memcpy(&hint, l->scratch + alog_hints_at(l->cfg.zone_bytes, f.nr) +
				i * ALOG_HINT_BYTES, sizeof(hint));
		whole = alog_hint_ok(&hint, &f) && scan_is_whole(&s, hint.place, &rec, &bytes);
		more = tell(l, i, &hint, whole ? &rec : NULL,
			whole ? scan_data(s.image, hint.place, &rec) : NULL);
	}
	return more;
}

/* K4, and what is damaged beside records. */
static void begin_zone(struct alog *l, const struct zone *z)
{
	struct walker *w = &l->w;
	struct alog_zone_info info;
	struct alog_footer f;

	w->begun = true;
	w->told = 0;
	w->hinted = z->believed && scan_hints_ok(&l->cfg, z->id, l->scratch, &f);
	w->chains = !z->believed || !zone_is_durable(l, z);
	if (l->reader.bad)
		tell_bad(l, ALOG_BAD_RECORD, 0, l->reader.bad * ALOG_PAGE);
	if (z->believed && !w->hinted)
		tell_bad(l, ALOG_BAD_HINTS, z->end, l->cfg.zone_bytes - z->end);
	if (!alog_zone_decode(l->cfg.uuid, z->id, l->scratch, &info))
		tell_bad(l, zone_is_durable(l, z) ? ALOG_BAD_RECORD : ALOG_HOLE, 0,
			ALOG_ZONE_HEAD_END);
}

static void next_zone(struct alog *l, struct zone *z)
{
	z->untold = l->w.begun = false;
	l->w.at++;
	l->w.state.told++;
}

/* The scratch has the zone. */
static void tell_zone(struct alog *l, struct zone *z)
{
	if (!l->w.begun)
		begin_zone(l, z);
	if (l->w.hinted ? tell_hinted(l, z) : tell_scanned(l, z))
		next_zone(l, z);
}

static void zone_is_read(struct alog *l)
{
	struct zone *z = zone_find(l, l->w.at);

	l->job = JOB_NONE;
	if (!l->w.state.active || !z || z->id != l->reader.zone)
		return;				/* it was stopped, or the zone is gone */
	tail_overlay(l, z->id, l->scratch);
	if (!z->epoch)				/* a salvage, and its header is lost */
		z->epoch = scan_epoch(&l->cfg, z->id, l->scratch, l->head.epoch, 1);
	l->w.image = l->images;
	tell_zone(l, z);
}

/* NULL: all are told. */
static struct zone *zone_at(struct alog *l)
{
	struct zone *z;

	for (; l->w.at < l->w.until; l->w.at++, l->w.begun = false) {
		z = zone_find(l, l->w.at);
		if (z && z->untold && z->state != ZONE_DELETING &&
			(z->state != ZONE_EMPTY || l->w.walk.hold))
			return z;
	}
	return NULL;
}

bool walk_pump(struct alog *l)
{
	struct zone *z;

	if (l->job == JOB_COPY && l->w.state.active && !l->w.state.waits && !l->credit) {
		l->credit = l->cfg.zone_bytes;	/* K6 */
		return true;
	}
	if (!l->w.state.active || l->job != JOB_NONE)
		return false;
	if (!l->w.state.error && l->w.state.waits && gives_way(l))
		l->w.state.error = -ENOSPC;
	if (l->w.state.error) {
		over(l, l->w.state.error);
		return true;
	}
	if (l->w.state.waits || l->repair.state != REPAIR_NONE)
		return false;
	z = zone_at(l);
	if (!z) {
		over(l, 0);
		return true;
	}
	if (l->w.begun && l->w.image == l->images) {
		tell_zone(l, z);
		return true;
	}
	l->job = JOB_WALK;
	read_zone(l, z->id, 0, l->cfg.zone_bytes, zone_is_read);
	return true;
}
