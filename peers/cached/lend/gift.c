/* gift - writes that give their pages: a page goes into its bucket as it is, and another one is
 * lent to the client to write in.
 *
 * What is given was lent for that before (xseg/gift.c), so it is a page of this cache. In the
 * section that applies the write (rule R3) its slot is stored, as for a copy; then one word of the
 * request says what the client is lent in exchange. Best is the page that the bucket lets go of: it
 * has older data of the same volume; then a hit takes no page and gives none back, and touches the
 * same words as a copy, but for the data. Where the bucket lets go of none, or somebody may still
 * read it, it is the new page that every write has taken: zeroed, as it may have another volume's
 * data. A write that is copied, as it has nothing to give yet, is lent the page that its bucket
 * lets go of.
 *
 * Where a page is, and its owner word:
 *
 *   where             owner word             goes on when
 *   a slot            the bucket's name      a write that gives, or asks for a page to give next
 *                                            time, puts another page there
 *   lent as a gift    GIFT, with its entry   it is given: a slot; or it was dropped, which a look
 *                                            finds out: free
 *
 * Two may want a lent page at the same time: the write that gives it, and a look that does not find
 * it in any request (which happens if it was dropped, or by hostile hands). The owner word decides:
 * one swap from exactly what it was, or, where the cache has one thread, a look and a store.
 *
 * Nobody is told when a client drops what it was lent. So each thread has a table of what it has
 * lent, an entry a page; the owner word says which entry, and a page that is lent in exchange gets
 * the entry of the one that was given, whichever thread does it: no lock, no list, and a steady
 * exchange only stores words that it has at hand. A look at all requests frees what none of them
 * lists. It is made when a table is full, and in pauses while somebody waits for pages (loan.c).
 *
 * How much is lent: as much as there are entries, and no more than an eighth of the cache; in all,
 * with what reads are lent, a quarter: a page that is lent for the first time takes credit, as a
 * loan (loan.c). Nothing is lent anew while somebody waits for pages, or while the cache stops.
 *
 * After a kill pages that are lent are as any loan (LENT, in limbo): they are copied when they are
 * given, and others lent for them. A write that is done again leaves those of its buckets alone
 * whose pages were exchanged: the predecessor had stored their slots, nothing else of the object
 * has been done since, and the page may be another's by now. One that is in its slot and was not
 * exchanged is copied, and stays lent: its owner word says that it is no gift.
 *
 * Invariants:
 *   V1  a page with OWNER_GIFT is in no slot, pool or list; its entry has it, with the same
 *       generation. It is listed before it has that word, and until it loses it, or its client
 *       drops it: so one that a look saw so, and that is in no request, was dropped
 *   V2  an exchange is stored after the slot
 *   V3  a page is lent to one request at a time, and nobody reads it: none that is on loan is lent
 *       as a gift
 *
 * A write all of whose pages may be taken, and whose buckets let go of pages that may be lent,
 * needs nothing else: it goes a short way (hit.c).
 *
 * Contract: gift_may(), gift_take(), gift_exchange(), gift_choose() inside the object; gifts_look()
 * in a port's thread, for what it has lent itself.
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
				!xlist_in_list(&memory_of(k)->clean, entry_page(e)));
		}
}
