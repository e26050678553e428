/* reactors_test - several reactors: one does the work that another leaves undone, and the ports of
 * sleeping reactors are served.
 */
#include "peers/common/runtime/reactor_inside.h"

#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/rig/toys.h"
#include "xseg/internal.h"

#define REACTORS 4
#define LONG_NS	 1000000ull

static struct reactor *with_of(struct toys *g, uint32_t seat)
{
	return atomic_load(&g->set->seat[seat].with);
}

/* ---- who sees to which port, without threads ---- */

static struct toys b;

/* A peer of four ports, and as many reactors, all awake, of which none runs. */
static void lay(enum toy_way way)
{
	struct xseg_error err;
	unsigned failed;
	uint32_t i;

	toys_open(&b);
	toys_add(&b, "echo", way, REACTORS, "");
	b.set = reactor_set_create(b.peers, b.nr, "", &err);
	assert_non_null(b.set);
	assert_int_equal(reactor_set_open(b.set, b.seg, &failed, &err), 0);
	board_open(b.set);
	for (i = 0; i < REACTORS; i++)
		board_read(&b.set->reactor[i]);
}

static void clear(void)
{
	reactor_set_destroy(b.set);
	peer_close(b.peers[0], XSEG_CLOSE_FREE_ARENA);
	peer_destroy(b.peers[0]);
	toys_close(&b);
}

static struct reactor *reactor(uint32_t i)
{
	return &b.set->reactor[i];
}

/* L1 with it: its doorbell is that of who sees to it. */
static void assert_with(uint32_t seat, uint32_t i)
{
	struct xport *port = b.set->seat[seat].pp->port;

	assert_ptr_equal(with_of(&b, seat), reactor(i));
	assert_int_equal(atomic_load(&port->sh->bell), reactor(i)->bell->index);
}

static void who_goes_to_sleep_leaves_its_ports_to_one_that_is_awake_and_the_last_keeps_all(void **state)
{
	uint32_t i, k;

	(void)state;
	lay(TOY_ECHO);
	for (i = 0; i < REACTORS; i++) {
		assert_int_equal(reactor(i)->nr_seats, 1);
		assert_with(i, i);
	}
	/* 0, 1, 2 go; what 0 left to 1 goes on to 2, and to 3 */
	for (i = 0; i < REACTORS; i++) {
		assert_true(board_leave(reactor(i), 1));
		assert_int_equal(reactor(i)->nr_seats, i < REACTORS - 1 ? 0 : REACTORS);
		for (k = 0; k < REACTORS; k++)
			assert_with(k, k <= i ? (i + 1 < REACTORS ? i + 1 : i) : k);
	}
	/* who comes back does not take them, unless it was called */
	board_return(reactor(0), false);
	assert_with(0, REACTORS - 1);
	board_return(reactor(0), true);
	assert_with(0, 0);
	assert_with(1, REACTORS - 1);
	board_read(reactor(REACTORS - 1));
	assert_int_equal(reactor(REACTORS - 1)->nr_seats, REACTORS - 1);
	assert_int_equal(reactor(REACTORS - 1)->nr_guests, REACTORS - 2);
	clear();
}

/* By who sees to all ports: a round of that one would be alone in the peer. */
static bool enters_alone(uint32_t seat)
{
	struct seat *s = &b.set->seat[seat];

	return seat_enter_only(s) && s->pp->only;
}

static void who_sees_to_all_ports_is_alone_in_the_peer_for_a_round_if_nobody_is_in_it(void **state)
{
	struct seat *s;
	uint32_t i;

	(void)state;
	lay(TOY_ECHO);
	s = b.set->seat;
	assert_false(reactor(0)->whole[0]);
	for (i = 1; i < REACTORS; i++)
		assert_true(board_leave(reactor(i), 1));
	board_read(reactor(0));
	for (i = 0; i < REACTORS; i++)
		assert_true(reactor(0)->whole[i]);
	/* meanwhile nobody comes into any of them, also not alone */
	assert_true(enters_alone(2));
	for (i = 0; i < REACTORS; i++) {
		assert_false(seat_enter(&s[i]));
		assert_false(seat_enter_only(&s[i]));
	}
	seat_leave(&s[2]);
	assert_false(s[2].pp->only);
	/* somebody is in one: it is a round of that port, and others are free */
	assert_true(seat_enter(&s[1]));
	assert_false(enters_alone(2));
	assert_false(seat_enter(&s[2]));
	assert_true(seat_enter(&s[3]));
	seat_leave(&s[3]);
	assert_false(seat_enter_only(&s[1]));
	seat_leave(&s[1]);
	seat_leave(&s[2]);
	assert_true(enters_alone(1));
	seat_leave(&s[1]);
	clear();
}

static void nobody_leaves_ports_to_one_without_a_processor_to_himself(void **state)
{
	(void)state;
	lay(TOY_ECHO);
	atomic_store(&reactor(0)->crowded, true);
	assert_ptr_equal(board_heir(reactor(1), 1), reactor(2));
	assert_true(board_leave(reactor(1), 1));
	assert_with(1, 2);
	atomic_store(&reactor(2)->crowded, true);
	atomic_store(&reactor(3)->crowded, true);
	assert_null(board_heir(reactor(2), 1));
	assert_true(board_leave(reactor(2), 1));
	assert_with(2, 2);
	assert_with(1, 2);
	/* who has time takes them */
	board_take(reactor(3), reactor(2));
	assert_with(1, 3);
	assert_with(2, 3);
	clear();
}

static void one_that_is_stuck_gets_no_ports_and_loses_its_own_to_who_goes_to_sleep(void **state)
{
	uint32_t i;

	(void)state;
	lay(TOY_ECHO);
	for (i = 0; i < REACTORS; i++)
		reactor(0)->seen[i].since_ns = LONG_NS;
	/* 2 has moved since */
	atomic_store(&reactor(2)->beat, 7);
	assert_ptr_equal(board_heir(reactor(0), LONG_NS + 1), reactor(1));
	assert_ptr_equal(board_heir(reactor(0), 2 * LONG_NS), reactor(2));
	assert_true(board_leave(reactor(0), 2 * LONG_NS));
	for (i = 0; i < REACTORS; i++)
		assert_with(i, 2);
	clear();
}

static void a_port_with_a_descriptor_stays_at_home(void **state)
{
	uint32_t i;

	(void)state;
	lay(TOY_EVENT);
	for (i = 0; i < REACTORS; i++)
		assert_true(board_leave(reactor(i), 1));
	for (i = 0; i < REACTORS; i++)
		assert_with(i, i);
	clear();
}

static void who_was_called_in_vain_is_left_alone_for_longer_each_time(void **state)
{
	uint64_t now_ns = LONG_NS, pause_ns = LONG_NS;
	uint32_t i;

	(void)state;
	lay(TOY_ECHO);
	atomic_store(&reactor(0)->beat, 1);
	assert_true(board_leave(reactor(1), now_ns));
	board_read(reactor(0));
	for (i = 0; i < 6; i++) {
		board_call_help(reactor(0), now_ns);
		assert_true(atomic_exchange(&reactor(1)->called, false));
		board_return(reactor(1), true);
		reactor(1)->was_called = true;
		reactor(1)->worked = 3;
		assert_true(board_leave(reactor(1), now_ns));
		board_call_help(reactor(0), now_ns + pause_ns - 1);
		assert_false(atomic_load(&reactor(1)->called));
		now_ns += pause_ns;
		pause_ns *= 2;
	}
	/* who shares his processor does not wait */
	board_call_help(reactor(0), now_ns);
	atomic_store(&reactor(1)->called, false);
	board_return(reactor(1), true);
	reactor(1)->was_called = true;
	assert_true(board_leave(reactor(1), now_ns));
	atomic_store(&reactor(0)->crowded, true);
	assert_ptr_equal(with_of(&b, 1), reactor(0));
	board_call_help(reactor(0), now_ns + 1);
	assert_true(atomic_load(&reactor(1)->called));
	clear();
}

/* Those whom a hash leads to this port send to that one. */
static void assert_steered(uint32_t seat, uint32_t to)
{
	int port = xs_route_port(b.seg, xseg_peer_index(b.peers[0]->xp), (uint64_t)seat << 32);

	assert_int_equal(port, b.set->seat[to].pp->port->index);
}

static void ports_that_one_sees_to_become_one_to_who_sends_until_they_part(void **state)
{
	uint32_t i;

	(void)state;
	lay(TOY_ECHO);
	assert_false(reactor(3)->to_steer);
	/* 0 and 1 go to 2, which has a port of its own */
	assert_true(board_leave(reactor(0), 1));
	assert_true(board_leave(reactor(1), 1));
	board_read(reactor(2));
	assert_true(reactor(2)->to_steer);
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, i);
	assert_true(board_steer(reactor(2)));
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, i < 2 ? 2 : i);
	/* one of them goes home */
	board_return(reactor(0), true);
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, i);
	/* its list is an old one, and what it does not see to any more is let be */
	assert_true(board_steer(reactor(2)));
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, i == 1 ? 2 : i);
	/* all go to 3 */
	assert_true(board_leave(reactor(2), 1));
	assert_true(board_leave(reactor(0), 1));
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, i);
	board_read(reactor(3));
	assert_true(board_steer(reactor(3)));
	for (i = 0; i < REACTORS; i++)
		assert_steered(i, 3);
	clear();
}

/* ---- with threads ---- */

static uint32_t nr_awake(struct reactor_set *set)
{
	uint32_t i, nr = 0;

	for (i = 0; i < set->nr_reactors; i++)
		nr += atomic_load(&set->reactor[i].awake);
	return nr;
}

/* It may be so for a moment only. */
#define WAIT_UNTIL(what)                                                  \
	do {                                                              \
		uint64_t until = toys_clock_ns() + TOYS_PATIENCE_NS;      \
		while (!(what)) {                                         \
			assert_true(toys_clock_ns() < until);             \
			usleep(200);                                      \
		}                                                         \
	} while (0)

static void a_reactor_that_is_called_comes_and_no_work_is_lost_meanwhile(void **state)
{
	struct toys g;
	uint32_t i;

	(void)state;
	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, REACTORS, "");
	toys_serve(&g);
	for (i = 0; i < 200; i++) {
		struct reactor *r = &g.set->reactor[i % REACTORS];

		if (i % 3)
			WAIT_UNTIL(nr_awake(g.set) == 0);
		board_call(r);
		toys_flood(&g, "echo", 100);
		WAIT_UNTIL(!atomic_load(&r->called));
	}
	assert_true(toys_counter(&g, "echo", "calls") >= 200 / REACTORS);
	toys_stop(&g);
	toys_close(&g);
}

/* Each request to `stand` keeps the thread of a port, and with it the port of `echo` that this one
 * sees to. */
static void what_a_reactor_does_not_come_to_another_does(void **state)
{
	struct toy *stand;
	struct toys g;
	uint32_t i;

	(void)state;
	toys_open(&g);
	stand = toys_add(&g, "stand", TOY_STAND, 2, "");
	toys_add(&g, "echo", TOY_ECHO, 2, "");
	toys_serve(&g);
	/* there need not be one that had to be helped each time */
	for (i = 0; i < 20 || toys_counter(&g, "echo", "helped") == 0; i++) {
		atomic_store(&stand->stands, false);
		atomic_store(&stand->release, false);
		toys_send(&g, "stand", 0);
		xseg_port_flush(g.port);
		WAIT_UNTIL(atomic_load(&stand->stands));
		/* a sleeper would look for that once a second */
		board_call(&g.set->reactor[0]);
		board_call(&g.set->reactor[1]);
		/* to all ports, also to that of the thread that stands */
		for (uint64_t k = 1; k < 9; k++)
			assert_int_equal(toys_ask(&g, "echo", k << 32), k << 32);
		atomic_store(&stand->release, true);
		assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 0);
	}
	toys_stop(&g);
	toys_close(&g);
}

static bool is_steered(struct toys *g)
{
	uint32_t i;

	for (i = 0; i < g->set->nr_seats; i++)
		if (atomic_load(&g->set->seat[i].pp->port->sh->steer))
			return true;
	return false;
}

/* A peer keeps the ports that it once had. */
static void ports_that_one_thread_has_for_a_while_are_one_to_who_sends(void **state)
{
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, REACTORS, "");
	toys_serve(&g);
	toys_stop(&g);
	toys_add(&g, "echo", TOY_ECHO, 1, "");
	toys_serve(&g);
	assert_int_equal(g.set->nr_seats, REACTORS);
	assert_false(is_steered(&g));
	while (!is_steered(&g))
		toys_flood(&g, "echo", 1000);
	toys_flood(&g, "echo", 1000);
	toys_stop(&g);
	toys_close(&g);
}

/* It has work all the time, and does not once give way; until it says that it shares its processor,
 * which it may take back soon. */
static void who_is_kept_from_its_processor_shares_it(void **state)
{
	struct toy *stand;
	struct toys g;

	(void)state;
	toys_open(&g);
	stand = toys_add(&g, "stand", TOY_STAND, 1, "");
	toys_serve(&g);
	while (!is_crowded(&g.set->reactor[0])) {
		atomic_store(&stand->stands, false);
		atomic_store(&stand->release, false);
		toys_send(&g, "stand", 0);
		xseg_port_flush(g.port);
		WAIT_UNTIL(atomic_load(&stand->stands));
		usleep(20000);
		atomic_store(&stand->release, true);
		assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 0);
	}
	toys_stop(&g);
	toys_close(&g);
}

/* Who begins to serve tells everybody; then, if it is to be so, he does not run for a while, so
 * that those whom he woke have looked, and sleep again, before he goes on. */
static _Atomic unsigned pause_us;

void __real_xseg_peer_serve(struct xseg_peer *peer);
void __wrap_xseg_peer_serve(struct xseg_peer *peer);
void __wrap_xseg_peer_serve(struct xseg_peer *peer)
{
	__real_xseg_peer_serve(peer);
	if (pause_us)
		usleep(pause_us);
}

/* A sleeper looks by itself once a second. */
static bool new_peer_answers_soon(void)
{
	uint64_t since;
	struct toys g;
	bool is_soon;

	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, REACTORS, "");
	toys_serve(&g);
	since = toys_clock_ns();
	for (uint64_t k = 1; k < 9; k++)
		toys_send(&g, "echo", k << 32);
	for (uint64_t k = 1; k < 9; k++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	is_soon = toys_clock_ns() - since < TOYS_SECOND / 4;
	toys_stop(&g);
	toys_close(&g);
	return is_soon;
}

/* At one of many tries: a machine that is shared stands still at times. */
static void all_its_threads_know_that_a_peer_serves(void **state)
{
	(void)state;
	pause_us = 30000;
	while (!new_peer_answers_soon())
		;
	pause_us = 0;
}

static void wait_until_left(struct toys *g, unsigned nr)
{
	struct reactor_progress progress;

	do {
		usleep(1000);
		reactor_set_progress(g->set, nr, &progress);
	} while (progress.phase != REACTOR_LEFT);
}

/* Also that with whose doorbell the reactors sleep. */
static void a_peer_leaves_from_under_those_who_see_to_its_ports(void **state)
{
	struct toys g;
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		toys_open(&g);
		toys_add(&g, "first", TOY_ECHO, REACTORS, "");
		toys_add(&g, "second", TOY_ECHO, REACTORS - 1, "");
		toys_serve(&g);
		if (i % 2)
			WAIT_UNTIL(nr_awake(g.set) == 0);
		toys_flood(&g, "first", 200);
		reactor_set_stop(g.set, 0);
		wait_until_left(&g, 0);
		toys_flood(&g, "second", 2000);
		for (uint64_t k = 0; k < 8; k++) {
			usleep(300);
			assert_int_equal(toys_ask(&g, "second", k << 32), k << 32);
		}
		toys_stop(&g);
		toys_close(&g);
	}
}

/* Who is told to stop need not be who leads it out. */
static void a_command_to_stop_reaches_home_through_another(void **state)
{
	int64_t result;
	struct toys g;
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		toys_open(&g);
		toys_add(&g, "echo", TOY_ECHO, REACTORS, "");
		toys_serve(&g);
		WAIT_UNTIL(nr_awake(g.set) == 0);
		toys_admin(&g, "echo", "stop", &result);
		assert_true(result >= 0);
		wait_until_left(&g, 0);
		toys_stop(&g);
		toys_close(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_goes_to_sleep_leaves_its_ports_to_one_that_is_awake_and_the_last_keeps_all),
		cmocka_unit_test(who_sees_to_all_ports_is_alone_in_the_peer_for_a_round_if_nobody_is_in_it),
		cmocka_unit_test(nobody_leaves_ports_to_one_without_a_processor_to_himself),
		cmocka_unit_test(
			one_that_is_stuck_gets_no_ports_and_loses_its_own_to_who_goes_to_sleep),
		cmocka_unit_test(a_port_with_a_descriptor_stays_at_home),
		cmocka_unit_test(who_was_called_in_vain_is_left_alone_for_longer_each_time),
		cmocka_unit_test(ports_that_one_sees_to_become_one_to_who_sends_until_they_part),
		cmocka_unit_test(ports_that_one_thread_has_for_a_while_are_one_to_who_sends),
		cmocka_unit_test(who_is_kept_from_its_processor_shares_it),
		cmocka_unit_test(a_reactor_that_is_called_comes_and_no_work_is_lost_meanwhile),
		cmocka_unit_test(what_a_reactor_does_not_come_to_another_does),
		cmocka_unit_test(all_its_threads_know_that_a_peer_serves),
		cmocka_unit_test(a_peer_leaves_from_under_those_who_see_to_its_ports),
		cmocka_unit_test(a_command_to_stop_reaches_home_through_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
