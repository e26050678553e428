/* limit_map.c - the shared memory of bench-limit, and the server's index.
 *
 * The memory is one mapping: anonymous, or of a file (--set). The file stays, so that a script that
 * measures many points need not have gigabytes zeroed for each. A lock on the file admits one
 * bench-limit at a time. All contents but the zeroes are made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/limits/limit.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25			/* since Linux 6.1 */
#endif

/* Takes `bytes` at *at, beginning at a multiple of `align`; only counts when base is NULL. */
static void *carve(uint8_t *base, size_t *at, size_t bytes, size_t align)
{
	*at = (*at + align - 1) / align * align;
	*at += bytes;
	return base ? base + *at - bytes : NULL;
}

/* Where everything is in the mapping; returns its size. */
static size_t lay_out(struct limit *l, uint8_t *base)
{
	const struct options *o = l->o;
	uint64_t slots = (uint64_t)o->numjobs * o->iodepth;
	size_t at = 0, lane = xq_size_bytes(l->lane_slots);

	l->ended = carve(base, &at, sizeof(*l->ended), LINE);
	l->result = carve(base, &at, o->numjobs * sizeof(*l->result), PAGE);
	for (uint32_t i = 0; i < o->numjobs; i++) {
		l->asks[i] = carve(base, &at, lane, PAGE);
		l->answers[i] = carve(base, &at, lane, PAGE);
	}
	l->lists = carve(base, &at, slots * l->block_pages * sizeof(*l->lists), PAGE);
	l->pages = carve(base, &at, o->size + slots * o->bs, HUGE_BYTES);
	return (at + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

/* Huge pages where the system gives them, got as xseg_create() gets them: one small page in each is
 * there, and the kernel makes the rest. */
static bool want_huge(struct limit *l)
{
	if (!l->o->huge)
		return false;
	for (size_t at = 0; at < l->map_bytes; at += HUGE_BYTES)
		((volatile uint8_t *)l->map)[at] = 0;
	madvise(l->map, l->map_bytes, MADV_HUGEPAGE);
	return madvise(l->map, l->map_bytes, MADV_COLLAPSE) == 0;
}

/* Whether there is room for what the file has not yet: else who writes to it is ended by SIGBUS. */
static int check_room(const char *name, int fd, size_t bytes, struct xseg_error *err)
{
	struct statvfs fs;
	struct stat st;
	uint64_t has, left;

	if (fstat(fd, &st) || fstatvfs(fd, &fs))
		return xseg_fail(err, -errno, "%s cannot be looked at: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return xseg_fail(err, -EINVAL, "%s is no regular file; give another --set", name);
	has = (uint64_t)st.st_blocks * 512;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (fs.f_blocks && bytes > has && bytes - has > left)
		return xseg_fail(err, -ENOSPC,
			"%s takes %zu MiB, and there are %" PRIu64
			" MiB left; use a smaller --size, or make room",
			name, bytes >> 20, left >> 20);
	return 0;
}

/* The file of --set, with room for all, locked while this process lives; *set is -1 without one. */
static int open_set(const struct limit *l, int *set, struct xseg_error *err)
{
	const char *name = l->o->set;
	/* all of it; children have no part of it */
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd, rc;

	*set = -1;
	if (!*name)
		return 0;
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return xseg_fail(err, -errno, "%s cannot be opened: %s; give another --set", name,
			strerror(errno));
	rc = fcntl(fd, F_SETLK, &lock) ? -errno : 0;
	if (rc == -EAGAIN || rc == -EACCES)
		return xseg_fail(err, -EBUSY,
			"%s is in use by another bench-limit; wait until it ends, or give another "
			"--set",
			name);
	if (rc)
		return xseg_fail(err, rc, "%s cannot be locked: %s; give another --set", name,
			strerror(-rc));
	rc = check_room(name, fd, l->map_bytes, err);
	if (rc)
		return rc;
	if (ftruncate(fd, (off_t)l->map_bytes))
		return xseg_fail(err, -errno, "%s cannot be made as large as %zu: %s", name,
			l->map_bytes, strerror(errno));
	*set = fd;
	return 0;
}

static int map_all(struct limit *l, struct xseg_error *err)
{
	uint8_t *room, *base;
	int fd, rc;

	l->map_bytes = lay_out(l, NULL);
	rc = open_set(l, &fd, err);
	if (rc)
		return rc;
	room = mmap(NULL, l->map_bytes + HUGE_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return xseg_fail(err, -errno, "no room for %zu bytes: %s; use a smaller --size",
			l->map_bytes, strerror(errno));
	base = (uint8_t *)(((uintptr_t)room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	l->map = mmap(base, l->map_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (l->map == MAP_FAILED)
		return xseg_fail(err, -errno,
			"no %zu bytes of shared memory: %s; use a smaller --size", l->map_bytes,
			strerror(errno));
	l->huge = want_huge(l);
	lay_out(l, l->map);
	return 0;
}

/* Pages are dealt to the objects in turn, as a sequential fill does. */
static int make_index(struct limit *l, struct xseg_error *err)
{
	uint32_t nr = l->nr_pages / l->object_pages;
	void *mem = aligned_alloc(LINE, (xhash_mem_bytes(nr) + LINE - 1) / LINE * LINE);
	size_t bytes;

	l->object_bytes = (sizeof(struct object) + l->object_pages * sizeof(uint32_t) + 7) / 8 * 8;
	bytes = (nr * l->object_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	l->objects = aligned_alloc(HUGE_BYTES, bytes);
	if (!mem || !l->objects)
		return xseg_fail(err, -ENOMEM, "no memory for the index; use a smaller --size");
	madvise(l->objects, bytes, MADV_HUGEPAGE);
	xhash_init(&l->index, mem, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct object *object = object_at(l, i);

		object->number = i;
		for (uint32_t k = 0; k < l->object_pages; k++)
			object->page[k] = i * l->object_pages + k;
		if (xhash_insert(&l->index, bench_scramble(i), i))
			return xseg_fail(err, -ENOSPC, "the index is too small for %u objects", nr);
	}
	return 0;
}

static void fill(struct limit *l)
{
	uint64_t own = (uint64_t)l->o->numjobs * l->o->iodepth * l->o->bs;

	for (uint64_t page = 0; page < l->nr_pages; page++)
		*first_word(page_at(l, page)) = page;	/* L1 */
	memset(page_at(l, l->nr_pages), 0x5a, own);
	atomic_store_explicit(l->ended, 0, memory_order_relaxed);
	memset(l->result, 0, l->o->numjobs * sizeof(*l->result));
	for (uint32_t i = 0; i < l->o->numjobs; i++) {
		xq_init(l->asks[i], 0);
		xq_init(l->answers[i], 0);
		xhist_init(&l->result[i].lat);
	}
}

int limit_prepare(struct limit *l, struct xseg_error *err)
{
	int rc;

	l->block_pages = (uint32_t)(l->o->bs / PAGE);
	l->object_pages = (uint32_t)(l->o->object_size / PAGE);
	l->nr_pages = (uint32_t)(l->o->size / PAGE);
	l->batch = l->o->iodepth / 2 < MIN_BATCH ? MIN_BATCH : l->o->iodepth / 2;
	if (l->batch > MAX_BATCH)
		l->batch = MAX_BATCH;
	for (l->lane_slots = MAX_BATCH; l->lane_slots < l->o->iodepth;)
		l->lane_slots *= 2;
	rc = map_all(l, err);
	if (!rc)
		rc = make_index(l, err);
	if (!rc)
		fill(l);
	return rc;
}

void limit_begin(struct limit *l)
{
#ifdef MADV_POPULATE_READ
	madvise(l->map, l->map_bytes, MADV_POPULATE_READ);
#endif
	(void)l;
}
