/* cached_unpromised_test - data of writes that were answered with an error, and other writes' data
 * in the same buckets (peers/cached/flush/unpromised.c).
 */
#include "tests/rig/cached_rig.h"

#define QUIET	"dirty_age=1h dirty_high=100 dirty_low=100"
#define THROUGH "policy=write-through " QUIET

static void expect_bytes(uint64_t dirty, uint64_t unpromised)
{
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), dirty);
	assert_int_equal(crig_counter(CC_UNPROMISED_BYTES), unpromised);
}

static void store_is_full(bool full)
{
	crig_fail_next(XSEG_OP_WRITE, full ? -ENOSPC : 0, full ? UINT32_MAX : 0);
}

static void write_fails(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	crig_expect(crig_write(name, offset, size, seed), -ENOSPC);
}

static void data_of_a_write_that_failed_is_counted_apart_until_the_store_has_it(void **state)
{
	(void)state;
	crig_up(THROUGH);
	crig_volume(1);
	store_is_full(true);
	write_fails("a", 0, B(2), 5);
	expect_bytes(0, B(2));
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("unpromised_bytes"), B(2));
	assert_int_equal(crig_volume_number(1, "unpromised_bytes"), B(2));
	crig_expect_data("a", 0, B(2), 5);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	assert_true(crig_stored("a", 0, B(2), 5));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	expect_bytes(0, 0);
}

static void writes_that_fail_do_not_fill_the_cache(void **state)
{
	char name[2] = "a";

	(void)state;
	crig_up(THROUGH);
	crig_store_fill("a", 0, B(2), 3);
	crig_limit(16);
	store_is_full(true);
	for (; name[0] <= 'z'; name[0]++)
		write_fails(name, 0, B(2), 5);
	assert_true(crig_counter(CC_EVICTED_UNPROMISED) >= 36);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	crig_expect_data("a", 0, B(2), 3);
	store_is_full(false);
	crig_expect(crig_write("b", 0, B(2), 6), B(2));
	assert_true(crig_stored("b", 0, B(2), 6));
}

static void nor_do_they_take_all_entries_of_objects(void **state)
{
	char name[2] = "a";

	(void)state;
	crig_up(THROUGH " objects=3");
	store_is_full(true);
	crig_fail_next(CRIG_ANY, -ENOSPC, UINT32_MAX);
	for (; name[0] <= 'z'; name[0]++) {
		write_fails(name, 0, B(1), 5);
		crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, name, B(1), B(1)), -ENOSPC);
	}
}

/* Reads need pages until nothing else is left that may go. */
static void need_all_pages(void)
{
	crig_store_fill("read", 0, B(64), 7);
	for (uint32_t i = 0; i < 128; i++)
		crig_expect(crig_read("read", B(i % 64), B(1)), B(1));
}

static void acknowledged_data_that_a_failed_write_has_overwritten_stays(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_limit(16);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_expect(crig_write("a", B(1), B(1), 5), B(1));
	store_is_full(true);
	crig_set("policy=write-back");
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_set("policy=write-through");
	write_fails("a", 512, 512, 8);
	write_fails("a", B(1), B(1), 8);
	expect_bytes(B(1), B(1));
	need_all_pages();
	expect_bytes(B(1), 0);
	crig_expect_data("a", 0, 512, 6);
	crig_expect_data("a", 1024, 512, 6);
	crig_expect_data("a", B(1), B(1), 5);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	assert_true(crig_stored("a", 0, 512, 6) && crig_stored("a", 1024, 512, 6));
}

static void an_acknowledged_write_promises_what_a_failed_one_has_left(void **state)
{
	(void)state;
	crig_up(THROUGH);
	crig_limit(16);
	store_is_full(true);
	write_fails("a", 0, B(2), 5);
	crig_set("policy=write-back");
	crig_expect(crig_write("a", 512, 512, 6), 512);	/* in part */
	expect_bytes(B(1), B(1));
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));	/* the short way */
	expect_bytes(B(2), 0);
	need_all_pages();
	expect_bytes(B(2), 0);
	crig_expect_data("a", 512, 512, 6);
	store_is_full(false);
	crig_expect(crig_flush(0), 0);
	expect_bytes(0, 0);
	assert_true(crig_stored("a", 512, 512, 6) && crig_stored("a", B(1), B(1), 6));
}

static void what_is_at_the_store_is_not_given_up(void **state)
{
	struct crig_io *io, *read[20];
	unsigned i;

	(void)state;
	crig_up(THROUGH);
	crig_limit(16);
	crig_hold(true);
	io = crig_write("a", 0, B(4), 5);
	for (i = 0; i < 20; i++)
		read[i] = crig_read("read", B(i), B(1));
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	expect_bytes(0, B(4));
	crig_hold(false);
	crig_expect(io, B(4));
	for (i = 0; i < 20; i++)
		crig_expect(read[i], B(1));
	assert_true(crig_stored("a", 0, B(4), 5));
}

/* The newer write is not answered yet when the older one fails. */
static void nor_is_what_a_write_waits_for_that_came_after_the_one_that_failed(void **state)
{
	struct crig_io *older, *newer;

	(void)state;
	crig_up(THROUGH);
	crig_hold(true);
	older = crig_write("a", 0, B(1), 5);
	newer = crig_write("a", 0, B(1), 6);
	crig_fail(0, -EIO);
	crig_expect(older, -EIO);
	crig_expect_waits(newer);
	assert_false(crig_slot("a", 0) & SLOT_REFUSED);
	crig_hold(false);
	crig_expect(newer, B(1));
	assert_true(crig_stored("a", 0, B(1), 6));
}

static void a_successor_knows_what_is_promised(void **state)
{
	(void)state;
	crig_up(QUIET);
	store_is_full(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	write_fails("a", 0, B(2), 6);
	expect_bytes(B(1), B(1));
	crig_kill();
	assert_int_equal(crig_open(THROUGH), 0);
	crig_settle();
	expect_bytes(B(1), B(1));
	crig_limit(16);
	crig_expect(crig_flush(0), -ENOSPC);
	need_all_pages();
	expect_bytes(B(1), 0);
	crig_expect_data("a", B(1), B(1), 0);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	expect_bytes(0, 0);
}

/* What the failed write lies on was acknowledged, and the store may have lost it. */
static void a_flush_that_fails_promises_what_lies_on_data_that_may_be_lost(void **state)
{
	(void)state;
	crig_up(THROUGH);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_write("a", B(1), B(1), 5), B(1));
	store_is_full(true);
	write_fails("a", 512, 512, 6);
	write_fails("a", B(1) + 512, 512, 6);
	expect_bytes(0, B(2));
	crig_expect(crig_write_fua("b", 0, B(1), 7), -ENOSPC);
	expect_bytes(B(1), B(2));
	assert_true(slot_is_promised(crig_slot("a", 1)));
	store_is_full(false);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", B(1), 512, 5) && crig_stable("a", B(1) + 1024, 512, 5));
}

/* The write is answered before the store has anything, as its cut covers it; so the cut's data is
 * promised, though the cut itself fails. */
static void a_voided_write_that_is_acknowledged_promises_what_its_cut_has_left(void **state)
{
	struct crig_io *write, *cut;

	(void)state;
	crig_up(QUIET);
	crig_expect(crig_write("a", B(8), B(1), 5), B(1));	/* it has slots */
	crig_hold(true);
	crig_fill(24, 0);
	write = crig_write("a", 0, B(2), 5);
	assert_int_equal(crig_creq(write)->state, CREQ_WAITS_MEMORY);
	crig_set("policy=write-through");
	cut = crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2));
	crig_expect(write, B(2));
	crig_expect_waits(cut);
	assert_true(slot_is_promised(crig_slot("a", 0)) && slot_is_promised(crig_slot("a", 1)));
	crig_hold(false);
	crig_pass(10 * CRIG_S);
	crig_expect(cut, B(2));
}

static void what_is_dropped_goes_also_where_it_is_zeroes(void **state)
{
	(void)state;
	crig_up(THROUGH);
	crig_fail_next(CRIG_ANY, -ENOSPC, UINT32_MAX);
	write_fails("a", 0, B(2), 5);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(4), B(2)), -ENOSPC);
	expect_bytes(0, B(4));
	assert_true(crig_admin("drop") > 0);
	expect_bytes(0, 0);
	crig_fail_next(CRIG_ANY, 0, 0);
	crig_expect_data("a", 0, B(6), 0);
}

static void a_stop_does_not_wait_for_it(void **state)
{
	(void)state;
	crig_up(THROUGH);
	store_is_full(true);
	write_fails("a", 0, B(2), 5);
	crig_stop();
}

static void a_cache_that_shrinks_gives_it_up(void **state)
{
	(void)state;
	crig_up(THROUGH " memory=8M");
	store_is_full(true);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t at = 0; at < 4u << 20; at += XSEG_REQ_BYTES)
			write_fails(i ? i > 1 ? "c" : "b" : "a", at, XSEG_REQ_BYTES, 5);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	assert_true(crig_counter(CC_UNPROMISED_BYTES) <= 4u << 20);
	assert_true(nr_owned(crig.k) <= 1024);
}

/* Its volume has a maximum, and is there. */
static void a_volume_at_its_maximum_gives_up_its_own(void **state)
{
	(void)state;
	crig_up(THROUGH);
	crig_volume(1);
	crig_volume_set("id=1 name=v max=1M");
	store_is_full(true);
	for (uint32_t at = 0; at < 4u << 20; at += XSEG_REQ_BYTES)
		write_fails("a", at, XSEG_REQ_BYTES, 5);
	assert_true(crig_volume_number(1, "used_bytes") <= 1u << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(data_of_a_write_that_failed_is_counted_apart_until_the_store_has_it),
		CRIG_T(writes_that_fail_do_not_fill_the_cache),
		CRIG_T(nor_do_they_take_all_entries_of_objects),
		CRIG_T(acknowledged_data_that_a_failed_write_has_overwritten_stays),
		CRIG_T(an_acknowledged_write_promises_what_a_failed_one_has_left),
		CRIG_T(what_is_at_the_store_is_not_given_up),
		CRIG_T(nor_is_what_a_write_waits_for_that_came_after_the_one_that_failed),
		CRIG_T(a_successor_knows_what_is_promised),
		CRIG_T(a_flush_that_fails_promises_what_lies_on_data_that_may_be_lost),
		CRIG_T(a_voided_write_that_is_acknowledged_promises_what_its_cut_has_left),
		CRIG_T(what_is_dropped_goes_also_where_it_is_zeroes),
		CRIG_T(a_stop_does_not_wait_for_it),
		CRIG_T(a_cache_that_shrinks_gives_it_up),
		CRIG_T(a_volume_at_its_maximum_gives_up_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
