/* xpool - making a pool. Contract and invariants: xpool.h. */
#include "xtypes/xpool.h"

size_t xpool_mem_bytes(uint32_t cap)
{
	return (size_t)cap * sizeof(uint32_t);
}

void xpool_init(struct xpool *p, void *mem, uint32_t cap)
{
	p->idx = mem;
	p->nr = 0;
	p->cap = cap;
}
