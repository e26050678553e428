/* xhist_test - the histogram: exactness of buckets, percentiles, clamping, merging, intervals,
 * many writers. */
#include "xtypes/xhist.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static struct xhist h, g, d;

static void every_bucket_begins_where_the_last_one_ends(void **state)
{
	uint32_t i;

	(void)state;
	assert_true(xhist_bucket_lower(0) == 0);
	for (i = 0; i < XHIST_NR; i++) {
		assert_int_equal(xhist_bucket_of(xhist_bucket_lower(i)), i);
		assert_int_equal(xhist_bucket_of(xhist_bucket_upper(i)), i);
		assert_true(xhist_bucket_lower(i) <= xhist_bucket_upper(i));
		if (i > 0)
			assert_true(xhist_bucket_upper(i - 1) + 1 == xhist_bucket_lower(i));
	}
	assert_true(xhist_bucket_upper(XHIST_NR - 1) == XHIST_MAX_NS);
}

static void a_bucket_is_no_wider_than_a_sixteenth_of_its_values(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 16; i < XHIST_NR; i++)
		assert_true((xhist_bucket_upper(i) - xhist_bucket_lower(i) + 1) * 16 <=
			    xhist_bucket_lower(i));
}

static void an_empty_histogram_says_zero(void **state)
{
	(void)state;
	xhist_init(&h);
	assert_int_equal(xhist_percentile(&h, 50), 0);
	assert_int_equal(xhist_mean(&h), 0);
}

static void percentiles_of_small_values_are_exact(void **state)
{
	uint64_t v;

	(void)state;
	xhist_init(&h);
	for (v = 1; v <= 10; v++)
		xhist_record(&h, v);
	assert_int_equal(xhist_percentile(&h, 0), 1);
	assert_int_equal(xhist_percentile(&h, 10), 1);
	assert_int_equal(xhist_percentile(&h, 11), 2);
	assert_int_equal(xhist_percentile(&h, 50), 5);
	assert_int_equal(xhist_percentile(&h, 99.9), 10);
	assert_int_equal(xhist_percentile(&h, 100), 10);
	assert_int_equal(xhist_percentile(&h, 1e9), 10);
	assert_int_equal(xhist_percentile(&h, -1), 1);
	assert_int_equal(xhist_percentile(&h, __builtin_nan("")), 1);
	assert_int_equal(xhist_mean(&h), 5);
}

static void a_percentile_is_not_above_the_largest_value(void **state)
{
	(void)state;
	xhist_init(&h);
	xhist_record(&h, 1000001);
	assert_int_equal(xhist_percentile(&h, 50), 1000001);
	assert_int_equal(atomic_load(&h.min), 1000001);
	assert_int_equal(atomic_load(&h.max), 1000001);
}

static void values_beyond_the_range_are_clamped(void **state)
{
	(void)state;
	xhist_init(&h);
	xhist_record(&h, UINT64_MAX);
	xhist_record(&h, XHIST_MAX_NS + 1);
	assert_true(atomic_load(&h.max) == XHIST_MAX_NS);
	assert_true(xhist_percentile(&h, 100) == XHIST_MAX_NS);
	assert_int_equal(atomic_load(&h.bucket[XHIST_NR - 1]), 2);
	assert_int_equal(xhist_bucket_of(UINT64_MAX), XHIST_NR - 1);
}

static void merging_adds_all_samples(void **state)
{
	(void)state;
	xhist_init(&h);
	xhist_init(&g);
	xhist_record(&h, 3);
	xhist_record(&g, 1);
	xhist_record(&g, 500);
	xhist_merge(&h, &g);
	assert_int_equal(atomic_load(&h.count), 3);
	assert_int_equal(atomic_load(&h.sum), 504);
	assert_int_equal(atomic_load(&h.min), 1);
	assert_int_equal(atomic_load(&h.max), 500);
	assert_int_equal(xhist_percentile(&h, 50), 3);
	xhist_init(&g);
	xhist_merge(&h, &g);
	assert_int_equal(atomic_load(&h.min), 1);
}

static void an_interval_has_only_its_own_samples(void **state)
{
	(void)state;
	xhist_init(&h);
	xhist_init(&g);
	xhist_record(&h, 2);
	xhist_record(&h, 900000);
	xhist_merge(&g, &h);
	xhist_record(&h, 7);
	xhist_record(&h, 8);
	xhist_sub(&d, &h, &g);
	assert_int_equal(atomic_load(&d.count), 2);
	assert_int_equal(atomic_load(&d.sum), 15);
	assert_int_equal(atomic_load(&d.min), 7);
	assert_int_equal(atomic_load(&d.max), 8);
	assert_int_equal(xhist_percentile(&d, 50), 7);
	xhist_sub(&h, &h, &h);
	assert_int_equal(atomic_load(&h.count), 0);
	assert_true(atomic_load(&h.min) == UINT64_MAX);
	assert_int_equal(atomic_load(&h.max), 0);
}

static void an_interval_over_a_cleared_histogram_is_empty(void **state)
{
	(void)state;
	xhist_init(&h);
	xhist_init(&g);
	xhist_record(&g, 100);
	xhist_sub(&d, &h, &g);
	assert_int_equal(atomic_load(&d.count), 0);
	assert_int_equal(atomic_load(&d.sum), 0);
	assert_int_equal(xhist_percentile(&d, 99), 0);
}

static void *record_many(void *from)
{
	for (uint64_t i = 0; i < 20000; i++)
		xhist_record_shared(&h, *(uint64_t *)from + i % 1000);
	return NULL;
}

static void nothing_is_lost_where_many_record(void **state)
{
	uint64_t from[] = { 1000, 5000, 3000 };
	pthread_t thread[3];

	(void)state;
	xhist_init(&h);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, record_many, &from[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&h.count), 60000);
	assert_int_equal(atomic_load(&h.sum), 20000ull * (1000 + 5000 + 3000) + 60000ull * 999 / 2);
	assert_int_equal(atomic_load(&h.min), 1000);
	assert_int_equal(atomic_load(&h.max), 5999);
	assert_true(xhist_percentile(&h, 100) == 5999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_bucket_begins_where_the_last_one_ends),
		cmocka_unit_test(a_bucket_is_no_wider_than_a_sixteenth_of_its_values),
		cmocka_unit_test(an_empty_histogram_says_zero),
		cmocka_unit_test(percentiles_of_small_values_are_exact),
		cmocka_unit_test(a_percentile_is_not_above_the_largest_value),
		cmocka_unit_test(values_beyond_the_range_are_clamped),
		cmocka_unit_test(merging_adds_all_samples),
		cmocka_unit_test(an_interval_has_only_its_own_samples),
		cmocka_unit_test(an_interval_over_a_cleared_histogram_is_empty),
		cmocka_unit_test(nothing_is_lost_where_many_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
