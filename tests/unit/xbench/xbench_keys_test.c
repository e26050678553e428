/* xbench_keys_test - what keys may hold, step by step: each kind of wrong answer, and histories
 * that are right.
 */
#include "tests/rig/xbench_keys_rig.h"

/* ---- one operation at once --------------------------------------------------------------- */

static uint32_t put(uint64_t value, uint64_t version)
{
	struct xb_try t = { .slot = 0 };

	xb_keys_change_begin(keys, &t, XB_WRITE, KEY, value, 0);
	return change_end(&t, 0, version);
}

static uint32_t change(enum xb_op op, uint64_t value, uint64_t base, int result, uint64_t version)
{
	struct xb_try t = { .slot = 1 };

	xb_keys_change_begin(keys, &t, op, KEY, value, base);
	return change_end(&t, result, version);
}

static uint32_t get(uint64_t value, uint64_t version)
{
	struct xb_try t = { .slot = 2 };

	xb_keys_get_begin(keys, &t, XB_READ, KEY);
	return get_end(&t, value, version);
}

static uint32_t get_kind(uint64_t value, enum xb_kind kind)
{
	struct xb_try t = { .slot = 2 };

	xb_keys_get_begin(keys, &t, XB_READ, KEY);
	return get_end_kind(&t, value, 0, kind);
}

static uint32_t get_absent(void)
{
	struct xb_try t = { .slot = 2 };

	xb_keys_get_begin(keys, &t, XB_READ, KEY);
	return get_end_absent(&t);
}

/* The second look, which counts nothing. */
static uint32_t get_again(uint64_t value, uint64_t version)
{
	struct xb_try t = { .slot = 2, .again = true };

	xb_keys_get_begin(keys, &t, XB_READ, KEY);
	return get_end(&t, value, version);
}

/* One wrong answer, of that kind. */
static void assert_one(enum xb_key_wrong kind)
{
	for (enum xb_key_wrong any = 0; any < XB_NR_KEY_WRONG; any++)
		assert_int_equal(wrong(any), any == kind);
	assert_int_equal(xb_keys_wrong_in_all(keys), 1);
}

static void assert_none(void)
{
	assert_int_equal(xb_keys_wrong_in_all(keys), 0);
}

/* ---- values ------------------------------------------------------------------------------ */

static void what_was_put_may_be_got(void **state)
{
	(void)state;
	assert_int_equal(put(V(1), 10), 0);
	assert_int_equal(get(V(1), 10), 0);
	assert_int_equal(put(V(2), 20), 0);
	assert_int_equal(get(V(2), 20), 0);
	assert_int_equal(change(XB_DELETE, 0, 0, 0, 30), 0);
	assert_int_equal(get_absent(), 0);
	assert_none();
}

static void what_was_there_before_the_run_is_learnt(void **state)
{
	(void)state;
	assert_int_equal(get_kind(77 | XB_VALUE_OTHER, XB_SEEN_UNSTAMPED), 0);
	assert_int_equal(get_kind(77 | XB_VALUE_OTHER, XB_SEEN_UNSTAMPED), 0);
	assert_none();
	assert_int_equal(get_absent(), 1);
	assert_one(XB_KEY_LOST);
}

static void a_get_beside_a_put_may_find_either(void **state)
{
	struct xb_try p = { .slot = 0 }, g = { .slot = 2 }, h = { .slot = 3 };

	(void)state;
	put(V(1), 10);
	xb_keys_get_begin(keys, &g, XB_READ, KEY);
	xb_keys_get_begin(keys, &h, XB_READ, KEY);
	xb_keys_change_begin(keys, &p, XB_WRITE, KEY, V(2), 0);
	assert_int_equal(change_end(&p, 0, 20), 0);
	assert_int_equal(get_end(&g, V(1), 10), 0);
	assert_int_equal(get_end(&h, V(2), 20), 0);
	assert_none();
}

static void an_older_value_is_undone_while_the_newer_is_not_seen(void **state)
{
	(void)state;
	put(V(1), 10);
	put(V(2), 20);
	assert_int_equal(get(V(1), 10), 1);
	assert_one(XB_KEY_UNDONE);
	assert_true(xb_keys_is_suspect(keys, KEY));
	assert_int_equal(get_again(V(1), 10), 0);
	assert_one(XB_KEY_UNDONE);
}

static void it_is_stale_when_the_newer_is_seen_later(void **state)
{
	(void)state;
	put(V(1), 10);
	put(V(2), 20);
	get(V(1), 10);
	assert_int_equal(get_again(V(2), 20), 0);
	assert_one(XB_KEY_STALE);
	assert_false(xb_keys_is_suspect(keys, KEY));
}

static void a_key_that_is_gone_is_lost(void **state)
{
	(void)state;
	put(V(1), 10);
	get(V(1), 10);
	assert_int_equal(get_absent(), 1);
	assert_one(XB_KEY_LOST);
	assert_int_equal(get_again(V(1), 10), 0);
	assert_one(XB_KEY_STALE);
}

static void what_is_lost_stays_lost_when_the_key_is_changed(void **state)
{
	(void)state;
	put(V(1), 10);
	get_absent();
	put(V(2), 20);
	get(V(2), 20);
	assert_one(XB_KEY_LOST);
}

static void a_delete_that_is_taken_back_is_undone(void **state)
{
	(void)state;
	put(V(1), 10);
	change(XB_DELETE, 0, 0, 0, 20);
	assert_int_equal(get(V(1), 10), 1);
	assert_one(XB_KEY_UNDONE);
}

static void exists_of_a_deleted_key_is_undone(void **state)
{
	struct xb_try t = { .slot = 2 };

	(void)state;
	put(V(1), 10);
	change(XB_DELETE, 0, 0, 0, 20);
	xb_keys_get_begin(keys, &t, XB_EXISTS, KEY);
	assert_int_equal(xb_keys_get_end(keys, &t, &(struct xb_told){ .result = 0 }, NULL), 1);
	assert_one(XB_KEY_UNDONE);
}

static void torn_and_foreign_are_wrong_whatever_is_possible(void **state)
{
	struct xb_try t = { .slot = 2 };
	struct xb_seen seen = seen_of(KEY + 1, V(1), XB_SEEN_MISPLACED);

	(void)state;
	assert_int_equal(get_kind(V(1), XB_SEEN_TORN), 1);
	assert_one(XB_KEY_TORN);
	xb_keys_get_begin(keys, &t, XB_READ, KEY);
	assert_int_equal(xb_keys_get_end(keys, &t, &(struct xb_told){ .result = 64 }, &seen), 1);
	assert_int_equal(wrong(XB_KEY_FOREIGN), 1);
}

static void a_failed_put_may_have_happened_or_not(void **state)
{
	(void)state;
	put(V(1), 10);
	assert_int_equal(change(XB_WRITE, V(2), 0, -EIO, 0), 0);
	assert_int_equal(get(V(1), 10), 0);
	assert_int_equal(get(V(2), 20), 0);
	assert_int_equal(get(V(1), 10), 1);	/* an older version */
	put(V(3), 30);
	assert_int_equal(get(V(3), 30), 0);
	assert_int_equal(get(V(2), 20), 1);
	assert_int_equal(wrong(XB_KEY_UNDONE) + wrong(XB_KEY_STALE), 2);
}

/* ---- versions ---------------------------------------------------------------------------- */

/* The register alone would allow it: nobody has read the second. */
static void of_two_puts_at_once_the_version_says_which_is_the_last(void **state)
{
	struct xb_try a = { .slot = 0 }, b = { .slot = 1 };

	(void)state;
	xb_keys_change_begin(keys, &a, XB_WRITE, KEY, V(1), 0);
	xb_keys_change_begin(keys, &b, XB_WRITE, KEY, V(2), 0);
	change_end(&a, 0, 20);
	change_end(&b, 0, 10);
	assert_int_equal(get(V(2), 10), 1);
	assert_one(XB_KEY_STALE);
}

static void a_version_that_goes_back_is_undone(void **state)
{
	(void)state;
	put(V(1), 20);
	assert_int_equal(put(V(2), 10), 1);
	assert_one(XB_KEY_UNDONE);
}

static void one_version_with_two_values_is_foreign(void **state)
{
	struct xb_try a = { .slot = 0 }, b = { .slot = 1 };

	(void)state;
	xb_keys_change_begin(keys, &a, XB_WRITE, KEY, V(1), 0);
	xb_keys_change_begin(keys, &b, XB_WRITE, KEY, V(2), 0);
	change_end(&a, 0, 20);
	change_end(&b, 0, 10);
	assert_int_equal(get(V(2), 20), 1);
	assert_one(XB_KEY_FOREIGN);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void conditions_that_hold_are_right(void **state)
{
	(void)state;
	assert_int_equal(change(XB_DELETE, 0, 0, -ENOENT, 0), 0);
	assert_int_equal(change(XB_ADD, V(1), 0, 0, 10), 0);
	assert_int_equal(change(XB_ADD, V(2), 0, -EEXIST, 10), 0);
	assert_int_equal(change(XB_CAS, V(3), 10, 0, 20), 0);
	assert_int_equal(change(XB_CAS, V(4), 10, -EEXIST, 20), 0);
	assert_int_equal(get(V(3), 20), 0);
	assert_int_equal(change(XB_DELETE, 0, 0, 0, 30), 0);
	assert_int_equal(change(XB_CAS, V(5), 20, -ENOENT, 0), 0);
	assert_int_equal(change(XB_DELETE, 0, 0, -ENOENT, 0), 0);
	assert_int_equal(change(XB_ADD, V(6), 0, 0, 40), 0);
	assert_int_equal(get(V(6), 40), 0);
	assert_none();
}

static void an_add_over_a_value_that_is_there_has_lost_it(void **state)
{
	(void)state;
	put(V(1), 10);
	assert_int_equal(change(XB_ADD, V(2), 0, 0, 20), 1);
	assert_one(XB_KEY_LOST);
}

static void an_add_that_is_refused_without_a_cause_is_repeated(void **state)
{
	(void)state;
	put(V(1), 10);
	change(XB_DELETE, 0, 0, 0, 20);
	assert_int_equal(change(XB_ADD, V(2), 0, -EEXIST, 30), 1);
	assert_one(XB_KEY_REPEATED);
}

static void a_cas_that_is_refused_without_a_cause_is_repeated(void **state)
{
	(void)state;
	put(V(1), 10);
	assert_int_equal(change(XB_CAS, V(2), 10, -EEXIST, 20), 1);
	assert_one(XB_KEY_REPEATED);
}

static void a_cas_on_an_old_version_is_stale(void **state)
{
	(void)state;
	put(V(1), 10);
	put(V(2), 20);
	assert_int_equal(change(XB_CAS, V(3), 10, 0, 30), 1);
	assert_one(XB_KEY_STALE);
}

/* One of them was done over the other: that is seen from the versions, whichever is told first. */
static void two_cas_of_one_version_are_not_both_done(void **state)
{
	struct xb_try a = { .slot = 0 }, b = { .slot = 1 };

	(void)state;
	put(V(1), 10);
	xb_keys_change_begin(keys, &a, XB_CAS, KEY, V(2), 10);
	xb_keys_change_begin(keys, &b, XB_CAS, KEY, V(3), 10);
	assert_int_equal(change_end(&b, 0, 30), 0);
	assert_int_equal(change_end(&a, 0, 20), 1);
	assert_one(XB_KEY_STALE);
}

static void a_put_between_the_versions_of_a_cas_is_stale(void **state)
{
	struct xb_try a = { .slot = 0 }, b = { .slot = 1 };

	(void)state;
	put(V(1), 10);
	xb_keys_change_begin(keys, &a, XB_CAS, KEY, V(2), 10);
	xb_keys_change_begin(keys, &b, XB_WRITE, KEY, V(3), 0);
	assert_int_equal(change_end(&b, 0, 20), 0);
	assert_int_equal(change_end(&a, 0, 30), 1);
	assert_one(XB_KEY_STALE);
}

static void a_refusal_beside_another_change_proves_nothing(void **state)
{
	struct xb_try a = { .slot = 0 }, b = { .slot = 1 };

	(void)state;
	put(V(1), 10);
	xb_keys_change_begin(keys, &a, XB_CAS, KEY, V(2), 10);
	xb_keys_change_begin(keys, &b, XB_WRITE, KEY, V(3), 0);
	assert_int_equal(change_end(&a, -EEXIST, 20), 0);
	assert_int_equal(change_end(&b, 0, 20), 0);
	assert_none();
}

static void a_refusal_after_a_failed_change_proves_nothing(void **state)
{
	(void)state;
	put(V(1), 10);
	change(XB_WRITE, V(2), 0, -EIO, 0);
	assert_int_equal(change(XB_CAS, V(3), 10, -EEXIST, 20), 0);
	assert_none();
}

static void what_was_refused_may_not_be_got(void **state)
{
	(void)state;
	put(V(1), 10);
	assert_int_equal(change(XB_ADD, V(2), 0, -EEXIST, 10), 0);
	assert_int_equal(get(V(2), 20), 1);
	assert_int_equal(xb_keys_wrong_in_all(keys), 1);
}

static void what_was_got_may_not_be_refused(void **state)
{
	struct xb_try a = { .slot = 0 };

	(void)state;
	put(V(1), 10);
	xb_keys_change_begin(keys, &a, XB_CAS, KEY, V(2), 10);
	assert_int_equal(get(V(2), 20), 0);
	assert_int_equal(change_end(&a, -EEXIST, 20), 2);
	assert_int_equal(wrong(XB_KEY_REPEATED), 2);
}

static void a_delete_of_what_was_put_does_not_miss_it(void **state)
{
	(void)state;
	put(V(1), 10);
	assert_int_equal(change(XB_DELETE, 0, 0, -ENOENT, 0), 1);
	assert_one(XB_KEY_LOST);
}

static void a_delete_of_what_was_deleted_finds_nothing(void **state)
{
	(void)state;
	put(V(1), 10);
	change(XB_DELETE, 0, 0, 0, 20);
	assert_int_equal(change(XB_DELETE, 0, 0, 0, 30), 1);
	assert_one(XB_KEY_UNDONE);
}

/* ---- counters ---------------------------------------------------------------------------- */

#define COUNTER (NR_KEYS + 1u)

static struct xb_try incr[8];

static void incr_begin(uint32_t i)
{
	incr[i] = (struct xb_try){ .slot = i };
	xb_keys_incr_begin(keys, &incr[i], COUNTER);
}

static uint32_t incr_end(uint32_t i, int64_t result, uint64_t number)
{
	return xb_keys_incr_end(
		keys, &incr[i], &(struct xb_told){ .result = result, .number = number });
}

static void numbers_in_any_order_are_right(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		incr_begin(i);
	assert_int_equal(incr_end(0, 0, 4) + incr_end(1, 0, 2) + incr_end(2, 0, 1), 0);
	assert_int_equal(incr_end(3, 0, 3), 0);
	assert_int_equal(xb_keys_counter(keys, COUNTER, false, 4), 0);
	assert_none();
}

static void a_number_that_is_told_twice_is_repeated(void **state)
{
	(void)state;
	incr_begin(0);
	incr_begin(1);
	incr_end(0, 0, 1);
	assert_int_equal(incr_end(1, 0, 1), 1);
	assert_one(XB_KEY_REPEATED);
}

static void an_incr_that_is_done_twice_is_repeated(void **state)
{
	(void)state;
	incr_begin(0);
	assert_int_equal(incr_end(0, 0, 2), 1);
	assert_one(XB_KEY_REPEATED);
}

static void a_number_that_was_told_before_is_undone(void **state)
{
	(void)state;
	incr_begin(0);
	incr_end(0, 0, 1);
	incr_begin(1);
	assert_int_equal(incr_end(1, 0, 1), 1);
	assert_one(XB_KEY_UNDONE);
}

static void a_counter_that_is_too_small_at_the_end_is_undone(void **state)
{
	(void)state;
	incr_begin(0);
	incr_end(0, 0, 1);
	assert_int_equal(xb_keys_counter(keys, COUNTER, false, 0), 1);
	assert_one(XB_KEY_UNDONE);
}

static void a_counter_that_is_too_large_at_the_end_is_repeated(void **state)
{
	(void)state;
	incr_begin(0);
	incr_end(0, 0, 1);
	assert_int_equal(xb_keys_counter(keys, COUNTER, false, 2), 1);
	assert_one(XB_KEY_REPEATED);
}

static void a_failed_incr_may_have_happened_or_not(void **state)
{
	(void)state;
	incr_begin(0);
	incr_begin(1);
	assert_int_equal(incr_end(0, -EIO, 0), 0);
	assert_int_equal(incr_end(1, 0, 2), 0);
	assert_int_equal(xb_keys_counter(keys, COUNTER, false, 2), 0);
	assert_none();
}

static void a_counter_that_is_gone_is_lost(void **state)
{
	(void)state;
	incr_begin(0);
	assert_int_equal(incr_end(0, -ENOENT, 0), 1);
	assert_one(XB_KEY_LOST);
}

static void a_window_of_numbers_moves_on(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 5000; n++) {
		incr_begin(0);
		assert_int_equal(incr_end(0, 0, n), 0);
	}
	incr_begin(0);
	incr_begin(1);
	assert_int_equal(incr_end(0, 0, 5001), 0);
	assert_int_equal(incr_end(1, 0, 5001), 1);
	assert_one(XB_KEY_REPEATED);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin_keys, end_keys)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_was_put_may_be_got),
		T(what_was_there_before_the_run_is_learnt),
		T(a_get_beside_a_put_may_find_either),
		T(an_older_value_is_undone_while_the_newer_is_not_seen),
		T(it_is_stale_when_the_newer_is_seen_later),
		T(a_key_that_is_gone_is_lost),
		T(what_is_lost_stays_lost_when_the_key_is_changed),
		T(a_delete_that_is_taken_back_is_undone),
		T(exists_of_a_deleted_key_is_undone),
		T(torn_and_foreign_are_wrong_whatever_is_possible),
		T(a_failed_put_may_have_happened_or_not),
		T(of_two_puts_at_once_the_version_says_which_is_the_last),
		T(a_version_that_goes_back_is_undone),
		T(one_version_with_two_values_is_foreign),
		T(conditions_that_hold_are_right),
		T(an_add_over_a_value_that_is_there_has_lost_it),
		T(an_add_that_is_refused_without_a_cause_is_repeated),
		T(a_cas_that_is_refused_without_a_cause_is_repeated),
		T(a_cas_on_an_old_version_is_stale),
		T(two_cas_of_one_version_are_not_both_done),
		T(a_put_between_the_versions_of_a_cas_is_stale),
		T(a_refusal_beside_another_change_proves_nothing),
		T(a_refusal_after_a_failed_change_proves_nothing),
		T(what_was_refused_may_not_be_got),
		T(what_was_got_may_not_be_refused),
		T(a_delete_of_what_was_put_does_not_miss_it),
		T(a_delete_of_what_was_deleted_finds_nothing),
		T(numbers_in_any_order_are_right),
		T(a_number_that_is_told_twice_is_repeated),
		T(an_incr_that_is_done_twice_is_repeated),
		T(a_number_that_was_told_before_is_undone),
		T(a_counter_that_is_too_small_at_the_end_is_undone),
		T(a_counter_that_is_too_large_at_the_end_is_repeated),
		T(a_failed_incr_may_have_happened_or_not),
		T(a_counter_that_is_gone_is_lost),
		T(a_window_of_numbers_moves_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
