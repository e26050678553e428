/* alog_rig - a log over a store in memory, with an index, and an oracle of all that it may show.
 *
 * The store forgets data that was not flushed (any subset, torn at sectors), and fails by plan. The
 * index is a user of the log as kvd will be: the highest sequence counts, records of an identity
 * are counted, a tombstone is dead when it is the last one. The oracle knows each version of each
 * key, which of them were promised, and which were undone. A kill may come in each upcall and each
 * send.
 *
 * All that is random follows from one seed.
 */
#ifndef TESTS_RIG_ALOG_RIG_H
#define TESTS_RIG_ALOG_RIG_H

#include <setjmp.h>
#include <stdio.h>

#include "peers/alog/alog.h"

#define AR_KEYS	    48
#define AR_VERSIONS 24				/* of a key that may still show */
#define AR_OBJECTS  4096
#define AR_OPS	    8192
#define AR_IOS	    64
#define AR_GHOSTS   64
#define AR_LENT	    8				/* puts of lent pages at a time */
#define AR_LENT_MAX 16				/* pages of one */

struct ar_version {
	uint64_t sequence, end;
	uint32_t value;				/* 0: deleted */
	uint32_t batch;				/* 0: by itself */
	bool promised;
	bool pending;				/* of lent pages, and not answered */
};

/* A put that was never answered, and that an opening undid. Until that is flushed, a loss of power
 * may bring it back. */
struct ar_ghost {
	struct ar_version v;
	uint32_t key;
};

struct ar_lent {				/* pages of a client, while the log has them */
	uint64_t end;				/* 0: free */
	uint32_t key;
};

struct ar_key {					/* the oracle's */
	struct ar_version v[AR_VERSIONS];
	uint32_t nr;
	bool damaged;				/* a version was lost to a fault of the store */
};

struct ar_entry {				/* the index's */
	uint64_t zone, sequence;
	uint32_t place, bytes, count;
	uint8_t type;				/* ALOG_NOTHING: no record is known */
};

struct ar_object {
	char name[XSEG_TARGET_MAX];
	uint8_t *now, *durable;			/* NULL: not there */
	bool bad;				/* FLUSH fails until it is deleted */
};

struct ar_op {
	struct ar_object *object;
	uint8_t *data;				/* NULL: deletion */
	uint32_t offset, size;
	bool answered, durable, lost;
};

struct ar_out {
	struct alog_io *io;
	uint32_t op;				/* + 1 */
	uint32_t covers;			/* FLUSH: of operations before this one */
	uint8_t covered[AR_OPS / 8];
	bool done;				/* it has its effect, and is not answered */
};

struct ar_backup {				/* of the last ar_backup() */
	struct ar_entry want[AR_KEYS], got[AR_KEYS];
	uint64_t before;
	uint32_t told, bad, over, waits_in;
	int error;
};

struct ar {
	struct alog *log;
	struct alog_config cfg;
	struct alog_cost cost;
	struct alog_user user;
	uint8_t *arena, *scratch, *client;
	uint64_t seed, random, now;

	struct ar_key key[AR_KEYS];
	struct ar_entry index[AR_KEYS];
	uint32_t next_value, next_batch;
	uint32_t expiry;		/* of puts: not 0: it has expired when it is judged */
	struct ar_lent lent[AR_LENT];
	struct ar_ghost ghost[AR_GHOSTS];
	uint32_t nr_ghosts;
	uint64_t ghosts_until;			/* position */

	struct ar_object object[AR_OBJECTS];
	uint32_t nr_objects;
	struct ar_op op[AR_OPS];
	uint32_t nr_ops, first_op;
	struct ar_out out[AR_IOS];
	uint32_t nr_out;

	jmp_buf killed;
	uint32_t kill_in;			/* upcalls and sends until a kill; 0: none */
	uint32_t fail_write, fail_flush, fail_read;	/* in 1000 */
	bool heads_are_good;			/* writes of heads and deletions do not fail */
	bool stuck;				/* nothing is answered */
	bool lossy;	/* the store has lost writes that it had answered, after the last opening */
	bool refuse_send;
	bool cold, cut, positions_gone;	/* how the last process ended */

	struct ar_backup backup;
	uint32_t damages[4], nr_lost, nr_gone, nr_copied, nr_found;
	uint32_t nr_writes, nr_fua, nr_flushes, nr_deletes;
	uint64_t copied_bytes;
};

struct ar *ar_create(uint64_t seed, const struct alog_config *cfg);
void ar_destroy(struct ar *a);
uint32_t ar_random(struct ar *a, uint32_t below);

/* ---- the store ---- */
/* Gives one request its effect, or its answer. False: none is out. */
bool ar_step(struct ar *a);
/* Answers all, and polls, until nothing goes on. */
void ar_settle(struct ar *a);
void ar_poll(struct ar *a);
struct ar_object *ar_find(struct ar *a, const char *target, bool make);
/* A page at the begin of this object is written, and answered, by the user itself. */
void ar_write_page(struct ar *a, const char *target, uint64_t content);
bool ar_has_page(struct ar *a, const char *target, uint64_t content);
struct ar_object *ar_zone(struct ar *a, uint64_t zone);

/* ---- ends and beginnings ---- */
void ar_kill(struct ar *a);			/* the process: the arena stays */
void ar_cut(struct ar *a);			/* power: what was not flushed may be gone */
void ar_forget(struct ar *a);			/* the segment is destroyed; the store goes on */
/* A new process; checks what the log shows against the oracle. False: killed, by kill_in. */
bool ar_open(struct ar *a);
/* As a kill, if one was due in there: true: the process is dead, and is to be opened again. */
bool ar_run(struct ar *a, void (*fn)(struct ar *a));

/* ---- the user ---- */
/* -EAGAIN: nothing was done. value 0 deletes. */
int ar_put(struct ar *a, uint32_t key, uint32_t value_bytes, bool delete);
/* The value begins at a page; `lend`: its pages are lent to the log until it is written. */
int ar_put_paged(struct ar *a, uint32_t key, uint32_t value_bytes, bool lend);
int ar_batch(struct ar *a, uint32_t first_key, uint32_t nr, uint32_t value_bytes);
/* Puts, with polls and answers, until it is done. */
void ar_put_now(struct ar *a, uint32_t key, uint32_t value_bytes, bool delete);
void ar_force_now(struct ar *a);
void ar_note_promises(struct ar *a);
/* Each key is read, from the tail or the store, and compared with the index and the oracle. */
void ar_check_values(struct ar *a);
/* Begins a backup, which fails the test if it is not the state of now. It waits before one in so
 * many records for alog_walk_go(); 0: never. False: one is under way. */
bool ar_backup(struct ar *a, uint32_t waits_in);

#endif
