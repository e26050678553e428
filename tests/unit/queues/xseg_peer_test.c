/* xseg_peer_test - registering, taking over, leaving and sweeping (xseg/peer.c, sweep.c): the
 * dead's remains come back, once, and all of them.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void a_server_opens_then_serves_then_stops(void **state)
{
	struct xseg_peer *peer = segrig_open(seg, "memd", 2, 16);
	struct xseg_peer_info info;

	(void)state;
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_OPENING);
	assert_int_equal(xseg_peer_index(peer), xseg_peer_find(seg, "memd"));
	assert_int_equal(xseg_peer_before(peer), XSEG_PEER_FREE);
	assert_int_equal(xseg_peer_nr_ports(peer), 2);
	assert_null(xseg_peer_port(peer, 2));
	assert_ptr_equal(xseg_peer_segment(peer), seg);
	assert_ptr_equal(xseg_port_peer(xseg_peer_port(peer, 1)), peer);
	xseg_peer_serve(peer);
	assert_true(xseg_peer_get_info(seg, xseg_peer_index(peer), &info));
	assert_int_equal(info.state, XSEG_PEER_LIVE);
	assert_string_equal(info.name, "memd");
	assert_string_equal(info.kind, "memd");
	assert_int_equal(strncmp(info.member_label, program_invocation_short_name, 15), 0);
	assert_int_equal(info.pid, getpid());
	assert_int_equal(info.nr_ports, 2);
	assert_int_equal(info.downstream, XSEG_NONE);
	assert_int_equal(info.arena_bytes, 0);
	close_peer(peer);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_STOPPED);
	assert_false(xseg_peer_get_info(seg, 16, &info));
	assert_false(xseg_peer_get_info(seg, XSEG_NONE, &info));
}

/* Which of its ports a hash leads to. */
static uint32_t led_to(struct xseg_peer *peer, uint32_t hash)
{
	int port = xs_route_port(seg, xseg_peer_index(peer), (uint64_t)hash << 32);

	for (uint32_t i = 0; i < peer->nr_ports; i++)
		if ((int)peer->port[i].index == port)
			return i;
	fail();
	return 0;
}

static void a_port_has_those_sent_elsewhere_whom_a_hash_leads_to_it(void **state)
{
	struct xseg_peer *peer = segrig_open(seg, "memd", 3, 16);
	struct xport *port = peer->port;

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(led_to(peer, i), i % 3);
	xseg_port_steer(&port[1], &port[2]);
	assert_int_equal(led_to(peer, 1), 2);
	assert_int_equal(led_to(peer, 0), 0);
	assert_int_equal(led_to(peer, 2), 2);
	/* one step, not two */
	xseg_port_steer(&port[2], &port[0]);
	assert_int_equal(led_to(peer, 1), 2);
	assert_int_equal(led_to(peer, 2), 0);
	xseg_port_steer(&port[2], &port[2]);
	assert_int_equal(led_to(peer, 2), 2);
	/* what it does not have does not matter */
	for (uint32_t word = 4; word; word <<= 1) {
		atomic_store(&port[1].sh->steer, word);
		assert_int_equal(led_to(peer, 1), 1);
	}
	xseg_port_steer(&port[1], &port[0]);
	close_peer(peer);
	peer = segrig_open(seg, "memd", 3, 16);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(led_to(peer, i), i);
	close_peer(peer);
}

static void a_client_is_live_at_once_and_leaves_nothing(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);
	uint32_t pages[XSEG_EXTENT_PAGES];

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		client_open(16);
		assert_int_equal(segrig_state(seg, "me"), XSEG_PEER_LIVE);
		assert_int_equal(xseg_pages_take(client, 1, pages), 0);
		assert_non_null(xseg_req_alloc(c));
		close_peer(client);
		assert_int_equal(xseg_peer_find(seg, "me"), XSEG_NONE);
		segrig_same(seg, &before);
	}
}

static void wrong_names_kinds_and_port_counts_are_refused(void **state)
{
	(void)state;
	assert_int_equal(segrig_open_fails(seg, "", "memd", 1, 0), -EINVAL);
	assert_int_equal(segrig_open_fails(seg, "a b", "memd", 1, 0), -EINVAL);
	assert_int_equal(segrig_open_fails(seg, "memd", "a_kind_of_16_char", 1, 0), -EINVAL);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 0, 0), -EINVAL);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 17, 0), -EINVAL);
}

static void a_living_name_and_a_name_of_another_kind_are_refused(void **state)
{
	(void)state;
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 1, 0), -EEXIST);
	assert_int_equal(segrig_open_fails(seg, "me", "client", 1, 0), -EEXIST);
	close_peer(server);
	assert_int_equal(segrig_open_fails(seg, "memd", "filed", 1, 0), -EEXIST);
}

static void what_does_not_fit_is_refused_and_takes_nothing(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);
	struct xseg_peer *peer[16];
	char name[16];

	(void)state;
	assert_int_equal(segrig_open_fails(seg, "big", "memd", 1, 65), -ENOSPC);
	assert_int_equal(segrig_open_fails(seg, "big", "memd", 5, 16), -ENOSPC);
	assert_int_equal(segrig_open_fails(seg, "big", "memd", 1, UINT32_MAX), -ENOSPC);
	segrig_same(seg, &before);
	for (unsigned i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		peer[i] = segrig_client(seg, name, i < 4 ? 16 : 0);
	}
	assert_int_equal(segrig_open_fails(seg, "late", "client", 1, 0), -ENOSPC);
	close_peer(peer[1]);
	assert_int_equal(segrig_open_fails(seg, "late", "client", 2, 0), -ENOSPC);
	assert_int_equal(segrig_open_fails(seg, "late", "client", 1, 17), -ENOSPC);
	peer[1] = segrig_client(seg, "late", 16);
	for (unsigned i = 0; i < 16; i++)
		close_peer(peer[i]);
	segrig_same(seg, &before);
}

static void a_successor_gets_ports_words_route_and_a_later_generation(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "volumed", 2, 16);
	uint32_t port[2] = { peer->port[0].index, peer->port[1].index }, gen = peer->generation;

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		xseg_peer_user_set(peer, i, i * 77);
	assert_int_equal(xseg_peer_user(peer, 8), 0);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(peer), to), 0);
	for (unsigned kill = 0; kill < 2; kill++) {
		if (kill)
			abandon(peer);
		else
			close_peer(peer);
		assert_int_equal(segrig_state(seg, "volumed"),
			kill ? XSEG_PEER_DEAD : XSEG_PEER_STOPPED);
		peer = segrig_server(seg, "volumed", 2, 16);
		assert_int_equal(xseg_peer_before(peer), kill ? XSEG_PEER_DEAD : XSEG_PEER_STOPPED);
		assert_int_equal(peer->port[0].index, port[0]);
		assert_int_equal(peer->port[1].index, port[1]);
		assert_true(peer->generation > gen);
		gen = peer->generation;
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(xseg_peer_user(peer, i), i * 77);
		assert_int_equal(xseg_route(peer, NULL), to);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(xseg_port_nr_free(&peer->port[i]), 16);
	}
	close_peer(peer);
}

static void a_successor_may_have_more_ports_and_never_fewer(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "memd", 2, 16);
	uint32_t first = peer->port[0].index;

	(void)state;
	close_peer(peer);
	peer = segrig_server(seg, "memd", 3, 16);
	assert_int_equal(xseg_peer_nr_ports(peer), 3);
	assert_int_equal(peer->port[0].index, first);
	abandon(peer);
	peer = segrig_server(seg, "memd", 1, 16);
	assert_int_equal(xseg_peer_nr_ports(peer), 3);
	close_peer(peer);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 16, 16), -ENOSPC);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_STOPPED);
	peer = segrig_server(seg, "memd", 1, 0);
	assert_true(xseg_peer_nr_ports(peer) >= 3);
	close_peer(peer);
}

static void a_successor_takes_over_started_then_applied_then_waiting_requests(void **state)
{
	uint32_t gen = server->generation;
	struct xreq *r[10], *out[10];
	struct segrig_taken t = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		r[i] = segrig_send(c, XSEG_OP_WRITE, i * XSEG_PAGE_SIZE, to);
	assert_int_equal(xseg_port_receive(s, out, 8), 8);
	for (unsigned i = 0; i < 6; i++)
		xseg_req_start(s, out[i]);
	for (unsigned i = 0; i < 3; i++)
		xseg_req_apply(s, out[i]);
	xseg_req_answer(s, out[0], 4096);	/* never published */
	r[8] = segrig_send(c, XSEG_OP_WRITE, 8 * XSEG_PAGE_SIZE, to);
	abandon(server);

	server = segrig_open(seg, "memd", 1, 0);
	s = segrig_port(server);
	assert_int_equal(xseg_peer_orphans(server), 0);
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 7);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(t.state[i],
			i < 3 ? XSEG_REQ_STARTED : i < 5 ? XSEG_REQ_APPLIED : XSEG_REQ_AT);
		assert_ptr_equal(t.port[i], s);
		assert_true(server->generation > gen);
		assert_int_equal(place_gen(t.r[i]->place), server->generation);
		assert_int_equal(t.r[i]->size, XSEG_PAGE_SIZE);
	}
	r[0] = segrig_reply_is(c, r[0]);
	assert_int_equal(r[0]->result, 4096);
	xseg_peer_serve(server);
	r[8] = segrig_request_is(s, r[8]);
	xseg_req_answer(s, r[8], 4096);
	for (unsigned i = 0; i < 7; i++)
		xseg_req_answer(s, t.r[i], 4096);
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 10), 8);
	segrig_nothing(c);
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_stopped_server_leaves_its_requests_to_its_successor_too(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to);
	struct segrig_taken t = { 0 };

	(void)state;
	segrig_request_is(segrig_port(server), r);
	close_peer(server);
	server = segrig_open(seg, "memd", 1, 0);
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 1);
	xseg_peer_serve(server);
	segrig_answer(t.port[0], t.r[0], 4096);
	xseg_req_free(c, segrig_reply(c));
}

/* Places have 20 bits of a generation, and clients count too. */
static void what_is_left_of_a_generation_that_would_come_again_is_taken_over(void **state)
{
	uint32_t gen = server->generation;
	struct segrig_taken t = { 0 };

	(void)state;
	segrig_request_is(s, segrig_send(c, XSEG_OP_WRITE, 0, to));
	abandon(server);
	server_open(1);				/* takes nothing over, and leaves another one */
	segrig_request_is(s, segrig_send(c, XSEG_OP_WRITE, 0, to));
	abandon(server);
	atomic_store(&seg->super->generation, gen + (1u << 20) - 1);
	server = segrig_open(seg, "memd", 1, 0);
	assert_int_equal(server->generation, gen + (1u << 20) + 2);
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 2);
	for (unsigned i = 0; i < 2; i++) {
		segrig_answer(t.port[i], t.r[i], 4096);
		xseg_req_free(c, segrig_reply(c));
	}
}

static void a_recovery_that_is_killed_is_begun_again_three_deep(void **state)
{
	struct segrig_taken t = { 0 };
	struct xreq *out[16];

	(void)state;
	client_open(16);
	server_open(2);
	for (unsigned i = 0; i < 12; i++)
		segrig_send(c, XSEG_OP_WRITE, i * XSEG_PAGE_SIZE, to);
	for (unsigned i = 0; i < 2; i++)
		xseg_port_receive(xseg_peer_port(server, i), out, 16);
	for (unsigned depth = 0; depth < 3; depth++) {
		t.nr = 0;
		abandon(server);
		server = segrig_open(seg, "memd", 2, 0);
		xseg_peer_recover(server, segrig_take, &t);
		assert_int_equal(t.nr, 12 - depth);
		for (unsigned i = 0; i < t.nr; i++)
			if (t.state[i] == XSEG_REQ_AT)
				xseg_req_start(t.port[i], t.r[i]);
		segrig_answer(t.port[0], t.r[0], 4096);
		xseg_req_free(c, segrig_reply(c));
	}
	assert_int_equal(xseg_port_nr_free(c), 7);
	abandon(server);
	server = segrig_open(seg, "memd", 2, 0);
	t.nr = 0;
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 9);
	xseg_peer_recover(server, segrig_take, &t);	/* what it has now it is not given again */
	assert_int_equal(t.nr, 9);
	for (unsigned i = 0; i < t.nr; i++)
		segrig_answer(t.port[i], t.r[i], 4096);
	assert_int_equal(xseg_port_replies(c, out, 16), 9);
	pair_close();
	assert_int_equal(segrig_bad(seg), 0);
}

static void what_a_dead_server_left_damaged_is_answered_eproto(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to);
	struct segrig_taken t = { 0 };

	(void)state;
	r = segrig_request_is(segrig_port(server), r);
	seg->reqs[r->index].page[0].page = 0xffffff;
	abandon(server);
	server = segrig_open(seg, "memd", 1, 0);
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 0);
	r = segrig_reply(c);
	assert_int_equal(r->result, -EPROTO);
	assert_int_equal(segrig_bad(seg), 1);
}

static void a_successor_waits_for_what_its_predecessor_has_at_others(void **state)
{
	struct xseg_peer *upper = segrig_server(seg, "volumed", 1, 16);
	struct xreq *r[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		r[i] = segrig_send(segrig_port(upper), XSEG_OP_WRITE, 0, to);
	for (unsigned i = 0; i < 3; i++)
		r[i] = segrig_request_is(s, r[i]);
	xseg_req_start(s, r[1]);
	xseg_req_answer(s, r[2], 4096);
	assert_non_null(xseg_req_alloc(segrig_port(upper)));
	abandon(upper);

	upper = segrig_open(seg, "volumed", 1, 16);
	assert_int_equal(xseg_peer_orphans(upper), 2);
	assert_int_equal(xseg_port_nr_free(segrig_port(upper)), 14);
	segrig_answer(s, r[0], 4096);
	assert_int_equal(xseg_peer_orphans(upper), 1);
	segrig_answer(s, r[1], 4096);
	assert_int_equal(xseg_peer_orphans(upper), 0);
	assert_int_equal(xseg_port_nr_free(segrig_port(upper)), 16);
	xseg_peer_serve(upper);
	segrig_nothing(segrig_port(upper));
	segrig_nothing(s);			/* the offer of what came home is out of date */
	close_peer(upper);
	pair_close();
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_dead_client_is_swept_when_its_last_request_is_answered(void **state)
{
	struct segrig_accounts before;
	uint32_t pages[XSEG_EXTENT_PAGES];
	struct xreq *r[4];

	(void)state;
	server_open(1);
	before = segrig_accounts(seg);
	for (unsigned how = 0; how < 2; how++) {
		client_open(16);
		assert_int_equal(xseg_pages_take(client, 1, pages), 0);
		for (unsigned i = 0; i < 4; i++)
			r[i] = segrig_send(c, XSEG_OP_WRITE, 0, to);
		for (unsigned i = 0; i < 3; i++)
			r[i] = segrig_request_is(s, r[i]);
		xseg_req_start(s, r[1]);
		segrig_answer(s, r[2], 4096);
		if (how)
			abandon(client);
		else
			close_peer(client);
		assert_int_equal(segrig_state(seg, "me"), XSEG_PEER_DEAD);
		assert_int_equal(xseg_sweep(seg), 0);
		assert_int_equal(segrig_accounts(seg).free_extents, before.free_extents - 1);
		segrig_answer(s, r[0], 4096);
		assert_int_equal(xseg_sweep(seg), 0);
		segrig_answer(s, r[1], 4096);
		assert_int_equal(xseg_sweep(seg), 1);
		assert_int_equal(xseg_sweep(seg), 0);
		segrig_same(seg, &before);
		segrig_nothing(s);
	}
	close_peer(server);
	assert_int_equal(segrig_bad(seg), 0);
}

static void the_name_of_a_dead_client_is_free_once_it_has_nothing_out(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to);

	(void)state;
	r = segrig_request_is(s, r);
	abandon(client);
	assert_int_equal(segrig_open_fails(seg, "me", "client", 1, 16), -EEXIST);
	segrig_answer(s, r, 4096);
	client_open(16);
	segrig_nothing(c);
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void who_leaves_without_the_control_lock_is_left_to_a_sweep_or_a_successor(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);
	struct xseg_peer *peer = segrig_server(seg, "filed", 1, 16);
	uint32_t pages[XSEG_EXTENT_PAGES], index = xseg_peer_index(peer);
	struct segrig_accounts with;
	uint64_t bytes = 4096;
	void *base;
	bool fresh;

	(void)state;
	assert_int_equal(xseg_arena_open(peer, &bytes, &base, &fresh, NULL), 0);
	client_open(16);
	assert_int_equal(xseg_pages_take(client, 1, pages), 0);
	with = segrig_accounts(seg);
	segrig_descriptors(false);
	xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
	close_peer(client);
	segrig_descriptors(true);
	segrig_same(seg, &with);
	assert_int_equal(segrig_state(seg, "filed"), XSEG_PEER_DEAD);
	assert_int_equal(segrig_state(seg, "me"), XSEG_PEER_DEAD);
	assert_int_equal(xseg_sweep(seg), 1);
	assert_int_equal(xseg_peer_find(seg, "me"), XSEG_NONE);
	assert_int_equal(xseg_peer_forget(seg, index), 0);
	segrig_same(seg, &before);
}

static bool is_gone(const char *name)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(seg, xseg_peer_find(seg, name), &info));
	return xseg_peer_is_gone(seg, &info);
}

static void *start_it_again(void *arg)
{
	usleep(50000);
	return segrig_server(arg, "again", 1, 0);
}

static void a_stopped_peer_is_given_time_to_return_under_a_supervisor(void **state)
{
	struct xseg_peer *peer;
	struct xseg_peer_info info;
	struct xseg *his;
	pthread_t thread;
	uint32_t index;
	void *again;

	(void)state;
	xseg_detach(seg);
	his = segrig_attach(segrig_named(&seg));
	peer = segrig_server(seg, "again", 1, 0);
	index = xseg_peer_index(peer);
	close_peer(peer);
	/* without a supervisor nobody starts it: a limit without an end is no wait */
	assert_true(xseg_peer_get_settled(seg, index, UINT64_MAX, &info));
	assert_int_equal(info.state, XSEG_PEER_STOPPED);
	assert_int_equal(xseg_supervisor_lock(his), 0);
	assert_true(xseg_peer_get_settled(seg, index, 1000000, &info));
	assert_int_equal(info.state, XSEG_PEER_STOPPED);
	assert_int_equal(pthread_create(&thread, NULL, start_it_again, his), 0);
	assert_true(xseg_peer_get_settled(seg, index, UINT64_MAX, &info));
	assert_true(xseg_peer_is_up(info.state));
	pthread_join(thread, &again);
	close_peer(again);
	xseg_detach(his);
}

static void a_dead_peer_is_gone_if_the_supervisor_leaves_it_dead_or_is_dead(void **state)
{
	struct xseg_peer *again, *left, *super;
	struct xseg *his;
	uint32_t index;

	(void)state;
	xseg_detach(seg);
	his = segrig_attach(segrig_named(&seg));
	again = segrig_server(seg, "again", 1, 0);
	left = segrig_server(seg, "left", 1, 0);
	index = xseg_peer_index(left);
	xseg_peer_close(again, XSEG_CLOSE_ABANDON);
	xseg_peer_close(left, XSEG_CLOSE_ABANDON);
	assert_true(is_gone("again") && is_gone("left"));
	assert_int_equal(xseg_supervisor_lock(his), 0);
	assert_false(is_gone("again") || is_gone("left"));
	assert_int_equal(xseg_peer_open(his,
				 &(struct xseg_peer_params){
					 .name = "super",
					 .kind = XSEG_SUPERVISOR_KIND,
					 .nr_ports = 1 },
				 &super, NULL),
		0);
	xseg_peer_user_set(
		super, XSEG_SUPERVISOR_WORD_LEFT + index / 64, UINT64_C(1) << index % 64);
	assert_false(is_gone("again") || is_gone("left"));
	xseg_peer_serve(super);
	assert_true(is_gone("left"));
	assert_false(is_gone("again"));
	left = segrig_server(seg, "left", 1, 0);
	assert_false(is_gone("left"));
	close_peer(left);
	xseg_peer_close(super, XSEG_CLOSE_ABANDON);
	assert_false(is_gone("again"));
	xseg_detach(his);
	assert_true(is_gone("again"));
}

static void an_offer_of_a_swept_client_does_not_hurt_the_next_owner_of_its_requests(void **state)
{
	struct xreq *r;

	(void)state;
	segrig_send(c, XSEG_OP_WRITE, 0, to);
	abandon(client);
	assert_int_equal(xseg_sweep(seg), 1);
	client = segrig_client(seg, "new", 16);
	c = segrig_port(client);
	r = xseg_req_alloc(c);
	segrig_nothing(s);
	segrig_submit(c, r, to);
	segrig_answer(s, segrig_request(s), 0);
	xseg_req_free(c, segrig_reply(c));
}

static void a_sweep_that_was_killed_half_way_touches_no_port_that_has_a_new_owner(void **state)
{
	struct xseg_peer *dead = segrig_client(seg, "dead", 16);
	uint32_t port = segrig_port(dead)->index;
	struct xreq *r;

	(void)state;
	abandon(dead);
	xs_keep_port(seg, port, 0);	/* and there the sweeper died */
	client_open(16);
	assert_int_equal(c->index, port);
	r = xseg_req_alloc(c);
	assert_int_equal(xseg_sweep(seg), 1);
	assert_int_equal(place_state(segrig_place(seg, r)), XSEG_REQ_PRIVATE);
	xseg_req_free(c, r);
	assert_int_equal(atomic_load(&seg->ports[port].peer), xseg_peer_index(client) + 1);
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(client);
	assert_int_equal(xseg_peer_find(seg, "dead"), XSEG_NONE);
}

static void a_port_that_was_being_added_at_death_is_taken_up_again(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "memd", 2, 16);
	struct segrig_accounts before;
	uint32_t lost = peer->port[1].index;

	(void)state;
	before = segrig_accounts(seg);
	abandon(peer);
	atomic_store(&seg->peers[xseg_peer_find(seg, "memd")].nr_ports, 1);
	peer = segrig_server(seg, "memd", 2, 16);
	assert_int_equal(peer->port[1].index, lost);
	segrig_same(seg, &before);
	abandon(peer);
	atomic_store(&seg->peers[xseg_peer_find(seg, "memd")].nr_ports, 1);
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_find(seg, "memd")), 0);
	assert_int_equal(segrig_accounts(seg).free_ports, 16);
	assert_int_equal(segrig_accounts(seg).free_requests, 64);
}

static void routes_switch_with_an_epoch_and_make_no_loops(void **state)
{
	struct xseg_peer *p[4];
	uint64_t epoch, last;
	uint32_t i[4];

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		char name[4] = { 'p', (char)('0' + k) };

		p[k] = segrig_server(seg, name, 1, 0);
		i[k] = xseg_peer_index(p[k]);
	}
	assert_int_equal(xseg_route(p[0], &last), XSEG_NONE);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(xseg_route_set(seg, i[k], i[k + 1]), 0);
	assert_int_equal(xseg_route(p[0], &epoch), i[1]);
	assert_true(epoch > last);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(xseg_route_set(seg, i[3], i[k]), -ELOOP);
	assert_int_equal(xseg_route(p[3], NULL), XSEG_NONE);
	assert_int_equal(xseg_route_set(seg, i[0], i[2]), 0);
	assert_int_equal(xseg_route(p[0], &last), i[2]);
	assert_true(last > epoch);
	assert_int_equal(xseg_route_set(seg, i[0], XSEG_NONE), 0);
	assert_int_equal(xseg_route(p[0], &epoch), XSEG_NONE);
	assert_true(epoch > last);
	assert_int_equal(xseg_route_set(seg, i[3], i[0]), 0);
	assert_int_equal(xseg_route_set(seg, i[0], i[1]), -ELOOP);
	assert_int_equal(xseg_route_set(seg, 15, i[0]), -ENOENT);
	assert_int_equal(xseg_route_set(seg, i[0], 15), -ENOENT);
	assert_int_equal(xseg_route_set(seg, 16, i[0]), -ENOENT);
	assert_int_equal(xseg_route_set(seg, i[0], 16), -ENOENT);
	for (unsigned k = 0; k < 4; k++)
		close_peer(p[k]);
}

static void a_peer_is_forgotten_only_when_nobody_needs_it(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);
	struct xseg_peer *upper = segrig_server(seg, "volumed", 1, 0);
	struct xseg_peer *lower = segrig_server(seg, "memd", 2, 16);
	uint32_t u = xseg_peer_index(upper), l = xseg_peer_index(lower);
	uint64_t bytes = 3 << 20;
	struct segrig_taken t = { 0 };
	bool fresh;
	void *base;

	(void)state;
	client_open(16);
	assert_int_equal(xseg_arena_open(lower, &bytes, &base, &fresh, NULL), 0);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	assert_int_equal(xseg_peer_forget(seg, l), -EBUSY);
	segrig_send(c, XSEG_OP_WRITE, 0, l);
	segrig_request(segrig_port(lower));
	close_peer(lower);
	assert_int_equal(xseg_peer_forget(seg, l), -ENOTEMPTY);
	assert_int_equal(xseg_route_set(seg, u, XSEG_NONE), 0);
	assert_int_equal(xseg_peer_forget(seg, l), -ENOTEMPTY);
	lower = segrig_open(seg, "memd", 1, 0);
	xseg_peer_recover(lower, segrig_take, &t);
	segrig_answer(t.port[0], t.r[0], 4096);
	abandon(lower);
	assert_int_equal(xseg_peer_forget(seg, l), 0);
	assert_int_equal(xseg_peer_forget(seg, l), -ENOENT);
	assert_int_equal(xseg_peer_forget(seg, 16), -ENOENT);
	assert_int_equal(xseg_peer_find(seg, "memd"), XSEG_NONE);
	close_peer(client);
	close_peer(upper);
	assert_int_equal(xseg_peer_forget(seg, u), 0);
	segrig_same(seg, &before);
}

static void a_peer_to_which_something_is_offered_is_not_forgotten(void **state)
{
	(void)state;
	segrig_send(c, XSEG_OP_WRITE, 0, to);
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), -ENOTEMPTY);
	server_open(1);
	segrig_answer(s, segrig_request(s), 0);
	xseg_req_free(c, segrig_reply(c));
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
}

/* While the server is dead it cannot be forgotten, as `sender` has sent it something and not
 * published that. Whoever had its ports next would be sent that, or nobody would. */
static void sent_by(struct xport *sender)
{
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), -ENOTEMPTY);
	server_open(1);
	xseg_port_flush(sender);
	segrig_answer(s, segrig_request(s), 4096);
	xseg_req_free(c, segrig_reply(c));
}

static void a_peer_to_which_something_is_sent_and_not_published_is_not_forgotten(void **state)
{
	struct xseg_peer *upper = segrig_server(seg, "volumed", 1, 0);
	struct xport *u = segrig_port(upper);

	(void)state;
	assert_int_equal(xseg_req_submit(c, segrig_alloc(c, XSEG_OP_WRITE, 0, 1), to), 0);
	sent_by(c);
	segrig_send(c, XSEG_OP_WRITE, 0, xseg_peer_index(upper));
	assert_int_equal(xseg_req_forward(u, segrig_request(u), to), 0);
	sent_by(u);
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
	close_peer(upper);
}

/* Nobody will take it, and nobody else may be there to sweep it away. */
static void what_dead_clients_have_sent_keeps_nobody_from_being_forgotten(void **state)
{
	struct xseg_peer *other = segrig_client(seg, "other", 16);

	(void)state;
	segrig_send(c, XSEG_OP_WRITE, 0, to);
	assert_int_equal(xseg_req_submit(segrig_port(other),
				 segrig_alloc(segrig_port(other), XSEG_OP_WRITE, 0, 1), to),
		0);
	abandon(client);
	abandon(other);
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
	server_open(1);
	segrig_nothing(s);
}

static void a_forgotten_name_begins_anew(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "memd", 2, 0);
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0);
	uint64_t epoch;

	(void)state;
	xseg_peer_user_set(peer, 3, 99);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(peer), xseg_peer_index(other)), 0);
	close_peer(peer);
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_find(seg, "memd")), 0);
	peer = segrig_server(seg, "memd", 1, 0);
	assert_int_equal(xseg_peer_nr_ports(peer), 1);
	assert_int_equal(xseg_peer_user(peer, 3), 0);
	assert_int_equal(xseg_route(peer, &epoch), XSEG_NONE);
	close_peer(peer);
	close_peer(other);
}

static void damaged_ports_refuse_the_open_and_crash_nobody(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "memd", 1, 16);
	struct xs_port *port = peer->port[0].sh;
	struct xs_peer *p = peer->sh;
	uint32_t right = p->port[0], index = peer->index, at = peer->port[0].index;
	uint32_t first = port->req_first;

	(void)state;
	close_peer(peer);
	/* and so their copies */
	p->port[0] = UINT16_MAX;
	xs_keep_lists(seg, index);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 1, 16), -EPROTO);
	p->port[0] = (uint16_t)((right + 1) % 16);
	xs_keep_lists(seg, index);
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 1, 16), -EPROTO);
	p->port[0] = (uint16_t)right;
	xs_keep_lists(seg, index);
	xs_keep_range(seg, at, first, UINT32_MAX);
	peer = segrig_server(seg, "memd", 1, 16);
	assert_null(xseg_req_alloc(segrig_port(peer)));
	assert_int_equal(xseg_peer_orphans(peer), 0);
	close_peer(segrig_client(seg, "me", 16));
	close_peer(peer);
	xs_keep_range(seg, at, first, 16);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_STOPPED);
}

static void a_client_leaves_as_one_whatever_its_entry_says(void **state)
{
	struct xseg_peer *me = segrig_client(seg, "me", 16);
	uint32_t index = me->index;

	(void)state;
	memset(me->sh->kind, 'y', sizeof(me->sh->kind));
	close_peer(me);
	assert_int_equal(peer_state(xs_peer_word(seg, index)), XSEG_PEER_FREE);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 1);
}

/* A port is added to a peer whose name and kind somebody has written over meanwhile. */
static void a_copy_is_made_of_no_word_that_was_read_back(void **state)
{
	struct xseg_peer *peer = segrig_server(seg, "memd", 1, 16);
	struct xs_peer *p = peer->sh;

	(void)state;
	memset(p->name, 'x', sizeof(p->name));
	memset(p->kind, 'y', sizeof(p->kind));
	p->port[0] = UINT16_MAX;
	xs_keep_listed(seg, peer->index, 1, 7);
	assert_string_equal(p->name, "memd");
	assert_string_equal(p->kind, "memd");
	assert_int_equal(p->port[0], peer->port[0].index);
	assert_int_equal(p->port[1], 7);
	p->kind[0] = 'y';
	assert_false(xs_kept_is_sound(seg, peer->index));
	close_peer(peer);
	assert_int_equal(xs_kept_look(seg, true, NULL, NULL), 1);
	assert_string_equal(p->kind, "memd");
}

/* Commands and peers that begin get them. */
static void clients_of_volumes_leave_a_reserve(void **state)
{
	static const struct {
		uint32_t ports, requests, clients, reserve_ports, reserve_requests;
		const char *want;
	} row[] = {
		{ 40, 640, 36, 4, 32, "no port left, as its last 4" },
		{ 16, 256, 14, 2, 32, "no port left, as its last 2" },
		{ 8, 511, 6, 2, 32, "no port left, as its last 2" },
		{ 7, 256, 7, 0, 0, "more ports" },
		{ 8, 240, 8, 0, 0, "more ports" },
		{ 40, 1024, 36, 4, 64, "no port left, as its last 4" },
		{ 4, 64, 4, 0, 0, "more ports" },
		{ 40, 256, 14, 4, 32, "the 4 requests left that this needs, as its last 32" },
	};
	static const struct xseg_peer_params of_command = {
		.name = "command",
		.kind = "client",
		.nr_ports = XSEG_COMMAND_PORTS,
		.nr_requests = XSEG_COMMAND_REQUESTS / XSEG_COMMAND_PORTS
	};
	struct xseg_peer *crowd[40], *command, *begins;
	struct xseg_error err;
	struct xseg_info info;
	char name[16];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct xseg *many = segrig_private_of(row[i].requests, row[i].ports);
		struct xseg_peer_params params = {
			.kind = "client", .nr_ports = 1, .nr_requests = 4, .leaves_reserve = true
		};
		uint32_t nr = 0;
		int rc = 0;

		for (;; nr++) {
			snprintf(name, sizeof(name), "io.%u", nr);
			params.name = name;
			xseg_get_info(many, &info);
			rc = xseg_peer_open(many, &params, &crowd[nr], &err);
			/* what is said to be free can be had, and nothing else */
			assert_int_equal(!rc, info.free_ports > 0 && info.largest_requests >= 4);
			if (rc)
				break;
		}
		assert_int_equal(rc, -ENOSPC);
		assert_non_null(strstr(err.text, row[i].want));
		assert_int_equal(nr, row[i].clients);
		assert_int_equal(info.free_ports + info.reserve_ports, row[i].ports - nr);
		assert_int_equal(info.reserve_ports, row[i].reserve_ports);
		assert_int_equal(info.reserve_requests, row[i].reserve_requests);
		/* each client has a unit, and the rest is counted whoever may have it */
		assert_int_equal(info.unowned_requests,
			(info.nr_requests / XSEG_REQUEST_UNIT - nr) * XSEG_REQUEST_UNIT);
		if (row[i].reserve_ports) {
			assert_int_equal(xseg_peer_open(many, &of_command, &command, &err), 0);
			xseg_peer_close(command, XSEG_CLOSE_FREE_ARENA);
			begins = segrig_server(many, "memd", 1, 16);
			xseg_peer_close(begins, XSEG_CLOSE_FREE_ARENA);
		}
		while (nr-- > 0)
			xseg_peer_close(crowd[nr], XSEG_CLOSE_FREE_ARENA);
		xseg_detach(many);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_server_opens_then_serves_then_stops),
		T(a_port_has_those_sent_elsewhere_whom_a_hash_leads_to_it),
		T(a_client_is_live_at_once_and_leaves_nothing),
		T(wrong_names_kinds_and_port_counts_are_refused),
		P(a_living_name_and_a_name_of_another_kind_are_refused),
		T(what_does_not_fit_is_refused_and_takes_nothing),
		T(clients_of_volumes_leave_a_reserve),
		P(a_successor_gets_ports_words_route_and_a_later_generation),
		T(a_successor_may_have_more_ports_and_never_fewer),
		P(a_successor_takes_over_started_then_applied_then_waiting_requests),
		P(a_stopped_server_leaves_its_requests_to_its_successor_too),
		P(what_is_left_of_a_generation_that_would_come_again_is_taken_over),
		T(a_recovery_that_is_killed_is_begun_again_three_deep),
		P(what_a_dead_server_left_damaged_is_answered_eproto),
		P(a_successor_waits_for_what_its_predecessor_has_at_others),
		T(a_dead_client_is_swept_when_its_last_request_is_answered),
		P(the_name_of_a_dead_client_is_free_once_it_has_nothing_out),
		T(who_leaves_without_the_control_lock_is_left_to_a_sweep_or_a_successor),
		T(a_stopped_peer_is_given_time_to_return_under_a_supervisor),
		T(a_dead_peer_is_gone_if_the_supervisor_leaves_it_dead_or_is_dead),
		P(an_offer_of_a_swept_client_does_not_hurt_the_next_owner_of_its_requests),
		T(a_sweep_that_was_killed_half_way_touches_no_port_that_has_a_new_owner),
		T(a_port_that_was_being_added_at_death_is_taken_up_again),
		T(routes_switch_with_an_epoch_and_make_no_loops),
		T(a_peer_is_forgotten_only_when_nobody_needs_it),
		P(a_peer_to_which_something_is_offered_is_not_forgotten),
		P(a_peer_to_which_something_is_sent_and_not_published_is_not_forgotten),
		P(what_dead_clients_have_sent_keeps_nobody_from_being_forgotten),
		T(a_forgotten_name_begins_anew),
		T(damaged_ports_refuse_the_open_and_crash_nobody),
		T(a_client_leaves_as_one_whatever_its_entry_says),
		T(a_copy_is_made_of_no_word_that_was_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
