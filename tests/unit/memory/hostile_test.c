/* hostile_test - an evil process writes into the segment's tables. No other process crashes or
 * looks outside its memory, and unaffected ones go on. Values of requests: request_content_test.
 */
#include "tests/rig/seg_pair.h"

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
static void forge(
	struct xport *at, uint32_t queue, uint32_t index, enum xseg_req_state state, uint32_t port)
{
	uint64_t place = place_word(state, port, 0, place_seq(seg->reqs[index].place) + 7);

	atomic_store(&seg->reqs[index].place, place);
	if (queue == QUEUE_REQUEST)
		xs_offer(c, at->index, offer_word(index, place));
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

static void never(struct xport *port, struct xreq *r, const struct xreq *sent, void *arg)
{
	(void)port;
	(void)r;
	(void)sent;
	(void)arg;
	fail();
}

/* Damaged, so that a successor could not adopt it, and home by now. */
static void the_answer_of_an_orphan_that_was_not_adopted_is_not_taken(void **state)
{
	struct xseg_peer *peer = segrig_open(seg, "store", 1, 16);
	uint32_t index = segrig_send(segrig_port(peer), XSEG_OP_READ, 0, to)->index;
	struct xreq *r = segrig_request(s);

	(void)state;
	assert_int_equal(r->index, index);
	xseg_peer_close(peer, XSEG_CLOSE_ABANDON);
	peer = segrig_open(seg, "store", 1, 16);
	seg->reqs[index].size = UINT32_MAX;
	assert_int_equal(xseg_peer_adopt(peer, never, NULL), 1);
	segrig_answer(s, r, 0);
	assert_int_equal(xseg_peer_orphans(peer), 0);
	xseg_peer_serve(peer);
	forge(segrig_port(peer), QUEUE_REPLY, index, XSEG_REQ_ANSWERED, segrig_port(peer)->index);
	segrig_nothing(segrig_port(peer));
	assert_int_equal(segrig_bad(seg), 1);
	xseg_peer_close(peer, XSEG_CLOSE_FREE_ARENA);
}

static void a_request_at_nobody_does_not_keep_its_owner_from_leaving(void **state)
{
	static const struct {
		enum xseg_req_state state;
		uint32_t port;
	} nowhere[] = { { XSEG_REQ_AT, 15 }, { XSEG_REQ_STARTED, 16 }, { XSEG_REQ_APPLIED, 0x1ff },
		{ 6, 1 }, { 7, 0x1ff } };
	struct xseg_peer *successor;

	(void)state;
	for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct xreq *r = segrig_send(c, XSEG_OP_READ, 0, to);

		atomic_store(&seg->reqs[r->index].place,
			place_word(nowhere[i].state, nowhere[i].port, 3, 7));
	}
	close_peer(client);
	assert_int_equal(xseg_peer_find(seg, "me"), XSEG_NONE);
	successor = segrig_open(seg, "store", 1, 16);
	for (unsigned i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		atomic_store(&seg->reqs[segrig_port(successor)->req_first + i].place,
			     place_word(nowhere[i].state, nowhere[i].port, 3, 7));
	xseg_peer_close(successor, XSEG_CLOSE_ABANDON);
	successor = segrig_open(seg, "store", 1, 16);
	assert_int_equal(xseg_peer_orphans(successor), 0);
	xseg_peer_close(successor, XSEG_CLOSE_FREE_ARENA);
}

/* ---- tables ------------------------------------------------------------------------------ */

static void a_peer_whose_ports_are_wild_is_refused_or_served_within_bounds(void **state)
{
	static const uint32_t wild[] = { 17, 255, 1u << 20, UINT32_MAX };
	struct xs_peer *sh = &seg->peers[to];
	struct xseg_peer_info info;
	struct xseg_peer *successor;
	uint16_t port[XSEG_PEER_PORTS];

	(void)state;
	abandon(server);
	memcpy(port, sh->port, sizeof(port));
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		struct xseg_error err = { "" };

		/* and so their copies */
		xs_keep(seg, to, XS_KEPT_PORTS, wild[i]);
		memset(sh->port, i % 2 ? 0xff : 0, sizeof(sh->port));
		xs_keep_lists(seg, to);
		assert_int_equal(xseg_peer_open(seg,
					 &(struct xseg_peer_params){
						 .name = "memd", .kind = "memd", .nr_ports = 16 },
					 &successor, &err),
			-EPROTO);
		assert_non_null(strstr(err.text, "damaged"));
		assert_int_equal(xseg_req_submit(c, xseg_req_alloc(c), to), -ENOENT);
		assert_true(xseg_peer_get_info(seg, to, &info));
		assert_true(info.nr_ports <= XSEG_PEER_PORTS);
	}
	memcpy(sh->port, port, sizeof(port));
	xs_keep_lists(seg, to);
	xs_keep(seg, to, XS_KEPT_PORTS, 1);
	server_open(1);
}

static void what_is_told_of_a_peer_is_something_that_a_peer_can_be(void **state)
{
	struct xs_peer *sh = &seg->peers[to];
	struct xseg_peer_info info;
	struct xseg_info all;

	(void)state;
	memset(sh->name, 'x', sizeof(sh->name));
	memset(sh->kind, 'y', sizeof(sh->kind));
	for (unsigned i = 1; i < 256; i++) {
		atomic_store(&sh->word, (uint64_t)i << 56 | 0xffff00000000);
		assert_true(xseg_peer_get_info(seg, to, &info));
		assert_true(info.state <= XSEG_PEER_DEAD);
		assert_int_equal(strlen(info.name), XSEG_NAME_MAX - 1);
		assert_int_equal(strlen(info.kind), sizeof(info.kind) - 1);
	}
	seg->super->huge = 77;
	xseg_get_info(seg, &all);
	assert_true((unsigned)all.huge <= XSEG_HUGE_REQUIRE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(mask_bits_of_ports_that_the_segment_has_not_are_left_alone),
		U(what_a_process_has_it_is_not_handed_again),
		U(what_is_answered_may_come_again),
		U(an_answer_that_nobody_asked_for_is_not_taken),
		U(an_answer_is_taken_once),
		U(the_answer_of_an_orphan_that_was_not_adopted_is_not_taken),
		P(a_request_at_nobody_does_not_keep_its_owner_from_leaving),
		P(a_peer_whose_ports_are_wild_is_refused_or_served_within_bounds),
		U(what_is_told_of_a_peer_is_something_that_a_peer_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
