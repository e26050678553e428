/* filed_kernel - see filed_kernel.h. */
#include "tests/rig/filed_kernel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[200];

/* ---- faults ------------------------------------------------------------------------------ */

const struct fk_fault_info fk_faults[FK_NR_FAULTS] = {
	[FK_EIO] = { "EIO", EIO, false, false },
	[FK_ENOSPC] = { "ENOSPC", ENOSPC, false, false },
	[FK_EINTR] = { "EINTR", EINTR, true, true },
	[FK_EAGAIN] = { "EAGAIN", EAGAIN, true, true },
	[FK_EINVAL] = { "EINVAL", EINVAL, true, true },
	[FK_EOPNOTSUPP] = { "EOPNOTSUPP", EOPNOTSUPP, true, true },
	[FK_EMFILE] = { "EMFILE", EMFILE, false, false },
	[FK_IN_PART] = { "half of it", 0, true, true },
	[FK_ODDLY] = { "an odd part", 0, true, false },
	[FK_LATE] = { "late", 0, true, true },
};

const char *const fk_call_names[FK_NR_CALLS] = {
	[FK_SUBMIT] = "io_submit",
	[FK_TRANSFER] = "transfer",
	[FK_PREAD] = "pread",
	[FK_PWRITE] = "pwrite",
	[FK_OPENAT] = "openat",
	[FK_MKDIRAT] = "mkdirat",
	[FK_UNLINKAT] = "unlinkat",
	[FK_FTRUNCATE] = "ftruncate",
	[FK_FALLOCATE] = "fallocate",
	[FK_FSTAT] = "fstat",
	[FK_FACCESSAT] = "faccessat",
	[FK_FSYNC] = "fsync",
	[FK_FDATASYNC] = "fdatasync",
	[FK_FGETXATTR] = "fgetxattr",
	[FK_FSETXATTR] = "fsetxattr",
};

#define CAN(f) (1u << (f))
static const uint32_t can[FK_NR_CALLS] = {
	[FK_SUBMIT] = CAN(FK_EAGAIN) | CAN(FK_EINTR) | CAN(FK_IN_PART),
	[FK_TRANSFER] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EINTR) | CAN(FK_EAGAIN) |
			CAN(FK_EINVAL) | CAN(FK_IN_PART) | CAN(FK_ODDLY) | CAN(FK_LATE),
	[FK_PREAD] = CAN(FK_EIO) | CAN(FK_EINTR) | CAN(FK_IN_PART) | CAN(FK_ODDLY) |
		     CAN(FK_LATE),
	[FK_PWRITE] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EINTR) | CAN(FK_IN_PART) |
		      CAN(FK_ODDLY) | CAN(FK_LATE),
	[FK_OPENAT] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EINTR) | CAN(FK_EMFILE) | CAN(FK_LATE),
	[FK_MKDIRAT] = CAN(FK_EIO) | CAN(FK_ENOSPC),
	[FK_UNLINKAT] = CAN(FK_EIO) | CAN(FK_LATE),
	[FK_FTRUNCATE] = CAN(FK_EIO) | CAN(FK_EINTR) | CAN(FK_LATE),
	[FK_FALLOCATE] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EINTR) | CAN(FK_EOPNOTSUPP) |
			 CAN(FK_LATE),
	[FK_FSTAT] = CAN(FK_EIO),
	[FK_FACCESSAT] = CAN(FK_EIO),
	[FK_FSYNC] = CAN(FK_EIO) | CAN(FK_EINTR) | CAN(FK_LATE),
	[FK_FDATASYNC] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EINTR) | CAN(FK_LATE),
	[FK_FGETXATTR] = CAN(FK_EIO) | CAN(FK_EOPNOTSUPP),
	[FK_FSETXATTR] = CAN(FK_EIO) | CAN(FK_ENOSPC) | CAN(FK_EOPNOTSUPP) | CAN(FK_LATE),
};

#define LATE_US	   300u
#define LATE_LOOKS 300u			/* at what has ended, until a transfer begins */

static _Atomic uint32_t nr_calls[FK_NR_CALLS], nr_fired;	/* counted by workers, too */
/* ARMED: one is to fail; SICK: each that can fails. */
enum health { HEALTHY, ARMED, SICK };
static _Atomic enum health health;
static enum fk_fault fault;
static enum fk_call fault_call;			/* it comes at a call of that kind, */
static uint32_t fault_at;			/* the at-th, from 1 on */
static bool for_ever;

static bool due(enum fk_call c)
{
	uint32_t n = atomic_fetch_add(&nr_calls[c], 1) + 1;
	enum health now = atomic_load(&health);

	if (now == ARMED && c == fault_call && n == fault_at)
		atomic_compare_exchange_strong(&health, &now, for_ever ? SICK : HEALTHY);
	else if (now != SICK || !(can[c] & CAN(fault)))
		return false;
	atomic_fetch_add(&nr_fired, 1);
	return true;
}

/* due(), for a call that is made in its caller's thread: what is late is put off here. */
static bool refused(enum fk_call c)
{
	if (!due(c))
		return false;
	if (fault == FK_LATE) {
		usleep(LATE_US);
		return false;
	}
	errno = fk_faults[fault].error;
	return true;
}

bool fk_can(enum fk_call call, enum fk_fault with)
{
	return can[call] & CAN(with);
}

void fk_arm(enum fk_fault with, enum fk_call call, uint32_t at, bool ever)
{
	fault = with;
	fault_call = call;
	fault_at = at;
	for_ever = ever;
	for (uint32_t i = 0; i < FK_NR_CALLS; i++)
		atomic_store(&nr_calls[i], 0);
	atomic_store(&nr_fired, 0);
	atomic_store(&health, at > 0 ? ARMED : HEALTHY);
}

void fk_heal(void)
{
	atomic_store(&health, HEALTHY);
}

uint32_t fk_nr_calls(enum fk_call call)
{
	return atomic_load(&nr_calls[call]);
}

uint32_t fk_nr_fired(void)
{
	return atomic_load(&nr_fired);
}

static _Atomic uint32_t one_sync_in, chance;

void fk_fail_syncs(uint32_t one_in, uint32_t seed)
{
	atomic_store(&chance, seed);
	atomic_store(&one_sync_in, one_in);
}

static bool sync_fails_by_chance(void)
{
	uint32_t n = atomic_fetch_add(&chance, 1) * UINT32_C(2654435761) >> 8;

	usleep(n % 256);
	return n / 256 % atomic_load(&one_sync_in) == 0;
}

static size_t part_of(size_t len)
{
	size_t half = len / 2;

	if (fault == FK_ODDLY)
		return half | 1;
	half -= half % XSEG_SECTOR;
	return half ? half : len;
}

/* ---- what is durable --------------------------------------------------------------------- */

/* SYNCING: a sync that covers it is under way. */
enum piece { SYNCED, WRITTEN, SYNCING, LOST };

struct file {
	char path[FILED_PATH_MAX];
	ino_t ino;
	uint8_t piece[FK_PIECES];
};

struct entry {
	char path[FILED_PATH_MAX];		/* below the root: "ab", "ab/cd", "ab/cd/NAME" */
	bool pending;
};

static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;	/* a leaf; guards what follows */
static struct file files[FK_FILES];
static struct entry entries[3 * FK_FILES];

static struct entry *entry_of(const char *path)
{
	struct entry *e = entries;

	while (e < entries + 3 * FK_FILES && e->path[0] && strcmp(e->path, path))
		e++;
	assert(e < entries + 3 * FK_FILES);
	snprintf(e->path, sizeof(e->path), "%s", path);
	return e;
}

static void entry_changed(const char *path)
{
	pthread_mutex_lock(&books);
	entry_of(path)->pending = true;
	pthread_mutex_unlock(&books);
}

static void directory_synced(const char *dir)
{
	size_t len = strlen(dir);
	struct entry *e;
	const char *name;

	pthread_mutex_lock(&books);
	for (e = entries; e < entries + 3 * FK_FILES && e->path[0]; e++) {
		name = e->path + (len ? len + 1 : 0);
		if (!strncmp(e->path, dir, len) && (!len || e->path[len] == '/') &&
			!strchr(name, '/'))
			e->pending = false;
	}
	pthread_mutex_unlock(&books);
}

static struct file *file_of_path(const char *path)
{
	struct file *f = files;

	while (f < files + FK_FILES && f->path[0] && strcmp(f->path, path))
		f++;
	assert(f < files + FK_FILES);
	return f;
}

int __real_fstat(int fd, struct stat *st);

static ino_t ino_of(int fd)
{
	struct stat st;

	if (__real_fstat(fd, &st))
		abort();
	return st.st_ino;
}

static void file_opened(const char *path, int fd)
{
	struct file *f;
	ino_t ino = ino_of(fd);

	pthread_mutex_lock(&books);
	f = file_of_path(path);
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (f->ino != ino)
		memset(f->piece, SYNCED, sizeof(f->piece));
	f->ino = ino;
	pthread_mutex_unlock(&books);
}

static struct file *file_of(int fd)
{
	ino_t ino = ino_of(fd);

	for (struct file *f = files; f < files + FK_FILES; f++)
		if (f->ino == ino)
			return f;
	return NULL;
}

static void file_written(int fd, uint64_t from, uint64_t len)
{
	struct file *f;
	uint64_t to = from + len;

	pthread_mutex_lock(&books);
	f = file_of(fd);
	for (uint32_t i = 0; f && i < FK_PIECES; i++)
		if (from < (i + 1) * FK_PIECE && to > i * FK_PIECE)
			if (f->piece[i] != LOST ||
				(from <= i * FK_PIECE && to >= (i + 1) * FK_PIECE))
				f->piece[i] = WRITTEN;
	pthread_mutex_unlock(&books);
}

static void sync_begins(int fd)
{
	struct file *f;

	pthread_mutex_lock(&books);
	f = file_of(fd);
	for (uint32_t i = 0; f && i < FK_PIECES; i++)
		if (f->piece[i] == WRITTEN)
			f->piece[i] = SYNCING;
	pthread_mutex_unlock(&books);
}

/* One that fails may have lost what was written while it was under way, too. */
static void sync_ends(int fd, bool ok)
{
	struct file *f;

	pthread_mutex_lock(&books);
	f = file_of(fd);
	for (uint32_t i = 0; f && i < FK_PIECES; i++)
		if (f->piece[i] == SYNCING || (f->piece[i] == WRITTEN && !ok))
			f->piece[i] = ok ? SYNCED : LOST;
	pthread_mutex_unlock(&books);
}

void fk_begin(const char *dir)
{
	fk_arm(FK_EIO, FK_SUBMIT, 0, false);
	snprintf(root, sizeof(root), "%s", dir);
	memset(files, 0, sizeof(files));
	memset(entries, 0, sizeof(entries));
}

const char *fk_not_durable(const char *path, uint64_t from, uint64_t to)
{
	static const size_t levels[] = { 2, 5, FILED_PATH_MAX };
	char part[FILED_PATH_MAX + sizeof(root)];
	const char *why = NULL;
	struct file *f;
	bool there;

	snprintf(part, sizeof(part), "%s/%s", root, path);
	there = !access(part, F_OK);
	pthread_mutex_lock(&books);
	f = file_of_path(path);
	for (uint64_t i = (from + FK_PIECE - 1) / FK_PIECE; there && i < to / FK_PIECE && !why; i++)
		why = f->piece[i] == LOST     ? "some of it is lost"
		      : f->piece[i] != SYNCED ? "some of it is not synced"
					      : NULL;
	for (uint32_t i = there ? 0 : 2; i < 3 && !why; i++) {
		snprintf(part, levels[i] + 1, "%s", path);
		why = entry_of(part)->pending ? "a directory on its way is not synced" : NULL;
	}
	pthread_mutex_unlock(&books);
	return why;
}

/* ---- the system calls -------------------------------------------------------------------- */

int __real_io_setup(int nr, io_context_t *ctx);
int __real_io_destroy(io_context_t ctx);
int __real_io_submit(io_context_t ctx, long nr, struct iocb **cb);
int __real_io_getevents(
	io_context_t ctx, long min, long nr, struct io_event *event, struct timespec *timeout);
ssize_t __real_pread(int fd, void *buf, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *buf, size_t len, off_t at);
int __real_openat(int dir, const char *path, int flags, ...);
int __real_mkdirat(int dir, const char *path, mode_t mode);
int __real_unlinkat(int dir, const char *path, int flags);
int __real_ftruncate(int fd, off_t size);
ssize_t __real_fgetxattr(int fd, const char *name, void *value, size_t size);
int __real_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __real_fallocate(int fd, int mode, off_t at, off_t len);
int __real_faccessat(int dir, const char *path, int mode, int flags);

int __wrap_io_setup(int nr, io_context_t *ctx);
int __wrap_io_destroy(io_context_t ctx);
int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **cb);
int __wrap_io_getevents(
	io_context_t ctx, long min, long nr, struct io_event *event, struct timespec *timeout);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t at);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_mkdirat(int dir, const char *path, mode_t mode);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_ftruncate(int fd, off_t size);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t size);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __wrap_fallocate(int fd, int mode, off_t at, off_t len);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_faccessat(int dir, const char *path, int mode, int flags);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

/* The kernel takes 50 ms to end a context: the next filed, which asks for one of the same size,
 * gets it. */
static io_context_t spare;

int __wrap_io_setup(int nr, io_context_t *ctx)
{
	if (!spare)
		return __real_io_setup(nr, ctx);
	*ctx = spare;
	spare = NULL;
	return 0;
}

int __wrap_io_destroy(io_context_t ctx)
{
	if (spare)
		return __real_io_destroy(ctx);
	spare = ctx;
	return 0;
}

/* The same file without O_DIRECT, which would not take a part of a block. */
static int plain(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert(fd >= 0);
	return fd;
}

static ssize_t move_part(int fd, const struct iovec *iov, int nr, off_t at, size_t len, bool write)
{
	int own = plain(fd);
	size_t done = 0, piece;
	ssize_t rc = 0;

	for (int i = 0; i < nr && done < len && rc >= 0; i++, done += rc > 0 ? (size_t)rc : 0) {
		piece = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;
		rc = write ? __real_pwrite(own, iov[i].iov_base, piece, at + (off_t)done)
			   : __real_pread(own, iov[i].iov_base, piece, at + (off_t)done);
	}
	close(own);
	assert(rc >= 0);
	return (ssize_t)done;
}

/* Transfers that the kernel never gets; reaped before what it has. Of the port's thread. */
static struct io_event fake[64];
static uint32_t nr_fake;

static void account_transfer(const struct iocb *cb)
{
	const struct iovec *iov = cb->u.c.buf;
	uint64_t len = 0;

	for (unsigned long i = 0; i < cb->u.c.nbytes; i++)
		len += iov[i].iov_len;
	if (cb->aio_lio_opcode == IO_CMD_PWRITEV)
		file_written(cb->aio_fildes, (uint64_t)cb->u.c.offset, len);
}

/* Transfers that the kernel gets late. Of the port's thread. */
static struct {
	struct iocb *cb;
	uint32_t looks;
} late[64];
static uint32_t nr_late;

static void late_begin(io_context_t ctx)
{
	uint32_t i = 0;

	while (i < nr_late) {
		if (++late[i].looks < LATE_LOOKS || __real_io_submit(ctx, 1, &late[i].cb) != 1) {
			i++;
			continue;
		}
		account_transfer(late[i].cb);
		late[i] = late[--nr_late];
	}
}

static void transfer_fails(struct iocb *cb)
{
	const struct iovec *iov = cb->u.c.buf;
	int nr = (int)cb->u.c.nbytes;
	bool write = cb->aio_lio_opcode == IO_CMD_PWRITEV;
	ssize_t done = 0;
	size_t len = 0;

	for (int i = 0; i < nr; i++)
		len += iov[i].iov_len;
	if (fault == FK_IN_PART || fault == FK_ODDLY)
		done = move_part(cb->aio_fildes, iov, nr, cb->u.c.offset, part_of(len), write);
	else if (fault == FK_EIO || fault == FK_ENOSPC)
		move_part(cb->aio_fildes, iov, nr, cb->u.c.offset, len / 2, write);
	if (fault == FK_LATE) {
		assert(nr_late < 64);
		late[nr_late].cb = cb;
		late[nr_late++].looks = 0;
		return;
	}
	assert(nr_fake < 64);
	fake[nr_fake++] = (struct io_event){ .obj = cb,
		.res = (unsigned long)(fk_faults[fault].error ? -fk_faults[fault].error : done) };
	eventfd_write((int)cb->u.c.resfd, 1);
}

int __wrap_io_submit(io_context_t ctx, long nr, struct iocb **cb)
{
	int rc = 1;
	long i;

	if (due(FK_SUBMIT)) {
		if (fault != FK_IN_PART || nr == 1)
			return -(fault == FK_IN_PART ? EAGAIN : fk_faults[fault].error);
		nr /= 2;
	}
	for (i = 0; i < nr && rc == 1; i++) {
		account_transfer(cb[i]);
		if (due(FK_TRANSFER))
			transfer_fails(cb[i]);
		else
			rc = __real_io_submit(ctx, 1, &cb[i]);
	}
	if (rc == 1)
		return (int)nr;
	return i > 1 ? (int)i - 1 : rc;
}

int __wrap_io_getevents(
	io_context_t ctx, long min, long nr, struct io_event *event, struct timespec *timeout)
{
	int got = 0;

	late_begin(ctx);
	while (nr_fake && got < nr)
		event[got++] = fake[--nr_fake];
	return got ? got : __real_io_getevents(ctx, min, nr, event, timeout);
}

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t at)
{
	struct iovec iov = { buf, len };

	if (!refused(FK_PREAD))
		return __real_pread(fd, buf, len, at);
	if (fault == FK_IN_PART || fault == FK_ODDLY)
		return move_part(fd, &iov, 1, at, part_of(len), false);
	return -1;
}

ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	file_written(fd, (uint64_t)at, len);
	if (!refused(FK_PWRITE))
		return __real_pwrite(fd, buf, len, at);
	if (fault == FK_IN_PART || fault == FK_ODDLY)
		return move_part(fd, &iov, 1, at, part_of(len), true);
	if (fault != FK_EINTR)
		move_part(fd, &iov, 1, at, len / 2, true);
	errno = fk_faults[fault].error;
	return -1;
}

static bool is_object(const char *path)
{
	return strlen(path) > 6 && path[2] == '/' && path[5] == '/';
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	bool object = is_object(path), was;
	int fd;

	if (refused(FK_OPENAT))
		return -1;
	was = !__real_faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW);
	fd = __real_openat(dir, path, flags, 0666);
	if (fd >= 0 && object) {
		file_opened(path, fd);
		if (!was)
			entry_changed(path);
	}
	return fd;
}

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	int rc = refused(FK_MKDIRAT) ? -1 : __real_mkdirat(dir, path, mode);

	if (!rc)
		entry_changed(path);
	return rc;
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	int rc = refused(FK_UNLINKAT) ? -1 : __real_unlinkat(dir, path, flags);

	if (!rc)
		entry_changed(path);
	return rc;
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (refused(FK_FTRUNCATE))
		return -1;
	file_written(fd, (uint64_t)size - 1, 1);
	return __real_ftruncate(fd, size);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t len)
{
	if (refused(FK_FALLOCATE))
		return -1;
	file_written(fd, (uint64_t)at, (uint64_t)len);
	return __real_fallocate(fd, mode, at, len);
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t size)
{
	return refused(FK_FGETXATTR) ? -1 : __real_fgetxattr(fd, name, value, size);
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	return refused(FK_FSETXATTR) ? -1 : __real_fsetxattr(fd, name, value, size, flags);
}

int __wrap_fstat(int fd, struct stat *st)
{
	return refused(FK_FSTAT) ? -1 : __real_fstat(fd, st);
}

int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
	return refused(FK_FACCESSAT) ? -1 : __real_faccessat(dir, path, mode, flags);
}

/* Nothing is waited for: a sync is a line in the books. */
int __wrap_fsync(int fd)
{
	char link[64], path[512];
	ssize_t len;

	if (refused(FK_FSYNC))
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	assert(len > 0);
	path[len] = '\0';
	if (!strncmp(path, root, strlen(root)))
		directory_synced(path + strlen(root) + (path[strlen(root)] == '/'));
	return 0;
}

int __wrap_fdatasync(int fd)
{
	bool fails = due(FK_FDATASYNC), is_late = fails && fault == FK_LATE;
	int error = fails && !is_late ? fk_faults[fault].error : EIO;

	fails = fails && !is_late;
	if (!fails || error != EINTR) {
		sync_begins(fd);
		if (is_late)
			usleep(LATE_US);
		if (atomic_load(&one_sync_in))
			fails = sync_fails_by_chance();
		sync_ends(fd, !fails);
	}
	if (fails)
		errno = error;
	return fails ? -1 : 0;
}
