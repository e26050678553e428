/* failures_test - which failures of a store are worth a line, what fails now, and little room. */
#include "peers/common/blocker/failures.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "peers/common/say/space.h"

#define S UINT64_C(1000000000)

static struct failures f;

static const char *tell(uint64_t now_ns)
{
	static char text[512];
	struct kv_text t;

	kv_init(&t, text, sizeof(text));
	failures_tell(&f, now_ns, &t);
	return text;
}

static uint32_t note(const char *object, int error, uint64_t now_ns)
{
	struct xreq r = { .op = XSEG_OP_WRITE };

	snprintf(r.target, sizeof(r.target), "%s", object);
	return failures_note(&f, &r, error, now_ns);
}

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	failures_init(&f);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	failures_fini(&f);
	return 0;
}

static void one_line_in_ten_seconds_stands_for_all(void **state)
{
	(void)state;
	assert_int_equal(note("a", EIO, S), 1);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(note("a", EIO, 2 * S), 0);
	assert_int_equal(note("a", EIO, 12 * S), 6);
}

static void what_fails_now_has_a_beginning_and_goes_when_it_is_over(void **state)
{
	(void)state;
	assert_string_equal(tell(S), "");
	note("a", EIO, S);
	note("b c\n", ENOSPC, 6 * S);
	assert_string_equal(tell(7 * S),
		"failing_ms=6000\nfailed=2\nfailed_op=write\nfailed_object=b?c?\n"
		"error=No space left on device\n");
	note("b", ENOSPC, 11 * S);
	assert_non_null(strstr(tell(20 * S), "failing_ms=19000\nfailed=3\n"));
	assert_string_equal(tell(22 * S), "");
	note("", EIO, 30 * S);
	assert_string_equal(tell(31 * S), "failing_ms=1000\nfailed=1\nfailed_op=write\n"
		"failed_object=all objects\nerror=Input/output error\n");
}

static enum space_news look(uint64_t free_bytes, bool *low)
{
	struct space s = { .size_bytes = 1000, .free_bytes = free_bytes };

	return space_news(&s, low);
}

static void little_room_is_told_once_and_its_end_once(void **state)
{
	bool low = false;

	(void)state;
	assert_int_equal(look(100, &low), SPACE_SAME);
	assert_int_equal(look(99, &low), SPACE_LOW);
	assert_int_equal(look(99, &low), SPACE_SAME);
	assert_int_equal(look(110, &low), SPACE_SAME);
	assert_int_equal(look(99, &low), SPACE_SAME);
	assert_int_equal(look(130, &low), SPACE_ENOUGH);
	assert_int_equal(look(110, &low), SPACE_SAME);
	assert_int_equal(look(0, &low), SPACE_LOW);
}

static void a_large_store_has_room_below_a_tenth_and_files_can_run_out(void **state)
{
	const uint64_t tib = UINT64_C(1) << 40;
	struct space s = { .size_bytes = 10 * tib, .free_bytes = tib / 2 };

	(void)state;
	assert_false(space_low(&s));
	s.free_bytes = SPACE_LOW_BYTES - 1;
	assert_true(space_low(&s));
	s = (struct space){ .size_bytes = 1000, .free_bytes = 900, .files = 1000,
		.free_files = 9 };
	assert_true(space_low(&s));
	s.free_files = 10;
	assert_false(space_low(&s));
	s = (struct space){ .size_bytes = 0 };
	assert_false(space_low(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			one_line_in_ten_seconds_stands_for_all, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_fails_now_has_a_beginning_and_goes_when_it_is_over, setup, teardown),
		cmocka_unit_test(little_room_is_told_once_and_its_end_once),
		cmocka_unit_test(a_large_store_has_room_below_a_tenth_and_files_can_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
