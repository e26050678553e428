/* volume_copy - all objects of a volume become those of another, by the peers: COPY requests.
 *
 * Contract: one thread; a client of its own in the client's segment, which has the source open.
 * Reports its errors (tool.h) and returns an exit code. Ends with a FLUSH of the target.
 */
#ifndef TOOLS_XSEG_VOLUME_COPY_H
#define TOOLS_XSEG_VOLUME_COPY_H

#include "tools/xseg/flow/volume_io.h"

/* `to` is new, at least as large as `from`, and has objects of the same size. result: data_bytes
 * are those of objects that the source has. Refuses a source that another client has open, unless
 * `force`. */
int volume_copy(const struct volume_ref *from, const struct volume_ref *to, uint64_t object_bytes,
	bool force, struct volume_io_result *result) XSEG_MUST_CHECK;

#endif
