/* log_test - lines of the log: the time in front of them, which the log writes without the
 * library's help, and the limit of lines for a place in the code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>

#include "peers/common/log/log.h"
#include "peers/common/log/log_time.h"

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

/* ---- lines ------------------------------------------------------------------------------- */

static time_t second(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* So many from one place, in one second, though the machine stands still at times; what stderr is
 * given is in file then. Returns the second. */
static time_t say_at_once(FILE *file, struct log_site *site, int nr)
{
	time_t begun;

	do {
		memset(site, 0, sizeof(*site));
		assert_int_equal(ftruncate(fileno(file), 0), 0);
		assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
		begun = second();
		for (int i = 0; i < nr; i++)
			log_line(site, "warning: ", "cached: line %d", i);
	} while (second() != begun);
	return begun;
}

/* The next line, without its time, which it has. */
static const char *next_line(FILE *file)
{
	static char line[256];
	const char *text;

	if (!fgets(line, sizeof(line), file))
		return NULL;
	text = log_skip_time(line);
	assert_ptr_not_equal(text, line);
	return text;
}

static void a_place_says_some_lines_a_second_and_later_how_many_it_held_back(void **state)
{
	FILE *file = tmpfile();
	struct log_site site;
	int stderr_is = dup(STDERR_FILENO);
	char wanted[64];
	time_t begun;

	(void)state;
	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	begun = say_at_once(file, &site, LOG_PER_SECOND + 3);
	while (second() == begun)
		usleep(10000);
	log_line(&site, "warning: ", "cached: one more");
	dup2(stderr_is, STDERR_FILENO);
	rewind(file);
	for (int i = 0; i < LOG_PER_SECOND; i++) {
		snprintf(wanted, sizeof(wanted), "cached: warning: line %d\n", i);
		assert_string_equal(next_line(file), wanted);
	}
	assert_string_equal(next_line(file), "cached: suppressed 3 lines like the next\n");
	assert_string_equal(next_line(file), "cached: warning: one more\n");
	assert_null(next_line(file));
	fclose(file);
	close(stderr_is);
}

static void a_line_that_is_too_long_is_one_line_still(void **state)
{
	struct log_site site = { 0 };
	int stderr_is = dup(STDERR_FILENO), ends[2];
	char said[4096], text[3000];
	ssize_t len;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	log_line(&site, "", "cached: %s", text);
	dup2(stderr_is, STDERR_FILENO);
	len = read(ends[0], said, sizeof(said));
	assert_in_range(len, 1000, 1400);
	/* no time where it is no file */
	assert_int_equal(strncmp(said, "cached: xxx", 11), 0);
	assert_ptr_equal(memchr(said, '\n', (size_t)len), said + len - 1);
	close(ends[0]);
	close(ends[1]);
	close(stderr_is);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_day_of_nine_centuries_is_that_of_the_library),
		cmocka_unit_test(first_and_last_moments_of_days_are_those_of_the_library),
		cmocka_unit_test(a_line_that_begins_with_a_time_is_skipped_to_its_name),
		cmocka_unit_test(a_place_says_some_lines_a_second_and_later_how_many_it_held_back),
		cmocka_unit_test(a_line_that_is_too_long_is_one_line_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
