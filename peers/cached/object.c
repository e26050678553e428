/* object - a cached object: its entry, its slots and chunks, its work queue, its life.
 *
 * States of an object (object_set_state() is the only writer; the caller is inside):
 *
 *   from      to        when                                             by
 *   READY     FLUSHING  its first flush child goes out                   flush_start
 *   FAILED    FLUSHING  its data is tried again                          flush_start
 *   FLUSHING  READY     the last flush child came back, all went well    flush_done
 *   FLUSHING  FAILED    the last flush child came back, one had failed   flush_done
 *   READY     DELETING  nothing is in flight, its delete goes out        delete_step
 *   FAILED    DELETING  the same                                         delete_step
 *   DELETING  READY     the store answered the delete                    delete_done
 *   READY     HELD      a predecessor has something of it at the store   orphans_adopt
 *   HELD      READY     the last of that is home                         orphan_done
 *
 * An object is evicted in two steps: it leaves the active table (object_reclaim_one), then it is
 * emptied by a job inside it, which writes what is dirty and drops what is clean; its entry is free
 * when nobody refers to it. If its name is inserted in between, the same entry is active again and
 * the emptying stops. So it is if it has buckets that were used again since they last survived, or
 * that are spared as its volume is at its minimum (share.h): these stay, the others go.
 *
 * Invariants (object_check):
 *   O1  nr[s] is the number of slots in state s; used is the number not absent; cnt[] sums to DIRTY
 *       + WRITING plus the older pages still being written (INFLIGHT)
 *   O2  chunk_used[n] counts the slots of chunk n that are not absent; at 0 the chunk goes, unless
 *       a request still waits to use it
 *   O3  state is FLUSHING iff flushes_out > 0
 *   O4  an object with buckets holds a reference to itself: so its entry is not freed under them,
 *       however it was evicted
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/cached.h"
#include "peers/cached/data.h"
#include "xtypes/xkill.h"

#define OTO(s) (1u << OBJECT_##s)
#define RECLAIM_LOOKS 64u
#define LINE_SLOTS    8u

static const uint8_t legal[OBJECT_NR_STATES] = {
	[OBJECT_READY]	  = OTO(FLUSHING) | OTO(DELETING) | OTO(HELD),
	[OBJECT_FLUSHING] = OTO(READY) | OTO(FAILED),
	[OBJECT_FAILED]	  = OTO(FLUSHING) | OTO(DELETING) | OTO(READY),
	[OBJECT_DELETING] = OTO(READY),
	[OBJECT_HELD]	  = OTO(READY),
};

static const char *const names[OBJECT_NR_STATES] = { "READY", "FLUSHING", "FAILED", "DELETING",
	"HELD" };

const char *object_state_name(enum object_state s)
{
	return (unsigned)s < OBJECT_NR_STATES ? names[s] : "?";
}

bool object_edge_legal(enum object_state from, enum object_state to)
{
	return (unsigned)from < OBJECT_NR_STATES && (unsigned)to < OBJECT_NR_STATES &&
	       (legal[from] & 1u << to);
}

void object_set_state(struct object *o, enum object_state s)
{
	assert(object_edge_legal((enum object_state)o->state, s));
	o->state = s;
}

static void own_job(struct xwork *w, void *ctx);

void object_init(struct object *o)
{
	memset(o, 0, sizeof(*o));
	xworkq_init(&o->q);
	CDS_INIT_LIST_HEAD(&o->dirty);
	CDS_INIT_LIST_HEAD(&o->in_group);
	o->flush_all = FLUSH_NONE;
	o->own_work.fn = own_job;
	o->flush_wait.fn = flush_wait_fn;
}

/* ---- hooks of the xcache: the entry's mark in the arena follows its life ---- */

static void hook_init(void *arg, uint32_t idx)
{
	struct cached *k = arg;

	XKILL(ENTRY_NAMED);
	/* release: the name comes before the mark; a successor trusts marked entries */
	atomic_store_explicit(&k->entries[idx].used, 1, memory_order_release);
}

static void hook_finalize(void *arg, uint32_t idx)
{
	struct cached *k = arg;

	assert(atomic_load_explicit(&k->objects[idx].used, memory_order_relaxed) == 0);
	chunks_finalize(k, idx);
	object_dismiss(k, &k->objects[idx]);
	XKILL(ENTRY_EMPTIED);
	atomic_store_explicit(&k->entries[idx].used, 0, memory_order_release);
}

/* Implicit eviction takes only entries that are empty (O4) and in nobody's hands. */
static bool hook_may_evict(void *arg, uint32_t idx)
{
	struct cached *k = arg;

	return xcache_refs(&k->xc, idx) == 1;
}

const struct xcache_ops object_hooks = {
	.init = hook_init,
	.finalize = hook_finalize,
	.may_evict = hook_may_evict,
};

/* ---- jobs ---- */

static void run_object(struct cport *ps, struct object *o, unsigned budget)
{
	ps->inside = o;
	if (xworkq_run(&o->q, budget, ps))
		object_ready(ps, o);
	ps->inside = NULL;
}

void object_ready(struct cport *ps, struct object *o)
{
	o->ready_next = NULL;
	*ps->ready_tail = o;
	ps->ready_tail = &o->ready_next;
}

void object_push(struct cport *ps, struct object *o, struct xwork *w)
{
	if (!xworkq_push(&o->q, w))
		return;
	if (ps->inside)
		object_ready(ps, o);
	else
		run_object(ps, o, 16);
}

bool object_run_ready(struct cport *ps, unsigned budget)
{
	while (ps->ready && budget--) {
		struct object *o = ps->ready;

		ps->ready = o->ready_next;
		if (!ps->ready)
			ps->ready_tail = &ps->ready;
		run_object(ps, o, 16);
	}
	return ps->ready != NULL;
}

void object_put(struct cport *ps, struct object *o)
{
	xcache_put(&ps->cache->xc, object_index(ps->cache, o));
	if (!xwaitq_empty(&ps->cache->want_entries))
		ps->freed = true;	/* perhaps that was an evicted entry's last one */
}

/* ---- slots ---- */

static _Atomic uint64_t *slot_of(struct cached *k, struct object *o, uint32_t b)
{
	uint32_t chunk = atomic_load_explicit(
		&object_entry(k, o)->chunk[b / CHUNK_SLOTS], memory_order_relaxed);

	return chunk ? &chunk_at(k, chunk - 1)->slot[b % CHUNK_SLOTS] : NULL;
}

uint64_t slot_get(struct cached *k, struct object *o, uint32_t b)
{
	_Atomic uint64_t *slot = slot_of(k, o, b);
	uint64_t w = slot ? atomic_load_explicit(slot, memory_order_relaxed)
			  : slot_word(BUCKET_FREE, 0, 0);

	assert((uint32_t)w < k->seg_pages);	/* as in chunk_at() */
	return w;
}

/* What will perhaps be its object: r->user. Its lines, and those of its name, are on their way. */
void object_prefetch(struct cached *k, struct xreq *r)
{
	uint32_t idx = xcache_guess(&k->xc, r->hash);
	struct object *o = idx == XCACHE_NONE ? NULL : &k->objects[idx];

	r->user = o;
	if (!o)
		return;
	xcache_prefetch_entry(&k->xc, idx);
	__builtin_prefetch(o, 1);
	__builtin_prefetch(
		&object_entry(k, o)
			 ->chunk[r->obj_offset / BUCKET_SIZE / CHUNK_SLOTS % OBJECT_CHUNKS]);
}

/* The slot of a request's i-th bucket, or NULL: found without a reference, so good for a prefetch
 * only. */
static _Atomic uint64_t *hint_slot(struct cached *k, const struct xreq *r, uint32_t i)
{
	uint64_t b = r->obj_offset / BUCKET_SIZE + i;

	return r->user && b < OBJECT_BUCKETS ? slot_of(k, r->user, (uint32_t)b) : NULL;
}

void object_prefetch_slot(struct cached *k, const struct xreq *r)
{
	_Atomic uint64_t *slot = hint_slot(k, r, 0);
	uint32_t last = r->size > BUCKET_SIZE ? (r->size - 1) / BUCKET_SIZE : 0;

	if (!slot)
		return;
	__builtin_prefetch(slot, 1);
	/* of more than two lines of slots what counts is the data */
	__builtin_prefetch(slot + (last < LINE_SLOTS ? last : LINE_SLOTS), 1);
}

/* The page of a request's i-th bucket, or NO_PAGE: a hint, too. Who is lent a page reads it
 * himself. */
static uint32_t hint_page(struct cached *k, const struct xreq *r, uint32_t i)
{
	bool lends = r->op == XSEG_OP_READ && r->flags & XSEG_REQ_LOAN;
	_Atomic uint64_t *slot = lends ? NULL : hint_slot(k, r, i);
	uint32_t page = slot ? slot_page(atomic_load_explicit(slot, memory_order_relaxed))
			     : NO_PAGE;

	return page < xseg_nr_pages(k->peer.seg) ? page : NO_PAGE;
}

/* What it overwrites, and gives, changes hands. True: its data is not touched. */
static bool prefetch_gift(struct cached *k, const struct xreq *r, uint32_t page)
{
	xseg_page_owner_prefetch(k->peer.seg, page);
	if (!xseg_req_gives(r))
		return false;
	for (uint32_t i = 0; i < r->nr_pages; i++)
		xseg_page_owner_prefetch(k->peer.seg, r->page[i]);
	return true;
}

void object_prefetch_page(struct cached *k, const struct xreq *r)
{
	uint32_t page = hint_page(k, r, 0);

	if (page == NO_PAGE)
		return;
	/* a write puts a new page there: the one that it frees is what the next write gets, and
	 * fills through the caches, if it is one page */
	if (r->op == XSEG_OP_READ)
		data_prefetch(xseg_page(k->peer.seg, page), 4);
	else if (!prefetch_gift(k, r, page) && r->size < DATA_PAST_PAGES * BUCKET_SIZE)
		data_prefetch_fill(xseg_page(k->peer.seg, page), 8);
}

void object_prefetch_data(struct cached *k, const struct xreq *r)
{
	uint32_t nr = r->op == XSEG_OP_READ ? xseg_req_span(r->obj_offset, r->size) : 0;

	for (uint32_t i = 0; i < nr && i < DATA_AHEAD; i++) {
		uint32_t page = hint_page(k, r, i);

		if (page == NO_PAGE)
			break;
		if (nr == 1)
			data_prefetch(xseg_page(k->peer.seg, page), PAGE_LINES);
		else
			data_prefetch_ahead(xseg_page(k->peer.seg, page));
	}
}

/* Flags of a slot, while its state and its page stay. */
static void slot_change(
	struct cached *k, struct object *o, uint32_t b, uint64_t clear, uint64_t set)
{
	_Atomic uint64_t *slot = slot_of(k, o, b);
	uint64_t w = atomic_load_explicit(slot, memory_order_relaxed), new = (w & ~clear) | set;

	/* release: what it says may be read by others from now on (direct.c) */
	if (new != w)
		atomic_store_explicit(slot, new, memory_order_release);
}

void slot_set_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag)
{
	slot_change(k, o, b, 0, flag);
}

void slot_clear_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag)
{
	slot_change(k, o, b, flag, 0);
}

void slot_set_loan(struct cached *k, struct object *o, uint32_t b, uint64_t loan)
{
	slot_change(k, o, b, SLOT_LOAN, loan);
}

bool slot_was_used(struct cached *k, struct object *o, uint32_t b, uint64_t w)
{
	bool touched = slot_has_page(w) && xseg_page_touched(k->peer.seg, slot_page(w));

	if (w & SLOT_REF)
		slot_clear_flag(k, o, b, SLOT_REF);
	return touched || w & SLOT_REF;
}

static bool reclaim_ask(struct cport *ps, struct object *o);

/* If it was emptied while a request was on its way to it, it has to be once more: nobody else
 * would. */
void object_refill(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	uint32_t idx = object_index(k, o);

	if (xcache_state_of(&k->xc, idx) == XCACHE_ACTIVE || o->reclaiming)
		return;
	atomic_store_explicit(&o->reclaim_all, false, memory_order_relaxed);
	xcache_get(&k->xc, idx);
	if (!reclaim_ask(ps, o))
		object_put(ps, o);
}

/* The last thing that bucket_set() does: with the last bucket goes a reference, perhaps the last
 * one. */
static void count_used(struct cport *ps, struct object *o, uint32_t b, int by)
{
	struct cached *k = ps->cache;
	uint32_t nr = b / CHUNK_SLOTS,
		 used = (uint32_t)((int)atomic_load_explicit(&o->used, memory_order_relaxed) + by);
	struct arena_object *e = object_entry(k, o);

	e->chunk_used[nr] = (uint8_t)(e->chunk_used[nr] + by);
	if (e->chunk_used[nr] == 0)
		chunk_release(ps, o, nr);
	atomic_store_explicit(&o->used, (uint16_t)used, memory_order_relaxed);
	if (by > 0 && used == 1) {
		xcache_get(&k->xc, object_index(k, o));
		object_refill(ps, o);
	} else if (used == 0) {
		volume_unpin(k, o);
		object_put(ps, o);
	}
}

/* A bucket of the object counts from now on, or does not any more. */
static void count_bytes(struct cport *ps, struct object *o, enum cache_counter n,
	enum volume_counter vn, bool counts)
{
	uint64_t by = counts ? (uint64_t)BUCKET_SIZE : -(uint64_t)BUCKET_SIZE;

	count(ps, n, by);
	volume_add(volume_block(ps, object_volume(o)), vn, by);
}

/* A page that may be on loan stays where it is, or leaves the slot: then its owner word says so. */
static uint64_t follow_loan(struct cached *k, uint64_t old, uint64_t word)
{
	if (slot_has_page(word) && slot_page(word) == slot_page(old))
		return word | (old & (SLOT_DIRECT | SLOT_LOAN));
	if (loan_holds(k, old))
		xseg_page_owner_set(k->peer.seg, slot_page(old), OWNER_LENT);
	return word;
}

void bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word)
{
	_Atomic uint64_t *slot = slot_of(ps->cache, o, b);
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);
	enum bucket_state from = slot_state(old), to = slot_state(word);

	assert(bucket_edge_legal(from, to));
	if (old & SLOT_LENT)
		word = follow_loan(ps->cache, old, word);
	if (slot_absent(old) && atomic_load_explicit(&o->used, memory_order_relaxed) == 0 &&
		!slot_absent(word))
		volume_pin(ps->cache, o);
	if (slot_has_page(word))
		xseg_page_owner_set(
			ps->cache->peer.seg, slot_page(word), bucket_name(ps->cache, o, b));
	XKILL(OWNER_STORED);
	/* release: the page is filled before the slot says so (a successor reads both) */
	atomic_store_explicit(slot, word, memory_order_release);
	XKILL(BUCKET_STORED);
	o->nr[from]--;
	o->nr[to]++;
	if (bucket_is_dirty(from) != bucket_is_dirty(to))
		count_bytes(ps, o, CC_DIRTY_BYTES, VC_DIRTY_BYTES, bucket_is_dirty(to));
	if (slot_has_page(old) != slot_has_page(word)) {
		count_bytes(ps, o, CC_USED_BYTES, VC_USED_BYTES, slot_has_page(word));
		share_count(ps->cache, object_volume(o), slot_has_page(word) ? 1 : -1);
	}
	if (slot_is_clean_zero(old) != slot_is_clean_zero(word))
		atomic_fetch_add_explicit(&ps->cache->nr_zeroes, slot_is_clean_zero(word) ? 1 : -1u,
			memory_order_relaxed);
	if (slot_absent(old) != slot_absent(word))
		count_used(ps, o, b, slot_absent(word) ? -1 : 1);
}

/* ---- waiting inside an object ---- */

void object_wait(struct cport *ps, struct object *o, struct creq *c, enum wait_why why)
{
	count_wait(ps, why);
	creq_set_state(c, CREQ_WAITS_OBJECT);
	c->next = o->waiters;
	o->waiters = c;
}

static struct creq *oldest_first(struct creq *c)
{
	struct creq *list = NULL, *next;

	for (; c; c = next) {
		next = c->next;
		c->next = list;
		list = c;
	}
	return list;
}

void object_wake(struct cport *ps, struct object *o)
{
	struct creq *c = oldest_first(o->waiters), *next;

	o->waiters = NULL;
	for (; c; c = next) {
		next = c->next;
		creq_set_state(c, CREQ_RUNNING);
		c->step(ps, c);
	}
}

/* ---- emptying ---- */

void count_evicted(struct cport *ps, struct object *o, enum cache_counter why)
{
	count(ps, why, 1);
	volume_add(volume_block(ps, object_volume(o)), VC_EVICTED, 1);
}

/* It is emptied for another's sake, and its volume has no more pages than it is to have for
 * sure. */
bool object_is_spared(struct cached *k, struct object *o)
{
	return !atomic_load_explicit(&o->reclaim_all, memory_order_relaxed) &&
	       share_spares(k, o, OTHERS);
}

void bucket_drop_clean(struct cport *ps, struct object *o, uint32_t b, uint64_t w)
{
	page_unclean(ps, slot_page(w));
	bucket_set(ps, o, b, slot_word(BUCKET_INVALID, 0, 0));
	page_put(ps, slot_page(w));
}

/* Drops what is clean, was not used again and is not spared; returns how many buckets stay, and
 * have one more chance. */
static uint32_t drop_valid(struct cport *ps, struct object *o)
{
	uint32_t stay = 0;

	for (uint32_t b = 0; b < OBJECT_BUCKETS && o->nr[BUCKET_VALID] > stay; b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_state(w) != BUCKET_VALID)
			continue;
		if ((slot_has_page(w) && object_is_spared(ps->cache, o)) ||
			slot_was_used(ps->cache, o, b, w)) {
			stay++;
			continue;
		}
		bucket_drop_clean(ps, o, b, w);
		count_evicted(ps, o, CC_EVICTED_OBJECT);
		XKILL(EMPTIED_SLOT);
	}
	return stay;
}

/* A hot bucket in a cold object keeps it: its name is inserted again. */
static void object_keep(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	uint32_t own = object_index(k, o), idx;
	int rc = xcache_insert(&k->xc, xcache_name(&k->xc, own), xcache_hash_of(&k->xc, own), &idx);

	assert((rc == 1 || rc == -EEXIST) && idx == own);
	object_put(ps, o);
}

/* Everything goes, dirty or not: the store says that the object is deleted; or the cache has left
 * the path, and nothing is dirty. Nothing is in flight. */
void object_empty(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0;
		b < OBJECT_BUCKETS && atomic_load_explicit(&o->used, memory_order_relaxed); b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_absent(w))
			continue;
		if (slot_state(w) == BUCKET_VALID)
			page_unclean(ps, slot_page(w));
		bucket_set(ps, o, b, slot_word(BUCKET_INVALID, 0, 0));
		if (bucket_is_dirty(slot_state(w)))
			dirty_end(ps, o, !!(w & SLOT_GEN));
		page_put(ps, slot_page(w));
		XKILL(DELETED_SLOT);
	}
}

/* What is clean may not be what the store has. Nothing is in flight. */
void object_forget_clean(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0; b < OBJECT_BUCKETS && o->nr[BUCKET_VALID]; b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_state(w) == BUCKET_VALID)
			bucket_drop_clean(ps, o, b, w);
	}
}

/* Inside: goes on emptying. Ends when the object is empty or was inserted again. */
void object_reclaim_step(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;

	if (!o->reclaiming)
		return;
	if (xcache_state_of(&k->xc, object_index(k, o)) != XCACHE_ACTIVE) {
		if (drop_valid(ps, o))
			object_keep(ps, o);
		else if (o->nr[BUCKET_DIRTY] && ps->pp->now_ns >= retry_ns(o))
			flush_evict(ps, o);
		if (atomic_load_explicit(&o->used, memory_order_relaxed) &&
		    xcache_state_of(&k->xc, object_index(k, o)) != XCACHE_ACTIVE)
			return;
	}
	o->reclaiming = false;
	atomic_fetch_sub(&k->reclaims, 1);
	ps->freed = true;
	object_put(ps, o);
}

static void reclaim_job(struct cport *ps, struct object *o)
{
	if (o->reclaiming) {
		/* inserted again and chosen again before the first emptying ended: that one goes
		 * on */
		atomic_fetch_sub(&ps->cache->reclaims, 1);
		object_put(ps, o);
	}
	o->reclaiming = true;
	object_reclaim_step(ps, o);
}

/* Each part has a reference of its own, so the object is there until the last one is done. */
static void own_job(struct xwork *w, void *ctx)
{
	struct object *o = caa_container_of(w, struct object, own_work);
	/* before it is done: who asks from now on, asks again */
	uint8_t what = atomic_exchange(&o->asked, 0);

	if (what & OBJECT_RECLAIM)
		reclaim_job(ctx, o);
	if (what & OBJECT_FLUSH)
		flush_job(ctx, o);
}

bool object_ask(struct cport *ps, struct object *o, enum object_work what)
{
	uint8_t before = atomic_fetch_or(&o->asked, (uint8_t)what);

	if (!before)
		object_push(ps, o, &o->own_work);
	return !(before & what);
}

/* As object_ask(). Counted before: the job may end at once. If it was asked before, that job will
 * end, too. */
static bool reclaim_ask(struct cport *ps, struct object *o)
{
	atomic_fetch_add(&ps->cache->reclaims, 1);
	if (object_ask(ps, o, OBJECT_RECLAIM))
		return true;
	atomic_fetch_sub(&ps->cache->reclaims, 1);
	return false;
}

/* Whether the object may be emptied: not one that is spared, before all others have been passed by
 * as well. Then *all* of it goes. */
static bool may_reclaim(struct cached *k, struct object *o, bool *all)
{
	*all = false;
	if (atomic_load_explicit(&o->used, memory_order_relaxed) && share_spares(k, o, OTHERS)) {
		*all = atomic_fetch_add_explicit(&k->shares.passed, 1, memory_order_relaxed) >= xcache_nr_active(&k->xc);
		if (!*all)
			return false;
	}
	atomic_store_explicit(&k->shares.passed, 0, memory_order_relaxed);
	return true;
}

/* With a reference; NULL: there is none, or not yet. Where all that were looked at only pass, each
 * that ends wakes who waits. */
static struct object *reclaim_choose(struct cport *ps, bool *all)
{
	struct cached *k = ps->cache;
	bool spared = false;

	for (unsigned n = 0; n < RECLAIM_LOOKS; n++) {
		uint32_t idx = xcache_peek_and_get_lru(&k->xc);

		if (idx == XCACHE_NONE)
			return NULL;
		if (!object_passes(&k->objects[idx])) {
			if (may_reclaim(k, &k->objects[idx], all))
				return &k->objects[idx];
			spared = true;
		}
		xcache_touch(&k->xc, idx);
		xcache_put(&k->xc, idx);
	}
	if (spared || xcache_nr_free(&k->xc))
		ps->freed = true;	/* it goes on in the next round */
	return NULL;
}

void object_reclaim_one(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct object *o;
	bool all;

	if (reclaims_enough(k))
		return;
	o = reclaim_choose(ps, &all);
	if (!o)
		return;
	atomic_store_explicit(&o->reclaim_all, all, memory_order_relaxed);
	if (!xcache_remove(&k->xc, object_index(k, o)) || !reclaim_ask(ps, o))
		object_put(ps, o);
}
