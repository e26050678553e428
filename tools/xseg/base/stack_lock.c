/* stack_lock - see stack_lock.h. */
#include "tools/xseg/base/stack_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* Commands that only write a name or a line end in that time. */
#define WAIT_NS (2 * TOOL_SECOND)
#define POLL_NS (TOOL_SECOND / 100)

static int lock_file(int fd)
{
	uint64_t end = tool_now_ns() + WAIT_NS;

	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || tool_now_ns() >= end)
			return errno;
		tool_sleep_ns(POLL_NS);
	}
	return 0;
}

int stack_lock(struct tool *t, const char *what, int *fd)
{
	char path[XSEG_NAME_MAX + 32];
	int error;

	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", t->segment);
	*fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	error = *fd < 0 ? errno : lock_file(*fd);
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
