/* check_test - each invariant of a segment, broken by hand, is reported; derived values are mended.
 */
#include "tests/rig/seg_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static unsigned nr_callocs, fail_at;	/* of those since then; 0: none fails */

void *__real_calloc(size_t nr, size_t size);
void *__wrap_calloc(size_t nr, size_t size);

void *__wrap_calloc(size_t nr, size_t size)
{
	return ++nr_callocs == fail_at ? NULL : __real_calloc(nr, size);
}

/* A segment in use: a client with a request at the store, one answered, one of its own; two
 * servers, an arena, pages. */
static struct xseg *seg;
static struct xseg_peer *client, *upper, *lower;
static struct xreq *at, *answered, *own;
static uint32_t page[XSEG_EXTENT_PAGES];

static int setup(void **state)
{
	static const char *const keys[] = { "ops" };
	struct xseg_stats *stats;
	uint64_t bytes = 5 << 20;
	bool fresh;
	void *base;

	(void)state;
	seg = segrig_private();
	client = segrig_client(seg, "me", 16);
	upper = segrig_server(seg, "volumed", 1, 16);
	lower = segrig_server(seg, "memd", 1, 0);
	assert_int_equal(xseg_route_set(seg, xseg_peer_index(upper), xseg_peer_index(lower)), 0);
	assert_int_equal(xseg_arena_open(lower, &bytes, &base, &fresh, NULL), 0);
	assert_int_equal(xseg_pages_take(client, 1, page), 0);
	assert_int_equal(xseg_stats_open(lower, "memd", "memd", keys, 1, &stats), 0);
	at = segrig_send(segrig_port(client), XSEG_OP_WRITE, 0, xseg_peer_index(lower));
	answered = segrig_send(segrig_port(client), XSEG_OP_WRITE, 0, xseg_peer_index(lower));
	own = xseg_req_alloc(segrig_port(client));
	at = segrig_request_is(segrig_port(lower), at);
	answered = segrig_request_is(segrig_port(lower), answered);
	segrig_answer(segrig_port(lower), answered, 0);
	segrig_sound(seg);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xseg_peer_close(client, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(upper, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(lower, XSEG_CLOSE_KEEP_ARENA);
	xseg_detach(seg);
	return 0;
}

struct found {
	unsigned nr;
	const char *want;
	bool seen;
};

static void look(const char *problem, void *arg)
{
	struct found *f = arg;

	f->nr++;
	f->seen = f->seen || (f->want && strstr(problem, f->want));
	assert_null(strchr(problem, '\n'));
}

/* The check says so, in these words. */
static void reported(const char *words)
{
	struct found f = { .want = words };
	unsigned n = xseg_check(seg, false, look, &f);

	assert_int_equal(n, f.nr);
	if (!f.seen)
		fail_msg("not reported: %s", words);
}

/* A fix mends it, and after that there is nothing to report. */
static void mended(void)
{
	struct found f = { 0 };

	assert_int_equal(xseg_check(seg, true, look, &f), 0);
	segrig_sound(seg);
}

/* A fix leaves what is no derived word as it is, and goes on saying so. */
static void stays(const char *words)
{
	struct found f = { .want = words };

	assert_true(xseg_check(seg, true, look, &f) > 0);
	assert_true(f.seen);
}

static void a_second_upstream_of_a_kept_peer_is_reported(void **state)
{
	struct xseg_peer *cache = segrig_server(seg, "cached", 1, 16);
	uint32_t c = xseg_peer_index(cache), u = xseg_peer_index(upper), l = xseg_peer_index(lower);

	(void)state;
	assert_int_equal(xseg_plug(seg, c, &u, 1, l, NULL), 0);
	assert_int_equal(xseg_plug_call(cache), 0);
	xseg_turn_hold(upper);
	assert_int_equal(xseg_plug_claim(cache), 0);
	segrig_sound(seg);		/* it is about to enter between them */
	atomic_store(&cache->sh->plug, 0);
	reported("it is kept for 'cached', and 'volumed' sends there, too");
	mended();
	atomic_store(&cache->sh->plug, plug_word(XSEG_PLUG_ENTER, l));
	assert_int_equal(xseg_plug_cancel(seg, c, NULL), 0);
	segrig_sound(seg);
	xseg_peer_close(cache, XSEG_CLOSE_FREE_ARENA);
}

static void copies_of_another_epoch_are_reported(void **state)
{
	uint64_t bytes = 4096, epoch;
	bool fresh;
	void *base;

	(void)state;
	assert_int_equal(xseg_arena_open(upper, &bytes, &base, &fresh, NULL), 0);
	xseg_route(upper, &epoch);
	xseg_arena_epoch_set(upper, epoch);
	segrig_sound(seg);
	xseg_arena_epoch_set(upper, epoch - 1);
	reported("'volumed': its data is of epoch 0, and its route of epoch 1");
	stays("its route of epoch");
	xseg_arena_epoch_set(upper, XSEG_NO_EPOCH);
	segrig_sound(seg);
}

static void a_peer_word_out_of_range_is_reported(void **state)
{
	uint64_t w = atomic_load(&upper->sh->word);

	(void)state;
	atomic_store(&upper->sh->word, peer_word(9, 0, 0));
	reported("out of range");
	mended();
	assert_true(atomic_load(&upper->sh->word) == w);
	atomic_store(&upper->sh->nr_ports, 17);
	reported("out of range");
	atomic_store(&upper->sh->nr_ports, 1);
	segrig_sound(seg);
}

static void a_port_in_the_list_of_another_is_reported(void **state)
{
	uint16_t port = upper->sh->port[0];

	(void)state;
	upper->sh->port[0] = lower->sh->port[0];
	reported("is not its own");
	upper->sh->port[0] = 999;
	reported("is not its own");
	mended();
	assert_int_equal(upper->sh->port[0], port);
}

static void a_name_that_two_have_is_reported(void **state)
{
	(void)state;
	snprintf(lower->sh->name, XSEG_NAME_MAX, "volumed");
	reported("used twice");
	snprintf(lower->sh->name, XSEG_NAME_MAX, "memd");
}

static void a_route_in_a_circle_and_one_to_nobody_are_reported(void **state)
{
	uint64_t old = atomic_load(&lower->sh->route);

	(void)state;
	atomic_store(&lower->sh->route, route_word(xseg_peer_index(upper), 1));
	reported("circle");
	atomic_store(&lower->sh->route, route_word(15, 1));
	reported("leads to no peer");
	atomic_store(&lower->sh->route, route_word(999, 1));
	reported("leads to no peer");
	mended();
	assert_true(atomic_load(&lower->sh->route) == old);
}

static void a_port_of_nobody_is_reported_and_given_back(void **state)
{
	(void)state;
	atomic_store(&seg->ports[9].peer, 14);
	reported("port 9: belongs to no peer");
	mended();
	atomic_store(&seg->ports[9].peer, 999);
	reported("port 9: belongs to no peer");
	mended();
	assert_int_equal(atomic_load(&seg->ports[9].peer), 0);
}

static void requests_out_of_range_and_in_common_are_reported(void **state)
{
	struct xs_port *p = segrig_port(upper)->sh;
	uint32_t first = p->req_first;

	(void)state;
	p->req_first = segrig_port(client)->req_first;
	reported("in common");
	p->req_first = UINT32_MAX - 3;
	reported("out of range");
	p->req_first = 60;
	reported("out of range");
	mended();
	assert_int_equal(p->req_first, first);
}

static void a_place_out_of_range_is_reported(void **state)
{
	uint64_t w = segrig_place(seg, own);

	(void)state;
	atomic_store(&seg->reqs[own->index].place, place_word((enum xseg_req_state)6, 0, 0, 0));
	reported("its place is out of range");
	atomic_store(&seg->reqs[own->index].place, place_word(XSEG_REQ_AT, 300, 0, 0));
	reported("its place is out of range");
	mended();			/* nobody has sent it */
	atomic_store(&seg->reqs[own->index].place, w);
	w = segrig_place(seg, at);
	atomic_store(&seg->reqs[at->index].place, place_word(XSEG_REQ_AT, 300, 0, 0));
	stays("its place is out of range; start that peer again");
	atomic_store(&seg->reqs[at->index].place, w);
}

static void a_request_at_rest_with_a_stranger_is_reported(void **state)
{
	uint32_t stranger = segrig_port(upper)->index;
	uint64_t w = segrig_place(seg, own), a = segrig_place(seg, answered);

	(void)state;
	atomic_store(&seg->reqs[own->index].place, place_word(XSEG_REQ_PRIVATE, stranger, 0, 9));
	reported("at rest with a port");
	atomic_store(&seg->reqs[own->index].place, w);
	atomic_store(
		&seg->reqs[answered->index].place, place_word(XSEG_REQ_ANSWERED, stranger, 0, 9));
	reported("at rest with a port");
	atomic_store(&seg->reqs[answered->index].place, a);
}

static void a_loan_of_a_page_that_nobody_has_is_reported(void **state)
{
	uint32_t free_one = (seg->geo.nr_extents - 1) * XSEG_EXTENT_PAGES;

	(void)state;
	at->nr_pages = 1;
	xseg_req_lend(segrig_port(upper), at, 0, free_one);
	reported("which has no owner");
	stays("which has no owner");
	atomic_store(&seg->reqs[at->index].page[0].lent, XSEG_LENT_ZEROES);
	segrig_sound(seg);
	xseg_req_lend(segrig_port(upper), at, 0, seg->nr_pages); /* who is answered so finds out */
	segrig_sound(seg);
	atomic_store(&seg->reqs[at->index].nr_lent, 0);
}

static void a_page_that_two_were_lent_to_write_in_is_reported(void **state)
{
	const uint32_t extent = seg->geo.nr_extents - 1,
		       lent = extent * XSEG_EXTENT_PAGES | XSEG_LENT_PAGE | XSEG_LENT_GIFT;
	struct xs_req *one = &seg->reqs[own->index], *two = &seg->reqs[answered->index];
	uint64_t was = atomic_load(&seg->extents[extent].word);

	(void)state;
	atomic_store(&one->nr_lent, 2);
	atomic_store(&one->page[0].lent, 0);
	atomic_store(&one->page[1].lent, lent);
	atomic_store(&seg->extents[extent].word,
		extent_word(XS_EXTENT_PAGES, xseg_peer_index(upper), 0));
	segrig_sound(seg);
	atomic_store(&two->nr_lent, 1);
	atomic_store(&two->page[0].lent, lent);
	reported("to write in");
	stays("to write in");
	atomic_store(&two->nr_lent, 0);
	atomic_store(&one->page[0].lent, lent);	/* once is enough for one request, too */
	reported("to write in");
	atomic_store(&one->nr_lent, 0);
	atomic_store(&seg->extents[extent].word, was);
}

static void a_request_at_a_port_that_nobody_has_is_reported(void **state)
{
	uint64_t w = segrig_place(seg, at);

	(void)state;
	atomic_store(&seg->reqs[at->index].place, place_word(XSEG_REQ_AT, 11, 0, 9));
	reported("at a port without an owner");
	atomic_store(&seg->reqs[at->index].place, w);
}

static void a_place_that_says_what_is_not_is_reported_and_mended(void **state)
{
	uint32_t idle = segrig_port(client)->req_first + 15;

	(void)state;
	atomic_store(&seg->reqs[idle].place,
		place_word(XSEG_REQ_STARTED, segrig_port(lower)->index,
			segrig_port(lower)->generation, 9));
	reported("it was not sent");
	mended();
	assert_int_equal(place_state(atomic_load(&seg->reqs[idle].place)), XSEG_REQ_FREE);
	atomic_store(&seg->reqs[answered->index].place,
		place_word(XSEG_REQ_AT, segrig_port(lower)->index, 77, 9));
	reported("does not hold it");
	mended();
	assert_int_equal(segrig_reply(segrig_port(client))->result, 0);
}

static void a_request_of_no_port_that_is_not_free_is_reported_and_freed(void **state)
{
	(void)state;
	atomic_store(&seg->reqs[60].place, place_word(XSEG_REQ_PRIVATE, 0, 0, 9));
	reported("request 60: belongs to no port");
	mended();
	assert_int_equal(segrig_accounts(seg).free_requests, 64 - 3);
}

static void an_extent_word_out_of_range_is_reported(void **state)
{
	(void)state;
	atomic_store(&seg->extents[7].word, extent_word((enum xs_extent_kind)9, 0, 0));
	reported("extent 7: its word is out of range");
	atomic_store(&seg->extents[7].word, extent_word(XS_EXTENT_PAGES, 99, 0));
	reported("extent 7: its word is out of range");
	atomic_store(&seg->extents[7].word, 0);
}

static void extents_of_nobody_are_reported_and_given_back(void **state)
{
	(void)state;
	atomic_store(&seg->extents[7].word, extent_word(XS_EXTENT_PAGES, 12, 0));
	reported("extent 7: belongs to no peer");
	mended();
	atomic_store(
		&seg->extents[7].word, extent_word(XS_EXTENT_ARENA, xseg_peer_index(upper), 0));
	reported("never finished");
	mended();
	assert_int_equal(atomic_load(&seg->extents[7].word), 0);
}

static void an_arena_with_a_hole_or_a_number_twice_is_reported(void **state)
{
	uint64_t w = atomic_load(&seg->extents[1].word);

	(void)state;
	assert_int_equal(extent_kind(w), XS_EXTENT_ARENA);
	atomic_store(&seg->extents[1].word, 0);
	reported("its arena has 2 of its 3 extents");
	atomic_store(
		&seg->extents[1].word, extent_word(XS_EXTENT_ARENA, xseg_peer_index(lower), 0));
	reported("its arena has 2 of its 3 extents");
	stays("its arena has 2 of its 3 extents");
	atomic_store(&seg->extents[1].word, w);
	atomic_store(&lower->sh->arena_extents, UINT32_MAX);
	reported("its arena has 0 of its");
	atomic_store(&lower->sh->arena_extents, 3);
}

static void lanes_that_cannot_be_are_reported(void **state)
{
	uint32_t c = segrig_port(client)->index, l = segrig_port(lower)->index;
	struct xq *q = segrig_port(client)->out[QUEUE_REQUEST][l].w.q;
	uint64_t tail = atomic_load(&q->tail);

	(void)state;
	atomic_store(&q->tail, tail + 1000);
	reported("offers in");
	atomic_store(&q->tail, tail);
	atomic_store(&seg->lanes[20].word, lane_word(QUEUE_REQUEST, c, l));
	reported("join the same ports");
	atomic_store(&seg->lanes[20].word, lane_word(QUEUE_REQUEST, 100, l));
	reported("ports that are not there");
	mended();
	assert_int_equal(atomic_load(&seg->lanes[20].word), 0);
	atomic_store(&seg->ports[l].lane[QUEUE_REPLY][c], 1);
	reported("is another one's");
	atomic_store(&seg->ports[l].lane[QUEUE_REPLY][c], UINT16_MAX);
	reported("is another one's");
	mended();
	assert_int_equal(atomic_load(&seg->ports[l].lane[QUEUE_REPLY][c]), 0);
}

static void a_lane_is_what_the_other_table_says_of_it(void **state)
{
	uint32_t c = segrig_port(client)->index, l = segrig_port(lower)->index;
	uint32_t lane = segrig_port(client)->out[QUEUE_REQUEST][l].lane;
	uint32_t word = lane_word(QUEUE_REQUEST, c, l);
	static const uint32_t wild[] = { 0, 1, UINT32_MAX, 1u << 31 | 5 << 10 | 6 };

	(void)state;
	for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
		atomic_store(&seg->lanes[lane].word, wild[i]);
		reported("xseg check --fix");
		mended();
		assert_int_equal(atomic_load(&seg->lanes[lane].word), word);
		atomic_store(&seg->ports[l].lane[QUEUE_REQUEST][c], (uint16_t)wild[i]);
		mended();
		assert_int_equal(atomic_load(&seg->ports[l].lane[QUEUE_REQUEST][c]), lane + 1);
	}
}

/* Each word of peers and ports that nothing else tells, and a name: one store. */
static void what_is_written_over_in_peers_and_ports_is_reported_and_put_back(void **state)
{
	struct xs_peer *p = upper->sh;
	struct xs_port *port = segrig_port(upper)->sh;
	_Atomic uint64_t *const wide[] = { &p->word, &p->route, &p->arena_epoch, &p->arena_bytes,
		&p->plug, &p->turn };
	_Atomic uint32_t *const narrow[] = { &p->above, &p->nr_ports, &p->arena_extents,
		&port->peer };
	uint32_t *const plain[] = { &port->req_first, &port->req_nr };

	(void)state;
	for (unsigned i = 0; i < 6 * 64; i++) {
		uint64_t was = atomic_fetch_xor(wide[i / 64], 1ull << (i % 64));

		reported("was overwritten");
		mended();
		assert_true(atomic_load(wide[i / 64]) == was);
	}
	for (unsigned i = 0; i < 4 * 32; i++) {
		uint32_t was = atomic_fetch_xor(narrow[i / 32], 1u << (i % 32));

		reported("was overwritten");
		mended();
		assert_int_equal(atomic_load(narrow[i / 32]), was);
	}
	for (unsigned i = 0; i < 2 * 32; i++) {
		uint32_t was = *plain[i / 32];

		*plain[i / 32] ^= 1u << (i % 32);
		reported("was overwritten");
		mended();
		assert_int_equal(*plain[i / 32], was);
	}
	p->name[3] ^= 1;
	p->kind[0] = '\0';
	reported("its name, kind or list of ports");
	mended();
	assert_string_equal(p->name, "volumed");
	assert_string_equal(p->kind, "memd");
}

/* The word counts where its copy cannot be believed. */
static void what_is_written_over_in_copies_harms_nothing(void **state)
{
	uint64_t word = atomic_load(&upper->sh->word);
	uint32_t u = xseg_peer_index(upper);

	(void)state;
	memset(seg->kept_peers, 0x55, seg->geo.nr_ports * sizeof(*seg->kept_peers));
	memset(seg->kept_ports, 0x55, seg->geo.nr_ports * sizeof(*seg->kept_ports));
	segrig_sound(seg);
	mended();
	assert_true(atomic_load(&upper->sh->word) == word);
	atomic_store(&upper->sh->word, 0);
	reported("its state was overwritten");
	mended();
	assert_int_equal(xseg_peer_find(seg, "volumed"), u);
}

static void a_bell_of_nobody_and_a_wild_steer_are_reported_and_mended(void **state)
{
	struct xport *port = segrig_port(upper);

	(void)state;
	atomic_store(&port->sh->bell, 999);
	reported("its doorbell belongs to no port");
	mended();
	atomic_store(&port->sh->bell, 14);
	reported("its doorbell belongs to no port");
	xseg_port_has_work(port);	/* as its server does before it sleeps */
	assert_int_equal(atomic_load(&port->sh->bell), port->index);
	atomic_store(&port->sh->steer, 99);
	reported("steered");
	mended();
}

static void statistics_of_nobody_are_reported_and_given_back(void **state)
{
	(void)state;
	atomic_store(&seg->stats[50].peer, 12);
	reported("statistics block 50");
	atomic_store(&seg->stats[51].peer, UINT32_MAX);
	reported("statistics block 51");
	mended();
}

static void a_fix_sweeps_dead_clients(void **state)
{
	struct xseg_peer *dead = segrig_client(seg, "dead", 16);
	struct xseg_info info;
	uint32_t more[XSEG_EXTENT_PAGES];

	(void)state;
	assert_int_equal(xseg_pages_take(dead, 1, more), 0);
	xseg_get_info(seg, &info);
	xseg_peer_close(dead, XSEG_CLOSE_ABANDON);
	mended();
	assert_int_equal(xseg_peer_find(seg, "dead"), XSEG_NONE);
	assert_int_equal(segrig_accounts(seg).free_extents, info.free_extents + 1);
}

static void a_fix_of_what_is_sound_changes_nothing(void **state)
{
	struct segrig_accounts before = segrig_accounts(seg);

	(void)state;
	mended();
	segrig_same(seg, &before);
	segrig_answer(segrig_port(lower), at, 0);
	assert_non_null(segrig_reply(segrig_port(client)));
	assert_non_null(segrig_reply(segrig_port(client)));
	assert_int_equal(segrig_bad(seg), 0);
}

static void a_check_without_memory_says_so_and_blames_nobody(void **state)
{
	(void)state;
	for (fail_at = 1; fail_at <= 2; fail_at++) {
		struct found f = { .want = "out of memory" };

		nr_callocs = 0;
		assert_int_equal(xseg_check(seg, false, look, &f), 1);
		assert_true(f.seen);
	}
	fail_at = 0;
	segrig_sound(seg);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_second_upstream_of_a_kept_peer_is_reported),
		T(copies_of_another_epoch_are_reported),
		T(a_peer_word_out_of_range_is_reported),
		T(a_port_in_the_list_of_another_is_reported),
		T(a_name_that_two_have_is_reported),
		T(a_route_in_a_circle_and_one_to_nobody_are_reported),
		T(a_port_of_nobody_is_reported_and_given_back),
		T(requests_out_of_range_and_in_common_are_reported),
		T(a_place_out_of_range_is_reported),
		T(a_request_at_rest_with_a_stranger_is_reported),
		T(a_loan_of_a_page_that_nobody_has_is_reported),
		T(a_page_that_two_were_lent_to_write_in_is_reported),
		T(a_request_at_a_port_that_nobody_has_is_reported),
		T(a_place_that_says_what_is_not_is_reported_and_mended),
		T(a_request_of_no_port_that_is_not_free_is_reported_and_freed),
		T(an_extent_word_out_of_range_is_reported),
		T(extents_of_nobody_are_reported_and_given_back),
		T(an_arena_with_a_hole_or_a_number_twice_is_reported),
		T(lanes_that_cannot_be_are_reported),
		T(a_lane_is_what_the_other_table_says_of_it),
		T(what_is_written_over_in_peers_and_ports_is_reported_and_put_back),
		T(what_is_written_over_in_copies_harms_nothing),
		T(a_bell_of_nobody_and_a_wild_steer_are_reported_and_mended),
		T(statistics_of_nobody_are_reported_and_given_back),
		T(a_fix_sweeps_dead_clients),
		T(a_fix_of_what_is_sound_changes_nothing),
		T(a_check_without_memory_says_so_and_blames_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
