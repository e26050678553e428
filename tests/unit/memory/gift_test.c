/* gift_test - pages that a write gives, and pages that it borrows in exchange (xseg/gift.c). */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

#define LENT 3000u		/* pages of the lender: any of the pool's */

static uint32_t times;

static void note(uint32_t page, uint32_t port, unsigned look, void *arg)
{
	(void)port;
	(void)look;
	times += page == *(uint32_t *)arg;
}

/* A request lists it. */
static bool is_pinned(uint32_t page)
{
	times = 0;
	xseg_loans(seg, note, &page);
	return times > 0;
}

static struct xreq *new_write(uint32_t n)
{
	return segrig_alloc(c, XSEG_OP_WRITE, XSEG_REQ_GIVE, n);
}

/* As its holder sees it. */
static struct xreq *send(struct xreq *r)
{
	segrig_submit(c, r, to);
	return segrig_request(s);
}

static struct xreq *answered(struct xreq *r)
{
	segrig_answer(s, r, r->size);
	return segrig_reply(c);
}

/* Lends LENT + i for each page, and returns the request to its origin. */
static struct xreq *lent(uint32_t n)
{
	struct xreq *r = send(new_write(n));

	for (uint32_t i = 0; i < n; i++)
		assert_true(xseg_req_exchange(seg, r, i, LENT + i));
	return answered(r);
}

static void a_first_write_is_copied_and_is_lent_pages_to_write_in(void **state)
{
	struct xreq *r = send(new_write(2));

	(void)state;
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_NONE);
	assert_int_equal(r->page[1], 1);
	assert_true(xseg_req_exchange(seg, r, 1, LENT));
	assert_true(is_pinned(LENT));
	r = answered(r);
	assert_int_equal(r->result, 2 * XSEG_PAGE_SIZE);
	assert_true(xseg_req_has_gift(r));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 0), xseg_page(seg, 0));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 1), xseg_page(seg, LENT));
	assert_int_equal(r->page[1], 1);	/* its own is still its own */
	xseg_req_free(c, r);
	assert_false(is_pinned(LENT));
}

static void what_was_lent_is_given_with_the_next_write_and_exchanged(void **state)
{
	struct xreq *r = send(lent(2));

	(void)state;
	assert_int_equal(r->page[0], LENT);
	assert_int_equal(r->page[1], LENT + 1);
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_GIVEN);
	assert_int_equal(xseg_req_gift(seg, r, 1), XSEG_GIFT_GIVEN);
	assert_true(is_pinned(LENT));
	assert_true(xseg_req_exchange(seg, r, 0, LENT + 7));
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_TAKEN);
	assert_int_equal(xseg_req_gift(seg, r, 1), XSEG_GIFT_GIVEN);
	assert_true(xseg_req_exchange(seg, r, 1, XSEG_NONE));
	assert_int_equal(xseg_req_gift(seg, r, 1), XSEG_GIFT_TAKEN);
	assert_false(is_pinned(LENT));
	assert_true(is_pinned(LENT + 7));
	r = answered(r);
	assert_ptr_equal(xseg_req_gift_page(seg, r, 0), xseg_page(seg, LENT + 7));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 1), xseg_page(seg, 1));
	xseg_req_free(c, r);
}

/* Its lender does not serve this one, or has nothing to give for it. */
static void what_nobody_took_is_let_go_of_with_the_answer(void **state)
{
	struct xreq *r = answered(send(lent(2)));

	(void)state;
	assert_false(xseg_req_has_gift(r));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 0), xseg_page(seg, 0));
	assert_false(is_pinned(LENT));
	r = send(r);
	assert_int_equal(r->page[0], 0);
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_NONE);
	xseg_req_free(c, answered(r));
}

static void a_successor_of_the_holder_sees_what_was_taken(void **state)
{
	struct xreq *r = send(lent(2));

	(void)state;
	assert_true(xseg_req_exchange(seg, r, 0, LENT + 7));
	/* as one that takes over */
	assert_int_equal(xs_req_copy_in(seg, r, &(struct xs_origin){ .port = XSEG_NONE }), 0);
	assert_int_equal(r->page[0], LENT);
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_TAKEN);
	assert_int_equal(xseg_req_gift(seg, r, 1), XSEG_GIFT_GIVEN);
	assert_true(is_pinned(LENT + 7) && is_pinned(LENT + 1));
	xseg_req_free(c, answered(r));
}

static void a_request_with_more_or_fewer_pages_than_the_last_lists_just_what_it_has(void **state)
{
	struct xreq *r = lent(3);

	(void)state;
	r->nr_pages = 1;
	r->size = XSEG_PAGE_SIZE;
	r = send(r);
	assert_true(is_pinned(LENT));
	assert_false(is_pinned(LENT + 1) || is_pinned(LENT + 2));
	assert_true(xseg_req_exchange(seg, r, 0, LENT + 7));
	assert_false(xseg_req_exchange(seg, r, 1, LENT + 8));
	r = answered(r);
	r->nr_pages = 3;
	r->size = 3 * XSEG_PAGE_SIZE;
	r = send(r);
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_GIVEN);
	assert_int_equal(xseg_req_gift(seg, r, 1), XSEG_GIFT_NONE);
	assert_int_equal(r->page[2], 2);
	assert_false(is_pinned(LENT + 1));
	xseg_req_free(c, answered(r));
}

static void who_writes_without_giving_or_reads_lets_go(void **state)
{
	struct xreq *r = lent(1);

	(void)state;
	r->flags = 0;
	r = send(r);
	assert_int_equal(r->page[0], 0);
	assert_false(is_pinned(LENT));
	assert_false(xseg_req_exchange(seg, r, 0, LENT));
	xseg_req_free(c, answered(r));
	r = lent(1);
	r->op = XSEG_OP_READ;
	r->flags = XSEG_REQ_LOAN | XSEG_REQ_GIVE;
	r = send(r);
	assert_int_equal(xseg_req_gift(seg, r, 0), XSEG_GIFT_NONE);
	xseg_req_lend(s, r, 0, LENT + 1);
	r = answered(r);
	assert_ptr_equal(xseg_req_page(seg, r, 0), xseg_page(seg, LENT + 1));
	assert_false(xseg_req_has_gift(r));	/* it is to be read only */
	assert_ptr_equal(xseg_req_gift_page(seg, r, 0), xseg_page(seg, 0));
	r->op = XSEG_OP_WRITE;
	r = send(r);
	assert_false(is_pinned(LENT + 1));
	xseg_req_free(c, answered(r));
}

static void what_was_lent_may_be_dropped(void **state)
{
	struct xreq *r = lent(1);

	(void)state;
	xseg_req_drop_loans(c, r);
	assert_false(is_pinned(LENT));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 0), xseg_page(seg, 0));
	xseg_req_free(c, r);
}

static void a_wild_page_lent_is_an_error_and_is_never_written(void **state)
{
	const uint32_t wild[] = { seg->nr_pages | XSEG_LENT_PAGE | XSEG_LENT_GIFT,
		LENT | XSEG_LENT_PAGE, LENT | XSEG_LENT_GIFT, UINT32_MAX, XSEG_LENT_ZEROES };

	(void)state;
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		uint64_t bad = segrig_bad(seg);
		struct xreq *r = send(new_write(2));

		atomic_store(&seg->reqs[r->index].page[1].lent, wild[i]);
		r = answered(r);
		assert_int_equal(r->result, -EPROTO);
		assert_int_equal(segrig_bad(seg), bad + 1);
		assert_ptr_equal(xseg_req_gift_page(seg, r, 1), xseg_page(seg, 1));
		xseg_req_free(c, r);
	}
}

static void a_given_flag_on_a_request_that_gives_nothing_is_an_error(void **state)
{
	struct xreq *r = new_write(1), *got;

	(void)state;
	segrig_submit(c, r, to);
	seg->reqs[r->index].page[0].page = 5 | XSEG_PAGE_GIVEN;
	seg->reqs[r->index].flags = 0;
	assert_int_equal(xseg_port_receive(s, &got, 1), 0);
	r = segrig_reply(c);
	assert_int_equal(r->result, -EPROTO);
	xseg_req_free(c, r);
}

/* ---- parts ---- */

static struct xreq *part(struct xport *v, const struct xreq *parent, uint32_t first, uint32_t n)
{
	struct xreq *child = xseg_req_alloc(v);

	child->op = parent->op;
	child->flags = parent->flags;
	child->offset = parent->offset + (uint64_t)first * XSEG_PAGE_SIZE;
	child->size = n * XSEG_PAGE_SIZE;
	child->nr_pages = (uint16_t)n;
	memcpy(child->page, parent->page + first, n * sizeof(child->page[0]));
	child->parent = parent->index + 1;
	segrig_submit(v, child, to);
	return segrig_request(s);
}

static void what_a_part_gives_is_exchanged_in_the_list_of_the_request_that_was_split(void **state)
{
	struct xseg_peer *splitter = segrig_server(seg, "volumed", 1, 16);
	struct xport *v = segrig_port(splitter);
	struct xreq *r = lent(4), *parent, *child;

	(void)state;
	r->offset = 8 * XSEG_PAGE_SIZE;
	segrig_submit(c, r, xseg_peer_index(splitter));
	parent = segrig_request(v);
	child = part(v, parent, 2, 2);
	assert_int_equal(child->page[0], LENT + 2);
	assert_int_equal(xseg_req_gift(seg, child, 0), XSEG_GIFT_GIVEN);
	assert_true(xseg_req_exchange(seg, child, 0, LENT + 7));
	assert_int_equal(xseg_req_gift(seg, child, 0), XSEG_GIFT_TAKEN);
	assert_int_equal(xseg_req_gift(seg, child, 1), XSEG_GIFT_GIVEN);
	assert_false(is_pinned(LENT + 2));
	assert_true(is_pinned(LENT + 7) && is_pinned(LENT + 3));
	segrig_answer(s, child, child->size);
	xseg_req_free(v, segrig_reply(v));
	segrig_answer(v, parent, parent->size);
	r = segrig_reply(c);
	assert_ptr_equal(xseg_req_gift_page(seg, r, 2), xseg_page(seg, LENT + 7));
	assert_ptr_equal(xseg_req_gift_page(seg, r, 3), xseg_page(seg, 3));
	xseg_req_free(c, r);
	close_peer(splitter);
}

static void a_part_of_nothing_or_of_something_else_exchanges_nothing(void **state)
{
	struct xseg_peer *splitter = segrig_server(seg, "volumed", 1, 16);
	struct xport *v = segrig_port(splitter);
	struct xreq *r = lent(2), *parent, *child;

	(void)state;
	segrig_submit(c, r, xseg_peer_index(splitter));
	parent = segrig_request(v);
	child = part(v, parent, 0, 2);
	child->parent = seg->geo.nr_requests + 1;
	assert_int_equal(xseg_req_gift(seg, child, 0), XSEG_GIFT_NONE);
	assert_false(xseg_req_exchange(seg, child, 0, LENT + 7));
	child->parent = parent->index + 1;
	child->offset = (uint64_t)XSEG_REQ_PAGES * XSEG_PAGE_SIZE;
	assert_false(xseg_req_exchange(seg, child, 0, LENT + 7));
	child->offset = XSEG_PAGE_SIZE;
	/* page 1 of the parent's is another */
	assert_int_equal(xseg_req_gift(seg, child, 0), XSEG_GIFT_NONE);
	child->offset = 0;
	segrig_answer(s, child, child->size);
	xseg_req_free(v, segrig_reply(v));
	segrig_answer(v, parent, parent->size);
	xseg_req_free(c, segrig_reply(c));
	close_peer(splitter);
}

/* ---- deaths ---- */

static void what_a_dead_client_was_lent_is_pinned_until_it_is_swept(void **state)
{
	(void)state;
	lent(1);
	abandon(client);
	assert_true(is_pinned(LENT));
	assert_int_equal(xseg_sweep(seg), 1);
	assert_false(is_pinned(LENT));
}

static void a_lender_is_not_forgotten_while_somebody_may_write_into_its_pages(void **state)
{
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xreq *r;

	(void)state;
	assert_int_equal(xseg_pages_take(server, XSEG_EXTENT_PAGES, page), 0);
	r = send(new_write(1));
	assert_true(xseg_req_exchange(seg, r, 0, page[5]));
	r = answered(r);
	abandon(server);
	assert_int_equal(xseg_peer_forget(seg, to), -ENOTEMPTY);
	xseg_req_free(c, r);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_first_write_is_copied_and_is_lent_pages_to_write_in),
		P(what_was_lent_is_given_with_the_next_write_and_exchanged),
		P(what_nobody_took_is_let_go_of_with_the_answer),
		P(a_successor_of_the_holder_sees_what_was_taken),
		P(a_request_with_more_or_fewer_pages_than_the_last_lists_just_what_it_has),
		P(who_writes_without_giving_or_reads_lets_go),
		P(what_was_lent_may_be_dropped),
		P(a_wild_page_lent_is_an_error_and_is_never_written),
		P(a_given_flag_on_a_request_that_gives_nothing_is_an_error),
		P(what_a_part_gives_is_exchanged_in_the_list_of_the_request_that_was_split),
		P(a_part_of_nothing_or_of_something_else_exchanges_nothing),
		P(what_a_dead_client_was_lent_is_pinned_until_it_is_swept),
		P(a_lender_is_not_forgotten_while_somebody_may_write_into_its_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
