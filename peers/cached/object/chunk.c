/* chunk - the slots of objects, 64 at a time, in pages of the cache itself.
 *
 * A chunk is an eighth of a page: number n is the (n % 8)th eighth of page n / 8, so a successor
 * finds it with nothing but the entry's chunk word. When none is free a page is taken as for a
 * bucket, and cut; when all its chunks are free again it goes back. So a cache of dense objects
 * spends 0.2 % of its memory on slots, one of objects with an eighth of their buckets 1.6 %, and
 * slots never run out while there are pages.
 *
 * Contract: chunks_ensure(), chunk_release() and chunk_move() inside the object, chunk_feed()
 * anywhere, chunk_restore() before serving. mem_lock guards masks and list; it is a leaf.
 *
 * Invariants:
 *   K1  a chunk of a page that was cut is in exactly one entry's chunk word, or its bit is set in
 *       page_use[page].chunks_free
 *   K2  a page is in the list chunk_pages iff it was cut, has a free chunk, and does not leave the
 *       cache; none has eight, but between chunk_feed() and the taking of chunks in one job: such a
 *       one is at the tail. Free chunks of pages that leave are counted nowhere
 *   K3  the slots of a chunk that is stored into an entry are FREE, or what they were in the chunk
 *       in whose place it comes
 *   K4  a page's owner word is OWNER_CHUNKS iff it was cut
 */
#include <assert.h>

#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "xtypes/xkill.h"

#define PER_PAGE CHUNKS_PER_PAGE
#define ALL_FREE ((1u << PER_PAGE) - 1)
_Static_assert(PER_PAGE == 8, "page_use[].chunks_free has a bit for each");

/* ---- under mem_lock ---- */

static void add(_Atomic uint32_t *nr, int by)
{
	atomic_store_explicit(nr, atomic_load_explicit(nr, memory_order_relaxed) + (uint32_t)by,
		memory_order_relaxed);
}

static void page_cut(struct cached *k, uint32_t page, unsigned free)
{
	xseg_page_owner_set(peer_of(k)->seg, page, OWNER_CHUNKS);
	memory_of(k)->page_use[page].chunks_free = (uint8_t)free;
	add(&memory_of(k)->nr_chunk_pages, 1);
	if (free)
		xlist_push_tail(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks, __builtin_popcount(free));
}

static void page_uncut(struct cached *k, uint32_t page)
{
	xseg_page_owner_set(peer_of(k)->seg, page, 0);
	memory_of(k)->page_use[page].chunks_free = 0;
	if (page_leaves(k, page)) {
		add(&memory_of(k)->leaving_chunk_pages, -1);
		return;
	}
	xlist_remove(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_chunk_pages, -1);
	add(&memory_of(k)->nr_free_chunks, -(int)PER_PAGE);
}

void chunk_page_leave(struct cached *k, uint32_t page)
{
	if (memory_of(k)->page_use[page].chunks_free)
		xlist_remove(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks,
		-__builtin_popcount(memory_of(k)->page_use[page].chunks_free));
	add(&memory_of(k)->nr_chunk_pages, -1);
	add(&memory_of(k)->leaving_chunk_pages, 1);
}

void chunk_page_stay(struct cached *k, uint32_t page)
{
	if (memory_of(k)->page_use[page].chunks_free)
		xlist_push_head(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks,
		__builtin_popcount(memory_of(k)->page_use[page].chunks_free));
	add(&memory_of(k)->nr_chunk_pages, 1);
	add(&memory_of(k)->leaving_chunk_pages, -1);
}

static uint32_t chunk_take(struct cached *k)
{
	uint32_t page = xlist_head(&memory_of(k)->chunk_pages),
		 n = (uint32_t)__builtin_ctz(memory_of(k)->page_use[page].chunks_free);

	memory_of(k)->page_use[page].chunks_free =
		(uint8_t)(memory_of(k)->page_use[page].chunks_free & ~(1u << n));
	if (memory_of(k)->page_use[page].chunks_free == 0)
		xlist_remove(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks, -1);
	return page * PER_PAGE + n;
}

/* True: all chunks of the page are free: it is a page again, and the caller's. */
static bool chunk_return(struct cached *k, uint32_t chunk)
{
	uint32_t page = chunk / PER_PAGE;

	assert(page < memory_of(k)->seg_pages);
	if (!page_leaves(k, page)) {
		if (memory_of(k)->page_use[page].chunks_free == 0)
			xlist_push_head(&memory_of(k)->chunk_pages, page);
		add(&memory_of(k)->nr_free_chunks, 1);
	}
	memory_of(k)->page_use[page].chunks_free =
		(uint8_t)(memory_of(k)->page_use[page].chunks_free | 1u << chunk % PER_PAGE);
	if (memory_of(k)->page_use[page].chunks_free != ALL_FREE)
		return false;
	page_uncut(k, page);
	return true;
}

/* Some were cut for nothing: to get the page a bucket was evicted, and with it a chunk came free.
 * The page, the caller's again, or NO_PAGE. */
static uint32_t page_spare(struct cached *k)
{
	uint32_t page = xlist_tail(&memory_of(k)->chunk_pages);

	if (page == XLIST_NONE || memory_of(k)->page_use[page].chunks_free != ALL_FREE)
		return NO_PAGE;
	page_uncut(k, page);
	return page;
}

/* ---- taking and giving back ---- */

/* Before a chunk of the entry, or its name, can be another's. Who is inside, or finalizes it. */
static void version_next(struct arena_object *e)
{
	/* release: partner is the acquire in a reader's last look (xseg/direct.c): who has seen in
	 * a slot what another object stored there after this sees the version, too */
	atomic_store_explicit(&e->version,
		atomic_load_explicit(&e->version, memory_order_relaxed) + 1, memory_order_release);
}

void chunk_feed(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	/* it came from a port's magazine, or was evicted, and its extent was chosen since */
	if (page_leaves(k, page))
		pool_put(k, page);
	else
		page_cut(k, page, ALL_FREE);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}

static void chunk_store(struct cached *k, struct object *o, uint32_t nr, uint32_t chunk)
{
	_Atomic uint64_t *slot = chunk_at(k, chunk)->slot;

#pragma GCC unroll 8
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
		atomic_store_explicit(
			&slot[s], slot_word(BUCKET_FREE, 0, 0), memory_order_relaxed);
	object_entry(k, o)->chunk_used[nr] = 0;
	XKILL(CHUNK_CLEARED);
	/* release: the slots are FREE before the chunk is the object's (K3); a successor reads
	 * both */
	atomic_store_explicit(&object_entry(k, o)->chunk[nr], chunk + 1, memory_order_release);
}

bool chunks_ensure(struct cport *ps, struct object *o, uint32_t first, uint32_t nr)
{
	struct cached *k = ps->cache;
	struct arena_object *e = object_entry(k, o);
	uint32_t lo = first / CHUNK_SLOTS, hi = (first + nr - 1) / CHUNK_SLOTS, need = 0,
		 spare = NO_PAGE, i;
	uint32_t got[OBJECT_CHUNKS], lacks[OBJECT_CHUNKS];
	bool enough;

	for (i = lo; i <= hi; i++)
		if (atomic_load_explicit(&e->chunk[i], memory_order_relaxed) == 0)
			lacks[need++] = i;
	if (need == 0)
		return true;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	enough = atomic_load_explicit(&memory_of(k)->nr_free_chunks, memory_order_relaxed) >= need;
	for (i = 0; i < need && enough; i++)
		got[i] = chunk_take(k);
	if (enough)
		spare = page_spare(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (!enough)
		return false;
	page_put(ps, spare);
	for (i = 0; i < need; i++)
		chunk_store(k, o, lacks[i], got[i]);
	return true;
}

static void chunk_put(struct cport *ps, uint32_t chunk)
{
	struct cached *k = ps->cache;
	bool whole;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	whole = chunk_return(k, chunk);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (whole)
		page_put(ps, chunk / PER_PAGE);
}

void chunk_release(struct cport *ps, struct object *o, uint32_t nr)
{
	struct cached *k = ps->cache;
	_Atomic uint32_t *word = &object_entry(k, o)->chunk[nr];
	uint32_t chunk = atomic_load_explicit(word, memory_order_relaxed);
	_Atomic uint64_t *slot;

	if (chunk-- == 0)
		return;
	slot = chunk_at(k, chunk)->slot;
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++) {
		enum bucket_state state = slot_state(slot_read(k, &slot[s]));

		assert(state < BUCKET_NR_STATES);
		o->nr[state]--;
	}
	o->nr[BUCKET_FREE] += CHUNK_SLOTS;
	version_next(object_entry(k, o));
	/* release: it is out of this entry before it can be in another's */
	atomic_store_explicit(word, 0, memory_order_release);
	XKILL(CHUNK_DROPPED);
	chunk_put(ps, chunk);
}

void chunks_finalize(struct cached *k, uint32_t idx)
{
	version_next(&object_of(k)->entries[idx]);
	for (uint32_t i = 0; i < OBJECT_CHUNKS; i++) {
		uint32_t chunk = atomic_exchange(&object_of(k)->entries[idx].chunk[i], 0);
		bool whole;

		if (chunk-- == 0)
			continue;
		pthread_mutex_lock(&memory_of(k)->mem_lock);
		whole = chunk_return(k, chunk);
		pthread_mutex_unlock(&memory_of(k)->mem_lock);
		if (whole)
			page_free(k, chunk / PER_PAGE);
	}
}

/* ---- moving ---- */

static uint32_t chunk_try(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t chunk = NO_CHUNK, spare = NO_PAGE;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	if (xlist_head(&memory_of(k)->chunk_pages) != XLIST_NONE) {
		chunk = chunk_take(k);
		spare = page_spare(k);
	}
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	page_put(ps, spare);
	return chunk;
}

/* A free chunk, of a page that is cut for it if need be; NO_CHUNK: there is no page either. */
static uint32_t chunk_get(struct cport *ps)
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

/* The old chunk is the truth until the new one's number is stored. */
bool chunk_move(struct cport *ps, struct object *o, uint32_t nr)
{
	struct cached *k = ps->cache;
	_Atomic uint32_t *word = &object_entry(k, o)->chunk[nr];
	uint32_t to = chunk_get(ps), from = atomic_load_explicit(word, memory_order_relaxed);
	_Atomic uint64_t *old, *new;

	if (to == NO_CHUNK)
		return false;
	if (from == 0) { /* it was one of this object's last buckets whose page we have cut */
		chunk_put(ps, to);
		return true;
	}
	old = chunk_at(k, from - 1)->slot;
	new = chunk_at(k, to)->slot;
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
		atomic_store_explicit(&new[s],
			atomic_load_explicit(&old[s], memory_order_relaxed), memory_order_relaxed);
	XKILL(CHUNK_COPIED);
	version_next(object_entry(k, o));
	/* release: the slots are there before the chunk is the object's (K3); a successor reads
	 * both */
	atomic_store_explicit(word, to + 1, memory_order_release);
	chunk_put(ps, from - 1);
	return true;
}

/* ---- a predecessor's ---- */

bool chunk_restore(struct cached *k, uint32_t chunk, uint8_t *page_is)
{
	uint32_t page = chunk / PER_PAGE;

	if (page >= xseg_nr_pages(peer_of(k)->seg) ||
		(page_is[page] != PAGE_FREE && page_is[page] != PAGE_CHUNKS))
		return false;
	if (page_is[page] == PAGE_FREE) {
		page_is[page] = PAGE_CHUNKS;
		page_cut(k, page, ALL_FREE);
	}
	if (!(memory_of(k)->page_use[page].chunks_free & 1u << chunk % PER_PAGE))
		return false;
	memory_of(k)->page_use[page].chunks_free =
		(uint8_t)(memory_of(k)->page_use[page].chunks_free & ~(1u << chunk % PER_PAGE));
	if (memory_of(k)->page_use[page].chunks_free == 0)
		xlist_remove(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks, -1);
	return true;
}

void chunk_drop(struct cached *k, uint32_t chunk, uint8_t *page_is)
{
	if (chunk_return(k, chunk))
		page_is[chunk / PER_PAGE] = PAGE_FREE;
}
