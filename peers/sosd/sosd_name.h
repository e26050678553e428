/* sosd_name - the names of objects in the pool.
 *
 * A name is PREFIX.TARGET. Bytes of the target that a terminal could not show, spaces and '%' are
 * written %XX. So other programs' objects in the pool are kept apart, and `rados ls` can be read.
 * Segments of one prefix have their volumes in common. A prefix has no dot in it, so no two pairs
 * of prefix and target get the same name.
 *
 * Contract: pure functions.
 */
#ifndef PEERS_SOSD_SOSD_NAME_H
#define PEERS_SOSD_SOSD_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "xseg/xseg.h"

#define SOSD_PREFIX_MAX 32				/* with the NUL */
#define SOSD_NAME_MAX	(SOSD_PREFIX_MAX + 1 + 3 * XSEG_TARGET_MAX)

/* 1 to 31 characters of [A-Za-z0-9_-]. */
bool sosd_prefix_ok(const char *prefix);
void sosd_name(const char *prefix, const char *target, char name[SOSD_NAME_MAX]);
/* The way back. False: a name of `len` bytes that sosd_name() gives no target of this prefix. */
bool sosd_name_target(
	const char *prefix, const char *name, size_t len, char target[XSEG_TARGET_MAX]);

#endif
