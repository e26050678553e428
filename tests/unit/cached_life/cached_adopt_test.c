/* cached_adopt_test - cached is killed while its requests are in flight at a slow store. The
 * successor serves unaffected data, and leaves the rest alone until its requests are back
 * (peers/cached/life/adopt.c).
 */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"
#include "xseg/internal.h"

/* The next cached, while the store still has what the dead one asked. */
static void restart_under_orphans(const char *options)
{
	crig_kill();
	assert_int_equal(crig_open(options), 0);
	crig_settle();
	assert_true(peer_serving(crig.peer));
}

/* The request that somebody writes over as soon as those that are out were looked at, or NULL. */
static struct xs_req *to_damage;

static struct xs_req *last_out(void)
{
	struct xs_req *last = NULL;

	for (uint32_t i = 0; i < crig.seg->geo.nr_requests; i++)
		if (place_state(atomic_load(&crig.seg->reqs[i].place)) == XSEG_REQ_AT)
			last = &crig.seg->reqs[i];
	return last;
}

typedef void shown(struct xport *port, struct xreq *r, const struct xreq *sent, void *arg);
uint32_t __real_xseg_peer_adopt(struct xseg_peer *peer, shown *fn, void *arg);
uint32_t __wrap_xseg_peer_adopt(struct xseg_peer *peer, shown *fn, void *arg);

uint32_t __wrap_xseg_peer_adopt(struct xseg_peer *peer, shown *fn, void *arg)
{
	uint32_t nr = __real_xseg_peer_adopt(peer, fn, arg);

	if (to_damage)
		to_damage->nr_pages = UINT16_MAX;
	return nr;
}

static bool is_held(const char *name)
{
	return crig_object(name)->state == OBJECT_HELD;
}

/* What a flush lists when it comes to the store. */
static uint32_t flush_sent(const char *name, uint64_t size, unsigned seed)
{
	uint32_t call = crig_nr_calls();

	crig_expect(crig_write(name, 0, size, seed), (int64_t)size);
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, call), 1);
	return call;
}

static void only_the_object_whose_flush_is_out_waits_for_it(void **state)
{
	struct crig_io *read, *write;
	struct xseg_info info;
	uint32_t flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_have_clean("b", 0, B(2), 6);
	crig_hold(true);
	flush = flush_sent("a", B(2), 5);
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	restart_under_orphans("dirty_age=1ms");
	assert_true(is_held("a"));
	read = crig_read("a", 0, B(2));
	write = crig_write("a", B(1), B(1), 7);
	crig_pass(CRIG_S);
	crig_expect_waits(read);
	crig_expect_waits(write);
	crig_expect_data("b", 0, B(2), 6);
	crig_expect(crig_write("b", 0, B(1), 8), B(1));
	/* nor is it flushed beside the old one */
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, flush + 1), 0);
	crig_answer(flush);
	assert_false(is_held("a"));
	assert_true(crig_data_is(read, 0, B(1), 5));
	crig_expect(read, B(2));
	crig_expect(write, B(1));
	crig_hold(false);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", 0, B(1), 5) && crig_stored("a", B(1), B(1), 7) &&
		    crig_stored("b", 0, B(1), 8));
	xseg_get_info(crig.seg, &info);
	assert_int_equal(info.bad_count, 0);	/* its answer is as long as what it was sent with */
}

static void a_flush_that_fails_late_leaves_the_data_dirty(void **state)
{
	uint32_t flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	flush = flush_sent("a", B(2), 5);
	restart_under_orphans("dirty_age=5s");
	crig_fail(flush, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_hold(false);
	crig_pass(6 * CRIG_S);
	assert_true(crig_stored("a", 0, B(2), 5));
}

static void a_flush_covers_what_is_held_when_it_is_there(void **state)
{
	struct crig_io *flush;
	uint32_t call;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	call = flush_sent("a", B(2), 5);
	restart_under_orphans("dirty_age=1h");
	flush = crig_flush(0);
	crig_pass(CRIG_S);
	crig_expect_waits(flush);
	crig_answer(call);
	crig_hold(false);
	crig_expect(flush, 0);
	assert_true(crig_stable("a", 0, B(2), 5));
}

static void pages_that_an_old_load_fills_are_not_used_before_it_ends(void **state)
{
	struct crig_io *io, *more;
	uint32_t load;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_hold(true);
	load = crig_nr_calls();
	io = crig_read("a", 0, B(8));
	restart_under_orphans("");
	crig_limit(8);
	crig_expect(crig_write("b", 0, B(7), 6), B(7));		/* one page is of chunks */
	more = crig_write("c", 0, B(8), 7);
	crig_answer(load);		/* it writes into its pages, wherever these are now */
	crig_expect_data("b", 0, B(7), 6);
	crig_hold(false);
	crig_settle();
	assert_true(crig_data_is(io, 0, B(8), 5));
	crig_expect(io, B(8));
	crig_limit(900);
	crig_settle();
	crig_expect(more, B(8));
	crig_expect_data("b", 0, B(7), 6);
	crig_expect_data("c", 0, B(8), 7);
}

static uint32_t nr_free(void)
{
	return crig.k->memory.nr_free + memory_port(cport_at(crig.k, 0))->nr_magazine;
}

static void a_page_that_only_an_old_flush_lists_is_not_used_before_it_ends(void **state)
{
	uint32_t flush, used;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	flush = flush_sent("a", B(1), 5);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));		/* a newer page is in the slot */
	restart_under_orphans("dirty_age=1h");
	used = nr_free();
	for (unsigned i = 0; i < 4; i++)
		crig_expect(crig_write("b", i * B(16), B(16), 10 + i), B(16));
	crig_answer(flush);			/* writes what its page has now */
	assert_true(crig_stored("a", 0, B(1), 5));
	assert_int_equal(nr_free(), used - 64 + 1);	/* now it is free */
	crig_hold(false);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", 0, B(1), 6));
}

static void a_write_past_the_cache_that_is_out_is_done_again_when_it_is_home(void **state)
{
	struct crig_io *write, *read;
	uint32_t call;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	call = crig_nr_calls();
	write = crig_write("a", 0, B(2), 5);
	assert_int_equal(crig_state("a", 0), BUCKET_BYPASS);
	restart_under_orphans("policy=write-around");
	read = crig_read("a", 0, B(2));
	crig_pass(CRIG_S);
	crig_expect_waits(write);
	crig_expect_waits(read);
	crig_answer(call);
	crig_hold(false);
	crig_settle();
	crig_expect(write, B(2));
	assert_true(crig_data_is(read, 0, B(2), 5));
	crig_expect(read, B(2));
}

/* Two caches in a row that were killed: each keeps its pages out of use in the same words. */
static void a_page_of_a_cache_above_is_not_taken(void **state)
{
	struct crig_io *write;
	uint32_t call, page;

	(void)state;
	crig_up("policy=write-around");
	crig_hold(true);
	call = crig_nr_calls();
	write = crig_write("a", 0, B(1), 5);
	page = crig_call(call)->r->page[0];
	restart_under_orphans("policy=write-around");
	xseg_page_owner_set(crig.seg, page, OWNER_ORPHAN);	/* as that one's successor does */
	crig_answer(call);		/* each step looks at the pool */
	assert_int_equal(xseg_page_owner(crig.seg, page), OWNER_ORPHAN);
	crig_hold(false);
	crig_settle();
	crig_expect(write, B(1));
}

static void a_delete_that_is_out_is_done_again_when_it_is_home(void **state)
{
	struct crig_io *delete, *write;
	uint32_t call;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(2), 5);
	crig_hold(true);
	call = crig_nr_calls();
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	restart_under_orphans("");
	write = crig_write("a", 0, B(1), 6);
	crig_pass(CRIG_S);
	crig_expect_waits(delete);
	crig_expect_waits(write);
	crig_answer(call);
	crig_hold(false);
	crig_settle();
	crig_expect(delete, 0);
	crig_expect(write, B(1));
	crig_expect_data("a", 0, B(1), 6);
}

/* The first one was done: what is clean here is not what the store has. */
static void a_delete_that_fails_when_it_is_done_again_leaves_what_the_store_has(void **state)
{
	struct crig_io *delete;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(2), 5);
	crig_expect(crig_write("a", B(2), B(1), 6), B(1));
	crig_hold(true);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	restart_under_orphans("");
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
	crig_fail(crig_held(XSEG_OP_DELETE, 0), -EIO);
	crig_hold(false);
	crig_expect(delete, -EIO);
	crig_expect_data("a", 0, B(2), 0);
	crig_expect_data("a", B(2), B(1), 6);	/* newer than the store */
}

static void killed_again_before_they_are_home_the_next_one_has_them(void **state)
{
	uint32_t flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	flush = flush_sent("a", B(2), 5);
	for (unsigned i = 0; i < 3; i++) {
		restart_under_orphans("dirty_age=1h");
		assert_true(is_held("a"));
		crig_expect(crig_write("b", 0, B(1), 6 + i), B(1));
	}
	crig_answer(flush);
	crig_hold(false);
	crig_expect_data("a", 0, B(2), 5);
	crig_expect_data("b", 0, B(1), 8);
}

static void it_does_not_leave_before_they_are_home(void **state)
{
	uint64_t left;
	uint32_t load;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	load = crig_nr_calls();
	crig_read("a", 0, B(1));
	restart_under_orphans("");
	atomic_store(&crig.peer->stopping, true);
	crig_pass(10 * CRIG_MS);
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	crig_answer(load);
	crig_hold(false);
	crig_pass(10 * CRIG_MS);
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
}

/* The extent that is chosen to leave is the one with the most free pages: that where "d" was, and
 * "a" is. */
static void data_that_an_old_flush_lists_does_not_move_when_the_cache_shrinks(void **state)
{
	uint32_t flush;
	uint64_t slot;

	(void)state;
	crig_up("dirty_age=1ms memory=8M");
	crig_expect(crig_write("d", 0, B(200), 4), B(200));
	crig_expect(crig_write("d", B(200), B(112), 4), B(112));
	for (unsigned i = 0; i < 17; i++)
		crig_expect(
			crig_write(i < 10 ? "c0" : "c1", i % 10 * B(100), B(100), 10 + i), B(100));
	crig_pass(CRIG_S);
	crig_expect(crig_op(XSEG_OP_DELETE, "d", 0, 0), 0);
	crig_hold(true);
	flush = flush_sent("a", B(200), 5);
	restart_under_orphans("dirty_age=1h memory=8M");
	slot = crig_slot("a", 7);
	crig_set("memory=6M");
	crig_pass(CRIG_S);
	assert_true(page_leaves(crig.k, slot_page(slot)));
	assert_int_equal(crig_slot("a", 7), slot);
	crig_answer(flush);
	assert_true(crig_stored("a", 0, B(200), 5));
	crig_hold(false);
	crig_pass(CRIG_S);
	assert_int_equal(crig.k->memory.nr_pages + crig.k->memory.nr_leaving, 6 << 8);
	crig_expect_data("a", 0, B(200), 5);
}

static void a_write_that_waits_for_the_store_is_flushed_again_when_its_flush_is_home(void **state)
{
	struct crig_io *write;
	uint32_t call;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	call = crig_nr_calls();
	write = crig_write("a", 0, B(2), 5);
	restart_under_orphans("policy=write-through");
	crig_pass(CRIG_S);
	crig_expect_waits(write);
	assert_int_equal(crig_nr_calls(), call + 1);
	crig_fail(call, -EIO);
	assert_int_equal(crig_nr_calls(), call + 2);
	crig_expect_waits(write);
	crig_answer(call + 1);
	crig_expect(write, B(2));
	assert_true(crig_stored("a", 0, B(2), 5));
	crig_hold(false);
}

/* Two objects with loads, two that only pass, and no other entry: there is nobody to be emptied,
 * until the store answers. */
static void who_waits_for_an_entry_while_all_are_held_keeps_nobody_busy(void **state)
{
	struct crig_io *io[5];

	(void)state;
	crig_up("objects=2");
	crig_hold(true);
	io[0] = crig_read("a", 0, B(1));
	io[1] = crig_read("b", 0, B(1));
	io[2] = crig_write("c", 0, B(1), 5);
	io[3] = crig_write("d", 0, B(1), 6);
	assert_true(object_passes(crig_object("c")) && object_passes(crig_object("d")));
	restart_under_orphans("objects=2");
	assert_true(is_held("a") && is_held("b") && is_held("c") && is_held("d"));
	io[4] = crig_read("e", 0, B(1));
	crig_pass(CRIG_S);	/* fails when it is called again and again */
	crig_expect_waits(io[4]);
	crig_hold(false);
	crig_settle();
	for (unsigned i = 0; i < 5; i++)
		crig_expect(io[i], B(1));
}

/* The entry was damaged: what the store may still do for it is not known. */
static void one_whose_object_is_not_known_is_waited_for_with_all(void **state)
{
	uint32_t flush;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	flush = flush_sent("a", B(2), 5);
	atomic_store(&crig.k->object.entries[crig_object("a") - crig.k->object.objects].used, 0);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_pass(CRIG_S);
	assert_false(peer_serving(crig.peer));
	crig_answer(flush);
	crig_settle();
	assert_true(peer_serving(crig.peer));
	crig_hold(false);
	crig_expect_data("a", 0, B(2), 5);
}

static void what_is_damaged_after_the_look_is_adopted_as_it_was(void **state)
{
	uint32_t flush[2];
	uint16_t nr_pages;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	flush[0] = flush_sent("a", B(2), 5);
	flush[1] = flush_sent("b", B(2), 6);
	crig_kill();
	to_damage = last_out();
	nr_pages = to_damage->nr_pages;
	assert_int_equal(crig_open("dirty_age=1ms"), 0);
	crig_settle();
	to_damage->nr_pages = nr_pages;
	to_damage = NULL;
	assert_true(peer_serving(crig.peer) && is_held("a") && is_held("b"));
	crig_answer(flush[0]);
	crig_answer(flush[1]);
	assert_false(is_held("a") || is_held("b"));
	crig_hold(false);
	crig_expect_data("a", 0, B(2), 5);
	crig_expect_data("b", 0, B(2), 6);
}

static void pages_stay_when_tables_are_made_anew_under_a_load(void **state)
{
	uint32_t load, owned;

	(void)state;
	crig_up("objects=32");
	crig_store_fill("a", 0, B(4), 5);
	crig_hold(true);
	load = crig_nr_calls();
	crig_read("a", 0, B(4));
	owned = xseg_pages_owned(crig.peer->xp, NULL, 0);
	crig_kill();
	assert_int_equal(crig_open("objects=40"), 0);
	assert_int_equal(xseg_pages_owned(crig.peer->xp, NULL, 0), owned);
	crig_pass(CRIG_S);
	assert_false(peer_serving(crig.peer));
	crig_answer(load);
	crig_hold(false);
	crig_settle();
	assert_true(peer_serving(crig.peer));
	crig_expect_data("a", 0, B(4), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(only_the_object_whose_flush_is_out_waits_for_it),
		CRIG_T(a_flush_that_fails_late_leaves_the_data_dirty),
		CRIG_T(a_flush_covers_what_is_held_when_it_is_there),
		CRIG_T(pages_that_an_old_load_fills_are_not_used_before_it_ends),
		CRIG_T(a_page_that_only_an_old_flush_lists_is_not_used_before_it_ends),
		CRIG_T(a_write_past_the_cache_that_is_out_is_done_again_when_it_is_home),
		CRIG_T(a_page_of_a_cache_above_is_not_taken),
		CRIG_T(a_delete_that_is_out_is_done_again_when_it_is_home),
		CRIG_T(a_delete_that_fails_when_it_is_done_again_leaves_what_the_store_has),
		CRIG_T(killed_again_before_they_are_home_the_next_one_has_them),
		CRIG_T(it_does_not_leave_before_they_are_home),
		CRIG_T(data_that_an_old_flush_lists_does_not_move_when_the_cache_shrinks),
		CRIG_T(a_write_that_waits_for_the_store_is_flushed_again_when_its_flush_is_home),
		CRIG_T(who_waits_for_an_entry_while_all_are_held_keeps_nobody_busy),
		CRIG_T(one_whose_object_is_not_known_is_waited_for_with_all),
		CRIG_T(what_is_damaged_after_the_look_is_adopted_as_it_was),
		CRIG_T(pages_stay_when_tables_are_made_anew_under_a_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
