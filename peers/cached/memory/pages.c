/* pages - the cache's free pages. clean.c has the lists of those that may be evicted. room.c says
 * which requests get pages, and which wait.
 *
 * A page of the cache is
 *   - free (in the pool or a port's magazine),
 *   - in a slot,
 *   - a new page held by a write,
 *   - an old one listed by a flush in flight, or
 *   - cut into chunks (chunk.c).
 *
 * A page of an extent that leaves the cache (extent.c) is never handed out: instead of becoming
 * free it becomes *out*. A page that was lent to write in is in no list (gift.c). A page that may
 * be on loan is not free before the last reader has left it: it goes to *limbo* instead (loan.c). A
 * few free pages are kept for urgent requests (reserve, room.c).
 *
 * Contract: any port's thread. mem_lock is a leaf, held for a few words' work.
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/memory/pages.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

/* ---- under mem_lock ---- */

void pages_count(struct cached *k)
{
	atomic_store_explicit(&memory_of(k)->nr_clean,
		clean_nr(&memory_of(k)->clean) + volume_of(k)->shares.clean, memory_order_relaxed);
	atomic_store_explicit(&memory_of(k)->nr_free,
		xpool_nr(&memory_of(k)->free_pages) - memory_of(k)->leaving_free,
		memory_order_relaxed);
}

void pool_put(struct cached *k, uint32_t page)
{
	struct extent *e = page_extent(k, page);

	assert(!page_is_listed(k, page));	/* G1, L3 */
	assert(e->nr_free + e->nr_out < XSEG_EXTENT_PAGES);	/* Z2, Z3 */
	if (page_leaves(k, page)) {
		xseg_page_owner_set(peer_of(k)->seg, page, OWNER_OUT);
		e->nr_out++;
		memory_of(k)->nr_out++;
		return;
	}
	xpool_put(&memory_of(k)->free_pages, page);
	e->nr_free++;
}

static uint32_t pool_get(struct cached *k)
{
	uint32_t page;

	while ((page = xpool_get(&memory_of(k)->free_pages)) != XPOOL_NONE) {
		assert(page_extent(k, page)->nr_free > 0);	/* Z3 */
		page_extent(k, page)->nr_free--;
		if (!page_leaves(k, page))
			break;
		memory_of(k)->leaving_free--;
		pool_put(k, page);
	}
	return page;
}

void pool_sweep(struct cached *k, uint32_t *at, uint32_t nr)
{
	for (; nr && memory_of(k)->leaving_free; nr--) {
		uint32_t page;

		if (*at >= xpool_nr(&memory_of(k)->free_pages))
			*at = 0;
		page = xpool_at(&memory_of(k)->free_pages, *at);
		if (!page_leaves(k, page)) {
			++*at;
			continue;
		}
		xpool_take_at(&memory_of(k)->free_pages, *at);
		page_extent(k, page)->nr_free--;
		memory_of(k)->leaving_free--;
		pool_put(k, page);
	}
}

/* ---- free pages ---- */

uint32_t pages_available(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->nr_clean, memory_order_relaxed) +
	       atomic_load_explicit(&memory_of(k)->nr_free, memory_order_relaxed);
}

bool pages_wanted(struct cached *k)
{
	return !xwaitq_empty(&memory_of(k)->want_owed) ||
	       !xwaitq_empty(&memory_of(k)->want_pages) ||
	       !xwaitq_empty(&memory_of(k)->want_urgent);
}

uint32_t reserve_nr(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->reserve.nr, memory_order_relaxed);
}

/* At most an eighth of all pages is in magazines. Not while pages are to leave: nobody would find
 * them there. Nor while the reserve lacks some: what is free is its own. */
bool use_magazine(struct cached *k)
{
	return reserve_nr(k) == memory_of(k)->reserve.size &&
	       atomic_load_explicit(&memory_of(k)->nr_pages, memory_order_relaxed) -
			       memory_of(k)->withheld >=
		       8 * MAGAZINE * peer_of(k)->nr_ports &&
	       atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed) == 0;
}

/* The reserve comes first, then the pool. */
void reserve_put(struct cached *k, uint32_t page)
{
	uint32_t nr;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	nr = reserve_nr(k);
	if (nr < memory_of(k)->reserve.size && !page_leaves(k, page)) {
		memory_of(k)->reserve.page[nr] = page;
		atomic_store_explicit(&memory_of(k)->reserve.nr, nr + 1, memory_order_relaxed);
	} else {
		pool_put(k, page);
		pages_count(k);
	}
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}

XCOLD void page_free(struct cached *k, uint32_t page)
{
	xseg_page_owner_set(peer_of(k)->seg, page, 0);
	reserve_put(k, page);
}

void magazine_empty(struct cport *ps)
{
	while (memory_port(ps)->nr_magazine)
		page_free(ps->cache, memory_port(ps)->magazine[--memory_port(ps)->nr_magazine]);
}

void magazine_return(struct cport *ps, uint32_t page)
{
	if (memory_port(ps)->nr_magazine == MAGAZINE)
		page_free(ps->cache, page);
	else
		memory_port(ps)->magazine[memory_port(ps)->nr_magazine++] = page;
}

/* Free pages that nobody else is in need of. */
void magazine_put(struct cport *ps, uint32_t page)
{
	xseg_page_owner_set(peer_of(ps->cache)->seg, page, 0);
	magazine_return(ps, page);
}

void page_put(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	if (page == NO_PAGE)
		return;
	if (limbo_holds(xseg_page_owner(peer_of(k)->seg, page))) {
		limbo_put(ps, page);
		return;
	}
	memory_port(ps)->freed = true;
	if (use_magazine(k) && !pages_wanted(k))
		magazine_put(ps, page);
	else
		page_free(k, page);
}

/* The last that came, as they came: pages side by side that a write let go of stay so in the next
 * one, whose data a store then finds in one piece. Returns how many there were. */
uint32_t magazine_pop(struct cport *ps, uint32_t n, uint32_t *page)
{
	if (n > memory_port(ps)->nr_magazine)
		n = memory_port(ps)->nr_magazine;
	memory_port(ps)->nr_magazine -= n;
	memcpy(page, &memory_port(ps)->magazine[memory_port(ps)->nr_magazine], n * sizeof(*page));
	return n;
}

bool magazine_take(struct cport *ps, uint32_t n, uint32_t *page)
{
	return memory_port(ps)->nr_magazine >= n && !pages_wanted(ps->cache) &&
	       magazine_pop(ps, n, page) == n;
}

uint32_t take_free(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t page;

	if (magazine_pop(ps, 1, &page))
		return page;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	page = pool_get(k);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return page;
}

/* ---- the reserve ---- */

/* Under mem_lock. */
static uint32_t reserve_pop_locked(struct cached *k)
{
	uint32_t nr = reserve_nr(k);

	if (nr == 0)
		return XPOOL_NONE;
	atomic_store_explicit(&memory_of(k)->reserve.nr, nr - 1, memory_order_relaxed);
	return memory_of(k)->reserve.page[nr - 1];
}

uint32_t reserve_take(struct cached *k)
{
	uint32_t page = XPOOL_NONE;

	if (reserve_nr(k) == 0)
		return XPOOL_NONE;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	while ((page = reserve_pop_locked(k)) != XPOOL_NONE && page_leaves(k, page))
		pool_put(k, page);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return page;
}

/* While extents leave it is taken again: none of theirs stays in it. */
void reserve_sweep(struct cached *k)
{
	uint32_t page, kept = 0;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	for (uint32_t i = 0; i < reserve_nr(k); i++) {
		page = memory_of(k)->reserve.page[i];
		if (page_leaves(k, page))
			pool_put(k, page);
		else
			memory_of(k)->reserve.page[kept++] = page;
	}
	atomic_store_explicit(&memory_of(k)->reserve.nr, kept, memory_order_relaxed);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}

void reserve_begin(struct cached *k)
{
	uint32_t page;

	memory_of(k)->reserve.size = RESERVE_PAGES;
	while (reserve_nr(k) < memory_of(k)->reserve.size) {
		pthread_mutex_lock(&memory_of(k)->mem_lock);
		page = pool_get(k);
		pages_count(k);
		pthread_mutex_unlock(&memory_of(k)->mem_lock);
		if (page == XPOOL_NONE)
			return;
		reserve_put(k, page);
	}
}

void magazine_fill(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t page;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	while (memory_port(ps)->nr_magazine < MAGAZINE / 2 && (page = pool_get(k)) != XPOOL_NONE)
		memory_port(ps)->magazine[memory_port(ps)->nr_magazine++] = page;
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
}

void pages_return(struct cport *ps, const uint32_t *page, uint32_t n)
{
	while (n)
		page_put(ps, page[--n]);
}
