/* cached_around_test - reads and writes that go past the cache (peers/cached/request/around.c,
 * policy_write_around.c, policy_pass_through.c). */
#include "tests/rig/cached_rig.h"

static void a_write_around_is_at_the_store_when_it_is_answered_and_not_in_the_cache(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	io = crig_write("a", 512, B(2), 5);
	crig_expect_waits(io);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->offset, 512);
	assert_int_equal(crig_call(0)->size, B(2));
	assert_int_equal(crig_state("a", 0), BUCKET_BYPASS);
	crig_hold(false);
	crig_expect(io, B(2));
	assert_true(crig_stored("a", 512, B(2), 5));
	assert_int_equal(crig_counter(CC_USED_BYTES) + crig_counter(CC_DIRTY_BYTES), 0);
	assert_int_equal(crig_counter(CC_WRITES_AROUND), 1);
	crig_expect_data("a", 512, B(2), 5);
}

static void what_was_clean_of_a_write_around_goes(void **state)
{
	(void)state;
	crig_up("policy=write-around");
	crig_have_clean("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(1), 512, 6), 512);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("a", 1), BUCKET_INVALID);
	crig_expect_data("a", B(1), 512, 6);
	crig_expect_data("a", B(1) + 512, B(1) - 512, 5);
}

static void a_write_around_over_newer_data_goes_through_the_cache(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	crig_set("policy=write-around dirty_age=1h");
	crig_write("a", 512, 512, 6);
	assert_int_equal(crig_counter(CC_WRITES_AROUND), 1);
	assert_int_equal(crig_object("a")->nr[BUCKET_BYPASS], 0);
	crig_hold(false);
	crig_settle();
	assert_true(crig_stored("a", 512, 512, 6) && crig_stored("a", 1024, B(1) - 1024, 5));
}

static void a_load_that_ends_after_a_write_around_brings_nothing_back(void **state)
{
	struct crig_io *early, *write, *late;

	(void)state;
	crig_up("policy=write-around");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	early = crig_read("a", 0, 512);
	write = crig_write("a", 0, 512, 6);
	late = crig_read("a", 0, 512);
	crig_answer(0);					/* the load, with what was there before */
	crig_expect_waits(early);			/* its bucket is not to be read now */
	crig_answer(1);
	crig_expect(write, 512);
	crig_hold(false);
	assert_true(crig_data_is(late, 0, 512, 6));
	crig_expect(early, 512);
	crig_expect(late, 512);
	crig_expect_data("a", 512, 512, 5);
}

static void a_load_that_fails_under_a_write_around_fails_nobody(void **state)
{
	struct crig_io *early, *write, *late;

	(void)state;
	crig_up("policy=write-around");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	early = crig_read("a", 0, B(1));
	write = crig_write("a", 0, B(1), 6);
	late = crig_read("a", 0, B(1));
	crig_fail(0, -EIO);				/* the load */
	crig_expect_waits(early);
	crig_expect_waits(late);
	crig_answer(1);
	crig_expect(write, B(1));
	crig_hold(false);
	assert_true(crig_data_is(early, 0, B(1), 6) && crig_data_is(late, 0, B(1), 6));
	crig_expect(early, B(1));
	crig_expect(late, B(1));
}

static void writes_of_a_bucket_that_a_write_around_is_out_for_wait_whatever_the_policy(void **state)
{
	struct crig_io *first, *second, *other;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	first = crig_write("a", 0, 512, 5);
	crig_set("policy=write-back");
	second = crig_write("a", 0, B(1), 6);
	other = crig_write("a", B(1), B(1), 7);
	crig_expect_waits(second);
	crig_expect(other, B(1));
	crig_answer(0);
	crig_expect(first, 512);
	crig_expect(second, B(1));
	crig_hold(false);
	crig_expect_data("a", 0, B(1), 6);
}

static void a_write_around_that_fails_tells_its_writer_and_nobody_else(void **state)
{
	struct crig_io *bad, *reader;

	(void)state;
	crig_up("policy=write-around");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	bad = crig_write("a", 0, B(1), 6);
	reader = crig_read("a", 0, B(1));
	crig_fail(0, -EIO);
	crig_expect(bad, -EIO);
	crig_hold(false);
	assert_true(crig_data_is(reader, 0, B(1), 5));
	crig_expect(reader, B(1));
	crig_hold(true);
	bad = crig_write("a", 0, B(1), 6);
	crig_short(crig_held(XSEG_OP_WRITE, 0), 512);
	crig_expect(bad, -EIO);
	crig_hold(false);
}

static void fua_zeroes_and_discards_go_around_as_they_are(void **state)
{
	(void)state;
	crig_up("policy=write-around");
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_write_fua("a", 0, 512, 6), 512);
	assert_true(crig_stable("a", 0, 512, 6));
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(1) + 512, B(1)), B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE_ZEROES, 0), 1);
	crig_expect_data("a", B(1), 512, 5);
	crig_expect_data("a", B(1) + 512, B(1), 0);
	crig_expect_data("a", B(2) + 512, B(1) - 512, 5);
}

static void a_write_around_of_a_killed_cache_is_done_before_anything_newer(void **state)
{
	struct crig_io *old, *new;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	old = crig_write("a", 0, 512, 5);
	crig_kill();
	crig_answer_only(0);
	crig_hold(false);
	assert_int_equal(crig_open("policy=write-around"), 0);
	new = crig_write("a", 0, 512, 6);
	crig_settle();
	crig_expect(old, 512);
	crig_expect(new, 512);
	crig_expect_data("a", 0, 512, 6);
}

static void writes_around_wait_for_a_request_and_for_slots(void **state)
{
	struct crig_io *io[40];

	(void)state;
	crig_up("policy=write-around requests=8");
	crig_limit(1);
	crig_hold(true);
	for (uint32_t i = 0; i < 40; i++)
		io[i] = crig_write("a", i * B(1), B(1), 5);
	assert_int_equal(crig_nr_held(), crig_share());
	crig_hold(false);
	for (uint32_t i = 0; i < 40; i++)
		crig_expect(io[i], B(1));
	assert_true(crig_stored("a", 0, B(40), 5));
}

static void a_write_around_waits_for_slots_while_all_pages_are_dirty(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_fill(24, 0);
	crig_hold(true);
	crig_set("policy=write-around");
	cached_drop_reserve(crig.peer);
	io = crig_write("a", 512, B(1), 5);
	crig_expect_waits(io);
	assert_int_equal(crig_creq(io)->state, CREQ_WAITS_MEMORY);
	crig_hold(false);
	crig_expect(io, B(1));
	assert_true(crig_stored("a", 512, B(1), 5));
}

static void a_delete_waits_for_writes_around(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	write = crig_write("a", 0, B(1), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	assert_int_equal(crig_count_calls(XSEG_OP_DELETE, 0), 0);
	crig_hold(false);
	crig_expect(write, B(1));
	crig_expect(delete, 0);
	crig_expect_data("a", 0, B(1), 0);
}

static void pass_through_caches_nothing_and_serves_what_is_newer(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_hold(true);
	crig_set("policy=pass-through");
	crig_expect_data("a", 0, B(1), 6);
	assert_int_equal(crig_counter(CC_BYPASSED_POLICY), 0);
	crig_hold(false);
	crig_settle();
	crig_expect_data("a", 0, B(1), 6);
	crig_expect_data("a", B(1), B(3), 5);
	assert_int_equal(crig_counter(CC_BYPASSED_POLICY), 2);
	assert_int_equal(crig_state("a", 1), BUCKET_FREE);
	crig_expect(crig_write("a", 0, 512, 7), 512);
	assert_int_equal(crig_counter(CC_WRITES_PASS), 1);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect_data("a", 0, 512, 7);
}

static void what_goes_past_the_cache_by_policy_drives_no_object_out(void **state)
{
	static const char *const past[] = { "policy=pass-through", "policy=write-around" };
	char name[16];

	(void)state;
	crig_up("objects=2");
	crig_have_clean("a", 0, B(2), 5);
	crig_have_clean("b", 0, B(2), 5);
	for (unsigned p = 0; p < 2; p++) {
		crig_set(past[p]);
		for (unsigned i = 0; i < 8; i++) {
			snprintf(name, sizeof(name), "c:%u", i);
			crig_expect(crig_write(name, 0, B(1), 6), B(1));
			if (p == 0)
				crig_expect_data(name, 0, B(1), 6);
		}
	}
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b", 1), BUCKET_VALID);
	assert_int_equal(crig_counter(CC_EVICTED_OBJECT), 0);
}

static void every_read_is_a_hit_a_partial_hit_a_miss_or_goes_around(void **state)
{
	uint64_t sum = 0;

	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(8), 5);
	crig_fail_next(XSEG_OP_READ, -EIO, 1);
	crig_expect(crig_read("a", 0, B(1)), -EIO);
	for (uint32_t i = 0; i < 4; i++) {
		crig_expect_data("a", i * B(1), B(2), 5);
		if (i == 2)
			crig_set("policy=pass-through");
	}
	crig_admin("status");
	sum = crig_number("hits") + crig_number("partial") + crig_number("misses") +
	      crig_number("bypassed");
	assert_int_equal(crig_number("reads"), 5);
	assert_int_equal(sum, 5);
	assert_int_equal(crig_number("bypassed_by.policy"), 1);
	assert_int_equal(crig_number("hit_bytes") + crig_number("miss_bytes") +
				 crig_number("bypassed_bytes"),
		B(9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_write_around_is_at_the_store_when_it_is_answered_and_not_in_the_cache),
		CRIG_T(what_was_clean_of_a_write_around_goes),
		CRIG_T(a_write_around_over_newer_data_goes_through_the_cache),
		CRIG_T(a_load_that_ends_after_a_write_around_brings_nothing_back),
		CRIG_T(a_load_that_fails_under_a_write_around_fails_nobody),
		CRIG_T(writes_of_a_bucket_that_a_write_around_is_out_for_wait_whatever_the_policy),
		CRIG_T(a_write_around_that_fails_tells_its_writer_and_nobody_else),
		CRIG_T(fua_zeroes_and_discards_go_around_as_they_are),
		CRIG_T(a_write_around_of_a_killed_cache_is_done_before_anything_newer),
		CRIG_T(writes_around_wait_for_a_request_and_for_slots),
		CRIG_T(a_write_around_waits_for_slots_while_all_pages_are_dirty),
		CRIG_T(a_delete_waits_for_writes_around),
		CRIG_T(pass_through_caches_nothing_and_serves_what_is_newer),
		CRIG_T(what_goes_past_the_cache_by_policy_drives_no_object_out),
		CRIG_T(every_read_is_a_hit_a_partial_hit_a_miss_or_goes_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
