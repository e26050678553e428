/* xstate_test - tables of states, and what a step that is not in one does (xtypes/xstate.h).
 *
 * The C library's assertion is replaced: a failed one leaves the step, and its text stays.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "xtypes/xstate.h"

enum door { DOOR_OPEN, DOOR_SHUT, DOOR_LOCKED, DOOR_NR_STATES };

#define TO(s) (1u << DOOR_##s)

static const struct xstates doors = {
	.what = "door",
	XSTATE(DOOR_, OPEN, TO(SHUT)),
	XSTATE(DOOR_, SHUT, TO(OPEN) | TO(LOCKED)),
	XSTATE(DOOR_, LOCKED, TO(SHUT)),
};

static jmp_buf failed;
static char text[128];

void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
	(void)file;
	(void)line;
	(void)function;
	snprintf(text, sizeof(text), "%s", what);
	longjmp(failed, 1);
}

/* NULL, or the text of the assertion that failed. */
static const char *step(unsigned from, unsigned to)
{
	if (setjmp(failed))
		return text;
	xstate_check(&doors, from, to);
	return NULL;
}

static void only_edges_of_the_table_are_legal(void **state)
{
	static const char *const table[DOOR_NR_STATES] = { ".x.", "x.x", ".x." };

	(void)state;
	for (unsigned from = 0; from < DOOR_NR_STATES; from++)
		for (unsigned to = 0; to < DOOR_NR_STATES; to++)
			assert_int_equal(xstate_may(&doors, from, to), table[from][to] == 'x');
}

static void numbers_without_a_row_have_no_edges_and_no_name(void **state)
{
	static const unsigned strange[] = { DOOR_NR_STATES, XSTATE_MAX - 1, XSTATE_MAX, 32,
		UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		for (unsigned s = 0; s < DOOR_NR_STATES; s++) {
			assert_false(xstate_may(&doors, s, strange[i]));
			assert_false(xstate_may(&doors, strange[i], s));
		}
		assert_string_equal(xstate_name(&doors, strange[i]), "?");
	}
	assert_string_equal(xstate_name(&doors, DOOR_LOCKED), "LOCKED");
}

static void a_legal_step_goes_on(void **state)
{
	(void)state;
	assert_null(step(DOOR_OPEN, DOOR_SHUT));
	assert_null(step(DOOR_SHUT, DOOR_OPEN));
}

static void an_illegal_step_names_both_states(void **state)
{
	(void)state;
	assert_string_equal(step(DOOR_OPEN, DOOR_LOCKED), "door: OPEN (0) may become LOCKED (2)");
	assert_string_equal(step(DOOR_OPEN, 77), "door: OPEN (0) may become ? (77)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_edges_of_the_table_are_legal),
		cmocka_unit_test(numbers_without_a_row_have_no_edges_and_no_name),
		cmocka_unit_test(a_legal_step_goes_on),
		cmocka_unit_test(an_illegal_step_names_both_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
