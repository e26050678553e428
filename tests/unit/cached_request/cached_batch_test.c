/* cached_batch_test - which requests of a batch are kept for the next one; they are served there or
 * a round later (peers/cached/request/batch.c).
 */
#include "peers/common/runtime/peer_box.h"
#include "tests/rig/cached_rig.h"

#define BATCH 8u

/* With an object "a" that has what a batch reads. */
static void up(void)
{
	crig_up("");
	crig_have_clean("a", 0, B(BATCH), 5);
}

/* Sends BATCH reads of a bucket each, of "a". */
static void send_batch(struct crig_io **io, unsigned flags)
{
	for (uint32_t i = 0; i < BATCH; i++)
		io[i] = crig_send(XSEG_OP_READ, "a", B(i), B(1), flags, 0);
}

static void expect_batch(struct crig_io **io)
{
	for (uint32_t i = 0; i < BATCH; i++) {
		assert_true(crig_data_is(io[i], 0, B(1), 5));
		crig_expect(io[i], B(1));
	}
}

/* One round. Returns how many requests it answered; *at_once: it wants another one. */
static uint64_t answered_in_a_round(bool *at_once)
{
	struct peer_port *pp = &crig.peer->ports[0];
	uint64_t next_ns, ops = xseg_stats_get(pp->stats, PEER_STAT_OPS);

	peer_port_round(pp, crig.now_ns, BATCH, &next_ns);
	*at_once = next_ns <= crig.now_ns;
	cached_check(crig.peer);
	return xseg_stats_get(pp->stats, PEER_STAT_OPS) - ops;
}

/* Sends a batch, of which the first round answers all but those that are kept. */
static void send_batch_and_keep(struct crig_io **io)
{
	bool at_once;

	send_batch(io, 0);
	assert_int_equal(answered_in_a_round(&at_once), BATCH - KEPT_MAX);
	assert_true(at_once);
}

static void the_last_reads_of_a_full_batch_are_served_a_round_later(void **state)
{
	struct crig_io *io[BATCH];
	bool at_once;

	(void)state;
	up();
	send_batch_and_keep(io);
	assert_int_equal(peer_outstanding(crig.peer), KEPT_MAX);
	assert_int_equal(answered_in_a_round(&at_once), KEPT_MAX);
	assert_int_equal(answered_in_a_round(&at_once), 0);
	assert_false(at_once);
	crig_settle();
	expect_batch(io);
}

static void or_among_the_next_batch(void **state)
{
	struct crig_io *first[BATCH], *second[BATCH];
	bool at_once;

	(void)state;
	up();
	send_batch(first, 0);
	send_batch(second, 0);
	assert_int_equal(answered_in_a_round(&at_once), BATCH - KEPT_MAX);
	assert_int_equal(answered_in_a_round(&at_once), BATCH);
	assert_true(at_once);
	assert_int_equal(answered_in_a_round(&at_once), KEPT_MAX);
	crig_settle();
	expect_batch(first);
	expect_batch(second);
}

static void a_batch_that_is_not_full_is_served_at_once(void **state)
{
	struct crig_io *io[BATCH];
	bool at_once;

	(void)state;
	up();
	for (uint32_t i = 0; i < BATCH - 1; i++)
		io[i] = crig_send(XSEG_OP_READ, "a", B(i), B(1), 0, 0);
	assert_int_equal(answered_in_a_round(&at_once), BATCH - 1);
	crig_settle();
	for (uint32_t i = 0; i < BATCH - 1; i++)
		crig_expect(io[i], B(1));
}

static void what_is_lent_or_written_is_not_kept_nor_what_comes_before_it(void **state)
{
	struct crig_io *io[BATCH];
	bool at_once;

	(void)state;
	up();
	send_batch(io, XSEG_REQ_LOAN);
	assert_int_equal(answered_in_a_round(&at_once), BATCH);
	crig_settle();
	for (uint32_t i = 0; i < BATCH; i++)
		crig_expect(io[i], B(1));
	for (uint32_t i = 0; i < BATCH; i++) {
		enum xseg_op op = i == BATCH - 2 ? XSEG_OP_WRITE : XSEG_OP_READ;

		io[i] = crig_send(op, "a", B(i), B(1), 0, 5);
	}
	assert_int_equal(answered_in_a_round(&at_once), BATCH - 1);
	crig_settle();
	expect_batch(io);
}

static void off_the_path_none_is_kept(void **state)
{
	struct crig_io *io[BATCH];
	uint64_t next_ns;

	(void)state;
	up();
	atomic_store(&crig.k->store.off, true);
	send_batch(io, 0);
	assert_true(peer_port_round(&crig.peer->ports[0], crig.now_ns, BATCH, &next_ns));
	assert_int_equal(peer_outstanding(crig.peer), 0);
	atomic_store(&crig.k->store.off, false);
	crig_settle();
	for (uint32_t i = 0; i < BATCH; i++)
		crig_expect(io[i], -ENOTCONN);
}

static void one_that_is_kept_may_have_to_wait(void **state)
{
	struct crig_io *io[BATCH];
	uint32_t calls;
	bool at_once;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(BATCH), 5);
	crig_have_clean("a", 0, B(BATCH - KEPT_MAX), 5);
	calls = crig_nr_calls();
	send_batch_and_keep(io);
	assert_int_equal(answered_in_a_round(&at_once), 0);
	crig_settle();
	assert_true(crig_count_calls(XSEG_OP_READ, calls) > 0);
	expect_batch(io);
}

static void a_killed_cache_s_successor_answers_what_was_kept(void **state)
{
	struct crig_io *io[BATCH];

	(void)state;
	up();
	send_batch_and_keep(io);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	expect_batch(io);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(the_last_reads_of_a_full_batch_are_served_a_round_later),
		CRIG_T(or_among_the_next_batch),
		CRIG_T(a_batch_that_is_not_full_is_served_at_once),
		CRIG_T(what_is_lent_or_written_is_not_kept_nor_what_comes_before_it),
		CRIG_T(off_the_path_none_is_kept),
		CRIG_T(one_that_is_kept_may_have_to_wait),
		CRIG_T(a_killed_cache_s_successor_answers_what_was_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
