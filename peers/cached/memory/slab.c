/* slab - pages that are cut into chunks, and which of the chunks are free. object/chunk.c explains
 * the content of a chunk, and its owner.
 *
 * Contract: functions that say so under mem_lock, which guards masks and list.
 *
 * Invariants: K1, K2 and K4 of chunk.c.
 */
#include <assert.h>

#include "peers/cached/memory/pages.h"

#define PER_PAGE CHUNKS_PER_PAGE
#define ALL_FREE CHUNKS_ALL_FREE
_Static_assert(PER_PAGE == 8, "page_use[].chunks_free has a bit for each");

/* ---- under mem_lock ---- */

static void add(_Atomic uint32_t *nr, int by)
{
	uint32_t was = atomic_load_explicit(nr, memory_order_relaxed);

	assert(by >= 0 || was >= (uint32_t)-by);
	atomic_store_explicit(nr, was + (uint32_t)by, memory_order_relaxed);
}

void page_cut(struct cached *k, uint32_t page, unsigned free)
{
	/* G1: it is in no list of clean pages, and in no slot */
	assert(!memory_of(k)->page_use[page].chunks_free);
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

uint32_t chunk_take(struct cached *k)
{
	uint32_t page = xlist_head(&memory_of(k)->chunk_pages), n;

	assert(page != XLIST_NONE && memory_of(k)->page_use[page].chunks_free);	/* K2 */
	n = (uint32_t)__builtin_ctz(memory_of(k)->page_use[page].chunks_free);
	memory_of(k)->page_use[page].chunks_free =
		(uint8_t)(memory_of(k)->page_use[page].chunks_free & ~(1u << n));
	if (memory_of(k)->page_use[page].chunks_free == 0)
		xlist_remove(&memory_of(k)->chunk_pages, page);
	add(&memory_of(k)->nr_free_chunks, -1);
	return page * PER_PAGE + n;
}

/* True: all chunks of the page are free: it is a page again, and the caller's. */
bool chunk_return(struct cached *k, uint32_t chunk)
{
	uint32_t page = chunk / PER_PAGE;

	assert(page < memory_of(k)->seg_pages);
	/* K1: it was in one entry, and no other thread has given it back */
	assert(!(memory_of(k)->page_use[page].chunks_free & 1u << chunk % PER_PAGE));
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
uint32_t page_spare(struct cached *k)
{
	uint32_t page = xlist_tail(&memory_of(k)->chunk_pages);

	if (page == XLIST_NONE || memory_of(k)->page_use[page].chunks_free != ALL_FREE)
		return NO_PAGE;
	page_uncut(k, page);
	return page;
}

/* ---- taking and giving back ---- */

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

void chunk_put(struct cport *ps, uint32_t chunk)
{
	struct cached *k = ps->cache;
	bool whole;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	whole = chunk_return(k, chunk);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (whole)
		page_put(ps, chunk / PER_PAGE);
}

uint32_t chunk_try(struct cport *ps)
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

/* ---- a predecessor's ---- */

bool chunk_restore(struct cached *k, uint32_t chunk, uint8_t *page_is)
{
	uint32_t page = chunk / PER_PAGE;

	if (page >= xseg_nr_pages(peer_of(k)->seg) ||
		(page_is[page] != PAGE_FREE && page_is[page] != PAGE_CHUNKS))
		return false;
	if (page_is[page] == PAGE_FREE) {
		page_is[page] = PAGE_CHUNKS;
		page_cut(k, page, CHUNKS_ALL_FREE);
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
