/* sosd_sizes - the bytes of the pool's objects, for `usage`: their sizes, asked of RADOS in steps.
 *
 * RADOS lists names without sizes, so each object is asked for its size: SOSD_SIZES_OUT of them at
 * a time. A step is one call for names. An object's size is that of its end, with its holes.
 *
 * Contract: the lister's thread alone; a step blocks. sosd_sizes_open() and _close() belong to init
 * and fini.
 */
#ifndef PEERS_SOSD_SOSD_SIZES_H
#define PEERS_SOSD_SOSD_SIZES_H

#include "peers/common/blocker/usage.h"
#include "peers/sosd/sosd_rados.h"

#define SOSD_SIZES_OUT 16u			/* calls at a time */

struct sosd_sizes {
	struct sosd_rados *rados;
	const char *prefix;
	struct usage usage;
	uint32_t slice;				/* of the pool, which is being counted */
	rados_object_list_cursor at, end;	/* in it; NULL: it has not been begun */
};

/* `rados` is open, and stays so until sosd_sizes_close(). */
int sosd_sizes_open(struct sosd_sizes *c, struct sosd_rados *rados, const char *prefix)
	XSEG_MUST_CHECK;
void sosd_sizes_close(struct sosd_sizes *c);	/* one that was not opened is all zeroes */
/* Goes on with a count that usage_ask() wants. True: there is more to do. */
bool sosd_sizes_step(struct sosd_sizes *c, uint64_t now_ns) XSEG_MUST_CHECK;

#endif
