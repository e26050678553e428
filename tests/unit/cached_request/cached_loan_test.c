/* cached_loan_test - reads that borrow pages, and the fate of these pages when their buckets let go
 * of them (peers/cached/lend/loan.c, read.c).
 */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"

static struct crig_io *loan(const char *name, uint64_t offset, uint32_t size)
{
	struct crig_io *io = crig_send(XSEG_OP_READ, name, offset, size, XSEG_REQ_LOAN, 0);

	crig_settle();
	return io;
}

/* Where the i-th page of its data is. */
static const uint8_t *data(const struct crig_io *io, uint32_t i)
{
	return xseg_req_page(crig.seg, io->r, i);
}

static bool is_lent(const struct crig_io *io, uint32_t i)
{
	return data(io, i) != xseg_page(crig.seg, io->r->page[i]);
}

/* It was answered, and its pages, whole ones, have the bytes of seed. */
static bool has(const struct crig_io *io, unsigned seed)
{
	for (uint32_t i = 0; i < io->r->nr_pages; i++)
		if (!crig_bytes_are(data(io, i), io->r->offset + B(i), CRIG_PAGE, seed))
			return false;
	return io->done && io->result == io->r->size;
}

static uint32_t limbo(void)
{
	return atomic_load(&crig.k->memory.limbo.nr);
}

static void let_go(struct crig_io *io)
{
	crig_expect(io, io->r->size);
}

/* ---- lending --------------------------------------------------------------------------- */

static void a_hit_is_lent_the_buckets_own_page(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(3), 5), B(3));
	io = loan("a", B(1), B(2));
	assert_true(is_lent(io, 0) && is_lent(io, 1));
	assert_ptr_equal(data(io, 0), xseg_page(crig.seg, slot_page(crig_slot("a", 1))));
	assert_true(has(io, 5));
	assert_int_equal(crig_counter(CC_LENT_BYTES), B(2));
	cached_check_loans(crig.peer);
	let_go(io);
}

static void a_miss_is_lent_the_page_that_was_loaded_for_it(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(4), 6);
	io = loan("a", 0, B(4));
	assert_true(is_lent(io, 0) && is_lent(io, 3) && has(io, 6));
	let_go(io);
}

static void who_does_not_ask_for_it_gets_a_copy(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = crig_read("a", 0, B(1));
	assert_false(is_lent(io, 0));
	assert_int_equal(crig_slot("a", 0) & SLOT_LENT, 0);
	let_go(io);
}

static void edges_that_are_wanted_in_part_are_copied_within_one_request(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(4), 5), B(4));
	io = loan("a", 512, B(3));
	assert_int_equal(io->result, B(3));
	assert_false(is_lent(io, 0));
	assert_true(is_lent(io, 1) && is_lent(io, 2));
	assert_false(is_lent(io, 3));
	assert_true(crig_bytes_are(data(io, 0) + 512, 512, CRIG_PAGE - 512, 5));
	assert_true(crig_bytes_are(data(io, 2), B(2), CRIG_PAGE, 5));
	assert_true(crig_bytes_are(data(io, 3), B(3), 512, 5));
	let_go(io);
}

static void zeroes_are_lent_without_a_page(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2)), B(2));
	io = loan("a", 0, B(2));
	assert_true(is_lent(io, 0) && has(io, 0));
	assert_int_equal(io->r->lent[1], XSEG_LENT_ZEROES);
	let_go(io);
}

/* Its page is filled in place when the write is applied. */
static void the_edge_of_a_write_that_waits_is_copied(void **state)
{
	struct crig_io *w, *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(2), 6);
	crig_hold(true);
	w = crig_send(XSEG_OP_WRITE, "a", 512, B(1), 0, 7);
	crig_settle();
	crig_answer(crig_held(XSEG_OP_READ, 0));	/* one edge is here, the other is not */
	assert_true(crig_slot("a", 0) & SLOT_LOADED || crig_slot("a", 1) & SLOT_LOADED);
	io = loan("a", crig_slot("a", 0) & SLOT_LOADED ? 0 : B(1), B(1));
	assert_true(io->done && !is_lent(io, 0) && has(io, 6));
	let_go(io);
	crig_hold(false);
	crig_expect(w, B(1));
}

static void a_loan_of_what_goes_past_the_cache_is_a_copy(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=pass-through");
	crig_store_fill("a", 0, B(2), 6);
	io = loan("a", 0, B(2));
	assert_true(!is_lent(io, 0) && !is_lent(io, 1) && has(io, 6));
	let_go(io);
}

/* ---- a loan is a snapshot ---------------------------------------------------------------- */

static void a_write_leaves_what_was_lent_as_it_was(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	io = loan("a", 0, B(2));
	crig_expect(crig_write("a", 0, B(2), 6), B(2));
	crig_expect(crig_write("a", 512, 1024, 7), 1024);
	assert_true(has(io, 5));
	assert_int_equal(limbo(), 2);
	let_go(io);
}

static void each_way_out_of_a_bucket_leaves_what_was_lent_as_it_was(void **state)
{
	static const enum xseg_op ops[] = { XSEG_OP_WRITE_ZEROES, XSEG_OP_DISCARD, XSEG_OP_DELETE,
		XSEG_OP_COPY };
	struct crig_io *io;

	(void)state;
	crig_up("");
	for (unsigned i = 0; i < 4; i++) {
		crig_expect(crig_write("b", 0, B(2), 9), B(2));
		crig_expect(crig_write("a", 0, B(2), 5), B(2));
		io = loan("a", 0, B(2));
		if (ops[i] == XSEG_OP_COPY) {
			struct crig_io *copy = crig_send_copy("a", "b", 0, B(2));

			crig_settle();
			crig_expect(copy, B(2));
		} else {
			crig_expect(crig_op(ops[i], "a", 0, ops[i] == XSEG_OP_DELETE ? 0 : B(2)),
				ops[i] == XSEG_OP_DELETE ? 0 : B(2));
		}
		assert_int_equal(limbo(), 2);
		crig_expect(crig_write("c", 0, B(40), 8), B(40));	/* takes whatever is free */
		assert_true(has(io, 5));
		cached_check_loans(crig.peer);
		let_go(io);
		assert_true(limbo_look(cport_at(crig.k, 0)));
	}
}

static void a_flush_in_flight_and_a_loan_keep_the_page_both(void **state)
{
	struct crig_io *io, *f;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = loan("a", 0, B(1));
	crig_hold(true);
	f = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	assert_true(crig_slot("a", 0) & SLOT_LENT);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 0);			/* the flush has it */
	cached_check_loans(crig.peer);
	crig_hold(false);
	crig_expect(f, 0);
	assert_int_equal(limbo(), 1);
	assert_true(has(io, 5));
	let_go(io);
}

static void the_page_of_a_bucket_that_was_flushed_is_still_known_to_be_lent(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = loan("a", 0, B(1));
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(crig_slot("a", 0) & SLOT_LENT);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(limbo(), 1);
	assert_true(has(io, 5));
	let_go(io);
}

/* ---- limbo ------------------------------------------------------------------------------- */

static void a_page_is_free_again_when_nobody_reads_it(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = loan("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 1);
	assert_false(limbo_look(cport_at(crig.k, 0)));
	assert_int_equal(limbo(), 1);
	let_go(io);
	assert_true(limbo_look(cport_at(crig.k, 0)));
	assert_int_equal(limbo(), 0);
	crig_settle();
}

static void two_that_read_it_both_pin_it(void **state)
{
	struct crig_io *one, *two;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	one = loan("a", 0, B(1));
	two = loan("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	let_go(two);
	assert_false(limbo_look(cport_at(crig.k, 0)));
	assert_true(has(one, 5));
	let_go(one);
	assert_true(limbo_look(cport_at(crig.k, 0)));
}

/* A look ends an era: writes one page over after it was lent, so that there is something to look
 * for. */
static void look(void)
{
	struct crig_io *io;

	crig_expect(crig_write("other", 0, B(1), 1), B(1));
	io = loan("other", 0, B(1));
	crig_expect(crig_write("other", 0, B(1), 2), B(1));
	assert_int_equal(limbo(), 1);
	let_go(io);
	assert_true(limbo_look(cport_at(crig.k, 0)));
	assert_int_equal(limbo(), 0);
}

static void what_was_lent_before_a_look_and_is_not_any_more_is_free_at_once(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	let_go(loan("a", 0, B(2)));
	look();
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 0);
	let_go(loan("a", B(1), B(1)));			/* lent anew since */
	crig_expect(crig_write("a", B(1), B(1), 6), B(1));
	assert_int_equal(limbo(), 1);
	assert_true(limbo_look(cport_at(crig.k, 0)));
}

static void what_a_look_has_found_is_still_lent_after_many_more(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = loan("a", 0, B(1));
	for (unsigned i = 0; i < 600; i++)	/* past where eras and what was seen begin anew */
		look();
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 1);
	assert_true(has(io, 5));
	let_go(io);
	assert_true(limbo_look(cport_at(crig.k, 0)));
}

/* A cache that looks a thousand times a second is there in a month. */
static void the_number_of_an_era_wraps(void **state)
{
	(void)state;
	crig_up("");
	atomic_store(&crig.k->memory.limbo.era, UINT32_MAX - 5);
	for (unsigned i = 0; i < 6; i++)
		look();
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	let_go(loan("a", 0, B(1)));
	look();
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	assert_int_equal(limbo(), 0);
}

/* Overwriting what was lent once does not eat the cache up: looks are made, some for many pages. */
static void overwriting_what_was_lent_goes_on_for_ever(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(40);
	for (unsigned i = 0; i < 400; i++) {
		crig_expect(crig_write("a", 0, B(8), 1 + i % 200), B(8));
		let_go(loan("a", 0, B(8)));
	}
	assert_in_range(limbo(), 0, 16);
}

static void eviction_of_what_was_lent_makes_room(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(400), 3);
	crig_limit(40);
	for (unsigned i = 0; i < 400; i++) {
		struct crig_io *io = loan("a", B(i), B(1));

		assert_true(has(io, 3));
		let_go(io);
	}
	assert_true(crig_counter(CC_LENT_BYTES) > B(300));
}

static void a_write_waits_for_pages_that_are_all_on_loan_and_goes_on_when_they_are_let_go(void **state)
{
	struct crig_io *io[16], *w;
	uint32_t n = 0;

	(void)state;
	crig_up("requests=64");
	crig_store_fill("a", 0, B(40), 3);
	crig_limit(32);
	for (; n < 16; n++) {
		io[n] = loan("a", B(n), B(1));
		if (!is_lent(io[n], 0))
			break;
	}
	assert_in_range(n, 2, 8);	/* no more than a quarter */
	/* with the chunks' page: all that there is */
	w = crig_send(XSEG_OP_WRITE, "b", 0, B(31), 0, 7);
	crig_settle();
	crig_expect_waits(w);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(has(io[i], 3));
		let_go(io[i]);
	}
	if (n < 16)
		let_go(io[n]);
	crig_pass(CRIG_S);
	crig_expect(w, B(31));
}

static void no_more_than_a_quarter_of_the_cache_is_lent_and_the_rest_is_copied(void **state)
{
	struct crig_io *io[10];
	uint32_t lent = 0;

	(void)state;
	crig_up("");
	crig_limit(80);
	crig_expect(crig_write("a", 0, B(60), 5), B(60));
	for (uint32_t i = 0; i < 10; i++) {
		io[i] = loan("a", B(6 * i), B(6));
		assert_true(has(io[i], 5));
		lent += is_lent(io[i], 0) ? 6 : 0;
	}
	assert_in_range(lent, 6, 20);
	assert_true(crig_counter(CC_LOANS_REFUSED) > 0);
	for (uint32_t i = 0; i < 10; i++)
		let_go(io[i]);
	crig_pass(CRIG_MS);
	io[0] = loan("a", 0, B(6));
	assert_true(is_lent(io[0], 0));
	let_go(io[0]);
}

/* Their pages are listed nowhere before the store has answered. */
static void reads_that_wait_for_the_store_count_as_lent(void **state)
{
	struct crig_io *io[10], *w;
	uint32_t lent = 0;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(60), 5);
	crig_limit(80);
	crig_hold(true);
	for (uint32_t i = 0; i < 10; i++) {
		io[i] = loan("a", B(6 * i), B(6));
		crig_expect_waits(io[i]);
		cached_check_loans(crig.peer);
	}
	crig_hold(false);
	crig_settle();
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(has(io[i], 5));
		lent += is_lent(io[i], 0) ? 6 : 0;
	}
	cached_check_loans(crig.peer);
	assert_in_range(lent, 6, 20);
	/* the others find pages */
	w = crig_write("b", 0, B(40), 7);
	crig_expect(w, B(40));
	for (uint32_t i = 0; i < 10; i++)
		let_go(io[i]);
}

/* A client of its own, with one read that asks for a loan of six pages. */
struct borrower {
	struct xseg_peer *peer;
	struct xport *port;
	struct xreq *r;
};

static void borrower_open(struct borrower *b, const char *name, uint64_t offset)
{
	struct xseg_error err = { "" };
	const struct xseg_peer_params params = {
		.name = name, .kind = "client", .nr_ports = 1, .nr_requests = 1
	};

	assert_int_equal(xseg_peer_open(crig.seg, &params, &b->peer, &err), 0);
	b->port = xseg_peer_port(b->peer, 0);
	b->r = xseg_req_alloc(b->port);
	assert_non_null(b->r);
	b->r->op = XSEG_OP_READ;
	b->r->flags = XSEG_REQ_LOAN;
	b->r->offset = b->r->obj_offset = offset;
	b->r->size = B(6);
	b->r->nr_pages = 6;
	assert_int_equal(xseg_pages_take(b->peer, 6, b->r->page), 0);
	xseg_req_set_target(b->r, "a", 1);
	assert_int_equal(
		xseg_req_submit(b->port, b->r, xseg_peer_find(crig.seg, "cached")), 0);
	xseg_port_flush(b->port);
	crig_settle();
}

/* Returns how many pages it was lent. */
static uint32_t borrower_close(struct borrower *b)
{
	uint32_t lent = 0;
	struct xreq *r;

	assert_int_equal(xseg_port_replies(b->port, &r, 1), 1);
	assert_int_equal(r->result, B(6));
	for (uint32_t i = 0; i < 6; i++)
		lent += xseg_req_page(crig.seg, r, i) != xseg_page(crig.seg, r->page[i]);
	xseg_req_free(b->port, r);
	xseg_peer_close(b->peer, XSEG_CLOSE_FREE_ARENA);
	return lent;
}

/* Each port is given credit for a part of what is left. */
static void reads_of_all_ports_that_wait_for_the_store_count_together(void **state)
{
	static const char *const names[] = { "b0", "b1", "b2", "b3" };
	struct borrower b[4];
	uint32_t lent = 0;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(24), 5);
	crig_limit(80);
	crig_hold(true);
	for (uint32_t i = 0; i < 4; i++) {
		borrower_open(&b[i], names[i], B(6 * i));
		cached_check_loans(crig.peer);
	}
	crig_hold(false);
	crig_settle();
	cached_check_loans(crig.peer);
	for (uint32_t i = 0; i < 4; i++)
		lent += borrower_close(&b[i]);
	assert_in_range(lent, 6, 15);		/* a quarter of it is for direct readers */
}

static void what_was_granted_to_a_read_that_fails_may_be_lent_again(void **state)
{
	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(6), 5);
	crig_limit(80);
	for (uint32_t i = 0; i < 20; i++) {
		struct crig_io *io;

		crig_fail_next(XSEG_OP_READ, -EIO, 1);
		io = loan("a", 0, B(6));
		crig_expect(io, -EIO);
		cached_check_loans(crig.peer);
	}
	let_go(loan("a", 0, B(6)));
	assert_true(crig_counter(CC_LENT_BYTES) >= B(6));
	assert_int_equal(crig_counter(CC_LOANS_REFUSED), 0);
}

/* Who reads directly asks nobody: all that can be have their part of a sixteenth. */
static void direct_readers_of_all_ports_pin_a_sixteenth_of_the_cache_at_most(void **state)
{
	(void)state;
	crig_up("");
	assert_int_equal(crig.k->lend.loans.nr_ports, 8);
	assert_in_range(
		crig.k->lend.direct.max * crig.k->lend.loans.nr_ports, 1, data_pages(crig.k) / 16);
}

/* What volumes have for sure is not lent to those who keep it. */
static void minima_of_volumes_leave_less_to_be_lent(void **state)
{
	struct crig_io *io[80];
	uint32_t lent = 0;

	(void)state;
	crig_up("");
	crig_volume(1);
	crig_volume_set("id=1 min=2304k");
	crig_expect(crig_write("a", 0, B(160), 5), B(160));
	for (uint32_t i = 0; i < 80; i++) {
		io[i] = loan("a", B(2 * i), B(2));
		lent += is_lent(io[i], 0) ? 2 : 0;
	}
	assert_in_range(lent, 1, data_pages(crig.k) - 576 - 257);
	cached_check_loans(crig.peer);
	for (uint32_t i = 0; i < 80; i++)
		let_go(io[i]);
}

/* ---- deaths and leaving ------------------------------------------------------------------ */

static void a_successor_keeps_what_its_predecessor_lent(void **state)
{
	struct crig_io *one, *two;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	one = loan("a", 0, B(1));
	two = loan("a", B(1), B(1));
	/* one's page is in limbo, two's in its slot */
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	cached_check_loans(crig.peer);
	assert_int_equal(limbo(), 1);
	crig_expect(crig_write("a", B(1), B(1), 7), B(1));
	assert_int_equal(limbo(), 2);
	crig_expect(crig_write("b", 0, B(200), 8), B(200));
	assert_true(has(one, 5) && has(two, 5));
	let_go(one);
	let_go(two);
	assert_true(limbo_look(cport_at(crig.k, 0)));
	assert_int_equal(limbo(), 0);
}

static void a_read_that_was_lent_something_before_the_kill_is_done_again(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", B(1), B(1), 6);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_hold(true);
	io = loan("a", 0, B(2));	/* the first is lent, the second is loaded */
	crig_expect_waits(io);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_hold(false);
	crig_settle();
	assert_true(has(io, 6) && is_lent(io, 0) && is_lent(io, 1));
	cached_check_loans(crig.peer);
	let_go(io);
}

static void a_cache_is_not_quiet_while_it_has_lent_something(void **state)
{
	uint64_t left;
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_flush(0), 0);
	io = loan("a", 0, B(1));
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	assert_int_equal(left, 0);
	let_go(io);
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
}

/* Of the blocks of counters of caches, which outlive them. */
static uint64_t counted_limbo(void)
{
	static struct xseg_stats_view view;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < xseg_nr_stats(crig.seg); i++)
		if (xseg_stats_view(crig.seg, i, &view) && !strcmp(view.kind, "cache"))
			bytes += xseg_stats_value(&view, cache_keys[CC_LIMBO_BYTES]);
	return bytes;
}

static void a_cache_that_has_stopped_counts_nothing_as_kept_aside(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	io = loan("a", 0, B(1));
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	let_go(io);
	crig_pass(CRIG_S);
	assert_int_equal(counted_limbo(), B(1));
	crig_expect(crig_flush(0), 0);
	crig_stop();
	assert_int_equal(counted_limbo(), 0);
}

static void an_extent_is_not_given_back_while_a_page_of_it_is_on_loan(void **state)
{
	struct crig_io *io[64];
	uint32_t had;

	(void)state;
	crig_up("memory=12M");
	crig_expect(crig_write("a", 0, B(256), 5), B(256));
	crig_expect(crig_write("a", B(256), B(256), 5), B(256));
	crig_expect(crig_write("a", B(512), B(256), 5), B(256));
	crig_expect(crig_flush(0), 0);
	for (uint32_t i = 0; i < 8; i++)
		io[i] = loan("a", B(96 * i), B(1));
	had = xseg_nr_free_pages(crig.seg);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(is_lent(io[i], 0) && has(io[i], 5));
		let_go(io[i]);
	}
	crig_pass(10 * CRIG_S);
	assert_int_equal(nr_owned(crig.k), 1024);
	assert_int_equal(xseg_nr_free_pages(crig.seg), had + 2048);
	assert_int_equal(limbo(), 0);
}

/* Else what is lent would be all that a small cache has. */
static void a_cache_does_not_shrink_below_four_times_what_is_lent(void **state)
{
	struct crig_io *io[64];
	uint32_t lent = 0;

	(void)state;
	crig_up("memory=12M");
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("a", B(256 * i), B(256), 5), B(256));
	crig_expect(crig_flush(0), 0);
	for (uint32_t i = 0; i < 64; i++) {
		io[i] = loan("a", B(16 * i), B(16));
		lent += is_lent(io[i], 0) ? 16 : 0;
	}
	assert_in_range(lent, 256, 768);
	crig_set("memory=4M");
	crig_pass(10 * CRIG_S);
	assert_true(data_pages(crig.k) >= 4 * lent);
	crig_expect(crig_write("b", 0, B(256), 6), B(256));
	for (uint32_t i = 0; i < 64; i++)
		let_go(io[i]);
	crig_pass(10 * CRIG_S);
	assert_int_equal(nr_owned(crig.k), 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_hit_is_lent_the_buckets_own_page),
		CRIG_T(a_miss_is_lent_the_page_that_was_loaded_for_it),
		CRIG_T(who_does_not_ask_for_it_gets_a_copy),
		CRIG_T(edges_that_are_wanted_in_part_are_copied_within_one_request),
		CRIG_T(zeroes_are_lent_without_a_page),
		CRIG_T(the_edge_of_a_write_that_waits_is_copied),
		CRIG_T(a_loan_of_what_goes_past_the_cache_is_a_copy),
		CRIG_T(a_write_leaves_what_was_lent_as_it_was),
		CRIG_T(each_way_out_of_a_bucket_leaves_what_was_lent_as_it_was),
		CRIG_T(a_flush_in_flight_and_a_loan_keep_the_page_both),
		CRIG_T(the_page_of_a_bucket_that_was_flushed_is_still_known_to_be_lent),
		CRIG_T(a_page_is_free_again_when_nobody_reads_it),
		CRIG_T(two_that_read_it_both_pin_it),
		CRIG_T(what_was_lent_before_a_look_and_is_not_any_more_is_free_at_once),
		CRIG_T(what_a_look_has_found_is_still_lent_after_many_more),
		CRIG_T(the_number_of_an_era_wraps),
		CRIG_T(overwriting_what_was_lent_goes_on_for_ever),
		CRIG_T(eviction_of_what_was_lent_makes_room),
		CRIG_T(a_write_waits_for_pages_that_are_all_on_loan_and_goes_on_when_they_are_let_go),
		CRIG_T(no_more_than_a_quarter_of_the_cache_is_lent_and_the_rest_is_copied),
		CRIG_T(reads_that_wait_for_the_store_count_as_lent),
		CRIG_T(reads_of_all_ports_that_wait_for_the_store_count_together),
		CRIG_T(what_was_granted_to_a_read_that_fails_may_be_lent_again),
		CRIG_T(direct_readers_of_all_ports_pin_a_sixteenth_of_the_cache_at_most),
		CRIG_T(minima_of_volumes_leave_less_to_be_lent),
		CRIG_T(a_successor_keeps_what_its_predecessor_lent),
		CRIG_T(a_read_that_was_lent_something_before_the_kill_is_done_again),
		CRIG_T(a_cache_is_not_quiet_while_it_has_lent_something),
		CRIG_T(a_cache_that_has_stopped_counts_nothing_as_kept_aside),
		CRIG_T(an_extent_is_not_given_back_while_a_page_of_it_is_on_loan),
		CRIG_T(a_cache_does_not_shrink_below_four_times_what_is_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
