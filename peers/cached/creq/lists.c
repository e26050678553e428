/* lists - the lists in which larger writes keep their new pages: one of a few lists, or a place in
 * the queue for one.
 *
 * Contract: list_get() and list_put() inside the object.
 */
#include "peers/cached/creq/creq.h"
#include "peers/cached/memory/pages.h"

static uint32_t nr_free_lists(struct cached *k)
{
	uint32_t nr;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	nr = xpool_nr(&memory_of(k)->free_lists);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return nr;
}

bool list_get(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	uint32_t n;

	if (c->nr <= CREQ_FEW)
		c->page = c->few;
	if (c->page)
		return true;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	n = xpool_get(&memory_of(k)->free_lists);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (n != XPOOL_NONE) {
		c->page = memory_of(k)->lists[n];
		return true;
	}
	count_wait(ps, WAIT_BUCKET);
	creq_set_state(c, CREQ_WAITS_MEMORY);
	c->wait.fn = creq_retry;
	c->queue = &memory_of(k)->want_lists;
	xwaitq_add(&memory_of(k)->want_lists, &c->wait, 1);
	if (nr_free_lists(k))
		memory_port(ps)->freed = true;
	return false;
}

void list_put(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;

	if (c->page && c->page != c->few) {
		pthread_mutex_lock(&memory_of(k)->mem_lock);
		xpool_put(&memory_of(k)->free_lists,
			(uint32_t)((uint32_t(*)[XSEG_REQ_PAGES])c->page - memory_of(k)->lists));
		pthread_mutex_unlock(&memory_of(k)->mem_lock);
		memory_port(ps)->freed = true;
	}
	c->page = NULL;
}

void lists_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;

	while (xwaitq_has_waiters(&memory_of(k)->want_lists) &&
		(w = xwaitq_pop(&memory_of(k)->want_lists, nr_free_lists(k))))
		w->fn(w, ps);
}
