/* segment - making, checking, mapping and removing a segment's file.
 *
 * Contract: any thread; blocks on the kernel (files, memory). Nothing here runs on the data path.
 *
 * A segment comes into being in this order: file made (exclusively) -> control lock taken -> size
 * and memory taken -> tables written -> state READY (release). An attacher that sees any other
 * state says so. A half-made file whose control lock is free has a dead maker and is replaced. The
 * file has the owner and mode that were asked for before it is READY.
 *
 * Invariants:
 *   S1  layout.c alone computes every offset of the geometry, from its counts. An attacher
 *       recomputes and compares, and uses its own copy from then on.
 *   S2  A failed create leaves no file.
 *   S3  The name of a segment that is READY is taken away under its control lock (xseg_remove()).
 *   S4  Pages may have a file of their own. It is made under its maker's name and lock, and removed
 *       after that name.
 */
#include <assert.h>
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "xseg/internal.h"
#include "xseg/memory.h"

#define FILE_PREFIX "xseg."

int xseg_fail(struct xseg_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return code;
}

bool xseg_name_ok(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= XSEG_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
	       len;
}

uint64_t xseg_hash(const char *target, size_t len)
{
	return XXH3_64bits(target, len);
}

static void set_pointers(struct xseg *seg)
{
	const struct xs_geometry *g = &seg->geo;

	assert(seg->base);
	seg->super = (struct xs_super *)seg->base;
	seg->members = (struct xs_member *)(seg->base + g->off_members);
	seg->peers = (struct xs_peer *)(seg->base + g->off_peers);
	seg->ports = (struct xs_port *)(seg->base + g->off_ports);
	seg->bells = (struct xs_bell *)(seg->base + g->off_bells);
	seg->lanes = (struct xs_lane *)(seg->base + g->off_lanes);
	seg->reqs = (struct xs_req *)(seg->base + g->off_requests);
	seg->extents = (struct xs_extent *)(seg->base + g->off_extents);
	seg->owners = (_Atomic uint64_t *)(seg->base + g->off_owners);
	seg->touched = (_Atomic uint8_t *)(seg->base + g->off_touched);
	seg->stats = (struct xs_stats *)(seg->base + g->off_stats);
	seg->kept_peers = (struct xs_kept_peer *)(seg->base + g->off_kept_peers);
	seg->kept_ports = (struct xs_kept_port *)(seg->base + g->off_kept_ports);
	seg->stack = (char *)seg->base + g->off_stack;
	seg->pages = seg->base + g->off_pages;
	seg->nr_pages = g->nr_extents * XSEG_EXTENT_PAGES;
}

static int map_file(struct xseg *seg, int fd, uint64_t bytes, bool write)
{
	void *at = xs_room_take(bytes);
	int rc;

	if (!at)
		return -errno;
	if (mmap(at, bytes, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED, fd, 0) ==
		MAP_FAILED) {
		rc = -errno;
		munmap(at, bytes);
		return rc;
	}
	seg->base = at;
	madvise(seg->base, bytes, MADV_DONTFORK);
	return 0;
}

/* Its pages, over the hole that its own file has in their place. */
static int map_pool(struct xseg *seg)
{
	int rc = xs_pool_map(seg, seg->pages, 0, pool_bytes(seg), 0);

	if (rc == 0)
		madvise(seg->pages, pool_bytes(seg), MADV_DONTFORK);
	return rc;
}

/* Asked first, so that a wish which cannot be granted does not drain the machine on the way. */
static int check_room(int fd, uint64_t bytes, struct xseg_error *err)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) == 0 && fs.f_blocks && bytes / fs.f_frsize > fs.f_bavail)
		return xseg_fail(err, -ENOSPC,
			"/dev/shm has %llu MiB left and the segment needs %llu MiB; ask for less "
			"memory, or enlarge /dev/shm",
			(unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
			(unsigned long long)(bytes >> 20));
	return xs_memory_check(bytes, "the segment", "ask for less memory", err);
}

int xs_file_take(int fd, uint64_t at, uint64_t bytes)
{
	int rc;

	do {
		rc = posix_fallocate(fd, (off_t)at, (off_t)bytes);
	} while (rc == EINTR);
	return rc;
}

static int take_memory(int fd, uint64_t bytes, struct xseg_error *err)
{
	const uint64_t step = 256ull << 20;
	int rc;

	for (uint64_t at = 0; at < bytes; at += step) {
		rc = xs_file_take(fd, at, bytes - at < step ? bytes - at : step);
		if (rc)
			return xseg_fail(err, -rc,
				"the machine cannot give %llu MiB of shared memory (%s); "
				"ask for less memory, or enlarge /dev/shm",
				(unsigned long long)(bytes >> 20), strerror(rc));
	}
	return 0;
}

/* Everything but the READY mark. The memory is zero. */
static void write_tables(
	struct xseg *seg, const struct xs_geometry *geo, const char *name, enum xseg_huge huge)
{
	uint32_t i;

	seg->geo = *geo;
	set_pointers(seg);
	seg->super->magic = XSEG_MAGIC;
	seg->super->stamp = layout_stamp();
	seg->super->geo = *geo;
	seg->super->huge = huge;
	seg->super->pool = seg->pool_fd >= 0;
	seg->super->made_at_s = (uint64_t)time(NULL);
	snprintf(seg->super->name, sizeof(seg->super->name), "%s", name);
	for (i = 0; i < geo->nr_lanes; i++)
		xq_init((struct xq *)(seg->base + geo->off_rings + i * geo->ring_bytes), 0);
	xs_kept_init(seg);
	for (i = 0; i < geo->nr_requests; i++) {
		atomic_store_explicit(&seg->reqs[i].result, XS_IDLE, memory_order_relaxed);
		atomic_store_explicit(&seg->reqs[i].place,
			place_word(XSEG_REQ_FREE, PLACE_NO_PORT, 0, 0), memory_order_relaxed);
	}
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25	/* since Linux 6.1 */
#endif

/* Huge pages for the pool, where the system gives them; what was had is seen in xseg_huge_bytes().
 * The kernel makes a huge page out of small ones, and out of the holes beside them: so each extent
 * gets one small page first, and the rest of the memory is taken afterwards. */
static int want_huge(struct xseg *seg, enum xseg_huge huge, struct xseg_error *err)
{
	uint64_t bytes = pool_bytes(seg);
	int rc = 0;

	if (huge == XSEG_HUGE_NEVER)
		return 0;
	for (uint32_t i = 0; i < seg->geo.nr_extents && rc == 0; i++)
		rc = xs_file_take(seg->fd, seg->geo.off_pages + (uint64_t)i * XSEG_EXTENT_SIZE,
			XSEG_PAGE_SIZE);
	madvise(seg->pages, bytes, MADV_HUGEPAGE);
	if (rc == 0 && madvise(seg->pages, bytes, MADV_COLLAPSE) == 0)
		return 0;
	if (huge == XSEG_HUGE_REQUIRE)
		return xseg_fail(err, -ENOMEM,
			"huge pages were required and the system gives none (%s); "
			"ask for auto instead, or enable them in "
			"/sys/kernel/mm/transparent_hugepage/shmem_enabled, or set %u of 2 MiB "
			"aside (sysctl vm.nr_hugepages) for a hugetlbfs that is mounted",
			strerror(rc ? rc : errno), seg->geo.nr_extents);
	return 0;
}

/* All of its memory, the pages in huge ones if that is wished for: of those that are set aside, for
 * a file that others can find, or of those that the kernel makes. A private segment gets its other
 * memory as it is touched, since tests make thousands of them. */
static int take_pages(struct xseg *seg, const char *name, enum xseg_huge huge, bool is_private,
	struct xseg_error *err)
{
	uint64_t own;
	int rc;

	if (!is_private) {
		xs_pool_remove_old(name, seg->fd);
		if (huge != XSEG_HUGE_NEVER)
			seg->pool_fd = xs_pool_make(name, seg->fd, pool_bytes(seg));
	}
	own = seg->pool_fd >= 0 ? seg->geo.off_pages : seg->geo.total_bytes;
	rc = check_room(seg->fd, own, err);
	if (rc == 0 && seg->pool_fd < 0)
		rc = want_huge(seg, huge, err);
	return rc || is_private ? rc : take_memory(seg->fd, own, err);
}

static int fill_segment(int fd, const char *name, const struct xseg_config *cfg, bool is_private,
	struct xseg_error *err)
{
	struct xs_geometry geo;
	struct xseg seg = { .fd = fd, .map_fd = -1, .pool_fd = -1 };
	int rc = xs_geometry_from_config(cfg, &geo, err);

	if (rc)
		return rc;
	if (ftruncate(fd, (off_t)geo.total_bytes))
		return xseg_fail(err, -errno, "cannot give the segment %llu MiB: %m",
			(unsigned long long)(geo.total_bytes >> 20));
	rc = map_file(&seg, fd, geo.total_bytes, true);
	if (rc)
		return xseg_fail(err, rc, "cannot map the segment: %s", strerror(-rc));
	seg.geo = geo;
	set_pointers(&seg);
	rc = take_pages(&seg, name, cfg->huge, is_private, err);
	if (rc == 0) {
		atomic_store_explicit(&seg.super->state, XS_MAKING, memory_order_relaxed);
		write_tables(&seg, &geo, name, cfg->huge);
		/* release: partner is the acquire in check_super(); L2 */
		atomic_store_explicit(&seg.super->state, XS_READY, memory_order_release);
	}
	munmap(seg.base, geo.total_bytes);
	if (seg.pool_fd >= 0)
		close(seg.pool_fd);
	return rc;
}

static void shm_path(const char *name, char *path, size_t size)
{
	snprintf(path, size, "/" FILE_PREFIX "%s", name);
}

static bool is_unfinished(const struct xs_super *head)
{
	return head->magic == 0 || (head->magic == XSEG_MAGIC && head->state != XS_READY);
}

/* True when the name still leads to the file that fd has open. */
static bool is_named(const char *path, int fd)
{
	struct stat ours, named;
	int other = shm_open(path, O_RDONLY | O_CLOEXEC, 0);
	bool same = other >= 0 && fstat(other, &named) == 0 && fstat(fd, &ours) == 0 &&
		    named.st_ino == ours.st_ino;

	if (other >= 0)
		close(other);
	return same;
}

/* Removes the rest of a create that died. Others may be about to, and one of them has made it anew
 * by then: so the file's control byte is held, which its maker would have, while it is looked at
 * and its name goes. */
static void remove_half_made(const char *path)
{
	struct xs_super head;
	int fd = shm_open(path, O_RDWR | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return;
	if (xs_lock_byte(fd, XSEG_LOCK_CONTROL) == 0) {
		n = pread(fd, &head, sizeof(head), 0);
		if ((n == 0 || (n == (ssize_t)sizeof(head) && is_unfinished(&head))) &&
			is_named(path, fd))
			shm_unlink(path);
		xs_unlock_byte(fd, XSEG_LOCK_CONTROL);
	}
	close(fd);
}

static int fail_other_maker(const char *name, struct xseg_error *err)
{
	return xseg_fail(err, -EEXIST, "segment '%s' was made by another process at the same time",
		name);
}

int xseg_create(const char *name, const struct xseg_config *cfg, struct xseg_error *err)
{
	uint32_t mode = cfg->mode ? cfg->mode : 0600;
	struct xs_geometry geo;
	char path[XSEG_NAME_MAX + 16];
	int fd, rc;

	if (!xseg_name_ok(name))
		return xseg_fail(
			err, -EINVAL, "segment name '%s': use 1 to 63 of A-Z a-z 0-9 . _ -", name);
	rc = xs_geometry_from_config(cfg, &geo, err);
	if (rc)
		return rc;
	shm_path(name, path, sizeof(path));
	remove_half_made(path);
	fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return xseg_fail(err, -errno,
			errno == EEXIST ? "segment '%s' exists already"
					: "cannot make segment '%s': %m",
			name);
	/* whatever the umask is, for is_named() */
	rc = fchmod(fd, 0600) ? xseg_fail(err, -errno, "cannot set the segment's mode: %m") : 0;
	if (rc == 0)
		rc = xs_lock_wait(NULL, fd, XSEG_LOCK_CONTROL, 1);
	if (rc == -ETIMEDOUT)
		xseg_fail(err, rc,
			"segment '%s': another process that makes a segment of that name stands "
			"still; end it, then make it again", name);
	/* another maker may have taken it for half made before it was locked; from here on nobody
	 * does */
	if (rc == 0 && !is_named(path, fd))
		rc = fail_other_maker(name, err);
	if (rc == 0 && cfg->group >= 0 && fchown(fd, (uid_t)-1, (gid_t)cfg->group))
		rc = xseg_fail(err, -errno, "cannot give the segment to group %lld: %m",
			(long long)cfg->group);
	if (rc == 0 && fchmod(fd, mode))
		rc = xseg_fail(err, -errno, "cannot set the segment's mode: %m");
	if (rc == 0)
		rc = fill_segment(fd, name, cfg, false, err);
	if (rc == 0 && !is_named(path, fd))
		rc = fail_other_maker(name, err);
	else if (rc && is_named(path, fd))
		shm_unlink(path);
	if (rc)
		xs_pool_remove(name, fd);
	xs_unlock_byte(fd, XSEG_LOCK_CONTROL);
	close(fd);
	return rc;
}

static int fail_no_file(const char *name, struct xseg_error *err)
{
	return xseg_fail(
		err, -EPROTO, "/dev/shm/xseg.%s is not a segment: it is not a regular file", name);
}

/* Its maker holds the control lock until it is made. */
static int fail_unfinished(int fd, const char *name, struct xseg_error *err)
{
	if (xs_byte_locked(fd, XSEG_LOCK_CONTROL))
		return xseg_fail(err, -EAGAIN, "segment '%s' is being made; wait for that", name);
	return xseg_fail(err, -ESTALE,
		"segment '%s' is half made, and its maker is dead; 'xseg -s %s create' makes it "
		"anew, 'xseg -s %s destroy' removes it",
		name, name, name);
}

/* Checks all that attaching is going to trust, on a private copy of the superblock. */
static int check_super(int fd, const char *name, struct xs_geometry *geo, struct xseg_error *err)
{
	struct xs_super head;
	struct xs_geometry want;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return xseg_fail(err, -errno, "segment '%s': %m", name);
	if (!S_ISREG(st.st_mode))
		return fail_no_file(name, err);
	n = pread(fd, &head, sizeof(head), 0);
	/* acquire: partner is the release in fill_segment() */
	atomic_thread_fence(memory_order_acquire);
	if (n > 0 && n < (ssize_t)sizeof(head))
		return xseg_fail(err, -EPROTO,
			"/dev/shm/xseg.%s is not a segment, or truncated: it has %zd bytes", name,
			n);
	if (n != (ssize_t)sizeof(head) || is_unfinished(&head))
		return fail_unfinished(fd, name, err);
	if (head.magic != XSEG_MAGIC)
		return xseg_fail(err, -EPROTO,
			"/dev/shm/xseg.%s is not a segment: its first bytes are foreign", name);
	if (head.stamp != layout_stamp())
		return xseg_fail(err, -EPROTO,
			"segment '%s' was made by another version of xseg; end it with 'xseg down' "
			"of that one (UPGRADING in xseg(1) says more)",
			name);
	if (!xs_geometry_again(&head.geo, &want))
		return xseg_fail(err, -EPROTO,
			"segment '%s' is damaged: its geometry is out of range", name);
	if (memcmp(&want, &head.geo, sizeof(want)) != 0)
		return xseg_fail(err, -EPROTO,
			"segment '%s' is damaged: its geometry does not add up", name);
	if ((uint64_t)st.st_size != want.total_bytes)
		return xseg_fail(err, -EPROTO,
			"segment '%s' is %s: its file has %lld of %llu bytes", name,
			(uint64_t)st.st_size < want.total_bytes ? "truncated" : "damaged",
			(long long)st.st_size, (unsigned long long)want.total_bytes);
	*geo = want;
	return 0;
}

static int fail_none(const char *name, struct xseg_error *err)
{
	return xseg_fail(err, -ENOENT,
		"there is no segment '%s'; make it with 'xseg -s %s create' or 'xseg -s %s up "
		"STACK.conf'",
		name, name, name);
}

/* Whether it has not been removed. */
static bool has_name(struct xseg *seg)
{
	struct stat st;

	return fstat(seg->fd, &st) == 0 && st.st_nlink > 0;
}

bool xseg_is_removed(struct xseg *seg)
{
	return seg->is_named && !xs_is_forked(seg) && !has_name(seg);
}

/* Whoever removes the segment has all places for a moment. */
static int join_soon(struct xseg *seg)
{
	int rc = xs_member_join(seg);

	for (int i = 0; rc == -EUSERS && i < 10 && has_name(seg); i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		rc = xs_member_join(seg);
	}
	return rc;
}

/* Makes the process a member, with private copies of requests. */
static int join(struct xseg *seg, struct xseg_error *err)
{
	int rc;

	seg->views = calloc(1, views_bytes(seg));
	rc = seg->views ? join_soon(seg) : -ENOMEM;
	if (rc == -EUSERS && !has_name(seg))
		return fail_none(seg->name, err);
	if (rc == -EUSERS)
		return xseg_fail(err, rc,
			"segment '%s' has no place for another process (%u are attached)",
			seg->name, XSEG_MAX_MEMBERS);
	return rc ? xseg_fail(err, rc, "cannot join segment '%s': %s", seg->name, strerror(-rc))
		  : 0;
}

/* After set_pointers(). */
static int attach_pages(struct xseg *seg, const char *name, struct xseg_error *err)
{
	int rc;

	if (!XS_FETCH(seg->super->pool)) {
		if (seg->super->huge != XSEG_HUGE_NEVER)
			madvise(seg->pages, pool_bytes(seg), MADV_HUGEPAGE);
		return 0;
	}
	rc = xs_pool_open(name, seg->fd, pool_bytes(seg), err);
	if (rc < 0)
		return rc;
	seg->pool_fd = rc;
	rc = map_pool(seg);
	return rc ? xseg_fail(err, rc, "cannot map the pages of segment '%s': %s", name,
			    strerror(-rc))
		  : 0;
}

static int attach_fd(
	int fd, const char *name, unsigned flags, struct xseg **out, struct xseg_error *err)
{
	struct xseg *seg = calloc(1, sizeof(*seg));
	int rc;

	if (!seg) {
		close(fd);
		return xseg_fail(err, -ENOMEM, "out of memory");
	}
	seg->fd = fd;
	seg->map_fd = seg->pool_fd = -1;
	seg->observer = flags & XSEG_ATTACH_OBSERVER;
	seg->is_named = has_name(seg);
	seg->member = XSEG_OBSERVER_MEMBER;
	snprintf(seg->name, sizeof(seg->name), "%s", name);
	rc = check_super(fd, name, &seg->geo, err);
	if (rc)
		goto out_close;
	rc = map_file(seg, fd, seg->geo.total_bytes, true);
	if (rc) {
		xseg_fail(err, rc, "cannot map segment '%s': %s", name, strerror(-rc));
		goto out_close;
	}
	set_pointers(seg);
	rc = attach_pages(seg, name, err);
	if (rc)
		goto out_unmap;
	/* of a shared mapping, pages are writable after that, too, and it maps several at a time */
	if (flags & XSEG_ATTACH_POPULATE)
		madvise(seg->base, seg->geo.total_bytes, MADV_POPULATE_READ);
	rc = xs_attached_add(seg);
	if (rc) {
		xseg_fail(err, rc, "cannot attach segment '%s': %s", name, strerror(-rc));
		goto out_unmap;
	}
	rc = seg->observer ? 0 : join(seg, err);
	if (rc)
		goto out_unmap;
	*out = seg;
	return 0;
out_unmap:
	xs_attached_remove(seg);
	free(seg->views);
	munmap(seg->base, seg->geo.total_bytes);
out_close:
	xs_files_close(seg);
	free(seg);
	return rc;
}

int xseg_attach(const char *name, unsigned flags, struct xseg **seg, struct xseg_error *err)
{
	return xseg_attach_owned(name, NULL, flags, seg, err);
}

int xseg_owner_of(const char *name, uint32_t *uid)
{
	char path[XSEG_NAME_MAX + 32];
	struct stat st;

	if (!xseg_name_ok(name))
		return -EINVAL;
	snprintf(path, sizeof(path), "/dev/shm/" FILE_PREFIX "%s", name);
	if (lstat(path, &st))
		return -errno;
	*uid = st.st_uid;
	return 0;
}

int xseg_attach_owned(const char *name, const char *owner, unsigned flags, struct xseg **seg,
	struct xseg_error *err)
{
	char path[XSEG_NAME_MAX + 16];
	int fd, rc;

	if (!xseg_name_ok(name))
		return xseg_fail(
			err, -EINVAL, "segment name '%s': use 1 to 63 of A-Z a-z 0-9 . _ -", name);
	shm_path(name, path, sizeof(path));
	fd = shm_open(path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENOENT)
		return fail_none(name, err);
	/* what shm_open() says of a directory, a socket and a symbolic link */
	if (fd < 0 && (errno == EINVAL || errno == ENXIO || errno == ELOOP))
		return fail_no_file(name, err);
	if (fd < 0)
		return xseg_fail(err, -errno, "cannot open segment '%s': %m", name);
	rc = xs_owner_check(fd, name, owner, err);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = attach_fd(fd, name, flags, seg, err);
	if (rc || has_name(*seg))
		return rc;
	xseg_detach(*seg);
	return fail_none(name, err);
}

int xseg_create_private(const struct xseg_config *cfg, struct xseg **seg, struct xseg_error *err)
{
	int fd = memfd_create("xseg", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return xseg_fail(err, -errno, "memfd: %m");
	rc = fill_segment(fd, "private", cfg, true, err);
	if (rc) {
		close(fd);
		return rc;
	}
	return attach_fd(fd, "private", 0, seg, err);
}

void xseg_detach(struct xseg *seg)
{
	if (!seg)
		return;
	if (xs_is_forked(seg)) {
		free(seg->views);
		free(seg);
		return;
	}
	if (seg->member != XSEG_OBSERVER_MEMBER && xseg_is_whole(seg))
		atomic_store_explicit(&seg->members[seg->member].pid, 0, memory_order_relaxed);
	free(seg->views);
	munmap(seg->base, seg->geo.total_bytes);
	xs_attached_remove(seg);
	free(seg);
}

int xseg_destroy(const char *name)
{
	char path[XSEG_NAME_MAX + 16];
	int fd, rc;

	if (!xseg_name_ok(name))
		return -EINVAL;
	shm_path(name, path, sizeof(path));
	/* a FIFO that somebody has put there has nobody who writes to it */
	fd = shm_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	rc = shm_unlink(path) ? -errno : 0;
	/* killed here, the pages are removed by whoever makes a segment of that name */
	if (rc == 0 && fd >= 0)
		xs_pool_remove(name, fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Who attaches becomes a member, and then looks whether the name is still there; this keeps all
 * others from becoming members, and then takes the name away. So one of the two sees the other. */
int xseg_remove(struct xseg *seg, bool in_use)
{
	int rc = in_use ? 0 : xs_members_shut(seg);

	if (rc)
		return rc == -EAGAIN || rc == -EACCES ? -EBUSY : rc;
	rc = has_name(seg) ? xseg_destroy(seg->name) : -ENOENT;
	if (!in_use)
		xs_members_open(seg);
	return rc;
}

static int is_segment(const struct dirent *e)
{
	return strncmp(e->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) == 0 &&
	       xseg_name_ok(e->d_name + strlen(FILE_PREFIX));
}

int xseg_list(void (*fn)(const char *name, void *arg), void *arg)
{
	struct dirent **entry;
	int nr = scandir("/dev/shm", &entry, is_segment, alphasort);

	if (nr < 0)
		return -errno;
	for (int i = 0; i < nr; i++) {
		fn(entry[i]->d_name + strlen(FILE_PREFIX), arg);
		free(entry[i]);
	}
	free(entry);
	return 0;
}

XS_RACY void xs_racy_copy(void *to, const void *from, size_t bytes)
{
	const volatile unsigned char *f = from;
	unsigned char *t = to;

	for (size_t i = 0; i < bytes; i++)
		t[i] = f[i];
}
