/* pool_file - a separate file for a segment's pages, on huge pages.
 *
 * An administrator can set huge pages aside (vm.nr_hugepages). They are there for certain, also
 * where the kernel makes none by itself. Only files of a hugetlbfs can have them. So a segment's
 * pages are a file there if three things hold. A hugetlbfs with pages of 2 MiB is mounted, it may
 * be written to, and enough of its pages are left. The segment's own file then has a hole in their
 * place. All else is as before: name, tables and locks are those of its own file in /dev/shm. A
 * superblock says which of the two it is (`pool`).
 *
 * The file's name is made of the segment's name and of the kernel's numbers for its own file. A
 * character between them is in no segment's name. So the file is not mistaken for that of another
 * /dev/shm. The maker of a segment removes a file that an older segment of the same name left
 * behind. Such a file is there if its remover was killed between the two names.
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

/* The file's name: its end is the inode of the segment's own file, what is before that, up to
 * `prefix`, the same for all of that name. */
struct wanted {
	char file[FILE_MAX];
	size_t prefix;
	struct stat like;			/* of the segment's own file */
	uint64_t bytes;
	int fd;					/* or -errno */
};

static int wanted_of(struct wanted *w, const char *name, int fd)
{
	*w = (struct wanted){ .fd = -ENOENT };
	if (fstat(fd, &w->like))
		return -errno;
	w->prefix = (size_t)snprintf(w->file, sizeof(w->file), "xseg.%s:%llx:", name,
		(unsigned long long)w->like.st_dev);
	snprintf(w->file + w->prefix, sizeof(w->file) - w->prefix, "%llx",
		(unsigned long long)w->like.st_ino);
	return 0;
}

static int remove_old_in(int dir, void *arg)
{
	const struct wanted *w = arg;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!list) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((e = readdir(list)) != NULL)
		if (strncmp(e->d_name, w->file, w->prefix) == 0)
			unlinkat(dir, e->d_name, 0);
	closedir(list);
	return 0;
}

void xs_pool_remove_old(const char *name, int fd)
{
	struct wanted w;

	if (wanted_of(&w, name, fd) == 0)
		each_mount(remove_old_in, &w);
}

static int make_in(int dir, void *arg)
{
	struct wanted *w = arg;
	int fd;

	if (!are_left(w->bytes))
		return 0;
	fd = openat(dir, w->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return 0;
	if (fchown(fd, (uid_t)-1, w->like.st_gid) == 0 &&
		fchmod(fd, w->like.st_mode & 07777) == 0 &&
		ftruncate(fd, (off_t)w->bytes) == 0 && xs_file_take(fd, 0, w->bytes) == 0) {
		w->fd = fd;
		return 1;
	}
	unlinkat(dir, w->file, 0);
	close(fd);
	return 0;
}

int xs_pool_make(const char *name, int fd, uint64_t bytes)
{
	struct wanted w;

	if (wanted_of(&w, name, fd))
		return -1;
	w.bytes = bytes;
	each_mount(make_in, &w);
	return w.fd < 0 ? -1 : w.fd;
}

/* Where everybody may make files, another user may have made one of that name. */
static int open_in(int dir, void *arg)
{
	struct wanted *w = arg;
	struct stat st;
	int fd = openat(dir, w->file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		if (errno != ENOENT)
			w->fd = -errno;
		return 0;
	}
	if (fstat(fd, &st) == 0 && st.st_uid == w->like.st_uid) {
		w->fd = fd;
		return 1;
	}
	close(fd);
	return 0;
}

int xs_pool_open(const char *name, int fd, uint64_t bytes, struct xseg_error *err)
{
	struct wanted w;
	struct stat st;
	int rc = wanted_of(&w, name, fd);

	if (rc == 0) {
		each_mount(open_in, &w);
		rc = w.fd;
	}
	if (rc == -ENOENT)
		return xseg_fail(err, -EPROTO,
			"segment '%s' has its pages in the file %s of a hugetlbfs, and no "
			"hugetlbfs mounted here has it; mount that one, or destroy the segment",
			name, w.file);
	if (rc < 0)
		return xseg_fail(err, rc, "cannot open the pages of segment '%s': %s", name,
			strerror(-rc));
	if (fstat(w.fd, &st) == 0 && (uint64_t)st.st_size == bytes)
		return w.fd;
	close(w.fd);
	return xseg_fail(err, -EPROTO, "segment '%s' is truncated: the file %s of a hugetlbfs",
		name, w.file);
}

static int remove_in(int dir, void *arg)
{
	const struct wanted *w = arg;

	return unlinkat(dir, w->file, 0) == 0;
}

void xs_pool_remove(const char *name, int fd)
{
	struct wanted w;

	if (wanted_of(&w, name, fd) == 0)
		each_mount(remove_in, &w);
}

int xs_pool_map(const struct xseg *seg, void *at, uint64_t off, uint64_t bytes, int flags)
{
	bool apart = seg->pool_fd >= 0;

	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | flags,
		       apart ? seg->pool_fd : seg->map_fd,
		       (off_t)(apart ? off : seg->geo.off_pages + off)) == MAP_FAILED
		       ? -errno
		       : 0;
}
