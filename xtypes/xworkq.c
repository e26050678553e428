/* xworkq - the owner's side of an object's work queue. Contract and invariants: xworkq.h. */
#include "xtypes/xworkq.h"

#include <assert.h>

_Static_assert(sizeof(struct xworkq) <= 24, "there is one in every object");

void xworkq_init(struct xworkq *q)
{
	atomic_init(&q->in, NULL);
	atomic_init(&q->owned, 0);
	q->run = NULL;
}

/* Takes all that arrived and turns it round, oldest first. Only when `run` is empty (W3). */
static void jobs_take_over(struct xworkq *q)
{
	struct xwork *w, *next;

	/* acquire: partner is the swap in xworkq_push(); the jobs are complete */
	w = atomic_exchange_explicit(&q->in, NULL, memory_order_acquire);
	while (w) {
		next = atomic_load_explicit(&w->next, memory_order_relaxed);
		atomic_store_explicit(&w->next, q->run, memory_order_relaxed);
		q->run = w;
		w = next;
	}
}

static struct xwork *job_next(struct xworkq *q)
{
	struct xwork *w;

	if (!q->run && atomic_load_explicit(&q->in, memory_order_relaxed))
		jobs_take_over(q);
	w = q->run;
	if (w)		/* now: w is not ours any more once its fn is called */
		q->run = atomic_load_explicit(&w->next, memory_order_relaxed);
	return w;
}

bool xworkq_leave(struct xworkq *q)
{
	assert(atomic_load_explicit(&q->owned, memory_order_relaxed) == 1);
	if (q->run)
		return true;
	/* seq_cst: the storing half of the hand-over, partner is the load in xworkq_try_enter();
	 * also releases what we did to the next owner */
	atomic_store_explicit(&q->owned, 0, memory_order_seq_cst);
	/* seq_cst: the looking half, partner is the swap in xworkq_push() */
	return atomic_load_explicit(&q->in, memory_order_seq_cst) != NULL && xworkq_try_enter(q);
}

bool xworkq_run(struct xworkq *q, unsigned budget, void *ctx)
{
	struct xwork *w;

	assert(atomic_load_explicit(&q->owned, memory_order_relaxed) == 1);
	while (budget > 0) {
		w = job_next(q);
		if (w) {
			budget--;
			w->fn(w, ctx);
		} else if (!xworkq_leave(q)) {
			return false;
		}
	}
	/* the budget may have been just enough */
	return atomic_load_explicit(&q->in, memory_order_relaxed) != NULL || xworkq_leave(q);
}

bool xworkq_idle(const struct xworkq *q)
{
	return atomic_load_explicit(&q->owned, memory_order_relaxed) == 0 &&
	       atomic_load_explicit(&q->in, memory_order_relaxed) == NULL;
}
