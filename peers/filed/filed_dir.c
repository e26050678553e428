/* filed_dir - see filed_dir.h for the layout and the contract. */
#include "peers/filed/filed_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "peers/common/options/percent.h"
#include "peers/filed/filed_tag.h"

#define FORMAT_NAME "xseg-filed"
#define FORMAT_TEXT "xseg-filed 1\n"
#define ALIGN_MAX   4096u
#define FILE_CHARS  255				/* NAME_MAX of every file system that matters */

/* ---- paths ------------------------------------------------------------------------------- */

static bool plain(char c, bool first)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':' || c == '-' ||
	       (c == '.' && !first);
}

int filed_dir_path(const char *name, uint64_t hash, char path[FILED_PATH_MAX])
{
	size_t at = (size_t)snprintf(path, FILED_PATH_MAX, "%02x/%02x/", (unsigned)(hash >> 56),
		(unsigned)(hash >> 48 & 0xff));
	const size_t end = at + FILE_CHARS;
	const char *c;

	for (c = name; *c; c++) {
		bool as_it_is = plain(*c, c == name);

		if (at + (as_it_is ? 1 : PERCENT_CHARS) > end)
			return -ENAMETOOLONG;
		if (as_it_is) {
			path[at++] = *c;
			continue;
		}
		percent_put(path + at, *c);
		at += PERCENT_CHARS;
	}
	path[at] = '\0';
	return 0;
}

int filed_dir_name(const char *file, char *name)
{
	const char *c = file;
	size_t at;
	int byte;

	for (at = 0; *c && at < XSEG_TARGET_MAX - 1; at++) {
		if (*c != '%') {
			name[at] = *c++;
			continue;
		}
		byte = percent_get(c, strlen(c));
		if (byte <= 0)
			return -EINVAL;
		name[at] = (char)byte;
		c += PERCENT_CHARS;
	}
	name[at] = '\0';
	return at && !*c ? 0 : -EINVAL;
}

/* ---- files ------------------------------------------------------------------------------- */

bool filed_dir_is_removed(const struct filed_dir *d)
{
	struct stat st;

	return !fstat(d->fd, &st) && st.st_nlink == 0;
}

/* ENOENT is said of a file, and of all when the directory itself was removed: then it is no answer
 * to anything. */
static int missing(struct filed_dir *d)
{
	return filed_dir_is_removed(d) ? -EIO : -ENOENT;
}

/* Data does not wait for a right that the group was to have: without it nobody else has any. */
static void settle(struct filed_dir *d, int fd, bool made)
{
	(void)filed_rights_settle(&d->rights, fd, made);
}

static int make_dir(struct filed_dir *d, const char *path)
{
	int fd;

	if (mkdirat(d->fd, path, S_IRWXU))
		return errno == EEXIST ? 0 : -errno;
	fd = openat(d->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	settle(d, fd, true);
	close(fd);
	return 0;
}

/* Makes "ab" and "ab/cd" of "ab/cd/NAME". */
static int make_parents(struct filed_dir *d, const char *path)
{
	char parent[6];
	int rc;

	snprintf(parent, sizeof(parent), "%.2s", path);
	rc = make_dir(d, parent);
	if (rc)
		return rc;
	snprintf(parent, sizeof(parent), "%.5s", path);
	return make_dir(d, parent);
}

static int open_once(struct filed_dir *d, const char *path, int flags)
{
	int fd;

	do
		fd = openat(d->fd, path,
			O_RDWR | O_CLOEXEC | O_NOFOLLOW | (d->direct ? O_DIRECT : 0) | flags,
			S_IRUSR | S_IWUSR);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	settle(d, fd, flags & O_CREAT);
	return fd;
}

int filed_dir_open_file(struct filed_dir *d, const char *path, bool create)
{
	int fd = open_once(d, path, create ? O_CREAT : 0), rc;

	if (fd != -ENOENT)
		return fd;
	rc = missing(d);
	if (rc != -ENOENT || !create)
		return rc;
	rc = make_parents(d, path);
	return rc ? rc : open_once(d, path, O_CREAT);
}

int filed_dir_unlink(struct filed_dir *d, const char *path)
{
	return unlinkat(d->fd, path, 0) ? -errno : 0;
}

int filed_dir_open_dir(struct filed_dir *d, const char *path)
{
	int fd = TEMP_FAILURE_RETRY(openat(d->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (fd >= 0)
		return fd;
	return errno == ENOENT ? missing(d) : -errno;
}

static int sync_dir(struct filed_dir *d, const char *path)
{
	int fd = filed_dir_open_dir(d, path), rc = 0;

	if (fd < 0)
		return fd;
	/* EINVAL: this file system has nothing to sync there */
	if (TEMP_FAILURE_RETRY(fsync(fd)) && errno != EINVAL)
		rc = -errno;
	close(fd);
	return rc;
}

int filed_dir_sync(struct filed_dir *d, const char *path, bool parents)
{
	char dir[6];
	int rc;

	snprintf(dir, sizeof(dir), "%.5s", path);
	rc = sync_dir(d, dir);
	if (rc || !parents)
		return rc;
	snprintf(dir, sizeof(dir), "%.2s", path);
	rc = sync_dir(d, dir);
	return rc ? rc : sync_dir(d, ".");
}

int filed_dir_sync_all(struct filed_dir *d)
{
	return TEMP_FAILURE_RETRY(syncfs(d->fd)) ? -errno : 0;
}

/* ---- what O_DIRECT needs ----------------------------------------------------------------- */

/* From the file system's own words; 0: it says nothing, ALIGN_MAX + 1: no O_DIRECT. */
static uint32_t align_told(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx st;
	uint32_t align;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) || !(st.stx_mask & STATX_DIOALIGN))
		return 0;
	align = st.stx_dio_offset_align > st.stx_dio_mem_align ? st.stx_dio_offset_align
							       : st.stx_dio_mem_align;
	return align ? align : ALIGN_MAX + 1;
#else
	(void)fd;
	return 0;
#endif
}

static uint32_t align_tried(int fd)
{
	void *buf = aligned_alloc(ALIGN_MAX, ALIGN_MAX);
	uint32_t align = XSEG_SECTOR;

	while (buf && align <= ALIGN_MAX && pread(fd, buf, align, 0) < 0)
		align = align == XSEG_SECTOR ? ALIGN_MAX : ALIGN_MAX + 1;
	free(buf);
	return buf ? align : ALIGN_MAX + 1;
}

static void find_align(struct filed_dir *d)
{
	int fd = openat(d->fd, FORMAT_NAME, O_RDONLY | O_DIRECT | O_CLOEXEC);
	uint32_t align = ALIGN_MAX + 1;

	if (fd >= 0) {
		align = align_told(fd);
		if (!align)
			align = align_tried(fd);
		close(fd);
	}
	d->direct = align <= ALIGN_MAX;
	d->align = d->direct ? align : 1;
}

/* ---- opening ----------------------------------------------------------------------------- */

/* "ab": where a filed has its objects. */
static bool is_parent(const char *name)
{
	return isxdigit((unsigned char)name[0]) && isxdigit((unsigned char)name[1]) && !name[2];
}

/* Whether nothing but what a new file system or a filed that died early has put there is in it:
 * 0, -ENOTEMPTY, or -EUCLEAN where what is there, too, is all as a filed puts it. */
static int check_empty(struct filed_dir *d)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	int rc = 0;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc != -ENOTEMPTY && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
			strcmp(e->d_name, "lost+found") && strcmp(e->d_name, FORMAT_NAME))
			rc = is_parent(e->d_name) ? -EUCLEAN : -ENOTEMPTY;
	closedir(dir);
	return rc;
}

static int write_format(struct filed_dir *d)
{
	int fd = openat(d->fd, FORMAT_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		S_IRUSR | S_IWUSR), rc = 0;

	if (fd < 0)
		return -errno;
	settle(d, fd, true);
	errno = 0;
	if (write(fd, FORMAT_TEXT, strlen(FORMAT_TEXT)) != (ssize_t)strlen(FORMAT_TEXT) ||
		fsync(fd) || fsync(d->fd))
		rc = errno ? -errno : -ENOSPC;
	close(fd);
	return rc;
}

/* The format file's text, or "" when there is none or it was never finished. */
static int read_format(struct filed_dir *d, char *text, size_t size)
{
	int fd = openat(d->fd, FORMAT_NAME, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	text[0] = '\0';
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	len = read(fd, text, size - 1);
	close(fd);
	if (len < 0)
		return -errno;
	text[len] = '\0';
	return 0;
}

static int check_format(struct filed_dir *d, const char *path, struct xseg_error *err)
{
	char text[64];
	int rc = read_format(d, text, sizeof(text));

	if (rc)
		return xseg_fail(err, rc, "%s/%s cannot be read: %s; mend that", path, FORMAT_NAME,
			strerror(-rc));
	d->found = !strcmp(text, FORMAT_TEXT);
	if (d->found)
		return 0;
	if (text[0])
		return xseg_fail(err, -EPROTO,
			"%s has another format than this filed writes ('%.12s'); use the filed "
			"that made it",
			path, text);
	rc = check_empty(d);
	if (rc == -ENOTEMPTY)
		return xseg_fail(err, rc,
			"%s is not empty and no filed made it; give an empty or a new directory",
			path);
	/* another directory would be an empty store in the place of these objects */
	if (rc == -EUCLEAN)
		return xseg_fail(err, rc,
			"%s holds objects, and its file %s, which says their format, is lost; put "
			"it back (this version writes the line '%.*s'), or give an empty directory "
			"for a new store",
			path, FORMAT_NAME, (int)strlen(FORMAT_TEXT) - 1, FORMAT_TEXT);
	if (!rc)
		rc = write_format(d);
	return rc ? xseg_fail(err, rc, "%s cannot be used: %s; mend that, or give another", path,
			    strerror(-rc))
		  : 0;
}

/* The directory's own entry, whoever made it: a predecessor that was killed then, or a person. Who
 * may not read what is above syncs all. */
static int sync_above(struct filed_dir *d)
{
	int rc = sync_dir(d, "..");

	return rc == -EACCES ? filed_dir_sync_all(d) : rc;
}

/* Now, and not at each request. A file system that can only be read serves reads. */
static int check_access(struct filed_dir *d, const char *path, struct xseg_error *err)
{
	if (!faccessat(d->fd, ".", W_OK | X_OK, AT_EACCESS) || errno != EACCES)
		return 0;
	return xseg_fail(err, -EACCES,
		"directory %s may not be written to; give it to this user, or name another", path);
}

static int mend_rights(struct filed_dir *d, const char *path, const char *group,
	struct xseg_error *err)
{
	int rc = filed_rights_mend(&d->rights, d->fd, FORMAT_NAME, &d->mended);
	struct stat st;

	if (rc)
		return xseg_fail(err, rc, "the rights of the files in %s cannot be corrected: %s; "
			"correct them by hand", path, strerror(-rc));
	if (d->rights.has_group && !fstat(d->fd, &st) && st.st_gid != d->rights.group)
		return xseg_fail(err, -EPERM,
			"directory %s cannot be given to group %s; start filed as a user of that "
			"group who owns the directory, or leave the group out",
			path, group);
	return 0;
}

int filed_dir_open(struct filed_dir *d, const char *path, bool direct, const char *group,
	struct xseg_error *err)
{
	int rc;

	*d = (struct filed_dir){ .fd = -1, .align = 1 };
	rc = filed_rights_init(&d->rights, group, err);
	if (rc)
		return rc;
	/* or what is made would be of no use until its rights are set */
	umask(umask(S_IRWXG | S_IRWXO) & ~(mode_t)S_IRWXU);
	if (mkdir(path, S_IRWXU) && errno != EEXIST)
		return xseg_fail(err, -errno,
			"directory %s cannot be made: %s; %s", path, strerror(errno),
			errno == ENOENT ? "make the directory above it first" :
					  "give another, or make it for this user");
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return xseg_fail(err, -errno, "directory %s cannot be opened: %s; give another",
			path, strerror(errno));
	rc = flock(d->fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	if (rc == -EWOULDBLOCK)
		rc = xseg_fail(err, -EBUSY,
			"directory %s is in use by another filed; stop that one, or give another "
			"directory",
			path);
	else if (rc)
		xseg_fail(err, rc, "directory %s cannot be locked: %s", path, strerror(-rc));
	if (!rc)
		rc = check_access(d, path, err);
	if (!rc)
		rc = check_format(d, path, err);
	if (!rc)
		rc = mend_rights(d, path, group, err);
	if (!rc && !d->found && sync_above(d))
		rc = xseg_fail(err, -EIO, "the directory above %s cannot be synced", path);
	if (rc) {
		filed_dir_close(d);
		return rc;
	}
	if (direct)
		find_align(d);
	d->tags = filed_tag_can(d->fd);
	return 0;
}

void filed_dir_close(struct filed_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

void filed_dir_space(const struct filed_dir *d, struct space *space)
{
	struct statvfs fs;

	*space = (struct space){ .size_bytes = 0 };
	if (fstatvfs(d->fd, &fs))
		return;
	space->size_bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
	space->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	space->files = fs.f_files;
	space->free_files = fs.f_favail;
}

bool filed_dir_is_made(const char *path)
{
	int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool made = dir >= 0 && !faccessat(dir, FORMAT_NAME, F_OK, 0);

	if (dir >= 0)
		close(dir);
	return made;
}

void filed_dir_place(const char *path, char place[PATH_MAX])
{
	char above[PATH_MAX], real[PATH_MAX];
	size_t end = strlen(path), begin;

	if (realpath(path, place))
		return;
	while (end > 1 && (path[end - 1] == '/' || (path[end - 1] == '.' && path[end - 2] == '/')))
		end--;
	for (begin = end; begin && path[begin - 1] != '/'; begin--)
		;
	snprintf(above, sizeof(above), "%.*s", begin ? (int)begin : 1, begin ? path : ".");
	if (!realpath(above, real) ||
		(size_t)snprintf(place, PATH_MAX, "%s%s%.*s", real, real[1] ? "/" : "",
			(int)(end - begin), path + begin) >= PATH_MAX)
		snprintf(place, PATH_MAX, "%s", path);
}
