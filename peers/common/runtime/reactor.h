/* reactor - the threads that drive peers: one thread, one doorbell, several ports.
 *
 * A reactor goes round its ports while there is work, to those that have had none for long every
 * 4 us. Without work it looks 64 times, then yields the processor between looks, and after about 50
 * us it sleeps on its doorbell until somebody rings, the earliest deadline of a port, or the tick
 * of one second. Deadlines closer than 60 us are polled for: a sleep is not that exact.
 *
 * Port k of each peer is at home on reactor k modulo their number; while that sleeps, or does not
 * come to it, others make its rounds (reactor_board.c). The reactor that has port 0 is the peer's
 * home: it makes the peer serve when its recovery can end, and leads it out when it was asked to
 * stop:
 *
 *   OPENING   -> SERVING   peer_try_serve() said so                       home
 *   SERVING   -> LEAVING   asked to stop, and quiesced() or nearly so     home
 *   OPENING   -> LEAVING   asked to stop                                  home
 *   LEAVING   -> LEFT      all ports at home, no request owed, quiesced   home
 *
 * While LEAVING, the other reactors hand their ports over to home, and no new requests are
 * accepted, but for some time in every few seconds if the end does not come: what cannot be flushed
 * must not stop reads for ever.
 *
 * Contract: peers are given bottom up, stay the caller's and outlive the set. One set per process
 * at a time is usual, more are possible (tests). Functions of a set are called by one thread.
 */
#ifndef PEERS_COMMON_REACTOR_H
#define PEERS_COMMON_REACTOR_H

#include "peers/common/runtime/peer.h"

struct reactor_set;

/* Of a peer; see above. */
enum reactor_phase { REACTOR_OPENING, REACTOR_SERVING, REACTOR_LEAVING, REACTOR_LEFT };

struct reactor_progress {
	enum reactor_phase phase;
	bool stopping;
	uint64_t left_bytes;	/* of quiesced(); 0 while it has said nothing */
};

/* Makes as many reactors as the peer with the most threads asks for, and tells the ports which is
 * theirs, so call it before peer_open(). cpus: a list for cpus_parse(), "" for none; reactor i is
 * pinned to entry i. NULL with a line in err. */
struct reactor_set *reactor_set_create(struct peer **peers, unsigned nr, const char *cpus,
				       struct xseg_error *err);
/* peer_open() for each. On failure none is open, and *failed is the one that could not be opened.
 * */
int reactor_set_open(struct reactor_set *set, struct xseg *seg, unsigned *failed,
		     struct xseg_error *err) XSEG_MUST_CHECK;
/* Starts the threads; all peers are open. A failure (no memory for a thread) leaves some running:
 * leave the process. */
int reactor_set_start(struct reactor_set *set, struct xseg_error *err) XSEG_MUST_CHECK;
/* Has peer i stop in an orderly way (also `peer->stopping`, by whoever else sets it). */
void reactor_set_stop(struct reactor_set *set, unsigned i);
void reactor_set_progress(struct reactor_set *set, unsigned i, struct reactor_progress *progress);
/* Becomes readable when a peer came to serve or left (eventfd; the caller reads it). */
int reactor_set_events(struct reactor_set *set);
/* Joins the threads, which end when all of their peers have left; started or not. */
void reactor_set_destroy(struct reactor_set *set);

/* ---- for the kinds ---- */

/* Wakes the reactor of this port, if it sleeps, when the eventfd becomes readable; the counter is
 * read by the reactor's helper and need not be read by the kind. Nothing is called while the
 * reactor is awake. The port stays at home. No effect without a reactor (the simulator). From
 * init(); ends when the peer leaves. */
int reactor_watch(struct peer_port *pp, int eventfd) XSEG_MUST_CHECK;

#endif
