/* pick - a compaction that reads what it copies, and no more.
 *
 * Most records of a zone that is compacted are dead. Its hints say where each of them stands. So
 * the end of the zone is read first. The user is asked which records live, and the pages of these
 * are read. A zone without hints that count is read as a whole, and scanned (copy.c).
 *
 * Contract: see inside.h; of the job that has the scratch.
 *
 * Invariants
 *   P1  A record that was dead when the pages were chosen is dead for good: nothing makes an index
 *       point to it again.
 *   P2  Of a zone that was not flushed, the pages of a batch are read if one of it lives (C2).
 *   P3  A record that is copied verifies, and is the one of its hint.
 */
#include <string.h>

#include "peers/alog/inside.h"

#define AHEAD 8u				/* hints of which the user is told soon */
#define GAP   3u				/* so few pages between two others are read, too */

bool pick_can(const struct zone *z)
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

/* ---- the pages ---- */

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

/* P2: how many of the hints from i on are of one batch. */
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
			for (uint32_t page = hint.place / ALOG_PAGE; page <= last_page(&hint);
				page++)
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

bool pick_begin(struct alog *l, const struct zone *z)
{
	struct picked *p = &l->copier.picked;
	struct alog_footer f;

	*p = (struct picked){ .on = false };
	if (!scan_hints_ok(&l->cfg, z->id, l->scratch, &f) || f.nr != z->nr_hints ||
		f.end != z->end)
		return false;
	p->on = true;
	p->nr = f.nr;
	p->end = f.end;
	choose_pages(l);
	fill_gaps(p, xrecord_round(z->end, ALOG_PAGE) / ALOG_PAGE);
	return true;
}

bool pick_is_empty(const struct alog *l)
{
	const struct picked *p = &l->copier.picked;

	for (uint32_t i = 0; i < sizeof(p->pages) / sizeof(p->pages[0]); i++)
		if (p->pages[i])
			return false;
	return true;
}

/* ---- the records ---- */

/* P3 */
static bool is_whole(const struct alog *l, const struct alog_hint *hint, struct xrecord *rec)
{
	uint32_t bytes;

	return has_pages(&l->copier.picked, hint) &&
	       scan_is_whole(&l->copier.scan, hint->place, rec, &bytes) && bytes == hint->bytes &&
	       rec->sequence == hint->sequence && rec->identity[0] == hint->identity[0] &&
	       rec->identity[1] == hint->identity[1];
}

/* P1, P3 */
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
enum scan_found pick_next(struct alog *l, struct alog_hint *hint, struct xrecord *rec,
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
