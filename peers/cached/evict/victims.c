/* victims - evicts pages from buckets for others: which page is next, whether it may go, and which
 * pages are evicted ahead of need.
 *
 * A list of clean pages is in order of the last time when they became clean or were found
 * referenced. A hit only sets the slot's REF flag (second chance, as in CLOCK). share.h says which
 * list loses a page.
 *
 * Contract: any port's thread, inside an object or outside of any. An object is skipped while
 * another thread is inside it.
 */
#include "peers/cached/evict/evict.h"
#include "peers/cached/memory/limbo.h"
#include "xtypes/xkill.h"

#define EVICT_TRIES 64
#define AHEAD_BATCH 4

/* The next candidate, of this list or, if it is NULL, of whose turn it is, moved to the other end
 * so that others look elsewhere. */
static uint32_t next_victim(struct cached *k, struct xlist *list, const struct claim *cl)
{
	uint32_t page;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	if (!list)
		list = share_victims_locked(k, cl);
	page = list ? xlist_tail(list) : XLIST_NONE;
	if (page != XLIST_NONE)
		clean_turn_locked(k, list);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return page;
}

/* Inside the object: takes the page out of bucket b, for that volume, if it is there, may be
 * evicted, was not used again and is not spared. */
static bool evict_bucket(struct cport *ps, struct object *o, uint32_t b, uint32_t page,
	uint32_t rec, enum cache_counter why)
{
	uint64_t w = slot_get(ps->cache, o, b);

	if (!slot_is_evictable(w) || slot_page(w) != page ||
		share_spares(ps->cache, object_volume(o), rec))
		return false;
	if (slot_was_used(ps->cache, o, b, w))
		return false;
	bucket_leave(ps, o, b, w);
	count_evicted(ps, o, slot_is_refused(w) ? CC_EVICTED_UNPROMISED : why);
	return true;
}

static bool evict_page(
	struct cport *ps, uint32_t page, uint32_t rec, enum cache_counter why)
{
	uint32_t b;
	struct object *o = page_object(ps->cache, page, &b);
	bool done;

	if (!o)
		return false;
	if (o == object_port(ps)->inside)
		return evict_bucket(ps, o, b, page, rec, why);
	if (!xworkq_try_enter(&o->q))
		return false;
	done = evict_bucket(ps, o, b, page, rec, why);
	if (xworkq_leave(&o->q))
		object_ready(ps, o);
	return done;
}

/* A page out of its bucket; XPOOL_NONE: there is none. */
static uint32_t evict_one(
	struct cport *ps, struct xlist *list, const struct claim *cl, enum cache_counter why)
{
	for (unsigned i = 0; i < EVICT_TRIES; i++) {
		uint32_t page = next_victim(ps->cache, list, cl);

		if (page == XLIST_NONE)
			break;
		if (evict_page(ps, page, cl->rec, why)) {
			XKILL(EVICTED_SLOT);
			return page;
		}
	}
	return XPOOL_NONE;
}

/* One that may be used at once. Of those that may be on loan many go to limbo before a look: so
 * each costs little of that. */
static uint32_t take_clean(
	struct cport *ps, struct xlist *list, const struct claim *cl, enum cache_counter why)
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
			page = take_clean(ps, NULL, &any, CC_EVICTED_CLEAN);
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
		page = take_clean(ps, NULL, &any, CC_EVICTED_CLEAN);
		if (page == XPOOL_NONE)
			return;
		for (uint32_t at = 0; at < BUCKET_SIZE; at += 64)
			__builtin_prefetch((char *)xseg_page(peer_of(k)->seg, page) + at, 1);
		/* there may be no room: an eviction frees chunks, too, and their pages come here */
		magazine_put(ps, page);
	}
}

static uint32_t list_nr(struct cached *k, const struct xlist *list)
{
	uint32_t nr;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	nr = list->nr;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return nr;
}

/* A bucket that was used again goes at the second try. */
static uint32_t drop_list(struct cport *ps, struct xlist *list)
{
	const struct claim all = { .rec = FOR_NOBODY };
	uint32_t n = 0, misses = 0, page;

	while (misses < 1024 && list_nr(ps->cache, list)) {
		page = evict_one(ps, list, &all, CC_EVICTED_PRESSURE);
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

uint32_t pages_evict_own(struct cport *ps, uint32_t rec, uint32_t nr, enum cache_counter why)
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
		page = take_clean(ps, NULL, &any, CC_EVICTED_CLEAN);
	return page;
}

uint32_t pages_take(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl)
{
	uint32_t got = magazine_pop(ps, n, page);

	for (; got < n; got++) {
		page[got] = take_free(ps);
		if (page[got] == XPOOL_NONE)
			page[got] = take_clean(ps, NULL, cl, CC_EVICTED_CLEAN);
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
