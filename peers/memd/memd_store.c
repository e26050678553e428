/* memd_store - see memd_store.h for the layout, the contract and the invariants. */
#include "peers/memd/memd_store.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "peers/memd/memd_undo.h"
#include "xseg/arenas.h"
#include "xtypes/xkill.h"

#define MAGIC	  XSEG_ARENA_MAGIC(0x7473646d656d78, XSEG_FORMAT_MEMD)	/* "xmemdst1" */
#define USED	  (UINT64_C(1) << 63)
#define SIZE_MASK (USED - 1)

struct memd_header {
	_Atomic uint64_t magic;				/* stored last */
	uint64_t nr_pages;
};

struct memd_object {
	char name[XSEG_TARGET_MAX];
	uint64_t hash;
	_Atomic uint64_t word;
};

struct layout {
	uint64_t objects, owner, pages, bytes;
};

static uint64_t round_page(uint64_t bytes)
{
	return (bytes + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE * XSEG_PAGE_SIZE;
}

static struct layout layout_of(uint64_t nr_pages)
{
	struct layout l;

	l.objects = XSEG_PAGE_SIZE;
	l.owner = l.objects + round_page(nr_pages * sizeof(struct memd_object));
	l.pages = l.owner + round_page(nr_pages * sizeof(uint64_t));
	l.bytes = l.pages + nr_pages * XSEG_PAGE_SIZE;
	return l;
}

uint64_t memd_store_bytes(uint32_t nr_pages)
{
	return layout_of(nr_pages).bytes;
}

bool memd_store_is_blank(const void *base)
{
	return !atomic_load_explicit(
		&((const struct memd_header *)base)->magic, memory_order_acquire);
}

static void store_lock(struct memd_store *s)
{
	if (s->shared)
		pthread_mutex_lock(&s->lock);
}

static void store_unlock(struct memd_store *s)
{
	if (s->shared)
		pthread_mutex_unlock(&s->lock);
}

static uint64_t word_get(struct memd_store *s, uint32_t object)
{
	return atomic_load_explicit(&s->objects[object].word, memory_order_acquire);
}

/* release: after what the word speaks of (M1, M2) */
static void word_set(struct memd_store *s, uint32_t object, uint64_t word)
{
	atomic_store_explicit(&s->objects[object].word, word, memory_order_release);
}

static uint64_t owner_of(uint32_t object, uint32_t nr)
{
	return ((uint64_t)object + 1) << 32 | nr;
}

static uint64_t owner_hash(uint64_t owner)
{
	owner ^= owner >> 31;
	return owner * UINT64_C(0xd6e8feb86659fd93);
}

/* ---- the two indices --------------------------------------------------------------------- */

struct name_key {
	struct memd_store *s;
	uint64_t hash;
	const char *name;
};

static bool name_eq(void *arg, uint32_t idx)
{
	const struct name_key *key = arg;
	const struct memd_object *o = &key->s->objects[idx];

	return o->hash == key->hash && !strncmp(o->name, key->name, sizeof(o->name));
}

static uint32_t find_locked(struct memd_store *s, uint64_t hash, const char *name)
{
	struct name_key key = { s, hash, name };

	return xhash_find(&s->by_name, hash, name_eq, &key);
}

struct page_key {
	struct memd_store *s;
	uint64_t owner;
};

static bool page_eq(void *arg, uint32_t idx)
{
	const struct page_key *key = arg;

	return atomic_load_explicit(&key->s->owner[idx], memory_order_relaxed) == key->owner;
}

static uint32_t page_find_locked(struct memd_store *s, uint32_t object, uint32_t nr)
{
	struct page_key key = { s, owner_of(object, nr) };

	return xhash_find(&s->by_page, owner_hash(key.owner), page_eq, &key);
}

static uint8_t *page_data(struct memd_store *s, uint32_t idx)
{
	return s->pages + (size_t)idx * XSEG_PAGE_SIZE;
}

/* The page is complete: from here on it is the object's. */
static void page_own_locked(struct memd_store *s, uint32_t idx, uint32_t object, uint32_t nr)
{
	uint64_t owner = owner_of(object, nr);
	int rc;

	/* release: after the contents (M1) */
	atomic_store_explicit(&s->owner[idx], owner, memory_order_release);
	rc = xhash_insert(&s->by_page, owner_hash(owner), idx);
	assert(rc == 0);
}

static void page_drop_locked(struct memd_store *s, uint32_t idx, uint32_t object, uint32_t nr)
{
	xhash_remove(&s->by_page, owner_hash(owner_of(object, nr)), idx);
	atomic_store_explicit(&s->owner[idx], 0, memory_order_release);
	xpool_put(&s->free_pages, idx);
}

/* ---- open and close ---------------------------------------------------------------------- */

static bool scan_objects(struct memd_store *s)
{
	uint32_t i;

	for (i = s->nr_pages; i-- > 0;) {
		if (!(word_get(s, i) & USED)) {
			word_set(s, i, 0);
			xpool_put(&s->free_objects, i);
			continue;
		}
		if (find_locked(s, s->objects[i].hash, s->objects[i].name) != XHASH_NONE)
			return false;
		if (xhash_insert(&s->by_name, s->objects[i].hash, i))
			return false;
	}
	return true;
}

static bool scan_pages(struct memd_store *s)
{
	uint64_t owner, object;
	uint32_t i;

	for (i = s->nr_pages; i-- > 0;) {
		owner = atomic_load_explicit(&s->owner[i], memory_order_relaxed);
		if (!owner) {
			xpool_put(&s->free_pages, i);
			continue;
		}
		object = (owner >> 32) - 1;
		if (object >= s->nr_pages || (uint32_t)owner >= MEMD_OBJECT_PAGES ||
			!(word_get(s, (uint32_t)object) & USED))
			return false;
		if (page_find_locked(s, (uint32_t)object, (uint32_t)owner) != XHASH_NONE)
			return false;
		if (xhash_insert(&s->by_page, owner_hash(owner), i))
			return false;
	}
	return true;
}

static int private_alloc(struct memd_store *s)
{
	size_t hash_bytes = round_page(xhash_mem_bytes(s->nr_pages));
	size_t pool_bytes = round_page(xpool_mem_bytes(s->nr_pages));
	uint8_t *at;

	s->private_bytes = 2 * (hash_bytes + pool_bytes);
	at = mmap(NULL, s->private_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	s->private = at;
	xhash_init(&s->by_name, at, s->nr_pages);
	xhash_init(&s->by_page, at + hash_bytes, s->nr_pages);
	xpool_init(&s->free_objects, at + 2 * hash_bytes, s->nr_pages);
	xpool_init(&s->free_pages, at + 2 * hash_bytes + pool_bytes, s->nr_pages);
	return 0;
}

/* Finds the geometry of what is there, or makes it. */
static int header_open(struct memd_header *h, uint64_t bytes, uint32_t *nr_pages,
	struct xseg_error *err)
{
	uint64_t magic = atomic_load_explicit(&h->magic, memory_order_acquire);
	uint64_t had = magic ? *(volatile uint64_t *)&h->nr_pages : *nr_pages;	/* once (R5) */

	if ((magic && magic != MAGIC) || !had || had > bytes / XSEG_PAGE_SIZE ||
		memd_store_bytes((uint32_t)had) > bytes)
		return xseg_fail(err, -EPROTO, "the arena is of another version of memd; start it "
			"under another name, or make the segment again");
	if (!magic) {
		h->nr_pages = had;
		atomic_store_explicit(&h->magic, MAGIC, memory_order_release);
	}
	*nr_pages = (uint32_t)had;
	return 0;
}

int memd_store_open(struct memd_store *s, void *base, uint64_t bytes, uint32_t nr_pages,
	bool shared, bool track, struct xseg_error *err)
{
	struct layout l;
	int rc = header_open(base, bytes, &nr_pages, err);

	if (rc)
		return rc;
	l = layout_of(nr_pages);
	memset(s, 0, sizeof(*s));
	s->nr_pages = nr_pages;
	s->shared = shared;
	s->track = track;
	s->objects = (void *)((uint8_t *)base + l.objects);
	s->owner = (void *)((uint8_t *)base + l.owner);
	s->pages = (uint8_t *)base + l.pages;
	rc = private_alloc(s);
	if (rc)
		return xseg_fail(err, rc, "no memory for the index of %u pages", nr_pages);
	pthread_mutex_init(&s->lock, NULL);
	if (track) {
		s->undo = memd_undo_create(nr_pages);
		if (!s->undo)
			rc = xseg_fail(err, -ENOMEM, "no memory for track_flush");
	}
	if (!rc && (!scan_objects(s) || !scan_pages(s)))
		rc = xseg_fail(err, -EPROTO, "the objects in the arena are damaged; "
			"start memd under another name, or make the segment again");
	if (rc)
		memd_store_close(s);
	return rc;
}

void memd_store_close(struct memd_store *s)
{
	if (!s->private)
		return;
	if (s->undo)
		memd_undo_destroy(s->undo);
	pthread_mutex_destroy(&s->lock);
	munmap(s->private, s->private_bytes);
	s->private = NULL;
}

/* ---- objects ----------------------------------------------------------------------------- */

uint32_t memd_object_find(struct memd_store *s, uint64_t hash, const char *name)
{
	uint32_t object;

	store_lock(s);
	object = find_locked(s, hash, name);
	if (object != MEMD_NONE && !(word_get(s, object) & USED))
		object = MEMD_NONE;
	store_unlock(s);
	return object;
}

uint32_t memd_object_find_lost(struct memd_store *s, uint64_t hash, const char *name)
{
	uint32_t object;

	store_lock(s);
	object = find_locked(s, hash, name);
	store_unlock(s);
	return object;
}

static void touch_locked(struct memd_store *s, uint32_t object)
{
	if (s->undo)
		memd_undo_touch(s->undo, object, word_get(s, object));
}

static uint32_t name_new_locked(struct memd_store *s, uint64_t hash, const char *name)
{
	uint32_t object = xpool_get(&s->free_objects);
	int rc;

	if (object == MEMD_NONE)
		return MEMD_NONE;
	memset(s->objects[object].name, 0, XSEG_TARGET_MAX);
	memcpy(s->objects[object].name, name, strnlen(name, XSEG_TARGET_MAX - 1));
	s->objects[object].hash = hash;
	rc = xhash_insert(&s->by_name, hash, object);
	assert(rc == 0);
	return object;
}

static uint32_t make_locked(struct memd_store *s, uint64_t hash, const char *name, bool *made)
{
	uint32_t object = find_locked(s, hash, name);

	if (object == MEMD_NONE)
		object = name_new_locked(s, hash, name);
	*made = object != MEMD_NONE && !(word_get(s, object) & USED);
	if (*made) {
		touch_locked(s, object);
		word_set(s, object, USED);
	}
	return object;
}

uint32_t memd_object_make(struct memd_store *s, uint64_t hash, const char *name)
{
	uint32_t object;
	bool made;

	store_lock(s);
	object = make_locked(s, hash, name, &made);
	store_unlock(s);
	return object;
}

/* Remembers what is durable of a page that is about to change. */
static void undo_save_locked(struct memd_store *s, uint32_t object, uint32_t nr, uint32_t idx)
{
	if (s->undo)
		memd_undo_save(s->undo, object, nr, idx == MEMD_NONE ? NULL : page_data(s, idx));
}

static void pages_drop_locked(struct memd_store *s, uint32_t object)
{
	uint32_t nr, idx;

	for (nr = 0; nr < MEMD_OBJECT_PAGES; nr++) {
		idx = page_find_locked(s, object, nr);
		if (idx == MEMD_NONE)
			continue;
		undo_save_locked(s, object, nr, idx);
		page_drop_locked(s, idx, object, nr);
	}
}

static void name_drop_locked(struct memd_store *s, uint32_t object)
{
	xhash_remove(&s->by_name, s->objects[object].hash, object);
	xpool_put(&s->free_objects, object);
}

/* While a loss of power could bring it back it keeps its entry, which memd_store_flush() frees. */
static void delete_locked(struct memd_store *s, uint32_t object)
{
	touch_locked(s, object);
	pages_drop_locked(s, object);
	word_set(s, object, 0);
	if (!s->undo)
		name_drop_locked(s, object);
}

void memd_object_delete(struct memd_store *s, uint32_t object)
{
	store_lock(s);
	delete_locked(s, object);
	store_unlock(s);
}

uint64_t memd_object_size(struct memd_store *s, uint32_t object)
{
	return word_get(s, object) & SIZE_MASK;
}

bool memd_object_name(struct memd_store *s, uint32_t object, char *name)
{
	bool used = word_get(s, object) & USED;

	if (!used)
		return false;
	store_lock(s);
	used = word_get(s, object) & USED;
	memcpy(name, s->objects[object].name, XSEG_TARGET_MAX);
	store_unlock(s);
	name[XSEG_TARGET_MAX - 1] = '\0';
	return used && name[0];
}

uint32_t memd_store_page_object(struct memd_store *s, uint32_t idx)
{
	uint64_t owner = atomic_load_explicit(&s->owner[idx], memory_order_relaxed);
	uint64_t object = (owner >> 32) - 1;

	return owner && object < s->nr_pages ? (uint32_t)object : MEMD_NONE;
}

/* ---- data -------------------------------------------------------------------------------- */

/* Fills idx with the pages of a range, MEMD_NONE for holes. The lookups of a long range are made
 * to overlap. */
static void pages_find_locked(struct memd_store *s, uint32_t object, uint32_t first, uint32_t nr,
	uint32_t *idx)
{
	uint32_t i, guess;

	if (nr > 1) {
		for (i = 0; i < nr; i++)
			xhash_prefetch(&s->by_page, owner_hash(owner_of(object, first + i)));
		for (i = 0; i < nr; i++) {
			guess = xhash_peek(&s->by_page, owner_hash(owner_of(object, first + i)));
			if (guess != XHASH_NONE)
				__builtin_prefetch((const void *)&s->owner[guess]);
		}
	}
	for (i = 0; i < nr; i++)
		idx[i] = page_find_locked(s, object, first + i);
}

void memd_store_get(struct memd_store *s, uint32_t object, uint32_t first, uint32_t nr,
	const void **page)
{
	uint32_t idx[XSEG_REQ_PAGES], i;

	assert(nr <= XSEG_REQ_PAGES);
	store_lock(s);
	pages_find_locked(s, object, first, nr, idx);
	store_unlock(s);
	for (i = 0; i < nr; i++)
		page[i] = idx[i] == MEMD_NONE ? NULL : page_data(s, idx[i]);
}

uint64_t memd_object_end(struct memd_store *s, uint32_t object)
{
	uint64_t size = memd_object_size(s, object), end;
	uint32_t nr = (uint32_t)((size + XSEG_PAGE_SIZE - 1) / XSEG_PAGE_SIZE);
	const void *page = NULL;

	while (nr && !page)
		memd_store_get(s, object, --nr, 1, &page);
	if (!page)
		return 0;
	end = (nr + 1) * (uint64_t)XSEG_PAGE_SIZE;
	return size < end ? size : end;
}

/* A write in progress: what it does to each page that it touches. */
struct put {
	struct memd_store *s;
	uint32_t object, first, nr;		/* pages */
	uint32_t from, to;			/* bytes, counted from the first page's beginning */
	const void *const *src;
	uint32_t idx[XSEG_REQ_PAGES];
	bool fresh[XSEG_REQ_PAGES];		/* was a hole and got a page */
};

/* The bytes of the i-th page: *from .. result - 1. */
static uint32_t piece(const struct put *p, uint32_t i, uint32_t *from)
{
	uint32_t start = i * XSEG_PAGE_SIZE, end = start + XSEG_PAGE_SIZE;

	*from = p->from > start ? p->from - start : 0;
	return (p->to < end ? p->to : end) - start;
}

/* Finds all pages and takes free ones for the holes that get contents: all or none. */
static int put_begin_locked(struct put *p, bool fua)
{
	uint32_t i, missing = 0;

	pages_find_locked(p->s, p->object, p->first, p->nr, p->idx);
	for (i = 0; i < p->nr; i++) {
		p->fresh[i] = p->idx[i] == MEMD_NONE && p->src[i];
		missing += p->fresh[i];
	}
	if (missing > xpool_nr(&p->s->free_pages))
		return -ENOSPC;
	for (i = 0; i < p->nr; i++) {
		if (!fua && (p->src[i] || p->idx[i] != MEMD_NONE))
			undo_save_locked(p->s, p->object, p->first + i, p->idx[i]);
		if (p->fresh[i])
			p->idx[i] = xpool_get(&p->s->free_pages);
	}
	return 0;
}

static void put_copy(struct put *p, uint32_t i)
{
	uint32_t from, to = piece(p, i, &from);
	uint8_t *page;

	if (p->idx[i] == MEMD_NONE)
		return;
	page = page_data(p->s, p->idx[i]);
	if (!p->src[i]) {
		memset(page + from, 0, to - from);
		return;
	}
	if (p->fresh[i]) {
		memset(page, 0, from);
		memset(page + to, 0, XSEG_PAGE_SIZE - to);
	}
	memcpy(page + from, (const uint8_t *)p->src[i] + from, to - from);
}

/* New pages become the object's, zeroed ones holes; with fua all of it durable. */
static void put_end_locked(struct put *p, bool fua)
{
	uint32_t i, from, to;

	for (i = 0; i < p->nr; i++) {
		XKILL(MEMD_OWNED);
		to = piece(p, i, &from);
		if (fua && p->s->undo)
			memd_undo_write(p->s->undo, p->object, p->first + i, from, to, p->src[i]);
		if (p->fresh[i])
			page_own_locked(p->s, p->idx[i], p->object, p->first + i);
		else if (!p->src[i] && p->idx[i] != MEMD_NONE && to - from == XSEG_PAGE_SIZE)
			page_drop_locked(p->s, p->idx[i], p->object, p->first + i);
	}
}

static void grow_locked(struct memd_store *s, uint32_t object, uint64_t size, bool fua)
{
	uint64_t word = word_get(s, object);

	touch_locked(s, object);
	if ((word & SIZE_MASK) < size)
		word_set(s, object, USED | size);
	if (fua && s->undo)
		memd_undo_grow(s->undo, object, USED, size);
}

static void put_init(struct put *p, struct memd_store *s, uint64_t offset, uint32_t size,
	const void *const *src)
{
	assert(size && offset + size <= MEMD_OBJECT_MAX);
	p->s = s;
	p->first = (uint32_t)(offset / XSEG_PAGE_SIZE);
	p->nr = xseg_req_span(offset, size);
	p->from = (uint32_t)(offset % XSEG_PAGE_SIZE);
	p->to = p->from + size;
	p->src = src;
}

/* It has begun. grow_to: the object's size is to be that at least. */
static void put_run(struct put *p, uint64_t grow_to, bool fua)
{
	uint32_t i;

	for (i = 0; i < p->nr; i++)
		put_copy(p, i);
	XKILL(MEMD_COPIED);
	store_lock(p->s);
	put_end_locked(p, fua);
	if (grow_to)
		grow_locked(p->s, p->object, grow_to, fua);
	store_unlock(p->s);
}

int memd_store_put(struct memd_store *s, uint32_t object, uint64_t offset, uint32_t size,
	const void *const *src, bool fua)
{
	struct put p = { .object = object };
	int rc;

	put_init(&p, s, offset, size, src);
	store_lock(s);
	rc = put_begin_locked(&p, fua);
	store_unlock(s);
	if (!rc)
		put_run(&p, 0, fua);
	return rc;
}

int memd_store_write(struct memd_store *s, uint64_t hash, const char *name, uint64_t offset,
	uint32_t size, const void *const *src, bool fua)
{
	struct put p;
	bool made;
	int rc;

	put_init(&p, s, offset, size, src);
	store_lock(s);
	p.object = make_locked(s, hash, name, &made);
	rc = p.object == MEMD_NONE ? -ENOSPC : put_begin_locked(&p, fua);
	if (rc && made)		/* nobody else can have found it yet */
		delete_locked(s, p.object);
	store_unlock(s);
	if (!rc)
		put_run(&p, offset + size, fua);
	return rc;
}

/* ---- durability -------------------------------------------------------------------------- */

static void forget_deleted(void *arg, uint32_t object, uint64_t durable)
{
	struct memd_store *s = arg;

	(void)durable;
	if (!(word_get(s, object) & USED))
		name_drop_locked(s, object);
}

void memd_store_flush(struct memd_store *s)
{
	if (!s->undo)
		return;
	store_lock(s);
	memd_undo_objects(s->undo, forget_deleted, s);
	memd_undo_clear(s->undo);
	store_unlock(s);
}

const void *memd_store_durable(struct memd_store *s, uint64_t hash, const char *name, uint32_t nr)
{
	uint32_t object = find_locked(s, hash, name), idx;
	const void *data;

	if (object == MEMD_NONE || !(memd_undo_word(s->undo, object, word_get(s, object)) & USED))
		return NULL;
	if (memd_undo_page(s->undo, object, nr, &data))
		return data;
	idx = page_find_locked(s, object, nr);
	return idx == MEMD_NONE ? NULL : page_data(s, idx);
}

/* First what was a hole is one again; then there is room for what had contents. */
static void restore_hole(void *arg, uint32_t object, uint32_t nr, const void *data)
{
	struct memd_store *s = arg;
	uint32_t idx = page_find_locked(s, object, nr);

	if (!data && idx != MEMD_NONE)
		page_drop_locked(s, idx, object, nr);
}

static void restore_page(void *arg, uint32_t object, uint32_t nr, const void *data)
{
	struct memd_store *s = arg;
	uint32_t idx = page_find_locked(s, object, nr);
	bool was_hole = idx == MEMD_NONE;

	if (was_hole && data)
		idx = xpool_get(&s->free_pages);
	if (idx == MEMD_NONE || !data)
		return;
	memcpy(page_data(s, idx), data, XSEG_PAGE_SIZE);
	if (was_hole)
		page_own_locked(s, idx, object, nr);
}

static void restore_object(void *arg, uint32_t object, uint64_t durable)
{
	struct memd_store *s = arg;

	if (!(durable & USED))
		pages_drop_locked(s, object);
	word_set(s, object, durable);
	if (!(durable & USED))
		name_drop_locked(s, object);
}

void memd_store_power_loss(struct memd_store *s)
{
	struct memd_undo *undo = s->undo;

	assert(undo);
	store_lock(s);
	s->undo = NULL;			/* putting things back is no change */
	memd_undo_pages(undo, restore_hole, s);
	memd_undo_pages(undo, restore_page, s);
	memd_undo_objects(undo, restore_object, s);
	memd_undo_clear(undo);
	s->undo = undo;
	store_unlock(s);
}

uint32_t memd_store_free_pages(struct memd_store *s)
{
	uint32_t nr;

	store_lock(s);
	nr = xpool_nr(&s->free_pages);
	store_unlock(s);
	return nr;
}
