/* admit - which objects may keep data, and what becomes of requests for those that may not.
 *
 * The option `objects` says how many objects may keep data: these are *admitted*. There are some
 * entries more, for objects that only *pass*. Where as many as may be are admitted, the least
 * recently used one makes room. If it is clean, that is done before the request goes on. If it has
 * to be flushed first, nobody waits for that: the new object passes, its reads are forwarded to the
 * store and its writes go there past the cache (around.c), as fast as they would without a cache.
 * Meanwhile what is dirty of the old one goes to the store in large pieces, and when it is gone the
 * next object is admitted. So where objects are scarce, those that are here stay long enough to be
 * worth it, and the store's time is spent on requests, not on emptying objects for each other.
 *
 * An object that passes has no buckets but BYPASS, and its entry is free when the last request for
 * it ends. Those of a predecessor that have to be done through the cache admit theirs in any case.
 * INFO and DELETE bring nothing here, so they admit none: who asks for a volume's extents, or
 * removes it, does not drive other objects out. Nor does what goes past the cache by its policy:
 * its object is admitted if there is room, and passes if not (an entry to pass with is made, if so
 * many pass at once that none is left).
 *
 * Contract: object_admit() with a reference, outside of any object, or inside o if it must;
 * object_leave() from anywhere.
 *
 * Invariants (cached_check):
 *   E1  nr_admitted is the number of entries whose object is admitted; from one that is, until it
 *       is free, nobody takes that away
 *   E2  an object that is not admitted has no buckets but BYPASS
 */
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
	if (atomic_exchange(&o->admitted, false))
		atomic_fetch_sub(&evict_of(k)->nr_admitted, 1);
}
