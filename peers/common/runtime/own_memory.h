/* own_memory - whether the kernel can give a peer the memory that it takes beside the segment.
 *
 * Contract: any thread; blocks on the kernel.
 */
#ifndef PEERS_COMMON_OWN_MEMORY_H
#define PEERS_COMMON_OWN_MEMORY_H

#include "xseg/xseg.h"

/* What needs it, and what a person can do about it. -ENOSPC with a line in err: the kernel would
 * kill somebody instead. Less than 16 MiB is not asked for. */
int own_memory_check(uint64_t bytes, const char *what, const char *do_what, struct xseg_error *err)
	XSEG_MUST_CHECK;

#endif
