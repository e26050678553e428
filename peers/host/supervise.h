/* supervise - starts the peers of a stack, bottom up, starts dead ones again, stops them top down.
 *
 * A unit (units.h) is one process: a group of `together`, or a single peer.
 *
 *   from      to        when
 *   WAITING   RUNNING   its time has come and (first start) all below it serve: its process is
 *                       started; or one of its peers turns out to be alive
 *   WAITING   WAITING   its process could not be started: again later, as when it died
 *   RUNNING   STOPPED   its process ended with 0, or (not our child) its peers are stopped
 *   RUNNING   WAITING   the same, of one that was stopping when the supervisor began; and while all
 *                       is being stopped: it is started only if V4 wants it (V8)
 *   RUNNING   WAITING   its process died: again after 0.1 s, doubling to 5 s, until it lived for a
 *                       second; while all is being stopped only if V4 wants it
 *   RUNNING   FAILED    it died and none of its peers is to be restarted; or it says that its
 *                       options are wrong
 *   STOPPED, FAILED  RUNNING  one of its peers is alive: somebody else started it
 *   STOPPED   WAITING, FAILED  somebody else started it, and it died before that was seen: as if it
 *                       had been RUNNING
 *   STOPPED   WAITING   all is to be stopped, and it stopped less than 5 s ago (V8); or the stop
 *                       is taken back, and it was stopped by that (V9)
 *   WAITING   STOPPED   the stop is taken back, and it had been stopped before
 *
 * Peers of a group that somebody else started in another process become a unit of their own: it and
 * the rest of the group live, die and are started again by themselves.
 *
 * Peers that are alive when the supervisor begins (its predecessor was killed) are left alone and
 * watched. Those that are stopping then were asked to before, and it was begun so that all serve:
 * they are started again when they have stopped.
 *
 * Invariants
 *   V1  one supervisor per segment: it holds the segment's lock, and is listed as peer
 *       "supervisor". The stack that is kept in the segment is the one that it was begun with
 *   V2  a signal goes only to a process of which the kernel says that it serves that peer now
 *   V3  stop.h has the steps of a stop. Caches flush first, while all serve. While stopping, a peer
 *       is asked to stop when all peers above it have stopped; those that the stack does not have
 *       are asked to, too
 *   V4  while stopping, only what is needed to lose nothing is started again, three times at most:
 *       a cache that died with dirty data, to flush it; a store that died, to sync what it was
 *       given; what a peer stands on that is alive or is to be started. These serve before they are
 *       asked to stop
 *   V5  stopping ends: when a peer that is alive stands for 5 s on one that will not come back, it
 *       is left running, with what it holds; or the stop is taken back, if all serve still
 *   V6  the segment says which dead peers it does not start again, so that nobody waits for them
 *       (xseg_peer_is_gone()): those of a FAILED unit, and those that are not in the stack
 *   V7  the segment says that it is stopping all (PEER_WORD_STOPPING of the supervisor)
 *   V8  whoever ends a session or a machine sends SIGTERM to all processes at once, and a store
 *       ends before the cache above it has flushed: one that stopped by itself while all is being
 *       stopped, or just before, is started again as if it had died, if it is stood on
 *   V9  a stop that fails, as a cache cannot flush, and one that is taken back by
 *       SUPERVISE_CANCEL_SIGNAL, leaves all serving that served before
 *   V10 who holds a lock of the segment for longer than its work takes is named in the log,
 *       within a second: a process that stands still, or one that was seen with it for 0.9 s
 *
 * Contract: one thread; blocks in poll(). Writes nothing but its log (stderr).
 */
#ifndef PEERS_HOST_SUPERVISE_H
#define PEERS_HOST_SUPERVISE_H

#include "peers/common/say/words.h"

/* Supervises the stack kept in the segment until told to stop by SIGTERM or SIGINT, then stops all
 * peers. Another SIGTERM then changes nothing, a second SIGINT leaves
 * them running, SUPERVISE_CANCEL_SIGNAL takes the stop back. `text`, unless
 * it is NULL, is kept there first, by who has become the supervisor. One byte is written to the
 * descriptor `begun` (-1: none) when all that is done. Returns an exit code (enum main_exit).
 * Attaches: call it after the last fork. */
int supervise(const char *segment, const char *text, int begun);

#endif
