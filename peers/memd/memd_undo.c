/* memd_undo - see memd_undo.h for its purpose, its contract and its invariants. */
#include "peers/memd/memd_undo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "xseg/xseg.h"
#include "xtypes/xhash.h"
#include "xtypes/xline.h"
#include "xtypes/xpool.h"

struct entry {
	uint32_t object, nr;
	bool hole;
};

struct memd_undo {
	uint32_t cap;
	struct entry *entry;			/* a ring: first .. first + nr - 1 are in use */
	uint32_t first, nr;
	uint8_t *data;				/* a page for each entry */
	struct xhash by_page;
	void *by_page_mem, *touched_mem;
	struct xpool touched;			/* objects */
	bool *is_touched;
	uint64_t *durable;
};

struct memd_undo *memd_undo_create(uint32_t nr)
{
	struct memd_undo *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->cap = nr;
	u->entry = calloc(nr, sizeof(*u->entry));
	u->is_touched = calloc(nr, sizeof(*u->is_touched));
	u->durable = calloc(nr, sizeof(*u->durable));
	u->by_page_mem = xline_alloc(xhash_mem_bytes(nr));
	u->touched_mem = malloc(xpool_mem_bytes(nr));
	u->data = mmap(NULL, (size_t)nr * XSEG_PAGE_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (u->data == MAP_FAILED)
		u->data = NULL;
	if (!u->entry || !u->is_touched || !u->durable || !u->by_page_mem || !u->touched_mem ||
		!u->data) {
		memd_undo_destroy(u);
		return NULL;
	}
	xhash_init(&u->by_page, u->by_page_mem, nr);
	xpool_init(&u->touched, u->touched_mem, nr);
	return u;
}

void memd_undo_destroy(struct memd_undo *u)
{
	if (u->data)
		munmap(u->data, (size_t)u->cap * XSEG_PAGE_SIZE);
	free(u->touched_mem);
	free(u->by_page_mem);
	free(u->durable);
	free(u->is_touched);
	free(u->entry);
	free(u);
}

static uint64_t hash_of(uint32_t object, uint32_t nr)
{
	return (((uint64_t)object << 32 | nr) ^ object) * UINT64_C(0xd6e8feb86659fd93);
}

struct key {
	struct memd_undo *u;
	uint32_t object, nr;
};

static bool entry_eq(void *arg, uint32_t idx)
{
	const struct key *key = arg;

	return key->u->entry[idx].object == key->object && key->u->entry[idx].nr == key->nr;
}

static uint32_t entry_find(struct memd_undo *u, uint32_t object, uint32_t nr)
{
	struct key key = { u, object, nr };

	return xhash_find(&u->by_page, hash_of(object, nr), entry_eq, &key);
}

static uint8_t *entry_data(struct memd_undo *u, uint32_t idx)
{
	return u->data + (size_t)idx * XSEG_PAGE_SIZE;
}

static void drop_oldest(struct memd_undo *u)
{
	const struct entry *e = &u->entry[u->first];

	xhash_remove(&u->by_page, hash_of(e->object, e->nr), u->first);
	u->first = (u->first + 1) % u->cap;
	u->nr--;
}

void memd_undo_touch(struct memd_undo *u, uint32_t object, uint64_t word)
{
	if (u->is_touched[object])
		return;
	u->is_touched[object] = true;
	u->durable[object] = word;
	xpool_put(&u->touched, object);
}

void memd_undo_save(struct memd_undo *u, uint32_t object, uint32_t nr, const void *data)
{
	uint32_t idx;
	int rc;

	if (entry_find(u, object, nr) != XHASH_NONE)
		return;
	if (u->nr == u->cap)
		drop_oldest(u);
	idx = (u->first + u->nr++) % u->cap;
	u->entry[idx] = (struct entry){ .object = object, .nr = nr, .hole = !data };
	if (data)
		memcpy(entry_data(u, idx), data, XSEG_PAGE_SIZE);
	rc = xhash_insert(&u->by_page, hash_of(object, nr), idx);
	assert(rc == 0);
}

void memd_undo_write(struct memd_undo *u, uint32_t object, uint32_t nr, uint32_t from, uint32_t to,
	const void *src)
{
	uint32_t idx = entry_find(u, object, nr);

	if (idx == XHASH_NONE)
		return;
	if (u->entry[idx].hole)
		memset(entry_data(u, idx), 0, XSEG_PAGE_SIZE);
	u->entry[idx].hole = false;
	if (src)
		memcpy(entry_data(u, idx) + from, (const uint8_t *)src + from, to - from);
	else
		memset(entry_data(u, idx) + from, 0, to - from);
}

void memd_undo_grow(struct memd_undo *u, uint32_t object, uint64_t used, uint64_t size)
{
	uint64_t old = u->durable[object] & ~used;

	assert(u->is_touched[object]);
	u->durable[object] = used | (old > size ? old : size);
}

void memd_undo_pages(struct memd_undo *u,
	void (*fn)(void *arg, uint32_t object, uint32_t nr, const void *data), void *arg)
{
	uint32_t i, idx;

	for (i = 0; i < u->nr; i++) {
		idx = (u->first + i) % u->cap;
		fn(arg, u->entry[idx].object, u->entry[idx].nr,
			u->entry[idx].hole ? NULL : entry_data(u, idx));
	}
}

void memd_undo_objects(struct memd_undo *u, void (*fn)(void *arg, uint32_t object,
	uint64_t durable), void *arg)
{
	uint32_t i;

	for (i = 0; i < xpool_nr(&u->touched); i++)
		fn(arg, u->touched.idx[i], u->durable[u->touched.idx[i]]);
}

uint64_t memd_undo_word(struct memd_undo *u, uint32_t object, uint64_t word)
{
	return u->is_touched[object] ? u->durable[object] : word;
}

bool memd_undo_page(struct memd_undo *u, uint32_t object, uint32_t nr, const void **data)
{
	uint32_t idx = entry_find(u, object, nr);

	if (idx == XHASH_NONE)
		return false;
	*data = u->entry[idx].hole ? NULL : entry_data(u, idx);
	return true;
}

void memd_undo_clear(struct memd_undo *u)
{
	uint32_t object;

	while ((object = xpool_get(&u->touched)) != XPOOL_NONE)
		u->is_touched[object] = false;
	while (u->nr)
		drop_oldest(u);
}
