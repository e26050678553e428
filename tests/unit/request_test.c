/* request_test - every edge of the place table (xseg/request.c), the edges that it has not, offers out of date, and
 * values that no honest process writes. */
#include "seg_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* A client, a forwarder (port "f") and a store (port "s") of one private segment. */
static struct xseg *seg;
static struct xseg_peer *client, *forwarder, *store;
static struct xport *c, *f, *s;
static uint32_t to_f, to_s;

static int setup(void **state)
{
	(void)state;
	seg = segrig_private();
	client = segrig_client(seg, "me", 16);
	forwarder = segrig_server(seg, "volumed", 1, 16);
	store = segrig_server(seg, "memd", 1, 0);
	c = segrig_port(client);
	f = segrig_port(forwarder);
	s = segrig_port(store);
	to_f = xseg_peer_index(forwarder);
	to_s = xseg_peer_index(store);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xseg_peer_close(client, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(forwarder, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(store, XSEG_CLOSE_KEEP_ARENA);
	xseg_detach(seg);
	return 0;
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
	assert_ptr_equal(segrig_request(f), r);
	edge(r, &seq, XSEG_REQ_AT, f);
	assert_int_equal(xseg_req_forward(f, r, to_s), 0);
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
		r = segrig_send(c, XSEG_OP_READ, 0, to_s);
		assert_ptr_equal(segrig_request(s), r);
		if (started)
			xseg_req_start(s, r);
		segrig_answer(s, r, 17 + started);
		assert_ptr_equal(segrig_reply(c), r);
		assert_int_equal(r->result, 17 + started);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_fresh_request_is_blank_but_for_its_pages(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, XSEG_PAGE_SIZE, to_s);

	(void)state;
	segrig_answer(s, segrig_request(s), -EIO);
	xseg_req_free(c, segrig_reply(c));
	assert_ptr_equal(xseg_req_alloc(c), r);
	assert_int_equal(r->op | r->flags | r->nr_pages | r->size | r->volume | r->parent | r->part, 0);
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
	assert_int_equal(xseg_req_submit(c, r, to_f), 0);
	xseg_port_flush(c);
	r = segrig_request(f);
	xseg_req_set_target(r, "vol.1", 5);
	r->obj_offset = 512;
	assert_int_equal(xseg_req_forward(f, r, to_s), 0);
	xseg_port_flush(f);
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
	assert_ptr_equal(r->cookie, r);
	segrig_answer(s, r, 4096);
	r = segrig_reply(c);
	assert_int_equal(r->result, 4096);
	assert_ptr_equal(r->cookie, r);
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
	assert_int_equal(xseg_req_forward(c, r, to_s), -EINVAL);
	assert_int_equal(segrig_place(seg, r), place);
	assert_int_equal(xseg_req_submit(c, r, to_s), 0);
	xseg_port_flush(c);
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
	assert_int_equal(xs_offer(c, s->index, first), 0);
	xseg_port_flush(c);
	segrig_nothing(s);
	r = segrig_send(c, XSEG_OP_READ, 0, to_s);
	assert_int_equal(xs_offer(c, s->index, first), 0);
	xseg_port_flush(c);
	assert_ptr_equal(segrig_request(s), r);
	segrig_nothing(s);
	segrig_answer(s, r, 0);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(segrig_bad(seg), 0);
}

static void an_offer_made_twice_is_accepted_once(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to_s), *out[4];

	(void)state;
	assert_int_equal(xseg_req_submit(c, r, to_s), 0);
	assert_int_equal(xseg_req_submit(c, r, to_f), 0);
	xseg_port_flush(c);
	assert_int_equal(xseg_port_receive(s, out, 4), 1);
	assert_int_equal(xseg_port_receive(f, out, 4), 0);
	xseg_req_answer(s, r, 0);
	xs_offer_answer(s, c->index, offer_word(r->index, r->place));
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 4), 1);
	assert_int_equal(xseg_port_nr_free(c), 15);
	xseg_req_free(c, r);
	segrig_nothing(c);
}

static void an_offer_of_what_is_not_offered_is_dropped(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to_s), *out;
	static const enum xseg_req_state held[] = { XSEG_REQ_STARTED, XSEG_REQ_APPLIED, XSEG_REQ_ANSWERED };

	(void)state;
	assert_ptr_equal(segrig_request(s), r);
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
		assert_int_equal(xs_offer(s, f->index, offer_word(r->index, r->place)), 0);
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
	assert_int_equal(xs_offer(c, s->index, offer_word(r->index, r->place)), 0);
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
		assert_int_equal(xs_offer(c, s->index, (uint64_t)i << 32 | wild[i]), 0);
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
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to_s), lost;
	uint64_t place;

	(void)state;
	assert_ptr_equal(segrig_request(s), r);
	lost = *r;
	place = r->place + 1;
	atomic_store(&seg->reqs[r->index].place, place);	/* as a successor does */
	xseg_req_start(s, r);
	*r = lost;
	xseg_req_answer(s, r, 4096);
	assert_int_equal(segrig_bad(seg), 2);
	assert_int_equal(segrig_place(seg, r), place);
	xseg_port_flush(s);
	segrig_nothing(c);
	*r = lost;
	r->place = place;
	segrig_answer(s, r, 4096);
	xseg_req_free(c, segrig_reply(c));
}

/* ---- hostile values: each is one write into the request, after it was offered ---- */

typedef void (*scribble)(struct xs_req *q);

static void wild_op(struct xs_req *q) { q->op = XSEG_NR_OPS; }
static void wilder_op(struct xs_req *q) { q->op = 255; }
static void too_many_pages(struct xs_req *q) { q->nr_pages = XSEG_REQ_PAGES + 1; }
static void far_too_many_pages(struct xs_req *q) { q->nr_pages = UINT16_MAX; }
static void too_few_pages(struct xs_req *q) { q->nr_pages = 0; }
static void unaligned_with_a_page_less(struct xs_req *q) { q->offset = 1; }
static void too_large(struct xs_req *q) { q->size = XSEG_REQ_BYTES + 1; }
static void far_too_large(struct xs_req *q) { q->size = UINT32_MAX; }
static void first_page_beyond_the_pool(struct xs_req *q) { q->page[0] = 8 * XSEG_EXTENT_PAGES; }
static void wild_page(struct xs_req *q) { q->page[0] = UINT32_MAX; }
static void page_with_flags_on_top(struct xs_req *q) { q->page[0] |= 1u << 28; }
static void end_beyond_the_numbers(struct xs_req *q) { q->offset = UINT64_MAX - 4095; }
static void origin_of_another(struct xs_req *q) { q->origin = 1; }
static void origin_of_nobody(struct xs_req *q) { q->origin = 15; }
static void wild_origin(struct xs_req *q) { q->origin = UINT16_MAX; }

static void a_request_with_any_wild_value_is_answered_eproto_and_counted(void **state)
{
	static const scribble wild[] = {
		wild_op, wilder_op, too_many_pages, far_too_many_pages, too_few_pages,
		unaligned_with_a_page_less, too_large, far_too_large, first_page_beyond_the_pool, wild_page, page_with_flags_on_top, end_beyond_the_numbers,
		origin_of_another, origin_of_nobody, wild_origin,
	};
	struct xreq *r, *out;

	(void)state;
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		r = segrig_send(c, XSEG_OP_WRITE, 0, to_s);
		wild[i](&seg->reqs[r->index]);
		assert_int_equal(xseg_port_receive(s, &out, 1), 0);
		assert_int_equal(segrig_bad(seg), i + 1);
		/* not flushed by the receiver, who knows nothing of it */
		r = segrig_reply(c);
		assert_int_equal(r->result, -EPROTO);
		xseg_req_free(c, r);
		seg->reqs[r->index].origin = (uint16_t)xseg_port_index(c);
	}
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void good_requests_of_a_batch_with_bad_ones_are_received(void **state)
{
	struct xreq *r[8], *out[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		r[i] = segrig_send(c, XSEG_OP_WRITE, 0, to_s);
	for (unsigned i = 0; i < 8; i += 2)
		seg->reqs[r[i]->index].op = 99;
	assert_int_equal(xseg_port_receive(s, out, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(out[i], r[2 * i + 1]);
		xseg_req_answer(s, out[i], 4096);
	}
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		xseg_req_free(c, out[i]);
	assert_int_equal(segrig_bad(seg), 4);
}

static void a_name_without_an_end_is_cut(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to_s);

	(void)state;
	memset(seg->reqs[r->index].target, 'n', XSEG_TARGET_MAX);
	r = segrig_request(s);
	assert_int_equal(strlen(r->target), XSEG_TARGET_MAX - 1);
	segrig_answer(s, r, 0);
	xseg_req_free(c, segrig_reply(c));
}

static void ops_without_data_need_no_pages(void **state)
{
	static const enum xseg_op op[] = {
		XSEG_OP_FLUSH, XSEG_OP_DISCARD, XSEG_OP_WRITE_ZEROES, XSEG_OP_COPY, XSEG_OP_INFO,
		XSEG_OP_DELETE, XSEG_OP_ADMIN,
	};
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
		r = xseg_req_alloc(c);
		r->op = (uint8_t)op[i];
		r->size = XSEG_REQ_BYTES;
		assert_int_equal(xseg_req_submit(c, r, to_s), 0);
		xseg_port_flush(c);
		segrig_answer(s, segrig_request(s), INT64_MAX);
		r = segrig_reply(c);
		assert_int_equal(r->result, INT64_MAX);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_result_larger_than_what_was_asked_for_is_not_believed(void **state)
{
	static const struct {
		int64_t said, seen;
	} t[] = {
		{ 4096, 4096 }, { 4097, -EPROTO }, { INT64_MAX, -EPROTO },
		{ 0, 0 }, { -EIO, -EIO }, { INT64_MIN, INT64_MIN },
	};
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		segrig_send(c, XSEG_OP_READ, 0, to_s);
		segrig_answer(s, segrig_request(s), t[i].said);
		r = segrig_reply(c);
		assert_true(r->result == t[i].seen);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 2);
}

static void an_answer_to_a_port_that_did_not_ask_is_not_given_to_it(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to_s), *out;
	uint64_t w;

	(void)state;
	assert_ptr_equal(segrig_request(s), r);
	w = place_word(XSEG_REQ_ANSWERED, f->index, 0, place_seq(r->place) + 1);
	atomic_store(&seg->reqs[r->index].place, w);
	xs_offer_answer(s, f->index, offer_word(r->index, w));
	xseg_port_flush(s);
	xs_port_alert(seg, f->index);
	assert_int_equal(xseg_port_replies(f, &out, 1), 0);
	assert_int_equal(segrig_place(seg, r), w);
}

static void a_request_taken_by_somebody_is_not_given_out_and_counted(void **state)
{
	uint32_t next = c->free.idx[c->free.nr - 1];

	(void)state;
	atomic_store(&seg->reqs[next].place, place_word(XSEG_REQ_AT, s->index, 1, 5));
	assert_null(xseg_req_alloc(c));
	assert_int_equal(segrig_bad(seg), 1);
	assert_non_null(xseg_req_alloc(c));
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
	assert_int_equal(xseg_req_submit(c, r, to_s), -EINVAL);
	assert_int_equal(segrig_place(seg, r), place);
	xseg_req_free(c, r);
	assert_int_equal(segrig_bad(seg), 0);
}

static void the_span_of_a_range_is_the_pages_it_touches(void **state)
{
	(void)state;
	assert_int_equal(xseg_req_span(0, 0), 0);
	assert_int_equal(xseg_req_span(4095, 0), 0);
	assert_int_equal(xseg_req_span(0, 1), 1);
	assert_int_equal(xseg_req_span(4095, 1), 1);
	assert_int_equal(xseg_req_span(4095, 2), 2);
	assert_int_equal(xseg_req_span(4096, 4096), 1);
	assert_int_equal(xseg_req_span(1, 4096), 2);
	assert_int_equal(xseg_req_span(UINT64_MAX - 4095, 4096), 1);
	assert_int_equal(xseg_req_span(0, XSEG_REQ_BYTES), 256);
	assert_int_equal(xseg_req_span(512, XSEG_REQ_BYTES), 257);
}

static void the_target_and_its_hash_are_cut_at_127_bytes(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	char name[200];

	(void)state;
	memset(name, 'n', sizeof(name));
	xseg_req_set_target(r, name, sizeof(name));
	assert_int_equal(strlen(r->target), 127);
	assert_int_equal(r->hash, xseg_hash(name, 127));
	xseg_req_set_target(r, "a", 1);
	assert_string_equal(r->target, "a");
	assert_int_not_equal(r->hash, xseg_hash("b", 1));
	xseg_req_free(c, r);
}

static void ops_have_names(void **state)
{
	(void)state;
	assert_string_equal(xseg_op_name(XSEG_OP_READ), "read");
	assert_string_equal(xseg_op_name(XSEG_OP_ADMIN), "admin");
	assert_string_equal(xseg_op_name(XSEG_NR_OPS), "unknown");
	assert_string_equal(xseg_op_name((enum xseg_op)99), "unknown");
}

/* What is written at `from` of a request lies where xseg.h says, and comes back. */
static void data_crosses_pages_at_any_offset(void **state)
{
	uint8_t in[3 * XSEG_PAGE_SIZE], out[sizeof(in)];
	struct xreq *r = xseg_req_alloc(c);
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)segrig_random(&seed);
	for (unsigned round = 0; round < 500; round++) {
		uint32_t from, len;

		r->offset = segrig_random(&seed) % (1 << 20);
		r->size = 1 + segrig_random(&seed) % (2 * XSEG_PAGE_SIZE);
		r->nr_pages = (uint16_t)xseg_req_span(r->offset, r->size);
		for (unsigned i = 0; i < r->nr_pages; i++) {
			r->page[i] = 100 + segrig_random(&seed) % 100 * 4 + i;
			memset(xseg_page(seg, r->page[i]), 0xee, XSEG_PAGE_SIZE);
		}
		from = segrig_random(&seed) % r->size;
		len = segrig_random(&seed) % (r->size - from + 1);
		xseg_req_write_data(seg, r, from, in, len);
		memset(out, 0, sizeof(out));
		xseg_req_read_data(seg, r, from, out, len);
		assert_memory_equal(in, out, len);
		for (uint32_t i = 0; i < r->nr_pages * XSEG_PAGE_SIZE; i++) {
			uint64_t o = r->offset % XSEG_PAGE_SIZE + from;
			uint8_t got = ((uint8_t *)xseg_page(seg, r->page[i / XSEG_PAGE_SIZE]))[i % XSEG_PAGE_SIZE];

			assert_int_equal(got, i >= o && i < o + len ? in[i - o] : 0xee);
		}
	}
	xseg_req_free(c, r);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_request_goes_all_the_way_and_each_edge_counts_one),
		T(a_request_may_be_answered_before_it_is_started_and_before_it_is_applied),
		T(a_fresh_request_is_blank_but_for_its_pages),
		T(the_receiver_sees_what_the_origin_wrote_and_the_forwarder_added),
		T(an_edge_that_the_table_has_not_is_refused_and_counted),
		T(a_request_of_another_port_cannot_be_freed),
		T(requests_run_out_and_come_back),
		T(an_offer_out_of_date_is_dropped),
		T(an_offer_made_twice_is_accepted_once),
		T(an_offer_of_what_is_not_offered_is_dropped),
		T(an_offer_of_a_free_request_is_dropped),
		T(an_offer_of_a_wild_index_is_counted),
		T(who_lost_a_request_cannot_move_it),
		T(a_request_with_any_wild_value_is_answered_eproto_and_counted),
		T(good_requests_of_a_batch_with_bad_ones_are_received),
		T(a_name_without_an_end_is_cut),
		T(ops_without_data_need_no_pages),
		T(a_result_larger_than_what_was_asked_for_is_not_believed),
		T(an_answer_to_a_port_that_did_not_ask_is_not_given_to_it),
		T(a_request_taken_by_somebody_is_not_given_out_and_counted),
		T(a_request_to_nobody_is_refused_and_stays_with_the_caller),
		T(the_span_of_a_range_is_the_pages_it_touches),
		T(the_target_and_its_hash_are_cut_at_127_bytes),
		T(ops_have_names),
		T(data_crosses_pages_at_any_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
