/* copy - the live records of a zone are copied to the end of the log, by a compaction or a repair.
 *
 * Contract: see inside.h. It has the scratch (JOB_COPY) from copy_begin() to the end of the zone.
 * A repair takes each zone twice. First (TAIL) it copies what the tail has and the store may not
 * have, and drops the zone's pages from the tail. When no failed page is left there, others can
 * pass, and it copies the rest (REST).
 *
 * A compaction reads what it copies, and no more. Most records of its zone are dead, and the hints
 * say where each of them stands. So the end of the zone is read first. The user is asked which
 * records live, and the pages of these are read. A zone without hints that count is read as a
 * whole, and scanned.
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
 *   C6  A record that was dead when the pages were chosen is dead for good: nothing makes an index
 *       point to it again.
 *   C7  A record that is copied verifies, and is the one of its hint.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/alog/inside.h"

#define STEPS 64u				/* records a poll */
#define AHEAD 8u				/* hints of which the user is told soon */
#define GAP   3u				/* so few pages between two others are read with them */

static bool pick_can(const struct zone *z)
{
	return z->believed && z->nr_hints;
}

struct alog_hint pick_hint(const struct alog *l, uint32_t nr, uint32_t i)
{
	const uint8_t *at = l->scratch + alog_hints_at(l->cfg.zone_bytes, nr) + i * ALOG_HINT_BYTES;
	struct alog_hint hint;

	if (l->user.soon && i + AHEAD < nr)
		l->user.soon(l->user.ctx,
			(const uint64_t *)(const void *)(at + AHEAD * ALOG_HINT_BYTES));
	memcpy(&hint, at, sizeof(hint));
	return hint;
}

static struct alog_hint hint_at(const struct alog *l, uint32_t i)
{
	return pick_hint(l, l->copier.picked.nr, i);
}

static bool hint_is_ok(const struct alog *l, const struct alog_hint *hint)
{
	struct alog_footer f = { .end = l->copier.picked.end };

	return alog_hint_ok(hint, &f);
}

/* ---- the pages that a compaction reads ---- */

static bool has_page(const struct picked *p, uint32_t page)
{
	return p->pages[page / 64] >> page % 64 & 1;
}

static void add_page(struct picked *p, uint32_t page)
{
	p->pages[page / 64] |= 1ull << page % 64;
}

static uint32_t last_page(const struct alog_hint *hint)
{
	return (hint->place + hint->bytes - 1) / ALOG_PAGE;
}

static bool has_pages(const struct picked *p, const struct alog_hint *hint)
{
	for (uint32_t page = hint->place / ALOG_PAGE; page <= last_page(hint); page++)
		if (!has_page(p, page))
			return false;
	return true;
}

/* C2: how many of the hints from i on are of one batch. */
static uint32_t batch_of(const struct alog *l, uint32_t i)
{
	uint32_t nr = 1;

	while (l->copier.scan.chains && i + nr < l->copier.picked.nr &&
		hint_at(l, i + nr - 1).flags & ALOG_MORE)
		nr++;
	return nr;
}

static bool lives(const struct alog *l, const struct alog_hint *hint)
{
	return hint_is_ok(l, hint) &&
	       l->user.judge(l->user.ctx, l->copier.zone->id, hint, true) != ALOG_DEAD;
}

static void choose_pages(struct alog *l)
{
	struct picked *p = &l->copier.picked;
	struct alog_hint hint;

	for (uint32_t i = 0, nr; i < p->nr; i += nr) {
		bool any = false;

		nr = batch_of(l, i);
		for (uint32_t n = 0; n < nr && !any; n++) {
			hint = hint_at(l, i + n);
			any = lives(l, &hint);
		}
		for (uint32_t n = 0; n < nr && any; n++) {
			hint = hint_at(l, i + n);
			if (!hint_is_ok(l, &hint))
				continue;
			for (uint32_t page = hint.place / ALOG_PAGE; page <= last_page(&hint); page++)
				add_page(p, page);
		}
	}
}

static void fill_gaps(struct picked *p, uint32_t end)
{
	uint32_t behind = 0;			/* the last page that is read, and one */

	for (uint32_t page = 0; page < end; page++) {
		if (!has_page(p, page))
			continue;
		if (behind && page - behind <= GAP)
			for (; behind < page; behind++)
				add_page(p, behind);
		behind = page + 1;
	}
}

static bool pick_begin(struct alog *l, const struct zone *z)
{
	struct picked *p = &l->copier.picked;
	struct alog_footer f;

	*p = (struct picked){ .on = false };
	if (!scan_hints_ok(&l->cfg, z->id, l->scratch, &f) || f.nr != z->nr_hints || f.end != z->end)
		return false;
	p->on = true;
	p->nr = f.nr;
	p->end = f.end;
	choose_pages(l);
	fill_gaps(p, xrecord_round(z->end, ALOG_PAGE) / ALOG_PAGE);
	return true;
}

static bool pick_is_empty(const struct alog *l)
{
	const struct picked *p = &l->copier.picked;

	for (uint32_t i = 0; i < sizeof(p->pages) / sizeof(p->pages[0]); i++)
		if (p->pages[i])
			return false;
	return true;
}

/* ---- its records ---- */

/* C7 */
static bool is_whole(const struct alog *l, const struct alog_hint *hint, struct xrecord *rec)
{
	uint32_t bytes;

	return has_pages(&l->copier.picked, hint) &&
	       scan_is_whole(&l->copier.scan, hint->place, rec, &bytes) && bytes == hint->bytes &&
	       rec->sequence == hint->sequence && rec->identity[0] == hint->identity[0] &&
	       rec->identity[1] == hint->identity[1];
}

/* C6, C7 */
static bool is_good(struct alog *l, const struct alog_hint *hint, struct xrecord *rec,
	enum alog_verdict *verdict)
{
	if (!hint_is_ok(l, hint))
		return false;
	if (!has_pages(&l->copier.picked, hint))
		return true;
	*verdict = l->user.judge(l->user.ctx, l->copier.zone->id, hint, false);
	if (!l->copier.scan.chains && *verdict != ALOG_LIVE && *verdict != ALOG_EXPIRED)
		return true;
	return is_whole(l, hint, rec);
}

/* Behind a bad record the rest of its chain is bad (C2). */
static enum scan_found pick_next(struct alog *l, struct alog_hint *hint, struct xrecord *rec,
	enum alog_verdict *verdict)
{
	struct picked *p = &l->copier.picked;
	bool good;

	*verdict = ALOG_DEAD;
	*rec = (struct xrecord){ .type = ALOG_NOTHING };
	if (p->next == p->nr)
		return SCAN_END;
	*hint = hint_at(l, p->next++);
	good = is_good(l, hint, rec, verdict) &&
	       (!l->copier.scan.chains || p->in_chain || !(hint->flags & ALOG_CONTINUED));
	p->in_chain = good && hint->flags & ALOG_MORE;
	return good ? SCAN_RECORD : SCAN_BAD;
}

/* ---- reading ---- */

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

static enum scan_found scanned(struct alog *l, struct alog_hint *hint, struct xrecord *rec,
	enum alog_verdict *v)
{
	struct copier *c = &l->copier;
	uint32_t at, bytes;
	enum scan_found found = scan_next(&c->scan, rec, &at, &bytes);

	if (found == SCAN_END)
		return found;
	scan_hint(rec, at, bytes, hint);
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
		if (found == SCAN_BAD) {
			if (c->why == COPY_COMPACT && !c->scan.chains)
				damage(l, ALOG_BAD_RECORD, c->zone->id, hint.place, hint.bytes);
			p.bad = true;
			break;
		}
		take_record(l, &p, &rec, &hint, v);
	} while (goes_on(c, &hint) && p.nr < ALOG_BATCH_MAX);
	if (p.nr && (c->scan.at <= c->split || (p.bad && c->picked.on)))
		p.lives = false;		/* all of it is below: COPY_REST; or half of a chain */
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

static void end_zone(struct alog *l)
{
	struct zone *z = l->copier.zone;
	enum copy_why why = l->copier.why;

	if (why == COPY_REST && z->live) {	/* C5 */
		log_fail(l, -EIO);
		return;
	}
	if (why == COPY_COMPACT)		/* C3 */
		tell_gone(l);
	if (why == COPY_COMPACT && z->live) {
		l->user.lost(l->user.ctx, z->id);
		zone_dead(l, z, z->live);
	}
	tail_drop(l, z->id);
	write_advance(l);
	if (why != COPY_TAIL)
		grave_add(l, z);
	l->copier.state = COPY_NONE;
	l->copier.zone = NULL;
	l->job = JOB_NONE;
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
		if (c->why == COPY_COMPACT && !l->credit && c->zone->live && !c->zone->sick &&
			zones_free(l) > l->cfg.reserve + l->own.wanted)
			return i > 0;
		before = c->scan;
		next = c->picked.next;
		p = next_parcel(l);
		if (!p.nr && !p.bad) {
			end_zone(l);
			return true;
		}
		if (p.lives && !copy_parcel(l, &p)) {
			c->scan = before;
			c->picked.next = next;
			return i > 0;
		}
	}
	return true;
}
