/* victims - takes pages for others: free ones first, then those of victims (order.h); and pages
 * that are evicted ahead of need.
 *
 * Contract: any port's thread, inside an object or outside of any. An object is skipped while
 * another thread is inside it.
 */
#include "peers/cached/evict/evict.h"
#include "peers/cached/memory/limbo.h"
#include "xtypes/xkill.h"

#define EVICT_TRIES 64
#define AHEAD_BATCH 4

/* Inside the object: the page leaves bucket b, if it is there and may go for that volume. Returns
 * the page; NO_PAGE: it stays. */
static uint32_t evict_bucket(struct cport *ps, struct object *o, uint32_t b, uint32_t page,
	uint32_t rec, enum evict_reason why)
{
	uint64_t w = slot_get(ps->cache, o, b);

	if (!slot_has_page(w) || slot_page(w) != page ||
		order_verdict(ps, o, b, w, rec) != VERDICT_GOES)
		return NO_PAGE;
	return evict_step(ps, o, b, w, why);
}

static uint32_t evict_page(struct cport *ps, uint32_t page, uint32_t rec, enum evict_reason why)
{
	uint32_t b;
	struct object *o = page_object(ps->cache, page, &b);

	if (!o)
		return NO_PAGE;
	if (o == object_port(ps)->inside)
		return evict_bucket(ps, o, b, page, rec, why);
	if (!xworkq_try_enter(&o->q))
		return NO_PAGE;
	page = evict_bucket(ps, o, b, page, rec, why);
	if (xworkq_leave(&o->q))
		object_ready(ps, o);
	return page;
}

/* A page out of its bucket; XPOOL_NONE: there is none. */
static uint32_t evict_one(
	struct cport *ps, struct clean_list *list, const struct claim *cl, enum evict_reason why)
{
	_Static_assert(NO_PAGE == XPOOL_NONE, "no page is no page");

	for (unsigned i = 0; i < EVICT_TRIES; i++) {
		uint32_t page = order_next_page(ps->cache, list, cl);

		if (page == XLIST_NONE)
			break;
		page = evict_page(ps, page, cl->rec, why);
		if (page != NO_PAGE) {
			XKILL(EVICTED_SLOT);
			return page;
		}
	}
	return XPOOL_NONE;
}

/* One that may be used at once. Of those that may be on loan many go to limbo before a look: so
 * each costs little of that. */
static uint32_t take_clean(
	struct cport *ps, struct clean_list *list, const struct claim *cl, enum evict_reason why)
{
	struct cached *k = ps->cache;
	uint32_t page = XPOOL_NONE;

	for (unsigned i = 0; i < EVICT_TRIES; i++) {
		page = evict_one(ps, list, cl, why);
		if (page == XPOOL_NONE)
			break;
		if (!limbo_holds(xseg_page_owner(peer_of(k)->seg, page))) {
			xseg_page_owner_set(peer_of(k)->seg, page, 0);
			return page;
		}
		limbo_put(ps, page);
	}
	return limbo_look(ps) ? take_free(ps) : XPOOL_NONE;
}

void reserve_fill(struct cport *ps)
{
	const struct claim any = { .rec = OTHERS };
	struct cached *k = ps->cache;
	uint32_t page;

	if (atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed))
		reserve_sweep(k);
	for (unsigned n = 0; n < RESERVE_PAGES && reserve_nr(k) < memory_of(k)->reserve.size; n++) {
		page = take_free(ps);
		if (page == XPOOL_NONE && pages_available(k))
			page = take_clean(ps, NULL, &any, EVICT_WANTED);
		if (page == XPOOL_NONE)
			return;
		reserve_put(k, page);
		memory_port(ps)->freed |= !xwaitq_empty(&memory_of(k)->want_urgent);
	}
}

/* A port keeps some pages ahead of need: free ones, if it writes; where there are none some are
 * evicted, and their cold memory is fetched, while nobody waits for that. Some at a time, as
 * requests may be waiting in the lanes. */
void pages_ahead(struct cport *ps, bool writes)
{
	const struct claim any = { .rec = OTHERS };
	struct cached *k = ps->cache;
	uint32_t page;

	if (memory_port(ps)->nr_magazine >= MAGAZINE / 2 || !use_magazine(k) || pages_wanted(k))
		return;
	if (atomic_load_explicit(&memory_of(k)->nr_free, memory_order_relaxed)) {
		if (writes)
			magazine_fill(ps);
		return;
	}
	if (atomic_load_explicit(&memory_of(k)->nr_clean, memory_order_relaxed) < MAGAZINE)
		return;
	for (unsigned n = 0; n < AHEAD_BATCH; n++) {
		page = take_clean(ps, NULL, &any, EVICT_WANTED);
		if (page == XPOOL_NONE)
			return;
		for (uint32_t at = 0; at < BUCKET_SIZE; at += 64)
			__builtin_prefetch((char *)xseg_page(peer_of(k)->seg, page) + at, 1);
		/* there may be no room: an eviction frees chunks, too, and their pages come here */
		magazine_put(ps, page);
	}
}

static uint32_t list_nr(struct cached *k, const struct clean_list *list)
{
	uint32_t nr;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	nr = clean_nr(list);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return nr;
}

/* A bucket that was used again goes at the second try. */
static uint32_t drop_list(struct cport *ps, struct clean_list *list)
{
	const struct claim all = { .rec = FOR_NOBODY };
	uint32_t n = 0, misses = 0, page;

	while (misses < 1024 && list_nr(ps->cache, list)) {
		page = evict_one(ps, list, &all, EVICT_PRESSURE);
		if (page == XPOOL_NONE) {
			misses++;
			continue;
		}
		misses = 0;
		page_put(ps, page);
		n++;
	}
	return n;
}

/* Evicts whatever may be. */
uint32_t pages_drop(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t n = drop_list(ps, &memory_of(k)->clean) + drop_list(ps, &memory_of(k)->leaving);

	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++)
		n += drop_list(ps, &volume_of(k)->states[r].share.clean);
	zeroes_drop(ps);
	return n;
}

uint32_t pages_evict_own(struct cport *ps, uint32_t rec, uint32_t nr, enum evict_reason why)
{
	const struct claim own = { .rec = rec };
	uint32_t n = 0, page;

	for (; n < nr && (page = evict_one(ps, &volume_of(ps->cache)->states[rec].share.clean, &own,
				  why)) != XPOOL_NONE;
		n++)
		page_put(ps, page);
	return n;
}

uint32_t page_get(struct cport *ps, bool evict, bool pass)
{
	const struct claim any = { .rec = OTHERS };
	uint32_t page;

	if (!pass && pages_wanted(ps->cache))
		return XPOOL_NONE;
	page = take_free(ps);
	if (page == XPOOL_NONE && evict)
		page = take_clean(ps, NULL, &any, EVICT_WANTED);
	return page;
}

uint32_t pages_take(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl)
{
	uint32_t got = magazine_pop(ps, n, page);

	for (; got < n; got++) {
		page[got] = take_free(ps);
		if (page[got] == XPOOL_NONE)
			page[got] = take_clean(ps, NULL, cl, EVICT_WANTED);
		if (page[got] == XPOOL_NONE && cl->turn == TURN_URGENT)
			page[got] = reserve_take(ps->cache);
		if (page[got] == XPOOL_NONE)
			break;
	}
	return got;
}

/* A free chunk, of a page that is cut for it if need be; NO_CHUNK: there is no page either. */
uint32_t chunk_get(struct cport *ps)
{
	uint32_t chunk = chunk_try(ps), page;

	if (chunk != NO_CHUNK)
		return chunk;
	page = page_get(ps, true, false);
	if (page == XPOOL_NONE)
		return NO_CHUNK;
	chunk_feed(ps, page);
	return chunk_try(ps);
}
