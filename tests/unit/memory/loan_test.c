/* loan_test - pages that an answer lends (xseg/loan.c): pinned until they are dropped, whichever
 * process dies, and checked by their reader.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

#define PAGE 3000u		/* any of the pool's */

struct shown {
	uint32_t page, port, times;
};

static void note(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	struct shown *seen = arg;

	(void)look;
	if (page != seen->page)
		return;
	seen->port = port;
	seen->times++;
}

static struct shown shown(uint32_t page)
{
	struct shown seen = { .page = page };

	xseg_loans(seg, note, &seen);
	return seen;
}

/* A read of n pages that may be lent some, at the server. */
static struct xreq *ask(uint32_t n)
{
	segrig_submit(c, segrig_alloc(c, XSEG_OP_READ, XSEG_REQ_LOAN, n), to);
	return segrig_request(s);
}

static struct xreq *answered(struct xreq *r)
{
	segrig_answer(s, r, r->size);
	return segrig_reply(c);
}

static void what_is_lent_is_read_where_it_is_and_the_rest_in_the_origins_own_page(void **state)
{
	struct xreq *r = ask(3);
	char got[3 * XSEG_PAGE_SIZE];

	(void)state;
	memset(xseg_page(seg, 0), 0x11, XSEG_PAGE_SIZE);
	memset(xseg_page(seg, 2), 0x22, XSEG_PAGE_SIZE);
	memset(xseg_page(seg, PAGE), 0x33, XSEG_PAGE_SIZE);
	xseg_req_lend(s, r, 1, PAGE);
	xseg_req_lend(s, r, 2, XSEG_NONE);
	assert_int_equal(shown(0).times, 0);	/* zeroes are no page */
	r = answered(r);
	assert_int_equal(r->result, 3 * XSEG_PAGE_SIZE);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, 0));
	assert_ptr_equal(xseg_req_page(seg, r, 1), xseg_page(seg, PAGE));
	xseg_req_read_data(seg, r, 0, got, sizeof(got));
	assert_int_equal(got[0], 0x11);
	assert_int_equal(got[XSEG_PAGE_SIZE], 0x33);
	assert_int_equal(got[2 * XSEG_PAGE_SIZE], 0);
	assert_int_equal(got[sizeof(got) - 1], 0);
	assert_int_equal(r->page[1], 1);	/* its own pages are still its own */
	xseg_req_free(c, r);
}

static void a_page_is_pinned_from_when_it_is_lent_until_the_request_is_free(void **state)
{
	struct xreq *r = ask(2);

	(void)state;
	assert_int_equal(shown(PAGE).times, 0);
	xseg_req_lend(s, r, 1, PAGE);
	assert_int_equal(shown(PAGE).times, 2);
	assert_int_equal(shown(PAGE).port, c->index);
	r = answered(r);
	assert_int_equal(shown(PAGE).times, 2);
	xseg_req_free(c, r);
	assert_int_equal(shown(PAGE).times, 0);
}

static void a_request_that_is_used_again_pins_nothing(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	r = answered(r);
	r->op = XSEG_OP_WRITE;
	r->flags = 0;
	segrig_submit(c, r, to);
	assert_int_equal(shown(PAGE).times, 0);
	r = segrig_request(s);
	segrig_answer(s, r, r->size);
	xseg_req_free(c, segrig_reply(c));
	r = ask(1);	/* and nothing is left of it for the next */
	assert_int_equal(shown(PAGE).times, 0);
	xseg_req_free(c, answered(r));
}

static void loans_may_be_dropped_before_the_request_is(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	r = answered(r);
	xseg_req_drop_loans(c, r);
	assert_int_equal(shown(PAGE).times, 0);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, 0));
	xseg_req_free(c, r);
}

static void the_first_loan_of_an_answer_clears_what_an_earlier_holder_had_listed(void **state)
{
	struct xreq *r = ask(2);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	r->nr_lent = 0;		/* as a successor's private copy */
	xseg_req_lend(s, r, 1, PAGE + 1);
	assert_int_equal(shown(PAGE).times, 0);
	assert_int_equal(shown(PAGE + 1).times, 2);
	r = answered(r);
	assert_int_equal(r->lent[0], 0);
	xseg_req_free(c, r);
}

static void an_answer_that_lends_nothing_drops_what_an_earlier_holder_had_listed(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	r->nr_lent = 0;
	r = answered(r);
	assert_int_equal(r->nr_lent, 0);
	assert_int_equal(shown(PAGE).times, 0);
	xseg_req_free(c, r);
}

static void a_wild_page_in_an_answer_is_an_error_and_is_never_read(void **state)
{
	const uint32_t wild[] = { seg->nr_pages, 0x7fffffff, UINT32_MAX & XSEG_PAGE_INDEX };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bad = segrig_bad(seg);
		struct xreq *r = ask(2);

		xseg_req_lend(s, r, 1, wild[i]);
		assert_int_equal(shown(wild[i]).times, 0);
		r = answered(r);
		assert_int_equal(r->result, -EPROTO);
		assert_int_equal(segrig_bad(seg), bad + 1);
		assert_ptr_equal(xseg_req_page(seg, r, 1), xseg_page(seg, 1));
		xseg_req_free(c, r);
	}
}

static void neither_a_page_nor_zeroes_is_an_error_too(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	atomic_store(&seg->reqs[r->index].page[0].lent, PAGE);
	r = answered(r);
	assert_int_equal(r->result, -EPROTO);
	xseg_req_free(c, r);
}

static void more_loans_than_pages_are_not_believed(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	atomic_store(&seg->reqs[r->index].nr_lent, UINT16_MAX);
	r = answered(r);
	assert_int_equal(r->nr_lent, 1);
	xseg_req_free(c, r);
}

static void who_did_not_ask_for_loans_gets_none(void **state)
{
	struct xreq *r;

	(void)state;
	segrig_send(c, XSEG_OP_READ, 0, to);
	r = segrig_request(s);
	xseg_req_lend(s, r, 0, PAGE);
	r = answered(r);
	assert_int_equal(r->nr_lent, 0);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, r->page[0]));
	xseg_req_free(c, r);
}

static void a_dead_clients_loans_are_gone_when_it_is_swept(void **state)
{
	struct xreq *r = ask(1);

	(void)state;
	xseg_req_lend(s, r, 0, PAGE);
	answered(r);
	abandon(client);
	assert_int_equal(shown(PAGE).times, 2);
	assert_int_equal(xseg_sweep(seg), 1);
	assert_int_equal(shown(PAGE).times, 0);
}

/* The one behind which another port's begin. */
static struct xreq *last_request(struct xport *port)
{
	struct xreq *all[64], *r, *last = NULL;
	uint32_t nr = 0;

	while ((r = xseg_req_alloc(port)))
		all[nr++] = r;
	for (uint32_t i = 0; i < nr; i++)
		if (!last || all[i]->index > last->index)
			last = all[i];
	while (nr-- > 0)
		if (all[nr] != last)
			xseg_req_free(port, all[nr]);
	return last;
}

static void what_a_part_was_lent_goes_to_the_request_that_was_split_before_the_part_is_free(void **state)
{
	struct xseg_peer *splitter = segrig_server(seg, "volumed", 1, 16);
	struct xport *v = segrig_port(splitter);
	struct xreq *parent = last_request(c), *child;

	(void)state;
	parent->op = XSEG_OP_READ;
	parent->flags = XSEG_REQ_LOAN;
	parent->size = 4 * XSEG_PAGE_SIZE;
	parent->nr_pages = 4;
	for (uint32_t i = 0; i < 4; i++)
		parent->page[i] = i;
	segrig_submit(c, parent, xseg_peer_index(splitter));
	parent = segrig_request(v);
	child = xseg_req_alloc(v);
	child->op = XSEG_OP_READ;
	child->flags = XSEG_REQ_LOAN;
	child->size = 2 * XSEG_PAGE_SIZE;
	child->nr_pages = 2;
	child->page[0] = 2;
	child->page[1] = 3;
	child->parent = parent->index + 1;
	child->part = 1;
	segrig_submit(v, child, to);
	child = segrig_request(s);
	assert_int_equal(xseg_req_borrower(seg, child), c->index);
	xseg_req_lend(s, child, 1, PAGE);
	assert_int_equal(shown(PAGE).port, c->index);
	segrig_answer(s, child, child->size);
	child = segrig_reply(v);
	xseg_req_pass_loans(v, child, parent, 2);
	assert_int_equal(shown(PAGE).times, 4);
	xseg_req_free(v, child);
	assert_int_equal(shown(PAGE).times, 2);
	segrig_answer(v, parent, parent->size);
	parent = segrig_reply(c);
	assert_ptr_equal(xseg_req_page(seg, parent, 2), xseg_page(seg, 2));
	assert_ptr_equal(xseg_req_page(seg, parent, 3), xseg_page(seg, PAGE));
	xseg_req_free(c, parent);
	close_peer(splitter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(what_is_lent_is_read_where_it_is_and_the_rest_in_the_origins_own_page),
		P(a_page_is_pinned_from_when_it_is_lent_until_the_request_is_free),
		P(a_request_that_is_used_again_pins_nothing),
		P(loans_may_be_dropped_before_the_request_is),
		P(the_first_loan_of_an_answer_clears_what_an_earlier_holder_had_listed),
		P(an_answer_that_lends_nothing_drops_what_an_earlier_holder_had_listed),
		P(a_wild_page_in_an_answer_is_an_error_and_is_never_read),
		P(neither_a_page_nor_zeroes_is_an_error_too),
		P(more_loans_than_pages_are_not_believed),
		P(who_did_not_ask_for_loans_gets_none),
		P(a_dead_clients_loans_are_gone_when_it_is_swept),
		P(what_a_part_was_lent_goes_to_the_request_that_was_split_before_the_part_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
