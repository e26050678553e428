/* cached_recover_test - cached is killed and its successor continues with its state: dirty data,
 * half done requests, tables (peers/cached/life/arena.c, request/creq.c). Clients see a pause and
 * no error.
 */
#include "tests/rig/cached_rig.h"

#include "peers/common/say/dirty.h"
#include "peers/common/runtime/peer_box.h"

/* The next cached; what the dead one had asked is answered first. */
static void restart(const char *options)
{
	crig_kill();
	assert_int_equal(crig_open(options), 0);
	crig_hold(false);
	assert_true(peer_serving(crig.peer));
}

static struct xport *port(void)
{
	return crig.peer->ports[0].port;
}

/* ---- buckets ----------------------------------------------------------------------------- */

static void dirty_data_is_kept_and_flushed(void **state)
{
	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 512, B(70), 5), B(70));
	crig_expect(crig_write("b", B(9), B(1), 6), B(1));
	restart("");
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(72));
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	crig_expect_data("a", 512, B(70), 5);
	crig_expect_data("b", B(9), B(1), 6);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stable("a", 512, B(70), 5) && crig_stable("b", B(9), B(1), 6));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void dirty_data_of_a_predecessor_is_flushed_by_its_age(void **state)
{
	(void)state;
	crig_up("dirty_age=5s");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	restart("dirty_age=5s");
	crig_pass(6 * CRIG_S);
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void a_flush_of_its_volume_covers_a_predecessor_s_data(void **state)
{
	(void)state;
	crig_up("");
	crig_volume(3);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	restart("");
	crig_expect(crig_flush(3), 0);
	assert_true(crig_stable("a", 0, B(1), 5));
}

static void clean_data_stays_warm(void **state)
{
	uint32_t calls;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(5), 5);
	calls = crig_nr_calls();
	restart("");
	crig_expect_data("a", 0, B(5), 5);
	assert_int_equal(crig_nr_calls(), calls);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(5));
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig_number("dropped_bytes"), B(5));
}

static void what_was_being_written_is_dirty_again_when_the_old_write_has_ended(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_pass(2 * CRIG_MS);
	assert_int_equal(crig_state("a", 0), BUCKET_WRITING);
	crig_kill();
	assert_int_equal(crig_open("dirty_age=5s"), 0);
	crig_pass(6 * CRIG_S);
	assert_int_equal(crig_nr_calls(), 1);
	crig_fail(0, -EIO);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	crig_hold(false);
	crig_pass(6 * CRIG_S);
	assert_true(crig_stored("a", 0, B(2), 5));
}

static void a_newer_page_over_one_in_flight_is_what_is_kept(void **state)
{
	(void)state;
	crig_up("dirty_age=1ms");
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	restart("");
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_false(crig_slot("a", 0) & SLOT_INFLIGHT);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(1));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", 0, B(1), 6));
}

static void what_was_being_loaded_is_dropped_and_its_reader_served(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(4), 5);
	crig_hold(true);
	io = crig_read("a", 0, B(4));
	assert_int_equal(crig_state("a", 0), BUCKET_LOADING);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_fail(0, -EIO);			/* the dead one's load: nobody is told */
	assert_int_equal(crig_nr_calls(), 2);
	crig_expect_waits(io);
	crig_answer(1);
	assert_true(crig_data_is(io, 0, B(4), 5));
	crig_expect(io, B(4));
}

static void a_chunk_of_nothing_but_dropped_loads_is_free_again(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_hold(true);
	io = crig_read("a", B(64), B(4));
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_answer_only(0);
	assert_int_equal(crig.k->memory.nr_chunk_pages, 1);
	assert_int_equal(crig.k->memory.nr_free_chunks, CHUNKS_PER_PAGE - 1);
	crig_hold(false);
	crig_expect(io, B(4));
}

static void what_is_dirty_is_known_while_there_is_no_cached_and_when_the_next_one_is_refused(void **state)
{
	(void)state;
	crig_up("objects=8");
	crig_expect(crig_write("a", 0, B(3), 5), B(3));
	crig_kill();
	assert_int_equal(dirty_bytes_of(crig.seg, XSEG_NONE), B(3));
	assert_int_equal(crig_open("objects=16"), -EBUSY);
	assert_int_equal(dirty_bytes_of(crig.seg, XSEG_NONE), B(3));
	assert_int_equal(crig_open("objects=8"), 0);
	assert_int_equal(dirty_bytes_of(crig.seg, XSEG_NONE), B(3));
	crig_kill();
	assert_int_equal(crig_open("objects=8"), 0);
	crig_settle();
	crig_expect(crig_flush(0), 0);
	assert_int_equal(dirty_bytes_of(crig.seg, XSEG_NONE), 0);
}

static void counters_go_on_and_gauges_are_made_anew(void **state)
{
	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(2), 5);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	restart("");
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("reads"), 1);
	assert_int_equal(crig_number("writes"), 1);
	assert_int_equal(crig_number("misses"), 1);
	assert_int_equal(crig_number("used_bytes"), B(3));
	assert_int_equal(crig_number("dirty_bytes"), B(1));
	assert_int_equal(crig_number("objects"), 2);
}

/* ---- requests ---------------------------------------------------------------------------- */

static void requests_that_wait_are_all_answered_by_the_successor(void **state)
{
	struct crig_io *read, *edge, *full, *flush, *fua, *zero, *info, *delete;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_store_fill("b", 0, B(8), 5);
	crig_hold(true);
	full = crig_write("a", B(4), B(1), 6);
	crig_expect(full, B(1));
	read = crig_read("a", 0, B(2));
	edge = crig_write("a", 512, 512, 7);
	flush = crig_flush(0);
	fua = crig_write_fua("a", B(5), 512, 8);
	zero = crig_op(XSEG_OP_WRITE_ZEROES, "a", B(6) + 512, 1024);
	info = crig_op(XSEG_OP_INFO, "a", 0, 0);
	delete = crig_op(XSEG_OP_DELETE, "b", 0, 0);
	restart("");
	crig_expect(read, B(2));
	crig_expect(edge, 512);
	crig_expect(flush, 0);
	crig_expect(fua, 512);
	crig_expect(zero, 1024);
	crig_expect(info, B(8));
	crig_expect(delete, 0);
	assert_true(crig_stable("a", B(4), B(1), 6) && crig_stable("a", B(5), 512, 8));
	crig_expect_data("a", 512, 512, 7);
	crig_expect_data("a", B(6) + 512, 1024, 0);
	crig_expect_data("b", 0, B(8), 0);
}

static void requests_that_come_while_it_is_dead_are_served(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_kill();
	io = crig_read("a", 0, B(1));
	crig_expect_waits(io);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_true(crig_data_is(io, 0, B(1), 5));
	crig_expect(io, B(1));
}

/* As killed right after it became STARTED, before its first slot. */
static void a_started_write_is_done_again_before_anything_else_of_its_object(void **state)
{
	struct crig_io *started, *later, *reader, *other;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(1), 5);
	crig_hold(true);
	started = crig_write("a", 512, 512, 6);
	xseg_req_start(port(), crig_creq(started)->r);
	crig_kill();
	crig_answer_only(0);
	later = crig_send(XSEG_OP_WRITE, "a", 0, B(1), 0, 7);		/* needs no load */
	reader = crig_send(XSEG_OP_READ, "a", B(1), 512, 0, 0);
	other = crig_send(XSEG_OP_WRITE, "b", 0, B(1), 0, 8);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	crig_expect(other, B(1));
	crig_expect_waits(started);
	crig_expect_waits(later);
	assert_int_equal(crig_count_calls(XSEG_OP_READ, 1), 1);	/* the edge; the reader waits too */
	crig_hold(false);
	assert_true(started->order < later->order);
	crig_expect(started, 512);
	crig_expect(later, B(1));
	crig_expect(reader, 512);
	crig_expect_data("a", 0, B(1), 7);
}

/* As killed between its two slots. */
static void a_half_applied_write_is_applied_as_a_whole(void **state)
{
	struct crig_io *io;
	struct object *o;
	uint32_t page;

	(void)state;
	crig_up("dirty_age=1h");
	crig_limit(1);
	io = crig_write("a", 0, B(2), 6);				/* waits for two pages */
	crig_expect_waits(io);
	o = crig_creq(io)->obj;
	assert_true(xworkq_try_enter(&o->q));	/* it dies inside */
	page = xpool_get(&crig.k->memory.free_pages);
	memcpy(xseg_page(crig.seg, page), xseg_page(crig.seg, crig_creq(io)->r->page[0]),
		CRIG_PAGE);
	xseg_req_start(port(), crig_creq(io)->r);
	assert_true(chunks_ensure(cport_at(crig.k, 0), o, 0, 2));
	dirty_begin(cport_at(crig.k, 0), o, 0, slot_word_of(crig.k, o, 0), page, true);
	restart("");
	crig_expect(io, B(2));
	crig_expect_data("a", 0, B(2), 6);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(2));
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("a", 0, B(2), 6));
}

static void a_started_write_whose_edge_cannot_be_loaded_fails_and_lets_the_others_go_on(void **state)
{
	struct crig_io *started, *later;

	(void)state;
	crig_up("");
	crig_hold(true);
	started = crig_write("a", 512, 512, 6);
	later = crig_write("a", 1024, 512, 7);
	xseg_req_start(port(), crig_creq(started)->r);
	crig_kill();
	crig_answer_only(0);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	crig_fail(crig_held(XSEG_OP_READ, 0), -EIO);
	crig_expect(started, -EIO);
	crig_hold(false);
	crig_expect(later, 512);
}

static void an_applied_write_is_only_completed(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	io = crig_write("a", 0, B(2), 5);
	assert_int_equal(crig_creq(io)->r->state, XSEG_REQ_APPLIED);
	crig_kill();
	crig_data_set(io, 9);			/* whoever applies it again shows this */
	assert_int_equal(crig_open("policy=write-through"), 0);
	crig_fail(0, -EIO);			/* the dead one's write */
	crig_expect_waits(io);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 1), 1);
	crig_expect_data("a", 0, B(2), 5);
	crig_hold(false);
	crig_expect(io, B(2));
	assert_true(crig_stored("a", 0, B(2), 5));
}

static void an_applied_write_that_the_store_has_by_now_is_answered(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("policy=write-through");
	crig_hold(true);
	io = crig_write("a", 0, B(1), 5);
	crig_kill();
	crig_answer_only(0);
	assert_int_equal(crig_open("policy=write-through"), 0);
	crig_hold(false);
	crig_expect(io, B(1));
	assert_true(crig_stored("a", 0, B(1), 5));
}

static void an_applied_fua_write_is_answered_when_it_is_stable(void **state)
{
	struct crig_io *io, *over;

	(void)state;
	crig_up("");
	crig_hold(true);
	io = crig_write_fua("a", 0, B(1), 5);
	over = crig_write("a", 0, 512, 6);
	crig_expect(over, 512);
	restart("");
	crig_expect(io, B(1));
	assert_true(crig_stable("a", 512, B(1) - 512, 5) && crig_stable("a", 0, 512, 6));
}

static void a_delete_that_was_done_is_no_error_when_it_is_done_again(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("");
	crig_have_clean("a", 0, B(1), 5);
	crig_hold(true);
	io = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_kill();
	crig_answer_only(crig_held(XSEG_OP_DELETE, 0));
	assert_int_equal(crig_open(""), 0);
	crig_hold(false);
	crig_expect(io, 0);
	crig_expect_data("a", 0, B(1), 0);
}

/* Or what was written in between, and acknowledged, would be deleted by the second time. */
static void a_delete_that_was_at_the_store_is_done_again_before_anything_else_of_its_object(void **state)
{
	struct crig_io *delete, *read[4], *write;

	(void)state;
	crig_up("");
	crig_store_fill("a", 0, B(8), 5);
	crig_have_clean("b", 0, B(1), 5);
	for (uint32_t i = 0; i < 4; i++)
		read[i] = crig_read("b", 0, B(1));
	crig_hold(true);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	/* in requests that the successor finds before the delete's */
	for (uint32_t i = 0; i < 4; i++) {
		crig_expect(read[i], B(1));
		read[i] = crig_read("a", B(i * 2), B(1));
	}
	crig_answer_only(crig_held(XSEG_OP_DELETE, 0));
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	write = crig_write("a", 0, B(1), 6);
	crig_expect_waits(write);
	assert_int_equal(crig_call(crig_nr_calls() - 1)->op, XSEG_OP_DELETE);
	crig_hold(false);
	crig_expect(delete, 0);
	crig_expect(write, B(1));
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(read[i], B(1));
	crig_expect_data("a", 0, B(1), 6);
}

static void an_object_that_was_being_emptied_is_there_again_and_who_waited_for_its_entry_is_served(void **state)
{
	struct crig_io *other;

	(void)state;
	crig_up("objects=1");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	other = crig_write("b", 0, B(1), 6);
	crig_expect_waits(other);
	crig_kill();
	assert_int_equal(crig_open("objects=1"), 0);
	crig_hold(false);
	crig_expect(other, B(1));
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("b", 0, B(1), 6);
}

static void killed_again_and_again_nothing_is_lost(void **state)
{
	struct crig_io *io[20];

	(void)state;
	crig_up("policy=write-through");
	for (uint32_t i = 0; i < 20; i++)
		io[i] = crig_send(XSEG_OP_WRITE, "a", i * 2048, 2048, 0, i + 1);
	for (uint32_t n = 0; n < 12; n++) {
		for (uint32_t i = 0; i < n; i++) {
			crig_step_request();
			crig_step_store();
			crig_step_reply();
			crig_step_poll();
		}
		crig_kill();
		assert_int_equal(crig_open("policy=write-through"), 0);
	}
	crig_settle();
	for (uint32_t i = 0; i < 20; i++) {
		crig_expect(io[i], 2048);
		assert_true(crig_stored("a", i * 2048, 2048, i + 1));
	}
}

/* ---- tables ------------------------------------------------------------------------------ */

static void tables_of_another_size_are_refused_while_dirty_and_made_anew_when_clean(void **state)
{
	(void)state;
	crig_up("objects=32");
	crig_have_clean("b", 0, B(1), 6);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_kill();
	assert_int_equal(crig_open("objects=40"), -EBUSY);
	assert_true(crig_says("4 KiB of dirty data") && crig_says("objects=32"));
	assert_int_equal(crig_open("objects=32"), 0);
	crig_settle();
	crig_expect_data("a", 0, B(1), 5);
	crig_expect(crig_flush(0), 0);
	crig_kill();
	assert_int_equal(crig_open("memory=6M objects=40"), 0);
	crig_settle();
	assert_int_equal(crig.k->object.nr_objects, 40);
	assert_int_equal(crig.k->memory.nr_pages, 6 << 8);
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("b", 0, B(1), 6);
}

static void an_orderly_stop_leaves_nothing_behind(void **state)
{
	struct xseg_info before, after;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	xseg_get_info(crig.seg, &before);
	crig_stop();
	xseg_get_info(crig.seg, &after);
	assert_true(after.free_extents > before.free_extents);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect_data("a", 0, B(1), 5);
}

/* What a wild store of another process may have done: it is found, dropped, and nobody crashes. */
static void tables_of_another_version_are_refused_and_stay_as_they_are(void **state)
{
	uint64_t version;

	(void)state;
	crig_up("");
	crig_expect(crig_write("a", 0, B(3), 5), B(3));
	version = crig.k->life.head->version;
	crig.k->life.head->version = version - 1;
	crig_kill();
	assert_int_equal(crig_open(""), -EPROTO);
	assert_true(crig_says("another version of cached"));
	assert_int_equal(dirty_bytes_of(crig.seg, XSEG_NONE), B(3));
}

static void damaged_tables_lose_what_is_damaged_and_no_more(void **state)
{
	struct arena_object *e;
	uint32_t chunk;

	(void)state;
	crig_up("");
	for (const char *c = "abcdef"; *c; c++)
		crig_have_clean((char[2]){ *c, 0 }, 0, B(2), 5);
	e = &crig.k->object.entries[crig_object("a") - crig.k->object.objects];
	atomic_store(&e->chunk[0], UINT32_MAX);				/* beyond the end */
	e = &crig.k->object.entries[crig_object("b") - crig.k->object.objects];
	chunk = atomic_load(&e->chunk[0]);
	e = &crig.k->object.entries[crig_object("c") - crig.k->object.objects];
	atomic_store(&e->chunk[0], chunk);				/* another's */
	e = &crig.k->object.entries[crig_object("d") - crig.k->object.objects];
	chunk = atomic_load(&e->chunk[0]) - 1;
	atomic_store(
		&crig.k->object.chunks[chunk].slot[0], slot_word(BUCKET_VALID, UINT32_MAX - 1, 0));
	atomic_store(&crig.k->object.chunks[chunk].slot[1],
		slot_word((enum bucket_state)13, 1, ~0ull << 32));
	e = &crig.k->object.entries[crig_object("e") - crig.k->object.objects];
	memset(e->name, 'x', sizeof(e->name));				/* no end */
	restart("");
	for (const char *c = "abcdef"; *c; c++)
		crig_expect_data((char[2]){ *c, 0 }, 0, B(2), 5);
}

/* Behind the back of a dead cached. */
static void mend_head(const struct arena_head *was)
{
	struct xseg_peer_params params = { .name = "cached", .kind = "cached", .nr_ports = 1 };
	struct xseg_error err;
	struct xseg_peer *peer;
	uint64_t bytes;
	void *base;
	bool fresh;

	assert_int_equal(xseg_peer_open(crig.seg, &params, &peer, &err), 0);
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, &err), 0);
	memcpy(base, was, sizeof(*was));
	xseg_peer_close(peer, XSEG_CLOSE_ABANDON);
}

static void a_head_that_does_not_add_up_is_refused(void **state)
{
	static const struct {
		uint32_t nr_objects, nr_volumes, nr_ports;
		uint64_t off_objects, bytes;	/* added to what is right */
	} wrong[] = {
		{ .nr_objects = 1u << 31 }, { .nr_objects = -64u }, { .nr_volumes = 8 },
		  { .nr_volumes = 1024 }, { .nr_ports = 16 },
		{ .off_objects = 1 }, { .off_objects = 64 }, { .off_objects = -4096ull },
		  { .off_objects = 1ull << 62 },
		{ .off_objects = -(1ull << 20) }, { .bytes = 4096 },
	};
	struct arena_head *h, was;

	(void)state;
	crig_up("objects=64");
	h = crig.k->life.head;
	memcpy(&was, h, sizeof(was));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		h = crig.k->life.head;
		h->nr_objects += wrong[i].nr_objects;
		h->nr_volumes += wrong[i].nr_volumes;
		h->nr_ports += wrong[i].nr_ports;
		h->off_objects += wrong[i].off_objects;
		h->bytes += wrong[i].bytes;
		crig_kill();
		assert_int_equal(crig_open("objects=64"), -EPROTO);
		assert_true(crig_says("damaged"));
		mend_head(&was);
		assert_int_equal(crig_open("objects=64"), 0);
		crig_settle();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(dirty_data_is_kept_and_flushed),
		CRIG_T(dirty_data_of_a_predecessor_is_flushed_by_its_age),
		CRIG_T(a_flush_of_its_volume_covers_a_predecessor_s_data),
		CRIG_T(clean_data_stays_warm),
		CRIG_T(what_was_being_written_is_dirty_again_when_the_old_write_has_ended),
		CRIG_T(a_newer_page_over_one_in_flight_is_what_is_kept),
		CRIG_T(what_was_being_loaded_is_dropped_and_its_reader_served),
		CRIG_T(a_chunk_of_nothing_but_dropped_loads_is_free_again),
		CRIG_T(what_is_dirty_is_known_while_there_is_no_cached_and_when_the_next_one_is_refused),
		CRIG_T(counters_go_on_and_gauges_are_made_anew),
		CRIG_T(requests_that_wait_are_all_answered_by_the_successor),
		CRIG_T(requests_that_come_while_it_is_dead_are_served),
		CRIG_T(a_started_write_is_done_again_before_anything_else_of_its_object),
		CRIG_T(a_half_applied_write_is_applied_as_a_whole),
		CRIG_T(a_started_write_whose_edge_cannot_be_loaded_fails_and_lets_the_others_go_on),
		CRIG_T(an_applied_write_is_only_completed),
		CRIG_T(an_applied_write_that_the_store_has_by_now_is_answered),
		CRIG_T(an_applied_fua_write_is_answered_when_it_is_stable),
		CRIG_T(a_delete_that_was_done_is_no_error_when_it_is_done_again),
		CRIG_T(a_delete_that_was_at_the_store_is_done_again_before_anything_else_of_its_object),
		CRIG_T(an_object_that_was_being_emptied_is_there_again_and_who_waited_for_its_entry_is_served),
		CRIG_T(killed_again_and_again_nothing_is_lost),
		CRIG_T(tables_of_another_size_are_refused_while_dirty_and_made_anew_when_clean),
		CRIG_T(an_orderly_stop_leaves_nothing_behind),
		CRIG_T(tables_of_another_version_are_refused_and_stay_as_they_are),
		CRIG_T(damaged_tables_lose_what_is_damaged_and_no_more),
		CRIG_T(a_head_that_does_not_add_up_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
