/* part - the range that a request from above covers, as far as the request alone says it.
 *
 * Contract: any thread; the request is the caller's.
 */
#ifndef PEERS_CACHED_PART_H
#define PEERS_CACHED_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

#define BUCKET_SIZE XSEG_PAGE_SIZE

/* The part of its i-th bucket that a request covers: *len bytes from *in of the bucket. */
static inline void request_part(const struct xreq *r, uint32_t i, uint32_t *in, uint32_t *len)
{
	uint64_t start = r->obj_offset, end = start + r->size,
		 lo = (start / BUCKET_SIZE + i) * BUCKET_SIZE, hi = lo + BUCKET_SIZE;

	*in = start > lo ? (uint32_t)(start - lo) : 0;
	*len = (uint32_t)((end < hi ? end : hi) - lo) - *in;
}

static inline bool request_is_partial(const struct xreq *r, uint32_t i)
{
	uint32_t in, len;

	request_part(r, i, &in, &len);
	return len != BUCKET_SIZE;
}

/* It is no use of what the cache has, and what it brings is not kept for others. */
static inline bool request_is_once(const struct xreq *r)
{
	return r->flags & XSEG_REQ_ONCE && (r->op == XSEG_OP_READ || r->op == XSEG_OP_WRITE);
}

/* Its data goes by the processor: it is not lent. */
static inline bool request_is_copied_read(const struct xreq *r)
{
	return r->op == XSEG_OP_READ && !(r->flags & XSEG_REQ_LOAN);
}

/* Bits, by operation. */
enum {
	OPS_CUT = 0
#define XSEG_OP_ROW(op, word, range, changes, data, cut, flags) | (cut) << XSEG_OP_##op
#include "xseg/ops.def"
};
/* Takes something away: nothing older may bring it back. */
static inline bool op_is_cut(uint8_t op)
{
	return OPS_CUT >> op & 1;
}

#endif
