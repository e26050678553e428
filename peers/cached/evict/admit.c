/* admit - which objects may keep data, and how requests for the others are served.
 *
 * The option `objects` says how many objects may keep data: these are *admitted*. There are some
 * more entries, for objects that only *pass*. When the limit is reached, the least recently used
 * object makes room. If it is clean, it is emptied before the request goes on. If it is dirty, no
 * request waits for its flush: the new object passes. Its reads are forwarded to the store and its
 * writes bypass the cache (around.c), as fast as without a cache. Meanwhile the dirty data of the
 * old object goes to the store in large pieces. When the old object is gone, the next one is
 * admitted. So where objects are scarce, the admitted ones stay long enough to be worth it. The
 * store's time is spent on requests, not on emptying objects for each other.
 *
 * An object that passes has only BYPASS buckets. Its entry is free when the last request for it
 * ends. Requests of a predecessor that must be redone through the cache admit their objects in any
 * case. INFO and DELETE bring no data into the cache, so they admit no object. A program that asks
 * for a volume's extents, or removes the volume, does not drive other objects out. Requests that
 * bypass the cache by their policy do not either. Their object is admitted if there is room, and
 * passes if not. (An entry to pass with is made, if so many objects pass at once that none is
 * left.)
 *
 * Contract: object_admit() with a reference, outside of any object, or inside o if it must;
 * object_leave() from anywhere.
 *
 * Invariants (cached_check):
 *   E1  nr_admitted is the number of entries with an admitted object. An admitted object stays so
 *       until its entry is free.
 *   E2  An object that is not admitted has only BYPASS buckets.
 */
#include <assert.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/object/object.h"

/* an object with buckets that were used again stays: how many are asked for one request */
#define ADMIT_TRIES 4

/* Objects that are emptied at the same time, at most: the others go on being hit. */
static uint32_t reclaims_max(const struct cached *k)
{
	uint32_t n = object_of(k)->nr_objects / 8;

	return n == 0 ? 1 : n > 64 ? 64 : n;
}

bool reclaims_enough(struct cached *k)
{
	return atomic_load_explicit(&evict_of(k)->reclaims, memory_order_relaxed) >=
	       reclaims_max(k);
}

static bool all_admitted(struct cached *k)
{
	return atomic_load_explicit(&evict_of(k)->nr_admitted, memory_order_relaxed) >=
	       object_of(k)->nr_objects;
}

bool object_admit(struct cport *ps, struct object *o, enum admit how)
{
	struct cached *k = ps->cache;

	for (unsigned i = 0; how == ADMIT_MAKE_ROOM && i < ADMIT_TRIES && all_admitted(k); i++)
		object_reclaim_one(ps);
	if (atomic_fetch_add(&evict_of(k)->nr_admitted, 1) >= object_of(k)->nr_objects &&
		how != ADMIT_ALWAYS) {
		atomic_fetch_sub(&evict_of(k)->nr_admitted, 1);
		return false;
	}
	if (atomic_exchange(&o->admitted, true))	/* another thread did the same */
		atomic_fetch_sub(&evict_of(k)->nr_admitted, 1);
	return true;
}

void object_dismiss(struct cached *k, struct object *o)
{
	uint32_t was;

	if (!atomic_exchange(&o->admitted, false))
		return;
	was = atomic_fetch_sub(&evict_of(k)->nr_admitted, 1);
	assert(was > 0);					/* E1 */
}
