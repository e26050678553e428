/* xcache - lookup, insertion, eviction and the life of an entry. The contract, the states, the
 * invariants C1 to C5, and the reason why lookups are safe without a lock, are in xcache.h.
 *
 * A function whose name ends in _locked needs c->lock. Order inside a change of state: an entry
 * leaves its old table first. Then its state is set and the hook under the lock is called. Then it
 * enters its new table. An eviction calls its hook last.
 */
#include "xtypes/xcache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xtypes/xhuge.h"
#include "xtypes/xline.h"
#include "xtypes/xstate.h"

#define TO(s) (1u << XCACHE_##s)

/* The table in xcache.h. */
static const struct xstates states = {
	.what = "cache entry",
	XSTATE(XCACHE_, FREE, TO(ACTIVE)),
	XSTATE(XCACHE_, ACTIVE, TO(EVICTED)),
	XSTATE(XCACHE_, EVICTED, TO(ACTIVE) | TO(FREE)),
};

#define HOOK(c, name, idx)						\
	do {								\
		if ((c)->ops.name)					\
			(c)->ops.name((c)->params.arg, (idx));		\
	} while (0)

static void cache_lock(struct xcache *c)
{
	int rc = pthread_mutex_lock(&c->lock);

	assert(rc == 0);
	(void)rc;
}

static void cache_unlock(struct xcache *c)
{
	int rc = pthread_mutex_unlock(&c->lock);

	assert(rc == 0);
	(void)rc;
}

static uint32_t nr_get(const struct xcache *c, enum xcache_state s)
{
	return atomic_load_explicit(&c->nr[s], memory_order_relaxed);
}

static enum xcache_state state_get(const struct xcache *c, uint32_t idx)
{
	return (enum xcache_state)atomic_load_explicit(
		&c->entries[idx].state, memory_order_relaxed);
}

/* The only writer of an entry's state after xcache_init(). */
static void state_set_locked(struct xcache *c, uint32_t idx, enum xcache_state to)
{
	enum xcache_state from = state_get(c, idx);

	xstate_check(&states, from, to);
	atomic_store_explicit(&c->entries[idx].state, (uint8_t)to, memory_order_relaxed);
	atomic_store_explicit(&c->nr[from], nr_get(c, from) - 1, memory_order_relaxed);
	atomic_store_explicit(&c->nr[to], nr_get(c, to) + 1, memory_order_relaxed);
}

static char *name_of(const struct xcache *c, uint32_t idx)
{
	return c->params.names + idx * c->params.name_stride;
}

/* Bounded: the memory of the names may be shared, and what stands in it is input. */
static bool name_is(const struct xcache *c, uint32_t idx, const char *name)
{
	return strncmp(name_of(c, idx), name, c->params.name_max) == 0;
}

/* ---- start and end ---- */

/* Chains of the evicted table: a power of two, so that there is one for each one or two entries. */
static uint32_t nr_chains(uint32_t nr_entries)
{
	uint32_t nr = 1;

	while (nr <= nr_entries / 2)
		nr *= 2;
	return nr;
}

size_t xcache_mem_bytes(uint32_t nr_entries)
{
	return xline_round(nr_entries * sizeof(struct xcache_entry)) +
	       xline_round(nr_entries * sizeof(struct xlist_node)) +
	       xline_round(xhash_mem_bytes(nr_entries)) +
	       xline_round(nr_chains(nr_entries) * sizeof(uint32_t));
}

/* Cuts the allocation into entries, list nodes and the two tables. */
static void mem_carve(struct xcache *c, char *at)
{
	uint32_t nr = c->params.nr_entries, i;
	struct xlist_node *nodes;

	c->entries = (struct xcache_entry *)at;
	at += xline_round(nr * sizeof(struct xcache_entry));
	nodes = (struct xlist_node *)at;
	at += xline_round(nr * sizeof(struct xlist_node));
	xlist_init(&c->lru, nodes);
	xlist_init(&c->free, nodes);
	xhash_init(&c->active, at, nr);
	at += xline_round(xhash_mem_bytes(nr));
	c->chains = (uint32_t *)at;
	c->chains_mask = nr_chains(nr) - 1;
	for (i = 0; i <= c->chains_mask; i++)
		c->chains[i] = XLIST_NONE;
}

static int entry_init(struct xcache *c, uint32_t idx)
{
	struct xcache_entry *e = &c->entries[idx];

	atomic_init(&e->ref, 0);
	atomic_init(&e->hot, 0);
	atomic_init(&e->state, XCACHE_FREE);
	e->hash = 0;
	xlist_node_init(c->free.nodes, idx);
	xlist_push_tail(&c->free, idx);
	return c->ops.node_init ? c->ops.node_init(c->params.arg, idx) : 0;
}

int xcache_init(struct xcache *c, const struct xcache_params *p)
{
	uint32_t i;
	char *mem;
	int rc;

	if (p->nr_entries == 0 || p->nr_entries > XHASH_CAPACITY_MAX || !p->names ||
	    p->name_max < 2 || p->name_max > UINT16_MAX || p->name_max > p->name_stride)
		return -EINVAL;
	memset(c, 0, sizeof(*c));
	c->params = *p;
	if (p->ops)
		c->ops = *p->ops;
	mem = xhuge_take(&c->mem, xcache_mem_bytes(p->nr_entries));
	if (!mem)
		return -ENOMEM;
	mem_carve(c, mem);
	rc = -pthread_mutex_init(&c->lock, NULL);
	if (rc)
		goto out_free;
	for (i = 0; i < p->nr_entries; i++) {
		rc = entry_init(c, i);
		if (rc)
			goto out_lock;
	}
	atomic_init(&c->nr[XCACHE_FREE], p->nr_entries);
	return 0;

out_lock:
	pthread_mutex_destroy(&c->lock);
out_free:
	xhuge_give(&c->mem);
	return rc;
}

void xcache_fini(struct xcache *c)
{
	pthread_mutex_destroy(&c->lock);
	xhuge_give(&c->mem);
}

/* ---- the evicted table ---- */

static uint32_t *chain_of(const struct xcache *c, uint64_t hash)
{
	return &c->chains[xhash_tag(hash) & c->chains_mask];
}

static void evicted_add_locked(struct xcache *c, uint32_t idx)
{
	uint32_t *head = chain_of(c, c->entries[idx].hash);
	struct xlist_node *nodes = c->free.nodes;

	nodes[idx] = (struct xlist_node){ .prev = XLIST_NONE, .next = *head };
	if (*head != XLIST_NONE)
		nodes[*head].prev = idx;
	*head = idx;
}

static void evicted_remove_locked(struct xcache *c, uint32_t idx)
{
	struct xlist_node *nodes = c->free.nodes, *node = &nodes[idx];

	if (node->prev != XLIST_NONE)
		nodes[node->prev].next = node->next;
	else
		*chain_of(c, c->entries[idx].hash) = node->next;
	if (node->next != XLIST_NONE)
		nodes[node->next].prev = node->prev;
	xlist_node_init(nodes, idx);
}

static uint32_t evicted_find_locked(const struct xcache *c, const char *name, uint64_t hash)
{
	/* most often there is none, and a chain is a line of memory that nothing else reads */
	uint32_t idx = nr_get(c, XCACHE_EVICTED) ? *chain_of(c, hash) : XLIST_NONE;

	while (idx != XLIST_NONE && (c->entries[idx].hash != hash || !name_is(c, idx, name)))
		idx = c->free.nodes[idx].next;
	return idx;
}

/* ---- references ---- */

static bool ref_get_unless_free(struct xcache *c, uint32_t idx)
{
	_Atomic uint32_t *ref = &c->entries[idx].ref;
	uint32_t n = atomic_load_explicit(ref, memory_order_relaxed);

	while (n != 0) {
		/* acquire: partner is the release in entry_publish_locked(); name and hash of this
		 * life of the entry are complete */
		if (atomic_compare_exchange_weak_explicit(ref, &n, n + 1, memory_order_acquire,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

bool xcache_try_get(struct xcache *c, uint32_t idx)
{
	return ref_get_unless_free(c, idx);
}

/* For who has a reference, or the lock and an entry that is not FREE. */
static void ref_add(struct xcache *c, uint32_t idx, uint32_t nr)
{
	uint32_t old = atomic_fetch_add_explicit(&c->entries[idx].ref, nr, memory_order_relaxed);

	assert(old != 0 && old < UINT32_MAX / 2);
}

/* Drops one reference; with the last one the entry is freed. True: the caller owes the free hook
 * after unlocking. */
static bool ref_drop_locked(struct xcache *c, uint32_t idx)
{
	struct xcache_entry *e = &c->entries[idx];
	/* acq_rel: partner is the release of the other drops, in xcache_put(); what every holder
	 * did comes before finalize and the next life of the entry */
	uint32_t old = atomic_fetch_sub_explicit(&e->ref, 1, memory_order_acq_rel);

	assert(old != 0);
	if (old != 1)
		return false;
	assert(state_get(c, idx) == XCACHE_EVICTED);	/* else somebody put what was not his */
	HOOK(c, put, idx);
	evicted_remove_locked(c, idx);
	HOOK(c, finalize, idx);
	state_set_locked(c, idx, XCACHE_FREE);
	xlist_push_head(&c->free, idx);
	return true;
}

void xcache_get(struct xcache *c, uint32_t idx)
{
	ref_add(c, idx, 1);
}

void xcache_put(struct xcache *c, uint32_t idx)
{
	_Atomic uint32_t *ref = &c->entries[idx].ref;
	uint32_t n = atomic_load_explicit(ref, memory_order_relaxed);
	bool freed;

	while (n > 1) {
		/* release: partner is the acquire of the last drop, in ref_drop_locked() */
		if (atomic_compare_exchange_weak_explicit(ref, &n, n - 1, memory_order_release,
							  memory_order_relaxed))
			return;
	}
	cache_lock(c);
	freed = ref_drop_locked(c, idx);
	cache_unlock(c);
	if (freed)
		HOOK(c, free, idx);
}

/* ---- lookup ---- */

struct lookup {
	struct xcache *c;
	const char *name;
};

static bool lookup_eq(void *arg, uint32_t idx)
{
	struct lookup *l = arg;

	if (!ref_get_unless_free(l->c, idx))
		return false;
	if (name_is(l->c, idx, l->name))
		return true;
	xcache_put(l->c, idx);
	return false;
}

static bool lookup_eq_locked(void *arg, uint32_t idx)
{
	struct lookup *l = arg;

	return name_is(l->c, idx, l->name);
}

/* Read before it is written: hits of a popular entry leave this line alone. */
static void hot_set(struct xcache_entry *e)
{
	if (!atomic_load_explicit(&e->hot, memory_order_relaxed))
		atomic_store_explicit(&e->hot, 1, memory_order_relaxed);
}

void xcache_touch(struct xcache *c, uint32_t idx)
{
	hot_set(&c->entries[idx]);
}

void xcache_cool(struct xcache *c, uint32_t idx)
{
	cache_lock(c);
	if (state_get(c, idx) == XCACHE_ACTIVE) {
		atomic_store_explicit(&c->entries[idx].hot, 0, memory_order_relaxed);
		xlist_remove(&c->lru, idx);
		xlist_push_tail(&c->lru, idx);
	}
	cache_unlock(c);
}

uint32_t xcache_lookup_unused(struct xcache *c, const char *name, uint64_t hash)
{
	struct lookup l = { c, name };

	return xhash_find(&c->active, hash, lookup_eq, &l);
}

uint32_t xcache_lookup(struct xcache *c, const char *name, uint64_t hash)
{
	uint32_t idx = xcache_lookup_unused(c, name, hash);

	if (idx != XHASH_NONE)
		hot_set(&c->entries[idx]);
	return idx;
}

/* No reference is taken: nothing in a table can become FREE while we have the lock. */
static uint32_t active_find_locked(struct xcache *c, const char *name, uint64_t hash)
{
	struct lookup l = { c, name };

	return xhash_find(&c->active, hash, lookup_eq_locked, &l);
}

uint32_t xcache_find(struct xcache *c, const char *name, uint64_t hash)
{
	uint32_t idx;

	cache_lock(c);
	idx = active_find_locked(c, name, hash);
	if (idx == XCACHE_NONE)
		idx = evicted_find_locked(c, name, hash);
	if (idx != XCACHE_NONE)
		ref_add(c, idx, 1);
	cache_unlock(c);
	return idx;
}

/* ---- eviction ---- */

/* Too many vetoes in one search: the tail goes to the head, so that the next one sees others. */
static void vetoed_rotate_locked(struct xcache *c)
{
	uint32_t i;

	for (i = 0; i < XCACHE_VETOES_MAX; i++)
		xlist_move_head(&c->lru, xlist_tail(&c->lru));
}

/* The next victim, from the tail: who was hot gets a second chance at the head, who is vetoed is
 * passed over in his place. Bounded by the two limits. */
static uint32_t victim_choose_locked(struct xcache *c, bool ask)
{
	uint32_t vetoes = 0, chances = 0, prev;
	uint32_t idx = xlist_tail(&c->lru);

	for (; idx != XLIST_NONE; idx = prev) {
		struct xcache_entry *e = &c->entries[idx];

		prev = xlist_prev(&c->lru, idx);
		if (chances < XCACHE_CHANCES_MAX &&
		    atomic_load_explicit(&e->hot, memory_order_relaxed)) {
			atomic_store_explicit(&e->hot, 0, memory_order_relaxed);
			xlist_move_head(&c->lru, idx);
			chances++;
			if (prev == XLIST_NONE)		/* it was the head: it is its own next */
				prev = idx;
			continue;
		}
		if (!ask || !c->ops.may_evict || c->ops.may_evict(c->params.arg, idx))
			return idx;
		if (++vetoes == XCACHE_VETOES_MAX) {
			vetoed_rotate_locked(c);
			return XCACHE_NONE;
		}
	}
	return XCACHE_NONE;
}

/* ACTIVE to EVICTED. The table's reference is the caller's now: finish with evict_finish(). */
static void evict_locked(struct xcache *c, uint32_t idx)
{
	if (!xhash_remove(&c->active, c->entries[idx].hash, idx))
		assert(!"an active entry is in its table");
	xlist_remove(&c->lru, idx);
	state_set_locked(c, idx, XCACHE_EVICTED);
	evicted_add_locked(c, idx);
	HOOK(c, evict, idx);
}

/* The part of an eviction that is done without the lock. */
static void evict_finish(struct xcache *c, uint32_t idx)
{
	HOOK(c, post_evict, idx);
	xcache_put(c, idx);
}

bool xcache_remove(struct xcache *c, uint32_t idx)
{
	bool was_active;

	cache_lock(c);
	was_active = state_get(c, idx) == XCACHE_ACTIVE;
	if (was_active)
		evict_locked(c, idx);
	cache_unlock(c);
	if (was_active)
		evict_finish(c, idx);
	return was_active;
}

int xcache_invalidate(struct xcache *c, const char *name, uint64_t hash)
{
	uint32_t idx;

	cache_lock(c);
	idx = active_find_locked(c, name, hash);
	if (idx != XCACHE_NONE)
		evict_locked(c, idx);
	cache_unlock(c);
	if (idx == XCACHE_NONE)
		return -ENOENT;
	evict_finish(c, idx);
	return 0;
}

uint32_t xcache_evict_lru(struct xcache *c)
{
	uint32_t idx;

	cache_lock(c);
	idx = victim_choose_locked(c, true);
	if (idx != XCACHE_NONE)
		evict_locked(c, idx);
	cache_unlock(c);
	if (idx != XCACHE_NONE)
		evict_finish(c, idx);
	return idx;
}

uint32_t xcache_peek_and_get_lru(struct xcache *c)
{
	uint32_t idx;

	cache_lock(c);
	idx = victim_choose_locked(c, false);
	if (idx != XCACHE_NONE)
		ref_add(c, idx, 1);
	cache_unlock(c);
	return idx;
}

/* ---- insertion ---- */

/* Puts an entry that is ACTIVE already into the active table and the LRU. */
static void active_add_locked(struct xcache *c, uint32_t idx)
{
	int rc = xhash_insert(&c->active, c->entries[idx].hash, idx);

	assert(rc == 0);	/* the table has room for all entries */
	(void)rc;
	xlist_push_head(&c->lru, idx);
}

/* The first non-zero count of an entry's new life. */
static void entry_publish_locked(struct xcache *c, uint32_t idx, uint32_t refs)
{
	/* release: partner is the acquire in ref_get_unless_free(); name and hash come before */
	atomic_store_explicit(&c->entries[idx].ref, refs, memory_order_release);
}

static void insert_fresh_locked(struct xcache *c, uint32_t idx, const char *name, uint64_t hash)
{
	struct xcache_entry *e = &c->entries[idx];

	xlist_remove(&c->free, idx);
	state_set_locked(c, idx, XCACHE_ACTIVE);
	/* its length was checked by xcache_insert() */
	e->name_bytes = (uint16_t)(strlen(name) + 1);
	memcpy(name_of(c, idx), name, e->name_bytes);
	e->hash = hash;
	atomic_store_explicit(&e->hot, 0, memory_order_relaxed);
	HOOK(c, init, idx);
	entry_publish_locked(c, idx, 2);	/* the table's and the caller's */
	active_add_locked(c, idx);
}

static void insert_again_locked(struct xcache *c, uint32_t idx)
{
	evicted_remove_locked(c, idx);
	ref_add(c, idx, 2);			/* the table's and the caller's */
	state_set_locked(c, idx, XCACHE_ACTIVE);
	HOOK(c, reinsert, idx);
	active_add_locked(c, idx);
}

/* Inserts if it can be done without an eviction; -EAGAIN if not. */
static int insert_try_locked(struct xcache *c, const char *name, uint64_t hash, uint32_t *idx)
{
	*idx = active_find_locked(c, name, hash);
	if (*idx != XCACHE_NONE) {
		ref_add(c, *idx, 1);
		hot_set(&c->entries[*idx]);
		return -EEXIST;
	}
	*idx = evicted_find_locked(c, name, hash);
	if (*idx != XCACHE_NONE) {
		insert_again_locked(c, *idx);
		return 1;
	}
	*idx = xlist_head(&c->free);
	if (*idx == XLIST_NONE)
		return -EAGAIN;
	insert_fresh_locked(c, *idx, name, hash);
	return 0;
}

/* A victim freed by the loop goes to the head of the free list and is taken from there before the
 * lock is dropped, so nobody can snatch it and one eviction is enough. */
int xcache_insert(struct xcache *c, const char *name, uint64_t hash, uint32_t *idx)
{
	uint32_t victims = 0, freed = XCACHE_NONE, victim;
	size_t len = strnlen(name, c->params.name_max);
	int rc;

	*idx = XCACHE_NONE;
	if (len == 0)
		return -EINVAL;
	if (len == c->params.name_max)
		return -ENAMETOOLONG;
	cache_lock(c);
	while ((rc = insert_try_locked(c, name, hash, idx)) == -EAGAIN) {
		victim = XCACHE_NONE;
		if (victims++ < XCACHE_VICTIMS_MAX)
			victim = victim_choose_locked(c, true);
		if (victim == XCACHE_NONE) {
			rc = -ENOSPC;
			break;
		}
		evict_locked(c, victim);
		if (c->ops.post_evict) {
			cache_unlock(c);
			c->ops.post_evict(c->params.arg, victim);
			cache_lock(c);
		}
		if (ref_drop_locked(c, victim))
			freed = victim;
	}
	cache_unlock(c);
	/* not taken over: while post_evict ran the name came, or another entry became free */
	if (freed != XCACHE_NONE && freed != *idx)
		HOOK(c, free, freed);
	return rc;
}

int xcache_restore(struct xcache *c, uint32_t idx, uint64_t hash)
{
	const char *name;
	size_t len;
	int rc = 0;

	if (idx >= c->params.nr_entries)
		return -EINVAL;
	name = name_of(c, idx);
	cache_lock(c);
	len = strnlen(name, c->params.name_max);
	if (state_get(c, idx) != XCACHE_FREE) {
		rc = -EBUSY;
	} else if (len == 0 || len == c->params.name_max) {
		rc = -EINVAL;
	} else if (active_find_locked(c, name, hash) != XCACHE_NONE) {
		rc = -EEXIST;
	} else {
		xlist_remove(&c->free, idx);
		state_set_locked(c, idx, XCACHE_ACTIVE);
		c->entries[idx].hash = hash;
		c->entries[idx].name_bytes = (uint16_t)(len + 1);
		entry_publish_locked(c, idx, 1);	/* the table's */
		active_add_locked(c, idx);
	}
	cache_unlock(c);
	return rc;
}

/* ---- what can be asked ---- */

uint32_t xcache_nr_active(const struct xcache *c)
{
	return nr_get(c, XCACHE_ACTIVE);
}

uint32_t xcache_nr_evicted(const struct xcache *c)
{
	return nr_get(c, XCACHE_EVICTED);
}

uint32_t xcache_nr_free(const struct xcache *c)
{
	return nr_get(c, XCACHE_FREE);
}

uint64_t xcache_hash_of(const struct xcache *c, uint32_t idx)
{
	return c->entries[idx].hash;
}

const char *xcache_name(const struct xcache *c, uint32_t idx)
{
	return name_of(c, idx);
}

uint32_t xcache_refs(const struct xcache *c, uint32_t idx)
{
	return atomic_load_explicit(&c->entries[idx].ref, memory_order_relaxed);
}

static uint64_t word_at(const char *name, size_t at)
{
	uint64_t w;

	memcpy(&w, name + at, sizeof(w));
	return w;
}

/* As name_is(), but without a call, and no byte after another: a name has three or four words. */
static inline bool name_is_by_words(const struct xcache *c, uint32_t idx, const char *name)
{
	size_t bytes = c->entries[idx].name_bytes, at;
	const char *own = name_of(c, idx);

	if (bytes < sizeof(uint64_t))
		return memcmp(own, name, bytes) == 0;
	for (at = 0; at < bytes - sizeof(uint64_t); at += sizeof(uint64_t))
		if (word_at(own, at) != word_at(name, at))
			return false;
	at = bytes - sizeof(uint64_t);
	return word_at(own, at) == word_at(name, at);
}

bool xcache_is_active(const struct xcache *c, uint32_t idx, const char *name, uint64_t hash)
{
	return state_get(c, idx) == XCACHE_ACTIVE && c->entries[idx].hash == hash &&
	       name_is_by_words(c, idx, name);
}

enum xcache_state xcache_state_of(const struct xcache *c, uint32_t idx)
{
	return state_get(c, idx);
}

/* ---- invariants ---- */

static bool check_eq(void *arg, uint32_t idx)
{
	return *(uint32_t *)arg == idx;
}

static bool table_has(const struct xhash *h, uint64_t hash, uint32_t idx)
{
	return xhash_find(h, hash, check_eq, &idx) == idx;
}

static bool chain_has(const struct xcache *c, uint64_t hash, uint32_t idx)
{
	uint32_t at = *chain_of(c, hash), nr = 0;

	while (at != XLIST_NONE && at != idx && nr++ < c->params.nr_entries)
		at = c->free.nodes[at].next;
	return at == idx;
}

/* Every chain: its links, and how many are in all of them. */
static uint32_t check_chains(const struct xcache *c)
{
	uint32_t i, idx, last, nr = 0;

	for (i = 0; i <= c->chains_mask; i++)
		for (idx = c->chains[i], last = XLIST_NONE; idx != XLIST_NONE;
			last = idx, idx = c->free.nodes[idx].next) {
			assert(c->entries[idx].state == XCACHE_EVICTED);
			assert(c->free.nodes[idx].prev == last);
			nr++;
			assert(nr <= c->params.nr_entries);
		}
	return nr;
}

static void check_entry(struct xcache *c, uint32_t idx)
{
	const struct xcache_entry *e = &c->entries[idx];
	enum xcache_state state = state_get(c, idx);
	bool active = table_has(&c->active, e->hash, idx);
	bool evicted = chain_has(c, e->hash, idx);
	uint32_t first;

	assert((xcache_refs(c, idx) == 0) == (state == XCACHE_FREE));	/* C1 C2 C3 */
	assert(xlist_in_list(&c->lru, idx));	/* in one of the two, or in its chain */
	assert(active == (state == XCACHE_ACTIVE));
	assert(evicted == (state == XCACHE_EVICTED));
	if (state == XCACHE_FREE)
		return;
	first = active_find_locked(c, name_of(c, idx), e->hash);		/* C4 */
	assert(first == (active ? idx : XCACHE_NONE));
	first = evicted_find_locked(c, name_of(c, idx), e->hash);
	assert(first == (evicted ? idx : XCACHE_NONE));
}

static void check_list(const struct xcache *c, const struct xlist *l, enum xcache_state s)
{
	uint32_t idx = xlist_head(l), last = XLIST_NONE, nr = 0;

	for (; idx != XLIST_NONE; idx = xlist_next(l, idx)) {
		assert(state_get(c, idx) == s);
		assert(xlist_prev(l, idx) == last);
		nr++;
		assert(nr <= c->params.nr_entries);
		last = idx;
	}
	assert(last == xlist_tail(l) && nr == l->nr && nr == nr_get(c, s));	/* C5 */
}

void xcache_check(struct xcache *c)
{
	uint32_t i;

	cache_lock(c);
	for (i = 0; i < c->params.nr_entries; i++)
		check_entry(c, i);
	check_list(c, &c->lru, XCACHE_ACTIVE);
	check_list(c, &c->free, XCACHE_FREE);
	xhash_check(&c->active);
	assert(xhash_nr(&c->active) == nr_get(c, XCACHE_ACTIVE));
	assert(check_chains(c) == nr_get(c, XCACHE_EVICTED));
	assert(nr_get(c, XCACHE_FREE) + nr_get(c, XCACHE_ACTIVE) + nr_get(c, XCACHE_EVICTED) ==
	       c->params.nr_entries);
	cache_unlock(c);
}
