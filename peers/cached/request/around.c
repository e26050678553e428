/* around - requests that bypass the cache and go straight to the store.
 *
 * A read goes around if nothing of its range is newer than the store. It is forwarded, and the
 * store answers the client. The cache has no part in it any more. So changes of the buckets
 * meanwhile do not matter: reads and writes that are in flight together may be ordered either way.
 *
 * A write goes around as a child that lists the client's own pages. Its buckets are BYPASS until
 * the child is answered. They are not loaded, as a load could bring the old data back. They are not
 * written, and readers wait. Their clean data is dropped. If some of the range is newer than the
 * store, the write goes through the cache instead, and waits for the store as in write-through.
 *
 * The write is STARTED before its child is sent. A successor finds BYPASS buckets absent. It redoes
 * a STARTED write through the cache, before anything else of its object. So no read can have seen
 * the write, and nothing newer is undone.
 *
 * Contract: inside the object.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xkill.h"

/* Nothing of its range is newer in the cache than at the store. */
static bool may_go(struct cport *ps, const struct creq *c)
{
	struct object *o = c->obj;

	if (o->nr[BUCKET_DIRTY] + o->nr[BUCKET_WRITING] == 0)
		return true;
	for (uint32_t i = 0; i < c->nr; i++)
		if (bucket_is_dirty(slot_state(slot_get(ps->cache, o, c->first + i))))
			return false;
	return true;
}

bool around_read(struct cport *ps, struct creq *c, enum bypass_why why)
{
	struct object *o = c->obj;

	if (!may_go(ps, c))
		return false;
	loan_ungrant(ps, c, c->nr);
	count(ps, CC_READS, 1);
	count(ps, (enum cache_counter)(CC_BYPASSED_SEQUENTIAL + why), 1);
	count(ps, CC_BYPASSED_BYTES, c->r->size);
	volume_count_bypassed(volume_block(ps, c->volume), c->r->size);
	c->obj = NULL;
	creq_set_state(c, CREQ_IDLE);
	if (c->r->nr_lent)	/* all of it comes from the store now */
		xseg_req_drop_loans(ps->pp->port, c->r);
	peer_forward(ps->pp, c->r);
	object_leave(ps, o);
	return true;
}

bool around_is_out(struct cport *ps, const struct creq *c)
{
	if (c->obj->nr[BUCKET_BYPASS] == 0)
		return false;
	for (uint32_t i = 0; i < c->nr; i++)
		if (slot_state(slot_get(ps->cache, c->obj, c->first + i)) == BUCKET_BYPASS)
			return true;
	return false;
}

static void bypass_bucket(struct cport *ps, struct object *o, uint32_t b)
{
	uint64_t w = slot_get(ps->cache, o, b);

	if (slot_state(w) == BUCKET_VALID)
		evict_drop(ps, o, b, w, EVICT_BYPASSED);
	else	/* LOADING: the child that lists the page puts it */
		bucket_set(ps, o, b, slot_word(BUCKET_BYPASS, 0, 0));
}

static void write_send(struct cport *ps, struct creq *c, struct child *ch)
{
	struct object *o = c->obj;

	ch->c = c;
	ch->first = c->first;
	ch->nr = c->nr;
	ch->r->nr_pages = c->r->nr_pages;
	memcpy(ch->r->page, c->r->page, c->r->nr_pages * sizeof(c->r->page[0]));
	for (uint32_t i = 0; i < c->nr; i++) {
		bypass_bucket(ps, o, c->first + i);
		XKILL(BYPASS_SLOT);
	}
	o->loads_out++;
	creq_set_state(c, CREQ_AT_STORE);
	if (c->r->state == XSEG_REQ_AT)
		xseg_req_start(ps->pp->port, c->r);
	count(ps, CC_WRITES, 1);
	count(ps, c->policy->counter, 1);
	if (!c->policy->writes_around)
		count(ps, CC_WRITES_BYPASSED, 1);
	volume_count_write(volume_block(ps, c->volume), c->r->size);
	child_submit_range(ps, ch, (enum xseg_op)c->r->op,
		(c->fua ? XSEG_REQ_FUA : 0) | (c->r->flags & XSEG_REQ_ONCE),
		c->r->obj_offset, c->r->size);
}

bool around_write(struct cport *ps, struct creq *c)
{
	struct child *ch;
	struct need need;

	if (!may_go(ps, c))
		return false;
	need = room_get(ps, c->obj, c->first, c->nr, NULL, 0, TURN_URGENT);
	if (need.nr) {
		pages_wait(ps, c, need);
		return true;
	}
	c->turn = TURN_NONE;
	ch = child_get(ps, CHILD_AROUND, c->obj);
	if (ch) {
		write_send(ps, c, ch);
		return true;
	}
	room_put(ps, c->obj, c->first, c->nr, NULL, 0);
	creq_wait_for_request(ps, c);
	return true;
}

void around_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	struct creq *c = ch->c, *voided = NULL;

	assert(o->loads_out > 0);
	o->loads_out--;
	for (uint32_t i = 0; i < ch->nr; i++) {
		bucket_set(ps, o, ch->first + i, slot_word(BUCKET_INVALID, 0, 0));
		XKILL(BYPASSED_SLOT);
	}
	if (result < (int64_t)c->r->size && c->fua)
		sync_lost(ps, ch->sent, NULL);
	if (result >= (int64_t)c->r->size && op_is_cut(c->r->op))
		voided = changes_void(ps, o, c);
	write_end(ps, c,
		result < 0                     ? result
		: result < (int64_t)c->r->size ? -EIO
					       : (int64_t)c->r->size);
	changes_end(ps, voided);
	object_reclaim_step(ps, o);
	child_put(ps, ch);
}
