/* cached_change_test - a DELETE or a cut, and older changes of its object that are parked
 * (peers/cached/request/change.c). Whatever an older change waited for, its data never comes back.
 */
#include "tests/rig/cached_rig.h"

#include "peers/common/runtime/peer_box.h"

#define ALL "dirty_age=1h dirty_high=100 dirty_low=100"

/* A full cache whose store does not answer: the next write of a new bucket waits for pages. */
static void fill_up(const char *options)
{
	crig_up(options);
	crig_hold(true);
	crig_fill(24, 0);
}

/* The store takes all, and there are pages again. */
static void make_room(void)
{
	crig_hold(false);
	crig_limit(1000);
	crig_settle();
}

static void expect_state(const struct crig_io *io, enum creq_state s)
{
	crig_expect_waits(io);
	assert_int_equal(crig_creq(io)->state, s);
}

static void answer_delete(void)
{
	crig_answer(crig_held(XSEG_OP_DELETE, 0));
}

static void a_delete_voids_what_waits_for_pages(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	write = crig_write("a", 0, B(2), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_expect_waits(write);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(2));
	make_room();
	crig_expect_data("a", 0, B(2), 0);
	crig_expect(crig_flush(0), 0);
	assert_int_equal(crig_op(XSEG_OP_INFO, "a", 0, 0)->result, -ENOENT);
}

static void a_delete_that_fails_voids_nothing(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	write = crig_write("a", 0, B(2), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_fail(crig_held(XSEG_OP_DELETE, 0), -EIO);
	crig_expect(delete, -EIO);
	crig_expect_waits(write);
	make_room();
	crig_expect(write, B(2));
	crig_expect_data("a", 0, B(2), 5);
}

static void a_write_that_came_after_the_delete_is_not_voided(void **state)
{
	struct crig_io *older, *delete, *newer;

	(void)state;
	fill_up(ALL);
	older = crig_write("a", 0, B(2), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	newer = crig_write("a", B(1), B(2), 6);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(older, B(2));
	crig_expect_waits(newer);
	make_room();
	crig_expect(newer, B(2));
	crig_expect_data("a", 0, B(1), 0);
	crig_expect_data("a", B(1), B(2), 6);
}

static void a_delete_voids_large_writes_that_wait_for_a_list(void **state)
{
	struct crig_io *write, *delete;
	uint32_t lists[NR_LISTS], n = 0;

	(void)state;
	crig_up(ALL);
	while (xpool_nr(&crig.k->memory.free_lists))
		lists[n++] = xpool_get(&crig.k->memory.free_lists);
	write = crig_write("a", 0, B(40), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(40));
	while (n)
		xpool_put(&crig.k->memory.free_lists, lists[--n]);
	crig_expect_data("a", 0, B(40), 0);
}

static void a_delete_voids_what_waits_for_room_below_a_maximum(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	crig_up(ALL);
	crig_volume(3);
	crig_volume_set("id=3 max=1M");
	crig_hold(true);
	crig_expect(crig_write("b", 0, B(200), 5), B(200));
	crig_expect(crig_write("b", B(200), B(56), 5), B(56));
	write = crig_write("a", 0, B(1), 6);
	expect_state(write, CREQ_WAITS_MEMORY);
	assert_int_equal(atomic_load(&crig.k->volume.shares.waiting), 1);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(1));
	assert_int_equal(atomic_load(&crig.k->volume.shares.waiting), 0);
	crig_hold(false);
	crig_expect_data("a", 0, B(1), 0);
}

static void a_delete_voids_what_waits_for_a_request(void **state)
{
	struct crig_io *write, *delete, *reader[64];
	uint32_t n = 0;

	(void)state;
	crig_up("requests=8 " ALL);
	crig_hold(true);
	for (; n < crig_share(); n++)
		reader[n] = crig_read("b", B(n * 2), B(1));
	write = crig_write("a", 512, B(1), 5);
	expect_state(write, CREQ_WAITS_REQUEST);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(1));
	crig_hold(false);
	while (n--)
		crig_expect(reader[n], B(1));
	crig_expect_data("a", 0, B(2), 0);
}

static void a_cut_comes_after_what_waits_for_an_entry(void **state)
{
	struct crig_io *first, *write, *delete;

	(void)state;
	crig_up("objects=1 " ALL);
	crig_hold(true);
	crig_expect(crig_write("x", 0, B(1), 7), B(1));
	first = crig_write("y", 0, B(1), 7);		/* it passes: the last entry */
	crig_expect_waits(first);
	write = crig_write("a", 0, B(1), 5);
	expect_state(write, CREQ_WAITS_ENTRY);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	crig_hold(false);
	crig_expect(first, B(1));
	crig_expect(write, B(1));
	crig_expect(delete, 0);
	crig_expect_data("a", 0, B(1), 0);
}

static void a_delete_voids_an_older_one_that_waits(void **state)
{
	struct crig_io *first, *older, *delete, *write;

	(void)state;
	crig_up(ALL);
	crig_expect(crig_write("a", 0, B(1), 5), B(1));
	crig_hold(true);
	first = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	older = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	write = crig_write("a", 0, B(1), 6);
	answer_delete();
	crig_expect(first, 0);
	answer_delete();
	crig_expect(older, -ENOENT);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(1));
	crig_hold(false);
	crig_expect_data("a", 0, B(1), 6);
}

/* ---- ranges ---- */

static void zeroes_void_what_they_cover(void **state)
{
	struct crig_io *write;

	(void)state;
	fill_up(ALL);
	write = crig_write("x0", B(500), B(2), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "x1", 0, B(3)), B(3));
	crig_expect_waits(write);			/* another object's */
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "x0", 0, B(4)), B(4));
	crig_expect_waits(write);			/* another range */
	make_room();
	crig_expect(write, B(2));
	crig_expect_data("x0", B(500), B(2), 5);
}

/* Both are of chunks that are there. */
static void a_discard_voids_what_it_covers(void **state)
{
	struct crig_io *write;

	(void)state;
	fill_up(ALL);
	write = crig_write("x1", B(8), B(2), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	crig_expect(crig_op(XSEG_OP_DISCARD, "x1", B(8), B(2)), B(2));
	crig_expect(write, B(2));
	make_room();
	crig_expect_data("x1", B(8), B(2), 0);
	crig_expect(crig_flush(0), 0);
	assert_true(crig_stored("x1", B(8), B(2), 0));
}

static void zeroes_wait_for_what_they_cover_in_part(void **state)
{
	struct crig_io *write, *zeroes;

	(void)state;
	fill_up(ALL);
	write = crig_write("x1", B(8), B(4), 5);
	zeroes = crig_op(XSEG_OP_WRITE_ZEROES, "x1", B(10), B(8));
	expect_state(zeroes, CREQ_WAITS_OBJECT);
	make_room();
	crig_expect(write, B(4));
	crig_expect(zeroes, B(8));
	crig_expect_data("x1", B(8), B(2), 5);
	crig_expect_data("x1", B(10), B(8), 0);
}

static void zeroes_past_the_cache_void_what_they_cover(void **state)
{
	struct crig_io *write, *zeroes, *reader[64];
	uint32_t n = 0;

	(void)state;
	crig_up("requests=8 policy=write-around");
	crig_store_fill("a", 0, B(4), 5);
	crig_hold(true);
	for (; n < crig_share(); n++)
		reader[n] = crig_read("b", B(n * 2), B(1));
	write = crig_write("a", 0, B(1), 6);
	expect_state(write, CREQ_WAITS_REQUEST);
	zeroes = crig_op(XSEG_OP_WRITE_ZEROES, "a", 0, B(2));
	crig_hold(false);
	crig_expect(write, B(1));
	crig_expect(zeroes, B(2));
	while (n--)
		crig_expect(reader[n], B(1));
	crig_expect_data("a", 0, B(2), 0);
}

/* ---- promises ---- */

static void a_voided_write_with_fua_is_answered_when_the_delete_is_stable(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	crig_store_fill("a", 0, B(1), 4);
	write = crig_write_fua("a", 0, B(1), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	answer_delete();
	crig_expect(delete, 0);
	crig_expect_waits(write);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_expect(write, B(1));
	make_room();
	crig_expect_data("a", 0, B(1), 0);
}

static void a_voided_write_with_fua_is_answered_when_the_zeroes_are_stable(void **state)
{
	struct crig_io *write;

	(void)state;
	fill_up(ALL);
	write = crig_write_fua("x1", B(8), B(1), 5);
	expect_state(write, CREQ_WAITS_MEMORY);
	crig_expect(crig_op(XSEG_OP_DISCARD, "x1", B(8), B(2)), B(2));
	crig_expect_waits(write);
	make_room();
	crig_expect(write, B(1));
	assert_true(crig_stable("x1", B(8), B(1), 0));
}

static void pages_that_a_voided_write_gives_come_back(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	write = crig_send_give(NULL, "a", 0, B(2), 0, 5);
	crig_settle();
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect(write, B(2));
	make_room();
}

/* ---- kills ---- */

static void restart(void)
{
	crig_kill();
	assert_int_equal(crig_open(ALL), 0);
	crig_hold(false);
	assert_true(peer_serving(crig.peer));
}

static void a_successor_voids_by_a_delete_what_its_predecessor_had_parked(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	write = crig_write("a", 0, B(2), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	restart();
	crig_expect(write, B(2));
	crig_expect(delete, 0);
	crig_expect_data("a", 0, B(2), 0);
}

static void a_successor_knows_what_was_voided(void **state)
{
	struct crig_io *write, *delete;

	(void)state;
	fill_up(ALL);
	write = crig_write_fua("a", 0, B(2), 5);
	delete = crig_op(XSEG_OP_DELETE, "a", 0, 0);
	answer_delete();
	crig_expect(delete, -ENOENT);
	crig_expect_waits(write);		/* for the FLUSH */
	restart();
	crig_expect(write, B(2));
	crig_expect_data("a", 0, B(2), 0);
}

/* The requests are handed over by index, and the older one of these has the higher one. */
static void a_successor_begins_cuts_last(void **state)
{
	struct crig_io *filler, *write, *zeroes;

	(void)state;
	fill_up(ALL);
	filler = crig_send(XSEG_OP_WRITE, "x1", B(8), B(1), 0, 5);
	zeroes = crig_send(XSEG_OP_WRITE_ZEROES, "x1", B(8), B(4), 0, 0);
	crig_settle();
	crig_expect(zeroes, B(4));
	crig_expect(filler, B(1));
	write = crig_write("x1", B(20), B(4), 6);
	zeroes = crig_op(XSEG_OP_DISCARD, "x1", B(22), B(4));
	expect_state(write, CREQ_WAITS_MEMORY);
	expect_state(zeroes, CREQ_WAITS_OBJECT);
	restart();
	crig_expect(write, B(4));
	crig_expect(zeroes, B(4));
	crig_expect_data("x1", B(20), B(2), 6);
	crig_expect_data("x1", B(22), B(4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CRIG_T(a_delete_voids_what_waits_for_pages),
		CRIG_T(a_delete_that_fails_voids_nothing),
		CRIG_T(a_write_that_came_after_the_delete_is_not_voided),
		CRIG_T(a_delete_voids_large_writes_that_wait_for_a_list),
		CRIG_T(a_delete_voids_what_waits_for_room_below_a_maximum),
		CRIG_T(a_delete_voids_what_waits_for_a_request),
		CRIG_T(a_cut_comes_after_what_waits_for_an_entry),
		CRIG_T(a_delete_voids_an_older_one_that_waits),
		CRIG_T(zeroes_void_what_they_cover),
		CRIG_T(a_discard_voids_what_it_covers),
		CRIG_T(zeroes_wait_for_what_they_cover_in_part),
		CRIG_T(zeroes_past_the_cache_void_what_they_cover),
		CRIG_T(a_voided_write_with_fua_is_answered_when_the_delete_is_stable),
		CRIG_T(a_voided_write_with_fua_is_answered_when_the_zeroes_are_stable),
		CRIG_T(pages_that_a_voided_write_gives_come_back),
		CRIG_T(a_successor_voids_by_a_delete_what_its_predecessor_had_parked),
		CRIG_T(a_successor_knows_what_was_voided),
		CRIG_T(a_successor_begins_cuts_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
