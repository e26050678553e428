/* cached_ops_test - DELETE and INFO of an object (peers/cached/request/ops.c). */
#include "tests/rig/cached_rig.h"

static void delete_waits_for_what_is_in_flight_and_drops_all(void **state)
{
	struct crig_io *reader, *delete, *late;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	crig_expect(crig_write("a", B(4), B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	reader = crig_read("a", 0, B(1));
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 0);
	crig_answer(crig_held(XSEG_OP_READ, 0));
	crig_expect(reader, B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 0);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 1);
	crig_expect_waits(delete);
	late = crig_write("a", B(6), B(1), 7);
	crig_expect_waits(late);
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_expect(delete, 0);
	crig_expect(late, B(1));
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
	crig_hold(false);
	crig_expect_data("a", 0, B(6), 0);
	crig_expect_data("a", B(6), B(1), 7);
}

static void delete_of_an_object_that_only_the_cache_has_succeeds(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), -ENOENT);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
}

static void delete_keeps_dirty_data_when_the_store_fails(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_fail_next(XSEG_OP_DELETE, -EIO, 1);
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), -EIO);
	crig_expect_data("a", 0, B(1), 5);
	crig_pass(6 * CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void a_flush_that_covers_a_deleted_object_is_answered(void **state)
{
	struct crig_io *delete, *flush;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	flush = crig_flush(0);
	crig_expect_waits(flush);
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_expect(delete, 0);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
}

static void info_counts_ends_that_are_dirty(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), -ENOENT);
	crig_expect(crig_write("a", B(3), B(2), 5), B(2));
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), B(5));
	crig_store_fill("a", 0, B(2), 5);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), B(5));
	crig_store_fill("a", 0, B(9), 5);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), B(9));
	crig_fail_next(XSEG_OP_INFO, -EIO, 1);
	crig_expect(crig_op(XSEG_OP_INFO, "a", 0, 0), -EIO);
}

static void info_counts_what_was_dirty_when_the_store_was_asked(void **state)
{
	struct crig_io *info, *flush;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", B(3), B(2), 5), B(2));
	crig_hold(true);
	info = crig_op(XSEG_OP_INFO, "a", 0, 0);
	flush = crig_flush(0);
	crig_answer(crig_held(XSEG_OP_WRITE, 0)); /* clean now; the store looked before that */
	crig_fail(crig_held(XSEG_OP_INFO, 0), -ENOENT);
	crig_expect(info, B(5));
	crig_hold(false);
	crig_expect(flush, 0);
}

static void info_and_delete_drive_no_object_out(void **state)
{
	static const char *const absent[] = { "b", "c", "d" };

	(void)state;
	crig_up("objects=1");
	crig_store_fill("a", 0, B(2), 5);
	crig_store_fill("c", 0, B(2), 5);
	crig_expect_data("a", 0, B(2), 5);
	for (uint32_t i = 0; i < 3; i++) {
		crig_expect(crig_op(XSEG_OP_INFO, absent[i], 0, 0),
			i == 1 ? (int64_t)B(2) : -ENOENT);
		crig_expect(crig_op(XSEG_OP_DELETE, absent[i], 0, 0), i == 1 ? 0 : -ENOENT);
	}
	crig_expect_data("a", 0, B(2), 5);
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("evicted"), 0);
	assert_int_equal(crig_number("objects"), 1);
	assert_int_equal(crig_number("hits"), 1);
}

static void the_entry_of_a_deleted_object_goes_before_others(void **state)
{
	static const char *const names[] = { "b", "c", "d" };

	(void)state;
	crig_up("objects=2");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	for (uint32_t i = 0; i < 3; i++) {
		crig_expect(crig_write(names[i], 0, B(1), 6), B(1));
		crig_expect(crig_op(XSEG_OP_DELETE, names[i], 0, 0), 0);
	}
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1));
	crig_expect_data("a", 0, B(1), 5);
}

static void a_write_waits_for_the_delete_of_an_object_that_is_not_here(void **state)
{
	struct crig_io *delete, *write;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	write = crig_write("a", B(1), B(1), 7);
	crig_expect_waits(write);
	crig_hold(false);
	crig_expect(delete, 0);
	crig_expect(write, B(1));
	crig_expect_data("a", 0, B(1), 0);
	crig_expect_data("a", B(1), B(1), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(delete_waits_for_what_is_in_flight_and_drops_all),
		CRIG_T(delete_of_an_object_that_only_the_cache_has_succeeds),
		CRIG_T(delete_keeps_dirty_data_when_the_store_fails),
		CRIG_T(a_flush_that_covers_a_deleted_object_is_answered),
		CRIG_T(info_counts_ends_that_are_dirty),
		CRIG_T(info_counts_what_was_dirty_when_the_store_was_asked),
		CRIG_T(info_and_delete_drive_no_object_out),
		CRIG_T(the_entry_of_a_deleted_object_goes_before_others),
		CRIG_T(a_write_waits_for_the_delete_of_an_object_that_is_not_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
