/* peer_box - the runtime's own data of a peer, beside the struct that its kind knows. No kind
 * includes this file.
 *
 * Contract: a peer's struct is the last member of its box (peer_create() makes both). Fields of a
 * port are its thread's, but for the two counts, which any thread may read.
 *
 * Invariants
 *   X1  Take arrived - left, summed over the ports when no thread is in them. It is the number of
 *       requests that the peer has and still owes an answer. The peer leaves only when that is 0.
 *   X2  taken[] holds replies only between the simulator's steps: a whole round leaves none.
 *       Requests in it have arrived, and a round that left some handled one. So the thread does not
 *       sleep on them.
 */
#ifndef PEERS_COMMON_PEER_BOX_H
#define PEERS_COMMON_PEER_BOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "peers/common/runtime/peer.h"

#define PEER_LINE_BYTES XSEG_PAGE_SIZE		/* of an administrator's line */

struct port_box {
	struct xreq *taken[2][PEER_TAKE]; /* accepted and not yet handled: requests, replies */
	uint32_t nr_taken[2], at[2];
	_Atomic uint64_t arrived, left;		/* X1 */
	uint32_t nr_left;			/* of those that left, not in `left` yet */
	/* answered or sent on in this round, not yet in the segment; and of which ops there are
	 * some, a bit each */
	struct {
		uint64_t nr, bytes;
	} done[XSEG_NR_OPS];
	uint32_t done_ops;
	bool worked;				/* there was something to do in the last round */
	/* answered in the round in which they came: their latency is known when the next round
	 * begins */
	uint32_t nr_instant;
	char *line, *text;			/* ADMIN: PEER_LINE_BYTES, PEER_TEXT_BYTES */
	/* gate.h */
	uint32_t gate;				/* the gates that it has passed */
	_Atomic uint32_t gate_seen;		/* and their word; its thread writes it */
	struct xreq *held, **held_tail;
};

/* What an upper peer does with what it sends; see gate.c. */
enum hold_state { HOLD_NONE, HOLD_BEGUN, HOLD_SAID, HOLD_NR_STATES };

struct peer_box {
	_Atomic bool serving;
	_Atomic bool closed_to_requests;	/* no new ones are accepted: it is about to leave */
	atomic_flag setting;			/* somebody is in "set" */
	pthread_mutex_t options;	/* a leaf; held while live options change, or are shown */
	/* gate.h: port 0's thread writes these */
	_Atomic uint32_t gate;			/* counts changes, with GATE_* below */
	/* xseg_peer_called() as of its last round; read by reactors before they sleep */
	_Atomic uint64_t called;
	bool off_path;	/* its predecessor died off the path: it waits there to be plugged again */
	enum hold_state hold;
	/* since when it is BEGUN; when to look again at what is below, and at who asked */
	uint64_t since_ns, scan_ns, mind_ns;
	void *scratch;				/* a struct of the kind's size: options on trial */
	struct port_box port[PEER_MAX_THREADS];
	_Alignas(64) unsigned char peer[];
};

static inline struct peer_box *peer_box(const struct peer *p)
{
	return (struct peer_box *)((unsigned char *)p - offsetof(struct peer_box, peer));
}

static inline struct port_box *port_box(const struct peer_port *pp)
{
	return pp->box;
}

static inline bool peer_serving(const struct peer *p)
{
	/* acquire: partner is the release in peer_try_serve() */
	return atomic_load_explicit(&peer_box(p)->serving, memory_order_acquire);
}

/* Requests that the peer has; exact while no thread is in its ports. */
uint64_t peer_outstanding(const struct peer *p);

/* Answers an ADMIN request, or has it answered later. */
void peer_admin(struct peer_port *pp, struct xreq *r);
/* One that a predecessor had: begun ones are not begun again. */
void peer_admin_recover(struct peer_port *pp, struct xreq *r);

#endif
