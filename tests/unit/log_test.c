/* log_test - the time in front of a line, which the log writes without the help of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "peers/common/log.h"
#include "peers/common/log_time.h"

#define DAY 86400

static void expect_as_library(time_t second, long ns)
{
	struct timespec at = { .tv_sec = second, .tv_nsec = ns };
	char said[LOG_TIME_CHARS + 1], wanted[64];
	struct tm tm;

	gmtime_r(&second, &tm);
	strftime(wanted, sizeof(wanted), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), ".%03ldZ ",
		ns / 1000000);
	log_format_time(&at, said);
	assert_string_equal(said, wanted);
}

static void every_day_of_nine_centuries_is_that_of_the_library(void **state)
{
	time_t day;

	(void)state;
	for (day = 0; day < 900 * 366; day++)
		expect_as_library(day * DAY + day * 37 % DAY, day % 1000 * 1000000);
}

static void first_and_last_moments_of_days_are_those_of_the_library(void **state)
{
	static const time_t last[] = { 0, 58, 59, 364, 789, 11015, 11016, 47540, 47541 };

	(void)state;
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		expect_as_library(last[i] * DAY + DAY - 1, 999999999);
		expect_as_library((last[i] + 1) * DAY, 0);
	}
}

static void a_line_that_begins_with_a_time_is_skipped_to_its_name(void **state)
{
	struct timespec at = { .tv_sec = 1795680000 };
	char time[LOG_TIME_CHARS + 1], line[64];

	(void)state;
	log_format_time(&at, time);
	snprintf(line, sizeof(line), "%scached: stopped", time);
	assert_string_equal(log_skip_time(line), "cached: stopped");
	assert_string_equal(log_skip_time("cached: stopped"), "cached: stopped");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_day_of_nine_centuries_is_that_of_the_library),
		cmocka_unit_test(first_and_last_moments_of_days_are_those_of_the_library),
		cmocka_unit_test(a_line_that_begins_with_a_time_is_skipped_to_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
