/* xhuge - huge pages for large tables that are looked up at random.
 *
 * Each lookup in such a table costs a TLB miss. In pages of 2 MiB the table has 512 times fewer
 * pages. The table gets pages that an administrator has set aside (vm.nr_hugepages), if enough are
 * left. These are there for certain, and all at once. Otherwise it asks for the pages that the
 * kernel makes by itself. If the system gives none, nothing changes. Memory that is never touched
 * is not allocated then. The parts of the table that share a page of 2 MiB with other memory stay
 * in small pages. Every other page of 2 MiB comes as a whole with its first byte.
 *
 * Contract: any thread. Blocks on the kernel, for a moment.
 */
#ifndef XTYPES_XHUGE_H
#define XTYPES_XHUGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "xtypes/xline.h"

#define XHUGE_BYTES ((uintptr_t)2 << 20)
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)			/* <sys/mman.h> has no name for it */
#endif

/* A block of memory, as xhuge_take() made it; NULL: there is none. */
struct xhuge {
	void *at;
	size_t mapped;				/* for munmap(); 0: for free() */
};

static inline void *xhuge_mapped(struct xhuge *h, size_t bytes)
{
	void *mem;

	h->mapped = (bytes + XHUGE_BYTES - 1) / XHUGE_BYTES * XHUGE_BYTES;
	mem = mmap(NULL, h->mapped, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
	h->at = mem == MAP_FAILED ? NULL : mem;
	return h->at;
}

/* Returns zeroed memory that begins with a line, which is the caller's until xhuge_give(); NULL:
 * there is no memory. */
static inline void *xhuge_take(struct xhuge *h, size_t bytes)
{
	uintptr_t from, to;

	if (bytes >= XHUGE_BYTES && xhuge_mapped(h, bytes))
		return h->at;
	h->mapped = 0;
	h->at = calloc(1, bytes + XLINE_BYTES);
	if (!h->at)
		return NULL;
	from = ((uintptr_t)h->at + XHUGE_BYTES - 1) / XHUGE_BYTES * XHUGE_BYTES;
	to = ((uintptr_t)h->at + bytes) / XHUGE_BYTES * XHUGE_BYTES;
	if (from < to)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
	return (char *)h->at + (XLINE_BYTES - (uintptr_t)h->at % XLINE_BYTES);
}

static inline void xhuge_give(struct xhuge *h)
{
	if (h->mapped)
		munmap(h->at, h->mapped);
	else
		free(h->at);
	*h = (struct xhuge){ .at = NULL };
}

#endif
