/* write - applies writes (and discards and write-zeroes, which are writes of zeroes).
 *
 * A bucket that becomes zeroes as a whole needs no page: its slot says so (ZERO). It is flushed by
 * a DISCARD, so a hole in the store stays one.
 *
 * A write first gets a new page for each of its buckets. Then it gets the rest of its first and
 * last bucket if it covers them in part ("edges"). That comes from the bucket, or from the store
 * straight into the new page. The next steps are one uninterrupted piece inside the object (rule
 * R3): fill the new pages, STARTED, store all slots, and answer or become APPLIED. The old pages
 * are freed. A page that a flush is writing is freed when that ends.
 *
 * An edge is loaded into the write's own page. That page stands in the slot as LOADING until the
 * write is applied, so it cannot be evicted meanwhile. Once its data is there (LOADED), others may
 * read it. So no request ever waits for a write that waits itself. Two writes that share both edges
 * cannot wait for each other. A write has its chunks before it loads an edge, and gives all back if
 * others got them meanwhile.
 *
 * A write that gives its pages (gift.c) does without the filling, where it can.
 *
 * A write with XSEG_REQ_ONCE marks as unkept the buckets that were absent, or unkept before.
 *
 * Contract: inside the object.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/gift.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/bucket/data.h"
#include "peers/cached/volume/volume.h"
#include "peers/common/blocker/zeroes.h"
#include "xtypes/xkill.h"

/* The slot holds our own page, being loaded or loaded. */
static bool is_ours(struct cport *ps, const struct creq *c, uint32_t i)
{
	uint64_t w = slot_get(ps->cache, c->obj, c->first + i);

	return slot_state(w) == BUCKET_LOADING && slot_page(w) == c->page[i];
}

static bool edge_load(struct cport *ps, struct creq *c, uint32_t i)
{
	struct object *o = c->obj;
	struct child *ch = child_get(ps, CHILD_EDGE, o);

	if (!ch) {
		creq_wait_for_request(ps, c);
		return false;
	}
	ch->c = c;
	ch->first = (uint16_t)(c->first + i);
	ch->nr = 1;
	ch->r->page[0] = c->page[i];
	bucket_set(ps, o, c->first + i, slot_word(BUCKET_LOADING, c->page[i], 0));
	o->loads_out++;
	c->change.edges_out++;
	child_submit(ps, ch, XSEG_OP_READ, 0);
	return true;
}

enum edge { EDGE_HERE, EDGE_WAITS, EDGE_QUEUED };

/* Whether the rest of bucket i is at hand; starts to get it where it is not. EDGE_QUEUED: c is in a
 * wait queue. */
static enum edge edge_ready(struct cport *ps, struct creq *c, uint32_t i)
{
	uint64_t w = slot_get(ps->cache, c->obj, c->first + i);

	if (slot_present(w))
		return EDGE_HERE;
	if (!slot_absent(w))
		return EDGE_WAITS;
	return edge_load(ps, c, i) ? EDGE_WAITS : EDGE_QUEUED;
}

static enum edge edges_ready(struct cport *ps, struct creq *c)
{
	enum edge left = EDGE_HERE, right = EDGE_HERE;

	if (request_is_partial(c->r, 0))
		left = edge_ready(ps, c, 0);
	if (left != EDGE_QUEUED && c->nr > 1 && request_is_partial(c->r, c->nr - 1u))
		right = edge_ready(ps, c, c->nr - 1u);
	if (left == EDGE_HERE || (left == EDGE_WAITS && right == EDGE_QUEUED))
		return right;
	return left;
}

void write_settle(const struct creq *c)
{
	if (c->r->op == XSEG_OP_WRITE)
		data_settle();
}

void write_fill(struct cport *ps, struct creq *c, uint32_t i)
{
	struct xseg *seg = peer_of(ps->cache)->seg;
	char *new = xseg_page(seg, c->page[i]);
	uint32_t in, len;
	uint64_t w;

	request_part(c->r, i, &in, &len);
	if (len != BUCKET_SIZE && !is_ours(ps, c, i)) {
		w = slot_get(ps->cache, c->obj, c->first + i);
		if (slot_has_page(w))
			memcpy(new, xseg_page(seg, slot_page(w)), BUCKET_SIZE);
		else
			memset(new, 0, BUCKET_SIZE);
	}
	if (len == BUCKET_SIZE && c->r->op == XSEG_OP_WRITE) {
		if (!early_change(ps, c->r, &c->page[i]))
			data_copy_past(new, xseg_page(seg, c->r->page[i] & XSEG_PAGE_INDEX));
	} else if (c->r->op == XSEG_OP_WRITE)
		memcpy(new + in, (char *)xseg_page(seg, c->r->page[i] & XSEG_PAGE_INDEX) + in, len);
	else if (c->r->op != XSEG_OP_COPY)
		memset(new + in, 0, len);
	else if (len != BUCKET_SIZE)	/* a whole one was filled inside the source */
		memcpy(new + in, (char *)xseg_page(seg, c->change.aside[i > 0]) + in, len);
	if (c->r->op == XSEG_OP_WRITE)
		count_copied(ps, len);
}

static void aside_put(struct cport *ps, struct creq *c)
{
	pages_return(ps, c->change.aside, 2);
	c->change.aside[0] = c->change.aside[1] = NO_PAGE;
}

void write_end(struct cport *ps, struct creq *c, int64_t result)
{
	struct object *o = c->obj;

	if (c->redo) {
		c->redo = false;
		assert(o->nr_redo > 0);
		o->nr_redo--;
	}
	creq_finish(ps, c, result);
	if (o->waiters)
		object_wake(ps, o);
}

uint32_t write_slot(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot,
	uint32_t page, bool promised)
{
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);

	/* before its owner's word says that it is lent: a shrinking cache counts no such page */
	if (slot_is_evictable(old))
		page_unclean(ps, slot_page(old));
	dirty_begin(ps, o, b, slot, page, promised);
	/* LOADING, WRITING: the child that lists the page puts it */
	return slot_state(old) == BUCKET_VALID || slot_state(old) == BUCKET_DIRTY ? slot_page(old)
										  : NO_PAGE;
}

/* It is answered before the store has it: its promise is in the slots by then (U1). */
static bool is_promise(const struct creq *c)
{
	return c->policy->answers_before_store && !c->fua;
}

uint32_t write_store(struct cport *ps, struct creq *c, uint32_t i, uint32_t page)
{
	uint32_t b = c->first + i;
	uint64_t w = slot_get(ps->cache, c->obj, b);
	bool unkept = request_is_once(c->r) && (slot_state(w) < BUCKET_VALID || slot_is_unkept(w));

	page = write_slot(
		ps, c->obj, b, slot_word_of(ps->cache, c->obj, b), page, is_promise(c));
	if (unkept)
		slot_set_flag(ps->cache, c->obj, b, SLOT_UNKEPT);
	return page;
}

/* Its cut has stored the slots, perhaps without a promise. */
static void promise_voided(struct cport *ps, struct creq *c)
{
	for (uint32_t i = 0; i < c->nr && is_promise(c); i++)
		bucket_promise(ps, c->obj, c->first + i);
}

static void fill_pages(struct cport *ps, struct creq *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		if (c->lends && !request_is_partial(c->r, i) && gift_may(ps->cache, c->r, i))
			creq_set_done(c, i);
		else if (c->page[i] != NO_PAGE)
			write_fill(ps, c, i);
	}
	write_settle(c);
	XKILL(WRITE_FILLED);
}

/* The rest of a bucket that a cut covers in part may be zeroes, too: then it needs no page, and
 * makes no data in the store. */
static void cut_store(struct cport *ps, struct creq *c, uint32_t i)
{
	bool zeroes = c->page[i] != NO_PAGE &&
		      data_is_zeroes(xseg_page(peer_of(ps->cache)->seg, c->page[i]), BUCKET_SIZE);

	page_put(ps, write_store(ps, c, i, zeroes ? NO_PAGE : c->page[i]));
	if (zeroes)
		page_put(ps, c->page[i]);
}

static void store_slots(struct cport *ps, struct creq *c)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		if (c->lends)
			gift_store(ps, c, i);
		else if (op_is_cut(c->r->op))
			cut_store(ps, c, i);
		else
			page_put(ps, write_store(ps, c, i, c->page[i]));
		XKILL(WRITE_SLOT);
	}
	if (c->lends)
		pages_return(ps, c->page, c->nr);	/* where another was given */
}

/* Its data is in the slots, or needs not be. It is answered, or waits for the store. */
static void write_applied(struct cport *ps, struct creq *c)
{
	c->applied = true;
	change_leave(ps->cache, c->obj, c);
	count(ps, CC_WRITES, 1);
	count(ps, c->policy->counter, 1);
	volume_count_write(volume_block(ps, c->volume), c->r->size);
	if (is_promise(c))
		creq_finish(ps, c, c->r->size);
	else
		through_applied(ps, c);
}

/* All that the write may wait for is there. */
static void write_apply(struct cport *ps, struct creq *c)
{
	struct creq *voided = NULL;
	struct object *o = c->obj;

	assert(c->change.edges_out == 0 && c->nr_pages == c->nr);	/* C3 */
	fill_pages(ps, c);
	if (c->r->state == XSEG_REQ_AT)
		xseg_req_start(ps->pp->port, c->r);
	if (op_is_cut(c->r->op))
		voided = changes_void(ps, o, c);
	store_slots(ps, c);
	c->nr_pages = 0;
	list_put(ps, c);
	aside_put(ps, c);
	c->seq = ++o->apply_seq;
	if (c->redo) {
		c->redo = false;
		assert(o->nr_redo > 0);
		o->nr_redo--;
	}
	dirty_list(ps, o);
	write_applied(ps, c);
	changes_end(ps, voided);
	if (o->waiters)
		object_wake(ps, o);
}

/* Own pages and empty chunks go back, edges that were loaded become clean buckets. */
static void write_release(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	for (uint32_t i = 0; i < c->nr_pages; i++) {
		if (is_ours(ps, c, i)) {
			bucket_set(ps, o, c->first + i, slot_word(BUCKET_VALID, c->page[i], 0));
			page_clean(ps, c->page[i]);
		} else {
			page_put(ps, c->page[i]);
		}
	}
	c->nr_pages = 0;
	room_put(ps, o, c->first, c->nr, NULL, 0);
	aside_put(ps, c);
}

/* Gives up. */
static void write_fail(struct cport *ps, struct creq *c)
{
	write_release(ps, c);
	write_end(ps, c, c->error);
}

void write_void(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	if (c->change.edges_out) {
		object_wait(ps, o, c, WAIT_LOAD);
		return;
	}
	write_release(ps, c);
	list_put(ps, c);
	if (!c->policy)
		c->policy = object_policy(ps, o);
	c->seq = o->apply_seq;
	c->inherited = true;	/* what it waits for was stored by its cut */
	promise_voided(ps, c);
	write_applied(ps, c);
	if (o->waiters)
		object_wake(ps, o);
}

/* What is urgent does not wait for pages if it can do without: what is not newer here than at the
 * store goes past the cache. */
static void need_wait(struct cport *ps, struct creq *c, struct need need)
{
	list_put(ps, c);
	if (!creq_is_urgent(c) || c->r->op == XSEG_OP_COPY || c->redo || !around_write(ps, c))
		pages_wait(ps, c, need);
}

static void edge_release(struct cport *ps, struct creq *c, uint32_t i)
{
	if (is_ours(ps, c, i))
		bucket_set(ps, c->obj, c->first + i, slot_word(BUCKET_INVALID, 0, 0));
}

/* There is no chunk that it lacks, and no page to cut: edges become absent again, and all begins
 * anew when there is one more than it needs. */
static void write_restart(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;
	uint32_t need = 1;

	for (uint32_t i = 0; i < c->nr_pages; i++)
		need += c->page[i] != NO_PAGE;
	edge_release(ps, c, 0);
	edge_release(ps, c, c->nr - 1u);
	room_put(ps, o, c->first, c->nr, c->page, c->nr_pages);
	c->nr_pages = 0;
	if (c->other) {
		need += c->change.aside[0] != NO_PAGE;
		need += c->change.aside[1] != NO_PAGE;
		aside_put(ps, c);
		object_put(ps, c->other);
		c->other = NULL;
		c->step = copy_step;
	}
	need_wait(ps, c,
		(struct need){ .nr = need,
			.queue = creq_is_urgent(c) ? &memory_of(ps->cache)->want_urgent
						   : &memory_of(ps->cache)->want_pages,
			.turn = TURN_PAGES });
	/* a cut among them voids c where it is parked, or waits, as c is on its way to the store */
	if (o->waiters)
		object_wake(ps, o);
}

/* Pages for the buckets that need one, and chunks. */
static struct need write_room(struct cport *ps, struct creq *c)
{
	uint32_t page[2], n = 0;
	struct need need;

	if (c->r->op == XSEG_OP_WRITE)
		return room_get(ps, c->obj, c->first, c->nr, c->page, c->nr, creq_turn(c));
	n = request_is_partial(c->r, 0) + (c->nr > 1 && request_is_partial(c->r, c->nr - 1u));
	need = room_get(ps, c->obj, c->first, c->nr, page, n, creq_turn(c));
	if (need.nr)
		return need;
	for (uint32_t i = 0; i < c->nr; i++)
		c->page[i] = (i == 0 || i == c->nr - 1u) && request_is_partial(c->r, i) ? page[--n]
											: NO_PAGE;
	return need;
}

/* A list, and what is to be in it. False: c is in a wait queue. */
static bool write_pages(struct cport *ps, struct creq *c)
{
	struct need need;

	if (!list_get(ps, c))
		return false;
	need = write_room(ps, c);
	if (need.nr) {
		need_wait(ps, c, need);
		return false;
	}
	c->nr_pages = c->nr;
	c->turn = TURN_NONE;
	return true;
}

/* Whether there is no more to do for now: the write waits for others, or goes around the cache. */
static bool write_waits(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;

	if (!object_passes(o) && throttle_holds(ps, c))
		return true;
	if (object_is_shut(o) || (o->nr_redo && !c->redo) || around_is_out(ps, c) ||
		(op_is_cut(c->r->op) && change_waits(ps->cache, o, c))) {
		object_wait(ps, o, c, WAIT_LOAD);
		return true;
	}
	if ((c->policy->writes_around || object_passes(o)) && !c->redo && c->nr_pages == 0 &&
		around_write(ps, c))
		return true;
	/* a load that is out writes into our page: it must end before that can go into a slot, or
	 * back */
	if (c->change.edges_out) {
		object_wait(ps, o, c, WAIT_LOAD);
		return true;
	}
	return false;
}

void write_step(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;
	enum edge edges;

	if (c->voided) {
		write_void(ps, c);
		return;
	}
	if (!c->policy)
		c->policy = object_policy(ps, o);
	if (full_refuses(ps, c))
		c->error = -ENOSPC;
	if (c->error && c->nr_pages == 0 && c->change.edges_out == 0) {
		write_fail(ps, c);
		return;
	}
	if (write_waits(ps, c))
		return;
	if (c->error) {
		write_fail(ps, c);
		return;
	}
	if (c->nr_pages == 0 && !write_pages(ps, c))
		return;
	/* a copy comes without; of a write's one may have gone to another thread while an edge was
	 * loaded */
	if (room_get(ps, o, c->first, c->nr, NULL, 0,
		    creq_is_urgent(c) ? TURN_URGENT : TURN_NONE)
			.nr) {
		write_restart(ps, c);
		return;
	}
	edges = edges_ready(ps, c);
	if (edges == EDGE_WAITS)
		object_wait(ps, o, c, WAIT_LOAD);
	else if (edges == EDGE_HERE)
		write_apply(ps, c);
}

void edge_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	struct creq *c = ch->c;
	uint32_t i = ch->first - c->first;

	assert(o->loads_out > 0);
	o->loads_out--;
	c->change.edges_out--;
	if (result < (int64_t)BUCKET_SIZE) {
		count(ps, CC_LOAD_ERRORS, 1);
		c->error = result < 0 ? (int)result : -EIO;
		trouble_note(ps, TROUBLE_LOAD, c->error);
		if (is_ours(ps, c, i))
			bucket_set(ps, o, ch->first, slot_word(BUCKET_INVALID, 0, 0));
	} else if (is_ours(ps, c, i)) {
		slot_set_flag(ps->cache, o, ch->first, SLOT_LOADED);
	}
	object_wake(ps, o);
	object_reclaim_step(ps, o);
	child_put(ps, ch);
}
