/* filed_work - see filed_work.h for the contract. */
#include "peers/filed/filed_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peers/common/runtime/bus.h"

static struct filed_work *work_take(struct filed_pool *p)
{
	struct filed_work *w;
	bool more;

	pthread_mutex_lock(&p->lock);
	while (!p->first && !p->stopping)
		pthread_cond_wait(&p->some, &p->lock);
	w = p->stopping ? NULL : p->first;
	if (w) {
		p->first = w->next;
		if (!p->first)
			p->last = &p->first;
	}
	more = p->first;
	pthread_mutex_unlock(&p->lock);
	if (w && more)			/* J1 */
		pthread_cond_signal(&p->some);
	return w;
}

static void *worker(void *arg)
{
	struct filed_pool *p = arg;
	struct filed_work *w;
	uint8_t *bounce;

	bus_block_others();
	pthread_mutex_lock(&p->lock);
	bounce = p->bounce + (size_t)p->nr_taken++ * FILED_BOUNCE_BYTES;
	pthread_mutex_unlock(&p->lock);
	while ((w = work_take(p)))
		w->run(w, p->arg, bounce);
	return NULL;
}

int filed_pool_open(struct filed_pool *p, uint32_t nr, void *arg)
{
	int rc = 0;

	memset(p, 0, sizeof(*p));
	p->arg = arg;
	p->last = &p->first;
	p->bounce = aligned_alloc(4096, (size_t)nr * FILED_BOUNCE_BYTES);
	if (!p->bounce)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->some, NULL);
	while (!rc && p->nr_threads < nr) {
		rc = -pthread_create(&p->thread[p->nr_threads], NULL, worker, p);
		p->nr_threads += !rc;
	}
	if (rc)
		filed_pool_close(p);
	return rc;
}

void filed_pool_close(struct filed_pool *p)
{
	uint32_t i;

	if (!p->bounce)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->some);
	pthread_mutex_unlock(&p->lock);
	for (i = 0; i < p->nr_threads; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->some);
	pthread_mutex_destroy(&p->lock);
	free(p->bounce);
	p->bounce = NULL;
}

void filed_pool_push(struct filed_pool *p, struct filed_work *w)
{
	bool only;

	w->next = NULL;
	pthread_mutex_lock(&p->lock);
	only = !p->first;
	*p->last = w;
	p->last = &w->next;
	pthread_mutex_unlock(&p->lock);
	if (only)			/* J1 */
		pthread_cond_signal(&p->some);
}
