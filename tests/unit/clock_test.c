/* clock_test - the clock goes on by an hour between two looks at it, as when a process was stopped,
 * or its machine paused: the runtime's peers serve on, and nobody waits because of it. It cannot go
 * back: it is the monotonic one. And it is nobody else's: no time stands in the segment.
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

#include "peers/common/gate.h"
#include "tests/unit/toys.h"

#define HOUR (3600 * TOYS_SECOND)

static _Atomic uint64_t ahead_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = __real_clock_gettime(clock, ts);

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
	assert_int_equal(toys_receive(&g, 5 * TOYS_SECOND), 3);
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
	assert_int_equal(xseg_plug(g.seg, xseg_peer_index(cache->peer.xp),
				 xseg_peer_index(up->peer.xp), xseg_peer_index(low->peer.xp), &err),
		0);
	assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
	assert_false(wait_for_hold(TOYS_SECOND / 10));
	jump();
	assert_false(wait_for_hold(TOYS_SECOND / 10));
	atomic_store(&low->release, true);
	assert_true(wait_for_hold(5 * TOYS_SECOND));
	assert_int_equal(toys_receive(&g, 5 * TOYS_SECOND), 1);
	xseg_plug_let_go(cache->peer.xp);
	toys_send(&g, "up", 3);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, 5 * TOYS_SECOND), 3);
	fall();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_serve_on_awake_or_asleep),
		cmocka_unit_test(what_was_to_be_done_meanwhile_is_done_at_once),
		cmocka_unit_test(who_holds_for_a_cache_looks_again_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
