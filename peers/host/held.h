/* held - what commands have stopped, and no supervisor starts: peers by `xseg peer stop`, exports
 * by `xseg export stop`. Their names are in the record of the stack (stack_record.h).
 *
 * A peer is held while it is stopped and has its name there. One that has died is started again, as
 * it has not stopped in order.
 *
 * Contract: one thread, the supervisor's. Nothing blocks.
 */
#ifndef PEERS_HOST_HELD_H
#define PEERS_HOST_HELD_H

#include "peers/common/options/stack_record.h"

struct supervisor;
struct unit;

struct held {
	char names[STACK_STOPPED_BYTES];	/* as the record has them */
};

/* Reads the names again. Those read before stay where the record cannot be read. */
void held_look(struct supervisor *s);
bool held_export(const struct supervisor *s, const char *name);
/* A peer, by its place in the stack. */
bool held_peer(struct supervisor *s, uint32_t peer);
/* It has its name there, in whichever state it is. */
bool held_named(const struct supervisor *s, uint32_t peer);
/* The unit is to be started, and all of its peers that are not alive are held. */
bool held_unit(struct supervisor *s, const struct unit *u);
/* The supervisor begins: units that are held are not started. */
void held_make(struct supervisor *s);
/* The unit, which waits, is not started. */
void held_leave(struct supervisor *s, struct unit *u);

#endif
