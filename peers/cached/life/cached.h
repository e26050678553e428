/* cached - the cache peer: what its files share, by subject, and here what holds that together.
 *
 *   bucket.h, object.h         what is kept
 *   pages.h, share.h           memory, and who gets it
 *   creq.h                     requests, their order, and children: those of its own at the store
 *   flush.h                    from dirty to stable
 *   loan.h, gift.h, direct.h   pages that clients read and write in
 *   volume.h, stream.h         single volumes; readers in order
 *   plug.h, walk.h             entering and leaving the path
 *   counters.h, data.h         what is counted; how data is copied
 *
 * cached keeps objects in 4 KiB buckets between an upper peer and its downstream. An object is an
 * entry of the xcache (its name) plus slots (bucket.h), which live in chunks of 64. Entries,
 * chunks, the pages of the buckets and the records of volumes are in the segment and outlive the
 * process; all else is derived from them (arena.c).
 *
 * Who runs what: a request or a reply becomes a job in its object's work queue (xworkq); whoever
 * runs the queue is "inside the object" and alone with its slots. (One that can be served at once
 * enters without a job: hit.c.) Jobs never block: what has to wait is put into one of the waiting
 * places (creq.c) and stepped again later. Every creq and every child that has an object holds a
 * reference to it.
 *
 * Locks; mem_lock and dirty_lock may be taken under volume_lock, mem_lock under the xcache's own
 * (an entry that becomes free gives back its chunks), and all others are leaves:
 *   volume_lock	making records of volumes, and their settings; whether clients may read
 *			directly
 *   mem_lock	extents, free pages, lists of clean pages and of those in limbo, free chunks
 *   dirty_lock	the lists of dirty objects, flush tickets, pending FLUSH requests
 *   throttle.lock	how fast the store takes dirty data, writers that are slowed
 *   streams.lock	the table of streams (stream.h)
 *   loans.lock		credit is being given (loan.c)
 *
 * Invariants:
 *   C1  a slot is changed inside its object only, its state and page by bucket_set_at() only
 *   C2  a page with acknowledged data is never changed in place: a write puts a new page into the
 *       slot. Nor is one that may be on loan, but by whom it was lent to for that (gift.c)
 *   C3  a request that changes slots has all it may wait for before it becomes STARTED, and leaves
 *       the object only after all its slots are stored (rule R3)
 *   C4  a page listed by a child that is out is not given to anybody else
 *   C5  who waits for pages or chunks holds none; loads and flushes in flight need nothing more to
 *       complete
 *   C6  what a DELETE, DISCARD or WRITE_ZEROES took away comes back by no older change, wherever
 *       that was parked (change.c)
 */
#ifndef PEERS_CACHED_CACHED_H
#define PEERS_CACHED_CACHED_H

#include <assert.h>
#include <pthread.h>

#include "peers/cached/request/creq.h"
#include "peers/cached/lend/direct.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/gift.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/object/object.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/life/plug.h"
#include "peers/cached/bucket/stream.h"
#include "peers/cached/volume/volume.h"
#include "peers/cached/object/walk.h"
#include "xtypes/xhuge.h"
#include "xtypes/xpool.h"

#define NR_LISTS       CACHE_LISTS	/* lists of pages for larger ones */
#define NR_POLICIES    4
#define MAGAZINE       32
#define EARLY_MAX      8		/* as many as are accepted at a time */
/* children: then the store below gets them, before more requests are looked at */
#define SENDS_A_ROUND  2
/* bytes: then those get their answers who waited for them, or they would go to sleep */
#define COPIES_A_ROUND (64u << 10)

struct arena_head {
	uint64_t magic, version;
	uint32_t nr_objects, nr_volumes;
	_Atomic uint64_t size; /* size_word(): what was asked for; what there is, the extents say */
	uint32_t nr_ports, spare;		/* nr_ports: that have counters of volumes here */
	uint64_t off_volumes, off_objects, bytes;
	/* policy_note(): what it was started with, and what was set since */
	_Atomic uint64_t policy;
	_Atomic uint64_t ready;			/* 1: all of the above is written */
};

/* Which requests' data pages have already (early.c). */
struct early_note {
	uint64_t place;
	uint32_t index;
	uint32_t page;			/* before `first`: none, or one that is free */
};
struct early {
	struct early_note note[EARLY_MAX];
	uint32_t first, nr;
	bool pays;	/* the last single one was applied in the round in which it came */
};

/* Requests that are served among the next batch (batch.c). */
#define KEPT_MAX 3u
struct kept {
	struct xreq *r[KEPT_MAX];
	uint32_t first, nr;
	bool fresh;			/* they are of this round */
};

/* One port's side of the cache: used by its thread only. */
struct cport {
	struct peer_port *pp;
	struct cached *cache;
	struct xseg_stats *stats;	/* enum cache_counter; sums over ports are what counts */
	struct object *ready, **ready_tail;	/* objects that this thread owns and has to run */
	struct object *inside;			/* the object whose queue it is running */
	struct xwaitq want_requests;
	/* own requests that other threads are done with; any thread pushes */
	_Atomic(struct child *) returned;
	uint32_t magazine[MAGAZINE], nr_magazine;
	struct early early;
	struct volume_block *volumes;		/* counters by record */
	uint32_t last_volume;			/* the record that the last request was of */
	/* written by this port's thread; read by others when the peer stops */
	_Atomic uint32_t flushes_out, loads_out;
	_Atomic uint64_t changes;	/* of objects, that the store has answered well */
	uint32_t sent, copied;		/* children, and bytes of requests, since the last poll */
	bool copies;	/* of the batch at hand a read at least is copied (batch_prefetch) */
	struct kept kept;
	bool freed;	/* pages, chunks or entries came free since the last pages_signal() */
	bool request_freed;			/* the same for requests of its own */
	struct lender lender;
	struct hits hits;
	uint32_t hits_polled;	/* so many had come at its last poll */
	uint64_t polled_ns;		/* when its last poll looked at everything */
	/* the flusher: nothing is due by its age before then, while dirty_news is that */
	uint64_t quiet_ns;
	uint32_t quiet_news;
	bool wanted_turn;	/* it looked last for what a single volume's FLUSH waits for */
	bool throttled;	/* a write began to wait in the throttle since the last throttle_run() */
};

struct policy {
	const char *name;
	enum cache_counter counter;		/* writes under it */
	/* past the cache, where nothing there is newer than the store (around.c) */
	bool writes_around, reads_around;
	bool answers_before_store;	/* a write without FUA, when its slots are stored */
	/* The slots are stored and the request is STARTED: answer it, or have it wait for the
	 * store. */
	void (*applied)(struct cport *ps, struct creq *c);
};
extern const struct policy policy_write_back, policy_write_through, policy_write_around,
	policy_pass_through;
void through_applied(struct cport *ps, struct creq *c);			/* waits for the store */
extern const struct policy *const policies[NR_POLICIES];	/* by option value */
/* for its requests from now on */
const struct policy *object_policy(struct cport *ps, struct object *o);

struct cached {
	struct peer peer;
	/* options */
	uint64_t memory, dirty_age_ns, flush_rate, seq_cutoff, read_ahead;
	uint32_t objects_wanted, policy_nr, requests, dirty_high, dirty_low, store_full;
	/* as they hold now: any thread may change an option */
	_Atomic uint32_t high_percent, low_percent;
	_Atomic bool full_fails;		/* store_full=fail */
	_Atomic uint64_t age_ns, flush_bytes_per_s;
	/* arena */
	_Atomic(const struct policy *) policy;	/* of writes from now on */
	bool made_arena;			/* so nothing is in it before it serves */
	struct arena_head *head;
	struct arena_object *entries;
	/* by number: all pages of the segment, seen as chunks (chunk.c) */
	struct arena_chunk *chunks;
	uint32_t nr_objects, nr_volumes;	/* of the head, which is not believed again (R5) */
	uint32_t nr_counted;		/* ports that have counters of volumes in the arena */
	uint32_t seg_pages;			/* of the segment */
	uint64_t seg_chunks;			/* that they may be */
	/* private tables, made at start */
	struct xcache xc;
	struct object *objects;			/* by entry */
	struct creq *creqs;			/* by request */
	struct child *children;			/* by request */
	_Atomic uint32_t nr_orphans;		/* CHILD_ORPHANs; any thread */
	bool adopted;		/* all of a predecessor's children are; set before serving */
	/* a predecessor's requests are being handed over; cuts among them wait (change.c) */
	bool recovering;
	struct creq *cuts, **cuts_tail;
	struct cport ports[PEER_MAX_THREADS];

	/* its size (extent.c): written by port 0 under mem_lock, read without */
	_Atomic uint32_t nr_pages;		/* of extents that stay */
	_Atomic uint32_t nr_leaving;		/* of extents that leave */
	_Atomic uint32_t target_pages;		/* asked for: any thread */
	struct resize resize;

	pthread_mutex_t volume_lock;
	_Atomic uint32_t *volume_ids;		/* by record, in the arena */
	struct arena_volume *volumes;
	struct volume *volume;			/* what is private of each */

	pthread_mutex_t mem_lock;
	struct extent *extents;			/* by number, all of the segment */
	struct xlist leaving;			/* pages of VALID buckets in extents that leave */
	uint32_t leaving_free;			/* pages in the pool whose extent leaves */
	/* pages cut into chunks whose extent leaves; read without the lock */
	_Atomic uint32_t leaving_chunk_pages;
	_Atomic uint32_t nr_out;		/* pages that are out; read without */
	struct xpool free_pages;
	/* pages of VALID buckets of volumes without a share, next victim at the tail */
	struct xlist clean;
	_Atomic uint32_t nr_clean, nr_free;	/* written under mem_lock, read without */
	_Atomic uint32_t nr_zeroes;	/* clean buckets of zeroes: they have slots but no page */
	uint32_t withheld;			/* pages kept out of use (tests) */
	struct reserve reserve;
	struct xlist chunk_pages;		/* pages cut into chunks that have a free one */
	union page_use *page_use;		/* by page */
	struct shares shares;
	/* of extents that stay; written under mem_lock, read without */
	_Atomic uint32_t nr_chunk_pages;
	_Atomic uint32_t nr_free_chunks;	/* the same */

	struct loans loans;
	struct xpool free_lists;		/* under mem_lock */
	uint32_t (*lists)[XSEG_REQ_PAGES];

	struct xwaitq want_urgent, want_owed, want_pages, want_entries, want_lists;
	struct streams streams;

	pthread_mutex_t dirty_lock;
	struct cds_list_head dirty;		/* objects with something to flush */
	/* the same, after a flush that failed: by how long they pause, each in order of dirty_ns;
	 * and those of them that a FLUSH has tried again at once */
	struct cds_list_head failed[NR_PAUSES], again;
	struct cds_list_head wanted;		/* groups that somebody waits for */
	_Atomic uint32_t nr_listed;		/* their number; read without the lock */
	_Atomic uint32_t dirty_news;	/* changes when one may be due earlier (dirty_list.c) */
	struct flush_group *groups, all;	/* of single volumes; of all together */
	uint32_t nr_groups;
	struct creq *flushes;			/* FLUSH requests that wait for sets to drain */
	struct cvolume_sync synced[NR_SYNCED];
	struct cvolume_sync lost_synced[NR_SYNCED];	/* as the next walk has to know it */
	struct own_sync own_sync;
	struct creq *failed_syncs; /* wait for the walk that makes dirty again what they covered */
	struct creq *late_flushes;	/* wait for one, too, and begin again then (sync.c) */
	uint64_t walks;			/* that have ended */
	bool walk_wanted;		/* something has failed since the last walk began */
	bool walking;
	_Atomic uint32_t nr_flushes, nr_wanted;	/* in `flushes`; groups in `wanted` */
	_Atomic uint32_t reclaims;		/* objects being emptied */
	_Atomic uint32_t nr_admitted;		/* objects that may keep buckets */

	struct walk walk;		/* that makes dirty again what may not be stable */
	struct {
		struct walk walk;
		_Atomic bool walking;		/* set by port 0; cleared where the walk ends */
		uint64_t next_ns;		/* port 0's */
	} giving_up;				/* unpromised_run() */
	_Atomic uint64_t sync_epoch;		/* counts FLUSHes sent to the store */

	_Atomic uint32_t nr_full;	/* volumes for which the store is full (full.c) */
	_Atomic bool full_look;			/* full_run() has something to do: any thread */
	_Atomic bool draining;			/* watermark crossed: until dirty_low */
	_Atomic bool switching;		/* left write-back: until what was dirty then is clean */
	/* at the last switch, for the status: what was dirty, when that was (0: no port has seen it
	 * yet), and the policy that it left */
	_Atomic uint64_t switch_bytes, switch_ns;
	_Atomic(const struct policy *) switch_from;
	uint32_t switch_ticket;	/* dirty_lock's: dirty sets up to it are from before the switch */
	_Atomic uint64_t rate_ns;		/* flush_rate: not before then */
	struct throttle throttle;
	/* When port 0 published them; 0, which anybody may store: it is to do so now. */
	_Atomic uint64_t gauges_ns;
	struct plug plug;
	struct creq *walk_syncs;		/* the walk's: answered when it has ended */
	struct cvolume_sync walk_synced[NR_SYNCED];	/* the walk's: what it spares */
	struct xhuge mem[16];			/* private allocations */
	unsigned nr_mem;
	bool has_tables;			/* make_tables() is done */
	uint64_t mem_bytes;			/* of them all */
	uint32_t nr_requests;			/* of the segment */
	struct direct direct;
};

static inline struct cached *cached_of(struct peer *p) { return (struct cached *)p; }
static inline struct cport *cport_of(struct peer_port *pp) { return pp->state; }
static inline uint32_t object_volume(const struct object *o)
{
	return atomic_load_explicit(&o->volume, memory_order_relaxed);
}
/* Its entry in the arena: as far from the first one as the object is from the first object. */
static inline struct arena_object *object_entry(struct cached *k, struct object *o)
{
	_Static_assert(sizeof(struct arena_object) == sizeof(struct object),
		"one offset is good for both");
	return (struct arena_object *)((char *)k->entries + ((char *)o - (char *)k->objects));
}
/* The owner word of its b-th bucket's page. */
static inline uint64_t bucket_name(struct object *o, uint32_t b)
{
	return xseg_slot_name(o->index, b);
}
/* Entries: for those that keep data, and for those that pass. */
static inline uint32_t nr_entries(const struct cached *k)
{
	return cached_nr_entries(k->nr_objects);
}
/* The chunk that a word of an entry names. The words are the cache's own: if they are wrong
 * somebody wrote over them, and it stops before it looks at what is outside of the segment. */
static inline struct arena_chunk *chunk_at(struct cached *k, uint32_t chunk)
{
	assert(chunk < k->seg_chunks);
	return &k->chunks[chunk];
}
/* No other thread is in the cache: what only its threads do needs no locked instruction. */
static inline bool cache_is_alone(const struct cport *ps)
{
	return ps->pp->only || ps->cache->peer.nr_ports == 1;
}
/* Off the path it has nothing, and nowhere to get it from. */
static inline bool cached_is_off(const struct cached *k)
{
	return atomic_load_explicit(&k->plug.off, memory_order_relaxed);
}
/* The word of the slot of bucket b, or NULL: the object has no chunk there. */
static inline _Atomic uint64_t *slot_word_of(struct cached *k, struct object *o, uint32_t b)
{
	uint32_t chunk = atomic_load_explicit(
		&object_entry(k, o)->chunk[b / CHUNK_SLOTS], memory_order_relaxed);

	return chunk ? &chunk_at(k, chunk - 1)->slot[b % CHUNK_SLOTS] : NULL;
}
static inline void count(struct cport *ps, enum cache_counter n, uint64_t by)
{
	xseg_stats_add(ps->stats, n, by);
}
/* This port's counters of a record of a volume, to add to. While somebody tries to take the record
 * away it has no id. That is no reason to begin anew: he gives it back if an object of the volume
 * has come, and if not nobody reads what is added here. */
static inline struct volume_block *volume_block(struct cport *ps, uint32_t rec)
{
	struct volume_block *b = &ps->volumes[rec];
	uint32_t id = atomic_load_explicit(&ps->cache->volume_ids[rec], memory_order_acquire);

	if (id && atomic_load_explicit(&b->id, memory_order_relaxed) != id)
		volume_block_take(b, id);
	return b;
}
/* So much of a request's data has been copied; what was lent or given has not. */
static inline void count_copied(struct cport *ps, uint32_t bytes)
{
	ps->copied += bytes;
	if (ps->copied >= COPIES_A_ROUND)
		peer_end_round(ps->pp);
}
static inline void count_wait(struct cport *ps, enum wait_why w)
{
	count(ps, (enum cache_counter)(CC_WAITS_BUCKET + w), 1);
}
/* Pages that may hold data, but for the reserve. */
static inline uint32_t data_pages(struct cached *k)
{
	uint32_t nr = atomic_load_explicit(&k->nr_pages, memory_order_relaxed) - k->withheld -
		      atomic_load_explicit(&k->nr_chunk_pages, memory_order_relaxed);

	return nr > k->reserve.size ? nr - k->reserve.size : 0;
}
/* Clean zeroes that are kept at most: they take slots, and only the end of their object evicts
 * them. */
static inline uint32_t zeroes_max(struct cached *k) { return data_pages(k) / 4; }
static inline struct extent *page_extent(struct cached *k, uint32_t page)
{
	return &k->extents[page / XSEG_EXTENT_PAGES];
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
uint64_t cached_total(struct cached *k, enum cache_counter n);		/* sum over the ports */

void publish_gauges(struct cached *k, uint64_t now_ns);
void cost_now(struct cached *k, struct cache_cost *cost);	/* what it costs beside its pages */

static inline bool throttle_busy(struct cached *k)
{
	return atomic_load_explicit(&k->throttle.nr, memory_order_relaxed) > 0;
}

/* ---- arena.c ---- */
int arena_open(struct cached *k, struct xseg_error *err);
int arena_load(struct cached *k, struct xseg_error *err);
void arena_close(struct cached *k);	/* private tables go; also when arena_open() has failed */
/* zeroed, from a cache line on, freed by arena_close(); NULL: no memory */
void *cached_alloc(struct cached *k, size_t bytes);

/* ---- batch.c: see peer.h ---- */
void batch_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
uint32_t batch_requests(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
/* Each round, after its requests: serves what was kept in an earlier one. True: some was kept in
 * this one, so another has to follow at once. */
bool batch_poll(struct cport *ps);
void batch_check(const struct cport *ps);	/* asserts J1, between two rounds */

/* ---- status.c ---- */
int64_t status_text(struct cport *ps, char *out, size_t size);
int64_t drop_clean(struct cport *ps, char *out, size_t size);

/* Asserts every invariant; nobody may be inside (tests, simulator). */
void cached_check(struct peer *p);
/* Nothing is under way: each page and list is somewhere. */
void cached_check_idle(struct peer *p);
/* For tests of small caches; no thread runs. Keeps all but n of the free pages out of use; cuts
 * some into chunks before, for good, where n is to be room for data alone. */
void cached_limit_pages(struct peer *p, uint32_t n);
void cached_cut_pages(struct peer *p);
void cached_drop_reserve(struct peer *p);	/* none is kept, and its pages are out of use */

#endif
