/* image_format - what an image is that is not raw, by its first bytes.
 *
 * Contract: pure. A raw image may begin with any bytes, so a caller may be told to take it as one.
 */
#ifndef TOOLS_XSEG_IMAGE_FORMAT_H
#define TOOLS_XSEG_IMAGE_FORMAT_H

#include <stddef.h>

#define IMAGE_FORMAT_BYTES 512			/* so many of the first ones tell all */

struct image_format {
	const char *name;			/* with its article: "a qcow2 image" */
	/* the program that makes a raw image of it, to standard output; NULL: qemu-img does, into a
	 * file */
	const char *unpacks;
	size_t at, len;				/* of the magic */
	const char *magic;
};

/* NULL: it may well be raw. */
const struct image_format *image_format_of(const void *begin, size_t bytes);

#endif
