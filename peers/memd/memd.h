/* memd - a blocker whose objects are in memory: the store for tests and benchmarks, with the timing
 * of a device and injected faults. For users: memd.8. This header is for tests and the simulator;
 * all else goes through memd_class.
 *
 * Contract: as peer.h says. Everything is simulated: no system call but for the log, no clock but
 * now_ns, random numbers from `seed`.
 *
 * Invariants:
 *   D1  A request changes data when it is completed, not when it arrives, and is answered in the
 *       same callback.
 *   D2  Of two requests that overlap, of which one changes data, the later begins after the earlier
 *       was answered (order.h).
 *   D3  With nothing configured a request is answered in request().
 *   D4  A request that changes data is STARTED first. So a successor applies it again at once,
 *       before others take pages. Then a half-done request has room to be completed.
 *   D5  A LIST waits for nothing, and looks at a bounded part of the table. An object keeps its
 *       index as long as it exists. So a cursor, which is an index, is good for a successor too.
 */
#ifndef PEERS_MEMD_MEMD_H
#define PEERS_MEMD_MEMD_H

#include "peers/common/runtime/peer.h"

/* Takes away all that no completed FLUSH or FUA write covers, as a loss of power does to a disk.
 * Needs the option track_flush; no request may be at the peer (kill it and let a successor do it,
 * or wait until it is idle). */
void memd_power_loss(struct peer *p);
/* A page of an object: its contents, or NULL for zeroes. What the store has now, */
const void *memd_page(struct peer *p, const char *object, uint32_t nr);
/* and what a loss of power would leave of it. */
const void *memd_durable_page(struct peer *p, const char *object, uint32_t nr);
/* The name of its next object, in XSEG_TARGET_MAX bytes; *at is 0 for the first one. False: there
 * is none. */
bool memd_next_name(struct peer *p, uint32_t *at, char *name) XSEG_MUST_CHECK;

#endif
