/* send - a kind's calls about requests: answering, forwarding, sending its own. Also: calls of
 * other threads to its threads. While the gate is closed (gate.h), requests to be sent are held.
 *
 * Contract: peer_port_kick(), peer_stop() and peer_outstanding() from any thread; the others from
 * the port's.
 */
#include <errno.h>

#include "peers/common/runtime/gate.h"
#include "peers/common/runtime/peer_box.h"
#include "peers/common/runtime/reactor_inside.h"
#include "peers/common/say/words.h"

void peer_port_kick(struct peer_port *pp)
{
	if (!pp->seat)
		return;
	/* seq_cst: partner is the load in has_work(), after the announcement (A4) */
	atomic_store(&pp->seat->kicked, true);
	xseg_bell_ring(pp->port);
}

bool gate_holds(struct peer_port *pp, struct xreq *r)
{
	struct port_box *box = port_box(pp);

	if (!(box->gate & GATE_SEND))
		return false;
	r->next = NULL;
	*box->held_tail = r;
	box->held_tail = &r->next;
	return true;
}

uint64_t peer_outstanding(const struct peer *p)
{
	uint64_t arrived = 0, left = 0;
	uint32_t i;

	for (i = 0; i < p->nr_ports; i++) {
		arrived +=
			atomic_load_explicit(&peer_box(p)->port[i].arrived, memory_order_relaxed);
		left += atomic_load_explicit(&peer_box(p)->port[i].left, memory_order_relaxed);
	}
	return arrived - left;
}

static void count_op(struct port_box *box, uint32_t op, uint64_t bytes)
{
	box->done[op].nr++;
	box->done[op].bytes += bytes;
	box->done_ops |= 1u << op;
}

static void count_error(struct peer_port *pp, const struct xreq *r, int64_t result)
{
	bool absent = result == -ENOENT &&
		(r->op == XSEG_OP_DELETE || r->op == XSEG_OP_INFO || r->op == XSEG_OP_COPY ||
			pp->peer->cls->absent_is_answer);

	/* a client asks first whether a store can list */
	if (!absent && (result != -EOPNOTSUPP || r->op != XSEG_OP_LIST))
		xseg_stats_add(pp->stats, PEER_STAT_ERRORS, 1);
	if (result == -EPROTO)
		xseg_stats_add(pp->stats, PEER_STAT_PROTO_ERRORS, 1);
}

static void count_answer(struct peer_port *pp, const struct xreq *r, int64_t result)
{
	struct port_box *box = port_box(pp);

	box->nr_left++;
	if (r->op == XSEG_OP_ADMIN)
		return;
	count_op(box, r->op, result > 0 ? (uint64_t)result : 0);
	if (result < 0)
		count_error(pp, r, result);
	/* the port that took it may have looked at the clock later */
	if (r->stamp_ns >= pp->now_ns)
		box->nr_instant++;
	else
		xhist_record(xseg_stats_lat(pp->stats), pp->now_ns - r->stamp_ns);
}

void peer_answer(struct peer_port *pp, struct xreq *r, int64_t result)
{
	count_answer(pp, r, result);
	xseg_req_answer(pp->port, r, result);
}

void peer_forward(struct peer_port *pp, struct xreq *r)
{
	uint32_t lower = xseg_route(pp->peer->xp, NULL);
	uint64_t bytes = r->size;
	uint32_t op = r->op;

	if (gate_holds(pp, r))
		return;
	if (lower == XSEG_NONE || xseg_req_forward(pp->port, r, lower)) {
		peer_answer(pp, r, -ENOTCONN);
		return;
	}
	port_box(pp)->nr_left++;
	count_op(port_box(pp), op, bytes);
}

bool peer_port_keeps(const struct peer_port *pp)
{
	return port_box(pp)->held != NULL;
}

int peer_submit(struct peer_port *pp, struct xreq *r)
{
	uint32_t lower = xseg_route(pp->peer->xp, NULL);

	if (gate_holds(pp, r))
		return 0;
	return lower == XSEG_NONE || xseg_req_submit(pp->port, r, lower) ? -ENOTCONN : 0;
}

void peer_stop(struct peer *p)
{
	peer_word_set_stopping(p->xp, true);
	atomic_store(&p->stopping, true);
}
