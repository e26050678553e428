/* cached_once_test - reads and writes that are not to be kept (XSEG_REQ_ONCE): they are no use of
 * what is in the cache, they bring nothing that stays, and they lose nothing
 * (peers/cached/request/read.c, write.c, arrive.c; flush/flush.c).
 */
#include "peers/cached/evict/evict.h"
#include "tests/rig/cached_rig.h"

#define QUIET "dirty_age=1h dirty_high=100 dirty_low=100"

static struct crig_io *read_once(const char *name, uint64_t offset, uint32_t size, unsigned flags)
{
	struct crig_io *io = crig_send(
		XSEG_OP_READ, name, offset, size, XSEG_REQ_ONCE | flags, 0);

	crig_settle();
	return io;
}

static void expect_once(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct crig_io *io = read_once(name, offset, size, 0);

	assert_true(io->done && crig_data_is(io, 0, size, seed));
	crig_expect(io, size);
}

static struct crig_io *write_once(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct crig_io *io = crig_send(XSEG_OP_WRITE, name, offset, size, XSEG_REQ_ONCE, seed);

	crig_settle();
	return io;
}

static bool is_unkept(const char *name, uint32_t b)
{
	return slot_is_unkept(crig_slot(name, b));
}

/* ---- reads ------------------------------------------------------------------------------- */

static void a_hit_is_served_from_the_cache_and_is_no_use_of_it(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(2), 5);
	slot_clear_flag(crig.k, crig_object("a"), 0, SLOT_REF);
	slot_clear_flag(crig.k, crig_object("a"), 1, SLOT_REF);
	for (unsigned i = 0; i < 3; i++)
		expect_once("a", 0, B(1), 5);
	assert_int_equal(crig_counter(CC_BYPASSED_ONCE), 0);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_false(order_is_hot(crig_slot("a", 0)));
	crig_expect_data("a", 0, B(2), 5);
	assert_true(order_is_hot(crig_slot("a", 0)));
}

static void a_read_of_an_object_that_is_not_here_drives_none_out(void **state)
{
	(void)state;
	crig_up("objects=2");
	crig_have_clean("a", 0, B(1), 5);
	crig_have_clean("b", 0, B(1), 6);
	crig_store_fill("c", 0, B(1), 7);
	expect_once("c", 0, B(1), 7);
	assert_null(crig_object("c"));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
	assert_int_equal(crig_counter(CC_BYPASSED_ONCE), 1);
}

static void a_miss_goes_to_the_store_with_its_flag_and_leaves_nothing(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(40), 5);
	for (uint32_t b = 0; b < 40; b += 2)	/* as a stream would */
		expect_once("a", B(b), B(2), 5);
	assert_int_equal(crig_nr_calls(), 20);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(crig_call(i)->size, B(2));
		assert_true(crig_call(i)->flags & XSEG_REQ_ONCE);
	}
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	assert_int_equal(crig_counter(CC_READ_AHEAD_BYTES), 0);
	assert_int_equal(crig_counter(CC_BYPASSED_ONCE), 20);
	assert_null(crig_object("a"));
	crig_admin("status");
	assert_int_equal(crig_number("bypassed"), 20);
	assert_int_equal(crig_number("bypassed_by.once"), 20);
}

static void a_scan_evicts_nothing_from_a_full_cache(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(4);
	crig_have_clean("a", 0, B(4), 5);
	crig_store_fill("b", 0, B(64), 6);
	for (uint32_t b = 0; b < 64; b += 8)
		expect_once("b", B(b), B(8), 6);
	for (uint32_t b = 0; b < 4; b++)
		assert_int_equal(crig_state("a", b), BUCKET_VALID);
	assert_int_equal(crig_counter(CC_EVICTED_CLEAN), 0);
}

static void absent_buckets_beside_dirty_ones_are_loaded_and_go_when_they_are_read(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(8), 5);
	crig_expect(crig_write("a", B(2), B(1), 6), B(1));
	crig_expect(read_once("a", 0, B(5), 0), B(5));
	assert_int_equal(crig_state("a", 2), BUCKET_DIRTY);
	assert_int_equal(crig_object("a")->nr[BUCKET_VALID], 0);
	assert_int_equal(crig_counter(CC_BYPASSED_ONCE), 0);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
	assert_true(crig_call(0)->flags & XSEG_REQ_ONCE);
	crig_expect_data("a", B(2), B(1), 6);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", B(2), B(1), 6));
}

static void such_a_read_has_the_dirty_data_and_the_store_s(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(8), 5);
	crig_expect(crig_write("a", B(2) + 512, 1024, 6), 1024);
	io = read_once("a", B(1), B(3), 0);
	crig_expect(io, B(3));
	assert_true(crig_data_is(io, 0, B(1) + 512, 5));
	assert_true(crig_data_is(io, B(1) + 512, 1024, 6));
	assert_true(crig_data_is(io, B(1) + 1536, B(1) + 2560, 5));
}

static void a_bucket_that_another_read_waits_for_too_stays_when_that_one_reads_it_first(
	void **state)
{
	struct crig_io *use, *once;

	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_hold(true);
	use = crig_read("a", 0, B(1));
	once = read_once("a", 0, B(2), 0);
	crig_expect_waits(once);
	crig_hold(false);
	crig_settle();
	crig_expect(use, B(1));
	crig_expect(once, B(2));
	assert_true(crig_data_is(once, 0, B(1), 5) && crig_data_is(once, B(1), B(1), 6));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_false(is_unkept("a", 0));
	assert_int_equal(crig_nr_calls(), 1);
}

static void a_read_that_joins_the_load_of_a_scan_gets_its_data(void **state)
{
	struct crig_io *use, *once;

	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_hold(true);
	once = read_once("a", 0, B(2), 0);
	use = crig_read("a", 0, B(1));
	crig_expect_waits(use);
	crig_hold(false);
	crig_settle();
	crig_expect(once, B(2));
	crig_expect(use, B(1));
	assert_true(crig_data_is(use, 0, B(1), 5));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_false(is_unkept("a", 0));
}

static void read_ahead_data_waits_for_its_own_reader(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(2), 5);
	slot_set_flag(crig.k, crig_object("a"), 0, SLOT_AHEAD);
	slot_set_flag(crig.k, crig_object("a"), 1, SLOT_AHEAD | SLOT_ONCE);
	expect_once("a", 0, B(2), 5);
	assert_true(slot_is_ahead(crig_slot("a", 0)));
	assert_true(slot_is_ahead(crig_slot("a", 1)));
}

static void a_lent_page_of_an_unkept_bucket_stays_with_the_reader(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up(QUIET);
	crig_limit(6);
	crig_store_fill("a", 0, B(8), 5);
	crig_store_fill("b", 0, B(8), 7);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	io = read_once("a", 0, B(2), XSEG_REQ_LOAN);
	assert_true(io->done && io->result == B(2));
	assert_true(slot_absent(crig_slot("a", 0)));
	for (unsigned i = 0; i < 3; i++)	/* others want pages */
		crig_expect_data("b", 0, B(4), 7);
	assert_true(crig_data_is(io, 0, B(1), 5) && crig_data_is(io, B(1), B(1), 6));
	crig_expect(io, B(2));
}

static void an_error_of_the_store_comes_to_the_reader(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_store_fill("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	/* one for the first read; the other one tries to load its own range once more */
	crig_fail_next(XSEG_OP_READ, -EIO, 3);
	crig_expect(read_once("a", B(2), B(1), 0), -EIO);
	crig_expect(read_once("a", 0, B(2), 0), -EIO);
	expect_once("a", B(1), B(1), 6);
	expect_once("a", 0, B(1), 5);
}

/* ---- writes ------------------------------------------------------------------------------ */

static void a_write_is_dirty_as_ever_and_the_first_to_go_when_it_is_clean(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(4);
	crig_store_fill("a", 0, B(4), 5);
	crig_store_fill("b", 0, B(4), 7);
	crig_have_clean("a", 0, B(2), 5);
	slot_clear_flag(crig.k, crig_object("a"), 0, SLOT_REF);
	slot_clear_flag(crig.k, crig_object("a"), 1, SLOT_REF);
	crig_expect(write_once("b", 0, B(2), 6), B(2));
	assert_int_equal(crig_state("b", 0), BUCKET_DIRTY);
	assert_true(is_unkept("b", 0) && is_unkept("b", 1));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(2));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("b", 0, B(2), 6));
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
	assert_true(is_unkept("b", 0) && is_unkept("b", 1));
	crig_expect_data("b", B(2), B(2), 7);	/* wants two pages */
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	assert_true(slot_absent(crig_slot("b", 0)) && slot_absent(crig_slot("b", 1)));
}

static void a_use_of_unkept_data_keeps_it(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_expect(write_once("a", 0, B(3), 6), B(3));
	crig_expect_data("a", 0, B(1), 6);
	assert_false(is_unkept("a", 0));
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	assert_false(is_unkept("a", 1));
	crig_expect(crig_flush(0), 0);
	assert_false(is_unkept("a", 0) || is_unkept("a", 1));
	assert_true(is_unkept("a", 2));
	expect_once("a", 0, B(3), 6);
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	assert_true(slot_absent(crig_slot("a", 2)));
}

static void a_write_over_data_that_others_use_leaves_that_its_rank(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_have_clean("a", 0, B(1), 5);
	crig_expect(crig_write("a", B(1), B(1), 5), B(1));
	crig_expect(write_once("a", 0, B(2), 6), B(2));
	assert_false(is_unkept("a", 0) || is_unkept("a", 1));
	crig_expect_data("a", 0, B(2), 6);
}

static void an_unkept_bucket_stays_so_over_a_failed_flush_and_a_newer_write(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_expect(write_once("a", 0, B(1), 6), B(1));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_true(is_unkept("a", 0));
	crig_expect(write_once("a", 0, B(1), 7), B(1));
	assert_true(is_unkept("a", 0));
	crig_pass(10 * CRIG_S);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(1), 7));
	assert_true(is_unkept("a", 0));
}

static void a_refused_bucket_may_be_unkept(void **state)
{
	(void)state;
	crig_up("policy=write-through " QUIET);
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(write_once("a", 0, B(1), 6), -EIO);
	assert_true(slot_is_refused(crig_slot("a", 0)) && is_unkept("a", 0));
	expect_once("a", 0, B(1), 6);
	assert_true(slot_is_refused(crig_slot("a", 0)));
	crig_expect_data("a", 0, B(1), 6);
	assert_false(is_unkept("a", 0));
	assert_true(slot_is_refused(crig_slot("a", 0)));
}

static void a_write_drives_no_object_out_and_goes_past_a_full_cache(void **state)
{
	(void)state;
	crig_up("objects=2 " QUIET);
	crig_have_clean("a", 0, B(1), 5);
	crig_have_clean("b", 0, B(1), 5);
	crig_expect(write_once("c", 0, B(1), 6), B(1));
	assert_true(crig_stored("c", 0, B(1), 6));
	assert_int_equal(crig_counter(CC_WRITES_BYPASSED), 1);
	assert_true(crig_call(crig_nr_calls() - 1)->flags & XSEG_REQ_ONCE);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
}

static void a_killed_cache_loses_nothing_of_it(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_expect(write_once("a", 0, B(2), 6), B(2));
	crig_kill();
	assert_int_equal(crig_open(QUIET), 0);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	expect_once("a", 0, B(2), 6);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(2), 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_hit_is_served_from_the_cache_and_is_no_use_of_it),
		CRIG_T(a_read_of_an_object_that_is_not_here_drives_none_out),
		CRIG_T(a_miss_goes_to_the_store_with_its_flag_and_leaves_nothing),
		CRIG_T(a_scan_evicts_nothing_from_a_full_cache),
		CRIG_T(absent_buckets_beside_dirty_ones_are_loaded_and_go_when_they_are_read),
		CRIG_T(such_a_read_has_the_dirty_data_and_the_store_s),
		CRIG_T(a_bucket_that_another_read_waits_for_too_stays_when_that_one_reads_it_first),
		CRIG_T(a_read_that_joins_the_load_of_a_scan_gets_its_data),
		CRIG_T(read_ahead_data_waits_for_its_own_reader),
		CRIG_T(a_lent_page_of_an_unkept_bucket_stays_with_the_reader),
		CRIG_T(an_error_of_the_store_comes_to_the_reader),
		CRIG_T(a_write_is_dirty_as_ever_and_the_first_to_go_when_it_is_clean),
		CRIG_T(a_use_of_unkept_data_keeps_it),
		CRIG_T(a_write_over_data_that_others_use_leaves_that_its_rank),
		CRIG_T(an_unkept_bucket_stays_so_over_a_failed_flush_and_a_newer_write),
		CRIG_T(a_refused_bucket_may_be_unkept),
		CRIG_T(a_write_drives_no_object_out_and_goes_past_a_full_cache),
		CRIG_T(a_killed_cache_loses_nothing_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
