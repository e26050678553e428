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

/* "-" is standard input. Refuses a volume that another client has open, unless `force`, and an
 * image that is not raw by its first bytes, unless `raw`. */
int volume_io_import(const struct volume_ref *v, const char *file, bool force, bool raw,
		     struct volume_io_result *result);
/* The size of a volume for that image, which has a size. Refuses the same. */
int volume_io_image_size(
	const char *volume, const char *file, bool raw, uint64_t *bytes) XSEG_MUST_CHECK;
/* What `file` may be, and what `force` does: image_file.h. */
int volume_io_export(const struct volume_ref *v, const char *file, bool force,
		     struct volume_io_result *result);

#endif
