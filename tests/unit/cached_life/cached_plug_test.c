/* cached_plug_test - a cache leaves the path and enters it again (peers/cached/life/plug.c). The
 * upper peer is the test: it holds when it says so. */
#include "tests/rig/cached_rig.h"

#include <errno.h>

#include "xseg/internal.h"

static struct xseg_peer *upper;
static uint32_t u, c, s;

static void up(const char *options)
{
	struct xseg_peer_params params = { .name = "upper", .kind = "volumed", .nr_ports = 1 };

	crig_up(options);
	assert_int_equal(xseg_peer_open(crig.seg, &params, &upper, NULL), 0);
	xseg_peer_serve(upper);
	u = xseg_peer_index(upper);
	c = xseg_peer_find(crig.seg, "cached");
	s = xseg_peer_find(crig.seg, "store");
	assert_int_equal(xseg_route_set(crig.seg, u, c), 0);
}

static int down(void **state)
{
	if (upper)
		xseg_peer_close(upper, XSEG_CLOSE_FREE_ARENA);
	upper = NULL;
	return crig_down(state);
}

static void state_is(enum plug_state state)
{
	if (crig.k->life.plug.state != state)
		fail_msg("it is %s, not %s",
			xstate_name(&plug_states, crig.k->life.plug.state),
			xstate_name(&plug_states, state));
}

static void unplug(void)
{
	assert_int_equal(xseg_unplug(crig.seg, c, NULL), 0);
	crig_pass(20 * CRIG_MS);
}

static void hold(void)
{
	assert_int_equal(xseg_turn(upper), XSEG_TURN_ASKED);
	xseg_turn_hold(upper);
}

static void hold_and_settle(void)
{
	hold();
	crig_pass(20 * CRIG_MS);
}

static uint32_t route(uint32_t peer)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(crig.seg, peer, &info));
	return info.downstream;
}

static void is_off_the_path(void)
{
	state_is(PLUG_OFF);
	assert_int_equal(route(u), s);
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	assert_true(crig_admin("status") > 0 && crig_says("state=drained\n"));
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), 0);
}

static void is_on_the_path(void)
{
	state_is(PLUG_ON);
	assert_int_equal(route(u), c);
	assert_int_equal(route(c), s);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	assert_true(crig_admin("status") > 0 && crig_says("state=running\n"));
}

/* Plugged above `lower`, as far as its claim: the upper peer holds, and its route does not lead
 * there yet. */
static void claim(uint32_t lower)
{
	assert_int_equal(xseg_plug(crig.seg, c, &u, 1, lower, NULL), 0);
	crig_pass(20 * CRIG_MS);
	hold();
	crig.now_ns += 10 * CRIG_MS;
	crig_step_poll();
	state_is(PLUG_CLAIMED);
}

static void leave(void)
{
	unplug();
	hold_and_settle();
	is_off_the_path();
}

static void enter(void)
{
	assert_int_equal(xseg_plug(crig.seg, c, &u, 1, s, NULL), 0);
	crig_pass(20 * CRIG_MS);
	hold_and_settle();
	is_on_the_path();
}

/* So much that a walk takes several polls. */
static void have_many(void)
{
	char name[8];

	for (uint32_t i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		crig_have_clean(name, 0, B(1), 1);
	}
}

/* ---- leaving ---- */

static void it_flushes_makes_that_stable_and_forgets_all(void **state)
{
	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(8), 1), B(8));
	crig_have_clean("b", 0, B(4), 2);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "z", 0, B(4)), B(4));
	assert_false(crig_stored("a", 0, B(8), 1));
	unplug();
	assert_true(crig_stable("a", 0, B(8), 1));
	state_is(PLUG_CALLING);
	assert_true(crig_admin("status") > 0 && crig_says("state=draining\n") &&
		    crig_says("policy=write-through\n"));
	crig_expect_data("b", 0, B(4), 2);		/* it serves */
	hold_and_settle();
	is_off_the_path();
	assert_int_equal(crig.k->memory.nr_zeroes, 0);
	crig_expect(crig_read("b", 0, B(1)), -ENOTCONN);
	crig_expect(crig_write("b", 0, B(1), 3), -ENOTCONN);
	crig_expect(crig_flush(0), -ENOTCONN);
}

static void writes_wait_for_the_store_while_it_leaves(void **state)
{
	struct crig_io *io;

	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(1), 1), B(1));
	unplug();
	crig_hold(true);
	io = crig_write("a", 0, B(2), 2);
	crig_expect_waits(io);
	crig_hold(false);
	crig_settle();
	crig_expect(io, B(2));
	assert_true(crig_stored("a", 0, B(2), 2));
	hold_and_settle();
	is_off_the_path();
}

static void it_does_not_call_before_the_store_has_all(void **state)
{
	uint32_t from;

	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	crig_hold(true);
	unplug();
	state_is(PLUG_DRAINING);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	from = crig_held(XSEG_OP_WRITE, 0);
	crig_answer(from);
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_SYNCING);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_CALLING);
	crig_hold(false);
	hold_and_settle();
	is_off_the_path();
}

static void what_is_set_while_it_drains_does_not_end_that(void **state)
{
	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	crig_hold(true);
	unplug();
	crig_set("dirty_age=40s");
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_DRAINING);
	crig_set("policy=write-around");
	crig_set("policy=write-back");
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_DRAINING);
	crig_hold(false);
	crig_pass(20 * CRIG_MS);
	hold_and_settle();
	is_off_the_path();
}

static void it_stays_while_the_store_fails_to_make_it_stable(void **state)
{
	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	crig_fail_next(XSEG_OP_FLUSH, -EIO, 2);
	unplug();
	state_is(PLUG_DRAINING);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	crig_pass(150 * CRIG_MS);
	state_is(PLUG_DRAINING);
	crig_pass(300 * CRIG_MS);
	hold_and_settle();
	is_off_the_path();
	assert_int_equal(crig_count_calls(XSEG_OP_WRITE, 0), 3); /* once more for each failure */
}

/* Nothing is left here to become dirty. */
static void so_it_does_when_it_is_to_stop_too(void **state)
{
	(void)state;
	up("objects=400 policy=write-around");
	have_many();
	crig_expect(crig_write("a", 0, B(1), 1), B(1));
	crig_hold(true);
	unplug();
	state_is(PLUG_SYNCING);
	atomic_store(&crig.peer->stopping, true);
	crig_pass(100 * CRIG_MS);
	crig_fail_only(crig_held(XSEG_OP_FLUSH, 0), -EIO);
	crig_step_reply();
	for (uint32_t i = 0; i < 30; i++) {
		crig.now_ns += CRIG_MS;
		crig_step_poll();
	}
	state_is(PLUG_DRAINING);
	crig_hold(false);
	crig_pass(CRIG_S);
	hold_and_settle();
	is_off_the_path();
}

/* A FLUSH that went out before covers nothing that was written back after it. */
static void a_flush_of_an_attempt_that_was_taken_back_does_not_count(void **state)
{
	uint32_t old;

	(void)state;
	up("");
	crig_hold(true);
	unplug();
	state_is(PLUG_SYNCING);
	old = crig_held(XSEG_OP_FLUSH, 0);
	assert_int_equal(xseg_plug_cancel(crig.seg, c, NULL), 0);
	crig_pass(20 * CRIG_MS);
	is_on_the_path();
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	unplug();
	crig_answer(crig_held(XSEG_OP_WRITE, 0));
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_DRAINING);
	crig_answer(old);
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_SYNCING);
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_pass(20 * CRIG_MS);
	state_is(PLUG_CALLING);
	assert_true(crig_stable("a", 0, B(4), 1));
	crig_hold(false);
	hold_and_settle();
	is_off_the_path();
}

static void it_does_not_stop_before_a_flush_of_its_own_is_answered(void **state)
{
	uint64_t left;

	(void)state;
	up("");
	crig_hold(true);
	unplug();
	state_is(PLUG_SYNCING);
	assert_int_equal(xseg_plug_cancel(crig.seg, c, NULL), 0);
	crig_pass(20 * CRIG_MS);
	is_on_the_path();
	assert_false(crig.peer->cls->quiesced(crig.peer, &left));
	crig_hold(false);
	crig_settle();
	assert_true(crig.peer->cls->quiesced(crig.peer, &left));
}

static void it_waits_for_a_read_that_it_sent_on(void **state)
{
	struct crig_io *io;

	(void)state;
	up("");
	assert_true(crig_admin("set policy=pass-through") >= 0);
	crig_store_fill("a", 0, B(1), 7);
	crig_hold(true);
	io = crig_read("a", 0, B(1));
	crig_expect_waits(io);
	assert_int_equal(
		store_port(cport_at(crig.k, 0))->loads_out, 0); /* nobody's but the client's */
	unplug();
	crig_answer(crig_held(XSEG_OP_FLUSH, 0));
	crig_pass(20 * CRIG_MS);
	hold_and_settle();
	state_is(PLUG_PROVING);
	assert_int_equal(route(u), c);
	crig_answer(crig_held(XSEG_OP_READ, 0));
	crig_hold(false);
	crig_pass(20 * CRIG_MS);
	crig_expect(io, B(1));
	is_off_the_path();
}

/* What became dirty after it had called: the store failed a write. */
/* While it leaves: what the store has of it may be lost with a write that fails. */
static void make_dirty(const char *name)
{
	crig_expect(crig_write(name, 0, B(4), 1), B(4));
	crig_fail_next(XSEG_OP_WRITE, -EIO, 1);
	crig_expect(crig_write_fua("fua", 0, B(1), 9), -EIO);
	assert_int_equal(crig_counter(CC_DIRTY_BYTES), B(4));
}

static void what_was_answered_with_an_error_does_not_keep_it_on_the_path(void **state)
{
	(void)state;
	up("policy=write-through");
	crig_fail_next(CRIG_ANY, -ENOSPC, 1000);
	crig_expect(crig_write("a", 0, B(4), 1), -ENOSPC);
	crig_expect(crig_op(XSEG_OP_WRITE_ZEROES, "b", 0, B(2)), -ENOSPC);
	crig_fail_next(XSEG_OP_WRITE, -ENOSPC, 1000);
	assert_int_equal(crig_counter(CC_UNPROMISED_BYTES), B(6));
	unplug();
	state_is(PLUG_CALLING);
	crig_expect(crig_write("c", 0, B(4), 1), -ENOSPC);
	hold_and_settle();
	is_off_the_path();
	crig_fail_next(CRIG_ANY, 0, 0);
}

static void the_upper_peer_goes_on_when_something_is_dirty_after_all(void **state)
{
	(void)state;
	up("");
	unplug();
	state_is(PLUG_CALLING);
	make_dirty("a");
	hold_and_settle();
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	state_is(PLUG_DRAINING);
	assert_int_equal(route(u), c);
	crig_expect_data("a", 0, B(4), 1);
	crig_pass(2 * CRIG_S);
	assert_true(crig_stored("a", 0, B(4), 1));
	hold_and_settle();
	is_off_the_path();
}

/* A write with FUA fails while it proves; what may be lost with it is found object by object. */
static void nor_does_it_leave_before_all_is_dirty_that_a_failure_made_so(void **state)
{
	(void)state;
	up("objects=400");
	crig_store_forgets();
	have_many();
	unplug();
	state_is(PLUG_CALLING);
	crig_expect(crig_write("z", 0, B(1), 2), B(1));
	crig_set("policy=write-around");
	crig_hold(true);
	crig_write_fua("z", B(1), B(1), 3);
	hold_and_settle();
	state_is(PLUG_PROVING);
	crig_fail_only(crig_held(XSEG_OP_WRITE, 0), -EIO);
	crig_step_reply();
	for (uint32_t i = 0; i < 20; i++) {
		crig.now_ns += CRIG_MS;
		crig_step_poll();
	}
	assert_int_equal(route(u), c);
	crig_hold(false);
	crig_pass(CRIG_S);
	hold_and_settle();
	is_off_the_path();
	assert_true(crig_stable("z", 0, B(1), 2));
}

static void requests_that_come_while_it_proves_are_answered_when_it_knows(void **state)
{
	struct crig_io *io[2];

	(void)state;
	for (unsigned goes = 0; goes < 2; goes++) {
		up("");
		crig_have_clean("a", 0, B(1), 1);
		unplug();
		if (!goes) {
			make_dirty("b");
		}
		hold();
		crig.now_ns += 10 * CRIG_MS;
		crig_step_poll();
		state_is(PLUG_PROVING);
		crig_step_poll();	/* passes the gate */
		io[0] = crig_send(XSEG_OP_READ, "a", 0, B(1), 0, 0);
		io[1] = crig_send(XSEG_OP_WRITE, "a", 0, B(1), 0, 3);
		for (unsigned i = 0; i < 4; i++)
			assert_false(crig_step_request());
		crig_pass(20 * CRIG_MS);
		crig_expect(io[0], goes ? -ENOTCONN : (int64_t)B(1));
		crig_expect(io[1], goes ? -ENOTCONN : (int64_t)B(1));
		if (!goes) {
			crig_pass(2 * CRIG_S);
			hold_and_settle();
		}
		is_off_the_path();
		down(NULL);
	}
	up("");
}

static void it_is_taken_back_in_every_state(void **state)
{
	(void)state;
	up("");
	for (unsigned at = 0; at < 4; at++) {
		crig_expect(crig_write("a", 0, B(4), at + 1), B(4));
		crig_hold(true);
		unplug();
		state_is(PLUG_DRAINING);
		if (at > 0)
			crig_answer(crig_held(XSEG_OP_WRITE, 0));
		crig_pass(20 * CRIG_MS);
		if (at > 1)
			crig_answer(crig_held(XSEG_OP_FLUSH, 0));
		crig_pass(20 * CRIG_MS);
		if (at > 2) {
			hold();
			crig.now_ns += 10 * CRIG_MS;
			crig_step_poll();
		}
		state_is(PLUG_DRAINING + at);
		assert_int_equal(xseg_plug_cancel(crig.seg, c, NULL), 0);
		crig_pass(20 * CRIG_MS);
		is_on_the_path();
		crig_expect(crig_write("a", 0, B(4), 9), B(4));		/* write-back again */
		crig_hold(false);
		crig_settle();
		crig_expect(crig_flush(0), 0);
	}
}

/* ---- entering ---- */

static void it_sees_what_the_store_got_without_it(void **state)
{
	(void)state;
	up("");
	crig_have_clean("a", 0, B(4), 1);
	leave();
	crig_store_fill("a", 0, B(4), 2);
	enter();
	crig_expect_data("a", 0, B(4), 2);
	crig_expect(crig_write("a", 0, B(1), 3), B(1));
	leave();
	assert_true(crig_stored("a", 0, B(1), 3));
	enter();
	crig_expect_data("a", 0, B(1), 3);
}

static void entering_is_taken_back(void **state)
{
	(void)state;
	up("");
	leave();
	for (unsigned at = 0; at < 2; at++) {
		assert_int_equal(xseg_plug(crig.seg, c, &u, 1, s, NULL), 0);
		crig_pass(20 * CRIG_MS);
		state_is(PLUG_ENTERING);
		if (at) {
			hold();
			crig.now_ns += 10 * CRIG_MS;
			crig_step_poll();
			state_is(PLUG_CLAIMED);
		}
		assert_int_equal(xseg_plug_cancel(crig.seg, c, NULL), 0);
		crig_pass(20 * CRIG_MS);
		is_off_the_path();
		crig_expect(crig_read("a", 0, B(1)), -ENOTCONN);
	}
	enter();
}

/* ---- kills ---- */

static void a_successor_goes_on_leaving(void **state)
{
	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	crig_hold(true);
	unplug();
	state_is(PLUG_DRAINING);
	crig_kill();
	crig_hold(false);
	assert_int_equal(crig_open(""), 0);
	crig_pass(20 * CRIG_MS);
	assert_true(crig_stable("a", 0, B(4), 1));
	hold_and_settle();
	is_off_the_path();
}

static void a_successor_off_the_path_stays_there_and_is_empty(void **state)
{
	(void)state;
	up("");
	crig_have_clean("a", 0, B(4), 1);
	leave();
	crig_kill();
	/* its --downstream says where to enter, not that it may */
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	is_off_the_path();
	crig_store_fill("a", 0, B(4), 2);
	enter();
	crig_expect_data("a", 0, B(4), 2);
}

/* Where it would send to is sent to by nobody just now: another cache stands there that was
 * unplugged, too, or the like. */
static void a_successor_off_the_path_takes_no_route_that_is_free(void **state)
{
	(void)state;
	up("");
	leave();
	assert_int_equal(xseg_route_set(crig.seg, u, XSEG_NONE), 0);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(route(c), XSEG_NONE);
	assert_int_equal(xseg_route_set(crig.seg, u, s), 0);
	is_off_the_path();
	enter();
}

/* It was plugged elsewhere than its --downstream says, and dies just before it is there. */
static void one_that_was_entering_does_not_begin_where_its_option_says(void **state)
{
	struct xseg_peer_params params = { .name = "other", .kind = "memd", .nr_ports = 1 };
	struct xseg_peer *other;
	uint32_t o;

	(void)state;
	up("");
	leave();
	assert_int_equal(xseg_peer_open(crig.seg, &params, &other, NULL), 0);
	xseg_peer_serve(other);
	o = xseg_peer_index(other);
	assert_int_equal(xseg_route_set(crig.seg, u, o), 0);
	claim(o);
	assert_int_equal(route(c), o);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	assert_int_not_equal(route(c), s);
	crig_pass(20 * CRIG_MS);
	if (xseg_turn(upper) == XSEG_TURN_ASKED)
		hold_and_settle();
	state_is(PLUG_ON);
	assert_int_equal(route(c), o);
	assert_int_equal(route(u), c);
	xseg_peer_close(other, XSEG_CLOSE_FREE_ARENA);
}

/* Also where it dies with the epoch of another route than it has: as it claims one, or while it
 * empties what it had. */
static void what_was_set_survives_a_kill_off_the_path(void **state)
{
	(void)state;
	up("");
	crig_set("policy=write-around");
	crig_volume_set("id=1 name=a policy=write-through");
	for (unsigned at = 0; at < 3; at++) {
		leave();
		if (at > 0)
			claim(s);
		crig_kill();
		if (at > 1)
			assert_int_equal(xseg_plug_cancel(crig.seg, c, NULL), 0);
		assert_int_equal(crig_open(""), 0);
		crig_pass(20 * CRIG_MS);
		if (xseg_turn(upper) == XSEG_TURN_ASKED)
			hold_and_settle();
		if (route(u) == s)
			enter();
		is_on_the_path();
		assert_true(crig_admin("status") > 0 && crig_says("policy=write-around\n"));
		assert_true(crig_admin("volume-get id=1") > 0 && crig_says("policy=write-through"));
	}
}

/* As a route that was changed by hand: others may have written to the store. */
static void go_on_without_it(void)
{
	assert_int_equal(xseg_route_set(crig.seg, c, XSEG_NONE), 0);
	assert_int_equal(xseg_route_claim(crig.seg, c, s), 0);
}

static void clean_data_of_another_epoch_is_dropped(void **state)
{
	(void)state;
	up("");
	crig_have_clean("a", 0, B(4), 1);
	crig_kill();
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_counter(CC_USED_BYTES), B(4));	/* warm */
	crig_kill();
	go_on_without_it();
	crig_store_fill("a", 0, B(4), 2);
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	assert_int_equal(crig_counter(CC_USED_BYTES), 0);
	crig_expect_data("a", 0, B(4), 2);
}

static void dirty_data_of_another_epoch_refuses(void **state)
{
	uint64_t epoch;

	(void)state;
	up("");
	crig_expect(crig_write("a", 0, B(4), 1), B(4));
	crig_kill();
	go_on_without_it();
	assert_int_equal(crig_open(""), -EBUSY);
	if (!crig_says("16 KiB of dirty data") || !crig_says("was written to without it"))
		fail_msg("it says '%s'", crig.text);
	/* nothing is lost by that */
	epoch = route_epoch(atomic_load(&crig.seg->peers[c].route)) - 2;
	xs_keep(crig.seg, c, XS_KEPT_ROUTE, route_word(s, epoch));
	assert_int_equal(crig_open(""), 0);
	crig_settle();
	crig_expect_data("a", 0, B(4), 1);
}

/* ---- several upper peers ---- */

static struct xseg_peer *second;

static void up_with_second(void)
{
	struct xseg_peer_params params = { .name = "second", .kind = "beside", .nr_ports = 1 };

	up("");
	assert_int_equal(xseg_peer_open(crig.seg, &params, &second, NULL), 0);
	xseg_peer_serve(second);
	assert_int_equal(xseg_route_set(crig.seg, xseg_peer_index(second), c), 0);
}

static int down_with_second(void **state)
{
	xseg_peer_close(second, XSEG_CLOSE_FREE_ARENA);
	return down(state);
}

static void it_leaves_when_the_last_of_them_holds(void **state)
{
	(void)state;
	up_with_second();
	crig_expect(crig_write("a", 0, B(8), 1), B(8));
	unplug();
	state_is(PLUG_CALLING);
	hold_and_settle();
	state_is(PLUG_CALLING);
	crig_expect_data("a", 0, B(8), 1);		/* it serves */
	assert_int_equal(xseg_turn(second), XSEG_TURN_ASKED);
	xseg_turn_hold(second);
	crig_pass(20 * CRIG_MS);
	is_off_the_path();
	assert_int_equal(route(xseg_peer_index(second)), s);
	assert_int_equal(xseg_turn(second), XSEG_TURN_NONE);
	assert_true(crig_stable("a", 0, B(8), 1));
}

/* As a process that was stopped: it holds, or answers, when that goes on. */
static void others_go_on_while_one_of_them_stands_still(void **state)
{
	(void)state;
	up_with_second();
	unplug();
	hold_and_settle();
	crig_pass(1100 * CRIG_MS);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	assert_int_equal(xseg_turn(second), XSEG_TURN_NONE);
	crig_pass(3000 * CRIG_MS);
	assert_int_equal(xseg_turn(upper), XSEG_TURN_NONE);
	crig_pass(1500 * CRIG_MS);
	hold_and_settle();
	state_is(PLUG_CALLING);
	crig_pass(1200 * CRIG_MS);		/* they wait twice as long now */
	assert_int_equal(xseg_turn(upper), XSEG_TURN_HELD);
	xseg_turn_hold(second);
	crig_pass(20 * CRIG_MS);
	is_off_the_path();
}

/* Alone it stops nobody else, however long it takes. */
static void a_single_one_is_waited_for(void **state)
{
	(void)state;
	up("");
	unplug();
	crig_pass(10000 * CRIG_MS);
	hold_and_settle();
	is_off_the_path();
}

#define T(name) cmocka_unit_test_teardown(name, down)
#define TWO(name) cmocka_unit_test_teardown(name, down_with_second)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(it_flushes_makes_that_stable_and_forgets_all),
		T(writes_wait_for_the_store_while_it_leaves),
		T(it_does_not_call_before_the_store_has_all),
		T(what_is_set_while_it_drains_does_not_end_that),
		T(it_stays_while_the_store_fails_to_make_it_stable),
		T(so_it_does_when_it_is_to_stop_too),
		T(a_flush_of_an_attempt_that_was_taken_back_does_not_count),
		T(it_does_not_stop_before_a_flush_of_its_own_is_answered),
		T(it_waits_for_a_read_that_it_sent_on),
		T(what_was_answered_with_an_error_does_not_keep_it_on_the_path),
		T(the_upper_peer_goes_on_when_something_is_dirty_after_all),
		T(nor_does_it_leave_before_all_is_dirty_that_a_failure_made_so),
		T(requests_that_come_while_it_proves_are_answered_when_it_knows),
		T(it_is_taken_back_in_every_state),
		T(it_sees_what_the_store_got_without_it),
		T(entering_is_taken_back),
		T(one_that_was_entering_does_not_begin_where_its_option_says),
		T(a_successor_goes_on_leaving),
		T(a_successor_off_the_path_stays_there_and_is_empty),
		T(a_successor_off_the_path_takes_no_route_that_is_free),
		T(what_was_set_survives_a_kill_off_the_path),
		T(clean_data_of_another_epoch_is_dropped),
		T(dirty_data_of_another_epoch_refuses),
		TWO(it_leaves_when_the_last_of_them_holds),
		TWO(others_go_on_while_one_of_them_stands_still),
		T(a_single_one_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
