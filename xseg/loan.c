/* loan - pages that an answer lends, and where the data of a request is.
 *
 * A loan is a hazard pointer (M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free
 * Objects", IEEE TPDS 2004). The request that lists the page pins it, and nobody counts. The lender
 * stores the page's number into the request. At that moment nothing else can let go of the page.
 * When the lender lets go of a page that may be lent it keeps the page aside. Then it looks through
 * all requests (xseg_loans): a page that none of them lists is free. So a hit writes nothing but
 * the request, which it has to write anyway.
 *
 * A request lists the pages in the first nr_lent of page[].lent, in every state but FREE:
 *
 *   step                                     by                               when
 *   the list is cleared, nr_lent is stored   the holder, with its first loan  AT
 *   a page is listed                         the holder                       AT
 *   nr_lent becomes 0: nothing is listed     the holder, if it lends nothing  before ANSWERED; not
 *                                                                             of a write that gives
 *                                                                             (gift.c)
 *                                            the origin                       PRIVATE: it has read
 *                                                                             the data, or has a
 *                                                                             new use for it
 *   the place becomes FREE                   the origin, or its repairer
 *
 * A death changes nothing of that. The loans of a dead origin are dropped when its requests are
 * brought home. A successor of the holder clears the list with its first loan, or drops it.
 *
 * Invariants:
 *   H1  A page that may be lent is neither changed in place nor reused until a look at all requests
 *       has not found it.
 *   H2  A page may go from a part to the request that was split. It is listed there before the part
 *       is FREE. So of two looks at least one finds it, whatever their order: a page makes that
 *       step once.
 *   H3  A loan of an answer is checked once, into the origin's private copy (R5). The origin reads
 *       the data through that copy alone.
 *
 * Contract: as request.c. xseg_loans() from any thread; it takes no lock.
 */
#include <errno.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

static const char zeroes[XSEG_PAGE_SIZE];

static struct xs_req *shared(struct xseg *seg, const struct xreq *r)
{
	return &seg->reqs[r->index];
}

void xs_req_loans_drop(struct xseg *seg, struct xreq *r)
{
	r->nr_lent = 0;
	/* release: partner is the acquire in show(); data that was lent has been read before */
	atomic_store_explicit(&shared(seg, r)->nr_lent, 0, memory_order_release);
}

void xseg_req_drop_loans(struct xport *port, struct xreq *r)
{
	xs_req_loans_drop(port->seg, r);
}

/* ---- the holder's ---- */

static inline void list(struct xport *port, struct xreq *r, uint32_t i, uint32_t lent)
{
	struct xs_req *sh = shared(port->seg, r);

	if (i >= r->nr_pages)
		return;
	/* release, here and below: partner is the acquire in show(), which then knows that what was
	 * listed before is dropped */
	if (r->nr_lent == 0) {
		for (uint32_t k = 0; k < r->nr_pages; k++)
			atomic_store_explicit(
				&sh->page[k].lent, k == i ? lent : 0, memory_order_release);
		r->nr_lent = r->nr_pages;
		/* the old ones are gone before these count */
		atomic_store_explicit(&sh->nr_lent, r->nr_pages, memory_order_release);
	} else {
		atomic_store_explicit(&sh->page[i].lent, lent, memory_order_release);
	}
	XKILL(PAGE_LENT);
}

void xseg_req_lend(struct xport *port, struct xreq *r, uint32_t i, uint32_t page)
{
	list(port, r, i, page == XSEG_NONE ? XSEG_LENT_ZEROES : page | XSEG_LENT_PAGE);
}

void xseg_req_pass_loans(
	struct xport *port, const struct xreq *child, struct xreq *parent, uint32_t first)
{
	for (uint32_t i = 0; i < child->nr_lent; i++)
		if (child->lent[i])
			list(port, parent, first + i, child->lent[i]);
}

static uint32_t borrower(struct xseg *seg, uint32_t origin, uint32_t parent)
{
	if (parent && parent <= seg->geo.nr_requests)
		origin = XS_FETCH(seg->reqs[parent - 1].origin);
	return origin < seg->geo.nr_ports ? origin : 0;
}

uint32_t xseg_req_borrower(struct xseg *seg, const struct xreq *r)
{
	return borrower(seg, r->origin, r->parent);
}

/* ---- the origin's ---- */

int xs_req_loans_in(struct xseg *seg, struct xreq *r)
{
	const struct xs_req *sh = shared(seg, r);
	uint32_t nr = atomic_load_explicit(&sh->nr_lent, memory_order_relaxed);

	r->nr_lent = 0;
	if (nr == 0 || !(r->flags & XSEG_REQ_LOAN) || r->op != XSEG_OP_READ)
		return 0;
	for (uint32_t i = 0; i < nr && i < r->nr_pages; i++) {
		uint32_t lent = atomic_load_explicit(&sh->page[i].lent, memory_order_relaxed);

		if (lent && lent != XSEG_LENT_ZEROES &&
		    (!(lent & XSEG_LENT_PAGE) || (lent & ~XSEG_LENT_PAGE) >= seg->nr_pages)) {
			xs_count_bad(seg);
			return -EPROTO;
		}
		r->lent[i] = lent;
	}
	r->nr_lent = (uint16_t)(nr < r->nr_pages ? nr : r->nr_pages);
	return 0;
}

/* ---- looking for what is lent ---- */

/* Its origin may just be submitting it again. */
XS_RACY static uint16_t origin_of(const struct xs_req *sh)
{
	return XS_FETCH(sh->origin);
}

static void show(struct xseg *seg, uint32_t index, unsigned look,
		 void (*fn)(uint32_t page, uint32_t port, unsigned look, void *arg), void *arg)
{
	struct xs_req *sh = &seg->reqs[index];
	/* acquire, both: partners are the swap to FREE and the release in xs_req_loans_drop(): the
	 * page's data has been read */
	uint64_t place = atomic_load_explicit(&sh->place, memory_order_acquire);
	uint32_t nr = atomic_load_explicit(&sh->nr_lent, memory_order_acquire), port;

	if (nr == 0 || place_state(place) == XSEG_REQ_FREE)
		return;
	port = borrower(
		seg, origin_of(sh), atomic_load_explicit(&sh->parent, memory_order_relaxed));
	for (uint32_t i = 0; i < nr && i < XSEG_REQ_PAGES; i++) {
		/* acquire: partners are the releases in list() */
		uint32_t lent = atomic_load_explicit(&sh->page[i].lent, memory_order_acquire);

		if ((lent & XSEG_LENT_PAGE) && (lent & XSEG_PAGE_INDEX) < seg->nr_pages)
			fn(lent & XSEG_PAGE_INDEX, port, look, arg);
	}
}

void xseg_loans(struct xseg *seg,
	void (*fn)(uint32_t page, uint32_t port, unsigned look, void *arg), void *arg)
{
	for (unsigned look = 0; look < 2; look++)
		for (uint32_t i = 0; i < seg->geo.nr_requests; i++)
			show(seg, i, look, fn, arg);
}

struct lent_by {
	struct xseg *seg;
	uint32_t peer;
	bool any;
};

static void note_lender(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct lent_by *by = arg;
	uint64_t w = atomic_load_explicit(
		&by->seg->extents[page / XSEG_EXTENT_PAGES].word, memory_order_acquire);

	(void)port;
	(void)look;
	by->any |= extent_kind(w) == XS_EXTENT_PAGES && extent_peer(w) == by->peer;
}

bool xs_has_lent(struct xseg *seg, uint32_t peer)
{
	struct lent_by by = { .seg = seg, .peer = peer };

	xseg_loans(seg, note_lender, &by);
	return by.any;
}

/* ---- data ---- */

const void *xseg_req_page(struct xseg *seg, const struct xreq *r, uint32_t i)
{
	uint32_t lent = i < r->nr_lent ? r->lent[i] : 0;

	if (lent & XSEG_LENT_ZEROES)
		return zeroes;
	return xseg_page(seg, (lent & XSEG_LENT_PAGE ? lent : r->page[i]) & XSEG_PAGE_INDEX);
}

void xseg_req_read_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, void *buf, uint32_t len)
{
	uint64_t at = r->offset % XSEG_PAGE_SIZE + from;

	while (len) {
		uint32_t in = (uint32_t)(at % XSEG_PAGE_SIZE);
		uint32_t n = XSEG_PAGE_SIZE - in < len ? XSEG_PAGE_SIZE - in : len;

		memcpy(buf,
			(const char *)xseg_req_page(seg, r, (uint32_t)(at / XSEG_PAGE_SIZE)) + in,
			n);
		buf = (char *)buf + n;
		at += n;
		len -= n;
	}
}

void xseg_req_write_data(
	struct xseg *seg, const struct xreq *r, uint32_t from, const void *buf, uint32_t len)
{
	uint64_t at = r->offset % XSEG_PAGE_SIZE + from;

	while (len) {
		uint32_t in = (uint32_t)(at % XSEG_PAGE_SIZE);
		uint32_t n = XSEG_PAGE_SIZE - in < len ? XSEG_PAGE_SIZE - in : len;

		memcpy((char *)xseg_page(seg, r->page[at / XSEG_PAGE_SIZE] & XSEG_PAGE_INDEX) + in,
			buf, n);
		buf = (const char *)buf + n;
		at += n;
		len -= n;
	}
}
