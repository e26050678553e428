/* proof - which process is behind a member, by the kernel's word.
 *
 * A pid in the segment is a word that any member may write. It proves nothing, and is never
 * signalled as it is. The kernel knows better. /proc/PID/fdinfo/FD lists the locks of that open
 * file description, and a member has the lock on its byte for life (lock.c).
 *
 * Contract: any thread; observers too. Only looks, in the segment and in /proc. A process of
 * another user tells nothing (EACCES), except to root. If another process that can be looked at has
 * the lock, that proves as much.
 *
 * Invariants:
 *   I1  First a pidfd is opened. Then the process is proved by its pid. Then the peer is looked at
 *       again. Then the caller signals through the pidfd. A process may die in between, and its pid
 *       may be given to another one. Neither is signalled then: the pidfd is the old process's.
 *   I2  The proof is a write lock of a description on the member's byte, in the file of this
 *       segment.
 *   I3  A process that ends has no descriptors a moment before its locks go. So the lack of a lock
 *       says nothing against it: it counts as gone, never as the wrong one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "xseg/internal.h"

/* ---- one process ---- */

/* Such a line: "lock:	1: OFDLCK ADVISORY  WRITE -1 00:1b:194760 65 65". Numbers of devices are
 * hexadecimal; the range ends with EOF where it has no end. */
static bool is_lock_on(const char *line, const struct stat *file, uint64_t byte)
{
	unsigned long long ino, first, last;
	unsigned major, minor;
	char end[24];

	if (sscanf(line, "lock: %*d: OFDLCK %*s WRITE %*d %x:%x:%llu %llu %23s", &major, &minor,
		    &ino, &first, end) != 5)
		return false;
	last = strcmp(end, "EOF") ? strtoull(end, NULL, 10) : UINT64_MAX;
	return major == major(file->st_dev) && minor == minor(file->st_dev) &&
	       ino == file->st_ino && first <= byte && byte <= last;
}

static bool description_has(int fdinfo, const char *name, const struct stat *file, uint64_t byte)
{
	int fd = openat(fdinfo, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = false;
	char line[160];

	if (!f) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && fgets(line, sizeof(line), f))
		found = is_lock_on(line, file, byte);
	fclose(f);
	return found;
}

/* 1: the process has the lock; 0: it has not; or a negative errno: it cannot be known. */
static int process_has(uint32_t pid, const struct stat *file, uint64_t byte)
{
	struct dirent *e;
	char path[32];
	int found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!found && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.')
			found = description_has(dirfd(dir), e->d_name, file, byte);
	closedir(dir);
	return found;
}

/* The kernel's PF_EXITING: set once, before the process gives up its descriptors. */
#define FLAG_EXITING 0x4u

/* I3. */
static bool is_ending(uint32_t pid)
{
	char path[32], text[512];
	const char *rest;
	unsigned flags;
	char state;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return false;
	text[len] = '\0';
	rest = strrchr(text, ')');	/* the name before it may have any character */
	return rest &&
	       sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2 &&
	       (state == 'Z' || state == 'X' || (flags & FLAG_EXITING));
}

uint32_t xs_byte_holder(struct xseg *seg, uint64_t byte)
{
	DIR *all = opendir("/proc");
	struct dirent *e;
	uint32_t pid = 0;
	struct stat file;

	if (!all)
		return 0;
	while (!fstat(seg->fd, &file) && !pid && (e = readdir(all)) != NULL) {
		uint32_t at = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (at && process_has(at, &file, byte) == 1)
			pid = at;
	}
	closedir(all);
	return pid;
}

/* As process_has(). Of a process that cannot be looked at: 0 if another one has the lock. */
static int pid_has(struct xseg *seg, uint32_t pid, uint64_t byte)
{
	struct stat file;
	int has;

	if (fstat(seg->fd, &file))
		return -errno;
	has = process_has(pid, &file, byte);
	return has < 0 && xs_byte_holder(seg, byte) ? 0 : has;
}

bool xs_pid_has_byte(struct xseg *seg, uint32_t pid, uint64_t byte)
{
	return pid_has(seg, pid, byte) != 0 || is_ending(pid);
}

/* ---- the process of a peer ---- */

int xseg_peer_pid_check(struct xseg *seg, const struct xseg_peer_info *info)
{
	int has;

	if (!info->pid || info->member >= XSEG_MAX_MEMBERS || !xseg_peer_is_up(info->state))
		return -ESRCH;
	has = pid_has(seg, info->pid, XSEG_LOCK_MEMBER0 + info->member);
	if (has)
		return has > 0 ? 0 : has;
	return is_ending(info->pid) ? -ESRCH : -EPROTO;
}

uint32_t xseg_peer_pid_find(struct xseg *seg, const struct xseg_peer_info *info)
{
	return info->member < XSEG_MAX_MEMBERS && xseg_peer_is_up(info->state)
		       ? xs_byte_holder(seg, XSEG_LOCK_MEMBER0 + info->member)
		       : 0;
}

static bool is_still(struct xseg *seg, const struct xseg_peer_info *info)
{
	struct xseg_peer_info now;

	return xseg_peer_get_info(seg, info->index, &now) && xseg_peer_is_up(now.state) &&
	       now.generation == info->generation && now.member == info->member;
}

int xseg_peer_pidfd(struct xseg *seg, const struct xseg_peer_info *info)
{
	int fd, rc;

	if (!info->pid)
		return is_still(seg, info) ? -EPROTO : -ESRCH;
	/* a pid that is beyond all pids is none (EINVAL) */
	fd = (int)syscall(SYS_pidfd_open, (pid_t)info->pid, 0);
	if (fd < 0 && errno != ESRCH && errno != EINVAL)
		return -errno;
	rc = fd < 0 ? -EPROTO : xseg_peer_pid_check(seg, info);
	if (!is_still(seg, info))
		rc = -ESRCH;
	if (rc == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return rc;
}
