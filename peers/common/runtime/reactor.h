/* reactor - the threads that drive peers: one thread, one doorbell, several ports.
 *
 * A reactor makes rounds of its ports while there is work. Ports that have had no work for long get
 * a round every 4 us. Without work it looks 64 times, then yields the processor between looks, and
 * after about 50 us it sleeps on its doorbell. A ring, the earliest deadline of a port, or the tick
 * of one second ends the sleep. Deadlines closer than 60 us are polled for: a sleep is not that
 * exact.
 *
 * Port k of each peer has reactor k modulo their number as its home. While that reactor sleeps, or
 * does not come to the port, others make the port's rounds (reactor_board.c). The home of port 0 is
 * the peer's home. It makes the peer serve when its recovery can end. It leads the peer out when
 * the peer was asked to stop:
 *
 *   OPENING   -> SERVING   peer_try_serve() said so                       home
 *   SERVING   -> LEAVING   asked to stop, and quiesced() or nearly so     home
 *   OPENING   -> LEAVING   asked to stop                                  home
 *   LEAVING   -> LEFT      all ports at home, no request owed, quiesced   home
 *
 * While LEAVING, the other reactors hand their ports over to home, and no new requests are
 * accepted. If the end does not come, requests are accepted for some time in every few seconds:
 * data that cannot be flushed must not stop reads for ever.
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

/* Wakes the reactor of this port, if it sleeps, when the eventfd, or the epoll descriptor, becomes
 * readable. An eventfd's counter is read by the reactor's helper and need not be read by the kind.
 * Nothing is called while the reactor is awake. The port stays at home. No effect without a reactor
 * (the simulator). From init(); ends when the peer leaves. */
int reactor_watch(struct peer_port *pp, int eventfd) XSEG_MUST_CHECK;

#endif
