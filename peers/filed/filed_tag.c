/* filed_tag - see filed_tag.h for the format, its order of steps and its invariants. */
#include "peers/filed/filed_tag.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xtypes/xkill.h"

#define ATTRIBUTE  "user.xseg"
#define VERSION	   1u
#define LENGTH_MIN (UINT64_C(64) << 10)
#define LENGTH_MAX (UINT64_C(4) << 20)		/* a longer one is a multiple of that */
#define TAG_BYTES  (48 + XSEG_TARGET_MAX)

bool filed_tag_can(int dir)
{
	return fgetxattr(dir, ATTRIBUTE, NULL, 0) >= 0 || errno != EOPNOTSUPP;
}

static uint64_t length_for(uint64_t end)
{
	uint64_t length = LENGTH_MIN;

	if (end > LENGTH_MAX)
		return (end + LENGTH_MAX - 1) / LENGTH_MAX * LENGTH_MAX;
	while (length < end)
		length *= 2;
	return length;
}

/* ---- the text ---------------------------------------------------------------------------- */

/* A number and the blank behind it; no sign, no blank before it. */
static bool read_number(const char **at, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*number = strtoumax(*at, &end, 10);
	if (errno || *end != ' ')
		return false;
	*at = end + 1;
	return true;
}

static int read_text(const char *text, const char *name, uint64_t *length, uint64_t *sure)
{
	uint64_t version;

	if (!read_number(&text, &version) || version != VERSION || !read_number(&text, length) ||
		!read_number(&text, sure) || *sure > *length)
		return -FILED_ETAG;
	return strcmp(text, name) ? -FILED_EOTHER : 0;
}

static int write_text(int fd, const char *name, uint64_t length, uint64_t sure)
{
	char text[TAG_BYTES];
	int n = snprintf(text, sizeof(text), "%u %" PRIu64 " %" PRIu64 " %s", VERSION, length, sure,
		name);

	return fsetxattr(fd, ATTRIBUTE, text, (size_t)n, 0) ? -errno : 0;
}

/* ---- checking and growing ---------------------------------------------------------------- */

int filed_tag_check(int fd, const char *name, uint64_t *length)
{
	uint64_t told = 0, sure = 0;
	char text[TAG_BYTES];
	struct stat st;
	ssize_t n;
	int rc;

	*length = 0;
	n = fgetxattr(fd, ATTRIBUTE, text, sizeof(text) - 1);
	if (n < 0 && errno == EOPNOTSUPP)
		*length = FILED_ANY_LENGTH;
	if (n < 0 && errno == ERANGE)
		return -FILED_ETAG;
	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
	text[n] = '\0';
	if (strlen(text) != (size_t)n)
		return -FILED_ETAG;
	rc = read_text(text, name, &told, &sure);
	if (rc)
		return rc;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size < sure)
		return -FILED_ESHORT;
	if ((uint64_t)st.st_size == told && sure == told)
		*length = told;
	return 0;
}

/* The attribute may need a block. What makes room has to go on without it. */
static bool is_full(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

int filed_tag_grow(int fd, const char *name, uint64_t end, uint64_t *length)
{
	uint64_t size, wanted;
	struct stat st;
	int rc;

	if (fstat(fd, &st))
		return -errno;
	size = (uint64_t)st.st_size;
	wanted = length_for(size > end ? size : end);
	if (size < wanted) {
		rc = write_text(fd, name, wanted, size);
		if (rc)
			goto out;
		XKILL(FILE_TAGGED);
		if (TEMP_FAILURE_RETRY(ftruncate(fd, (off_t)wanted)))
			return -errno;
		XKILL(FILE_GROWN);
	}
	rc = write_text(fd, name, wanted, wanted);
out:
	if (is_full(rc) && end <= size) {
		*length = 0;
		return 0;
	}
	if (rc && rc != -EOPNOTSUPP)
		return rc;
	*length = rc ? FILED_ANY_LENGTH : wanted;
	return 0;
}
