/* plug_many_test - a cache enters below several upper peers and leaves again: all of them pass, at
 * one moment. The peers that a command must name, those that wait, and kills between any two stores
 * (xseg/plug.c).
 */
#include "tests/rig/plug_rig.h"

#define NR_UPPER 3

/* The rig's upper peer is the first. */
static struct xseg_peer *all[NR_UPPER];
static uint32_t at[NR_UPPER];
static unsigned nr;

static const char *name_of(unsigned i)
{
	static const char *const names[NR_UPPER] = { "up", "kv", "web" };

	return names[i];
}

static int setup_of(unsigned how_many)
{
	setup(NULL);
	nr = how_many;
	all[0] = upper;
	at[0] = u;
	for (unsigned i = 1; i < nr; i++) {
		all[i] = segrig_server(seg, name_of(i), 1, 16);
		at[i] = xseg_peer_index(all[i]);
		assert_int_equal(xseg_route_set(seg, at[i], l), 0);
	}
	return 0;
}

static int setup_two(void **state)
{
	(void)state;
	return setup_of(2);
}

static int setup_three(void **state)
{
	(void)state;
	return setup_of(3);
}

static int teardown_all(void **state)
{
	segrig_sound(seg);
	upper = all[0];
	for (unsigned i = 1; i < nr; i++)
		close_one(&all[i], XSEG_CLOSE_FREE_ARENA);
	return teardown(state);
}

/* ---- all of them ---- */

static int plug_all(void)
{
	return xseg_plug(seg, c, at, nr, l, &err);
}

static void all_send_to(uint32_t to)
{
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(route(at[i]), to);
		assert_int_equal(info_of(at[i]).turn, XSEG_TURN_NONE);
	}
	assert_int_equal(info_of(c).plug, XSEG_PLUG_NONE);
	assert_int_equal(route(c), to == c ? l : XSEG_NONE);
	assert_int_equal(keeper(l), to == c ? c : XSEG_NONE);
	assert_int_equal(keeper(c), XSEG_NONE);
	segrig_sound(seg);
}

static void all_hold(void)
{
	assert_int_equal(xseg_plug_call(cache), 0);
	for (unsigned i = 0; i < nr; i++) {
		assert_false(xseg_plug_is_held(cache));
		assert_int_equal(xseg_turn(all[i]), XSEG_TURN_ASKED);
		xseg_turn_hold(all[i]);
	}
	assert_true(xseg_plug_is_held(cache));
}

static void all_enter(void)
{
	assert_int_equal(plug_all(), 0);
	all_hold();
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	all_send_to(c);
}

static void all_leave(void)
{
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	all_hold();
	assert_int_equal(xseg_plug_switch(cache), 0);
	all_send_to(l);
}

static void successor_of(unsigned i)
{
	again(&all[i], name_of(i), i ? 1 : 2, 16);
	upper = all[0];
}

static void cache_again(void)
{
	close_one(&cache, XSEG_CLOSE_ABANDON);
	cache = segrig_open(seg, "cache", 1, 16);
	assert_int_equal(xseg_plug_settle(cache, &err), 0);
	xseg_peer_serve(cache);
}

/* ---- steps ---- */

static void all_pass_again_and_again(void **state)
{
	uint64_t epoch[NR_UPPER];

	(void)state;
	for (unsigned i = 0; i < nr; i++)
		epoch[i] = info_of(at[i]).epoch;
	for (unsigned i = 0; i < 50; i++) {
		all_enter();
		all_leave();
	}
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(info_of(at[i]).epoch, epoch[i]);
}

static void nothing_is_switched_before_the_last_one_holds(void **state)
{
	(void)state;
	for (unsigned last = 0; last < nr; last++) {
		assert_int_equal(plug_all(), 0);
		assert_int_equal(xseg_plug_call(cache), 0);
		for (unsigned i = 0; i < nr; i++)
			if (i != last)
				xseg_turn_hold(all[i]);
		assert_false(xseg_plug_is_held(cache));
		assert_int_equal(xseg_plug_claim(cache), -ESTALE);
		assert_int_equal(xseg_plug_switch(cache), -ESTALE);
		assert_int_equal(route(c), XSEG_NONE);
		xseg_turn_hold(all[last]);
		assert_int_equal(xseg_plug_claim(cache), 0);
		successor_of(last);	/* it sends nothing yet, and may have to be waited for */
		assert_int_equal(xseg_plug_switch(cache), -ESTALE);
		assert_int_equal(xseg_plug_let_go(cache), 0);
		xseg_peer_serve(all[last]);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
		all_send_to(l);
	}
}

/* ---- who is named ---- */

static void all_who_send_there_must_be_named(void **state)
{
	struct xseg_peer *aside = segrig_server(seg, "aside", 1, 0);
	uint32_t a = xseg_peer_index(aside);
	const uint32_t wrong[] = { at[0], at[1], a };

	(void)state;
	refused(xseg_plug(seg, c, at, 1, l, &err), -EBUSY,
		"'cache' is for all peers that send to 'low', or the others would write past it; "
		"name these, too: kv,web");
	refused(xseg_plug(seg, c, at + 1, 2, l, &err), -EBUSY, "name these, too: up");
	refused(xseg_plug(seg, c, wrong, 3, l, &err), -ENOTCONN,
		"'aside' sends to 'nobody', not to 'low'");
	refused(xseg_plug(seg, c, at, 0, l, &err), -ENOENT, "not there");
	assert_int_equal(info_of(c).plug, XSEG_PLUG_NONE);
	assert_int_equal(plug_all(), 0);
	assert_int_equal(plug_all(), 0);	/* just that is being done */
	refused(xseg_plug(seg, c, at, 2, l, &err), -EBUSY, "name these, too: web");
	all_hold();
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(plug_all(), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	refused(plug_all(), -EEXIST, "is between 'up' and 'low' already");
	all_leave();
	close_one(&aside, XSEG_CLOSE_FREE_ARENA);
}

static void each_of_them_has_a_part_in_one_plug(void **state)
{
	struct xseg_peer *second = segrig_server(seg, "second", 1, 16);
	uint32_t s = xseg_peer_index(second);

	(void)state;
	assert_int_equal(plug_all(), 0);
	refused(xseg_plug(seg, s, at, nr, l, &err), -EBUSY,
		"another cache is being plugged below 'up' or unplugged, 'cache'");
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	all_enter();
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	refused(xseg_plug(seg, s, at, nr, c, &err), -EBUSY,
		"another cache is being plugged below 'up' or unplugged, 'cache'");
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	/* below them all, above the first cache */
	assert_int_equal(xseg_plug(seg, s, at, nr, c, &err), 0);
	assert_int_equal(xseg_plug_call(second), 0);
	for (unsigned i = 0; i < nr; i++)
		xseg_turn_hold(all[i]);
	assert_int_equal(xseg_plug_claim(second), 0);
	assert_int_equal(xseg_plug_switch(second), 0);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(route(at[i]), s);
	assert_int_equal(route(s), c);
	assert_int_equal(keeper(c), s);
	/* and out again, which leaves the first cache to all of them */
	assert_int_equal(xseg_unplug(seg, s, &err), 0);
	assert_int_equal(xseg_plug_call(second), 0);
	for (unsigned i = 0; i < nr; i++)
		xseg_turn_hold(all[i]);
	assert_int_equal(xseg_plug_switch(second), 0);
	all_send_to(c);
	all_leave();
	close_one(&second, XSEG_CLOSE_FREE_ARENA);
}

/* ---- who comes meanwhile ---- */

static void all_hold_and_then(struct xseg_peer *late)
{
	assert_int_equal(xseg_plug_call(cache), 0);
	for (unsigned i = 0; i < nr; i++)
		xseg_turn_hold(all[i]);
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	assert_int_equal(xseg_turn(late), XSEG_TURN_ASKED);
	xseg_turn_hold(late);
}

static void whoever_begins_before_they_are_asked_is_one_of_them(void **state)
{
	struct xseg_peer *late = segrig_server(seg, "late", 1, 16);
	uint32_t n = xseg_peer_index(late);

	(void)state;
	assert_int_equal(plug_all(), 0);
	assert_int_equal(xseg_route_set(seg, n, l), 0);
	all_hold_and_then(late);
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	assert_int_equal(route(n), c);
	all_send_to(c);
	assert_int_equal(xseg_route_set(seg, n, XSEG_NONE), 0);
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	assert_int_equal(xseg_route_set(seg, n, c), 0);
	all_hold_and_then(late);
	assert_int_equal(xseg_plug_switch(cache), 0);
	assert_int_equal(route(n), l);
	all_send_to(l);
	close_one(&late, XSEG_CLOSE_FREE_ARENA);
}

static void whoever_begins_while_they_hold_waits(void **state)
{
	struct xseg_peer *late = segrig_server(seg, "late", 1, 16);
	uint32_t n = xseg_peer_index(late);

	(void)state;
	assert_int_equal(plug_all(), 0);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_int_equal(xseg_route_set(seg, n, l), -EAGAIN);
	for (unsigned i = 0; i < nr; i++)
		xseg_turn_hold(all[i]);
	assert_int_equal(xseg_route_set(seg, n, l), -EAGAIN);
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_route_set(seg, n, l), -EAGAIN);
	assert_int_equal(xseg_route_set(seg, at[1], l), -EBUSY);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(xseg_route_set(seg, n, l), 0);
	assert_int_equal(xseg_route_set(seg, n, XSEG_NONE), 0);
	all_enter();
	assert_int_equal(xseg_route_set(seg, n, l), -EBUSY);
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_int_equal(xseg_route_set(seg, n, c), -EAGAIN);
	for (unsigned i = 0; i < nr; i++)
		xseg_turn_hold(all[i]);
	/* who decided has died: who wants to send there ends it */
	decide();
	xs_route_store(seg, at[0], l, false);
	assert_int_equal(xseg_route_set(seg, n, l), 0);
	all_send_to(l);
	close_one(&late, XSEG_CLOSE_FREE_ARENA);
}

/* ---- who is dead, or stopped ---- */

static void nobody_stands_still_for_one_that_is_dead(void **state)
{
	(void)state;
	for (unsigned dead = 0; dead < nr; dead++) {
		/* before they are asked, and after the others hold */
		for (unsigned asked = 0; asked < 2; asked++) {
			assert_int_equal(plug_all(), 0);
			if (asked) {
				assert_int_equal(xseg_plug_call(cache), 0);
				for (unsigned i = 0; i < nr; i++)
					if (i != dead)
						xseg_turn_hold(all[i]);
			}
			close_one(&all[dead], XSEG_CLOSE_ABANDON);
			assert_int_equal(xseg_plug_call(cache), -EAGAIN);
			for (unsigned i = 0; i < nr; i++)
				assert_int_equal(info_of(at[i]).turn, XSEG_TURN_NONE);
			successor_of(dead);	/* it begins, and is waited for, too */
			assert_int_equal(xseg_plug_call(cache), -EAGAIN);
			xseg_peer_serve(all[dead]);
			all_hold();
			assert_int_equal(xseg_plug_claim(cache), 0);
			assert_int_equal(xseg_plug_switch(cache), 0);
			all_send_to(c);
			all_leave();
		}
	}
}

/* It sent nothing when it died, and its successor begins holding. */
static void one_that_dies_after_it_held_passes_with_the_others(void **state)
{
	(void)state;
	for (unsigned dead = 0; dead < nr; dead++) {
		assert_int_equal(plug_all(), 0);
		all_hold();
		assert_int_equal(xseg_plug_claim(cache), 0);
		close_one(&all[dead], XSEG_CLOSE_ABANDON);
		assert_int_equal(xseg_plug_call(cache), 0);
		assert_int_equal(xseg_plug_switch(cache), 0);
		successor_of(dead);
		assert_int_equal(xseg_turn(all[dead]), XSEG_TURN_NONE);
		xseg_peer_serve(all[dead]);
		all_send_to(c);
		all_leave();
	}
}

static void a_stopped_one_passes_with_the_others(void **state)
{
	(void)state;
	close_one(&all[1], XSEG_CLOSE_FREE_ARENA);
	refused(xseg_plug(seg, c, at, 1, l, &err), -EBUSY, "name these, too: kv");
	assert_int_equal(plug_all(), 0);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_int_equal(info_of(at[1]).turn, XSEG_TURN_HELD);
	xseg_turn_hold(all[0]);
	assert_true(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	all_send_to(c);
	all[1] = segrig_server(seg, name_of(1), 1, 16);
	all_leave();
	/* all of them stopped: nobody is to be served */
	close_one(&all[0], XSEG_CLOSE_FREE_ARENA);
	close_one(&all[1], XSEG_CLOSE_FREE_ARENA);
	refused(plug_all(), -EHOSTDOWN, "'up' does not serve; start it first");
	upper = all[0] = segrig_server(seg, name_of(0), 2, 16);
	all[1] = segrig_server(seg, name_of(1), 1, 16);
}

static void a_dead_one_must_be_started_first(void **state)
{
	(void)state;
	close_one(&all[1], XSEG_CLOSE_ABANDON);
	refused(plug_all(), -EHOSTDOWN, "'kv' does not serve");
	successor_of(1);
	xseg_peer_serve(all[1]);
	all_enter();
	all_leave();
}

static void none_of_them_is_forgotten_meanwhile(void **state)
{
	(void)state;
	assert_int_equal(plug_all(), 0);
	close_one(&all[1], XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_peer_forget(seg, at[1]), -ENOTEMPTY);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(xseg_peer_forget(seg, at[1]), 0);
	nr = 1;
	all_enter();
	all_leave();
}

/* ---- kills ---- */

/* Who looks next, after a cache that has decided and died. */
static void next_look(unsigned who)
{
	switch (who) {
	case 0:
	case 1:
	case 2:
		close_one(&cache, XSEG_CLOSE_ABANDON);
		xseg_turn_mind(all[who % nr]);
		break;
	case 3:
		cache_again();
		break;
	case 4:		/* a successor of one that has been switched, or has not */
	case 5:
		close_one(&cache, XSEG_CLOSE_ABANDON);
		successor_of(who - 4);
		xseg_turn_mind(all[who - 4]);
		xseg_peer_serve(all[who - 4]);
		break;
	case 6:
		assert_int_equal(xseg_plug_cancel(seg, c, &err), -ENOENT);
		break;
	case 7:
		refused(xseg_plug(seg, l, at, nr, u, &err), -ELOOP, "above itself");
		break;
	default:
		assert_int_equal(xseg_plug_let_go(cache), 0);
	}
	if (!cache) {
		cache = segrig_open(seg, "cache", 1, 16);
		assert_int_equal(xseg_plug_settle(cache, &err), 0);
		xseg_peer_serve(cache);
	}
}

static void whoever_comes_next_stores_the_rest(void **state)
{
	(void)state;
	for (unsigned who = 0; who < 9; who++) {
		for (unsigned stored = 0; stored <= nr; stored++) {
			assert_int_equal(plug_all(), 0);
			all_hold();
			assert_int_equal(xseg_plug_claim(cache), 0);
			decide();
			for (unsigned i = 0; i < stored; i++)
				xs_route_store(seg, at[i], c, false);
			segrig_sound(seg);
			next_look(who);
			all_send_to(c);
			assert_int_equal(xseg_unplug(seg, c, &err), 0);
			all_hold();
			decide();
			for (unsigned i = 0; i < stored; i++)
				xs_route_store(seg, at[i], l, false);
			segrig_sound(seg);
			next_look(who);
			all_send_to(l);
		}
	}
}

/* One of them has its turn cleared already, the others do not. */
static void the_rest_is_let_go_by_whoever_comes_next(void **state)
{
	(void)state;
	for (unsigned first = 0; first < nr; first++) {
		assert_int_equal(plug_all(), 0);
		all_hold();
		assert_int_equal(xseg_plug_claim(cache), 0);
		decide();
		for (unsigned i = 0; i < nr; i++)
			xs_route_store(seg, at[i], c, false);
		xs_keep(seg, at[first], XS_KEPT_TURN, 0);
		close_one(&cache, XSEG_CLOSE_ABANDON);
		segrig_sound(seg);
		xseg_turn_mind(all[(first + 1) % nr]);
		for (unsigned i = 0; i < nr; i++)
			assert_int_equal(info_of(at[i]).turn, XSEG_TURN_NONE);
		cache_again();
		all_send_to(c);
		all_leave();
	}
}

/* The cache dies before it has decided: each of them goes on, whichever looks first. */
static void they_go_on_when_the_cache_dies_and_its_successor_asks_again(void **state)
{
	(void)state;
	for (unsigned first = 0; first < nr; first++) {
		for (unsigned claimed = 0; claimed < 2; claimed++) {
			assert_int_equal(plug_all(), 0);
			all_hold();
			if (claimed)
				assert_int_equal(xseg_plug_claim(cache), 0);
			close_one(&cache, XSEG_CLOSE_ABANDON);
			for (unsigned i = 0; i < nr; i++) {
				xseg_turn_mind(all[(first + i) % nr]);
				assert_int_equal(
					info_of(at[(first + i) % nr]).turn, XSEG_TURN_NONE);
				assert_int_equal(keeper(l), XSEG_NONE);
				segrig_sound(seg);
			}
			assert_int_equal(info_of(c).plug, XSEG_PLUG_ENTER);
			cache_again();
			all_hold();
			assert_int_equal(xseg_plug_claim(cache), 0);
			assert_int_equal(xseg_plug_switch(cache), 0);
			all_send_to(c);
			all_leave();
		}
	}
}

/* Its successor finds some that still hold for the predecessor, and others that went on. */
static void a_successor_asks_those_that_went_on(void **state)
{
	(void)state;
	assert_int_equal(plug_all(), 0);
	all_hold();
	assert_int_equal(xseg_plug_claim(cache), 0);
	close_one(&cache, XSEG_CLOSE_ABANDON);
	xseg_turn_mind(all[1]);
	cache_again();
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_int_equal(xseg_turn(all[1]), XSEG_TURN_ASKED);
	assert_int_equal(xseg_turn(all[0]), XSEG_TURN_HELD);
	xseg_turn_hold(all[1]);
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	all_send_to(c);
	all_leave();
}

static void either_is_taken_back_whoever_holds(void **state)
{
	(void)state;
	for (unsigned holding = 0; holding <= nr; holding++) {
		assert_int_equal(plug_all(), 0);
		assert_int_equal(xseg_plug_call(cache), 0);
		for (unsigned i = 0; i < holding; i++)
			xseg_turn_hold(all[i]);
		if (holding == nr)
			assert_int_equal(xseg_plug_claim(cache), 0);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
		all_send_to(l);
		all_enter();
		assert_int_equal(xseg_unplug(seg, c, &err), 0);
		assert_int_equal(xseg_plug_call(cache), 0);
		for (unsigned i = 0; i < holding; i++)
			xseg_turn_hold(all[i]);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
		all_send_to(c);
		all_leave();
	}
}

static void one_that_is_sent_elsewhere_is_none_of_them(void **state)
{
	(void)state;
	assert_int_equal(plug_all(), 0);
	all_hold();
	assert_int_equal(xseg_route_set(seg, at[1], XSEG_NONE), 0);
	xseg_turn_mind(all[1]);
	assert_int_equal(xseg_turn(all[1]), XSEG_TURN_NONE);
	assert_true(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	assert_int_equal(route(at[0]), c);
	assert_int_equal(route(at[1]), XSEG_NONE);
	assert_int_equal(xseg_route_set(seg, at[1], c), 0);
	all_send_to(c);
	all_leave();
}

#define TWO(name)   cmocka_unit_test_setup_teardown(name, setup_two, teardown_all)
#define THREE(name) cmocka_unit_test_setup_teardown(name, setup_three, teardown_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TWO(all_pass_again_and_again),
		THREE(all_pass_again_and_again),
		THREE(nothing_is_switched_before_the_last_one_holds),
		THREE(all_who_send_there_must_be_named),
		TWO(each_of_them_has_a_part_in_one_plug),
		TWO(whoever_begins_before_they_are_asked_is_one_of_them),
		TWO(whoever_begins_while_they_hold_waits),
		THREE(nobody_stands_still_for_one_that_is_dead),
		TWO(one_that_dies_after_it_held_passes_with_the_others),
		TWO(a_stopped_one_passes_with_the_others),
		TWO(a_dead_one_must_be_started_first),
		TWO(none_of_them_is_forgotten_meanwhile),
		TWO(whoever_comes_next_stores_the_rest),
		THREE(whoever_comes_next_stores_the_rest),
		THREE(the_rest_is_let_go_by_whoever_comes_next),
		THREE(they_go_on_when_the_cache_dies_and_its_successor_asks_again),
		TWO(a_successor_asks_those_that_went_on),
		THREE(either_is_taken_back_whoever_holds),
		TWO(one_that_is_sent_elsewhere_is_none_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
