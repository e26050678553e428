/* limbo - see limbo.h. lend/loan.c explains eras, and the look that ends one. */
#include <assert.h>

#include "peers/cached/memory/account.h"
#include "peers/cached/memory/limbo.h"
#include "peers/cached/memory/pages.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

#define FIRST_ERA    1u			/* no page has been seen in it */

struct look {
	struct cached *k;
	bool begins;				/* an era began with it: */
	uint32_t era;				/* that one */
};

void limbo_open(struct cached *k)
{
	xlist_init(&memory_of(k)->limbo.pages, memory_of(k)->chunk_pages.nodes);
	atomic_store_explicit(&memory_of(k)->limbo.era, FIRST_ERA << 1, memory_order_relaxed);
}

/* A new era begins, with that number, any one, as they wrap; false: another thread looks for
 * one. */
static bool era_begin(struct cached *k, uint32_t *number)
{
	uint32_t era = atomic_load_explicit(&memory_of(k)->limbo.era, memory_order_relaxed);

	if (era & 1 || !atomic_compare_exchange_strong(&memory_of(k)->limbo.era, &era, era + 3))
		return false;
	/* seq_cst: partner is the fence in lent_stamp() */
	atomic_thread_fence(memory_order_seq_cst);
	*number = (era + 2) >> 1;
	return true;
}

/* All that was lent before it began, and still is, has been seen. */
static void era_end(struct cached *k, uint32_t era)
{
	/* release: partner is the acquire in slot_may_be_lent() */
	atomic_store_explicit(&memory_of(k)->limbo.era, era << 1, memory_order_release);
}

/* Of this era. */
uint64_t lent_now(struct cached *k)
{
	uint64_t era = atomic_load_explicit(&memory_of(k)->limbo.era, memory_order_relaxed) >> 1 &
		       SLOT_ERAS;

	return SLOT_LENT | era << SLOT_ERA_SHIFT;
}

uint64_t lent_stamp(struct cport *ps, const struct xreq *r)
{
	uint64_t direct = r->flags & XSEG_REQ_DIRECT ? SLOT_DIRECT : 0;

	/* seq_cst: partner is the fence in era_begin(): the look sees the request that lists the
	 * page, or we see the new era. One thread does one of both at a time */
	if (!cache_is_alone(ps))
		atomic_thread_fence(memory_order_seq_cst);
	return direct | lent_now(ps->cache);
}

bool slot_may_be_lent(struct cached *k, uint64_t w)
{
	uint32_t era, then = (uint32_t)(w >> SLOT_ERA_SHIFT);
	bool looking, seen;

	if (!(w & SLOT_LENT) || w & SLOT_DIRECT)
		return w & SLOT_LENT;
	do {
		era = atomic_load_explicit(&memory_of(k)->limbo.era, memory_order_acquire);
		looking = era & 1;
		/* acquire: partner is the release in found(); if that was a newer look's we see its
		 * era, too */
		seen = (uint8_t)((era >> 1) -
				 atomic_load_explicit(&memory_of(k)->limbo.seen[slot_page(w)],
					 memory_order_acquire)) <= looking;
	} while (era != atomic_load_explicit(&memory_of(k)->limbo.era, memory_order_relaxed));
	return seen || (((era >> 1) - then) & SLOT_ERAS) <= looking;
}

/* Under mem_lock. */
void limbo_add(struct cached *k, uint32_t page, uint32_t more)
{
	xlist_push_tail(&memory_of(k)->limbo.pages, page);
	atomic_fetch_add_explicit(&memory_of(k)->limbo.nr, more, memory_order_relaxed);
}

XCOLD void limbo_put(struct cport *ps, uint32_t page)
{
	struct cached *k = ps->cache;

	xseg_page_owner_set(peer_of(k)->seg, page, OWNER_LENT);
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	limbo_add(k, page, 1);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	share_has_room(ps);
}

/* Some request lists it. A page that another thread looks for, or that is another cache's, may be
 * shown too: what is said of it is true. */
static void found(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct look *l = arg;
	struct cached *k = l->k;

	(void)port;
	(void)look;
	if (!page_is_ours(k, page))
		return;
	if (l->begins)
		atomic_store_explicit(
			&memory_of(k)->limbo.seen[page], (uint8_t)l->era, memory_order_release);
	/* swapped: the thread that looks for it may have put it meanwhile, and it is another's */
	if (xseg_page_owner(peer_of(k)->seg, page) == OWNER_LOOKED)
		(void)!xseg_page_owner_swap(peer_of(k)->seg, page, OWNER_LOOKED, OWNER_LENT);
}

/* All that is in limbo, as a list of the caller's. */
static struct xlist batch_take(struct cached *k)
{
	struct xlist batch;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	batch = memory_of(k)->limbo.pages;
	xlist_init(&memory_of(k)->limbo.pages, memory_of(k)->chunk_pages.nodes);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	for (uint32_t page = xlist_head(&batch); page != XLIST_NONE;
		page = xlist_next(&batch, page))
		xseg_page_owner_set(peer_of(k)->seg, page, OWNER_LOOKED);
	return batch;
}

/* Returns how many of them are free now. */
static uint32_t batch_end(struct cached *k, struct xlist *batch)
{
	uint32_t freed = 0, kept = 0, page, was;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	while ((page = xlist_head(batch)) != XLIST_NONE) {
		xlist_remove(batch, page);
		if (xseg_page_owner(peer_of(k)->seg, page) == OWNER_LOOKED) {
			xseg_page_owner_set(peer_of(k)->seg, page, 0);
			xseg_page_touched(peer_of(k)->seg, page);
			pool_put(k, page);
			freed++;
		} else {
			limbo_add(k, page, 0);
			kept++;
		}
	}
	was = atomic_fetch_sub_explicit(&memory_of(k)->limbo.nr, freed, memory_order_relaxed);
	assert(was >= freed + kept);				/* L3 */
	atomic_store_explicit(&memory_of(k)->limbo.nr_pinned, kept, memory_order_relaxed);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return freed;
}

bool limbo_look(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct look l = { .k = k };
	struct xlist batch;

	if (atomic_load_explicit(&memory_of(k)->limbo.nr, memory_order_relaxed) == 0)
		return false;
	batch = batch_take(k);
	XKILL(LIMBO_TAKEN);
	/* seq_cst: partner is the fence in pin() (xseg/direct.c): who has listed one of these pages
	 * himself is seen, or sees that its slot has let go of it */
	atomic_thread_fence(memory_order_seq_cst);
	l.begins = era_begin(k, &l.era);
	xseg_loans(peer_of(k)->seg, found, &l);
	if (l.begins)
		era_end(k, l.era);
	if (batch_end(k, &batch) == 0)
		return false;
	memory_port(ps)->freed = true;
	return true;
}
