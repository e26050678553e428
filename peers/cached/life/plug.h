/* plug - how a cache enters between peers and leaves again while they serve. xseg/plug.c has
 * the whole; this is the cache's part.
 *
 * States (plug_set() is the only writer):
 *
 *   from       to         when                                                          by
 *   BEGINS     ON         it serves from now on, and has a route                        plug_begin
 *   BEGINS     OFF        it serves from now on, and has no route                       plug_begin
 *   ON         DRAINING   it is asked to leave: writes wait for the store from now on   follow
 *   DRAINING   SYNCING    the data that was dirty at the start is at the store, and     drain
 *                         no other acknowledged data is dirty
 *   SYNCING    CALLING    the store has made it stable                                  sync
 *   SYNCING    DRAINING   that failed: retried after a pause                            sync
 *   CALLING    PROVING    all upper peers hold: takes nothing in                        prove_begin
 *   PROVING    CALLING    one does not hold any more (another incarnation)              prove
 *   PROVING    DRAINING   something is dirty after all: the upper peers go on           prove
 *   PROVING    EMPTYING   nothing is dirty: the upper peers' routes lead past it        prove
 *   DRAINING, SYNCING, CALLING, PROVING   ON   it was taken back                        take_back
 *   EMPTYING   OFF        the cache is empty                                            empty
 *   OFF        ENTERING   it is asked to enter                                          follow
 *   ENTERING   CLAIMED    all upper peers hold, and the cache has its route             enter
 *   CLAIMED    ON         no other peer has a request at the store; the upper           claimed
 *                         peers' routes lead here
 *   CLAIMED    ENTERING   an upper peer has gone on meanwhile, or the route is gone     claimed
 *   ENTERING, CLAIMED   OFF   it was taken back                                         take_back
 *
 * Contract: plug_open() and plug_begin() before serving; plug_run() in port 0's thread. The other
 * functions from any thread.
 *
 * Invariants:
 *   U1  A cache that is off the path (EMPTYING, OFF, ENTERING) answers each request with ENOTCONN,
 *       and has nothing dirty.
 *   U2  While the arena has data, its epoch (xseg_arena_epoch()) is that of its route. So a
 *       successor knows whether the data is still true.
 */
#ifndef PEERS_CACHED_PLUG_H
#define PEERS_CACHED_PLUG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/object/walk.h"
#include "xtypes/xstate.h"

enum plug_state {
	PLUG_BEGINS, PLUG_ON, PLUG_DRAINING, PLUG_SYNCING, PLUG_CALLING, PLUG_PROVING,
	PLUG_EMPTYING, PLUG_OFF, PLUG_ENTERING, PLUG_CLAIMED,
	PLUG_NR_STATES
};

struct cached;
struct cport;
struct child;

struct plug {
	_Atomic uint8_t state;			/* enum plug_state; port 0 writes it */
	/* port 0's */
	uint64_t since_ns, next_ns, call_ns, pause_ns;
	/* since when all upper peers are asked to hold, or 0; how long they wait for the last */
	uint64_t asked_ns, patience_ns;
	bool proved_once;
	bool asked;	/* SYNCING: the store was, to make all stable (own_sync has the answer) */
	_Atomic bool emptied;			/* by whoever ends the walk */
	struct walk walk;			/* that empties all objects */
};

extern const struct xstates plug_states;
/* port 0: goes on with it; returns when it wants to run again */
uint64_t plug_run(struct cport *ps);
/* Before a predecessor's requests are handed over: whether it is off the path, by its route. */
void plug_open(struct cached *k);
void plug_begin(struct cached *k);	/* after that; it may have got a route meanwhile */
uint64_t plug_epoch(struct cached *k);		/* of the route as it is now, or XSEG_NO_EPOCH */
bool plug_is_leaving(struct cached *k);		/* as is wanted now */
void plug_check(struct cached *k);

#endif
