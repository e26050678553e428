/* stack_lock - see stack_lock.h. */
#include "tools/xseg/base/stack_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* Commands that write a name or a line end in that time. So does the start of a supervisor. */
#define WAIT_NS (5 * TOOL_SECOND)
#define POLL_NS (TOOL_SECOND / 100)

#define HELD "another command changes the stack of segment %s, as 'xseg reload' does"

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

static int lock_file_patiently(struct tool *t, const char *what, int fd)
{
	int error = 0;

	while (!error && flock(fd, LOCK_EX | LOCK_NB)) {
		error = errno == EWOULDBLOCK ? 0 : errno;
		if (!error && tool_out_of_time(t))
			error = EWOULDBLOCK;
		tool_progress(t, "%s: " HELD "; this one waits for its end", what, t->segment);
		tool_sleep_ns(POLL_NS);
	}
	tool_progress_end();
	return error;
}

static int open_file(const struct tool *t)
{
	char path[XSEG_NAME_MAX + 32];

	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", t->segment);
	return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

static int take(struct tool *t, const char *what, bool patiently, int *fd)
{
	int error;

	*fd = open_file(t);
	if (*fd < 0)
		error = errno;
	else
		error = patiently ? lock_file_patiently(t, what, *fd) : lock_file(*fd);
	if (!error)
		return TOOL_DONE;
	stack_unlock(*fd);
	*fd = -1;
	if (error != EWOULDBLOCK)
		return tool_fail_errno(-error, NULL, "see the owner of its file in /dev/shm",
			"%s: segment %s", what, t->segment);
	if (patiently)
		return tool_later("%s: " HELD "; do this again when it has ended", what,
			t->segment);
	return tool_fail(TOOL_REFUSED, "%s: " HELD "; do this again when it has ended", what,
		t->segment);
}

int stack_lock(struct tool *t, const char *what, int *fd)
{
	return take(t, what, false, fd);
}

int stack_lock_patiently(struct tool *t, const char *what, int *fd)
{
	return take(t, what, true, fd);
}

bool stack_is_locked(const struct tool *t)
{
	int fd = open_file(t);
	bool is_locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	stack_unlock(fd);
	return is_locked;
}

void stack_unlock(int fd)
{
	if (fd >= 0)
		close(fd);
}
