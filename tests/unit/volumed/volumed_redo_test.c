/* volumed_redo_test - commands to volumed that a kill interrupts: the successor does them, once,
 * and the caller only waits.
 */
#include "tests/rig/volumed_rig.h"

/* The store's record of a change arrives, or does not, before volumed dies. */
enum kill { KILL_BEFORE_THE_STORE, KILL_WITH_THE_RECORD_WRITTEN, NR_KILLS };

/* Each command has pages of its own, as its line has to outlast others. */
static struct xreq *send_line(const char *line, uint32_t n)
{
	uint32_t first = MAX_PAGES - 4 * (n + 1);
	struct xreq *r = xseg_req_alloc(port);

	r->op = XSEG_OP_ADMIN;
	r->nr_pages = 4;
	r->size = 4 * 4096;
	memcpy(r->page, pages + first, 4 * sizeof(r->page[0]));
	memcpy(page_byte(first * 4096ull), line, strlen(line) + 1);
	assert_int_equal(xseg_req_submit(port, r, xseg_peer_find(seg, "volumed")), 0);
	xseg_port_flush(port);
	return r;
}

static int64_t line_result(struct xreq *r, uint32_t n)
{
	int64_t result = result_of(r);

	snprintf(text, sizeof(text), "%s", (char *)page_byte((MAX_PAGES - 4 * (n + 1)) * 4096ull));
	return result;
}

/* volumed has begun with the command when it is killed. */
static void die_of_change(enum kill kill)
{
	uint64_t next;

	if (kill == KILL_BEFORE_THE_STORE) {
		peer_port_round(&vd->ports[0], now, 32, &next);
		assert_null(held);
	} else {
		hold = true;
		steps(10);
		assert_non_null(held);
	}
	volumed_close(XSEG_CLOSE_ABANDON);
	hold = false;
	steps(5);
	volumed_open(1, "4M", "64");
}

static void a_create_that_a_kill_interrupts_succeeds_and_one_for_a_name_that_exists_does_not(void **state)
{
	(void)state;
	for (enum kill kill = 0; kill < NR_KILLS; kill++) {
		char line[64];
		struct xreq *r;

		snprintf(line, sizeof(line), "volume create vol%d size=1M", kill);
		r = send_line(line, 0);
		die_of_change(kill);
		assert_true(line_result(r, 0) > 0);
		assert_true(says("size_bytes=1048576\n") && says("state=ok"));
		assert_int_equal(admin(line), -EEXIST);
	}
}

static void of_two_that_create_a_name_one_succeeds_whoever_is_killed(void **state)
{
	struct xreq *first, *second;

	(void)state;
	for (enum kill kill = 0; kill < NR_KILLS; kill++) {
		char line[64];

		snprintf(line, sizeof(line), "volume create vol%d size=1M", kill);
		first = send_line(line, 0);
		second = send_line(line, 1);
		die_of_change(kill);
		assert_true(line_result(first, 0) > 0);
		assert_int_equal(line_result(second, 1), -EEXIST);
	}
}

static void a_resize_that_a_kill_interrupts_succeeds(void **state)
{
	struct xreq *r;

	(void)state;
	create("vol", "1M");
	for (enum kill kill = 0; kill < NR_KILLS; kill++) {
		r = send_line(kill ? "volume resize vol size=8M" : "volume resize vol size=4M", 0);
		die_of_change(kill);
		assert_true(line_result(r, 0) > 0);
		assert_true(says(kill ? "size_bytes=8388608\n" : "size_bytes=4194304\n"));
	}
}

/* The answer to a shrink comes when what was cut off is gone, also from the successor. */
static void a_shrink_that_a_kill_interrupts_is_answered_when_all_is_cut(void **state)
{
	uint32_t id = create("vol", "16M");
	struct xreq *r;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(write_pattern(id, (uint64_t)i << 22, 1048576, 3), 1048576);
	r = send_line("volume resize vol size=12M", 0);
	die_of_change(KILL_BEFORE_THE_STORE);
	assert_true(line_result(r, 0) > 0);
	assert_int_equal(nr_objects(), 3);
	fail_next(XSEG_OP_DELETE, -EIO, 0, UINT32_MAX);
	r = send_line("volume resize vol size=4M", 0);
	die_of_change(KILL_WITH_THE_RECORD_WRITTEN);
	steps(50);
	assert_false(answered(r));
	assert_int_equal(admin("volume resize vol size=4M"), -EBUSY);
	volumed_restart();
	steps(50);
	assert_false(answered(r));
	fail_next(XSEG_OP_DELETE, -EIO, 0, 0);
	now += 1000 * MS;
	assert_true(line_result(r, 0) > 0);
	assert_true(says("size_bytes=4194304\n") && says("objects_left=0"));
	assert_int_equal(nr_objects(), 1);
}

static void a_removal_that_a_kill_interrupts_succeeds_and_another_of_that_name_stays(void **state)
{
	uint32_t id;
	struct xreq *r;

	(void)state;
	for (enum kill kill = 0; kill < NR_KILLS; kill++) {
		id = create("vol", "16M");
		assert_int_equal(write_pattern(id, 0, 1048576, 3), 1048576);
		r = send_line("volume remove vol", 0);
		die_of_change(kill);
		assert_true(line_result(r, 0) > 0);
		assert_int_equal(number("\nid="), id);
		steps(50);
		assert_int_equal(nr_objects(), 0);
		assert_int_equal(admin("volume remove vol"), -ENOENT);
	}
}

/* Whatever it does at that moment: killed after each step of a life of a volume, and its successor
 * too. */
static void killed_at_any_step_each_command_is_done_once(void **state)
{
	static const char *const lines[] = { "volume create vol size=16M",
		"volume resize vol size=20M", "volume resize vol size=4M", "volume info vol",
		"volume list", "set requests=64", "volume remove vol" };
	uint32_t n, i, again;
	struct xreq *r;

	(void)state;
	for (n = 0; n < 12; n++)
		for (again = 0; again < 4; again++)
			for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
				r = send_line(lines[i], 0);
				steps(n);
				if (!answered(r)) {
					volumed_close(XSEG_CLOSE_ABANDON);
					volumed_open(1, "4M", "64");
					steps(again);
					volumed_close(XSEG_CLOSE_ABANDON);
					volumed_open(1, "4M", "64");
				}
				if (strncmp(lines[i], "set", 3) == 0)
					assert_int_equal(line_result(r, 0), -EINVAL);
				else if (line_result(r, 0) <= 0)
					fail_msg("'%s', killed after %u steps, and %u: %s",
						lines[i], n, again, text);
				/* gone behind the scenes before its name is used again */
				for (uint32_t j = 0;
					i + 1 == sizeof(lines) / sizeof(lines[0]) && j < 50; j++)
					step();
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_create_that_a_kill_interrupts_succeeds_and_one_for_a_name_that_exists_does_not),
		T(of_two_that_create_a_name_one_succeeds_whoever_is_killed),
		T(a_resize_that_a_kill_interrupts_succeeds),
		T(a_shrink_that_a_kill_interrupts_is_answered_when_all_is_cut),
		T(a_removal_that_a_kill_interrupts_succeeds_and_another_of_that_name_stays),
		T(killed_at_any_step_each_command_is_done_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
