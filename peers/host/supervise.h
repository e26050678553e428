/* supervise - starts the peers of a stack, bottom up, restarts dead ones, and stops them top down.
 *
 * A unit (units.h) is one process: a group of `together`, or a single peer.
 *
 *   from      to        when
 *   WAITING   RUNNING   its time has come and (first start) all below it serve: its process is
 *                       started; or one of its peers turns out to be alive
 *   WAITING   WAITING   its process could not be started: again later, as when it died
 *   RUNNING   STOPPED   its process ended with 0, or (not our child) its peers are stopped
 *   RUNNING   WAITING   the same, of one that was stopping when the supervisor began, or that is
 *                       restarted (V12); and while all is being stopped: it is started only if V4
 *                       wants it (V8)
 *   RUNNING   WAITING   its process died: again after 0.1 s, doubling to 5 s, until it lived for a
 *                       second; while all is being stopped only if V4 wants it
 *   RUNNING   FAILED    it died and none of its peers is to be restarted; or it says that its
 *                       options are wrong
 *   STOPPED, FAILED  RUNNING  one of its peers is alive: another process started it
 *   STOPPED   WAITING, FAILED  another process started it, and it died before that was seen: as if
 *                       it had been RUNNING
 *   STOPPED   WAITING   all is to be stopped, and it stopped less than 5 s ago (V8); or the stop
 *                       is taken back, and it was stopped by that (V9)
 *   STOPPED, FAILED  WAITING  it is restarted (V12)
 *   WAITING   STOPPED   the stop is taken back, and it had been stopped before; or it would be
 *                       started, and is held (V15)
 *
 * Peers of a group that another process serves become a unit of their own. It and the rest of the
 * group live, die and are restarted by themselves.
 *
 * Peers that are alive when the supervisor begins (its predecessor was killed) are left alone and
 * watched. Peers that are stopping then were asked to stop before. The supervisor was begun so that
 * all serve, so these peers are started again when they have stopped.
 *
 * Invariants
 *   V1  One supervisor per segment: it holds the segment's lock, and is listed as peer
 *       "supervisor". The segment keeps the stack that the supervisor was begun with.
 *   V2  A signal goes only to a process that serves the peer now, as the kernel says.
 *   V3  stop.h has the steps of a stop. Caches flush first, while all serve. While stopping, a peer
 *       is asked to stop when all peers above it have stopped. Peers that the stack does not have
 *       are asked, too.
 *   V4  While stopping, only peers that are needed to lose nothing are started again, three times
 *       at most. They serve before they are asked to stop. A cache that died or stopped with dirty
 *       data is needed to flush it, and a store that died is needed to sync its data. A peer is
 *       also needed if one above it is alive or is to be started.
 *   V5  Stopping ends. A peer that is alive may stand for 5 s on one that will not come back. Then
 *       it is left running, with the requests that it holds. If all serve still, the stop is taken
 *       back instead.
 *   V6  The segment says which dead peers are not restarted, so that no process waits for them
 *       (xseg_peer_is_gone()). These are the peers of a FAILED unit, and peers that are not in the
 *       stack.
 *   V7  The segment says that the supervisor is stopping all (its PEER_WORD_STOPPING).
 *   V8  The end of a session or a machine sends SIGTERM to all processes at once. A store then ends
 *       before the cache above it has flushed. A unit that stopped by itself while all is being
 *       stopped, or just before, is restarted as if it had died, if a peer stands on it.
 *   V9  A stop that fails, as a cache cannot flush, leaves all peers serving that served before. So
 *       does a stop that SUPERVISE_CANCEL_SIGNAL takes back.
 *   V10 The log names a process that holds a lock of the segment for longer than its work takes,
 *       within a second. Such a process stands still, or was seen with the lock for 0.9 s.
 *   V11 Nothing is started, and the stack in the segment stays, if the segment lacks memory,
 *       requests or ports for the peers of a new text (room.h).
 *   V12 `xseg peer restart` sends SUPERVISE_RESTART_SIGNAL, then has the peers of that process
 *   stop.
 *       The supervisor starts the process again, once, by the program that is in its place then.
 *       So the next process is the supervisor's child, too, with its log and its limits. An order
 *       for an incarnation that has ended meanwhile is void: it would hold for a later end.
 *
 *   V13 The stack in the segment may get other options while the supervisor runs (xseg cache set
 *       --save, xseg reload). Each process is started with those that are there then. A stack of
 *       other peers, groups or exports is another supervisor's.
 *   V14 replace.h says how peers get other places, kinds and processes, for that one.
 *   V15 A peer that `xseg peer stop` has stopped stays so under each later supervisor, until `xseg
 *       peer start` or `peer restart` of that name (held.h). The stop of all starts it as V4 says.
 *       A process that was made before that stop, and serves after it, is asked to stop.
 *   V16 The segment says which peers are failing (SUPERVISOR_WORD_FAILING). The process of such a
 *       peer is started again, and ended before it served, or ended three times within a second of
 *       its start. The peer is no longer failing when it has served for a second.
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
