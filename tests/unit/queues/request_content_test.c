/* request_content_test - the content of a request: values that no honest process writes, results,
 * names and data.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

/* ---- hostile values: each is one write into the request, after it was offered ------------ */

typedef void (*scribble)(struct xs_req *q);

static void wild_op(struct xs_req *q) { q->op = XSEG_NR_OPS; }
static void wilder_op(struct xs_req *q) { q->op = 255; }
static void too_many_pages(struct xs_req *q) { q->nr_pages = XSEG_REQ_PAGES + 1; }
static void far_too_many_pages(struct xs_req *q) { q->nr_pages = UINT16_MAX; }
static void too_few_pages(struct xs_req *q) { q->nr_pages = 0; }
static void unaligned_with_a_page_less(struct xs_req *q) { q->offset = 1; }
static void too_large(struct xs_req *q) { q->size = XSEG_REQ_BYTES + 1; }
static void far_too_large(struct xs_req *q) { q->size = UINT32_MAX; }
static void first_page_beyond_the_pool(struct xs_req *q)
{
	q->page[0].page = 8 * XSEG_EXTENT_PAGES;
}
static void wild_page(struct xs_req *q) { q->page[0].page = UINT32_MAX; }
static void page_with_flags_on_top(struct xs_req *q) { q->page[0].page |= 1u << 28; }
static void end_beyond_the_numbers(struct xs_req *q) { q->offset = UINT64_MAX - 4095; }
static void origin_of_another(struct xs_req *q) { q->origin = 2; }
static void origin_of_nobody(struct xs_req *q) { q->origin = 15; }
static void wild_origin(struct xs_req *q) { q->origin = UINT16_MAX; }

static void a_request_with_any_wild_value_is_answered_eproto_and_counted(void **state)
{
	static const scribble wild[] = {
		wild_op, wilder_op, too_many_pages, far_too_many_pages, too_few_pages,
		unaligned_with_a_page_less, too_large, far_too_large, first_page_beyond_the_pool,
		wild_page, page_with_flags_on_top, end_beyond_the_numbers, origin_of_another,
		origin_of_nobody, wild_origin,
	};
	struct xseg_peer *another = segrig_client(seg, "another", 16);
	struct xreq *r, *out;

	(void)state;
	assert_int_equal(segrig_port(another)->index, 2);
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		r = segrig_send(c, XSEG_OP_WRITE, 0, to);
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
	close_peer(another);
}

static void good_requests_of_a_batch_with_bad_ones_are_received(void **state)
{
	struct xreq *r[8], *out[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		r[i] = segrig_send(c, XSEG_OP_WRITE, 0, to);
	for (unsigned i = 0; i < 8; i += 2)
		seg->reqs[r[i]->index].op = 99;
	assert_int_equal(xseg_port_receive(s, out, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(out[i]->index, r[2 * i + 1]->index);
		xseg_req_answer(s, out[i], 4096);
	}
	xseg_port_flush(s);
	assert_int_equal(xseg_port_replies(c, out, 8), 8);
	for (unsigned i = 0; i < 8; i++)
		xseg_req_free(c, out[i]);
	assert_int_equal(segrig_bad(seg), 4);
}

static void names_of_every_length_arrive_whatever_was_there_before(void **state)
{
	char name[XSEG_TARGET_MAX];

	(void)state;
	for (size_t len = XSEG_TARGET_MAX; len-- > 0;) {
		struct xreq *r = xseg_req_alloc(c);

		memset(name, 'a' + (int)(len % 26), len);
		name[len] = '\0';
		xseg_req_set_target(r, name, len);
		r->op = XSEG_OP_INFO;
		segrig_submit(c, r, to);
		r = segrig_request(s);
		assert_string_equal(r->target, name);
		segrig_answer(s, r, 0);
		xseg_req_free(c, segrig_reply(c));
	}
}

static void a_name_without_an_end_is_cut(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_WRITE, 0, to);

	(void)state;
	memset(seg->reqs[r->index].target, 'n', XS_TARGET_HEAD);
	memset(seg->reqs[r->index].target_rest, 'n', XSEG_TARGET_MAX - XS_TARGET_HEAD);
	r = segrig_request(s);
	assert_int_equal(strlen(r->target), XSEG_TARGET_MAX - 1);
	segrig_answer(s, r, 0);
	xseg_req_free(c, segrig_reply(c));
}

static void ops_without_data_need_no_pages(void **state)
{
	static const enum xseg_op op[] = {
		XSEG_OP_FLUSH, XSEG_OP_DISCARD, XSEG_OP_WRITE_ZEROES, XSEG_OP_COPY, XSEG_OP_INFO,
		XSEG_OP_DELETE, XSEG_OP_ADMIN, XSEG_OP_LIST,
	};
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < sizeof(op) / sizeof(op[0]); i++) {
		r = xseg_req_alloc(c);
		r->op = (uint8_t)op[i];
		r->size = XSEG_REQ_BYTES;
		segrig_submit(c, r, to);
		segrig_answer(s, segrig_request(s), INT64_MAX);
		r = segrig_reply(c);
		assert_int_equal(r->result, INT64_MAX);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_result_that_cannot_be_is_not_believed(void **state)
{
	static const struct {
		int64_t said, seen;
	} t[] = {
		{ 4096, 4096 }, { 4097, -EPROTO }, { INT64_MAX, -EPROTO },
		{ 0, 0 }, { -EIO, -EIO }, { -4095, -4095 }, { -4096, -EPROTO },
		  { -(1ll << 32), -EPROTO },
		{ INT64_MIN, -EPROTO },
	};
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		segrig_send(c, XSEG_OP_READ, 0, to);
		segrig_answer(s, segrig_request(s), t[i].said);
		r = segrig_reply(c);
		assert_true(r->result == t[i].seen);
		xseg_req_free(c, r);
	}
	assert_int_equal(segrig_bad(seg), 5);
}

/* ---- names and data -------------------------------------------------------------------- */

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
			uint8_t *page = xseg_page(seg, r->page[i / XSEG_PAGE_SIZE]);

			assert_int_equal(page[i % XSEG_PAGE_SIZE],
				i >= o && i < o + len ? in[i - o] : 0xee);
		}
	}
	xseg_req_free(c, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_request_with_any_wild_value_is_answered_eproto_and_counted),
		P(good_requests_of_a_batch_with_bad_ones_are_received),
		P(names_of_every_length_arrive_whatever_was_there_before),
		P(a_name_without_an_end_is_cut),
		P(ops_without_data_need_no_pages),
		P(a_result_that_cannot_be_is_not_believed),
		P(the_span_of_a_range_is_the_pages_it_touches),
		P(the_target_and_its_hash_are_cut_at_127_bytes),
		P(ops_have_names),
		P(data_crosses_pages_at_any_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
