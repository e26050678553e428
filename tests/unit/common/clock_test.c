/* clock_test - the clock goes on by an hour between two looks at it, as when a process was stopped,
 * or its machine paused. The runtime's peers serve on, and no request waits because of it. The
 * clock cannot go back: it is the monotonic one. And it is private: no time stands in the segment.
 *
 * The linker leads clock_gettime() of the program through here (--wrap, see the Makefile).
 */
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "peers/common/clock/clock.h"
#include "peers/common/runtime/gate.h"
#include "tests/rig/toys.h"

#define HOUR (3600 * TOYS_SECOND)

static _Atomic uint64_t ahead_ns;
static _Atomic uint64_t asked;			/* how often the time was */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = __real_clock_gettime(clock, ts);

	atomic_fetch_add(&asked, 1);
	if (clock == CLOCK_MONOTONIC)
		ts->tv_sec += (time_t)(atomic_load(&ahead_ns) / TOYS_SECOND);
	return rc;
}

static void jump(void)
{
	atomic_fetch_add(&ahead_ns, HOUR);
}

static struct toys g;

static void fall(void)
{
	toys_stop(&g);
	toys_close(&g);
}

static void peers_serve_on_awake_or_asleep(void **state)
{
	(void)state;
	toys_open(&g);
	toys_add(&g, "low", TOY_ECHO, 2, "");
	toys_add(&g, "up", TOY_FORWARD, 2, "low");
	toys_serve(&g);
	for (uint32_t i = 0; i < 20; i++) {
		toys_flood(&g, "up", 200);
		jump();
		if (i % 2)
			usleep(10000);		/* they sleep */
		jump();
	}
	assert_int_equal(toys_ask(&g, "up", 7), 7);
	fall();
}

static void what_was_to_be_done_meanwhile_is_done_at_once(void **state)
{
	struct toy *toy;

	(void)state;
	toys_open(&g);
	toy = toys_add(&g, "slow", TOY_DELAY, 1, "");
	toy->delay_ns = 1000 * TOYS_SECOND;
	toys_serve(&g);
	toys_send(&g, "slow", 3);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_SECOND / 20), -ETIMEDOUT);
	jump();
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 3);
	fall();
}

/* ---- a cache is to be plugged below a peer, which waits for what it has sent --------------- */

static struct toy *low, *up, *cache;

static bool wait_for_hold(uint64_t ns)
{
	uint64_t until = toys_clock_ns() + ns;

	while (!xseg_plug_is_held(cache->peer.xp) && toys_clock_ns() < until)
		usleep(50);
	return xseg_plug_is_held(cache->peer.xp);
}

static void who_holds_for_a_cache_looks_again_soon(void **state)
{
	struct xseg_error err;
	uint32_t u;

	(void)state;
	toys_open(&g);
	low = toys_add(&g, "low", TOY_HOLD, 1, "");
	up = toys_add(&g, "up", TOY_FORWARD, 1, "low");
	cache = toys_add(&g, "cache", TOY_FORWARD, 1, "");
	toys_serve(&g);
	toys_send(&g, "up", 1);
	xseg_port_flush(g.port);
	while (xseg_turn_below(up->peer.xp) == 0)
		usleep(50);
	u = xseg_peer_index(up->peer.xp);
	assert_int_equal(xseg_plug(g.seg, xseg_peer_index(cache->peer.xp), &u, 1,
				 xseg_peer_index(low->peer.xp), &err),
		0);
	assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
	assert_false(wait_for_hold(TOYS_SECOND / 10));
	jump();
	assert_false(wait_for_hold(TOYS_SECOND / 10));
	atomic_store(&low->release, true);
	assert_true(wait_for_hold(TOYS_PATIENCE_NS));
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 1);
	assert_int_equal(xseg_plug_let_go(cache->peer.xp), 0);
	toys_send(&g, "up", 3);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 3);
	fall();
}

/* ---- the clock alone ----------------------------------------------------------------------- */

#define CLOSE_NS (CLOCK_SPAN_NS / 10)

static uint64_t system_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TOYS_SECOND + (uint64_t)ts.tv_nsec;
}

/* Until it asks the system no more: its rate is known. False: the rate was taken often, and never
 * is known on this processor. */
static bool settle(struct clock *c)
{
	uint32_t nr_taken = 0;

	while (c->span == 0 && nr_taken < 1000) {
		uint64_t from_ns = c->from_ns;

		clock_ns(c);
		nr_taken += c->from_ns != from_ns;
	}
	return c->span != 0;
}

static void agrees(struct clock *c)
{
	uint64_t before = system_ns(), now = clock_ns(c), after = system_ns();

	assert_in_range(now, before - CLOSE_NS, after + CLOSE_NS);
}

static void a_clock_agrees_with_the_systems_and_never_goes_back(void **state)
{
	struct clock c = { 0 };
	uint64_t last = 0, now, before, after;

	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		if (i % 50000 == 49999)
			jump();
		before = system_ns();
		now = clock_ns(&c);
		after = system_ns();
		assert_true(now >= last);
		last = now;
		/* what has jumped is seen at the next look */
		if (i % 50000 == 49999) {
			while (clock_ns(&c) + HOUR / 2 < after)
				;
			last = clock_ns(&c);
		} else {
			assert_in_range(now, before - CLOSE_NS, after + CLOSE_NS);
		}
	}
}

/* A thread that is often kept from its processor asks often. If it is stopped between the two
 * questions of a look, it asks at each call for a while. So it goes on until it was left alone. */
static void a_clock_asks_the_system_seldom(void **state)
{
	struct clock c = { 0 };
	uint64_t calls, until;

	(void)state;
	if (!settle(&c))
		skip();
	do {
		calls = 0;
		atomic_store(&asked, 0);
		until = clock_ns(&c) + 20 * CLOCK_SPAN_NS;
		while (clock_ns(&c) < until)
			calls++;
		assert_true(atomic_load(&asked) >= 1);
	} while (atomic_load(&asked) > calls / 10);
}

/* As if a thread had been stopped between its two questions: the time goes on, by the system's. */
static void a_rate_that_differs_is_not_used(void **state)
{
	struct clock c = { 0 };

	(void)state;
	if (!settle(&c))
		skip();
	jump();
	c.count -= c.span;			/* it is time to look */
	clock_ns(&c);
	assert_int_equal(c.span, 0);
	agrees(&c);
	assert_true(settle(&c));
	agrees(&c);
}

/* A port's time is that of the beginning of its round: another one's may be later already. */
static void a_time_of_another_thread_may_be_later_than_ones_own(void **state)
{
	(void)state;
	assert_int_equal(clock_since(5, 7), 2);
	assert_int_equal(clock_since(7, 7), 0);
	assert_int_equal(clock_since(8, 7), 0);
	assert_int_equal(clock_since(0, UINT64_MAX), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_agrees_with_the_systems_and_never_goes_back),
		cmocka_unit_test(a_clock_asks_the_system_seldom),
		cmocka_unit_test(a_rate_that_differs_is_not_used),
		cmocka_unit_test(a_time_of_another_thread_may_be_later_than_ones_own),
		cmocka_unit_test(peers_serve_on_awake_or_asleep),
		cmocka_unit_test(what_was_to_be_done_meanwhile_is_done_at_once),
		cmocka_unit_test(who_holds_for_a_cache_looks_again_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
