/* xwaitq - jobs that wait for a condition: free buckets, free requests, the end of a flush.
 *
 * Algorithm: a doubly linked queue under a lock; the condition is the caller's. Strictly first in,
 * first out: only the first waiter is looked at. So a waiter that needs much is not starved by
 * those that need little.
 *
 * No wake-up is lost if both sides keep this order (Dekker's, as in xworkq):
 *
 *   waiter                                      signaller
 *   xwaitq_add(q, w, need)                      makes the condition true
 *   (ends with a seq_cst fence)                 xwaitq_has_waiters(q) (begins with such a fence),
 *   looks at the condition again; if true:        or its own seq_cst fence and !xwaitq_empty(q)
 *     xwaitq_remove(q, w), and if that          while ((w = xwaitq_pop(q, available)))
 *     says true it goes on, else it was popped    w->fn(w, ctx)
 *     and its fn is or will be called
 *
 * A waiter that finds the condition true may also act as a signaller, in place of removing itself.
 * Then the waiters before it are served first. cached's waiters do that, in their port's next poll.
 *
 * Contract: any thread of the process. The lock is a process-private mutex held for a few
 * instructions. It is a leaf: while it is held, no other lock is taken, and nothing but
 * xwaitq_take()'s match is called. Nothing allocates. The queue calls no fn: the popping thread
 * does. A waiter belongs to the queue while `queued`.
 *
 * Invariants:
 *   T1  nr is the number of waiters from head to tail; `queued` is true of exactly these.
 *   T2  pop returns waiters in the order of add.
 */
#ifndef XTYPES_XWAITQ_H
#define XTYPES_XWAITQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xwait {
	/* guarded by the queue's lock from xwaitq_add() until popped or removed */
	struct xwait *next, *prev;
	uint32_t need;
	bool queued;		/* false before the first xwaitq_add() */
	/* the caller's */
	void (*fn)(struct xwait *w, void *ctx);
};

struct xwaitq {
	pthread_mutex_t lock;	/* guards head, tail, the links and nr's changes */
	struct xwait *head, *tail;
	_Atomic uint32_t nr;	/* read without the lock by xwaitq_empty() and xwaitq_nr() */
};

void xwaitq_init(struct xwaitq *q);
void xwaitq_fini(struct xwaitq *q);	/* must be empty */

/* Puts w last. w must not be queued. Look at the condition again afterwards. */
void xwaitq_add(struct xwaitq *q, struct xwait *w, uint32_t need);

/* True if w was waiting and is not any more; false if it was not, or another was faster. */
bool xwaitq_remove(struct xwaitq *q, struct xwait *w);

/* Takes the first waiter if it needs no more than `available`; else NULL. */
struct xwait *xwaitq_pop(struct xwaitq *q, uint32_t available);

/* Takes the first waiter that matches, whatever it needs; NULL: none does. match is called under
 * the lock, and takes none. */
struct xwait *xwaitq_take(
	struct xwaitq *q, bool (*match)(struct xwait *w, void *arg), void *arg);

static inline uint32_t xwaitq_nr(const struct xwaitq *q)
{
	return atomic_load_explicit(&q->nr, memory_order_relaxed);
}

/* A cheap look that may be out of date: see the protocol above. */
static inline bool xwaitq_empty(const struct xwaitq *q)
{
	return xwaitq_nr(q) == 0;
}

/* The signaller's look, after it made the condition true. */
static inline bool xwaitq_has_waiters(const struct xwaitq *q)
{
	/* seq_cst: partner is the fence in xwaitq_add() */
	atomic_thread_fence(memory_order_seq_cst);
	return !xwaitq_empty(q);
}

#endif
