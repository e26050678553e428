/* image_format - see image_format.h. */
#include "tools/xseg/flow/image_format.h"

#include <string.h>

#define MAGIC(at, text) (at), sizeof(text) - 1, (text)

static const struct image_format formats[] = {
	{ "a qcow2 image", NULL, MAGIC(0, "QFI\xfb") },
	{ "a QED image", NULL, MAGIC(0, "QED\0") },
	{ "a VMDK image", NULL, MAGIC(0, "KDMV") },
	{ "a VMDK image", NULL, MAGIC(0, "COWD") },
	{ "a VMDK description", NULL, MAGIC(0, "# Disk DescriptorFile") },
	{ "a VHDX image", NULL, MAGIC(0, "vhdxfile") },
	{ "a VHD image", NULL, MAGIC(0, "conec" "tix") },
	{ "a VDI image", NULL, MAGIC(64, "\x7f\x10\xda\xbe") },
	{ "compressed by gzip", "zcat", MAGIC(0, "\x1f\x8b\x08") },
	{ "compressed by xz", "xzcat", MAGIC(0, "\xfd" "7zXZ\0") },
	{ "compressed by zstd", "zstdcat", MAGIC(0, "\x28\xb5\x2f\xfd") },
	{ "compressed by bzip2", "bzcat", MAGIC(0, "BZh") },
	{ "compressed by lz4", "lz4cat", MAGIC(0, "\x04\x22\x4d\x18") },
};

const struct image_format *image_format_of(const void *begin, size_t bytes)
{
	const struct image_format *f;

	for (f = formats; f < formats + sizeof(formats) / sizeof(formats[0]); f++)
		if (bytes >= f->at + f->len &&
			!memcmp((const char *)begin + f->at, f->magic, f->len))
			return f;
	return NULL;
}
