/* xhist - a histogram of latencies with a relative error of at most 1/16, in fixed memory.
 *
 * Algorithm: log-linear buckets (G. Tene, HdrHistogram). Values below 16 have a bucket each. Above,
 * every power of two is cut into 16 equal buckets, up to 2^40 ns (18 minutes). Larger values are
 * clamped.
 *
 * Contract: fixed layout, no pointer, may live in shared memory. One writer uses plain relaxed
 * loads and stores (record, merge and sub write to their first argument). Several writers must all
 * record by xhist_record_shared(). Any reader may read at any time. It may see a sample in some of
 * the words and not yet in others. Readers trust nothing: they compute from the buckets and their
 * walks are bounded. Recording is O(1), all else O(XHIST_NR). Nothing blocks.
 *
 * Invariants (when no writer is inside):
 *   S1  count is the sum of the buckets.
 *   S2  min <= max iff count > 0; an empty histogram has min == UINT64_MAX and max == 0.
 */
#ifndef XTYPES_XHIST_H
#define XTYPES_XHIST_H

#include <stdatomic.h>
#include <stdint.h>

#define XHIST_SUB_BITS 4				/* log2 of the buckets per power of two */
#define XHIST_MAX_BITS 40
#define XHIST_MAX_NS ((UINT64_C(1) << XHIST_MAX_BITS) - 1)
#define XHIST_NR ((XHIST_MAX_BITS - XHIST_SUB_BITS + 1) << XHIST_SUB_BITS)

struct xhist {
	_Atomic uint64_t count, sum, min, max;
	_Atomic uint64_t bucket[XHIST_NR];
};

_Static_assert(sizeof(struct xhist) <= 5632, "the segment's layout gives it no more");

void xhist_init(struct xhist *h);

/* The bucket of a value, and the largest and smallest value of a bucket. */
static inline uint32_t xhist_bucket_of(uint64_t ns)
{
	uint32_t top;

	if (ns < (1u << XHIST_SUB_BITS))
		return (uint32_t)ns;
	if (ns > XHIST_MAX_NS)
		return XHIST_NR - 1;
	top = 63 - (uint32_t)__builtin_clzll(ns);
	return ((top - XHIST_SUB_BITS + 1) << XHIST_SUB_BITS) +
	       (uint32_t)((ns >> (top - XHIST_SUB_BITS)) & ((1u << XHIST_SUB_BITS) - 1));
}

uint64_t xhist_bucket_upper(uint32_t bucket);
uint64_t xhist_bucket_lower(uint32_t bucket);

static inline void xhist_add_relaxed(_Atomic uint64_t *word, uint64_t delta)
{
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + delta,
			      memory_order_relaxed);
}

/* Counts a value nr times; above XHIST_MAX_NS it counts as that. */
static inline void xhist_record_many(struct xhist *h, uint64_t ns, uint64_t nr)
{
	if (ns > XHIST_MAX_NS)
		ns = XHIST_MAX_NS;
	xhist_add_relaxed(&h->bucket[xhist_bucket_of(ns)], nr);
	xhist_add_relaxed(&h->sum, ns * nr);
	xhist_add_relaxed(&h->count, nr);
	if (ns < atomic_load_explicit(&h->min, memory_order_relaxed))
		atomic_store_explicit(&h->min, ns, memory_order_relaxed);
	if (ns > atomic_load_explicit(&h->max, memory_order_relaxed))
		atomic_store_explicit(&h->max, ns, memory_order_relaxed);
}

static inline void xhist_record(struct xhist *h, uint64_t ns)
{
	xhist_record_many(h, ns, 1);
}

/* The same, where there may be other writers, all of which record by this one. */
void xhist_record_shared(struct xhist *h, uint64_t ns);

/* The value that p percent (0 .. 100) of the samples do not exceed: the upper value of its bucket,
 * or max if that is smaller. 0 if there is no sample. */
uint64_t xhist_percentile(const struct xhist *h, double p);

/* Rounded down; 0 if there is no sample. */
uint64_t xhist_mean(const struct xhist *h);

/* Adds src to dst. */
void xhist_merge(struct xhist *dst, const struct xhist *src);

/* dst becomes what was recorded between the snapshots older and newer of one histogram. min and max
 * of an interval are known to the width of a bucket only. dst may be one of the two. */
void xhist_sub(struct xhist *dst, const struct xhist *newer, const struct xhist *older);

#endif
