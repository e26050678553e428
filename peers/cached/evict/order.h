/* order - the eviction policy: which data goes next, and which may stay longer.
 *
 * The rest of the cache knows the policy by three functions, each for a bucket and for an object:
 *
 *   touched       a request used the bucket, or the object
 *   next victim   which page, or which object, is to be looked at next
 *   verdict       whether the bucket may go now
 *
 * The present policy is second chance, as in CLOCK, on lists of clean pages (memory/clean.c), and
 * LRU of objects (xcache). A hit sets the flag REF in the bucket's slot. A direct read marks the
 * page (xseg_page_touched). A victim with such a mark loses it, and stays once more.
 *
 * Volumes with a share (memory/account.h) have lists of their own. The lists take turns to lose
 * pages, a sixteenth of each list at a time. So the hands of all clocks go round in the same time.
 * A list of a volume at its minimum is left out, unless the page is for that volume. An object of
 * such a volume is passed by, unless all others have been passed by as well.
 *
 * Calls are direct, as nothing is looked up on the path of a hit.
 *
 * Contract: order_touched() and order_verdict() inside the object. order_next_page() in any port's
 * thread, inside an object or outside. order_next_object() outside of any.
 */
#ifndef PEERS_CACHED_ORDER_H
#define PEERS_CACHED_ORDER_H

#include "peers/cached/bucket/bucket.h"
#include "peers/cached/memory/account.h"
#include "peers/cached/object/object.h"

/* A request used a bucket with that word: the word that is to be stored in its slot. */
static inline uint64_t order_touched(uint64_t w)
{
	return w | SLOT_REF;
}
/* A request used buckets of the object. xcache_lookup() and xcache_insert() say so themselves. */
static inline void order_touched_object(struct cached *k, struct object *o)
{
	xcache_touch(&object_of(k)->xc, o->index);
}
/* A bucket with that word was used since a verdict was last asked for: a hint. */
static inline bool order_is_hot(uint64_t w)
{
	return w & SLOT_REF;
}

/* The page to be looked at next: of this list of clean pages or, if that is NULL, of the list whose
 * turn it is for that claim. XLIST_NONE: there is none. */
uint32_t order_next_page(struct cached *k, struct clean_list *list, const struct claim *cl);
/* The object to be emptied next, with a reference. NULL: there is none, or not yet: then `freed` is
 * set. *all: what is spared goes, too. */
struct object *order_next_object(struct cport *ps, bool *all);

enum verdict {
	VERDICT_DIRTY,	/* it may not be evicted: it is newer than the store, or has no data */
	VERDICT_SPARED,	/* it stays, as its volume has no more than its minimum */
	VERDICT_USED,	/* it stays once more: it was used since a verdict was last asked for */
	VERDICT_GOES
};
/* Of bucket b, whose word is w, if a page is wanted for that volume (or OTHERS, FOR_NOBODY). */
enum verdict order_verdict(
	struct cport *ps, struct object *o, uint32_t b, uint64_t w, uint32_t rec);

#endif
