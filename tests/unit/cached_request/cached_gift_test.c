/* cached_gift_test - writes that give their pages, and borrow others (peers/cached/lend/gift.c,
 * write.c).
 */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"
#include "xseg/internal.h"

static struct crig_io *give(
	struct crig_io *io, const char *name, uint64_t offset, uint32_t size, unsigned seed)
{
	io = crig_send_give(io, name, offset, size, 0, seed);
	crig_settle();
	assert_true(io->done);
	assert_int_equal(io->result, size);
	return io;
}

/* The page in which the i-th of its next write's is to be; NO_PAGE: it was lent none. */
static uint32_t lent(const struct crig_io *io, uint32_t i)
{
	const char *page = xseg_req_gift_page(crig.seg, io->r, i), *first = xseg_page(crig.seg, 0);

	return page == (char *)xseg_page(crig.seg, io->r->page[i])
		       ? NO_PAGE
		       : (uint32_t)((page - first) / CRIG_PAGE);
}

static uint64_t owner(uint32_t page)
{
	return xseg_page_owner(crig.seg, page);
}

static uint32_t nr_lent(void)
{
	return nr_gifts(cport_at(crig.k, 0));
}

/* One that has given and been lent a page for the first bucket of "a": a second write over it, as
 * the first has none to let go of. */
static struct crig_io *giver(void)
{
	struct crig_io *io = give(NULL, "a", 0, B(1), 1);

	assert_int_equal(lent(io, 0), NO_PAGE);
	return give(io, "a", 0, B(1), 2);
}

static void let_go(struct crig_io *io)
{
	crig_expect(io, io->r->size);
}

/* ---- exchange ---------------------------------------------------------------------------- */

static void a_write_is_lent_the_page_that_its_bucket_lets_go_of(void **state)
{
	struct crig_io *io;
	uint32_t old;

	(void)state;
	crig_up("");
	io = give(NULL, "a", 0, B(1), 1);
	assert_int_equal(lent(io, 0), NO_PAGE);		/* there was nothing */
	old = slot_page(crig_slot("a", 0));
	io = give(io, "a", 0, B(1), 2);
	assert_int_equal(lent(io, 0), old);
	assert_true(owner(old) & OWNER_GIFT);
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), 0);
	crig_expect_data("a", 0, B(1), 2);
	let_go(io);
}

static void the_page_that_is_given_becomes_the_bucket_s_and_the_old_one_is_lent(void **state)
{
	struct crig_io *io;
	uint32_t given, old;

	(void)state;
	crig_up("");
	io = giver();
	for (unsigned seed = 3; seed < 20; seed++) {
		given = lent(io, 0);
		old = slot_page(crig_slot("a", 0));
		io = give(io, "a", 0, B(1), seed);
		assert_int_equal(slot_page(crig_slot("a", 0)), given);
		assert_int_equal(lent(io, 0), old);
		assert_int_equal(nr_lent(), 1);
		crig_expect_data("a", 0, B(1), seed);
	}
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), B(17));
	let_go(io);
}

static void a_bucket_of_any_object_takes_it_clean_or_dirty(void **state)
{
	struct crig_io *io;
	uint32_t given, old;

	(void)state;
	crig_up("");
	crig_have_clean("b", 0, B(1), 7);
	io = giver();
	given = lent(io, 0);
	old = slot_page(crig_slot("b", 0));
	io = give(io, "b", 0, B(1), 3);
	assert_int_equal(slot_page(crig_slot("b", 0)), given);
	assert_int_equal(crig_state("b", 0), BUCKET_DIRTY);
	assert_int_equal(lent(io, 0), old);
	crig_expect_data("b", 0, B(1), 3);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("b", 0, B(1), 3) && crig_stored("a", 0, B(1), 2));
	let_go(io);
}

static void where_the_bucket_lets_go_of_none_a_new_page_is_lent_and_it_is_zero(void **state)
{
	struct crig_io *io;
	uint32_t given;

	(void)state;
	crig_up("");
	crig_expect(crig_write("c", 0, B(64), 9), B(64));	/* the free pages have been used */
	crig_expect(crig_op(XSEG_OP_DELETE, "c", 0, 0), 0);
	io = giver();
	given = lent(io, 0);
	io = give(io, "b", 0, B(1), 3);
	assert_int_equal(slot_page(crig_slot("b", 0)), given);
	assert_true(lent(io, 0) != NO_PAGE && lent(io, 0) != given);
	assert_true(crig_bytes_are(xseg_page(crig.seg, lent(io, 0)), 0, CRIG_PAGE, 0));
	assert_int_equal(nr_lent(), 1);
	let_go(io);
}

/* Two writes that are too large for the short way, all of whose pages may be taken or none: whether
 * the first round answers both. */
static bool one_round_does_both(struct crig_io *io[2], unsigned seed)
{
	static const char *const names[] = { "a", "b" };
	uint64_t next_ns;
	bool both;

	for (unsigned i = 0; i < 2; i++)
		io[i] = crig_send_give(io[i], names[i], 0, B(40), 0, seed);
	peer_port_round(&crig.peer->ports[0], crig.now_ns, 2, &next_ns);
	both = peer_outstanding(crig.peer) == 0;
	crig_settle();
	for (unsigned i = 0; i < 2; i++)
		assert_true(io[i]->done && io[i]->result == B(40));
	return both;
}

static void what_is_given_is_not_copied_so_it_ends_no_round(void **state)
{
	struct crig_io *io[2] = { NULL, NULL };

	(void)state;
	crig_up("memory=8M");
	assert_false(one_round_does_both(io, 1));
	assert_false(one_round_does_both(io, 2));	/* only now they are lent pages */
	assert_int_equal(nr_lent(), 80);
	assert_true(one_round_does_both(io, 3));
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), B(80));
	let_go(io[0]);
	let_go(io[1]);
}

static void edges_are_copied_within_one_request(void **state)
{
	struct crig_io *io;
	uint32_t given;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	io = give(NULL, "a", 0, B(4), 2);
	assert_true(lent(io, 0) != NO_PAGE && lent(io, 3) != NO_PAGE);
	given = lent(io, 1);
	io = give(io, "a", 512, B(3), 3);		/* parts of 0 and 3 */
	assert_int_equal(slot_page(crig_slot("a", 1)), given);
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), B(2));
	assert_int_equal(lent(io, 0), NO_PAGE);		/* nobody took it, so it was let go of */
	assert_true(lent(io, 1) != NO_PAGE && lent(io, 2) != NO_PAGE);
	crig_expect_data("a", 0, 512, 2);
	crig_expect_data("a", 512, B(3), 3);
	crig_expect_data("a", B(3) + 512, 512, 2);
	let_go(io);
	assert_true(gifts_look(cport_at(crig.k, 0)));
	assert_int_equal(nr_lent(), 0);
}

static void what_somebody_reads_is_not_lent_to_be_written(void **state)
{
	struct crig_io *io, *reader;
	uint32_t page;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 1), B(1));
	page = slot_page(crig_slot("a", 0));
	reader = crig_send(XSEG_OP_READ, "a", 0, B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	io = give(NULL, "a", 0, B(1), 2);
	assert_int_equal(lent(io, 0), NO_PAGE);
	io = give(io, "a", 0, B(1), 3);
	io = give(io, "a", 0, B(1), 4);
	assert_true(lent(io, 0) != NO_PAGE && lent(io, 0) != page);
	assert_true(crig_bytes_are(xseg_req_page(crig.seg, reader->r, 0), 0, CRIG_PAGE, 1));
	let_go(reader);
	let_go(io);
}

static void a_page_that_was_given_may_be_lent_to_readers(void **state)
{
	struct crig_io *io, *reader;

	(void)state;
	crig_up("");
	io = give(giver(), "a", 0, B(1), 3);
	reader = crig_send(XSEG_OP_READ, "a", 0, B(1), XSEG_REQ_LOAN, 0);
	crig_settle();
	io = give(io, "a", 0, B(1), 4);	/* the old one goes to limbo, so a new one is lent */
	assert_true(lent(io, 0) != NO_PAGE);
	assert_int_equal(atomic_load(&crig.k->memory.limbo.nr), 1);
	io = give(io, "a", 0, B(1), 5);
	assert_true(crig_bytes_are(xseg_req_page(crig.seg, reader->r, 0), 0, CRIG_PAGE, 3));
	let_go(reader);
	let_go(io);
}

static void a_flush_in_flight_keeps_the_page_that_it_writes(void **state)
{
	struct crig_io *io, *f;
	uint32_t writing;

	(void)state;
	crig_up("");
	io = give(giver(), "a", 0, B(1), 3);
	writing = slot_page(crig_slot("a", 0));
	crig_hold(true);
	f = crig_send(XSEG_OP_FLUSH, "vol:", 0, 0, 0, 0);
	crig_settle();
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	io = give(io, "a", 0, B(1), 4);
	assert_true(lent(io, 0) != NO_PAGE && lent(io, 0) != writing);
	/* the store of the rig looks whether what it writes changes */
	memset(xseg_page(crig.seg, lent(io, 0)), 0xaa, CRIG_PAGE);
	crig_hold(false);
	crig_settle();
	crig_expect(f, 0);
	assert_true(crig_stored("a", 0, B(1), 3));
	crig_expect_data("a", 0, B(1), 4);
	let_go(io);
}

static void who_lists_the_same_page_twice_has_it_copied_once(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(2), 1), B(2));
	io = give(NULL, "a", 0, B(2), 2);
	io->r->lent[1] = io->r->lent[0];
	io = crig_send_give(io, "a", 0, B(2), 0, 3);
	crig_settle();
	assert_int_equal(io->result, B(2));
	assert_int_not_equal(slot_page(crig_slot("a", 0)), slot_page(crig_slot("a", 1)));
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), B(1));
	let_go(io);
}

static void what_goes_past_the_cache_is_not_taken_and_is_let_go_of(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	io = giver();
	crig_expect(crig_flush(0), 0);
	crig_set("policy=write-around");
	io = give(io, "a", 0, B(1), 3);
	assert_int_equal(lent(io, 0), NO_PAGE);
	assert_true(crig_stored("a", 0, B(1), 3));
	assert_true(gifts_look(cport_at(crig.k, 0)));
	let_go(io);
}

static void write_through_takes_it_and_answers_when_the_store_has_it(void **state)
{
	struct crig_io *io;
	uint32_t given;

	(void)state;
	crig_up("");
	io = giver();
	crig_set("policy=write-through");
	given = lent(io, 0);
	io = give(io, "a", 0, B(1), 3);
	assert_int_equal(slot_page(crig_slot("a", 0)), given);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(crig_stored("a", 0, B(1), 3));
	let_go(io);
}

/* ---- how much, and what becomes of it ---------------------------------------------------- */

static void what_clients_drop_is_free_when_a_look_finds_it_nowhere(void **state)
{
	struct crig_io *kept, *dropped;

	(void)state;
	crig_up("");
	kept = giver();
	dropped = give(NULL, "a", 0, B(1), 3);
	assert_int_equal(nr_lent(), 2);
	assert_false(gifts_look(cport_at(crig.k, 0)));
	let_go(dropped);
	assert_int_equal(nr_lent(), 2);		/* nobody was told */
	assert_true(gifts_look(cport_at(crig.k, 0)));
	assert_int_equal(nr_lent(), 1);
	kept = give(kept, "a", 0, B(1), 4);
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), B(1));
	let_go(kept);
}

static void a_page_that_is_listed_nowhere_is_free_and_not_taken_any_more(void **state)
{
	struct crig_io *io;
	uint32_t given;

	(void)state;
	crig_up("");
	io = giver();
	given = lent(io, 0);
	/* by hostile hands: what it gives is listed nowhere */
	atomic_store(&crig.seg->reqs[io->r->index].nr_lent, 0);
	assert_true(gifts_look(cport_at(crig.k, 0)));
	assert_int_equal(owner(given), 0);
	io = give(io, "a", 0, B(1), 3);
	assert_int_equal(crig_counter(CC_GIVEN_BYTES), 0);
	crig_expect_data("a", 0, B(1), 3);
	let_go(io);
}

static void no_more_than_an_eighth_of_the_cache_is_lent(void **state)
{
	struct crig_io *io[20];

	(void)state;
	crig_up("");
	crig_limit(80);
	crig_expect(crig_write("a", 0, B(40), 1), B(40));
	for (uint32_t i = 0; i < 20; i++)
		io[i] = give(NULL, "a", B(2 * i), B(2), 2);
	assert_in_range(nr_lent(), 4, 10);
	for (uint32_t i = 0; i < 20; i++)
		io[i] = give(io[i], "a", B(2 * i), B(2), 3);
	assert_in_range(nr_lent(), 4, 10);
	crig_expect_data("a", 0, B(40), 3);
	for (uint32_t i = 0; i < 20; i++)
		let_go(io[i]);
}

static void a_write_waits_for_pages_that_are_lent_and_goes_on_when_they_are_let_go(void **state)
{
	struct crig_io *io, *w;

	(void)state;
	crig_up("requests=64");
	crig_limit(32);
	crig_expect(crig_write("a", 0, B(3), 1), B(3));
	io = give(NULL, "a", 0, B(3), 2);
	assert_int_equal(nr_lent(), 3);
	/* with the chunks' page: all that there is */
	w = crig_send(XSEG_OP_WRITE, "b", 0, B(31), 0, 7);
	crig_settle();
	crig_pass(CRIG_S);
	crig_expect_waits(w);
	let_go(io);
	crig_pass(CRIG_S);
	crig_expect(w, B(31));
}

static void giving_and_letting_go_for_ever_eats_nothing_up(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(40);
	crig_expect(crig_write("a", 0, B(8), 1), B(8));
	for (unsigned i = 0; i < 400; i++) {
		struct crig_io *io = give(NULL, "a", 0, B(8), 1 + i % 200);

		if (i % 2)
			io = give(io, "a", 0, B(8), 2 + i % 200);
		let_go(io);
		crig_pass(CRIG_MS);
	}
	assert_true(crig_counter(CC_GIVEN_BYTES) > B(100));
}

static void a_cache_that_stops_takes_what_is_given_and_lends_nothing(void **state)
{
	uint64_t left;
	struct crig_io *io;

	(void)state;
	crig_up("");
	io = giver();
	crig_expect(crig_flush(0), 0);
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	atomic_store(&crig.peer->stopping, true);
	io = give(io, "a", 0, B(1), 3);
	assert_int_equal(lent(io, 0), NO_PAGE);
	assert_int_equal(nr_lent(), 0);
	io = give(io, "a", 0, B(1), 4);
	assert_int_equal(lent(io, 0), NO_PAGE);
	crig_pass(CRIG_S);
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
	atomic_store(&crig.peer->stopping, false);
	let_go(io);
}

static void an_extent_that_leaves_gets_its_lent_pages_back_with_the_next_writes(void **state)
{
	struct crig_io *io[8];
	uint32_t had;

	(void)state;
	crig_up("memory=12M");
	for (uint32_t i = 0; i < 3; i++)
		crig_expect(crig_write("a", B(256 * i), B(256), 5), B(256));
	for (uint32_t i = 0; i < 8; i++)
		io[i] = give(NULL, "a", B(96 * i), B(1), 6);
	crig_expect(crig_flush(0), 0);
	had = xseg_nr_free_pages(crig.seg);
	crig_set("memory=4M");
	crig_pass(CRIG_S);
	for (uint32_t i = 0; i < 8; i++)
		io[i] = give(io[i], "a", B(96 * i), B(1), 7);
	crig_pass(10 * CRIG_S);
	assert_int_equal(nr_owned(crig.k), 1024);
	assert_int_equal(xseg_nr_free_pages(crig.seg), had + 2048);
	for (uint32_t i = 0; i < 8; i++) {
		crig_expect_data("a", B(96 * i), B(1), 7);
		let_go(io[i]);
	}
}

/* ---- deaths ------------------------------------------------------------------------------ */

static void die_and_return(void)
{
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
}

static void a_successor_copies_what_its_predecessor_lent_and_lends_its_own(void **state)
{
	struct crig_io *io;
	uint32_t given;

	(void)state;
	crig_up("");
	io = giver();
	given = lent(io, 0);
	die_and_return();
	assert_true(owner(given) & OWNER_LENT);
	crig_expect(crig_write("b", 0, B(200), 8), B(200));	/* does not take it */
	assert_int_equal(lent(io, 0), given);
	io = give(io, "a", 0, B(1), 3);
	assert_int_not_equal(slot_page(crig_slot("a", 0)), given);
	assert_true(lent(io, 0) != NO_PAGE && lent(io, 0) != given);
	crig_expect_data("a", 0, B(1), 3);
	given = lent(io, 0);
	io = give(io, "a", 0, B(1), 4);
	assert_int_equal(slot_page(crig_slot("a", 0)), given);
	let_go(io);
}

static void who_dies_with_what_it_gave_on_its_way_loses_nothing(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	io = crig_send_give(giver(), "a", 0, B(1), 0, 3);
	assert_true(crig_step_request());
	die_and_return();
	assert_true(io->done);
	crig_expect_data("a", 0, B(1), 3);
	let_go(io);
}

/* A write of two buckets, which gives both pages: as killed in the middle, after what `until`
 * says. */
enum until { STARTED, TAKEN, STORED, EXCHANGED, GONE };

static void half_done(enum until until)
{
	struct cport *ps;
	struct crig_io *io;
	struct object *o;
	struct xreq *r;
	uint32_t given, old;

	crig_up("dirty_age=1h");
	crig_expect(crig_write("a", 0, B(2), 1), B(2));
	io = give(NULL, "a", 0, B(2), 2);
	given = lent(io, 0);
	old = slot_page(crig_slot("a", 0));
	crig_send_give(io, "a", 0, B(2), 0, 3);
	ps = cport_at(crig.k, 0);
	o = crig_object("a");
	assert_int_equal(xseg_port_receive(ps->pp->port, &r, 1), 1);
	assert_true(xworkq_try_enter(&o->q));	/* it dies inside */
	xseg_req_start(ps->pp->port, r);
	if (until >= TAKEN)
		assert_true(xseg_page_owner_swap(
			crig.seg, given, owner(given), bucket_name(o, 0)));
	if (until >= STORED)
		dirty_begin(ps, o, 0, slot_word_of(crig.k, o, 0), given, true);
	if (until >= EXCHANGED)
		assert_true(xseg_req_exchange(crig.seg, r, 0, old));
	if (until >= GONE) {
		/* a successor, which was killed too, flushed and evicted it; the page is another's
		 * now */
		bucket_set(ps, o, 0, slot_word(BUCKET_WRITING, given, 0));
		evict_step(ps, o, 0, crig_slot("a", 0), EVICT_FLUSHED);
		crig_store_fill("a", 0, B(1), 3);
		memset(xseg_page(crig.seg, given), 0xbb, CRIG_PAGE);
	}
	die_and_return();
	assert_true(io->done);
	assert_int_equal(io->result, B(2));
	if (until == EXCHANGED) {
		assert_int_equal(slot_page(crig_slot("a", 0)), given);	/* not once more */
		assert_int_equal(lent(io, 0), old);
	}
	assert_int_not_equal(slot_page(crig_slot("a", 0)), lent(io, 0));
	crig_expect_data("a", 0, B(2), 3);
	crig_expect(crig_write("b", 0, B(200), 8), B(200));
	crig_expect_data("a", 0, B(2), 3);
	io = give(io, "a", 0, B(2), 4);
	io = give(io, "a", 0, B(2), 5);
	crig_expect_data("a", 0, B(2), 5);
	let_go(io);
}

static void killed_before_it_took_anything_all_is_done_again(void **state)
{
	(void)state;
	half_done(STARTED);
}

static void a_page_that_was_taken_and_is_in_no_slot_is_lent_still(void **state)
{
	(void)state;
	half_done(TAKEN);
}

static void a_page_that_is_in_its_slot_and_was_not_exchanged_is_copied(void **state)
{
	(void)state;
	half_done(STORED);
}

static void a_bucket_whose_page_was_exchanged_is_left_alone(void **state)
{
	(void)state;
	half_done(EXCHANGED);
}

static void a_bucket_whose_page_was_exchanged_and_is_another_s_by_now_is_left_alone(void **state)
{
	(void)state;
	half_done(GONE);
}

/* A write of one bucket, which gives its page, killed when that was exchanged, while a write before
 * it was at the store. Its successor flushes the bucket for that one, and then does this one
 * again. */
static void half_done_behind_another(unsigned flags)
{
	struct crig_io *first, *io;
	struct object *o;
	struct xreq *r;
	uint32_t given;

	crig_up("policy=write-through");
	crig_expect(crig_write("a", 0, B(1), 1), B(1));
	io = give(NULL, "a", 0, B(1), 2);
	given = lent(io, 0);
	crig_hold(true);
	first = crig_write("a", 0, B(1), 6);
	crig_send_give(io, "a", 0, B(1), flags, 3);
	o = crig_object("a");
	assert_int_equal(xseg_port_receive(crig.k->ports[0].base.pp->port, &r, 1), 1);
	assert_true(xworkq_try_enter(&o->q));	/* it dies inside */
	xseg_req_start(crig.k->ports[0].base.pp->port, r);
	assert_true(xseg_page_owner_swap(crig.seg, given, owner(given), bucket_name(o, 0)));
	dirty_begin(cport_at(crig.k, 0), o, 0, slot_word_of(crig.k, o, 0), given, true);
	assert_true(xseg_req_exchange(crig.seg, r, 0, XSEG_NONE));
	crig_kill();
	assert_int_equal(crig_open("policy=write-through"), 0);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));		/* the dead one's */
	assert_true(crig_bytes_are(
		xseg_page(crig.seg, crig_call(crig_held(XSEG_OP_WRITE, 0))->r->page[0]), 0, B(1),
		3));
	crig_hold(false);
	crig_settle();
	crig_expect(first, B(1));
	assert_true(io->done);
	assert_true(flags ? crig_stable("a", 0, B(1), 3) : crig_stored("a", 0, B(1), 3));
	let_go(io);
}

static void what_was_exchanged_and_went_to_the_store_since_is_answered(void **state)
{
	(void)state;
	half_done_behind_another(0);
}

static void what_was_exchanged_and_went_to_the_store_since_is_made_stable(void **state)
{
	(void)state;
	half_done_behind_another(XSEG_REQ_FUA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_write_is_lent_the_page_that_its_bucket_lets_go_of),
		CRIG_T(the_page_that_is_given_becomes_the_bucket_s_and_the_old_one_is_lent),
		CRIG_T(a_bucket_of_any_object_takes_it_clean_or_dirty),
		CRIG_T(where_the_bucket_lets_go_of_none_a_new_page_is_lent_and_it_is_zero),
		CRIG_T(what_is_given_is_not_copied_so_it_ends_no_round),
		CRIG_T(edges_are_copied_within_one_request),
		CRIG_T(what_somebody_reads_is_not_lent_to_be_written),
		CRIG_T(a_page_that_was_given_may_be_lent_to_readers),
		CRIG_T(a_flush_in_flight_keeps_the_page_that_it_writes),
		CRIG_T(who_lists_the_same_page_twice_has_it_copied_once),
		CRIG_T(what_goes_past_the_cache_is_not_taken_and_is_let_go_of),
		CRIG_T(write_through_takes_it_and_answers_when_the_store_has_it),
		CRIG_T(what_clients_drop_is_free_when_a_look_finds_it_nowhere),
		CRIG_T(a_page_that_is_listed_nowhere_is_free_and_not_taken_any_more),
		CRIG_T(no_more_than_an_eighth_of_the_cache_is_lent),
		CRIG_T(a_write_waits_for_pages_that_are_lent_and_goes_on_when_they_are_let_go),
		CRIG_T(giving_and_letting_go_for_ever_eats_nothing_up),
		CRIG_T(a_cache_that_stops_takes_what_is_given_and_lends_nothing),
		CRIG_T(an_extent_that_leaves_gets_its_lent_pages_back_with_the_next_writes),
		CRIG_T(a_successor_copies_what_its_predecessor_lent_and_lends_its_own),
		CRIG_T(who_dies_with_what_it_gave_on_its_way_loses_nothing),
		CRIG_T(killed_before_it_took_anything_all_is_done_again),
		CRIG_T(a_page_that_was_taken_and_is_in_no_slot_is_lent_still),
		CRIG_T(a_page_that_is_in_its_slot_and_was_not_exchanged_is_copied),
		CRIG_T(a_bucket_whose_page_was_exchanged_is_left_alone),
		CRIG_T(a_bucket_whose_page_was_exchanged_and_is_another_s_by_now_is_left_alone),
		CRIG_T(what_was_exchanged_and_went_to_the_store_since_is_answered),
		CRIG_T(what_was_exchanged_and_went_to_the_store_since_is_made_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
