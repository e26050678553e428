/* stats - blocks of named counters and a latency histogram, in the segment, where any process reads
 * them.
 *
 * Contract: a block has one writer, the thread that opened it, with plain relaxed loads and stores.
 * The one exception is the counting of a volume's I/O (measure.c). Any process reads. Opening takes
 * a block by a swap, and waits for nobody. A block belongs to a peer's name, not to its process, so
 * that a successor counts on.
 *
 * Invariants:
 *   T1  A block's name, kind and keys do not change while `peer` says that it is in use.
 *   T2  A reader bounds each word that it sees of a block before it uses the word (R5).
 *   T3  The thread of this process that opens a block sets the block's bit in stats_open, by a
 *       swap. The thread that closes the block clears the bit last. A free block is taken by a swap
 *       of `peer`, which then says that it is being made (XS_STATS_MAKING). A successor frees the
 *       blocks that its predecessor was making (xs_stats_free()).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xseg/internal.h"

struct xseg_stats {
	struct xs_stats sh;
};

_Static_assert(XSEG_STATS_MAX <= 64, "keys are few");

/* The block may just be given to another subject. So a caller who takes it looks once more. */
static bool is_same(const struct xs_stats *b, uint32_t peer, const char *name, const char *kind)
{
	char b_name[sizeof(b->name)], b_kind[sizeof(b->kind)];

	if (atomic_load_explicit(&b->peer, memory_order_acquire) != peer + 1)
		return false;
	xs_racy_copy(b_name, b->name, sizeof(b_name));
	xs_racy_copy(b_kind, b->kind, sizeof(b_kind));
	return strncmp(b_name, name, sizeof(b_name)) == 0 &&
	       strncmp(b_kind, kind, sizeof(b_kind)) == 0;
}

static bool has_keys(const struct xs_stats *b, const char *const *keys, uint32_t nr)
{
	if (b->nr != nr)
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (strncmp(b->key[i], keys[i], sizeof(b->key[i]) - 1))
			return false;
	return true;
}

static void write_keys(struct xs_stats *b, const char *const *keys, uint32_t nr)
{
	b->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		snprintf(b->key[i], sizeof(b->key[i]), "%s", keys[i]);
}

static void make_block(struct xs_stats *b, const char *name, const char *kind)
{
	memset(b->key, 0, sizeof(b->key));
	for (uint32_t i = 0; i < XSEG_STATS_MAX; i++)
		atomic_store_explicit(&b->value[i], 0, memory_order_relaxed);
	xhist_init(&b->lat);
	atomic_store_explicit(&b->volume, 0, memory_order_relaxed);
	snprintf(b->name, sizeof(b->name), "%s", name);
	snprintf(b->kind, sizeof(b->kind), "%s", kind);
}

static _Atomic uint64_t *open_word(struct xseg_peer *peer, uint32_t i)
{
	return &peer->stats_open[i / 64];
}

/* Whether it is this thread's from now on: T3. */
static bool bit_take(struct xseg_peer *peer, uint32_t i)
{
	/* acquire: partner is the release in xseg_stats_close() */
	return !(atomic_fetch_or_explicit(open_word(peer, i), 1ull << (i % 64),
			 memory_order_acquire) >>
			(i % 64) &
		 1);
}

static void bit_give(struct xseg_peer *peer, uint32_t i)
{
	/* release: partner is the acquire in bit_take(): who sees it closed sees it free */
	atomic_fetch_and_explicit(
		open_word(peer, i), ~(1ull << (i % 64)), memory_order_release);
}

/* A predecessor's block, whose bit is taken, or XSEG_NONE. */
static uint32_t take_same(struct xseg_peer *peer, const char *name, const char *kind)
{
	for (uint32_t i = 0; i < peer->seg->geo.nr_stats; i++) {
		if (!is_same(&peer->seg->stats[i], peer->index, name, kind) || !bit_take(peer, i))
			continue;
		/* another thread may have closed it */
		if (is_same(&peer->seg->stats[i], peer->index, name, kind))
			return i;
		bit_give(peer, i);
	}
	return XSEG_NONE;
}

/* A free one, whose bit is taken, and which says that it is being made, or XSEG_NONE. */
static uint32_t take_spare(struct xseg_peer *peer)
{
	for (uint32_t i = 0; i < peer->seg->geo.nr_stats; i++) {
		uint32_t free_word = 0;

		if (atomic_load_explicit(&peer->seg->stats[i].peer, memory_order_relaxed) ||
			!bit_take(peer, i))
			continue;
		if (atomic_compare_exchange_strong(&peer->seg->stats[i].peer, &free_word,
			    XS_STATS_MAKING | (peer->index + 1)))
			return i;
		bit_give(peer, i);
	}
	return XSEG_NONE;
}

int xseg_stats_open(struct xseg_peer *peer, const char *name, const char *kind,
	const char *const *keys, uint32_t nr, struct xseg_stats **stats)
{
	struct xs_stats *b;
	uint32_t i;

	if (nr > XSEG_STATS_MAX)
		return -EINVAL;
	i = take_same(peer, name, kind);
	if (i == XSEG_NONE)
		i = take_spare(peer);
	if (i == XSEG_NONE)
		return -ENOSPC;
	b = &peer->seg->stats[i];
	/* a predecessor may have counted other things: then its numbers mean nothing here */
	if (!is_same(b, peer->index, name, kind) || !has_keys(b, keys, nr)) {
		atomic_store_explicit(
			&b->peer, XS_STATS_MAKING | (peer->index + 1), memory_order_release);
		make_block(b, name, kind);
		write_keys(b, keys, nr);
	}
	/* release: partner is the acquire in xseg_stats_view() */
	atomic_store_explicit(&b->peer, peer->index + 1, memory_order_release);
	*stats = (struct xseg_stats *)b;
	return 0;
}

void xseg_stats_close(struct xseg_peer *peer, struct xseg_stats *stats)
{
	uint32_t i = (uint32_t)(&stats->sh - peer->seg->stats);

	atomic_store_explicit(&stats->sh.peer, 0, memory_order_release);
	bit_give(peer, i);
}

void xseg_stats_of_volume(struct xseg_stats *stats, uint32_t volume, uint32_t errors)
{
	atomic_store_explicit(&stats->sh.told, errors, memory_order_relaxed);
	/* release: partner is the acquire in measure.c's is_block_of() */
	atomic_store_explicit(&stats->sh.volume, volume, memory_order_release);
}

void xseg_stats_rename(struct xseg_peer *peer, uint32_t volume, const char *name)
{
	for (uint32_t i = 0; volume && i < peer->seg->geo.nr_stats; i++) {
		struct xs_stats *b = &peer->seg->stats[i];

		if (atomic_load_explicit(&b->peer, memory_order_relaxed) != peer->index + 1 ||
			atomic_load_explicit(&b->volume, memory_order_relaxed) != volume)
			continue;
		atomic_store_explicit(
			&b->peer, XS_STATS_MAKING | (peer->index + 1), memory_order_release);
		snprintf(b->name, sizeof(b->name), "%s", name);
		/* release: partner is the acquire in xseg_stats_view() */
		atomic_store_explicit(&b->peer, peer->index + 1, memory_order_release);
	}
}

void xs_stats_free(struct xseg *seg, uint32_t peer, bool all)
{
	for (uint32_t i = 0; i < seg->geo.nr_stats; i++) {
		uint32_t w = atomic_load_explicit(&seg->stats[i].peer, memory_order_relaxed);

		if (w == (XS_STATS_MAKING | (peer + 1)) || (all && w == peer + 1))
			atomic_store_explicit(&seg->stats[i].peer, 0, memory_order_release);
	}
}

void xseg_stats_add(struct xseg_stats *stats, uint32_t key, uint64_t n)
{
	_Atomic uint64_t *v = &stats->sh.value[key];

	atomic_store_explicit(
		v, atomic_load_explicit(v, memory_order_relaxed) + n, memory_order_relaxed);
}

void xseg_stats_set(struct xseg_stats *stats, uint32_t key, uint64_t value)
{
	atomic_store_explicit(&stats->sh.value[key], value, memory_order_relaxed);
}

uint64_t xseg_stats_get(const struct xseg_stats *stats, uint32_t key)
{
	return atomic_load_explicit(&stats->sh.value[key], memory_order_relaxed);
}

struct xhist *xseg_stats_lat(struct xseg_stats *stats)
{
	return &stats->sh.lat;
}

uint32_t xseg_nr_stats(struct xseg *seg)
{
	return seg->geo.nr_stats;
}

bool xseg_stats_view(struct xseg *seg, uint32_t i, struct xseg_stats_view *view)
{
	const struct xs_stats *b;
	uint32_t peer;

	if (i >= seg->geo.nr_stats)
		return false;
	b = &seg->stats[i];
	peer = atomic_load_explicit(&b->peer, memory_order_acquire);
	if (peer == 0 || peer & XS_STATS_MAKING)
		return false;
	memset(view, 0, sizeof(*view));
	view->peer = peer - 1;
	view->nr = XS_FETCH(b->nr);
	if (view->nr > XSEG_STATS_MAX)
		view->nr = XSEG_STATS_MAX;
	snprintf(view->name, sizeof(view->name), "%.*s", (int)sizeof(b->name) - 1, b->name);
	snprintf(view->kind, sizeof(view->kind), "%.*s", (int)sizeof(b->kind) - 1, b->kind);
	for (uint32_t k = 0; k < view->nr; k++) {
		snprintf(view->key[k], sizeof(view->key[k]), "%.*s", (int)sizeof(b->key[k]) - 1,
			b->key[k]);
		view->value[k] = atomic_load_explicit(&b->value[k], memory_order_relaxed);
	}
	xhist_init(&view->lat);
	xhist_merge(&view->lat, &b->lat);
	return true;
}

uint64_t xseg_stats_value(const struct xseg_stats_view *view, const char *key)
{
	for (uint32_t i = 0; i < view->nr; i++)
		if (strcmp(view->key[i], key) == 0)
			return view->value[i];
	return 0;
}
