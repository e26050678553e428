/* tail - the ring of pages in the arena that holds the end of the log.
 *
 * Contract: see inside.h.
 *
 * A slot is filled in this order: it gets its zone and page, the record is copied, and `end` moves
 * past it. A kill between any two of these leaves `end` in front of what is not whole. Slots are
 * given back by one store of `first`.
 *
 * Invariants
 *   T1  Below `end` all is appended; behind it nothing counts (the successor zeroes the rest of the
 *       last page).
 *   T2  A page stays in the ring until it is written, and until all pages are written that a record
 *       reaches that began in it. So what has to be appended anew is whole in the ring.
 *   T3  Callers and copies fill less than half of the ring. The rest is for a repair's copies of
 *       what the ring holds. They may take some pages more than the originals, and fail again. So
 *       a page is dropped as soon as all that it has is copied, from the first doubtful one on.
 *       A repair's other copies fill no more than callers do.
 *   T4  A page that was not written when a reading of its zone began stays until the reading ends:
 *       the store may have answered with what was there before.
 *   T5  A slot with `lent` has its content in a page of the user, until all of its append is
 *       written. Then the slot is given up before the user hears of it; or the content is copied
 *       into the ring, if T4 wants it. A successor believes no lent page: it puts a filler in place
 *       of the record, and the zone's hints do not count (marks.c; then H5 of head.c).
 *   T6  Bytes of a page behind its `fill` mean nothing. They are zeroed before the page is sent,
 *       and before the open zone is closed in it: so a successor, which knows `end` alone, finds no
 *       old bytes in a page before the last.
 *   T7  While a repair drops pages no slot is lent: its content is copied into the ring before.
 *       Else a kill could undo a lent record, when the record that it supersedes is dropped
 *       already.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/alog/inside.h"

struct alog_slot *tail_slot(const struct alog *l, uint64_t k)
{
	return &l->arena->slot[k % l->cfg.tail_pages];
}

struct page_state *tail_state(const struct alog *l, uint64_t k)
{
	return &l->s.page[k % l->cfg.tail_pages];
}

uint8_t *tail_page(const struct alog *l, uint64_t k)
{
	return l->s.tail + k % l->cfg.tail_pages * ALOG_PAGE;
}

const uint8_t *tail_content(const struct alog *l, uint64_t k)
{
	const struct alog_slot *slot = tail_slot(l, k);

	return slot->lent ? l->user.at(l->user.ctx, slot->lent - 1) : tail_page(l, k);
}

uint64_t tail_first(const struct alog *l)
{
	return atomic_load_explicit(&l->arena->first, memory_order_relaxed);
}

/* All that was appended to the page so far. */
static bool is_below(const struct page_state *s)
{
	return !s->failed && s->fill && s->acked == s->fill;
}

/* T2: the first page that has to stay. */
static uint64_t needed_from(const struct alog *l)
{
	uint64_t page = l->s.written / ALOG_PAGE;

	if (page >= l->s.next_page || is_below(tail_state(l, page)))
		return page;
	return (page * ALOG_PAGE - tail_slot(l, page)->back) / ALOG_PAGE;
}

/* T4: from which page on the zone is in the ring alone. UINT64_MAX: it is below. */
uint64_t tail_pin(const struct alog *l, uint64_t zone)
{
	uint64_t k = needed_from(l) > tail_first(l) ? needed_from(l) : tail_first(l);

	for (; k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == zone)
			return k;
	return UINT64_MAX;
}

bool tail_room(struct alog *l, uint32_t pages, enum tail_use use)
{
	uint32_t all = l->cfg.tail_pages, limit = use == TAIL_REPAIR ? all : all / 2 - all / 16;
	uint64_t first = tail_first(l), needed = needed_from(l);

	if (l->reader.active && needed > l->reader.pin)
		needed = l->reader.pin;

	while (first < needed &&
		(use == TAIL_REPAIR || l->s.next_page + pages - first > limit))
		first++;
	/* relaxed: a successor is told by the kernel that this process is gone */
	atomic_store_explicit(&l->arena->first, first, memory_order_relaxed);
	return l->s.next_page + pages - first <= limit;
}

/* The next page of the stream, for that page of the zone. `begun`: where the append that it is
 * opened for began. */
void tail_open_page(struct alog *l, uint64_t zone, uint32_t page, uint64_t begun)
{
	uint64_t k = l->s.next_page;
	struct alog_slot *slot = tail_slot(l, k);

	assert(k - tail_first(l) < l->cfg.tail_pages);
	slot->zone = zone;
	slot->page = page;
	slot->lent = 0;
	slot->back = begun < k * ALOG_PAGE ? (uint32_t)(k * ALOG_PAGE - begun) : 0;
	*tail_state(l, k) = (struct page_state){ 0 };
	l->s.next_page = k + 1;
}

/* What lies between the bytes that were put (T6). */
static void zero_up_to(const struct alog *l, uint64_t k, uint32_t at)
{
	uint32_t fill = tail_state(l, k)->fill;

	if (fill < at)
		memset(tail_page(l, k) + fill, 0, at - fill);
}

void tail_zero_rest(const struct alog *l, uint64_t k)
{
	if (!tail_slot(l, k)->lent)
		zero_up_to(l, k, ALOG_PAGE);
}

/* Fills bytes at *pos, which is place zone_at of the open zone, up to the end of the page, and
 * moves *pos. The page is opened if it is reached. Returns how many, and where they stand. Nothing
 * counts before tail_publish(). */
static uint32_t fill_part(struct alog *l, uint64_t *pos, uint32_t zone_at, uint32_t bytes,
	uint64_t begun, uint8_t **at)
{
	uint64_t k = *pos / ALOG_PAGE;
	uint32_t from = zone_at % ALOG_PAGE,
		 part = bytes < ALOG_PAGE - from ? bytes : ALOG_PAGE - from;

	if (k == l->s.next_page)
		tail_open_page(l, l->z.open->id, zone_at / ALOG_PAGE, begun);
	zero_up_to(l, k, from);
	tail_state(l, k)->fill = (uint16_t)(from + part);
	*at = tail_page(l, k) + from;
	*pos += part;
	return part;
}

/* `from` NULL: zeroes. */
void tail_put(struct alog *l, uint64_t *pos, uint32_t zone_at, const void *from, uint32_t bytes,
	uint64_t begun)
{
	const uint8_t *data = from;
	uint32_t part;
	uint8_t *at;

	for (; bytes; bytes -= part, zone_at += part) {
		part = fill_part(l, pos, zone_at, bytes, begun, &at);
		if (data) {
			memcpy(at, data, part);
			data += part;
		} else {
			memset(at, 0, part);
		}
	}
}

/* The bytes are there already (alog_lay()). */
void tail_skip(struct alog *l, uint64_t *pos, uint32_t zone_at, uint32_t bytes, uint64_t begun)
{
	uint32_t part;
	uint8_t *at;

	for (; bytes; bytes -= part, zone_at += part)
		part = fill_part(l, pos, zone_at, bytes, begun, &at);
}

/* release: a slot with a zone and without `lent` has its content in the ring; the partner is the
 * kernel, from which a successor learns of the death. */
static void give_up(struct alog_slot *slot)
{
	slot->zone = 0;
	atomic_thread_fence(memory_order_release);
	slot->lent = 0;
}

static void keep_content(struct alog *l, uint64_t k)
{
	memcpy(tail_page(l, k), tail_content(l, k), ALOG_PAGE);
	atomic_thread_fence(memory_order_release);	/* as in give_up() */
	tail_slot(l, k)->lent = 0;
}

/* A page of the user is the next page of the stream. */
void tail_lend(struct alog *l, uint64_t *pos, uint32_t zone_at, uint32_t page, uint64_t begun)
{
	uint64_t k = l->s.next_page;

	assert(*pos == k * ALOG_PAGE && zone_at % ALOG_PAGE == 0);
	tail_open_page(l, l->z.open->id, zone_at / ALOG_PAGE, begun);
	tail_slot(l, k)->lent = page + 1;
	tail_state(l, k)->fill = ALOG_PAGE;
	*pos += ALOG_PAGE;
	if (l->repair.state >= REPAIR_TAIL)
		keep_content(l, k);		/* T7 */
}

/* T7 */
void tail_keep(struct alog *l)
{
	for (uint64_t k = l->s.lent_from; k < l->s.next_page; k++)
		if (tail_slot(l, k)->lent)
			keep_content(l, k);
	l->s.lent_from = l->s.next_page;
}

/* T5 */
void tail_release(struct alog *l)
{
	uint64_t k = l->s.lent_from, needed = needed_from(l);

	for (; k < needed && k < l->s.next_page; k++) {
		struct alog_slot *slot = tail_slot(l, k);

		if (!slot->lent)
			continue;
		if (l->reader.active && slot->zone == l->reader.zone && k >= l->reader.pin)
			keep_content(l, k);
		else
			give_up(slot);
	}
	l->s.lent_from = k;
}

/* T1. release: the copied bytes and the slots are in memory before; the partner is the kernel, from
 * which a successor learns of the death. */
void tail_publish(struct alog *l, uint64_t end)
{
	assert(end >= l->s.end);
	atomic_store_explicit(&l->arena->end, end, memory_order_release);
	l->s.end = end;
}

static void overlay_page(const struct alog *l, uint64_t k, uint8_t *to)
{
	uint32_t fill = tail_state(l, k)->fill;

	memcpy(to, tail_content(l, k), fill);
	memset(to + fill, 0, ALOG_PAGE - fill);		/* T6 */
}

/* Lays what the ring has of the zone over its image. */
void tail_overlay(const struct alog *l, uint64_t zone, uint8_t *image)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == zone && (!tail_slot(l, k)->lent || serves(l)))
			overlay_page(l, k, image + (size_t)tail_slot(l, k)->page * ALOG_PAGE);
}

void tail_drop(struct alog *l, uint64_t zone)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == zone) {
			give_up(tail_slot(l, k));
			tail_state(l, k)->failed = false;
		}
}

/* The same, of pages that lie before that place. The page of the place keeps no other (T2). */
void tail_drop_before(struct alog *l, uint64_t zone, uint32_t place)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++) {
		struct alog_slot *slot = tail_slot(l, k);

		if (slot->zone != zone || slot->page > place / ALOG_PAGE)
			continue;
		if (slot->page == place / ALOG_PAGE) {
			slot->back = 0;
			continue;
		}
		give_up(slot);
		tail_state(l, k)->failed = false;
	}
}

/* The zone of the first page that is not written. 0: all are, or it is the one that may grow. */
uint64_t tail_front(const struct alog *l)
{
	uint64_t k = l->s.written / ALOG_PAGE;

	if (k + (l->z.open ? 1 : 0) >= l->s.next_page)
		return 0;
	return tail_slot(l, k)->zone;
}

/* From which place on the records of a zone may be in the ring only. */
uint32_t tail_kept_from(const struct alog *l, const struct zone *z)
{
	uint64_t k = tail_pin(l, z->id);

	return k == UINT64_MAX ? l->cfg.zone_bytes : tail_slot(l, k)->page * ALOG_PAGE;
}

/* UINT64_MAX: the ring has no zone's pages. */
uint64_t tail_lowest_zone(const struct alog *l)
{
	uint64_t low = UINT64_MAX;

	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone && tail_slot(l, k)->zone < low)
			low = tail_slot(l, k)->zone;
	return low;
}

/* ---- a predecessor's ring ---- */

static bool is_own(const struct alog *l, uint64_t k, uint64_t zone)
{
	return k >= tail_first(l) && tail_slot(l, k)->zone == zone && !tail_slot(l, k)->lent;
}

/* The header at this position. False: it is not in the ring's own pages. */
static bool copy_header(
	struct alog *l, uint64_t zone, uint64_t pos, struct xrecord_header *h, bool in)
{
	uint8_t *bytes = (uint8_t *)h, *at;
	uint32_t part, left = sizeof(*h);

	for (; left; left -= part, pos += part, bytes += part) {
		if (!is_own(l, pos / ALOG_PAGE, zone))
			return false;
		part = ALOG_PAGE - pos % ALOG_PAGE;
		if (part > left)
			part = left;
		at = tail_page(l, pos / ALOG_PAGE) + pos % ALOG_PAGE;
		memcpy(in ? at : bytes, in ? bytes : at, part);
	}
	return true;
}

/* T5. Of which epoch the record is, its header says by verifying. If the predecessor was killed in
 * here, the header may not verify: then the place is a hole, which a scan passes as well. */
static void put_filler(struct alog *l, uint64_t zone, uint64_t pos)
{
	struct xrecord rec;
	struct xrecord_header h;
	uint64_t e = l->head.epoch;
	uint32_t place, seed;

	if (!copy_header(l, zone, pos, &h, false))
		return;
	place = tail_slot(l, pos / ALOG_PAGE)->page * ALOG_PAGE + pos % ALOG_PAGE;
	for (int tries = 0; tries < 4 && e; tries++, e--) {
		seed = xrecord_seed(l->cfg.uuid, zone, e);
		if (!xrecord_decode(&h, seed, place, l->cfg.zone_bytes - place, &rec) ||
			!(rec.flags & ALOG_PAGED))
			continue;
		rec.type = ALOG_FILLER;
		xrecord_encode(&rec, seed, place, &h);
		copy_header(l, zone, pos, &h, true);
		return;
	}
}

/* T5, from the last page to the first: as long as one of a record is lent, its header is found. */
static void fill_lent(struct alog *l, uint64_t first, uint64_t last)
{
	for (uint64_t k = last; k-- > first;) {
		struct alog_slot *slot = tail_slot(l, k);

		if (!slot->lent)
			continue;
		if (slot->zone) {
			filled_note(l, slot->zone);
			put_filler(l, slot->zone, k * ALOG_PAGE - slot->back);
		}
		give_up(slot);
	}
	l->s.lent_from = last;
}

/* All of its pages are to be written (again). -EPROTO: its words cannot be. */
int tail_recover(struct alog *l)
{
	uint64_t first = tail_first(l), end, last;

	end = atomic_load_explicit(&l->arena->end, memory_order_acquire);
	last = (end + ALOG_PAGE - 1) / ALOG_PAGE;
	if (end > UINT64_MAX / 2 || last < first || last - first > l->cfg.tail_pages)
		return -EPROTO;
	for (uint64_t k = first; k < last; k++) {
		struct alog_slot *slot = tail_slot(l, k);

		if (slot->page >= zone_pages(l) || slot->back > k * ALOG_PAGE ||
			(slot->zone && (slot->zone < l->head.lowest ||
					       slot->zone >= l->head.next_id)))
			return -EPROTO;
		*tail_state(l, k) = (struct page_state){ .fill = ALOG_PAGE, .fresh = true };
	}
	fill_lent(l, first, last);
	for (uint64_t k = first; k < last; k++) {
		struct alog_slot *slot = tail_slot(l, k);

		if (slot->back > (k - first) * ALOG_PAGE)
			slot->back = (uint32_t)((k - first) * ALOG_PAGE);
	}
	if (end % ALOG_PAGE) {
		memset(tail_page(l, last - 1) + end % ALOG_PAGE, 0, ALOG_PAGE - end % ALOG_PAGE);
		end = last * ALOG_PAGE;
	}
	l->s.next_page = last;
	l->s.recovered = end;
	l->s.written = first * ALOG_PAGE;
	l->s.stable = atomic_load_explicit(&l->arena->stable, memory_order_relaxed);
	if (l->s.stable > end)
		return -EPROTO;
	l->s.send_from = first;
	tail_publish(l, end);
	return 0;
}
