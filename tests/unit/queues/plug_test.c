/* plug_test - a cache enters between two peers and leaves again (xseg/plug.c): each step, each
 * refusal. */
#include "tests/rig/plug_rig.h"

/* ---- steps ---- */

static void a_cache_enters_and_leaves_again_and_again(void **state)
{
	uint64_t upper_epoch = info_of(u).epoch, epoch;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		epoch = info_of(c).epoch;
		enter();
		is_on_the_path();
		assert_true(info_of(c).epoch > epoch);
		epoch = info_of(c).epoch;
		leave();
		is_off_the_path();
		assert_true(info_of(c).epoch > epoch);
	}
	assert_int_equal(info_of(u).epoch, upper_epoch);
}

static void what_is_wanted_is_shown(void **state)
{
	struct xseg_plug plug;

	(void)state;
	plug = xseg_plug_get(cache);
	assert_int_equal(plug.op, XSEG_PLUG_NONE);
	assert_int_equal(plug.lower, XSEG_NONE);
	ask_to_enter();
	plug = xseg_plug_get(cache);
	assert_int_equal(plug.op, XSEG_PLUG_ENTER);
	assert_int_equal(plug.lower, l);
	assert_int_equal(info_of(c).plug_lower, l);
	assert_int_equal(plug_one(c, u, l), 0);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	nothing_is_wanted();
}

/* What a peer that sleeps looks at: whatever is asked of it, it is not what it was. */
static void whoever_is_asked_for_something_is_called(void **state)
{
	uint64_t at_cache = xseg_peer_called(cache), at_upper = xseg_peer_called(upper), asked;

	(void)state;
	ask_to_enter();
	assert_int_not_equal(xseg_peer_called(cache), at_cache);
	assert_int_equal(xseg_peer_called(upper), at_upper);
	assert_int_equal(xseg_plug_call(cache), 0);
	asked = xseg_peer_called(upper);
	assert_int_not_equal(asked, at_upper);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_not_equal(xseg_peer_called(upper), asked);
}

static void nothing_is_switched_while_the_upper_peer_does_not_hold(void **state)
{
	(void)state;
	assert_int_equal(xseg_plug_call(cache), -ESTALE);
	ask_to_enter();
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	assert_int_equal(xseg_plug_call(cache), 0);
	assert_false(xseg_plug_is_held(cache));
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	assert_int_equal(xseg_plug_call(cache), 0);
	xseg_turn_hold(upper);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);	/* it has no route yet */
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_let_go(cache), 0);
	assert_int_equal(info_of(c).plug, XSEG_PLUG_ENTER);
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(keeper(l), XSEG_NONE);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	is_off_the_path();
}

static void no_step_is_made_where_the_segment_cannot_be_locked(void **state)
{
	(void)state;
	ask_to_enter();
	upper_holds();
	assert_int_equal(xseg_plug_claim(cache), 0);
	segrig_descriptors(false);
	assert_int_equal(xseg_plug_let_go(cache), -EMFILE);
	assert_int_equal(xseg_plug_switch(cache), -EMFILE);
	segrig_descriptors(true);
	assert_true(xseg_plug_is_held(cache));
	assert_int_equal(route(u), l);
	assert_int_equal(keeper(l), c);
	close_one(&cache, XSEG_CLOSE_ABANDON);
	cache = segrig_open(seg, "cache", 1, 16);
	segrig_descriptors(false);
	refused(xseg_plug_settle(cache, &err), -EMFILE, "cannot lock the segment");
	segrig_descriptors(true);
	assert_int_equal(keeper(l), c);
	assert_int_equal(xseg_plug_settle(cache, &err), 0);
	assert_int_equal(keeper(l), XSEG_NONE);
	xseg_peer_serve(cache);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	is_off_the_path();
}

/* A second cache below the first: the lower peer is kept for the one that stands right above it. */
static void caches_stand_in_a_row(void **state)
{
	struct xseg_peer *second = segrig_server(seg, "second", 1, 16);
	uint32_t s = xseg_peer_index(second);
	uint64_t epoch;

	(void)state;
	enter();
	epoch = info_of(c).epoch;
	assert_int_equal(plug_one(s, c, l), 0);
	assert_int_equal(xseg_plug_call(second), 0);
	assert_int_equal(xseg_unplug(seg, c, &err), -EBUSY);
	xseg_turn_hold(cache);
	assert_int_equal(xseg_plug_claim(second), 0);
	assert_int_equal(keeper(l), s);
	assert_int_equal(xseg_plug_let_go(second), 0);
	assert_int_equal(keeper(l), c);
	assert_int_equal(xseg_plug_call(second), 0);
	xseg_turn_hold(cache);
	assert_int_equal(xseg_plug_claim(second), 0);
	assert_int_equal(xseg_plug_switch(second), 0);
	assert_int_equal(route(c), s);
	assert_int_equal(keeper(s), c);
	assert_int_equal(keeper(l), s);
	assert_int_equal(info_of(c).epoch, epoch);
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	assert_int_equal(xseg_unplug(seg, s, &err), -EBUSY);	/* what is above it drains */
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(xseg_unplug(seg, s, &err), 0);
	assert_int_equal(xseg_plug_call(second), 0);
	xseg_turn_hold(cache);
	assert_int_equal(xseg_plug_switch(second), 0);
	assert_int_equal(route(c), l);
	assert_int_equal(keeper(l), c);
	assert_int_equal(keeper(s), XSEG_NONE);
	assert_int_equal(info_of(c).epoch, epoch);
	leave();
	close_one(&second, XSEG_CLOSE_FREE_ARENA);
}

/* ---- what is below ---- */

static void a_forwarded_request_is_below_until_it_is_answered(void **state)
{
	struct xreq *r = segrig_send(port_of(client), XSEG_OP_READ, 0, u);

	(void)state;
	assert_int_equal(xseg_turn_below(upper), 0);
	r = segrig_request_is(port_of(upper), r);
	assert_int_equal(xseg_turn_below(upper), 0);
	assert_int_equal(xseg_req_forward(port_of(upper), r, l), 0);
	assert_int_equal(xseg_turn_below(upper), 1);	/* not even published */
	xseg_port_flush(port_of(upper));
	assert_int_equal(xseg_turn_below(upper), 1);
	r = segrig_request_is(port_of(lower), r);
	assert_int_equal(xseg_turn_below(upper), 1);
	xseg_req_start(port_of(lower), r);
	assert_int_equal(xseg_turn_below(upper), 1);
	segrig_answer(port_of(lower), r, 4096);
	assert_int_equal(xseg_turn_below(upper), 0);
	r = segrig_reply_is(port_of(client), r);
	xseg_req_free(port_of(client), r);
}

static void a_request_of_its_own_is_below_while_it_is_out(void **state)
{
	struct xreq *r = xseg_req_alloc(port_of(upper));

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(xseg_turn_below(upper), 0);
		r->op = XSEG_OP_FLUSH;
		segrig_submit(port_of(upper), r, l);
		assert_int_equal(xseg_turn_below(upper), 1);
		r = segrig_request_is(port_of(lower), r);
		assert_int_equal(xseg_turn_below(upper), 1);
		segrig_answer(port_of(lower), r, i ? -EIO : 0);
		assert_int_equal(xseg_turn_below(upper), 0);
		r = segrig_reply_is(port_of(upper), r);
		assert_int_equal(xseg_turn_below(upper), 0);
		if (i == 1) {
			xseg_req_free(port_of(upper), r);
			r = xseg_req_alloc(port_of(upper));
		}
	}
	assert_int_equal(xseg_req_submit(port_of(upper), r, 15), -ENOENT);
	assert_int_equal(xseg_turn_below(upper), 0);
	xseg_req_free(port_of(upper), r);
}

static void what_a_successor_took_over_is_below_no_more(void **state)
{
	struct xreq *r = segrig_send(port_of(client), XSEG_OP_READ, 0, u), *at_lower;
	struct segrig_taken taken = { .nr = 0 };

	(void)state;
	at_lower = segrig_send(port_of(client), XSEG_OP_READ, 4096, u);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			xseg_req_forward(port_of(upper), segrig_request(port_of(upper)), l), 0);
	xseg_port_flush(port_of(upper));
	r = segrig_request_is(port_of(lower), r);
	again(&upper, "up", 2, 16);
	assert_int_equal(xseg_turn_below(upper), 2);
	xseg_peer_recover(upper, segrig_take, &taken);
	assert_int_equal(taken.nr, 1);
	assert_int_equal(taken.r[0]->index, at_lower->index);
	assert_int_equal(xseg_turn_below(upper), 1);
	xseg_peer_serve(upper);
	segrig_nothing(port_of(lower));
	segrig_answer(taken.port[0], at_lower, 0);
	segrig_answer(port_of(lower), r, 0);
	assert_int_equal(xseg_turn_below(upper), 0);
}

/* ---- a kept peer ---- */

static void a_kept_peer_serves_only_its_keeper(void **state)
{
	struct xreq *r, *own;

	(void)state;
	enter();
	r = segrig_send(port_of(client), XSEG_OP_WRITE, 0, l);
	r = segrig_request_is(port_of(lower), r);
	assert_true(xseg_req_is_foreign(port_of(lower), r));
	assert_int_equal(xseg_plug_others(cache), 1);
	segrig_answer(port_of(lower), r, -EBUSY);
	r = segrig_reply_is(port_of(client), r);
	r->op = XSEG_OP_ADMIN;
	segrig_submit(port_of(client), r, l);
	r = segrig_request_is(port_of(lower), r);
	assert_false(xseg_req_is_foreign(port_of(lower), r));
	assert_int_equal(xseg_plug_others(cache), 0);
	segrig_answer(port_of(lower), r, 0);
	own = xseg_req_alloc(port_of(cache));
	segrig_submit(port_of(cache), own, l);
	own = segrig_request_is(port_of(lower), own);
	assert_false(xseg_req_is_foreign(port_of(lower), own));
	assert_int_equal(xseg_plug_others(cache), 0);
	segrig_answer(port_of(lower), own, 0);
	own = segrig_reply_is(port_of(cache), own);
	xseg_req_free(port_of(cache), own);
}

/* One that keeps data and was killed keeps its peer; one that was stopped in order keeps
 * nothing. */
static void a_claim_ends_with_what_it_protects(void **state)
{
	uint64_t bytes = 4096;
	bool fresh;
	void *base;

	(void)state;
	enter();
	assert_int_equal(xseg_arena_open(cache, &bytes, &base, &fresh, &err), 0);
	close_one(&cache, XSEG_CLOSE_ABANDON);
	assert_int_equal(keeper(l), c);
	cache = segrig_server(seg, "cache", 1, 16);
	assert_int_equal(keeper(l), c);
	close_one(&cache, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(keeper(l), c);
	cache = segrig_server(seg, "cache", 1, 16);
	close_one(&cache, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(keeper(l), XSEG_NONE);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	cache = segrig_open(seg, "cache", 1, 16);
	/* it finds that another has what was its */
	assert_int_equal(xseg_plug_settle(cache, &err), 0);
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(keeper(l), XSEG_NONE);
	xseg_peer_serve(cache);
}

static void a_kept_peer_gets_no_second_upstream(void **state)
{
	struct xseg_peer *other = segrig_server(seg, "other", 1, 0);
	uint32_t o = xseg_peer_index(other);

	(void)state;
	assert_int_equal(xseg_route_claim(seg, c, l), -EBUSY);	/* the upper peer sends to it */
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_route_claim(seg, c, l), 0);
	assert_int_equal(keeper(l), c);
	assert_int_equal(xseg_route_set(seg, o, l), -EBUSY);
	assert_int_equal(xseg_route_claim(seg, o, l), -EBUSY);
	assert_int_equal(xseg_route_claim(seg, c, l), 0);
	assert_int_equal(xseg_route_set(seg, c, XSEG_NONE), 0);
	assert_int_equal(keeper(l), XSEG_NONE);
	assert_int_equal(xseg_route_set(seg, o, l), 0);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	close_one(&other, XSEG_CLOSE_FREE_ARENA);
}

static void a_forgotten_peer_keeps_nothing(void **state)
{
	(void)state;
	enter();
	leave();
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_route_claim(seg, c, l), 0);
	close_one(&cache, XSEG_CLOSE_ABANDON);
	assert_int_equal(keeper(l), c);
	assert_int_equal(xseg_peer_forget(seg, c), 0);
	assert_int_equal(keeper(l), XSEG_NONE);
	cache = segrig_server(seg, "another", 1, 16);	/* in its place */
	assert_int_equal(xseg_peer_index(cache), c);
	assert_int_equal(xseg_route_set(seg, c, l), 0);
	assert_int_equal(keeper(l), XSEG_NONE);
}

/* ---- refusals ---- */

static void what_cannot_be_is_refused(void **state)
{
	struct xseg_peer *other = segrig_server(seg, "other", 1, 0);
	uint32_t o = xseg_peer_index(other);

	(void)state;
	refused(plug_one(c, u, XSEG_NONE), -ENOENT, "not there");
	refused(plug_one(15, u, l), -ENOENT, "not there");
	refused(plug_one(c, c, l), -ELOOP, "'cache' would be above itself");
	refused(plug_one(c, u, c), -ELOOP, "'cache' would be above itself");
	refused(plug_one(c, l, l), -ELOOP, "'low' would be above itself");
	refused(plug_one(c, l, u), -ENOTCONN, "'low' sends to 'nobody', not to 'up'");
	refused(plug_one(c, u, o), -ENOTCONN, "'up' sends to 'low', not to 'other'");
	refused(xseg_unplug(seg, c, &err), -ENOTCONN, "'cache' is off the path already");
	refused(xseg_unplug(seg, 15, &err), -ENOENT, "no such peer");
	refused(xseg_plug_cancel(seg, c, &err), -ENOENT,
		"'cache' is being neither plugged nor unplugged");
	assert_int_equal(xseg_route_set(seg, o, l), 0);
	refused(plug_one(c, u, l), -EBUSY,
		"'cache' is for all peers that send to 'low', or the others would write past it; "
		"name these, too: other");
	assert_int_equal(xseg_route_set(seg, o, c), 0);
	refused(plug_one(c, u, l), -EBUSY, "'other' sends to 'cache' already");
	assert_int_equal(xseg_route_set(seg, o, XSEG_NONE), 0);
	assert_int_equal(xseg_route_set(seg, c, o), 0);
	refused(plug_one(c, u, l), -EBUSY,
		"'cache' sends to 'other' and serves peers that send to it directly; to plug it");
	refused(xseg_unplug(seg, c, &err), -ENOTCONN, "no peer sends to 'cache'");
	assert_int_equal(xseg_route_set(seg, u, c), 0);
	refused(plug_one(c, u, l), -EBUSY, "'cache' sends to 'other'; only a cache");
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	assert_int_equal(xseg_route_set(seg, c, XSEG_NONE), 0);
	close_one(&cache, XSEG_CLOSE_FREE_ARENA);
	refused(plug_one(c, u, l), -EHOSTDOWN, "'cache' does not serve; start it");
	cache = segrig_open(seg, "cache", 1, 16);
	refused(plug_one(c, u, l), -EHOSTDOWN, "'cache' does not serve yet");
	close_one(&cache, XSEG_CLOSE_FREE_ARENA);
	cache = segrig_server(seg, "cache", 1, 16);
	enter();
	refused(plug_one(c, u, l), -EEXIST, "is between 'up' and 'low' already");
	close_one(&other, XSEG_CLOSE_FREE_ARENA);
}

static void one_thing_at_a_time_is_done(void **state)
{
	struct xseg_peer *second = segrig_server(seg, "second", 1, 16);
	uint32_t s = xseg_peer_index(second);

	(void)state;
	ask_to_enter();
	refused(xseg_unplug(seg, c, &err), -EBUSY, "is being plugged below 'up'");
	refused(plug_one(c, l, u), -EBUSY, "is being plugged below 'up'");
	/* before it has called, too: the second would wait for a route that there is no more, and
	 * the upper peer for it */
	refused(plug_one(s, u, l), -EBUSY, "another cache is being plugged below 'up'");
	upper_holds();
	refused(plug_one(s, u, l), -EBUSY, "another cache is being plugged below 'up'");
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_plug_switch(cache), 0);
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	refused(plug_one(s, c, l), -EBUSY, "'cache' is being unplugged itself");
	refused(plug_one(s, u, c), -EBUSY,
		"another cache is being plugged below 'up' or unplugged");
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(plug_one(s, c, l), 0);
	refused(xseg_unplug(seg, c, &err), -EBUSY, "another cache is being plugged below 'cache'");
	assert_int_equal(xseg_plug_cancel(seg, s, &err), 0);
	assert_int_equal(plug_one(s, u, c), 0);
	refused(xseg_unplug(seg, c, &err), -EBUSY, "another cache is being plugged below 'up'");
	assert_int_equal(xseg_plug_cancel(seg, s, &err), 0);
	close_one(&second, XSEG_CLOSE_FREE_ARENA);
}

/* It waits for its successor, and nobody may start that. */
static void a_dead_cache_that_is_in_the_way_is_named_and_taken_back(void **state)
{
	struct xseg_peer *second = segrig_server(seg, "second", 1, 16);
	uint32_t s = xseg_peer_index(second);

	(void)state;
	ask_to_enter();
	upper_holds();
	close_one(&cache, XSEG_CLOSE_ABANDON);
	xseg_turn_mind(upper);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	refused(plug_one(s, u, l), -EBUSY,
		"'cache'; wait for that, or take it back with 'xseg unplug cache --cancel'");
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(plug_one(s, u, l), 0);
	assert_int_equal(xseg_plug_cancel(seg, s, &err), 0);
	close_one(&second, XSEG_CLOSE_FREE_ARENA);
}

/* As after routes were changed by hand: nobody holds for ever for what cannot be. */
static void what_cannot_be_any_more_is_taken_back(void **state)
{
	(void)state;
	ask_to_enter();
	upper_holds();
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_plug_claim(cache), -ESTALE);
	nothing_is_wanted();
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	ask_to_enter();
	upper_holds();
	assert_int_equal(xseg_plug_claim(cache), 0);
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	nothing_is_wanted();
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	enter();
	assert_int_equal(xseg_unplug(seg, c, &err), 0);
	upper_holds();
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_plug_switch(cache), -ESTALE);
	nothing_is_wanted();
	assert_int_equal(route(u), XSEG_NONE);
	assert_int_equal(route(c), l);
}

static void peers_beside_a_cache_that_is_plugged_are_not_forgotten(void **state)
{
	(void)state;
	ask_to_enter();
	close_one(&upper, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_peer_forget(seg, u), -ENOTEMPTY);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(xseg_peer_forget(seg, u), 0);
}

/* Nor where routes were changed by hand, so that nothing else leads there. */
static void nor_is_the_one_below_it(void **state)
{
	(void)state;
	ask_to_enter();
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	close_one(&lower, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_peer_forget(seg, l), -ENOTEMPTY);
	assert_int_equal(xseg_plug_cancel(seg, c, &err), 0);
	assert_int_equal(xseg_peer_forget(seg, l), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_cache_enters_and_leaves_again_and_again),
		T(what_is_wanted_is_shown),
		T(whoever_is_asked_for_something_is_called),
		T(nothing_is_switched_while_the_upper_peer_does_not_hold),
		T(no_step_is_made_where_the_segment_cannot_be_locked),
		T(caches_stand_in_a_row),
		T(a_forwarded_request_is_below_until_it_is_answered),
		T(a_request_of_its_own_is_below_while_it_is_out),
		T(what_a_successor_took_over_is_below_no_more),
		T(a_kept_peer_serves_only_its_keeper),
		T(a_claim_ends_with_what_it_protects),
		T(a_kept_peer_gets_no_second_upstream),
		T(a_forgotten_peer_keeps_nothing),
		T(what_cannot_be_is_refused),
		T(one_thing_at_a_time_is_done),
		T(a_dead_cache_that_is_in_the_way_is_named_and_taken_back),
		T(what_cannot_be_any_more_is_taken_back),
		T(peers_beside_a_cache_that_is_plugged_are_not_forgotten),
		T(nor_is_the_one_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
