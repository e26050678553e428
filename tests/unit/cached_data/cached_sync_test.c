/* cached_sync_test - a FLUSH that fails at the store makes the data that it covered dirty again. A
 * cache that stops has all made stable first (peers/cached/flush/sync.c).
 */
#include "tests/rig/cached_rig.h"

static void up(void)
{
	crig_up("dirty_age=1h");
	crig_store_forgets();
}

static void what_a_failed_flush_covered_is_written_again_by_the_next(void **state)
{
	uint32_t calls;

	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "b", B(4), B(1)), B(1));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(4));
	assert_int_equal(crig_state("a", 1), BUCKET_DIRTY);
	calls = crig_nr_calls();
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, calls), 2);
	assert_int_equal(crig_count_calls(XSEG_OP_DISCARD, calls), 1);
	assert_true(crig_stable("a", 0, B(2), 5) && crig_stable("b", 0, B(1), 6));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static bool status_says_that_flushes_fail(void)
{
	assert_true(crig_admin("status") > 0);
	return crig_says("flushes_fail.errno=5\n");
}

static void status_tells_of_it_until_the_next_one_succeeds(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_true(status_says_that_flushes_fail());
	assert_true(crig_says("flushes_fail.of=flush\n"));
	crig_expect(crig_flush(0), 0);
	assert_false(status_says_that_flushes_fail());
}

/* A write that fails and then succeeds tells nothing of the FLUSH, nor a FLUSH of the write. */
static void status_tells_of_writes_that_fail_by_themselves(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_true(status_says_that_flushes_fail());
	assert_true(crig_says("flushes_fail.of=write\n"));
	crig_pass(10000 * CRIG_MS);		/* it is written again */
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_true(status_says_that_flushes_fail());
	crig_expect(crig_flush(0), 0);
	assert_false(status_says_that_flushes_fail());
}

static uint64_t ms_of_failure(void)
{
	assert_true(crig_admin("status") > 0);
	return crig_number("flushes_fail.ms");
}

/* Each port has its own time, which may be a moment before the one that another port has noted. */
static void a_failure_that_a_port_notes_with_an_earlier_time_goes_on(void **state)
{
	struct cport *ps;
	uint64_t now_ns;

	(void)state;
	up();
	ps = cport_at(crig.k, 0);
	trouble_note(ps, TROUBLE_SYNC, -EIO);
	crig_pass(5000 * CRIG_MS);
	now_ns = ps->pp->now_ns;
	trouble_note(ps, TROUBLE_SYNC, -EIO);
	ps->pp->now_ns = now_ns - 1000;
	trouble_note(ps, TROUBLE_SYNC, -EIO);
	ps->pp->now_ns = now_ns;
	assert_in_range(ms_of_failure(), 5000, 6000);
}

static void what_was_loaded_or_synced_before_or_written_with_fua_is_not(void **state)
{
	(void)state;
	up();
	crig_have_clean("a", 0, B(1), 5);
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_expect(crig_flush(0), 0);
	crig_expect(crig_write_fua("a", B(2), B(1), 7), B(1));
	crig_expect(crig_write("a", B(3), B(1), 8), B(1));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(crig_state("a", i), BUCKET_VALID);
	assert_int_equal(crig_state("a", 3), BUCKET_DIRTY);
}

static void a_volume_s_failed_flush_spares_what_others_have_synced(void **state)
{
	(void)state;
	up();
	crig_volume(7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_volume(8);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_expect(crig_flush(8), 0);
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(7), -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID); /* its own FLUSH was answered well */
}

/* A store may sync all that it has, and forget that it failed for another. */
static void what_others_have_not_synced_is_lost_with_it(void **state)
{
	(void)state;
	up();
	crig_volume(8);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
	crig_set("policy=write-back");
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(7), -EIO);
	assert_int_equal(crig_state("b", 0), BUCKET_DIRTY);
}

static void what_was_cleaned_while_a_flush_failed_is_written_again_too(void **state)
{
	struct crig_io *flush;

	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	flush = crig_flush(0);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_set("policy=write-through");
	crig_write("b", 0, B(1), 6);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_fail(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_expect(flush, -EIO);
	assert_int_not_equal(crig_state("b", 0), BUCKET_VALID);
	assert_int_not_equal(crig_state("a", 0), BUCKET_VALID);
	crig_hold(false);
}

static void many_flushes_that_fail_together_are_all_answered(void **state)
{
	struct crig_io *flush[8];

	(void)state;
	up();
	for (uint32_t i = 0; i < 8; i++) {
		crig_volume(i + 1);
		crig_expect(crig_write((char[2]){ (char)('a' + i), 0 }, 0, B(1), 5), B(1));
	}
	crig_fail_next(XSEG_OP_FLUSH, -ENOSPC, 8);
	for (uint32_t i = 0; i < 8; i++)
		flush[i] = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	for (uint32_t i = 0; i < 8; i++)
		crig_expect(flush[i], -ENOSPC);
	crig_expect(crig_flush(0), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(crig_stable((char[2]){ (char)('a' + i), 0 }, 0, B(1), 5));
}

static void a_successor_does_not_know_what_was_synced_and_writes_all_again(void **state)
{
	(void)state;
	up();
	crig_have_clean("a", B(1), B(1), 6);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_flush(0), 0);
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_settle();
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(0), -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	crig_expect_data("a", 0, B(1), 5);
}

static void any_number_of_flushes_may_lie_between_two_that_matter(void **state)
{
	static const uint64_t between[] = { 1, 32760, 32769, 40000, 65535, 65536, 1 << 20 };

	(void)state;
	up();
	for (uint32_t i = 0; i < sizeof(between) / sizeof(*between); i++) {
		crig_volume(7);
		crig_expect(crig_write("a", 0, B(1), 5), B(1));
		crig_expect(crig_flush(7), 0);
		atomic_fetch_add(&crig.k->store.sync_epoch, between[i]);
		crig_expect(crig_write("a", 0, B(1), 6), B(1));
		crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
		crig_expect(crig_flush(7), -EIO);
		assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	}
}

static void epochs_wrap(void **state)
{
	(void)state;
	up();
	atomic_store(&crig.k->store.sync_epoch, UINT16_MAX - 2);
	for (uint32_t i = 0; i < 8; i++) {
		crig_expect(crig_write("a", B(i), B(1), 5), B(1));
		if (i % 2)
			crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
		crig_expect(crig_flush(0), i % 2 ? -EIO : 0);
		assert_int_equal(crig_counter(CC_DIRTY_BYTES), i % 2 ? B(1) : 0);
	}
}

/* A FLUSH that was sent while another one was out says nothing of what that one failed to sync. */
static void a_flush_that_ends_well_beside_one_that_fails_does_not_hide_it(void **state)
{
	struct crig_io *bad, *good;

	(void)state;
	up();
	crig_volume(7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_set("policy=write-back");
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	crig_hold(true);
	bad = crig_flush(7);
	good = crig_flush(7);
	crig_answer(crig_held(XSEG_OP_FLUSH, crig_held(XSEG_OP_FLUSH, 0) + 1));
	crig_expect(good, 0);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	crig_fail(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_expect(bad, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_hold(false);
	crig_expect(crig_flush(7), 0);
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 1);
	crig_expect(crig_flush(8), -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
}

/* It asks the store to sync the object, and what else it had of that may be lost. */
/* The first of them begins a walk, which the others find under way; the last one was out all the
 * time. */
static void of_several_that_fail_together_the_one_sent_first_says_what_is_lost(void **state)
{
	struct crig_io *early, *good, *late[2];
	uint32_t call[4];

	(void)state;
	up();
	crig_volume(7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_volume(8);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_set("policy=write-back");
	crig_hold(true);
	early = crig_flush(8);
	good = crig_flush(7);
	call[0] = crig_held(XSEG_OP_FLUSH, 0);
	call[1] = crig_held(XSEG_OP_FLUSH, call[0] + 1);
	crig_answer(call[1]);
	crig_expect(good, 0);
	late[0] = crig_flush(9);
	late[1] = crig_flush(10);
	call[2] = crig_held(XSEG_OP_FLUSH, call[1] + 1);
	call[3] = crig_held(XSEG_OP_FLUSH, call[2] + 1);
	crig_fail_only(call[2], -EIO);
	crig_fail_only(call[3], -EIO);
	crig_fail_only(call[0], -EIO);
	while (crig_step_reply())
		;
	assert_true(crig.k->flush.sync.walking && crig.k->flush.sync.walk_wanted);
	crig_settle();
	crig_expect(late[0], -EIO);
	crig_expect(late[1], -EIO);
	crig_expect(early, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_int_equal(crig_state("b", 0), BUCKET_DIRTY);
	crig_hold(false);
}

static void fua_fails(const char *policy)
{
	struct crig_io *flush;

	up();
	crig_volume(7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_expect(crig_flush(7), 0);
	crig_expect(crig_write("a", B(1), B(1), 7), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_set(policy);
	assert_int_equal(crig_state("a", 1), BUCKET_VALID);
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_write_fua("a", B(2), B(1), 8), -EIO);
	assert_int_not_equal(crig_state("a", 1), BUCKET_VALID);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_int_equal(crig_state("b", 0), BUCKET_VALID);
	flush = crig_flush(7);
	crig_pass(CRIG_S);		/* the object is tried again after a pause */
	crig_expect(flush, 0);
	assert_true(crig_stable("a", B(1), B(1), 7));
}

static void what_a_failed_fua_write_may_have_lost_is_written_again(void **state)
{
	(void)state;
	fua_fails("policy=write-back");
}

static void so_is_what_one_past_the_cache_may_have_lost(void **state)
{
	(void)state;
	fua_fails("policy=write-around");
}

/* Objects a0, a1, ... have a bucket each at the store, which is about to fail a FLUSH for them: it
 * is a call, and the store holds. */
static struct crig_io *flush_of_many(uint32_t nr)
{
	struct crig_io *flush;
	char name[8];

	crig_up("dirty_age=1h objects=128");
	crig_store_forgets();
	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "a%u", i);
		crig_expect(crig_write(name, 0, B(1), 5), B(1));
	}
	crig_hold(true);
	flush = crig_flush(0);
	while (crig_held(XSEG_OP_WRITE, 0) != CRIG_NEVER)
		crig_answer(crig_held(XSEG_OP_WRITE, 0));
	return flush;
}

static void all_are_stable(uint32_t nr)
{
	char name[8];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "a%u", i);
		assert_true(crig_stable(name, 0, B(1), 5));
	}
}

/* It takes some rounds to go through so many objects. */
static void a_flush_that_comes_meanwhile_covers_what_was_lost(void **state)
{
	struct crig_io *failed = flush_of_many(100), *flush;

	(void)state;
	crig_fail_only(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	assert_true(crig_step_reply());
	flush = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	assert_true(crig_step_request());
	crig_expect_waits(failed);
	crig_hold(false);
	crig_settle();
	crig_expect(failed, -EIO);
	crig_expect(flush, 0);
	all_are_stable(100);
}

static void so_does_one_that_had_come_before(void **state)
{
	struct crig_io *failed = flush_of_many(4), *flush;

	(void)state;
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	flush = crig_flush(0);
	crig_fail(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_expect(failed, -EIO);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));	/* what it covered when it came */
	assert_int_equal(crig_held(XSEG_OP_FLUSH, 0), CRIG_NEVER);
	crig_hold(false);
	crig_settle();
	crig_expect(flush, 0);
	all_are_stable(4);
	assert_true(crig_stable("b", 0, B(1), 6));
}

/* The store syncs all that it has for either, and says to one of them that it lost some. */
static void so_does_one_that_is_at_the_store_when_another_fails(void **state)
{
	struct crig_io *failed = flush_of_many(4), *flush = crig_flush(0);

	(void)state;
	crig_fail(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_expect(failed, -EIO);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect_waits(flush);
	crig_hold(false);
	crig_settle();
	crig_expect(flush, 0);
	all_are_stable(4);
}

/* The answers come at once, so that the walk is under way when the second one does. */
static void also_when_what_was_lost_is_not_dirty_yet(void **state)
{
	struct crig_io *failed = flush_of_many(100), *flush = crig_flush(0);

	(void)state;
	crig_fail_only(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_answer_only(crig_held(XSEG_OP_FLUSH, 0));
	assert_true(crig_step_reply());
	crig_expect_waits(failed);
	crig_expect_waits(flush);
	crig_hold(false);
	crig_settle();
	crig_expect(failed, -EIO);
	crig_expect(flush, 0);
	all_are_stable(100);
}

/* A FLUSH of another volume fails, and what the store lost with it is dirty again. */
static void others_fail(void)
{
	struct crig_io *other = crig_flush(8);

	crig_fail(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_expect(other, -EIO);
}

static void but_begins_again_only_once_as_others_may_fail_all_the_time(void **state)
{
	struct crig_io *flush;

	(void)state;
	up();
	crig_volume(7);
	crig_set("policy=write-through");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-back");
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	crig_hold(true);
	flush = crig_flush(7);
	for (uint32_t i = 0; i < 2; i++) {
		others_fail();
		assert_int_equal(crig_held(XSEG_OP_FLUSH, 0), CRIG_NEVER);
		crig_answer(crig_held(XSEG_OP_WRITE, 0));
	}
	assert_int_equal(crig_call(crig_held(XSEG_OP_FLUSH, 0))->volume, 7);
	crig_hold(false);
	crig_settle();
	crig_expect(flush, 0);
}

static void so_is_what_a_predecessor_s_may_have_lost(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_set("policy=write-back");
	crig_hold(true);
	crig_write_fua("a", B(1), B(1), 6);
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	crig_fail(crig_held(XSEG_OP_WRITE, 0), -EIO);
	assert_int_not_equal(crig_state("a", 0), BUCKET_VALID);
	crig_hold(false);
}

static bool is_quiet(void)
{
	uint64_t left;

	return crig.peer->cls->quiesced(crig.peer, &left);
}

static void who_stops_has_all_made_stable_first(void **state)
{
	(void)state;
	up();
	crig_volume(7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_flush(7), 0);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	crig_hold(true);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_pass(10 * CRIG_MS);
	assert_false(is_quiet());
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	assert_true(is_quiet());
	assert_true(crig_stable("b", 0, B(1), 6));
	crig_hold(false);
}

static void and_writes_all_again_when_that_fails(void **state)
{
	uint32_t calls;

	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 2);
	calls = crig_nr_calls();
	atomic_store(&crig.peer->stopping, true);
	crig_pass(50 * CRIG_MS);
	assert_false(is_quiet());
	crig_pass(CRIG_S);
	assert_true(is_quiet());
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, calls), 3);
	assert_int_equal(crig_count_calls(XSEG_OP_FLUSH, calls), 3);
	assert_true(crig_stable("a", 0, B(2), 5));
}

static void what_was_written_after_that_needs_another_one(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_pass(10 * CRIG_MS);
	crig_write("b", 0, B(1), 6);
	crig_pass(10 * CRIG_MS);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	assert_false(is_quiet());
	crig_pass(10 * CRIG_MS);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	assert_true(is_quiet());
	crig_hold(false);
}

/* What a write with FUA may have lost is not dirty yet. */
static void who_stops_waits_until_all_is_dirty_that_a_failure_made_so(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_set("policy=write-around");
	crig_hold(true);
	crig_write_fua("b", 0, B(1), 6);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_fail_only(crig_held(XSEG_OP_WRITE, 0), -EIO);
	crig_step_reply();
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
	assert_false(is_quiet());
	crig_step_poll();
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1));
	crig_hold(false);
	crig_pass(CRIG_S);
	assert_true(is_quiet());
}

/* It answers so to all, and for ever. */
static void who_stops_above_a_cache_that_is_off_the_path_waits_for_nothing(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_fail_next(XSEG_OP_FLUSH, -ENOTCONN, 1);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(50 * CRIG_MS);
	assert_true(is_quiet());
}

static void who_has_written_nothing_back_needs_no_store_to_stop(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_expect_data("a", 0, B(1), 5);
	crig_hold(true);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	assert_int_equal(crig_nr_held(), 0);
	assert_true(is_quiet());
	crig_hold(false);
}

static void what_a_predecessor_wrote_back_is_made_stable_too(void **state)
{
	(void)state;
	up();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_set("policy=write-through");
	crig_pass(CRIG_MS);
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_settle();
	crig_stop();
	assert_true(crig_stable("a", 0, B(1), 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(what_a_failed_flush_covered_is_written_again_by_the_next),
		CRIG_T(status_tells_of_it_until_the_next_one_succeeds),
		CRIG_T(a_failure_that_a_port_notes_with_an_earlier_time_goes_on),
		CRIG_T(status_tells_of_writes_that_fail_by_themselves),
		CRIG_T(what_was_loaded_or_synced_before_or_written_with_fua_is_not),
		CRIG_T(a_volume_s_failed_flush_spares_what_others_have_synced),
		CRIG_T(what_others_have_not_synced_is_lost_with_it),
		CRIG_T(what_was_cleaned_while_a_flush_failed_is_written_again_too),
		CRIG_T(many_flushes_that_fail_together_are_all_answered),
		CRIG_T(a_successor_does_not_know_what_was_synced_and_writes_all_again),
		CRIG_T(any_number_of_flushes_may_lie_between_two_that_matter),
		CRIG_T(epochs_wrap),
		CRIG_T(a_flush_that_ends_well_beside_one_that_fails_does_not_hide_it),
		CRIG_T(of_several_that_fail_together_the_one_sent_first_says_what_is_lost),
		CRIG_T(what_a_failed_fua_write_may_have_lost_is_written_again),
		CRIG_T(so_is_what_one_past_the_cache_may_have_lost),
		CRIG_T(so_is_what_a_predecessor_s_may_have_lost),
		CRIG_T(a_flush_that_comes_meanwhile_covers_what_was_lost),
		CRIG_T(so_does_one_that_had_come_before),
		CRIG_T(so_does_one_that_is_at_the_store_when_another_fails),
		CRIG_T(also_when_what_was_lost_is_not_dirty_yet),
		CRIG_T(but_begins_again_only_once_as_others_may_fail_all_the_time),
		CRIG_T(who_stops_has_all_made_stable_first),
		CRIG_T(and_writes_all_again_when_that_fails),
		CRIG_T(what_was_written_after_that_needs_another_one),
		CRIG_T(who_stops_waits_until_all_is_dirty_that_a_failure_made_so),
		CRIG_T(who_stops_above_a_cache_that_is_off_the_path_waits_for_nothing),
		CRIG_T(who_has_written_nothing_back_needs_no_store_to_stop),
		CRIG_T(what_a_predecessor_wrote_back_is_made_stable_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
