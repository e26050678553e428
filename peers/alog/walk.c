/* walk - each record of the log is told: for verify, and for a backup while the log is used.
 *
 * Contract: alog_walk() in alog.h. A zone at a time has the scratch, so copies and repairs go on in
 * between. With `hold` grave.c deletes nothing until the walk is over; the zones that there were at
 * its begin are all told, and no others.
 *
 * Invariants
 *   K1  Of a zone with a footer that verifies each hint is told, with its data or without. Of
 *       others all records are told that verify, and bad places without an identity.
 */
#include <errno.h>
#include <string.h>

#include "peers/alog/inside.h"

int alog_walk(struct alog *l, const struct alog_walk *walk)
{
	if (l->w.active || !serves(l))
		return -EBUSY;
	l->w = (struct walker){ .walk = *walk, .at = l->head.lowest, .until = l->head.next_id,
		.active = true };
	return 0;
}

static void tell_bad(struct alog *l, uint64_t zone, uint32_t at, uint32_t bytes)
{
	struct alog_hint hint = { .place = at, .bytes = bytes };

	l->w.walk.record(l->w.walk.ctx, zone, &hint, NULL, NULL);
}

static void tell_scanned(struct alog *l, struct zone *z)
{
	struct scan s;
	struct alog_record rec;
	struct alog_hint hint;
	uint32_t at, bytes;
	enum scan_found found;

	scan_init(&s, l->scratch, z->end, alog_seed(l->cfg.uuid, z->id, z->epoch),
		!z->believed || !zone_is_durable(l, z));
	while ((found = scan_next(&s, &rec, &at, &bytes)) != SCAN_END) {
		if (found == SCAN_BAD) {
			if (zone_is_durable(l, z))
				tell_bad(l, z->id, at, bytes);
			continue;
		}
		scan_hint(&rec, at, bytes, &hint);
		l->w.walk.record(l->w.walk.ctx, z->id, &hint, &rec,
			s.image + at + ALOG_HEADER_BYTES);
	}
}

static bool tell_hinted(struct alog *l, struct zone *z)
{
	struct alog_footer f;
	struct alog_record rec;
	struct alog_hint hint;
	struct scan s;
	uint32_t bytes;
	bool whole;

	if (!scan_hints_ok(&l->cfg, z->id, l->scratch, &f))
		return false;
	scan_init(&s, l->scratch, f.end, alog_seed(l->cfg.uuid, z->id, f.epoch), false);
	for (uint32_t i = 0; i < f.nr; i++) {
		memcpy(&hint, l->scratch + alog_hints_at(l->cfg.zone_bytes, f.nr) +
				i * ALOG_HINT_BYTES, sizeof(hint));
		whole = alog_hint_ok(&hint, &f) && scan_is_whole(&s, hint.place, &rec, &bytes);
		l->w.walk.record(l->w.walk.ctx, z->id, &hint, whole ? &rec : NULL,
			whole ? l->scratch + hint.place + ALOG_HEADER_BYTES : NULL);
	}
	return true;
}

static void zone_is_read(struct alog *l)
{
	struct zone *z = zone_find(l, l->w.at);

	l->w.at++;
	l->job = JOB_NONE;
	if (!z)
		return;
	tail_overlay(l, z->id, l->scratch);
	if (!z->believed || !tell_hinted(l, z))
		tell_scanned(l, z);
}

bool walk_pump(struct alog *l)
{
	struct zone *z = NULL;

	if (!l->w.active || l->job != JOB_NONE || l->repair.state != REPAIR_NONE)
		return false;
	for (; l->w.at < l->w.until; l->w.at++) {
		z = zone_find(l, l->w.at);
		if (z && z->state != ZONE_DELETING && (z->state != ZONE_EMPTY || l->w.walk.hold))
			break;
		z = NULL;
	}
	if (!z) {
		l->w.active = false;
		l->w.walk.over(l->w.walk.ctx);
		return true;
	}
	l->job = JOB_WALK;
	read_zone(l, z->id, 0, l->cfg.zone_bytes, zone_is_read);
	return true;
}
