/* evict - which data leaves, and which requests get the room.
 *
 *   step.c         evict_step(): the one way out of the cache, with the reason
 *   order.h        the eviction policy: what goes next, and what may stay
 *   victims.c      pages for others: free ones, or victims'
 *   reclaim.c      emptying objects; admit.c: whether an object may keep data
 *   room.c         which requests get pages, chunks and lists, and which wait
 *   share.h        shares of single volumes
 *   unpromised.c   data that the store refused
 *
 * Contract: inside the object where one is given, unless it says otherwise.
 */
#ifndef PEERS_CACHED_EVICT_H
#define PEERS_CACHED_EVICT_H

#include "peers/cached/evict/order.h"
#include "peers/cached/evict/share.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/cached/object/walk.h"

struct creq;

struct evict_room {
	struct {
		struct walk walk;
		_Atomic bool walking;		/* set by port 0; cleared where the walk ends */
		uint64_t next_ns;		/* port 0's */
	} giving_up;				/* unpromised_run() */
	_Atomic uint32_t reclaims;		/* objects being emptied */
	_Atomic uint32_t nr_admitted;		/* objects that may keep buckets */
};

struct evict_room *evict_of(const struct cached *k);

/* ---- step.c ---- */

/* Why a bucket leaves the cache: step.c has the table. */
enum evict_reason {
	EVICT_WANTED,
	EVICT_OBJECT,
	EVICT_FLUSHED,
	EVICT_PRESSURE,
	EVICT_GIVEN_UP,
	EVICT_ONCE,
	EVICT_ZEROES,
	EVICT_BYPASSED,
	EVICT_UNSURE,
	EVICT_UNPLUGGED,
	EVICT_DELETED,
	EVICT_NR_REASONS
};
/* Inside: the bucket, whose word is w, leaves the cache. Its page is the caller's. NO_PAGE: there
 * is none for the caller. */
uint32_t evict_step(
	struct cport *ps, struct object *o, uint32_t b, uint64_t w, enum evict_reason why);
/* the same, and its page goes back */
void evict_drop(struct cport *ps, struct object *o, uint32_t b, uint64_t w, enum evict_reason why);

/* ---- reclaim.c ---- */
/* drops every bucket: the store has deleted the object */
void object_delete(struct cport *ps, struct object *o);
/* drops every bucket: the cache has left the path, and nothing is dirty */
void object_empty(struct cport *ps, struct object *o);
/* drops what is clean: the store may not have it any more */
void object_forget_clean(struct cport *ps, struct object *o);
/* of all objects: zeroes that may be evicted, and have no page that could be */
void zeroes_drop(struct cport *ps);
void object_reclaim_one(struct cport *ps);	/* begins to empty the least recently used object */
void object_reclaim(struct cport *ps, struct object *o);	/* what it was asked for */
void object_reclaim_step(struct cport *ps, struct object *o);	/* goes on with it */
/* Inside: the bucket, which has w, was flushed. It goes if its object is to be emptied, or if it is
 * one of too many zeroes. False: it stays. */
bool reclaim_flushed(struct cport *ps, struct object *o, uint32_t b, uint64_t w);
/* It got its first bucket, or may have: if it is not active any more it is emptied. The caller
 * holds a reference. */
void object_refill(struct cport *ps, struct object *o);

/* ---- admit.c ---- */

/* if there is room; the same, after another one is emptied; also if there are too many */
enum admit { ADMIT_IF_ROOM, ADMIT_MAKE_ROOM, ADMIT_ALWAYS };
/* True: it may keep buckets from now on. */
bool object_admit(struct cport *ps, struct object *o, enum admit how);
void object_dismiss(struct cached *k, struct object *o);		/* its entry becomes free */
bool reclaims_enough(struct cached *k);			/* no more objects should be emptied now */

/* ---- victims.c ---- */
/* As many as there are of n, for that claim: free ones, then clean ones; returns how many. */
uint32_t pages_take(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl);
/* One for data that moves: a free one or, if `evict`, a clean one's; XPOOL_NONE: there is none, or
 * others wait for it, whom it does not `pass`. */
uint32_t page_get(struct cport *ps, bool evict, bool pass);
/* of a share's list; returns how many */
uint32_t pages_evict_own(struct cport *ps, uint32_t rec, uint32_t n, enum evict_reason why);
uint32_t pages_drop(struct cport *ps);		/* evicts all that is clean; returns how many */
/* Port 0's poll: fills the reserve; what of it leaves the cache goes out. */
void reserve_fill(struct cport *ps);
/* Each round: gets pages before they are needed; free ones, if `writes`. */
void pages_ahead(struct cport *ps, bool writes);

/* A free chunk, of a page that is cut for it if need be; NO_CHUNK: there is no page either. */
uint32_t chunk_get(struct cport *ps);

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
/* Outside of any object: those who wait for pages, lists or entries go on, as far as there are. */
void pages_signal(struct cport *ps);

/* ---- unpromised.c ---- */
/* Port 0's: gives up what is unpromised while the cache leaves or stops. Returns when it wants to
 * run again. */
uint64_t unpromised_run(struct cport *ps);
bool unpromised_walks(struct cached *k);	/* that is under way */
/* inside: gives up all of its buckets that the store has refused */
void object_give_up(struct cport *ps, struct object *o);

#endif
