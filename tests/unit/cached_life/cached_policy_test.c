/* cached_policy_test - write-back, write-through, FUA, and switching between them
 * (peers/cached/policy_*.c, write.c). */
#include "tests/rig/cached_rig.h"

static void write_through_waits_for_the_store(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	io = crig_write("a", 0, B(2), 5);
	crig_expect_waits(io);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->flags, 0);
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	crig_expect_data("a", 0, B(2), 5);
	crig_answer(0);
	crig_expect(io, B(2));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

/* Whoever looks at a cache that died has nothing but the segment's word. */
static void a_policy_that_is_set_is_in_the_segment_at_once(void **state)
{
	uint64_t before;

	(void)state;
	crig_up("policy=write-back");
	crig_settle();
	before = crig_counter(CC_POLICY);
	crig_set("policy=write-through");
	crig_settle();
	assert_int_not_equal(crig_counter(CC_POLICY), before);
	crig_set("policy=write-back");
	crig_settle();
	assert_int_equal(crig_counter(CC_POLICY), before);
}

static void an_error_of_write_through_is_told_and_the_bucket_stays_dirty(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	io = crig_write("a", 0, B(1), 5);
	crig_fail(0, -ENOSPC);
	crig_expect(io, -ENOSPC);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_expect_data("a", 0, B(1), 5);
	crig_hold(false);
	crig_pass(10 * CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 5));
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
}

static void write_through_of_part_of_a_bucket_keeps_older_dirty_sectors_when_the_store_fails(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_hold(true);
	io = crig_write("a", 512, 512, 6);
	while (crig_nr_held())
		crig_fail(crig_held(CRIG_ANY, 0), -EIO);
	crig_expect(io, -EIO);
	crig_hold(false);
	crig_pass(10 * CRIG_S);
	assert_true(crig_stored("a", 0, 512, 5) && crig_stored("a", 512, 512, 6) &&
		    crig_stored("a", 1024, 512, 5));
}

static void write_through_of_a_bucket_whose_older_page_is_in_flight_waits_for_its_own(void **state)
{
	struct crig_io *old, *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	old = crig_write("a", 0, B(1), 5);
	io = crig_write("a", 0, B(1), 6);
	assert_int_equal(crig_nr_calls(), 1);
	assert_true(crig_slot("a", 0) & SLOT_INFLIGHT);
	crig_answer(0);
	crig_expect(old, B(1));
	crig_expect_waits(io);
	assert_true(crig_stored("a", 0, B(1), 5));
	assert_int_equal(crig_nr_calls(), 2);
	crig_answer(1);
	crig_expect(io, B(1));
	assert_true(crig_stored("a", 0, B(1), 6));
}

static void many_write_through_writes_do_not_wait_for_the_age_when_requests_run_out(void **state)
{
	struct crig_io *io[24];
	char name[2] = "a";

	(void)state;
	crig_up("policy=write-through requests=8");
	crig_hold(true);
	for (unsigned i = 0; i < 24; i++, name[0]++)
		io[i] = crig_write(name, 0, B(1), 5);
	assert_int_equal(crig_nr_held(), crig_share());
	crig_hold(false);
	for (unsigned i = 0; i < 24; i++)
		crig_expect(io[i], B(1));
}

static void neighbours_written_through_one_request_are_one_write_to_the_store(void **state)
{
	(void)state;
	crig_up("policy=write-through");
	crig_expect(crig_write("a", 0, XSEG_REQ_BYTES, 5), XSEG_REQ_BYTES);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->size, XSEG_REQ_BYTES);
}

static void fua_in_write_back_is_answered_when_it_is_stable(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_hold(true);
	io = crig_write_fua("a", 0, B(2), 5);
	crig_expect_waits(io);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->flags, XSEG_REQ_FUA);
	crig_answer(0);
	crig_expect(io, B(2));
	assert_true(crig_stable("a", 0, B(2), 5));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));	/* the next is an ordinary one again */
	crig_pass(6 * CRIG_S);
	assert_int_equal(crig_call(1)->flags, 0);
	crig_answer(1);
}

static void fua_over_a_page_in_flight_without_fua_waits_for_a_write_with_fua(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_nr_calls(), 1);
	io = crig_write_fua("a", 512, 512, 6);
	crig_answer(0);
	crig_expect_waits(io);
	assert_int_equal(crig_call(1)->flags, XSEG_REQ_FUA);
	crig_answer(1);
	crig_expect(io, 512);
	assert_true(crig_stable("a", 512, 512, 6) && crig_stable("a", 0, 512, 5));
}

static void fua_gets_the_store_s_error(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_hold(true);
	io = crig_write_fua("a", 0, B(1), 5);
	crig_fail(0, -EIO);
	crig_expect(io, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
}

static void the_policy_is_sampled_once_a_request_and_switches_live(void **state)
{
	struct crig_io *waits;

	(void)state;
	crig_up("");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	waits = crig_write("b", 0, B(1), 6);
	crig_expect_waits(waits);
	assert_true(crig_admin("status") > 0);
	assert_true(crig_says("policy=write-through\n") && crig_says("state=draining\n"));
	assert_true(crig_says("draining.from=write-back\n"));
	assert_int_equal(crig_number("draining.bytes_left"), B(1));
	assert_int_equal(crig_number("draining.percent"), 0);
	crig_set("policy=write-back");
	crig_expect(crig_write("c", 0, B(1), 7), B(1));
	crig_expect_waits(waits);
	crig_hold(false);
	crig_expect(waits, B(1));
	assert_true(crig_admin("status") > 0);
	assert_true(crig_says("policy=write-back\n") && crig_says("state=running\n"));
}

static void switching_to_write_through_drains_at_once_and_then_runs(void **state)
{
	(void)state;
	crig_up("");
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("a", B(i * 2), B(1), 5), B(1));
	crig_hold(true);
	crig_set("policy=write-through");
	assert_int_equal(crig_nr_held(), 4);
	crig_pass(CRIG_S);
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("draining.rate"), 0);
	assert_false(crig_says("draining.eta_ms="));
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_pass(CRIG_S);
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("draining.percent"), 25);
	assert_int_equal(crig_number("draining.bytes_left"), B(3));
	assert_int_equal(crig_number("draining.rate"), B(1) / 2);
	assert_int_equal(crig_number("draining.eta_ms"), 6000);
	assert_int_equal(crig_number("flushed_by.switch"), 4);
	crig_hold(false);
	assert_true(crig_admin("status") > 0);
	assert_true(crig_says("state=running\n") && !crig_says("draining."));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void a_policy_that_was_set_survives_a_kill_and_so_does_its_draining(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	crig_hold(true);
	crig_set("policy=write-through");
	crig_kill();
	crig_hold(false);
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_pass(10 * CRIG_MS);
	assert_true(crig_admin("status") > 0 && crig_says("policy=write-through\n"));
	assert_true(crig_stored("a", 0, B(4), 5));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	crig_hold(true);
	io = crig_write("a", 0, B(1), 6);
	crig_expect_waits(io);
	crig_hold(false);
	crig_expect(io, B(1));
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h policy=write-around"), 0);
	crig_settle();
	assert_true(crig_admin("status") > 0 && crig_says("policy=write-around\n"));
	crig_stop();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_settle();
	assert_true(crig_admin("status") > 0 && crig_says("policy=write-back\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(write_through_waits_for_the_store),
		CRIG_T(a_policy_that_was_set_survives_a_kill_and_so_does_its_draining),
		CRIG_T(a_policy_that_is_set_is_in_the_segment_at_once),
		CRIG_T(an_error_of_write_through_is_told_and_the_bucket_stays_dirty),
		CRIG_T(write_through_of_part_of_a_bucket_keeps_older_dirty_sectors_when_the_store_fails),
		CRIG_T(write_through_of_a_bucket_whose_older_page_is_in_flight_waits_for_its_own),
		CRIG_T(many_write_through_writes_do_not_wait_for_the_age_when_requests_run_out),
		CRIG_T(neighbours_written_through_one_request_are_one_write_to_the_store),
		CRIG_T(fua_in_write_back_is_answered_when_it_is_stable),
		CRIG_T(fua_over_a_page_in_flight_without_fua_waits_for_a_write_with_fua),
		CRIG_T(fua_gets_the_store_s_error),
		CRIG_T(the_policy_is_sampled_once_a_request_and_switches_live),
		CRIG_T(switching_to_write_through_drains_at_once_and_then_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
