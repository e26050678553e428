/* cached_flush_test - from dirty to clean: errors, FLUSH and its promise
 * (peers/cached/flush/flush.c).
 */
#include "tests/rig/cached_rig.h"
#include "xseg/internal.h"

static uint32_t held_write(void)
{
	return crig_held(XSEG_OP_WRITE, 0);
}

/* Every object of `name` to name+nr-1 gets a dirty bucket. */
static void dirty_objects(char name, unsigned nr)
{
	char text[2] = { name, '\0' };

	for (unsigned i = 0; i < nr; i++, text[0]++)
		crig_expect(crig_write(text, 0, B(1), 5), B(1));
}

/* ---- errors ------------------------------------------------------------------------------ */

static void a_flush_that_fails_leaves_it_dirty_and_is_tried_again_after_a_growing_pause(void **state)
{
	static const uint64_t pause_ms[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };

	(void)state;
	crig_up("dirty_age=10s");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 8);
	crig_pass(10 * CRIG_S);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(crig_nr_calls(), i + 1);
		assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
		assert_int_equal(crig_object("a")->state, OBJECT_FAILED);
		crig_expect_data("a", 0, B(2), 5);
		crig_pass(pause_ms[i] * CRIG_MS - 1);
		assert_int_equal(crig_nr_calls(), i + 1);
		crig_pass(1);
	}
	assert_int_equal(crig_nr_calls(), 9);
	assert_true(crig_stored("a", 0, B(2), 5));
	assert_int_equal(crig_object("a")->state, OBJECT_READY);
	assert_int_equal(crig_counter(CC_FLUSH_ERRORS), 8);
	crig_expect(crig_write("a", 0, B(2), 6), B(2));	/* a success makes the pause short again */
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_pass(10 * CRIG_S + 100 * CRIG_MS);
	assert_true(crig_stored("a", 0, B(2), 6));
}

static void flushes_that_were_out_together_and_fail_make_one_pause(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up("dirty_age=1s");
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("a", B(2 * i), B(1), 5), B(1));
	crig_hold(true);
	crig_pass(CRIG_S);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 4);
	for (uint32_t i = 0; i < 4; i++) {
		crig_pass(10 * CRIG_MS);	/* it waits from the last one on */
		crig_fail(i, -EIO);
	}
	calls = crig_nr_calls();
	crig_pass(100 * CRIG_MS - 1);
	assert_int_equal(crig_nr_calls(), calls);
	crig_hold(false);
	crig_pass(1);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(crig_stored("a", B(2 * i), B(1), 5));
	assert_int_equal(crig_counter(CC_FLUSH_ERRORS), 4);
}

static void a_short_flush_is_an_error(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_pass(2 * CRIG_MS);
	crig_short(0, B(1));
	assert_int_equal(crig_object("a")->nr[BUCKET_DIRTY], 2);
	crig_pass(CRIG_S);
	crig_hold(false);
	assert_true(crig_stored("a", 0, B(2), 5));
}

/* Whoever does that harms what is written, and nothing else: the cache knows by itself which pages
 * it has sent. */
static void a_flush_whose_list_of_pages_is_written_over_on_its_way_ends_as_any_other(void **state)
{
	uint32_t nr = 0;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig.now_ns += 2 * CRIG_MS;
	crig_step_poll();
	for (uint32_t i = 0; i < crig.seg->geo.nr_requests; i++) {
		struct xs_req *r = &crig.seg->reqs[i];

		if (r->origin == crig.peer->ports[0].port->index &&
			place_state(atomic_load(&r->place)) == XSEG_REQ_PRIVATE) {
			r->page[0].page ^= 1;
			nr++;
		}
	}
	assert_int_equal(nr, 1);
	crig_settle();
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	crig_expect_data("a", 0, B(2), 5);
}

/* Its flush begins within age_ns, and fails so often that the next try is 3.2 s away; the store
 * holds then. */
static void fail_often(const char *name, uint64_t age_ns)
{
	crig_hold(true);
	crig_expect(crig_write(name, 0, B(1), 5), B(1));
	crig_pass(age_ns);
	for (unsigned i = 0; i < 5; i++) {
		crig_fail(held_write(), -EIO);
		crig_pass(1600 * CRIG_MS);
	}
	crig_fail(held_write(), -EIO);
}

static void an_object_whose_flush_fails_keeps_no_other_waiting(void **state)
{
	(void)state;
	crig_up("dirty_age=1s");
	fail_often("a", CRIG_S);
	crig_hold(false);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_pass(1100 * CRIG_MS);
	assert_true(crig_stored("b", 0, B(1), 6));
	assert_false(crig_stored("a", 0, B(1), 5));
	crig_pass(3 * CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void data_written_again_while_its_flush_fails_is_tried_in_time(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	crig_flush(0);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	while (held_write() != CRIG_NEVER)
		crig_fail(held_write(), -EIO);
	crig_hold(false);
	crig_pass(CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 5) && crig_stored("a", B(1), B(1), 6));
}

static void a_flush_with_nothing_dirty_has_what_failed_tried_again(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_volume(1);
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_object("a")->state, OBJECT_FAILED);
	crig_pass(1);
	assert_false(crig_stored("a", 0, B(1), 5));
	crig_expect(crig_flush(2), 0);
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void a_flush_that_succeeds_ends_the_pause_after_one_that_failed(void **state)
{
	uint32_t failed;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_write("a", B(4), B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_nr_held(), 2);
	failed = held_write();
	crig_fail(failed, -EIO);
	crig_pass(1);
	assert_int_equal(crig_nr_held(), 1);
	crig_answer(held_write());
	assert_int_equal(crig_nr_held(), 1);
	crig_hold(false);
	assert_true(crig_stored("a", 0, B(1), 5) && crig_stored("a", B(4), B(1), 6));
}

/* Of "a" the first, of "b" the second. */
static void up_with_a_long_pause_and_a_short_one(void)
{
	crig_up("dirty_age=1ms");
	fail_often("a", 2 * CRIG_MS);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	crig_fail(held_write(), -EIO);
	crig_hold(false);
}

static void a_short_pause_does_not_wait_for_another_s_long_one(void **state)
{
	(void)state;
	up_with_a_long_pause_and_a_short_one();
	crig_pass(100 * CRIG_MS);
	assert_true(crig_stored("b", 0, B(1), 6));
	assert_false(crig_stored("a", 0, B(1), 5));
	crig_pass(3100 * CRIG_MS);
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void a_flush_has_all_tried_again_however_long_their_pauses(void **state)
{
	(void)state;
	up_with_a_long_pause_and_a_short_one();
	crig_pass(1);
	assert_false(crig_stored("b", 0, B(1), 6) || crig_stored("a", 0, B(1), 5));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("b", 0, B(1), 6) && crig_stored("a", 0, B(1), 5));
}

static void a_write_to_what_failed_leaves_it_the_try_that_a_flush_has_made(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms requests=8");
	fail_often("a", 2 * CRIG_MS);
	crig_hold(false);
	crig_send(XSEG_OP_FLUSH, "", 0, 0, 0, 0);
	crig_step_request();
	crig_send(XSEG_OP_WRITE, "a", B(1), B(1), 0, 6);
	crig_step_request();
	crig_settle();
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void a_flush_that_succeeds_ends_the_pause_behind_another_s_long_one(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	fail_often("a", 2 * CRIG_MS);
	crig_expect(crig_write("b", 0, B(1), 5), B(1));
	crig_expect(crig_write("b", B(4), B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_nr_held(), 2);
	crig_fail(held_write(), -EIO);
	crig_hold(false);
	crig_pass(1);
	assert_true(crig_stored("b", 0, B(1), 5) && crig_stored("b", B(4), B(1), 6));
}

static void what_is_written_after_a_delete_has_no_pause_of_before(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	fail_often("a", 2 * CRIG_MS);
	crig_hold(false);
	crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	assert_true(crig_stored("a", B(1), B(1), 6));
}

static void a_flush_that_covers_what_could_not_be_written_gets_the_error_and_another_volume_s_does_not(void **state)
{
	struct crig_io *mine, *other, *all;

	(void)state;
	crig_up("");
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_volume(2);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_hold(true);
	mine = crig_flush(1);
	other = crig_flush(2);
	all = crig_flush(0);
	assert_int_equal(crig_nr_held(), 2);
	crig_pass(1);
	crig_fail(crig_held(CRIG_ANY, 0), -ENOSPC);	/* "a" is the older one */
	crig_expect(mine, -ENOSPC);
	crig_expect(all, -ENOSPC);
	crig_expect_waits(other);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_hold(false);
	crig_expect(other, 0);
	assert_false(crig_stored("a", 0, B(1), 5));
	crig_pass(1);				/* long before it would be tried again by itself */
	crig_expect(crig_flush(1), 0);
	assert_true(crig_stable("a", 0, B(1), 5) && crig_stable("b", 0, B(1), 6));
}

static void a_flush_does_not_get_the_error_of_what_was_written_after_it(void **state)
{
	struct crig_io *flush;
	uint32_t newer;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	flush = crig_flush(0);
	crig_expect(crig_write("a", B(4), B(1), 6), B(1));
	crig_pass(2 * CRIG_MS);
	newer = crig_held(XSEG_OP_WRITE, 1);
	assert_int_not_equal(newer, CRIG_NEVER);
	crig_fail(newer, -EIO);
	crig_expect_waits(flush);
	crig_answer(0);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
}

static void the_store_s_own_flush_error_is_the_answer(void **state)
{
	(void)state;
	crig_up("");
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	crig_expect(crig_flush(0), 0);
}

/* ---- FLUSH ------------------------------------------------------------------------------- */

static void a_flush_with_nothing_dirty_still_goes_to_the_store(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("");
	crig_hold(true);
	flush = crig_flush(7);
	crig_expect_waits(flush);
	assert_int_equal(crig_nr_calls(), 1);
	assert_int_equal(crig_call(0)->op, XSEG_OP_FLUSH);
	assert_int_equal(crig_call(0)->volume, 7);
	assert_string_equal(crig_call(0)->target, "vol:");
	crig_answer(0);
	crig_expect(flush, 0);
}

static void a_flush_is_answered_when_all_before_it_is_stable(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("");
	dirty_objects('a', 3);
	crig_hold(true);
	flush = crig_flush(0);
	assert_int_equal(crig_nr_held(), 3);
	crig_answer(2);
	crig_answer(0);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, 0), 0);
	crig_answer(1);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, 0), 1);
	crig_expect_waits(flush);
	crig_answer(3);
	crig_expect(flush, 0);
	assert_true(crig_stable("a", 0, B(1), 5) && crig_stable("b", 0, B(1), 5) &&
		    crig_stable("c", 0, B(1), 5));
}

static void a_flush_of_one_volume_does_not_wait_for_another_s(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("");
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_volume(2);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_hold(true);
	flush = crig_flush(2);
	for (uint32_t i = 0; i < crig_nr_calls(); i++)
		if (!strcmp(crig_call(i)->target, "b"))
			crig_answer(i);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
	assert_false(crig_stored("a", 0, B(1), 5));
}

static void writes_that_keep_coming_do_not_prolong_a_flush(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	flush = crig_flush(0);
	for (uint32_t i = 0; i < 20; i++) {
		crig_expect(crig_write("a", B(2 + i * 2), B(1), 6), B(1));
		crig_expect(crig_write("a", 0, B(1), 20 + i), B(1));
	}
	crig_answer(0);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
	assert_true(crig_stable("a", 0, B(1), 5));
}

/* The older page's place in the older set is taken by the newer one, if it does not get out. */
static void a_bucket_dirty_in_an_older_set_and_written_again_is_still_covered(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("requests=8");
	crig_hold(true);
	for (uint32_t i = 0; i < crig_share(); i++) {	/* all flushes are out: "a" cannot start */
		crig_expect(crig_write("b", B(i * 2), B(1), 5), B(1));
	}
	flush = crig_flush(9);					/* of a volume without data */
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_flush(0);						/* all that was before */
	flush = crig_flush(1);
	assert_int_equal(crig_nr_held(), crig_share());
	crig_expect(crig_write("a", 0, B(1), 7), B(1));		/* in its first set still */
	crig_expect_waits(flush);
	while (crig_state("a", 0) != BUCKET_VALID)
		crig_answer(held_write());
	assert_true(crig_stored("a", 0, B(1), 7));
	crig_hold(false);
	crig_expect(flush, 0);
	assert_true(crig_stable("a", 0, B(1), 7));
}

static void the_newer_data_of_a_failed_older_flush_is_covered_by_the_next_flush(void **state)
{
	struct crig_io *first, *second;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	first = crig_flush(0);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));		/* a newer set */
	second = crig_flush(0);
	crig_fail(0, -EIO);
	crig_expect(first, -EIO);
	crig_expect(second, -EIO);
	crig_pass(1);
	second = crig_flush(0);
	crig_expect_waits(second);
	crig_hold(false);
	crig_expect(second, 0);
	assert_true(crig_stable("a", 0, B(1), 6));
}

static void more_flushes_than_tickets_are_all_answered(void **state)
{
	struct crig_io *flush[100];

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	for (unsigned i = 0; i < 100; i++) {
		flush[i] = crig_flush(0);
		crig_expect(crig_write("a", B(2 + i), B(1), 6), B(1));
	}
	crig_hold(false);
	for (unsigned i = 0; i < 100; i++)
		crig_expect(flush[i], 0);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(1), 5) && crig_stable("a", B(2), B(100), 6));
}

static void flushes_that_share_the_last_ticket_need_no_further_flush(void **state)
{
	struct crig_io *flush[64];

	(void)state;
	crig_up("");
	crig_volume(3);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	for (unsigned i = 0; i < 64; i++)
		flush[i] = crig_flush(i % 2 ? 0 : 3);
	crig_hold(false);
	for (unsigned i = 0; i < 64; i++)
		crig_expect(flush[i], 0);
}

static void a_flush_beside_a_bucket_in_flight_polls_no_more_than_needed(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	flush = crig_flush(0);			/* the rig fails a cached that spins */
	crig_expect_waits(flush);
	crig_hold(false);
	crig_expect(flush, 0);
	assert_true(crig_stable("a", 0, B(1), 6));
}

static void a_flush_waits_for_a_request_of_its_own_like_all(void **state)
{
	struct crig_io *read[16], *info[8], *flush;
	uint32_t n, i;

	(void)state;
	crig_up("requests=8");
	crig_hold(true);
	for (n = 0; n < crig_share(); n++)
		read[n] = crig_read("b", B(n * 2), B(1));
	for (i = 0; n + i < crig_share() * 4 / 3; i++)
		info[i] = crig_op(XSEG_OP_INFO, "b", 0, 0);
	flush = crig_flush(0);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, 0), 0);
	crig_answer(0);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, 0), 1);
	crig_hold(false);
	crig_expect(flush, 0);
	while (n)
		crig_expect(read[--n], B(1));
	while (i)
		crig_expect(info[--i], -ENOENT);
}

/* The first write from that call on that the store holds, and is not of that object. */
static uint32_t held_beside(const char *name)
{
	uint32_t call = crig_held(XSEG_OP_WRITE, 0);

	while (call != CRIG_NEVER && !strcmp(crig_call(call)->target, name))
		call = crig_held(XSEG_OP_WRITE, call + 1);
	return call;
}

/* It waits for its turn to be flushed when it is written again: what the FLUSH promises of it is
 * in no other page then. */
static void a_flush_waits_for_what_was_written_again_after_it_came(void **state)
{
	struct crig_io *f;
	char name[2] = "a";
	uint32_t call;

	(void)state;
	crig_up("requests=8 dirty_age=1h");
	dirty_objects('a', crig_share() + 4);
	crig_hold(true);
	f = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	while (crig_state(name, 0) != BUCKET_DIRTY)
		assert_true(name[0]++ < 'z');
	crig_expect(crig_write(name, 0, B(1), 6), B(1));
	while ((call = held_beside(name)) != CRIG_NEVER)
		crig_answer(call);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, 0), 0);
	crig_expect_waits(f);
	crig_hold(false);
	crig_settle();
	crig_expect(f, 0);
	assert_true(crig_stable(name, 0, B(1), 6));
}

static void stopping_flushes_everything_and_then_is_quiet(void **state)
{
	uint64_t left;

	(void)state;
	crig_up("dirty_age=1h");
	dirty_objects('a', 5);
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	assert_int_equal(left, B(5));
	assert_int_equal(crig.peer->cls->dirty_bytes(crig.peer), B(5));
	crig_stop();
	assert_true(crig_stored("e", 0, B(1), 5));
}

static void drop_refuses_while_anything_is_dirty_and_then_forgets_all(void **state)
{
	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(3), 5);
	crig_expect_data("a", 0, B(3), 5);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	assert_int_equal(crig_admin("drop"), -EBUSY);
	assert_true(crig_says("4.0k are dirty"));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_number("dropped_bytes"), B(4));
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect_data("a", 0, B(3), 5);
}

/* They have no page, and are in no list. */
static void drop_forgets_zeroes_too(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2)), B(2));
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_admin("drop"), (int64_t)strlen("dropped_bytes=0\n"));
	crig_store_fill("a", 0, B(2), 5);
	crig_expect_data("a", 0, B(2), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_flush_that_fails_leaves_it_dirty_and_is_tried_again_after_a_growing_pause),
		CRIG_T(flushes_that_were_out_together_and_fail_make_one_pause),
		CRIG_T(a_short_flush_is_an_error),
		CRIG_T(a_flush_whose_list_of_pages_is_written_over_on_its_way_ends_as_any_other),
		CRIG_T(an_object_whose_flush_fails_keeps_no_other_waiting),
		CRIG_T(data_written_again_while_its_flush_fails_is_tried_in_time),
		CRIG_T(a_flush_with_nothing_dirty_has_what_failed_tried_again),
		CRIG_T(a_flush_that_succeeds_ends_the_pause_after_one_that_failed),
		CRIG_T(a_short_pause_does_not_wait_for_another_s_long_one),
		CRIG_T(a_flush_has_all_tried_again_however_long_their_pauses),
		CRIG_T(a_write_to_what_failed_leaves_it_the_try_that_a_flush_has_made),
		CRIG_T(a_flush_that_succeeds_ends_the_pause_behind_another_s_long_one),
		CRIG_T(what_is_written_after_a_delete_has_no_pause_of_before),
		CRIG_T(a_flush_that_covers_what_could_not_be_written_gets_the_error_and_another_volume_s_does_not),
		CRIG_T(a_flush_does_not_get_the_error_of_what_was_written_after_it),
		CRIG_T(the_store_s_own_flush_error_is_the_answer),
		CRIG_T(a_flush_with_nothing_dirty_still_goes_to_the_store),
		CRIG_T(a_flush_is_answered_when_all_before_it_is_stable),
		CRIG_T(a_flush_of_one_volume_does_not_wait_for_another_s),
		CRIG_T(writes_that_keep_coming_do_not_prolong_a_flush),
		CRIG_T(a_bucket_dirty_in_an_older_set_and_written_again_is_still_covered),
		CRIG_T(the_newer_data_of_a_failed_older_flush_is_covered_by_the_next_flush),
		CRIG_T(more_flushes_than_tickets_are_all_answered),
		CRIG_T(flushes_that_share_the_last_ticket_need_no_further_flush),
		CRIG_T(a_flush_beside_a_bucket_in_flight_polls_no_more_than_needed),
		CRIG_T(a_flush_waits_for_a_request_of_its_own_like_all),
		CRIG_T(a_flush_waits_for_what_was_written_again_after_it_came),
		CRIG_T(stopping_flushes_everything_and_then_is_quiet),
		CRIG_T(drop_refuses_while_anything_is_dirty_and_then_forgets_all),
		CRIG_T(drop_forgets_zeroes_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
