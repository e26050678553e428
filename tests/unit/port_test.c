/* port_test - lanes: batches, order, turns, full lanes and no lanes, many ports, and threads that send a
 * million requests. */
#include "seg_rig.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct xseg *seg;

static int setup(void **state)
{
	(void)state;
	seg = segrig_private();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xseg_detach(seg);
	return 0;
}

static void close_peer(struct xseg_peer *peer)
{
	xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
}

/* Stages n requests that carry their number. */
static void submit(struct xport *port, uint32_t peer, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct xreq *r = xseg_req_alloc(port);

		assert_non_null(r);
		r->op = XSEG_OP_FLUSH;
		r->volume = i;
		assert_int_equal(xseg_req_submit(port, r, peer), 0);
	}
}

/* Answers n requests and takes the answers. */
static void serve(struct xport *s, struct xport *c, uint32_t n)
{
	struct xreq *r[64];

	for (uint32_t done = 0; done < n; done++)
		segrig_answer(s, segrig_request(s), 0);
	assert_int_equal(xseg_port_replies(c, r, 64), n);
	for (uint32_t i = 0; i < n; i++)
		xseg_req_free(c, r[i]);
}

/* Fills the lane c -> s (or its reply lane) with offers of the past. */
static void fill_lane(struct xport *from, struct xport *to, uint32_t queue)
{
	uint64_t old = offer_word(0, place_word(XSEG_REQ_FREE, 0, 0, 0x7fffffff));

	for (uint32_t i = 0; i < seg->geo.lane_slots; i++) {
		if (queue == QUEUE_REQUEST)
			assert_int_equal(xs_offer(from, to->index, old), 0);
		else
			xs_offer_answer(from, to->index, old);
	}
	xseg_port_flush(from);
	assert_int_equal(from->nr_backlog, 0);
}

static void nothing_is_seen_before_the_flush(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r;

	(void)state;
	submit(c, xseg_peer_index(server), 1);
	segrig_nothing(s);
	xseg_port_flush(c);
	assert_true(xseg_port_has_work(s));
	r = segrig_request(s);
	xseg_req_answer(s, r, 0);
	assert_false(xseg_port_has_work(c));
	xseg_port_flush(s);
	assert_true(xseg_port_has_work(c));
	xseg_req_free(c, segrig_reply(c));
	segrig_nothing(c);
	close_peer(client);
	close_peer(server);
}

static void a_batch_arrives_in_order_and_in_pieces_of_the_asked_size(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 48), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r[48];
	uint32_t got = 0, n;

	(void)state;
	submit(c, xseg_peer_index(server), 48);
	xseg_port_flush(c);
	for (uint32_t max = 1; got < 48; max++) {
		n = xseg_port_receive(s, r + got, max < 48 - got ? max : 48 - got);
		assert_true(n > 0 && n <= max);
		got += n;
	}
	for (uint32_t i = 0; i < 48; i++) {
		assert_int_equal(r[i]->volume, i);
		xseg_req_answer(s, r[i], i);
	}
	xseg_port_flush(s);
	for (got = 0; got < 48; got += n) {
		n = xseg_port_replies(c, r, 5);
		assert_true(n > 0 && n <= 5);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(r[i]->result, got + i);
			xseg_req_free(c, r[i]);
		}
	}
	close_peer(client);
	close_peer(server);
}

static void a_busy_lane_does_not_starve_the_others(void **state)
{
	struct xseg_peer *busy = segrig_client(seg, "busy", 32), *server = segrig_server(seg, "memd", 1, 0);
	struct xseg_peer *calm[2] = { segrig_client(seg, "calm0", 16), segrig_client(seg, "calm1", 16) };
	struct xport *b = segrig_port(busy), *s = segrig_port(server);
	uint32_t to = xseg_peer_index(server);
	struct xreq *r[4];

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		uint32_t seen = 0;

		submit(b, to, xseg_port_nr_free(b));
		xseg_port_flush(b);
		for (unsigned k = 0; k < 2; k++) {
			submit(segrig_port(calm[k]), to, 1);
			xseg_port_flush(segrig_port(calm[k]));
		}
		for (unsigned turn = 0; turn < 3 && seen < 2; turn++) {
			uint32_t n = xseg_port_receive(s, r, 4);

			for (uint32_t i = 0; i < n; i++) {
				seen += r[i]->origin != xseg_port_index(b);
				xseg_req_answer(s, r[i], 0);
			}
			xseg_port_flush(s);
		}
		assert_int_equal(seen, 2);
		for (unsigned k = 0; k < 2; k++)
			xseg_req_free(segrig_port(calm[k]), segrig_reply(segrig_port(calm[k])));
		while (xseg_port_replies(b, r, 1))
			xseg_req_free(b, r[0]);
	}
	close_peer(busy);
	close_peer(calm[0]);
	close_peer(calm[1]);
	close_peer(server);
}

static void work_is_found_after_any_number_of_looks_in_vain(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r;

	(void)state;
	for (unsigned looks = 0; looks < 300; looks++) {
		for (unsigned i = 0; i < looks; i++) {
			assert_int_equal(xseg_port_receive(s, &r, 1), 0);
			assert_int_equal(xseg_port_replies(c, &r, 1), 0);
		}
		submit(c, xseg_peer_index(server), 1);
		xseg_port_flush(c);
		serve(s, c, 1);
	}
	close_peer(client);
	close_peer(server);
}

static void a_full_lane_sends_offers_to_the_backlog_and_loses_none(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 48), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *out[48];

	(void)state;
	fill_lane(c, s, QUEUE_REQUEST);
	submit(c, xseg_peer_index(server), 48);
	xseg_port_flush(c);
	assert_int_equal(c->nr_backlog, 48);
	segrig_nothing(s);
	assert_int_equal(c->nr_backlog, 48);
	xseg_port_flush(c);
	assert_int_equal(c->nr_backlog, 0);
	for (uint32_t i = 0; i < 48; i++) {
		struct xreq *r = segrig_request(s);

		assert_int_equal(r->volume, i);
		xseg_req_answer(s, r, 0);
	}
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 48), 48);
	close_peer(server);
	close_peer(client);
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_backlog_drops_what_went_another_way(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server), *o = segrig_port(other);

	(void)state;
	fill_lane(c, s, QUEUE_REQUEST);
	for (uint32_t round = 0; round < 10; round++) {
		submit(c, xseg_peer_index(server), 16);
		xseg_port_flush(c);
		for (uint32_t i = 0; i < 16; i++) {
			struct xreq *r = &seg->views[c->req_first + i];

			assert_int_equal(xseg_req_submit(c, r, xseg_peer_index(other)), 0);
			xseg_port_flush(c);
			assert_ptr_equal(segrig_request(o), r);
			segrig_answer(o, r, 0);
			xseg_req_free(c, segrig_reply(c));
		}
		assert_true(c->nr_backlog <= seg->geo.nr_requests);
	}
	xseg_port_flush(c);
	assert_int_equal(c->nr_backlog, 0);
	segrig_nothing(s);
	assert_int_equal(xseg_port_nr_free(c), 16);
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(client);
	close_peer(server);
	close_peer(other);
}

static void an_offer_that_is_repeated_for_ever_cannot_overflow_the_backlog(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r = xseg_req_alloc(c);

	(void)state;
	fill_lane(c, s, QUEUE_REQUEST);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(xseg_req_submit(c, r, xseg_peer_index(server)), 0);
	assert_true(c->nr_backlog <= seg->geo.nr_requests);
	segrig_nothing(s);
	xseg_port_flush(c);
	serve(s, c, 1);
	close_peer(client);
	close_peer(server);
}

static void an_answer_that_meets_a_full_lane_is_found_by_its_place(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r[16];
	uint32_t got = 0, n;

	(void)state;
	submit(c, xseg_peer_index(server), 16);
	xseg_port_flush(c);
	fill_lane(s, c, QUEUE_REPLY);
	assert_int_equal(xseg_port_receive(s, r, 16), 16);
	for (uint32_t i = 0; i < 16; i++)
		xseg_req_answer(s, r[i], 0);
	assert_true(xseg_port_has_work(c));
	for (; got < 16; got += n) {
		n = xseg_port_replies(c, r, 3);
		assert_true(n > 0);
		for (uint32_t i = 0; i < n; i++)
			xseg_req_free(c, r[i]);
	}
	xseg_port_flush(s);
	segrig_nothing(c);
	submit(c, xseg_peer_index(server), 4);
	xseg_port_flush(c);
	serve(s, c, 4);
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(client);
	close_peer(server);
}

static void where_no_lane_is_left_requests_are_refused_and_answers_arrive(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xreq *r;

	(void)state;
	submit(c, xseg_peer_index(server), 8);
	xseg_port_flush(c);
	for (uint32_t i = 0; i < seg->geo.nr_lanes; i++)
		if (!atomic_load(&seg->lanes[i].word))
			atomic_store(&seg->lanes[i].word, lane_word(0, 15, 15));
	r = xseg_req_alloc(c);
	assert_int_equal(xseg_req_submit(c, r, xseg_peer_index(other)), -ENOSPC);
	xseg_req_free(c, r);
	for (unsigned i = 0; i < 8; i++)
		segrig_answer(s, segrig_request(s), 0);
	for (unsigned i = 0; i < 8; i++)
		xseg_req_free(c, segrig_reply(c));
	segrig_nothing(c);
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(client);
	close_peer(server);
	close_peer(other);
}

static void a_lane_whose_tail_is_impossible_is_left_alone(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);
	struct xq *q;

	(void)state;
	submit(c, xseg_peer_index(server), 1);
	xseg_port_flush(c);
	serve(s, c, 1);
	q = c->out[QUEUE_REQUEST][s->index].w.q;
	atomic_store(&q->tail, UINT64_MAX / 2);
	segrig_nothing(s);
	atomic_store(&s->sh->lane[QUEUE_REQUEST][3], UINT16_MAX);
	segrig_nothing(s);
	close_peer(client);
	close_peer(server);
}

static void a_writer_that_never_stops_does_not_hold_the_reader(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *s = segrig_port(server);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		fill_lane(c, s, QUEUE_REQUEST);
		submit(c, xseg_peer_index(server), 1);
		xseg_port_flush(c);
		segrig_nothing(s);
		xseg_port_flush(c);
		serve(s, c, 1);
	}
	close_peer(client);
	close_peer(server);
}

static void the_hash_chooses_the_port_and_always_the_same(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *server = segrig_server(seg, "memd", 4, 0);
	struct xport *c = segrig_port(client);
	uint32_t used = 0;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		uint32_t port = XSEG_NONE;

		for (unsigned again = 0; again < 2; again++) {
			struct xreq *r = xseg_req_alloc(c), *out;

			r->op = XSEG_OP_INFO;
			snprintf(name, sizeof(name), "object.%u", i);
			xseg_req_set_target(r, name, strlen(name));
			assert_int_equal(xseg_req_submit(c, r, xseg_peer_index(server)), 0);
			xseg_port_flush(c);
			for (uint32_t k = 0; k < 4; k++) {
				struct xport *s = xseg_peer_port(server, k);

				if (!xseg_port_receive(s, &out, 1))
					continue;
				assert_true(port == XSEG_NONE || port == k);
				port = k;
				assert_string_equal(out->target, name);
				segrig_answer(s, out, 0);
			}
			xseg_req_free(c, segrig_reply(c));
		}
		assert_true(port != XSEG_NONE);
		used |= 1u << port;
	}
	assert_int_equal(used, 15);
	close_peer(client);
	close_peer(server);
}

static void any_port_of_a_peer_may_answer_and_forward_what_another_received(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16), *upper = segrig_server(seg, "volumed", 2, 0);
	struct xseg_peer *lower = segrig_server(seg, "memd", 1, 0);
	struct xport *c = segrig_port(client), *a = xseg_peer_port(upper, 0), *b = xseg_peer_port(upper, 1);

	(void)state;
	submit(c, xseg_peer_index(upper), 2);
	xseg_port_flush(c);
	segrig_answer(b, segrig_request(a), 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(xseg_req_forward(b, segrig_request(a), xseg_peer_index(lower)), 0);
	xseg_port_flush(b);
	serve(segrig_port(lower), c, 1);
	close_peer(client);
	close_peer(upper);
	close_peer(lower);
}

static void every_one_of_200_ports_is_heard(void **state)
{
	struct xseg *large = segrig_private_of(4096, 256);
	struct xseg_peer *server = segrig_server(large, "memd", 1, 0), *client[200];
	struct xport *s = segrig_port(server);
	struct xreq *out[256];
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		client[i] = segrig_client(large, name, 16);
	}
	for (unsigned round = 0; round < 3; round++) {
		uint32_t got = 0, n;

		for (unsigned i = 0; i < 200; i++)
			segrig_send(segrig_port(client[i]), XSEG_OP_READ, 0, xseg_peer_index(server));
		while ((n = xseg_port_receive(s, out, 7)) > 0) {
			for (uint32_t i = 0; i < n; i++)
				xseg_req_answer(s, out[i], 0);
			got += n;
		}
		xseg_port_flush(s);
		assert_int_equal(got, 200);
		for (unsigned i = 0; i < 200; i++)
			xseg_req_free(segrig_port(client[i]), segrig_reply(segrig_port(client[i])));
	}
	for (unsigned i = 0; i < 200; i++)
		close_peer(client[i]);
	close_peer(server);
	segrig_sound(large);
	xseg_detach(large);
}

static void a_wait_ends_without_work_when_its_time_is_over(void **state)
{
	struct xseg_peer *client = segrig_client(seg, "me", 16);

	(void)state;
	assert_false(xseg_port_wait(segrig_port(client), 0));
	assert_false(xseg_port_wait(segrig_port(client), 1000000));
	close_peer(client);
}

/* ---- threads ---- */

#define DEPTH 16

struct sender {
	pthread_t thread;
	struct xport *port;
	uint32_t to;
	uint64_t nr, sum;
};

/* Sends nr requests, DEPTH at a time; each answer must be its request's number, made odd. */
static void *send_many(void *arg)
{
	struct sender *me = arg;
	struct xreq *r[DEPTH];
	uint64_t sent = 0, done = 0;

	while (done < me->nr) {
		uint32_t n, out = (uint32_t)(sent - done);

		for (; sent < me->nr && out < DEPTH; sent++, out++) {
			struct xreq *q = xseg_req_alloc(me->port);

			q->op = XSEG_OP_INFO;
			q->offset = sent;
			q->hash = sent * 0x9e3779b97f4a7c15ull;
			q->cookie = (void *)(uintptr_t)sent;
			if (xseg_req_submit(me->port, q, me->to))
				abort();
		}
		xseg_port_flush(me->port);
		n = xseg_port_replies(me->port, r, DEPTH);
		if (n == 0)
			xseg_port_wait(me->port, UINT64_MAX / 2);
		for (uint32_t i = 0; i < n; i++, done++) {
			if (r[i]->result != (int64_t)((uintptr_t)r[i]->cookie * 2 + 1))
				abort();
			me->sum += (uint64_t)r[i]->result;
			xseg_req_free(me->port, r[i]);
		}
	}
	return NULL;
}

struct server {
	pthread_t thread;
	struct xport *port;
	uint32_t lower;			/* XSEG_NONE: answers */
	_Atomic bool stop;
	uint64_t nr;
};

static bool has_reason_to_wake(void *arg)
{
	struct server *me = arg;

	return atomic_load(&me->stop) || xseg_port_has_work(me->port);
}

static void *serve_many(void *arg)
{
	struct server *me = arg;
	struct xreq *r[32];
	uint32_t idle = 0;

	while (!atomic_load(&me->stop)) {
		uint32_t n = xseg_port_receive(me->port, r, 32);

		for (uint32_t i = 0; i < n; i++) {
			if (me->lower == XSEG_NONE)
				xseg_req_answer(me->port, r[i], (int64_t)r[i]->offset * 2 + 1);
			else if (xseg_req_forward(me->port, r[i], me->lower))
				abort();
		}
		xseg_port_flush(me->port);
		me->nr += n;
		idle = n ? 0 : idle + 1;
		if (idle % 16 == 1)
			sched_yield();
		if (idle > 64)
			xseg_bell_wait(me->port, UINT64_MAX / 2, has_reason_to_wake, me);
	}
	return NULL;
}

static void start_servers(struct server *s, struct xseg_peer *peer, uint32_t lower)
{
	for (uint32_t i = 0; i < xseg_peer_nr_ports(peer); i++) {
		s[i] = (struct server){ .port = xseg_peer_port(peer, i), .lower = lower };
		assert_int_equal(pthread_create(&s[i].thread, NULL, serve_many, &s[i]), 0);
	}
}

static uint64_t stop_servers(struct server *s, uint32_t n)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < n; i++) {
		atomic_store(&s[i].stop, true);
		xseg_bell_ring(s[i].port);
		pthread_join(s[i].thread, NULL);
		nr += s[i].nr;
	}
	return nr;
}

static void run_senders(struct sender *s, unsigned n, struct xseg_peer **client, uint32_t to, uint64_t nr)
{
	for (unsigned i = 0; i < n; i++) {
		s[i] = (struct sender){ .port = segrig_port(client[i]), .to = to, .nr = nr };
		assert_int_equal(pthread_create(&s[i].thread, NULL, send_many, &s[i]), 0);
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(s[i].thread, NULL);
		assert_int_equal(s[i].sum, nr * nr);
		assert_int_equal(xseg_port_nr_free(s[i].port), xseg_port_nr_requests(s[i].port));
	}
	assert_int_equal(segrig_bad(seg), 0);
}

static void two_clients_send_a_million_requests_to_one_server(void **state)
{
	struct xseg_peer *client[2] = { segrig_client(seg, "a", DEPTH), segrig_client(seg, "b", DEPTH) };
	struct xseg_peer *server = segrig_server(seg, "memd", 1, 0);
	uint64_t nr = SEGRIG_SANITIZED ? 20000 : 500000;
	struct sender c[2];
	struct server s[1];

	(void)state;
	start_servers(s, server, XSEG_NONE);
	run_senders(c, 2, client, xseg_peer_index(server), nr);
	assert_int_equal(stop_servers(s, 1), 2 * nr);
	close_peer(client[0]);
	close_peer(client[1]);
	close_peer(server);
	segrig_sound(seg);
}

static void a_forwarder_of_two_threads_stands_between_clients_and_a_store_of_two(void **state)
{
	struct xseg_peer *client[2] = { segrig_client(seg, "a", DEPTH), segrig_client(seg, "b", DEPTH) };
	struct xseg_peer *upper = segrig_server(seg, "volumed", 2, 0), *lower = segrig_server(seg, "memd", 2, 0);
	uint64_t nr = SEGRIG_SANITIZED ? 5000 : 50000;
	struct server u[2], l[2];
	struct sender c[2];

	(void)state;
	start_servers(l, lower, XSEG_NONE);
	start_servers(u, upper, xseg_peer_index(lower));
	run_senders(c, 2, client, xseg_peer_index(upper), nr);
	assert_int_equal(stop_servers(u, 2), 2 * nr);
	assert_int_equal(stop_servers(l, 2), 2 * nr);
	close_peer(client[0]);
	close_peer(client[1]);
	close_peer(upper);
	close_peer(lower);
	segrig_sound(seg);
}

static void threads_whose_answers_find_no_lanes_lose_none(void **state)
{
	struct xseg_peer *client[2] = { segrig_client(seg, "a", DEPTH), segrig_client(seg, "b", DEPTH) };
	struct xseg_peer *server = segrig_server(seg, "memd", 1, 0);
	uint64_t nr = SEGRIG_SANITIZED ? 2000 : 20000;
	struct sender c[2];
	struct server s[1];

	(void)state;
	for (uint32_t i = 2; i < seg->geo.nr_lanes; i++)
		atomic_store(&seg->lanes[i].word, lane_word(0, 15, 15));
	submit(segrig_port(client[0]), xseg_peer_index(server), 1);
	submit(segrig_port(client[1]), xseg_peer_index(server), 1);
	for (unsigned i = 0; i < 2; i++) {
		struct xport *p = segrig_port(client[i]);

		xseg_port_flush(p);
		segrig_answer(segrig_port(server), segrig_request(segrig_port(server)), 0);
		xseg_req_free(p, segrig_reply(p));
	}
	start_servers(s, server, XSEG_NONE);
	run_senders(c, 2, client, xseg_peer_index(server), nr);
	assert_int_equal(stop_servers(s, 1), 2 * nr);
	close_peer(client[0]);
	close_peer(client[1]);
	close_peer(server);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_seen_before_the_flush),
		T(a_batch_arrives_in_order_and_in_pieces_of_the_asked_size),
		T(a_busy_lane_does_not_starve_the_others),
		T(work_is_found_after_any_number_of_looks_in_vain),
		T(a_full_lane_sends_offers_to_the_backlog_and_loses_none),
		T(a_backlog_drops_what_went_another_way),
		T(an_offer_that_is_repeated_for_ever_cannot_overflow_the_backlog),
		T(an_answer_that_meets_a_full_lane_is_found_by_its_place),
		T(where_no_lane_is_left_requests_are_refused_and_answers_arrive),
		T(a_lane_whose_tail_is_impossible_is_left_alone),
		T(a_writer_that_never_stops_does_not_hold_the_reader),
		T(the_hash_chooses_the_port_and_always_the_same),
		T(any_port_of_a_peer_may_answer_and_forward_what_another_received),
		T(every_one_of_200_ports_is_heard),
		T(a_wait_ends_without_work_when_its_time_is_over),
		T(two_clients_send_a_million_requests_to_one_server),
		T(a_forwarder_of_two_threads_stands_between_clients_and_a_store_of_two),
		T(threads_whose_answers_find_no_lanes_lose_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
