/* object - an object of the cache: its entry in the arena, its private part, its slots.
 *
 *   object.c, chunk.c   the object and its slots
 *   reclaim.c           how it is emptied
 *   unpromised.c        which of its data is not promised
 *   admit.c             whether it may keep anything
 *
 * Contract: slots, and the private part of an object, are for the thread that is inside (cached.h).
 * Any thread that has a reference may call object_push(), object_ask(), object_put() and the hints.
 */
#ifndef PEERS_CACHED_OBJECT_H
#define PEERS_CACHED_OBJECT_H

#include <assert.h>
#include <stddef.h>
#include <urcu/list.h>

#include "peers/cached/bucket/bucket.h"
#include "peers/cached/memory/pages.h"
#include "peers/common/say/cache_cost.h"
#include "xseg/xseg.h"
#include "xtypes/xcache.h"
#include "xtypes/xstate.h"
#include "xtypes/xwaitq.h"
#include "xtypes/xworkq.h"

#define OBJECT_CHUNKS  CACHE_OBJECT_CHUNKS
#define OBJECT_BUCKETS (CHUNK_SLOTS * OBJECT_CHUNKS)
#define OBJECT_BYTES   ((uint64_t)OBJECT_BUCKETS * BUCKET_SIZE)

struct creq;
struct child;

/* ---- in the arena ---- */

struct arena_object {
	char name[XSEG_TARGET_MAX];
	/* beside the chunk of a small object: a hit looks at both */
	_Atomic uint32_t used;	/* 1 from when the name is complete until the entry is free */
	uint32_t volume;
	_Atomic uint32_t chunk[OBJECT_CHUNKS];	/* chunk + 1; 0 = none: all its buckets are FREE */
	_Atomic uint64_t version; /* counts what direct readers must see: as in struct xseg_slots */
	/* slots of each that are not absent: derived, a successor counts anew */
	uint8_t chunk_used[OBJECT_CHUNKS];
};
_Static_assert(sizeof(struct arena_object) == CACHE_OBJECT_BYTES, "cache_cost.h counts it");
/* What is published: where a struct xseg_slots begins in it. */
#define ARENA_SLOTS offsetof(struct arena_object, chunk)
_Static_assert(offsetof(struct arena_object, version) - ARENA_SLOTS ==
			       offsetof(struct xseg_slots, version) &&
		       OBJECT_CHUNKS == XSEG_SLOTS_CHUNKS && CHUNK_SLOTS == XSEG_CHUNK_SLOTS,
	"as readers see it");

/* ---- private ---- */

/* what it may be asked to do for itself */
enum object_work { OBJECT_FLUSH = 1, OBJECT_RECLAIM = 2 };
enum object_state {
	OBJECT_READY, OBJECT_FLUSHING, OBJECT_FAILED, OBJECT_DELETING, OBJECT_HELD, OBJECT_NR_STATES
};

/* What a hit looks at is in the first 64 bytes. */
struct object {
	struct xworkq q; /* whoever is inside may touch all below but what is under dirty_lock */
	uint16_t nr[BUCKET_NR_STATES];
	uint16_t loads_out, flushes_out;	/* children in flight */
	uint16_t nr_fua, nr_redo;	/* writers that need FUA; STARTED requests not yet redone */
	_Atomic uint16_t used;			/* buckets that are not absent; read by others */
	/* record of its volume: exact while it has buckets, else where it was; read by others */
	_Atomic uint16_t volume;
	uint8_t state;				/* enum object_state */
	uint8_t gen;				/* the dirty set that new writes join */
	bool reclaiming;			/* to be emptied; reclaim holds a reference */
	bool flush_failed;			/* a flush failed since flushes_out was 0 */
	_Atomic uint8_t asked; /* enum object_work: what own_work is in the queue for: any thread */
	_Atomic bool flush_waiting;		/* flush_wait is queued: any thread */
	_Atomic uint8_t flush_all;	/* the flusher has it, and why, or FLUSH_NONE: any thread */
	_Atomic bool admitted;			/* may keep buckets (admit.c): any thread */
	_Atomic bool listed;		/* in one of the lists below; written under dirty_lock */
	/* flushes that failed in a row, up to NR_PAUSES: how long retry_ns is put off */
	uint8_t nr_failures;
	uint32_t index;				/* of it, and of its entry: fixed */
	/* wait for a load, a delete or a redo of this object, the newest first */
	struct creq *waiters;
	struct creq *through;			/* applied, wait until the store has their pages */
	struct object *ready_next;		/* on a port's ready list */
	uint64_t apply_seq;		/* counts writes applied: which flush covers which write */
	/* tickets at which each dirty set began: its group's, all volumes' */
	uint32_t since[2], since_all[2];
	/* buckets dirty or being written, by set (SLOT_GEN); read by others (list.c) */
	_Atomic uint16_t cnt[2];
	uint32_t changes;	/* the oldest one that is not applied (change.c); 0: none */
	uint64_t retry_ns;		/* not before then, after a failed flush; or 0 */
	struct xwork own_work;
	struct xwait flush_wait;		/* wants child requests to flush with */
	uint16_t pass_at;			/* flush_whole(): where it goes on, */
	uint8_t pass;				/* in which pass, */
	bool pass_aged;				/* and whether that began for the age's sake */
	/* emptied, also of what is spared: written by who asks for that */
	_Atomic bool reclaim_all;
	uint8_t nr_opened;	/* direct_mark(): how often, up to a limit, since it was written */
	uint16_t opened_seq;			/* apply_seq, its low bits, at the last one */
	/* guarded by dirty_lock */
	/* has buckets to be flushed; in `dirty`, oldest first, or in one of those that failed */
	struct cds_list_head dirty;
	/* while it is in `dirty`: in its group's list, in the same order */
	struct cds_list_head in_group;
	uint64_t dirty_ns;	/* when it was listed; after a flush that failed: its retry_ns */
};
_Static_assert(sizeof(struct object) == CACHE_OBJECT_PRIVATE, "cache_cost.h counts it");
_Static_assert(offsetof(struct object, waiters) == 64, "what a hit looks at is together");

struct object_room {
	struct xcache xc;
	struct object *objects;			/* by entry */
	struct arena_object *entries;
	uint64_t off_entries;			/* in the arena */
	/* by number: all pages of the segment, seen as chunks (chunk.c) */
	struct arena_chunk *chunks;
	uint64_t seg_chunks;			/* that they may be */
	uint32_t nr_objects;		/* of the head, which is not believed again (R5) */
	struct xwaitq want_entries;
};

struct object_port {
	struct object *ready, **ready_tail;	/* objects that this thread owns and has to run */
	struct object *inside;			/* the object whose queue it is running */
};

struct object_room *object_of(const struct cached *k);
struct object_port *object_port(const struct cport *ps);

static inline uint32_t object_volume(const struct object *o)
{
	return atomic_load_explicit(&o->volume, memory_order_relaxed);
}
/* Its entry in the arena: as far from the first one as the object is from the first object. */
static inline struct arena_object *object_entry(struct cached *k, struct object *o)
{
	_Static_assert(sizeof(struct arena_object) == sizeof(struct object),
		"one offset is good for both");
	return (struct arena_object *)((char *)object_of(k)->entries +
				       ((char *)o - (char *)object_of(k)->objects));
}
/* The owner word of its b-th bucket's page. */
static inline uint64_t bucket_name(struct object *o, uint32_t b)
{
	return xseg_slot_name(o->index, b);
}
/* Entries: for those that keep data, and for those that pass. */
static inline uint32_t nr_entries(const struct cached *k)
{
	return cached_nr_entries(object_of(k)->nr_objects);
}
/* The chunk that a word of an entry names. The words are the cache's own: if they are wrong
 * somebody wrote over them, and it stops before it looks at what is outside of the segment. */
static inline struct arena_chunk *chunk_at(struct cached *k, uint32_t chunk)
{
	assert(chunk < object_of(k)->seg_chunks);
	return &object_of(k)->chunks[chunk];
}
/* The word of the slot of bucket b, or NULL: the object has no chunk there. */
static inline _Atomic uint64_t *slot_word_of(struct cached *k, struct object *o, uint32_t b)
{
	uint32_t chunk;

	assert(b < OBJECT_BUCKETS);
	chunk = atomic_load_explicit(
		&object_entry(k, o)->chunk[b / CHUNK_SLOTS], memory_order_relaxed);
	return chunk ? &chunk_at(k, chunk - 1)->slot[b % CHUNK_SLOTS] : NULL;
}
/* ---- object.c: entries, slots, jobs ---- */
extern const struct xcache_ops object_hooks;
void object_init(struct object *o, uint32_t index);
/* Runs the job now, or leaves it to whoever is inside; never inside another job. */
void object_push(struct cport *ps, struct object *o, struct xwork *w);
void object_ready(struct cport *ps, struct object *o);	/* owned by this thread: run it soon */
bool object_run_ready(struct cport *ps, unsigned budget);		/* true: there is more */
void object_put(struct cport *ps, struct object *o);
/* Has it flush, or empty itself, soon. The caller's reference goes with that; false: it was asked
 * before, and did not start. */
bool object_ask(struct cport *ps, struct object *o, enum object_work what);
/* puts it; the entry of one that passes may be free then */
void object_leave(struct cport *ps, struct object *o);
/* It may not keep buckets (admit.c). */
static inline bool object_passes(struct object *o)
{
	return !atomic_load_explicit(&o->admitted, memory_order_relaxed);
}
void object_set_state(struct object *o, enum object_state s);
/* A delete of it is out, or something of a predecessor's: its requests wait, and none of its data
 * is flushed. */
static inline bool object_is_shut(const struct object *o)
{
	return o->state == OBJECT_DELETING || o->state == OBJECT_HELD;
}
extern const struct xstates object_states;
/* Acquire, with count_dirty()'s release: the store has what does not count any more (P1). */
static inline uint32_t object_nr_dirty(const struct object *o, unsigned gen)
{
	return atomic_load_explicit(&o->cnt[gen], memory_order_acquire);
}
uint64_t slot_get(struct cached *k, struct object *o, uint32_t b);
void bucket_set(struct cport *ps, struct object *o, uint32_t b, uint64_t word);
/* The same two of a slot that is at hand. */
uint64_t slot_read(struct cached *k, const _Atomic uint64_t *slot);
void bucket_set_at(
	struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot, uint64_t word);
/* Its data leaves the cache: for evict_step() (evict/step.c), and for nobody else. */
void bucket_leave(struct cport *ps, struct object *o, uint32_t b, enum bucket_state to);
void slot_set_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag);
/* in the place of an older one */
void slot_set_loan(struct cached *k, struct object *o, uint32_t b, uint64_t loan);
void slot_clear_flag(struct cached *k, struct object *o, uint32_t b, uint64_t flag);
/* What is newer than the store in it is promised from now on, if it is dirty. */
void bucket_promise(struct cport *ps, struct object *o, uint32_t b);

/* Whose bucket *b the page is, by its owner word; NULL: nobody's. A hint, if the caller is not
 * inside that object. */
struct object *page_object(struct cached *k, uint32_t page, uint32_t *b);

/* ---- belong.c ---- */
/* The object gets its first bucket; has lost its last. */
void object_pin(struct cached *k, struct object *o);
void object_unpin(struct cached *k, struct object *o);
/* A request of that volume is at the object: an object belongs to the volume of the first request
 * that finds it without dirty data. */
void object_adopt(struct cport *ps, struct object *o, uint32_t id);

/* ---- prefetch.c ---- */
/* Ask for the cache lines of a request's object, and of its first bucket: hints, from outside of
 * the object. r->user is what the first one guessed, or NULL; the second returns the slot, or NULL,
 * which the third wants. That one is for the first few lines of data of each read of a batch, and
 * for who owns the pages of a write; the last for all of a read's data, while the request before is
 * served: as many lines as a core can wait for at a time. */
void object_prefetch(struct cached *k, struct xreq *r);
_Atomic uint64_t *object_prefetch_slot(struct cached *k, const struct xreq *r);
void object_prefetch_page(struct cached *k, const struct xreq *r, const _Atomic uint64_t *slot);
void object_prefetch_data(struct cached *k, const struct xreq *r);

/* ---- chunk.c ---- */
/* Takes the chunks that a range needs and the object lacks; false: there are too few, and none was
 * taken. */
bool chunks_ensure(struct cport *ps, struct object *o, uint32_t first, uint32_t nr);
/* Its slots go into that chunk, if it has one there; else the chunk goes back. The caller holds a
 * reference. */
void chunk_move(struct cport *ps, struct object *o, uint32_t nr, uint32_t to);
void chunk_release(struct cport *ps, struct object *o, uint32_t nr);
/* what an entry without buckets still holds */
void chunks_finalize(struct cached *k, uint32_t idx);

#endif
