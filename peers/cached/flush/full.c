/* full - a full store: its volumes, since when it is full for them, and the answers to writers.
 *
 * A flush that fails with ENOSPC shows that the store has no room for that volume's data. The data
 * stays, and is tried again. A flush of the volume's data that succeeds ends the state. Meanwhile
 * the status says since when the store is full, and which object showed that. The option
 * `store_full` decides about new writes and copies of the volume:
 *
 *   wait   they are taken while there is memory, and wait when there is none
 *   fail   they are answered with ENOSPC, also those that wait already; so no more is promised
 *
 * A request that makes room is never refused, and does not wait (urgent requests, room.c): DELETE,
 * DISCARD, WRITE_ZEROES, and all requests of the catalogue. A cut has to wait for an older write
 * that it overlaps in part, and for an older COPY (change.c). If that older request waits for
 * memory, it is answered with ENOSPC, under `wait` too. It does not matter for which volume the
 * store is full, as that volume's data may take all memory.
 *
 * A volume with no data newer than the store has nothing to flush. It is not full any more, nor is
 * a volume that lost its record. Volumes without a record are full together.
 *
 * A request that was STARTED by a predecessor is redone in any case.
 *
 * Contract: any thread; see flush.h.
 *
 * Invariants:
 *   X1  nr_full is the number of volumes whose full_ns is not 0
 */
#include <assert.h>
#include <errno.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/cached/volume/volume.h"
#include "peers/common/log/log.h"

static uint64_t full_since(struct cached *k, uint32_t rec)
{
	return atomic_load_explicit(&volume_of(k)->states[rec].full_ns, memory_order_relaxed);
}

/* full_run() is port 0's, whatever thread finds something for it to do. */
void full_ask(struct cached *k)
{
	if (!atomic_exchange_explicit(&flush_of(k)->full_look, true, memory_order_relaxed))
		peer_port_kick(&peer_of(k)->ports[0]);
}

void full_begin(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	struct volume *v = &volume_of(k)->states[object_volume(o)];
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong_explicit(&v->full_ns, &none,
		    ps->pp->now_ns ? ps->pp->now_ns : 1, memory_order_relaxed,
		    memory_order_relaxed))
		return;
	atomic_store_explicit(&v->full_entry, o->index, memory_order_relaxed);
	atomic_fetch_add_explicit(&flush_of(k)->nr_full, 1, memory_order_relaxed);
	full_ask(k);
	log_warn("%s: the store has no room for object %s of the volume with ID %u; make room "
		 "there, or remove a volume; 'xseg cache status %s' names that volume, and shows "
		 "whether its writes wait",
		peer_of(k)->name, object_entry(k, o)->name, object_entry(k, o)->volume,
		peer_of(k)->name);
}

bool full_forget(struct cached *k, uint32_t rec)
{
	uint32_t was;

	if (!atomic_exchange_explicit(&volume_of(k)->states[rec].full_ns, 0, memory_order_relaxed))
		return false;
	was = atomic_fetch_sub_explicit(&flush_of(k)->nr_full, 1, memory_order_relaxed);
	assert(was > 0);					/* X1 */
	return true;
}

static void volume_end(struct cached *k, uint32_t rec)
{
	if (full_forget(k, rec))
		log_info("%s: the store has room again for the volume with ID %u", peer_of(k)->name,
			atomic_load_explicit(&volume_of(k)->volume_ids[rec], memory_order_relaxed));
}

void full_end(struct cport *ps, struct object *o)
{
	volume_end(ps->cache, object_volume(o));
}

/* Nothing of it can be flushed, so nothing would end it. */
static bool has_nothing(struct cached *k, uint32_t rec)
{
	return volume_total(k, rec, VC_DIRTY_BYTES) + volume_total(k, rec, VC_UNPROMISED_BYTES) ==
	       0;
}

static bool volume_is_full(struct cached *k, uint32_t rec)
{
	if (atomic_load_explicit(&flush_of(k)->nr_full, memory_order_relaxed) == 0 ||
		!full_since(k, rec))
		return false;
	if (!has_nothing(k, rec))
		return true;
	volume_end(k, rec);
	return false;
}

bool full_is_refused(struct cport *ps, uint32_t rec)
{
	struct cached *k = ps->cache;

	return atomic_load_explicit(&flush_of(k)->full_fails, memory_order_relaxed) &&
	       volume_is_full(k, rec);
}

/* It may be refused: it is new, adds data, and has nothing yet. */
static bool is_new(const struct creq *c)
{
	bool adds = c->r->op == XSEG_OP_WRITE || c->r->op == XSEG_OP_COPY;

	return adds && !creq_is_urgent(c) && !c->redo && !c->error && c->nr_pages == 0 &&
	       c->change.edges_out == 0;
}

bool full_refuses(struct cport *ps, const struct creq *c)
{
	return is_new(c) && full_is_refused(ps, c->volume);
}

/* ---- those that wait ---- */

void full_waits(struct cached *k, const struct creq *c)
{
	if (atomic_load_explicit(&c->in_way, memory_order_relaxed) &&
		atomic_load_explicit(&flush_of(k)->nr_full, memory_order_relaxed))
		full_ask(k);
}

static struct creq *waiter_of(struct xwait *w)
{
	return caa_container_of(w, struct creq, wait);
}

static bool is_refused(struct xwait *w, void *ctx)
{
	const struct creq *c = waiter_of(w);
	struct cport *ps = ctx;

	if (full_refuses(ps, c))
		return true;
	/* the memory may be another volume's, for which the store is full */
	return is_new(c) && atomic_load_explicit(&c->in_way, memory_order_relaxed) &&
	       atomic_load_explicit(&flush_of(ps->cache)->nr_full, memory_order_relaxed);
}

static void refuse_waiting(struct cport *ps, struct xwaitq *q)
{
	struct xwait *w;

	while (!xwaitq_empty(q) && (w = xwaitq_take(q, is_refused, ps)) != NULL) {
		share_left(ps->cache, q);
		waiter_of(w)->error = -ENOSPC;
		w->fn(w, ps);
	}
}

void full_run(struct cport *ps)
{
	struct cached *k = ps->cache;

	if (!atomic_load_explicit(&flush_of(k)->full_look, memory_order_relaxed))
		return;
	atomic_store_explicit(&flush_of(k)->full_look, false, memory_order_relaxed);
	if (atomic_load_explicit(&flush_of(k)->nr_full, memory_order_relaxed) == 0)
		return;
	refuse_waiting(ps, &memory_of(k)->want_pages);
	refuse_waiting(ps, &memory_of(k)->want_owed);
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++)
		refuse_waiting(ps, &volume_of(k)->states[r].share.want);
}

/* ---- status ---- */

uint32_t full_first(struct cached *k, uint32_t *nr)
{
	uint32_t first = UINT32_MAX;

	*nr = 0;
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		if (!full_since(k, r))
			continue;
		if (has_nothing(k, r)) {
			volume_end(k, r);
			continue;
		}
		++*nr;
		if (first == UINT32_MAX || full_since(k, r) < full_since(k, first))
			first = r;
	}
	return first;
}
