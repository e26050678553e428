/* volume_io - raw images into volumes and out of them, several requests at a time.
 *
 * Contract: one thread; opens the volume for itself, in the client's segment. Reports its errors
 * (tool.h) and returns an exit code. An import ends with a FLUSH.
 */
#ifndef TOOLS_XSEG_VOLUME_IO_H
#define TOOLS_XSEG_VOLUME_IO_H

#include "tools/xseg/base/client.h"

struct volume_ref {
	struct client *c;
	uint32_t peer;				/* volumed's index */
	uint32_t id;
	uint64_t size_bytes;
	const char *name;
};

struct volume_io_result {
	uint64_t bytes;				/* of the image */
	uint64_t data_bytes;			/* moved as data; the rest was zeroes */
	uint64_t elapsed_ns;
};

/* "-" is standard input. Refuses a volume that another client has open, unless `force`. */
int volume_io_import(const struct volume_ref *v, const char *file, bool force,
		     struct volume_io_result *result);
/* What `file` may be, and what `force` does: image_file.h. */
int volume_io_export(const struct volume_ref *v, const char *file, bool force,
		     struct volume_io_result *result);

#endif
