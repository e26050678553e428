/* list - LIST of objects through the cache: first those that have data only here, then the store's.
 *
 * The first stage is this cache's own. It looks at the entries in the order of their indices. It
 * names each object with data that is newer than the store, as the store may lack that object. The
 * second stage is the LIST of the peer below, which is forwarded.
 *
 *   cursor: top byte     low 56 bits            what happens
 *   0                    0                      the own stage begins
 *   this cache's         index of an entry      the own stage goes on there
 *   this cache's         all ones               forwarded as cursor 0: the own stage has ended
 *   any other                                   forwarded as it is
 *
 * The top byte is the peer's index + 1. So two caches, one above the other, tell their cursors
 * apart. A successor finds each dirty object at its predecessor's entry, so a cursor is good after
 * a restart. A new cache under another index forwards the cursor, and the store answers ESTALE. So
 * it does when the cache has left the path.
 *
 * Contract: the port's thread, outside of any object. Nothing here waits, blocks or allocates, and
 * nothing enters an object.
 *
 * Invariants:
 *   P1  The own stage comes first. An object that it passes as clean, or as absent, is at the store
 *       before the store is asked. Data leaves the dirty sets of its object after the store has it,
 *       or with the object.
 *   P2  An answer is bounded: LIST_LOOKS entries.
 */
#include <errno.h>

#include "peers/cached/request/request.h"
#include "peers/common/blocker/listing.h"
#include "peers/common/blocker/shape.h"

#define LIST_LOOKS 16384u

#define CURSOR_LOW ((1ull << XSEG_LIST_STORE_BITS) - 1)
#define TOP_MAX	   0xffull

/* This cache's top byte. */
static uint64_t own_top(struct cached *k)
{
	return (uint64_t)xseg_peer_index(peer_of(k)->xp) + 1;
}

static bool is_newer_here(struct object *o)
{
	return object_nr_dirty(o, 0) + object_nr_dirty(o, 1) > 0;
}

/* Names entry i, if it is wanted. False: there is no room for that. */
static bool name_entry(struct cport *ps, struct listing *l, uint32_t i)
{
	struct cached *k = ps->cache;
	const char *name;
	bool ok = true;

	if (!is_newer_here(&object_of(k)->objects[i]) || !xcache_try_get(&object_of(k)->xc, i))
		return true;
	name = xcache_name(&object_of(k)->xc, i);
	if (is_newer_here(&object_of(k)->objects[i]) && listing_wants(l->r, name))
		ok = listing_add(l, name);
	object_put(ps, &object_of(k)->objects[i]);
	return ok;
}

/* The own stage, from that entry on. Returns the result to answer with. */
static int64_t list_own(struct cport *ps, struct xreq *r, uint64_t from)
{
	uint64_t top = own_top(ps->cache) << XSEG_LIST_STORE_BITS, end = nr_entries(ps->cache);
	struct listing l;
	uint64_t at;

	listing_begin(&l, peer_of(ps->cache)->seg, r);
	if (end > from + LIST_LOOKS)
		end = from + LIST_LOOKS;
	for (at = from; at < end && name_entry(ps, &l, (uint32_t)at); at++)
		;
	return listing_end(&l, top | (at < nr_entries(ps->cache) ? at : CURSOR_LOW));
}

void list_request(struct cport *ps, struct xreq *r)
{
	uint64_t top = r->obj_offset >> XSEG_LIST_STORE_BITS, low = r->obj_offset & CURSOR_LOW;
	bool own = top == own_top(ps->cache);
	int rc = shape_check(r, OBJECT_BYTES);

	if (!rc && own_top(ps->cache) > TOP_MAX)
		rc = -EOPNOTSUPP;
	if (rc) {
		peer_answer(ps->pp, r, rc);
	} else if (r->obj_offset == 0 || (own && low < CURSOR_LOW)) {
		peer_answer(ps->pp, r, list_own(ps, r, low));
	} else {
		if (own)
			r->obj_offset = 0;
		peer_forward(ps->pp, r);
	}
}
