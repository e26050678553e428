/* extent - the extents of the segment, 512 pages each, as one cache sees them: which are its own,
 * and which of its own are to leave. The file resize.c chooses how many the cache has, and empties
 * those that leave.
 *
 * States of an extent (extent_set() is the only writer):
 *
 *   from      to        when                                              by
 *   NOT_OURS  STAYS     it was taken, or is a predecessor's               extent_add
 *   STAYS     LEAVES    the cache has more than were asked for            extent_leave
 *   LEAVES    STAYS     more are asked for, before it is given back       extent_stay
 *   LEAVES    NOT_OURS  all of its pages are out: it is given back        extent_give
 *
 * A page of an extent that leaves is not used again: instead of becoming free it becomes *out*
 * (pool_put). The segment does not say that an extent leaves: a successor has it as one that stays.
 *
 * Contract: port 0's poll, outside of any object; extent_add() with mem_lock, or before serving,
 * the others without.
 *
 * Invariants (extents_check):
 *   Z1  nr_pages and nr_leaving are the pages of the extents that stay and that leave.
 *   Z2  A page that is out has OWNER_OUT, its extent leaves, and it is in no slot, pool or list; an
 *       extent's nr_out counts them.
 *   Z3  An extent's nr_free counts its pages in the pool; leaving_free is their sum over extents
 *       that leave.
 */
#include <assert.h>
#include <stdlib.h>

#include "peers/cached/memory/pages.h"

#define TO(s) (1u << EXTENT_##s)

const struct xstates extent_states = {
	.what = "extent",
	XSTATE(EXTENT_, NOT_OURS, TO(STAYS)),
	XSTATE(EXTENT_, STAYS, TO(LEAVES)),
	XSTATE(EXTENT_, LEAVES, TO(STAYS) | TO(NOT_OURS)),
};

static enum extent_state extent_get(const struct extent *e)
{
	return (enum extent_state)atomic_load_explicit(&e->state, memory_order_relaxed);
}

/* Z1: what counts the pages of extents in that state, if anything does. */
static void pages_add(struct cached *k, enum extent_state s, uint32_t by)
{
	if (s == EXTENT_STAYS)
		atomic_fetch_add_explicit(&memory_of(k)->nr_pages, by, memory_order_relaxed);
	else if (s == EXTENT_LEAVES)
		atomic_fetch_add_explicit(&memory_of(k)->nr_leaving, by, memory_order_relaxed);
}

static void extent_set(struct cached *k, struct extent *e, enum extent_state to)
{
	enum extent_state from = extent_get(e);

	xstate_check(&extent_states, from, to);
	atomic_store_explicit(&e->state, (uint8_t)to, memory_order_relaxed);
	pages_add(k, to, XSEG_EXTENT_PAGES);
	pages_add(k, from, -XSEG_EXTENT_PAGES);
}

uint32_t extent_page(struct cached *k, const struct extent *e)
{
	return (uint32_t)(e - memory_of(k)->extents) * XSEG_EXTENT_PAGES;
}

static uint32_t nr_extents(const struct cached *k)
{
	return memory_of(k)->seg_pages / XSEG_EXTENT_PAGES;
}

uint32_t nr_owned(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->nr_pages, memory_order_relaxed) +
	       atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed);
}

/* ---- coming and going ---- */

void extent_add(struct cached *k, uint32_t first)
{
	struct extent *e = page_extent(k, first);

	e->nr_free = e->nr_out = 0;
	for (uint32_t i = 0; i < XSEG_EXTENT_PAGES; i++)
		xlist_node_init(memory_of(k)->chunk_pages.nodes, first + i);
	extent_set(k, e, EXTENT_STAYS);
}

/* Under mem_lock: the extent that has the most free pages; NULL: none may leave. */
static struct extent *choose(struct cached *k)
{
	struct extent *best = NULL;

	for (struct extent *e = memory_of(k)->extents; e < memory_of(k)->extents + nr_extents(k);
		e++)
		if (extent_get(e) == EXTENT_STAYS && !e->pinned &&
			(!best || e->nr_free >= best->nr_free))
			best = e;
	return best;
}

/* Under mem_lock. Its free pages go out when the pool is swept. */
static void leave(struct cached *k, struct extent *e)
{
	uint32_t first = extent_page(k, e);

	extent_set(k, e, EXTENT_LEAVES);
	memory_of(k)->leaving_free += e->nr_free;
	for (uint32_t page = first; page < first + XSEG_EXTENT_PAGES; page++) {
		uint64_t owner = xseg_page_owner(peer_of(k)->seg, page);

		if (owner == OWNER_CHUNKS) {
			chunk_page_leave(k, page);
		} else if (owner == OWNER_WITHHELD) {
			memory_of(k)->withheld--;
			pool_put(k, page);
		} else if (!limbo_holds(owner) && page_is_listed(k, page)) {
			clean_leave_locked(k, page);
		}
	}
}

/* Under mem_lock: the first one that leaves; NULL: there is none. */
static struct extent *find_leaving(struct cached *k)
{
	for (struct extent *e = memory_of(k)->extents; e < memory_of(k)->extents + nr_extents(k);
		e++)
		if (extent_get(e) == EXTENT_LEAVES)
			return e;
	return NULL;
}

/* Under mem_lock. */
static void stay(struct cached *k, struct extent *e)
{
	uint32_t first = extent_page(k, e);

	extent_set(k, e, EXTENT_STAYS);
	assert(memory_of(k)->leaving_free >= e->nr_free && memory_of(k)->nr_out >= e->nr_out);
	memory_of(k)->leaving_free -= e->nr_free;
	memory_of(k)->nr_out -= e->nr_out;
	e->nr_out = 0;
	for (uint32_t page = first; page < first + XSEG_EXTENT_PAGES; page++) {
		uint64_t owner = xseg_page_owner(peer_of(k)->seg, page);

		if (owner == OWNER_OUT) {
			xseg_page_owner_set(peer_of(k)->seg, page, 0);
			pool_put(k, page);
		} else if (owner == OWNER_CHUNKS) {
			chunk_page_stay(k, page);
		} else if (!limbo_holds(owner) && page_is_listed(k, page)) {
			clean_stay_locked(k, page);
		}
	}
}

/* False: there is none that may. */
static bool turn_one(struct cached *k, struct extent *(*find)(struct cached *k),
	void (*turn)(struct cached *k, struct extent *e))
{
	struct extent *e;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	e = find(k);
	if (e)
		turn(k, e);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return e;
}

bool extent_leave(struct cached *k)
{
	return turn_one(k, choose, leave);
}

bool extent_stay(struct cached *k)
{
	return turn_one(k, find_leaving, stay);
}

bool extent_give(struct cached *k, struct extent *e)
{
	bool empty;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	empty = e->nr_out == XSEG_EXTENT_PAGES;
	if (empty) {
		assert(e->nr_free == 0 && memory_of(k)->nr_out >= XSEG_EXTENT_PAGES);	/* Z2 */
		e->nr_out = 0;
		memory_of(k)->nr_out -= XSEG_EXTENT_PAGES;
		extent_set(k, e, EXTENT_NOT_OURS);
	}
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (empty)
		xseg_pages_give(peer_of(k)->xp, extent_page(k, e));
	return empty;
}

/* ---- checking ---- */

static void check_extent(struct cached *k, struct extent *e, uint32_t pooled, uint32_t sum[3])
{
	uint32_t first = extent_page(k, e), out = 0;
	bool leaves = page_leaves(k, first);

	if (extent_get(e) == EXTENT_NOT_OURS) {
		assert(pooled == 0);
		return;
	}
	for (uint32_t page = first; page < first + XSEG_EXTENT_PAGES; page++) {
		out += xseg_page_owner(peer_of(k)->seg, page) == OWNER_OUT;
		assert(xseg_page_owner(peer_of(k)->seg, page) != OWNER_OUT ||
			(leaves && !page_is_listed(k, page)));
	}
	assert(e->nr_free == pooled && e->nr_out == out);
	sum[0] += leaves ? 0 : XSEG_EXTENT_PAGES;
	sum[1] += leaves ? pooled : 0;
	sum[2] += out;
}

static void check_list(struct cached *k, const struct clean_list *list, bool leaves)
{
	for (uint32_t page = clean_first(list); page != XLIST_NONE; page = clean_after(list, page))
		assert(page_leaves(k, page) == leaves);
}

void extents_check(struct cached *k)
{
	uint32_t nr = nr_extents(k), sum[3] = { 0 };
	uint32_t *pooled = calloc(nr, sizeof(*pooled));

	assert(pooled);
	for (uint32_t i = 0; i < xpool_nr(&memory_of(k)->free_pages); i++)
		pooled[xpool_at(&memory_of(k)->free_pages, i) / XSEG_EXTENT_PAGES]++;
	for (uint32_t i = 0; i < nr; i++)
		check_extent(k, &memory_of(k)->extents[i], pooled[i], sum);
	free(pooled);
	/* Z1, Z2, Z3 */
	assert(sum[0] == memory_of(k)->nr_pages && sum[1] == memory_of(k)->leaving_free &&
		sum[2] == memory_of(k)->nr_out);
	assert(xseg_pages_owned(peer_of(k)->xp, NULL, 0) == nr_owned(k));
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		for (uint32_t n = 0; n < memory_port(cport_at(k, i))->nr_magazine; n++)
			assert(page_is_ours(k, memory_port(cport_at(k, i))->magazine[n]));
	check_list(k, &memory_of(k)->clean, false);
	check_list(k, &memory_of(k)->leaving, true);
	for (uint32_t page = xlist_head(&memory_of(k)->chunk_pages); page != XLIST_NONE;
		page = xlist_next(&memory_of(k)->chunk_pages, page))
		assert(!page_leaves(k, page));
}
