/* cached_copy_test - COPY between objects, by the cache and by the store
 * (peers/cached/request/copy.c). */
#include <string.h>

#include "tests/rig/cached_rig.h"

/* Sends a COPY of that range from one object to another. */
static struct crig_io *copy(const char *to, const char *from, uint64_t offset, uint32_t size)
{
	struct crig_io *io = crig_send_copy(to, from, offset, size);

	crig_settle();
	return io;
}

static void a_copy_of_cached_data_is_answered_without_the_store(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_have_clean("a", 0, B(2), 5);
	crig_expect(crig_write("a", B(2), B(1), 6), B(1));
	crig_hold(true);
	crig_expect(copy("b", "a", 0, B(3)), B(3));
	assert_int_equal(crig_nr_held(), 0);
	crig_hold(false);
	crig_expect_data("b", 0, B(2), 5);
	crig_expect_data("b", B(2), B(1), 6);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("b", 0, B(2), 5) && crig_stored("b", B(2), B(1), 6));
}

static void a_copy_of_parts_leaves_the_rest_of_the_target(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_have_clean("a", 0, B(3), 5);
	crig_store_fill("b", 0, B(3), 6);
	crig_expect(copy("b", "a", 512, B(2)), B(2));
	crig_expect_data("b", 0, 512, 6);
	crig_expect_data("b", 512, B(2), 5);
	crig_expect_data("b", B(2) + 512, B(1) - 512, 6);
	crig_expect_data("a", 0, B(3), 5);
	crig_expect(copy("b", "a", B(1) + 1024, 512), 512);
	crig_expect_data("b", B(1) + 1024, 512, 5);
}

static void a_copy_of_zeroes_is_zeroes(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2)), B(2));
	crig_store_fill("b", 0, B(2), 6);
	crig_expect(copy("b", "a", 0, B(2)), B(2));
	crig_expect_data("b", 0, B(2), 0);
}

static void what_is_not_cached_is_copied_by_the_store(void **state)
{
	struct crig_io *io;
	uint32_t call;

	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	io = copy("b", "a", 512, B(1));
	call = crig_held(XSEG_OP_COPY, 0);
	assert_int_equal(crig_call(call)->offset, 512);
	assert_int_equal(crig_call(call)->size, B(1));
	assert_int_equal(crig_state("b", 0), BUCKET_BYPASS);
	crig_expect_waits(io);
	crig_hold(false);
	crig_expect(io, B(1));
	crig_expect_data("b", 512, B(1), 5);
	assert_int_equal(crig_count_calls(XSEG_OP_READ, 0), 1);
}

static void what_is_newer_of_source_and_target_is_flushed_before_the_store_copies(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(3), 5);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect(crig_write("b", B(1), B(1), 7), B(1));
	crig_expect(copy("b", "a", 0, B(3)), B(3));
	assert_int_equal(crig_count_calls(XSEG_OP_COPY, 0), 1);
	crig_expect_data("b", 0, B(1), 6);
	crig_expect_data("b", B(1), B(2), 5);
	assert_true(crig_stored("b", 0, B(1), 6) && crig_stored("b", B(1), B(2), 5));
}

/* "a" has three buckets in the store, and the first is newer in the cache; the store holds the
 * FLUSH that is returned. */
static struct crig_io *flush_is_out(void)
{
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(3), 5);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_hold(true);
	return crig_flush(0);
}

static void a_copy_is_covered_by_a_flush_that_was_out_before_it_came(void **state)
{
	struct crig_io *flush = flush_is_out(), *io;

	(void)state;
	crig_expect(crig_write("a", B(8), B(1), 7), B(1));
	io = copy("b", "a", 0, B(3));
	crig_expect_waits(io);
	crig_hold(false);
	crig_expect(flush, 0);
	crig_expect(io, B(3));
	crig_expect_data("b", 0, B(1), 6);
	crig_expect_data("b", B(1), B(2), 5);
}

static void a_copy_waits_for_what_is_newer_than_the_flush_that_is_out(void **state)
{
	struct crig_io *flush = flush_is_out(), *io;

	(void)state;
	crig_expect(crig_write("a", 0, B(1), 7), B(1));
	io = copy("b", "a", 0, B(3));
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_expect_waits(io);
	crig_hold(false);
	crig_expect(flush, 0);
	crig_expect(io, B(3));
	crig_expect_data("b", 0, B(1), 7);
}

static void a_copy_whose_source_cannot_be_flushed_fails_and_nothing_is_lost(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(copy("b", "a", 0, B(2)), -EIO);
	crig_expect_data("a", 0, B(1), 6);
	crig_expect_data("b", 0, B(1), 0);
	crig_fail_next(XSEG_OP_COPY, -ENOENT, 1);
	crig_expect(copy("b", "none", 0, B(1)), -ENOENT);
}

static void write_through_waits_for_the_store_and_write_around_has_the_store_copy(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_have_clean("a", 0, B(1), 5);
	crig_hold(true);
	io = copy("b", "a", 0, B(1));
	crig_expect_waits(io);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 1);
	crig_hold(false);
	crig_expect(io, B(1));
	crig_set("policy=write-around");
	crig_expect(copy("c", "a", 0, B(1)), B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_COPY, 0), 1);
	crig_expect_data("c", 0, B(1), 5);
}

static void a_copy_onto_itself_changes_nothing_and_a_source_without_a_name_is_refused(void **state)
{
	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(1), 5);
	crig_expect(copy("a", "a", 0, B(1)), B(1));
	crig_expect_data("a", 0, B(1), 5);
	crig_expect(copy("a", "", 0, B(1)), -EOPNOTSUPP);
}

static void the_source_of_a_copy_stays_its_volumes(void **state)
{
	struct crig_io *write, *io;

	(void)state;
	crig_up("dirty_age=1h");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	crig_volume(1);
	write = crig_write("a", 512, 512, 6);
	crig_volume(2);
	io = copy("b", "a", 0, B(1));
	crig_hold(false);
	crig_expect(write, 512);
	crig_expect(io, B(1));
	crig_expect(crig_flush(1), 0);
	assert_true(crig_stored("a", 512, 512, 6));
}

/* Nobody finds it in the cache any more, but what it has is newer than the store. */
static void the_source_of_a_copy_may_be_on_its_way_out_of_the_cache(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_store_fill("a", 0, B(1), 5);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_hold(true);
	io = copy("b", "a", 0, B(1));
	assert_int_equal(xcache_nr_evicted(&crig.k->object.xc), 1);
	crig_expect_waits(io);
	assert_int_equal(crig_count_calls(XSEG_OP_COPY, 0), 0);
	crig_hold(false);
	crig_expect(io, B(1));
	crig_expect_data("b", 0, B(1), 6);
}

static void a_copy_into_an_object_without_slots_takes_a_page_for_them(void **state)
{
	char name[8];

	(void)state;
	crig_up("dirty_age=1h");
	crig_have_clean("a", 0, B(2), 5);
	for (uint32_t i = 0; crig.k->memory.nr_free_chunks; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		crig_have_clean(name, 0, B(1), 6);
	}
	crig_expect(copy("b", "a", 0, B(1) + 512), B(1) + 512);
	crig_expect_data("b", 0, B(1) + 512, 5);
	crig_expect_data("b", B(1) + 512, B(1) - 512, 0);
}

static void a_copy_that_gets_no_slots_gives_its_pages_back_and_begins_anew(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_store_fill("b", 0, B(3), 6);
	crig_expect(crig_write("a", 0, B(3), 5), B(3));
	crig_fill(24, 5);
	crig_hold(true);
	io = copy("b", "a", 512, B(2));			/* three, and two aside */
	crig_expect_waits(io);
	assert_int_equal(crig_creq(io)->nr_pages, 0);
	assert_int_equal(crig.k->memory.nr_free, 5);
	crig_hold(false);
	crig_expect(io, B(2));
	crig_expect_data("b", 0, 512, 6);
	crig_expect_data("b", 512, B(2), 5);
	crig_expect_data("b", B(2) + 512, B(1) - 512, 6);
}

static void copies_in_a_cache_of_few_pages_wait_and_end(void **state)
{
	struct crig_io *io[8];
	char name[8];

	(void)state;
	crig_up("dirty_age=1h");
	crig_limit(6);
	crig_have_clean("a", 0, B(3), 5);
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		io[i] = crig_send_copy(name, "a", 512, B(2));
	}
	crig_pass(CRIG_S);
	for (uint32_t i = 0; i < 8; i++)
		crig_expect(io[i], B(2));
	for (uint32_t i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		crig_expect_data(name, 512, B(2), 5);
		crig_expect_data(name, 0, 512, 0);
	}
}

static void a_copy_of_a_killed_cache_is_done_by_its_successor(void **state)
{
	struct crig_io *by_store, *waits;

	(void)state;
	crig_up("policy=write-through");
	crig_store_fill("a", 0, B(1), 5);
	crig_have_clean("c", 0, B(1), 6);
	crig_hold(true);
	by_store = copy("b", "a", 0, B(1));
	waits = copy("d", "c", 0, B(1));
	crig_kill();
	crig_hold(false);
	assert_int_equal(crig_open("policy=write-through"), 0);
	crig_settle();
	crig_expect(by_store, B(1));
	crig_expect(waits, B(1));
	crig_expect_data("b", 0, B(1), 5);
	crig_expect_data("d", 0, B(1), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_copy_of_cached_data_is_answered_without_the_store),
		CRIG_T(a_copy_of_parts_leaves_the_rest_of_the_target),
		CRIG_T(a_copy_of_zeroes_is_zeroes),
		CRIG_T(what_is_not_cached_is_copied_by_the_store),
		CRIG_T(what_is_newer_of_source_and_target_is_flushed_before_the_store_copies),
		CRIG_T(a_copy_is_covered_by_a_flush_that_was_out_before_it_came),
		CRIG_T(a_copy_waits_for_what_is_newer_than_the_flush_that_is_out),
		CRIG_T(a_copy_whose_source_cannot_be_flushed_fails_and_nothing_is_lost),
		CRIG_T(write_through_waits_for_the_store_and_write_around_has_the_store_copy),
		CRIG_T(a_copy_onto_itself_changes_nothing_and_a_source_without_a_name_is_refused),
		CRIG_T(the_source_of_a_copy_stays_its_volumes),
		CRIG_T(the_source_of_a_copy_may_be_on_its_way_out_of_the_cache),
		CRIG_T(a_copy_into_an_object_without_slots_takes_a_page_for_them),
		CRIG_T(a_copy_that_gets_no_slots_gives_its_pages_back_and_begins_anew),
		CRIG_T(copies_in_a_cache_of_few_pages_wait_and_end),
		CRIG_T(a_copy_of_a_killed_cache_is_done_by_its_successor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
