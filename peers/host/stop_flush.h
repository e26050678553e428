/* stop_flush - flushes caches for the supervisor, which stops no peer above a cache that cannot
 * flush.
 *
 * The supervisor sends a cache a FLUSH of all its volumes. A store may report an old failure at the
 * next FLUSH. So a FLUSH that fails is sent again: STOP_FLUSH_TRIES in all, STOP_FLUSH_PAUSE_MS
 * apart.
 *
 * Contract: one thread, the supervisor's. Nothing blocks: stop_flush_run() looks for the answer.
 * One FLUSH is in flight at a time.
 *
 * Invariants
 *   F1  The FLUSH is sent by a client of its own, which closes with stop_flush_close(). An answer
 *       that comes later frees the request.
 *   F2  An incarnation of a cache counts as flushed from a FLUSH that succeeded until
 *       stop_flush_forget().
 *   F3  A cache that is off the path, or that another cache has to itself, has nothing to flush
 *       here.
 */
#ifndef PEERS_HOST_STOP_FLUSH_H
#define PEERS_HOST_STOP_FLUSH_H

#include "xseg/xseg.h"

#define STOP_FLUSH_TRIES    3
#define STOP_FLUSH_PAUSE_MS 500

struct stop_flush {
	struct xseg *seg;
	struct xseg_peer *client; /* NULL: closed */
	struct xreq *r; /* NULL: none is out */
	uint32_t peer; /* that is asked */
	unsigned tries;
	uint64_t next_ms; /* not again before */
	/* of the incarnation that has flushed, by the peer's place in the segment */
	uint32_t flushed[XSEG_MAX_PORTS];
};

enum stop_flush_state { STOP_FLUSH_DONE,
	STOP_FLUSH_WAITS };

/* 0, or the segment has no place for one more client; stop_flush_run() then finds all flushed. */
int stop_flush_open(struct stop_flush *f, struct xseg *seg) XSEG_MUST_CHECK;
void stop_flush_close(struct stop_flush *f);
/* What was flushed counts no more. */
void stop_flush_forget(struct stop_flush *f);
/* Goes on with the flush of that peer (any kind): STOP_FLUSH_DONE, STOP_FLUSH_WAITS, or the store's
 * error, a negative errno. */
int stop_flush_run(struct stop_flush *f, const struct xseg_peer_info *peer, uint64_t now_ms)
	XSEG_MUST_CHECK;

#endif
