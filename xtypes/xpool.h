/* xpool - a bounded last-in first-out pool of indices.
 *
 * Algorithm: a stack in an array. The index freed last is handed out first, because its memory is
 * the most likely to be in the processor's cache (J. Bonwick, "The Slab Allocator", USENIX 1994).
 *
 * Contract: single threaded, the caller locks. The memory is the caller's. O(1). Nothing blocks or
 * allocates.
 *
 * Invariants:
 *   P1  nr <= cap; idx[0 .. nr-1] are the pool's, idx[nr-1] is the next to be given
 *   P2  no index is XPOOL_NONE. The caller sees to it that none is in twice.
 */
#ifndef XTYPES_XPOOL_H
#define XTYPES_XPOOL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define XPOOL_NONE UINT32_MAX

struct xpool {
	uint32_t *idx;
	uint32_t nr;
	uint32_t cap;
};

/* Bytes of memory for a pool of cap indices. */
size_t xpool_mem_bytes(uint32_t cap);

/* Makes an empty pool in mem (aligned to 4, xpool_mem_bytes(cap) long, the caller's for life). */
void xpool_init(struct xpool *p, void *mem, uint32_t cap);

static inline void xpool_put(struct xpool *p, uint32_t idx)
{
	assert(p->nr < p->cap);
	assert(idx != XPOOL_NONE);
	p->idx[p->nr++] = idx;
}

/* XPOOL_NONE when the pool is empty. */
static inline uint32_t xpool_get(struct xpool *p)
{
	return p->nr ? p->idx[--p->nr] : XPOOL_NONE;
}

static inline uint32_t xpool_nr(const struct xpool *p)
{
	return p->nr;
}

/* The i-th from the bottom, i < xpool_nr(). */
static inline uint32_t xpool_at(const struct xpool *p, uint32_t i)
{
	assert(i < p->nr);
	return p->idx[i];
}

/* Takes it out; the next one to be given takes its place. */
static inline void xpool_take_at(struct xpool *p, uint32_t i)
{
	assert(i < p->nr);
	p->idx[i] = p->idx[--p->nr];
}

#endif
