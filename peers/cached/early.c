/* early - the data of single pages is copied before their writes are served, for all of a batch
 * together.
 *
 * Such a copy goes past the processor's caches (data.h), and its stores have to be waited for
 * before a slot may say that they are there. To wait costs nearly half of the copy; for a batch one
 * does it once. What is copied to is pages that the port has at hand: they are nobody's, so it does
 * not matter what is in them, and a write that goes another way than expected copies its data
 * again.
 *
 * A *note* says which request's data a page has: its index and its place word, which is that of one
 * hold of it and of no other. Writes are served in the order in which they came, and put the pages
 * that they let go of at the end of the magazine. So the notes begin at its end and go towards its
 * beginning: what is behind them when one is taken has none, or one that is past.
 *
 * Contract: the port's thread; early_copy() outside of any object.
 *
 * Invariants:
 *   M1  magazine[last - i] has all the data of the request of note[i], settled, for i from first to
 *       nr - 1
 *   M2  who takes pages from the magazine otherwise forgets the notes (pages.c); so does the next
 *       batch, before any of it is served: a note is never older than the batch
 */
#include "peers/cached/cached.h"
#include "peers/cached/data.h"
#include "xtypes/xhot.h"

/* It overwrites a bucket, and is of the kind that the short way serves (hit_write). */
static bool is_single(const struct xreq *r)
{
	return r->op == XSEG_OP_WRITE && !r->flags && r->size == BUCKET_SIZE &&
	       r->obj_offset % BUCKET_SIZE == 0;
}

bool early_wanted(const struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && ps->early.pays; i++)
		if (is_single(r[i]))
			return true;
	return false;
}

XHOT void early_copy(struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	struct xseg *seg = ps->cache->peer.seg;
	struct early *e = &ps->early;
	uint32_t most = ps->nr_magazine < EARLY_MAX ? ps->nr_magazine : EARLY_MAX;

	e->first = e->nr = 0;
	e->last = ps->nr_magazine - 1;
	for (uint32_t i = 0; i < nr && e->nr < most; i++) {
		if (!is_single(r[i]))
			continue;
		data_copy_past(xseg_page(seg, ps->magazine[e->last - e->nr]),
			xseg_page(seg, r[i]->page[0] & XSEG_PAGE_INDEX));
		e->note[e->nr++] = (struct early_note){ r[i]->place, r[i]->index };
	}
	data_settle();
}

static bool is_of(const struct early_note *n, const struct xreq *r)
{
	return n->index == r->index && n->place == r->place;
}

/* The page at the end takes the place of one that is taken before it. */
static uint32_t take_at(struct cport *ps, uint32_t at)
{
	uint32_t page = ps->magazine[at];

	ps->magazine[at] = ps->magazine[--ps->nr_magazine];
	return page;
}

bool early_take(struct cport *ps, const struct xreq *r, uint32_t *page)
{
	struct early *e = &ps->early;
	uint32_t i = e->first;

	while (i < e->nr && !is_of(&e->note[i], r))
		i++;
	if (i == e->nr || pages_wanted(ps->cache))
		return false;
	*page = take_at(ps, e->last - i);
	e->first = i + 1;
	return true;
}

void early_forget(struct cport *ps)
{
	ps->early.first = ps->early.nr = 0;
}

void early_check(const struct cport *ps)
{
	const struct early *e = &ps->early;

	assert(e->first <= e->nr && e->nr <= EARLY_MAX);
	if (e->first < e->nr)	/* M1: they are still there */
		assert(e->nr - 1 <= e->last && e->last - e->first < ps->nr_magazine);
}
