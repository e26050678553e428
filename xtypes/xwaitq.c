/* xwaitq - the queue of waiters. Contract, protocol and invariants: xwaitq.h. */
#include "xtypes/xwaitq.h"

#include <assert.h>

static void queue_lock(struct xwaitq *q)
{
	int rc = pthread_mutex_lock(&q->lock);

	assert(rc == 0);
	(void)rc;
}

static void queue_unlock(struct xwaitq *q)
{
	int rc = pthread_mutex_unlock(&q->lock);

	assert(rc == 0);
	(void)rc;
}

static void nr_add_locked(struct xwaitq *q, uint32_t delta)
{
	atomic_store_explicit(&q->nr, xwaitq_nr(q) + delta, memory_order_relaxed);
}

void xwaitq_init(struct xwaitq *q)
{
	int rc = pthread_mutex_init(&q->lock, NULL);

	assert(rc == 0);
	(void)rc;
	q->head = NULL;
	q->tail = NULL;
	atomic_init(&q->nr, 0);
}

void xwaitq_fini(struct xwaitq *q)
{
	assert(xwaitq_empty(q) && !q->head && !q->tail);
	pthread_mutex_destroy(&q->lock);
}

void xwaitq_add(struct xwaitq *q, struct xwait *w, uint32_t need)
{
	queue_lock(q);
	assert(!w->queued);
	w->need = need;
	w->queued = true;
	w->next = NULL;
	w->prev = q->tail;
	if (q->tail)
		q->tail->next = w;
	else
		q->head = w;
	q->tail = w;
	nr_add_locked(q, 1);
	queue_unlock(q);
	/* seq_cst: partner is the signaller's fence, in xwaitq_has_waiters() or its own */
	atomic_thread_fence(memory_order_seq_cst);
}

static void unlink_locked(struct xwaitq *q, struct xwait *w)
{
	assert(w->queued && xwaitq_nr(q) > 0);
	if (w->prev)
		w->prev->next = w->next;
	else
		q->head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		q->tail = w->prev;
	w->next = NULL;
	w->prev = NULL;
	w->queued = false;
	nr_add_locked(q, -1u);
}

bool xwaitq_remove(struct xwaitq *q, struct xwait *w)
{
	bool was;

	queue_lock(q);
	was = w->queued;
	if (was)
		unlink_locked(q, w);
	queue_unlock(q);
	return was;
}

struct xwait *xwaitq_pop(struct xwaitq *q, uint32_t available)
{
	struct xwait *w;

	queue_lock(q);
	w = q->head;
	if (w && w->need <= available)
		unlink_locked(q, w);
	else
		w = NULL;
	queue_unlock(q);
	return w;
}

struct xwait *xwaitq_take(
	struct xwaitq *q, bool (*match)(struct xwait *w, void *arg), void *arg)
{
	struct xwait *w;

	queue_lock(q);
	w = q->head;
	while (w && !match(w, arg))
		w = w->next;
	if (w)
		unlink_locked(q, w);
	queue_unlock(q);
	return w;
}
