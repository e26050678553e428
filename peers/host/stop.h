/* stop - the supervisor stops all peers of the stack, top down, or takes that back.
 *
 *   from       to         when
 *   NONE       FLUSHING   it is told to stop all
 *   FLUSHING   STOPPING   all caches have flushed, while everything serves on; or another process
 *                         stops peers of the stack, too, as at the end of a machine (V8)
 *   STOPPING   (it ends)  all peers have stopped; or one is left running (V5)
 *   FLUSHING, STOPPING   RETURNING   a flush failed, or it is told to take the stop back
 *   FLUSHING   RETURNING  a living peer stands on one that will not come back (V5)
 *   RETURNING  NONE       the peers that it had stopped serve again, or a process died meanwhile,
 *                         or a living peer has stood for 5 s on one that will not come back
 *   RETURNING  FLUSHING   it is told to stop all once more
 *
 * Invariants
 *   S1  A cache is asked to stop after it has flushed: a FLUSH of it succeeded while no living peer
 *       stood above it. A clean cache is asked without, if its store is lost (units.h). So are all
 *       caches if there is no place for the client that sends the FLUSH.
 *   S2  A stop that cannot end leaves the stack as it was. The peers that the supervisor had
 *       stopped, and no others, are started again. If a peer of a process was asked to stop and has
 *       not stopped yet, the process is killed for that. A kill loses nothing, and a cache that
 *       cannot flush would never stop.
 *   S3  The segment says why a stop was taken back (SUPERVISOR_WORD_UNDONE), before it says that
 *       nothing is being stopped any more.
 *   S4  No peer is asked to stop while a server of exports runs (exports.h).
 *
 * Contract: one thread, the supervisor's. V1 to V9 are in supervise.h.
 */
#ifndef PEERS_HOST_STOP_H
#define PEERS_HOST_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct supervisor;

enum stop_end { STOP_GOES_ON,
	STOP_ENDED,
	STOP_GAVE_UP };

void stop_begin(struct supervisor *s, uint64_t now_ms);
/* error and peer: as in struct peer_undone. Nothing, unless all is being stopped. */
void stop_take_back(struct supervisor *s, int error, uint32_t peer);
/* Whether all is being stopped, or that is being taken back. */
bool stop_is_on(const struct supervisor *s);
/* Goes on with it. */
enum stop_end stop_step(struct supervisor *s, uint64_t now_ms);
/* A process has died that nobody had killed for S2: nothing more is waited for. */
void stop_note_death(struct supervisor *s);
/* Whether the supervisor asked that incarnation to stop. */
struct xseg_peer_info;
bool stop_was_asked(const struct supervisor *s, const struct xseg_peer_info *info);
/* Asks it to, once an incarnation. */
void stop_ask(struct supervisor *s, const struct xseg_peer_info *info);

#endif
