/* iolog - see iolog.h. */
#include "bench/xbench/plan/iolog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES (1u << 20)

struct xb_iolog {
	FILE *out;
	char file[XSEG_NAME_MAX];
};

struct xb_iolog *xb_iolog_create(const char *path, const char *file, struct xseg_error *err)
{
	struct xb_iolog *log = calloc(1, sizeof(*log));

	if (!log) {
		xseg_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	log->out = fopen(path, "we");
	if (!log->out) {
		xseg_fail(err, -errno, "write_iolog: cannot write %s: %s", path, strerror(errno));
		free(log);
		return NULL;
	}
	setvbuf(log->out, NULL, _IOFBF, BUFFER_BYTES);
	snprintf(log->file, sizeof(log->file), "%s", file);
	fprintf(log->out, "fio version 2 iolog\n%s add\n%s open\n", log->file, log->file);
	return log;
}

void xb_iolog_add(struct xb_iolog *log, const struct xb_io *io)
{
	static const char *const words[XB_NR_OPS] = {
		[XB_READ] = "read",  [XB_WRITE] = "write", [XB_TRIM] = "trim",
		[XB_FLUSH] = "sync", [XB_ZEROES] = "trim", [XB_COPY] = "write",
	};

	if (words[io->op])
		fprintf(log->out, "%s %s %" PRIu64 " %" PRIu32 "\n", log->file, words[io->op],
			io->offset, io->size);
}

int xb_iolog_destroy(struct xb_iolog *log)
{
	int rc = 0;

	if (!log)
		return 0;
	fprintf(log->out, "%s close\n", log->file);
	if (ferror(log->out))
		rc = -EIO;
	if (fclose(log->out) && !rc)
		rc = -errno;
	free(log);
	return rc;
}
