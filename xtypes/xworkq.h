/* xworkq - the work queue of one object: one job at a time on it, in order of arrival.
 *
 * A thread that pushes a job tries to become the owner. If there is an owner already, the thread
 * goes on, and the owner does its job. So no thread ever waits for an object, and the data of jobs
 * needs no lock.
 *
 * Algorithm: combining through one owner (G. Oyama, K. Taura, A. Yonezawa, "Executing Parallel
 * Programs with Synchronization Bottlenecks Efficiently", PDSIA 1999; Hendler et al., "Flat
 * Combining", SPAA 2010). The owner takes a push list (R. K. Treiber, IBM RJ 5118, 1986) whole and
 * reverses it. Nobody pops single nodes from the shared list, so there is no ABA problem.
 *
 * The hand-over is Dekker's. The pusher stores its job and then looks at `owned`. The leaver stores
 * owned = 0 and then looks at the list. All four accesses are sequentially consistent, so at least
 * one of the two sees the other. (On x86 these accesses are locked instructions, which are the
 * fences; separate ones would only be executed twice.)
 *
 *   owned    to       when                                          by
 *   0        1        a job was pushed and nobody was in            xworkq_push
 *   0        1        a thread wants to be alone without a job      xworkq_try_enter
 *   0        1        the same, where nobody else ever is           xworkq_enter_alone
 *   1        0        nothing is left to do                         xworkq_leave, xworkq_run
 *   0        1        a job came while leaving                      xworkq_leave
 *
 * Contract: push and try_enter from any thread of the process. run and leave by the owner only. The
 * owner is not bound to a thread: ownership may be handed on, with the usual ordering. A new owner
 * must call run (or leave) soon. It may first put the object on a private ready list, so that a job
 * is never run inside another job. Nothing blocks, but a push repeats its swap if another got in
 * between. The queue's memory must stay mapped: a leaver looks at it once more after another may
 * have become the owner. A job belongs to the queue from push until its fn is called. fn may free
 * the job or push it again, and may push others.
 *
 * Invariants:
 *   W1  At most one owner; only it touches `run` and calls jobs.
 *   W2  If there is no owner, `run` is empty. Then `in` is empty too, or a thread is between its
 *       two accesses and will see it.
 *   W3  Jobs of `run` are older than those of `in`.
 */
#ifndef XTYPES_XWORKQ_H
#define XTYPES_XWORKQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xwork {
	struct xwork *_Atomic next;
	void (*fn)(struct xwork *w, void *ctx);
};

struct xworkq {
	struct xwork *_Atomic in;	/* arrived, newest first; anybody pushes */
	struct xwork *run;		/* taken over, oldest first; the owner's */
	_Atomic uint32_t owned;		/* 1 while somebody is in */
};

void xworkq_init(struct xworkq *q);

/* Becomes the owner without a job; false if somebody is in. */
static inline bool xworkq_try_enter(struct xworkq *q)
{
	uint32_t none = 0;

	/* seq_cst: the looking half of the hand-over, partner is the store in xworkq_leave(); also
	 * acquires what the last owner did */
	return atomic_load_explicit(&q->owned, memory_order_seq_cst) == 0 &&
	       atomic_compare_exchange_strong_explicit(&q->owned, &none, 1, memory_order_seq_cst,
						       memory_order_seq_cst);
}

/* The same for who knows that no other thread uses the queue at the same time: it needs no locked
 * instruction. Such a one lets go by xworkq_leave_alone(). */
static inline bool xworkq_enter_alone(struct xworkq *q)
{
	if (atomic_load_explicit(&q->owned, memory_order_relaxed))
		return false;
	atomic_store_explicit(&q->owned, 1, memory_order_relaxed);
	return true;
}

/* Queues a job. True: the caller is the owner now and must call xworkq_run() soon. False: the job
 * is, or will be, run by another, and may be gone already. */
static inline bool xworkq_push(struct xworkq *q, struct xwork *w)
{
	struct xwork *first = atomic_load_explicit(&q->in, memory_order_relaxed);

	do {
		atomic_store_explicit(&w->next, first, memory_order_relaxed);
		/* seq_cst: the storing half of the hand-over, partner is the load in
		 * xworkq_leave(); also releases the job to the exchange in jobs_take_over() */
	} while (!atomic_compare_exchange_weak_explicit(&q->in, &first, w, memory_order_seq_cst,
							memory_order_relaxed));
	return xworkq_try_enter(q);
}

/* The owner lets go. True: there is work, and the caller is the owner (still, or again). */
bool xworkq_leave(struct xworkq *q);

/* The same, by who knows as xworkq_enter_alone(). */
static inline bool xworkq_leave_alone(struct xworkq *q)
{
	if (q->run || atomic_load_explicit(&q->in, memory_order_relaxed))
		return true;
	atomic_store_explicit(&q->owned, 0, memory_order_relaxed);
	return false;
}

/* The owner runs up to `budget` jobs. False: all is done and the caller has let go. True: jobs are
 * left and the caller still is the owner: it must call again. ctx is handed to every fn. */
bool xworkq_run(struct xworkq *q, unsigned budget, void *ctx);

/* True while somebody is in: for the owner's assertions. */
static inline bool xworkq_is_owned(const struct xworkq *q)
{
	return atomic_load_explicit(&q->owned, memory_order_relaxed);
}

/* True if nobody is in and no job waits. May be out of date at once: for checks. */
bool xworkq_idle(const struct xworkq *q);

#endif
