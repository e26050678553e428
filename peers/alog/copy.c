/* copy - the live records of a zone are copied to the end of the log, by a compaction or a repair.
 *
 * Contract: see inside.h. It has the scratch (JOB_COPY) from copy_begin() to the end of the zone.
 * A repair takes each zone twice. First (TAIL) it copies what the tail has and the store may not
 * have, and drops the zone's pages from the tail. When no failed page is left there, others can
 * pass, and it copies the rest (REST).
 *
 * Invariants
 *   C1  A copy keeps sequence and version.
 *   C2  Of a zone that was not flushed, a batch is copied as a batch, with its dead records: else
 *       a loss of power could keep the copy of one part and lose the others.
 *   C3  A repair drops no tombstone, and tells of no record that it goes (L7): the zone's pages may
 *       be in the tail alone, and are gone before the zones that were emptied earlier are deleted.
 *   C4  The user hears of each copy before anything else happens to the record.
 *   C5  If a record that a repair has to copy is not there any more, an older one of its identity
 *       may count again. So the log is to be opened anew, and the zones in doubt are scanned.
 *   C7  If a record that counts cannot be read, a record that says so is appended before its zone
 *       goes: else an older one of its identity would count again, or none. A CLEAR has nothing
 *       that its user does not know, so it is written anew with its sequence.
 *   C8  A PAGED record whose data was never right is copied as it is, if the ring has all of it:
 *       its user has not read the data. The store has lost nothing then, so nothing is opened anew.
 *   C9  A poll makes STEPS copies at most, as requests of the user's clients wait meanwhile.
 *   C6  A compaction without credit keeps the scratch. So it goes on without credit while a walk
 *       waits for the scratch, or a caller for what it frees: no append may come that pays for it.
 */
#include <assert.h>
#include <errno.h>

#include "peers/alog/inside.h"

#define STEPS 64u				/* records a poll */

/* The scratch has what is to be copied. */
static void run(struct alog *l)
{
	tail_overlay(l, l->copier.zone->id, l->scratch);
	l->copier.state = COPY_RUN;
}

/* True: it was given up while it read. */
static bool is_stopped(struct alog *l)		/* by copy_stop() */
{
	if (l->copier.zone)
		return false;
	l->copier.state = COPY_NONE;
	l->job = JOB_NONE;
	return true;
}

static void begin_scan(struct alog *l)
{
	struct copier *c = &l->copier;
	struct zone *z = c->zone;

	scan_init(&c->scan, l->scratch, z->end, xrecord_seed(l->cfg.uuid, z->id, z->epoch),
		!z->believed || !zone_is_durable(l, z));
	c->split = c->why == COPY_TAIL ? tail_kept_from(l, z) : 0;
}

static void all_is_read(struct alog *l)
{
	if (is_stopped(l))
		return;
	begin_scan(l);
	run(l);
}

static void pages_are_read(struct alog *l)
{
	if (!is_stopped(l))
		run(l);
}

static void read_all(struct alog *l)
{
	const struct zone *z = l->copier.zone;

	l->copier.picked.on = false;
	read_zone(l, z->id, 0, xrecord_round(z->end, ALOG_PAGE), all_is_read);
}

static void hints_are_read(struct alog *l)
{
	struct copier *c = &l->copier;

	if (is_stopped(l))
		return;
	tail_overlay(l, c->zone->id, l->scratch);
	begin_scan(l);
	if (!pick_begin(l, c->zone)) {
		read_all(l);
	} else if (pick_is_empty(l)) {
		run(l);
	} else {
		read_zone(l, c->zone->id, 0, xrecord_round(c->zone->end, ALOG_PAGE),
			pages_are_read);
		l->reader.pages = c->picked.pages;
	}
}

bool copy_begin(struct alog *l, struct zone *z, enum copy_why why)
{
	assert(l->job == JOB_NONE && z->state == ZONE_CLOSED);
	l->job = JOB_COPY;
	l->copier.state = COPY_READ;
	l->copier.zone = z;
	l->copier.why = why;
	if (why == COPY_COMPACT && pick_can(z))
		read_zone(l, z->id,
			alog_hints_at(l->cfg.zone_bytes, z->nr_hints) / ALOG_PAGE * ALOG_PAGE,
			l->cfg.zone_bytes, hints_are_read);
	else
		read_all(l);
	return true;
}

void copy_stop(struct alog *l)
{
	if (l->job != JOB_COPY)
		return;
	l->copier.zone = NULL;
	if (!read_stop(l))
		return;
	l->copier.state = COPY_NONE;
	l->job = JOB_NONE;
}

/* ---- one append's worth of records ---- */

/* A record, or a chain that is copied as a whole (C2), into put[] and from[]. Returns how many, and
 * their bytes as copies; 0: the zone has ended. `lives`: one of them at least has to be copied. */
struct parcel {
	uint32_t nr, bytes;
	bool lives, bad;
};

static void take_record(struct alog *l, struct parcel *p, const struct xrecord *rec,
	const struct alog_hint *hint, enum alog_verdict v)
{
	struct copier *c = &l->copier;
	struct alog_put *put = &c->put[p->nr];

	c->from[p->nr] = *hint;
	put->rec = *rec;
	put->key = scan_data(c->scan.image, hint->place, rec);
	put->value = scan_data(c->scan.image, hint->place, rec) + rec->key_bytes;
	if (v == ALOG_EXPIRED) {
		put->rec.type = ALOG_TOMBSTONE;
		put->rec.flags = 0;
		put->rec.key_bytes = put->rec.value_bytes = put->rec.data_crc = 0;
	}
	if (v == ALOG_EVICTED || (v == ALOG_DEAD && hint->type == ALOG_TOMBSTONE))
		c->zone->drops = true;
	if (v == ALOG_EVICTED)
		v = ALOG_DEAD;
	c->verdict[p->nr] = v;
	p->lives |= v != ALOG_DEAD;
	p->bytes += alog_bytes_most(put->rec.key_bytes, put->rec.value_bytes, put->rec.flags);
	p->nr++;
}

/* C8 */
static bool is_as_it_was(const struct copier *c, const struct xrecord *rec, uint32_t at)
{
	return c->why == COPY_TAIL && at >= c->split && rec->flags & ALOG_PAGED;
}

static enum scan_found scanned(struct alog *l, struct alog_hint *hint, struct xrecord *rec,
	enum alog_verdict *v)
{
	struct copier *c = &l->copier;
	uint32_t at, bytes;
	enum scan_found found = scan_next(&c->scan, rec, &at, &bytes);

	if (found == SCAN_END)
		return found;
	scan_hint(rec, at, bytes, hint);
	if (found == SCAN_BAD && is_as_it_was(c, rec, at))
		found = SCAN_RECORD;
	if (found == SCAN_RECORD)
		*v = l->user.judge(l->user.ctx, c->zone->id, hint, c->why != COPY_COMPACT);
	return found;
}

/* Of a chain that is whole, or that is to be taken as a whole. */
static bool goes_on(const struct copier *c, const struct alog_hint *hint)
{
	return c->scan.chains && (c->picked.on ? hint->flags & ALOG_MORE : c->scan.chain);
}

static struct parcel next_parcel(struct alog *l)
{
	struct copier *c = &l->copier;
	struct parcel p = { 0 };
	struct alog_hint hint;
	struct xrecord rec;
	enum alog_verdict v;
	enum scan_found found;

	do {
		found = (c->picked.on ? pick_next : scanned)(l, &hint, &rec, &v);
		if (found == SCAN_END)
			break;
		if (found == SCAN_BAD) {	/* C7, if it counts */
			p.bad = true;
			break;
		}
		take_record(l, &p, &rec, &hint, v);
	} while (goes_on(c, &hint) && p.nr < ALOG_BATCH_MAX);
	if (p.nr && (c->scan.at <= c->split || (p.bad && c->picked.on)))
		p.lives = false;	/* all of it is below: COPY_REST; or half of a chain */
	return p;
}

/* C4 */
static void tell(struct alog *l, const struct parcel *p)
{
	struct copier *c = &l->copier;
	struct alog_hint to;

	for (uint32_t i = 0; i < p->nr; i++) {
		to = c->from[i];
		to.type = c->put[i].rec.type;
		to.flags = c->put[i].rec.flags & (uint8_t)~ALOG_OF_BATCH;
		to.place = c->at[i].place;
		to.bytes = c->at[i].bytes;
		l->user.copied(l->user.ctx, c->zone->id, &c->from[i], c->at[i].zone, &to);
		alog_dead(l, c->verdict[i] == ALOG_DEAD ? c->at[i].zone : c->zone->id,
			c->verdict[i] == ALOG_DEAD ? to.bytes : c->from[i].bytes);
	}
	l->stats.copied_bytes += p->bytes;
	l->credit -= p->bytes < l->credit ? p->bytes : l->credit;
}

/* False: it has to wait. */
static bool copy_parcel(struct alog *l, const struct parcel *p)
{
	static const enum tail_use use[] = { [COPY_COMPACT] = TAIL_COPY,
		[COPY_TAIL] = TAIL_REPAIR, [COPY_REST] = TAIL_REST };
	struct copier *c = &l->copier;

	if (append_ready(l, p->bytes, p->nr, use[c->why], true))
		return false;
	append_records(l, c->put, p->nr, NULL, c->at);
	tell(l, p);
	if (c->why == COPY_TAIL) {		/* T3 */
		tail_drop_before(l, c->zone->id, c->scan.at);
		write_advance(l);
	}
	return true;
}

/* ---- the end of a zone ---- */

static void tell_gone_scanned(struct alog *l)
{
	struct copier *c = &l->copier;
	struct xrecord rec;
	struct alog_hint hint;
	uint32_t at, bytes;
	enum scan_found found;

	scan_init(&c->scan, l->scratch, c->zone->end, c->scan.seed, c->scan.chains);
	while ((found = scan_next(&c->scan, &rec, &at, &bytes)) != SCAN_END)
		if (found == SCAN_RECORD) {
			scan_hint(&rec, at, bytes, &hint);
			l->user.gone(l->user.ctx, c->zone->id, &hint);
		}
}

/* L7: what goes with the zone. */
static void tell_gone(struct alog *l)
{
	struct copier *c = &l->copier;
	struct alog_hint hint;

	if (!c->picked.on) {
		tell_gone_scanned(l);
		return;
	}
	for (uint32_t i = 0; i < c->picked.nr; i++) {
		hint = pick_hint(l, c->picked.nr, i);
		l->user.gone(l->user.ctx, c->zone->id, &hint);
	}
}

/* C7. False: it has to wait. */
static bool mark_lost(struct alog *l, struct zone *z)
{
	struct alog_hint from, to;
	struct alog_place at;

	while (z->live) {
		struct alog_put put = { .rec = { .type = ALOG_LOST } };

		if (append_ready(l, xrecord_bytes(0, 0), 1, TAIL_COPY, true))
			return false;
		from = (struct alog_hint){ .type = ALOG_NOTHING };
		if (!l->user.lost(l->user.ctx, z->id, &from))
			break;
		put.rec.identity[0] = from.identity[0];
		put.rec.identity[1] = from.identity[1];
		if (from.type != ALOG_VALUE)
			put.rec.type = from.type;
		if (from.type == ALOG_CLEAR) {
			put.rec.sequence = from.sequence;
			put.rec.expiry = from.expiry;
		}
		append_records(l, &put, 1, NULL, &at);
		to = from;
		to.sequence = at.sequence;
		to.type = put.rec.type;
		to.flags = 0;
		to.expiry = put.rec.expiry;
		to.place = at.place;
		to.bytes = at.bytes;
		l->user.copied(l->user.ctx, z->id, &from, at.zone, &to);
		alog_dead(l, z->id, from.bytes);
	}
	zone_dead(l, z, z->live);
	return true;
}

/* False: it has to wait. */
static bool end_zone(struct alog *l)
{
	struct zone *z = l->copier.zone;
	enum copy_why why = l->copier.why;

	if (why == COPY_REST && z->live) {	/* C5 */
		log_fail(l, -EIO);
		return true;
	}
	if (why == COPY_COMPACT && !mark_lost(l, z))
		return false;
	if (why == COPY_COMPACT)		/* C3 */
		tell_gone(l);
	tail_drop(l, z->id);
	write_advance(l);
	if (why != COPY_TAIL)
		grave_add(l, z);
	l->copier.state = COPY_NONE;
	l->copier.zone = NULL;
	l->job = JOB_NONE;
	return true;
}

/* C6 */
static bool has_to_wait(const struct alog *l)
{
	const struct copier *c = &l->copier;
	bool walk_waits = l->w.state.active && !l->w.state.waits;

	return c->why == COPY_COMPACT && !l->credit && !walk_waits && c->zone->live &&
	       !c->zone->sick && zones_free(l) > l->cfg.reserve + l->own.wanted;
}

bool copy_pump(struct alog *l)
{
	struct copier *c = &l->copier;
	struct scan before;
	struct parcel p;
	uint32_t next;

	if (l->job != JOB_COPY || c->state != COPY_RUN)
		return false;
	for (uint32_t i = 0; i < STEPS; i++) {
		if (has_to_wait(l))
			return i > 0;
		before = c->scan;
		next = c->picked.next;
		p = next_parcel(l);
		if (!p.nr && !p.bad)
			return end_zone(l) || i > 0;
		if (p.lives && !copy_parcel(l, &p)) {
			c->scan = before;
			c->picked.next = next;
			return i > 0;
		}
	}
	return true;
}
