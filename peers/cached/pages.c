/* pages - the cache's pages: free ones, clean ones that may be evicted, and who waits for one.
 *
 * A page of the cache is free (in the pool or a port's magazine), in a slot, a new page held by a write, or an old one
 * listed by a flush in flight. The list of clean pages is in order of the last time they became clean
 * or were found referenced; a hit only sets the slot's REF flag (second chance, as in CLOCK).
 * A page of an extent that leaves the cache (resize.c) is never handed out: where it would be free it is *out*.
 *
 * Contract: any port's thread. mem_lock is a leaf, held for a few words' work.
 *
 * Invariants:
 *   G1  a page is in the clean list, or in the list `leaving` if its extent leaves, iff its bucket is VALID, except within one job
 *   G2  whoever waits for pages holds none; those who wait are served in order, newcomers behind them
 */
#include <assert.h>

#include "peers/cached/cached.h"

#define EVICT_TRIES 64
#define AHEAD_BATCH 4

/* ---- under mem_lock ---- */

void pages_count(struct cached *k)
{
	atomic_store_explicit(&k->nr_clean, k->clean.nr, memory_order_relaxed);
	atomic_store_explicit(&k->nr_free, xpool_nr(&k->free_pages) - k->leaving_free, memory_order_relaxed);
}

static struct xlist *clean_list(struct cached *k, uint32_t page)
{
	return page_leaves(k, page) ? &k->leaving : &k->clean;
}

void pool_put(struct cached *k, uint32_t page)
{
	struct extent *e = page_extent(k, page);

	if (page_leaves(k, page)) {
		xseg_page_owner_set(k->peer.seg, page, OWNER_OUT);
		e->nr_out++;
		k->nr_out++;
		return;
	}
	xpool_put(&k->free_pages, page);
	e->nr_free++;
}

static uint32_t pool_get(struct cached *k)
{
	uint32_t page;

	while ((page = xpool_get(&k->free_pages)) != XPOOL_NONE) {
		page_extent(k, page)->nr_free--;
		if (!page_leaves(k, page))
			break;
		k->leaving_free--;
		pool_put(k, page);
	}
	return page;
}

/* Of `nr` pages of the pool, from *at on, those that leave go out. */
void pool_sweep(struct cached *k, uint32_t *at, uint32_t nr)
{
	for (; nr && k->leaving_free; nr--) {
		uint32_t page;

		if (*at >= xpool_nr(&k->free_pages))
			*at = 0;
		page = xpool_at(&k->free_pages, *at);
		if (!page_leaves(k, page)) {
			++*at;
			continue;
		}
		xpool_take_at(&k->free_pages, *at);
		page_extent(k, page)->nr_free--;
		k->leaving_free--;
		pool_put(k, page);
	}
}

/* ---- clean and free pages ---- */

uint32_t pages_available(struct cached *k)
{
	return atomic_load_explicit(&k->nr_clean, memory_order_relaxed) +
	       atomic_load_explicit(&k->nr_free, memory_order_relaxed);
}

void page_clean(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	pthread_mutex_lock(&k->mem_lock);
	xlist_push_head(clean_list(k, page), page);
	pages_count(k);
	pthread_mutex_unlock(&k->mem_lock);
	ps->freed = true;
}

void page_unclean(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	pthread_mutex_lock(&k->mem_lock);
	xlist_remove(clean_list(k, page), page);
	pages_count(k);
	pthread_mutex_unlock(&k->mem_lock);
}

/* Not while pages are to leave: nobody would find them there. */
static bool use_magazine(struct cached *k)
{
	return atomic_load_explicit(&k->nr_pages, memory_order_relaxed) - k->withheld >= 8 * MAGAZINE * PEER_MAX_THREADS &&
	       atomic_load_explicit(&k->nr_leaving, memory_order_relaxed) == 0;
}

void page_free(struct cached *k, uint32_t page)
{
	xseg_page_owner_set(k->peer.seg, page, 0);
	pthread_mutex_lock(&k->mem_lock);
	pool_put(k, page);
	pages_count(k);
	pthread_mutex_unlock(&k->mem_lock);
}

void magazine_empty(struct cport *ps)
{
	while (ps->nr_magazine)
		page_free(ps->cache, ps->magazine[--ps->nr_magazine]);
}

void page_put(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	ps->freed = true;
	if (ps->nr_magazine == MAGAZINE || !use_magazine(k) || !xwaitq_empty(&k->want_pages)) {
		page_free(k, page);
		return;
	}
	xseg_page_owner_set(k->peer.seg, page, 0);
	ps->magazine[ps->nr_magazine++] = page;
}

static uint32_t take_free(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t page;

	if (ps->nr_magazine)
		return ps->magazine[--ps->nr_magazine];
	pthread_mutex_lock(&k->mem_lock);
	page = pool_get(k);
	pages_count(k);
	pthread_mutex_unlock(&k->mem_lock);
	return page;
}

/* The next candidate, moved to the other end so that others look elsewhere. */
static uint32_t next_victim(struct cached *k, struct xlist *list)
{
	uint32_t page;

	pthread_mutex_lock(&k->mem_lock);
	page = xlist_tail(list);
	if (page != XLIST_NONE)
		xlist_move_head(list, page);
	pthread_mutex_unlock(&k->mem_lock);
	return page;
}

/* Inside the object: takes the page out of bucket b, if it is there, clean and was not used again. */
static bool evict_bucket(struct cport *ps, struct object *o, uint32_t b, uint32_t page)
{
	uint64_t w = slot_get(ps->cache, o, b);

	if (slot_state(w) != BUCKET_VALID || slot_page(w) != page)
		return false;
	if (w & SLOT_REF) {
		slot_clear_flag(ps->cache, o, b, SLOT_REF);
		return false;
	}
	page_unclean(ps, page);
	bucket_set(ps, o, b, slot_word(BUCKET_INVALID, 0, 0));
	volume_add(volume_block(ps, o->volume), VC_EVICTED, 1);
	return true;
}

struct object *page_object(struct cached *k, uint32_t page, uint32_t *b)
{
	uint64_t owner = xseg_page_owner(k->peer.seg, page);
	uint32_t entry = (uint32_t)(owner >> 16) - 1;

	*b = owner & 0xffff;
	return owner && entry < nr_entries(k) && *b < OBJECT_BUCKETS ? &k->objects[entry] : NULL;
}

static bool evict_page(struct cport *ps, uint32_t page)
{
	uint32_t b;
	struct object *o = page_object(ps->cache, page, &b);
	bool done;

	if (!o)
		return false;
	if (o == ps->inside)
		return evict_bucket(ps, o, b, page);
	if (!xworkq_try_enter(&o->q))
		return false;
	done = evict_bucket(ps, o, b, page);
	if (xworkq_leave(&o->q))
		object_ready(ps, o);
	return done;
}

static uint32_t take_clean(struct cport *ps, struct xlist *list, enum cache_counter why)
{
	for (unsigned i = 0; i < EVICT_TRIES; i++) {
		uint32_t page = next_victim(ps->cache, list);

		if (page == XLIST_NONE)
			break;
		if (evict_page(ps, page)) {
			xseg_page_owner_set(ps->cache->peer.seg, page, 0);
			count(ps, why, 1);
			return page;
		}
	}
	return XPOOL_NONE;
}

/* A full cache keeps some pages ahead of need: they are evicted, and their cold memory is fetched, while nobody waits for
 * that. Some at a time, as requests may be waiting in the lanes. */
void pages_ahead(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t page;

	if (ps->nr_magazine >= MAGAZINE / 2 || atomic_load_explicit(&k->nr_free, memory_order_relaxed) ||
	    atomic_load_explicit(&k->nr_clean, memory_order_relaxed) < MAGAZINE || !use_magazine(k) || !xwaitq_empty(&k->want_pages))
		return;
	for (unsigned n = 0; n < AHEAD_BATCH; n++) {
		page = take_clean(ps, &k->clean, CC_EVICTED_CLEAN);
		if (page == XPOOL_NONE)
			return;
		for (uint32_t at = 0; at < BUCKET_SIZE; at += 64)
			__builtin_prefetch((char *)xseg_page(k->peer.seg, page) + at, 1);
		ps->magazine[ps->nr_magazine++] = page;
	}
}

static uint32_t list_nr(struct cached *k, const struct xlist *list)
{
	uint32_t nr;

	pthread_mutex_lock(&k->mem_lock);
	nr = list->nr;
	pthread_mutex_unlock(&k->mem_lock);
	return nr;
}

/* A bucket that was used again goes at the second try. */
static uint32_t drop_list(struct cport *ps, struct xlist *list)
{
	uint32_t n = 0, misses = 0, page;

	while (misses < 1024 && list_nr(ps->cache, list)) {
		page = take_clean(ps, list, CC_EVICTED_PRESSURE);
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

/* Evicts whatever is clean. */
uint32_t pages_drop(struct cport *ps)
{
	return drop_list(ps, &ps->cache->clean) + drop_list(ps, &ps->cache->leaving);
}

void pages_return(struct cport *ps, const uint32_t *page, uint32_t n)
{
	while (n)
		page_put(ps, page[--n]);
}

uint32_t page_get(struct cport *ps, bool evict)
{
	uint32_t page;

	if (!xwaitq_empty(&ps->cache->want_pages))
		return XPOOL_NONE;
	page = take_free(ps);
	if (page == XPOOL_NONE && evict)
		page = take_clean(ps, &ps->cache->clean, CC_EVICTED_CLEAN);
	return page;
}

bool pages_get(struct cport *ps, uint32_t n, uint32_t *page, bool woken)
{
	uint32_t got = 0;

	if (!woken && !xwaitq_empty(&ps->cache->want_pages))
		return false;
	for (; got < n; got++) {
		page[got] = take_free(ps);
		if (page[got] == XPOOL_NONE)
			page[got] = take_clean(ps, &ps->cache->clean, CC_EVICTED_CLEAN);
		if (page[got] == XPOOL_NONE)
			break;
	}
	if (got == n)
		return true;
	pages_return(ps, page, got);
	return false;
}

/* Chunks come last: to get a page may empty one of the object's. */
uint32_t room_get(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page, uint32_t n, bool woken)
{
	uint32_t cut;

	if (n && !pages_get(ps, n, page, woken))
		return n;
	while (!chunks_ensure(ps, o, first, nr)) {	/* again only if another thread took what we cut */
		if (!pages_get(ps, 1, &cut, woken)) {
			pages_return(ps, page, n);
			return n + 1;
		}
		chunk_feed(ps, cut);
	}
	return 0;
}

void room_put(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page, uint32_t n)
{
	const struct arena_object *e = object_entry(ps->cache, o);

	pages_return(ps, page, n);
	for (uint32_t i = first / CHUNK_SLOTS; i <= (first + nr - 1) / CHUNK_SLOTS; i++)
		if (e->chunk_used[i] == 0)
			chunk_release(ps, o, i);
}

static void pages_wait_fn(struct xwait *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, wait);

	c->woken = true;
	creq_set_state(c, CREQ_RUNNING);
	object_push(ctx, c->obj, &c->work);
}

void pages_wait(struct cport *ps, struct creq *c, uint32_t need)
{
	count_wait(ps, WAIT_BUCKET);
	creq_set_state(c, CREQ_WAITS_MEMORY);
	c->wait.fn = pages_wait_fn;
	xwaitq_add(&ps->cache->want_pages, &c->wait, need);
	if (pages_available(ps->cache) >= need)
		ps->freed = true;	/* came free between our look and our waiting: pages_signal() looks again */
}

/* ---- lists of pages ---- */

static uint32_t nr_free_lists(struct cached *k)
{
	uint32_t nr;

	pthread_mutex_lock(&k->mem_lock);
	nr = xpool_nr(&k->free_lists);
	pthread_mutex_unlock(&k->mem_lock);
	return nr;
}

bool list_get(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	uint32_t n;

	if (c->nr <= CREQ_FEW)
		c->page = c->few;
	if (c->page)
		return true;
	pthread_mutex_lock(&k->mem_lock);
	n = xpool_get(&k->free_lists);
	pthread_mutex_unlock(&k->mem_lock);
	if (n != XPOOL_NONE) {
		c->page = k->lists[n];
		return true;
	}
	count_wait(ps, WAIT_BUCKET);
	creq_set_state(c, CREQ_WAITS_MEMORY);
	c->wait.fn = creq_retry;
	xwaitq_add(&k->want_lists, &c->wait, 1);
	if (nr_free_lists(k))
		ps->freed = true;
	return false;
}

void list_put(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;

	if (c->page && c->page != c->few) {
		pthread_mutex_lock(&k->mem_lock);
		xpool_put(&k->free_lists, (uint32_t)((uint32_t(*)[XSEG_REQ_PAGES])c->page - k->lists));
		pthread_mutex_unlock(&k->mem_lock);
		ps->freed = true;
	}
	c->page = NULL;
}

/* ---- who waits ---- */

#define SIGNAL_BATCH 16

static void lists_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;

	while (xwaitq_has_waiters(&k->want_lists) && (w = xwaitq_pop(&k->want_lists, nr_free_lists(k))))
		w->fn(w, ps);
}

/* Those who wait for entries: objects are emptied for them, until nobody is left who cannot go on. */
static void entries_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	unsigned tries = SIGNAL_BATCH;
	struct xwait *w;

	while (tries && xwaitq_has_waiters(&k->want_entries) && (w = xwaitq_pop(&k->want_entries, xcache_nr_free(&k->xc)))) {
		w->fn(w, ps);
		tries--;
	}
	if (!tries)
		ps->freed = true;	/* there may be more for more of them */
	else if (!xwaitq_empty(&k->want_entries) && atomic_load_explicit(&k->reclaims, memory_order_relaxed) == 0)
		object_reclaim_one(ps);
}

void pages_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;
	unsigned tries = SIGNAL_BATCH;

	lists_signal(ps);
	entries_signal(ps);
	for (; xwaitq_has_waiters(&k->want_pages); tries--) {
		magazine_empty(ps);
		w = xwaitq_pop(&k->want_pages, pages_available(k));
		if (!w)
			break;
		w->fn(w, ps);
		if (tries == 1) {
			ps->freed = true;
			break;
		}
	}
}
