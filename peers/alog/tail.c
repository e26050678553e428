/* tail - the ring of pages in the arena that holds the end of the log.
 *
 * Contract: see inside.h.
 *
 * A slot is filled in this order: the page is zeroed, the slot gets its zone and page, the record
 * is copied, and `end` moves past it. A kill between any two of these leaves `end` in front of what
 * is not whole. Slots are given back by one store of `first`.
 *
 * Invariants
 *   T1  Below `end` all is appended; behind it nothing counts (the successor zeroes the rest of the
 *       last page).
 *   T2  A page stays in the ring until it is written, and until all pages are written that a record
 *       reaches that began in it. So what has to be appended anew is whole in the ring.
 *   T3  Callers and copies fill half of the ring. The other half is for a repair, whose copies of
 *       the first half fit.
 *   T4  A page that was not written when a reading of its zone began stays until the reading ends:
 *       the store may have answered with what was there before.
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

uint64_t tail_first(const struct alog *l)
{
	return atomic_load_explicit(&l->arena->first, memory_order_relaxed);
}

/* T2: the first page that has to stay. */
static uint64_t needed_from(const struct alog *l)
{
	uint64_t page = l->s.written / ALOG_PAGE;

	if (page >= l->s.next_page)
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
	uint32_t limit = use == TAIL_REPAIR ? l->cfg.tail_pages : l->cfg.tail_pages / 2;
	uint64_t first = tail_first(l), needed = needed_from(l);

	if (l->reader.active && needed > l->reader.pin)
		needed = l->reader.pin;

	while (l->s.next_page + pages - first > limit && first < needed)
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
	memset(tail_page(l, k), 0, ALOG_PAGE);
	slot->zone = zone;
	slot->page = page;
	slot->back = begun < k * ALOG_PAGE ? (uint32_t)(k * ALOG_PAGE - begun) : 0;
	*tail_state(l, k) = (struct page_state){ 0 };
	l->s.next_page = k + 1;
}

/* Copies bytes to *pos, which is place zone_at of the open zone, and moves *pos. Pages are opened
 * as they are reached. Nothing counts before tail_publish(). */
void tail_put(struct alog *l, uint64_t *pos, uint32_t zone_at, const void *from, uint32_t bytes,
	uint64_t begun)
{
	const uint8_t *data = from;
	uint32_t part;
	uint64_t k;

	for (; bytes; bytes -= part, zone_at += part, *pos += part) {
		k = *pos / ALOG_PAGE;
		if (k == l->s.next_page)
			tail_open_page(l, l->z.open->id, zone_at / ALOG_PAGE, begun);
		part = ALOG_PAGE - zone_at % ALOG_PAGE;
		if (part > bytes)
			part = bytes;
		if (data) {
			memcpy(tail_page(l, k) + zone_at % ALOG_PAGE, data, part);
			data += part;
		}
		tail_state(l, k)->fill = (uint16_t)(zone_at % ALOG_PAGE + part);
	}
}

/* T1. release: the copied bytes and the slots are in memory before; the partner is the kernel, from
 * which a successor learns of the death. */
void tail_publish(struct alog *l, uint64_t end)
{
	assert(end >= l->s.end);
	atomic_store_explicit(&l->arena->end, end, memory_order_release);
	l->s.end = end;
}

/* Lays what the ring has of the zone over its image. */
void tail_overlay(const struct alog *l, uint64_t zone, uint8_t *image)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == zone)
			memcpy(image + (size_t)tail_slot(l, k)->page * ALOG_PAGE, tail_page(l, k),
				ALOG_PAGE);
}

void tail_drop(struct alog *l, uint64_t zone)
{
	for (uint64_t k = tail_first(l); k < l->s.next_page; k++)
		if (tail_slot(l, k)->zone == zone) {
			tail_slot(l, k)->zone = 0;
			tail_state(l, k)->failed = false;
		}
}

/* From which place on the records of a zone may be in the ring only. */
uint32_t tail_kept_from(const struct alog *l, const struct zone *z)
{
	uint64_t page = l->s.written / ALOG_PAGE, from;

	if (z->old || page < z->base)
		return 0;
	from = page < l->s.next_page ? page * ALOG_PAGE - tail_slot(l, page)->back
				     : page * ALOG_PAGE;
	if (from < z->base * ALOG_PAGE)
		return 0;
	from -= z->base * ALOG_PAGE;
	return from < l->cfg.zone_bytes ? (uint32_t)from : l->cfg.zone_bytes;
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

/* A predecessor's ring: all of its pages are to be written (again). -EPROTO: its words cannot
 * be. */
int tail_recover(struct alog *l)
{
	uint64_t first = tail_first(l), end, last;

	end = atomic_load_explicit(&l->arena->end, memory_order_acquire);
	last = (end + ALOG_PAGE - 1) / ALOG_PAGE;
	if (end > UINT64_MAX / 2 || last < first || last - first > l->cfg.tail_pages)
		return -EPROTO;
	for (uint64_t k = first; k < last; k++) {
		struct alog_slot *slot = tail_slot(l, k);

		if (slot->page >= zone_pages(l) || slot->back > k * ALOG_PAGE)
			return -EPROTO;
		*tail_state(l, k) = (struct page_state){ .fill = ALOG_PAGE };
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
