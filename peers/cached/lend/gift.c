/* gift - writes that give their pages: the given page goes into its bucket as it is, and the client
 * gets another page on loan to write in.
 *
 * A client can give only a page that it was lent for that before (xseg/gift.c). So a given page is
 * a page of this cache. The section that applies the write (rule R3) stores its slot, as for a
 * copy. Then one word of the request names the page that the client is lent in exchange.
 *
 * The best page to lend is the page that the bucket lets go of, as it has older data of the same
 * volume. Then a hit takes no page and frees none. It touches the same words as a copy, but not the
 * data. The bucket may let go of no page, or of a page that a client may still read. Then the
 * client is lent the new page that every write has taken. That page is zeroed first, as it may have
 * another volume's data. A write that is copied, as its client has nothing to give yet, is lent the
 * page that its bucket lets go of.
 *
 * Where a page is, and its owner word:
 *
 *   where             owner word             goes on when
 *   a slot            the bucket's name      a write that gives, or asks for a page to give next
 *                                            time, puts another page there
 *   lent as a gift    GIFT, with its entry   it is given: to a slot; or a look finds that the
 *                                            client dropped it: free
 *
 * Two threads can claim a lent page at the same time: one for the write that gives it, one for a
 * look that finds it in no request. The latter happens if the client dropped it, or is hostile. The
 * owner word decides. The claim is one swap from exactly the old word. Where the cache has one
 * thread, it is a load and a store.
 *
 * A client drops a lent page without telling the cache. So each thread has a table of the pages
 * that it has lent, one entry a page. The owner word names the entry. A page that is lent in
 * exchange gets the entry of the given page, whichever thread makes the exchange. So there is no
 * lock and no list, and a steady exchange stores only words that it has at hand. A look at all
 * requests frees the pages that none of them lists. It is made when a table is full, and in pauses
 * while requests wait for pages or an extent is to leave (loan.c).
 *
 * A thread lends at most as many pages as its table has entries, all threads together an eighth of
 * the cache. With the pages that reads are lent, the limit is a quarter: a page that is lent for
 * the first time takes credit, as a loan does (loan.c). No page is lent for the first time while
 * requests wait for pages. None is lent while the cache stops.
 *
 * After a kill, lent pages are like any loan (LENT, in limbo). When the client gives one, the cache
 * copies it and lends another. A write that is done again skips its buckets whose pages were
 * exchanged. The predecessor had stored their slots, and nothing else of the object has been done
 * since. The page may be another's by now. A page that is in its slot and was not exchanged is
 * copied, and stays lent: its owner word says that it is no gift.
 *
 * Invariants:
 *   V1  A page with OWNER_GIFT is in no slot, pool or list. Its entry has it, with the same
 *       generation. A request lists it before it has that word, and until it loses the word or its
 *       client drops it. So a page that a look saw with that word, and found in no request, was
 *       dropped.
 *   V2  An exchange is stored after the slot.
 *   V3  A page is lent to one request at a time, and no other client reads it: a page that is on
 *       loan is never lent as a gift.
 *
 * A write takes a short way (hit.c) if all of its pages may be taken, and its buckets let go of
 * pages that may be lent. It needs nothing else.
 *
 * Contract: gift_may(), gift_take(), gift_exchange(), gift_choose() inside the object; gifts_look()
 * in a port's thread, for the pages that it has lent itself.
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/lend/lend.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/creq/creq.h"

#define TRIES	 8u			/* entries that are looked at for a free one */
#define LOOK_NS	 1000000ull		/* no look for entries before that much later */
#define ENTRIES	 CACHE_GIFTS
_Static_assert(ENTRIES <= 1u << 12 && PEER_MAX_THREADS <= 16,
	"owner words have 12 bits for an entry, 4 for its thread");

/* ---- entries and owner words ---- */

/* An entry: a generation, and page + 1, or 0. */
static uint64_t entry_word(uint32_t gen, uint32_t page)
{
	return (uint64_t)gen << 32 | (page == NO_PAGE ? 0 : page + 1);
}

static uint32_t entry_page(uint64_t e)
{
	return (uint32_t)e - 1;
}

static uint32_t entry_gen(uint64_t e)
{
	return (uint32_t)(e >> 32);
}

/* The owner word of the page in the entry of that name, port << 12 | number. */
static uint64_t owner_word(uint32_t name, uint64_t e)
{
	return OWNER_GIFT | (uint64_t)entry_gen(e) << 16 | name;
}

static _Atomic uint64_t *entry_at(struct cached *k, uint32_t name)
{
	uint32_t port = name >> 12 & 0xf, nr = name & 0xfff;

	assert(port < peer_of(k)->nr_ports && nr < ENTRIES);
	return &lend_port(cport_at(k, port))->lender.gift[nr];
}

/* Returns what it is now. */
static uint64_t entry_set(struct cached *k, uint32_t name, uint32_t page)
{
	_Atomic uint64_t *at = entry_at(k, name);
	uint64_t e =
		entry_word(entry_gen(atomic_load_explicit(at, memory_order_relaxed)) + 1, page);

	/* one writer: who has the page, or, of a free one, its thread. Release: partner is the
	 * acquire in entry_get() */
	atomic_store_explicit(at, e, memory_order_release);
	return e;
}

/* How many entries of a thread may be used now. */
static uint32_t entries_max(struct cached *k)
{
	uint32_t nr = data_pages(k) / 8 / peer_of(k)->nr_ports;

	return nr < ENTRIES ? nr : ENTRIES;
}

static bool entry_find(struct cport *ps, uint32_t *name)
{
	struct lender *l = &lend_port(ps)->lender;
	uint32_t max = entries_max(ps->cache);

	for (uint32_t n = 0; n < TRIES && n < max; n++) {
		uint32_t nr = (l->gift_at + n) % max;

		if ((uint32_t)atomic_load_explicit(&l->gift[nr], memory_order_acquire))
			continue;
		l->gift_at = nr + 1;
		*name = (uint32_t)ps->pp->nr << 12 | nr;
		return true;
	}
	l->gift_at += TRIES;
	return false;
}

/* A free entry of the thread's: it is not taken before something is stored there. */
static bool entry_get(struct cport *ps, uint32_t *name)
{
	struct lender *l = &lend_port(ps)->lender;

	if (entry_find(ps, name))
		return true;
	if (ps->pp->now_ns < l->gifts_ns)
		return false;
	l->gifts_ns = ps->pp->now_ns + LOOK_NS;
	return gifts_look(ps) && entry_find(ps, name);
}

bool gifts_open(struct cached *k)
{
	_Atomic uint64_t *all = cached_alloc(k, peer_of(k)->nr_ports * ENTRIES * sizeof(*all));

	for (uint32_t i = 0; all && i < peer_of(k)->nr_ports; i++)
		lend_port(cport_at(k, i))->lender.gift = all + (size_t)i * ENTRIES;
	return all;
}

/* The page is another's from now on: a look and a write that gives it may both want that, where the
 * cache has more than one thread. */
static bool owner_swap(struct cport *ps, uint32_t page, uint64_t old, uint64_t new)
{
	struct xseg *seg = peer_of(ps->cache)->seg;

	if (!cache_is_alone(ps))
		return xseg_page_owner_swap(seg, page, old, new);
	if (xseg_page_owner(seg, page) != old)
		return false;
	xseg_page_owner_set(seg, page, new);
	return true;
}

/* ---- lending ---- */

static bool stays(struct cached *k, uint32_t page)
{
	return atomic_load_explicit(&page_extent(k, page)->state, memory_order_relaxed) ==
	       EXTENT_STAYS;
}

static bool is_stopping(struct cached *k)
{
	return atomic_load_explicit(&peer_of(k)->stopping, memory_order_relaxed);
}

/* It was in a slot until now: whether it may be lent to be written. */
static bool is_fit(struct cached *k, uint32_t page)
{
	return page != NO_PAGE && stays(k, page) &&
	       !limbo_holds(xseg_page_owner(peer_of(k)->seg, page));
}

/* False: the request takes none. V1: it is listed first. */
static bool lend(struct cport *ps, const struct xreq *r, uint32_t i, uint32_t page, uint32_t name)
{
	struct cached *k = ps->cache;

	if (!xseg_req_exchange(peer_of(k)->seg, r, i, page))
		return false;
	xseg_page_owner_set(peer_of(k)->seg, page, owner_word(name, entry_set(k, name, page)));
	return true;
}

/* A write that was copied is lent the page that its bucket let go of, if it may have one. */
void gift_lend_first(struct cport *ps, const struct xreq *r, uint32_t i, uint32_t old)
{
	struct cached *k = ps->cache;
	uint32_t name;

	if (is_fit(k, old) && !is_stopping(k) && !pages_wanted(k) && entry_get(ps, &name) &&
		loan_begin(ps, r, 1) && lend(ps, r, i, old, name))
		lend_port(ps)->lender.has_gifts = true;
	else
		page_put(ps, old);
}

void gift_exchange(
	struct cport *ps, const struct xreq *r, uint32_t i, uint32_t page, uint64_t given)
{
	struct cached *k = ps->cache;
	uint32_t name = (uint32_t)given & 0xffff;

	if (page != NO_PAGE && lend(ps, r, i, page, name))
		return;
	page_put(ps, page);
	entry_set(k, name, NO_PAGE);
	/* whose list it is that has been scribbled over meanwhile has nothing to be told */
	if (!xseg_req_exchange(peer_of(k)->seg, r, i, XSEG_NONE))
		count(ps, CC_LOANS_REFUSED, 1);
}

/* The page that is lent for one that was given: the one that the bucket lets go of, or the new
 * one. */
uint32_t gift_choose(struct cport *ps, struct creq *c, uint32_t i, uint32_t old)
{
	struct cached *k = ps->cache;
	uint32_t page = c->page[i];

	if (!is_stopping(k) && is_fit(k, old))
		return old;
	page_put(ps, old);
	if (is_stopping(k))
		return NO_PAGE;
	c->page[i] = NO_PAGE;
	memset(xseg_page(peer_of(k)->seg, page), 0, BUCKET_SIZE);
	return page;
}

/* ---- taking ---- */

bool gift_may(struct cached *k, const struct xreq *r, uint32_t i)
{
	return xseg_req_gift(peer_of(k)->seg, r, i) == XSEG_GIFT_GIVEN && stays(k, r->page[i]) &&
	       xseg_page_owner(peer_of(k)->seg, r->page[i]) & OWNER_GIFT;
}

bool gift_may_lend(struct cached *k, uint64_t w)
{
	return slot_has_page(w) && !slot_may_be_lent(k, w) && stays(k, slot_page(w)) &&
	       !is_stopping(k);
}

bool gift_take(struct cport *ps, uint32_t page, uint64_t bucket, uint64_t *given)
{
	*given = xseg_page_owner(peer_of(ps->cache)->seg, page);
	return *given & OWNER_GIFT && owner_swap(ps, page, *given, bucket);
}

/* ---- looking for what was dropped ---- */

struct look {
	struct cport *ps;
	uint64_t seen[ENTRIES];		/* as the entries were; 0: none, or it is not to be freed */
};

static uint32_t name_of(const struct cport *ps, uint32_t nr)
{
	return (uint32_t)ps->pp->nr << 12 | nr;
}

/* V1: only such as have their word. */
static void look_begin(struct look *l)
{
	struct cport *ps = l->ps;

	for (uint32_t nr = 0; nr < ENTRIES; nr++) {
		uint64_t e =
			atomic_load_explicit(&lend_port(ps)->lender.gift[nr], memory_order_acquire);

		if ((uint32_t)e == 0 || xseg_page_owner(peer_of(ps->cache)->seg, entry_page(e)) !=
						owner_word(name_of(ps, nr), e))
			e = 0;
		l->seen[nr] = e;
	}
}

static void found(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct look *l = arg;
	struct cached *k = l->ps->cache;
	uint64_t owner = xseg_page_owner(peer_of(k)->seg, page);

	(void)port;
	(void)look;
	if (owner & OWNER_GIFT && (owner >> 12 & 0xf) == l->ps->pp->nr && page_is_ours(k, page) &&
		(owner & 0xfff) < ENTRIES && entry_page(l->seen[owner & 0xfff]) == page)
		l->seen[owner & 0xfff] = 0;
}

bool gifts_look(struct cport *ps)
{
	struct look l = { .ps = ps };
	struct cached *k = ps->cache;
	uint32_t freed = 0;

	if (!lend_port(ps)->lender.has_gifts)
		return false;
	look_begin(&l);
	xseg_loans(peer_of(k)->seg, found, &l);
	for (uint32_t nr = 0; nr < ENTRIES; nr++) {
		uint64_t e = l.seen[nr];

		if (e == 0 || !owner_swap(ps, entry_page(e), owner_word(name_of(ps, nr), e), 0))
			continue;
		entry_set(k, name_of(ps, nr), NO_PAGE);
		page_free(k, entry_page(e));
		freed++;
	}
	lend_port(ps)->lender.has_gifts = nr_gifts(ps) > 0;
	if (freed == 0)
		return false;
	memory_port(ps)->freed = true;
	return true;
}

/* ---- checking ---- */

uint32_t nr_gifts(const struct cport *ps)
{
	uint32_t n = 0;

	for (uint32_t nr = 0; nr < ENTRIES; nr++)
		n += (uint32_t)atomic_load_explicit(
			     &lend_port(ps)->lender.gift[nr], memory_order_relaxed) != 0;
	return n;
}

void gifts_check(struct cached *k)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		for (uint32_t nr = 0; nr < ENTRIES; nr++) {
			uint64_t e = atomic_load(&lend_port(cport_at(k, i))->lender.gift[nr]);

			/* V1 */
			assert((uint32_t)e == 0 ||
				xseg_page_owner(peer_of(k)->seg, entry_page(e)) ==
					owner_word(i << 12 | nr, e));
			assert((uint32_t)e == 0 ||
				!page_is_listed(k, entry_page(e)));
		}
}
