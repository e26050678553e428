/* stack_lock - see stack_lock.h. */
#include "tools/xseg/base/stack_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

int stack_lock(struct tool *t, const char *what, int *fd)
{
	char path[XSEG_NAME_MAX + 32];
	int error = 0;

	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", t->segment);
	*fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB))
		error = errno;
	if (!error)
		return TOOL_DONE;
	stack_unlock(*fd);
	*fd = -1;
	if (error == EWOULDBLOCK)
		return tool_fail(TOOL_REFUSED,
			"%s: another command changes the stack of segment %s, as 'xseg reload' "
			"does; do this again when it has ended",
			what, t->segment);
	return tool_fail_errno(-error, NULL, "see the owner of its file in /dev/shm",
		"%s: segment %s", what, t->segment);
}

void stack_unlock(int fd)
{
	if (fd >= 0)
		close(fd);
}
