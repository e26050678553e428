/* hostile_test - what an evil process writes into the segment's tables: no crash, no look outside of what is there, and those
 * whom it does not concern go on. Values of requests: request_content_test. */
#include "tests/unit/seg_pair.h"

#include <errno.h>
#include <string.h>

/* ---- hints ------------------------------------------------------------------------------- */

static void mask_bits_of_ports_that_the_segment_has_not_are_left_alone(void **state)
{
	(void)state;
	assert_true(seg->geo.nr_ports < 64);
	for (unsigned queue = 0; queue < 2; queue++)
		for (unsigned from = seg->geo.nr_ports; from < XSEG_MAX_PORTS; from++)
			atomic_store(&s->sh->lane[queue][from], 1);
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned queue = 0; queue < 2; queue++)
			for (unsigned w = 0; w < XSEG_MASK_WORDS; w++)
				atomic_store(&s->sh->mask[queue][w], UINT64_MAX << (i % 64));
		xs_port_peek(s);
		segrig_nothing(s);
	}
	segrig_send(c, XSEG_OP_READ, 0, to);
	segrig_answer(s, segrig_request(s), 0);
	xseg_req_free(c, segrig_reply(c));
}

/* ---- places and offers ------------------------------------------------------------------- */

/* Makes the place say what it likes, and offers that to the port. */
static void forge(struct xport *at, uint32_t queue, uint32_t index, enum xseg_req_state state, uint32_t port)
{
	uint64_t place = place_word(state, port, 0, place_seq(seg->reqs[index].place) + 7);

	atomic_store(&seg->reqs[index].place, place);
	if (queue == QUEUE_REQUEST)
		assert_int_equal(xs_offer(c, at->index, offer_word(index, place)), 0);
	else
		xs_offer_answer(c, at->index, offer_word(index, place));
	xseg_port_flush(c);
}

static void what_a_process_has_it_is_not_handed_again(void **state)
{
	struct xreq *r;

	(void)state;
	segrig_send(c, XSEG_OP_READ, 0, to);
	r = segrig_request(s);
	forge(s, QUEUE_REQUEST, r->index, XSEG_REQ_PRIVATE, c->index);
	segrig_nothing(s);
	forge(s, QUEUE_REQUEST, r->index, XSEG_REQ_AT, s->index);
	segrig_nothing(s);
	assert_int_equal(segrig_bad(seg), 2);
}

static void what_is_answered_may_come_again(void **state)
{
	struct xreq *r;

	(void)state;
	segrig_send(c, XSEG_OP_READ, 0, to);
	r = segrig_request(s);
	segrig_answer(s, r, 0);
	forge(s, QUEUE_REQUEST, r->index, XSEG_REQ_PRIVATE, c->index);
	assert_ptr_equal(segrig_request(s), r);
}

static void an_answer_that_nobody_asked_for_is_not_taken(void **state)
{
	struct xreq *r = xseg_req_alloc(c);

	(void)state;
	forge(c, QUEUE_REPLY, r->index, XSEG_REQ_ANSWERED, c->index);
	segrig_nothing(c);
	forge(c, QUEUE_REPLY, r->index + 1, XSEG_REQ_ANSWERED, c->index);
	segrig_nothing(c);
	assert_int_equal(segrig_bad(seg), 2);
	xs_port_alert(seg, c->index);
	segrig_nothing(c);
}

static void an_answer_is_taken_once(void **state)
{
	struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to);

	(void)state;
	segrig_answer(s, segrig_request(s), 0);
	assert_ptr_equal(segrig_reply(c), r);
	forge(c, QUEUE_REPLY, r->index, XSEG_REQ_ANSWERED, c->index);
	segrig_nothing(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(mask_bits_of_ports_that_the_segment_has_not_are_left_alone),
		U(what_a_process_has_it_is_not_handed_again),
		U(what_is_answered_may_come_again),
		U(an_answer_that_nobody_asked_for_is_not_taken),
		U(an_answer_is_taken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
