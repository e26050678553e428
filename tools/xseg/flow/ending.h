/* ending - how peers and stacks end: stopping in order, killing, and the reasons that forbid it.
 *
 * Contract: works on any attachment, an observer's too; needs no memory of the segment. Reports its
 * errors (tool.h) and returns an exit code. Waiting ends as tool.h says.
 *
 * Invariants
 *   E1  Peers are stopped from the top down: one is asked when no living peer sends to it. A peer
 *       that is opening may have no route yet: then it counts as the stack file has it.
 *   E2  A peer cannot stop if a peer below it is stopped, or is dead and nobody starts it again.
 *       Such a peer is reported and not waited for.
 *   E3  If a cache cannot flush, a stop cannot end. Then it is reported with the store's error, and
 *       the stack serves on.
 *   E4  A caller that removes a segment asks ending_may_destroy() first, or kills all. Then
 *       ending_remove() removes it. It removes no other segment that has got the name meanwhile,
 *       nor one in which a peer or a supervisor has begun. Clients of the ended stack do not count
 *       as users, nor do processes that are attached and have no client, as a program before its
 *       first I/O.
 */
#ifndef TOOLS_XSEG_ENDING_H
#define TOOLS_XSEG_ENDING_H

#include "peers/common/say/words.h"
#include "tools/xseg/base/tool.h"
#include "tools/xseg/base/view.h"

/* Waits until that incarnation of the peer has stopped, with progress (E2); a death is an error. If
 * `xseg peer stop` has named the peer, and it is started again meanwhile, the next one is asked to
 * stop, too. */
int ending_wait_stopped(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer);
/* Waits, a few seconds at most, until that incarnation of a killed peer is gone. */
int ending_wait_gone(struct tool *t, struct xseg *seg, const struct xseg_peer_info *peer);

/* A wait for the end of one peer, or of all (NULL): the least that has been dirty meanwhile, how
 * much has been flushed, and the fewest peers that have been alive. Clients may write as fast as a
 * cache flushes, so each flush is progress, too. That there is more dirty again is not. If a store
 * fails each FLUSH, a cache writes the same data for ever. So it is told, too, if much more has
 * been flushed than was dirty at first, and there is dirty data still. */
struct ending_stall {
	const struct xseg_peer_info *peer;
	uint64_t began_ns, first_dirty, first_flushed;
	uint64_t dirty, flushed, since_ns;
	uint32_t alive;
	bool told, told_circles;
};

#define ENDING_STALL_OF(of) \
	((struct ending_stall){ .peer = (of), .dirty = UINT64_MAX, .alive = UINT32_MAX })

/* To be called while such a wait goes on: a store that is full or broken is tried on, maybe for
 * ever, with what is dirty, or to make stable what no longer is. That nothing has gone on for 5 s
 * is said, once. */
void ending_look_for_stall(struct tool *t, struct xseg *seg, struct ending_stall *s);
/* The same of a peer that cannot stop, as one below it has ended and is started by nobody. After
 * 3 s of that it is said, and returned as an error. The peer stops when that is started. */
int ending_look_stranded(
	struct xseg *seg, const struct xseg_peer_info *peer, struct tool_span *stranded);

/* Has the supervisor (which must be alive) stop all peers, and waits until it has left, or the stop
 * is taken back (E3). That a store is dead then, and could not be started to sync, is an error. */
int ending_stop_supervisor(struct tool *t, struct xseg *seg);
/* How a stop ended that the supervisor took back; says why, and returns the exit code. */
int ending_fail_undone(struct tool *t, struct xseg *seg, struct peer_undone undone);
/* Has the supervisor take a stop back, and waits until that is done. *gone: all had stopped before.
 * `what` is the command, for messages. */
int ending_cancel(struct tool *t, struct xseg *seg, const char *what, bool *gone);

/* Which peers are stopped, and how. */
struct ending_stop {
	/* those that it picks out are left alone; NULL: none */
	bool (*spare)(const struct xseg_peer_info *p, void *arg);
	void *arg;
	bool flush; /* a cache is to flush before it is asked */
	/* what came out: those that have stopped, in that order */
	bool flush_failed;
	uint32_t nr_stopped, stopped[XSEG_MAX_PORTS];
};
/* Stops all peers that are alive, but clients and those that are spared, top down. No supervisor
 * may be there, or come: it would start them again. A death meanwhile is an error where something
 * may be lost with it. */
int ending_stop_peers(struct tool *t, struct xseg *seg, struct ending_stop *how);
/* Has all caches flush, the lower ones by those above them. A cache that is off the path has
 * nothing to flush, and is fine. */
int ending_flush(struct tool *t, struct xseg *seg, struct ending_stop *how);
/* Kills the supervisor alone; the peers run on. */
int ending_kill_supervisor(struct tool *t, struct xseg *seg);
/* The same, while it is starting peers. Then waits, a few seconds at most, until the processes that
 * it had begun are in the segment, or have ended: so all of them can be stopped in their order. */
int ending_kill_start(struct tool *t, struct xseg *seg);
/* Kills the supervisor, all peers and all clients; waits until they are gone. */
int ending_kill_all(struct tool *t, struct xseg *seg);

/* Says which clients are attached, whose volumes nobody serves when the stack has stopped. */
void ending_name_clients(struct tool *t, struct xseg *seg);
/* TOOL_DONE, or TOOL_REFUSED: a cache that no process serves has dirty data, or such a store what
 * it could not sync. */
int ending_no_dirty(struct tool *t, struct xseg *seg, const char *what);
/* TOOL_DONE, or TOOL_REFUSED: a cache that is alive has dirty data, and stands on what does not
 * come back by itself. */
int ending_can_flush(struct tool *t, struct xseg *seg, const char *what);
/* TOOL_DONE, or TOOL_REFUSED: something is alive (clients_may: that is no client), or dirty or
 * unsynced data is there. */
int ending_may_destroy(struct tool *t, struct xseg *seg, bool clients_may);
/* How many processes are attached that have no peer and no client. */
uint32_t ending_count_idle(struct xseg *seg);
/* Removes the segment, after the last of its processes has left it. It is done, too, where somebody
 * else has removed it. nr_idle: how many idle processes there were before peers stopped; more of
 * them are peers' processes that have still to leave, and are waited for, for 3 s. */
enum ending_remove {
	ENDING_REMOVE_IDLE,			/* if nobody is attached but observers */
	/* clients and idle processes may be, which get errors */
	ENDING_REMOVE_UNDER_CLIENTS,
	ENDING_REMOVE_BY_FORCE
};
int ending_remove(struct tool *t, struct xseg *seg, enum ending_remove how, uint32_t nr_idle);

#endif
