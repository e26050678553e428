/* units - how the supervisor divides a stack into processes, and the state of their peers in the
 * segment.
 *
 * A unit is the peers of one process: a group of `together`, or a single peer. Peers of a group
 * that another process serves are a unit of their own from then on.
 *
 * Invariants
 *   U1  each peer of the stack is in one unit, and each unit has one peer or more
 *   U2  a unit that is our child is RUNNING
 *
 * Contract: one thread, the supervisor's. Nothing here starts, ends or blocks.
 */
#ifndef PEERS_HOST_UNITS_H
#define PEERS_HOST_UNITS_H

#include <sys/types.h>

#include "peers/common/options/stack.h"
#include "xseg/xseg.h"

#define UNIT_STOP_RESTARTS 3

/* Which follows which, and when, is in supervise.h; supervise.c alone changes them. */
enum unit_state {
	UNIT_WAITING,				/* to be started: the first time, or again */
	UNIT_RUNNING,				/* it has a process, our child or not */
	UNIT_STOPPED,				/* it ended in order, and is left alone */
	UNIT_FAILED,				/* it died, or cannot be started, for good */
	UNIT_NR_STATES
};

struct unit {
	uint32_t nr, peer[STACK_MAX_PEERS];	/* in the stack */
	bool restart;
	enum unit_state state;
	bool started; /* once at least: those below need not be waited for any more */
	bool return_once;		/* it stops or is killed, and is started then: once */
	bool returns;				/* as a stop was taken back (stop.h, S2) */
	pid_t child;				/* 0: not our child */
	bool served;				/* the child was seen to serve (V15) */
	bool failing;				/* it ends soon after each start (V16) */
	uint64_t since_ms;			/* RUNNING: when it was started */
	uint64_t stopped_ms;			/* last seen to have stopped; 0: never */
	uint64_t at_ms;				/* WAITING: not before */
	uint32_t backoff_ms;
	uint32_t stop_restarts;		/* how often it was started while all was being stopped */
};

struct units {
	struct xseg *seg;
	struct stack *stack;
	uint32_t order[STACK_MAX_PEERS];	/* the stack's peers, bottom up */
	uint32_t nr;
	struct unit unit[STACK_MAX_PEERS];
};

/* Makes order and units of seg and stack: units in the order of their lowest peers. Of each it is
 * noted whether it is stopping now. */
void units_make(struct units *us);
/* Takes another stack in the place of this one, which is destroyed, if it has the same peers in the
 * same places, the same groups, and the same exports. False: it is another one. */
bool units_take_options(struct units *us, struct stack *stack);
/* Takes those peers out of the unit that are not in its process, and returns them as a new one,
 * which is like it but not our child; NULL: there are none. */
const struct unit *units_split(struct units *us, struct unit *u);
const struct unit *units_of(const struct units *us, uint32_t peer);

/* What the segment says of a peer of the stack; FREE: it does not know it. */
enum xseg_peer_state units_peer_state(struct units *us, uint32_t peer, struct xseg_peer_info *info);

static inline bool unit_peer_is_dead(enum xseg_peer_state state)
{
	return state == XSEG_PEER_DEAD;
}

/* Whether any of its peers is. */
bool unit_has(struct units *us, const struct unit *u, bool (*is)(enum xseg_peer_state state));
/* Whether what its lowest peer sends to serves. The others wait for theirs themselves: they may
 * stand above a unit that stands on this one. */
bool unit_below_serves(struct units *us, const struct unit *u);
/* Whether more would be lost than its process, if it did not come back: what a cache has not
 * flushed; what a store was given and, as only its end in order makes sure of, has not synced. */
bool units_holds_data(struct units *us, uint32_t peer);
/* While all is being stopped: whether this peer is dead, or stopped as its process could not get it
 * up, has to come back before it is over, and may (supervise.h, V4). */
bool units_needs(struct units *us, uint32_t peer);
/* The same: whether it has to serve before it may be asked to stop, as one that is still opening
 * leaves what it has where it is. */
bool units_must_serve(struct units *us, uint32_t peer);
/* The same: whether a peer that is not alive comes back: it is in the stack, and is needed. */
bool units_comes_back(struct units *us, const struct xseg_peer_info *below);
/* The same: whether the peer stands on one, *lost, that is not alive and will not come back, as one
 * that is not in the stack; any peer of the segment, by its route. */
bool units_stands_on_lost(struct units *us, const struct xseg_peer_info *peer,
			  struct xseg_peer_info *lost);
/* The same: whether a peer that is alive, *peer, does; one of the stack that has no route yet by
 * the file. */
bool units_stranded(struct units *us, struct xseg_peer_info *peer, struct xseg_peer_info *lost);
/* "cached" or "volumed, cached"; until the next call. */
const char *unit_name(const struct units *us, const struct unit *u);

/* The only writer of a unit's state (supervise.h has the table). */
void unit_set(struct unit *u, enum unit_state state);

#endif
