/* order - which op may start. No write of a blocker overlaps a write that it started and has not
 * answered (rule R3), and reads are ordered with the writes that they overlap.
 *
 * A request is an order_op of one or two byte ranges, each shared (reads) or exclusive (all that
 * changes data). Two ranges conflict when they are of one object, overlap, and one is exclusive. An
 * op counts the ranges that conflict with its own and came earlier; it may start when that is 0. So
 * overlapping ops go in order of arrival, and no op is passed over for ever. An op waits only for
 * earlier ones, so there is no deadlock, nor one among ops of two objects.
 *
 * Objects are told apart by hash alone. Two names of one hash are treated as one object, which
 * costs a wait and nothing else.
 *
 * Contract: any thread. Nothing allocates. Nothing blocks, but for a mutex per shard that is held
 * for the length of one list (the ops of objects that share a bucket). These locks are leaves. An
 * op of two ranges takes two of them, the lower address first. An op is the caller's memory. It
 * belongs to the order from order_enter() until the order_leave() that ends it. A thread that gets
 * an op from order_leave() may start it, whatever thread brought the op.
 *
 * Invariants:
 *   O1  A bucket lists its ranges in order of arrival.
 *   O2  op->blocked is the number of pairs (its range, an earlier conflicting range still listed).
 *   O3  An op is handed out exactly once: by order_enter() or, when blocked becomes 0, by one
 *       order_leave().
 */
#ifndef PEERS_COMMON_ORDER_H
#define PEERS_COMMON_ORDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ORDER_SHARDS  16
#define ORDER_BUCKETS 64		/* in each shard */
#define ORDER_END     UINT64_MAX	/* `to` of a range without an end */

struct order_op;

struct order_range {
	uint64_t hash, from, to;	/* bytes from .. to - 1 */
	bool exclusive;
	struct order_op *op;
	struct order_range *next, *prev;	/* guarded by the shard's lock */
};

struct order_op {
	struct order_range range[2];
	uint32_t nr;
	_Atomic uint32_t blocked;
	struct order_op *next; /* in the list that order_leave() returns; else the holder's */
};

struct order_shard {
	_Alignas(64) pthread_mutex_t lock;
	struct order_bucket {
		struct order_range *first, *last;
	} bucket[ORDER_BUCKETS];
};

struct order {
	struct order_shard shard[ORDER_SHARDS];
	_Atomic uint32_t nr;		/* ops that are in */
};

void order_init(struct order *o);
void order_fini(struct order *o);	/* ops that are in are forgotten */

/* Begins an op without ranges; then up to two are added. */
void order_op_init(struct order_op *op);
void order_op_add(struct order_op *op, uint64_t hash, uint64_t from, uint64_t to, bool exclusive);

/* True: the op may start. False: it waits, and a later order_leave() hands it out. */
__attribute__((warn_unused_result))
bool order_enter(struct order *o, struct order_op *op);

/* Ends an op that was started. Returns the ops that may start now, linked by next, oldest first;
 * or NULL. */
__attribute__((warn_unused_result))
struct order_op *order_leave(struct order *o, struct order_op *op);

/* How many ops are in, started or waiting. */
static inline uint32_t order_nr(struct order *o)
{
	return atomic_load_explicit(&o->nr, memory_order_relaxed);
}

#endif
