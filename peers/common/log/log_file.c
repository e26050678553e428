/* log_file - see log_file.h. */
#include "peers/common/log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* NULL: it may be written to. */
static const char *objection(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid != geteuid())
		return "it belongs to another user";
	return st->st_nlink > 1 ? "it has more than one name" : NULL;
}

int log_file_open(const char *path, struct xseg_error *err)
{
	/* without a wait for whoever reads from a fifo */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		      0600);
	int rc = fd < 0 ? -errno : -EPERM;
	const char *why = NULL;
	struct stat st;

	if (fd < 0)
		why = rc == -ELOOP ? "it is a symbolic link" : strerror(-rc);
	else if (fstat(fd, &st))
		why = strerror(errno);
	else
		why = objection(&st);
	if (!why)
		return fd;
	if (fd >= 0)
		close(fd);
	return xseg_fail(err, rc,
			 "cannot write the log %s: %s; remove it, or set XDG_STATE_HOME to a "
			 "directory of your own",
			 path, why);
}
