/* xbench_oracle_test - the verify oracle, step by step: the histories that it calls wrong, and
 * those that it must not.
 */
#include "tests/rig/xbench_oracle_rig.h"

static bool read_other(uint64_t value)
{
	return read_end_kind(read_begin(), value | XB_VALUE_OTHER, XB_SEEN_UNSTAMPED);
}

static const struct xb_slot *slot(void)
{
	return &oracle->slots[(AT - 4096) / 512];
}

static void what_was_written_may_be_read(void **state)
{
	(void)state;
	write_value(V(1));
	assert_true(read_value(V(1)));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(2)));
}

static void what_was_never_written_may_not_be_read(void **state)
{
	(void)state;
	write_value(V(1));
	assert_false(read_value(V(2)));
}

static void an_overwritten_value_is_wrong(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
}

static void a_read_that_overlaps_a_write_may_return_either(void **state)
{
	uint64_t w, early, late;

	(void)state;
	write_value(V(1));
	early = read_begin();
	w = write_begin(V(2));
	late = read_begin();
	write_end(w, true);
	assert_true(read_end(late, V(1)));
	assert_true(read_end(early, V(1)));
	assert_true(read_value(V(2)));
}

static void a_read_in_flight_keeps_old_values_possible(void **state)
{
	uint64_t old;

	(void)state;
	write_value(V(1));
	old = long_read_begin(0);
	for (unsigned i = 2; i < 100; i++)
		write_value(V(i));
	atomic_store(&floors[0], XB_NOT_READING);
	assert_true(read_end(old, V(1)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(99)));
	assert_int_equal(slot()->list, 0);
}

static void values_between_are_possible_for_a_long_read_too(void **state)
{
	uint64_t old;

	(void)state;
	write_value(V(1));
	old = long_read_begin(0);
	for (unsigned i = 2; i < 100; i++)
		write_value(V(i));
	assert_true(read_end(old, V(57)));
}

static void concurrent_writes_may_land_in_either_order(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	write_end(a, true);
	write_end(b, true);
	assert_true(read_value(V(1)));
}

static void the_order_that_a_read_has_seen_stays(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	write_end(a, true);
	write_end(b, true);
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(2)));
}

static void a_value_does_not_come_back_between_reads(void **state)
{
	uint64_t a = write_begin(V(1)), b = write_begin(V(2));

	(void)state;
	assert_true(read_value(V(1)));
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	write_end(a, true);
	write_end(b, true);
	assert_false(read_value(V(1)));
	assert_true(read_value(V(2)));
}

static void a_failed_write_may_have_happened_or_not(void **state)
{
	(void)state;
	write_value(V(1));
	write_end(write_begin(V(2)), false);
	assert_true(read_value(V(1)));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(1)));
	write_value(V(3));
	assert_false(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_true(read_value(V(3)));
}

static void a_sector_whose_writes_all_fail_keeps_a_short_list(void **state)
{
	const struct xb_node *n;
	unsigned nr = 0;

	(void)state;
	write_value(V(1));
	for (unsigned i = 2; i < 1000; i++)
		write_end(write_begin(V(i)), false);
	for (n = xb_node_of(&oracle->nodes, slot()->list); n;
		n = xb_node_of(&oracle->nodes, n->next))
		nr++;
	assert_true(nr <= 20);
	assert_true(read_value(V(500)));
	assert_false(read_end_kind(read_begin(), V(500), XB_SEEN_TORN));
	write_value(V(1000));
	assert_false(read_value(V(500)));
	assert_int_equal(slot()->list, 0);
}

static void fail_all(unsigned rounds)
{
	uint64_t issued;

	for (unsigned i = 1; i <= rounds; i++) {
		issued = xb_oracle_tick(oracle);
		xb_oracle_write_begin(oracle, 4096, 1u << 20, V(i), issued);
		xb_oracle_write_end(oracle, 4096, 1u << 20, issued, false);
	}
}

static void sectors_whose_writes_all_fail_do_not_use_up_the_nodes(void **state)
{
	(void)state;
	oracle->nodes.limit = oracle->nr_slots * 5;
	fail_all(100);
	assert_false(xb_oracle_is_full(oracle));
	assert_true(read_value(V(50)));
	write_value(V(101));
	assert_false(read_value(V(50)));
}

static void what_has_begun_when_the_oracle_is_full_has_room(void **state)
{
	uint64_t issued[3];

	(void)state;
	oracle->nodes.limit = oracle->nr_slots;
	for (unsigned i = 0; i < 3; i++) {
		issued[i] = xb_oracle_tick(oracle);
		xb_oracle_write_begin(oracle, 4096, 1u << 20, V(i + 1), issued[i]);
	}
	assert_true(xb_oracle_is_full(oracle));
	for (unsigned i = 0; i < 3; i++)
		xb_oracle_write_end(oracle, 4096, 1u << 20, issued[i], i == 2);
	assert_true(read_value(V(3)));
	assert_true(read_value(V(1)));
}

static void an_unanswered_write_stays_possible_for_ever(void **state)
{
	uint64_t hanging;

	(void)state;
	hanging = write_begin(V(1));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_true(read_value(V(1)));
	assert_false(read_value(V(2)));
	write_end(hanging, true);
	assert_true(read_value(V(1)));
}

static void the_first_read_defines_what_was_there_before(void **state)
{
	(void)state;
	assert_true(read_other(77));
	assert_true(read_other(77));
	assert_false(read_other(78));
	assert_false(read_value(XB_VALUE_ZERO));
}

static void a_stamp_of_this_run_is_never_what_was_there_before(void **state)
{
	(void)state;
	assert_false(read_value(V(1)));
	assert_true(read_value(XB_VALUE_ZERO));
}

static void what_was_there_before_is_learnt_beside_a_write(void **state)
{
	uint64_t w = write_begin(V(1));

	(void)state;
	assert_true(read_other(5));
	assert_false(read_other(6));
	assert_true(read_other(5));
	assert_true(read_value(V(1)));
	assert_false(read_other(5));
	write_end(w, true);
}

static void zeroing_is_a_write_of_zeroes(void **state)
{
	uint64_t a, b;

	(void)state;
	write_value(V(1));
	write_value(XB_VALUE_ZERO);
	assert_true(read_value(XB_VALUE_ZERO));
	assert_false(read_value(V(1)));
	write_value(V(2));
	assert_false(read_value(XB_VALUE_ZERO));
	a = write_begin(XB_VALUE_ZERO);
	b = write_begin(XB_VALUE_ZERO);
	assert_true(read_value(XB_VALUE_ZERO));
	assert_true(read_value(V(2)));
	write_end(a, true);
	write_end(b, true);
	assert_false(read_value(V(2)));
	assert_true(read_value(XB_VALUE_ZERO));
	assert_int_equal(slot()->list, 0);
}

/* The read of zeroes proves nothing of the zeroing that is out: they may be what was there. */
static void zeroes_beside_a_zeroing_may_be_what_was_there_before(void **state)
{
	uint64_t zeroing = write_begin(XB_VALUE_ZERO);

	(void)state;
	assert_true(read_value(XB_VALUE_ZERO));
	write_value(V(1));
	assert_true(read_value(V(1)));
	assert_true(read_value(XB_VALUE_ZERO));
	assert_false(read_value(V(1)));
	write_end(zeroing, true);
	assert_true(read_value(XB_VALUE_ZERO));
	assert_int_equal(slot()->list, 0);
}

static void zeroes_beside_a_zeroing_may_be_of_a_write_that_failed(void **state)
{
	uint64_t zeroing;

	(void)state;
	write_value(V(1));
	for (unsigned i = 2; i < 100; i++)
		write_end(write_begin(i == 2 ? XB_VALUE_ZERO : V(i)), false);
	zeroing = write_begin(XB_VALUE_ZERO);
	assert_true(read_value(XB_VALUE_ZERO));
	write_value(V(100));
	assert_true(read_value(V(100)));
	assert_true(read_value(XB_VALUE_ZERO));
	write_end(zeroing, true);
}

static void a_sector_comes_to_rest(void **state)
{
	uint64_t w;

	(void)state;
	write_value(V(1));
	assert_int_equal(slot()->list, 0);
	w = write_begin(V(2));
	assert_int_not_equal(slot()->list, 0);
	write_end(w, true);
	assert_int_equal(slot()->list, 0);
	assert_int_equal(slot()->value, V(2));
}

/* ---- kinds of errors --------------------------------------------------------------------- */

static void assert_wrong(uint64_t stale, uint64_t lost, uint64_t torn, uint64_t misplaced)
{
	assert_int_equal(xb_oracle_wrong(oracle, XB_STALE), stale);
	assert_int_equal(xb_oracle_wrong(oracle, XB_LOST), lost);
	assert_int_equal(xb_oracle_wrong(oracle, XB_TORN), torn);
	assert_int_equal(xb_oracle_wrong(oracle, XB_MISPLACED), misplaced);
}

static void an_old_value_is_stale_when_the_newer_was_seen_before(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_true(read_value(V(2)));
	assert_false(read_value(V(1)));
	assert_wrong(1, 0, 0, 0);
}

static void an_old_value_is_lost_until_the_newer_is_seen(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	assert_false(read_value(V(1)));
	assert_wrong(0, 2, 0, 0);
	assert_true(read_value(V(2)));
	assert_wrong(2, 0, 0, 0);
}

static void a_lost_write_stays_lost_when_another_overwrites_it(void **state)
{
	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	write_value(V(3));
	assert_true(read_value(V(3)));
	assert_wrong(0, 1, 0, 0);
}

static void a_second_look_counts_nothing_but_settles_lost_or_stale(void **state)
{
	struct xb_seen old = { .value = V(1), .kind = XB_SEEN_OURS },
		       right = { .value = V(2), .kind = XB_SEEN_OURS };

	(void)state;
	write_value(V(1));
	write_value(V(2));
	assert_false(read_value(V(1)));
	assert_true(xb_oracle_any_suspect(oracle, AT - 512, 2048));
	xb_oracle_look_again(oracle, AT, 512, read_begin(), &old);
	assert_wrong(0, 1, 0, 0);
	xb_oracle_look_again(oracle, AT, 512, read_begin(), &right);
	assert_wrong(1, 0, 0, 0);
	assert_false(xb_oracle_any_suspect(oracle, AT - 512, 2048));
}

static void torn_and_misplaced_are_wrong_whatever_is_possible(void **state)
{
	uint64_t w = write_begin(V(1));

	(void)state;
	assert_false(read_end_kind(read_begin(), V(1), XB_SEEN_TORN));
	assert_false(read_end_kind(read_begin(), V(1), XB_SEEN_MISPLACED));
	write_end(w, true);
	assert_wrong(0, 0, 1, 1);
}

static void the_first_findings_are_kept(void **state)
{
	struct xb_finding f[XB_FINDINGS];

	(void)state;
	write_value(V(1));
	write_value(V(2));
	for (unsigned i = 0; i < 2 * XB_FINDINGS; i++)
		assert_false(read_value(V(1)));
	assert_int_equal(xb_oracle_findings(oracle, f), XB_FINDINGS);
	assert_int_equal(f[0].offset, AT);
	assert_int_equal(f[0].expected, V(2));
	assert_int_equal(f[0].found, V(1));
}

/* As by a thread that is held up between the two steps of xb_oracle_write_end(). */
static void write_end_late(uint64_t issued, uint64_t ended)
{
	struct xb_slot *of_it;
	struct walk w;

	walk_begin(&w, oracle, AT, 512);
	while ((of_it = walk_next(&w))) {
		xb_sector_write_end(&w.lists, of_it, issued, ended, true);
		settle(&w, of_it);
	}
}

static void an_end_that_is_told_late_proves_a_read_wrong_that_was_judged(void **state)
{
	uint64_t first = write_begin(V(1)), second = write_begin(V(2)),
		 ended = xb_oracle_tick(oracle);
	struct xb_finding f[XB_FINDINGS];

	(void)state;
	assert_true(read_value(V(1)));		/* so the first one came second */
	assert_true(read_value(V(2)));
	write_end(first, true);
	assert_wrong(0, 0, 0, 0);
	write_end_late(second, ended);
	assert_wrong(1, 0, 0, 0);
	assert_int_equal(xb_oracle_findings(oracle, f), 1);
	assert_int_equal(f[0].offset, AT);
	assert_int_equal(f[0].found_offset, AT);
	assert_int_equal(f[0].expected, V(2));
	assert_int_equal(f[0].found, V(1));
	assert_int_equal(slot()->value, V(2));
	assert_false(read_value(V(1)));
}

/* ---- ranges ------------------------------------------------------------------------------ */

static void write_range(struct xb_oracle *o, uint64_t offset, uint32_t size, uint64_t value)
{
	uint64_t issued = xb_oracle_tick(o);

	xb_oracle_write_begin(o, offset, size, value, issued);
	xb_oracle_write_end(o, offset, size, issued, true);
}

static void every_sector_of_a_range_is_judged_for_itself(void **state)
{
	struct xb_seen seen[512] = { 0 };
	uint64_t r;

	(void)state;
	write_range(oracle, 4096, 512 * 512, V(1));
	write_range(oracle, 4096 + 100 * 512, 10 * 512, V(2));
	for (unsigned i = 0; i < 512; i++)
		seen[i] = (struct xb_seen){ .value = V(1), .kind = XB_SEEN_OURS };
	r = xb_oracle_read_begin(oracle, 4096, 512 * 512);
	assert_int_equal(xb_oracle_read_end(oracle, 4096, 512 * 512, r, seen), 10);
}

static void a_read_that_failed_teaches_nothing(void **state)
{
	uint64_t r = read_begin();

	(void)state;
	assert_int_equal(xb_oracle_read_end(oracle, AT, 512, r, NULL), 0);
	assert_int_equal(slot()->readers, 0);
	assert_false(xb_oracle_any_known(oracle, 4096, 65536));
}

static void what_was_never_touched_is_skipped(void **state)
{
	struct xb_oracle *big;
	struct xseg_error err;

	(void)state;
	big = xb_oracle_create(0, 1ull << 40, floors, NR_FLOORS, &err);
	assert_non_null(big);
	assert_int_equal(xb_oracle_skip(big, 0), 1ull << 40);
	write_range(big, 1ull << 39, 512, V(1));
	assert_int_equal(xb_oracle_skip(big, 0), 1ull << 39);
	assert_true(xb_oracle_any_known(big, 1ull << 39, 4096));
	xb_oracle_destroy(big);
}

static void a_run_made_again_knows_which_writes_may_be_last(void **state)
{
	struct xb_possible p[XB_MAX_POSSIBLE];

	(void)state;
	xb_oracle_redo(oracle, AT, 512, V(1), V(1), 8);
	xb_oracle_redo(oracle, AT, 512, V(5), V(5), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	xb_oracle_redo(oracle, AT, 512, V(9), V(9), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	xb_oracle_redo(oracle, AT, 512, xb_value(1, 3), xb_value(1, 3), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 3);
	xb_oracle_redo(oracle, AT, 512, XB_VALUE_ZERO, V(40), 8);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 2);
	assert_true(read_value(xb_value(1, 3)));
	assert_false(read_value(XB_VALUE_ZERO));
}

/* More than are told one by one: then any write of the run is. */
static void where_many_are_possible_all_are(void **state)
{
	struct xb_possible p[XB_MAX_POSSIBLE];
	uint64_t window = 2 * XB_MAX_POSSIBLE;
	uint32_t i;

	(void)state;
	for (i = 1; i <= XB_MAX_POSSIBLE; i++)
		xb_oracle_redo(oracle, AT, 512, V(i), V(i), window);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), XB_MAX_POSSIBLE);
	xb_oracle_redo(oracle, AT, 512, V(i), V(i), window);
	assert_int_equal(xb_oracle_possible(oracle, AT, p), 1);
	assert_int_equal(p[0].value, XB_VALUE_ANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_was_written_may_be_read),
		T(what_was_never_written_may_not_be_read),
		T(an_overwritten_value_is_wrong),
		T(a_read_that_overlaps_a_write_may_return_either),
		T(a_read_in_flight_keeps_old_values_possible),
		T(values_between_are_possible_for_a_long_read_too),
		T(concurrent_writes_may_land_in_either_order),
		T(the_order_that_a_read_has_seen_stays),
		T(a_value_does_not_come_back_between_reads),
		T(a_failed_write_may_have_happened_or_not),
		T(a_sector_whose_writes_all_fail_keeps_a_short_list),
		T(sectors_whose_writes_all_fail_do_not_use_up_the_nodes),
		T(what_has_begun_when_the_oracle_is_full_has_room),
		T(an_unanswered_write_stays_possible_for_ever),
		T(the_first_read_defines_what_was_there_before),
		T(a_stamp_of_this_run_is_never_what_was_there_before),
		T(what_was_there_before_is_learnt_beside_a_write),
		T(zeroing_is_a_write_of_zeroes),
		T(zeroes_beside_a_zeroing_may_be_what_was_there_before),
		T(zeroes_beside_a_zeroing_may_be_of_a_write_that_failed),
		T(a_sector_comes_to_rest),
		T(an_old_value_is_stale_when_the_newer_was_seen_before),
		T(an_old_value_is_lost_until_the_newer_is_seen),
		T(a_lost_write_stays_lost_when_another_overwrites_it),
		T(a_second_look_counts_nothing_but_settles_lost_or_stale),
		T(torn_and_misplaced_are_wrong_whatever_is_possible),
		T(the_first_findings_are_kept),
		T(an_end_that_is_told_late_proves_a_read_wrong_that_was_judged),
		T(every_sector_of_a_range_is_judged_for_itself),
		T(a_read_that_failed_teaches_nothing),
		T(what_was_never_touched_is_skipped),
		T(a_run_made_again_knows_which_writes_may_be_last),
		T(where_many_are_possible_all_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
