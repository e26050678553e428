/* volume - the records of single volumes in cached, each with settings and counters.
 *
 * Records are in the arena, so settings and counters survive the process. The volume's id chooses a
 * set of VOLUME_WAYS records. The ids of a set are one cache line. So one line says where the
 * record is, or that there is none. A port remembers the last record, and an object has the number
 * of its own.
 *
 * The first request of a volume makes its record, in the place of a record that no volume needs. If
 * there is no such place, the volume is one of the OTHERS. These share record 0, have no settings
 * of their own, and are counted together.
 *
 *   a record is    when                                              by
 *   free           its id is 0                                       fresh arena, volume_forget
 *   in use         its id is written, last of all                    volume_make_locked
 *   another's      it has no settings, and no object that has        the same
 *                  buckets belongs to it
 *
 * Counters are in a block for each port and record. Only the port's thread writes it. A block names
 * the volume that its numbers belong to. A thread that takes a record away makes the record's
 * blocks unowned. Each port zeroes its own block before it counts for another volume. Readers leave
 * out blocks of other volumes.
 *
 * Contract: blocks by the port's thread; all else any thread. volume_lock (its order:
 * life/cached.h) is taken to make a record and to change settings. A request whose volume is known
 * never takes it.
 *
 * Invariants (volumes_check() tests them):
 *   N1  An id stands in its set, and once.
 *   N2  volume[r].objects is the number of objects with buckets whose record is r. While it is not
 *       0, or there are settings, the record is not given to another.
 *   N3  USED, DIRTY and UNPROMISED of a record, summed over the ports, match the buckets of its
 *       objects.
 */
#ifndef PEERS_CACHED_VOLUME_H
#define PEERS_CACHED_VOLUME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/bucket/cport.h"
#include "peers/common/say/cache_cost.h"
#include "xseg/xseg.h"
#include "xtypes/xlist.h"
#include "xtypes/xwaitq.h"

#define VOLUME_WAYS 16u			/* records in a set: their ids fill a cache line */
#define OTHERS	    0u			/* record of the volumes that have none, and of volume 0 */

enum volume_counter {
	VC_READS, VC_WRITES, VC_HITS, VC_MISSES, VC_PARTIAL, VC_BYPASSED, VC_HIT_BYTES,
	VC_MISS_BYTES, VC_READ_BYTES, VC_WRITE_BYTES,
	VC_EVICTED, VC_USED_BYTES, VC_DIRTY_BYTES, VC_UNPROMISED_BYTES, NR_VC
};
extern const char *const volume_keys[NR_VC];

struct arena_volume {
	_Atomic uint64_t settings;		/* one word: all of them change together; 0: none */
	char name[XSEG_NAME_MAX];		/* for people; "": not known */
};

struct volume_block {
	_Atomic uint32_t id;			/* whose numbers these are */
	uint32_t spare;
	_Atomic uint64_t n[NR_VC];		/* enum volume_counter */
};

struct flush_group;
struct policy;

/* Pages that may be evicted, in the order in which they are offered. memory/clean.c has that order,
 * and is the only file that uses the fields. Under mem_lock. */
struct clean_list {
	struct xlist pages;			/* next victim at the tail */
};
static inline uint32_t clean_nr(const struct clean_list *list)
{
	return list->pages.nr;
}

/* How much of the memory a record's volume has: memory/account.h. */
struct share {
	_Atomic uint32_t used;			/* pages in buckets: any thread */
	_Atomic uint32_t min, max;		/* pages, 0: none; written under volume_lock */
	/* written under dirty_lock: its group, while that is flushed for its sake */
	struct flush_group *_Atomic flushes;
	struct clean_list clean;		/* of its volume alone */
	struct xwaitq want;			/* requests that wait for room below the maximum */
};

/* The same of all records. */
struct shares {
	/* records that have a share, or had one; written under mem_lock, read without */
	_Atomic uint32_t nr;
	uint16_t rec[256];			/* which */
	_Atomic uint32_t min_sum;		/* written under volume_lock */
	_Atomic uint32_t waiting;		/* in queues of single shares */
	/* entries of those who are spared, since an object was last chosen to be emptied */
	_Atomic uint32_t passed;
	_Atomic uint32_t work;		/* what share_run() has to do: any thread adds to it */
	/* a page that is spared has to leave, and there is none in its place: resize.c */
	_Atomic bool squeezed;
	/* under mem_lock */
	uint32_t clean;				/* pages in lists of single shares */
	uint32_t unsorted;	/* pages of the common list that have still to be looked at */
	/* whose list loses pages, 0: the common one, else rec[at - 1]; how many yet */
	uint32_t at, left;
};

struct volume {					/* private */
	_Atomic uint32_t objects;		/* that have buckets */
	/* guarded by dirty_lock: dirty sets up to it are from before the switch */
	uint32_t drain_ticket;
	/* written under dirty_lock: its group, while these are being flushed */
	struct flush_group *_Atomic drains;
	uint64_t drain_bytes;			/* how much was dirty then */
	/* since when the store has no room for it, 0: it has; and the entry of the object that it
	 * was found out by (full.c): any thread */
	_Atomic uint64_t full_ns;
	_Atomic uint32_t full_entry;
	struct share share;
};

struct volume_room {
	struct shares shares;
	pthread_mutex_t volume_lock;
	_Atomic uint32_t *volume_ids;		/* by record, in the arena */
	struct arena_volume *records;
	struct volume *states;			/* what is private of each */
	uint32_t nr_volumes;		/* of the head, which is not believed again (R5) */
	uint32_t nr_counted;		/* ports that have counters of volumes in the arena */
};

struct volume_port {
	struct volume_block *blocks;		/* counters by record */
	uint32_t last_volume;			/* the record that the last request was of */
};

struct volume_room *volume_of(const struct cached *k);
struct volume_port *volume_port(const struct cport *ps);

/* Finds the tables in the arena; a predecessor's are checked, and its gauges zeroed. 0, or
 * -ENOMEM. */
int volumes_open(struct cached *k, void *ids, void *(*alloc)(struct cached *k, size_t bytes));

/* Whether a volume without a record would get one now. May be out of date at once. */
bool volume_has_room(struct cached *k, uint32_t id);

/* The record of that volume, or OTHERS. */
uint32_t volume_find(struct cached *k, uint32_t id);
/* The same, made if need be. */
uint32_t volume_of_request(struct cport *ps, const struct xreq *r);
/* The same under volume_lock, by somebody who knows the name ("": not); OTHERS: there is no
 * room. */
uint32_t volume_make_locked(struct cached *k, uint32_t id, const char *name);
/* The word of its settings, 0: none. rec: where its record was when it was last looked for. */
uint64_t volume_settings(struct cached *k, uint32_t rec, uint32_t id);
/* Its own policy, or NULL: the cache's. */
const struct policy *volume_policy(struct cached *k, uint32_t rec, uint32_t id);
/* The volume is gone: its settings and its name go. */
void volume_forget(struct cached *k, uint32_t id);

/* One object more has buckets, and counts with that record, or, if that is not the volume's any
 * more, with another: which. */
uint32_t volume_hold(struct cached *k, uint32_t rec, uint32_t id);

/* The block is this volume's from now on. */
void volume_block_take(struct volume_block *b, uint32_t id);
static inline void volume_add(struct volume_block *b, enum volume_counter n, uint64_t by)
{
	atomic_store_explicit(&b->n[n], atomic_load_explicit(&b->n[n], memory_order_relaxed) + by,
		memory_order_relaxed);
}
/* This port's counters of a record of a volume, to add to. While somebody tries to take the record
 * away it has no id. That is no reason to begin anew: he gives it back if an object of the volume
 * has come, and if not nobody reads what is added here. */
static inline struct volume_block *volume_block(struct cport *ps, uint32_t rec)
{
	struct volume_block *b = &volume_port(ps)->blocks[rec];
	uint32_t id =
		atomic_load_explicit(&volume_of(ps->cache)->volume_ids[rec], memory_order_acquire);

	if (id && atomic_load_explicit(&b->id, memory_order_relaxed) != id)
		volume_block_take(b, id);
	return b;
}
/* A read of nr buckets, of which so many were there; one that went past the cache; a write. */
void volume_count_read(struct volume_block *b, uint32_t nr, uint32_t nr_hit, uint32_t bytes);
/* so many reads that found all */
void volume_count_hits(struct volume_block *b, uint64_t nr, uint64_t buckets, uint64_t bytes);
void volume_count_bypassed(struct volume_block *b, uint32_t bytes);
void volume_count_write(struct volume_block *b, uint32_t bytes);
void volume_count_writes(struct volume_block *b, uint64_t nr, uint64_t bytes);
/* sum over the ports */
uint64_t volume_total(struct cached *k, uint32_t rec, enum volume_counter n);

/* ---- settings.c: the word of a volume's settings ---- */
#define SETTINGS_PAGES_MAX ((1ull << 30) - 1)
bool settings_ok(uint64_t word);		/* a predecessor can have stored that */
const struct policy *settings_policy(uint64_t word);	/* NULL: the cache's */
uint64_t settings_with_policy(uint64_t word, const struct policy *p);
void settings_share(uint64_t word, uint32_t *min, uint32_t *max);	/* pages; 0: none */
uint64_t settings_with_share(uint64_t word, uint32_t min, uint32_t max);
/* The policy that is promised to the volume's new writes. */
const struct policy *volume_promise(struct cached *k, uint32_t rec, uint32_t id);

/* Of a volume, or +PREFIX: the objects of a log of values. */
static inline bool volume_name_ok(const char *name)
{
	return xseg_name_ok(name + (*name == '+'));
}

#endif
