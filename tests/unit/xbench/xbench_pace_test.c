/* xbench_pace_test - --rate and --rate_iops: when the next I/O is due. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "bench/xbench/job/pace.h"

#define BEGIN 1000ull

static struct xb_pace pace(uint64_t iops, uint64_t reads, uint64_t writes)
{
	struct xb_options o = { .rate_iops = iops, .rate_bytes = { reads, writes } };
	struct xb_pace p;

	xb_pace_init(&p, &o);
	xb_pace_begin(&p, BEGIN);
	return p;
}

static void the_first_of_each_kind_is_due_at_once(void **state)
{
	struct xb_pace p = pace(3, 1000, 2000);

	(void)state;
	assert_true(p.is_limited);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN);
	assert_int_equal(xb_pace_due(&p, XB_WRITE), BEGIN);
}

static void without_a_rate_nothing_is_limited(void **state)
{
	struct xb_pace p = pace(0, 0, 0);

	(void)state;
	assert_false(p.is_limited);
	xb_pace_sent(&p, XB_READ, 1u << 20);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN);
}

/* 3 a second are no whole number of ns: after many of them the error is still less than one */
static void many_ios_are_due_where_their_number_says(void **state)
{
	struct xb_pace p = pace(3, 0, 0);

	(void)state;
	for (uint32_t i = 0; i < 3000000; i++)
		xb_pace_sent(&p, XB_WRITE, 4096);
	assert_int_equal(xb_pace_due(&p, XB_WRITE), BEGIN + 1000000 * XB_SECOND_NS);
}

static void bytes_of_reads_and_of_all_others_are_limited_apart(void **state)
{
	struct xb_pace p = pace(0, 4096, 8192);

	(void)state;
	xb_pace_sent(&p, XB_READ, 4096);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN + XB_SECOND_NS);
	assert_int_equal(xb_pace_due(&p, XB_WRITE), BEGIN);
	xb_pace_sent(&p, XB_TRIM, 4096);
	xb_pace_sent(&p, XB_WRITE, 8192);
	assert_int_equal(xb_pace_due(&p, XB_ZEROES), BEGIN + XB_SECOND_NS * 3 / 2);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN + XB_SECOND_NS);
}

static void one_limit_may_be_there_without_the_other(void **state)
{
	struct xb_pace p = pace(0, 0, 1u << 20);

	(void)state;
	xb_pace_sent(&p, XB_READ, 1u << 30);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN);
	xb_pace_sent(&p, XB_WRITE, 1u << 20);
	assert_int_equal(xb_pace_due(&p, XB_WRITE), BEGIN + XB_SECOND_NS);
}

static void the_later_of_two_limits_counts(void **state)
{
	struct xb_pace p = pace(10, 4096, 4096);

	(void)state;
	xb_pace_sent(&p, XB_READ, 4096);
	assert_int_equal(xb_pace_due(&p, XB_READ), BEGIN + XB_SECOND_NS);
	assert_int_equal(xb_pace_due(&p, XB_WRITE), BEGIN + XB_SECOND_NS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_each_kind_is_due_at_once),
		cmocka_unit_test(without_a_rate_nothing_is_limited),
		cmocka_unit_test(many_ios_are_due_where_their_number_says),
		cmocka_unit_test(bytes_of_reads_and_of_all_others_are_limited_apart),
		cmocka_unit_test(one_limit_may_be_there_without_the_other),
		cmocka_unit_test(the_later_of_two_limits_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
