/* volumed_stat_test - a volume's counters: requests, failures, times. */
#include "tests/rig/volumed_rig.h"

#include <unistd.h>

#define MEASURED_EACH 32	/* one I/O of a port is measured in so many (xseg/measure.c) */

static bool volume_stats(const char *name, struct xseg_stats_view *sum)
{
	struct xseg_stats_view view;
	bool found = false;

	memset(sum, 0, sizeof(*sum));
	xhist_init(&sum->lat);
	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++) {
		if (!xseg_stats_view(seg, i, &view) || strcmp(view.kind, "volume") != 0 ||
		    strcmp(view.name, name) != 0)
			continue;
		found = true;
		for (uint32_t k = 0; k < view.nr; k++)
			sum->value[k] += view.value[k];
		xhist_merge(&sum->lat, &view.lat);
	}
	return found;
}

static void each_volume_is_counted(void **state)
{
	static const uint64_t want[] = { 2, 3, 4096 + 512, 3 * 4096, 1, 1 };
	uint32_t id = create("vol", "16M");
	struct xseg_stats_view view;

	(void)state;
	assert_true(volume_stats("vol", &view));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(write_pattern(id, i * 4096, 4096, 1), 4096);
	expect_pattern(id, 0, 4096, 1);
	expect_pattern(id, 512, 512, 1);
	assert_int_equal(io(XSEG_OP_FLUSH, id, 0, 0), 0);
	assert_int_equal(io(XSEG_OP_READ, id, 16 << 20, 512), -ENXIO);
	volumed_restart();
	assert_true(volume_stats("vol", &view));
	assert_memory_equal(view.value, want, sizeof(want));
	assert_true(admin("volume remove vol") > 0);
	steps(50);
	assert_false(volume_stats("vol", &view));
}

static uint64_t errors_of(const char *name)
{
	struct xseg_stats_view view;

	assert_true(volume_stats(name, &view));
	return view.value[5];
}

static uint64_t measured_of(const char *name)
{
	struct xseg_stats_view view;

	assert_true(volume_stats(name, &view));
	return view.lat.count;
}

static void each_io_that_fails_is_counted_once_whoever_answers_it(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	fail_next(XSEG_OP_WRITE, -EIO, 0, 1);
	assert_int_equal(write_pattern(id, 0, 4096, 1), -EIO);
	assert_int_equal(errors_of("vol"), 1);
	fail_next(XSEG_OP_WRITE, -EIO, 0, 2);			/* both parts */
	assert_int_equal(write_pattern(id, (4 << 20) - 4096, 8192, 1), -EIO);
	assert_int_equal(errors_of("vol"), 2);
	fail_next(XSEG_OP_FLUSH, -EIO, 0, 1);
	assert_int_equal(io(XSEG_OP_FLUSH, id, 0, 0), -EIO);
	assert_int_equal(errors_of("vol"), 3);
	assert_int_equal(io(XSEG_OP_COPY, id, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(errors_of("vol"), 4);
}

static void a_question_that_has_no_answer_is_no_error(void **state)
{
	uint32_t id = create("vol", "64M");

	(void)state;
	assert_int_equal(io(XSEG_OP_INFO, id, 5 << 20, 512), -ENOENT);
	assert_int_equal(errors_of("vol"), 0);
}

static void errors_are_those_of_the_volume(void **state)
{
	uint32_t a = create("a", "1M"), b = create("b", "1M");

	(void)state;
	fail_next(XSEG_OP_READ, -EIO, 0, 3);
	assert_int_equal(io(XSEG_OP_READ, b, 0, 4096), -EIO);
	assert_int_equal(io(XSEG_OP_READ, a, 0, 4096), -EIO);
	assert_int_equal(io(XSEG_OP_READ, b, 0, 4096), -EIO);
	assert_int_equal(errors_of("a"), 1);
	assert_int_equal(errors_of("b"), 2);
}

static void a_volume_in_the_slot_of_another_begins_with_no_errors(void **state)
{
	uint32_t old = create("old", "1M"), new;

	(void)state;
	fail_next(XSEG_OP_READ, -EIO, 0, 1);
	assert_int_equal(io(XSEG_OP_READ, old, 0, 4096), -EIO);
	assert_true(admin("volume remove old") > 0);
	steps(50);
	new = create("new", "1M");
	assert_int_equal(io(XSEG_OP_READ, old, 0, 4096), -ENOENT);
	assert_int_equal(errors_of("new"), 0);
	fail_next(XSEG_OP_READ, -EIO, 0, 1);
	assert_int_equal(io(XSEG_OP_READ, new, 0, 4096), -EIO);
	assert_int_equal(errors_of("new"), 1);
}

static void one_io_in_so_many_is_measured(void **state)
{
	uint32_t id = create("vol", "64M");
	uint64_t before;

	(void)state;
	for (uint32_t i = 0; i < MEASURED_EACH; i++)
		assert_int_equal(io(XSEG_OP_READ, id, i * 4096, 4096), 4096);
	before = measured_of("vol");
	for (uint32_t i = 0; i < 10 * MEASURED_EACH; i++)
		assert_int_equal(io(XSEG_OP_READ, id, i * 4096, 4096), 4096);
	assert_int_equal(measured_of("vol"), before + 10);
	volumed_restart();
	for (uint32_t i = 0; i < 10 * MEASURED_EACH; i++)
		assert_int_equal(io(XSEG_OP_READ, id, i * 4096, 4096), 4096);
	assert_int_equal(measured_of("vol"), before + 20);
}

/* All are out together: the one that is measured, and those that would be if it were not. */
static void it_is_measured_from_its_submission_until_its_answer_is_taken(void **state)
{
	struct xreq *r[3 * MEASURED_EACH];
	uint32_t id = create("vol", "64M");
	struct xseg_stats_view view;

	(void)state;
	hold = true;
	for (uint32_t i = 0; i < 3 * MEASURED_EACH; i++)
		r[i] = send_io(XSEG_OP_READ, id, i * 4096, 4096, i);
	steps(20);
	assert_int_equal(measured_of("vol"), 0);
	usleep(3000);
	hold = false;
	for (uint32_t i = 0; i < 3 * MEASURED_EACH; i++)
		assert_int_equal(result_of(r[i]), 4096);
	assert_true(volume_stats("vol", &view));
	assert_int_equal(view.lat.count, 1);
	assert_true(view.lat.min >= 3000000);
}

static void many_volumes_leave_blocks_for_others(void **state)
{
	uint32_t used = 0, nr = xseg_nr_stats(seg);
	struct xseg_stats_view view;
	char name[32];

	(void)state;
	for (uint32_t i = 0; i < nr + 10; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		assert_int_equal(io(XSEG_OP_READ, create(name, "1M"), 0, 512), 512);
	}
	for (uint32_t i = 0; i < nr; i++)
		used += xseg_stats_view(seg, i, &view) && !strcmp(view.kind, "volume");
	assert_int_equal(used, nr / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_volume_is_counted),
		T(each_io_that_fails_is_counted_once_whoever_answers_it),
		T(a_question_that_has_no_answer_is_no_error),
		T(errors_are_those_of_the_volume),
		T(a_volume_in_the_slot_of_another_begins_with_no_errors),
		T(one_io_in_so_many_is_measured),
		T(it_is_measured_from_its_submission_until_its_answer_is_taken),
		T(many_volumes_leave_blocks_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
