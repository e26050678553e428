/* cached_evict_test - pages, objects, chunks or requests run out: no request fails, and none waits
 * for ever (peers/cached/memory/pages.c, room.c, reclaim.c, child.c).
 */
#include "tests/rig/cached_rig.h"

/* ---- pages ------------------------------------------------------------------------------- */

static void eviction_takes_clean_buckets_only(void **state)
{
	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_limit(4);
	crig_store_fill("a", 0, B(8), 5);
	crig_expect(crig_write("a", 0, B(2), 6), B(2));
	for (uint32_t i = 2; i < 8; i++)
		crig_expect_data("a", B(i), B(1), 5);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	assert_int_equal(crig_state("a", 0), BUCKET_DIRTY);
	assert_int_equal(crig_state("a", 1), BUCKET_DIRTY);
	assert_int_equal(crig_object("a")->nr[BUCKET_VALID], 2);
	crig_admin("status");
	assert_int_equal(crig_number("evicted"), 4);
	assert_int_equal(crig_counter(CC_EVICTED_CLEAN), 4);
	crig_expect_data("a", 0, B(2), 6);
}

static void a_bucket_that_was_hit_again_survives_once(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(3);
	crig_store_fill("a", 0, B(8), 5);
	for (uint32_t i = 0; i < 3; i++)
		crig_expect(crig_read("a", B(i), 512), 512);
	/* whoever waited for a load has hit its bucket: forget that */
	for (uint32_t i = 0; i < 3; i++)
		slot_clear_flag(crig.k, crig_object("a"), i, SLOT_REF);
	crig_expect_data("a", 0, B(1), 5);	/* the oldest one is hit */
	crig_expect_data("a", B(3), B(1), 5);
	assert_int_equal(crig_state("a", 0), BUCKET_VALID);
	assert_true(slot_absent(crig_slot("a", 1)));
	assert_false(crig_slot("a", 0) & SLOT_REF);
	slot_clear_flag(crig.k, crig_object("a"), 3, SLOT_REF);
	crig_expect_data("a", B(4), B(1), 5);
	assert_true(slot_absent(crig_slot("a", 2)));
	slot_clear_flag(crig.k, crig_object("a"), 4, SLOT_REF);
	crig_expect_data("a", B(5), B(1), 5);	/* and now it goes */
	assert_true(slot_absent(crig_slot("a", 0)));
}

static void a_full_cache_of_hit_buckets_still_gives_a_page(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(100);
	crig_store_fill("a", 0, B(200), 5);
	crig_expect_data("a", 0, B(100), 5);
	crig_expect_data("a", 0, B(100), 5);
	crig_expect_data("a", B(100), B(1), 5);
	crig_expect_data("a", B(101), B(99), 5);
}

static void a_bucket_of_another_object_is_evicted_too(void **state)
{
	(void)state;
	crig_up("");
	crig_limit(2);
	crig_have_clean("a", 0, B(2), 5);
	crig_have_clean("b", 0, B(2), 6);
	assert_int_equal(crig_counter(CC_USED_BYTES), B(2));
	crig_expect_data("a", 0, B(2), 5);
}

static void a_full_cache_of_dirty_buckets_makes_writers_wait_and_then_go_on(void **state)
{
	struct crig_io *io[12];

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_limit(4);
	crig_hold(true);
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("a", B(i * 2), B(1), 5), B(1));
	for (uint32_t i = 4; i < 12; i++)
		io[i] = crig_write("a", B(i * 2), B(1), 5);
	for (uint32_t i = 4; i < 12; i++)
		crig_expect_waits(io[i]);
	assert_int_equal(crig_nr_held(), 4);
	assert_int_equal(crig_counter(CC_WAITS_BUCKET), 8);
	crig_answer(0);
	crig_expect(io[4], B(1));
	crig_expect_waits(io[5]);
	crig_hold(false);
	for (uint32_t i = 5; i < 12; i++)
		crig_expect(io[i], B(1));
	assert_int_equal(crig_counter(CC_FLUSHED_AGE) + crig_counter(CC_FLUSHED_WATERMARK), 0);
	crig_expect(crig_flush(0), 0);
	for (uint32_t i = 0; i < 12; i++)
		assert_true(crig_stored("a", B(i * 2), B(1), 5));
}

static void writers_that_wait_for_pages_go_on_in_their_order_and_newcomers_behind_them(void **state)
{
	struct crig_io *first, *big, *late;

	(void)state;
	crig_up("dirty_age=1h");
	crig_limit(4);
	crig_hold(true);
	for (uint32_t i = 0; i < 4; i++)
		crig_expect(crig_write("a", B(i * 2), B(1), 5), B(1));
	big = crig_write("a", B(20), B(3), 6);
	first = crig_write("a", B(30), B(1), 6);
	crig_answer(0);
	late = crig_write("a", B(40), B(1), 6);
	crig_expect_waits(big);
	crig_expect_waits(first);
	crig_expect_waits(late);
	crig_hold(false);
	assert_true(big->done && first->done && late->done);
	assert_true(big->order < first->order && first->order < late->order);
	crig_expect(big, B(3));
	crig_expect(first, B(1));
	crig_expect(late, B(1));
}

static void all_that_wait_are_served_by_what_one_flush_frees(void **state)
{
	struct crig_io *io[40];

	(void)state;
	crig_up("dirty_age=1h");
	crig_limit(64);
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(64), 5), B(64));
	for (uint32_t i = 0; i < 40; i++)
		io[i] = crig_write("b", B(i), B(1), 6);
	assert_int_equal(crig_nr_held(), 1);
	crig_answer(0);
	for (uint32_t i = 0; i < 40; i++)
		crig_expect(io[i], B(1));
}

static void a_read_goes_past_a_cache_that_is_full_of_what_is_not_flushed(void **state)
{
	struct crig_io *flush;

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_limit(2);
	crig_store_fill("b", 0, B(2), 6);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_expect_data("b", 0, B(2), 6);
	assert_int_equal(crig_counter(CC_BYPASSED_FULL), 1);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 0);
	crig_hold(true);
	flush = crig_flush(0);
	crig_hold(false);
	crig_expect(flush, 0);
	crig_expect_data("a", 0, B(2), 5);
}

/* The rest of its range is newer in the cache: the store cannot answer it. */
static void a_read_of_which_a_part_is_not_flushed_waits_for_a_page(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_limit(2);
	crig_store_fill("a", 0, B(4), 6);
	crig_expect(crig_write("a", B(1), B(2), 5), B(2));
	crig_hold(true);
	cached_drop_reserve(crig.peer);
	io = crig_read("a", 0, B(3));
	crig_expect_waits(io);
	assert_int_equal(crig_count_calls(XSEG_OP_READ, 0), 0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 1);
	crig_hold(false);
	assert_true(crig_data_is(io, 0, B(1), 6) && crig_data_is(io, B(1), B(2), 5));
	crig_expect(io, B(3));
}

/* Small writes list their pages in the request's own record. */
static void a_large_write_waits_for_a_list_of_its_pages(void **state)
{
	struct crig_io *io[3];

	(void)state;
	crig_up("policy=write-through");
	for (uint32_t i = 0; i < NR_LISTS; i++)
		assert_int_not_equal(xpool_get(&crig.k->memory.free_lists), XPOOL_NONE);
	io[0] = crig_write("a", 0, B(CREQ_FEW + 1), 5);
	io[1] = crig_write("b", 512, B(CREQ_FEW + 4), 6);
	crig_expect_waits(io[0]);
	crig_expect(crig_write("c", 0, B(CREQ_FEW), 7), B(CREQ_FEW));
	for (uint32_t i = 0; i < NR_LISTS; i++)
		xpool_put(&crig.k->memory.free_lists, i);
	crig_expect(crig_write("c", 0, B(1), 8), B(1));
	crig_expect(io[0], B(CREQ_FEW + 1));
	crig_expect(io[1], B(CREQ_FEW + 4));
	crig_expect_data("a", 0, B(CREQ_FEW + 1), 5);
	crig_expect_data("b", 512, B(CREQ_FEW + 4), 6);
}

static void a_hot_bucket_keeps_its_cold_object(void **state)
{
	(void)state;
	crig_up("objects=2");
	crig_have_clean("a", 0, B(8), 5);
	crig_expect_data("a", B(3), B(1), 5);
	crig_have_clean("b", 0, B(1), 6);
	crig_have_clean("b", B(2), B(1), 6);		/* as an object it is as hot as a */
	crig_expect_data("c", 0, B(1), 0);
	assert_non_null(crig_object("a"));
	assert_int_equal(crig_state("a", 3), BUCKET_VALID);
	assert_int_equal(crig_object("a")->nr[BUCKET_VALID], 1);
	assert_int_equal(crig_counter(CC_EVICTED_OBJECT), 7 + 2);
}

static void writers_wait_while_the_store_fails_and_go_on_when_it_is_back(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1h dirty_high=100 dirty_low=100");
	crig_limit(2);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 3);
	io = crig_write("b", 0, B(1), 6);
	crig_expect_waits(io);
	crig_pass(650 * CRIG_MS);			/* tried at 0, 0.1 and 0.3 s */
	crig_expect_waits(io);
	crig_pass(100 * CRIG_MS);
	crig_expect(io, B(1));
	assert_true(crig_stored("a", 0, B(2), 5));
}

static void a_page_in_flight_is_not_given_to_anybody_else(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("dirty_age=1ms");
	crig_limit(2);
	crig_hold(true);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_pass(2 * CRIG_MS);
	/* a newer page; the older one is at the store */
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	io = crig_write("b", 0, B(1), 7);
	crig_expect_waits(io);
	crig_answer(0);				/* the rig asserts that its data did not change */
	crig_expect(io, B(1));
}

/* Each loads the first of its buckets, and would lose it while it waits for a page for the
 * second. */
static void readers_of_more_than_there_is_do_not_evict_each_other_for_ever(void **state)
{
	struct crig_io *io[8];

	(void)state;
	crig_up("");
	crig_limit(2);
	crig_store_fill("a", 0, B(40), 5);
	for (uint32_t i = 0; i < 8; i++)
		io[i] = crig_send(XSEG_OP_READ, "a", B(i * 5), B(4), 0, 0);
	crig_settle();
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(crig_data_is(io[i], 0, B(4), 5));
		crig_expect(io[i], B(4));
	}
	assert_true(crig_nr_calls() <= 8 * 4);
}

static void a_page_is_not_cut_where_the_eviction_that_gave_it_freed_a_chunk(void **state)
{
	uint32_t cut;
	char name[8];

	(void)state;
	crig_up("objects=128 dirty_age=1h");
	crig_limit(200);
	for (uint32_t i = 0; i == 0 || crig.k->memory.nr_free_chunks; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		crig_have_clean(name, 0, B(1), 5);	/* a page and a chunk */
	}
	crig_limit(1);
	cut = crig.k->memory.nr_chunk_pages;
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	assert_int_equal(crig_counter(CC_EVICTED_CLEAN), 1);
	assert_int_equal(crig.k->memory.nr_chunk_pages, cut);
	assert_int_equal(crig.k->memory.nr_free_chunks, 0);
	assert_int_equal(crig.k->memory.nr_free, 1);
	crig_expect_data("b", 0, B(1), 6);
}

/* ---- objects ----------------------------------------------------------------------------- */

static void with_one_object_a_second_one_passes_until_the_first_is_emptied(void **state)
{
	struct crig_io *passes, *waits;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_have_clean("a", 0, B(2), 5);
	crig_expect(crig_write("a", B(4), B(1), 6), B(1));
	crig_hold(true);
	passes = crig_write("b", 512, B(1), 7);
	crig_expect_waits(passes);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 2);
	assert_int_equal(crig_counter(CC_FLUSHED_EVICTION), 1);
	assert_int_equal(crig_counter(CC_EVICTED_OBJECT), 2);
	assert_int_equal(crig_counter(CC_WRITES_BYPASSED), 1);
	assert_true(crig_admin("status") > 0);
	assert_int_equal(crig_number("evicting"), 1);
	waits = crig_write("c", 0, B(1), 8);		/* there is one entry for those that pass */
	crig_expect_waits(waits);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 2);
	crig_hold(false);
	crig_expect(passes, B(1));
	crig_expect(waits, B(1));
	assert_true(crig_stored("a", B(4), B(1), 6));
	assert_true(crig_stored("b", 512, B(1), 7));
	assert_null(crig_object("a"));
	assert_null(crig_object("b"));
	crig_expect_data("a", 0, B(2), 5);
	crig_expect_data("b", 512, B(1), 7);
	crig_expect_data("c", 0, B(1), 8);
}

static void a_read_passes_when_no_object_can_make_room_at_once(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_store_fill("b", 0, B(1), 7);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	io = crig_read("b", 0, B(1));
	assert_int_equal(crig_counter(CC_BYPASSED_FULL), 1);
	assert_null(crig_object("b"));
	crig_hold(false);
	assert_true(crig_data_is(io, 0, B(1), 7));
	crig_expect(io, B(1));
}

static void what_passes_is_admitted_when_there_is_room_again(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	io = crig_write("b", 0, B(1), 6);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));	/* the flush of a */
	assert_null(crig_object("a"));
	crig_expect_waits(io);
	crig_expect(crig_write("b", B(1), B(1), 7), B(1));
	crig_hold(false);
	crig_expect(io, B(1));
	assert_int_equal(crig_state("b", 1), BUCKET_DIRTY);
	crig_expect_data("b", 0, B(1), 6);
}

static void an_object_wanted_again_while_it_is_emptied_stays_and_the_other_one_still_gets_its_turn(void **state)
{
	struct crig_io *other, *again;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	other = crig_write("b", 0, B(1), 6);
	again = crig_read("a", 0, B(1));
	assert_true(crig_data_is(again, 0, B(1), 5));
	crig_expect(again, B(1));
	assert_int_equal(crig_counter(CC_REINSERTED), 1);
	crig_hold(false);
	crig_expect(other, B(1));
	crig_expect_data("a", 0, B(1), 5);
	crig_expect_data("b", 0, B(1), 6);
}

static void an_object_that_is_busy_is_emptied_when_it_is_not(void **state)
{
	struct crig_io *reader, *other;

	(void)state;
	crig_up("objects=1");
	crig_store_fill("a", 0, B(2), 5);
	crig_hold(true);
	reader = crig_read("a", 0, B(2));
	other = crig_write("b", 0, B(1), 6);
	crig_expect_waits(other);
	assert_non_null(crig_object("a"));
	crig_answer(0);
	assert_true(crig_data_is(reader, 0, B(2), 5));
	crig_expect(reader, B(2));
	assert_null(crig_object("a"));
	crig_hold(false);
	crig_expect(other, B(1));
}

static void a_write_on_its_way_to_an_object_that_is_emptied_meanwhile_is_written_out_at_once(void **state)
{
	struct crig_io *delete, *write, *other;

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	write = crig_write("a", B(2), B(1), 6);		/* waits for the delete */
	/* has "a" emptied; it is empty when the delete is done */
	other = crig_write("b", 0, B(1), 7);
	crig_hold(false);
	crig_expect(delete, 0);
	crig_expect(write, B(1));
	crig_expect(other, B(1));
	assert_true(crig_stored("a", B(2), B(1), 6));
}

static void an_object_whose_flush_fails_is_emptied_later(void **state)
{
	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	assert_non_null(crig_object("a"));
	assert_false(crig_stored("a", 0, B(1), 5));
	crig_pass(CRIG_S);
	assert_null(crig_object("a"));
	assert_true(crig_stored("a", 0, B(1), 5));
	assert_true(crig_stored("b", 0, B(1), 6));
}

/* A flush of an object that did not end goes on where it stopped; behind that something may have
 * been written again, and nothing be left before it. */
static void what_lies_behind_a_flush_that_stopped_is_written_out_too(void **state)
{
	(void)state;
	crig_up("objects=1 dirty_age=1h dirty_high=1 dirty_low=0 flush_rate=4096/s");
	crig_limit(100);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_expect(crig_write("a", B(8), B(1), 5), B(1));
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 1);
	crig_set("dirty_high=100 dirty_low=100");
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
	crig_expect(crig_write_fua("a", B(8), B(1), 6), B(1));
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(1));
	crig_expect(crig_write("b", 0, B(1), 7), B(1));
	assert_null(crig_object("a"));
	assert_true(crig_stored("a", 0, B(1), 6));
}

static void many_objects_go_through_few_entries(void **state)
{
	char name[16];

	(void)state;
	crig_up("objects=4 dirty_age=1h");
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		crig_expect(crig_write(name, B(i), B(1), 5), B(1));
	}
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		crig_expect_data(name, B(i), B(1), 5);
	}
}

static void many_objects_at_once_go_through_one_entry(void **state)
{
	struct crig_io *io[30];
	char name[16];

	(void)state;
	crig_up("objects=1 dirty_age=1h");
	crig_hold(true);
	for (uint32_t i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		io[i] = crig_write(name, 512, 512, 5 + i);
	}
	crig_hold(false);
	for (uint32_t i = 0; i < 30; i++)
		crig_expect(io[i], 512);
	for (uint32_t i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		crig_expect_data(name, 512, 512, 5 + i);
	}
}

/* ---- chunks ------------------------------------------------------------------------------ */

#define SPARSE_OBJECTS 30u

static void sparse_io(void (*fn)(const char *name, uint64_t offset))
{
	for (uint32_t i = 0; i < SPARSE_OBJECTS * OBJECT_CHUNKS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "o%u", i / OBJECT_CHUNKS);
		fn(name, i % OBJECT_CHUNKS * B(CHUNK_SLOTS));
	}
}

static void write_one(const char *name, uint64_t offset)
{
	crig_expect(crig_write(name, offset, B(1), 5), B(1));
}

static void expect_one(const char *name, uint64_t offset)
{
	crig_expect_data(name, offset, B(1), 5);
}

static void sparse_objects_get_their_slots_from_pages_and_give_them_back(void **state)
{
	(void)state;
	crig_up("objects=30 dirty_age=1h");
	sparse_io(write_one);
	assert_int_equal(
		crig.k->memory.nr_chunk_pages, SPARSE_OBJECTS * OBJECT_CHUNKS / CHUNKS_PER_PAGE);
	assert_int_equal(crig.k->memory.nr_free_chunks, 0);
	sparse_io(expect_one);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_admin("drop") > 0);
	assert_int_equal(crig.k->memory.nr_chunk_pages + crig.k->memory.nr_free_chunks, 0);
	sparse_io(expect_one);
}

/* Half of the pages hold slots: the other half has all data there is. */
static void a_cache_full_of_slots_and_dirty_data_goes_on(void **state)
{
	(void)state;
	crig_up("objects=30 dirty_age=1h");
	crig_limit(90);
	sparse_io(write_one);
	sparse_io(expect_one);
	assert_true(crig_count_calls(XSEG_OP_WRITE, 0) >= SPARSE_OBJECTS * OBJECT_CHUNKS - 90);
}

/* Each has an edge in one chunk and needs the next one. */
static void writers_that_each_have_a_chunk_and_need_another_do_not_wait_for_each_other_for_ever(void **state)
{
	struct crig_io *io[112];
	char name[16];

	(void)state;
	crig_up("objects=28 dirty_age=1h");
	crig_hold(true);
	for (uint32_t i = 0; i < 112; i++) {
		snprintf(name, sizeof(name), "o%u", i / 4);
		io[i] = crig_write(name, ((i % 4) * 2 + 1) * (256 << 10) - 512, 1024, 5);
	}
	crig_hold(false);
	crig_pass(CRIG_S);
	for (uint32_t i = 0; i < 112; i++)
		crig_expect(io[i], 1024);
	for (uint32_t i = 0; i < 112; i++) {
		snprintf(name, sizeof(name), "o%u", i / 4);
		crig_expect_data(name, ((i % 4) * 2 + 1) * (256 << 10) - 512, 1024, 5);
	}
}

/* ---- requests ---------------------------------------------------------------------------- */

static void loads_that_find_no_request_wait_for_one(void **state)
{
	struct crig_io *io[40];

	(void)state;
	crig_up("requests=8");
	crig_store_fill("a", 0, B(80), 5);
	crig_hold(true);
	for (uint32_t i = 0; i < 40; i++)
		io[i] = crig_read("a", B(i * 2), B(1));
	assert_int_equal(crig_nr_held(), crig_share());
	assert_true(crig_counter(CC_WAITS_REQUEST) > 0);
	while (crig_nr_held())
		crig_answer(crig_held(CRIG_ANY, 0));
	for (uint32_t i = 0; i < 40; i++) {
		assert_true(crig_data_is(io[i], 0, B(1), 5));
		crig_expect(io[i], B(1));
	}
}

static void loads_leave_requests_for_flushes_and_flushes_for_loads(void **state)
{
	struct crig_io *load[16], *flush;
	uint32_t n, share;

	(void)state;
	crig_up("requests=8");
	share = crig_share();
	crig_hold(true);
	for (n = 0; n < share; n++)
		load[n] = crig_read("a", B(n * 2), B(1));
	crig_expect(crig_write("b", 0, B(1), 5), B(1));
	flush = crig_flush(0);
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 1);
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(flush, 0);
	crig_hold(false);
	while (n)
		crig_expect(load[--n], B(1));
	crig_hold(true);
	for (uint32_t i = 0; i < share + 4; i++)
		crig_expect(crig_write("b", B(i * 2), B(1), 5), B(1));
	flush = crig_flush(0);
	assert_int_equal(crig_nr_held(), share);
	load[0] = crig_read("c", 0, B(1));
	assert_int_equal(crig_nr_held(), share + 1);
	crig_answer(crig_held(XSEG_OP_READ, 0));
	crig_expect(load[0], B(1));
	crig_hold(false);
	crig_expect(flush, 0);
}

static void with_few_requests_everything_at_once_still_ends(void **state)
{
	struct crig_io *io[100], *flush;

	(void)state;
	crig_up("requests=8 objects=2 dirty_age=1h");
	crig_limit(8);
	crig_hold(true);
	for (uint32_t i = 0; i < 100; i++) {
		char name[2] = { (char)('a' + i % 5), '\0' };

		io[i] = i % 3 ? crig_write(name, i * 512, 512 + i % 4 * 1024, i + 1)
			      : crig_read(name, i * 1024, B(2));
	}
	flush = crig_flush(0);
	crig_hold(false);
	for (uint32_t i = 0; i < 100; i++)
		crig_expect(io[i], io[i]->r->size);
	crig_expect(flush, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(eviction_takes_clean_buckets_only),
		CRIG_T(a_bucket_that_was_hit_again_survives_once),
		CRIG_T(a_full_cache_of_hit_buckets_still_gives_a_page),
		CRIG_T(a_bucket_of_another_object_is_evicted_too),
		CRIG_T(a_full_cache_of_dirty_buckets_makes_writers_wait_and_then_go_on),
		CRIG_T(writers_that_wait_for_pages_go_on_in_their_order_and_newcomers_behind_them),
		CRIG_T(all_that_wait_are_served_by_what_one_flush_frees),
		CRIG_T(a_read_goes_past_a_cache_that_is_full_of_what_is_not_flushed),
		CRIG_T(a_read_of_which_a_part_is_not_flushed_waits_for_a_page),
		CRIG_T(a_large_write_waits_for_a_list_of_its_pages),
		CRIG_T(a_hot_bucket_keeps_its_cold_object),
		CRIG_T(writers_wait_while_the_store_fails_and_go_on_when_it_is_back),
		CRIG_T(a_page_in_flight_is_not_given_to_anybody_else),
		CRIG_T(readers_of_more_than_there_is_do_not_evict_each_other_for_ever),
		CRIG_T(a_page_is_not_cut_where_the_eviction_that_gave_it_freed_a_chunk),
		CRIG_T(with_one_object_a_second_one_passes_until_the_first_is_emptied),
		CRIG_T(a_read_passes_when_no_object_can_make_room_at_once),
		CRIG_T(what_passes_is_admitted_when_there_is_room_again),
		CRIG_T(an_object_wanted_again_while_it_is_emptied_stays_and_the_other_one_still_gets_its_turn),
		CRIG_T(an_object_that_is_busy_is_emptied_when_it_is_not),
		CRIG_T(a_write_on_its_way_to_an_object_that_is_emptied_meanwhile_is_written_out_at_once),
		CRIG_T(an_object_whose_flush_fails_is_emptied_later),
		CRIG_T(what_lies_behind_a_flush_that_stopped_is_written_out_too),
		CRIG_T(many_objects_go_through_few_entries),
		CRIG_T(many_objects_at_once_go_through_one_entry),
		CRIG_T(sparse_objects_get_their_slots_from_pages_and_give_them_back),
		CRIG_T(a_cache_full_of_slots_and_dirty_data_goes_on),
		CRIG_T(writers_that_each_have_a_chunk_and_need_another_do_not_wait_for_each_other_for_ever),
		CRIG_T(loads_that_find_no_request_wait_for_one),
		CRIG_T(loads_leave_requests_for_flushes_and_flushes_for_loads),
		CRIG_T(with_few_requests_everything_at_once_still_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
