/* cached_hit_test - which requests go the short way, and that they do the same there as on the long
 * one (peers/cached/request/hit.c).
 */
#include "peers/common/runtime/peer_box.h"
#include "tests/rig/cached_rig.h"

/* A creq that has this many buckets has not been used since. */
#define UNUSED_NR UINT16_MAX

/* Steps everybody until it is answered, or waits; whether it did without a creq. */
static bool is_short(struct crig_io *io)
{
	struct creq *c = crig_creq(io);

	c->nr = UNUSED_NR;
	crig_settle();
	return c->nr == UNUSED_NR;
}

static bool is_short_write(
	const char *name, uint64_t offset, uint32_t size, unsigned flags, unsigned seed)
{
	struct crig_io *io = crig_send(XSEG_OP_WRITE, name, offset, size, flags, seed);
	bool is = is_short(io);

	crig_expect(io, size);
	crig_expect_data(name, offset, size, seed);
	return is;
}

/* The thread has free pages at hand: those that a write of so many buckets has let go of. */
static void have_pages_at_hand(uint32_t nr)
{
	crig_expect(crig_write("other", 0, B(nr), 1), B(nr));
	crig_expect(crig_write("other", 0, B(nr), 2), B(nr));
	assert_true(memory_port(cport_at(crig.k, 0))->nr_magazine >= nr);
}

/* ---- reads ------------------------------------------------------------------------------- */

static void a_read_of_what_is_there_is_short_clean_or_dirty_whole_or_in_part(void **state)
{
	static const struct {
		uint64_t offset;
		uint32_t size;
	} range[] = { { 0, B(8) }, { B(3), B(1) }, { 512, 512 }, { B(1) + 512, B(3) } };

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(4), B(4), 5), B(4));
	for (uint32_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		struct crig_io *io = crig_send(
			XSEG_OP_READ, "a", range[i].offset, range[i].size, 0, 0);

		assert_true(is_short(io));
		assert_true(crig_data_is(io, 0, range[i].size, 5));
		crig_expect(io, range[i].size);
	}
	crig_admin("status");
	assert_int_equal(crig_counter(CC_HITS), 4);
	assert_int_equal(crig_counter(CC_HIT_BYTES), B(8 + 1 + 1 + 4));
}

/* Also where somebody's hits never end. */
static void while_hits_come_the_rest_is_seen_to_every_few_microseconds(void **state)
{
	uint64_t before, counted, most = 0;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(1), 5);
	before = crig_counter(CC_HITS);
	for (uint32_t i = 1; i <= 12; i++) {
		crig_send(XSEG_OP_READ, "a", 0, B(1), 0, 0);
		assert_true(crig_step_request());
		crig_step_poll();
		counted = crig_counter(CC_HITS) - before;
		if (i - counted > most)
			most = i - counted;
		crig.now_ns += 1000;
	}
	assert_in_range(most, 1, 4);
	crig_step_poll();			/* nothing has come since */
	assert_int_equal(crig_counter(CC_HITS) - before, 12);
}

static void a_read_that_lacks_a_bucket_is_not(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(4), 5);
	io = crig_send(XSEG_OP_READ, "a", 0, B(5), 0, 0);
	assert_false(is_short(io));
	crig_expect(io, B(5));
	io = crig_send(XSEG_OP_READ, "b", 0, B(1), 0, 0);
	assert_false(is_short(io));
	crig_expect(io, B(1));
}

static void a_read_that_waits_for_a_load_is_answered_in_the_end(void **state)
{
	struct crig_io *first, *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	first = crig_read("a", 0, B(1));
	io = crig_send(XSEG_OP_READ, "a", 0, B(1), 0, 0);
	assert_false(is_short(io));
	crig_hold(false);
	crig_settle();
	crig_expect(first, B(1));
	assert_true(crig_data_is(io, 0, B(1), 5));
	crig_expect(io, B(1));
}

/* ---- writes ------------------------------------------------------------------------------ */

static void a_write_over_whole_buckets_that_are_there_is_short(void **state)
{
	uint64_t used, writes;
	uint32_t old;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(4), 5);
	crig_expect(crig_write("a", B(4), B(4), 5), B(4));
	have_pages_at_hand(8);
	used = crig_counter(CC_USED_BYTES);
	writes = crig_counter(CC_WRITES);
	old = slot_page(crig_slot("a", 2));
	assert_true(is_short_write("a", 0, B(8), 0, 6));
	/* a reader of the old one sees no change */
	assert_int_not_equal(slot_page(crig_slot("a", 2)), old);
	assert_int_equal(crig_object("a")->nr[BUCKET_DIRTY], 8);
	assert_int_equal(crig_counter(CC_USED_BYTES), used);
	assert_int_equal(crig_counter(CC_WRITES), writes + 1);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(8), 6));
}

static void a_write_that_lacks_a_bucket_or_covers_one_in_part_is_not(void **state)
{
	(void)state;
	crig_up("");
	have_pages_at_hand(8);
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(8), B(1)), B(1));
	assert_false(is_short_write("a", 0, B(5), 0, 6));
	assert_false(is_short_write("a", 512, B(1), 0, 7));
	assert_false(is_short_write("a", B(1), 512, 0, 8));
	/* zeroes have no page: it takes one more than it lets go of */
	assert_false(is_short_write("a", B(8), B(1), 0, 9));
	assert_false(is_short_write("b", 0, B(1), 0, 10));
}

static void a_write_that_waits_for_the_store_is_not(void **state)
{
	(void)state;
	crig_up("");
	have_pages_at_hand(8);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	assert_false(is_short_write("a", 0, B(1), XSEG_REQ_FUA, 6));
	assert_true(crig_stable("a", 0, B(1), 6));
	crig_set("policy=write-through");
	assert_false(is_short_write("a", 0, B(1), 0, 7));
	assert_true(crig_stored("a", 0, B(1), 7));
	crig_set("policy=write-around");
	assert_false(is_short_write("a", 0, B(1), 0, 8));
	assert_true(crig_stored("a", 0, B(1), 8));
	crig_set("policy=write-back");
	crig_expect(crig_write("a", 0, B(1), 9), B(1));
	assert_true(is_short_write("a", 0, B(1), 0, 10));
}

static void a_write_whose_thread_has_too_few_pages_at_hand_is_not_and_the_next_one_is(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	assert_int_equal(memory_port(cport_at(crig.k, 0))->nr_magazine, 0);
	assert_false(is_short_write("a", 0, B(4), 0, 6));
	assert_int_equal(memory_port(cport_at(crig.k, 0))->nr_magazine, 4);
	assert_true(is_short_write("a", 0, B(4), 0, 7));
	/* who writes so gets some ahead of need */
	assert_int_equal(memory_port(cport_at(crig.k, 0))->nr_magazine, MAGAZINE / 2);
}

static void a_write_over_what_is_being_flushed_is_not_and_the_flush_cleans_nothing_newer(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	have_pages_at_hand(8);
	crig_pass(10 * CRIG_MS);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	crig_pass(5 * CRIG_MS);
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	assert_false(is_short_write("a", 0, B(1), 0, 6));
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	/* the flush that is out lists a page that is in no slot any more */
	assert_true(is_short_write("a", 0, B(1), 0, 7));
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_hold(false);
	crig_pass(5 * CRIG_MS);
	assert_true(crig_stored("a", 0, B(1), 7));
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* How many of eight requests of that size the first round answers; the rest of them the next
 * ones. */
static uint64_t answered_in_a_round(enum xseg_op op, uint32_t size)
{
	struct crig_io *io[8];
	uint64_t next_ns, left;

	for (uint32_t i = 0; i < 8; i++)
		io[i] = crig_send(op, "a", i * size, size, 0, 5);
	peer_port_round(&crig.peer->ports[0], crig.now_ns, 8, &next_ns);
	left = 8 - peer_outstanding(crig.peer);
	crig_settle();
	for (uint32_t i = 0; i < 8; i++)
		crig_expect(io[i], size);
	return left;
}

static void who_waits_for_much_gets_it_before_more_is_copied(void **state)
{
	(void)state;
	crig_up("memory=8M");
	crig_expect(crig_write("a", 0, B(256), 5), B(256));
	assert_int_equal(answered_in_a_round(XSEG_OP_READ, B(1)), 8 - KEPT_MAX);
	assert_int_equal(answered_in_a_round(XSEG_OP_READ, B(4)), 4);
	assert_int_equal(answered_in_a_round(XSEG_OP_READ, B(32)), 1);
	have_pages_at_hand(16);
	assert_int_equal(answered_in_a_round(XSEG_OP_WRITE, B(1)), 8);
	assert_int_equal(answered_in_a_round(XSEG_OP_WRITE, B(8)), 2);
}

/* ---- data that is copied early ----------------------------------------------------------- */

#define BATCH 8u

/* So that it pays: there are pages at hand, and the last write was short. */
static void have_written(const char *name, uint32_t nr, unsigned seed)
{
	crig_expect(crig_write(name, 0, B(nr), seed), B(nr));
	have_pages_at_hand(BATCH);
	assert_true(is_short_write(name, 0, B(1), 0, seed));
	assert_true(memory_port(cport_at(crig.k, 0))->nr_magazine >= BATCH);
}

static uint32_t nr_noted;			/* of these, for how many it was copied */

/* Of eight writes of one bucket each, to bucket at[i], how many find their data copied. */
static uint32_t copied_early(const char *name, const uint32_t *at, unsigned seed)
{
	struct early *e = &request_port(cport_at(crig.k, 0))->early;
	struct crig_io *io[BATCH];
	uint32_t nr;

	for (uint32_t i = 0; i < BATCH; i++)
		io[i] = crig_send(XSEG_OP_WRITE, name, B(at[i]), B(1), 0, seed + i);
	peer_port_step_poll(&crig.peer->ports[0]);
	while (peer_port_step_request(&crig.peer->ports[0]))
		;
	nr = e->first;
	nr_noted = e->nr;
	crig_settle();
	for (uint32_t i = 0; i < BATCH; i++)
		crig_expect(io[i], B(1));
	return nr;
}

static void the_data_of_a_batch_of_writes_is_copied_early(void **state)
{
	static const uint32_t at[BATCH] = { 3, 1, 4, 1, 5, 9, 2, 6 };

	(void)state;
	crig_up("");
	have_written("a", 16, 5);
	assert_int_equal(copied_early("a", at, 20), BATCH);
	for (uint32_t i = 0; i < BATCH; i++)
		if (i != 1)	/* the fourth is to the same bucket */
			crig_expect_data("a", B(at[i]), B(1), 20 + i);
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("a", B(7), B(2), 5);
}

static void so_is_that_of_writes_to_buckets_that_are_not_there(void **state)
{
	static const uint32_t at[BATCH] = { 0, 1, 2, 20, 3, 100, 5, 200 };

	(void)state;
	crig_up("");
	have_written("a", 16, 5);
	assert_int_equal(copied_early("a", at, 20), BATCH);
	assert_int_equal(copied_early("b", at, 30), BATCH);
	for (uint32_t i = 0; i < BATCH; i++) {
		crig_expect_data("a", B(at[i]), B(1), 20 + i);
		crig_expect_data("b", B(at[i]), B(1), 30 + i);
	}
	crig_expect_data("a", B(7), B(9), 5);
}

static void what_was_copied_early_is_nobody_s_when_it_was_not_taken(void **state)
{
	static const uint32_t at[BATCH] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct cport *ps;
	uint32_t at_hand;

	(void)state;
	crig_up("");
	ps = cport_at(crig.k, 0);
	have_written("a", 16, 5);
	crig_set("policy=write-around");		/* that takes no page */
	at_hand = memory_port(ps)->nr_magazine;
	assert_int_equal(copied_early("a", at, 20), 0);
	assert_int_equal(nr_noted, BATCH);
	assert_int_equal(request_port(ps)->early.nr, 0); /* the poll has them put back */
	assert_true(memory_port(ps)->nr_magazine >= at_hand);
	for (uint32_t i = 0; i < BATCH; i++)
		crig_expect_data("a", B(i), B(1), 20 + i);
	assert_int_equal(copied_early("a", at, 20), 0);
	assert_int_equal(nr_noted, 0);			/* it does not pay */
	crig_set("policy=write-back");
	assert_int_equal(copied_early("a", at, 30), 0);	/* the first one shows that it pays again */
	assert_int_equal(copied_early("a", at, 40), BATCH);
	for (uint32_t i = 0; i < BATCH; i++)
		crig_expect_data("a", B(i), B(1), 40 + i);
}

/* A write in front of the others waits, and its data was copied first. Their requests have the same
 * place word: only the index tells them apart. */
static void a_copy_is_taken_by_no_other_write(void **state)
{
	struct crig_io *gone, *waits, *io[BATCH - 1];

	(void)state;
	crig_up("");
	crig_expect(crig_write("b", 0, B(1), 5), B(1));
	have_written("a", 16, 5);
	crig_hold(true);
	gone = crig_op(XSEG_OP_DELETE, "b", 0, 0);
	waits = crig_send(XSEG_OP_WRITE, "b", 0, B(1), 0, 40);
	for (uint32_t i = 0; i < BATCH - 1; i++) {
		io[i] = crig_send(XSEG_OP_WRITE, "a", B(i), B(1), 0, 20 + i);
		assert_int_equal(io[i]->r->place, waits->r->place);
	}
	peer_port_step_poll(&crig.peer->ports[0]);
	while (peer_port_step_request(&crig.peer->ports[0]))
		;
	assert_int_equal(request_port(cport_at(crig.k, 0))->early.nr, BATCH);
	crig_settle();
	crig_expect_waits(waits);
	for (uint32_t i = 0; i < BATCH - 1; i++) {
		crig_expect(io[i], B(1));
		crig_expect_data("a", B(i), B(1), 20 + i);
	}
	crig_hold(false);
	crig_settle();
	crig_expect(gone, 0);
	crig_expect(waits, B(1));
	crig_expect_data("b", 0, B(1), 40);
}

static void it_does_not_pay_for_writes_that_wait(void **state)
{
	struct crig_io *gone, *io;

	(void)state;
	crig_up("");
	have_written("a", 16, 5);
	crig_hold(true);
	gone = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	io = crig_send(XSEG_OP_WRITE, "a", 0, B(1), 0, 20);
	crig_pass(1);
	crig_expect_waits(io);
	assert_false(request_port(cport_at(crig.k, 0))->early.pays);
	crig_hold(false);
	crig_expect(gone, 0);
	crig_expect(io, B(1));
	assert_false(request_port(cport_at(crig.k, 0))->early.pays);
	crig_expect_data("a", 0, B(1), 20);
}

static void a_killed_cache_s_successor_has_what_was_written_so(void **state)
{
	(void)state;
	crig_up("dirty_age=1h");
	have_pages_at_hand(8);
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	assert_true(is_short_write("a", 0, B(4), 0, 6));
	crig_kill();
	assert_int_equal(crig_open("dirty_age=1h"), 0);
	crig_expect_data("a", 0, B(4), 6);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 0, B(4), 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_read_of_what_is_there_is_short_clean_or_dirty_whole_or_in_part),
		CRIG_T(while_hits_come_the_rest_is_seen_to_every_few_microseconds),
		CRIG_T(a_read_that_lacks_a_bucket_is_not),
		CRIG_T(a_read_that_waits_for_a_load_is_answered_in_the_end),
		CRIG_T(a_write_over_whole_buckets_that_are_there_is_short),
		CRIG_T(a_write_that_lacks_a_bucket_or_covers_one_in_part_is_not),
		CRIG_T(a_write_that_waits_for_the_store_is_not),
		CRIG_T(a_write_whose_thread_has_too_few_pages_at_hand_is_not_and_the_next_one_is),
		CRIG_T(a_write_over_what_is_being_flushed_is_not_and_the_flush_cleans_nothing_newer),
		CRIG_T(who_waits_for_much_gets_it_before_more_is_copied),
		CRIG_T(the_data_of_a_batch_of_writes_is_copied_early),
		CRIG_T(so_is_that_of_writes_to_buckets_that_are_not_there),
		CRIG_T(what_was_copied_early_is_nobody_s_when_it_was_not_taken),
		CRIG_T(a_copy_is_taken_by_no_other_write),
		CRIG_T(it_does_not_pay_for_writes_that_wait),
		CRIG_T(a_killed_cache_s_successor_has_what_was_written_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
