/* request_test - every edge of the place table (xseg/request.c), the edges that it lacks, and stale
 * offers.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

/* Between client and server stands a forwarder, with port "f". */
static struct xseg_peer *forwarder;
static struct xport *f;
static uint32_t to_f;

static int setup_forwarder(void **state)
{
	setup_pair(state);
	forwarder = segrig_server(seg, "volumed", 1, 16);
	f = segrig_port(forwarder);
	to_f = xseg_peer_index(forwarder);
	return 0;
}

static int teardown_unsound_forwarder(void **state)
{
	close_peer(forwarder);
	return teardown_unsound(state);
}

static int teardown_forwarder(void **state)
{
	close_peer(forwarder);
	return teardown(state);
}

/* The place is (state, port of p, its generation), one edge after `*seq`. */
static void edge(const struct xreq *r, uint32_t *seq, enum xseg_req_state want, struct xport *p)
{
	uint64_t w = segrig_place(seg, r);

	assert_int_equal(place_state(w), want);
	assert_int_equal(place_port(w), p->index);
	if (want != XSEG_REQ_ANSWERED)
		assert_int_equal(place_gen(w), p->generation);
	assert_int_equal(place_seq(w), ++*seq);
	assert_int_equal(r->state, want);
	assert_int_equal(r->place, w);
}

static void send_on(struct xport *port, struct xreq *r, const char *name, uint64_t obj_offset,
	struct xseg_peer *peer)
{
	xseg_req_set_target(r, name, strlen(name));
	r->obj_offset = obj_offset;
	assert_int_equal(xseg_req_forward(port, r, xseg_peer_index(peer)), 0);
	xseg_port_flush(port);
}

static void a_request_goes_all_the_way_and_each_edge_counts_one(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	uint32_t seq = place_seq(r->place);

	(void)state;
	seq--;
	edge(r, &seq, XSEG_REQ_PRIVATE, c);
	assert_int_equal(xseg_req_submit(c, r, to_f), 0);
	seq--;
	edge(r, &seq, XSEG_REQ_PRIVATE, c);
	xseg_port_flush(c);
	r = segrig_request_is(f, r);
	edge(r, &seq, XSEG_REQ_AT, f);
	assert_int_equal(xseg_req_forward(f, r, to), 0);
	xseg_port_flush(f);
	r = segrig_request(s);
	edge(r, &seq, XSEG_REQ_AT, s);
	xseg_req_start(s, r);
	edge(r, &seq, XSEG_REQ_STARTED, s);
	xseg_req_apply(s, r);
	edge(r, &seq, XSEG_REQ_APPLIED, s);
	xseg_req_answer(s, r, 0);
	edge(r, &seq, XSEG_REQ_ANSWERED, c);
	xseg_port_flush(s);
	r = segrig_reply(c);
	edge(r, &seq, XSEG_REQ_PRIVATE, c);
	xseg_req_free(c, r);
	edge(r, &seq, XSEG_REQ_FREE, c);
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_request_may_be_answered_before_it_is_started_and_before_it_is_applied(void **state)
{
	struct xreq *r;

	(void)state;
	for (int started = 0; started < 2; started++) {
		r = segrig_send(c, XSEG_OP_READ, 0, to);
		r = segrig_request_is(s, r);
		if (started)
			xseg_req_start(s, r);
		segrig_answer(s, r, 17 + started);
		r = segrig_reply_is(c, r);
		assert_int_equal(r->result, 17 + started);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_fresh_request_is_blank_but_for_its_pages(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, XSEG_PAGE_SIZE, to);

	(void)state;
	segrig_answer(s, segrig_request(s), -EIO);
	xseg_req_free(c, segrig_reply(c));
	assert_ptr_equal(xseg_req_alloc(c), r);
	assert_int_equal(
		r->op | r->flags | r->nr_pages | r->size | r->volume | r->parent | r->part, 0);
	assert_int_equal(r->offset | r->obj_offset | r->hash | (uint64_t)r->result, 0);
	assert_int_equal(r->origin, xseg_port_index(c));
	assert_null(r->cookie);
	assert_string_equal(r->target, "");
	xseg_req_free(c, r);
}

static void the_receiver_sees_what_the_origin_wrote_and_the_forwarder_added(void **state)
{
	struct xreq *r = xseg_req_alloc(c);

	(void)state;
	r->op = XSEG_OP_WRITE;
	r->flags = XSEG_REQ_FUA;
	r->volume = 7;
	r->offset = 3 * XSEG_PAGE_SIZE + 512;
	r->size = XSEG_PAGE_SIZE;
	r->nr_pages = 2;
	r->page[0] = 5;
	r->page[1] = 9;
	r->parent = 3;
	r->part = 2;
	r->cookie = r;
	segrig_submit(c, r, to_f);
	r = segrig_request(f);
	send_on(f, r, "vol.1", 512, server);
	r = segrig_request(s);
	assert_int_equal(r->op, XSEG_OP_WRITE);
	assert_int_equal(r->flags, XSEG_REQ_FUA);
	assert_int_equal(r->volume, 7);
	assert_int_equal(r->offset, 3 * XSEG_PAGE_SIZE + 512);
	assert_int_equal(r->size, XSEG_PAGE_SIZE);
	assert_int_equal(r->nr_pages, 2);
	assert_int_equal(r->page[0], 5);
	assert_int_equal(r->page[1], 9);
	assert_int_equal(r->parent, 3);
	assert_int_equal(r->part, 2);
	assert_int_equal(r->origin, xseg_port_index(c));
	assert_int_equal(r->obj_offset, 512);
	assert_string_equal(r->target, "vol.1");
	assert_int_equal(r->hash, xseg_hash("vol.1", 5));
	segrig_answer(s, r, 4096);
	r = segrig_reply(c);
	assert_int_equal(r->result, 4096);
	assert_ptr_equal(r->cookie, r);
	xseg_req_free(c, r);
}

static void what_this_process_sent_on_is_received_whatever_became_of_it(void **state)
{
	struct xreq *r = segrig_alloc(c, XSEG_OP_WRITE, 0, 1);
	uint32_t page = r->page[0];

	(void)state;
	segrig_submit(c, r, to_f);
	r = segrig_request(f);
	r->result = 7;
	r->nr_lent = 3;
	r->next = r;
	r->user = r;
	send_on(f, r, "vol.1", 512, server);
	memset(seg->reqs[r->index].target, 'n', XS_TARGET_HEAD);
	seg->reqs[r->index].op = XSEG_OP_DELETE;
	seg->reqs[r->index].obj_offset = 1024;
	seg->reqs[r->index].page[0].page = UINT32_MAX;
	r = segrig_request_is(s, r);
	assert_int_equal(r->op, XSEG_OP_WRITE);
	assert_int_equal(r->page[0], page);
	assert_int_equal(r->obj_offset, 512);
	assert_int_equal(r->via, xseg_port_index(f) + 1);
	assert_string_equal(r->target, "vol.1");
	assert_int_equal(r->result, 0);
	assert_int_equal(r->nr_lent, 0);
	assert_null(r->next);
	assert_null(r->user);
	segrig_answer(s, r, 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(segrig_bad(seg), 0);
}

/* A place that somebody wrote has the server take it over, damaged; then he puts all back as it
 * was. */
static void what_was_sent_on_and_found_damaged_is_looked_at_again(void **state)
{
	struct xreq *r = segrig_alloc(c, XSEG_OP_WRITE, 0, 1), *out;
	struct segrig_taken taken = { .nr = 0 };
	uint32_t index = r->index;
	uint64_t place;

	(void)state;
	segrig_submit(c, r, to_f);
	send_on(f, segrig_request(f), "vol.1", 0, server);
	place = atomic_load(&seg->reqs[index].place);
	atomic_store(&seg->reqs[index].place,
		place_word(XSEG_REQ_AT, s->index, s->generation + 1, place_seq(place) + 7));
	seg->reqs[index].page[0].page = UINT32_MAX;
	xseg_peer_recover(server, segrig_take, &taken);
	assert_int_equal(taken.nr, 0);
	atomic_store(&seg->reqs[index].place, place);
	assert_int_equal(xseg_port_receive(s, &out, 1), 0);
	assert_int_equal(segrig_bad(seg), 2);
}

/* What this process has sent on comes back to it changed. */
static void what_another_process_sent_on_is_read_from_the_segment(void **state)
{
	struct xseg *mine, *others = segrig_attach(segrig_named(&mine));
	struct xseg_peer *origin = segrig_client(mine, "me", 1);
	struct xseg_peer *upper = segrig_server(mine, "upper", 1, 0);
	struct xseg_peer *middle = segrig_server(others, "middle", 1, 0);
	struct xseg_peer *lower = segrig_server(mine, "lower", 1, 0);
	struct xport *o = segrig_port(origin), *u = segrig_port(upper);
	struct xport *m = segrig_port(middle), *l = segrig_port(lower);
	struct xreq *r = xseg_req_alloc(o);

	(void)state;
	r->op = XSEG_OP_INFO;
	segrig_submit(o, r, xseg_peer_index(upper));
	send_on(u, segrig_request(u), "a", 512, middle);
	r = segrig_request(m);
	assert_string_equal(r->target, "a");
	assert_int_equal(r->obj_offset, 512);
	assert_int_equal(r->via, u->index + 1);
	send_on(m, r, "b", 1024, lower);
	r = segrig_request(l);
	assert_string_equal(r->target, "b");
	assert_int_equal(r->obj_offset, 1024);
	assert_int_equal(r->via, m->index + 1);
	segrig_answer(l, r, 0);
	xseg_req_free(o, segrig_reply(o));
	close_peer(origin);
	close_peer(upper);
	close_peer(middle);
	close_peer(lower);
	segrig_sound(mine);
	xseg_detach(others);
	xseg_detach(mine);
}

/* Also where origin and holder are in one process, and somebody writes over the request in
 * between. */
static void what_the_origin_wrote_it_finds_again_whatever_became_of_it(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to), *held;

	(void)state;
	seg->reqs[r->index].page[0].page = r->page[0] + 5;
	seg->reqs[r->index].op = XSEG_OP_DELETE;
	seg->reqs[r->index].size = 512;
	held = segrig_request_is(s, r);
	assert_int_equal(held->op, XSEG_OP_DELETE);
	assert_int_equal(held->page[0], r->page[0] + 5);
	segrig_answer(s, held, 0);
	r = segrig_reply_is(c, r);
	assert_int_equal(r->op, XSEG_OP_WRITE);
	assert_int_equal(r->size, XSEG_PAGE_SIZE);
	assert_int_equal(r->page[0], held->page[0] - 5);
	xseg_req_free(c, r);
}

static void an_edge_that_the_table_has_not_is_refused_and_counted(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	uint64_t place = segrig_place(seg, r), bad = 0;

	(void)state;
	r->op = XSEG_OP_INFO;
	xseg_req_start(c, r);
	xseg_req_apply(c, r);
	xseg_req_answer(c, r, 0);
	assert_int_equal(segrig_bad(seg), bad += 3);
	assert_int_equal(xseg_req_forward(c, r, to), -EINVAL);
	assert_int_equal(segrig_place(seg, r), place);
	segrig_submit(c, r, to);
	r = segrig_request(s);
	place = segrig_place(seg, r);
	xseg_req_apply(s, r);
	xseg_req_free(s, r);
	assert_int_equal(segrig_bad(seg), bad += 2);
	assert_int_equal(xseg_req_submit(s, r, to_f), -EINVAL);
	assert_int_equal(segrig_place(seg, r), place);
	xseg_req_start(s, r);
	xseg_req_start(s, r);
	assert_int_equal(segrig_bad(seg), bad += 1);
	assert_int_equal(xseg_req_forward(s, r, to_f), -EINVAL);
	xseg_req_apply(s, r);
	xseg_req_apply(s, r);
	xseg_req_start(s, r);
	assert_int_equal(segrig_bad(seg), bad += 2);
	xseg_req_answer(s, r, 1);
	xseg_req_answer(s, r, 2);
	assert_int_equal(segrig_bad(seg), bad += 1);
	xseg_port_flush(s);
	r = segrig_reply(c);
	assert_int_equal(r->result, 1);
	xseg_req_free(c, r);
	xseg_req_free(c, r);
	assert_int_equal(segrig_bad(seg), bad += 1);
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void a_request_of_another_port_cannot_be_freed(void **state)
{
	struct xreq *r = xseg_req_alloc(c);

	(void)state;
	xseg_req_free(f, r);
	assert_int_equal(segrig_bad(seg), 1);
	assert_int_equal(xseg_port_nr_free(f), 16);
	xseg_req_free(c, r);
	assert_int_equal(segrig_bad(seg), 1);
}

static void requests_run_out_and_come_back(void **state)
{
	struct xreq *r[17];

	(void)state;
	assert_int_equal(xseg_port_nr_requests(c), 16);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(xseg_port_nr_free(c), 16 - i);
		r[i] = xseg_req_alloc(c);
		assert_non_null(r[i]);
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(r[i], r[k]);
	}
	assert_null(xseg_req_alloc(c));
	assert_null(xseg_req_alloc(s));
	for (unsigned i = 0; i < 16; i++)
		xseg_req_free(c, r[i]);
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void an_offer_out_of_date_is_dropped(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	uint64_t first = offer_word(r->index, r->place);

	(void)state;
	xseg_req_free(c, r);
	xs_offer(c, s->index, first);
	xseg_port_flush(c);
	segrig_nothing(s);
	r = segrig_send(c, XSEG_OP_READ, 0, to);
	xs_offer(c, s->index, first);
	xseg_port_flush(c);
	r = segrig_request_is(s, r);
	segrig_nothing(s);
	segrig_answer(s, r, 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(segrig_bad(seg), 0);
}

static void an_offer_made_twice_is_accepted_once(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to), *out[4];

	(void)state;
	assert_int_equal(xseg_req_submit(c, r, to), 0);
	segrig_submit(c, r, to_f);
	assert_int_equal(xseg_port_receive(s, out, 4), 1);
	assert_int_equal(xseg_port_receive(f, out, 4), 0);
	r = out[0];
	xseg_req_answer(s, r, 0);
	xs_offer_answer(s, c->index, offer_word(r->index, r->place));
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 4), 1);
	assert_int_equal(xseg_port_nr_free(c), 15);
	xseg_req_free(c, out[0]);
	segrig_nothing(c);
}

static void an_offer_of_what_is_not_offered_is_dropped(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to), *out;
	static const enum xseg_req_state held[] = { XSEG_REQ_STARTED, XSEG_REQ_APPLIED,
		XSEG_REQ_ANSWERED };

	(void)state;
	r = segrig_request_is(s, r);
	xs_offer_answer(s, c->index, offer_word(r->index, r->place));
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, &out, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		if (held[i] == XSEG_REQ_STARTED)
			xseg_req_start(s, r);
		else if (held[i] == XSEG_REQ_APPLIED)
			xseg_req_apply(s, r);
		else
			xseg_req_answer(s, r, 0);
		assert_int_equal(place_state(segrig_place(seg, r)), held[i]);
		xs_offer(s, f->index, offer_word(r->index, r->place));
		xs_offer_answer(s, f->index, offer_word(r->index, r->place));
		xseg_port_flush(s);
		assert_int_equal(xseg_port_receive(f, &out, 1), 0);
		assert_int_equal(xseg_port_replies(f, &out, 1), 0);
	}
	xseg_req_free(c, segrig_reply(c));
}

static void an_offer_of_a_free_request_is_dropped(void **state)
{
	struct xreq *r = xseg_req_alloc(c), *out;

	(void)state;
	xseg_req_free(c, r);
	xs_offer(c, s->index, offer_word(r->index, r->place));
	xseg_port_flush(c);
	assert_int_equal(xseg_port_receive(s, &out, 1), 0);
	assert_int_equal(place_state(segrig_place(seg, r)), XSEG_REQ_FREE);
}

static void an_offer_of_a_wild_index_is_counted(void **state)
{
	static const uint32_t wild[] = { 64, 65, 1u << 20, UINT32_MAX };
	struct xreq *out;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		xs_offer(c, s->index, (uint64_t)i << 32 | wild[i]);
		xs_offer_answer(s, c->index, (uint64_t)i << 32 | wild[i]);
		xseg_port_flush(c);
		xseg_port_flush(s);
		assert_int_equal(xseg_port_receive(s, &out, 1), 0);
		assert_int_equal(xseg_port_replies(c, &out, 1), 0);
		assert_int_equal(segrig_bad(seg), 2 * (i + 1));
	}
}

static void who_lost_a_request_cannot_move_it(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to), lost;
	uint64_t place, w;

	(void)state;
	r = segrig_request_is(s, r);
	lost = *r;
	place = r->place + 1;
	w = atomic_load(&server->sh->word);
	atomic_store(&seg->reqs[r->index].place, place);	/* as a successor does */
	atomic_store(&server->sh->word, w + 1);
	xseg_req_start(s, r);
	*r = lost;
	xseg_req_answer(s, r, 4096);
	assert_int_equal(segrig_bad(seg), 2);
	assert_int_equal(segrig_place(seg, r), place);
	xseg_port_flush(s);
	segrig_nothing(c);
	atomic_store(&server->sh->word, w);
	*r = lost;
	r->place = place;
	segrig_answer(s, r, 4096);
	xseg_req_free(c, segrig_reply(c));
}

static void an_answer_to_a_port_that_did_not_ask_is_not_given_to_it(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to), *out;
	uint64_t w;

	(void)state;
	r = segrig_request_is(s, r);
	w = place_word(XSEG_REQ_ANSWERED, f->index, 0, place_seq(r->place) + 1);
	atomic_store(&seg->reqs[r->index].place, w);
	xs_offer_answer(s, f->index, offer_word(r->index, w));
	xseg_port_flush(s);
	xs_port_alert(seg, f->index);
	assert_int_equal(xseg_port_replies(f, &out, 1), 0);
	assert_int_equal(segrig_place(seg, r), w);
}

static void a_request_to_nobody_is_refused_and_stays_with_the_caller(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	uint64_t place = r->place;

	(void)state;
	assert_int_equal(xseg_req_submit(c, r, 12), -ENOENT);
	assert_int_equal(xseg_req_submit(c, r, XSEG_NONE), -ENOENT);
	assert_int_equal(xseg_req_submit(c, r, 16), -ENOENT);
	r->nr_pages = XSEG_REQ_PAGES + 1;
	assert_int_equal(xseg_req_submit(c, r, to), -EINVAL);
	assert_int_equal(segrig_place(seg, r), place);
	xseg_req_free(c, r);
	assert_int_equal(segrig_bad(seg), 0);
}

#define F(name) cmocka_unit_test_setup_teardown(name, setup_forwarder, teardown_forwarder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		F(a_request_goes_all_the_way_and_each_edge_counts_one),
		F(a_request_may_be_answered_before_it_is_started_and_before_it_is_applied),
		F(a_fresh_request_is_blank_but_for_its_pages),
		F(the_receiver_sees_what_the_origin_wrote_and_the_forwarder_added),
		F(what_this_process_sent_on_is_received_whatever_became_of_it),
		cmocka_unit_test_setup_teardown(
			what_was_sent_on_and_found_damaged_is_looked_at_again, setup_forwarder,
			teardown_unsound_forwarder),
		cmocka_unit_test(what_another_process_sent_on_is_read_from_the_segment),
		F(what_the_origin_wrote_it_finds_again_whatever_became_of_it),
		F(an_edge_that_the_table_has_not_is_refused_and_counted),
		F(a_request_of_another_port_cannot_be_freed),
		F(requests_run_out_and_come_back),
		F(an_offer_out_of_date_is_dropped),
		F(an_offer_made_twice_is_accepted_once),
		F(an_offer_of_what_is_not_offered_is_dropped),
		F(an_offer_of_a_free_request_is_dropped),
		F(an_offer_of_a_wild_index_is_counted),
		F(who_lost_a_request_cannot_move_it),
		F(an_answer_to_a_port_that_did_not_ask_is_not_given_to_it),
		F(a_request_to_nobody_is_refused_and_stays_with_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
