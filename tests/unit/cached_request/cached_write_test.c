/* cached_write_test - writes, discards and write-zeroes; their edges
 * (peers/cached/request/write.c). */
#include "tests/rig/cached_rig.h"

/* ---- whole buckets and edges ------------------------------------------------------------- */

static void a_write_that_covers_a_bucket_needs_no_load(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", B(1), B(3), 5), B(3));
	assert_int_equal(crig_nr_calls(), 0);
	assert_int_equal(crig_object("a")->nr[BUCKET_DIRTY], 3);
	assert_int_equal(crig_counter(CC_WRITES), 1);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(3));
	crig_expect_data("a", B(1), B(3), 5);
}

static void a_write_of_a_sector_loads_the_rest_of_its_bucket(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	io = crig_write("a", 1024, 512, 6);
	crig_expect_waits(io);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->op, XSEG_OP_READ);
	assert_int_equal(crig_call(0)->size, B(1));
	assert_int_equal(crig_call(0)->r->page[0], crig_creq(io)->page[0]);
	crig_answer(0);
	crig_expect(io, 512);
	crig_expect_data("a", 0, 1024, 5);
	crig_expect_data("a", 1024, 512, 6);
	crig_expect_data("a", 1536, B(1) - 1536, 5);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
	assert_int_equal(crig_nr_calls(), 1);
}

static void a_write_with_both_edges_loads_both_and_not_what_is_between(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	io = crig_write("a", B(1) + 512, B(3), 6);
	assert_int_equal(crig_nr_calls(), 2);
	assert_int_equal(crig_call(0)->offset, B(1));
	assert_int_equal(crig_call(1)->offset, B(4));
	crig_answer(1);
	crig_expect_waits(io);
	crig_answer(0);
	crig_expect(io, B(3));
	crig_expect_data("a", B(1), 512, 5);
	crig_expect_data("a", B(1) + 512, B(3), 6);
	crig_expect_data("a", B(4) + 512, B(1) - 512, 5);
}

static void an_edge_that_is_present_is_taken_from_the_bucket(void **state)
{
	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(1), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_expect(crig_write("a", 512, B(1), 7), B(1));
	assert_int_equal(crig_nr_calls(), 1);
	crig_expect_data("a", 0, 512, 5);
	crig_expect_data("a", 512, B(1), 7);
	crig_expect_data("a", B(1) + 512, B(1) - 512, 6);
}

static void an_edge_of_a_bucket_that_a_reader_loads_waits_for_that_load(void **state)
{
	struct crig_io *reader, *writer;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	reader = crig_read("a", 0, B(1));
	writer = crig_write("a", 512, 512, 6);
	assert_int_equal(crig_nr_calls(), 1);
	crig_answer(0);
	crig_expect(reader, B(1));
	crig_expect(writer, 512);
	assert_int_equal(crig_nr_calls(), 1);
	crig_expect_data("a", 512, 512, 6);
	crig_expect_data("a", 1024, 512, 5);
}

static void a_writer_does_not_get_the_error_of_a_reader_s_load(void **state)
{
	struct crig_io *reader, *writer;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	reader = crig_read("a", 0, B(1));
	writer = crig_write("a", 512, 512, 6);
	crig_fail(0, -EIO);
	crig_expect(reader, -EIO);
	crig_answer(1);
	crig_expect(writer, 512);
	crig_expect_data("a", 0, 512, 5);
}

static void a_reader_of_a_bucket_that_a_writer_loads_sees_the_write(void **state)
{
	struct crig_io *reader, *writer;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	writer = crig_write("a", 512, 512, 6);
	reader = crig_read("a", 0, B(1));
	assert_int_equal(crig_nr_calls(), 1);
	crig_answer(0);
	crig_expect(writer, 512);
	assert_true(crig_data_is(reader, 512, 512, 6) && crig_data_is(reader, 1024, 512, 5));
	crig_expect(reader, B(1));
}

static void an_edge_overwritten_meanwhile_by_a_full_write_comes_from_that_write(void **state)
{
	struct crig_io *edge;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	edge = crig_write("a", 512, 512, 6);
	crig_expect(crig_write("a", 0, B(1), 7), B(1));
	crig_expect_waits(edge);		/* its load still writes into its page */
	crig_answer(0);
	crig_expect(edge, 512);
	crig_expect_data("a", 0, 512, 7);
	crig_expect_data("a", 512, 512, 6);
	crig_expect_data("a", 1024, B(1) - 1024, 7);
}

static void an_edge_that_was_loaded_is_not_used_when_a_full_write_came_after_it(void **state)
{
	struct crig_io *edges;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	edges = crig_write("a", 512, B(1), 6);
	crig_answer(0);				/* the left one is there */
	crig_expect(crig_write("a", 0, B(1), 7), B(1));
	crig_answer(1);
	crig_expect(edges, B(1));
	crig_expect_data("a", 0, 512, 7);
	crig_expect_data("a", 512, B(1), 6);
	crig_expect_data("a", B(1) + 512, 512, 5);
}

static void an_edge_whose_load_fails_fails_that_write_only(void **state)
{
	struct crig_io *write, *reader, *other;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	write = crig_write("a", 512, 512, 6);
	reader = crig_read("a", 0, 512);
	other = crig_write("a", 1024, 512, 7);
	crig_fail(0, -EIO);
	crig_expect(write, -EIO);
	crig_expect_waits(reader);
	crig_expect_waits(other);
	crig_hold(false);
	crig_expect(reader, 512);
	crig_expect(other, 512);
	crig_expect_data("a", 0, 1024, 5);
	crig_expect_data("a", 1024, 512, 7);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
}

static void the_edge_that_was_loaded_stays_when_the_other_one_fails(void **state)
{
	struct crig_io *write, *reader;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	write = crig_write("a", 512, B(1), 6);
	reader = crig_read("a", 0, B(1));
	crig_answer(0);
	assert_true(crig_data_is(reader, 0, B(1), 5));	/* as if it had come before the write */
	crig_expect(reader, B(1));
	crig_fail(1, -EIO);
	crig_expect(write, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(slot_absent(crig_slot("a", 1)));
}

static void a_write_that_fails_keeps_no_slots(void **state)
{
	uint32_t chunks, pages;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(1), 5);
	chunks = crig.k->memory.nr_free_chunks;
	pages = crig.k->memory.nr_chunk_pages;
	crig_fail_next(XSEG_OP_READ, -EIO, 2);
	crig_expect(crig_write("a", B(100) + 512, XSEG_REQ_BYTES, 6), -EIO);
	assert_int_equal(crig.k->memory.nr_free_chunks, chunks);
	assert_int_equal(crig.k->memory.nr_chunk_pages, pages);
}

/* All loads but `free` of its share are out, each of one bucket of "b". */
static uint32_t fill_loads(struct crig_io **io, uint32_t free_)
{
	uint32_t n = crig_share() - free_;

	for (uint32_t i = 0; i < n; i++)
		io[i] = crig_read("b", B(i * 2), B(1));
	assert_int_equal(crig_nr_held(), n);
	return n;
}

/* Its second chunk goes with a reader's bucket, whose load fails, and others take that. */
static void a_write_that_loses_its_slots_while_an_edge_is_loaded_begins_anew(void **state)
{
	struct crig_io *io, *reader;
	char name[8];

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_store_fill("a", B(63), B(1), 6);
	crig_fill(24, 4);
	crig_hold(true);
	io = crig_write("a", B(63) + 512, B(2) - 512, 5);
	reader = crig_read("a", B(65), B(1));
	crig_fail(crig_held(XSEG_OP_READ, 1), -EIO);
	crig_expect(reader, -EIO);
	for (uint32_t i = 0; crig.k->memory.nr_free_chunks; i++) {
		snprintf(name, sizeof(name), "y%u", i);
		crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, name, 0, B(1)), B(1));
	}
	crig_expect(crig_write("y0", B(1), B(1), 7), B(1));
	assert_int_equal(crig.k->memory.nr_free, 0);
	crig_answer(crig_held(XSEG_OP_READ, 0));		/* the edge */
	crig_expect_waits(io);
	assert_int_equal(crig_creq(io)->nr_pages, 0);
	assert_int_equal(crig_state("a", 63), BUCKET_FREE);
	crig_hold(false);
	crig_expect(io, B(2) - 512);
	crig_expect_data("a", B(63), 512, 6);
	crig_expect_data("a", B(63) + 512, B(2) - 512, 5);
}

static void expect_loads(struct crig_io **io, uint32_t n)
{
	crig_hold(false);
	while (n--)
		crig_expect(io[n], B(1));
}

/* The writer waits for a request when it gets its first edge, so the other one waits in the object
 * before it does. */
static void a_write_that_fails_wakes_those_who_came_before_its_last_edge(void **state)
{
	struct crig_io *filler[16], *write, *delete;
	uint32_t n;

	(void)state;
	crig_up("requests=8");
	crig_hold(true);
	n = fill_loads(filler, 1);
	write = crig_write("a", 512, B(1), 6);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	assert_int_equal(crig_nr_held(), n + 1);
	crig_answer(n);				/* the left edge; now the right one may go */
	assert_int_equal(crig_call(n + 1)->offset, B(1));
	crig_fail(n + 1, -EIO);
	crig_expect(write, -EIO);
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_expect(delete, -ENOENT);
	expect_loads(filler, n);
}

static void writes_of_parts_of_one_bucket_all_arrive(void **state)
{
	struct crig_io *io[8];

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	for (uint32_t i = 0; i < 8; i++)
		io[i] = crig_write("a", i * 512, 512, 10 + i);
	assert_int_equal(crig_nr_calls(), 1);
	crig_hold(false);
	for (uint32_t i = 0; i < 8; i++)
		crig_expect(io[i], 512);
	for (uint32_t i = 0; i < 8; i++)
		crig_expect_data("a", i * 512, 512, 10 + i);
}

/* Each has the edge that the other one wants. */
static void two_writers_of_both_edges_do_not_wait_for_each_other_for_ever(void **state)
{
	struct crig_io *filler[16], *one, *two, *both;
	uint32_t n;

	(void)state;
	crig_up("requests=8");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	n = fill_loads(filler, 1);
	/* its left edge is out; the right one waits for a request */
	one = crig_write("a", 512, B(2), 6);
	two = crig_send(XSEG_OP_WRITE, "a", 1024, B(2), 0, 7);
	crig_answer_only(0);
	while (crig_step_reply()) /* a request is free, and `two` comes before `one` is told so */
		;
	crig_step_request();
	expect_loads(filler, n);
	crig_expect(one, B(2));
	crig_expect(two, B(2));
	crig_expect_data("a", 0, 512, 5);
	crig_expect_data("a", 512, 512, 6);
	crig_expect_data("a", B(2) + 512, 512, 7);
	crig_expect_data("a", B(2) + 1024, 512, 5);
	both = crig_read("a", 1024, B(2) - 512);	/* in either order, but whole */
	assert_true(crig_data_is(both, 0, B(2) - 512, 6) || crig_data_is(both, 0, B(2) - 512, 7));
	crig_expect(both, B(2) - 512);
}

/* ---- discard, write-zeroes --------------------------------------------------------------- */

static void discard_and_write_zeroes_of_parts_leave_the_rest(void **state)
{
	static const enum xseg_op ops[] = { XSEG_OP_DISCARD, XSEG_OP_WRITE_ZEROES };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		crig_up("");
		crig_store_fill("a", 0, B(8), 5);
		crig_expect(crig_op(ops[i], "a", B(1) + 512, B(3)), B(3));
		assert_int_equal(crig_nr_calls(), 2);
		crig_expect_data("a", B(1), 512, 5);
		crig_expect_data("a", B(1) + 512, B(3), 0);
		crig_expect_data("a", B(4) + 512, B(1) - 512, 5);
		crig_expect(crig_flush(0), 0);
		assert_true(crig_stored("a", B(1) + 512, B(3), 0) &&
			    crig_stored("a", 0, B(1) + 512, 5));
		crig_down(NULL);
	}
}

static void zeroes_of_whole_buckets_take_no_page_and_move_no_data(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(8), 5);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(1), B(6)), B(6));
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(6));
	assert_int_equal(crig_nr_calls(), 0);
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("a", B(1), B(6), 0);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_DISCARD, 0), 1);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	assert_true(crig_stored("a", B(1), B(6), 0) && crig_stored("a", B(7), B(1), 5));
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	crig_expect_data("a", B(1), B(6), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_READ, 0), 1);
}

static void a_part_of_a_bucket_of_zeroes_can_be_written_and_a_whole_one(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", 0, B(3)), B(3));
	crig_expect(crig_write("a", 512, 1024, 6), 1024);
	crig_expect(crig_write("a", B(1), B(1), 7), B(1));
	assert_int_equal(crig_counter(CC_USED_BYTES), B(2));
	crig_expect_data("a", 0, 512, 0);
	crig_expect_data("a", 512, 1024, 6);
	crig_expect_data("a", 1536, B(1) - 1536, 0);
	crig_expect_data("a", B(1), B(1), 7);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_DISCARD, 0), 1);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 1);
	assert_true(crig_stored("a", 512, 1024, 6) && crig_stored("a", B(1), B(1), 7) &&
		    crig_stored("a", B(2), B(1), 0));
}

static void zeroes_over_data_that_is_being_flushed_are_flushed_after_it(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	flush = crig_flush(0);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(1)), B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_DISCARD, 0), 0);
	crig_expect_data("a", 0, B(1), 0);
	crig_hold(false);
	crig_expect(flush, 0);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(1), 0));
}

static void zeroes_survive_a_kill_clean_and_dirty(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(1)), B(1));
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(2), B(1)), B(1));
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_settle();
	assert_int_equal(crig.k->memory.nr_zeroes, 1);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1));
	crig_expect_data("a", 0, B(1), 0);
	crig_expect_data("a", B(2), B(1), 0);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", B(2), B(1), 0) && crig_stored("a", B(3), B(1), 5));
}

/* They have slots, and nothing evicts them: not more than a quarter of the pages. */
static void clean_zeroes_do_not_fill_the_cache_with_slots(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_limit(64);
	for (uint32_t i = 0; i < 16; i++)
		crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", i * B(64), B(20)), B(20));
	crig_expect(crig_flush(0), 0);
	assert_in_range(crig.k->memory.nr_zeroes, 1, 16);
	crig_expect_data("a", B(64), B(20), 0);
}

static bool are_side_by_side(const struct xreq *r)
{
	for (uint32_t i = 1; i < r->nr_pages; i++)
		if ((r->page[i] & XSEG_PAGE_INDEX) != (r->page[0] & XSEG_PAGE_INDEX) + i)
			return false;
	return true;
}

/* The store takes them in one piece, then. */
static void pages_side_by_side_stay_so_when_they_are_written_over(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	for (uint32_t i = 0; i < 5; i++) {
		io = crig_write("a", 0, B(8), 5 + i);
		assert_int_equal(crig_nr_calls(), i + 1);
		assert_int_equal(crig_call(i)->r->nr_pages, 8);
		assert_true(are_side_by_side(crig_call(i)->r));
		crig_answer(i);
		crig_expect(io, B(8));
	}
	crig_expect_data("a", 0, B(8), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_write_that_covers_a_bucket_needs_no_load),
		CRIG_T(a_write_of_a_sector_loads_the_rest_of_its_bucket),
		CRIG_T(a_write_with_both_edges_loads_both_and_not_what_is_between),
		CRIG_T(an_edge_that_is_present_is_taken_from_the_bucket),
		CRIG_T(an_edge_of_a_bucket_that_a_reader_loads_waits_for_that_load),
		CRIG_T(a_writer_does_not_get_the_error_of_a_reader_s_load),
		CRIG_T(a_reader_of_a_bucket_that_a_writer_loads_sees_the_write),
		CRIG_T(an_edge_overwritten_meanwhile_by_a_full_write_comes_from_that_write),
		CRIG_T(an_edge_that_was_loaded_is_not_used_when_a_full_write_came_after_it),
		CRIG_T(an_edge_whose_load_fails_fails_that_write_only),
		CRIG_T(the_edge_that_was_loaded_stays_when_the_other_one_fails),
		CRIG_T(a_write_that_fails_keeps_no_slots),
		CRIG_T(a_write_that_loses_its_slots_while_an_edge_is_loaded_begins_anew),
		CRIG_T(a_write_that_fails_wakes_those_who_came_before_its_last_edge),
		CRIG_T(writes_of_parts_of_one_bucket_all_arrive),
		CRIG_T(two_writers_of_both_edges_do_not_wait_for_each_other_for_ever),
		CRIG_T(discard_and_write_zeroes_of_parts_leave_the_rest),
		CRIG_T(zeroes_of_whole_buckets_take_no_page_and_move_no_data),
		CRIG_T(a_part_of_a_bucket_of_zeroes_can_be_written_and_a_whole_one),
		CRIG_T(zeroes_over_data_that_is_being_flushed_are_flushed_after_it),
		CRIG_T(zeroes_survive_a_kill_clean_and_dirty),
		CRIG_T(clean_zeroes_do_not_fill_the_cache_with_slots),
		CRIG_T(pages_side_by_side_stay_so_when_they_are_written_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
