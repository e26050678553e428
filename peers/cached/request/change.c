/* change - the order of the changes of one object.
 *
 * A change is a WRITE, DISCARD, WRITE_ZEROES, COPY or DELETE. Before it is applied it may be parked
 * for long: in the object, for pages, for a list of pages, for a request, in the throttle. A later
 * change may pass it there. Two writes of one range may pass each other, as no client knows their
 * order. A *cut* must not, as the data that it has taken away would come back. DELETE, DISCARD and
 * WRITE_ZEROES are cuts.
 *
 * Each object lists its changes that are not applied, in the order of arrival. A cut treats the
 * older ones that overlap it so:
 *
 *   an older change that                     the cut
 *   lies within it, and has no effect yet    voids it
 *   overlaps it in part, is a COPY, or is    waits for it
 *   on its way to the store
 *
 * So a cut may wait for a change that waits for memory. In a full store nothing would end that:
 * such a change is refused (full.c).
 *
 * A voided change ends with success and no effect: the state is the same as if it had been applied
 * just before the cut. So a DELETE never waits for pages. A voided change keeps its promises: with
 * FUA, or under write-through, it is answered when the store has the cut. It leaves its parking
 * place at once, and is not answered before the cut is applied.
 *
 * Kills. The order of parked requests is lost with the process. So a voided change becomes APPLIED
 * in the segment before the cut is applied: no successor applies it. The cut is STARTED before
 * that, and a successor does it again before it serves anything else of the object. It then voids
 * a STARTED change that lies within the cut: its predecessor was killed while it did that. A
 * successor takes all requests that its predecessor left for older than the cuts among them: none
 * of them is answered, so that is an order that their clients may see. It begins these cuts last
 * (changes_recovered).
 *
 * A request that waits for an entry is in no object yet. A cut that finds its entry first takes in
 * the older changes of that name (creq.c).
 *
 * Contract: inside the object that is changed; changes_defer() and changes_recovered() before the
 * cache serves.
 *
 * Invariants (object_check):
 *   Q1  an object's list has each change that has been inside it and is neither applied nor
 *       answered, the oldest first
 *   Q2  a change that is voided is APPLIED in the segment before the slots of its cut are stored,
 *       or before its cut is answered, if the store has done it
 *   Q3  when a cut is answered, no change in the list that is older than it and overlaps it will
 *       have an effect
 */
#include <assert.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/request/request.h"

/* ---- what is older than a cut ---- */

static bool is_whole(const struct creq *c)
{
	return c->r->op == XSEG_OP_DELETE;
}

static bool overlaps(const struct creq *d, const struct creq *cut)
{
	const struct xreq *a = d->r, *b = cut->r;

	return is_whole(d) || is_whole(cut) ||
	       (a->obj_offset < b->obj_offset + b->size &&
		       b->obj_offset < a->obj_offset + a->size);
}

static bool is_within(const struct creq *d, const struct creq *cut)
{
	const struct xreq *a = d->r, *b = cut->r;

	return is_whole(cut) || (!is_whole(d) && a->obj_offset >= b->obj_offset &&
					a->obj_offset + a->size <= b->obj_offset + b->size);
}

/* Both are STARTED: a predecessor was killed while it voided d, or nothing would lie within a cut
 * that it had started. */
static bool is_half_voided(const struct creq *d, const struct creq *cut)
{
	return cut->redo && d->r->state == XSEG_REQ_STARTED;
}

static bool can_be_voided(const struct creq *d, const struct creq *cut)
{
	return is_within(d, cut) && d->r->op != XSEG_OP_COPY &&
	       (d->r->state == XSEG_REQ_AT || is_half_voided(d, cut));
}

bool change_waits(struct cached *k, struct object *o, const struct creq *cut)
{
	bool waits = false;
	struct creq *d;

	/* when its predecessor started it, nothing that it has to wait for was left */
	if (cut->redo)
		return false;
	for (d = creq_at(k, o->changes); d != cut; d = creq_at(k, d->newer)) {
		if (!overlaps(d, cut) || d->voided || can_be_voided(d, cut))
			continue;
		atomic_store_explicit(&d->in_way, true, memory_order_relaxed);
		waits = true;
	}
	if (waits && atomic_load_explicit(&flush_of(k)->nr_full, memory_order_relaxed))
		full_ask(k);
	return waits;
}

/* ---- voiding ---- */

/* Takes it out of the place where it is parked. False: it is on its way here, or waits in the
 * object, and is stepped in any case. */
static bool change_catch(struct cport *ps, struct creq *d)
{
	if (d->queue ? !xwaitq_remove(d->queue, &d->wait) : !throttle_drop(ps, d))
		return false;
	if (d->queue)
		share_left(ps->cache, d->queue);
	creq_set_state(d, CREQ_RUNNING);
	memory_port(ps)->freed = true;	/* it may have kept others waiting behind it */
	return true;
}

/* Q3: the cut was not begun before what it has to wait for was done. */
static void older_check(struct cached *k, struct object *o, const struct creq *cut)
{
	const struct creq *d;

	if (cut->redo)
		return;
	for (d = creq_at(k, o->changes); d != cut; d = creq_at(k, d->newer))
		assert(d->voided || !overlaps(d, cut));
}

struct creq *changes_void(struct cport *ps, struct object *o, const struct creq *cut)
{
	struct cached *k = ps->cache;
	struct creq *caught = NULL, *d;

	for (d = creq_at(k, o->changes); d != cut; d = creq_at(k, d->newer)) {
		if (d->voided || !can_be_voided(d, cut))
			continue;
		d->voided = true;
		if (d->redo) {
			d->redo = false;
			assert(o->nr_redo > 0);
			o->nr_redo--;
		}
		if (d->r->state == XSEG_REQ_AT)
			xseg_req_start(ps->pp->port, d->r);
		xseg_req_apply(ps->pp->port, d->r);
		if (change_catch(ps, d)) {
			d->next = caught;
			caught = d;
		}
	}
	older_check(k, o, cut);
	return caught;
}

void changes_end(struct cport *ps, struct creq *caught)
{
	struct creq *next;

	for (; caught; caught = next) {
		next = caught->next;
		caught->step(ps, caught);
	}
}

/* ---- a predecessor's ---- */

bool changes_defer(struct cached *k, struct creq *c)
{
	if (!request_of(k)->recovering || !op_is_cut(c->r->op))
		return false;
	c->next = NULL;
	*request_of(k)->cuts_tail = c;
	request_of(k)->cuts_tail = &c->next;
	return true;
}

struct creq *changes_recovered(struct cached *k)
{
	struct creq *first = request_of(k)->cuts;

	request_of(k)->recovering = false;
	request_of(k)->cuts = NULL;
	return first;
}

/* ---- checking ---- */

void changes_check(struct cached *k, struct object *o)
{
	uint32_t link = o->changes;

	while (link) {
		const struct creq *c = creq_at(k, link);

		assert(c->listed && c->state != CREQ_IDLE && !c->applied); /* Q1 */
		assert(c->obj == o || c->other == o);
		assert(creq_at(k, c->newer)->older == link);
		link = c->newer == o->changes ? 0 : c->newer;
	}
}
