/* memd_undo - the state that a loss of power would restore: each page and object changed since the
 * last flush, as it was then.
 *
 * Contract: memd_store calls, under its lock. All memory is taken at create: as much as the pages
 * that it covers. It is touched only as far as it is used. When all entries are in use, the oldest
 * is dropped: its change has become durable.
 *
 * Invariants:
 *   U1  A page has at most one entry: the contents it had at the last flush, plus the data that FUA
 *       writes put over that.
 *   U2  An object in `touched` has its durable word in durable[].
 */
#ifndef PEERS_MEMD_UNDO_H
#define PEERS_MEMD_UNDO_H

#include <stdbool.h>
#include <stdint.h>

struct memd_undo;

/* For nr pages and as many objects; NULL: no memory. */
struct memd_undo *memd_undo_create(uint32_t nr);
void memd_undo_destroy(struct memd_undo *u);

/* The object is about to change; `word` is what it is now. */
void memd_undo_touch(struct memd_undo *u, uint32_t object, uint64_t word);
/* The page is about to change from `data` (NULL: a hole). */
void memd_undo_save(struct memd_undo *u, uint32_t object, uint32_t nr, const void *data);
/* Bytes from .. to - 1 of the page have become durable with the contents of `src` (the page's
 * beginning; NULL: zeroes). */
void memd_undo_write(struct memd_undo *u, uint32_t object, uint32_t nr, uint32_t from, uint32_t to,
	const void *src);
/* The object durably is there (`used` is that bit), with at least `size` bytes. */
void memd_undo_grow(struct memd_undo *u, uint32_t object, uint64_t used, uint64_t size);

/* All that changed: pages with their durable contents (NULL: a hole), objects with their durable
 * word. */
void memd_undo_pages(struct memd_undo *u,
	void (*fn)(void *arg, uint32_t object, uint32_t nr, const void *data), void *arg);
void memd_undo_objects(struct memd_undo *u, void (*fn)(void *arg, uint32_t object,
	uint64_t durable), void *arg);
/* The same of one object, whose word is `word` now, and of one page: false when it has not
 * changed. */
uint64_t memd_undo_word(struct memd_undo *u, uint32_t object, uint64_t word);
bool memd_undo_page(struct memd_undo *u, uint32_t object, uint32_t nr, const void **data);
/* What is there is durable. */
void memd_undo_clear(struct memd_undo *u);

#endif
