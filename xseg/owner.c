/* owner - which owners' segments a process attaches; and which users a segment lets in.
 *
 * The owner of a segment's file may change its mode and write all of it. He can read the data that
 * goes through, change it, and choose the programs that peers start. So a process trusts the owner
 * of a segment that it attaches. The name alone proves nothing: every user may make files in
 * /dev/shm.
 *
 * Contract: any thread; all but xseg_access_set() only look. The environment is not read here.
 *
 * Invariants:
 *   O1  An attach goes on only if one of these holds. The file's owner is the caller, is root, or
 *       is the user that the caller names. Or the file's group lets the caller in: the file has
 *       0060, the group is one of the caller's, and the caller is not root.
 *   O2  Root has all groups, so a group says nothing about the users that root trusts: O1 excepts
 *       root.
 *   O3  The check is of the descriptor that is mapped later, not of the name.
 *   O4  A text in the segment starts a program only if the caller owns the file (xseg_is_own()).
 *   O5  While the group changes, only the owner may attach: no group gets the rights of the other.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xseg/internal.h"

int xseg_user_find(const char *text, uint32_t *uid, struct xseg_error *err)
{
	char room[4096], *end = NULL;
	struct passwd user, *found = NULL;
	unsigned long number = strtoul(text, &end, 10);

	if (*text >= '0' && *text <= '9' && !*end && number < UINT32_MAX) {
		*uid = (uint32_t)number;
		return 0;
	}
	if (*text && getpwnam_r(text, &user, room, sizeof(room), &found) == 0 && found) {
		*uid = found->pw_uid;
		return 0;
	}
	return xseg_fail(err, -EINVAL, "owner: this machine has no user '%.60s'", text);
}

static bool is_in_group(gid_t group)
{
	gid_t groups[1024];
	int nr = getgroups((int)(sizeof(groups) / sizeof(groups[0])), groups);

	if (group == getegid())
		return true;
	for (int i = 0; i < nr; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* O1, but for a user that the caller names. */
static bool is_trusted(const struct stat *file)
{
	if (file->st_uid == geteuid() || file->st_uid == 0)
		return true;
	return geteuid() != 0 && (file->st_mode & 0060) == 0060 && is_in_group(file->st_gid);
}

static int fail_not_yours(const char *name, uint32_t uid, struct xseg_error *err)
{
	char room[4096], number[16];
	struct passwd user, *found = NULL;
	const char *who = number;

	snprintf(number, sizeof(number), "%u", uid);
	if (getpwuid_r(uid, &user, room, sizeof(room), &found) == 0 && found)
		who = found->pw_name;
	return xseg_fail(err, -EPERM,
		"segment '%.63s' is not yours, user %.32s made it and may read and change all that "
		"goes through it; if you trust that user, add --owner %.32s",
		name, who, who);
}

int xs_owner_check(int fd, const char *name, const char *owner, struct xseg_error *err)
{
	struct stat file;
	uint32_t uid = 0;

	if (owner && *owner && xseg_user_find(owner, &uid, err))
		return -EINVAL;
	if (fstat(fd, &file))
		return xseg_fail(err, -errno, "segment '%s': %m", name);
	if (is_trusted(&file) || (owner && *owner && file.st_uid == uid))
		return 0;
	return fail_not_yours(name, file.st_uid, err);
}

bool xseg_is_own(struct xseg *seg)
{
	struct stat file;

	return fstat(seg->fd, &file) == 0 && file.st_uid == geteuid();
}

/* O5. A group that cannot be had changes nothing. */
static int set_access(int fd, uint32_t mode, int64_t group)
{
	struct stat file;
	int rc = 0;

	if (fstat(fd, &file))
		return -errno;
	if (group >= 0 && file.st_gid != (gid_t)group) {
		if (fchmod(fd, mode & 0700))
			return -errno;
		if (fchown(fd, (uid_t)-1, (gid_t)group))
			rc = -errno;
	}
	if (fchmod(fd, rc ? file.st_mode & 07777 : mode) && rc == 0)
		rc = -errno;
	return rc;
}

int xseg_access_get(struct xseg *seg, uint32_t *mode, int64_t *group)
{
	struct stat file;

	if (fstat(seg->fd, &file))
		return -errno;
	*mode = file.st_mode & 0777;
	*group = file.st_gid;
	return 0;
}

int xseg_access_set(struct xseg *seg, uint32_t mode, int64_t group)
{
	int rc = set_access(seg->fd, mode, group);

	if (rc == 0 && seg->pool_fd >= 0)
		rc = set_access(seg->pool_fd, mode, group);
	return rc;
}
