/* alloc - private tables of the cache: taken before it serves, freed together. */
#include <assert.h>

#include "peers/cached/memory/pages.h"

void *cached_alloc(struct cached *k, size_t bytes)
{
	struct allocs *a = &memory_of(k)->allocs;
	void *p;

	assert(a->nr < sizeof(a->mem) / sizeof(a->mem[0]));
	p = xhuge_take(&a->mem[a->nr], bytes);
	if (!p)
		return NULL;
	a->nr++;
	a->bytes += bytes;
	return p;
}

void cached_free_all(struct cached *k)
{
	struct allocs *a = &memory_of(k)->allocs;

	while (a->nr)
		xhuge_give(&a->mem[--a->nr]);
}
