/* pages - the cache's memory: its pages (pages.c), who gets them (room.c), and extents, which come
 * and go (extent.c, resize.c).
 *
 * Contract: any port's thread, inside an object or outside of any, unless it says otherwise.
 */
#ifndef PEERS_CACHED_PAGES_H
#define PEERS_CACHED_PAGES_H

#include "peers/cached/object/object.h"
#include "peers/cached/evict/share.h"

#define SIZE_MIN_BYTES CACHE_BYTES_MIN
#define SIZE_MIN_PAGES ((uint32_t)(SIZE_MIN_BYTES / BUCKET_SIZE))
/* Owner words of pages that are in no bucket: cut into chunks; out of use, as its extent leaves;
 * kept out of use by a test, or because a predecessor's child lists it. */
#define OWNER_CHUNKS   (1ull << 63)
#define OWNER_OUT      (1ull << 62)
#define OWNER_WITHHELD (1ull << 61)
#define OWNER_ORPHAN   (1ull << 60)

/* See extent.c. */
enum extent_state { EXTENT_NOT_OURS, EXTENT_STAYS, EXTENT_LEAVES, EXTENT_NR_STATES };

/* An extent of the segment. */
struct extent {
	/* enum extent_state: written by port 0 under mem_lock, read without */
	_Atomic uint8_t state;
	bool pinned;			/* never chosen to leave: tests keep something in it */
	/* guarded by mem_lock */
	uint16_t nr_free, nr_out;		/* pages in the pool; pages that are out */
};

/* What a page is used for, beside its owner word. 0 while it is neither. */
union page_use {
	uint8_t chunks_free;			/* cut into chunks: which of them are free */
	uint8_t list;				/* in a list of clean pages: in whose (share.h) */
};

/* How far the emptying of extents is: port 0's. */
struct resize {
	uint32_t page, entry, pool_at;		/* what is looked at next */
	uint32_t nr_out;			/* as it was when the pass began */
	/* not before then, after a pass without effect; how long that was */
	uint64_t next_ns, pause_ns;
};

#define RESERVE_PAGES 16u

/* Pages that only urgent requests get (room.c). */
struct reserve {
	uint32_t size;				/* RESERVE_PAGES, or 0 (tests) */
	_Atomic uint32_t nr;			/* written under mem_lock, read without */
	uint32_t page[RESERVE_PAGES];		/* under mem_lock */
};

/* ---- pages.c ---- */
/* As many as there are of n, for that claim: free ones, then clean ones; returns how many. */
uint32_t pages_take(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl);
/* One for data that moves: a free one or, if `evict`, a clean one's; XPOOL_NONE: there is none, or
 * others wait for it, whom it does not `pass`. */
uint32_t page_get(struct cport *ps, bool evict, bool pass);
/* of a share's list; returns how many */
uint32_t pages_evict_own(struct cport *ps, uint32_t rec, uint32_t n, enum cache_counter why);
bool pages_wanted(struct cached *k);		/* somebody waits for pages that all may have */
/* All three leave NO_PAGE alone. */
void page_put(struct cport *ps, uint32_t page);
void pages_return(struct cport *ps, const uint32_t *page, uint32_t n);
void page_free(struct cached *k, uint32_t page);	/* the same, for who has no port at hand */
void page_clean(struct cport *ps, uint32_t page);	/* its bucket became VALID */
void page_unclean(struct cport *ps, uint32_t page);	/* it is VALID no more */
/* it is VALID, and of another volume from now on */
void page_relist(struct cached *k, uint32_t page);
uint32_t pages_available(struct cached *k);
/* Whose bucket *b the page is, by its owner word; NULL: nobody's. A hint, if the caller is not
 * inside that object. */
struct object *page_object(struct cached *k, uint32_t page, uint32_t *b);
uint32_t pages_drop(struct cport *ps);		/* evicts all that is clean; returns how many */
/* Free pages that the thread has at hand, the last that came first, unless somebody waits for some;
 * all, or none. */
bool magazine_take(struct cport *ps, uint32_t n, uint32_t *page);
void magazine_empty(struct cport *ps);		/* they are anybody's */
void magazine_return(struct cport *ps, uint32_t page);	/* one that was taken, and not used */
void reserve_begin(struct cached *k);	/* of what is free before it serves */
/* Port 0's poll: fills the reserve; what of it leaves the cache goes out. */
void reserve_fill(struct cport *ps);
void pages_ahead(struct cport *ps);		/* each round: gets some before they are needed */
/* Under mem_lock. */
void pool_put(struct cached *k, uint32_t page);	/* it is free, or out, as its extent leaves */
/* The same for those of `nr` pages of the pool, from *at on, whose extents leave. */
void pool_sweep(struct cached *k, uint32_t *at, uint32_t nr);
void pages_count(struct cached *k);			/* publishes how many are clean and free */
void clean_restore(struct cached *k, uint32_t page);	/* a predecessor's: its bucket is VALID */
/* its tail goes to the head of the list where it is to be */
void clean_turn_locked(struct cached *k, struct xlist *list);
void clean_leave_locked(struct cached *k, uint32_t page);	/* its extent leaves; stays again */
void clean_stay_locked(struct cached *k, uint32_t page);

/* ---- early.c ---- */
/* Whether the data of some of a batch is worth to be copied before they are served; does it. */
bool early_wanted(const struct cport *ps, struct xreq *const *r, uint32_t nr);
void early_copy(struct cport *ps, struct xreq *const *r, uint32_t nr);
/* A page that has a write's data already, unless somebody waits for pages. */
bool early_take(struct cport *ps, const struct xreq *r, uint32_t *page);
/* The same for a write that has got a free page: it has that instead. Learns whether it pays. */
bool early_change(struct cport *ps, const struct xreq *r, uint32_t *page);
void early_forget(struct cport *ps);	/* pages that nobody took go back to the magazine */
uint32_t early_pages(const struct cport *ps);
void early_check(const struct cport *ps);	/* asserts M1's places, between two steps */

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

/* ---- extent.c ---- */
void extent_add(struct cached *k, uint32_t first_page);	/* it is ours from now on */
/* The one that has the most free pages leaves; one that leaves stays after all. False: there is
 * none. */
bool extent_leave(struct cached *k);
bool extent_stay(struct cached *k);
/* It leaves: gives it back if all of its pages are out; else false. */
bool extent_give(struct cached *k, struct extent *e);
uint32_t extent_page(struct cached *k, const struct extent *e);	/* its first one */
uint32_t nr_owned(struct cached *k);		/* pages that it has, those that leave too */
bool extent_edge_legal(enum extent_state from, enum extent_state to);
const char *extent_state_name(enum extent_state s);
void extents_check(struct cached *k);

/* ---- resize.c ---- */
static inline uint64_t size_word(uint32_t at_start, uint32_t since)
{
	return (uint64_t)at_start << 32 | since;
}
void size_open(struct cached *k);		/* before serving: how many pages it is to have */
/* Option `memory` was changed. May refuse. */
int resize_ask(struct cached *k, struct xseg_error *err);
/* port 0: goes on with it; returns when it wants to run again */
uint64_t resize_run(struct cport *ps);
uint64_t resize_left(struct cached *k);	/* bytes that it still has to take or to give back */
bool resizing(struct cached *k);

#endif
