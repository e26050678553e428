/* reclaim - empties an object: because its entry or its pages are wanted, because the store has
 * deleted it, or because the cache has left the path.
 *
 * An object is evicted in two steps. First it leaves the active table (object_reclaim_one). Then a
 * job inside the object empties it: dirty data is written back, clean data is dropped. The entry is
 * free when no reference to it is left. If its name is inserted in between, the same entry is
 * active again and the emptying stops. The entry also becomes active again if buckets stay, while
 * the others go. A bucket stays if it was used again since it last survived. It also stays if it is
 * spared, as its volume is at its minimum (share.h).
 *
 * Contract: a function with a struct object runs inside that object. object_reclaim_one() and
 * zeroes_drop() run outside of any.
 *
 * Invariants:
 *   W1  `reclaims` counts the requests to objects to empty themselves that have not ended. Each has
 *       a reference to its object. (W2 is in step.c.)
 */
#include <assert.h>
#include <errno.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xkill.h"

#define DROP_TRIES 1024u	/* to enter an object that another thread is inside of */

/* ---- buckets go ---- */

/* The volume for which its buckets go. FOR_NOBODY: those that are spared go, too. */
static uint32_t emptied_for(struct object *o)
{
	return atomic_load_explicit(&o->reclaim_all, memory_order_relaxed) ? FOR_NOBODY : OTHERS;
}

/* Buckets that may be evicted, at most. */
static uint32_t nr_evictable(struct cport *ps, struct object *o)
{
	bool refused = cached_total(ps->cache, CC_UNPROMISED_BYTES) > 0;

	return o->nr[BUCKET_VALID] + (refused ? o->nr[BUCKET_DIRTY] : 0u);
}

/* Drops what may be evicted, was not used again and is not spared; returns how many buckets stay,
 * and have one more chance. */
static uint32_t drop_evictable(struct cport *ps, struct object *o)
{
	enum verdict verdict;
	uint32_t stay = 0;

	for (uint32_t b = 0; b < OBJECT_BUCKETS && nr_evictable(ps, o) > stay; b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		verdict = order_verdict(ps, o, b, w, emptied_for(o));
		if (verdict == VERDICT_DIRTY)
			continue;
		if (verdict != VERDICT_GOES) {
			stay++;
			continue;
		}
		evict_drop(ps, o, b, w, EVICT_OBJECT);
		XKILL(EMPTIED_SLOT);
	}
	return stay;
}

/* A hot bucket in a cold object keeps it: its name is inserted again. */
static void object_keep(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	uint32_t own = o->index, idx;
	int rc = xcache_insert(&object_of(k)->xc, xcache_name(&object_of(k)->xc, own),
		xcache_hash_of(&object_of(k)->xc, own), &idx);

	assert((rc == 1 || rc == -EEXIST) && idx == own);
	object_put(ps, o);
}

/* Everything goes. Nothing is in flight. */
static void drop_all(struct cport *ps, struct object *o, enum evict_reason why)
{
	for (uint32_t b = 0;
		b < OBJECT_BUCKETS && atomic_load_explicit(&o->used, memory_order_relaxed); b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_absent(w))
			continue;
		evict_drop(ps, o, b, w, why);
		XKILL(DELETED_SLOT);
	}
}

void object_delete(struct cport *ps, struct object *o)
{
	drop_all(ps, o, EVICT_DELETED);
}

void object_empty(struct cport *ps, struct object *o)
{
	drop_all(ps, o, EVICT_UNPLUGGED);
}

/* What is clean may not be what the store has. Nothing is in flight. */
void object_forget_clean(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0; b < OBJECT_BUCKETS && o->nr[BUCKET_VALID]; b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_state(w) == BUCKET_VALID)
			evict_drop(ps, o, b, w, EVICT_UNSURE);
	}
}

static void forget_zeroes(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0; b < OBJECT_BUCKETS && nr_evictable(ps, o); b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_is_evictable(w) && !slot_has_page(w))
			evict_drop(ps, o, b, w, EVICT_PRESSURE);
	}
}

void zeroes_drop(struct cport *ps)
{
	struct cached *k = ps->cache;

	for (uint32_t i = 0; i < nr_entries(k) && (atomic_load_explicit(&memory_of(k)->nr_zeroes,
							   memory_order_relaxed) ||
							  cached_total(k, CC_UNPROMISED_BYTES));
		i++) {
		struct object *o = &object_of(k)->objects[i];
		uint32_t tries = DROP_TRIES;

		if (!atomic_load_explicit(&o->used, memory_order_relaxed) ||
			!xcache_try_get(&object_of(k)->xc, i))
			continue;
		while (tries && !xworkq_try_enter(&o->q))
			tries--;
		if (tries) {
			forget_zeroes(ps, o);
			if (xworkq_leave(&o->q))
				object_ready(ps, o);
		}
		object_put(ps, o);
	}
}

/* An object has ended what it was asked for. */
static void reclaim_ended(struct cached *k)
{
	uint32_t was = atomic_fetch_sub(&evict_of(k)->reclaims, 1);

	assert(was > 0);					/* W1 */
}

/* Inside: goes on emptying. Ends when the object is empty or was inserted again. */
void object_reclaim_step(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;

	if (!o->reclaiming)
		return;
	if (xcache_state_of(&object_of(k)->xc, o->index) != XCACHE_ACTIVE) {
		if (drop_evictable(ps, o))
			object_keep(ps, o);
		else if (o->nr[BUCKET_DIRTY] && ps->pp->now_ns >= o->retry_ns)
			flush_evict(ps, o);
		if (atomic_load_explicit(&o->used, memory_order_relaxed) &&
		    xcache_state_of(&object_of(k)->xc, o->index) != XCACHE_ACTIVE)
			return;
	}
	o->reclaiming = false;
	reclaim_ended(k);
	memory_port(ps)->freed = true;
	object_put(ps, o);
}

void object_reclaim(struct cport *ps, struct object *o)
{
	if (o->reclaiming) {
		/* inserted again and chosen again before the first emptying ended: that one goes
		 * on */
		reclaim_ended(ps->cache);
		object_put(ps, o);
	}
	o->reclaiming = true;
	object_reclaim_step(ps, o);
}

/* ---- objects are chosen ---- */

/* As object_ask(). Counted before: the job may end at once. If it was asked before, that job will
 * end, too. */
static bool reclaim_ask(struct cport *ps, struct object *o)
{
	atomic_fetch_add(&evict_of(ps->cache)->reclaims, 1);
	if (object_ask(ps, o, OBJECT_RECLAIM))
		return true;
	reclaim_ended(ps->cache);
	return false;
}

/* If it was emptied while a request was on its way to it, it has to be once more: nobody else
 * would. */
void object_refill(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	uint32_t idx = o->index;

	if (xcache_state_of(&object_of(k)->xc, idx) == XCACHE_ACTIVE || o->reclaiming)
		return;
	atomic_store_explicit(&o->reclaim_all, false, memory_order_relaxed);
	xcache_get(&object_of(k)->xc, idx);
	if (!reclaim_ask(ps, o))
		object_put(ps, o);
}

void object_reclaim_one(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct object *o;
	bool all;

	if (reclaims_enough(k))
		return;
	o = order_next_object(ps, &all);
	if (!o)
		return;
	atomic_store_explicit(&o->reclaim_all, all, memory_order_relaxed);
	if (!xcache_remove(&object_of(k)->xc, o->index) || !reclaim_ask(ps, o))
		object_put(ps, o);
}

/* It was flushed as the object is to be emptied, and goes at once. */
static bool is_emptied(struct cached *k, struct object *o)
{
	return o->reclaiming && xcache_state_of(&object_of(k)->xc, o->index) != XCACHE_ACTIVE &&
	       !share_spares(k, object_volume(o), emptied_for(o));
}

/* Zeroes have slots but no page, so nothing would ever evict them but their object's end: only so
 * many are kept. */
static bool is_zero_too_many(struct cached *k, uint64_t w)
{
	return !slot_has_page(w) && atomic_load_explicit(&memory_of(k)->nr_zeroes,
					    memory_order_relaxed) >= zeroes_max(k);
}

bool reclaim_flushed(struct cport *ps, struct object *o, uint32_t b, uint64_t w)
{
	struct cached *k = ps->cache;

	if (is_emptied(k, o))
		evict_drop(ps, o, b, w, EVICT_FLUSHED);
	else if (is_zero_too_many(k, w))
		evict_drop(ps, o, b, w, EVICT_ZEROES);
	else
		return false;
	return true;
}
