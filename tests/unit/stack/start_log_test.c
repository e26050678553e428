/* start_log_test - which lines of the supervisor's log tell a command that its start has failed.
 */
#include "tools/xseg/base/start_log.h"

#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tools/xseg/base/proc.h"

/* The log's lines since the command began. No file is read. */
static const char *const *log_lines;

void proc_each_line(const char *path, off_t from, const char *word,
	void (*seen)(const char *line, void *arg), void *arg)
{
	(void)path;
	(void)from;
	for (const char *const *line = log_lines; *line; line++)
		if (!word || strstr(*line, word))
			seen(*line, arg);
}

#define LOG(...) (log_lines = (const char *const[]){ __VA_ARGS__, NULL })

static char said[START_LOG_LINE];

static bool failed(const char *a, const char *b)
{
	const struct start_log_names names = { .nr = b ? 2 : 1, .name = { a, b } };

	return start_log_failed("", 0, &names, said);
}

static bool any_failed(void)
{
	return start_log_failed("", 0, &(struct start_log_names){ .nr = 0 }, said);
}

#define STARTED(names) "supervisor: started " names " (pid 7)"
#define ENDED(names)                                                                           \
	"supervisor: warning: the process of " names                                           \
	" ended with exit code 1; starting it again in 200 ms"

static void an_end_counts_behind_its_beginning(void **state)
{
	(void)state;
	LOG(STARTED("filed"), "filed: error: no directory", ENDED("filed"));
	assert_true(any_failed());
	assert_string_equal(said, ENDED("filed"));
	assert_true(failed("filed", NULL));
}

static void an_end_of_one_that_began_before_does_not(void **state)
{
	(void)state;
	LOG(ENDED("filed"), STARTED("filed"));
	assert_false(any_failed());
	assert_false(failed("filed", NULL));
	LOG(ENDED("filed"), STARTED("filed"), ENDED("filed"));
	assert_true(failed("filed", NULL));
}

static void the_beginning_of_another_one_does_not_help(void **state)
{
	(void)state;
	LOG(STARTED("filed2"), STARTED("file"), STARTED("filed, cached"), ENDED("filed"));
	assert_false(any_failed());
}

static void only_the_names_that_are_needed_count(void **state)
{
	(void)state;
	LOG(STARTED("filed"), STARTED("other"), ENDED("other"));
	assert_false(failed("filed", NULL));
	assert_false(failed("filed", "cached"));
	assert_true(failed("cached", "other"));
	assert_true(any_failed());
}

static void one_of_a_group_is_enough(void **state)
{
	(void)state;
	LOG(STARTED("volumed, cached, filed"), ENDED("volumed, cached, filed"));
	assert_true(failed("volumed", NULL));
	assert_true(failed("cached", NULL));
	assert_true(failed("filed", NULL));
	assert_false(failed("file", NULL));
	assert_false(failed("ended", NULL));
}

static void exports_count_by_their_names(void **state)
{
	(void)state;
	LOG("supervisor: started export disk (pid 7), on /run/disk.sock", ENDED("export disk"));
	assert_true(failed("disk", NULL));
	assert_false(failed("scratch", NULL));
	LOG("supervisor: started exports disk, scratch (pid 7), on localhost:10809",
		ENDED("exports disk, scratch"));
	assert_true(failed("disk", NULL));
	assert_true(failed("scratch", NULL));
}

static void a_peer_may_be_called_export(void **state)
{
	(void)state;
	LOG(STARTED("export"), ENDED("export"));
	assert_true(failed("export", NULL));
}

static void a_program_that_cannot_be_run_has_no_beginning(void **state)
{
	(void)state;
	LOG("supervisor: error: cannot start filed (/usr/bin/filed): No such file or directory; "
	    "trying again");
	assert_true(failed("filed", NULL));
	assert_false(failed("cached", NULL));
	LOG("supervisor: error: cannot start export disk: no nbdkit; trying again");
	assert_true(failed("disk", NULL));
}

static void wrong_options_and_no_second_start_count(void **state)
{
	(void)state;
	LOG(STARTED("filed"), "supervisor: error: filed cannot be started with these options; "
			      "correct the stack file");
	assert_true(failed("filed", NULL));
	LOG(STARTED("filed"), "supervisor: warning: the process of filed was killed by signal 9; "
			      "it is not started again (restart = no)");
	assert_true(failed("filed", NULL));
}

static void other_lines_say_nothing(void **state)
{
	(void)state;
	LOG(STARTED("filed"), "supervisor: filed stopped",
		"supervisor: warning: the process of filed was killed by signal 9; starting it "
		"again in 100 ms",
		"filed: the process of filed ended with exit code 1", "supervisor: stopping filed");
	assert_false(any_failed());
	assert_false(failed("filed", NULL));
}

static void crashes_are_counted_by_name(void **state)
{
	struct start_log_crashes c;

	(void)state;
	LOG("supervisor: warning: the process of filed was killed by signal 11; starting it again "
	    "in 100 ms",
		"supervisor: warning: the process of filed, cached was killed by signal 6; "
		"starting it again in 200 ms",
		"supervisor: warning: the process of filed was killed by signal 9 (perhaps as "
		"memory ran out); starting it again in 400 ms",
		"supervisor: warning: the process of filed2 was killed by signal 11; starting it "
		"again in 100 ms",
		"filed: the process of filed was killed by signal 11");
	start_log_count_crashes("", 0, "filed", &c);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.signal, 6);
	assert_int_equal(c.nr_kills, 1);
	assert_true(c.memory);
	start_log_count_crashes("", 0, "cached", &c);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.nr_kills, 0);
	assert_false(c.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_counts_behind_its_beginning),
		cmocka_unit_test(an_end_of_one_that_began_before_does_not),
		cmocka_unit_test(the_beginning_of_another_one_does_not_help),
		cmocka_unit_test(only_the_names_that_are_needed_count),
		cmocka_unit_test(one_of_a_group_is_enough),
		cmocka_unit_test(exports_count_by_their_names),
		cmocka_unit_test(a_peer_may_be_called_export),
		cmocka_unit_test(a_program_that_cannot_be_run_has_no_beginning),
		cmocka_unit_test(wrong_options_and_no_second_start_count),
		cmocka_unit_test(other_lines_say_nothing),
		cmocka_unit_test(crashes_are_counted_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
