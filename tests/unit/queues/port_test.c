/* port_test - lanes: batches, order, turns, full lanes and no lanes, many ports. */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static void submit_and_flush(struct xport *port, uint32_t peer, uint32_t n)
{
	submit(port, peer, n);
	xseg_port_flush(port);
}

/* Answers n requests of the client's and takes the answers. */
static void serve(struct xport *at, uint32_t n)
{
	struct xreq *r[64];

	for (uint32_t done = 0; done < n; done++)
		segrig_answer(at, segrig_request(at), 0);
	assert_int_equal(xseg_port_replies(c, r, 64), n);
	for (uint32_t i = 0; i < n; i++)
		xseg_req_free(c, r[i]);
}

static void send_and_serve(struct xport *from)
{
	submit_and_flush(from, to, 1);
	segrig_answer(s, segrig_request(s), 0);
	xseg_req_free(from, segrig_reply(from));
}

/* Fills the lane between two ports (or its reply lane) with offers of the past. */
static void fill_lane(struct xport *from, struct xport *into, uint32_t queue)
{
	uint64_t old = offer_word(0, place_word(XSEG_REQ_FREE, 0, 0, 0x7fffffff));

	for (uint32_t i = 0; i < seg->geo.lane_slots; i++) {
		if (queue == QUEUE_REQUEST)
			xs_offer(from, into->index, old);
		else
			xs_offer_answer(from, into->index, old);
	}
	xseg_port_flush(from);
	assert_int_equal(from->nr_backlog, 0);
}

static void nothing_is_seen_before_the_flush(void **state)
{
	struct xreq *r;

	(void)state;
	submit(c, to, 1);
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
}

/* Of a lane that the receiver knows. */
static void what_is_published_is_seen_before_the_flush_and_rung_for_by_it(void **state)
{
	_Atomic uint32_t *bell = &seg->bells[c->index].word;
	uint32_t before;

	(void)state;
	send_and_serve(c);
	submit(c, to, 1);
	xseg_port_publish(c);
	assert_int_equal(c->nr_staged, 1);
	xseg_req_answer(s, segrig_request(s), 0);
	xseg_port_publish(s);
	/* who falls asleep after that is rung by the flush */
	atomic_fetch_or(bell, 1);
	before = atomic_load(bell);
	xseg_port_publish(s);
	assert_int_equal(atomic_load(bell), before);
	xseg_port_flush(s);
	assert_int_equal(atomic_load(bell), before + 2);
	xseg_port_flush(s);
	assert_int_equal(atomic_load(bell), before + 2);
	atomic_fetch_add(bell, 1);
	xseg_req_free(c, segrig_reply(c));
	xseg_port_flush(c);
	assert_int_equal(c->nr_staged + s->nr_staged, 0);
}

/* Who sleeps, or has forgotten the lane, would not look. */
static void what_is_published_to_who_does_not_look_is_flushed_at_once(void **state)
{
	_Atomic uint32_t *bell = &seg->bells[s->index].word;
	struct xreq *r;

	(void)state;
	submit(c, to, 1);
	xseg_port_publish(c);
	serve(s, 1);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(xseg_port_receive(s, &r, 1), 0);
	submit(c, to, 1);
	xseg_port_publish(c);
	serve(s, 1);
	atomic_fetch_or(bell, 1);
	submit(c, to, 1);
	xseg_port_publish(c);
	assert_int_equal(atomic_load(bell) >> 1, 1);
	atomic_fetch_add(bell, 1);
	serve(s, 1);
}

static void a_batch_arrives_in_order_and_in_pieces_of_the_asked_size(void **state)
{
	struct xreq *r[48];
	uint32_t got = 0, n;

	(void)state;
	client_open(48);
	server_open(1);
	submit_and_flush(c, to, 48);
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
}

static void a_busy_lane_does_not_starve_the_others(void **state)
{
	struct xseg_peer *busy = segrig_client(seg, "busy", 32), *peer[2];
	struct xport *b = segrig_port(busy), *calm[2];
	struct xreq *r[4];

	(void)state;
	server_open(1);
	for (unsigned k = 0; k < 2; k++) {
		peer[k] = segrig_client(seg, k ? "calm1" : "calm0", 16);
		calm[k] = segrig_port(peer[k]);
	}
	for (unsigned round = 0; round < 300; round++) {
		uint32_t seen = 0;

		submit_and_flush(b, to, xseg_port_nr_free(b));
		for (unsigned k = 0; k < 2; k++)
			submit_and_flush(calm[k], to, 1);
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
			xseg_req_free(calm[k], segrig_reply(calm[k]));
		while (xseg_port_replies(b, r, 1))
			xseg_req_free(b, r[0]);
	}
	close_peer(busy);
	close_peer(peer[0]);
	close_peer(peer[1]);
}

static uint32_t lanes_looked_at(const struct xport *p)
{
	uint32_t nr = 0;

	for (unsigned w = 0; w < XSEG_MASK_WORDS; w++)
		nr += (uint32_t)__builtin_popcountll(p->pending[0][w]);
	return nr;
}

/* Although the port is never idle; and what the silent one sends then is found. */
static void a_silent_lane_is_forgotten_while_another_is_busy(void **state)
{
	struct xseg_peer *peer[3];
	struct xreq *r;
	char name[16];

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		snprintf(name, sizeof(name), "silent%u", k);
		peer[k] = segrig_client(seg, name, 16);
		send_and_serve(segrig_port(peer[k]));
	}
	assert_int_equal(lanes_looked_at(s), 3);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(xseg_port_receive(s, &r, 1), 0);
		send_and_serve(c);
	}
	assert_in_range(lanes_looked_at(s), 0, 1);
	for (unsigned k = 0; k < 3; k++) {
		send_and_serve(segrig_port(peer[k]));
		close_peer(peer[k]);
	}
}

/* The port takes less than there is in each look, and comes to the lane long after its bit was
 * cleared. */
static void a_lane_with_work_is_not_forgotten_however_late_its_turn_comes(void **state)
{
	struct xseg_peer *peer[3];
	char name[16];
	struct xreq *r;
	uint32_t got = 0;

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		snprintf(name, sizeof(name), "late%u", k);
		peer[k] = segrig_client(seg, name, 16);
		submit_and_flush(segrig_port(peer[k]), to, 16);
	}
	for (unsigned look = 0; look < 3 * 16; look++) {
		s->vain[0] = 1000;	/* each is a cold one */
		got += xseg_port_receive(s, &r, 1);
		segrig_answer(s, r, 0);
	}
	assert_int_equal(got, 3 * 16);
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned n = 0; n < 16; n++)
			xseg_req_free(segrig_port(peer[k]), segrig_reply(segrig_port(peer[k])));
		close_peer(peer[k]);
	}
}

static void work_is_found_after_any_number_of_looks_in_vain(void **state)
{
	struct xreq *r;

	(void)state;
	for (unsigned looks = 0; looks < 300; looks++) {
		for (unsigned i = 0; i < looks; i++) {
			assert_int_equal(xseg_port_receive(s, &r, 1), 0);
			assert_int_equal(xseg_port_replies(c, &r, 1), 0);
		}
		submit_and_flush(c, to, 1);
		serve(s, 1);
	}
}

static void a_full_lane_sends_offers_to_the_backlog_and_loses_none(void **state)
{
	struct xreq *out[48];

	(void)state;
	client_open(48);
	server_open(1);
	fill_lane(c, s, QUEUE_REQUEST);
	submit_and_flush(c, to, 48);
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
	pair_close();
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_backlog_drops_what_went_another_way(void **state)
{
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0);
	struct xport *o = segrig_port(other);

	(void)state;
	fill_lane(c, s, QUEUE_REQUEST);
	for (uint32_t round = 0; round < 10; round++) {
		submit_and_flush(c, to, 16);
		for (uint32_t i = 0; i < 16; i++) {
			struct xreq *r = &seg->views[c->req_first + i];

			assert_int_equal(xseg_req_submit(c, r, xseg_peer_index(other)), 0);
			xseg_port_flush(c);
			r = segrig_request_is(o, r);
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
	close_peer(other);
}

static void an_offer_that_is_repeated_for_ever_cannot_overflow_the_backlog(void **state)
{
	struct xreq *r = xseg_req_alloc(c);

	(void)state;
	fill_lane(c, s, QUEUE_REQUEST);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(xseg_req_submit(c, r, to), 0);
	assert_true(c->nr_backlog <= seg->geo.nr_requests);
	segrig_nothing(s);
	xseg_port_flush(c);
	serve(s, 1);
}

static void an_answer_that_meets_a_full_lane_is_found_by_its_place(void **state)
{
	struct xreq *r[16];
	uint32_t got = 0, n;

	(void)state;
	submit_and_flush(c, to, 16);
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
	submit_and_flush(c, to, 4);
	serve(s, 4);
	assert_int_equal(segrig_bad(seg), 0);
}

/* All requests and all answers go by their places; also those of a forwarder, and those that are
 * offered while nobody serves. */
static void where_no_lane_is_left_requests_and_answers_arrive(void **state)
{
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0);
	struct xreq *r[8];
	uint32_t asked;

	(void)state;
	submit_and_flush(c, to, 8);
	for (uint32_t i = 0; i < seg->geo.nr_lanes; i++)
		if (!atomic_load(&seg->lanes[i].word))
			atomic_store(&seg->lanes[i].word, lane_word(0, 15, 15));
	submit_and_flush(c, xseg_peer_index(other), 5);
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_index(other)), -EBUSY);
	asked = segrig_port(other)->index;
	end_peer(other, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_find(seg, "filed")), -ENOTEMPTY);
	for (unsigned i = 0; i < 8; i++) {
		r[i] = segrig_request(s);
		assert_int_equal(xseg_req_forward(s, r[i], xseg_peer_find(seg, "filed")), 0);
	}
	xseg_port_flush(s);
	/* a predecessor that was killed took the hint with it */
	atomic_store(&seg->ports[asked].asked, 0);
	other = segrig_server(seg, "filed", 1, 0);
	assert_true(xseg_port_has_work(segrig_port(other)) && xs_port_peek(segrig_port(other)));
	for (unsigned got = 0; got < 13;) {	/* fewer at a time than there are */
		uint32_t n = xseg_port_receive(segrig_port(other), r, 3);

		assert_true(n > 0);
		got += n;
		while (n > 0)
			segrig_answer(segrig_port(other), r[--n], 0);
	}
	segrig_nothing(segrig_port(other));
	assert_false(xseg_port_has_work(segrig_port(other)));
	for (unsigned i = 0; i < 13; i++)
		xseg_req_free(c, segrig_reply(c));
	segrig_nothing(c);
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(other);
}

/* What was offered without a lane and taken over by a successor, or offered elsewhere since, is not
 * accepted by the old offer. */
static void an_offer_without_a_lane_that_is_out_of_date_is_not_accepted(void **state)
{
	struct xseg_peer *other = segrig_server(seg, "filed", 1, 0),
			 *third = segrig_server(seg, "cached", 1, 0);
	struct segrig_taken taken = { .nr = 0 };
	struct xreq *r;

	(void)state;
	submit_and_flush(c, to, 1);
	r = segrig_request(s);
	for (uint32_t i = 0; i < seg->geo.nr_lanes; i++)
		if (!atomic_load(&seg->lanes[i].word))
			atomic_store(&seg->lanes[i].word, lane_word(0, 15, 15));
	assert_int_equal(xseg_req_forward(s, r, xseg_peer_index(other)), 0);
	abandon(server);
	server = segrig_open(seg, "memd", 1, 0);
	s = segrig_port(server);
	assert_int_equal(xseg_peer_orphans(server), 0);
	xseg_peer_recover(server, segrig_take, &taken);
	xseg_peer_serve(server);
	assert_int_equal(taken.nr, 1);
	segrig_nothing(segrig_port(other));
	assert_int_equal(xseg_req_forward(s, r, xseg_peer_index(third)), 0);
	segrig_nothing(segrig_port(other));
	assert_ptr_equal(segrig_request(segrig_port(third)), r);
	segrig_nothing(segrig_port(third));
	segrig_answer(segrig_port(third), r, 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(segrig_bad(seg), 0);
	close_peer(other);
	close_peer(third);
}

static void a_lane_whose_number_is_impossible_is_left_alone(void **state)
{
	(void)state;
	atomic_store(&s->sh->lane[QUEUE_REQUEST][3], UINT16_MAX);
	segrig_nothing(s);
}

/* It is empty, and its writer has to look how far the reader is. */
static void scribbled_lane_goes_on(uint32_t queue, struct xport *from, struct xport *into)
{
	struct lane_out *o = &from->out[queue][into->index];
	uint32_t bad;

	send_and_serve(c);
	fill_lane(from, into, queue);
	segrig_nothing(into);
	while (xq_push(&o->w, UINT64_MAX))
		;
	xq_publish(&o->w);
	segrig_nothing(into);
	atomic_store(&o->w.q->head, UINT64_MAX / 2);
	bad = o->w.bad;
	send_and_serve(c);
	assert_int_equal(o->w.bad, bad + 1);
	assert_int_equal(c->nr_backlog, 0);
	send_and_serve(c);
	assert_int_equal(o->w.bad, bad + 1);
	assert_int_equal(atomic_load(&o->w.q->tail), atomic_load(&o->w.q->head));
}

static void a_lane_whose_head_is_impossible_is_not_waited_for_and_works_again(void **state)
{
	(void)state;
	scribbled_lane_goes_on(QUEUE_REQUEST, c, s);
	scribbled_lane_goes_on(QUEUE_REPLY, s, c);
}

/* It says that nothing of the lane has been read, which is full then, and would be so for ever. */
static void a_lane_whose_head_is_wrong_works_again(void **state)
{
	struct xq *q;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		send_and_serve(c);
		fill_lane(c, s, QUEUE_REQUEST);
		segrig_nothing(s);
		q = c->out[QUEUE_REQUEST][s->index].w.q;
		atomic_store(&q->head, atomic_load(&q->tail) - seg->geo.lane_slots);
		if (i) {
			close_peer(client);
			client_open(16);
		}
		submit_and_flush(c, to, 1);
		assert_int_equal(c->nr_backlog, 1);
		segrig_nothing(s);		/* it looks at all lanes */
		xseg_port_flush(c);
		assert_int_equal(c->nr_backlog, 0);
		serve(s, 1);
	}
}

/* As who looks at all lanes before he sleeps, or as who never does. */
static struct xreq *taken_by(
	struct xport *p, uint32_t (*take)(struct xport *, struct xreq **, uint32_t), bool sleeps)
{
	struct xreq *r = NULL;

	if (sleeps)
		assert_true(xseg_port_has_work(p));
	for (unsigned looks = sleeps ? 1 : 200; looks && !r; looks--)
		take(p, &r, 1);
	assert_non_null(r);
	return r;
}

/* Both begin where somebody has been meanwhile. */
static void who_begins_anew_finds_a_lane_that_works(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		uint32_t index = c->index;
		struct xq *q;

		send_and_serve(c);
		q = c->out[QUEUE_REQUEST][s->index].w.q;
		if (i & 8)
			q = s->out[QUEUE_REPLY][c->index].w.q;
		close_peer(client);
		if (i & 4)
			abandon(server);
		atomic_store(i & 1 ? &q->head : &q->tail, i & 2 ? UINT64_MAX / 2 : 1);
		if (i & 4) {
			server_open(1);
			xseg_peer_recover(server, segrig_take, NULL);
		}
		client_open(16);
		assert_int_equal(c->index, index);
		for (unsigned k = 0; k < 3; k++) {
			submit_and_flush(c, to, 1);
			segrig_answer(s, taken_by(s, xseg_port_receive, i & 16), 0);
			xseg_req_free(c, taken_by(c, xseg_port_replies, i & 16));
		}
		assert_int_equal(c->out[QUEUE_REQUEST][s->index].w.q->tail,
			c->out[QUEUE_REQUEST][s->index].w.q->head);
	}
}

static void a_writer_that_never_stops_does_not_hold_the_reader(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		fill_lane(c, s, QUEUE_REQUEST);
		submit_and_flush(c, to, 1);
		segrig_nothing(s);
		xseg_port_flush(c);
		serve(s, 1);
	}
}

static void the_hash_chooses_the_port_and_always_the_same(void **state)
{
	uint32_t used = 0;
	char name[16];

	(void)state;
	client_open(16);
	server_open(4);
	for (unsigned i = 0; i < 200; i++) {
		uint32_t port = XSEG_NONE;

		for (unsigned again = 0; again < 2; again++) {
			struct xreq *r = xseg_req_alloc(c), *out;

			r->op = XSEG_OP_INFO;
			snprintf(name, sizeof(name), "object.%u", i);
			xseg_req_set_target(r, name, strlen(name));
			assert_int_equal(xseg_req_submit(c, r, to), 0);
			xseg_port_flush(c);
			for (uint32_t k = 0; k < 4; k++) {
				struct xport *at = xseg_peer_port(server, k);

				if (!xseg_port_receive(at, &out, 1))
					continue;
				assert_true(port == XSEG_NONE || port == k);
				port = k;
				assert_string_equal(out->target, name);
				segrig_answer(at, out, 0);
			}
			xseg_req_free(c, segrig_reply(c));
		}
		assert_true(port != XSEG_NONE);
		used |= 1u << port;
	}
	assert_int_equal(used, 15);
}

static void any_port_of_a_peer_may_answer_and_forward_what_another_received(void **state)
{
	struct xseg_peer *upper = segrig_server(seg, "volumed", 2, 0);
	struct xport *a = xseg_peer_port(upper, 0), *b = xseg_peer_port(upper, 1);

	(void)state;
	submit_and_flush(c, xseg_peer_index(upper), 2);
	segrig_answer(b, segrig_request(a), 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(xseg_req_forward(b, segrig_request(a), to), 0);
	xseg_port_flush(b);
	serve(s, 1);
	close_peer(upper);
}

static void every_one_of_200_ports_is_heard(void **state)
{
	struct xseg *large = segrig_private_of(4096, 256);
	struct xseg_peer *store = segrig_server(large, "memd", 1, 0), *peer[200];
	struct xport *at = segrig_port(store), *p[200];
	struct xreq *out[256];
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		peer[i] = segrig_client(large, name, 16);
		p[i] = segrig_port(peer[i]);
	}
	for (unsigned round = 0; round < 3; round++) {
		uint32_t got = 0, n;

		for (unsigned i = 0; i < 200; i++)
			segrig_send(p[i], XSEG_OP_READ, 0, xseg_peer_index(store));
		while ((n = xseg_port_receive(at, out, 7)) > 0) {
			for (uint32_t i = 0; i < n; i++)
				xseg_req_answer(at, out[i], 0);
			got += n;
		}
		xseg_port_flush(at);
		assert_int_equal(got, 200);
		for (unsigned i = 0; i < 200; i++)
			xseg_req_free(p[i], segrig_reply(p[i]));
	}
	for (unsigned i = 0; i < 200; i++)
		close_peer(peer[i]);
	close_peer(store);
	segrig_sound(large);
	xseg_detach(large);
}

/* A client receives no requests, and a peer without requests of its own no answers: nobody will
 * take what a predecessor of the port has left of these in its lanes. */
static void a_lane_of_a_queue_that_its_port_does_not_take_from_is_no_work(void **state)
{
	struct xseg_peer *store = segrig_server(seg, "filed", 1, 0), *me;
	uint32_t index = segrig_port(store)->index, f = xseg_peer_index(store);

	(void)state;
	/* an offer of somebody who has given up, to somebody who has gone */
	submit_and_flush(c, f, 1);
	close_peer(client);
	end_peer(store, XSEG_CLOSE_KEEP_ARENA);
	assert_int_equal(xseg_peer_forget(seg, f), 0);
	client_open(16);
	me = segrig_client(seg, "other", 16);
	assert_true(segrig_port(me)->index == index || c->index == index);
	assert_false(xs_port_peek(segrig_port(me)) || xs_port_peek(c));
	assert_false(xseg_port_has_work(segrig_port(me)) || xseg_port_has_work(c));
	close_peer(me);
	/* an answer that was not taken */
	index = c->index;
	submit_and_flush(c, to, 1);
	segrig_answer(s, segrig_request(s), 0);
	close_peer(client);
	store = segrig_server(seg, "filed", 1, 0);
	assert_int_equal(segrig_port(store)->index, index);
	segrig_nothing(segrig_port(store));
	assert_false(xs_port_peek(segrig_port(store)));
	assert_false(xseg_port_has_work(segrig_port(store)));
	close_peer(store);
}

static void a_wait_ends_without_work_when_its_time_is_over(void **state)
{
	(void)state;
	assert_false(xseg_port_wait(c, 0));
	assert_false(xseg_port_wait(c, 1000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(nothing_is_seen_before_the_flush),
		P(what_is_published_is_seen_before_the_flush_and_rung_for_by_it),
		P(what_is_published_to_who_does_not_look_is_flushed_at_once),
		T(a_batch_arrives_in_order_and_in_pieces_of_the_asked_size),
		U(an_offer_without_a_lane_that_is_out_of_date_is_not_accepted),
		T(a_busy_lane_does_not_starve_the_others),
		P(a_silent_lane_is_forgotten_while_another_is_busy),
		P(a_lane_with_work_is_not_forgotten_however_late_its_turn_comes),
		P(work_is_found_after_any_number_of_looks_in_vain),
		T(a_full_lane_sends_offers_to_the_backlog_and_loses_none),
		P(a_backlog_drops_what_went_another_way),
		P(an_offer_that_is_repeated_for_ever_cannot_overflow_the_backlog),
		P(an_answer_that_meets_a_full_lane_is_found_by_its_place),
		U(where_no_lane_is_left_requests_and_answers_arrive),
		U(a_lane_whose_number_is_impossible_is_left_alone),
		U(a_lane_whose_head_is_impossible_is_not_waited_for_and_works_again),
		P(a_lane_whose_head_is_wrong_works_again),
		U(who_begins_anew_finds_a_lane_that_works),
		P(a_writer_that_never_stops_does_not_hold_the_reader),
		T(the_hash_chooses_the_port_and_always_the_same),
		P(any_port_of_a_peer_may_answer_and_forward_what_another_received),
		T(every_one_of_200_ports_is_heard),
		P(a_lane_of_a_queue_that_its_port_does_not_take_from_is_no_work),
		P(a_wait_ends_without_work_when_its_time_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
