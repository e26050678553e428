/* pages - the cache's memory: its free pages (pages.c), those that may be evicted (clean.c), the
 * requests that get them (room.c), and extents, which come and go (extent.c, resize.c).
 *
 * Contract: any port's thread, inside an object or outside of any, unless it says otherwise.
 */
#ifndef PEERS_CACHED_PAGES_H
#define PEERS_CACHED_PAGES_H

#include <pthread.h>

#include "peers/cached/bucket/bucket.h"
#include "peers/cached/bucket/part.h"
#include "peers/cached/memory/account.h"
#include "peers/cached/memory/limbo.h"
#include "peers/common/say/cache_cost.h"
#include "xtypes/xhuge.h"
#include "xtypes/xlist.h"
#include "xtypes/xpool.h"
#include "xtypes/xstate.h"
#include "xtypes/xwaitq.h"

#define CHUNK_SLOTS    CACHE_CHUNK_SLOTS
#define NO_CHUNK       UINT32_MAX
#define SIZE_MIN_BYTES CACHE_BYTES_MIN
#define SIZE_MIN_PAGES ((uint32_t)(SIZE_MIN_BYTES / BUCKET_SIZE))
/* Owner words of pages that are in no bucket: cut into chunks; out of use, as its extent leaves;
 * kept out of use by a test, or because a predecessor's child lists it. */
#define OWNER_CHUNKS   (1ull << 63)
#define OWNER_OUT      (1ull << 62)
#define OWNER_WITHHELD (1ull << 61)
#define OWNER_ORPHAN   (1ull << 60)

/* of a predecessor's pages, while they are sorted */
enum page_is { PAGE_NOT_OURS, PAGE_FREE, PAGE_BUCKET, PAGE_CHUNKS, PAGE_ORPHAN, PAGE_LENT };

struct arena_chunk {
	_Atomic uint64_t slot[CHUNK_SLOTS];
};
#define CHUNKS_PER_PAGE (BUCKET_SIZE / (uint32_t)sizeof(struct arena_chunk))
#define CHUNKS_ALL_FREE ((1u << CHUNKS_PER_PAGE) - 1)

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

#define MAGAZINE      32
#define NR_LISTS      CACHE_LISTS	/* lists of pages for larger writes */
#define RESERVE_PAGES 16u

/* Pages that only urgent requests get (room.c). */
struct reserve {
	uint32_t size;				/* RESERVE_PAGES, or 0 (tests) */
	_Atomic uint32_t nr;			/* written under mem_lock, read without */
	uint32_t page[RESERVE_PAGES];		/* under mem_lock */
};

/* Private tables (alloc.c). */
struct allocs {
	struct xhuge mem[16];
	unsigned nr;
	uint64_t bytes;				/* of them all */
};

struct memory_room {
	struct allocs allocs;
	uint32_t seg_pages;			/* of the segment */
	/* its size (extent.c): written by port 0 under mem_lock, read without */
	_Atomic uint32_t nr_pages;		/* of extents that stay */
	_Atomic uint32_t nr_leaving;		/* of extents that leave */
	_Atomic uint32_t target_pages;		/* asked for: any thread */

	pthread_mutex_t mem_lock;
	struct extent *extents;			/* by number, all of the segment */
	struct clean_list leaving;		/* pages of VALID buckets in extents that leave */
	uint32_t leaving_free;			/* pages in the pool whose extent leaves */
	/* pages cut into chunks whose extent leaves; read without the lock */
	_Atomic uint32_t leaving_chunk_pages;
	_Atomic uint32_t nr_out;		/* pages that are out; read without */
	struct xpool free_pages;
	struct limbo limbo;
	struct clean_list clean;	/* pages of VALID buckets of volumes without a share */
	_Atomic uint32_t nr_clean, nr_free;	/* written under mem_lock, read without */
	_Atomic uint32_t nr_zeroes;	/* clean buckets of zeroes: they have slots but no page */
	uint32_t withheld;			/* pages kept out of use (tests) */
	struct reserve reserve;
	struct xlist chunk_pages;		/* pages cut into chunks that have a free one */
	union page_use *page_use;		/* by page */
	/* of extents that stay; written under mem_lock, read without */
	_Atomic uint32_t nr_chunk_pages;
	_Atomic uint32_t nr_free_chunks;	/* the same */
	/* lists of pages for larger writes; free ones under mem_lock */
	struct xpool free_lists;
	uint32_t (*lists)[XSEG_REQ_PAGES];
	/* requests that wait for memory */
	struct xwaitq want_urgent, want_owed, want_pages, want_lists;
};

struct memory_port {
	/* free pages that the thread has at hand */
	uint32_t magazine[MAGAZINE], nr_magazine;
	bool freed;	/* pages, chunks or entries came free since the last pages_signal() */
};

struct memory_room *memory_of(const struct cached *k);
struct memory_port *memory_port(const struct cport *ps);

/* Pages that may hold data, but for the reserve. */
static inline uint32_t data_pages(struct cached *k)
{
	uint32_t nr = atomic_load_explicit(&memory_of(k)->nr_pages, memory_order_relaxed) -
		      memory_of(k)->withheld -
		      atomic_load_explicit(&memory_of(k)->nr_chunk_pages, memory_order_relaxed);

	return nr > memory_of(k)->reserve.size ? nr - memory_of(k)->reserve.size : 0;
}
/* Clean zeroes that are kept at most: they take slots, and only the end of their object evicts
 * them. */
static inline uint32_t zeroes_max(struct cached *k) { return data_pages(k) / 4; }
static inline struct extent *page_extent(struct cached *k, uint32_t page)
{
	return &memory_of(k)->extents[page / XSEG_EXTENT_PAGES];
}
static inline bool page_is_ours(struct cached *k, uint32_t page)
{
	return atomic_load_explicit(&page_extent(k, page)->state, memory_order_relaxed) !=
	       EXTENT_NOT_OURS;
}
/* Whether it may not be used again: exact under mem_lock. */
static inline bool page_leaves(struct cached *k, uint32_t page)
{
	return atomic_load_explicit(&page_extent(k, page)->state, memory_order_relaxed) ==
	       EXTENT_LEAVES;
}
/* Whether the page is in a list of clean pages, in limbo, or cut with a chunk free. */
static inline bool page_is_listed(struct cached *k, uint32_t page)
{
	return xlist_in_list(&memory_of(k)->chunk_pages, page);
}
/* ---- alloc.c ---- */
/* zeroed, from a cache line on, freed by cached_free_all(); NULL: no memory */
void *cached_alloc(struct cached *k, size_t bytes);
void cached_free_all(struct cached *k);

/* ---- pages.c ---- */
uint32_t take_free(struct cport *ps);		/* a free page, or XPOOL_NONE */
/* Whether ports may keep pages at hand now; gets some into the magazine; a free page goes there; at
 * most n from there, returns how many. */
bool use_magazine(struct cached *k);
void magazine_fill(struct cport *ps);
void magazine_put(struct cport *ps, uint32_t page);
uint32_t magazine_pop(struct cport *ps, uint32_t n, uint32_t *page);
/* The reserve: how many are in it; one of it, or XPOOL_NONE; a free page, to it or to the pool;
 * what of it leaves the cache goes out. */
uint32_t reserve_nr(struct cached *k);
uint32_t reserve_take(struct cached *k);
void reserve_put(struct cached *k, uint32_t page);
void reserve_sweep(struct cached *k);
bool pages_wanted(struct cached *k);		/* somebody waits for pages that all may have */
/* These leave NO_PAGE alone. */
void page_put(struct cport *ps, uint32_t page);
void pages_return(struct cport *ps, const uint32_t *page, uint32_t n);
void page_free(struct cached *k, uint32_t page);	/* the same, for who has no port at hand */
uint32_t pages_available(struct cached *k);		/* free and clean ones */
/* Free pages that the thread has at hand, the last that came first, unless somebody waits for some;
 * all, or none. */
bool magazine_take(struct cport *ps, uint32_t n, uint32_t *page);
void magazine_empty(struct cport *ps);		/* they are anybody's */
void magazine_return(struct cport *ps, uint32_t page);	/* one that was taken, and not used */
void reserve_begin(struct cached *k);	/* of what is free before it serves */
/* Under mem_lock. */
void pool_put(struct cached *k, uint32_t page);	/* it is free, or out, as its extent leaves */
/* The same for those of `nr` pages of the pool, from *at on, whose extents leave. */
void pool_sweep(struct cached *k, uint32_t *at, uint32_t nr);
void pages_count(struct cached *k);			/* publishes how many are clean and free */

/* ---- clean.c: lists of pages that may be evicted ---- */
/* These leave NO_PAGE alone. */
void page_clean(struct cport *ps, uint32_t page);	/* its bucket became VALID */
/* the same, and it is the first of its list to be evicted */
void page_clean_first(struct cport *ps, uint32_t page);
void page_unclean(struct cport *ps, uint32_t page);	/* it is VALID no more */
/* it is VALID, and of another volume from now on */
void page_relist(struct cached *k, uint32_t page);
/* Under mem_lock. */
/* Which of the lists a clean page is to be in: a record, OTHERS for the common one. */
uint32_t share_list_locked(struct cached *k, uint32_t page);
void clean_restore(struct cached *k, uint32_t page);	/* a predecessor's: its bucket is VALID */
void clean_init(struct clean_list *list, struct xlist_node *nodes);
/* The next victim, which becomes the last one, of the list where it is to be. XLIST_NONE: none. */
uint32_t clean_turn_locked(struct cached *k, struct clean_list *list);
/* All of the list: its first one, and the one after that; XLIST_NONE at the end. */
uint32_t clean_first(const struct clean_list *list);
uint32_t clean_after(const struct clean_list *list, uint32_t page);
void clean_leave_locked(struct cached *k, uint32_t page);	/* its extent leaves; stays again */
void clean_stay_locked(struct cached *k, uint32_t page);

/* ---- slab.c: pages cut into chunks ---- */
void chunk_feed(struct cport *ps, uint32_t page); /* cuts a page: eight more, unless it leaves */
void chunk_put(struct cport *ps, uint32_t chunk);	/* it is nobody's */
/* A free one, or NO_CHUNK. */
uint32_t chunk_try(struct cport *ps);
/* Under mem_lock. */
uint32_t chunk_take(struct cached *k);			/* there is one */
bool chunk_return(struct cached *k, uint32_t chunk);	/* true: its page is the caller's */
uint32_t page_spare(struct cached *k);
void page_cut(struct cached *k, uint32_t page, unsigned free);
/* Before serving. */
/* false: it cannot be one, or is another's */
bool chunk_restore(struct cached *k, uint32_t chunk, uint8_t *page_is);
/* restored, and nothing is in it */
void chunk_drop(struct cached *k, uint32_t chunk, uint8_t *page_is);
/* A page that was cut is of an extent that leaves from now on, or does not leave
 * any more. */
void chunk_page_leave(struct cached *k, uint32_t page);
void chunk_page_stay(struct cached *k, uint32_t page);

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
extern const struct xstates extent_states;
void extents_check(struct cached *k);

#endif
