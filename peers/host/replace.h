/* replace - the supervisor stops peers of the stack in order and starts them anew, at other places,
 * as other kinds or in other processes, for `xseg reload`.
 *
 * The record of the stack says which incarnations these are (stack_record.h). They are a barrier:
 * all of them stop, top down, and then all are started, bottom up, by the stack of this supervisor.
 *
 *   a peer of the record   what is done
 *   is alive               it is asked to stop when no living one of these sends to it
 *   has stopped            nothing, until all have
 *   has died               it is started at its old place and asked again, as what it has belongs
 *                          there. One that keeps its place is as if it had stopped. So is one that
 *                          the stack does not have, or has with another kind: what is dirty stays
 *
 * Invariants
 *   P1  A record counts for that incarnation only. When the next one has begun, it is done. So a
 *       supervisor that takes over from another one goes on, wherever that was killed, and a record
 *       that was left does no harm.
 *   P2  No peer of the record gets another route, and none is started at its new place, before
 *       all of them have stopped.
 *   P3  A peer with dirty data is not forgotten.
 *   P4  Nothing is replaced while all is being stopped.
 *
 * Contract: one thread, the supervisor's. Nothing blocks, but for the segment's locks.
 */
#ifndef PEERS_HOST_REPLACE_H
#define PEERS_HOST_REPLACE_H

#include <string.h>

#include "peers/common/options/stack_record.h"

struct supervisor;
struct unit;

/* Of the stack, and as many that it does not have. */
#define REPLACE_MAX (2 * STACK_MAX_PEERS)

struct replaced {
	struct stack_replaced what;
	bool returns;				/* it died; the next one is meant, too */
};

struct replace {
	uint32_t nr;				/* 0: nothing is to be replaced */
	struct replaced peer[REPLACE_MAX];
	bool told;				/* why it cannot be done yet */
};

/* The peer of that name, if it is to stop, or has stopped and waits for others; else NULL. */
static inline const struct replaced *replace_of(const struct replace *all, const char *name)
{
	for (uint32_t i = 0; i < all->nr; i++)
		if (!strcmp(all->peer[i].what.name, name))
			return &all->peer[i];
	return NULL;
}

/* The stack is known, and so are its units. */
void replace_make(struct supervisor *s);
void replace_step(struct supervisor *s);
/* Whether a unit is not started yet, as it has such peers. */
bool replace_holds(struct supervisor *s, const struct unit *u);

#endif
