/* gift - pages that a write hands over instead of having them copied, and the pages lent in return.
 *
 * An origin never gives away a page of its own. Otherwise memory would change hands page by page.
 * Extents would belong to many owners, and could return to the segment only if all agreed. So a
 * given page was lent for that purpose. The answer of a WRITE with XSEG_REQ_GIVE may lend pages to
 * write in (XSEG_LENT_GIFT), in the list of loans. The origin writes its next data there. It
 * submits the same request again, which lists those pages as given (XSEG_PAGE_GIVEN). The holder
 * may keep such a page with its data, and lists another one in its place: the exchange. So a page
 * is its lender's all the time. The request that lists it pins it, like any loan (loan.c). Nobody
 * has to be told when the origin dies, frees the request, or has no more use for the page.
 *
 * A gift is a permission. A holder that does not know of gifts finds the data in the listed pages,
 * as before. So of one request some pages may be taken and others copied. Copied are edges, pages
 * of another lender, and pages whose lender has none to give back. The origin lets go of the pages
 * that were not exchanged when it takes the answer. It writes into pages of its own until it
 * borrows some again.
 *
 * An entry of the page list of a request with XSEG_REQ_GIVE, from its submission on:
 *
 *   page               lent            the i-th page is                           stored by
 *   the origin's own   0               to be copied                               the origin
 *   the origin's own   page Q | GIFT   copied, and Q is lent for the next write   the holder
 *   page P | GIVEN     page P | GIFT   given: it may be taken, or copied          the origin
 *   page P | GIVEN     page Q | GIFT   taken, or copied, and Q lent for it        the holder
 *   page P | GIVEN     0               the same, and nothing lent                 the holder
 *
 * The holder stores its word only when the data is at its final place.
 *
 * A request that is split keeps the one list that counts, for its parts as well. A part says which
 * pages of that list are its own, and the holder of the part exchanges them there. So the peer that
 * splits takes no part in the exchange.
 *
 * Invariants:
 *   I1  `page` is the origin's, and does not change after submission. `lent` is one word, changed
 *       once while the request is out: it is the truth about the exchange. A peer that does a
 *       request again sees from it which pages were taken, and leaves these alone. By then their
 *       data may be another's.
 *   I2  At submission the list of a request that gives has nr_pages entries that count. So a lender
 *       has none to clear, and holders of several parts do not meet.
 *   I3  A lent page is checked once, into the origin's private copy (R5). The origin writes through
 *       that copy alone.
 *
 * Contract: as request.c.
 */
#include <errno.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

static bool is_gift(uint32_t lent)
{
	return (lent & ~XSEG_PAGE_INDEX) == (XSEG_LENT_PAGE | XSEG_LENT_GIFT);
}

/* ---- the origin's ---- */

bool xs_req_lists_gifts(const struct xreq *r)
{
	return xseg_req_gives(r) && r->parent == 0;
}

void xs_req_gifts_out(struct xseg *seg, struct xreq *r)
{
	struct xs_req *sh = &seg->reqs[r->index];

	for (uint32_t i = 0; i < r->nr_pages; i++) {
		if (i >= r->nr_lent || !is_gift(r->lent[i]))
			r->lent[i] = 0;
		sh->page[i].page = r->lent[i] ? (r->lent[i] & XSEG_PAGE_INDEX) | XSEG_PAGE_GIVEN
					      : r->page[i];
		/* release: partner is the acquire in show(); what is not listed any more has been
		 * read, or written, before */
		atomic_store_explicit(&sh->page[i].lent, r->lent[i], memory_order_release);
	}
	r->nr_lent = r->nr_pages;
	/* release: all of the list is as it should be before it counts */
	atomic_store_explicit(&sh->nr_lent, r->nr_pages, memory_order_release);
}

int xs_req_gifts_in(struct xseg *seg, struct xreq *r)
{
	struct xs_req *sh = &seg->reqs[r->index];

	for (uint32_t i = 0; i < r->nr_lent; i++) {
		uint32_t given = r->lent[i],
			 lent = atomic_load_explicit(&sh->page[i].lent, memory_order_relaxed);

		r->lent[i] = lent;
		if (lent == 0)
			continue;
		if (!is_gift(lent) || (lent & XSEG_PAGE_INDEX) >= seg->nr_pages) {
			xs_count_bad(seg);
			xs_req_loans_drop(seg, r);
			return -EPROTO;
		}
		if (lent != given)
			continue;
		r->lent[i] = 0;
		/* release: partner is the acquire in show() */
		atomic_store_explicit(&sh->page[i].lent, 0, memory_order_release);
	}
	return 0;
}

void *xseg_req_gift_page(struct xseg *seg, const struct xreq *r, uint32_t i)
{
	uint32_t lent = i < r->nr_lent && is_gift(r->lent[i]) ? r->lent[i] : 0;

	return xseg_page(seg, (lent ? lent : r->page[i]) & XSEG_PAGE_INDEX);
}

bool xseg_req_has_gift(const struct xreq *r)
{
	for (uint32_t i = 0; i < r->nr_lent; i++)
		if (is_gift(r->lent[i]))
			return true;
	return false;
}

/* ---- the holder's ---- */

/* The entry that counts for the i-th page of r; NULL: none. What a part says of the request that
 * was split is input (R5). */
static struct xs_page *entry_of(struct xseg *seg, const struct xreq *r, uint32_t i)
{
	uint32_t root = r->index, at = i;

	if (!xseg_req_gives(r))
		return NULL;
	if (r->parent) {
		root = r->parent - 1;
		if (root >= seg->geo.nr_requests || XS_FETCH(seg->reqs[root].op) != XSEG_OP_WRITE ||
		    !(XS_FETCH(seg->reqs[root].flags) & XSEG_REQ_GIVE))
			return NULL;
		at += (uint32_t)(r->offset / XSEG_PAGE_SIZE -
				 XS_FETCH(seg->reqs[root].offset) / XSEG_PAGE_SIZE);
	}
	if (at >= XSEG_REQ_PAGES ||
		at >= atomic_load_explicit(&seg->reqs[root].nr_lent, memory_order_relaxed))
		return NULL;
	return &seg->reqs[root].page[at];
}

enum xseg_gift xseg_req_gift(struct xseg *seg, const struct xreq *r, uint32_t i)
{
	struct xs_page *e = entry_of(seg, r, i);
	uint32_t page = e ? XS_FETCH(e->page) : 0;

	if (!(page & XSEG_PAGE_GIVEN) || (page & XSEG_PAGE_INDEX) != r->page[i])
		return XSEG_GIFT_NONE;
	/* acquire: a successor that sees the exchange sees what came before it */
	return atomic_load_explicit(&e->lent, memory_order_acquire) ==
			       (r->page[i] | XSEG_LENT_PAGE | XSEG_LENT_GIFT)
		       ? XSEG_GIFT_GIVEN
		       : XSEG_GIFT_TAKEN;
}

bool xseg_req_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page)
{
	struct xs_page *e = entry_of(seg, r, i);
	uint32_t lent;

	if (!e)
		return false;
	lent = page == XSEG_NONE ? 0 : page | XSEG_LENT_PAGE | XSEG_LENT_GIFT;
	/* release: partners are the acquires in show() and in xseg_req_gift() */
	atomic_store_explicit(&e->lent, lent, memory_order_release);
	XKILL(GIFT_EXCHANGED);
	return true;
}
