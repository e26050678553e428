/* flush - FLUSH, and the answers that wait for the log's positions.
 *
 * Contract: kvd's thread, state OPEN, but for kvd_owe_all() and kvd_owed().
 *
 * Invariants
 *   A1  A FLUSH is answered with 0 when all that was appended before it is stable.
 *   A2  If the store has lost what it had answered (reopen() in life.c), the next FLUSH of each
 *       peer fails, once: what that peer had been told may be gone. It stands in the arena who is
 *       to be told, so a successor tells it, too. Peers that came later have lost nothing.
 */
#include <errno.h>

#include "peers/kvd/kvd.h"
#include "xtypes/xkill.h"

/* ---- A2 ---- */

static _Atomic uint64_t *owed_to(struct kvd *k, uint64_t sender)
{
	return sender >> 32 < KVD_OWED ? &k->mem.arena->owed[sender >> 32] : NULL;
}

void kvd_owe_all(struct kvd *k)
{
	struct xseg_peer_info info;

	for (uint32_t i = 0; i < xseg_nr_peers(k->peer.seg) && i < KVD_OWED; i++)
		if (xseg_peer_get_info(k->peer.seg, i, &info) && xseg_peer_is_up(info.state))
			atomic_store_explicit(&k->mem.arena->owed[i],
				(uint64_t)i << 32 | info.generation, memory_order_relaxed);
}

bool kvd_owed(struct kvd *k, const struct xreq *r)
{
	uint64_t sender = xseg_req_sender(k->peer.seg, r);
	_Atomic uint64_t *owed = owed_to(k, sender);

	/* relaxed: this process alone uses them, and its successor after its death */
	if (!owed || !sender || atomic_load_explicit(owed, memory_order_relaxed) != sender)
		return false;
	atomic_store_explicit(owed, 0, memory_order_relaxed);
	return true;
}

/* ---- FLUSH ---- */

/* With nothing in the tail, older records may still be unflushed in a cache below. The log is to
 * know how that FLUSH ends: it repairs what a failed one has lost. */
static void flush(struct kvd *k, struct xreq *r)
{
	uint64_t end = alog_end(k->log);
	bool all = alog_stable(k->log) >= end;

	if (!all)
		alog_force(k->log, end);
	r->user = (void *)(uintptr_t)(all ? alog_barrier(k->log) : end);
	fifo_push(all ? &k->q.barriers : &k->q.stable, r);
}

static bool is_answerable(const struct kvd_fifo *q, uint64_t pos)
{
	return q->first && (uintptr_t)q->first->user <= pos;
}

static void answer_up_to(struct kvd *k, struct kvd_fifo *q, uint64_t pos)
{
	while (is_answerable(q, pos)) {
		struct xreq *r = fifo_pop(q);

		XKILL(KVD_PROMISED);
		peer_answer(k->pp, r, r->op == XSEG_OP_FLUSH ? 0 : r->size);
	}
}

/* Those whose FLUSH has failed are asked for anew. */
static void answer_barriers(struct kvd *k)
{
	struct kvd_fifo again;

	fifo_init(&again);
	while (k->q.barriers.first) {
		int state = alog_barrier_state(
			k->log, (uintptr_t)k->q.barriers.first->user);

		if (!state)
			break;
		if (state > 0)
			peer_answer(k->pp, fifo_pop(&k->q.barriers), 0);
		else
			fifo_push(&again, fifo_pop(&k->q.barriers));
	}
	while (again.first)
		flush(k, fifo_pop(&again));
}

void kvd_want_below(struct kvd *k, uint64_t end)
{
	if (k->sync == KVD_ALWAYS)
		alog_force(k->log, end);
	else if (k->sync == KVD_WRITTEN)
		alog_push(k->log, end);
	else if (k->sync_at_ns == PEER_NEVER)
		k->sync_at_ns = k->pp->now_ns + k->sync_ns;
}

void kvd_flush(struct kvd *k, struct xreq *r)
{
	if (kvd_owed(k, r))
		peer_answer(k->pp, r, -EIO);
	else
		flush(k, r);
}

/* ---- answers ---- */

void kvd_answers_poll(struct kvd *k)
{
	answer_up_to(k, &k->q.written, alog_written(k->log));
	answer_up_to(k, &k->q.stable, alog_stable(k->log));
	answer_barriers(k);
}

bool kvd_answers_due(struct kvd *k)
{
	return is_answerable(&k->q.written, alog_written(k->log)) ||
	       is_answerable(&k->q.stable, alog_stable(k->log)) ||
	       (k->q.barriers.first &&
		       alog_barrier_state(k->log, (uintptr_t)k->q.barriers.first->user));
}
