/* cached - the cache peer: what its files share.
 *
 * cached keeps objects in 4 KiB buckets between an upper peer and its downstream. An object is an
 * entry of the xcache (its name) plus slots (bucket.h), which live in chunks of 64; entries, chunks and
 * the pages of the buckets are in the segment and outlive the process; all else is derived from them.
 *
 * Who runs what: a request or a reply becomes a job in its object's work queue (xworkq); whoever runs
 * the queue is "inside the object" and alone with its slots. Jobs never block: what has to wait is
 * put into one of the waiting places (enum wait_why) and stepped again later. Every creq and every
 * child holds a reference to its object.
 *
 * Locks, all leaves (nothing is called while one is held):
 *   mem_lock	free pages, the list of clean pages, free chunks
 *   dirty_lock	the list of dirty objects, flush tickets, pending FLUSH requests
 *   throttle.lock	how fast the store takes dirty data, writers that are slowed
 *   volume_lock	making records of volumes, and their settings
 *
 * Invariants:
 *   C1  a slot is changed inside its object only, by bucket_set() only
 *   C2  a page with acknowledged data is never changed in place: a write puts a new page into the slot
 *   C3  a request that changes slots has all it may wait for before it becomes STARTED, and leaves the
 *	 object only after all its slots are stored (rule R3)
 *   C4  a page listed by a child that is out is not given to anybody else
 *   C5  who waits for pages or chunks holds none; loads and flushes in flight need nothing more to complete
 */
#ifndef PEERS_CACHED_CACHED_H
#define PEERS_CACHED_CACHED_H

#include <pthread.h>
#include <urcu/list.h>

#include "peers/cached/bucket.h"
#include "peers/cached/stream.h"
#include "peers/cached/volume.h"
#include "peers/common/cache_cost.h"
#include "peers/common/peer.h"
#include "xtypes/xcache.h"
#include "xtypes/xpool.h"
#include "xtypes/xwaitq.h"
#include "xtypes/xworkq.h"

#define BUCKET_SIZE    XSEG_PAGE_SIZE
#define CHUNK_SLOTS    CACHE_CHUNK_SLOTS
#define OBJECT_CHUNKS  CACHE_OBJECT_CHUNKS
#define OBJECT_BUCKETS (CHUNK_SLOTS * OBJECT_CHUNKS)
#define OBJECT_BYTES   ((uint64_t)OBJECT_BUCKETS * BUCKET_SIZE)
#define RUN_MAX	       256		/* buckets in one child: 1 MiB */
#define NR_TICKETS     32
#define NR_SYNCED      64
#define CREQ_FEW       16		/* pages of a write that are listed in its creq */
#define NR_LISTS       CACHE_LISTS	/* lists of pages for larger ones */
#define NR_POLICIES    4
#define MAGAZINE       32
#define SENDS_A_ROUND  2		/* children: then the store below gets them, before more requests are looked at */
#define SIZE_MIN_BYTES CACHE_BYTES_MIN
#define SIZE_MIN_PAGES ((uint32_t)(SIZE_MIN_BYTES / BUCKET_SIZE))
/* Owner words of pages that are in no bucket: cut into chunks; out of use, as its extent leaves; kept out of use by a test. */
#define OWNER_CHUNKS   (1ull << 63)
#define OWNER_OUT      (1ull << 62)
#define OWNER_WITHHELD (1ull << 61)
#define NO_CHUNK       UINT32_MAX

enum page_is { PAGE_NOT_OURS, PAGE_FREE, PAGE_BUCKET, PAGE_CHUNKS };	/* of a predecessor's pages, while they are sorted */

/* ---- in the arena ---- */

struct arena_object {
	char name[XSEG_TARGET_MAX];
	_Atomic uint32_t chunk[OBJECT_CHUNKS];	/* chunk + 1; 0 = none: all its buckets are FREE */
	uint8_t chunk_used[OBJECT_CHUNKS];	/* slots of each that are not absent: derived, a successor counts anew */
	_Atomic uint32_t used;			/* 1 from when the name is complete until the entry is free */
	uint32_t volume;
	uint64_t spare;				/* makes it as large as struct object: see object_entry() */
};
_Static_assert(sizeof(struct arena_object) == CACHE_OBJECT_BYTES, "cache_cost.h counts it");

struct arena_chunk {
	_Atomic uint64_t slot[CHUNK_SLOTS];
};
#define CHUNKS_PER_PAGE (BUCKET_SIZE / (uint32_t)sizeof(struct arena_chunk))

struct arena_head {
	uint64_t magic, version;
	uint32_t nr_objects, nr_volumes;
	_Atomic uint64_t size;			/* size_word(): what was asked for; what there is, the extents say */
	uint32_t nr_ports, spare;		/* nr_ports: that have counters of volumes here */
	uint64_t off_volumes, off_objects, bytes;
	_Atomic uint64_t ready;			/* 1: all of the above is written */
};

/* ---- private ---- */

enum object_work { OBJECT_FLUSH = 1, OBJECT_RECLAIM = 2 };	/* what it may be asked to do for itself */
enum object_state { OBJECT_READY, OBJECT_FLUSHING, OBJECT_FAILED, OBJECT_DELETING, OBJECT_NR_STATES };

struct creq;
struct child;
struct cport;

/* What a hit looks at is in the first 64 bytes. */
struct object {
	struct xworkq q;			/* whoever is inside may touch all below but what is under dirty_lock */
	uint16_t nr[BUCKET_NR_STATES];
	uint16_t loads_out, flushes_out;	/* children in flight */
	uint16_t nr_fua, nr_redo;		/* writers that need FUA; STARTED requests not yet redone */
	_Atomic uint16_t used;			/* buckets that are not absent; read by others */
	uint16_t volume;			/* record of its volume: exact while it has buckets, else where it was */
	uint8_t state;				/* enum object_state */
	uint8_t gen;				/* the dirty set that new writes join */
	bool reclaiming;			/* to be emptied; reclaim holds a reference */
	bool flush_failed;			/* a flush failed since flushes_out was 0 */
	_Atomic uint8_t asked;			/* enum object_work: what own_work is in the queue for: any thread */
	_Atomic bool flush_waiting;		/* flush_wait is queued: any thread */
	_Atomic uint8_t flush_all;		/* the flusher has it, and why, or FLUSH_NONE: any thread */
	_Atomic bool listed;			/* in one of the lists below; written under dirty_lock */
	uint8_t nr_failures;			/* flushes that failed in a row: how long retry_ns is put off */
	uint8_t pass;				/* flush_whole(): in which pass it goes on, */
	uint16_t pass_at;			/* where, */
	bool pass_aged;				/* and whether that began for the age's sake */
	struct creq *waiters;			/* wait for a load, a delete or a redo of this object, the newest first */
	struct creq *through;			/* applied, wait until the store has their pages */
	struct object *ready_next;		/* on a port's ready list */
	uint64_t apply_seq;			/* counts writes applied: which flush covers which write */
	uint32_t since[2], since_all[2];	/* tickets at which each dirty set began: its group's, all volumes' */
	uint32_t cnt[2];			/* buckets dirty or being written, by set (SLOT_GEN) */
	_Atomic uint64_t retry_ns;		/* not before then, after a failed flush; the flusher reads it in list `failed` */
	struct xwork own_work;
	struct xwait flush_wait;		/* wants child requests to flush with */
	/* guarded by dirty_lock */
	struct cds_list_head dirty;		/* has buckets to be flushed; in `dirty`, oldest first, or in `failed` */
	struct cds_list_head in_group;		/* while it is in `dirty`: in its group's list, in the same order */
	uint64_t dirty_ns;			/* when it was listed */
	uint64_t spare;
};
_Static_assert(sizeof(struct object) == CACHE_OBJECT_PRIVATE, "cache_cost.h counts it");
_Static_assert(offsetof(struct object, waiters) == 64, "what a hit looks at is together");

enum wait_why { WAIT_BUCKET, WAIT_REQUEST, WAIT_LOAD, WAIT_FLUSH, WAIT_THROTTLE, NR_WAITS };
enum bypass_why { BYPASS_SEQUENTIAL, BYPASS_FULL, BYPASS_POLICY, BYPASS_ERROR, BYPASS_NONE };
enum flush_why { FLUSH_WATERMARK, FLUSH_AGE, FLUSH_EVICTION, FLUSH_FLUSH, FLUSH_SWITCH, FLUSH_NONE };

/* See creq.c. */
enum creq_state {
	CREQ_IDLE, CREQ_RUNNING, CREQ_WAITS_ENTRY, CREQ_WAITS_OBJECT, CREQ_WAITS_MEMORY, CREQ_WAITS_REQUEST,
	CREQ_WAITS_THROTTLE, CREQ_AT_STORE,
	CREQ_NR_STATES
};

/* A request from above, while cached has it. Indexed by the request's index. */
struct creq {
	enum creq_state state;			/* written by creq_set_state() only */
	struct xreq *r;
	struct object *obj, *other;		/* other: COPY: of source and target the one that it is not inside of */
	void (*step)(struct cport *ps, struct creq *c);	/* tries to go on; inside the object */
	struct xwork work;
	struct xwait wait;
	struct creq *next;			/* in one of the object's lists, the throttle's, or among pending FLUSHes */
	uint64_t done[(XSEG_REQ_PAGES + 63) / 64];	/* read: buckets copied; write: buckets the store has */
	uint64_t seq;				/* write: the object's apply_seq when it was applied; 0: by a predecessor */
	uint32_t ticket;			/* FLUSH: what it covers; when it has failed, the epoch (sync.c) */
	uint64_t dirty_end;			/* INFO: end of what was dirty when the store was asked */
	uint64_t until_ns;			/* throttle: it waits no longer */
	uint32_t debt_bytes;			/* throttle: what it makes dirty */
	uint16_t volume;			/* record of its volume */
	uint16_t first, nr;			/* buckets */
	uint16_t nr_pages;			/* of page[] that it holds */
	uint16_t nr_done, nr_hit;		/* nr_hit: read: done when it was first looked at */
	uint8_t edges_out;			/* write: edge loads in flight */
	bool woken;				/* got its turn in a wait queue: may pass those who wait */
	bool looked, redo, applied, fua;
	bool used_ahead, used_once;		/* read: buckets that were read ahead, or not to be kept */
	uint8_t around;				/* enum bypass_why: read: why it is to go past the cache */
	bool paced;				/* write: the throttle has seen it */
	bool recovered;				/* a predecessor had it, and may have done it */
	int error;
	const struct policy *policy;		/* as of its first step */
	uint32_t aside[2];			/* COPY: the source's data for its first and last bucket, or NO_PAGE */
	uint32_t *page;				/* write: the new pages: `few`, or one of the cache's lists; NULL: none yet */
	uint32_t few[CREQ_FEW];
};

enum child_kind { CHILD_LOAD, CHILD_EDGE, CHILD_AROUND, CHILD_FLUSH, CHILD_DELETE, CHILD_INFO, CHILD_SYNC };

/* A request of our own that is out at the downstream. Indexed by the request's index. */
struct child {
	struct xreq *r;
	struct object *obj;
	struct creq *c;				/* EDGE, AROUND, DELETE, INFO, SYNC: whose */
	struct xwork work;
	uint64_t seq;				/* FLUSH: object's apply_seq when it started; SYNC: the epoch */
	uint64_t gen[RUN_MAX / 64];		/* FLUSH: the dirty set of each bucket */
	uint16_t first, nr;
	uint64_t flags;				/* LOAD: SLOT_AHEAD, SLOT_ONCE: what its buckets are to bear */
	uint8_t kind, why, home;		/* home: number of the port whose request it is */
	struct child *next;			/* on its way back to its port */
};

enum cache_counter {
	CC_READS, CC_WRITES, CC_HITS, CC_MISSES, CC_PARTIAL, CC_HIT_BYTES, CC_MISS_BYTES,
	CC_BYPASSED_SEQUENTIAL, CC_BYPASSED_FULL, CC_BYPASSED_POLICY, CC_BYPASSED_ERROR, CC_BYPASSED_BYTES,
	CC_WRITES_BACK, CC_WRITES_THROUGH, CC_WRITES_AROUND, CC_WRITES_PASS,
	CC_READ_AHEAD_BYTES, CC_EVICTED_CLEAN, CC_EVICTED_DIRTY, CC_EVICTED_OBJECT, CC_EVICTED_PRESSURE, CC_FLUSHED_WATERMARK, CC_FLUSHED_AGE, CC_FLUSHED_EVICTION,
	CC_FLUSHED_FLUSH, CC_FLUSHED_SWITCH, CC_WAITS_BUCKET, CC_WAITS_REQUEST, CC_WAITS_LOAD, CC_WAITS_FLUSH,
	CC_WAITS_THROTTLE,
	CC_FLUSHED_BYTES, CC_FLUSH_ERRORS, CC_LOAD_ERRORS, CC_REINSERTED, CC_MEMORY_BYTES, CC_USED_BYTES, CC_DIRTY_BYTES,
	CC_METADATA_BYTES, CC_OBJECTS, CC_POLICY, NR_CC
};

/* One port's side of the cache: used by its thread only. */
struct cport {
	struct peer_port *pp;
	struct cached *cache;
	struct xseg_stats *stats;		/* enum cache_counter; sums over ports are what counts */
	struct object *ready, **ready_tail;	/* objects that this thread owns and has to run */
	struct object *inside;			/* the object whose queue it is running */
	struct xwaitq want_requests;
	_Atomic(struct child *) returned;	/* own requests that other threads are done with; any thread pushes */
	uint32_t magazine[MAGAZINE], nr_magazine;
	struct volume_block *volumes;		/* counters by record */
	uint32_t last_volume;			/* the record that the last request was of */
	_Atomic uint32_t flushes_out, loads_out;	/* written by this port's thread; read by others when the peer stops */
	uint32_t sent;				/* children since the last poll */
	bool freed;				/* pages, chunks or entries came free since the last pages_signal() */
	bool request_freed;			/* the same for requests of its own */
	bool throttled;				/* a write began to wait in the throttle since the last throttle_run() */
};

/* What is dirty of the volumes whose ids are the same modulo the number of groups (or of all volumes). Guarded by dirty_lock. */
struct flush_group {
	_Atomic uint32_t ticket;		/* the one that new dirty sets get; read without the lock */
	uint32_t lowest;			/* no set is older */
	uint32_t sets[NR_TICKETS];		/* dirty sets by ticket */
	bool raise;				/* a FLUSH shares the last ticket: raise it as soon as there is room */
	_Atomic uint32_t flushes;		/* FLUSH requests that wait for its sets; read without the lock */
	uint32_t drains;			/* volumes of it that drain after a switch of their policy */
	struct cds_list_head dirty;		/* its objects in the list `dirty`, by in_group */
	struct cds_list_head wanted;		/* in the list `wanted` while somebody waits for it */
};

struct cvolume_sync {				/* guarded by dirty_lock */
	uint32_t volume;
	uint16_t epoch;				/* what was cleaned up to then is stable */
	bool known;
};

struct policy {
	const char *name;
	enum cache_counter counter;		/* writes under it */
	bool writes_around, reads_around;	/* past the cache, where nothing there is newer than the store (around.c) */
	/* The slots are stored and the request is STARTED: answer it, or have it wait for the store. */
	void (*applied)(struct cport *ps, struct creq *c);
};
extern const struct policy policy_write_back, policy_write_through, policy_write_around, policy_pass_through;
void through_applied(struct cport *ps, struct creq *c);			/* waits for the store */
extern const struct policy *const policies[NR_POLICIES];	/* by option value */
const struct policy *object_policy(struct cport *ps, struct object *o);	/* for its requests from now on */

/* An extent of the segment. */
enum extent_state { EXTENT_NOT_OURS, EXTENT_STAYS, EXTENT_LEAVES };
struct extent {
	_Atomic uint8_t state;			/* enum extent_state: written by port 0 under mem_lock, read without */
	bool pinned;				/* never chosen to leave: tests keep something in it */
	/* guarded by mem_lock */
	uint16_t nr_free, nr_out;		/* pages in the pool; pages that are out */
};

/* How far the emptying of extents is: port 0's. */
struct resize {
	uint32_t page, entry, pool_at;		/* what is looked at next */
	uint32_t nr_out;			/* as it was when the pass began */
	uint64_t next_ns, pause_ns;		/* not before then, after a pass without effect; how long that was */
};

/* How fast the store takes dirty data, and the writers that are slowed to that (throttle.c). */
struct throttle {
	_Atomic bool on;			/* the high mark is exceeded; read without the lock */
	_Atomic uint32_t nr;			/* writes that wait; written under the lock, read without */
	pthread_mutex_t lock;			/* guards all below */
	struct creq *head, **tail;		/* those that wait, in order of arrival */
	uint64_t paid_ns, debt_bytes;		/* what was admitted is paid for up to then, but for the last one's bytes */
	uint32_t out;				/* flushes at the store */
	uint64_t seen_ns;			/* up to then time is counted */
	uint64_t busy_ns, bytes;		/* time with flushes out, and what they wrote; both are halved now and then */
};

struct cached {
	struct peer peer;
	/* options */
	uint64_t memory, dirty_age_ns, flush_rate, seq_cutoff, read_ahead;
	uint32_t objects_wanted, policy_nr, requests, dirty_high, dirty_low;
	/* as they hold now: any thread may change an option */
	_Atomic uint32_t high_percent, low_percent;
	_Atomic uint64_t age_ns, flush_bytes_per_s;
	/* arena */
	_Atomic(const struct policy *) policy;	/* of writes from now on */
	struct arena_head *head;
	struct arena_object *entries;
	struct arena_chunk *chunks;		/* by number: all pages of the segment, seen as chunks (chunk.c) */
	/* private tables, made at start */
	struct xcache xc;
	struct object *objects;			/* by entry */
	struct creq *creqs;			/* by request */
	struct child *children;			/* by request */
	struct cport ports[PEER_MAX_THREADS];

	/* its size (resize.c): written by port 0 under mem_lock, read without */
	_Atomic uint32_t nr_pages;		/* of extents that stay */
	_Atomic uint32_t nr_leaving;		/* of extents that leave */
	_Atomic uint32_t target_pages;		/* asked for: any thread */
	struct resize resize;

	pthread_mutex_t volume_lock;
	uint32_t nr_volumes;
	_Atomic uint32_t *volume_ids;		/* by record, in the arena */
	struct arena_volume *volumes;
	struct volume *volume;			/* what is private of each */

	pthread_mutex_t mem_lock;
	struct extent *extents;			/* by number, all of the segment */
	struct xlist leaving;			/* pages of VALID buckets in extents that leave */
	uint32_t leaving_free;			/* pages in the pool whose extent leaves */
	_Atomic uint32_t leaving_chunk_pages;	/* pages cut into chunks whose extent leaves; read without the lock */
	_Atomic uint32_t nr_out;		/* pages that are out; read without */
	struct xpool free_pages;
	struct xlist clean;			/* pages of VALID buckets, next victim at the tail */
	_Atomic uint32_t nr_clean, nr_free;	/* written under mem_lock, read without */
	_Atomic uint32_t nr_zeroes;		/* clean buckets of zeroes: they have slots but no page */
	uint32_t withheld;			/* pages kept out of use (tests) */
	struct xlist chunk_pages;		/* pages cut into chunks that have a free one */
	uint8_t *chunk_free;			/* by page: which of its chunks are free */
	_Atomic uint32_t nr_chunk_pages;	/* of extents that stay; written under mem_lock, read without */
	_Atomic uint32_t nr_free_chunks;	/* the same */

	struct xpool free_lists;		/* under mem_lock */
	uint32_t (*lists)[XSEG_REQ_PAGES];

	struct xwaitq want_pages, want_entries, want_lists;
	struct streams streams;

	pthread_mutex_t dirty_lock;
	struct cds_list_head dirty;		/* objects with something to flush */
	struct cds_list_head failed;		/* the same, after a flush that failed: to be tried again at due_ns */
	struct cds_list_head wanted;		/* groups that somebody waits for */
	uint64_t flush_ns;			/* when the last FLUSH came */
	_Atomic uint32_t nr_listed;		/* their number; read without the lock */
	struct flush_group *groups, all;	/* of single volumes; of all together */
	uint32_t nr_groups;
	struct creq *flushes;			/* FLUSH requests that wait for sets to drain */
	struct cvolume_sync synced[NR_SYNCED];
	struct creq *failed_syncs;		/* wait for the walk that makes dirty again what they covered */
	bool walking;
	_Atomic uint32_t nr_flushes, nr_wanted;	/* in `flushes`; groups in `wanted` */
	_Atomic uint32_t reclaims;		/* objects being emptied */

	struct {				/* of whoever runs its job */
		struct xwork work;
		struct object *obj;
		struct creq *syncs;
		uint32_t next;
	} walk;
	_Atomic uint16_t sync_epoch;

	_Atomic bool draining;			/* watermark crossed: until dirty_low */
	_Atomic bool switching;			/* left write-back: until what was dirty then is clean */
	_Atomic uint64_t rate_ns;		/* flush_rate: not before then */
	struct throttle throttle;
	uint64_t gauges_ns;			/* port 0's: when they were published */
	uint64_t switch_bytes;			/* what was dirty when it left write-back */
	const struct policy *switch_from;
	uint32_t switch_ticket;			/* guarded by dirty_lock: dirty sets up to it are from before the switch */
	void *mem[16];				/* private allocations, freed by fini */
	unsigned nr_mem;
	uint64_t mem_bytes;			/* of them all */
	uint32_t nr_requests;			/* of the segment */
};

static inline struct cached *cached_of(struct peer *p) { return (struct cached *)p; }
static inline struct cport *cport_of(struct peer_port *pp) { return pp->state; }
static inline uint32_t object_index(struct cached *k, struct object *o) { return (uint32_t)(o - k->objects); }
/* Its entry in the arena: as far from the first one as the object is from the first object. */
static inline struct arena_object *object_entry(struct cached *k, struct object *o)
{
	_Static_assert(sizeof(struct arena_object) == sizeof(struct object), "one offset is good for both");
	return (struct arena_object *)((char *)k->entries + ((char *)o - (char *)k->objects));
}
static inline uint64_t retry_ns(struct object *o) { return atomic_load_explicit(&o->retry_ns, memory_order_relaxed); }
static inline void count(struct cport *ps, enum cache_counter n, uint64_t by) { xseg_stats_add(ps->stats, n, by); }
/* This port's counters of a record of a volume, to add to. */
static inline struct volume_block *volume_block(struct cport *ps, uint32_t rec)
{
	struct volume_block *b = &ps->volumes[rec];
	uint32_t id = atomic_load_explicit(&ps->cache->volume_ids[rec], memory_order_acquire);

	if (atomic_load_explicit(&b->id, memory_order_relaxed) != id)
		volume_block_take(b, id);
	return b;
}
static inline void count_wait(struct cport *ps, enum wait_why w) { count(ps, (enum cache_counter)(CC_WAITS_BUCKET + w), 1); }
/* Pages that may hold data. */
static inline uint32_t data_pages(struct cached *k)
{
	return atomic_load_explicit(&k->nr_pages, memory_order_relaxed) - k->withheld -
	       atomic_load_explicit(&k->nr_chunk_pages, memory_order_relaxed);
}
/* Clean zeroes that are kept at most: they take slots, and only the end of their object evicts them. */
static inline uint32_t zeroes_max(struct cached *k) { return data_pages(k) / 4; }
static inline struct extent *page_extent(struct cached *k, uint32_t page) { return &k->extents[page / XSEG_EXTENT_PAGES]; }
/* Whether it may not be used again: exact under mem_lock. */
static inline bool page_leaves(struct cached *k, uint32_t page)
{
	return atomic_load_explicit(&page_extent(k, page)->state, memory_order_relaxed) == EXTENT_LEAVES;
}
uint64_t cached_total(struct cached *k, enum cache_counter n);		/* sum over the ports */

void publish_gauges(struct cached *k, uint64_t now_ns);
void cost_now(struct cached *k, struct cache_cost *cost);		/* what it costs beside its pages */

/* ---- object.c: entries, slots, jobs ---- */
extern const struct xcache_ops object_hooks;
void object_init(struct object *o);
/* Asks for the cache lines of the first bucket of a request: hints, from outside of the object. */
void object_prefetch_slot(struct cached *k, const struct xreq *r);
void object_prefetch_pages(struct cached *k, const struct xreq *r);
/* Runs the job now, or leaves it to whoever is inside; never inside another job. */
void object_push(struct cport *ps, struct object *o, struct xwork *w);
void object_ready(struct cport *ps, struct object *o);			/* owned by this thread: run it soon */
bool object_run_ready(struct cport *ps, unsigned budget);		/* true: there is more */
void object_put(struct cport *ps, struct object *o);
/* Has it flush, or empty itself, soon. The caller's reference goes with that; false: it was asked before, and did not start. */
bool object_ask(struct cport *ps, struct object *o, enum object_work what);
void object_set_state(struct object *o, enum object_state s);
bool object_edge_legal(enum object_state from, enum object_state to);
const char *object_state_name(enum object_state s);
uint64_t slot_get(struct cached *k, struct object *o, uint32_t b);
void bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word);
void count_evicted(struct cport *ps, struct object *o, enum cache_counter why);
void slot_set_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag);
void slot_clear_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag);
void object_wait(struct cport *ps, struct object *o, struct creq *c, enum wait_why why);
void object_wake(struct cport *ps, struct object *o);			/* steps all that wait inside the object */
void object_empty(struct cport *ps, struct object *o);			/* drops every bucket: the object was deleted */
void object_reclaim_one(struct cport *ps);				/* begins to empty the least recently used object */
void object_reclaim_step(struct cport *ps, struct object *o);

/* ---- chunk.c ---- */
/* Takes the chunks that a range needs and the object lacks; false: there are too few, and none was taken. */
bool chunks_ensure(struct cport *ps, struct object *o, uint32_t first, uint32_t nr);
void chunk_feed(struct cport *ps, uint32_t page);			/* cuts a page: eight more */
/* Its slots go into another chunk, if it has one; false: there is neither a chunk nor a page. The caller holds a reference. */
bool chunk_move(struct cport *ps, struct object *o, uint32_t nr);
/* Under mem_lock: a page that was cut is of an extent that leaves from now on, or does not leave any more. */
void chunk_page_leave(struct cached *k, uint32_t page);
void chunk_page_stay(struct cached *k, uint32_t page);
void chunk_release(struct cport *ps, struct object *o, uint32_t nr);
void chunks_finalize(struct cached *k, uint32_t idx);			/* what an entry without buckets still holds */
bool chunk_restore(struct cached *k, uint32_t chunk, uint8_t *page_is);	/* false: it cannot be one, or is another's */
void chunk_drop(struct cached *k, uint32_t chunk, uint8_t *page_is);	/* restored, and nothing is in it */

/* ---- pages.c ---- */
bool pages_get(struct cport *ps, uint32_t n, uint32_t *page, bool woken);
/* One for data that moves: a free one or, if `evict`, a clean one's; XPOOL_NONE: there is none, or others wait for it. */
uint32_t page_get(struct cport *ps, bool evict);
/* All three leave NO_PAGE alone. */
void page_put(struct cport *ps, uint32_t page);
void pages_return(struct cport *ps, const uint32_t *page, uint32_t n);
void page_free(struct cached *k, uint32_t page);	/* the same, for who has no port at hand */
void page_clean(struct cport *ps, uint32_t page);	/* its bucket became VALID */
void page_unclean(struct cport *ps, uint32_t page);	/* it is VALID no more */
/* Inside the object: n pages, and the chunks that its range lacks. Returns 0, or, when it took nothing, how many pages to wait for. */
uint32_t room_get(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page, uint32_t n, bool woken);
void room_put(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page, uint32_t n);
void pages_wait(struct cport *ps, struct creq *c, uint32_t need);
/* c->page: where a write lists its new pages. False: all lists are in use, and c waits for one. */
bool list_get(struct cport *ps, struct creq *c);
void list_put(struct cport *ps, struct creq *c);
void pages_signal(struct cport *ps);
uint32_t pages_available(struct cached *k);
/* Whose bucket *b the page is, by its owner word; NULL: nobody's. A hint, if the caller is not inside that object. */
struct object *page_object(struct cached *k, uint32_t page, uint32_t *b);
uint32_t pages_drop(struct cport *ps);			/* evicts all that is clean; returns how many */
void magazine_empty(struct cport *ps);
void pages_ahead(struct cport *ps);
/* Under mem_lock. */
void pool_put(struct cached *k, uint32_t page);
void pool_sweep(struct cached *k, uint32_t *at, uint32_t nr);
void pages_count(struct cached *k);			/* publishes how many are clean and free */

/* ---- child.c ---- */
struct child *child_get(struct cport *ps, enum child_kind kind, struct object *o);	/* NULL: none free */
/* Sends it; on failure (no downstream) completes it with the error. */
void child_submit(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags);
/* The same, for a range that need not be whole buckets; its pages are listed. */
void child_submit_range(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags, uint64_t from, uint32_t bytes);
void child_put(struct cport *ps, struct child *ch);	/* frees request and reference */
void child_reply(struct cport *ps, struct xreq *r);
void children_collect(struct cport *ps);
void requests_wait(struct cport *ps, struct xwait *w);
void requests_signal(struct cport *ps);

/* ---- creq.c, read.c, write.c, ops.c: requests ---- */
void creq_request(struct cport *ps, struct xreq *r, bool recovered);
/* The part of bucket i that c covers: *len bytes from *in of the bucket. */
void creq_part(const struct creq *c, uint32_t i, uint32_t *in, uint32_t *len);
bool creq_is_partial(const struct creq *c, uint32_t i);
void creq_set_state(struct creq *c, enum creq_state s);
bool creq_edge_legal(enum creq_state from, enum creq_state to);
const char *creq_state_name(enum creq_state s);
void creq_retry(struct xwait *w, void *ctx);		/* for c->wait.fn: steps it again */
void creq_wait_for_request(struct cport *ps, struct creq *c);	/* steps it again when one of our own requests is free */
static inline bool creq_is_done(const struct creq *c, uint32_t i) { return c->done[i / 64] >> (i % 64) & 1; }
static inline void creq_set_done(struct creq *c, uint32_t i)
{
	c->done[i / 64] |= 1ull << (i % 64);
	c->nr_done++;
}
void read_step(struct cport *ps, struct creq *c);
void load_done(struct cport *ps, struct child *ch, int64_t result);
void write_step(struct cport *ps, struct creq *c);
void write_end(struct cport *ps, struct creq *c, int64_t result);	/* holds no page; inside what it writes to */
void copy_step(struct cport *ps, struct creq *c);
void edge_done(struct cport *ps, struct child *ch, int64_t result);
void through_wait(struct cport *ps, struct creq *c);
void through_deleted(struct cport *ps, struct object *o, bool deleted);
void through_cover(struct cport *ps, struct object *o, struct child *ch, int error);
/* Past the cache (around.c). False: something of its range is newer than the store. A write may have to wait first. */
bool around_read(struct cport *ps, struct creq *c, enum bypass_why why);
bool around_write(struct cport *ps, struct creq *c);
bool around_is_out(struct cport *ps, const struct creq *c);	/* a write of part of its range is on its way past the cache */
void around_done(struct cport *ps, struct child *ch, int64_t result);
void delete_step(struct cport *ps, struct creq *c);
void info_step(struct cport *ps, struct creq *c);
void delete_done(struct cport *ps, struct child *ch, int64_t result);
void info_done(struct cport *ps, struct child *ch, int64_t result);
void creq_finish(struct cport *ps, struct creq *c, int64_t result);

/* ---- ticket.c ---- */
void dirty_begin(struct cport *ps, struct object *o, uint32_t b, uint64_t old, uint32_t page);
void dirty_end(struct cport *ps, struct object *o, unsigned gen);
void dirty_restore(struct cached *k, struct object *o);
void group_init(struct flush_group *g);
struct flush_group *object_group(struct cached *k, struct object *o);
/* What is dirty of the volume of that record is flushed in the background; volume.h says how far it is. */
void drain_begin(struct cached *k, uint32_t rec);
void drain_cancel(struct cached *k, uint32_t rec);
/* FLUSH requests that cover this set of the object get the error of its flush. */
void tickets_fail(struct cport *ps, struct object *o, unsigned gen, int error);
void flush_request(struct cport *ps, struct creq *c);
void switch_begin(struct cached *k);		/* `switching`, until all that is dirty now is at the store */

/* ---- sync.c ---- */
void sync_send(struct cport *ps, struct creq *c);		/* what c covers is at the store, which now has to make it stable */
void sync_done(struct cport *ps, struct child *ch, int64_t result);
uint64_t sync_stamp(struct cached *k);				/* flags of a bucket that a flush has cleaned */

/* ---- flush.c ---- */
void dirty_list(struct cport *ps, struct object *o);		/* if it has buckets to be started */
void dirty_unlist(struct cport *ps, struct object *o);		/* if it has none */
/* Starts flushing [first, first + nr) of the object; true when all that could be started was. */
bool flush_start(struct cport *ps, struct object *o, uint32_t first, uint32_t nr, enum flush_why why);
void flush_done(struct cport *ps, struct child *ch, int64_t result);
void flush_job(struct cport *ps, struct object *o);	/* what it was asked for; takes a reference away */
void flush_wait_fn(struct xwait *w, void *ctx);
uint64_t flusher_run(struct cport *ps);			/* returns when it wants to run again */

/* ---- throttle.c ---- */
void throttle_init(struct throttle *t);
void throttle_flush_out(struct cport *ps);		/* a flush child goes out; */
void throttle_flush_back(struct cport *ps, uint64_t bytes);	/* it is back: what it wrote */
uint64_t throttle_store_rate(struct cport *ps);		/* bytes a second; 0: not known yet */
/* Inside the object, at a write's first step: true if c has to wait, and will be stepped again. It holds nothing yet. */
bool throttle_holds(struct cport *ps, struct creq *c);
/* Outside of any object: lets those go on whose time has come; returns when it wants to run again. */
uint64_t throttle_run(struct cport *ps);
static inline bool throttle_busy(struct cached *k) { return atomic_load_explicit(&k->throttle.nr, memory_order_relaxed) > 0; }

/* ---- arena.c ---- */
int arena_open(struct cached *k, struct xseg_error *err);
int arena_load(struct cached *k, struct xseg_error *err);
void *cached_alloc(struct cached *k, size_t bytes);	/* zeroed, from a cache line on, freed at the end; NULL: no memory */

/* ---- resize.c ---- */
static inline uint64_t size_word(uint32_t at_start, uint32_t since) { return (uint64_t)at_start << 32 | since; }
/* Before serving: how many pages it is to have, and those that it has. */
void size_open(struct cached *k);
void extent_add(struct cached *k, uint32_t first_page);
/* Option `memory` was changed. May refuse. */
int resize_ask(struct cached *k, struct xseg_error *err);
uint64_t resize_run(struct cport *ps);			/* port 0: goes on with it; returns when it wants to run again */
uint64_t resize_left(struct cached *k);			/* bytes that it still has to take or to give back */
bool resizing(struct cached *k);
uint32_t nr_owned(struct cached *k);			/* pages that it has, those that leave too */
void resize_check(struct cached *k);

/* ---- status.c ---- */
extern const char *const cache_keys[NR_CC];
int64_t status_text(struct cport *ps, char *out, size_t size);
int64_t drop_clean(struct cport *ps, char *out, size_t size);

/* Asserts every invariant; nobody may be inside (tests, simulator). */
void cached_check(struct peer *p);
/* For tests of small caches; no thread runs. Keeps all but n of the free pages out of use; cuts some into chunks before, for good,
 * where n is to be room for data alone. */
void cached_limit_pages(struct peer *p, uint32_t n);
void cached_cut_pages(struct peer *p);

#endif
