/* xpool - making and filling a pool. Contract and invariants: xpool.h. */
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

void xpool_fill(struct xpool *p, uint32_t first, uint32_t nr)
{
	while (nr > 0)
		xpool_put(p, first + --nr);
}
