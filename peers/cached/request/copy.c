/* copy - COPY: a range of one object becomes a copy of the same range of another.
 *
 * If the cache has all of the source, the copy is a write with data from the source. It is answered
 * as the policy says: without the store in write-back. Else, and if writes go around the cache, the
 * store copies. First the data of both ranges that is newer here than at the store is flushed. Then
 * a child goes out. Until it is answered the buckets of the target are BYPASS, as for any write
 * that goes around.
 *
 *   step               inside      then
 *   copy_step          the target  copy_source, or copy_by_store if nothing of the source is known
 *                                  here
 *   copy_source        the source  write_step with pages that are filled, or copy_source_flushed
 *   copy_source_flushed  the source  copy_by_store
 *   copy_by_store      the target  around_done
 *
 * A copy takes its data while it is inside the source, once. It is in flight together with all
 * requests that are answered later. So later writes to the source do not matter.
 *
 * Contract: the step is inside the object c->obj. c->other is the other one of the two. The copy
 * holds a reference to each.
 */
#include <errno.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/common/blocker/shape.h"

static void copy_source(struct cport *ps, struct creq *c);
static void source_flush(struct cport *ps, struct creq *c);
static void copy_by_store(struct cport *ps, struct creq *c);

/* Goes on inside the other object. */
static void change_sides(
	struct cport *ps, struct creq *c, void (*step)(struct cport *ps, struct creq *c))
{
	struct object *o = c->other;

	c->other = c->obj;
	c->obj = o;
	c->step = step;
	object_push(ps, o, &c->work);
}

void copy_step(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	char name[XSEG_TARGET_MAX];
	uint32_t idx;
	int rc = shape_source(peer_of(k)->seg, c->r, name);

	if (!c->policy)
		c->policy = object_policy(ps, c->obj);
	if (full_refuses(ps, c))
		c->error = -ENOSPC;
	if (!rc)
		rc = c->error;
	if (rc || strcmp(name, c->r->target) == 0) {
		write_end(ps, c, rc ? rc : (int64_t)c->r->size);
		return;
	}
	/* one that is being emptied may still be dirty */
	idx = xcache_find(&object_of(k)->xc, name, xseg_hash(name, strlen(name)));
	if (idx == XCACHE_NONE) {
		c->step = copy_by_store;
		copy_by_store(ps, c);
		return;
	}
	c->other = &object_of(k)->objects[idx];
	/* counted here, where it may look: a few more when it takes pages do no harm (share.h) */
	c->change.grow = (uint16_t)share_claim(ps, c->obj, c->first, c->nr, c->nr, TURN_NONE).grow;
	change_sides(ps, c, copy_source);
}

/* ---- by the cache ---- */

static bool source_is_here(struct cport *ps, const struct creq *c)
{
	for (uint32_t i = 0; i < c->nr; i++)
		if (!slot_present(slot_get(ps->cache, c->obj, c->first + i)))
			return false;
	return true;
}

static void take_bucket(struct cport *ps, struct creq *c, uint32_t i, uint32_t page)
{
	struct xseg *seg = peer_of(ps->cache)->seg;
	uint64_t w = slot_get(ps->cache, c->obj, c->first + i);

	if (slot_has_page(w))
		memcpy(xseg_page(seg, page), xseg_page(seg, slot_page(w)), BUCKET_SIZE);
	else
		memset(xseg_page(seg, page), 0, BUCKET_SIZE);
}

/* Pages for all buckets of the target, filled; and, for those that are covered in part, pages with
 * the source's data aside. */
static void take_source(struct cport *ps, struct creq *c)
{
	uint32_t page[XSEG_REQ_PAGES + 2], n = c->nr, parts = 0;
	struct claim cl;
	struct need need;

	if (!list_get(ps, c))
		return;
	for (uint32_t i = 0; i < c->nr; i++)
		parts += request_is_partial(c->r, i);
	cl = share_claim_all(ps->cache, object_volume(c->other), c->change.grow, c->turn);
	need = pages_get(ps, n + parts, page, &cl);
	if (need.nr) {
		list_put(ps, c);
		pages_wait(ps, c, need);
		return;
	}
	c->turn = TURN_NONE;
	if (!source_is_here(ps, c)) {		/* one of the pages was the source's */
		pages_return(ps, page, n + parts);
		source_flush(ps, c);
		return;
	}
	memcpy(c->page, page, n * sizeof(page[0]));
	c->nr_pages = c->nr;
	for (uint32_t i = 0; i < c->nr; i++) {
		uint32_t to = c->page[i];

		if (request_is_partial(c->r, i))
			to = c->change.aside[i > 0] = page[n++];
		take_bucket(ps, c, i, to);
	}
	change_sides(ps, c, write_step);
}

/* ---- by the store ---- */

static void copy_source_flushed(struct cport *ps, struct creq *c)
{
	change_sides(ps, c, copy_by_store);
}

static void source_flush(struct cport *ps, struct creq *c)
{
	c->step = copy_source_flushed;
	c->seq = c->obj->apply_seq;
	through_wait(ps, c);
}

static void copy_source(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	if (object_is_shut(o) || (o->nr_redo && !c->redo) || around_is_out(ps, c)) {
		object_wait(ps, o, c, WAIT_LOAD);
		return;
	}
	if (c->error)
		change_sides(ps, c, copy_by_store);
	else if (!c->policy->writes_around && !object_passes(c->other) && source_is_here(ps, c))
		take_source(ps, c);
	else
		source_flush(ps, c);
}

static void copy_by_store(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	if (object_is_shut(o) || (o->nr_redo && !c->redo) || around_is_out(ps, c)) {
		object_wait(ps, o, c, WAIT_LOAD);
		return;
	}
	if (c->error) {
		write_end(ps, c, c->error);
		return;
	}
	if (around_write(ps, c))
		return;
	c->seq = o->apply_seq;
	through_wait(ps, c);
}
