/* prefetch - prefetches for a request before it is served: the lines of its object, its slot, its
 * page.
 *
 * Contract: any port's thread, outside of the object and without a reference to it. So nothing here
 * is certain, all is a guess: by then it may be another object, or have other pages. Nothing is
 * changed but r->user, which names the guessed object.
 */
#include "peers/cached/object/object.h"
#include "peers/cached/bucket/data.h"
#include "xtypes/xhot.h"

#define LINE_SLOTS 8u

/* What a hit looks at of an object itself, and what a write counts there. Every second object
 * begins in the middle of a line. Into the second cache, as what the index has of it: eight
 * requests want more lines than a core can have under way into the first. */
static void prefetch_private(const struct object *o, bool writes)
{
	__builtin_prefetch(o, 1, 2);
	__builtin_prefetch((const char *)&o->waiters - 1, 1, 2);
	if (!writes)
		return;
	__builtin_prefetch(&o->waiters, 1, 2);
	__builtin_prefetch(&o->cnt[1], 1, 2);
}

/* What will perhaps be its object: r->user. Its lines, and those of its name, are on their way. */
void object_prefetch(struct cached *k, struct xreq *r)
{
	uint32_t idx = xcache_guess(&object_of(k)->xc, r->hash);
	struct object *o = idx == XCACHE_NONE ? NULL : &object_of(k)->objects[idx];

	r->user = o;
	if (!o)
		return;
	xcache_prefetch_entry(&object_of(k)->xc, idx);
	prefetch_private(o, r->op == XSEG_OP_WRITE);
	__builtin_prefetch(
		&object_entry(k, o)
			 ->chunk[r->obj_offset / BUCKET_SIZE / CHUNK_SLOTS % OBJECT_CHUNKS]);
}

/* The slot of a request's i-th bucket, or NULL: found without a reference, so good for a prefetch
 * only. */
static _Atomic uint64_t *hint_slot(struct cached *k, const struct xreq *r, uint32_t i)
{
	uint64_t b = r->obj_offset / BUCKET_SIZE + i;

	return r->user && b < OBJECT_BUCKETS ? slot_word_of(k, r->user, (uint32_t)b) : NULL;
}

_Atomic uint64_t *object_prefetch_slot(struct cached *k, const struct xreq *r)
{
	_Atomic uint64_t *slot = hint_slot(k, r, 0);
	uint32_t last = r->size > BUCKET_SIZE ? (r->size - 1) / BUCKET_SIZE : 0;

	if (!slot)
		return NULL;
	__builtin_prefetch(slot, 1);
	/* of more than two lines of slots what counts is the data */
	if (last)
		__builtin_prefetch(slot + (last < LINE_SLOTS ? last : LINE_SLOTS), 1);
	return slot;
}

/* The page in a slot, or NO_PAGE: a hint, too. */
static uint32_t hint_page(struct cached *k, const _Atomic uint64_t *slot)
{
	uint32_t page = slot ? slot_page(atomic_load_explicit(slot, memory_order_relaxed))
			     : NO_PAGE;

	return page < xseg_nr_pages(peer_of(k)->seg) ? page : NO_PAGE;
}

/* Who is lent a page reads it himself. */
static bool is_lent(const struct xreq *r)
{
	return r->op == XSEG_OP_READ && r->flags & XSEG_REQ_LOAN;
}

/* What a write overwrites, and gives, changes hands: its data is not touched. */
static void owners_prefetch(struct cached *k, const struct xreq *r, uint32_t page)
{
	xseg_page_owner_prefetch(peer_of(k)->seg, page);
	for (uint32_t i = 0; i < r->nr_pages && xseg_req_gives(r); i++)
		xseg_page_owner_prefetch(peer_of(k)->seg, r->page[i]);
}

void object_prefetch_page(struct cached *k, const struct xreq *r, const _Atomic uint64_t *slot)
{
	uint32_t page = is_lent(r) ? NO_PAGE : hint_page(k, slot);

	if (page == NO_PAGE)
		return;
	if (r->op == XSEG_OP_READ)
		data_prefetch(xseg_page(peer_of(k)->seg, page), 4);
	else
		owners_prefetch(k, r, page);
}

/* Of a read of several pages. */
XAPART static void prefetch_first_pages(struct cached *k, const struct xreq *r, uint32_t page)
{
	uint32_t second = hint_page(k, hint_slot(k, r, 1));

	data_prefetch_ahead(xseg_page(peer_of(k)->seg, page));
	if (second != NO_PAGE && data_ahead(second == page + 1) > 1)
		data_prefetch_ahead(xseg_page(peer_of(k)->seg, second));
}

XHOT void object_prefetch_data(struct cached *k, const struct xreq *r)
{
	uint32_t nr = request_is_copied_read(r) ? xseg_req_span(r->obj_offset, r->size) : 0;
	uint32_t page = nr ? hint_page(k, hint_slot(k, r, 0)) : NO_PAGE;

	if (page == NO_PAGE)
		return;
	if (nr > 1)
		prefetch_first_pages(k, r, page);
	else
		data_prefetch_all(xseg_page(peer_of(k)->seg, page));
}
