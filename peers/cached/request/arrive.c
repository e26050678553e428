/* arrive - a request from above arrives: it finds its object, waits for an entry, and takes its
 * first step.
 *
 * Contract: creq_request() is called by the port's thread, outside of any object.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/volume/volume.h"
#include "peers/common/blocker/shape.h"
#include "xtypes/xhot.h"

/* The request's own object is its volume's. A copy that has been inside both objects has seen to
 * that before. */
static void adopt_volume(struct cport *ps, struct creq *c)
{
	if (c->other)
		return;
	if (object_entry(ps->cache, c->obj)->volume != c->r->volume ||
		object_volume(c->obj) != c->volume)
		object_adopt(ps, c->obj, c->r->volume);
}

static bool changes_slots(uint8_t op)
{
	return shapes[op].range == SHAPE_BYTES && shapes[op].exclusive;
}

static bool is_change(const struct creq *c)
{
	return shapes[c->r->op].exclusive;
}

/* It is inside its object for the first time, or again. */
static void step_begin(struct cport *ps, struct creq *c)
{
	if (is_change(c) && !c->listed && !c->applied)
		change_enter(ps->cache, c->obj, c);
	adopt_volume(ps, c);
}

static void step_job(struct xwork *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, work);
	struct object *o = c->obj;

	step_begin(ctx, c);
	c->step(ctx, c);
	object_reclaim_step(ctx, o);
}

/* A STARTED request of a predecessor: nothing else of its object is served until it is done
 * again. */
static void redo_job(struct xwork *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, work);
	struct cport *ps = ctx;

	c->redo = true;
	c->obj->nr_redo++;
	c->work.fn = step_job;
	if (changes_defer(ps->cache, c))
		return;
	step_begin(ps, c);
	c->step(ps, c);
}

/* An APPLIED one: its effect is in the slots; what is left is to wait for the store. */
static void applied_job(struct xwork *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, work);

	c->work.fn = step_job;
	c->applied = c->inherited = true;
	through_wait(ctx, c);
}

/* Of others, an object that has nothing here gets nothing: it need not be admitted. */
static bool has_range(uint8_t op)
{
	return shapes[op].range == SHAPE_BYTES;
}

static void find_object(struct cport *ps, struct creq *c);

static void entry_retry(struct xwait *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, wait);

	creq_set_state(c, CREQ_RUNNING);
	find_object(ctx, c);
}

/* No entry can be had: one is being emptied for us. */
static void wait_for_entry(struct cport *ps, struct creq *c)
{
	count_wait(ps, WAIT_BUCKET);
	creq_set_state(c, CREQ_WAITS_ENTRY);
	c->wait.fn = entry_retry;
	xwaitq_add(&object_of(ps->cache)->want_entries, &c->wait, 1);
	object_reclaim_one(ps);
	if (xcache_nr_free(&object_of(ps->cache)->xc))
		memory_port(ps)->freed = true;
}

static bool is_older_change(struct xwait *w, void *cut)
{
	const struct creq *c = caa_container_of(w, struct creq, wait), *newer = cut;

	return is_change(c) && c->r->hash == newer->r->hash &&
	       strcmp(c->r->target, newer->r->target) == 0;
}

/* Older changes of its object that wait for an entry come before the cut: there is one now. */
static void take_in_older(struct cport *ps, struct creq *cut)
{
	struct xwait *w;

	while (!xwaitq_empty(&object_of(ps->cache)->want_entries) &&
		(w = xwaitq_take(&object_of(ps->cache)->want_entries, is_older_change, cut)) !=
			NULL)
		w->fn(w, ps);
}

/* What goes past the cache by its policy keeps nothing here, and what is not to be kept drives no
 * object out. What has to be done again goes through
 * it in any case. */
static enum admit admit_how(struct cport *ps, const struct creq *c)
{
	const struct policy *p = volume_promise(ps->cache, c->volume, c->r->volume);

	if (c->work.fn == redo_job)
		return ADMIT_ALWAYS;
	if (request_is_once(c->r))
		return ADMIT_IF_ROOM;
	return (c->r->op == XSEG_OP_READ ? p->reads_around : p->writes_around) ? ADMIT_IF_ROOM
									       : ADMIT_MAKE_ROOM;
}

/* Others bring nothing that stays: a read that is not to be kept passes. */
static bool wants_admission(const struct creq *c)
{
	return has_range(c->r->op) && !(c->r->op == XSEG_OP_READ && request_is_once(c->r));
}

static void find_object(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	struct xcache *xc = &object_of(k)->xc;
	uint32_t idx = request_is_once(c->r)
			       ? xcache_lookup_unused(xc, c->r->target, c->r->hash)
			       : xcache_lookup(xc, c->r->target, c->r->hash);
	int rc;

	if (idx == XCACHE_NONE) {
		if (c->r->hash != xseg_hash(c->r->target, strlen(c->r->target))) {
			creq_finish(ps, c, -EPROTO);
			return;
		}
		rc = xcache_insert(&object_of(k)->xc, c->r->target, c->r->hash, &idx);
		if (rc == -ENOSPC) {
			wait_for_entry(ps, c);
			return;
		}
		if (rc < 0 && rc != -EEXIST) {
			creq_finish(ps, c, rc);
			return;
		}
		if (rc == 1)
			count(ps, CC_REINSERTED, 1);
	}
	c->obj = &object_of(k)->objects[idx];
	if (op_is_cut(c->r->op))
		take_in_older(ps, c);
	if (object_passes(c->obj) && wants_admission(c))
		object_admit(ps, c->obj, admit_how(ps, c));
	object_push(ps, c->obj, &c->work);
}

bool creq_range_ok(const struct xreq *r)
{
	return r->size > 0 && r->obj_offset < OBJECT_BYTES &&
	       r->obj_offset + r->size <= OBJECT_BYTES &&
	       r->obj_offset % BUCKET_SIZE == r->offset % BUCKET_SIZE;
}

/* The first step of each operation; NULL: not supported. */
static void (*const steps[XSEG_NR_OPS])(struct cport *ps, struct creq *c) = {
	[XSEG_OP_READ] = read_step,
	[XSEG_OP_WRITE] = write_step,
	[XSEG_OP_DISCARD] = write_step,
	[XSEG_OP_WRITE_ZEROES] = write_step,
	[XSEG_OP_COPY] = copy_step,
	[XSEG_OP_DELETE] = delete_step,
	[XSEG_OP_INFO] = info_step,
};

static void creq_init(struct creq *c, struct xreq *r)
{
	assert(c->state == CREQ_IDLE);
	memset(c, 0, offsetof(struct creq, few));
	creq_set_state(c, CREQ_RUNNING);
	c->r = r;
	c->step = steps[r->op];
	c->work.fn = step_job;
	if (r->op == XSEG_OP_READ)
		c->read.around = BYPASS_NONE;
	else if (changes_slots(r->op))
		c->change.aside[0] = c->change.aside[1] = NO_PAGE;
	c->fua = (r->flags & XSEG_REQ_FUA) && r->op != XSEG_OP_READ;
	c->lends = xseg_req_gives(r);
	if (has_range(r->op)) {
		c->first = (uint16_t)(r->obj_offset / BUCKET_SIZE);
		c->nr = (uint16_t)xseg_req_span(r->obj_offset, r->size);
	}
}

XAPART void creq_request(struct cport *ps, struct xreq *r, bool recovered)
{
	struct creq *c = &creq_of(ps->cache)->creqs[r->index];

	if (r->op == XSEG_OP_LIST) {
		list_request(ps, r);
		return;
	}
	creq_init(c, r);
	c->recovered = recovered;
	if (r->op == XSEG_OP_FLUSH) {
		flush_request(ps, c);
		return;
	}
	if (!c->step) {
		creq_finish(ps, c, -EOPNOTSUPP);
		return;
	}
	if (r->target[0] == '\0' || (has_range(r->op) && !creq_range_ok(r))) {
		creq_finish(ps, c, -EINVAL);
		return;
	}
	if (recovered && r->state == XSEG_REQ_STARTED &&
		(changes_slots(r->op) || r->op == XSEG_OP_DELETE))
		c->work.fn = redo_job;
	if (recovered && changes_slots(r->op) && r->state == XSEG_REQ_APPLIED)
		c->work.fn = applied_job;
	c->volume = (uint16_t)(has_range(r->op) ? volume_of_request(ps, r)
						: volume_find(ps->cache, r->volume));
	if (recovered && r->op == XSEG_OP_DELETE && r->state == XSEG_REQ_APPLIED)
		creq_finish(ps, c, 0);	/* it was voided */
	else if (c->work.fn != step_job || !changes_defer(ps->cache, c))
		find_object(ps, c);
}

void creq_recovered(struct cport *ps)
{
	struct creq *c = changes_recovered(ps->cache), *next;

	for (; c; c = next) {
		next = c->next;
		if (c->obj)
			object_push(ps, c->obj, &c->work);
		else
			find_object(ps, c);
	}
}
