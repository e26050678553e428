/* cached_bucket_test - the slot word and the table of a bucket's states
 * (peers/cached/bucket/bucket.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "peers/cached/bucket/bucket.h"

static const char *const states[BUCKET_NR_STATES] = { "FREE", "INVALID", "BYPASS", "LOADING",
	"VALID", "DIRTY", "WRITING" };

static void a_slot_word_keeps_page_state_and_flags_apart(void **state)
{
	uint64_t w = slot_word(BUCKET_WRITING, 0xfffffffe, SLOT_REF | SLOT_GEN);

	(void)state;
	assert_int_equal(slot_page(w), 0xfffffffe);
	assert_int_equal(slot_state(w), BUCKET_WRITING);
	assert_true((w & SLOT_REF) && (w & SLOT_GEN) && !(w & SLOT_INFLIGHT));
	w = slot_word(BUCKET_FREE, 0, 0);
	assert_int_equal(w, 0);
	assert_true(slot_absent(w) && !slot_present(w));
}

static void zeroes_are_present_and_have_no_page(void **state)
{
	uint64_t w = slot_word(BUCKET_VALID, NO_PAGE, SLOT_REF);

	(void)state;
	assert_true(slot_present(w) && !slot_has_page(w) && slot_is_clean_zero(w));
	assert_int_equal(slot_page(w), NO_PAGE);
	w = slot_word(BUCKET_DIRTY, slot_page(w), w & SLOT_REF);
	assert_true(
		slot_present(w) && !slot_has_page(w) && !slot_is_clean_zero(w) && (w & SLOT_REF));
}

static void what_is_being_loaded_is_neither_absent_nor_present(void **state)
{
	(void)state;
	for (unsigned s = 0; s < BUCKET_NR_STATES; s++) {
		uint64_t w = slot_word((enum bucket_state)s, 7, 0);

		assert_int_equal(slot_absent(w), s == BUCKET_FREE || s == BUCKET_INVALID);
		assert_int_equal(slot_present(w),
			s == BUCKET_VALID || s == BUCKET_DIRTY || s == BUCKET_WRITING);
	}
}

/* The table at the top of bucket.h, once more and by hand: . no, x yes. */
static void exactly_the_documented_edges_are_legal(void **state)
{
	static const char *const table[BUCKET_NR_STATES] = {
		/*		   FIBLVDW */
		[BUCKET_FREE] = "..xx.x.", [BUCKET_INVALID] = "..xx.x.",
			[BUCKET_BYPASS] = ".x.....",
		[BUCKET_LOADING] = ".xx.xx.", [BUCKET_VALID] = ".xx.xx.",
			[BUCKET_DIRTY] = ".x...xx",
		[BUCKET_WRITING] = ".x..xx.",
	};

	(void)state;
	for (unsigned from = 0; from < BUCKET_NR_STATES; from++)
		for (unsigned to = 0; to < BUCKET_NR_STATES; to++)
			if (xstate_may(&bucket_states, from, to) != (table[from][to] == 'x'))
				fail_msg("%s -> %s", states[from], states[to]);
}

static void data_leaves_where_a_state_with_data_becomes_one_without(void **state)
{
	(void)state;
	for (unsigned from = 0; from < BUCKET_NR_STATES; from++)
		for (unsigned to = 0; to < BUCKET_NR_STATES; to++)
			assert_int_equal(bucket_edge_leaves((enum bucket_state)from,
						 (enum bucket_state)to),
				strchr("VDW", states[from][0]) && strchr("FIB", states[to][0]));
}

static void states_that_do_not_exist_have_no_edges_and_no_name(void **state)
{
	(void)state;
	for (unsigned s = 0; s < BUCKET_NR_STATES; s++) {
		assert_false(xstate_may(&bucket_states, BUCKET_NR_STATES, s));
		assert_false(xstate_may(&bucket_states, s, XSTATE_MAX));
		assert_string_equal(xstate_name(&bucket_states, s), states[s]);
	}
	assert_string_equal(xstate_name(&bucket_states, BUCKET_NR_STATES), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_word_keeps_page_state_and_flags_apart),
		cmocka_unit_test(zeroes_are_present_and_have_no_page),
		cmocka_unit_test(what_is_being_loaded_is_neither_absent_nor_present),
		cmocka_unit_test(exactly_the_documented_edges_are_legal),
		cmocka_unit_test(data_leaves_where_a_state_with_data_becomes_one_without),
		cmocka_unit_test(states_that_do_not_exist_have_no_edges_and_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
