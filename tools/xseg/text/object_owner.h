/* object_owner - the volume that an object of a store belongs to: people know volumes, and stores
 * name objects.
 *
 * Contract: one thread. Asks volumeds, and prints nothing.
 */
#ifndef TOOLS_XSEG_OBJECT_OWNER_H
#define TOOLS_XSEG_OBJECT_OWNER_H

#include "tools/xseg/base/asker.h"
#include "tools/xseg/base/view.h"

#define OBJECT_OWNER_BYTES (XSEG_NAME_MAX + 1)

/* The name of the volume, or "+NAME" of a store of values. False, and "": it is not known. */
bool object_owner_find(struct asker *a, const struct view_peers *peers,
	const struct xseg_peer_info *store, const char *object, char name[OBJECT_OWNER_BYTES]);

#endif
