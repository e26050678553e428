/* lock_wait_test - waits for a lock of the segment end, whichever process has it: by their time, or
 * when the caller says so. The process that has the lock is named (K6 of xseg/lock.c,
 * xseg/holder.c).
 */
#include "tests/rig/seg_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MS 1000000ull

static struct xseg *seg;
static const char *name;
static pid_t holder;

static int hold(void *arg)
{
	int *ready = arg;
	struct xseg *own = segrig_attach(name);

	if (xs_lock(own, XSEG_LOCK_CONTROL) < 0 || write(ready[1], "", 1) != 1)
		return 2;
	while (pause())
		;
	return 0;
}

/* Another process has the control lock, and stands still. */
static void hold_from_now_on(void)
{
	int ready[2], status;
	char byte;

	assert_int_equal(pipe(ready), 0);
	holder = segrig_fork(hold, ready);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(kill(holder, SIGSTOP), 0);
	assert_int_equal(waitpid(holder, &status, WUNTRACED), holder);
}

static int setup(void **state)
{
	(void)state;
	name = segrig_named(&seg);
	hold_from_now_on();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	segrig_kill(holder);
	xseg_detach(seg);
	return 0;
}

static int open_client(struct xseg_error *err)
{
	struct xseg_peer *peer;

	return xseg_peer_open(seg,
		&(struct xseg_peer_params){
			.name = "client", .kind = "client", .nr_ports = 1, .nr_requests = 7 },
		&peer, err);
}

/* "... by PID (NAME), which is stopped; continue it with kill -CONT PID, or end it" */
static void names_the_holder(const char *text)
{
	char want[160];

	snprintf(want, sizeof(want), "the control lock has been held for ");
	assert_memory_equal(text, want, strlen(want));
	snprintf(want, sizeof(want),
		"by %d (%.15s), which is stopped; continue it with kill -CONT %d, or end it",
		(int)holder, "lock_wait_test", (int)holder);
	assert_non_null(strstr(text, want));
}

static void a_wait_ends_at_its_time_and_names_the_holder(void **state)
{
	struct xseg_error err = { "" };
	uint64_t begun = xs_now_ns();

	(void)state;
	xseg_set_patience(seg, &(struct xseg_patience){ .limit_ns = 200 * MS });
	assert_int_equal(open_client(&err), -ETIMEDOUT);
	assert_true(xs_now_ns() - begun >= 200 * MS);
	names_the_holder(err.text);
}

/* Which is how what libxseg is told of a volume reaches locks. */
static void a_wait_ends_at_the_threads_time_where_that_is_shorter(void **state)
{
	struct xseg_error err = { "" };

	(void)state;
	assert_int_equal(xs_wait_limit(50 * MS), 0);
	assert_int_equal(open_client(&err), -ETIMEDOUT);
	assert_int_equal(xs_wait_limit(0), 50 * MS);
	names_the_holder(err.text);
}

static volatile sig_atomic_t asked;

static void on_term(int signal)
{
	(void)signal;
	asked = 1;
}

static bool is_asked(void *arg)
{
	(void)arg;
	return asked;
}

static void a_signal_ends_a_wait(void **state)
{
	struct sigaction act = { .sa_handler = on_term }, before;
	struct xseg_error err = { "" };
	pid_t killer;

	(void)state;
	asked = 0;
	sigaction(SIGTERM, &act, &before);
	xseg_set_patience(
		seg, &(struct xseg_patience){ .limit_ns = UINT64_MAX, .stop = is_asked });
	killer = fork();
	if (killer == 0) {
		usleep(200000);
		kill(getppid(), SIGTERM);
		_exit(0);
	}
	assert_int_equal(open_client(&err), -EINTR);
	waitpid(killer, NULL, 0);
	sigaction(SIGTERM, &before, NULL);
	names_the_holder(err.text);
}

static void keep_text(const char *problem, void *arg)
{
	snprintf(arg, XSEG_LOCK_TEXT, "%s", problem);
}

static void a_check_says_why_it_looked_at_nothing(void **state)
{
	char text[XSEG_LOCK_TEXT] = "";

	(void)state;
	xseg_set_patience(seg, &(struct xseg_patience){ .limit_ns = 50 * MS });
	assert_int_equal(xseg_check(seg, false, keep_text, text), XSEG_NOT_CHECKED);
	names_the_holder(text);
}

static void a_holder_is_found_by_a_look(void **state)
{
	struct xseg_lock_info info[XSEG_LOCKS_WATCHED];
	struct xseg_lock_watch watch = { .nr = 0 };
	char text[XSEG_LOCK_TEXT];

	(void)state;
	assert_int_equal(xseg_lock_look(seg, &watch, info), 1);
	assert_true(info[0].halted);
	assert_true(xseg_lock_is_long(&info[0]));
	names_the_holder(xseg_lock_text(&info[0], text));
	/* one that goes on and keeps it, too, after a while: as one that a freezer holds */
	kill(holder, SIGCONT);
	while (xseg_lock_look(seg, &watch, info) == 1 && info[0].halted)
		usleep(1000);
	assert_int_equal(watch.nr, 1);
	while (!xseg_lock_is_long(&info[0]))
		assert_int_equal(xseg_lock_look(seg, &watch, info), 1);
	assert_true(info[0].held_ns >= 900 * MS);
	assert_int_equal(info[0].pid, holder);
	/* and nobody when it has let go */
	kill(holder, SIGKILL);
	while (xseg_lock_look(seg, &watch, info))
		usleep(1000);
}

static struct xseg_peer *client, *server;

/* A client, and a server that is dead when the lock is taken; upper is above it. */
static int setup_served(void **state)
{
	static const char *const keys[] = { "ops" };
	struct xseg_peer *upper;
	struct xseg_stats *stats;
	uint32_t page[XSEG_EXTENT_PAGES];

	(void)state;
	name = segrig_named(&seg);
	client = segrig_client(seg, "client", 7);
	server = segrig_server(seg, "memd", 2, 16);
	upper = segrig_server(seg, "upper", 1, 16);
	assert_int_equal(
		xseg_route_set(seg, xseg_peer_index(upper), xseg_peer_index(server)), 0);
	assert_int_equal(xseg_pages_take(server, 1, page), 0);
	assert_int_equal(xseg_stats_open(server, "memd", "memd", keys, 1, &stats), 0);
	assert_int_equal(xseg_stack_set(seg, "[segment]\n", 10), 0);
	xseg_peer_close(server, XSEG_CLOSE_ABANDON);
	xseg_peer_close(upper, XSEG_CLOSE_ABANDON);
	hold_from_now_on();
	/* what would wait is over at once */
	xseg_set_patience(seg, &(struct xseg_patience){ .limit_ns = 1 });
	return 0;
}

static void a_server_comes_back_though_a_client_that_stands_still_has_the_lock(void **state)
{
	static const char *const keys[] = { "ops", "more" };
	uint64_t bytes = XSEG_EXTENT_SIZE;
	struct xseg_error err = { "" };
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_stats *stats;
	struct xseg_peer *upper;
	struct xreq *r;
	char text[16];
	void *base;
	bool fresh;

	(void)state;
	assert_int_equal(xseg_stack_get(seg, text, sizeof(text)), 10);
	server = segrig_server(seg, "memd", 2, 16);
	assert_int_equal(xseg_arena_open(server, &bytes, &base, &fresh, &err), 0);
	assert_true(fresh);
	assert_int_equal(xseg_arena_free(server, &err), 0);
	assert_int_equal(xseg_pages_owned(server, page, XSEG_EXTENT_PAGES), XSEG_EXTENT_PAGES);
	assert_int_equal(xseg_pages_take(server, 1, page), 0);
	assert_int_equal(xseg_stats_open(server, "memd", "memd", keys, 2, &stats), 0);
	assert_int_equal(xseg_stats_open(server, "memd.1", "memd", keys, 2, &stats), 0);
	upper = segrig_server(seg, "upper", 1, 16);
	assert_int_equal(
		xseg_route_claim(seg, xseg_peer_index(upper), xseg_peer_index(server)), 0);
	assert_int_equal(xseg_sweep(seg), 0);
	/* I/O by lanes that were not there */
	r = segrig_send(segrig_port(client), XSEG_OP_READ, 0, xseg_peer_index(server));
	segrig_answer(segrig_port(server), segrig_request_is(segrig_port(server), r), 4096);
	segrig_reply_is(segrig_port(client), r);
	xseg_req_free(segrig_port(client), r);
	xseg_peer_close(upper, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(server, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_STOPPED);
	/* the client that cannot have the lock is dead, and swept later */
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(segrig_state(seg, "client"), XSEG_PEER_DEAD);
	assert_int_equal(xseg_sweep(seg), 0);
	segrig_kill(holder);
	assert_int_equal(xseg_sweep(seg), 1);
	segrig_sound(seg);
}

static int teardown_served(void **state)
{
	(void)state;
	xseg_detach(seg);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_wait_ends_at_its_time_and_names_the_holder, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_wait_ends_at_the_threads_time_where_that_is_shorter, setup, teardown),
		cmocka_unit_test_setup_teardown(a_signal_ends_a_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_check_says_why_it_looked_at_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_holder_is_found_by_a_look, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_server_comes_back_though_a_client_that_stands_still_has_the_lock,
			setup_served, teardown_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
