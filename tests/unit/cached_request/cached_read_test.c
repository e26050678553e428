/* cached_read_test - reads: hits, misses, loads that are shared, merged, late or failing
 * (peers/cached/request/read.c, creq.c). */
#include "tests/rig/cached_rig.h"

static void expect_reads(uint64_t hits, uint64_t partial, uint64_t misses)
{
	assert_int_equal(crig_counter(CC_HITS), hits);
	assert_int_equal(crig_counter(CC_PARTIAL), partial);
	assert_int_equal(crig_counter(CC_MISSES), misses);
	assert_int_equal(crig_counter(CC_READS), hits + partial + misses);
}

static void a_miss_loads_once_and_later_reads_hit(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_expect_data("a", 0, B(1), 5);
	assert_int_equal(crig_nr_calls(), 1);
	for (unsigned i = 0; i < 3; i++)
		crig_expect_data("a", 512, 1024, 5);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->size, B(1));
	assert_string_equal(crig_call(0)->target, "a");
	expect_reads(3, 0, 1);
}

static void a_read_of_a_sector_loads_its_whole_bucket(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(4), 5);
	crig_expect_data("a", B(2) + 512, 512, 5);
	assert_int_equal(crig_call(0)->offset, B(2));
	assert_int_equal(crig_call(0)->size, B(1));
	crig_expect_data("a", B(2), B(1), 5);
	expect_reads(1, 0, 1);
}

static void neighbours_missed_together_leave_in_one_load(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(300), 5);
	crig_expect_data("a", B(3), XSEG_REQ_BYTES, 5);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->offset, B(3));
	assert_int_equal(crig_call(0)->size, XSEG_REQ_BYTES);
}

static void a_load_is_at_most_one_mebibyte(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(300), 5);
	crig_expect_data("a", 512, XSEG_REQ_BYTES, 5);
	assert_int_equal(crig_nr_calls(), 2);
	assert_int_equal(crig_call(0)->size, XSEG_REQ_BYTES);
	assert_int_equal(crig_call(1)->offset, XSEG_REQ_BYTES);
	assert_int_equal(crig_call(1)->size, B(1));
	expect_reads(0, 0, 1);
}

static void two_readers_of_the_same_missing_bucket_share_one_load(void **state)
{
	struct crig_io *one, *two;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	one = crig_read("a", 0, 512);
	two = crig_read("a", 1024, 512);
	assert_int_equal(crig_nr_calls(), 1);
	crig_expect_waits(one);
	crig_expect_waits(two);
	assert_int_equal(crig_state("a", 0), BUCKET_LOADING);
	crig_answer(0);
	assert_true(crig_data_is(one, 0, 512, 5) && crig_data_is(two, 0, 512, 5));
	crig_expect(one, 512);
	crig_expect(two, 512);
	expect_reads(0, 0, 2);
	assert_int_equal(crig_counter(CC_WAITS_LOAD), 2);
}

static void readers_that_overlap_load_only_what_nobody_is_loading(void **state)
{
	struct crig_io *one, *two;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	one = crig_read("a", B(2), B(2));
	two = crig_read("a", 0, B(6));
	assert_int_equal(crig_nr_calls(), 3);
	assert_int_equal(crig_call(1)->offset, 0);
	assert_int_equal(crig_call(1)->size, B(2));
	assert_int_equal(crig_call(2)->offset, B(4));
	crig_answer(2);
	crig_answer(1);
	crig_expect_waits(two);
	crig_expect_waits(one);
	crig_answer(0);
	assert_true(crig_data_is(two, 0, B(6), 5));
	crig_expect(two, B(6));
	crig_expect(one, B(2));
}

static void a_read_across_present_and_absent_buckets_loads_the_absent_ones(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(16), 5);
	crig_expect_data("a", B(1), B(5), 5);
	crig_expect_data("a", B(8), B(5), 5);
	crig_expect_data("a", 0, B(14), 5);
	assert_int_equal(crig_nr_calls(), 5);
	assert_int_equal(crig_call(2)->offset, 0);
	assert_int_equal(crig_call(2)->size, B(1));
	assert_int_equal(crig_call(3)->offset, B(6));
	assert_int_equal(crig_call(3)->size, B(2));
	assert_int_equal(crig_call(4)->offset, B(13));
	expect_reads(0, 1, 2);
	assert_int_equal(crig_counter(CC_HIT_BYTES), B(10));
	assert_int_equal(crig_counter(CC_MISS_BYTES), B(10 + 4));
}

/* Of 8 buckets 0, 5 and 7 are absent, 6 is dirty. */
static void have_holes(void)
{
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_expect_data("a", B(1), B(4), 5);
	crig_expect(crig_write("a", B(6), B(1), 7), B(1));
	assert_int_equal(crig_nr_calls(), 1);
}

static void expect_no_holes(struct crig_io *io)
{
	assert_true(crig_data_is(io, 0, B(6), 5));
	assert_true(crig_data_is(io, B(6), B(1), 7));
	assert_true(crig_data_is(io, B(7), B(1), 5));
	crig_expect(io, B(8));
}

static void a_load_goes_over_a_few_buckets_that_are_there_and_leaves_them_alone(void **state)
{
	uint32_t clean, dirty;

	(void)state;
	have_holes();
	clean = slot_page(crig_slot("a", 1));
	dirty = slot_page(crig_slot("a", 6));
	expect_no_holes(crig_read("a", 0, B(8)));
	assert_int_equal(crig_nr_calls(), 2);
	assert_int_equal(crig_call(1)->offset, 0);
	assert_int_equal(crig_call(1)->size, B(8));
	assert_int_equal(slot_page(crig_slot("a", 1)), clean);
	assert_int_equal(slot_page(crig_slot("a", 6)), dirty);
	assert_int_equal(crig_state("a", 6), BUCKET_DIRTY);
	assert_int_equal(crig_counter(CC_MISS_BYTES), B(4 + 3));
	expect_no_holes(crig_read("a", 0, B(8)));
	assert_int_equal(crig_nr_calls(), 2);
}

static void an_error_of_what_a_load_went_over_reaches_nobody(void **state)
{
	struct crig_io *io;

	(void)state;
	have_holes();
	crig_hold(true);
	io = crig_read("a", 0, B(8));
	crig_fail(1, -EIO);
	assert_int_equal(crig_nr_calls(), 5);
	assert_int_equal(crig_call(2)->offset, 0);
	assert_int_equal(crig_call(3)->offset, B(5));
	assert_int_equal(crig_call(4)->offset, B(7));
	for (uint32_t i = 2; i < 5; i++)
		assert_int_equal(crig_call(i)->size, B(1));
	crig_hold(false);
	expect_no_holes(io);
}

static void a_load_does_not_go_over_what_is_on_its_way_to_the_store(void **state)
{
	(void)state;
	have_holes();
	crig_hold(true);
	crig_flush(0);
	crig_read("a", B(5), B(3));
	assert_int_equal(crig_nr_calls(), 4);
	assert_int_equal(crig_call(1)->op, XSEG_OP_WRITE);
	assert_int_equal(crig_call(2)->offset, B(5));
	assert_int_equal(crig_call(2)->size, B(1));
	assert_int_equal(crig_call(3)->offset, B(7));
	crig_hold(false);
}

static void dirty_data_is_read_and_not_loaded(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", B(1), B(1), 7), B(1));
	crig_expect_data("a", B(1), B(1), 7);
	assert_int_equal(crig_nr_calls(), 0);
	crig_expect_data("a", 0, B(1), 0);
	expect_reads(1, 0, 1);
}

static void a_read_over_a_chunk_s_end_takes_two_chunks(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(140), 5);
	crig_expect_data("a", B(62), B(70), 5);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_object("a")->nr[BUCKET_VALID], 70);
}

static void what_a_write_put_there_meanwhile_is_what_a_waiting_reader_gets(void **state)
{
	struct crig_io *reader;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	reader = crig_read("a", 0, B(2));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect_waits(reader);
	crig_answer(0);
	assert_true(crig_data_is(reader, 0, B(1), 6));
	assert_true(crig_data_is(reader, B(1), B(1), 5));
	crig_expect(reader, B(2));
}

static void a_load_that_comes_after_a_newer_write_changes_nothing(void **state)
{
	struct crig_io *reader;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	reader = crig_read("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_true(crig_data_is(reader, 0, B(1), 6));
	crig_expect(reader, B(1));
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_answer(0);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_expect_data("a", 0, B(1), 6);
}

static void a_load_that_comes_after_eviction_and_a_second_load_changes_nothing(void **state)
{
	struct crig_io *first, *second;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	first = crig_read("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect(first, B(1));
	crig_pass(6 * CRIG_S);			/* dirty_age: flushed */
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_number("dropped_bytes"), B(1));
	second = crig_read("a", 0, B(1));
	assert_int_equal(crig_state("a", 0), BUCKET_LOADING);
	crig_answer(0);				/* the first load, of old data */
	crig_expect_waits(second);
	assert_int_equal(crig_state("a", 0), BUCKET_LOADING);
	crig_answer(crig_held(XSEG_OP_READ, 0));
	assert_true(crig_data_is(second, 0, B(1), 6));
	crig_expect(second, B(1));
}

static void a_load_error_reaches_exactly_the_readers_that_wait_for_that_bucket(void **state)
{
	struct crig_io *fails, *fails_too, *other, *across;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	fails = crig_read("a", 0, B(1));
	other = crig_read("a", B(1), B(1));
	fails_too = crig_read("a", 512, 512);
	across = crig_read("a", 0, B(3));
	assert_int_equal(crig_nr_calls(), 3);
	crig_fail(0, -EIO);
	crig_expect(fails, -EIO);
	crig_expect(fails_too, -EIO);
	crig_expect_waits(across); /* asks for just its own range, and gets just its own error */
	assert_int_equal(crig_call(3)->size, B(3));
	crig_fail(3, -ENOMEM);
	crig_expect(across, -ENOMEM);
	assert_int_equal(crig_counter(CC_BYPASSED_ERROR), 1);
	crig_expect_waits(other);
	assert_int_equal(crig_state("a", 0), BUCKET_INVALID);
	assert_int_equal(crig_counter(CC_LOAD_ERRORS), 1);
	crig_answer(1);
	crig_expect(other, B(1));
	crig_answer(2);
	crig_hold(false);
	crig_expect_data("a", 0, B(3), 5);
}

static void a_short_load_is_an_error(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_hold(true);
	io = crig_read("a", 0, B(2));
	crig_short(0, B(1));
	crig_expect(io, -EIO);
	assert_true(slot_absent(crig_slot("a", 0)) && slot_absent(crig_slot("a", 1)));
}

static void a_failed_load_under_a_newer_write_fails_nobody(void **state)
{
	struct crig_io *reader;

	(void)state;
	crig_up("");
	crig_hold(true);
	reader = crig_read("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect(reader, B(1));
	crig_fail(0, -EIO);
	crig_expect_data("a", 0, B(1), 6);
}

static void a_reader_that_has_its_bucket_is_not_failed_by_the_rest_of_the_load(void **state)
{
	struct crig_io *whole, *part;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(4), 5);
	crig_hold(true);
	whole = crig_read("a", 0, B(2));
	part = crig_read("a", B(1), B(2));
	crig_expect(crig_write("a", B(1), B(1), 6), B(1)); /* part has copied its first bucket */
	crig_fail(0, -EIO);
	crig_expect(whole, -EIO);
	crig_expect_waits(part);
	crig_answer(1);
	assert_true(crig_data_is(part, 0, B(1), 6));
	crig_expect(part, B(2));
}

static void ranges_that_make_no_sense_are_invalid(void **state)
{
	static const struct {
		enum xseg_op op;
		uint64_t offset;
		uint32_t size;
	} bad[] = {
		{ XSEG_OP_READ, 0, 0 }, { XSEG_OP_WRITE, 0, 0 }, { XSEG_OP_DISCARD, 0, 0 },
		{ XSEG_OP_READ, 4 << 20, 512 }, { XSEG_OP_WRITE, (4 << 20) - 512, 1024 },
		{ XSEG_OP_WRITE_ZEROES, (4ull << 20) - 4096, 8192 },
		{ XSEG_OP_DISCARD, 1ull << 40, 4096 },
	};

	(void)state;
	crig_up("");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		crig_expect(crig_op(bad[i].op, "a", bad[i].offset, bad[i].size), -EINVAL);
	crig_expect(crig_read("", 0, 512), -EINVAL);
	crig_expect(crig_op(XSEG_OP_DELETE, "", 0, 0), -EINVAL);
	assert_int_equal(crig_nr_calls(), 0);
	assert_null(crig_object("a"));
	crig_expect(crig_op(XSEG_OP_COPY, "a", 0, 4096), -EPROTO);	/* it has no end */
	crig_expect_data("a", (4 << 20) - 512, 512, 0);
}

static void a_wrong_hash_is_a_protocol_error(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	io = crig_send(XSEG_OP_READ, "a", 0, 512, 0, 0);
	crig_step_request();
	assert_non_null(crig_creq(io)->obj);
	crig_settle();
	crig_expect(io, 512);
	io = crig_send_wrong_hash(XSEG_OP_READ, "b", 0, 512);
	crig_settle();
	crig_expect(io, -EPROTO);
	assert_null(crig_object("b"));
}

static void offsets_that_are_not_aligned_alike_are_invalid(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	io = crig_send_apart("a", 512, 1024, 512);
	crig_settle();
	crig_expect(io, -EINVAL);
}

/* The second thread has sent the load, and sleeps when the first one, which was inside the object,
 * completes it. */
static void a_load_that_another_thread_completes_goes_back_to_its_own(void **state)
{
	struct cport *first, *second;
	struct crig_io *io;
	struct object *o;

	(void)state;
	crig_up("threads=2");
	first = cport_at(crig.k, 0);
	second = cport_at(crig.k, 1);
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	xseg_port_steer(first->pp->port, second->pp->port);
	io = crig_read("a", 0, B(1));
	assert_int_equal(store_port(second)->loads_out, 1);
	o = crig_object("a");
	assert_true(xworkq_try_enter(&o->q));
	crig_answer_only(crig_held(XSEG_OP_READ, 0));
	assert_true(crig_step_reply());
	crig_step_poll();
	crig_expect_waits(io);
	assert_true(xworkq_leave(&o->q));
	object_ready(first, o);
	crig_settle();
	crig_expect(io, B(1));
	assert_null(atomic_load(&store_port(second)->returned));
	assert_int_equal(store_port(second)->loads_out, 0);
	crig_hold(false);
}

static uint64_t slowest_ns(void)
{
	static struct xseg_stats_view view;

	for (uint32_t i = 0; i < xseg_nr_stats(crig.seg); i++)
		if (xseg_stats_view(crig.seg, i, &view) && !strcmp(view.name, "cached"))
			return view.lat.max;
	fail_msg("there are no statistics of cached");
	return 0;
}

/* The ports read the clock one after the other, and any of them answers. */
static void a_request_that_another_port_took_a_moment_later_took_no_time(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	io = crig_read("a", 0, B(1));
	crig_creq(io)->r->stamp_ns = crig.now_ns + CRIG_MS;
	crig_hold(false);
	crig_settle();
	crig_expect(io, B(1));
	crig_pass(CRIG_MS);
	assert_true(slowest_ns() < CRIG_S);
}

static void a_bucket_that_never_stays_does_not_starve_a_reader(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(2);
	crig_store_fill("a", 0, B(64), 5);
	crig_expect_data("a", 0, B(64), 5);	/* 64 buckets through 2 pages */
	crig_expect_data("a", 0, B(64), 5);
	expect_reads(0, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_miss_loads_once_and_later_reads_hit),
		CRIG_T(a_read_of_a_sector_loads_its_whole_bucket),
		CRIG_T(neighbours_missed_together_leave_in_one_load),
		CRIG_T(a_load_is_at_most_one_mebibyte),
		CRIG_T(two_readers_of_the_same_missing_bucket_share_one_load),
		CRIG_T(readers_that_overlap_load_only_what_nobody_is_loading),
		CRIG_T(a_read_across_present_and_absent_buckets_loads_the_absent_ones),
		CRIG_T(a_load_goes_over_a_few_buckets_that_are_there_and_leaves_them_alone),
		CRIG_T(an_error_of_what_a_load_went_over_reaches_nobody),
		CRIG_T(a_load_does_not_go_over_what_is_on_its_way_to_the_store),
		CRIG_T(dirty_data_is_read_and_not_loaded),
		CRIG_T(a_read_over_a_chunk_s_end_takes_two_chunks),
		CRIG_T(what_a_write_put_there_meanwhile_is_what_a_waiting_reader_gets),
		CRIG_T(a_load_that_comes_after_a_newer_write_changes_nothing),
		CRIG_T(a_load_that_comes_after_eviction_and_a_second_load_changes_nothing),
		CRIG_T(a_load_error_reaches_exactly_the_readers_that_wait_for_that_bucket),
		CRIG_T(a_short_load_is_an_error),
		CRIG_T(a_failed_load_under_a_newer_write_fails_nobody),
		CRIG_T(a_reader_that_has_its_bucket_is_not_failed_by_the_rest_of_the_load),
		CRIG_T(ranges_that_make_no_sense_are_invalid),
		CRIG_T(a_wrong_hash_is_a_protocol_error),
		CRIG_T(offsets_that_are_not_aligned_alike_are_invalid),
		CRIG_T(a_load_that_another_thread_completes_goes_back_to_its_own),
		CRIG_T(a_request_that_another_port_took_a_moment_later_took_no_time),
		CRIG_T(a_bucket_that_never_stays_does_not_starve_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
