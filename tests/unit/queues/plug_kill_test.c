/* plug_kill_test - a cache enters or leaves, and it, the upper peer or both are killed at any step:
 * which process continues. And words that no process can have stored (xseg/plug.c).
 */
#include "tests/rig/plug_rig.h"

/* How far the cache is when it is killed. */
enum at { AT_ASKED, AT_CALLED, AT_HELD, AT_CLAIMED, NR_AT };

static void go_to(enum at at)
{
	if (at >= AT_CALLED)
		assert_int_equal(xseg_plug_call(cache), 0);
	if (at >= AT_HELD)
		xseg_turn_hold(upper);
	if (at >= AT_CLAIMED && info_of(c).plug == XSEG_PLUG_ENTER)
		assert_int_equal(xseg_plug_claim(cache), 0);
}

static void the_upper_peer_lets_go_when_the_cache_dies_and_its_successor_goes_on(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * NR_AT; i++) {
		ask_to_enter();
		go_to((enum at)(i % NR_AT));
		close_one(&cache, XSEG_CLOSE_ABANDON);
		if (i < NR_AT)	/* else the successor is there first */
			xseg_turn_mind(upper);
		assert_int_equal(route(u), l);
		if (i < NR_AT) {
			assert_int_equal(info_of(u).turn, XSEG_TURN_NONE);
			assert_int_equal(keeper(l), XSEG_NONE);
		}
		cache = segrig_open(seg, "cache", 1, 16);
		assert_int_equal(xseg_plug_settle(cache, &err), 0);
		assert_int_equal(route(c), XSEG_NONE);
		xseg_peer_serve(cache);
		xseg_turn_mind(upper);
		assert_int_equal(xseg_plug_call(cache), 0);
		xseg_turn_hold(upper);
		assert_int_equal(xseg_plug_claim(cache), 0);
		assert_int_equal(xseg_plug_switch(cache), 0);
		is_on_the_path();
		leave();
	}
}

static void a_cache_that_dies_leaving_is_on_the_path_again_and_leaves(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * AT_CLAIMED; i++) {
		enter();
		assert_int_equal(xseg_unplug(seg, c, &err), 0);
		go_to((enum at)(i % AT_CLAIMED));
		close_one(&cache, XSEG_CLOSE_ABANDON);
		if (i < AT_CLAIMED) {
			xseg_turn_mind(upper);
			assert_int_equal(info_of(u).turn, XSEG_TURN_NONE);
		}
		cache = segrig_open(seg, "cache", 1, 16);
		assert_int_equal(xseg_plug_settle(cache, &err), 0);
		xseg_peer_serve(cache);
		xseg_turn_mind(upper);
		assert_int_equal(route(u), c);
		assert_int_equal(route(c), l);
		assert_int_equal(info_of(c).plug, XSEG_PLUG_LEAVE);
		assert_int_equal(xseg_plug_call(cache), 0);
		xseg_turn_hold(upper);
		assert_int_equal(xseg_plug_switch(cache), 0);
		is_off_the_path();
	}
}

/* The store of the decision is the one that counts: whoever looks next makes the others. */
static void finish_by(unsigned who)
{
	switch (who) {
	case 0:
		close_one(&cache, XSEG_CLOSE_ABANDON);
		xseg_turn_mind(upper);
		break;
	case 1:
		close_one(&cache, XSEG_CLOSE_ABANDON);
		cache = segrig_open(seg, "cache", 1, 16);
		assert_int_equal(xseg_plug_settle(cache, &err), 0);
		xseg_peer_serve(cache);
		break;
	case 2:
		assert_int_equal(xseg_plug_cancel(seg, c, &err), -ENOENT);
		break;
	case 3:		/* as a cache that stands above it does when it begins */
		close_one(&cache, XSEG_CLOSE_ABANDON);
		again(&upper, "up", 2, 16);
		assert_int_equal(xseg_plug_settle(upper, &err), 0);
		xseg_peer_serve(upper);
		break;
	default:
		assert_int_equal(xseg_plug_let_go(cache), 0);
	}
	if (!cache)
		cache = segrig_server(seg, "cache", 1, 16);
}

static void a_switch_that_was_begun_is_ended_by_whoever_comes_next(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		unsigned who = i / 2;

		ask_to_enter();
		upper_holds();
		assert_int_equal(xseg_plug_claim(cache), 0);
		decide();
		if (i % 2)
			xs_route_store(seg, u, c, false);
		finish_by(who);
		is_on_the_path();
		assert_int_equal(xseg_unplug(seg, c, &err), 0);
		upper_holds();
		decide();
		if (i % 2)
			xs_route_store(seg, u, l, false);
		finish_by(who);
		nothing_is_wanted();
		assert_int_equal(route(u), l);
		assert_int_equal(route(c), XSEG_NONE);
		if (keeper(l) == u)	/* who settles keeps what his route leads to */
			assert_int_equal(xseg_route_set(seg, u, l), 0);
		is_off_the_path();
	}
}

static void a_successor_of_the_upper_peer_holds_anew(void **state)
{
	(void)state;
	ask_to_enter();
	upper_holds();
	again(&upper, "up", 2, 16);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_ASKED);
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	xseg_peer_serve(upper);
	xseg_turn_hold(upper);
	assert_int_equal(xseg_plug_claim(cache), 0);
	/* dead after it held: nobody sends, so the route may change */
	close_one(&upper, XSEG_CLOSE_ABANDON);
	assert_int_equal(xseg_plug_switch(cache), 0);
	is_on_the_path();
	again(&upper, "up", 2, 16);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	xseg_peer_serve(upper);
}

/* Of two peers that send to the store the one is entering, or has left, beside the other one, which
 * is a cache, too. */
static void an_upper_cache_that_dies_meanwhile_keeps_its_route(void **state)
{
	uint64_t epoch;

	(void)state;
	assert_int_equal(xseg_route_claim(seg, u, l), 0);
	epoch = info_of(u).epoch;
	ask_to_enter();
	upper_holds();
	assert_int_equal(xseg_plug_claim(cache), 0);
	again(&upper, "up", 2, 16);
	assert_int_equal(xseg_plug_settle(upper, &err), 0);
	assert_int_equal(route(u), l);
	assert_int_equal(info_of(u).epoch, epoch);
	assert_int_equal(keeper(l), c);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_ASKED);

	/* the cache finds that nobody holds for it: it gives back, and goes on */
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_let_go(cache), 0);
	assert_int_equal(keeper(l), u);
	upper_holds();
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	is_on_the_path();
	assert_int_equal(keeper(c), u);
	assert_int_equal(info_of(u).epoch, epoch);
}

/* What the lower peer is kept for, when a cache dies between the stores of its claim, or who undoes
 * that between his. */
static void a_claim_that_was_begun_leaves_the_lower_peer_to_the_upper_cache(void **state)
{
	(void)state;
	assert_int_equal(xseg_route_claim(seg, u, l), 0);
	for (unsigned i = 0; i < 6; i++) {
		ask_to_enter();
		upper_holds();
		if (i % 3) {
			assert_int_equal(xseg_plug_claim(cache), 0);
			if (i % 3 == 1)
				xs_keep(seg, l, XS_KEPT_ABOVE, u + 1);
		} else {
			xs_keep(seg, c, XS_KEPT_ABOVE, u + 1);
			xs_route_store(seg, c, l, true);
		}
		assert_int_equal(keeper(l), i % 3 == 2 ? c : u);
		segrig_sound(seg);
		close_one(&cache, XSEG_CLOSE_ABANDON);
		if (i < 3) {	/* else the successor is there first */
			xseg_turn_mind(upper);
			assert_int_equal(keeper(l), u);
			assert_int_equal(route(c), XSEG_NONE);
		}
		cache = segrig_open(seg, "cache", 1, 16);
		assert_int_equal(xseg_plug_settle(cache, &err), 0);
		assert_int_equal(keeper(l), u);
		assert_int_equal(route(c), XSEG_NONE);
		xseg_peer_serve(cache);
		xseg_turn_mind(upper);
		assert_int_equal(xseg_plug_let_go(cache), 0);
		upper_holds();
		assert_int_equal(xseg_plug_claim(cache), 0);
		assert_int_equal(xseg_plug_switch(cache), 0);
		assert_int_equal(keeper(c), u);
		assert_int_equal(keeper(l), c);
		leave();
		assert_int_equal(keeper(l), u);
	}
}

/* A cache that died at any step is forgotten before anybody has looked at what it left. */
static void what_a_cache_that_is_forgotten_had_begun_is_ended_or_undone(void **state)
{
	(void)state;
	assert_int_equal(xseg_route_claim(seg, u, l), 0);
	for (unsigned at = 0; at < NR_AT; at++) {
		ask_to_enter();
		go_to((enum at)at);
		close_one(&cache, XSEG_CLOSE_ABANDON);
		assert_int_equal(xseg_peer_forget(seg, c), 0);
		assert_int_equal(keeper(l), u);
		assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
		cache = segrig_server(seg, "cache", 1, 16);
	}
	enter();
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	upper_holds();
	decide();
	xs_route_store(seg, u, l, false);
	close_one(&cache, XSEG_CLOSE_ABANDON);
	assert_int_equal(xseg_peer_forget(seg, c), 0);
	assert_int_equal(keeper(l), u);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
}

static void a_stopped_upper_peer_holds_by_itself(void **state)
{
	struct xreq *r = segrig_send(port_of(client), XSEG_OP_READ, 0, u);

	(void)state;
	ask_to_enter();
	assert_int_equal(xseg_req_forward(port_of(upper), segrig_request(port_of(upper)), l), 0);
	close_one(&upper, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_false(xseg_plug_is_held(cache));		/* its last one is at the lower peer */
	r = segrig_request_is(port_of(lower), r);
	segrig_answer(port_of(lower), r, 0);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_true(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	upper = segrig_server(seg, "up", 2, 16);
	is_on_the_path();
}

static void either_is_taken_back_at_any_step(void **state)
{
	(void)state;
	for (unsigned at = 0; at < NR_AT; at++) {
		ask_to_enter();
		go_to((enum at)at);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
		is_off_the_path();
		assert_int_equal(xseg_plug_switch(cache), -ESTALE);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), -ENOENT);
	}
	enter();
	for (unsigned at = 0; at < AT_CLAIMED; at++) {
		assert_int_equal(xseg_unplug(seg, c, &err), 0);
		go_to((enum at)at);
		assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
		is_on_the_path();
		assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	}
}

/* A word that asks a peer to hold, left by one who died between two stores, goes with the peer's
 * next look. */
static void a_void_turn_goes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&seg->peers[u].turn, turn_word(XSEG_TURN_ASKED, c, 0));
		refused(plug_one(c, u, l), -EBUSY,
			"'up' still holds requests for a cache that is gone");
		if (i)
			xseg_turn_mind(upper);
		else
			xseg_turn_hold(upper);
		assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	}
}

/* Nor does another cache take it for its own, or wait for it for ever. */
static void a_void_turn_is_in_the_way_until_it_goes(void **state)
{
	(void)state;
	ask_to_enter();
	atomic_store(&seg->peers[u].turn, turn_word(XSEG_TURN_ASKED, l, 0));
	assert_int_equal(xseg_plug_call(cache), -EBUSY);
	assert_int_equal(turn_cache(atomic_load(&seg->peers[u].turn)), l);
	xseg_turn_mind(upper);
	upper_holds();
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
}

static void words_that_cannot_be_are_taken_for_none(void **state)
{
	(void)state;
	atomic_store(&seg->peers[c].plug, plug_word(XSEG_PLUG_LEAVE, 99));
	assert_int_equal(xseg_plug_get(cache).op, XSEG_PLUG_NONE);
	assert_int_equal(xseg_plug_call(cache), -ESTALE);
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	atomic_store(&seg->peers[u].turn, turn_word(XSEG_TURN_HELD, 99, 0));
	xseg_turn_mind(upper);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	atomic_store(&seg->peers[l].above, 99);
	assert_int_equal(keeper(l), XSEG_NONE);
	atomic_store(&seg->peers[l].above, 0);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), -ENOENT);
	ask_to_enter();
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_upper_peer_lets_go_when_the_cache_dies_and_its_successor_goes_on),
		T(a_cache_that_dies_leaving_is_on_the_path_again_and_leaves),
		T(a_switch_that_was_begun_is_ended_by_whoever_comes_next),
		T(a_successor_of_the_upper_peer_holds_anew),
		T(an_upper_cache_that_dies_meanwhile_keeps_its_route),
		T(a_claim_that_was_begun_leaves_the_lower_peer_to_the_upper_cache),
		T(what_a_cache_that_is_forgotten_had_begun_is_ended_or_undone),
		T(a_stopped_upper_peer_holds_by_itself),
		T(either_is_taken_back_at_any_step),
		T(a_void_turn_goes),
		T(a_void_turn_is_in_the_way_until_it_goes),
		T(words_that_cannot_be_are_taken_for_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
