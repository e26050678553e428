/* gate - see gate.h. Only the few system calls of hold and mind are made here, and only while a
 * cache is plugged or unplugged.
 *
 * The upper peer's part (turn: the cache's command in the segment, xseg/plug.c):
 *
 *   hold   to     when                                                   by
 *   NONE   BEGUN  it is asked to hold, and every port has sent what it   hold
 *                 held the last time: the gate closes
 *   BEGUN  SAID   every port has passed the gate, and nothing that was   hold
 *                 sent is below: it says so
 *   BEGUN  NONE   nobody asks any more: the gate opens                   gate_turn
 *   SAID   NONE   the same; or it is asked again, so it was let go       gate_turn
 *                 meanwhile
 *
 * A successor begins BEGUN if its predecessor was asked (gate_open_peer()).
 */
#include "peers/common/runtime/gate.h"

#include <errno.h>

#include "xtypes/xstate.h"

#define SCAN_NS 50000ull			/* between two looks at what is below, at least, */
#define SCAN_PART 8			/* and this part of the time that it has taken so far, */
#define SCAN_MAX_NS 10000000ull	/* at most: the time of a process that stood still is no measure */
#define MIND_NS 50000000ull			/* whether who asked is alive */

/* An own request that cannot be sent now comes back with the error, as from below. */
static void send_held(struct peer_port *pp)
{
	struct port_box *box = port_box(pp);
	struct xreq *r = box->held, *next;

	box->held = NULL;
	box->held_tail = &box->held;
	for (; r; r = next) {
		next = r->next;
		r->next = NULL;
		if (r->state != XSEG_REQ_PRIVATE) {
			peer_forward(pp, r);
		} else if (peer_submit(pp, r)) {
			r->result = -ENOTCONN;
			pp->peer->cls->reply(pp, r);
		}
	}
}

void gate_look(struct peer_port *pp)
{
	struct port_box *box = port_box(pp);
	/* acquire: partner is the release in gate_change() */
	uint32_t word = atomic_load_explicit(&peer_box(pp->peer)->gate, memory_order_acquire);

	if (word == atomic_load_explicit(&box->gate_seen, memory_order_relaxed))
		return;
	box->gate = word & ((1u << GATE_SHIFT) - 1);
	/* those that it has accepted already come first */
	if ((box->gate & GATE_TAKE) && box->at[0] != box->nr_taken[0])
		return;
	/* release: partner is the acquire in gate_passed() */
	atomic_store_explicit(&box->gate_seen, word, memory_order_release);
	if (box->held && !(box->gate & GATE_SEND))
		send_held(pp);
}

static void gate_change(struct peer *p, uint32_t close, uint32_t open)
{
	_Atomic uint32_t *gate = &peer_box(p)->gate;
	uint32_t word = atomic_load_explicit(gate, memory_order_relaxed),
		 bits = word & ((1u << GATE_SHIFT) - 1);

	word = ((word >> GATE_SHIFT) + 1) << GATE_SHIFT | ((bits | close) & ~open);
	atomic_store_explicit(gate, word, memory_order_release);
	for (uint32_t i = 0; i < p->nr_ports; i++)
		peer_port_kick(&p->ports[i]);
}

static bool gate_passed(struct peer *p)
{
	uint32_t word = atomic_load_explicit(&peer_box(p)->gate, memory_order_relaxed);

	for (uint32_t i = 0; i < p->nr_ports; i++)
		if (atomic_load_explicit(&peer_box(p)->port[i].gate_seen, memory_order_acquire) !=
			word)
			return false;
	return true;
}

/* ---- the upper peer ---- */

#define TO(s) (1u << HOLD_##s)
static const struct xstates states = {
	.what = "hold of a peer",
	XSTATE(HOLD_, NONE, TO(BEGUN)),
	XSTATE(HOLD_, BEGUN, TO(SAID) | TO(NONE)),
	XSTATE(HOLD_, SAID, TO(NONE)),
};

static void hold_set(struct peer_box *box, enum hold_state state)
{
	xstate_check(&states, box->hold, state);
	box->hold = state;
}

static uint64_t hold(struct peer_port *pp, enum xseg_turn turn)
{
	struct peer *p = pp->peer;
	struct peer_box *box = peer_box(p);

	if (box->hold == HOLD_NONE) {
		if (!gate_passed(p))
			return pp->now_ns + SCAN_NS;
		hold_set(box, HOLD_BEGUN);
		box->since_ns = box->scan_ns = pp->now_ns;
		box->mind_ns = pp->now_ns + MIND_NS;
		gate_change(p, GATE_SEND, 0);
		return pp->now_ns;
	}
	if (turn == XSEG_TURN_ASKED && pp->now_ns >= box->scan_ns && gate_passed(p)) {
		box->scan_ns = pp->now_ns + SCAN_NS +
			       peer_earlier((pp->now_ns - box->since_ns) / SCAN_PART, SCAN_MAX_NS);
		if (xseg_turn_below(p->xp) == 0) {
			hold_set(box, HOLD_SAID);
			xseg_turn_hold(p->xp);
		}
	}
	if (pp->now_ns >= box->mind_ns) {
		box->mind_ns = pp->now_ns + MIND_NS;
		xseg_turn_mind(p->xp);
	}
	if (xseg_turn(p->xp) == XSEG_TURN_HELD)
		return box->mind_ns;
	return peer_earlier(
		box->mind_ns, box->scan_ns > pp->now_ns ? box->scan_ns : pp->now_ns + SCAN_NS);
}

uint64_t gate_turn(struct peer_port *pp)
{
	struct peer_box *box = peer_box(pp->peer);
	uint64_t called = xseg_peer_called(pp->peer->xp);
	enum xseg_turn turn = xseg_turn(pp->peer->xp);

	atomic_store_explicit(&box->called, called, memory_order_relaxed);
	/* asked anew: what it holds goes first */
	if (turn == XSEG_TURN_HELD || (turn == XSEG_TURN_ASKED && box->hold != HOLD_SAID))
		return hold(pp, turn);
	if (box->hold != HOLD_NONE) {
		hold_set(box, HOLD_NONE);
		gate_change(pp->peer, 0, GATE_SEND);
		return pp->now_ns;
	}
	return PEER_NEVER;
}

void gate_open_peer(struct peer *p)
{
	struct peer_box *box = peer_box(p);
	uint32_t word = xseg_turn(p->xp) != XSEG_TURN_NONE ? GATE_SEND : 0;

	box->hold = word ? HOLD_BEGUN : HOLD_NONE;
	box->mind_ns = p->ports[0].now_ns + MIND_NS;
	box->since_ns = box->scan_ns = p->ports[0].now_ns;
	atomic_store_explicit(&box->gate, word, memory_order_relaxed);
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		box->port[i].gate = word;
		box->port[i].held = NULL;
		box->port[i].held_tail = &box->port[i].held;
		atomic_store_explicit(&box->port[i].gate_seen, word, memory_order_relaxed);
	}
}

bool gate_called(struct peer *p)
{
	return xseg_peer_called(p->xp) !=
	       atomic_load_explicit(&peer_box(p)->called, memory_order_relaxed);
}

/* ---- for kinds that are plugged ---- */

void peer_close_to_requests(struct peer *p, bool closed)
{
	gate_change(p, closed ? GATE_TAKE : 0, closed ? 0 : GATE_TAKE);
}

bool peer_has_passed(struct peer *p)
{
	return gate_passed(p);
}

bool peer_has_nothing(struct peer *p)
{
	return peer_outstanding(p) == 0;
}
