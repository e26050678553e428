/* arena - the page pool: extents, the arenas and the pages that peers take out of it.
 *
 * Contract: control path only, except xseg_page() and the owner words. An extent's word is its
 * truth. A peer that takes an extent makes it TAKING by a swap from FREE, and then its own by a
 * store. The owner gives it back by one store. So taking and giving need no lock, and wait for
 * nobody. Making an arena, and giving it back, is under the peer's lock; a client's is under the
 * control lock. So a check never meets an arena that is half made.
 *
 * An arena is made in two steps. Its extents are marked (ARENA, peer, number). Then `arena_extents`
 * is stored, which commits it. A peer may die before it commits its arena, or while it takes
 * extents. Then those extents have no owner. They are freed when the peer opens again or is
 * forgotten.
 *
 * Invariants:
 *   A1  The extents of a committed arena have the numbers 0 .. arena_extents - 1, each once.
 *   A2  A peer gets zeroed extents: an extent that was used before is cleared when it is handed
 *       out.
 *   A3  An arena is mapped as one piece, by file offset, so that its owner can use arrays.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

static uint64_t extent_get(struct xseg *seg, uint32_t i)
{
	return atomic_load_explicit(&seg->extents[i].word, memory_order_acquire);
}

static void extent_set(struct xseg *seg, uint32_t i, uint64_t word)
{
	atomic_store_explicit(&seg->extents[i].word, word, memory_order_release);
}

static bool extent_is(struct xseg *seg, uint32_t i, enum xs_extent_kind kind, uint32_t peer)
{
	uint64_t w = extent_get(seg, i);

	return extent_kind(w) == kind && extent_peer(w) == peer;
}

static uint8_t *extent_addr(struct xseg *seg, uint32_t i)
{
	return seg->pages + (uint64_t)i * XSEG_EXTENT_SIZE;
}

static uint32_t free_extents(struct xseg *seg)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < seg->geo.nr_extents; i++)
		n += extent_kind(extent_get(seg, i)) == XS_EXTENT_FREE;
	return n;
}

/* Takes up to n extents for the peer, numbered from 0; returns how many: fewer where others have
 * taken some since they were counted. Fresh ones are zero already (A2). page, if not
 * NULL, gets the numbers of all their pages. */
static uint32_t take_extents(
	struct xseg *seg, uint32_t peer, enum xs_extent_kind kind, uint32_t n, uint32_t *page)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < seg->geo.nr_extents && nr < n; i++) {
		uint64_t w = extent_get(seg, i);

		if (extent_kind(w) != XS_EXTENT_FREE ||
			!atomic_compare_exchange_strong(&seg->extents[i].word, &w,
				extent_word(XS_EXTENT_TAKING, peer, 0)))
			continue;
		XKILL(EXTENT_TAKING);
		if (atomic_load_explicit(&seg->extents[i].dirty, memory_order_relaxed))
			memset(extent_addr(seg, i), 0, XSEG_EXTENT_SIZE);
		atomic_store_explicit(&seg->extents[i].dirty, 1, memory_order_relaxed);
		for (uint32_t k = 0; page && k < XSEG_EXTENT_PAGES; k++) {
			*page++ = i * XSEG_EXTENT_PAGES + k;
			xseg_page_owner_set(seg, i * XSEG_EXTENT_PAGES + k, 0);
		}
		extent_set(seg, i, extent_word(kind, peer, nr++));
		XKILL(EXTENT_TAKEN);
	}
	return nr;
}

void xs_extents_free(struct xseg *seg, uint32_t peer, enum xs_extent_kind kind)
{
	for (uint32_t i = 0; i < seg->geo.nr_extents; i++)
		if (extent_is(seg, i, kind, peer))
			extent_set(seg, i, extent_word(XS_EXTENT_FREE, 0, 0));
}

static int map_extent(struct xseg *seg, uint8_t *at, uint32_t extent)
{
	return xs_pool_map(
		seg, at, (uint64_t)extent * XSEG_EXTENT_SIZE, XSEG_EXTENT_SIZE, MAP_POPULATE);
}

/* Maps the extents of the arena, by their numbers, one after the other from `at`. -EPROTO: they are
 * not A1. */
static int map_extents(struct xseg_peer *p, uint8_t *at, uint32_t nr)
{
	struct xseg *seg = p->seg;
	uint8_t *seen = calloc(nr, 1);
	uint32_t found = 0;
	int rc = seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < seg->geo.nr_extents && rc == 0; i++) {
		uint32_t k = extent_nr(extent_get(seg, i));

		if (!extent_is(seg, i, XS_EXTENT_ARENA, p->index))
			continue;
		rc = k < nr && !seen[k] ? map_extent(seg, at + (uint64_t)k * XSEG_EXTENT_SIZE, i)
					: -EPROTO;
		if (rc == 0)
			seen[k] = 1;
		found++;
	}
	free(seen);
	return rc == 0 && found != nr ? -EPROTO : rc;
}

void *xs_room_take(size_t bytes)
{
	uint8_t *room = mmap(NULL, bytes + XSEG_EXTENT_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *at;

	if (room == MAP_FAILED)
		return NULL;
	at = (uint8_t *)(((uintptr_t)room + XSEG_EXTENT_SIZE - 1) &
			 ~(uintptr_t)(XSEG_EXTENT_SIZE - 1));
	munmap(at + bytes, (size_t)(room + XSEG_EXTENT_SIZE - at));
	if (at > room)
		munmap(room, (size_t)(at - room));
	return at;
}

static int arena_map(struct xseg_peer *p, uint32_t nr)
{
	size_t bytes = (size_t)nr * XSEG_EXTENT_SIZE;
	uint8_t *at = xs_room_take(bytes);
	int rc;

	if (!at)
		return -ENOMEM;
	rc = map_extents(p, at, nr);
	if (rc) {
		munmap(at, bytes);
		return rc;
	}
	madvise(at, bytes, MADV_DONTFORK);
	p->arena = at;
	p->arena_map_bytes = bytes;
	return 0;
}

uint32_t xseg_arena_pages(struct xseg_peer *p, uint32_t *first, uint32_t max)
{
	struct xseg *seg = p->seg;
	uint32_t nr = (uint32_t)(p->arena_map_bytes / XSEG_EXTENT_SIZE);

	for (uint32_t i = 0; i < seg->geo.nr_extents; i++) {
		uint32_t k = extent_nr(extent_get(seg, i));

		if (extent_is(seg, i, XS_EXTENT_ARENA, p->index) && k < nr && k < max)
			first[k] = i * XSEG_EXTENT_PAGES;
	}
	return nr;
}

void xs_arena_unmap(struct xseg_peer *p)
{
	if (p->arena)
		munmap(p->arena, p->arena_map_bytes);
	p->arena = NULL;
	p->arena_map_bytes = 0;
}

/* Under the peer's lock: the arena's extents, as many as were asked for, committed by the last
 * store. */
static int arena_make(struct xseg_peer *p, uint64_t bytes, struct xseg_error *err)
{
	struct xseg *seg = p->seg;
	uint64_t nr = bytes / XSEG_EXTENT_SIZE + (bytes % XSEG_EXTENT_SIZE != 0);

	if (nr == 0)
		return xseg_fail(err, -EINVAL, "an arena of no bytes was asked for");
	xs_extents_free(seg, p->index, XS_EXTENT_ARENA);
	if (free_extents(seg) < nr ||
		take_extents(seg, p->index, XS_EXTENT_ARENA, (uint32_t)nr, NULL) < nr) {
		xs_extents_free(seg, p->index, XS_EXTENT_ARENA);
		return xseg_fail(err, -ENOMEM,
			"the segment has %llu MiB left and the peer needs %llu MiB for its tables; "
			"make the segment with more memory, or ask for less",
			(unsigned long long)free_extents(seg) * 2, (unsigned long long)nr * 2);
	}
	XKILL(ARENA_MARKED);
	xs_keep(seg, p->index, XS_KEPT_BYTES, bytes);
	/* the extents are marked before the arena counts as there (A1) */
	xs_keep(seg, p->index, XS_KEPT_EXTENTS, nr);
	return 0;
}

int xseg_arena_open(
	struct xseg_peer *p, uint64_t *bytes, void **base, bool *fresh, struct xseg_error *err)
{
	uint32_t nr = atomic_load_explicit(&p->sh->arena_extents, memory_order_acquire);
	uint64_t had;
	int rc = 0, fd;

	*fresh = nr == 0;
	if (*fresh) {
		fd = xs_lock(p->seg, xs_peer_lock_byte(p));
		if (fd < 0)
			return xs_fail_lock(p->seg, fd, err);
		rc = arena_make(p, *bytes, err);
		xs_unlock(fd);
		if (rc)
			return rc;
		nr = atomic_load_explicit(&p->sh->arena_extents, memory_order_relaxed);
	}
	had = atomic_load_explicit(&p->sh->arena_bytes, memory_order_relaxed);
	if (nr > p->seg->geo.nr_extents)
		rc = -EPROTO;
	else if (!p->arena)
		rc = arena_map(p, nr);
	if (rc == 0 && (had == 0 || had > p->arena_map_bytes))
		rc = -EPROTO;
	if (rc == -EPROTO)
		return xseg_fail(err, rc,
			"the arena that the peer left in the segment is damaged; see 'xseg check'");
	if (rc)
		return xseg_fail(err, rc, "cannot map the peer's arena: %s", strerror(-rc));
	*bytes = had;
	*base = p->arena;
	return 0;
}

int xseg_arena_free(struct xseg_peer *p, struct xseg_error *err)
{
	int fd = xs_lock(p->seg, xs_peer_lock_byte(p));

	if (fd < 0)
		return xs_fail_lock(p->seg, fd, err);
	xs_arena_unmap(p);
	/* the commit goes first: extents without it belong to nobody */
	xs_keep(p->seg, p->index, XS_KEPT_EXTENTS, 0);
	xs_extents_free(p->seg, p->index, XS_EXTENT_ARENA);
	xs_unlock(fd);
	return 0;
}

uint32_t xseg_pages_round(uint32_t nr)
{
	return (nr + XSEG_EXTENT_PAGES - 1) / XSEG_EXTENT_PAGES * XSEG_EXTENT_PAGES;
}

int xseg_pages_take(struct xseg_peer *p, uint32_t nr, uint32_t *page)
{
	struct xseg *seg = p->seg;
	uint32_t want = nr / XSEG_EXTENT_PAGES + (nr % XSEG_EXTENT_PAGES != 0);
	uint32_t had = 0;

	if (free_extents(seg) >= want)
		had = take_extents(seg, p->index, XS_EXTENT_PAGES, want, page);
	for (uint32_t i = 0; i < had && had < want; i++)
		xseg_pages_give(p, page[i * XSEG_EXTENT_PAGES]);
	return had < want ? -ENOMEM : 0;
}

int xs_pages_map(struct xseg *seg, const uint32_t *page, uint32_t nr, void **base)
{
	size_t bytes = (size_t)nr * XSEG_PAGE_SIZE;
	uint8_t *at = xs_room_take(bytes);
	int rc = at ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && rc == 0; i += XSEG_EXTENT_PAGES)
		rc = map_extent(seg, at + (size_t)i * XSEG_PAGE_SIZE, page[i] / XSEG_EXTENT_PAGES);
	if (rc) {
		if (at)
			munmap(at, bytes);
		return rc;
	}
	madvise(at, bytes, MADV_DONTFORK);
	*base = at;
	return 0;
}

uint32_t xseg_pages_owned(struct xseg_peer *p, uint32_t *page, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->seg->geo.nr_extents; i++) {
		if (!extent_is(p->seg, i, XS_EXTENT_PAGES, p->index))
			continue;
		for (uint32_t k = 0; k < XSEG_EXTENT_PAGES; k++, n++)
			if (n < max)
				page[n] = i * XSEG_EXTENT_PAGES + k;
	}
	return n;
}

/* Its owner's one store: the extent is the peer's before it and free after it (the taker zeroes it,
 * A2). */
void xseg_pages_give(struct xseg_peer *p, uint32_t first)
{
	uint32_t i = first / XSEG_EXTENT_PAGES;

	assert(first < p->seg->nr_pages && first % XSEG_EXTENT_PAGES == 0);
	if (extent_is(p->seg, i, XS_EXTENT_PAGES, p->index))
		extent_set(p->seg, i, extent_word(XS_EXTENT_FREE, 0, 0));
	XKILL(EXTENT_GIVEN);
}

uint32_t xseg_nr_free_pages(struct xseg *seg)
{
	return free_extents(seg) * XSEG_EXTENT_PAGES;
}

void *xseg_page(struct xseg *seg, uint32_t page)
{
	assert(page < seg->nr_pages);
	return seg->pages + (uint64_t)page * XSEG_PAGE_SIZE;
}

uint32_t xseg_nr_pages(struct xseg *seg)
{
	return seg->nr_pages;
}

void xseg_page_owner_set(struct xseg *seg, uint32_t page, uint64_t owner)
{
	assert(page < seg->nr_pages);
	/* release: partner is the acquire in xseg_page_owner() */
	atomic_store_explicit(&seg->owners[page], owner, memory_order_release);
}

bool xseg_page_owner_swap(struct xseg *seg, uint32_t page, uint64_t from, uint64_t to)
{
	assert(page < seg->nr_pages);
	/* acquire and release, as in the two beside it */
	return atomic_compare_exchange_strong_explicit(
		&seg->owners[page], &from, to, memory_order_acq_rel, memory_order_relaxed);
}

uint64_t xseg_page_owner(struct xseg *seg, uint32_t page)
{
	assert(page < seg->nr_pages);
	return atomic_load_explicit(&seg->owners[page], memory_order_acquire);
}

void xseg_page_owner_prefetch(struct xseg *seg, uint32_t page)
{
	if (page < seg->nr_pages)
		__builtin_prefetch(&seg->owners[page], 1);
}
