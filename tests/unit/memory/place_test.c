/* place_test - overwritten place words: a port that knows better puts them right. A successor
 * neither waits for a request that no port has, nor redoes a request that no port has sent.
 */
#include "tests/rig/seg_pair.h"

#include <errno.h>
#include <string.h>

/* ---- of the living ------------------------------------------------------------------------ */

/* Of a request that somebody has; each is one store. */
static const struct {
	enum xseg_req_state state;
	uint32_t port, gen;
} scribbles[] = { { XSEG_REQ_PRIVATE, 0, 0 }, { XSEG_REQ_ANSWERED, 0, 0 }, { XSEG_REQ_AT, 1, 77 },
	{ XSEG_REQ_APPLIED, 1, 0 }, { XSEG_REQ_STARTED, 15, 3 }, { 6, 1, 0 }, { 7, 0x1ff, 9 } };
#define NR_SCRIBBLES (sizeof(scribbles) / sizeof(scribbles[0]))

static void scribble(uint32_t index, unsigned i)
{
	atomic_store(&seg->reqs[index].place,
		place_word(scribbles[i].state, scribbles[i].port, scribbles[i].gen,
			0xfffffffe + i));
}

static void a_holder_puts_a_place_right_that_somebody_wrote_over(void **state)
{
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < 3 * NR_SCRIBBLES; i++) {
		segrig_send(c, XSEG_OP_WRITE, 0, to);
		r = segrig_request(s);
		if (i % 3 == 0)
			scribble(r->index, i / 3);
		xseg_req_start(s, r);
		if (i % 3 == 1)
			scribble(r->index, i / 3);
		xseg_req_apply(s, r);
		if (i % 3 == 2)
			scribble(r->index, i / 3);
		segrig_answer(s, r, 4096);
		r = segrig_reply(c);
		assert_int_equal(r->result, 4096);
		xseg_req_free(c, r);
		assert_int_equal(segrig_bad(seg), i + 1);
	}
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void an_answer_whose_place_was_written_over_is_found_by_its_result(void **state)
{
	struct xreq *sent, *r;

	(void)state;
	for (unsigned i = 0; i <= NR_SCRIBBLES; i++) {
		sent = segrig_send(c, XSEG_OP_WRITE, 0, to);
		segrig_answer(s, segrig_request(s), 4096);
		if (i < NR_SCRIBBLES)
			scribble(sent->index, i);
		else
			atomic_store(&seg->reqs[sent->index].place, 0);
		xs_port_alert(seg, c->index);
		assert_int_equal(xseg_port_replies(c, &r, 1), 1);
		assert_ptr_equal(r, sent);
		assert_int_equal(r->result, 4096);
		xseg_req_free(c, r);
	}
}

static void what_is_not_answered_is_not_taken_whatever_its_place_says(void **state)
{
	struct xreq *sent = segrig_send(c, XSEG_OP_WRITE, 0, to), *r = segrig_request(s), *out;

	(void)state;
	for (unsigned i = 0; i < NR_SCRIBBLES; i++) {
		scribble(r->index, i);
		xs_port_alert(seg, c->index);
		assert_int_equal(xseg_port_replies(c, &out, 1), 0);
	}
	segrig_answer(s, r, 4096);
	assert_ptr_equal(segrig_reply(c), sent);
}

static void a_request_that_is_freed_is_free_whatever_its_place_says(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NR_SCRIBBLES; i++) {
		struct xreq *r = xseg_req_alloc(c);

		scribble(r->index, i);
		xseg_req_free(c, r);
		assert_int_equal(place_state(segrig_place(seg, r)), XSEG_REQ_FREE);
	}
	assert_int_equal(xseg_port_nr_free(c), 16);
	assert_int_equal(segrig_bad(seg), NR_SCRIBBLES);
}

static void an_idle_request_is_given_out_whatever_its_place_says_and_counted(void **state)
{
	struct xreq *r;

	(void)state;
	for (unsigned i = 0; i < NR_SCRIBBLES; i++) {
		scribble(c->free.idx[c->free.nr - 1], i);
		r = xseg_req_alloc(c);
		assert_non_null(r);
		assert_int_equal(segrig_bad(seg), i + 1);
		r->op = XSEG_OP_FLUSH;
		segrig_submit(c, r, to);
		segrig_answer(s, segrig_request(s), 0);
		xseg_req_free(c, segrig_reply(c));
	}
	assert_int_equal(xseg_port_nr_free(c), 16);
}

static void an_idle_request_is_not_received_whatever_its_place_says(void **state)
{
	uint32_t index = c->free.idx[c->free.nr - 1];
	uint64_t w = place_word(XSEG_REQ_PRIVATE, c->index, 0, 50);
	struct xreq *out;

	(void)state;
	atomic_store(&seg->reqs[index].place, w);
	xs_offer(c, s->index, offer_word(index, w));
	xseg_port_flush(c);
	assert_int_equal(xseg_port_receive(s, &out, 1), 0);
	segrig_nothing(c);
	assert_int_equal(xseg_req_alloc(c)->index, index);
}

/* ---- of the dead -------------------------------------------------------------------------- */

static void refuse(struct xport *port, struct xreq *r, void *arg)
{
	(void)port;
	(void)r;
	(void)arg;
	fail();
}

/* Of the server's successor: nothing of it is out, nothing is recovered, and all its requests are
 * free. */
static void server_succeeds(uint32_t nr_requests)
{
	abandon(server);
	server = segrig_open(seg, "memd", 1, nr_requests);
	s = segrig_port(server);
	assert_int_equal(xseg_peer_orphans(server), 0);
	xseg_peer_recover(server, refuse, NULL);
	xseg_peer_serve(server);
	assert_int_equal(xseg_port_nr_free(s), nr_requests);
}

static void server_with_requests(void)
{
	close_peer(server);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
	server = segrig_server(seg, "memd", 1, 16);
	s = segrig_port(server);
	to = xseg_peer_index(server);
}

/* An idle request, made to look as if some port held it: the peer's own, a living one's with its
 * generation or another, a dead one's, nobody's. */
static void a_successor_does_not_wait_for_idle_requests_whatever_their_places_say(void **state)
{
	static const enum xseg_req_state held[] = { XSEG_REQ_AT, XSEG_REQ_STARTED,
		XSEG_REQ_APPLIED };
	struct xseg_peer *other = segrig_server(seg, "other", 1, 0);
	struct xseg_peer *dead = segrig_server(seg, "dead", 1, 0);
	uint32_t ports[] = { 0, segrig_port(other)->index, segrig_port(dead)->index, 15 };

	(void)state;
	server_with_requests();
	ports[0] = s->index;
	xseg_peer_close(dead, XSEG_CLOSE_ABANDON);
	for (unsigned i = 0; i < 24; i++) {
		uint32_t gen = i / 12 ? segrig_port(other)->generation : 0;

		atomic_store(&seg->reqs[s->req_first + i % 16].place,
			place_word(held[i % 3], ports[i / 3 % 4], gen, 9));
		server_succeeds(16);
	}
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_find(seg, "dead")), 0);
	xseg_peer_close(other, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_peer_forget(seg, xseg_peer_find(seg, "other")), 0);
}

/* The old write is not done again: what is in its pages is another's by now. */
static void a_successor_does_not_do_again_what_nobody_has_sent(void **state)
{
	uint32_t index = segrig_send(c, XSEG_OP_WRITE, 0, to)->index;

	(void)state;
	segrig_answer(s, segrig_request(s), 4096);
	xseg_req_free(c, segrig_reply(c));
	for (enum xseg_req_state st = XSEG_REQ_AT; st <= XSEG_REQ_APPLIED; st++) {
		atomic_store(&seg->reqs[index].place, place_word(st, s->index, 0, 70));
		server_succeeds(0);
		segrig_nothing(c);
	}
	assert_int_equal(xseg_req_alloc(c)->index, index);
}

static void what_is_held_is_done_again_by_its_successor(void **state)
{
	struct segrig_taken taken = { 0 };
	struct xreq *sent = segrig_send(c, XSEG_OP_WRITE, 0, to), *r = segrig_request(s);

	(void)state;
	xseg_req_start(s, r);
	/* a kill after the result is written, before the place says so */
	atomic_store(&seg->reqs[r->index].result, 4096);
	abandon(server);
	server = segrig_open(seg, "memd", 1, 0);
	s = segrig_port(server);
	xseg_peer_recover(server, segrig_take, &taken);
	assert_int_equal(taken.nr, 1);
	xseg_peer_serve(server);
	segrig_answer(s, taken.r[0], 4096);
	assert_ptr_equal(segrig_reply(c), sent);
}

/* Whom it waits for lives, and does not have it: it has not the generation that the place says. */
static void a_request_at_a_generation_that_is_gone_is_not_waited_for(void **state)
{
	struct xseg_peer *store = segrig_server(seg, "store", 1, 0);
	uint32_t at = segrig_port(store)->index;
	struct xreq *r;

	(void)state;
	server_with_requests();
	r = segrig_send(s, XSEG_OP_WRITE, 0, xseg_peer_index(store));
	segrig_request(segrig_port(store));
	abandon(server);
	server = segrig_open(seg, "memd", 1, 16);
	assert_int_equal(xseg_peer_orphans(server), 1);
	atomic_store(&seg->reqs[r->index].place, place_word(XSEG_REQ_AT, at, 1, 70));
	assert_int_equal(xseg_peer_orphans(server), 0);
	xseg_peer_serve(server);
	xseg_peer_close(store, XSEG_CLOSE_FREE_ARENA);
}

static void a_place_of_an_idle_request_keeps_no_peer_from_being_forgotten(void **state)
{
	struct xreq *r = xseg_req_alloc(c);
	uint32_t index = r->index;

	(void)state;
	xseg_req_free(c, r);
	atomic_store(&seg->reqs[index].place, place_word(XSEG_REQ_AT, s->index, 0, 70));
	close_peer(server);
	assert_int_equal(xseg_peer_forget(seg, to), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_holder_puts_a_place_right_that_somebody_wrote_over),
		P(an_answer_whose_place_was_written_over_is_found_by_its_result),
		P(what_is_not_answered_is_not_taken_whatever_its_place_says),
		P(a_request_that_is_freed_is_free_whatever_its_place_says),
		P(an_idle_request_is_given_out_whatever_its_place_says_and_counted),
		P(an_idle_request_is_not_received_whatever_its_place_says),
		P(a_successor_does_not_wait_for_idle_requests_whatever_their_places_say),
		P(a_successor_does_not_do_again_what_nobody_has_sent),
		P(what_is_held_is_done_again_by_its_successor),
		P(a_request_at_a_generation_that_is_gone_is_not_waited_for),
		U(a_place_of_an_idle_request_keeps_no_peer_from_being_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
