/* cached_full_test - a store that is full: which requests wait, which are refused, and which still
 * get through (peers/cached/flush/full.c, room.c).
 */
#include "tests/rig/cached_rig.h"

#define QUIET "dirty_age=1h dirty_high=100 dirty_low=100"

static void store_is_full(bool full)
{
	crig_fail_next(XSEG_OP_WRITE, full ? -ENOSPC : 0, full ? UINT32_MAX : 0);
}

/* All pages have dirty data that the store does not take. */
static void up_full(const char *options)
{
	crig_up(options);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	store_is_full(true);
	crig_fill(24, 0);
}

static void expect_state(const struct crig_io *io, enum creq_state s)
{
	crig_expect_waits(io);
	assert_int_equal(crig_creq(io)->state, s);
}

static void what_makes_room_does_not_wait_where_all_is_dirty(void **state)
{
	struct crig_io *write;

	(void)state;
	up_full(QUIET);
	write = crig_write("b", 0, B(1), 6);
	expect_state(write, CREQ_WAITS_MEMORY);
	crig_store_fill("new", 0, B(5), 4);
	crig_expect(crig_op(XSEG_OP_DISCARD, "new", 512, B(4)), B(4));
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "new2", B(8), B(4)), B(4));
	crig_expect_waits(write);
	/* it gets to the store, and has its answer */
	crig_expect(crig_write_fua(":catalog", 0, 512, 7), -ENOSPC);
	crig_expect_waits(write);
	/* what it frees is the reserve's first */
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), 0);
	crig_expect_waits(write);
	crig_expect(crig_op(XSEG_OP_DELETE, "x0", 0, 0), 0);
	assert_int_equal(crig.k->memory.reserve.nr, RESERVE_PAGES);
	crig_expect(write, B(1));
}

static void nor_where_it_takes_more_slots_than_the_reserve_has(void **state)
{
	struct crig_io *write;
	char name[16];

	(void)state;
	up_full(QUIET " objects=1000");
	write = crig_write("b", 0, B(1), 6);
	expect_state(write, CREQ_WAITS_MEMORY);
	for (unsigned i = 0; i < 300; i++) {
		struct crig_io *io;

		snprintf(name, sizeof(name), "new%u", i % 200);
		io = crig_op(XSEG_OP_DISCARD, name, 0, B(4));
		crig_pass(CRIG_S);
		crig_expect(io, B(4));
	}
	crig_expect_waits(write);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	crig_expect(write, B(1));
}

static void a_removal_waits_for_no_entry(void **state)
{
	char name[8];

	(void)state;
	up_full(QUIET " objects=8");
	for (unsigned i = 0; i < 24; i++) {
		snprintf(name, sizeof(name), "y%u", i);
		crig_write(name, 0, B(1), 6);
	}
	crig_expect(crig_op(XSEG_OP_DELETE, "z", 0, 0), -ENOENT);
	crig_expect(crig_op(XSEG_OP_DISCARD, "z", 0, B(4)), B(4));
	crig_expect(crig_op(XSEG_OP_DELETE, "x0", 0, 0), 0);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
}

/* All that are left have waited for pages with a list, if they keep it. */
static void wait_with_lists(bool copies)
{
	struct crig_io *io;

	for (unsigned i = 0; i < NR_LISTS / 2 + 1; i++) {
		io = copies ? crig_send_copy("x1", "a", 0, B(CREQ_FEW + 1))
			    : crig_send(XSEG_OP_WRITE, "x0", B(256), B(CREQ_FEW + 1), 0, 6);
		crig_settle();
		expect_state(io, CREQ_WAITS_MEMORY);
	}
	crig_expect(crig_op(XSEG_OP_DISCARD, copies ? "new" : "new2", 0, B(64)), B(64));
}

static void nor_for_a_list_of_pages(void **state)
{
	(void)state;
	up_full(QUIET);
	crig_hold(true);	/* nothing is flushed, so it stays here */
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(32)), B(32));
	for (uint32_t i = 0; i < NR_LISTS / 2; i++)
		assert_int_not_equal(xpool_get(&crig.k->memory.free_lists), XPOOL_NONE);
	wait_with_lists(false);
	wait_with_lists(true);
	for (uint32_t i = 0; i < NR_LISTS / 2; i++)
		xpool_put(&crig.k->memory.free_lists, i);
	store_is_full(false);
	crig_hold(false);
	crig_pass(10 * CRIG_S);
}

static void what_is_larger_than_the_reserve_goes_past_the_cache(void **state)
{
	(void)state;
	up_full(QUIET);
	store_is_full(false);
	crig_fail_next(XSEG_OP_WRITE, -ENOSPC, UINT32_MAX);
	crig_expect(crig_write_fua(":catalog", 512, B(64), 7), -ENOSPC);
	store_is_full(false);
	crig_hold(true);
	crig_write("b", 0, B(1), 6);
	crig_send(XSEG_OP_WRITE, ":catalog", 512, B(64), XSEG_REQ_FUA, 7);
	crig_settle();
	crig_hold(false);
	crig_settle();
	assert_true(crig_stored(":catalog", 512, B(64), 7));
	crig_pass(10 * CRIG_S);
}

static void a_read_of_what_is_newer_here_in_parts_does_not_wait(void **state)
{
	struct crig_io *io;

	(void)state;
	crig_store_reset();
	up_full(QUIET);
	crig_store_fill("a", 0, B(8), 4);
	expect_state(crig_write("b", 0, B(1), 6), CREQ_WAITS_MEMORY);
	io = crig_read("a", 0, B(8));
	assert_true(io->done);
	assert_true(crig_data_is(io, 0, B(2), 5) && crig_data_is(io, B(2), B(6), 4));
	crig_expect(io, B(8));
	crig_expect_data("a", B(6), B(2), 4);
	store_is_full(false);
	crig_pass(10 * CRIG_S);
}

static void a_write_in_the_way_of_a_cut_is_refused(void **state)
{
	struct crig_io *write, *copy, *other;

	(void)state;
	crig_volume(1);
	up_full(QUIET);
	write = crig_write("x0", B(256), B(2), 6);
	other = crig_write("x0", B(260), B(2), 6);
	copy = crig_send_copy("x1", "a", 0, B(2));
	crig_settle();
	crig_pass(10 * CRIG_S);
	expect_state(write, CREQ_WAITS_MEMORY);
	expect_state(copy, CREQ_WAITS_MEMORY);
	crig_expect(crig_op(XSEG_OP_DISCARD, "x0", B(257), B(4)), B(4));
	crig_expect(write, -ENOSPC);
	crig_expect(other, -ENOSPC);
	crig_expect(crig_op(XSEG_OP_DELETE, "x1", 0, 0), 0);
	crig_expect(copy, -ENOSPC);
}

static void and_one_that_comes_to_wait_for_memory_later(void **state)
{
	struct crig_io *write, *cut;

	(void)state;
	crig_volume(1);
	up_full(QUIET);
	crig_pass(10 * CRIG_S);
	for (uint32_t i = 0; i < NR_LISTS; i++)
		assert_int_not_equal(xpool_get(&crig.k->memory.free_lists), XPOOL_NONE);
	write = crig_write("x0", B(256), B(CREQ_FEW + 1), 6);
	expect_state(write, CREQ_WAITS_MEMORY);
	cut = crig_op(XSEG_OP_DISCARD, "x0", B(257), B(CREQ_FEW + 1));
	crig_settle();
	crig_expect_waits(cut);
	crig_expect_waits(write);
	for (uint32_t i = 0; i < NR_LISTS; i++)
		xpool_put(&crig.k->memory.free_lists, i);
	memory_port(cport_at(crig.k, 0))->freed = true;
	crig_pass(CRIG_S);
	crig_expect(write, -ENOSPC);
	crig_expect(cut, B(CREQ_FEW + 1));
}

static void and_one_of_a_volume_that_is_not_full(void **state)
{
	struct crig_io *write;

	(void)state;
	crig_volume(1);
	up_full(QUIET);
	crig_pass(10 * CRIG_S);
	crig_volume(2);
	write = crig_write("v2", B(256), B(2), 6);
	expect_state(write, CREQ_WAITS_MEMORY);
	crig_expect(crig_op(XSEG_OP_DISCARD, "v2", B(257), B(4)), B(4));
	crig_expect(write, -ENOSPC);
}

static void the_status_says_since_when_and_for_what(void **state)
{
	(void)state;
	crig_up(QUIET);
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	assert_true(crig_admin("status") > 0);
	assert_true(crig_says("store_full=wait\n") && !crig_says("full.ms="));
	store_is_full(true);
	crig_expect(crig_flush(1), -ENOSPC);
	crig_pass(2 * CRIG_S);
	assert_true(crig_admin("status") > 0);
	assert_true(crig_number("full.id") == 1 && crig_says("full.object=a\n"));
	assert_in_range(crig_number("full.ms"), 2000, 3000);
	assert_int_equal(crig_number("full.volumes"), 1);
	crig_expect(crig_write("a", B(4), B(2), 5), B(2));
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	assert_true(crig_admin("status") > 0);
	assert_false(crig_says("full.ms="));
}

/* Volume 1 has dirty data, for which the store has no room. */
static void up_with_a_full_volume(const char *options)
{
	crig_up(options);
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(2), 5), B(2));
	store_is_full(true);
	crig_expect(crig_flush(1), -ENOSPC);
}

static void a_flush_of_zeroes_does_not_end_it(void **state)
{
	(void)state;
	up_with_a_full_volume(QUIET);
	crig_pass(2 * CRIG_S);
	crig_expect(crig_op(XSEG_OP_DISCARD, "b", 0, B(4)), B(4));
	crig_flush(1);
	crig_settle();
	assert_true(crig_admin("status") > 0);
	assert_in_range(crig_number("full.ms"), 2000, 3000);
}

static void with_fail_writes_of_that_volume_are_refused_until_a_flush_succeeds(void **state)
{
	(void)state;
	up_with_a_full_volume(QUIET " store_full=fail");
	crig_expect(crig_write("a", 0, B(1), 6), -ENOSPC);	/* the short way */
	crig_expect(crig_write("a", 512, 512, 6), -ENOSPC);
	crig_expect(crig_write("b", 0, B(1), 6), -ENOSPC);
	crig_expect(crig_op(XSEG_OP_DISCARD, "a", B(1), B(1)), B(1));
	crig_expect_data("a", 0, B(1), 5);
	crig_volume(2);
	crig_expect(crig_write("c", 0, B(1), 6), B(1));
	store_is_full(false);
	crig_pass(10 * CRIG_S);
	crig_volume(1);
	crig_expect(crig_write("a", 0, B(1), 6), B(1));
}

static void what_waits_is_refused_when_that_is_set(void **state)
{
	struct crig_io *write, *copy;

	(void)state;
	crig_volume(1);
	up_full(QUIET);
	write = crig_write("x0", B(1), B(1), 6);
	copy = crig_send_copy("x1", "a", 0, B(2));
	crig_settle();
	expect_state(write, CREQ_WAITS_MEMORY);
	expect_state(copy, CREQ_WAITS_MEMORY);
	crig_set("store_full=fail");
	crig_expect(write, -ENOSPC);
	crig_expect(copy, -ENOSPC);
}

static void a_volume_of_which_nothing_is_dirty_is_not_full(void **state)
{
	(void)state;
	up_with_a_full_volume(QUIET " store_full=fail");
	crig_expect(crig_write("b", 0, B(1), 6), -ENOSPC);
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), 0);
	crig_expect(crig_write("b", 0, B(1), 6), B(1));
	assert_true(crig_admin("status") > 0);
	assert_false(crig_says("full.ms="));
}

static void a_record_that_is_taken_from_its_volume_is_not_full(void **state)
{
	(void)state;
	up_with_a_full_volume(QUIET);
	assert_int_equal(crig.k->flush.nr_full, 1);
	crig_expect(crig_op(XSEG_OP_DELETE, "a", 0, 0), 0);
	crig_admin("drop");
	assert_int_equal(crig.k->flush.nr_full, 1);
	crig_admin("volume-forget id=1");
	assert_int_equal(volume_find(crig.k, 1), OTHERS);
	assert_int_equal(crig.k->flush.nr_full, 0);
}

static void what_comes_free_in_any_port_is_the_reserve_s_first(void **state)
{
	uint32_t page[3], nr_free;

	(void)state;
	crig_up(QUIET);
	nr_free = crig.k->memory.nr_free;
	for (unsigned i = 0; i < 3; i++)
		page[i] = crig.k->memory.reserve.page[--crig.k->memory.reserve.nr];
	page_put(cport_at(crig.k, 0), page[0]);
	page_put(cport_at(crig.k, 0), page[1]);
	page_free(crig.k, page[2]);
	assert_int_equal(crig.k->memory.reserve.nr, RESERVE_PAGES);
	assert_int_equal(crig.k->memory.nr_free, nr_free);
	assert_int_equal(memory_port(cport_at(crig.k, 0))->nr_magazine, 0);
}

static void nobody_gets_pages_while_an_urgent_request_waits(void **state)
{
	struct xwait urgent = { .fn = NULL };
	struct crig_io *write;

	(void)state;
	crig_up(QUIET);
	xwaitq_add(&crig.k->memory.want_urgent, &urgent, UINT32_MAX);
	write = crig_write("a", 0, B(1), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	assert_true(xwaitq_remove(&crig.k->memory.want_urgent, &urgent));
	memory_port(cport_at(crig.k, 0))->freed = true;
	crig_pass(CRIG_S);
	crig_expect(write, B(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(what_makes_room_does_not_wait_where_all_is_dirty),
		CRIG_T(nor_where_it_takes_more_slots_than_the_reserve_has),
		CRIG_T(a_removal_waits_for_no_entry),
		CRIG_T(nor_for_a_list_of_pages),
		CRIG_T(what_is_larger_than_the_reserve_goes_past_the_cache),
		CRIG_T(a_read_of_what_is_newer_here_in_parts_does_not_wait),
		CRIG_T(a_write_in_the_way_of_a_cut_is_refused),
		CRIG_T(and_one_that_comes_to_wait_for_memory_later),
		CRIG_T(and_one_of_a_volume_that_is_not_full),
		CRIG_T(the_status_says_since_when_and_for_what),
		CRIG_T(a_flush_of_zeroes_does_not_end_it),
		CRIG_T(with_fail_writes_of_that_volume_are_refused_until_a_flush_succeeds),
		CRIG_T(what_waits_is_refused_when_that_is_set),
		CRIG_T(a_volume_of_which_nothing_is_dirty_is_not_full),
		CRIG_T(a_record_that_is_taken_from_its_volume_is_not_full),
		CRIG_T(what_comes_free_in_any_port_is_the_reserve_s_first),
		CRIG_T(nobody_gets_pages_while_an_urgent_request_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
