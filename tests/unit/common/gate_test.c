/* gate_test - a running peer holds its requests to the peer below while a cache is plugged there or
 * unplugged (peers/common/runtime/gate.c). Nothing fails, nothing overtakes, and no peer waits for
 * a dead one. Threads, and peers that sleep; no tick wakes these (no_tick.h).
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/common/runtime/gate.h"
#include "tests/rig/no_tick.h"
#include "tests/rig/toys.h"

static struct toys g;
static struct toy *low, *up, *cache;

/* up -> low, and a cache that stands beside them; the test makes its steps. */
static void stand(enum toy_way low_way, uint32_t threads)
{
	toys_open(&g);
	low = toys_add(&g, "low", low_way, threads, "");
	up = toys_add(&g, "up", TOY_FORWARD, threads, "low");
	cache = toys_add(&g, "cache", TOY_FORWARD, 1, "");
	toys_serve(&g);
}

static void fall(void)
{
	toys_stop(&g);
	toys_close(&g);
}

static uint32_t index_of(const struct toy *t)
{
	return xseg_peer_index(t->peer.xp);
}

static bool wait_until(bool (*is)(void), uint64_t ns)
{
	uint64_t until = toys_clock_ns() + ns;

	while (!is()) {
		if (toys_clock_ns() > until)
			return false;
		usleep(50);
	}
	return true;
}

static bool is_held(void)
{
	return xseg_plug_is_held(cache->peer.xp);
}

static bool no_turn(void)
{
	return xseg_turn(up->peer.xp) == XSEG_TURN_NONE;
}

static bool no_others(void)
{
	return xseg_plug_others(cache->peer.xp) == 0;
}

static void call_to_enter(void)
{
	uint32_t u = index_of(up);
	struct xseg_error err;

	assert_int_equal(xseg_plug(g.seg, index_of(cache), &u, 1, index_of(low), &err), 0);
	assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
}

static void enter(void)
{
	call_to_enter();
	assert_true(wait_until(is_held, TOYS_PATIENCE_NS));
	assert_int_equal(xseg_plug_claim(cache->peer.xp), 0);
	assert_true(wait_until(no_others, TOYS_PATIENCE_NS));
	assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
}

static void leave(void)
{
	struct xseg_error err;

	assert_int_equal(xseg_unplug(g.seg, index_of(cache), &err), 0);
	assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
	assert_true(wait_until(is_held, TOYS_PATIENCE_NS));
	assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
}

static bool all_went_the_new_way(void)
{
	return toys_counter(&g, "cache", "ops") == TOYS_DEPTH &&
	       toys_counter(&g, "low", "ops") == TOYS_DEPTH + 1;
}

static bool all_are_held(void)
{
	return peer_outstanding(&up->peer) == TOYS_DEPTH;
}

static void what_it_holds_goes_the_new_way(void **state)
{
	(void)state;
	stand(TOY_ECHO, 2);
	assert_int_equal(toys_ask(&g, "up", 7), 7);
	call_to_enter();
	assert_true(wait_until(is_held, TOYS_PATIENCE_NS));
	for (uint32_t i = 0; i < TOYS_DEPTH; i++)
		toys_send(&g, "up", i);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_SECOND / 20), -ETIMEDOUT);
	assert_true(wait_until(all_are_held, TOYS_PATIENCE_NS));
	assert_int_equal(xseg_turn_below(up->peer.xp), 0);
	assert_int_equal(xseg_plug_claim(cache->peer.xp), 0);
	assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
	for (uint32_t i = 0; i < TOYS_DEPTH; i++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	/* they are counted after they are answered */
	assert_true(wait_until(all_went_the_new_way, TOYS_PATIENCE_NS));
	assert_int_equal(peer_outstanding(&up->peer), 0);
	fall();
}

static bool all_are_below(void)
{
	return xseg_turn_below(up->peer.xp) == TOYS_DEPTH / 2;
}

static void it_holds_when_what_it_sent_is_answered(void **state)
{
	(void)state;
	stand(TOY_HOLD, 2);
	for (uint32_t i = 0; i < TOYS_DEPTH / 2; i++)
		toys_send(&g, "up", i);
	xseg_port_flush(g.port);
	assert_true(wait_until(all_are_below, TOYS_PATIENCE_NS));
	call_to_enter();
	assert_false(wait_until(is_held, TOYS_SECOND / 10));
	atomic_store(&low->release, true);
	assert_true(wait_until(is_held, TOYS_PATIENCE_NS));
	for (uint32_t i = 0; i < TOYS_DEPTH / 2; i++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	assert_int_equal(xseg_plug_let_go(cache->peer.xp), 0);
	assert_int_equal(toys_ask(&g, "up", 3), 3);
	fall();
}

/* Waits until the peers' one thread sleeps, and only a ring ends that. */
static void fall_asleep(void)
{
	while (!atomic_load(&no_tick_asleep))
		usleep(1000);
}

/* The peer sleeps, and there is no tick: if it is not woken it is never held. */
static void a_sleeping_peer_holds_at_once_and_goes_on_at_once(void **state)
{
	(void)state;
	stand(TOY_ECHO, 1);
	for (uint32_t i = 0; i < 20; i++) {
		fall_asleep();
		enter();
		assert_int_equal(toys_ask(&g, "up", i), i);
		fall_asleep();
		leave();
		assert_int_equal(toys_ask(&g, "up", i), i);
	}
	fall();
}

static void nobody_holds_for_a_cache_that_is_dead(void **state)
{
	struct xseg_peer_params params = { .name = "mortal", .kind = "toy", .nr_ports = 1 };
	struct xseg_error err;
	struct xseg_peer *mortal;
	uint32_t m, u;

	(void)state;
	stand(TOY_ECHO, 2);
	assert_int_equal(xseg_peer_open(g.seg, &params, &mortal, &err), 0);
	xseg_peer_serve(mortal);
	m = xseg_peer_index(mortal);
	u = index_of(up);
	assert_int_equal(xseg_plug(g.seg, m, &u, 1, index_of(low), &err), 0);
	assert_int_equal(xseg_plug_call(mortal), 0);
	while (!xseg_plug_is_held(mortal))
		usleep(100);
	assert_int_equal(xseg_plug_claim(mortal), 0);
	toys_send(&g, "up", 1);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_SECOND / 20), -ETIMEDOUT);
	xseg_peer_close(mortal, XSEG_CLOSE_ABANDON);
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 1);
	assert_true(no_turn());
	assert_int_equal(xseg_plug_cancel(g.seg, m, &err), 0);
	assert_int_equal(xseg_peer_forget(g.seg, m), 0);
	fall();
}

static void a_kept_peer_answers_ebusy_to_others(void **state)
{
	(void)state;
	stand(TOY_ECHO, 1);
	assert_int_equal(toys_ask(&g, "low", 5), 5);
	enter();
	assert_int_equal(toys_ask(&g, "low", 5), -EBUSY);
	assert_int_equal(toys_ask(&g, "up", 5), 5);
	assert_int_equal(toys_ask(&g, "cache", 5), 5);
	leave();
	assert_int_equal(toys_ask(&g, "low", 5), 5);
	assert_int_equal(peer_outstanding(&low->peer), 0);
	fall();
}

static void requests_wait_at_a_peer_that_is_closed_to_them(void **state)
{
	(void)state;
	stand(TOY_ECHO, 2);
	peer_close_to_requests(&low->peer, true);
	while (!peer_has_passed(&low->peer))
		usleep(100);
	toys_send(&g, "low", 9);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_SECOND / 20), -ETIMEDOUT);
	assert_true(peer_has_nothing(&low->peer));
	peer_close_to_requests(&low->peer, false);
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 9);
	fall();
}

/* The upper peer has requests of its own, too. */
static struct peer_class own_class;
static int64_t own_result;

static uint32_t own_requests(struct peer *p)
{
	(void)p;
	return 4;
}

static void own_reply(struct peer_port *pp, struct xreq *r)
{
	own_result = r->result;
	xseg_req_free(pp->port, r);
}

/* Without threads, so that who is let go and asked anew at once does not see the moment between. */
static void stand_still(void)
{
	toys_open(&g);
	low = toys_add(&g, "low", TOY_ECHO, 1, "");
	up = toys_add(&g, "up", TOY_FORWARD, 2, "low");
	cache = toys_add(&g, "cache", TOY_FORWARD, 1, "");
	own_class = *up->peer.cls;
	own_class.nr_requests = own_requests;
	own_class.reply = own_reply;
	up->peer.cls = &own_class;
	for (unsigned i = 0; i < g.nr; i++) {
		assert_int_equal(peer_open(g.peers[i], g.seg, NULL), 0);
		assert_true(peer_try_serve(g.peers[i]));
	}
}

static void lie_down(void)
{
	for (unsigned i = g.nr; i-- > 0;) {
		peer_close(g.peers[i], XSEG_CLOSE_FREE_ARENA);
		peer_destroy(g.peers[i]);
	}
	toys_close(&g);
}

static uint64_t now_ns = TOYS_SECOND;

static void rounds_of(struct peer_port *pp, uint32_t nr)
{
	uint64_t next_ns;

	for (; nr; nr--, now_ns += 100000)
		peer_port_round(pp, now_ns, 64, &next_ns);
}

static void rounds(uint32_t nr)
{
	for (; nr; nr--)
		for (unsigned i = 0; i < g.nr; i++)
			for (uint32_t k = 0; k < g.peers[i]->nr_ports; k++)
				rounds_of(&g.peers[i]->ports[k], 1);
}

static void send_all(void)
{
	for (uint32_t k = 0; k < TOYS_DEPTH; k++)
		toys_send(&g, "up", k);
	xseg_port_flush(g.port);
}

static void it_holds_when_each_of_its_ports_does(void **state)
{
	(void)state;
	stand_still();
	call_to_enter();
	rounds_of(&up->peer.ports[0], 100);
	assert_false(is_held());
	rounds_of(&up->peer.ports[1], 1);
	rounds_of(&up->peer.ports[0], 100);
	assert_true(is_held());
	assert_int_equal(xseg_plug_let_go(cache->peer.xp), 0);
	lie_down();
}

/* Below it is nobody by then who would serve it. */
static void a_successor_holds_from_its_first_round_on(void **state)
{
	(void)state;
	stand_still();
	call_to_enter();
	rounds(20);
	assert_true(is_held());
	assert_int_equal(xseg_plug_claim(cache->peer.xp), 0);
	peer_close(&up->peer, XSEG_CLOSE_ABANDON);
	peer_destroy(&up->peer);
	send_all();
	g.nr = 1;
	up = toys_add(&g, "up", TOY_FORWARD, 2, "low");
	g.nr = 3;
	assert_int_equal(peer_open(&up->peer, g.seg, NULL), 0);
	assert_true(peer_try_serve(&up->peer));
	while (!is_held())
		rounds(1);
	assert_int_equal(toys_receive(&g, 0), -ETIMEDOUT);
	assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
	rounds(20);
	for (uint32_t k = 0; k < TOYS_DEPTH; k++)
		assert_true(toys_receive(&g, 0) >= 0);
	lie_down();
}

static void what_was_taken_in_is_done_before_a_peer_is_closed_to_requests(void **state)
{
	struct peer_port *pp;

	(void)state;
	stand_still();
	pp = &low->peer.ports[0];
	for (uint32_t k = 0; k < 3; k++)
		toys_send(&g, "low", k);
	xseg_port_flush(g.port);
	assert_true(peer_port_step_request(pp));
	peer_close_to_requests(&low->peer, true);
	for (uint32_t k = 1; k < 3; k++) {
		peer_port_step_poll(pp);
		assert_false(peer_has_passed(&low->peer));
		assert_true(peer_port_step_request(pp));
	}
	peer_port_step_poll(pp);
	assert_true(peer_has_passed(&low->peer));
	toys_send(&g, "low", 3);
	xseg_port_flush(g.port);
	assert_false(peer_port_step_request(pp));
	for (uint32_t k = 0; k < 3; k++)
		assert_int_equal(toys_receive(&g, 0), k);
	peer_close_to_requests(&low->peer, false);
	rounds(2);
	assert_int_equal(toys_receive(&g, 0), 3);
	lie_down();
}

static void who_is_asked_again_at_once_sends_first_what_it_held(void **state)
{
	struct xseg_error err;
	uint32_t answered;

	(void)state;
	stand_still();
	for (uint32_t i = 0; i < 3; i++) {
		call_to_enter();
		rounds(20);
		assert_true(is_held());
		send_all();
		rounds(20);
		assert_int_equal(toys_receive(&g, 0), -ETIMEDOUT);
		assert_int_equal(xseg_plug_claim(cache->peer.xp), 0);
		assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
		assert_int_equal(xseg_unplug(g.seg, index_of(cache), &err), 0);
		assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
		assert_int_equal(xseg_turn(up->peer.xp), XSEG_TURN_ASKED);
		rounds_of(&up->peer.ports[0], 100);	/* the other one is not run meanwhile */
		while (!is_held())
			rounds(1);
		for (answered = 0; toys_receive(&g, 0) >= 0;)
			answered++;
		assert_int_equal(answered, TOYS_DEPTH);
		assert_int_equal(xseg_plug_switch(cache->peer.xp), 0);
		rounds(20);
	}
	lie_down();
}

static int send_own(void)
{
	struct xreq *r = xseg_req_alloc(up->peer.ports[0].port);

	r->op = XSEG_OP_FLUSH;
	own_result = 1;
	return peer_submit(&up->peer.ports[0], r);
}

static void its_own_request_that_it_held_comes_back_with_an_error_when_nobody_is_below(void **state)
{
	(void)state;
	stand_still();
	call_to_enter();
	rounds(20);
	assert_int_equal(send_own(), 0);
	rounds(20);
	assert_int_equal(own_result, 1);
	assert_int_equal(xseg_plug_let_go(cache->peer.xp), 0);
	rounds(20);
	assert_int_equal(own_result, 0);
	assert_int_equal(xseg_plug_call(cache->peer.xp), 0);
	rounds(20);
	assert_true(is_held());
	assert_int_equal(send_own(), 0);
	assert_int_equal(xseg_route_set(g.seg, index_of(up), XSEG_NONE), 0);
	assert_int_equal(xseg_plug_claim(cache->peer.xp), -ESTALE);
	rounds(20);
	assert_int_equal(own_result, -ENOTCONN);
	lie_down();
}

static _Atomic bool plugged_often;

/* Each time some of the flood goes through the cache. */
static void *plug_and_unplug(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t ops = toys_counter(&g, "cache", "ops");

		enter();
		while (toys_counter(&g, "cache", "ops") == ops)
			usleep(50);
		leave();
	}
	atomic_store(&plugged_often, true);
	return NULL;
}

static void a_flood_sees_nothing_of_it(void **state)
{
	pthread_t thread;
	uint32_t nr;

	(void)state;
	stand(TOY_ECHO, 2);
	atomic_store(&plugged_often, false);
	assert_int_equal(pthread_create(&thread, NULL, plug_and_unplug, NULL), 0);
	nr = toys_flood_for_a_while(&g, "up", 100000);
	for (; !atomic_load(&plugged_often); nr += 1000)
		toys_flood(&g, "up", 1000);
	pthread_join(thread, NULL);
	/* and one when the cache is not there any more */
	toys_flood(&g, "up", 1);
	assert_int_equal(toys_counter(&g, "up", "errors"), 0);
	toys_counts(&g, "low", "ops", nr + 1);
	assert_int_equal(toys_counter(&g, "low", "errors"), 0);
	assert_true(toys_counter(&g, "cache", "ops") <= nr);
	fall();
}

/* ---- one that begins meanwhile ---- */

static void open_toy(struct toy *t)
{
	struct xseg_error err;

	assert_int_equal(peer_open(&t->peer, g.seg, &err), 0);
}

/* It is opened, and serves when the others do not hold any more. */
static void a_peer_that_begins_while_another_holds_waits(void **state)
{
	struct xseg_peer_params params = { .name = "mortal", .kind = "toy", .nr_ports = 1 };
	struct xseg_error err;
	struct xseg_peer *mortal;
	struct toy *late;
	uint32_t u;

	(void)state;
	toys_open(&g);
	low = toys_add(&g, "low", TOY_ECHO, 1, "");
	up = toys_add(&g, "up", TOY_FORWARD, 1, "low");
	late = toys_add(&g, "late", TOY_FORWARD, 1, "low");
	open_toy(low);
	open_toy(up);
	assert_true(peer_try_serve(&low->peer));
	assert_true(peer_try_serve(&up->peer));
	assert_int_equal(xseg_peer_open(g.seg, &params, &mortal, &err), 0);
	xseg_peer_serve(mortal);
	u = index_of(up);
	assert_int_equal(xseg_plug(g.seg, xseg_peer_index(mortal), &u, 1, index_of(low), &err), 0);
	assert_int_equal(xseg_plug_call(mortal), 0);
	open_toy(late);
	assert_int_equal(xseg_route(late->peer.xp, NULL), XSEG_NONE);
	assert_false(peer_try_serve(&late->peer));
	xseg_turn_hold(up->peer.xp);
	assert_int_equal(xseg_plug_claim(mortal), 0);
	assert_false(peer_try_serve(&late->peer));
	assert_int_equal(xseg_plug_cancel(g.seg, xseg_peer_index(mortal), &err), 0);
	assert_true(peer_try_serve(&late->peer));
	assert_int_equal(xseg_route(late->peer.xp, NULL), index_of(low));
	xseg_peer_close(mortal, XSEG_CLOSE_FREE_ARENA);
	while (g.nr) {
		peer_close(g.peers[--g.nr], XSEG_CLOSE_FREE_ARENA);
		peer_destroy(g.peers[g.nr]);
	}
	toys_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_holds_goes_the_new_way),
		cmocka_unit_test(it_holds_when_what_it_sent_is_answered),
		cmocka_unit_test(a_sleeping_peer_holds_at_once_and_goes_on_at_once),
		cmocka_unit_test(nobody_holds_for_a_cache_that_is_dead),
		cmocka_unit_test(a_peer_that_begins_while_another_holds_waits),
		cmocka_unit_test(a_kept_peer_answers_ebusy_to_others),
		cmocka_unit_test(requests_wait_at_a_peer_that_is_closed_to_them),
		cmocka_unit_test(it_holds_when_each_of_its_ports_does),
		cmocka_unit_test(a_successor_holds_from_its_first_round_on),
		cmocka_unit_test(what_was_taken_in_is_done_before_a_peer_is_closed_to_requests),
		cmocka_unit_test(who_is_asked_again_at_once_sends_first_what_it_held),
		cmocka_unit_test(its_own_request_that_it_held_comes_back_with_an_error_when_nobody_is_below),
		cmocka_unit_test(a_flood_sees_nothing_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
