/* part - notes that a request's holder leaves in it for a successor. Of a split request they say
 * which parts are done; of any other request they are free notes. Both are in its `done` words,
 * which the origin zeroes at each submission.
 *
 *   a part's bit   it was answered. Set before the child that did it is freed; a repair sets those
 *                  of children that were answered and not looked at (xs_req_home())
 *   FAILED_BIT     a part was answered with less than its size
 *
 * Contract: the parent's holder, any thread of its; or the process that repairs a child. Nothing
 * here blocks.
 */
#include "xseg/internal.h"
#include "xtypes/xkill.h"

#define FAILED_BIT (XSEG_DONE_WORDS * 64 - 1)	/* beside the bits of parts: one of them failed */
_Static_assert(FAILED_BIT >= XSEG_REQ_PAGES, "parts have bits 0 to XSEG_REQ_PAGES - 1");

static void done_bit_set(struct xs_req *parent, uint32_t bit)
{
	/* release: partner is the acquire in done_bit() */
	atomic_fetch_or_explicit(&parent->done[bit / 64], 1ull << (bit % 64), memory_order_release);
}

static bool done_bit(const struct xs_req *parent, uint32_t bit)
{
	return atomic_load_explicit(&parent->done[bit / 64], memory_order_acquire) >> (bit % 64) &
	       1;
}

void xs_req_mark_part(struct xseg *seg, uint32_t child, int64_t result)
{
	/* acquire: partner is the release in xseg_req_submit() */
	uint32_t parent = atomic_load_explicit(&seg->reqs[child].parent, memory_order_acquire);
	uint32_t part = XS_FETCH(seg->reqs[child].part);

	if (parent == 0 || parent > seg->geo.nr_requests || part >= XSEG_REQ_PAGES)
		return;
	if (result < (int64_t)seg->reqs[child].size)
		done_bit_set(&seg->reqs[parent - 1], FAILED_BIT);
	done_bit_set(&seg->reqs[parent - 1], part);
	XKILL(PART_MARKED);
}

void xseg_req_part_set_done(struct xport *port, const struct xreq *child)
{
	xs_req_mark_part(port->seg, child->index, child->result);
}

bool xseg_req_part_is_done(struct xport *port, const struct xreq *r, uint32_t part)
{
	return part < XSEG_REQ_PAGES && done_bit(&port->seg->reqs[r->index], part);
}

bool xseg_req_part_failed(struct xport *port, const struct xreq *r)
{
	return done_bit(&port->seg->reqs[r->index], FAILED_BIT);
}

_Static_assert(XSEG_REQ_NOTES <= XSEG_DONE_WORDS, "notes are in the words of done bits");

void xseg_req_note_set(struct xseg *seg, const struct xreq *r, unsigned n, uint64_t value)
{
	/* release: what the note speaks of was written before; partner is the acquire in
	 * xseg_req_note() */
	atomic_store_explicit(&seg->reqs[r->index].done[n], value, memory_order_release);
}

uint64_t xseg_req_note(struct xseg *seg, const struct xreq *r, unsigned n)
{
	return atomic_load_explicit(&seg->reqs[r->index].done[n], memory_order_acquire);
}
