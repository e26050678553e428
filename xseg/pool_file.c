/* pool_file - the file of a segment's pages, where they are not in its own.
 *
 * Huge pages that an administrator has set aside (vm.nr_hugepages) are there for certain, also
 * where the kernel makes none by itself, and are had by files of a hugetlbfs only. So where one
 * with pages of 2 MiB is mounted, may be written to, and enough of them are left, a segment's pages
 * are a file there, and its own file has a hole in their place. All else is as ever: its name, its
 * tables and its locks are those of its own file in /dev/shm. A superblock says which of the two it
 * is (`pool`).
 *
 * The file's name is made of the segment's and of what the kernel calls its own file. So it is not
 * mistaken for that of another /dev/shm, and who makes a segment removes what one of the same name
 * left behind whose remover was killed between the two names.
 *
 * Contract: any thread; blocks on the kernel. Nothing here runs on the data path.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "xseg/internal.h"

#define MOUNTS	"/proc/self/mounts"
#define COUNTS	"/sys/kernel/mm/hugepages/hugepages-2048kB/"
/* a segment's name, and two numbers */
#define FILE_MAX (XSEG_NAME_MAX + 48)

/* Its end is its own file's inode, what is before it the same for all of that name. */
static int pool_name(const char *name, int fd, char *file, size_t *prefix)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*prefix = (size_t)snprintf(
		file, FILE_MAX, "xseg.%s.%llx.", name, (unsigned long long)st.st_dev);
	snprintf(file + *prefix, FILE_MAX - *prefix, "%llx", (unsigned long long)st.st_ino);
	return 0;
}

/* Calls fn with a folder of each hugetlbfs that has pages of the size of an extent, until one
 * returns what is not 0. */
static int each_mount(int (*fn)(int dir, void *arg), void *arg)
{
	FILE *mounts = setmntent(MOUNTS, "re");
	char line[1024];
	struct mntent m;
	int rc = 0;

	while (mounts && rc == 0 && getmntent_r(mounts, &m, line, sizeof(line))) {
		struct statfs fs;
		int dir;

		if (strcmp(m.mnt_type, "hugetlbfs") != 0)
			continue;
		dir = open(m.mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			continue;
		if (fstatfs(dir, &fs) == 0 && fs.f_bsize == XSEG_EXTENT_SIZE)
			rc = fn(dir, arg);
		close(dir);
	}
	if (mounts)
		endmntent(mounts);
	return rc;
}

/* 0: the kernel knows no such pages. */
static uint64_t count_of(const char *which)
{
	unsigned long long n = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), COUNTS "%s", which);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static bool are_left(uint64_t bytes)
{
	uint64_t left = count_of("free_hugepages"), taken = count_of("resv_hugepages");

	return left >= taken && left - taken >= bytes / XSEG_EXTENT_SIZE;
}

struct wanted {
	const char *file;
	size_t prefix;
	struct stat like;
	uint64_t bytes;
	int fd;
};

/* Those of this segment's predecessors: its name is its maker's, who calls this. */
static void remove_old(int dir, const struct wanted *w)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(list)) != NULL)
		if (strncmp(e->d_name, w->file, w->prefix) == 0)
			unlinkat(dir, e->d_name, 0);
	closedir(list);
}

static int make_in(int dir, void *arg)
{
	struct wanted *w = arg;

	remove_old(dir, w);
	if (!are_left(w->bytes))
		return 0;
	w->fd = openat(dir, w->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w->fd < 0)
		return 0;
	if (fchown(w->fd, (uid_t)-1, w->like.st_gid) == 0 &&
		fchmod(w->fd, w->like.st_mode & 07777) == 0 &&
		ftruncate(w->fd, (off_t)w->bytes) == 0 &&
		xs_file_take(w->fd, 0, w->bytes) == 0)
		return 1;
	unlinkat(dir, w->file, 0);
	close(w->fd);
	w->fd = -1;
	return 0;
}

int xs_pool_make(const char *name, int fd, uint64_t bytes)
{
	char file[FILE_MAX];
	struct wanted w = { .file = file, .bytes = bytes, .fd = -1 };

	if (fstat(fd, &w.like) || pool_name(name, fd, file, &w.prefix))
		return -1;
	each_mount(make_in, &w);
	return w.fd;
}

static int open_in(int dir, void *arg)
{
	struct wanted *w = arg;

	w->fd = openat(dir, w->file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return w->fd >= 0 || errno != ENOENT ? 1 : 0;
}

int xs_pool_open(const char *name, int fd, uint64_t bytes, struct xseg_error *err)
{
	char file[FILE_MAX];
	struct wanted w = { .file = file, .fd = -1 };
	struct stat st;

	if (pool_name(name, fd, file, &w.prefix))
		return xseg_fail(err, -errno, "segment '%s': %m", name);
	if (!each_mount(open_in, &w))
		return xseg_fail(err, -EPROTO,
			"segment '%s' has its pages in the file %s of a hugetlbfs, and none that "
			"is mounted here has it; mount that one, or destroy the segment",
			name, file);
	if (w.fd < 0)
		return xseg_fail(err, -errno, "cannot open the pages of segment '%s': %m", name);
	if (fstat(w.fd, &st) == 0 && (uint64_t)st.st_size == bytes)
		return w.fd;
	close(w.fd);
	return xseg_fail(err, -EPROTO, "segment '%s' is truncated: the file %s of a hugetlbfs",
		name, file);
}

static int remove_in(int dir, void *arg)
{
	const struct wanted *w = arg;

	return unlinkat(dir, w->file, 0) == 0;
}

void xs_pool_remove(const char *name, int fd)
{
	char file[FILE_MAX];
	struct wanted w = { .file = file };

	if (pool_name(name, fd, file, &w.prefix) == 0)
		each_mount(remove_in, &w);
}

int xs_pool_map(const struct xseg *seg, void *at, uint64_t off, uint64_t bytes, int flags)
{
	bool apart = seg->pool_fd >= 0;

	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | flags,
		       apart ? seg->pool_fd : seg->fd,
		       (off_t)(apart ? off : seg->geo.off_pages + off)) == MAP_FAILED
		       ? -errno
		       : 0;
}
