/* memory - whether the kernel can give so much memory. See memory.c. */
#ifndef XSEG_MEMORY_H
#define XSEG_MEMORY_H

#include "xseg/base.h"

/* What needs it, and what a person can do about it: "the segment", "ask for less memory". -ENOSPC
 * with a line in err: the kernel would kill somebody instead. */
int xs_memory_check(uint64_t bytes, const char *what, const char *do_what, struct xseg_error *err)
	XSEG_MUST_CHECK;

#endif
