/* pagecache_file.c - the page cache: a loop of pread() or pwrite() with one buffer, or reads of a
 * mapping.
 *
 * A file on tmpfs is put into huge pages by MADV_COLLAPSE, which needs neither root nor a mount
 * option (Linux 6.1). Mappings stay until the process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/pagecache/pagecache.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14 */
#endif
#define HUGE_BYTES (2u << 20)

int file_open(const struct options *o, int *fd, struct xseg_error *err)
{
	int flags = O_CLOEXEC | (o->make ? O_RDWR | O_CREAT : O_RDWR);

	*fd = open(o->file, flags, 0600);
	return *fd < 0 ? xseg_fail(err, -errno, "%s: %s", o->file, strerror(errno)) : 0;
}

/* At a multiple of 2 MiB, as huge pages need. */
static int map_at(const struct options *o, int fd, int prot, uint8_t **map, struct xseg_error *err)
{
	uint8_t *room = mmap(NULL, o->size + HUGE_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		*at;

	if (room == MAP_FAILED)
		return xseg_fail(err, -errno, "no room for a mapping: %s", strerror(errno));
	at = (uint8_t *)(((uintptr_t)room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	if (mmap(at, o->size, prot, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return xseg_fail(err, -errno, "%s cannot be mapped: %s", o->file, strerror(errno));
	*map = at;
	return 0;
}

/* All pages are in the mapping's tables afterwards, so that no page fault is measured. */
int file_map(const struct options *o, int fd, uint8_t **map, struct xseg_error *err)
{
	int rc = map_at(o, fd, PROT_READ, map, err);

	if (!rc && madvise(*map, o->size, MADV_POPULATE_READ))
		rc = xseg_fail(err, -errno, "%s cannot be mapped whole: %s", o->file,
			strerror(errno));
	return rc;
}

int file_collapse(const struct options *o, int fd, bool *huge, struct xseg_error *err)
{
	uint8_t *at;
	int rc;

	*huge = false;
	rc = map_at(o, fd, PROT_READ | PROT_WRITE, &at, err);
	if (!rc) {
		madvise(at, o->size, MADV_HUGEPAGE);
		*huge = madvise(at, o->size, MADV_COLLAPSE) == 0;
	}
	return rc;
}

static int read_page(struct job *j, uint8_t *buffer)
{
	uint64_t nr = page_next(j);
	ssize_t n = pread(j->fd, buffer, PAGE, (off_t)(nr * PAGE));

	page_read(j, nr, buffer, NULL);
	job_count(j);
	return job_check(j, n < 0 ? -errno : n);
}

static int write_page(struct job *j, uint8_t *buffer)
{
	uint64_t nr = page_next(j);
	ssize_t n;

	page_write(j, nr, buffer);
	n = pwrite(j->fd, buffer, PAGE, (off_t)(nr * PAGE));
	job_count(j);
	return job_check(j, n < 0 ? -errno : n);
}

/* As many pages as are in flight are known ahead, as those of a queue are. */
static void read_mapped(struct job *j)
{
	uint64_t nr[MAX_DEPTH];

	for (uint32_t i = 0; i < j->o->iodepth; i++) {
		nr[i] = page_next(j);
		__builtin_prefetch(j->map + nr[i] * PAGE);
	}
	for (uint32_t i = 0; i < j->o->iodepth; i++) {
		const uint8_t *next = i + 1 < j->o->iodepth ? j->map + nr[i + 1] * PAGE : NULL;

		page_read(j, nr[i], j->map + nr[i] * PAGE, next);
		job_count(j);
	}
}

int file_run(struct job *j)
{
	_Alignas(PAGE) uint8_t buffer[PAGE] = { 0 };
	int rc = 0;

	job_ready(j);
	while (!rc && !job_is_over(j)) {
		if (j->map)
			read_mapped(j);
		else
			rc = j->rw == RANDREAD ? read_page(j, buffer) : write_page(j, buffer);
	}
	return rc;
}
