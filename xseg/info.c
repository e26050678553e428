/* info - facts that a segment states about itself: counts, costs, the text of its stack file.
 *
 * Contract: any thread; observers too. Counts are taken while others go on: each is right, their
 * sum need not be. The stack's text is written under the lock of routes, and read without one. The
 * text has a word. The reader reads again if that word says that the text is being written, or if
 * the word has changed afterwards.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "xseg/internal.h"

#define STACK_LOOKS    100
#define STACK_PAUSE_NS 1000000

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

/* ---- senders of requests ---- */

/* Index and generation. The index of a port that is nobody's is none that a peer has. */
uint64_t xseg_req_sender(struct xseg *seg, const struct xreq *r)
{
	uint32_t peer = xs_peer_of_port(seg, r->origin) - 1;

	return peer >= xseg_nr_peers(seg) ? UINT64_MAX
				      : (uint64_t)peer << 32 | peer_gen(xs_peer_word(seg, peer));
}

bool xseg_sender_serves(struct xseg *seg, uint64_t sender)
{
	uint64_t peer = sender >> 32, word;

	if (peer >= xseg_nr_peers(seg))
		return false;
	word = xs_peer_word(seg, (uint32_t)peer);
	return xseg_peer_is_up(peer_state(word)) && peer_gen(word) == (uint32_t)sender;
}

/* ---- sizes ---- */

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

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t within(uint32_t n, uint32_t least, uint32_t most)
{
	return n < least ? least : smaller(n, most);
}

/* None, or one that a command fits into: half a reserve would help nobody. */
static void size_reserve(const struct xseg *seg, struct xs_free *f)
{
	uint32_t units = seg->geo.nr_requests / 16 / XSEG_REQ_UNIT;

	if (seg->geo.nr_ports < XSEG_RESERVE_FROM_PORTS ||
		seg->geo.nr_requests < XSEG_RESERVE_FROM_REQUESTS)
		return;
	f->reserve_ports = within(
		seg->geo.nr_ports / 8, XSEG_COMMAND_PORTS, XSEG_RESERVE_PORTS);
	f->reserve_requests = within(
		units * XSEG_REQ_UNIT, XSEG_COMMAND_REQUESTS, XSEG_RESERVE_REQUESTS);
}

/* Requests as find_requests() of peer.c would give them. */
void xs_count_free(struct xseg *seg, struct xs_free *f)
{
	uint32_t next;

	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < seg->geo.nr_ports; i++)
		f->ports += !atomic_load_explicit(&seg->ports[i].peer, memory_order_acquire);
	for (uint32_t at = 0; at < seg->geo.nr_requests; at = next) {
		uint32_t n = is_had(seg, at, &next) ? 0 : next - at;

		n -= n % XSEG_REQ_UNIT;
		f->requests += n;
		f->largest = n > f->largest ? n : f->largest;
	}
	size_reserve(seg, f);
}

/* What is beyond the reserve is free for anybody. */
static void split_reserve(struct xseg *seg, struct xseg_info *info)
{
	struct xs_free f;

	xs_count_free(seg, &f);
	info->reserve_ports = smaller(f.ports, f.reserve_ports);
	info->free_ports = f.ports - info->reserve_ports;
	info->reserve_requests = f.ports ? smaller(f.requests, f.reserve_requests) : 0;
	info->free_requests = info->free_ports ? f.requests - info->reserve_requests : 0;
	info->unowned_requests = f.requests;
	info->largest_requests = smaller(f.largest, info->free_requests);
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
	split_reserve(seg, info);
	for (i = 0; i < seg->geo.nr_lanes; i++)
		info->used_lanes += atomic_load_explicit(
					    &seg->lanes[i].word, memory_order_relaxed) != 0;
	for (i = 0; i < seg->geo.nr_extents; i++) {
		enum xs_extent_kind k = extent_kind(
			atomic_load_explicit(&seg->extents[i].word, memory_order_relaxed));

		info->free_extents += k == XS_EXTENT_FREE;
		info->arena_extents += k == XS_EXTENT_ARENA;
		info->page_extents += k == XS_EXTENT_PAGES || k == XS_EXTENT_TAKING;
	}
	info->free_pages = (uint64_t)info->free_extents * XSEG_EXTENT_PAGES;
}

int xseg_stack_set(struct xseg *seg, const char *text, size_t len)
{
	_Atomic uint32_t *word = &seg->super->stack_word;
	uint32_t version;
	int fd;

	if (len > XSEG_STACK_BYTES)
		return -E2BIG;
	fd = xs_lock(seg, XSEG_LOCK_ROUTES);
	if (fd < 0)
		return fd;
	version = stack_version(atomic_load_explicit(word, memory_order_relaxed)) + 1;
	/* if we die before the second store, there is none rather than half of one */
	atomic_store_explicit(word, STACK_WRITING | stack_word(0, version), memory_order_relaxed);
	/* release: partner is the fence in xseg_stack_get() */
	atomic_thread_fence(memory_order_release);
	memcpy(seg->stack, text, len);
	atomic_store_explicit(word, stack_word((uint32_t)len, version), memory_order_release);
	xs_unlock(fd);
	return 0;
}

/* Copies the text that the word says; false: it was not that one's all the time. */
static bool copy_stack(struct xseg *seg, uint32_t word, char *buf, size_t *len, size_t size)
{
	*len = word & STACK_WRITING ? 0 : stack_bytes(word);
	if (*len > XSEG_STACK_BYTES)
		*len = 0;
	if (size && *len > size - 1)
		*len = size - 1;
	if (size) {
		memcpy(buf, seg->stack, *len);
		buf[*len] = '\0';
	}
	/* acquire: partner is the fence in xseg_stack_set() */
	atomic_thread_fence(memory_order_acquire);
	return !(word & STACK_WRITING) &&
	       atomic_load_explicit(&seg->super->stack_word, memory_order_relaxed) == word;
}

size_t xseg_stack_get(struct xseg *seg, char *buf, size_t size)
{
	size_t len = 0;

	/* it takes a moment to write it; one who died in that has left none */
	for (int i = 0; i < STACK_LOOKS; i++) {
		uint32_t w = atomic_load_explicit(&seg->super->stack_word, memory_order_acquire);

		if (copy_stack(seg, w, buf, &len, size))
			return len;
		nanosleep(&(struct timespec){ .tv_nsec = STACK_PAUSE_NS }, NULL);
	}
	if (size)
		buf[0] = '\0';
	return 0;
}
