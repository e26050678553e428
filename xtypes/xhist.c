/* xhist - reading and combining histograms. Contract, algorithm and invariants: xhist.h. */
#include <stdbool.h>

#include "xtypes/xhist.h"

static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void set(_Atomic uint64_t *word, uint64_t v)
{
	atomic_store_explicit(word, v, memory_order_relaxed);
}

void xhist_init(struct xhist *h)
{
	uint32_t i;

	set(&h->count, 0);
	set(&h->sum, 0);
	set(&h->min, UINT64_MAX);
	set(&h->max, 0);
	for (i = 0; i < XHIST_NR; i++)
		set(&h->bucket[i], 0);
}

static void add_shared(_Atomic uint64_t *word, uint64_t by)
{
	atomic_fetch_add_explicit(word, by, memory_order_relaxed);
}

static bool swap(_Atomic uint64_t *word, uint64_t *was, uint64_t v)
{
	return atomic_compare_exchange_weak_explicit(
		word, was, v, memory_order_relaxed, memory_order_relaxed);
}

void xhist_record_shared(struct xhist *h, uint64_t ns)
{
	uint64_t min = get(&h->min), max = get(&h->max);

	if (ns > XHIST_MAX_NS)
		ns = XHIST_MAX_NS;
	add_shared(&h->bucket[xhist_bucket_of(ns)], 1);
	add_shared(&h->sum, ns);
	add_shared(&h->count, 1);
	while (ns < min && !swap(&h->min, &min, ns))
		;
	while (ns > max && !swap(&h->max, &max, ns))
		;
}

uint64_t xhist_bucket_lower(uint32_t bucket)
{
	uint32_t power = bucket >> XHIST_SUB_BITS;
	uint64_t sub = bucket & ((1u << XHIST_SUB_BITS) - 1);

	if (power == 0)
		return sub;
	return ((UINT64_C(1) << XHIST_SUB_BITS) + sub) << (power - 1);
}

uint64_t xhist_bucket_upper(uint32_t bucket)
{
	return xhist_bucket_lower(bucket + 1) - 1;
}

/* Which of `total` samples in order is the p-th percentile: 1 .. total. */
static uint64_t rank_of(double p, uint64_t total)
{
	double exact;
	uint64_t rank;

	if (!(p > 0))		/* also what is not a number */
		return 1;
	if (p >= 100)
		return total;
	exact = p / 100 * (double)total;
	rank = (uint64_t)exact;
	if ((double)rank < exact)
		rank++;
	return rank < 1 ? 1 : rank > total ? total : rank;
}

uint64_t xhist_percentile(const struct xhist *h, double p)
{
	uint64_t max = get(&h->max);
	uint64_t total = 0, seen = 0, rank, upper;
	uint32_t i;

	for (i = 0; i < XHIST_NR; i++)
		total += get(&h->bucket[i]);
	if (total == 0)
		return 0;
	rank = rank_of(p, total);
	for (i = 0; i < XHIST_NR; i++) {
		seen += get(&h->bucket[i]);
		if (seen >= rank)
			break;
	}
	if (i == XHIST_NR)	/* somebody cleared it under us */
		return max;
	upper = xhist_bucket_upper(i);
	return upper < max ? upper : max;
}

uint64_t xhist_mean(const struct xhist *h)
{
	uint64_t count = get(&h->count);

	return count ? get(&h->sum) / count : 0;
}

void xhist_merge(struct xhist *dst, const struct xhist *src)
{
	uint32_t i;

	xhist_add_relaxed(&dst->count, get(&src->count));
	xhist_add_relaxed(&dst->sum, get(&src->sum));
	if (get(&src->min) < get(&dst->min))
		set(&dst->min, get(&src->min));
	if (get(&src->max) > get(&dst->max))
		set(&dst->max, get(&src->max));
	for (i = 0; i < XHIST_NR; i++)
		xhist_add_relaxed(&dst->bucket[i], get(&src->bucket[i]));
}

/* a - b, or 0: the snapshots may have been taken of a moving or a cleared histogram. */
static uint64_t sub_floor(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void xhist_sub(struct xhist *dst, const struct xhist *newer, const struct xhist *older)
{
	uint64_t all_min = get(&newer->min), all_max = get(&newer->max);
	uint64_t min = UINT64_MAX, max = 0, count = 0, n;
	uint32_t i;

	set(&dst->sum, sub_floor(get(&newer->sum), get(&older->sum)));
	for (i = 0; i < XHIST_NR; i++) {
		n = sub_floor(get(&newer->bucket[i]), get(&older->bucket[i]));
		set(&dst->bucket[i], n);
		count += n;
		if (n && min == UINT64_MAX)
			min = xhist_bucket_lower(i);
		if (n)
			max = xhist_bucket_upper(i);
	}
	set(&dst->count, count);
	set(&dst->min, count && min < all_min ? all_min : min);
	set(&dst->max, max > all_max ? all_max : max);
}
