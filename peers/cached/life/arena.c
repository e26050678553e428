/* arena - the tables that outlive cached: lays them out, and rebuilds everything from them (rules
 * R1, R2).
 *
 * The truth is in three places: an entry's `used` mark, its chunk words, and the slots. One walk
 * through them, arena_load(), makes the rest. These are the xcache's index, counts, the pools of
 * free pages and chunks, the list of clean pages, dirty sets and the list of dirty objects. The
 * walk reads memory that a dead process wrote, and perhaps damaged. So every index is checked
 * before it is used (R5). An entry, chunk or slot that does not add up is dropped and counted.
 *
 * After a kill each slot is loaded like this:
 *   VALID, DIRTY    stays
 *   WRITING         DIRTY: the flush may or may not have arrived; it is redone after the old one
 *                   has ended (its object is HELD until then, see adopt.c, or nothing is served
 *                   before)
 *   LOADING         INVALID: the page may be half filled
 *   BYPASS          INVALID: its write is STARTED, and is redone
 *
 * Contract: before serving, one thread.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/life/cached.h"
#include "peers/common/log/log.h"
#include "xseg/arenas.h"
#include "xtypes/xkill.h"

#define ARENA_MAGIC   0x6863616364657831ull
#define ARENA_VERSION XSEG_FORMAT_CACHED

#define COUNTED(what, bytes) _Static_assert(sizeof(what) == (bytes), "cache_cost.h counts it")
COUNTED(struct creq, CACHE_CREQ_BYTES);
COUNTED(struct child, CACHE_CHILD_BYTES);
COUNTED(struct extent, CACHE_EXTENT_PRIVATE);
_Static_assert(sizeof(struct cached) <= CACHE_PEER_BYTES, "cache_cost.h counts it");
_Static_assert(sizeof(struct arena_head) <= CACHE_HEAD_BYTES, "cache_cost.h counts it");

/* Whose layout this build does not know. */
static bool head_is_other(const struct arena_head *h)
{
	return atomic_load_explicit(&h->ready, memory_order_acquire) == 1 &&
	       h->magic == ARENA_MAGIC && h->version != ARENA_VERSION;
}

/* Of a private copy (R5). */
static bool head_ok(const struct arena_head *h, uint64_t bytes)
{
	return h->ready == 1 && h->magic == ARENA_MAGIC && h->version == ARENA_VERSION &&
	       h->bytes == bytes && h->nr_objects > 0 && h->nr_objects <= XHASH_CAPACITY_MAX &&
	       h->nr_volumes >= VOLUME_WAYS && h->nr_volumes <= 256 &&
	       h->nr_volumes % VOLUME_WAYS == 0 && h->nr_ports <= PEER_MAX_THREADS &&
	       h->off_volumes == CACHE_HEAD_BYTES &&
	       h->off_objects == cached_arena_head_bytes(h->nr_volumes, h->nr_ports) &&
	       h->off_objects <= bytes &&
	       cached_nr_entries(h->nr_objects) <= (bytes - h->off_objects) / CACHE_OBJECT_BYTES;
}

static void head_write(struct cached *k, struct arena_head *h, uint64_t bytes, uint32_t objects)
{
	h->magic = ARENA_MAGIC;
	h->version = ARENA_VERSION;
	h->bytes = bytes;
	h->nr_objects = objects;
	atomic_store_explicit(&h->size, 0, memory_order_relaxed);
	atomic_store_explicit(&h->policy, 0, memory_order_relaxed);
	h->nr_volumes = cached_nr_volumes(options_of(k)->memory);
	h->nr_ports = peer_of(k)->nr_ports;
	xseg_arena_epoch_set(peer_of(k)->xp, plug_epoch(k));
	h->off_volumes = CACHE_HEAD_BYTES;
	h->off_objects = cached_arena_head_bytes(h->nr_volumes, h->nr_ports);
	XKILL(HEAD_WRITTEN);
	/* release: a successor that sees ready sees the rest */
	atomic_store_explicit(&h->ready, 1, memory_order_release);
}

static void set_tables(struct cached *k, void *base, const struct arena_head *h)
{
	life_of(k)->head = base;
	object_of(k)->nr_objects = h->nr_objects;
	volume_of(k)->nr_volumes = h->nr_volumes;
	volume_of(k)->nr_counted = h->nr_ports;
	object_of(k)->off_entries = h->off_objects;
	object_of(k)->entries = (struct arena_object *)((char *)base + h->off_objects);
	object_of(k)->chunks = xseg_page(peer_of(k)->seg, 0);
	memory_of(k)->seg_pages = xseg_nr_pages(peer_of(k)->seg);
	object_of(k)->seg_chunks = (uint64_t)memory_of(k)->seg_pages * CHUNKS_PER_PAGE;
}

static uint64_t count_dirty_of(struct cached *k, const struct arena_object *e)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < OBJECT_CHUNKS; i++) {
		uint32_t chunk = atomic_load_explicit(&e->chunk[i], memory_order_relaxed);
		_Atomic uint64_t *slot;

		if (chunk == 0 || (chunk - 1) / CHUNKS_PER_PAGE >= xseg_nr_pages(peer_of(k)->seg))
			continue;
		slot = chunk_at(k, chunk - 1)->slot;
		for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
			n += slot_is_promised(
				atomic_load_explicit(&slot[s], memory_order_relaxed));
	}
	return n;
}

static uint64_t count_dirty(struct cached *k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < nr_entries(k); i++)
		n += count_dirty_of(k, &object_of(k)->entries[i]);
	return n;
}

/* One store an object, so a successor that is killed meanwhile is no harm: the next one goes on. */
static void forget_objects(struct cached *k)
{
	for (uint32_t i = 0; i < nr_entries(k); i++)
		atomic_store_explicit(&object_of(k)->entries[i].used, 0, memory_order_relaxed);
}

/* An arena for another number of objects than what is asked for now, or of a path that others may
 * have written to since: its clean data goes, its dirty data refuses. Settings go with the former,
 * and stay with the latter. */
static int arena_fits(struct cached *k, struct xseg_error *err)
{
	bool other_path = xseg_arena_epoch(peer_of(k)->xp) != plug_epoch(k);
	uint64_t dirty;

	if (!other_path && (options_of(k)->objects_wanted == 0 ||
				   options_of(k)->objects_wanted == object_of(k)->nr_objects))
		return 0;
	dirty = count_dirty(k);
	if (dirty == 0 && options_of(k)->objects_wanted &&
		options_of(k)->objects_wanted != object_of(k)->nr_objects)
		return -ESTALE;
	if (dirty == 0) {
		forget_objects(k);
		return 0;
	}
	if (other_path)
		return xseg_fail(err, -EBUSY,
			"the cache left %llu KiB of dirty data, and its store was written to "
			"without it since: to flush them now could undo newer writes; use another "
			"--name, and check the data at the store",
			(unsigned long long)dirty * 4);
	return xseg_fail(err, -EBUSY,
		"the cache left %llu KiB of dirty data in tables for objects=%u; start it with "
		"that number and flush before you change it",
		(unsigned long long)dirty * 4, object_of(k)->nr_objects);
}

static int head_damaged(struct xseg_error *err)
{
	return xseg_fail(err, -EPROTO,
		"the tables that it left in the segment are damaged; start it under another name, "
		"or make the segment again");
}

static int arena_try(struct cached *k, uint32_t objects, struct xseg_error *err)
{
	uint64_t bytes = cached_arena_bytes(
		objects, cached_nr_volumes(options_of(k)->memory), peer_of(k)->nr_ports);
	uint64_t wanted = bytes;
	struct arena_head h;
	void *base = NULL;
	bool fresh;
	int rc = xseg_arena_open(peer_of(k)->xp, &bytes, &base, &fresh, err);

	if (rc)
		return rc;
	assert(base);
	if (bytes < sizeof(h))
		return head_damaged(err);
	if (atomic_load_explicit(&((struct arena_head *)base)->ready, memory_order_acquire) == 0) {
		if (bytes < wanted)
			/* a predecessor that wanted less died before it had written anything */
			return -ESTALE;
		head_write(k, base, bytes, objects);
		life_of(k)->made_arena = true;
	} else {
		own_sync_unknown(k);
	}
	memcpy(&h, base, sizeof(h));
	if (head_is_other(&h))
		return xseg_fail(err, -EPROTO,
			"the tables that it left in the segment are of another version of cached; "
			"start that version, let it flush, and stop it");
	if (!head_ok(&h, bytes))
		return head_damaged(err);
	set_tables(k, base, &h);
	return arena_fits(k, err);
}

/* How many pages have to be taken before it can serve: all, or, where a predecessor left some, what
 * it lacks of the least that a cache has. What it lacks beyond that comes while it serves. */
static uint32_t pages_lacking(const struct cached *k, uint32_t have)
{
	if (have == 0)
		return memory_of(k)->target_pages;
	return have < SIZE_MIN_PAGES ? SIZE_MIN_PAGES - have : 0;
}

/* The pages that it begins with, all of them. */
static int take_pages(struct cached *k, uint32_t **pages, uint32_t *nr, struct xseg_error *err)
{
	uint32_t *list = calloc(xseg_nr_pages(peer_of(k)->seg), sizeof(*list));
	uint32_t have = xseg_pages_owned(peer_of(k)->xp, NULL, 0), lacks = pages_lacking(k, have);

	if (!list)
		return xseg_fail(err, -ENOMEM, "out of memory");
	if (lacks && (lacks > xseg_nr_pages(peer_of(k)->seg) ||
			     xseg_pages_take(peer_of(k)->xp, lacks, list))) {
		free(list);
		return xseg_fail(err, -ENOMEM,
			"the segment has %uM of memory left and the cache needs %uM; make the "
			"segment with more memory, or give the cache less",
			xseg_nr_free_pages(peer_of(k)->seg) >> 8, lacks >> 8);
	}
	*pages = list;
	*nr = xseg_pages_owned(peer_of(k)->xp, list, have + lacks);
	return 0;
}

static int make_tables(struct cached *k, struct xseg_error *err)
{
	struct xcache_params xp = { .nr_entries = nr_entries(k),
		.names = object_of(k)->entries[0].name,
		.name_stride = sizeof(struct arena_object),
		.name_max = XSEG_TARGET_MAX,
		.ops = &object_hooks,
		.arg = k };
	uint32_t seg_pages = xseg_nr_pages(peer_of(k)->seg), i;
	struct xlist_node *nodes;
	void *free_pages, *free_lists;

	creq_of(k)->nr_requests = xseg_nr_requests(peer_of(k)->seg);
	object_of(k)->objects =
		cached_alloc(k, (size_t)nr_entries(k) * sizeof(*object_of(k)->objects));
	creq_of(k)->creqs =
		cached_alloc(k, (size_t)creq_of(k)->nr_requests * sizeof(*creq_of(k)->creqs));
	store_of(k)->children = cached_alloc(
		k, (size_t)creq_of(k)->nr_requests * sizeof(*store_of(k)->children));
	memory_of(k)->page_use = cached_alloc(k, seg_pages * sizeof(*memory_of(k)->page_use));
	memory_of(k)->limbo.seen = cached_alloc(k, seg_pages * sizeof(*memory_of(k)->limbo.seen));
	memory_of(k)->lists = cached_alloc(k, NR_LISTS * sizeof(memory_of(k)->lists[0]));
	free_lists = cached_alloc(k, xpool_mem_bytes(NR_LISTS));
	flush_of(k)->nr_groups = volume_of(k)->nr_volumes;
	flush_of(k)->groups =
		cached_alloc(k, flush_of(k)->nr_groups * sizeof(*flush_of(k)->groups));
	memory_of(k)->extents =
		cached_alloc(k, seg_pages / XSEG_EXTENT_PAGES * sizeof(*memory_of(k)->extents));
	nodes = cached_alloc(k, (size_t)seg_pages * sizeof(*nodes));
	free_pages = cached_alloc(k, xpool_mem_bytes(seg_pages));
	if (!object_of(k)->objects || !creq_of(k)->creqs || !store_of(k)->children ||
		!memory_of(k)->page_use || !memory_of(k)->limbo.seen || !memory_of(k)->lists ||
		!free_lists || !flush_of(k)->groups || !memory_of(k)->extents || !nodes ||
		!free_pages ||
		volumes_open(k, (char *)life_of(k)->head + CACHE_HEAD_BYTES, cached_alloc) ||
		!gifts_open(k) || xcache_init(&object_of(k)->xc, &xp))
		return xseg_fail(err, -ENOMEM, "out of memory for the cache's tables; free some");
	for (i = 0; i < nr_entries(k); i++)
		object_init(&object_of(k)->objects[i], i);
	for (i = 0; i < flush_of(k)->nr_groups; i++)
		group_init(&flush_of(k)->groups[i]);
	clean_init(&memory_of(k)->clean, nodes);
	clean_init(&memory_of(k)->leaving, nodes);
	xlist_init(&memory_of(k)->chunk_pages, nodes);
	loans_open(k);
	shares_open(k);
	xpool_init(&memory_of(k)->free_pages, free_pages, seg_pages);
	xpool_init(&memory_of(k)->free_lists, free_lists, NR_LISTS);
	for (i = NR_LISTS; i-- > 0;)
		xpool_put(&memory_of(k)->free_lists, i);
	life_of(k)->has_tables = true;
	return 0;
}

void arena_close(struct cached *k)
{
	if (life_of(k)->has_tables) {
		shares_close(k);
		xcache_fini(&object_of(k)->xc);
	}
	life_of(k)->has_tables = false;
	cached_free_all(k);
}

static uint32_t objects_asked(const struct cached *k)
{
	return options_of(k)->objects_wanted ? options_of(k)->objects_wanted
					     : cached_default_objects(options_of(k)->memory);
}

uint64_t arena_memory_bytes(const struct cached *k)
{
	uint64_t memory = options_of(k)->memory;

	return peer_whole_extents(memory) +
	       peer_whole_extents(cached_arena_bytes(objects_asked(k), cached_nr_volumes(memory),
		       peer_of(k)->threads));
}

int arena_open(struct cached *k, struct xseg_error *err)
{
	uint32_t objects = objects_asked(k);
	int rc = arena_try(k, objects, err);

	if (rc == -ESTALE) {
		/* the pages stay: a predecessor's loads may still be filling them */
		rc = xseg_arena_free(peer_of(k)->xp, err);
		if (!rc)
			rc = arena_try(k, objects, err);
	}
	if (rc)
		return rc;
	size_open(k);
	return make_tables(k, err);
}

/* ---- loading ---- */

struct load {
	struct cached *k;
	uint8_t *page_is;		/* enum page_is, by page */
	uint64_t dropped, dirty;
};

/* What was written but perhaps not synced is of epoch 0, before all FLUSHes to come. What the store
 * has refused is tried once more. */
static uint64_t loaded_word(enum bucket_state s, uint32_t page, uint64_t w)
{
	uint64_t unpromised = slot_is_unpromised(w) ? SLOT_UNPROMISED | SLOT_WRITTEN : 0;

	return s == BUCKET_VALID ? slot_word(BUCKET_VALID, page, w & SLOT_WRITTEN)
				 : slot_word(BUCKET_DIRTY, page, w & unpromised);
}

/* One slot of a predecessor: the word that it has from now on. */
static uint64_t load_slot(struct load *l, uint64_t w)
{
	enum bucket_state s = slot_state(w);
	uint32_t page = slot_page(w);

	if (s <= BUCKET_INVALID)
		return slot_word(BUCKET_FREE, 0, 0);
	if (s == BUCKET_LOADING || s == BUCKET_BYPASS)
		return slot_word(BUCKET_INVALID, 0, 0);
	if (s > BUCKET_LOADING && s < BUCKET_NR_STATES && (w & SLOT_ZERO))
		return loaded_word(s, NO_PAGE, w);
	if (s >= BUCKET_NR_STATES || page >= xseg_nr_pages(peer_of(l->k)->seg) ||
		l->page_is[page] != PAGE_FREE) {
		l->dropped++;
		return slot_word(BUCKET_INVALID, 0, 0);
	}
	l->page_is[page] = PAGE_BUCKET;
	return loaded_word(s, page, w);
}

static void load_dirty(struct load *l, struct cport *ps, struct object *o, uint64_t w)
{
	struct volume_block *v = volume_block(ps, object_volume(o));

	if (slot_is_promised(w)) {
		volume_add(v, VC_DIRTY_BYTES, BUCKET_SIZE);
		l->dirty++;
	} else {
		volume_add(v, VC_UNPROMISED_BYTES, BUCKET_SIZE);
		count(ps, CC_UNPROMISED_BYTES, BUCKET_SIZE);
	}
}

static void load_bucket(
	struct load *l, struct cport *ps, struct object *o, uint32_t b, uint32_t chunk)
{
	struct cached *k = l->k;
	_Atomic uint64_t *slot = &chunk_at(k, chunk)->slot[b % CHUNK_SLOTS];
	uint64_t w = load_slot(l, atomic_load_explicit(slot, memory_order_relaxed));

	atomic_store_explicit(slot, w, memory_order_relaxed);
	XKILL(RELOADED_SLOT);
	o->nr[slot_state(w)]++;
	o->nr[BUCKET_FREE]--;
	if (slot_absent(w))
		return;
	object_entry(k, o)->chunk_used[b / CHUNK_SLOTS]++;
	atomic_fetch_add_explicit(&o->used, 1, memory_order_relaxed);
	if (slot_has_page(w)) {
		count(ps, CC_USED_BYTES, BUCKET_SIZE);
		volume_add(volume_block(ps, object_volume(o)), VC_USED_BYTES, BUCKET_SIZE);
		share_count(k, object_volume(o), 1);
		xseg_page_owner_set(peer_of(k)->seg, slot_page(w), bucket_name(o, b));
	}
	if (slot_is_clean_zero(w)) {
		atomic_fetch_add(&memory_of(k)->nr_zeroes, 1);
	} else if (slot_state(w) == BUCKET_VALID) {
		clean_restore(k, slot_page(w));
	} else {
		dirty_restore(k, o);
		load_dirty(l, ps, o, w);
	}
}

/* Whether the entry is one, and which of its chunk words are. */
static void load_entry(struct load *l, uint32_t idx)
{
	struct cached *k = l->k;
	struct arena_object *e = &object_of(k)->entries[idx];
	size_t len = strnlen(e->name, sizeof(e->name));
	bool ok = atomic_load_explicit(&e->used, memory_order_acquire) == 1 && len > 0 &&
		  len < sizeof(e->name) &&
		  xcache_restore(&object_of(k)->xc, idx, xseg_hash(e->name, len)) == 0;

	l->dropped += !ok && atomic_load_explicit(&e->used, memory_order_relaxed) != 0;
	if (!ok)
		atomic_store_explicit(&e->used, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < OBJECT_CHUNKS; i++) {
		uint32_t chunk = atomic_load_explicit(&e->chunk[i], memory_order_relaxed);

		e->chunk_used[i] = 0;
		if (chunk == 0 || (ok && chunk_restore(k, chunk - 1, l->page_is)))
			continue;
		atomic_store_explicit(&e->chunk[i], 0, memory_order_relaxed);
		l->dropped += ok;
	}
}

/* When all chunks are known: what is in them. */
static void load_object(struct load *l, struct cport *ps, uint32_t idx)
{
	struct cached *k = l->k;
	struct arena_object *e = &object_of(k)->entries[idx];
	struct object *o = &object_of(k)->objects[idx];

	atomic_store_explicit(
		&o->volume, (uint16_t)volume_find(k, e->volume), memory_order_relaxed);
	for (uint32_t i = 0; i < OBJECT_CHUNKS; i++) {
		uint32_t chunk = atomic_load_explicit(&e->chunk[i], memory_order_relaxed);
		uint16_t invalid = o->nr[BUCKET_INVALID];

		if (chunk == 0)
			continue;
		for (uint32_t s = 0; s < CHUNK_SLOTS; s++)
			load_bucket(l, ps, o, i * CHUNK_SLOTS + s, chunk - 1);
		if (e->chunk_used[i])
			continue;
		/* nothing is left in it: its slots are FREE */
		o->nr[BUCKET_FREE] = (uint16_t)(o->nr[BUCKET_FREE] + o->nr[BUCKET_INVALID] -
						invalid);
		o->nr[BUCKET_INVALID] = invalid;
		atomic_store_explicit(&e->chunk[i], 0, memory_order_relaxed);
		chunk_drop(k, chunk - 1, l->page_is);
	}
	if (atomic_load_explicit(&o->used, memory_order_relaxed)) {
		xcache_get(&object_of(k)->xc, idx);
		object_admit(ps, o, ADMIT_ALWAYS);
		object_pin(k, o);
	}
	dirty_list(ps, o);
}

static void load_objects(struct load *l, struct cport *ps)
{
	struct cached *k = l->k;

	for (uint32_t i = 0; i < nr_entries(k); i++) {
		object_of(k)->objects[i].nr[BUCKET_FREE] = OBJECT_BUCKETS;
		load_entry(l, i);
	}
	for (uint32_t i = 0; i < nr_entries(k); i++)
		if (xcache_state_of(&object_of(k)->xc, i) == XCACHE_ACTIVE)
			load_object(l, ps, i);
}

static void free_the_rest(struct load *l)
{
	struct cached *k = l->k;

	for (uint32_t i = xseg_nr_pages(peer_of(k)->seg); i-- > 0;) {
		if (l->page_is[i] != PAGE_FREE)
			continue;
		if (xseg_page_owner(peer_of(k)->seg, i))
			xseg_page_owner_set(peer_of(k)->seg, i, 0);
		pool_put(k, i);
	}
	pages_count(k);
}

static void load_tell(const struct load *l)
{
	uint32_t orphans = atomic_load_explicit(&store_of(l->k)->nr_orphans, memory_order_relaxed);
	char waits[64] = "";

	if (orphans)
		snprintf(waits, sizeof(waits), "; %u requests of its predecessor are at the store",
			orphans);
	if (l->dirty || l->dropped || orphans)
		log_info("%s: recovered %llu KiB of dirty data, %u objects%s%s",
			peer_of(l->k)->name, (unsigned long long)l->dirty * 4,
			xcache_nr_active(&object_of(l->k)->xc), waits,
			l->dropped ? "; dropped damaged data" : "");
}

int arena_load(struct cached *k, struct xseg_error *err)
{
	struct load l = { .k = k };
	uint32_t *pages = NULL, nr = 0, i;
	int rc = take_pages(k, &pages, &nr, err);

	if (rc)
		return rc;
	l.page_is = calloc(1, xseg_nr_pages(peer_of(k)->seg));
	if (!l.page_is) {
		rc = xseg_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	for (i = 0; i < nr; i++) {
		l.page_is[pages[i]] = PAGE_FREE;
		if (i % XSEG_EXTENT_PAGES == 0)
			extent_add(k, pages[i]);
	}
	load_objects(&l, cport_at(k, 0));
	orphans_adopt(k, l.page_is);
	loans_restore(k, l.page_is);
	free_the_rest(&l);
	XKILL(RELOADED);
	/* One store, whatever the ports of the predecessor had: a cached that is killed before
	 * leaves the old number, not 0. */
	count(cport_at(k, 0), CC_DIRTY_BYTES,
		l.dirty * BUCKET_SIZE - cached_total(k, CC_DIRTY_BYTES));
	load_tell(&l);
out:
	free(l.page_is);
	free(pages);
	return rc;
}
