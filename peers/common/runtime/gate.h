/* gate - makes a peer hold its sends, or accept no requests, for a while: the runtime's part of
 * plugging (xseg/plug.c).
 *
 * There are two gates. The gate to sending: while it is closed, a request that a kind forwards or
 * submits is kept in its port, in order, and sent when the gate opens. The kind does not know. The
 * gate to requests: while it is closed, no request is accepted, but replies are. One word closes a
 * gate for all ports. Each port passes the gate at a point between two callbacks of its own. When
 * all have passed, no callback that began before is still running.
 *
 * Contract: gate_turn() in port 0's thread; the rest in the thread of the port.
 *
 * Invariants
 *   E1  A port that has passed a gate sends nothing, or accepts nothing, until it has passed the
 *       next word.
 *   E2  A held request belongs to the peer alone: forwarded requests are AT the peer, its own are
 *       not submitted.
 */
#ifndef PEERS_COMMON_GATE_H
#define PEERS_COMMON_GATE_H

#include "peers/common/runtime/peer_box.h"

#define GATE_SEND  1u
#define GATE_TAKE  2u
#define GATE_SHIFT 2

/* Takes notice of the gates; sends what was held when they open. */
void gate_look(struct peer_port *pp);
/* A gate was opened or closed since it last looked. */
static inline bool gate_is_news(const struct peer_port *pp)
{
	return atomic_load_explicit(&peer_box(pp->peer)->gate, memory_order_relaxed) !=
	       atomic_load_explicit(&port_box(pp)->gate_seen, memory_order_relaxed);
}
/* True: r is held. */
bool gate_holds(struct peer_port *pp, struct xreq *r);
static inline bool gate_closed(const struct peer_port *pp, uint32_t which)
{
	return port_box(pp)->gate & which;
}

/* The upper peer's part: holds while a cache asks for it. Returns when it wants to be called
 * again. */
uint64_t gate_turn(struct peer_port *pp);
/* Before the first request: a successor begins with the gate closed if its predecessor was asked
 * to. */
void gate_open_peer(struct peer *p);
/* Any thread: whether somebody asked something of it since port 0's last round. */
bool gate_called(struct peer *p);

#endif
