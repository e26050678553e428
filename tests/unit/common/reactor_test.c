/* reactor_test - threads that drive peers: echo, sleeping and waking, deadlines, eventfds, kicks.
 * No tick wakes a reactor here (no_tick.h): after a lost wake-up, an answer does not come.
 */
#include "peers/common/runtime/reactor.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/toys.h"

/* One in ten may take longer: a machine that is shared stands still at times. */
#define PROMPT_NS (TOYS_SECOND / 2)

static void an_echo_answers_all_on_one_thread_and_on_two(void **state)
{
	uint32_t threads;
	struct toys g;

	(void)state;
	for (threads = 1; threads <= 2; threads++) {
		toys_open(&g);
		toys_add(&g, "echo", TOY_ECHO, threads, "");
		toys_serve(&g);
		toys_flood(&g, "echo", 50000);
		toys_counts(&g, "echo", "ops", 50000);
		toys_stop(&g);
		toys_close(&g);
	}
}

static void two_peers_share_a_reactor(void **state)
{
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "low", TOY_ECHO, 1, "");
	toys_add(&g, "high", TOY_FORWARD, 1, "low");
	toys_serve(&g);
	toys_flood(&g, "high", 20000);
	toys_counts(&g, "high", "ops", 20000);
	toys_counts(&g, "low", "ops", 20000);
	toys_stop(&g);
	toys_close(&g);
}

/* With so much for another port of the same thread that it never rests. */
static void a_quiet_port_gets_its_requests_and_its_deadlines_while_others_have_work(void **state)
{
	uint32_t echoes = 0, i;
	uint64_t n = 0;
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "later", TOY_DELAY, 1, "")->delay_ns = 1000000;
	toys_add(&g, "echo", TOY_ECHO, 1, "");
	toys_serve(&g);
	for (i = 0; i < 5; i++) {
		bool came = false;
		uint64_t until;

		toys_flood(&g, "echo", 10000);
		until = toys_clock_ns() + TOYS_PATIENCE_NS;
		toys_send(&g, "later", 0);
		while (!came && toys_clock_ns() < until) {
			for (; echoes < TOYS_DEPTH - 1; echoes++)
				toys_send(&g, "echo", ++n);
			xseg_port_flush(g.port);
			came = toys_receive(&g, TOYS_PATIENCE_NS) == 0;
			echoes -= !came;
		}
		assert_true(came);
		while (echoes) {
			assert_true(toys_receive(&g, TOYS_PATIENCE_NS) > 0);
			echoes--;
		}
	}
	toys_stop(&g);
	toys_close(&g);
}

static void a_sleeper_is_woken_at_once(void **state)
{
	uint32_t i, nr_late = 0;
	struct toys g;
	uint64_t start;

	(void)state;
	srandom(7);
	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, 2, "");
	toys_serve(&g);
	for (i = 0; i < 1000; i++) {
		usleep((useconds_t)(random() % 400));
		start = toys_clock_ns();
		assert_int_equal(toys_ask(&g, "echo", i), i);
		nr_late += toys_clock_ns() - start > PROMPT_NS;
	}
	assert_in_range(nr_late, 0, 100);
	assert_true(toys_counter(&g, "echo", "sleeps") > 100);
	assert_true(toys_counter(&g, "echo", "wakes") > 100);
	assert_true(toys_counter(&g, "echo", "awake_idle_ns") > 0);
	toys_stop(&g);
	toys_close(&g);
}

static void an_idle_peer_burns_no_processor(void **state)
{
	struct timespec before, after;
	struct toy *t;
	struct toys g;
	uint32_t polls;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "echo", TOY_ECHO, 2, "");
	toys_serve(&g);
	usleep(50000);
	polls = atomic_load(&t->nr_polls);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	usleep(300000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec <
		    30000000);
	assert_true(atomic_load(&t->nr_polls) - polls < 5000);
	toys_stop(&g);
	toys_close(&g);
}

static void deadlines_are_kept_far_and_near(void **state)
{
	static const uint64_t delays[] = { 20000, 200000, 5000000 };
	uint32_t i, nr_late = 0;
	uint64_t start, took;
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "late", TOY_DELAY, 1, "");
	toys_serve(&g);
	for (i = 0; i < 30; i++) {
		t->delay_ns = delays[i % 3];
		start = toys_clock_ns();
		assert_int_equal(toys_ask(&g, "late", i), i);
		took = toys_clock_ns() - start;
		assert_true(took >= t->delay_ns);
		nr_late += took > t->delay_ns + PROMPT_NS;
	}
	assert_in_range(nr_late, 0, 3);
	toys_stop(&g);
	toys_close(&g);
}

/* How old data is that a predecessor left dirty is counted from there. */
static void a_peer_knows_the_time_when_it_is_made(void **state)
{
	uint64_t start = toys_clock_ns();
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "new", TOY_ECHO, 2, "");
	toys_serve(&g);
	assert_in_range(t->init_ns, start, toys_clock_ns());
	toys_stop(&g);
	toys_close(&g);
}

static void write_eventfd(struct toy *t)
{
	eventfd_write(t->fd[0], 1);
}

static void kick(struct toy *t)
{
	peer_port_kick(&t->peer.ports[0]);
}

/* A toy holds its request until it is released, and is woken after that, 300 times. */
static void is_woken_by(enum toy_way way, void (*wake)(struct toy *t))
{
	uint32_t i, nr_late = 0;
	uint64_t start;
	struct toy *t;
	struct toys g;

	toys_open(&g);
	t = toys_add(&g, "held", way, 1, "");
	toys_serve(&g);
	for (i = 0; i < 300; i++) {
		atomic_store(&t->release, false);
		toys_send(&g, "held", i);
		xseg_port_flush(g.port);
		usleep((useconds_t)(random() % 400));
		start = toys_clock_ns();
		atomic_store(&t->release, true);
		wake(t);
		assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), i);
		nr_late += toys_clock_ns() - start > PROMPT_NS;
	}
	assert_in_range(nr_late, 0, 30);
	toys_stop(&g);
	toys_close(&g);
}

static void an_eventfd_wakes_the_reactor(void **state)
{
	(void)state;
	is_woken_by(TOY_EVENT, write_eventfd);
}

static void a_kick_wakes_the_reactor(void **state)
{
	(void)state;
	is_woken_by(TOY_KICK, kick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_echo_answers_all_on_one_thread_and_on_two),
		cmocka_unit_test(two_peers_share_a_reactor),
		cmocka_unit_test(
			a_quiet_port_gets_its_requests_and_its_deadlines_while_others_have_work),
		cmocka_unit_test(a_sleeper_is_woken_at_once),
		cmocka_unit_test(an_idle_peer_burns_no_processor),
		cmocka_unit_test(deadlines_are_kept_far_and_near),
		cmocka_unit_test(a_peer_knows_the_time_when_it_is_made),
		cmocka_unit_test(an_eventfd_wakes_the_reactor),
		cmocka_unit_test(a_kick_wakes_the_reactor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
