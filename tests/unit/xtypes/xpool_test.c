/* xpool_test - the pool of indices: order, emptiness. */
#include "xtypes/xpool.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

static void an_empty_pool_gives_nothing(void **state)
{
	struct xpool p;
	uint32_t mem[2];

	(void)state;
	xpool_init(&p, mem, 2);
	assert_int_equal(xpool_mem_bytes(2), sizeof(mem));
	assert_int_equal(xpool_nr(&p), 0);
	assert_true(xpool_get(&p) == XPOOL_NONE);
}

static void what_was_put_last_is_given_first(void **state)
{
	struct xpool p;
	uint32_t mem[2];

	(void)state;
	xpool_init(&p, mem, 2);
	xpool_put(&p, 5);
	xpool_put(&p, 6);
	assert_int_equal(xpool_get(&p), 6);
	xpool_put(&p, 7);
	assert_int_equal(xpool_get(&p), 7);
	assert_int_equal(xpool_get(&p), 5);
	assert_int_equal(xpool_nr(&p), 0);
}

static void any_index_may_be_taken_out(void **state)
{
	struct xpool p;
	uint32_t mem[4];

	(void)state;
	xpool_init(&p, mem, 4);
	for (uint32_t i = 13; i >= 10; i--)
		xpool_put(&p, i);
	assert_int_equal(xpool_at(&p, 0), 13);
	assert_int_equal(xpool_at(&p, 3), 10);
	xpool_take_at(&p, 1);
	assert_int_equal(xpool_at(&p, 1), 10);
	xpool_take_at(&p, 2);
	assert_int_equal(xpool_get(&p), 10);
	assert_int_equal(xpool_get(&p), 13);
	assert_int_equal(xpool_nr(&p), 0);
}

static void a_pool_of_none_is_always_empty(void **state)
{
	struct xpool p;

	(void)state;
	xpool_init(&p, NULL, 0);
	assert_true(xpool_get(&p) == XPOOL_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_pool_gives_nothing),
		cmocka_unit_test(what_was_put_last_is_given_first),
		cmocka_unit_test(any_index_may_be_taken_out),
		cmocka_unit_test(a_pool_of_none_is_always_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
