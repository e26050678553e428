/* text_file - see text_file.h. The new file is stable before it gets the name, and the name is
 * stable before text_file_replace() returns.
 */
#include "peers/common/options/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, char *text, size_t size)
{
	size_t used = 0;
	ssize_t len;

	while (used < size) {
		len = read(fd, text + used, size - used);
		if (len < 0 && errno != EINTR)
			return -errno;
		if (len == 0)
			break;
		used += len > 0 ? (size_t)len : 0;
	}
	if (used == size)
		return -EFBIG;
	text[used] = '\0';
	return strlen(text) == used ? 0 : -EINVAL;
}

int text_file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = read_all(fd, text, size);
	close(fd);
	return rc;
}

/* With the owner, the group and the mode of the old one. */
static int take_rights(int fd, const char *path)
{
	struct stat old, own;

	if (stat(path, &old) || fstat(fd, &own))
		return -errno;
	if ((old.st_uid != own.st_uid || old.st_gid != own.st_gid) &&
		fchown(fd, old.st_uid, old.st_gid))
		return -errno;
	return fchmod(fd, old.st_mode & 07777) ? -errno : 0;
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);
	ssize_t len;

	while (left) {
		len = write(fd, text, left);
		if (len < 0 && errno != EINTR)
			return -errno;
		text += len > 0 ? len : 0;
		left -= len > 0 ? (size_t)len : 0;
	}
	return fsync(fd) ? -errno : 0;
}

static int sync_directory(const char *path)
{
	char above[PATH_MAX];
	int fd, rc;

	snprintf(above, sizeof(above), "%s", path);
	*strrchr(above, '/') = '\0';
	fd = open(*above ? above : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

int text_file_replace(const char *path, const char *text)
{
	char real[PATH_MAX], temporary[PATH_MAX + 16];
	int fd, rc;

	if (!realpath(path, real))
		return -errno;
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", real);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = take_rights(fd, real);
	if (!rc)
		rc = write_all(fd, text);
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(temporary, real))
		rc = -errno;
	if (rc)
		unlink(temporary);
	return rc ? rc : sync_directory(real);
}
