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

#include "peers/common/clock/clock.h"
#include "tests/rig/no_tick.h"
#include "tests/rig/toys.h"

#define PROMPT_NS (TOYS_SECOND / 2)

/* At random up to 400 us, in which a reactor may go to sleep or not. From the nr-th time on longer
 * and longer: a reactor that seldom gets a processor takes as long to go to sleep. */
static void pause_some(uint32_t i, uint32_t nr)
{
	uint32_t us = 400;

	for (; i >= nr + 50 && us < 100000; i -= 50)
		us *= 2;
	usleep((useconds_t)random() % us);
}

static void an_echo_answers_all_on_one_thread_and_on_two(void **state)
{
	uint32_t threads, nr;
	struct toys g;

	(void)state;
	for (threads = 1; threads <= 2; threads++) {
		toys_open(&g);
		toys_add(&g, "echo", TOY_ECHO, threads, "");
		toys_serve(&g);
		nr = toys_flood_for_a_while(&g, "echo", 50000);
		toys_counts(&g, "echo", "ops", nr);
		toys_stop(&g);
		toys_close(&g);
	}
}

static void two_peers_share_a_reactor(void **state)
{
	struct toys g;
	uint32_t nr;

	(void)state;
	toys_open(&g);
	toys_add(&g, "low", TOY_ECHO, 1, "");
	toys_add(&g, "high", TOY_FORWARD, 1, "low");
	toys_serve(&g);
	nr = toys_flood_for_a_while(&g, "high", 20000);
	toys_counts(&g, "high", "ops", nr);
	toys_counts(&g, "low", "ops", nr);
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

		toys_flood_for_a_while(&g, "echo", 10000);
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

static bool has_slept_and_polled(struct toys *g)
{
	return toys_counter(g, "echo", "sleeps") > 100 && toys_counter(g, "echo", "wakes") > 100 &&
	       toys_counter(g, "echo", "awake_idle_ns") > 0;
}

/* Nothing but the request ends its sleep. */
static void a_sleeper_is_woken_at_once(void **state)
{
	struct toys g;
	uint32_t i;

	(void)state;
	srandom(7);
	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, 2, "");
	toys_serve(&g);
	for (i = 0; i < 500 || !has_slept_and_polled(&g); i++) {
		pause_some(i, 500);
		assert_int_equal(toys_ask(&g, "echo", i), i);
	}
	toys_stop(&g);
	toys_close(&g);
}

static uint64_t processor_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * TOYS_SECOND + (uint64_t)ts.tv_nsec;
}

/* Whether all of the process took a tenth of a processor at most, and the peer was hardly run. */
static bool is_idle_for_a_while(struct toy *t)
{
	uint32_t polls = atomic_load(&t->nr_polls);
	uint64_t took_ns = processor_ns();

	usleep(300000);
	took_ns = processor_ns() - took_ns;
	return took_ns < 30000000 && atomic_load(&t->nr_polls) - polls < 5000;
}

/* Its threads go to sleep when they have had a processor for long enough to see that they may. */
static void an_idle_peer_burns_no_processor(void **state)
{
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "echo", TOY_ECHO, 2, "");
	toys_serve(&g);
	do {
		while (atomic_load(&no_tick_asleep) < 2)
			usleep(1000);
	} while (!is_idle_for_a_while(t));
	toys_stop(&g);
	toys_close(&g);
}

/* It does not sleep past one. That an answer comes late may be due to others on the processor, so
 * each is asked for until ten were prompt. The clocks of two threads may differ by T2 of
 * clock.h. */
static void deadlines_are_kept_far_and_near(void **state)
{
	static const uint64_t delays[] = { 20000, 200000, 5000000 };
	uint64_t overslept = atomic_load(&no_tick_overslept), start, end, i = 0;
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "late", TOY_DELAY, 1, "");
	toys_serve(&g);
	for (uint32_t k = 0; k < 3; k++) {
		t->delay_ns = delays[k];
		for (uint32_t nr_prompt = 0; nr_prompt < 10; i++) {
			start = toys_clock_ns();
			assert_int_equal(toys_ask(&g, "late", i), i);
			end = toys_clock_ns();
			assert_true(end + CLOCK_SPAN_NS / 1024 >=
				    atomic_load(&t->stamp_ns) + t->delay_ns);
			nr_prompt += end - start <= t->delay_ns + PROMPT_NS;
		}
	}
	assert_int_equal(atomic_load(&no_tick_overslept), overslept);
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

/* A toy holds its request until it is released, and is woken after that, 300 times, of which it
 * slept a few. Nothing else ends its sleep. */
static void is_woken_by(enum toy_way way, void (*wake)(struct toy *t))
{
	uint32_t i, nr_asleep = 0;
	struct toy *t;
	struct toys g;

	toys_open(&g);
	t = toys_add(&g, "held", way, 1, "");
	toys_serve(&g);
	for (i = 0; i < 300 || nr_asleep < 30; i++) {
		atomic_store(&t->release, false);
		toys_send(&g, "held", i);
		xseg_port_flush(g.port);
		pause_some(i, 300);
		nr_asleep += atomic_load(&no_tick_asleep) > 0;
		atomic_store(&t->release, true);
		wake(t);
		assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), i);
	}
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
