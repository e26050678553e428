/* chunk - the slots of objects, 64 at a time, in pages of the cache itself.
 *
 * A chunk is an eighth of a page. Number n is the (n % 8)th eighth of page n / 8, so a successor
 * finds it with nothing but the entry's chunk word. When no chunk is free, a page is taken as for a
 * bucket, and cut. When all its chunks are free again, the page goes back. So a cache of dense
 * objects spends 0.2 % of its memory on slots. A cache of objects with an eighth of their buckets
 * spends 1.6 %. Slots never run out while there are pages.
 *
 * Contract: chunks_ensure(), chunk_release() and chunk_move() inside the object, chunk_feed()
 * anywhere, chunk_restore() before serving. mem_lock guards masks and list; it is a leaf.
 *
 * Invariants:
 *   K1  A chunk of a page that was cut is in exactly one entry's chunk word, or its bit is set in
 *       page_use[page].chunks_free.
 *   K2  A page is in the list chunk_pages iff it was cut, has a free chunk, and does not leave the
 *       cache. No page in the list has eight free chunks, except within one job, between
 *       chunk_feed() and the taking of chunks: such a page is at the tail. Free chunks of pages
 *       that leave are counted nowhere.
 *   K3  The slots of a chunk that is stored into an entry are FREE, or the same as in the chunk
 *       that it replaces.
 *   K4  A page's owner word is OWNER_CHUNKS iff it was cut.
 */
#include <assert.h>

#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "xtypes/xkill.h"

#define PER_PAGE CHUNKS_PER_PAGE

/* ---- taking and giving back ---- */

/* Before a chunk of the entry, or its name, can be another's. Who is inside, or finalizes it. */
static void version_next(struct arena_object *e)
{
	/* release: partner is the acquire in a reader's last look (xseg/direct.c): who has seen in
	 * a slot what another object stored there after this sees the version, too */
	atomic_store_explicit(&e->version,
		atomic_load_explicit(&e->version, memory_order_relaxed) + 1, memory_order_release);
}

static void chunk_store(struct cached *k, struct object *o, uint32_t nr, uint32_t chunk)
{
	_Atomic uint64_t *slot = chunk_at(k, chunk)->slot;

	assert(xworkq_is_owned(&o->q));				/* C1 */
#pragma GCC unroll 8
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
		atomic_store_explicit(
			&slot[s], slot_word(BUCKET_FREE, 0, 0), memory_order_relaxed);
	object_entry(k, o)->chunk_used[nr] = 0;
	XKILL(CHUNK_CLEARED);
	/* release: the slots are FREE before the chunk is the object's (K3); a successor reads
	 * both */
	atomic_store_explicit(&object_entry(k, o)->chunk[nr], chunk + 1, memory_order_release);
}

bool chunks_ensure(struct cport *ps, struct object *o, uint32_t first, uint32_t nr)
{
	struct cached *k = ps->cache;
	struct arena_object *e = object_entry(k, o);
	uint32_t lo = first / CHUNK_SLOTS, hi = (first + nr - 1) / CHUNK_SLOTS, need = 0,
		 spare = NO_PAGE, i;
	uint32_t got[OBJECT_CHUNKS], lacks[OBJECT_CHUNKS];
	bool enough;

	for (i = lo; i <= hi; i++)
		if (atomic_load_explicit(&e->chunk[i], memory_order_relaxed) == 0)
			lacks[need++] = i;
	if (need == 0)
		return true;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	enough = atomic_load_explicit(&memory_of(k)->nr_free_chunks, memory_order_relaxed) >= need;
	for (i = 0; i < need && enough; i++)
		got[i] = chunk_take(k);
	if (enough)
		spare = page_spare(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (!enough)
		return false;
	page_put(ps, spare);
	for (i = 0; i < need; i++)
		chunk_store(k, o, lacks[i], got[i]);
	return true;
}

void chunk_release(struct cport *ps, struct object *o, uint32_t nr)
{
	struct cached *k = ps->cache;
	_Atomic uint32_t *word = &object_entry(k, o)->chunk[nr];
	uint32_t chunk = atomic_load_explicit(word, memory_order_relaxed);
	_Atomic uint64_t *slot;

	if (chunk-- == 0)
		return;
	assert(xworkq_is_owned(&o->q));				/* C1 */
	slot = chunk_at(k, chunk)->slot;
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++) {
		enum bucket_state state = slot_state(slot_read(k, &slot[s]));

		assert(state <= BUCKET_INVALID);		/* O2 */
		o->nr[state]--;
	}
	o->nr[BUCKET_FREE] += CHUNK_SLOTS;
	version_next(object_entry(k, o));
	/* release: it is out of this entry before it can be in another's */
	atomic_store_explicit(word, 0, memory_order_release);
	XKILL(CHUNK_DROPPED);
	chunk_put(ps, chunk);
}

void chunks_finalize(struct cached *k, uint32_t idx)
{
	version_next(&object_of(k)->entries[idx]);
	for (uint32_t i = 0; i < OBJECT_CHUNKS; i++) {
		uint32_t chunk = atomic_exchange(&object_of(k)->entries[idx].chunk[i], 0);
		bool whole;

		if (chunk-- == 0)
			continue;
		pthread_mutex_lock(&memory_of(k)->mem_lock);
		whole = chunk_return(k, chunk);
		pthread_mutex_unlock(&memory_of(k)->mem_lock);
		if (whole)
			page_free(k, chunk / PER_PAGE);
	}
}

/* ---- moving ---- */

/* The old chunk is the truth until the new one's number is stored. */
void chunk_move(struct cport *ps, struct object *o, uint32_t nr, uint32_t to)
{
	struct cached *k = ps->cache;
	_Atomic uint32_t *word = &object_entry(k, o)->chunk[nr];
	uint32_t from = atomic_load_explicit(word, memory_order_relaxed);
	_Atomic uint64_t *old, *new;

	if (from == 0) { /* it was one of this object's last buckets whose page we have cut */
		chunk_put(ps, to);
		return;
	}
	assert(xworkq_is_owned(&o->q) && to != from - 1);	/* C1, K1 */
	old = chunk_at(k, from - 1)->slot;
	new = chunk_at(k, to)->slot;
	for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
		atomic_store_explicit(&new[s],
			atomic_load_explicit(&old[s], memory_order_relaxed), memory_order_relaxed);
	XKILL(CHUNK_COPIED);
	version_next(object_entry(k, o));
	/* release: the slots are there before the chunk is the object's (K3); a successor reads
	 * both */
	atomic_store_explicit(word, to + 1, memory_order_release);
	chunk_put(ps, from - 1);
}
