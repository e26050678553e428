/* cached_hole_test - a hole in the store stays one, through every policy
 * (peers/cached/request/write.c, flush.c).
 */
#include "tests/rig/cached_rig.h"

static const char *const names[] = { "write-back", "write-through", "write-around",
	"pass-through" };
static const enum xseg_op ops[] = { XSEG_OP_DISCARD, XSEG_OP_WRITE_ZEROES };

static void up(const char *policy)
{
	char options[64];

	snprintf(options, sizeof(options), "dirty_age=1h policy=%s", policy);
	crig_up(options);
}

static void expect_none(const char *name)
{
	crig_expect(crig_op(XSEG_OP_INFO, name, 0, 0), -ENOENT);
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_op(XSEG_OP_INFO, name, 0, 0), -ENOENT);
	crig_expect_data(name, 0, B(8), 0);
}

static void zeroes_of_what_never_was_make_no_object(void **state)
{
	(void)state;
	for (unsigned p = 0; p < 4; p++)
		for (unsigned i = 0; i < 2; i++) {
			up(names[p]);
			crig_expect(crig_op(ops[i], "whole", B(1), B(2)), B(2));
			crig_expect(crig_op(ops[i], "parts", 512, B(2)), B(2));
			crig_expect(crig_op(ops[i], "sector", B(1) + 512, 512), 512);
			expect_none("whole");
			expect_none("parts");
			expect_none("sector");
			assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
			assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
			crig_down(NULL);
		}
}

static void nor_where_the_cache_alone_had_data(void **state)
{
	(void)state;
	up("write-back");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), B(2));
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", 512, B(2) - 512), B(2) - 512);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), B(1));
	crig_expect_data("a", 0, 512, 5);
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", 0, 512), 512);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	expect_none("a");
}

/* With and without the store, whose object it shrinks to what is left. */
static void what_is_left_of_data_stays(void **state)
{
	(void)state;
	for (unsigned p = 0; p < 4; p++) {
		up(names[p]);
		crig_store_fill("a", 0, B(4), 5);
		crig_expect(crig_op(XSEG_OP_DISCARD, "a", B(1) + 512, B(2)), B(2));
		crig_expect(crig_flush(0), 0);
		crig_expect_data("a", 0, B(1) + 512, 5);
		crig_expect_data("a", B(1) + 512, B(2), 0);
		crig_expect_data("a", B(3) + 512, B(1) - 512, 5);
		assert_true(crig_stable("a", 0, B(1) + 512, 5) &&
			    crig_stable("a", B(1) + 512, B(2), 0) &&
			    crig_stable("a", B(3) + 512, B(1) - 512, 5));
		crig_down(NULL);
	}
}

/* The zeroes are the cache's alone, and a successor's. */
static void zeroes_in_parts_survive_a_kill(void **state)
{
	(void)state;
	up("write-back");
	crig_store_fill("a", B(1), B(1), 5);
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", B(1), 512), 512);
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", B(1) + 512, B(1) - 512), B(1) - 512);
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_expect_data("a", 0, B(4), 0);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	assert_true(crig_stable("a", 0, B(4), 0));
}

/* All of an object that has data in the store. */
static void up_zeroed(const char *name)
{
	crig_up("memory=8M dirty_age=1h dirty_high=100 dirty_low=100");
	crig_store_fill(name, 0, B(4), 5);
	for (uint32_t b = 0; b < OBJECT_BUCKETS; b += 128)
		crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, name, B(b), B(128)), B(128));
}

static void an_object_that_is_all_zeroes_goes(void **state)
{
	(void)state;
	up_zeroed("a");
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	crig_expect_data("a", 0, B(8), 0);
	crig_expect(crig_write("a", 512, 512, 6), 512);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 512, 512, 6));
	crig_expect_data("a", 512, 512, 6);
	crig_expect_data("a", B(1), B(8), 0);
}

static void the_catalogue_stays(void **state)
{
	(void)state;
	up_zeroed(":catalog");
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 0);
	assert_true(crig_stable(":catalog", 0, B(4), 0));
}

static void what_comes_while_it_goes_is_not_lost(void **state)
{
	struct crig_io *flush, *write, *read;

	(void)state;
	up_zeroed("a");
	crig_hold(true);
	flush = crig_flush(0);
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 1);
	write = crig_write("a", B(2), B(1), 6);
	read = crig_read("a", 0, B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	crig_hold(false);
	crig_expect(flush, 0);
	crig_expect(write, B(1));
	assert_true(crig_data_is(read, 0, B(1), 0));
	crig_expect(read, B(1));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(2), 0) && crig_stable("a", B(2), B(1), 6));
}

static void a_store_that_does_not_delete_it_is_asked_again(void **state)
{
	(void)state;
	up_zeroed("a");
	crig_fail_next(XSEG_OP_DELETE, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_int_not_equal(crig_counter(CC_DIRTY_BYTES), 0);
	crig_expect_data("a", 0, B(4), 0);
	crig_pass(CRIG_S);
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), -ENOENT);
}

static void a_kill_while_it_goes_loses_nothing(void **state)
{
	(void)state;
	up_zeroed("a");
	crig_hold(true);
	crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 1);
	crig_kill();
	assert_int_equal(crig_open("memory=8M dirty_age=1h"), 0);
	crig_send(XSEG_OP_WRITE, "a", B(2), B(1), 0, 6);
	crig_settle();
	crig_hold(false);
	crig_settle();
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(2), 0) && crig_stable("a", B(2), B(1), 6) &&
		    crig_stable("a", B(3), B(1), 0));
	crig_expect_data("a", B(2), B(1), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(zeroes_of_what_never_was_make_no_object),
		CRIG_T(nor_where_the_cache_alone_had_data),
		CRIG_T(what_is_left_of_data_stays),
		CRIG_T(zeroes_in_parts_survive_a_kill),
		CRIG_T(an_object_that_is_all_zeroes_goes),
		CRIG_T(the_catalogue_stays),
		CRIG_T(what_comes_while_it_goes_is_not_lost),
		CRIG_T(a_store_that_does_not_delete_it_is_asked_again),
		CRIG_T(a_kill_while_it_goes_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
