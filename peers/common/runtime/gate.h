/* gate - a peer that holds what it sends, or takes nothing in, for a while: what the runtime does
 * in its part of plugging (xseg/plug.c).
 *
 * Two gates. Closed to sending: what a kind forwards or submits is kept in its port, in order, and
 * sent when the gate opens; the kind does not know. Closed to requests: none is accepted; replies
 * are. A gate is closed for all ports by one word, and each port passes it at a point between two
 * callbacks of its own. When all have passed nobody is in the middle of something that began
 * before.
 *
 * Contract: gate_turn() in port 0's thread; the rest in the thread of the port.
 *
 * Invariants
 *   E1  a port that has passed a gate sends nothing, or accepts nothing, until it has passed the
 *       next word
 *   E2  what is held is in the hands of nobody else: forwarded requests are AT the peer, its own
 *       are not submitted
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
