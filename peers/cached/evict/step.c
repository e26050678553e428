/* step - the way on which data leaves the cache.
 *
 * Data leaves a bucket in two ways only. A write puts a newer page in its place (write_slot). Or
 * the bucket becomes empty: that is evict_step(), whatever the reason. bucket_set() refuses such an
 * edge, and tests/tidy/layers.sh finds any other caller of bucket_leave().
 *
 *   reason     the bucket was            why                                      counted as
 *   WANTED     clean, or refused         its page is wanted                       clean
 *   OBJECT     clean, or refused         its object makes room for another one    object
 *   FLUSHED    being written             its object makes room: it was flushed    dirty
 *                                        for that, and the store has it now
 *   PRESSURE   clean, or refused         the cache shrinks, or a person drops     pressure
 *                                        clean data; a volume is above its
 *                                        maximum; slots of zeroes are wanted
 *   GIVEN_UP   refused                   the cache leaves the path, or stops      unpromised
 *   ONCE       clean                     it was for one read, which has read it   -
 *   ZEROES     being written             the store has it, and the cache keeps    -
 *                                        enough zeroes
 *   BYPASSED   clean                     a write goes past the cache (around.c)   -
 *   UNSURE     clean                     a delete failed half way: the store may  -
 *                                        not have it any more
 *   UNPLUGGED  clean, or refused         the cache has left the path              -
 *   DELETED    any with data             the store has deleted the object: the    -
 *                                        data is void, dirty or not
 *
 * A refused bucket (unpromised.c) that goes for one of the counted reasons is counted as
 * `unpromised`. The reasons below GIVEN_UP are no evictions for the administrator. They go the same
 * way all the same, since a later tier has to learn of them: its copy is void, or not wanted.
 *
 * The step counts, and takes the page out of the lists of clean pages. It stores the slot, and with
 * it the account of the volume's share and the page's owner word (slot_store). It ends the bucket's
 * part in a dirty set. Then the caller owns the page, and uses it or gives it back. NO_PAGE: there
 * is none. A later tier takes pages here, and lets the step return NO_PAGE.
 *
 * Contract: inside the object, with a reference to it. Nothing here blocks or does I/O. The last
 * bucket of a dirty set lets FLUSH requests go on (dirty_end).
 *
 * Invariants:
 *   W2  Promised dirty data leaves by a flush, except when the store says that the object is
 *       deleted. Unpromised data may be dropped once the store has refused it (unpromised.c).
 *   W3  Nothing of the bucket is in flight, but for FLUSHED and ZEROES: that flush has ended.
 */
#include <assert.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/volume/volume.h"

#define NOT_COUNTED NR_CC

static const uint8_t counters[EVICT_NR_REASONS] = {
	[EVICT_WANTED] = CC_EVICTED_CLEAN,
	[EVICT_OBJECT] = CC_EVICTED_OBJECT,
	[EVICT_FLUSHED] = CC_EVICTED_DIRTY,
	[EVICT_PRESSURE] = CC_EVICTED_PRESSURE,
	[EVICT_GIVEN_UP] = CC_EVICTED_UNPROMISED,
	[EVICT_ONCE] = NOT_COUNTED,
	[EVICT_ZEROES] = NOT_COUNTED,
	[EVICT_BYPASSED] = NOT_COUNTED,
	[EVICT_UNSURE] = NOT_COUNTED,
	[EVICT_UNPLUGGED] = NOT_COUNTED,
	[EVICT_DELETED] = NOT_COUNTED,
};

/* The reason is one for such a bucket. */
static bool may_leave(uint64_t w, enum evict_reason why)
{
	switch (why) {
	case EVICT_DELETED:
		return true;				/* W2 */
	case EVICT_FLUSHED:
	case EVICT_ZEROES:
		return slot_state(w) == BUCKET_WRITING;
	case EVICT_GIVEN_UP:
		return slot_is_refused(w);
	case EVICT_ONCE:
	case EVICT_BYPASSED:
	case EVICT_UNSURE:
		return slot_state(w) == BUCKET_VALID;
	default:
		return slot_is_evictable(w);
	}
}

static void count_step(struct cport *ps, struct object *o, uint64_t w, enum evict_reason why)
{
	if (counters[why] == NOT_COUNTED)
		return;
	count(ps, slot_is_refused(w) ? CC_EVICTED_UNPROMISED : (enum cache_counter)counters[why],
		1);
	volume_add(volume_block(ps, object_volume(o)), VC_EVICTED, 1);
}

uint32_t evict_step(
	struct cport *ps, struct object *o, uint32_t b, uint64_t w, enum evict_reason why)
{
	assert(xworkq_is_owned(&o->q) && slot_get(ps->cache, o, b) == w);	/* C1 */
	assert(xcache_refs(&object_of(ps->cache)->xc, o->index) > 0);		/* O4 */
	assert(may_leave(w, why));				/* W2 */
	assert(!(w & SLOT_INFLIGHT));				/* W3 */
	count_step(ps, o, w, why);
	/* before its owner's word says that it is lent: a shrinking cache counts no such page */
	if (slot_is_evictable(w))
		page_unclean(ps, slot_page(w));
	bucket_leave(ps, o, b, why == EVICT_BYPASSED ? BUCKET_BYPASS : BUCKET_INVALID);
	if (slot_state(w) == BUCKET_DIRTY) {
		dirty_end(ps, o, !!(w & SLOT_GEN));
		dirty_unlist(ps, o);
	}
	return slot_page(w);
}

void evict_drop(struct cport *ps, struct object *o, uint32_t b, uint64_t w, enum evict_reason why)
{
	page_put(ps, evict_step(ps, o, b, w, why));
}
