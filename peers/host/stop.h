/* stop - the supervisor stops all peers of the stack, top down, or takes that back.
 *
 *   from       to         when
 *   NONE       FLUSHING   it is told to stop all
 *   FLUSHING   STOPPING   all caches have flushed, while everything serves on; or somebody else
 *                         stops peers of the stack, too, as at the end of a machine (V8)
 *   STOPPING   (it ends)  all peers have stopped
 *   FLUSHING, STOPPING   RETURNING   a flush failed, or it is told to take the stop back
 *   FLUSHING   RETURNING  a living peer stands on one that will not come back (V5)
 *   RETURNING  NONE       what it had stopped serves again, or a process died meanwhile
 *   RETURNING  FLUSHING   it is told to stop all once more
 *
 * Invariants
 *   S1  a cache is asked to stop after a FLUSH of it that ended well while nobody alive stood above
 *       it
 *   S2  a stop that cannot end leaves the stack as it was: what the supervisor had stopped, and
 *       nothing else, is started again. A process of which a peer was asked to stop, and has not
 *       stopped yet, is killed for that: a kill loses nothing, and a cache that cannot flush would
 *       never stop
 *   S3  the segment says why a stop was taken back (SUPERVISOR_WORD_UNDONE), before it says that
 *       nothing is being stopped any more
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

#endif
