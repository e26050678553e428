/* xcache - a bounded cache of names: finds, counts references, chooses victims; knows no data.
 *
 * Entries are preallocated and addressed by index. An entry that has a name is in one of two hash
 * tables. In `active`, lookups find it. In `evicted`, it waits until its last reference is gone. If
 * its name is inserted again before that, the same entry becomes active again, with all that its
 * user keeps under its index. (The structure of the xcache of Archipelago, GRNET, with other
 * algorithms inside.) Order of eviction: CLOCK, or second chance (F. Corbato, MIT MAC-M-376, 1968).
 * A hit sets a bit and nothing else; the list moves when a victim is needed.
 *
 *   from     to       when                               by                    hooks, in order
 *   FREE     ACTIVE   a new name is inserted             xcache_insert         init
 *   FREE     ACTIVE   a successor rebuilds the index     xcache_restore        none
 *   ACTIVE   EVICTED  it is the victim, or removed       insert, evict_lru,    evict, post_evict
 *                                                        remove, invalidate
 *   EVICTED  ACTIVE   its name is inserted again         xcache_insert         reinsert
 *   EVICTED  FREE     its last reference is put          xcache_put, and the   put, finalize, free
 *                                                        evictor's own put
 *
 * References. An active entry has one reference that belongs to the table. The evictor inherits it,
 * holds it through post_evict and puts it. So an entry that nobody else uses is freed before the
 * evicting call returns, and a count of 0 means FREE. A count goes from 1 to 0 under the lock only.
 *
 * Lookups need neither lock nor grace period, for this reason. The memory of an entry and of its
 * name is type-stable (as with the kernel's SLAB_TYPESAFE_BY_RCU). It is never unmapped while the
 * cache lives, and a count is always a count. A lookup takes an index from the table. It raises the
 * entry's count by compare-and-swap if the count is not 0, and only then compares the name. While
 * it holds the entry, the entry cannot become FREE, and names are written to FREE entries only. So
 * the compared name does not change. It was complete before the count became non-zero (release,
 * paired with the swap's acquire). The entry may have been freed and reused in between. Then the
 * count was 0, or the name differs, and the lookup lets go. Or the name is the same again, and the
 * entry is right. At worst a late lookup holds a stranger's reference for a moment.
 *
 * Contract: every function from any thread of the process, unless it says otherwise. lookup, get,
 * prefetch and the counters take no lock. put takes it only for the last reference of an evicted
 * entry. All else takes `lock`, which is process-private and held for O(1) work plus the hooks that
 * run under it. Hooks under the lock must not block. They may call only get, refs, hash_of, name
 * and state_of; hooks outside it may call everything. Any put may be the last and run put, finalize
 * and free, also the put inside a lookup that met a stranger. Memory is allocated in xcache_init()
 * only. Every operation is O(1): the search for a victim looks at a bounded number of entries.
 *
 * Names are strings in the caller's memory, name_stride apart. That may be shared memory that
 * outlives the process. The name of an entry stays as it is until the entry is used again. The user
 * records which names are alive (init, reinsert, evict and finalize tell him).
 *
 * Invariants (xcache_check() tests them all):
 *   C1  FREE: count 0, in the free list, in no table.
 *   C2  ACTIVE: count >= 1, in the LRU list, in the active table under its hash.
 *   C3  EVICTED: count >= 1, in no list, in the evicted table under its hash. That table is chains
 *       over the list nodes, which such an entry does not need. It costs 4 bytes an entry, as only
 *       a few are evicted and still in use.
 *   C4  A name is in at most one entry that is not FREE.
 *   C5  nr[s] is the number of entries in state s.
 */
#ifndef XTYPES_XCACHE_H
#define XTYPES_XCACHE_H

#include "xtypes/xhash.h"
#include "xtypes/xhuge.h"
#include "xtypes/xlist.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XCACHE_NONE UINT32_MAX
#define XCACHE_VETOES_MAX 64	/* victims offered to may_evict by one search */
#define XCACHE_CHANCES_MAX 64	/* bits cleared by one search; then the tail goes anyway */
#define XCACHE_VICTIMS_MAX 64	/* entries evicted by one insert while each is still referenced */

enum xcache_state {
	XCACHE_FREE,
	XCACHE_ACTIVE,
	XCACHE_EVICTED,
	XCACHE_NR_STATES
};

/* Each may be NULL. "Locked": called under the cache's lock. */
struct xcache_ops {
	/* once for each entry, from xcache_init(), which fails with its error */
	int (*node_init)(void *arg, uint32_t idx);
	/* locked: the entry got its name and nobody can find it yet */
	void (*init)(void *arg, uint32_t idx);
	/* locked: it left the active table */
	void (*evict)(void *arg, uint32_t idx);
	/* the same, not locked; the caller's reference is held during the call */
	void (*post_evict)(void *arg, uint32_t idx);
	/* locked: an evicted entry is active again; no new lookup has found it yet */
	void (*reinsert)(void *arg, uint32_t idx);
	/* locked: the count reached 0; comes before finalize */
	void (*put)(void *arg, uint32_t idx);
	/* locked: an evicted entry is not referenced any more and will be free */
	void (*finalize)(void *arg, uint32_t idx);
	/* not locked: it was put on the free list (it may be in use again by now). Not called for
	 * a victim whose entry the evicting insert itself takes over. */
	void (*free)(void *arg, uint32_t idx);
	/* locked: false spares this victim. Asked where the cache chooses: insert, evict_lru. */
	bool (*may_evict)(void *arg, uint32_t idx);
};

struct xcache_params {
	uint32_t nr_entries;		/* 1 .. 2^31 */
	char *names;			/* nr_entries * name_stride bytes */
	size_t name_stride;
	size_t name_max;		/* including the NUL; <= name_stride */
	const struct xcache_ops *ops;	/* NULL: no hooks */
	void *arg;			/* the first parameter of the hooks */
};

struct xcache_entry {
	_Atomic uint32_t ref;		/* 0 = FREE; the table's own reference is counted */
	_Atomic uint8_t hot;		/* looked up since it was last offered as a victim */
	/* enum xcache_state; written under the lock, read by xcache_state_of() without */
	_Atomic uint8_t state;
	uint16_t name_bytes;		/* with the NUL; written while FREE only, like the name */
	uint64_t hash;			/* the same */
};

struct xcache {
	/* fixed after xcache_init() */
	struct xcache_params params;
	struct xcache_ops ops;
	struct xcache_entry *entries;
	struct xhuge mem;	/* the one allocation behind entries, nodes and tables */

	pthread_mutex_t lock;		/* guards all below, entries' state, and names and hashes of
					 * FREE entries; a leaf but for what the hooks take */
	struct xlist lru;		/* ACTIVE entries, next victim at the tail */
	struct xlist free;		/* FREE entries, next to use at the head */
	struct xhash active;		/* written under the lock, read by lookups without */
	uint32_t *chains;	/* the evicted table: heads, by hash; used under the lock only */
	uint32_t chains_mask;		/* fixed after xcache_init(), too */
	_Atomic uint32_t nr[XCACHE_NR_STATES];	/* written under the lock, read without */
};

/* Private memory that a cache of nr_entries allocates. */
size_t xcache_mem_bytes(uint32_t nr_entries);

/* 0, -EINVAL for impossible parameters, -ENOMEM, or node_init's error. */
__attribute__((warn_unused_result))
int xcache_init(struct xcache *c, const struct xcache_params *p);

/* Frees the memory and calls no hook. Nobody may be inside, whatever references are left. */
void xcache_fini(struct xcache *c);

/* The active entry of that name, with a reference; or XCACHE_NONE. */
__attribute__((warn_unused_result))
uint32_t xcache_lookup(struct xcache *c, const char *name, uint64_t hash);
/* The same, and it is no use of the entry: the next search for a victim may take it. */
uint32_t xcache_lookup_unused(struct xcache *c, const char *name, uint64_t hash);

/* The same, also where it was evicted and is still referenced: it stays evicted. Takes the lock. */
__attribute__((warn_unused_result))
uint32_t xcache_find(struct xcache *c, const char *name, uint64_t hash);

/* For batches, two steps ahead of a lookup: first the table's line ... */
static inline void xcache_prefetch(const struct xcache *c, uint64_t hash)
{
	xhash_prefetch(&c->active, hash);
}

/* ... then, when that has arrived, what is perhaps its entry, or XCACHE_NONE ... */
static inline uint32_t xcache_guess(const struct xcache *c, uint64_t hash)
{
	return xhash_peek(&c->active, hash);
}

/* ... and the lines of that and of its name, into the second cache. */
static inline void xcache_prefetch_entry(const struct xcache *c, uint32_t idx)
{
	__builtin_prefetch(&c->entries[idx], 1, 2);
	__builtin_prefetch(c->params.names + idx * c->params.name_stride, 0, 2);
}

/* Makes the name active and takes a reference:
 *   0         *idx is a new entry
 *   1         *idx is its entry of before, which had been evicted and was still referenced
 *   -EEXIST   *idx is active already, and referenced for the caller all the same
 *   -ENOSPC   no entry is free and none could be freed; *idx is XCACHE_NONE
 *   -EINVAL   the name is empty; -ENAMETOOLONG: it does not fit
 * At most one entry is evicted, unless victims turn out to be referenced by others. */
__attribute__((warn_unused_result))
int xcache_insert(struct xcache *c, const char *name, uint64_t hash, uint32_t *idx);

/* A reference to whatever is at that index; false: nothing is. For who goes through all entries. */
__attribute__((warn_unused_result))
bool xcache_try_get(struct xcache *c, uint32_t idx);

/* Whether that entry is active under that name, for who knows that it cannot become FREE meanwhile;
 * it may be evicted at any moment. `name` has room for name_max bytes; what is behind its end does
 * not count. */
bool xcache_is_active(const struct xcache *c, uint32_t idx, const char *name, uint64_t hash);

/* Counts as a lookup: the next search for a victim passes it by. The caller has a reference, or
 * knows as above. */
void xcache_touch(struct xcache *c, uint32_t idx);
/* The opposite: nothing is lost with the entry, and the next search for a victim takes it first. */
void xcache_cool(struct xcache *c, uint32_t idx);

/* One more reference, by somebody who has one or is called by a hook. */
void xcache_get(struct xcache *c, uint32_t idx);

/* Lets one go. */
void xcache_put(struct xcache *c, uint32_t idx);

/* Evicts this entry; false if it is not active. The caller has a reference, and keeps it. */
bool xcache_remove(struct xcache *c, uint32_t idx);

/* The same, of that name, for who has no reference: 0, or -ENOENT. */
__attribute__((warn_unused_result))
int xcache_invalidate(struct xcache *c, const char *name, uint64_t hash);

/* Evicts the next victim, as an insertion that finds no free entry does, and says which it was,
 * without a reference, so for information only; or XCACHE_NONE. */
uint32_t xcache_evict_lru(struct xcache *c);

/* The next victim, not evicted, with a reference; or XCACHE_NONE. may_evict is not asked. */
__attribute__((warn_unused_result))
uint32_t xcache_peek_and_get_lru(struct xcache *c);

/* Makes entry idx active under the name that stands in its memory, with no reference for the
 * caller: for a successor that rebuilds the index from names that outlived its predecessor. Before
 * any insert. Calls no hook. Restored later means used more recently. -EINVAL: no such entry or no
 * valid name in it (another process wrote it); -EBUSY: the entry is not free; -EEXIST: another
 * entry has that name. */
__attribute__((warn_unused_result))
int xcache_restore(struct xcache *c, uint32_t idx, uint64_t hash);

/* Any thread; may be out of date at once. */
uint32_t xcache_nr_active(const struct xcache *c);
uint32_t xcache_nr_evicted(const struct xcache *c);
uint32_t xcache_nr_free(const struct xcache *c);

/* Of an entry that the caller has a reference to, or whose hook is running. refs includes the
 * table's: a may_evict that says `refs == 1` spares what is in use. */
uint64_t xcache_hash_of(const struct xcache *c, uint32_t idx);
const char *xcache_name(const struct xcache *c, uint32_t idx);
uint32_t xcache_refs(const struct xcache *c, uint32_t idx);

/* Exact under the lock (in hooks) and when nobody is inside. */
enum xcache_state xcache_state_of(const struct xcache *c, uint32_t idx);

/* Asserts C1 to C5. Nobody may be inside. */
void xcache_check(struct xcache *c);

#endif
