/* xline - whole cache lines: data that threads write on their own shares no line with others.
 *
 * Contract: any thread; nothing blocks. Memory of xline_alloc() is given back with free().
 */
#ifndef XTYPES_XLINE_H
#define XTYPES_XLINE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define XLINE_BYTES ((size_t)64)

static inline size_t xline_round(size_t bytes)
{
	return (bytes + XLINE_BYTES - 1) & ~(XLINE_BYTES - 1);
}

/* Lines for that many bytes, zeroed; NULL: no memory. */
static inline void *xline_alloc(size_t bytes)
{
	void *mem = aligned_alloc(XLINE_BYTES, xline_round(bytes));

	if (mem)
		memset(mem, 0, xline_round(bytes));
	return mem;
}

#endif
