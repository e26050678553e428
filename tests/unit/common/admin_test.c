/* admin_test - a line of text to a peer and its answer. */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FOR_EVER (UINT64_MAX / 2)

static uint32_t page[2 * XSEG_EXTENT_PAGES];

static int setup_pages(void **state)
{
	setup_pair(state);
	return xseg_pages_take(client, 2 * XSEG_EXTENT_PAGES, page);
}

static char *text(void)
{
	return xseg_page(seg, page[0]);
}

/* What the server does with the one request that comes: expects the text, answers with another. */
struct talk {
	pthread_t thread;
	const char *expect, *answer;
	int64_t result;
};

static void *talk(void *arg)
{
	struct talk *t = arg;
	struct xreq *r;
	char *at;

	while (!xseg_port_receive(s, &r, 1))
		xseg_port_wait(s, FOR_EVER);
	at = xseg_page(seg, r->page[0]);
	if (r->op != XSEG_OP_ADMIN || strcmp(at, t->expect) || r->size < strlen(t->answer))
		abort();
	memcpy(at, t->answer, strlen(t->answer) + 1);
	xseg_req_answer(s, r, t->result);
	xseg_port_flush(s);
	return NULL;
}

static int64_t call(const char *line, const char *answer, int64_t result, uint32_t nr_pages)
{
	struct talk t = { .expect = line, .answer = answer, .result = result };
	int64_t rc;

	assert_int_equal(pthread_create(&t.thread, NULL, talk, &t), 0);
	rc = xseg_admin_call(c, to, line, page, nr_pages, FOR_EVER);
	pthread_join(t.thread, NULL);
	assert_int_equal(xseg_port_nr_free(c), 16);
	return rc;
}

static void a_line_is_answered_by_a_text_of_that_length(void **state)
{
	(void)state;
	assert_int_equal(call("ping", "ok\n", 3, 1), 3);
	assert_string_equal(text(), "ok\n");
	assert_int_equal(call("", "", 0, 1), 0);
}

static void a_refusal_has_its_reason_in_the_page(void **state)
{
	(void)state;
	assert_int_equal(call("set x=1", "there is no option x", -EINVAL, 1), -EINVAL);
	assert_string_equal(text(), "there is no option x");
}

static void an_answer_may_fill_all_pages_and_not_more(void **state)
{
	(void)state;
	assert_int_equal(call("list", "...", 3 * XSEG_PAGE_SIZE, 3), 3 * XSEG_PAGE_SIZE);
	assert_int_equal(call("list", "...", 3 * XSEG_PAGE_SIZE + 1, 3), -EPROTO);
	assert_int_equal(call("list", "...", INT64_MAX, 3), -EPROTO);
	assert_int_equal(call("list", "...", XSEG_REQ_BYTES, XSEG_REQ_PAGES), XSEG_REQ_BYTES);
}

static void what_cannot_be_sent_is_refused_and_keeps_no_request(void **state)
{
	char *long_line = malloc(XSEG_PAGE_SIZE + 1);

	(void)state;
	memset(long_line, 'x', XSEG_PAGE_SIZE);
	long_line[XSEG_PAGE_SIZE] = '\0';
	assert_int_equal(xseg_admin_call(c, to, long_line, page, 1, FOR_EVER), -EINVAL);
	assert_int_equal(xseg_admin_call(c, to, "ping", page, 0, FOR_EVER), -EINVAL);
	assert_int_equal(
		xseg_admin_call(c, to, "ping", page, XSEG_REQ_PAGES + 1, FOR_EVER), -EINVAL);
	assert_int_equal(xseg_admin_call(c, 9, "ping", page, 1, FOR_EVER), -ENOENT);
	assert_int_equal(xseg_port_nr_free(c), 16);
	long_line[XSEG_PAGE_SIZE - 1] = '\0';
	assert_int_equal(call(long_line, "ok\n", 3, 1), 3);
	free(long_line);
}

static void a_port_without_a_free_request_is_told_so(void **state)
{
	(void)state;
	while (xseg_req_alloc(c))
		;
	assert_int_equal(xseg_admin_call(c, to, "ping", page, 1, FOR_EVER), -EAGAIN);
}

static void a_peer_that_does_not_answer_in_time_keeps_the_request(void **state)
{
	(void)state;
	assert_int_equal(xseg_admin_call(c, to, "ping", page, 1, 1000000), -ETIMEDOUT);
	assert_int_equal(xseg_port_nr_free(c), 15);
	segrig_answer(s, segrig_request(s), 3);
	xseg_req_free(c, segrig_reply(c));
	assert_int_equal(xseg_port_nr_free(c), 16);
}

#define A(name) cmocka_unit_test_setup_teardown(name, setup_pages, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		A(a_line_is_answered_by_a_text_of_that_length),
		A(a_refusal_has_its_reason_in_the_page),
		A(an_answer_may_fill_all_pages_and_not_more),
		A(what_cannot_be_sent_is_refused_and_keeps_no_request),
		A(a_port_without_a_free_request_is_told_so),
		A(a_peer_that_does_not_answer_in_time_keeps_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
