/* xhuge - huge pages for large tables that are looked up at random.
 *
 * Such a table costs a miss of the TLB with each look; in pages of 2 MiB it has 512 times fewer of
 * them. It is a wish: where the system gives none, all is as it was. What lies in a page of 2 MiB
 * with other tables stays in small ones; of the others a page of 2 MiB comes as a whole with its
 * first byte.
 *
 * Contract: any thread; before the memory is touched. Blocks on the kernel, for a moment.
 */
#ifndef XTYPES_XHUGE_H
#define XTYPES_XHUGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define XHUGE_BYTES ((uintptr_t)2 << 20)

static inline void xhuge_want(void *mem, size_t bytes)
{
	uintptr_t from = ((uintptr_t)mem + XHUGE_BYTES - 1) / XHUGE_BYTES * XHUGE_BYTES;
	uintptr_t to = ((uintptr_t)mem + bytes) / XHUGE_BYTES * XHUGE_BYTES;

	if (from < to)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

#endif
