/* cached_direct_test - a client's read past the cache's queue returns the same as a request
 * (peers/cached/lend/direct.c, xseg/direct.c).
 */
#include "tests/rig/cached_rig.h"

static bool directly;

static const uint8_t *data(const struct crig_io *io, uint32_t i)
{
	return xseg_req_page(crig.seg, io->r, i);
}

static bool has(const struct crig_io *io, unsigned seed)
{
	for (uint32_t i = 0; i < io->r->nr_pages; i++)
		if (!crig_bytes_are(data(io, i), io->r->offset + B(i), CRIG_PAGE, seed))
			return false;
	return io->done && io->result == io->r->size;
}

static void let_go(struct crig_io *io)
{
	crig_expect(io, io->r->size);
}

/* It is read, by request or directly, and has the bytes of seed; then it is known. Returns whether
 * it was directly. */
static bool read_is(const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	struct crig_io *io = crig_send_direct(name, offset, size, &directly);
	bool was = directly;

	crig_settle();
	if (!has(io, seed))
		fail_msg("%s: not what was written (%s)", name, was ? "directly" : "by request");
	let_go(io);
	return was;
}

/* A page of "a" that is read directly. */
static void up_and_known(const char *options)
{
	crig_up(options);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	assert_false(read_is("a", 0, B(2), 5));
	assert_true(read_is("a", 0, B(2), 5));
}

static uint32_t limbo(void)
{
	return atomic_load(&crig.k->memory.limbo.nr);
}

/* ---- hits ---- */

static void what_was_read_once_is_read_without_the_cache(void **state)
{
	uint64_t reads;

	(void)state;
	up_and_known("");
	reads = crig_counter(CC_READS);
	assert_true(read_is("a", B(1), B(1), 5));
	assert_int_equal(crig_counter(CC_READS), reads);
	assert_true(crig_slot("a", 0) & SLOT_DIRECT);
	cached_check_loans(crig.peer);
}

static void what_nobody_asked_to_read_directly_is_not(void **state)
{
	struct crig_io *io;

	(void)state;
	up_and_known("");
	crig_expect(crig_write("a", B(2), B(2), 5), B(2));
	io = crig_send(XSEG_OP_READ, "a", B(2), B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	let_go(io);
	assert_false(crig_slot("a", 2) & SLOT_DIRECT);
	assert_false(read_is("a", B(2), B(2), 5));
	assert_true(read_is("a", B(2), B(2), 5));
}

static void a_later_loan_to_another_takes_nothing_away(void **state)
{
	struct crig_io *io;

	(void)state;
	up_and_known("");
	io = crig_send(XSEG_OP_READ, "a", 0, B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	let_go(io);
	assert_true(read_is("a", 0, B(1), 5));
}

static void zeroes_and_edges_are_asked_for(void **state)
{
	(void)state;
	up_and_known("");
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(4), B(1)), B(1));
	assert_false(read_is("a", B(4), B(1), 0));
	assert_false(read_is("a", B(4), B(1), 0));
	crig_store_fill("a", B(8), B(2), 6);
	crig_hold(true);
	crig_send(XSEG_OP_WRITE, "a", B(8) + 512, B(1), 0, 7);
	crig_settle();
	crig_answer(crig_held(XSEG_OP_READ, 0));
	let_go(crig_send_direct("a", 0, B(1), &directly));
	assert_true(directly);
	let_go(crig_send_direct("a", 0, 512, &directly));
	assert_true(directly);
	crig_hold(false);
	crig_settle();
}

/* ---- what lies beside ---- */

#define ENOUGH 8u	/* reads of an object that wanted a mark: with the last all beside get it */

static bool is_open(uint32_t bucket)
{
	return crig_slot("a", bucket) & SLOT_DIRECT;
}

/* n of them, of "a" from that bucket on, each by a request. */
static void ask(uint32_t first, uint32_t n)
{
	for (uint32_t b = first; b < first + n; b++)
		if (read_is("a", B(b), B(1), 5))
			fail_msg("bucket %u was read directly", b);
}

static void reads_that_go_on_open_what_lies_in_the_same_chunk(void **state)
{
	uint64_t reads;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(130), 5), B(130));
	ask(0, ENOUGH - 1);
	assert_false(is_open(ENOUGH) || is_open(CHUNK_SLOTS - 1));
	ask(CHUNK_SLOTS - 1, 1);
	reads = crig_counter(CC_READS);
	for (uint32_t b = 0; b < CHUNK_SLOTS; b++)
		assert_true(read_is("a", B(b), B(1), 5));
	assert_int_equal(crig_counter(CC_READS), reads);
	assert_false(is_open(CHUNK_SLOTS));
	assert_false(read_is("a", B(CHUNK_SLOTS + 7), B(1), 5));
	assert_true(is_open(CHUNK_SLOTS) && is_open(2 * CHUNK_SLOTS - 1));
	assert_false(is_open(2 * CHUNK_SLOTS));
	cached_check_loans(crig.peer);
}

static void a_read_that_had_to_wait_opens_what_lies_beside_too(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(130), 5);
	crig_expect(crig_write("a", B(60), B(10), 5), B(10));
	ask(0, ENOUGH - 1);
	assert_false(is_open(62));
	assert_false(read_is("a", B(50), B(16), 5));	/* of two chunks */
	assert_true(read_is("a", B(66), B(4), 5));
	assert_true(read_is("a", 0, B(1), 5));
}

static void where_writes_come_between_a_read_opens_only_what_it_is_lent(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(64), 5), B(64));
	for (uint32_t i = 0; i < 4; i++) {
		ask(i * (ENOUGH - 1), ENOUGH - 1);
		crig_expect(crig_write("a", B(40), B(1), 5), B(1));
	}
	assert_true(is_open(0) && is_open(4 * (ENOUGH - 1) - 1));
	assert_false(is_open(4 * (ENOUGH - 1)) || is_open(41));
}

static void who_does_not_want_to_read_directly_opens_nothing(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(64), 5), B(64));
	for (uint32_t b = 0; b < 2 * ENOUGH; b++) {
		struct crig_io *io = crig_send(XSEG_OP_READ, "a", B(b), B(1), XSEG_REQ_LOAN, 0);

		crig_settle();
		let_go(io);
	}
	for (uint32_t b = 0; b < 64; b++)
		assert_false(is_open(b));
}

/* Zeroes, a page that is being loaded, one that is loaded and waits for its write, one that was
 * read ahead, and none. */
static void what_is_no_whole_page_is_not_opened(void **state)
{
	struct crig_io *edge, *load, *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(64), 5);
	crig_expect(crig_write("a", 0, B(20), 5), B(20));
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", B(10), B(1)), B(1));
	crig_expect_data("a", B(30), B(2), 5);
	slot_set_flag(crig.k, crig_object("a"), 30, SLOT_AHEAD);
	crig_hold(true);
	edge = crig_send(XSEG_OP_WRITE, "a", B(40) + 512, B(1), 0, 7);
	load = crig_send(XSEG_OP_READ, "a", B(50), B(1), 0, 0);
	crig_settle();
	crig_answer(crig_held(XSEG_OP_READ, 0));
	assert_true(crig_slot("a", 40) & SLOT_LOADED);
	for (uint32_t b = 0; b < ENOUGH; b++) {
		io = crig_send_direct("a", B(b), B(1), &directly);
		assert_false(directly);
		crig_settle();
		let_go(io);
	}
	assert_true(is_open(9) && is_open(19) && is_open(31));
	assert_int_equal(crig_state("a", 50), BUCKET_LOADING);
	assert_false(is_open(10) || is_open(20) || is_open(30) || is_open(40) || is_open(50));
	cached_check_loans(crig.peer);
	crig_hold(false);
	crig_settle();
	let_go(edge);
	let_go(load);
	assert_false(read_is("a", B(10), B(1), 0));
}

/* The one page that was replaced is in limbo, as io has it, and is as it was. */
static void stays_until_it_is_let_go(struct crig_io *io, unsigned seed)
{
	assert_int_equal(limbo(), 1);
	assert_false(limbo_look(cport_at(crig.k, 0)));
	crig_expect(crig_write("b", 0, B(60), 7), B(60));	/* takes whatever is free */
	assert_true(has(io, seed));
	cached_check_loans(crig.peer);
	let_go(io);
	assert_true(limbo_look(cport_at(crig.k, 0)));
}

static void what_is_on_its_way_to_the_store_is_opened_and_stays(void **state)
{
	struct crig_io *f, *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(64), 5), B(64));
	crig_hold(true);
	f = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	ask(0, ENOUGH);
	assert_int_equal(crig_state("a", 20), BUCKET_WRITING);
	io = crig_send_direct("a", B(20), B(1), &directly);
	assert_true(directly);
	crig_expect(crig_write("a", B(20), B(1), 6), B(1));
	crig_hold(false);
	crig_settle();
	crig_expect(f, 0);
	assert_true(read_is("a", B(21), B(1), 5));
	stays_until_it_is_let_go(io, 5);
	assert_false(read_is("a", B(20), B(1), 6));
}

/* ---- what changes the data ---- */

static void a_write_is_seen_by_the_next_read(void **state)
{
	(void)state;
	up_and_known("");
	for (unsigned seed = 6; seed < 20; seed++) {
		crig_expect(crig_write("a", 0, B(1), seed), B(1));
		assert_false(read_is("a", 0, B(1), seed));
		assert_true(read_is("a", 0, B(1), seed));
		assert_true(read_is("a", B(1), B(1), 5));
	}
}

static void no_op_leaves_old_data_to_be_read(void **state)
{
	static const enum xseg_op ops[] = { XSEG_OP_WRITE_ZEROES, XSEG_OP_DISCARD, XSEG_OP_DELETE,
		XSEG_OP_COPY };

	(void)state;
	crig_up("");
	crig_expect(crig_write("b", 0, B(2), 9), B(2));
	for (unsigned i = 0; i < 4; i++) {
		struct crig_io *copy;

		crig_expect(crig_write("a", 0, B(2), 5), B(2));
		read_is("a", 0, B(2), 5);
		assert_true(read_is("a", 0, B(2), 5));
		if (ops[i] == XSEG_OP_COPY) {
			copy = crig_send_copy("a", "b", 0, B(2));
			crig_settle();
			crig_expect(copy, B(2));
		} else {
			crig_expect(crig_op(ops[i], "a", 0, ops[i] == XSEG_OP_DELETE ? 0 : B(2)),
				ops[i] == XSEG_OP_DELETE ? 0 : B(2));
		}
		assert_false(read_is("a", 0, B(2), ops[i] == XSEG_OP_COPY ? 9 : 0));
	}
}

static void a_write_past_the_cache_is_seen(void **state)
{
	struct crig_io *w;

	(void)state;
	up_and_known("");
	crig_expect(crig_flush(0), 0);
	crig_set("policy=write-around");
	crig_settle();
	read_is("a", 0, B(2), 5);
	assert_true(read_is("a", 0, B(2), 5));
	crig_hold(true);
	w = crig_send(XSEG_OP_WRITE, "a", 0, B(1), 0, 6);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_BYPASS);
	let_go(crig_send_direct("a", B(1), B(1), &directly));
	assert_true(directly);
	crig_hold(false);
	crig_settle();
	crig_expect(w, B(1));
	assert_false(read_is("a", 0, B(1), 6));
}

static void a_page_that_is_read_stays_as_it_was(void **state)
{
	struct crig_io *io;

	(void)state;
	up_and_known("");
	io = crig_send_direct("a", 0, B(1), &directly);
	assert_true(directly);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	stays_until_it_is_let_go(io, 5);
}

/* Of pages that were lent an era forgets those that no request listed; these may be listed at any
 * time. */
static void no_era_ends_for_what_may_be_read_directly(void **state)
{
	struct crig_io *io;

	(void)state;
	up_and_known("");
	for (unsigned i = 0; i < 12; i++) {
		io = crig_send(XSEG_OP_READ, "b", 0, B(1), XSEG_REQ_LOAN, 0);
		crig_settle();
		let_go(io);
		crig_expect(crig_write("b", 0, B(1), i), B(1));
		limbo_look(cport_at(crig.k, 0));
	}
	io = crig_send_direct("a", 0, B(1), &directly);
	assert_true(directly);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 1);
	assert_true(has(io, 5));
	let_go(io);
}

static void what_was_flushed_is_read_on(void **state)
{
	struct crig_io *f;

	(void)state;
	up_and_known("");
	crig_hold(true);
	f = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	assert_true(read_is("a", 0, B(2), 5));
	crig_hold(false);
	crig_settle();
	crig_expect(f, 0);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(read_is("a", 0, B(2), 5));
}

static void a_page_that_may_be_read_is_not_given_to_a_writer(void **state)
{
	struct crig_io *io, *w;

	(void)state;
	up_and_known("");
	io = crig_send_direct("a", 0, B(1), &directly);
	w = crig_send_give(NULL, "a", 0, B(1), 0, 6);
	crig_settle();
	w = crig_send_give(w, "a", 0, B(1), 0, 7);
	crig_settle();
	w = crig_send_give(w, "a", 0, B(1), 0, 8);
	crig_settle();
	assert_true(directly && has(io, 5));
	let_go(io);
	crig_expect(w, B(1));
	read_is("a", 0, B(1), 8);
}

/* ---- what becomes of objects, chunks, pages ---- */

static void an_entry_that_is_anothers_is_not_read(void **state)
{
	(void)state;
	up_and_known("objects=1");
	crig_expect(crig_flush(0), 0);
	crig_store_fill("b", 0, B(2), 9);
	for (unsigned i = 0; i < 3; i++) {		/* one passes, until the other has left */
		read_is("b", 0, B(2), 9);
		crig_pass(CRIG_S);
	}
	assert_null(crig_object("a"));
	assert_true(read_is("b", 0, B(2), 9));
	assert_false(read_is("a", 0, B(2), 5));
}

static void a_chunk_that_was_dropped_is_not_read(void **state)
{
	(void)state;
	up_and_known("");
	crig_expect(crig_flush(0), 0);
	assert_true(crig_admin("drop") > 0);
	crig_expect(crig_write("b", 0, B(2), 9), B(2));
	assert_false(read_is("a", 0, B(2), 5));
	assert_true(read_is("a", 0, B(2), 5));
}

static void what_is_read_directly_is_not_the_first_to_be_evicted(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(8);
	crig_store_fill("a", 0, B(40), 5);
	read_is("a", 0, B(1), 5);
	for (uint32_t i = 1; i < 40; i++) {
		if (!read_is("a", 0, B(1), 5))
			fail_msg("it was evicted when bucket %u came", i);
		crig_expect_data("a", B(i), B(1), 5);
		if (crig_state("a", i) == BUCKET_VALID)
			slot_clear_flag(crig.k, crig_object("a"), i, SLOT_REF);
		if (!slot_absent(crig_slot("a", 0)))
			slot_clear_flag(crig.k, crig_object("a"), 0, SLOT_REF);
	}
}

static void an_object_that_is_read_directly_is_kept_when_another_is_wanted(void **state)
{
	(void)state;
	up_and_known("objects=2");
	crig_expect(crig_flush(0), 0);
	crig_store_fill("b", 0, B(2), 6);
	crig_store_fill("c", 0, B(2), 7);
	read_is("b", 0, B(2), 6);
	for (unsigned i = 0; i < 4; i++) {
		if (!slot_absent(crig_slot("a", 0)))
			for (uint32_t b = 0; b < 2; b++)
				slot_clear_flag(crig.k, crig_object("a"), b, SLOT_REF);
		assert_true(read_is("a", 0, B(2), 5));
		crig_expect_data(i % 2 ? "b" : "c", 0, B(2), i % 2 ? 6 : 7);
		crig_pass(CRIG_S);
	}
}

static void a_page_that_moves_to_another_extent_is_read_where_it_is(void **state)
{
	(void)state;
	up_and_known("memory=12M");
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("b", B(200 * i), B(200), 6), B(200));
	crig_expect(crig_flush(0), 0);
	read_is("b", B(100), B(1), 6);
	crig_set("memory=4M");
	for (unsigned i = 0; i < 20; i++) {
		crig_pass(CRIG_S);
		read_is("a", 0, B(2), 5);
		read_is("b", B(700), B(2), 6);
	}
	assert_int_equal(nr_owned(crig.k), 1024);
	assert_true(read_is("a", 0, B(2), 5));
}

/* ---- the door ---- */

static void pass_through_is_asked_for_everything(void **state)
{
	(void)state;
	up_and_known("");
	crig_expect(crig_flush(0), 0);
	crig_set("policy=pass-through");
	crig_settle();
	assert_false(read_is("a", 0, B(2), 5));
	assert_false(read_is("a", 0, B(2), 5));
	crig_set("policy=write-back");
	crig_settle();
	assert_false(read_is("a", 0, B(2), 5));
	assert_true(read_is("a", 0, B(2), 5));
}

static void a_volume_s_own_policy_is_learned_with_the_next_read(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_expect(crig_flush(1), 0);
	read_is("a", 0, B(2), 5);
	assert_true(read_is("a", 0, B(2), 5));
	crig_volume_set("id=1 policy=pass-through");
	assert_false(read_is("a", 0, B(2), 5));
	assert_false(read_is("a", 0, B(2), 5));
	crig_volume_set("id=1 policy=write-through");
	assert_false(read_is("a", 0, B(2), 5));
	assert_true(read_is("a", 0, B(2), 5));
}

static void a_cache_that_stops_is_not_read_while_it_waits_for_its_pages(void **state)
{
	struct crig_io *io;
	uint64_t left;

	(void)state;
	up_and_known("");
	crig_expect(crig_flush(0), 0);
	io = crig_send_direct("a", 0, B(1), &directly);
	assert_true(directly);
	atomic_store(&crig.peer->stopping, true);
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	crig_settle();
	let_go(io);
	assert_false(xseg_direct_is_open(crig.peer->xp));
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
	atomic_store(&crig.peer->stopping, false);
	crig_settle();
	assert_false(xseg_direct_is_open(crig.peer->xp));
}

static void off_the_path_nothing_is_read(void **state)
{
	(void)state;
	up_and_known("");
	atomic_store(&crig.k->store.off, true);
	direct_run(crig.k);
	assert_false(xseg_direct_is_open(crig.peer->xp));
	atomic_store(&crig.k->store.off, false);
	direct_run(crig.k);
	assert_false(read_is("a", 0, B(2), 5));
}

/* ---- kills ---- */

static void the_dead_are_read_and_their_successor_begins_anew(void **state)
{
	struct crig_io *io;

	(void)state;
	up_and_known("");
	crig_kill();
	io = crig_send_direct("a", 0, B(2), &directly);
	assert_true(directly && has(io, 5));
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	crig_expect(crig_write("a", 0, B(2), 6), B(2));
	crig_expect(crig_write("b", 0, B(60), 7), B(60));
	assert_true(has(io, 5));	/* what it had pinned, its successor knows */
	cached_check_loans(crig.peer);
	let_go(io);
	assert_false(read_is("a", 0, B(2), 6));
	assert_true(read_is("a", 0, B(2), 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(what_was_read_once_is_read_without_the_cache),
		CRIG_T(what_nobody_asked_to_read_directly_is_not),
		CRIG_T(a_later_loan_to_another_takes_nothing_away),
		CRIG_T(zeroes_and_edges_are_asked_for),
		CRIG_T(reads_that_go_on_open_what_lies_in_the_same_chunk),
		CRIG_T(a_read_that_had_to_wait_opens_what_lies_beside_too),
		CRIG_T(where_writes_come_between_a_read_opens_only_what_it_is_lent),
		CRIG_T(who_does_not_want_to_read_directly_opens_nothing),
		CRIG_T(what_is_no_whole_page_is_not_opened),
		CRIG_T(what_is_on_its_way_to_the_store_is_opened_and_stays),
		CRIG_T(a_write_is_seen_by_the_next_read),
		CRIG_T(no_op_leaves_old_data_to_be_read),
		CRIG_T(a_write_past_the_cache_is_seen),
		CRIG_T(a_page_that_is_read_stays_as_it_was),
		CRIG_T(no_era_ends_for_what_may_be_read_directly),
		CRIG_T(what_was_flushed_is_read_on),
		CRIG_T(a_page_that_may_be_read_is_not_given_to_a_writer),
		CRIG_T(an_entry_that_is_anothers_is_not_read),
		CRIG_T(a_chunk_that_was_dropped_is_not_read),
		CRIG_T(what_is_read_directly_is_not_the_first_to_be_evicted),
		CRIG_T(an_object_that_is_read_directly_is_kept_when_another_is_wanted),
		CRIG_T(a_page_that_moves_to_another_extent_is_read_where_it_is),
		CRIG_T(pass_through_is_asked_for_everything),
		CRIG_T(a_volume_s_own_policy_is_learned_with_the_next_read),
		CRIG_T(a_cache_that_stops_is_not_read_while_it_waits_for_its_pages),
		CRIG_T(off_the_path_nothing_is_read),
		CRIG_T(the_dead_are_read_and_their_successor_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
