/* usage_test - bytes by prefix: counted in steps, told while the next count runs. */
#include "peers/common/blocker/usage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

static struct usage u;
static char text[64 << 10];

static int setup(void **state)
{
	(void)state;
	return usage_open(&u);
}

static int teardown(void **state)
{
	(void)state;
	usage_close(&u);
	return 0;
}

/* Whether a count is to begin. */
static bool ask_of(const char *line, uint64_t now_ns, size_t size)
{
	bool begin;

	assert_true(usage_ask(&u, line, now_ns, text, size, &begin) >= 0);
	return begin;
}

static bool ask(uint64_t now_ns)
{
	return ask_of("usage", now_ns, sizeof(text));
}

static bool says(const char *line)
{
	const char *at = strstr(text, line);

	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static void count(const char *const *name, uint32_t nr, uint64_t bytes, uint64_t end_ns)
{
	usage_begin(&u);
	for (uint32_t i = 0; i < nr; i++)
		usage_add(&u, name[i], bytes, 1);
	usage_end(&u, 0, end_ns);
}

static void objects_of_one_prefix_are_added_up(void **state)
{
	static const char *const names[] = { "-01k:0000000000000000", "-01k:0000000000000001",
		"old:0000000000000000", "+kv:head.0", ":catalog", "none", "a b:1", "\x7f:1" };

	(void)state;
	assert_true(ask(0));
	assert_true(says("count=0") && says("counting=yes") && says("percent=0"));
	count(names, 8, 4096, S / 10);
	ask(S);
	assert_true(says("count=1") && says("counting=no") && says("age_ms=900"));
	assert_true(says("bytes=32768") && says("objects=8"));
	assert_true(says("prefix=-01k: bytes=8192 objects=2"));
	assert_true(says("prefix=old: bytes=4096 objects=1"));
	assert_true(says("prefix=+kv: bytes=4096 objects=1"));
	assert_true(says("prefix=: bytes=4096 objects=1"));
	assert_null(strstr(text, "none"));
	assert_null(strstr(text, "a b"));
}

static void the_last_count_is_told_until_the_next_one_is_complete(void **state)
{
	static const char *const first[] = { "a:1", "b:1" };

	(void)state;
	assert_true(ask(0));
	count(first, 2, 512, 1);
	assert_true(ask(2 * S));
	usage_begin(&u);
	usage_add(&u, "b:1", 7, 1);
	usage_step(&u, 42);
	assert_false(ask(3 * S));		/* one at a time (US2) */
	assert_true(says("count=1") && says("counting=yes") && says("percent=42"));
	assert_true(says("prefix=a: bytes=512 objects=1") &&
		    says("prefix=b: bytes=512 objects=1"));
	usage_end(&u, 0, 3 * S);
	ask(3 * S);
	assert_true(says("count=2") && says("bytes=7") && says("prefix=b: bytes=7 objects=1"));
	assert_null(strstr(text, "prefix=a:"));
}

static void counting_takes_a_tenth_of_the_time_at_most(void **state)
{
	(void)state;
	assert_true(ask(0));
	count(NULL, 0, 0, 1);
	assert_false(ask(USAGE_FRESH_NS));
	assert_true(ask(USAGE_FRESH_NS + 2));
	count(NULL, 0, 0, 5 * S);		/* it took 4 s */
	assert_false(ask(5 * S + 30 * S));
	assert_true(ask(5 * S + 41 * S));
}

static void clocks_that_differ_do_not_stop_it(void **state)
{
	(void)state;
	assert_true(ask(S));
	count(NULL, 0, 0, S - 1000);
	assert_false(ask(S - 2000));
	assert_true(says("age_ms=0"));
	assert_true(ask(3 * S));
}

static void a_count_that_fails_says_why_and_leaves_the_one_before(void **state)
{
	static const char *const name[] = { "a:1" };

	(void)state;
	assert_true(ask(0));
	count(name, 1, 512, 1);
	assert_true(ask(2 * S));
	usage_begin(&u);
	usage_add(&u, "a:1", 9, 1);
	usage_end(&u, -EIO, 2 * S);
	ask(2 * S);
	assert_true(says("count=1") && says("prefix=a: bytes=512 objects=1"));
	assert_true(says("error=Input/output error"));
	assert_true(ask(4 * S));
	count(name, 1, 10, 4 * S);
	ask(4 * S);
	assert_true(says("prefix=a: bytes=10 objects=1"));
	assert_null(strstr(text, "error="));
}

static void many_prefixes_come_in_several_answers(void **state)
{
	bool found[3000] = { false };
	char name[32], line[32], *at;
	uint32_t nr = 0, answers = 0, next = 0, i;
	bool more = true;

	(void)state;
	assert_true(ask(0));
	usage_begin(&u);
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "volume%u:1", i);
		usage_add(&u, name, i, 1);
	}
	usage_end(&u, 0, 1);
	for (; more; answers++) {
		snprintf(line, sizeof(line), "usage %u", next);
		ask_of(line, 1, 4096);
		for (at = text; (at = strstr(at, "prefix=volume")); at++, nr++) {
			assert_int_equal(sscanf(at, "prefix=volume%u:", &i), 1);
			assert_false(found[i]);
			found[i] = true;
		}
		at = strstr(text, "next=");
		more = at;
		if (more)
			assert_int_equal(sscanf(at, "next=%u", &next), 1);
	}
	assert_int_equal(nr, 3000);
	assert_true(answers > 10);
}

static void more_prefixes_than_there_is_room_for_are_in_the_sum(void **state)
{
	char name[32];

	(void)state;
	assert_true(ask(0));
	usage_begin(&u);
	for (uint32_t i = 0; i < 2 * USAGE_SLOTS; i++) {
		snprintf(name, sizeof(name), "v%u:1", i);
		usage_add(&u, name, 1, 1);
	}
	usage_end(&u, 0, 1);
	ask(1);
	assert_true(says("bytes=32768") && says("objects=32768"));
	assert_non_null(strstr(text, "prefix=v"));
}

static void what_it_does_not_know_is_refused(void **state)
{
	bool begin;

	(void)state;
	assert_int_equal(usage_ask(&u, "status", 0, text, sizeof(text), &begin), -ENOSYS);
	assert_int_equal(usage_ask(&u, "usages", 0, text, sizeof(text), &begin), -ENOSYS);
	assert_int_equal(usage_ask(&u, "usage x", 0, text, sizeof(text), &begin), -EINVAL);
	assert_false(begin);
	assert_true(usage_ask(&u, "usage 99999999", 0, text, sizeof(text), &begin) > 0);
	assert_true(usage_ask(&u, "usage", 0, text, 1, &begin) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			objects_of_one_prefix_are_added_up, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_last_count_is_told_until_the_next_one_is_complete, setup, teardown),
		cmocka_unit_test_setup_teardown(
			counting_takes_a_tenth_of_the_time_at_most, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks_that_differ_do_not_stop_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_count_that_fails_says_why_and_leaves_the_one_before, setup, teardown),
		cmocka_unit_test_setup_teardown(
			many_prefixes_come_in_several_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(
			more_prefixes_than_there_is_room_for_are_in_the_sum, setup, teardown),
		cmocka_unit_test_setup_teardown(what_it_does_not_know_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
