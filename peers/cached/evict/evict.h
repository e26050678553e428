/* evict - which data leaves, and who gets the room: emptying objects (reclaim.c), whether an object
 * may keep anything (admit.c), who gets pages, chunks and lists (room.c), shares of single volumes
 * (share.h).
 *
 * Contract: inside the object where one is given, unless it says otherwise.
 */
#ifndef PEERS_CACHED_EVICT_H
#define PEERS_CACHED_EVICT_H

#include "peers/cached/evict/share.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"

struct creq;

/* ---- reclaim.c ---- */
void count_evicted(struct cport *ps, struct object *o, enum cache_counter why);
/* inside: it may be evicted, as w says, and is INVALID now; its page is the caller's */
void bucket_leave(struct cport *ps, struct object *o, uint32_t b, uint64_t w);
/* the same, and its page goes back */
void bucket_drop(struct cport *ps, struct object *o, uint32_t b, uint64_t w);
/* drops every bucket: the object was deleted, or the cache left */
void object_empty(struct cport *ps, struct object *o);
/* drops what is clean: the store may not have it any more */
void object_forget_clean(struct cport *ps, struct object *o);
/* of all objects: zeroes that may be evicted, and have no page that could be */
void zeroes_drop(struct cport *ps);
/* is emptied, and may keep what it has */
bool object_is_spared(struct cached *k, struct object *o);
void object_reclaim_one(struct cport *ps);	/* begins to empty the least recently used object */
void object_reclaim(struct cport *ps, struct object *o);	/* what it was asked for */
void object_reclaim_step(struct cport *ps, struct object *o);	/* goes on with it */
/* It got its first bucket, or may have: if it is not active any more it is emptied. The caller
 * holds a reference. */
void object_refill(struct cport *ps, struct object *o);

/* ---- admit.c ---- */
static inline bool object_passes(struct object *o)
{
	return !atomic_load_explicit(&o->admitted, memory_order_relaxed);
}
/* if there is room; the same, after another one is emptied; also if there are too many */
enum admit { ADMIT_IF_ROOM, ADMIT_MAKE_ROOM, ADMIT_ALWAYS };
/* True: it may keep buckets from now on. */
bool object_admit(struct cport *ps, struct object *o, enum admit how);
void object_dismiss(struct cached *k, struct object *o);		/* its entry becomes free */
/* puts it; the entry of one that passes may be free then */
void object_leave(struct cport *ps, struct object *o);
bool reclaims_enough(struct cached *k);			/* no more objects should be emptied now */

/* ---- room.c ---- */
/* Returns how many to wait for, and where; nr 0: it got them. */
struct need pages_get(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl);
/* Inside the object: n pages, and the chunks that its range lacks. When it takes nothing, it says
 * what to wait for. */
struct need room_get(struct cport *ps, struct object *o, uint32_t first, uint32_t nr,
	uint32_t *page, uint32_t n, enum turn turn);
/* What it got, and was not used, goes back. */
void room_put(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page,
	uint32_t n);
/* c holds nothing, and is stepped again when there is what it needs. */
void pages_wait(struct cport *ps, struct creq *c, struct need need);
/* The end of any such queue: who waits there, if the cache has to leave so, is its successor's. */
void waiters_drop(struct xwaitq *q);
/* c->page: where a write lists its new pages. False: all lists are in use, and c waits for one. */
bool list_get(struct cport *ps, struct creq *c);
void list_put(struct cport *ps, struct creq *c);
/* Outside of any object: those who wait for pages, lists or entries go on, as far as there are. */
void pages_signal(struct cport *ps);

#endif
