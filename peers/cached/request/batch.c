/* batch - prefetches the data of the requests that a port accepts together, and serves them.
 *
 * The way to a request's data has stages: index, entry, slot, page. Each stage says where the next
 * one is. So a whole batch goes through one stage, then through the next. The cache lines of all
 * requests are then on their way at the same time. The data itself is more than a core can have in
 * flight, so the data of one request is prefetched while the one before is copied.
 *
 * With copied reads the memory has to be busy all the time. Between two batches it would be idle
 * for as long as a few pages take. So the last requests of a full batch are *kept*: one of them is
 * served after each stage of the next batch. If no batch follows, they are served a round later.
 * Reads with a loan and writes that give pages are not kept, as their data does not come this way.
 *
 * Contract: the port's thread, outside of any object.
 *
 * Invariants:
 *   J1  Requests are kept from one round to the next, no longer. In the next round the first batch
 *       serves them, or the poll does if no batch comes. A port that keeps some asks to be called
 *       at once, so it does not sleep on them.
 *   J2  A cache that is off the path keeps none: it passes no gate with one.
 */
#include <errno.h>

#include "peers/cached/request/request.h"
#include "xtypes/xhot.h"

static inline void serve(struct cport *ps, struct xreq *r, bool off)
{
	if (off)
		peer_answer(ps->pp, r, -ENOTCONN);
	else if (r->op == XSEG_OP_READ ? !hit_read(ps, r)
				       : r->op != XSEG_OP_WRITE || !hit_write(ps, r))
		creq_request(ps, r, false);
}

/* ---- what is kept ---- */

/* How many at the end of a batch. Who sends fewer than a full one waits for all of them. */
static uint32_t nr_to_keep(const struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	uint32_t n = 0;

	if (!request_port(ps)->copies || nr < PEER_TAKE)
		return 0;
	while (n < KEPT_MAX && request_is_copied_read(r[nr - 1 - n]))
		n++;
	return n;
}

static void keep(struct cport *ps, struct xreq *const *r, uint32_t nr)
{
	struct kept *kept = &request_port(ps)->kept;

	assert(kept->first == kept->nr);	/* the stages of this batch have served all */
	for (uint32_t i = 0; i < nr; i++)
		kept->r[i] = r[i];
	kept->first = 0;
	kept->nr = nr;
	kept->fresh = true;
}

/* One, if there is one. */
XAPART static void serve_kept(struct cport *ps)
{
	struct kept *kept = &request_port(ps)->kept;
	struct xreq *r;

	if (kept->first == kept->nr)
		return;
	r = kept->r[kept->first++];
	if (kept->first < kept->nr)
		object_prefetch_data(ps->cache, kept->r[kept->first]);
	serve(ps, r, cached_is_off(ps->cache));
}

bool batch_poll(struct cport *ps)
{
	struct kept *kept = &request_port(ps)->kept;
	bool fresh = kept->fresh;

	kept->fresh = false;
	while (!fresh && kept->first < kept->nr)
		serve_kept(ps);
	return fresh;
}

void batch_check(const struct cport *ps)
{
	const struct kept *kept = &request_port(ps)->kept;

	assert(kept->first <= kept->nr && kept->nr <= KEPT_MAX);
	if (kept->first < kept->nr)	/* the poll of the next round serves them */
		assert(!kept->fresh);
}

/* ---- the whole ---- */

XHOT void batch_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	struct cached *k = cached_of(pp->peer);
	struct cport *ps = cport_of(pp);
	bool copies = false, lends_all = true, early = early_wanted(ps, r, nr);
	_Atomic uint64_t *slot[PEER_TAKE];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		bool reads = r[i]->op == XSEG_OP_READ, lends = r[i]->flags & XSEG_REQ_LOAN;

		xcache_prefetch(&object_of(k)->xc, r[i]->hash);
		if (!reads && !(r[i]->flags & XSEG_REQ_GIVE))
			__builtin_prefetch(&creq_of(k)->creqs[r[i]->index], 1);
		copies |= request_is_copied_read(r[i]);
		lends_all &= reads && lends;
	}
	serve_kept(ps);
	for (i = 0; i < nr; i++)
		object_prefetch(k, r[i]);
	serve_kept(ps);
	for (i = 0; i < nr; i++)
		slot[i] = object_prefetch_slot(k, r[i]);
	serve_kept(ps);
	/* while the slots come */
	if (early)
		early_copy(ps, r, nr);
	else
		early_forget(ps);
	/* who is lent a page reads it himself */
	for (i = 0; i < nr && !lends_all; i++)
		object_prefetch_page(k, r[i], slot[i]);
	request_port(ps)->copies = copies;
}

uint32_t batch_requests(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	struct cport *ps = cport_of(pp);
	bool off = cached_is_off(ps->cache);
	/* J2: it would be served as if it had come later, when this may be a cache again */
	uint32_t kept = off ? 0 : nr_to_keep(ps, r, nr), i = 0;

	do {
		if (request_port(ps)->copies && i + 1 < nr)
			object_prefetch_data(ps->cache, r[i + 1]);
		serve(ps, r[i], off);
	} while (++i < nr - kept && !pp->round_over);
	if (i < nr - kept || !kept)
		return i;
	keep(ps, r + i, kept);
	return nr;
}
