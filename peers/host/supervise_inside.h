/* supervise_inside - the part of the supervisor that its files share: supervise.c, stop.c,
 * exports.c, held.c, nbdkit.c and replace.c. No other file includes it.
 *
 * Contract: one thread.
 */
#ifndef PEERS_HOST_SUPERVISE_INSIDE_H
#define PEERS_HOST_SUPERVISE_INSIDE_H

#include <limits.h>
#include <signal.h>

#include "peers/host/exports.h"
#include "peers/host/held.h"
#include "peers/host/replace.h"
#include "peers/host/stop_flush.h"
#include "peers/host/units.h"

#define me XSEG_SUPERVISOR_KIND /* in lines of the log */

/* stop.h says what leads from one to another; phase_set() alone changes it. */
enum stop_phase { STOP_NONE, STOP_FLUSHING, STOP_STOPPING, STOP_RETURNING };

struct supervisor {
	const char *segment;
	struct units units;
	struct exports exports;
	struct replace replace;
	struct held held;
	struct xseg_peer *self;
	char directory[PATH_MAX]; /* where the programs are */
	bool told_removed;
	uint64_t oom_kills; /* of the machine, when it was counted last */
	struct xseg_lock_watch locks; /* V10 */
	/* V12: of each peer, by its place in the segment, when a process for it was started last;
	 * 0: the supervisor has started none */
	uint32_t generation_before[XSEG_MAX_PORTS];
	uint64_t locks_ms; /* when they were looked at */
	uint32_t holder[XSEG_LOCKS_WATCHED], nr_holders; /* processes that were named */
	sigset_t signals;
	/* stop.c's */
	enum stop_phase phase;
	struct stop_flush flush; /* open while FLUSHING or STOPPING */
	uint32_t nr_undone;
	uint64_t stranded_ms; /* since when a peer is that; 0: none is */
	/* of the incarnation that was asked to stop, and of the one that cannot be asked, by the
	 * peer's place in the segment */
	uint32_t asked_generation[XSEG_MAX_PORTS], foreign_generation[XSEG_MAX_PORTS];
};

static inline bool is_stopping(const struct supervisor *s)
{
	return s->phase == STOP_STOPPING;
}

#endif
