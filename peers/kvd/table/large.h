/* large - the large values of a log: which zones they have, and which clients write or read them.
 *
 * A large value has a *run* of zones of its own. A *handle* is a client's: of a value that it is
 * writing (KV_BEGIN), or of one that it reads (KV_HOLD).
 *
 *   run state  from     when                                                 by
 *   FREE       GONE     its zones were given back                            large_freed
 *   UPLOAD     FREE     a client begins a value; or a predecessor's client   large_add
 *   NAMED      UPLOAD   the record that names it is appended                 large_name
 *   NAMED      FREE     the opening finds that record                        large_name
 *   GONE       UPLOAD   the handle ends                                      large_drop
 *   GONE       NAMED    another record counts for the key, or none           large_gone
 *   GONE       FREE     the opening finds its reader's handle alone          large_add
 *
 * Contract: kvd's thread. Nothing is allocated but by large_open(). Handles are in the arena, and
 * what a predecessor wrote there is input. All else is private, and is found anew at an opening.
 *
 * Invariants
 *   G1  A run is given back when it is GONE, nobody holds it (`holds`), and no backup is under
 *       way (`kept`). Handles of readers hold it, parts that are out, and a verify.
 *   G2  A handle counts when its number is stored, which is last, and never twice.
 *   G3  Of an identity at most one run is NAMED.
 *   G4  All handles of a client end when it is gone.
 *   G5  That a part may be lost is noted in the arena before anyone is told, so a successor knows
 *       it, too.
 */
#ifndef PEERS_KVD_TABLE_LARGE_H
#define PEERS_KVD_TABLE_LARGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/kv_wire.h"
#include "xseg/xseg.h"

#define LARGE_HANDLES 511u			/* with the first words: eight pages */
#define LARGE_NONE    UINT32_MAX

enum large_kind { LARGE_WRITES = 1, LARGE_READS };

/* In the arena. */
struct large_handle {
	_Atomic uint64_t number;		/* 0: it is free */
	uint64_t sender;			/* xseg_req_sender() */
	uint64_t first;				/* zone of the run */
	uint64_t bytes;				/* of the value; 0: not known yet */
	uint32_t ids;				/* of the run */
	_Atomic uint32_t zones;			/* that are counted of them */
	uint8_t kind;
	_Atomic uint8_t failed;			/* WRITES: a part of it may be lost */
	uint8_t unused[6];
	uint64_t version;			/* READS */
	uint64_t unused2;
};

struct large_arena {
	_Atomic uint64_t next;			/* number of handles that were given out */
	uint64_t unused[7];
	struct large_handle handle[LARGE_HANDLES];
};
_Static_assert(sizeof(struct large_arena) == 8 * XSEG_PAGE_SIZE, "whole pages");

enum large_state { LARGE_FREE, LARGE_UPLOAD, LARGE_NAMED, LARGE_GONE };

struct large_run {
	uint64_t first;				/* zone */
	uint64_t id[2], version;		/* NAMED */
	uint64_t bytes;
	uint32_t ids, zones;
	uint32_t holds;				/* G1 */
	uint32_t expiry;			/* NAMED */
	uint32_t next_first;			/* of a chain; FREE: of the free ones */
	uint32_t next_id;			/* of a chain; GONE: of those that leave */
	uint8_t state;
	bool flushed;				/* UPLOAD: its parts are stable */
	bool hit;				/* NAMED: it was held since it was last looked at */
};

struct large {
	struct large_run *run;
	uint32_t *by_first, *by_id;		/* heads of chains */
	uint32_t piece_bytes, zone_bytes;	/* of a zone so much is used: whole pieces */
	uint32_t nr, mask, free, leaving;
	uint32_t nr_handles;
	uint32_t turn;				/* of large_victim() */
	bool kept;				/* a backup is under way: nothing is given back */
	uint64_t named_bytes;			/* of all values that are NAMED */
	uint64_t named;
	struct large_arena *arena;
	struct large_run *of_handle[LARGE_HANDLES];
};

uint64_t large_bytes(uint32_t runs);		/* private memory */
int large_open(struct large *l, uint32_t runs, uint32_t zone_bytes,
	struct large_arena *arena);		/* -ENOMEM */
void large_close(struct large *l);
/* An opening begins: all runs are forgotten. */
void large_begin(struct large *l);

/* ---- where a value lies ---- */

uint64_t large_pieces(const struct large *l, uint64_t bytes);
uint64_t large_zones(const struct large *l, uint64_t bytes);
/* Zone and place of an offset in a value. */
uint64_t large_at(const struct large *l, const struct large_run *run, uint64_t offset,
	uint32_t *place);
/* Whether that can be the value of a record that names a run. */
bool large_ok(const struct large *l, const void *value, uint32_t bytes, struct kv_large *of);

/* ---- runs ---- */

/* NULL: the table is full, or one of that zone is there. */
struct large_run *large_add(struct large *l, uint64_t first, uint32_t ids, enum large_state state);
struct large_run *large_by_first(struct large *l, uint64_t first);	/* NULL: none */
struct large_run *large_by_id(struct large *l, const uint64_t id[2]);	/* the NAMED one, or NULL */
/* A record of this identity names it. */
void large_name(struct large *l, struct large_run *run, const uint64_t id[2]);
/* The record of the identity does not count any more. */
void large_gone(struct large *l, const uint64_t id[2]);
void large_clear(struct large *l);		/* the same of all identities */
void large_hold(struct large_run *run);
void large_let_go(struct large *l, struct large_run *run);
/* The next run that is to be given back (G1). NULL: none. */
struct large_run *large_leaving(struct large *l);
void large_freed(struct large *l, struct large_run *run);	/* that one */
bool large_may_leave(const struct large *l);	/* there are some, though they may be kept */
/* The next NAMED run that nobody reads, and that was not held since it was last asked for. NULL:
 * none. */
struct large_run *large_victim(struct large *l);
/* The next NAMED run that has expired at this time. NULL: none. */
struct large_run *large_expired(struct large *l, uint64_t time_s);

/* The earliest expiry of those that are NAMED. 0: none has one. */
uint32_t large_next_expiry(const struct large *l);

/* ---- handles ---- */

/* A number that was never given out. */
uint64_t large_number(struct large *l, uint64_t sender);	/* 0: too many are out */
/* It counts from now on (G2). */
void large_take(struct large *l, uint64_t number, enum large_kind kind, uint64_t sender,
	struct large_run *run, uint64_t bytes);
/* NULL: none of that kind has this number. */
struct large_run *large_run_of(struct large *l, uint64_t number, enum large_kind kind);
/* More of its ids are counted. */
void large_grow(struct large *l, uint64_t number, uint32_t zones);
/* A part may be lost: of this writer's value, or of all that are being written. */
void large_fail(struct large *l, uint64_t number);
void large_fail_writers(struct large *l);
bool large_failed(struct large *l, uint64_t number);
/* A predecessor's handle. False: it is none that can be. */
bool large_is_handle(const struct large *l, uint32_t slot);
void large_adopt(struct large *l, uint32_t slot, struct large_run *run);
/* Either kind. False: there is none. */
bool large_drop(struct large *l, uint64_t number);
/* The handle alone; its run goes on. */
void large_forget(struct large *l, uint64_t number);
/* All handles of clients that write. */
void large_forget_writers(struct large *l);
/* G4. Says whether any is left. */
bool large_look(struct large *l, struct xseg *seg);

#endif
