/* ops - DELETE and INFO of an object.
 *
 * DELETE waits until nothing of the object is in flight, then the store deletes, then the buckets go: if the store
 * fails, the object stays as it was, dirty data included. INFO asks the store, and counts what is dirty as there.
 *
 * Contract: inside the object.
 */
#include <errno.h>

#include "peers/cached/cached.h"

static struct child *child_or_wait(struct cport *ps, struct creq *c, enum child_kind kind)
{
	struct child *ch = child_get(ps, kind, c->obj);

	if (ch) {
		ch->c = c;
		return ch;
	}
	c->wait.fn = creq_retry;
	requests_wait(ps, &c->wait);
	return NULL;
}

void delete_step(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;
	struct child *ch;

	if (o->state == OBJECT_DELETING || o->flushes_out || o->nr[BUCKET_LOADING] || o->loads_out || o->through || o->nr_redo) {
		object_wait(ps, o, c, WAIT_FLUSH);
		return;
	}
	ch = child_or_wait(ps, c, CHILD_DELETE);
	if (!ch)
		return;
	object_set_state(o, OBJECT_DELETING);
	child_submit(ps, ch, XSEG_OP_DELETE, 0);
}

void delete_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	bool had_dirty = o->nr[BUCKET_DIRTY] > 0;

	object_set_state(o, OBJECT_READY);
	if (result >= 0 || result == -ENOENT)
		object_empty(ps, o);
	creq_finish(ps, ch->c, result == -ENOENT && had_dirty ? 0 : result);
	object_wake(ps, o);
	object_reclaim_step(ps, o);
	child_put(ps, ch);
}

void info_step(struct cport *ps, struct creq *c)
{
	struct child *ch;

	if (c->obj->state == OBJECT_DELETING || c->obj->nr_redo) {
		object_wait(ps, c->obj, c, WAIT_FLUSH);
		return;
	}
	ch = child_or_wait(ps, c, CHILD_INFO);
	if (ch)
		child_submit(ps, ch, XSEG_OP_INFO, 0);
}

void info_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	int64_t dirty_end_bytes = 0;

	for (uint32_t b = OBJECT_BUCKETS; b-- > 0 && !dirty_end_bytes; ) {
		enum bucket_state s = slot_state(slot_get(ps->cache, o, b));

		if (s == BUCKET_DIRTY || s == BUCKET_WRITING)
			dirty_end_bytes = (int64_t)(b + 1) * BUCKET_SIZE;
	}
	if (dirty_end_bytes && (result == -ENOENT || (result >= 0 && result < dirty_end_bytes)))
		result = dirty_end_bytes;
	creq_finish(ps, ch->c, result);
	child_put(ps, ch);
}
