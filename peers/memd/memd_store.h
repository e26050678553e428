/* memd_store - objects of up to 4 MiB in one piece of memory. The memory may be an arena, and then
 * survives a kill.
 *
 * The memory holds, one after the other: a header, a table of objects (name and one word), one
 * owner word per page, and the pages. Only pages that were written take memory. The rest of an
 * object is holes, which read as zeroes. The words are the truth (rule R1). The two hash tables and
 * the free lists are private, and built from the words at open.
 *
 *   object word   0: free | USED (the highest bit) + size in bytes
 *   owner word    0: free | (object + 1) << 32 + page number in the object
 *
 * Contract: the caller's `order` lets one thread at a time change a page of an object, and nobody
 * read it meanwhile. It lets one thread at a time create or delete an object. With that, any thread
 * may call. `lock` guards the indices and free lists when the store is shared by threads. Nothing
 * blocks, nothing allocates after open.
 *
 * Invariants:
 *   M1  An owner word is stored after the page's contents, an object's word after its name. So each
 *       page or object is complete after a kill, or free.
 *   M2  An object's word is cleared after the owner words of all its pages.
 *   M3  A free page's contents mean nothing. The page is overwritten or zeroed before it is owned.
 *
 * With `track` the store also knows the state that a loss of power would leave. For each page
 * changed since the last flush it has the contents at that time (`undo`). For each object it has
 * the size, and whether the object was there. When the room for that is used up, the oldest change
 * becomes durable by itself, as in a disk's cache.
 */
#ifndef PEERS_MEMD_STORE_H
#define PEERS_MEMD_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"
#include "xtypes/xhash.h"
#include "xtypes/xpool.h"

#define MEMD_OBJECT_MAX (4u << 20)
#define MEMD_OBJECT_PAGES (MEMD_OBJECT_MAX / XSEG_PAGE_SIZE)
#define MEMD_NONE UINT32_MAX

struct memd_object;
struct memd_undo;

struct memd_store {
	/* fixed after open */
	struct memd_object *objects;
	_Atomic uint64_t *owner;
	uint8_t *pages;
	uint32_t nr_pages;			/* and as many objects */
	bool shared;				/* several threads: lock */
	bool track;
	void *private;				/* the memory of what follows */
	size_t private_bytes;

	pthread_mutex_t lock;			/* a leaf; guards all below, when shared */
	struct xhash by_name, by_page;
	struct xpool free_objects, free_pages;
	struct memd_undo *undo;			/* NULL unless track */
};

/* Bytes that a store of nr_pages pages takes. */
uint64_t memd_store_bytes(uint32_t nr_pages);

/* Nothing was ever made there: a predecessor died before. */
bool memd_store_is_blank(const void *base);

/* Makes a store in zeroed memory, or takes over the one that is there, whose size may differ from
 * what is asked for. -EPROTO: it is something else; -ENOMEM: no private memory. */
int memd_store_open(struct memd_store *s, void *base, uint64_t bytes, uint32_t nr_pages,
	bool shared, bool track, struct xseg_error *err) XSEG_MUST_CHECK;
void memd_store_close(struct memd_store *s);

/* An object's index, or MEMD_NONE. */
uint32_t memd_object_find(struct memd_store *s, uint64_t hash, const char *name);
/* The same, also when it was deleted and a loss of power would bring it back. */
uint32_t memd_object_find_lost(struct memd_store *s, uint64_t hash, const char *name);
/* The first again, made when it is not there; MEMD_NONE: the table is full. */
uint32_t memd_object_make(struct memd_store *s, uint64_t hash, const char *name);
void memd_object_delete(struct memd_store *s, uint32_t object);
uint64_t memd_object_size(struct memd_store *s, uint32_t object);
/* The end of the last data: what is behind it is holes. */
uint64_t memd_object_end(struct memd_store *s, uint32_t object);
/* The name of the object at an index below nr_pages, in XSEG_TARGET_MAX bytes. False: there is
 * none. An object keeps its index as long as it exists, also in a successor. */
bool memd_object_name(struct memd_store *s, uint32_t object, char *name) XSEG_MUST_CHECK;

/* The addresses of nr pages of an object from `first` on; NULL for holes. */
void memd_store_get(struct memd_store *s, uint32_t object, uint32_t first, uint32_t nr,
	const void **page);

/* Writes bytes offset .. offset + size - 1 of an object. src[i] is where the contents of the i-th
 * page touched begin, aligned as in the object; NULL: zeroes (a whole page becomes a hole). The
 * object's size stays. -ENOSPC: not enough free pages, and nothing was changed. */
int memd_store_put(struct memd_store *s, uint32_t object, uint64_t offset, uint32_t size,
	const void *const *src, bool fua) XSEG_MUST_CHECK;
/* The same, and the object's size takes the range in. It is made when it is not there; nothing is
 * with -ENOSPC, which also says that the table is full. */
int memd_store_write(struct memd_store *s, uint64_t hash, const char *name, uint64_t offset,
	uint32_t size, const void *const *src, bool fua) XSEG_MUST_CHECK;

/* All that was written until now is durable. */
void memd_store_flush(struct memd_store *s);
/* What a loss of power would leave of a page; NULL: zeroes (track only; nothing else may run). */
const void *memd_store_durable(struct memd_store *s, uint64_t hash, const char *name, uint32_t nr);
/* Goes back to what is durable (the same). */
void memd_store_power_loss(struct memd_store *s);

/* The object that page `idx` of the store is of, or MEMD_NONE: a look, which others may change. */
uint32_t memd_store_page_object(struct memd_store *s, uint32_t idx);
uint32_t memd_store_free_pages(struct memd_store *s);

static inline uint32_t memd_store_nr_objects(const struct memd_store *s)
{
	return xhash_nr(&s->by_name);
}

#endif
