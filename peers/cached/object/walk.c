/* walk - see walk.h. */
#include "peers/cached/object/object.h"
#include "peers/cached/object/walk.h"

/* The next object from there on that has buckets, with a reference; NULL: there is none. */
static struct object *walk_next(struct cached *k, struct walk *w)
{
	while (w->next < nr_entries(k)) {
		uint32_t i = w->next++;

		if (atomic_load_explicit(&object_of(k)->objects[i].used, memory_order_relaxed) &&
			xcache_try_get(&object_of(k)->xc, i))
			return &object_of(k)->objects[i];
	}
	return NULL;
}

static void walk_step(struct cport *ps, struct walk *w)
{
	struct object *o = walk_next(ps->cache, w);

	if (o)
		object_push(ps, o, &w->work);
	else
		w->end(ps);
}

static void walk_job(struct xwork *work, void *ctx)
{
	struct walk *w = caa_container_of(work, struct walk, work);
	struct cport *ps = ctx;
	struct object *o = &object_of(ps->cache)->objects[w->next - 1];

	w->each(ps, o);
	walk_step(ps, w);
	object_put(ps, o);	/* X2: w may be another thread's, or another walk's, by now */
}

void walk_begin(struct cport *ps, struct walk *w,
	void (*each)(struct cport *ps, struct object *o), void (*end)(struct cport *ps))
{
	*w = (struct walk){ .each = each, .end = end, .work.fn = walk_job };
	walk_step(ps, w);
}
