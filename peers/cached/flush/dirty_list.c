/* dirty_list - lists the objects with data to flush, and chooses the next one.
 *
 * `dirty` has these objects in the order in which they became dirty. Each group has a list of its
 * own objects in the same order. An object whose last flush failed pauses. The pause grows with the
 * number of its flushes that failed in a row. There is a list for each length of a pause, in the
 * order in which the pauses end. That is nearly always the order of arrival. A FLUSH ends all
 * pauses, as it may be waiting for the data that failed. The paused objects go to the list `again`,
 * and are tried once.
 *
 * Contract: dirty_list(), dirty_list_at() and dirty_unlist() run inside the object. The functions
 * dirty_next() and dirty_next_wanted() run outside of any object. The lock dirty_lock, a leaf,
 * guards the lists.
 *
 * Invariants:
 *   F2  An object with DIRTY buckets that may be started is in a list of dirty objects, which holds
 *       a reference to it. Else it has been asked to flush, waits for a request, or is shut.
 *   F6  A port remembers when the next object is due by its age. That time holds until dirty_news
 *       changes. A thread that makes an object due earlier changes dirty_news (dirty_is_news). It
 *       does so under the same hold of dirty_lock, or afterwards.
 */
#include <assert.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/object/object.h"

void dirty_is_news(struct cached *k)
{
	/* release: partner is the acquire in dirty_next() */
	atomic_fetch_add_explicit(&flush_of(k)->dirty_news, 1, memory_order_release);
}

/* Under dirty_lock: it is listed after a flush that failed. */
static bool is_failed(struct object *o)
{
	return cds_list_empty(&o->in_group);
}

/* Under dirty_lock. An object whose last flush failed is not among the others, so that it is tried
 * again in time, whatever the flusher wants, and keeps nobody waiting until then. */
static void failed_place(struct cached *k, struct object *o)
{
	struct cds_list_head *list = &flush_of(k)->failed[o->nr_failures - 1], *at = list->prev;

	o->dirty_ns = o->retry_ns;
	while (at != list && cds_list_entry(at, struct object, dirty)->dirty_ns > o->dirty_ns)
		at = at->prev;
	cds_list_add(&o->dirty, at);
}

/* Under dirty_lock. at_head: it was the next one, and was not flushed as a whole. */
static void list_place(struct cport *ps, struct object *o, bool at_head)
{
	struct cached *k = ps->cache;

	dirty_is_news(k);
	if (o->retry_ns > ps->pp->now_ns) {
		failed_place(k, o);
		return;
	}
	if (at_head) {
		cds_list_add(&o->dirty, &flush_of(k)->dirty);
		cds_list_add(&o->in_group, &object_group(k, o)->dirty);
		return;
	}
	o->dirty_ns = ps->pp->now_ns;
	cds_list_add_tail(&o->dirty, &flush_of(k)->dirty);
	cds_list_add_tail(&o->in_group, &object_group(k, o)->dirty);
}

/* Under dirty_lock. */
static void list_unplace(struct object *o)
{
	cds_list_del(&o->dirty);
	cds_list_del_init(&o->in_group);
}

/* An object that waits for a request, or is being deleted, is listed again when that ends: the
 * flusher could do nothing for it. So is one that the flusher has, by flush_job(). */
void dirty_list_at(struct cport *ps, struct object *o, bool at_head)
{
	struct cached *k = ps->cache;
	bool begins = false;

	if (nr_startable(o) == 0 || object_is_shut(o) ||
		atomic_load_explicit(&o->flush_waiting, memory_order_relaxed) ||
		(atomic_load_explicit(&o->listed, memory_order_relaxed) &&
			o->retry_ns <= ps->pp->now_ns))
		return;
	xcache_get(&object_of(k)->xc, o->index);
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	if (atomic_load_explicit(&o->listed, memory_order_relaxed)) {
		/* one that has not failed since it was listed so is there, or tried again */
		if (!is_failed(o) || o->dirty_ns != o->retry_ns) {
			list_unplace(o);
			list_place(ps, o, at_head);
		}
	} else if (atomic_load_explicit(&o->flush_all, memory_order_relaxed) == FLUSH_NONE) {
		begins = true;
		atomic_store_explicit(&o->listed, true, memory_order_relaxed);
		atomic_fetch_add_explicit(&flush_of(k)->nr_listed, 1, memory_order_relaxed);
		list_place(ps, o, at_head);
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (!begins)
		object_put(ps, o);
}

void dirty_list(struct cport *ps, struct object *o)
{
	dirty_list_at(ps, o, false);
}

/* Under dirty_lock. */
static void list_remove(struct cached *k, struct object *o)
{
	assert(atomic_load_explicit(&o->listed, memory_order_relaxed) &&
		flush_of(k)->nr_listed > 0);			/* F2 */
	list_unplace(o);
	atomic_store_explicit(&o->listed, false, memory_order_relaxed);
	atomic_fetch_sub_explicit(&flush_of(k)->nr_listed, 1, memory_order_relaxed);
}

/* Inside: nothing is left to be started, so the list need not keep it. */
void dirty_unlist(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	bool was;

	if (nr_startable(o) || !atomic_load_explicit(&o->listed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	was = atomic_load_explicit(&o->listed, memory_order_relaxed);
	if (was)
		list_remove(k, o);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (was)
		object_put(ps, o);
}

/* Under dirty_lock. */
static bool none_failed(struct cached *k)
{
	for (uint32_t i = 0; i < NR_PAUSES; i++)
		if (!cds_list_empty(&flush_of(k)->failed[i]))
			return false;
	return cds_list_empty(&flush_of(k)->again);
}

void dirty_unfail(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	if (atomic_load_explicit(&o->listed, memory_order_relaxed) && is_failed(o)) {
		list_unplace(o);
		o->dirty_ns = 0;
		list_place(ps, o, true);
	}
	if (none_failed(k))
		trouble_over(k, TROUBLE_FLUSH);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

void dirty_try_failed_locked(struct cached *k)
{
	for (uint32_t i = 0; i < NR_PAUSES; i++) {
		cds_list_splice(&flush_of(k)->failed[i], flush_of(k)->again.prev);
		CDS_INIT_LIST_HEAD(&flush_of(k)->failed[i]);
	}
}

/* ---- who is next ---- */

/* Under dirty_lock. An age may be as long as an option can say. */
static uint64_t aged_ns(const struct object *o, uint64_t age_ns)
{
	return age_ns < PEER_NEVER - o->dirty_ns ? o->dirty_ns + age_ns : PEER_NEVER;
}

/* Under dirty_lock: whether it may be taken; else *next_ns says when to look again. */
static bool is_due(const struct object *o, uint64_t due_ns, uint64_t now_ns, uint64_t *next_ns)
{
	if (!o || due_ns <= now_ns)
		return o != NULL;
	if (*next_ns > due_ns)
		*next_ns = due_ns;
	return false;
}

static struct object *first_of(struct cds_list_head *list)
{
	return cds_list_empty(list) ? NULL : cds_list_first_entry(list, struct object, dirty);
}

/* Under dirty_lock: the next one that failed, and when it is due; NULL: there is none. */
static struct object *first_failed(struct cached *k, uint64_t *due_ns)
{
	struct object *first = first_of(&flush_of(k)->again), *o;

	*due_ns = 0;
	if (first)
		return first;
	for (uint32_t i = 0; i < NR_PAUSES; i++) {
		o = first_of(&flush_of(k)->failed[i]);
		if (o && (!first || o->dirty_ns < first->dirty_ns))
			first = o;
	}
	if (first)
		*due_ns = first->dirty_ns;
	return first;
}

/* Under dirty_lock: the next object of a group that somebody waits for; the groups take turns. */
static struct object *first_wanted(struct cached *k, enum flush_why *why)
{
	struct cds_list_head *at;

	cds_list_for_each(at, &flush_of(k)->wanted) {
		struct flush_group *g = cds_list_entry(at, struct flush_group, wanted);

		if (cds_list_empty(&g->dirty))
			continue;
		cds_list_del(&g->wanted);
		cds_list_add_tail(&g->wanted, &flush_of(k)->wanted);
		*why = g->flushes ? FLUSH_FLUSH : g->drains ? FLUSH_SWITCH : FLUSH_EVICTION;
		return cds_list_first_entry(&g->dirty, struct object, in_group);
	}
	return NULL;
}

/* Under dirty_lock: the flusher has it, with the list's reference. */
static void list_take(struct cached *k, struct object *o, enum flush_why why)
{
	list_remove(k, o);
	atomic_store_explicit(&o->flush_all, (uint8_t)why, memory_order_relaxed);
}

/* The next object that those need who wait for single volumes, with the list's reference; NULL:
 * none now. */
struct object *dirty_next_wanted(struct cport *ps)
{
	struct cached *k = ps->cache;
	enum flush_why why = FLUSH_FLUSH;
	struct object *o;

	if (atomic_load_explicit(&flush_of(k)->nr_wanted, memory_order_relaxed) == 0)
		return NULL;
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	o = first_of(&flush_of(k)->again);
	if (o)
		o->dirty_ns = 0;
	else
		o = first_wanted(k, &why);
	if (o)
		list_take(k, o, why);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	return o;
}

/* The next object to flush, with the list's reference, and told why; NULL: none now, *next_ns says
 * when to look again. */
struct object *dirty_next(struct cport *ps, enum flush_why why, uint64_t *next_ns)
{
	struct cached *k = ps->cache;
	uint32_t news = atomic_load_explicit(&flush_of(k)->dirty_news, memory_order_acquire);
	uint64_t now = ps->pp->now_ns,
		 age = atomic_load_explicit(&flush_of(k)->age_ns, memory_order_relaxed);
	uint64_t due_ns;
	struct object *o;

	if (why == FLUSH_AGE && news == flush_port(ps)->quiet_news &&
		now < flush_port(ps)->quiet_ns) {
		*next_ns = flush_port(ps)->quiet_ns;
		return NULL;
	}
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	o = first_failed(k, &due_ns);
	if (is_due(o, due_ns, now, next_ns)) {
		o->dirty_ns = 0;
	} else {
		o = first_of(&flush_of(k)->dirty);
		if (!is_due(o, o && why == FLUSH_AGE ? aged_ns(o, age) : 0, now, next_ns))
			o = NULL;
	}
	if (o)
		list_take(k, o, why);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (!o) {
		flush_port(ps)->quiet_news = news;
		flush_port(ps)->quiet_ns = *next_ns;
	}
	return o;
}
