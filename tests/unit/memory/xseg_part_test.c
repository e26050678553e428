/* xseg_part_test - the parts of a split request whose splitter dies (xs_req_home(),
 * xseg_peer_orphans()). Answered parts are marked in the parent, however far the splitter had come,
 * and nothing else is. tests/model/repair.pml has every order.
 */
#include "tests/rig/seg_pair.h"

#define PART 3

static struct xseg_peer *splitter;
static struct xport *u;
static struct xreq *parent;

/* The client's request is at the splitter. */
static void splitter_open(void)
{
	splitter = segrig_server(seg, "volumed", 1, 16);
	u = segrig_port(splitter);
	parent = segrig_send(c, XSEG_OP_WRITE, 0, xseg_peer_index(splitter));
	parent = segrig_request_is(u, parent);
}

/* A child for the part, offered to the server. */
static struct xreq *child_send(void)
{
	struct xreq *child = xseg_req_alloc(u);

	assert_non_null(child);
	child->op = XSEG_OP_FLUSH;
	child->parent = parent->index + 1;
	child->part = PART;
	segrig_submit(u, child, to);
	return child;
}

static void splitter_dies(void)
{
	abandon(splitter);
	splitter = segrig_open(seg, "volumed", 1, 16);
	u = segrig_port(splitter);
}

/* What the successor finds of the part, once nothing is out; then all ends well. */
static void expect_part(bool done, bool failed)
{
	struct segrig_taken t = { 0 };

	assert_int_equal(xseg_peer_orphans(splitter), 0);
	xseg_peer_recover(splitter, segrig_take, &t);
	assert_int_equal(t.nr, 1);
	assert_int_equal(xseg_req_part_is_done(u, t.r[0], PART), done);
	assert_int_equal(xseg_req_part_failed(u, t.r[0]), failed);
	assert_false(xseg_req_part_is_done(u, t.r[0], PART - 1));
	xseg_peer_serve(splitter);
	segrig_answer(u, t.r[0], 4096);
	xseg_req_free(c, segrig_reply(c));
	close_peer(splitter);
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_part_whose_answer_nobody_took_is_done(void **state)
{
	struct xreq *child;

	(void)state;
	splitter_open();
	child = child_send();
	child = segrig_request_is(s, child);
	segrig_answer(s, child, 0);
	splitter_dies();
	expect_part(true, false);
}

static void a_part_whose_answer_was_taken_and_not_looked_at_is_done(void **state)
{
	struct xreq *child;

	(void)state;
	splitter_open();
	child = child_send();
	child = segrig_request_is(s, child);
	segrig_answer(s, child, -5);
	segrig_reply_is(u, child);
	splitter_dies();
	expect_part(true, true);
}

static void a_part_that_nobody_accepted_is_not_done(void **state)
{
	(void)state;
	splitter_open();
	child_send();
	splitter_dies();
	segrig_nothing(s);
	expect_part(false, false);
}

/* The repair saw it at rest, and the server accepted it before the repair's swap. */
static void a_part_that_is_accepted_during_the_repair_is_done_when_it_is_answered(void **state)
{
	struct xreq *child;
	uint64_t at_rest;

	(void)state;
	splitter_open();
	child = child_send();
	at_rest = segrig_place(seg, child);
	child = segrig_request_is(s, child);
	assert_false(xs_req_home(seg, child->index, at_rest, place_port(at_rest)));
	splitter_dies();
	assert_int_equal(xseg_peer_orphans(splitter), 1);
	segrig_answer(s, child, 0);
	expect_part(true, false);
}

/* A request that is used again, and was not sent when its splitter died, says nothing of the part
 * that it was last. */
static void a_part_of_before_is_not_marked_in_another_request(void **state)
{
	struct xreq *child, *again;

	(void)state;
	splitter_open();
	child = child_send();
	child = segrig_request_is(s, child);
	segrig_answer(s, child, 0);
	child = segrig_reply_is(u, child);
	xseg_req_free(u, child);
	segrig_answer(u, parent, 4096);
	xseg_req_free(c, segrig_reply(c));
	parent = segrig_send(c, XSEG_OP_WRITE, 0, xseg_peer_index(splitter));
	parent = segrig_request_is(u, parent);
	again = xseg_req_alloc(u);
	assert_ptr_equal(again, child);
	splitter_dies();
	expect_part(false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_part_whose_answer_nobody_took_is_done),
		P(a_part_whose_answer_was_taken_and_not_looked_at_is_done),
		P(a_part_that_nobody_accepted_is_not_done),
		P(a_part_that_is_accepted_during_the_repair_is_done_when_it_is_answered),
		P(a_part_of_before_is_not_marked_in_another_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
