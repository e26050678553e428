/* ops - DELETE and INFO of an object.
 *
 * DELETE waits until nothing of the object is in flight. Then the store deletes, then the buckets
 * go. If the store fails, the object stays as it was, dirty data included. The DELETE is STARTED
 * when it goes out. A successor redoes it before it serves anything else of the object. Otherwise
 * it would delete data that was written in between. If the redone DELETE fails, its predecessor's
 * may have succeeded all the same. Then the clean data here is dropped, and the store's data is
 * true.
 *
 * Older changes of the object that are parked are voided when the store has deleted it (change.c).
 * So a DELETE never waits for pages. INFO asks the store, and counts dirty data as present.
 *
 * Contract: inside the object.
 */
#include <errno.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/request/request.h"

static struct child *child_or_wait(struct cport *ps, struct creq *c, enum child_kind kind)
{
	struct child *ch = child_get(ps, kind, c->obj);

	if (ch) {
		ch->c = c;
		creq_set_state(c, CREQ_AT_STORE);
		return ch;
	}
	creq_wait_for_request(ps, c);
	return NULL;
}

void delete_step(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;
	struct child *ch;

	if (c->voided) {
		write_end(ps, c, 0);
		return;
	}
	if (object_is_shut(o) || change_waits(ps->cache, o, c) || o->flushes_out ||
		o->nr[BUCKET_LOADING] || o->loads_out ||
		o->through || (o->nr_redo && !c->redo)) {
		object_wait(ps, o, c, WAIT_FLUSH);
		return;
	}
	ch = child_or_wait(ps, c, CHILD_DELETE);
	if (!ch)
		return;
	if (c->r->state == XSEG_REQ_AT)
		xseg_req_start(ps->pp->port, c->r);
	object_set_state(o, OBJECT_DELETING);
	child_submit(ps, ch, XSEG_OP_DELETE, 0);
}

void delete_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	bool had_it = o->nr[BUCKET_DIRTY] > 0 || ch->c->recovered,
	     deleted = result >= 0 || result == -ENOENT;
	struct creq *voided = NULL;

	object_set_state(o, OBJECT_READY);
	if (deleted) {
		object_delete(ps, o);
		back_off_end(ps, o);
		through_deleted(ps, o);
		voided = changes_void(ps, o, ch->c);
	} else {
		if (ch->c->recovered)
			object_forget_clean(ps, o);
		through_restart(ps, o);
	}
	dirty_list(ps, o);
	dirty_unlist(ps, o);
	if (deleted && !atomic_load_explicit(&o->used, memory_order_relaxed))
		xcache_cool(&object_of(ps->cache)->xc, o->index);
	write_end(ps, ch->c, result == -ENOENT && had_it ? 0 : result);
	changes_end(ps, voided);
	object_reclaim_step(ps, o);
	child_put(ps, ch);
}

/* Up to where the object has data in the cache alone: zeroes are none. */
static uint64_t dirty_end_bytes(struct cport *ps, struct object *o)
{
	for (uint32_t b = OBJECT_BUCKETS; b-- > 0 && o->nr[BUCKET_DIRTY] + o->nr[BUCKET_WRITING];) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (bucket_is_dirty(slot_state(w)) && slot_has_page(w))
			return (uint64_t)(b + 1) * BUCKET_SIZE;
	}
	return 0;
}

void info_step(struct cport *ps, struct creq *c)
{
	struct child *ch;

	if (object_is_shut(c->obj) || c->obj->nr_redo) {
		object_wait(ps, c->obj, c, WAIT_FLUSH);
		return;
	}
	ch = child_or_wait(ps, c, CHILD_INFO);
	if (!ch)
		return;
	c->info.dirty_end = dirty_end_bytes(ps, c->obj);
	child_submit(ps, ch, XSEG_OP_INFO, 0);
}

/* What was dirty when the store was asked may have been flushed since then; what was written since
 * then counts too. */
void info_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct creq *c = ch->c;
	uint64_t end = dirty_end_bytes(ps, ch->obj);

	if (end < c->info.dirty_end)
		end = c->info.dirty_end;
	if (end && (result == -ENOENT || (result >= 0 && (uint64_t)result < end)))
		result = (int64_t)end;
	creq_finish(ps, c, result);
	child_put(ps, ch);
}
