/* info - what a segment says of itself: counts, costs, the text of its stack file.
 *
 * Contract: any thread; observers too. Counts are taken while others go on: each is right, their
 * sum need not be. The stack's text is read and written under the control lock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "xseg/internal.h"

const char *xseg_name(struct xseg *seg)
{
	return seg->name;
}

bool xseg_is_whole(struct xseg *seg)
{
	struct stat st;

	if (fstat(seg->fd, &st) == 0 && (uint64_t)st.st_size < seg->geo.total_bytes)
		return false;
	return seg->pool_fd < 0 || fstat(seg->pool_fd, &st) ||
	       (uint64_t)st.st_size >= pool_bytes(seg);
}

/* The kernel says what is mapped by huge pages, and maps what is touched: one byte of each
 * extent. */
static void touch_extents(struct xseg *seg)
{
	for (uint32_t i = 0; i < seg->geo.nr_extents; i++)
		(void)*(const volatile uint8_t *)(seg->pages + (uint64_t)i * XSEG_EXTENT_SIZE);
}

uint64_t xseg_huge_bytes(struct xseg *seg)
{
	uintptr_t lo = (uintptr_t)seg->base, hi = lo + seg->geo.total_bytes;
	unsigned long from, to, kb;
	bool inside = false;
	uint64_t sum = 0;
	char line[256];
	FILE *f;

	if (!xseg_is_whole(seg))
		return 0;
	if (seg->pool_fd >= 0)
		return pool_bytes(seg);
	f = fopen("/proc/self/smaps", "re");
	if (!f)
		return 0;
	touch_extents(seg);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 &&
			strchr(line, '-') < strchr(line, ' '))
			inside = from >= lo && to <= hi;
		else if (inside && sscanf(line, "ShmemPmdMapped: %lu kB", &kb) == 1)
			sum += (uint64_t)kb << 10;
	}
	fclose(f);
	return sum;
}

/* Whether a port has the request; *next: the first one that may be another's, or nobody's. */
static bool is_had(struct xseg *seg, uint32_t at, uint32_t *next)
{
	*next = seg->geo.nr_requests;
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++) {
		uint32_t first, nr;

		if (!atomic_load_explicit(&seg->ports[i].peer, memory_order_acquire))
			continue;
		nr = xs_port_requests(seg, i, &first);
		if (nr && first <= at && at < first + nr) {
			*next = first + nr;
			return true;
		}
		if (nr && first > at && first < *next)
			*next = first;
	}
	return false;
}

/* As find_requests() of peer.c would give them, to ports that are free. */
static void count_requests(struct xseg *seg, struct xseg_info *info)
{
	uint32_t next;

	for (uint32_t at = 0; info->free_ports && at < seg->geo.nr_requests; at = next) {
		uint32_t units = is_had(seg, at, &next) ? 0 : (next - at) / XSEG_REQ_UNIT;

		info->free_requests += units * XSEG_REQ_UNIT;
		if (units * XSEG_REQ_UNIT > info->largest_requests)
			info->largest_requests = units * XSEG_REQ_UNIT;
	}
}

void xseg_get_info(struct xseg *seg, struct xseg_info *info)
{
	uint32_t i;

	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%s", seg->name);
	info->total_bytes = seg->geo.total_bytes;
	info->memory_bytes = pool_bytes(seg);
	info->made_at_s = seg->super->made_at_s;
	info->bad_count = atomic_load_explicit(&seg->super->bad_count, memory_order_relaxed);
	info->nr_requests = seg->geo.nr_requests;
	info->nr_ports = seg->geo.nr_ports;
	info->nr_lanes = seg->geo.nr_lanes;
	info->nr_extents = seg->geo.nr_extents;
	info->huge = (enum xseg_huge)XS_FETCH(seg->super->huge);
	if ((unsigned)info->huge > XSEG_HUGE_REQUIRE)
		info->huge = XSEG_HUGE_AUTO;
	info->huge_reserved = seg->pool_fd >= 0;
	for (i = 0; i < seg->geo.nr_requests; i++)
		info->idle_requests += place_state(atomic_load_explicit(&seg->reqs[i].place,
					       memory_order_relaxed)) == XSEG_REQ_FREE;
	for (i = 0; i < seg->geo.nr_ports; i++)
		info->free_ports += atomic_load_explicit(
					    &seg->ports[i].peer, memory_order_relaxed) == 0;
	count_requests(seg, info);
	for (i = 0; i < seg->geo.nr_lanes; i++)
		info->used_lanes += atomic_load_explicit(
					    &seg->lanes[i].word, memory_order_relaxed) != 0;
	for (i = 0; i < seg->geo.nr_extents; i++) {
		enum xs_extent_kind k = extent_kind(
			atomic_load_explicit(&seg->extents[i].word, memory_order_relaxed));

		info->free_extents += k == XS_EXTENT_FREE;
		info->arena_extents += k == XS_EXTENT_ARENA;
		info->page_extents += k == XS_EXTENT_PAGES;
	}
	info->free_pages = (uint64_t)info->free_extents * XSEG_EXTENT_PAGES;
}

int xseg_stack_set(struct xseg *seg, const char *text, size_t len)
{
	int fd;

	if (len > XSEG_STACK_BYTES)
		return -E2BIG;
	fd = xs_control_lock(seg);
	if (fd < 0)
		return fd;
	/* zero while the text is being written: if we die here, there is none rather than half of
	 * one */
	atomic_store_explicit(&seg->super->stack_bytes, 0, memory_order_release);
	memcpy(seg->stack, text, len);
	atomic_store_explicit(&seg->super->stack_bytes, (uint32_t)len, memory_order_release);
	xs_control_unlock(fd);
	return 0;
}

size_t xseg_stack_get(struct xseg *seg, char *buf, size_t size)
{
	int fd = xs_control_lock(seg);
	size_t len = fd < 0 ? 0
			    : atomic_load_explicit(&seg->super->stack_bytes, memory_order_acquire);

	if (len > XSEG_STACK_BYTES)
		len = 0;
	if (size && len > size - 1)
		len = size - 1;
	if (size) {
		memcpy(buf, seg->stack, len);
		buf[len] = '\0';
	}
	if (fd >= 0)
		xs_control_unlock(fd);
	return len;
}
