/* loan - lends the pages of buckets to reads, and keeps pages aside that may be on loan.
 *
 * A read with XSEG_REQ_LOAN is answered bucket by bucket. The request gets the number of the
 * bucket's page, which pins the page (xseg/loan.c). Zeroes are a sentinel. The read gets a copy
 * instead:
 *   - if it reads the bucket in part;
 *   - if the bucket is not complete (a write's edge is filled in place later);
 *   - if it goes past the cache;
 *   - if its port has no credit left.
 *
 * The slot says that its page was lent, and in which *era*. The first loan of an era sets that, so
 * a further hit writes nothing but its request. A look at all requests ends an era. A page that was
 * lent before the look began, and that the look found in no request, is not on loan any more.
 * (Epochs work in the same way: K. Fraser, "Practical lock-freedom", 2004.) So a page that was lent
 * long ago is like any other. When a page that may be on loan leaves its slot, bucket_set_at()
 * marks it in its owner word. The only way back to the free pages is page_put(). It leads a page
 * with that mark to *limbo*:
 *
 *   where           owner word           goes on when
 *   a slot          the bucket's name    another page, or none, comes into the slot
 *   out of it       LENT                 page_put(): at once, or when the flush that lists it ends
 *   limbo           LENT                 a look begins
 *   being looked for  LOOKED; LENT when a request is found      the look ends: free, or limbo again
 *                     that lists it
 *
 * A look goes through all requests, twice. It serves all pages that are in limbo then, so its cost
 * per page is small. A look is made:
 *   - when LOOK_BATCH pages have come since the last one, or a 16th of a small cache's pages;
 *   - when all victims of an eviction went to limbo;
 *   - in ever longer pauses, while requests wait for pages or an extent is to leave.
 * Borrowers do not ring when they let go.
 *
 * Borrowers may hold at most a quarter of the cache, so that other requests always find pages. They
 * may hold less where the minima of volumes (share.h) leave less. Three quarters of that limit are
 * for loans by request. Credit lets a port have as much as then stays free (dynamic thresholds: A.
 * Choudhury, E. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
 * IEEE/ACM ToN 1998). So a single port gets half of these, and some is always left for one more
 * port. The last quarter is for direct reads (direct.c), which send no request: each port of the
 * segment may pin its part of it.
 *
 * A page counts as lent from the grant on. Only a look at all requests finds out how much is lent.
 * So credit is given for many pages at a time, to a pair: a thread of the cache and a port that
 * borrows. No request lists yet the pages of a read that waits for the store. Such pages are
 * *granted* until they are listed or copied, or until the read ends. So a page goes from credit to
 * granted to listed. The count looks in that order, and sees each page at least once.
 *
 * Sometimes the only credit left is credit that other pairs have and do not use. Then that credit
 * becomes void: the epoch changes. The epoch also changes when less may be lent than before. A
 * shrinking cache lets an extent leave only if the loans are within the limit of the rest
 * (resize.c).
 *
 * A successor looks at all requests before it serves. A lent page in a slot gets the bit; a lent
 * page in no slot goes to limbo.
 *
 * Invariants:
 *   L1  A page that a request lists as lent is in a slot with SLOT_LENT, and slot_may_be_lent() is
 *       true of that slot. Otherwise its owner word is LENT, LOOKED, GIFT (gift.c) or an orphan's
 *       with LENT.
 *   L2  SLOT_LENT and its era belong to a page, not to a bucket: another page comes without them.
 *       An era has three bits. An era that is eight older looks like the present one. That only
 *       makes a page wait in limbo without need.
 *   L3  A page in limbo is in no slot, no pool and no other list; its extent is not given back.
 *   L4  The listed and granted pages, and the pages that direct readers may pin beside those, are
 *       at most a quarter of the cache. The size that counts is the size when credit was last
 *       given. Where several threads lend, each may be listing one hit beyond that (HIT_BUCKETS
 *       pages).
 *   L5  granted[port] is the sum of the pages that unanswered reads hold for that port.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/lend/lend.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/creq/creq.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

#define LOOK_BATCH   256u		/* pages that came into limbo, at most, before a look */
#define REFUSED_NS   100000ull		/* no credit is asked for again before that */
#define PAUSE_MIN_NS 50000ull
#define PAUSE_MAX_NS 10000000ull

void loans_open(struct cached *k)
{
	struct xseg_info info;

	limbo_open(k);
	xseg_get_info(peer_of(k)->seg, &info);
	lend_of(k)->loans.nr_ports = info.nr_ports;
}

/* ---- credit ---- */

struct tally {
	struct cached *k;
	uint32_t port, all, its;
};

static void tally(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct tally *t = arg;

	if (look == 0 || !page_is_ours(t->k, page))
		return;
	t->all++;
	t->its += port == t->port;
}

uint32_t loans_out(struct cached *k)
{
	struct tally t = { .k = k, .port = XSEG_NONE };

	xseg_loans(peer_of(k)->seg, tally, &t);
	return t.all;
}

/* Pages that all may be lent together. */
static uint32_t loans_max(struct cached *k, uint32_t pages)
{
	uint32_t spare = share_unpromised(k, pages);

	return pages / 4 < spare ? pages / 4 : spare;
}

/* The part of it for those who read directly, all together. */
static uint32_t direct_part(uint32_t max)
{
	return max / 4;
}

static void most_note(struct cached *k, uint32_t nr)
{
	if (atomic_load_explicit(&lend_of(k)->loans.most, memory_order_relaxed) < nr)
		atomic_store_explicit(&lend_of(k)->loans.most, nr, memory_order_relaxed);
}

uint32_t loans_direct_max(struct cached *k)
{
	most_note(k, data_pages(k) / 4);
	return direct_part(loans_max(k, data_pages(k))) / lend_of(k)->loans.nr_ports;
}

/* acquire, here and in granted_sum(): partners are the releases where a page goes on */
static uint32_t credit_given(struct cached *k)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		for (uint32_t port = 0; port < XSEG_MAX_PORTS; port++)
			sum += atomic_load_explicit(&lend_port(cport_at(k, i))->lender.credit[port],
				memory_order_acquire);
	return sum;
}

static uint32_t granted_sum(struct cached *k)
{
	uint32_t sum = 0;

	for (uint32_t port = 0; port < XSEG_MAX_PORTS; port++)
		sum += atomic_load_explicit(&lend_of(k)->loans.granted[port], memory_order_acquire);
	return sum;
}

static void credit_set(struct cport *ps, uint32_t port, uint32_t credit)
{
	atomic_store_explicit(&lend_port(ps)->lender.credit[port], credit, memory_order_release);
}

/* Of what is left beside `all` that is lent, and `its` of it, half: then what a port has is never
 * more than what is left. */
static uint32_t credit_for(struct cached *k, uint32_t all, uint32_t its)
{
	uint32_t max = loans_max(k, data_pages(k)), most = max - direct_part(max),
		 left = most > all ? most - all : 0;

	return left > its ? (left - its) / 2 : 0;
}

/* What is lent now, by everybody or to that port, and in *unused the credit of others. In the order
 * in which a page goes on. */
static struct tally loans_tally(struct cached *k, uint32_t port, uint32_t *unused)
{
	struct tally t = { .k = k, .port = port };

	*unused = credit_given(k);
	t.all = granted_sum(k);
	if (port < XSEG_MAX_PORTS)
		t.its = atomic_load_explicit(
			&lend_of(k)->loans.granted[port], memory_order_acquire);
	xseg_loans(peer_of(k)->seg, tally, &t);
	return t;
}

/* All credit that is not used is void. */
static void credit_void(struct cached *k)
{
	atomic_fetch_add_explicit(&lend_of(k)->loans.epoch, 1, memory_order_relaxed);
}

/* Under loans.lock. */
static bool credit_give_locked(struct cport *ps, uint32_t port, uint32_t nr)
{
	struct cached *k = ps->cache;
	uint32_t credit, unused;
	struct tally t;

	credit_set(ps, port, 0);
	t = loans_tally(k, port, &unused);
	credit = credit_for(k, t.all + unused, t.its);
	if (credit < nr) {
		if (credit_for(k, t.all, t.its) >= nr)
			credit_void(k);
		lend_port(ps)->lender.refused_ns = ps->pp->now_ns + REFUSED_NS;
		return false;
	}
	most_note(k, data_pages(k) / 4);
	credit_set(ps, port, credit);
	return true;
}

/* Looks how much is lent, and gives the port credit by that; false: not enough for so many pages,
 * or another thread is giving some. */
XCOLD static bool credit_give(struct cport *ps, uint32_t port, uint32_t nr)
{
	struct loans *l = &lend_of(ps->cache)->loans;
	bool given;

	if (ps->pp->now_ns < lend_port(ps)->lender.refused_ns || pthread_mutex_trylock(&l->lock))
		return false;
	given = credit_give_locked(ps, port, nr);
	pthread_mutex_unlock(&l->lock);
	return given;
}

/* Its thread's credit goes if it is void. */
static void credit_look(struct cport *ps)
{
	uint32_t epoch =
		atomic_load_explicit(&lend_of(ps->cache)->loans.epoch, memory_order_relaxed);

	if (lend_port(ps)->lender.epoch == epoch)
		return;
	for (uint32_t i = 0; i < XSEG_MAX_PORTS; i++)
		credit_set(ps, i, 0);
	lend_port(ps)->lender.epoch = epoch;
}

/* The port has credit for so many. */
static bool credit_has(struct cport *ps, uint32_t port, uint32_t nr)
{
	struct lender *l = &lend_port(ps)->lender;

	credit_look(ps);
	if (atomic_load_explicit(&l->credit[port], memory_order_relaxed) >= nr ||
		credit_give(ps, port, nr))
		return true;
	count(ps, CC_LOANS_REFUSED, 1);
	return false;
}

static void credit_use(struct cport *ps, uint32_t port, uint32_t nr)
{
	uint32_t credit =
		atomic_load_explicit(&lend_port(ps)->lender.credit[port], memory_order_relaxed);

	credit_set(ps, port, credit - nr);
}

bool loan_begin(struct cport *ps, const struct xreq *r, uint32_t nr)
{
	uint32_t port = xseg_req_borrower(peer_of(ps->cache)->seg, r);

	if (!credit_has(ps, port, nr))
		return false;
	credit_use(ps, port, nr);
	return true;
}

bool loan_grant(struct cport *ps, struct creq *c)
{
	struct loans *l = &lend_of(ps->cache)->loans;
	uint32_t port = xseg_req_borrower(peer_of(ps->cache)->seg, c->r);

	if (!credit_has(ps, port, c->nr))
		return false;
	c->read.granted.port = port;
	c->read.granted.nr = c->nr;
	/* before its credit goes: who counts looks there first */
	atomic_fetch_add_explicit(&l->granted[port], c->nr, memory_order_relaxed);
	credit_use(ps, port, c->nr);
	return true;
}

void loan_ungrant(struct cport *ps, struct creq *c, uint32_t nr)
{
	uint32_t was;

	if (nr > c->read.granted.nr)
		nr = c->read.granted.nr;
	if (nr == 0)
		return;
	c->read.granted.nr -= nr;
	/* release: what is lent is listed */
	was = atomic_fetch_sub_explicit(
		&lend_of(ps->cache)->loans.granted[c->read.granted.port], nr, memory_order_release);
	assert(was >= nr);					/* L5 */
}

bool loans_fit(struct cached *k, uint32_t pages)
{
	uint32_t max = loans_max(k, pages), unused;
	struct tally t = loans_tally(k, XSEG_NONE, &unused);

	if (t.all + unused <= max - direct_part(max))
		return true;
	if (unused)
		credit_void(k);
	return false;
}

void loans_recount(struct cached *k)
{
	credit_void(k);
	direct_look(k);
}

bool loan_bucket(
	struct cport *ps, struct object *o, struct xreq *r, uint32_t i, uint32_t b, uint64_t w)
{
	xseg_req_lend(ps->pp->port, r, i, slot_has_page(w) ? slot_page(w) : XSEG_NONE);
	if (!slot_has_page(w))
		return false;
	slot_set_loan(ps->cache, o, b, lent_stamp(ps, r));
	return r->flags & XSEG_REQ_DIRECT && !(w & SLOT_DIRECT);
}

/* ---- limbo ---- */

/* How many pages have to come before a look is worth it. */
static uint32_t batch_size(struct cached *k)
{
	uint32_t nr = data_pages(k) / 16;

	return nr > LOOK_BATCH ? LOOK_BATCH : nr ? nr : 1;
}

/* Somebody waits for what is in limbo. */
static bool is_wanted(struct cached *k)
{
	return pages_wanted(k) ||
	       atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed);
}

uint64_t limbo_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct lender *l = &lend_port(ps)->lender;
	uint32_t nr = atomic_load_explicit(&memory_of(k)->limbo.nr, memory_order_relaxed);
	bool freed;

	credit_look(ps);
	if ((nr == 0 && !l->has_gifts) || !is_wanted(k)) {
		l->next_ns = l->pause_ns = 0;
		if (nr && nr >= atomic_load_explicit(
					&memory_of(k)->limbo.nr_pinned, memory_order_relaxed) +
					  batch_size(k))
			limbo_look(ps);
		return PEER_NEVER;
	}
	if (ps->pp->now_ns >= l->next_ns) {
		freed = limbo_look(ps);
		freed |= gifts_look(ps);
		if (freed)
			l->pause_ns = 0;
		l->pause_ns = !l->pause_ns                      ? PAUSE_MIN_NS
			      : l->pause_ns >= PAUSE_MAX_NS / 2 ? PAUSE_MAX_NS
								: l->pause_ns * 2;
		l->next_ns = ps->pp->now_ns + l->pause_ns;
	}
	return l->next_ns;
}

/* ---- a predecessor's ---- */

struct restore {
	struct cached *k;
	uint8_t *page_is;
	uint32_t nr;				/* on loan, some more than once */
};

static void restore(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct restore *res = arg;
	struct cached *k = res->k;
	struct object *o;
	uint32_t b;

	(void)port;
	res->nr += look == 1 && page_is_ours(k, page);
	switch (res->page_is[page]) {
	case PAGE_BUCKET:
		o = page_object(k, page, &b);
		slot_set_loan(k, o, b, lent_now(k));
		break;
	case PAGE_FREE:
		res->page_is[page] = PAGE_LENT;
		xseg_page_owner_set(peer_of(k)->seg, page, OWNER_LENT);
		limbo_add(k, page, 1);
		break;
	case PAGE_ORPHAN:
		xseg_page_owner_set(peer_of(k)->seg, page, OWNER_ORPHAN | OWNER_LENT);
		break;
	default:
		break;	/* no cache has lent it */
	}
}

void loans_restore(struct cached *k, uint8_t *page_is)
{
	struct restore res = { .k = k, .page_is = page_is };

	xseg_loans(peer_of(k)->seg, restore, &res);
	most_note(k, res.nr);
}

/* ---- checking ---- */

struct check {
	struct cached *k;
	uint64_t *seen;				/* bits, by page */
	uint32_t nr;				/* pages that are listed */
};

static void check_lent(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct check *c = arg;
	struct cached *k = c->k;
	struct object *o;
	uint64_t owner = xseg_page_owner(peer_of(k)->seg, page);
	uint32_t b;

	(void)port;
	if (look == 0 || !page_is_ours(k, page))
		return;
	c->nr += !(c->seen[page / 64] >> page % 64 & 1);
	c->seen[page / 64] |= 1ull << page % 64;
	if (limbo_holds(owner) || owner & OWNER_GIFT)
		return;
	o = page_object(k, page, &b);
	/* L1 */
	assert(o && slot_page(slot_get(k, o, b)) == page && slot_may_be_lent(k, slot_get(k, o, b)));
}

void loans_check(struct cached *k, uint32_t granted)
{
	struct check c = { .k = k,
		.seen = calloc(memory_of(k)->seg_pages / 64 + 1, sizeof(*c.seen)) };

	assert(c.seen && granted == granted_sum(k));		/* L5 */
	xseg_loans(peer_of(k)->seg, check_lent, &c);
	free(c.seen);
	assert(c.nr + granted <= lend_of(k)->loans.most);			/* L4 */
}
