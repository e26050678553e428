/* image_file - see image_file.h. */
#include "tools/xseg/flow/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/xseg/base/out.h"
#include "tools/xseg/base/tool.h"

/* somebody else's file took the place of the one that was opened, so often in a row */
#define TRIES 10

static int fail(const struct image_file *f, int error, const char *name, const char *hint)
{
	return tool_fail_errno(-error, NULL, hint, "%s %s: %s", f->what, f->volume, name);
}

/* ---- opening ----------------------------------------------------------------------------- */

static int refuse_existing(const struct image_file *f)
{
	return tool_fail(TOOL_REFUSED,
		"%s %s: %s exists; choose another name, or add --force to replace it", f->what,
		f->volume, f->name);
}

static bool is_same_file(int fd, const char *name)
{
	struct stat mine, named;

	return !fstat(fd, &mine) && !lstat(name, &named) && mine.st_dev == named.st_dev &&
	       mine.st_ino == named.st_ino;
}

/* F4. The file may get its final name between its opening and the lock: then another is opened. */
static int open_partial(struct image_file *f)
{
	mode_t mode = f->mode ? f->mode & 0777 : 0666;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		f->fd = open(f->partial, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			     mode);
		/* then its directory is wanting, and nobody has typed the partial one */
		if (f->fd < 0)
			return fail(f, errno,
				errno == ENOENT || errno == ENOTDIR ? f->name : f->partial,
				"name a file that can be written");
		if (flock(f->fd, LOCK_EX | LOCK_NB))
			break;
		if (is_same_file(f->fd, f->partial))
			return TOOL_DONE;
		close(f->fd);
		f->fd = -1;
	}
	if (f->fd >= 0 && errno != EWOULDBLOCK)
		return fail(f, errno, f->partial, "name a file on another file system");
	return tool_fail(TOOL_REFUSED,
		"%s %s: another export is writing %s; wait for it, or choose another name", f->what,
		f->volume, f->partial);
}

/* Beside the file that a link leads to, so that it is renamed within one file system. */
static int open_regular(struct image_file *f, const struct stat *old)
{
	struct stat st;
	int rc;

	f->mode = old ? old->st_mode & 0777 : 0;
	snprintf(f->partial, sizeof(f->partial), "%s" IMAGE_PARTIAL, f->name);
	rc = open_partial(f);
	if (rc)
		return rc;
	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode))
		return fail(f, EEXIST, f->partial, "remove it, or name another file");
	f->is_regular = true;
	if ((f->mode && fchmod(f->fd, f->mode)) || ftruncate(f->fd, 0))
		return fail(f, errno, f->partial, "name a file that can be written");
	return TOOL_DONE;
}

static int too_small(const struct image_file *f, uint64_t room, uint64_t bytes)
{
	char has[OUT_TEXT], needs[OUT_TEXT];

	return tool_fail(TOOL_REFUSED, "%s %s: %s has %s and the volume %s; name a larger device",
			 f->what, f->volume, f->name, out_size(room, has), out_size(bytes, needs));
}

/* A device, a pipe: nothing else can be given its name. */
static int open_in_place(struct image_file *f, const struct stat *st, uint64_t bytes)
{
	off_t room;

	if (S_ISDIR(st->st_mode))
		return fail(f, EISDIR, f->name, "name a file that can be written");
	if (S_ISBLK(st->st_mode) && !f->force)
		return tool_fail(TOOL_REFUSED,
			"%s %s: %s is a device, whose data would be overwritten; add --force to "
			"allow that",
			f->what, f->volume, f->name);
	f->fd = open(f->name, O_WRONLY | O_CLOEXEC);
	if (f->fd < 0)
		return fail(f, errno, f->name, "name a file that can be written");
	if (!S_ISBLK(st->st_mode))
		return TOOL_DONE;
	room = lseek(f->fd, 0, SEEK_END);
	if (room < 0 || lseek(f->fd, 0, SEEK_SET))
		return fail(f, errno, f->name, "name another device");
	return (uint64_t)room < bytes ? too_small(f, (uint64_t)room, bytes) : TOOL_DONE;
}

static int open_stdout(struct image_file *f)
{
	f->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0)
		return fail(f, errno, f->name, "name a file that can be written");
	if (isatty(f->fd))
		return tool_fail(TOOL_USAGE,
			"%s %s: standard output is a terminal; put '> FILE' behind it", f->what,
			f->volume);
	return TOOL_DONE;
}

/* Replaces f->name by what a link leads to. */
static void follow_link(struct image_file *f)
{
	char *real = realpath(f->name, NULL);

	if (real)
		snprintf(f->name, sizeof(f->name), "%s", real);
	free(real);
}

int image_file_open(struct image_file *f, const char *what, const char *volume, const char *file,
		    bool force, uint64_t bytes)
{
	struct stat st, link;
	bool there, is_link;

	*f = (struct image_file){ .what = what, .volume = volume, .fd = -1, .force = force };
	if ((size_t)snprintf(f->name, sizeof(f->name), "%s", file) >= sizeof(f->name))
		return fail(f, ENAMETOOLONG, "FILE", "choose a shorter name");
	if (!strcmp(file, "-"))
		return open_stdout(f);
	there = !stat(f->name, &st);
	is_link = !lstat(f->name, &link);
	if (there && !S_ISREG(st.st_mode))
		return open_in_place(f, &st, bytes);
	if ((there || is_link) && !force)
		return refuse_existing(f);
	if (there)
		follow_link(f);
	return open_regular(f, there ? &st : NULL);
}

/* ---- the end ----------------------------------------------------------------------------- */

/* A directory whose file system cannot sync it is not to be blamed on the image. */
static int sync_directory(const struct image_file *f)
{
	char dir[PATH_MAX], *slash;
	int fd, rc;

	snprintf(dir, sizeof(dir), "%s", f->name);
	slash = strrchr(dir, '/');
	if (!slash)
		snprintf(dir, sizeof(dir), ".");
	else
		slash[slash == dir] = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	rc = fsync(fd) && errno != EINVAL && errno != ENOTSUP ? -errno : 0;
	close(fd);
	return rc;
}

/* F2. What cannot rename without replacing can link without. */
static int give_name(const struct image_file *f)
{
	if (f->force)
		return rename(f->partial, f->name) ? -errno : 0;
	if (!renameat2(AT_FDCWD, f->partial, AT_FDCWD, f->name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(f->partial, f->name))
		return -errno;
	return unlink(f->partial) ? -errno : 0;
}

int image_file_finish(struct image_file *f, uint64_t bytes)
{
	int rc;

	if (f->is_regular && ftruncate(f->fd, (off_t)bytes))
		return fail(f, errno, f->partial, "run it again");
	/* EINVAL: a pipe, a character device */
	if (fsync(f->fd) && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
		return fail(f, errno, *f->partial ? f->partial : f->name,
			    "it may not be on stable storage; mend that and run it again");
	if (!*f->partial)
		return TOOL_DONE;
	rc = give_name(f);
	if (rc == -EEXIST)
		return tool_fail(TOOL_REFUSED,
			"%s %s: %s was made by another meanwhile; the whole image is %s, rename "
			"that",
			f->what, f->volume, f->name, f->partial);
	if (rc)
		return tool_fail(TOOL_FAILED, "%s %s: %s: %s; the whole image is %s, rename that",
				 f->what, f->volume, f->name, strerror(-rc), f->partial);
	rc = sync_directory(f);
	return rc ? fail(f, -rc, f->name, "its name may not be on stable storage; run it again")
		  : TOOL_DONE;
}

void image_file_close(struct image_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
