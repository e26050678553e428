/* xhash - a bounded open-addressed table from 64-bit hashes to 32-bit indices.
 *
 * Algorithm: linear probing in a table at most half full (Knuth, TAOCP 3, 6.4). Fibonacci hashing
 * gives the home slot (same place). Deletion is by backward shift (Algorithm 6.4R), so there are no
 * tombstones and churn does not make it slower. One slot is one word. The upper half is 32 bits of
 * the scrambled hash; the topmost of these name the home slot. The lower half is index + 1. 0 is
 * empty.
 *
 * Readers take no lock. A shift may carry an entry past a reader, so deletion runs under a sequence
 * counter that is odd meanwhile. A reader that found nothing looks again if the counter was odd or
 * has changed. (H.-J. Boehm, "Can Seqlocks Get Along With Programming Language Memory Models?",
 * MSPC 2012. Slots are atomics. Where the paper has fences, we use acquire loads and release stores
 * of the slots: the same instructions on x86, and race detectors understand them.) A shift stores
 * an entry's new place before it overwrites the old one, so an entry is always somewhere.
 *
 * Contract: the caller serializes insert and remove. Any thread may call find, prefetch, peek and
 * nr at any time. A find that found nothing spins, and yields, only while a removal is in progress.
 * A reader may still find an entry that was just removed. So the index is a hint, and the reader's
 * `eq` callback decides (xcache.h says how that is made safe). One (hash, idx) pair must be in at
 * most once; equal hashes with different indices are fine. Nothing allocates.
 *
 * Invariants:
 *   H1  nr <= capacity <= slots / 2, so every probe ends at an empty slot.
 *   H2  Between the home slot of an entry and its place there is no empty slot.
 *   H3  seq is odd exactly while a removal is in progress; slots lose or move entries only then.
 */
#ifndef XTYPES_XHASH_H
#define XTYPES_XHASH_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XHASH_NONE UINT32_MAX
#define XHASH_CAPACITY_MAX (UINT32_C(1) << 31)

struct xhash {
	/* fixed after xhash_init() */
	_Atomic uint64_t *slots;
	uint32_t mask;		/* number of slots - 1 */
	uint32_t shift;		/* 32 - log2(number of slots) */
	uint32_t capacity;
	/* written by the writers, so kept off the line of what never changes (a gap, not alignment:
	 * who embeds a table need not be aligned) */
	uint8_t gap[64];
	_Atomic uint32_t seq;
	_Atomic uint32_t nr;
};

/* Bytes of memory for a table of `capacity` entries (1 .. XHASH_CAPACITY_MAX). */
size_t xhash_mem_bytes(uint32_t capacity);

/* Makes an empty table in mem (aligned to 8, best to 64; the caller's for life). */
void xhash_init(struct xhash *h, void *mem, uint32_t capacity);

/* 0, or -ENOSPC if `capacity` entries are in. idx < XHASH_NONE. */
__attribute__((warn_unused_result))
int xhash_insert(struct xhash *h, uint64_t hash, uint32_t idx);

/* True if the pair was in, and is not any more. */
bool xhash_remove(struct xhash *h, uint64_t hash, uint32_t idx);

/* The 32 bits of a hash that are stored. */
static inline uint32_t xhash_tag(uint64_t hash)
{
	return (uint32_t)((hash * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

static inline uint32_t xhash_home(const struct xhash *h, uint32_t tag)
{
	return tag >> h->shift;
}

static inline void xhash_prefetch(const struct xhash *h, uint64_t hash)
{
	__builtin_prefetch((const void *)&h->slots[xhash_home(h, xhash_tag(hash))]);
}

/* One pass over the probe sequence. */
static inline uint32_t xhash_probe(const struct xhash *h, uint32_t tag,
				   bool (*eq)(void *arg, uint32_t idx), void *arg)
{
	uint32_t at = xhash_home(h, tag);
	uint32_t left = h->mask;
	uint64_t v;

	do {	/* bounded also while entries move under us */
		/* acquire: partner is the release in slot_set(): the entry behind the index is
		 * complete, and the counter's odd value is seen after a slot changed by a shift */
		v = atomic_load_explicit(&h->slots[at], memory_order_acquire);
		if (v == 0)
			return XHASH_NONE;
		if ((uint32_t)(v >> 32) == tag && eq(arg, (uint32_t)v - 1))
			return (uint32_t)v - 1;
		at = (at + 1) & h->mask;
	} while (left-- > 0);
	return XHASH_NONE;
}

/* The index for which eq(arg, idx) is true, asked of those with this hash (and rarely of another
 * with the same tag); or XHASH_NONE if there was a moment during the call when none was in. */
static inline uint32_t xhash_find(const struct xhash *h, uint64_t hash,
				  bool (*eq)(void *arg, uint32_t idx), void *arg)
{
	uint32_t tag = xhash_tag(hash);
	uint32_t before, idx, spins;

	for (spins = 1;; spins++) {
		/* acquire: partner is the release of the even value in xhash_remove() */
		before = atomic_load_explicit(&h->seq, memory_order_acquire);
		idx = xhash_probe(h, tag, eq, arg);
		if (idx != XHASH_NONE)
			return idx;
		/* relaxed: the slots' acquire loads keep it behind them */
		if (!(before & 1) &&
		    before == atomic_load_explicit(&h->seq, memory_order_relaxed))
			return XHASH_NONE;
		if (spins % 16 == 0)	/* the remover may wait for our processor */
			sched_yield();
	}
}

/* The first index whose tag fits, or XHASH_NONE: a guess, for prefetching what is behind it. */
static inline uint32_t xhash_peek(const struct xhash *h, uint64_t hash)
{
	uint32_t tag = xhash_tag(hash);
	uint32_t at = xhash_home(h, tag), i;
	uint64_t v;

	for (i = 0; i < 4; i++) {
		v = atomic_load_explicit(&h->slots[(at + i) & h->mask], memory_order_relaxed);
		if (v == 0)
			break;
		if ((uint32_t)(v >> 32) == tag)
			return (uint32_t)v - 1;
	}
	return XHASH_NONE;
}

static inline uint32_t xhash_nr(const struct xhash *h)
{
	return atomic_load_explicit(&h->nr, memory_order_relaxed);
}

/* Asserts H1 and H2 (no writer may run). */
void xhash_check(const struct xhash *h);

#endif
