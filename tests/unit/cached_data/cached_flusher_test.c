/* cached_flusher_test - the flusher's choice of data, its time, order and speed
 * (peers/cached/flush/flush.c, dirty_list.c).
 */
#include "tests/rig/cached_rig.h"

/* Every object of `name` to name+nr-1 gets a dirty bucket. */
static void dirty_objects(char name, unsigned nr)
{
	char text[2] = { name, '\0' };

	for (unsigned i = 0; i < nr; i++, text[0]++)
		crig_expect(crig_write(text, 0, B(1), 5), B(1));
}

/* ---- when, how much, how fast ------------------------------------------------------------ */

static void nothing_is_flushed_before_its_age_and_all_of_it_then(void **state)
{
	(void)state;
	crig_up("dirty_age=5s");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_S);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_pass(2900 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 0);
	crig_pass(200 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 1);
	assert_string_equal(crig_call(0)->target, "a");
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b", 0), BUCKET_DIRTY);
	crig_pass(2 * CRIG_S);
	assert_string_equal(crig_call(1)->target, "b");
	assert_int_equal(crig_counter(CC_FLUSHED_AGE), 2);
	assert_int_equal(crig_counter(CC_FLUSHED_BYTES), B(2));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void the_age_is_changed_live(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(10 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 0);
	crig_set("dirty_age=1s");
	assert_int_equal(crig_nr_calls(), 1);
}

/* As long as an option can say. */
static void an_age_without_end_is_never_reached(void **state)
{
	(void)state;
	crig_up("dirty_age=5124095h");
	crig_pass(3600 * CRIG_S);
	dirty_objects('a', 1);
	crig_pass(3600 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 0);
}

static void dirty_neighbours_leave_in_one_flush_of_at_most_a_mebibyte(void **state)
{
	(void)state;
	crig_up("");
	for (uint32_t i = 0; i < 300; i += 4)
		crig_expect(crig_write("a", B(i), B(4), 5), B(4));
	crig_expect(crig_write("a", B(301), B(1), 5), B(1));
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 3);
	assert_int_equal(crig_call(0)->size, XSEG_REQ_BYTES);
	assert_int_equal(crig_call(1)->offset, XSEG_REQ_BYTES);
	assert_int_equal(crig_call(1)->size, B(300 - 256));
	assert_int_equal(crig_call(2)->offset, B(301));
	assert_true(crig_stored("a", 0, B(300), 5));
}

static void a_bucket_that_is_clean_or_absent_parts_two_flushes(void **state)
{
	(void)state;
	crig_up("");
	crig_have_clean("a", B(1), B(1), 9);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_write("a", B(2), B(1), 5), B(1));
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 2);
	assert_true(crig_stored("a", B(1), B(1), 9));
}

static void above_the_high_mark_the_oldest_objects_are_flushed_down_to_the_low_mark(void **state)
{
	(void)state;
	crig_up("dirty_high=40 dirty_low=20 dirty_age=1h");
	crig_limit(25);
	dirty_objects('a', 10);
	assert_int_equal(crig_nr_calls(), 0);
	crig_expect(crig_write("k", 0, B(1), 5), B(1));
	/* four may be out when it stops */
	assert_in_range(crig_counter(CC_DIRTY_BYTES), B(1), B(5));
	assert_int_equal(crig_counter(CC_FLUSHED_WATERMARK), crig_nr_calls());
	for (uint32_t i = 0; i < crig_nr_calls(); i++)
		assert_int_equal(crig_call(i)->target[0], 'a' + i);
}

static void what_runs_in_the_background_takes_few_requests(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1s");
	dirty_objects('a', 12);
	crig_hold(true);
	crig_pass(2 * CRIG_S);
	assert_int_equal(crig_nr_held(), 4);
	flush = crig_flush(0);
	assert_int_equal(crig_nr_held(), 12);
	crig_hold(false);
	crig_expect(flush, 0);
}

static void the_flush_rate_is_kept_in_the_background_only(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1s flush_rate=4096/s");
	dirty_objects('a', 10);
	crig_pass(1 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 1);
	crig_pass(1 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 2);
	crig_pass(3500 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 5);
	flush = crig_flush(0);
	crig_expect(flush, 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 10);
}

/* 2 MiB at 1 MiB/s: in each tenth of a second about a tenth of a MiB, though all of it is one
 * run. */
static void the_flush_rate_is_kept_smoothly(void **state)
{
	uint64_t before, bytes;

	(void)state;
	crig_up("dirty_age=1s flush_rate=1M/s");
	for (uint32_t i = 0; i < 512; i += 64)
		crig_expect(crig_write("a", B(i), B(64), 5), B(64));
	crig_pass(1 * CRIG_S);
	for (uint32_t i = 0; i < 18; i++) {
		before = crig_counter(CC_FLUSHED_BYTES);
		crig_pass(100 * CRIG_MS);
		bytes = crig_counter(CC_FLUSHED_BYTES) - before;
		assert_in_range(bytes, 1000000 / 20, 1000000 / 5);
	}
	assert_in_range(crig_counter(CC_FLUSHED_BYTES), 1700000, 2000000);
	crig_pass(CRIG_S);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void another_flush_rate_holds_at_once(void **state)
{
	(void)state;
	crig_up("dirty_age=1s flush_rate=1/s");
	dirty_objects('a', 10);
	crig_pass(1 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 1);
	crig_set("flush_rate=1M/s");
	crig_pass(1 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 10);
}

static void what_somebody_waited_for_does_not_count_against_the_flush_rate(void **state)
{
	(void)state;
	crig_up("dirty_age=1s flush_rate=4096/s");
	for (uint32_t i = 0; i < 256; i += 64)
		crig_expect(crig_write("a", B(i), B(64), 5), B(64));
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_write("b", 0, B(1), 5), B(1));
	crig_pass(1100 * CRIG_MS);
	assert_true(crig_stored("b", 0, B(1), 5));
}

/* ---- order ------------------------------------------------------------------------------- */

static void a_write_during_the_flush_of_its_bucket_is_flushed_after_the_older_one_s_reply(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect(crig_write("a", 0, B(1), 7), B(1));
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_true(crig_slot("a", 0) & SLOT_INFLIGHT);
	crig_pass(100 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 1);
	crig_expect_data("a", 0, B(1), 7);
	crig_answer(0);
	assert_true(crig_stored("a", 0, B(1), 5));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 2);
	crig_answer(1);
	assert_true(crig_stored("a", 0, B(1), 7));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
}

static void neighbours_of_a_bucket_in_flight_need_not_wait_for_it(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", B(1), B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	crig_expect(crig_write("a", 0, B(3), 6), B(3));
	flush = crig_flush(0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 1), 2);
	assert_int_equal(crig_call(1)->offset, 0);
	assert_int_equal(crig_call(2)->offset, B(2));
	crig_hold(false);
	crig_expect(flush, 0);
	assert_true(crig_stored("a", 0, B(3), 6));
}

static void an_older_flush_that_fails_leaves_the_newer_data_dirty(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_fail(0, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_false(crig_slot("a", 0) & SLOT_INFLIGHT);
	crig_hold(false);
	crig_pass(CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 6));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void in_the_background_the_longest_runs_of_an_object_leave_first(void **state)
{
	static const uint32_t first[] = { 0, 2, 20, 31, 200 }, nr[] = { 1, 9, 8, 1, 100 },
			      order[] = { 4, 1, 2, 0, 3 };

	(void)state;
	crig_up("dirty_age=1s");
	for (uint32_t i = 0; i < 5; i++)
		crig_expect(crig_write("a", B(first[i]), B(nr[i]), 5), B(nr[i]));
	crig_hold(true);
	crig_pass(CRIG_S);
	assert_int_equal(crig_nr_held(), 4);
	crig_answer(0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(crig_call(i)->offset, B(first[order[i]]));
		assert_int_equal(crig_call(i)->size, B(nr[order[i]]));
	}
}

static void an_object_that_is_written_all_the_time_is_finished_and_then_it_is_the_next_one_s_turn(void **state)
{
	(void)state;
	crig_up("dirty_age=1s");
	for (uint32_t i = 0; i < 20; i++)
		crig_expect(crig_write("a", B(i * 2), B(1), 5), B(1));
	crig_expect(crig_write("b", 0, B(1), 5), B(1));
	crig_hold(true);
	crig_pass(CRIG_S);
	for (uint32_t i = 0; i < 20; i++) {
		crig_answer(i);
		/* what was flushed is dirty again */
		crig_expect(crig_write("a", B(i * 2), B(1), 6), B(1));
	}
	for (uint32_t i = 0; i < 20; i++) {
		assert_string_equal(crig_call(i)->target, "a");
		assert_int_equal(crig_call(i)->offset, B(i * 2));
	}
	assert_string_equal(crig_call(20)->target, "b");
}

static void what_was_written_while_the_flush_of_its_object_paused_is_flushed_at_its_age(void **state)
{
	(void)state;
	crig_up("dirty_high=6 dirty_low=5 dirty_age=10s");
	crig_limit(100);
	crig_hold(true);
	for (uint32_t i = 0; i < 7; i++)
		crig_expect(crig_write("a", B(i * 2), B(1), 5), B(1));
	while (crig_nr_held())
		crig_answer(crig_held(XSEG_OP_WRITE, 0));
	/* it paused in the middle of "a" */
	assert_in_range(crig_counter(CC_DIRTY_BYTES), B(1), B(5));
	crig_hold(false);
	crig_pass(5 * CRIG_S);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_pass(5 * CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 6));
}

/* ---- its share of the requests ------------------------------------------------------------ */

/* A read of a page that is not there, in the place of each that was answered. */
static void keep_reading(struct crig_io **io, uint32_t nr, uint32_t *at)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (io[i] && !io[i]->done)
			continue;
		if (io[i])
			crig_expect(io[i], B(1));
		io[i] = crig_read("r", B(*at % OBJECT_BUCKETS), B(1));
		*at += 2;
	}
}

static void a_flood_of_loads_does_not_stop_flushing(void **state)
{
	struct crig_io *io[64] = { NULL }, *flush;
	uint32_t at = 0, answered = 0;

	(void)state;
	crig_up("requests=8");
	crig_hold(true);
	keep_reading(io, 64, &at);
	assert_int_equal(crig_nr_held(), crig_share());
	for (uint32_t i = 0; i < 12; i++)
		crig_expect(crig_write("w", B(i * 2), B(1), 5), B(1));
	for (flush = crig_flush(0); !flush->done; answered++) {
		crig_answer(crig_held(CRIG_ANY, 0));
		keep_reading(io, 64, &at);
	}
	crig_expect(flush, 0);
	/* each load that waits goes before it at most once or twice */
	assert_in_range(answered, 13, 200);
	crig_hold(false);
	for (uint32_t i = 0; i < 64; i++)
		crig_expect(io[i], B(1));
}

static void a_flood_of_flushes_does_not_stop_loads(void **state)
{
	struct crig_io *read;
	uint32_t answered = 0;

	(void)state;
	crig_up("requests=8");
	crig_hold(true);
	for (uint32_t i = 0; i < 200; i++)
		crig_expect(crig_write("w", B(i * 2), B(1), 5), B(1));
	crig_flush(0);
	assert_int_equal(crig_nr_held(), crig_share());
	for (uint32_t i = 0; i < 4; i++) {
		read = crig_read("r", B(i * 2), B(1));
		for (; !read->done; answered++)
			crig_answer(crig_held(CRIG_ANY, 0));
		crig_expect(read, B(1));
	}
	assert_in_range(answered, 4, 4 * (crig_share() + 1));	/* what is at the store before it */
	assert_true(crig_counter(CC_DIRTY_BYTES) > B(100));
	crig_hold(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(nothing_is_flushed_before_its_age_and_all_of_it_then),
		CRIG_T(the_age_is_changed_live),
		CRIG_T(an_age_without_end_is_never_reached),
		CRIG_T(dirty_neighbours_leave_in_one_flush_of_at_most_a_mebibyte),
		CRIG_T(a_bucket_that_is_clean_or_absent_parts_two_flushes),
		CRIG_T(above_the_high_mark_the_oldest_objects_are_flushed_down_to_the_low_mark),
		CRIG_T(what_runs_in_the_background_takes_few_requests),
		CRIG_T(the_flush_rate_is_kept_in_the_background_only),
		CRIG_T(the_flush_rate_is_kept_smoothly),
		CRIG_T(another_flush_rate_holds_at_once),
		CRIG_T(what_somebody_waited_for_does_not_count_against_the_flush_rate),
		CRIG_T(a_write_during_the_flush_of_its_bucket_is_flushed_after_the_older_one_s_reply),
		CRIG_T(neighbours_of_a_bucket_in_flight_need_not_wait_for_it),
		CRIG_T(in_the_background_the_longest_runs_of_an_object_leave_first),
		CRIG_T(an_object_that_is_written_all_the_time_is_finished_and_then_it_is_the_next_one_s_turn),
		CRIG_T(what_was_written_while_the_flush_of_its_object_paused_is_flushed_at_its_age),
		CRIG_T(an_older_flush_that_fails_leaves_the_newer_data_dirty),
		CRIG_T(a_flood_of_loads_does_not_stop_flushing),
		CRIG_T(a_flood_of_flushes_does_not_stop_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
