/* object - a cached object: its entry, its slots, its work queue, its life. chunk.c says where its
 * slots are, reclaim.c how it is emptied.
 *
 * States of an object (object_set_state() is the only writer; the caller is inside):
 *
 *   from      to        when                                             by
 *   READY     FLUSHING  its first flush child goes out                   start_run
 *   FAILED    FLUSHING  its data is tried again                          start_run
 *   FLUSHING  READY     the last flush child came back, all went well    flush_done
 *   FLUSHING  FAILED    the last flush child came back, one had failed   flush_done
 *   READY     DELETING  nothing is in flight, its delete goes out        delete_step
 *   FAILED    DELETING  the same                                         delete_step
 *   READY     DELETING  all of it is zeroes, and flushed so              start_run
 *   FAILED    DELETING  the same                                         start_run
 *   DELETING  READY     the store answered the delete                    delete_done, flush_done
 *   DELETING  FAILED    it failed such a flush                           flush_done
 *   READY     HELD      a predecessor has something of it at the store   adopt_one
 *   HELD      READY     the last of that has come back                   object_let_go
 *
 * Invariants (object_check):
 *   O1  nr[s] is the number of slots in state s; used is the number not absent; cnt[] sums to DIRTY
 *       + WRITING plus the older pages still being written (INFLIGHT).
 *   O2  chunk_used[n] counts the slots of chunk n that are not absent; at 0 the chunk goes, unless
 *       a request still waits to use it.
 *   O3  state is FLUSHING iff flushes_out > 0, or DELETING if that is by a delete.
 *   O4  An object with buckets holds a reference to itself: so its entry is not freed under them,
 *       however it was evicted.
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/memory/pages.h"
#include "peers/cached/object/events.h"
#include "peers/cached/object/object.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

#define TO(s) (1u << OBJECT_##s)

const struct xstates object_states = {
	.what = "object",
	XSTATE(OBJECT_, READY, TO(FLUSHING) | TO(DELETING) | TO(HELD)),
	XSTATE(OBJECT_, FLUSHING, TO(READY) | TO(FAILED)),
	XSTATE(OBJECT_, FAILED, TO(FLUSHING) | TO(DELETING)),
	XSTATE(OBJECT_, DELETING, TO(READY) | TO(FAILED)),
	XSTATE(OBJECT_, HELD, TO(READY)),
};

void object_set_state(struct object *o, enum object_state s)
{
	xstate_check(&object_states, o->state, s);
	o->state = s;
}

static void own_job(struct xwork *w, void *ctx);

void object_init(struct object *o, uint32_t index)
{
	memset(o, 0, sizeof(*o));
	o->index = index;
	xworkq_init(&o->q);
	CDS_INIT_LIST_HEAD(&o->dirty);
	CDS_INIT_LIST_HEAD(&o->in_group);
	o->flush_all = FLUSH_NONE;
	o->own_work.fn = own_job;
}

/* ---- hooks of the xcache: the entry's mark in the arena follows its life ---- */

static void hook_init(void *arg, uint32_t idx)
{
	struct cached *k = arg;

	XKILL(ENTRY_NAMED);
	/* release: the name comes before the mark; a successor trusts marked entries */
	atomic_store_explicit(&object_of(k)->entries[idx].used, 1, memory_order_release);
}

static void hook_finalize(void *arg, uint32_t idx)
{
	struct cached *k = arg;
	struct object *o = &object_of(k)->objects[idx];

	assert(atomic_load_explicit(&o->used, memory_order_relaxed) == 0);	/* O4 */
	/* each of these has a reference */
	assert(!o->flushes_out && !o->loads_out && !o->waiters && !o->through && !o->changes &&
		!o->reclaiming && !atomic_load_explicit(&o->listed, memory_order_relaxed));
	chunks_finalize(k, idx);
	entry_freed(k, o);
	XKILL(ENTRY_EMPTIED);
	atomic_store_explicit(&object_of(k)->entries[idx].used, 0, memory_order_release);
}

/* Implicit eviction takes only entries that are empty (O4) and in nobody's hands. */
static bool hook_may_evict(void *arg, uint32_t idx)
{
	struct cached *k = arg;

	return xcache_refs(&object_of(k)->xc, idx) == 1;
}

const struct xcache_ops object_hooks = {
	.init = hook_init,
	.finalize = hook_finalize,
	.may_evict = hook_may_evict,
};

/* ---- jobs ---- */

static void run_object(struct cport *ps, struct object *o, unsigned budget)
{
	assert(!object_port(ps)->inside);	/* no job is run inside another one */
	object_port(ps)->inside = o;
	if (xworkq_run(&o->q, budget, ps))
		object_ready(ps, o);
	object_port(ps)->inside = NULL;
}

XCOLD void object_ready(struct cport *ps, struct object *o)
{
	o->ready_next = NULL;
	*object_port(ps)->ready_tail = o;
	object_port(ps)->ready_tail = &o->ready_next;
}

void object_push(struct cport *ps, struct object *o, struct xwork *w)
{
	if (!xworkq_push(&o->q, w))
		return;
	if (object_port(ps)->inside)
		object_ready(ps, o);
	else
		run_object(ps, o, 16);
}

bool object_run_ready(struct cport *ps, unsigned budget)
{
	while (object_port(ps)->ready && budget--) {
		struct object *o = object_port(ps)->ready;

		object_port(ps)->ready = o->ready_next;
		if (!object_port(ps)->ready)
			object_port(ps)->ready_tail = &object_port(ps)->ready;
		run_object(ps, o, 16);
	}
	return object_port(ps)->ready != NULL;
}

void object_put(struct cport *ps, struct object *o)
{
	xcache_put(&object_of(ps->cache)->xc, o->index);
	if (xwaitq_has_waiters(&object_of(ps->cache)->want_entries))
		memory_port(ps)->freed = true;	/* perhaps that was an evicted entry's last one */
}

/* ---- slots ---- */

uint64_t slot_read(struct cached *k, const _Atomic uint64_t *slot)
{
	uint64_t w = atomic_load_explicit(slot, memory_order_relaxed);

	assert((uint32_t)w < memory_of(k)->seg_pages);	/* as in chunk_at() */
	return w;
}

uint64_t slot_get(struct cached *k, struct object *o, uint32_t b)
{
	_Atomic uint64_t *slot = slot_word_of(k, o, b);

	return slot ? slot_read(k, slot) : slot_word(BUCKET_FREE, 0, 0);
}

/* A bucket of the object counts from now on, or does not any more. */
static void count_bytes(struct cport *ps, struct object *o, enum cache_counter n,
	enum volume_counter vn, bool counts)
{
	uint64_t by = counts ? (uint64_t)BUCKET_SIZE : -(uint64_t)BUCKET_SIZE;

	count(ps, n, by);
	volume_add(volume_block(ps, object_volume(o)), vn, by);
}

/* Flags of a slot, while its state and its page stay. */
static void slot_change(
	struct cached *k, struct object *o, uint32_t b, uint64_t clear, uint64_t set)
{
	_Atomic uint64_t *slot = slot_word_of(k, o, b);
	uint64_t w = atomic_load_explicit(slot, memory_order_relaxed), new = (w & ~clear) | set;

	assert(slot_is_sound(new));				/* B4, Y1, U2 */
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

void bucket_promise(struct cport *ps, struct object *o, uint32_t b)
{
	uint64_t w = slot_get(ps->cache, o, b);

	if (!slot_is_unpromised(w))
		return;
	if (slot_is_refused(w))
		page_unclean(ps, slot_page(w));
	slot_change(ps->cache, o, b, SLOT_PROMISE, 0);
	count_bytes(ps, o, CC_UNPROMISED_BYTES, VC_UNPROMISED_BYTES, false);
	count_bytes(ps, o, CC_DIRTY_BYTES, VC_DIRTY_BYTES, true);
}

void slot_set_loan(struct cached *k, struct object *o, uint32_t b, uint64_t loan)
{
	slot_change(k, o, b, SLOT_LOAN, loan);
}

/* The last thing that slot_store() does: with the last bucket goes a reference, perhaps the last
 * one. */
static void count_used(struct cport *ps, struct object *o, uint32_t b, int by)
{
	struct cached *k = ps->cache;
	uint32_t nr = b / CHUNK_SLOTS,
		 used = (uint32_t)((int)atomic_load_explicit(&o->used, memory_order_relaxed) + by);
	struct arena_object *e = object_entry(k, o);

	assert(by > 0 ? e->chunk_used[nr] < CHUNK_SLOTS : e->chunk_used[nr] > 0);	/* O2 */
	assert(used <= OBJECT_BUCKETS);						/* O1 */
	e->chunk_used[nr] = (uint8_t)(e->chunk_used[nr] + by);
	if (e->chunk_used[nr] == 0)
		chunk_release(ps, o, nr);
	atomic_store_explicit(&o->used, (uint16_t)used, memory_order_relaxed);
	if (by > 0 && used == 1) {
		xcache_get(&object_of(k)->xc, o->index);
		object_filled(ps, o);
	} else if (used == 0) {
		object_unpin(k, o);
		object_put(ps, o);
	}
}

/* A page that may be on loan stays where it is, or leaves the slot: then its owner word says so. */
static uint64_t follow_loan(struct cached *k, uint64_t old, uint64_t word)
{
	if (slot_has_page(word) && slot_page(word) == slot_page(old))
		return word | (old & (SLOT_DIRECT | SLOT_LOAN));
	if (slot_may_be_lent(k, old))
		xseg_page_owner_set(peer_of(k)->seg, slot_page(old), OWNER_LENT);
	return word;
}

static void slot_store(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot,
	uint64_t old, uint64_t word)
{
	enum bucket_state from = slot_state(old), to = slot_state(word);

	assert(xworkq_is_owned(&o->q));				/* C1 */
	xstate_check(&bucket_states, from, to);
	assert(slot_is_sound(word));				/* B1, B4 */
	if (old & SLOT_LENT)
		word = follow_loan(ps->cache, old, word);
	if (slot_absent(old) && atomic_load_explicit(&o->used, memory_order_relaxed) == 0 &&
		!slot_absent(word))
		object_pin(ps->cache, o);
	if (slot_has_page(word))
		xseg_page_owner_set(
			peer_of(ps->cache)->seg, slot_page(word), bucket_name(o, b));
	XKILL(OWNER_STORED);
	/* release: the page is filled before the slot says so (a successor reads both) */
	atomic_store_explicit(slot, word, memory_order_release);
	XKILL(BUCKET_STORED);
	/* most often it is dirty data in the place of dirty data: no count changes */
	if (from == to && !((old ^ word) & (SLOT_ZERO | SLOT_UNPROMISED)))
		return;
	assert(o->nr[from] > 0);				/* B2 */
	o->nr[from]--;
	o->nr[to]++;
	if (slot_is_promised(old) != slot_is_promised(word))
		count_bytes(ps, o, CC_DIRTY_BYTES, VC_DIRTY_BYTES, slot_is_promised(word));
	if (slot_is_unpromised(old) != slot_is_unpromised(word))
		count_bytes(ps, o, CC_UNPROMISED_BYTES, VC_UNPROMISED_BYTES,
			slot_is_unpromised(word));
	if (slot_has_page(old) != slot_has_page(word)) {
		count_bytes(ps, o, CC_USED_BYTES, VC_USED_BYTES, slot_has_page(word));
		share_count(ps->cache, object_volume(o), slot_has_page(word) ? 1 : -1);
	}
	if (slot_is_clean_zero(old) != slot_is_clean_zero(word))
		atomic_fetch_add_explicit(&memory_of(ps->cache)->nr_zeroes,
			slot_is_clean_zero(word) ? 1 : -1u, memory_order_relaxed);
	if (slot_absent(old) == slot_absent(word))
		return;
	assert(to <= BUCKET_BYPASS || !object_passes(o));	/* E2 */
	count_used(ps, o, b, slot_absent(word) ? -1 : 1);
}

void bucket_set_at(
	struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word)
{
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);

	assert(!bucket_edge_leaves(slot_state(old), slot_state(word)));
	slot_store(ps, o, b, slot, old, word);
}

void bucket_leave(struct cport *ps, struct object *o, uint32_t b, enum bucket_state to)
{
	_Atomic uint64_t *slot = slot_word_of(ps->cache, o, b);
	uint64_t old = atomic_load_explicit(slot, memory_order_relaxed);

	assert(bucket_edge_leaves(slot_state(old), to));
	slot_store(ps, o, b, slot, old, slot_word(to, 0, 0));
}

void bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word)
{
	bucket_set_at(ps, o, b, slot_word_of(ps->cache, o, b), word);
}

/* Each part has a reference of its own, so the object is there until the last one is done. */
static void own_job(struct xwork *w, void *ctx)
{
	struct object *o = caa_container_of(w, struct object, own_work);
	/* before it is done: who asks from now on, asks again */
	uint8_t what = atomic_exchange(&o->asked, 0);

	object_asked(ctx, o, what);
}

bool object_ask(struct cport *ps, struct object *o, enum object_work what)
{
	uint8_t before = atomic_fetch_or(&o->asked, (uint8_t)what);

	if (!before)
		object_push(ps, o, &o->own_work);
	return !(before & what);
}

struct object *page_object(struct cached *k, uint32_t page, uint32_t *b)
{
	uint64_t owner = xseg_page_owner(peer_of(k)->seg, page);
	uint32_t entry = (uint32_t)(owner >> 16) - 1;

	*b = owner & 0xffff;
	return owner && !(owner & OWNER_GIFT) && entry < nr_entries(k) && *b < OBJECT_BUCKETS
		       ? &object_of(k)->objects[entry]
		       : NULL;
}

void object_leave(struct cport *ps, struct object *o)
{
	if (object_passes(o) && xcache_remove(&object_of(ps->cache)->xc, o->index))
		object_filled(ps, o); /* if somebody admitted it just now, and it has got buckets */
	object_put(ps, o);
}
