/* near_test - requests between ports of one thread (xseg/near.c): they are received without a lane,
 * and none is lost when a port leaves.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

/* Between client and server stands a forwarder; he and the server are one thread's. */
static struct xseg_peer *forwarder;
static struct xport *f;
static uint32_t to_f;
static struct xseg_near *near;

static int setup_near(void **state)
{
	setup_pair(state);
	forwarder = segrig_server(seg, "volumed", 1, 16);
	f = segrig_port(forwarder);
	to_f = xseg_peer_index(forwarder);
	near = xseg_near_create(seg);
	assert_non_null(near);
	assert_int_equal(xseg_near_add(near, f), 0);
	assert_int_equal(xseg_near_add(near, s), 0);
	return 0;
}

static int teardown_near(void **state)
{
	int rc;

	if (forwarder)
		close_peer(forwarder);
	rc = teardown(state);
	xseg_near_destroy(near);
	return rc;
}

/* The client's, when the forwarder has sent it on and rung for nobody. */
static struct xreq *sent_on(void)
{
	struct xreq *r = segrig_alloc(c, XSEG_OP_WRITE, 0, 1);

	segrig_submit(c, r, to_f);
	r = segrig_request(f);
	xseg_req_set_target(r, "vol.1", 5);
	r->obj_offset = 512;
	assert_int_equal(xseg_req_forward(f, r, to), 0);
	return r;
}

static bool has_lane(struct xport *receiver, struct xport *sender)
{
	return atomic_load(&seg->ports[receiver->index].lane[QUEUE_REQUEST][sender->index]) != 0;
}

static void end_all(uint32_t nr)
{
	while (nr-- > 0)
		xseg_req_free(c, segrig_reply(c));
}

static void what_is_sent_on_is_received_without_a_lane(void **state)
{
	struct xreq *r = sent_on();
	uint32_t seq = place_seq(r->place), index = r->index;
	uint64_t place;

	(void)state;
	assert_true(xseg_port_has_work(s));
	assert_true(xs_port_peek(s));
	r = segrig_request(s);
	place = segrig_place(seg, r);
	assert_int_equal(r->index, index);
	assert_int_equal(place_state(place), XSEG_REQ_AT);
	assert_int_equal(place_port(place), s->index);
	assert_int_equal(place_gen(place), s->generation);
	assert_int_equal(place_seq(place), seq + 1);
	assert_int_equal(r->place, place);
	assert_int_equal(r->via, f->index + 1);
	assert_int_equal(r->obj_offset, 512);
	assert_string_equal(r->target, "vol.1");
	assert_string_equal(seg->reqs[index].target, "vol.1");
	assert_false(has_lane(s, f));
	segrig_nothing(s);
	assert_false(xseg_port_has_work(s));
	segrig_answer(s, r, 4096);
	end_all(1);
}

static void a_request_of_its_own_goes_the_same_way(void **state)
{
	struct xreq *r = segrig_alloc(f, XSEG_OP_WRITE, 0, 1);

	(void)state;
	assert_int_equal(xseg_req_submit(f, r, to), 0);
	r = segrig_request_is(s, r);
	assert_false(has_lane(s, f));
	segrig_answer(s, r, 4096);
	r = segrig_reply(f);
	assert_int_equal(r->result, 4096);
	xseg_req_free(f, r);
}

static void order_is_kept(void **state)
{
	uint32_t index[8];

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		index[i] = sent_on()->index;
	for (uint32_t i = 0; i < 8; i++) {
		struct xreq *r = segrig_request(s);

		assert_int_equal(r->index, index[i]);
		segrig_answer(s, r, 0);
	}
	end_all(8);
}

/* One at a time from both: neither waits for the other to have nothing. */
static void lanes_and_ports_of_the_thread_take_turns(void **state)
{
	uint32_t from_lane = 0, from_near = 0;

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		sent_on();
		segrig_submit(c, segrig_alloc(c, XSEG_OP_WRITE, 0, 1), to);
	}
	for (uint32_t i = 0; i < 6; i++) {
		struct xreq *r = segrig_request(s);

		from_near += r->via == f->index + 1;
		from_lane += r->via == c->index + 1;
		segrig_answer(s, r, 0);
	}
	assert_int_equal(from_near, 3);
	assert_int_equal(from_lane, 3);
	for (uint32_t i = 0; i < 6; i++)
		segrig_answer(s, segrig_request(s), 0);
	end_all(12);
}

/* It may be another process that opens it next, and takes over what it has: so who accepts needs
 * the compare-and-swap. */
static void what_was_sent_by_who_has_left_goes_by_a_lane(void **state)
{
	struct xreq *own = segrig_alloc(f, XSEG_OP_WRITE, 0, 1), *r;
	uint32_t first = sent_on()->index, second;

	(void)state;
	assert_int_equal(xseg_req_submit(f, own, to), 0);
	second = sent_on()->index;
	close_peer(forwarder);
	forwarder = NULL;
	assert_false(xs_near_has(s));
	close_peer(server);
	server_open(1);
	r = segrig_request(s);
	assert_int_equal(r->index, first);
	segrig_answer(s, r, 0);
	segrig_answer(s, segrig_request(s), 0);
	r = segrig_request(s);
	assert_int_equal(r->index, second);
	segrig_answer(s, r, 0);
	segrig_nothing(s);
	end_all(2);
}

static void what_others_have_sent_stays_when_one_leaves(void **state)
{
	struct xseg_peer *another = segrig_server(seg, "another", 1, 4);
	struct xport *a = segrig_port(another);
	struct xreq *r = segrig_alloc(a, XSEG_OP_WRITE, 0, 1);

	(void)state;
	assert_int_equal(xseg_near_add(near, a), 0);
	sent_on();
	assert_int_equal(xseg_req_submit(a, r, to), 0);
	sent_on();
	close_peer(forwarder);
	forwarder = NULL;
	assert_int_equal(s->near_tail - s->near_head, 1);
	for (uint32_t i = 0; i < 3; i++)
		segrig_answer(s, segrig_request(s), 0);
	end_all(2);
	xseg_req_free(a, segrig_reply(a));
	close_peer(another);
}

/* A successor in this process has what its predecessor had sent on, and sends it again. */
static void what_a_successor_took_over_is_not_received_by_the_old_offer(void **state)
{
	struct segrig_taken taken = { .nr = 0 };
	struct xreq *r = sent_on();
	uint32_t index = r->index;

	(void)state;
	close_peer(forwarder);
	forwarder = segrig_open(seg, "volumed", 1, 16);
	f = segrig_port(forwarder);
	assert_int_equal(xseg_near_add(near, f), 0);
	xseg_peer_recover(forwarder, segrig_take, &taken);
	xseg_peer_serve(forwarder);
	assert_int_equal(taken.nr, 1);
	segrig_nothing(s);
	assert_int_equal(xseg_req_forward(f, taken.r[0], to), 0);
	r = segrig_request(s);
	assert_int_equal(r->index, index);
	segrig_nothing(s);
	segrig_answer(s, r, 0);
	end_all(1);
	assert_int_equal(segrig_bad(seg), 0);
}

static void who_leaves_has_what_was_sent_to_it_go_to_its_successor(void **state)
{
	uint32_t first = sent_on()->index, second = sent_on()->index;
	struct xreq *r;

	(void)state;
	close_peer(server);
	server_open(1);
	r = segrig_request(s);
	assert_int_equal(r->index, first);
	segrig_answer(s, r, 0);
	r = segrig_request(s);
	assert_int_equal(r->index, second);
	segrig_answer(s, r, 0);
	/* it has not joined them */
	sent_on();
	segrig_nothing(s);
	xseg_port_flush(f);
	segrig_answer(s, segrig_request(s), 0);
	end_all(3);
}

static void what_was_sent_to_who_is_killed_is_found_by_its_place(void **state)
{
	struct segrig_taken taken = { .nr = 0 };

	(void)state;
	sent_on();
	abandon(server);
	abandon(forwarder);
	server_open(1);
	forwarder = segrig_open(seg, "volumed", 1, 16);
	f = segrig_port(forwarder);
	segrig_nothing(s);
	xseg_peer_recover(forwarder, segrig_take, &taken);
	xseg_peer_serve(forwarder);
	assert_int_equal(taken.nr, 1);
	assert_int_equal(xseg_req_forward(f, taken.r[0], to), 0);
	xseg_port_flush(f);
	segrig_answer(s, segrig_request(s), 0);
	end_all(1);
}

static void when_the_ring_is_full_it_goes_by_a_lane(void **state)
{
	struct xreq *r;

	(void)state;
	s->near_head -= s->near_mask + 1;	/* offers that are of no request any more */
	memset(s->near_ring, 0, ((size_t)s->near_mask + 1) * sizeof(*s->near_ring));
	r = sent_on();
	assert_true(has_lane(s, f));
	xseg_port_flush(f);
	segrig_answer(s, segrig_request_is(s, r), 0);
	end_all(1);
}

static void a_port_joins_once_and_where_its_segment_is(void **state)
{
	struct xseg *other = segrig_private();
	struct xseg_near *others = xseg_near_create(other), *more = xseg_near_create(seg);

	(void)state;
	assert_int_equal(xseg_near_add(near, s), -EINVAL);
	assert_int_equal(xseg_near_add(more, s), -EINVAL);
	assert_int_equal(xseg_near_add(others, c), -EINVAL);
	xseg_near_destroy(more);
	xseg_near_destroy(others);
	xseg_detach(other);
}

#define N(name) cmocka_unit_test_setup_teardown(name, setup_near, teardown_near)

int main(void)
{
	const struct CMUnitTest tests[] = {
		N(what_is_sent_on_is_received_without_a_lane),
		N(a_request_of_its_own_goes_the_same_way),
		N(order_is_kept),
		N(lanes_and_ports_of_the_thread_take_turns),
		N(what_was_sent_by_who_has_left_goes_by_a_lane),
		N(what_others_have_sent_stays_when_one_leaves),
		N(what_a_successor_took_over_is_not_received_by_the_old_offer),
		N(who_leaves_has_what_was_sent_to_it_go_to_its_successor),
		N(what_was_sent_to_who_is_killed_is_found_by_its_place),
		N(when_the_ring_is_full_it_goes_by_a_lane),
		N(a_port_joins_once_and_where_its_segment_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
