/* peer_test - the common part of all peers: waiting, stopping, taking over, failing, the
 * simulator's steps, and the commands that every peer understands.
 */
#include "peers/common/runtime/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "peers/common/runtime/peer_box.h"
#include "peers/common/say/words.h"
#include "tests/rig/toys.h"
#include "xseg/internal.h"

/* ---- life -------------------------------------------------------------------------------- */

static void a_peer_waits_for_its_downstream(void **state)
{
	struct xseg_peer_params params = { .name = "low", .kind = "toy", .nr_ports = 1 };
	struct xseg_peer_info info;
	struct xseg_peer *low;
	struct xseg_error err;
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "high", TOY_FORWARD, 1, "low");
	toys_start(&g);
	usleep(100000);
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "high"), &info));
	assert_int_equal(info.state, XSEG_PEER_OPENING);
	assert_int_equal(xseg_peer_open(g.seg, &params, &low, &err), 0);
	toys_wait_serving(&g, "high");
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "high"), &info));
	assert_int_equal(info.downstream, xseg_peer_find(g.seg, "low"));
	toys_stop(&g);
	xseg_peer_close(low, XSEG_CLOSE_FREE_ARENA);
	toys_close(&g);
}

static void a_peer_with_nowhere_to_send_answers_enotconn(void **state)
{
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "high", TOY_FORWARD, 1, "");
	toys_serve(&g);
	assert_int_equal(toys_ask(&g, "high", 1), -ENOTCONN);
	toys_counts(&g, "high", "errors", 1);
	toys_stop(&g);
	toys_close(&g);
}

static void stopping_answers_what_it_has_and_keeps_the_rest_for_the_successor(void **state)
{
	struct xseg_peer_info info;
	struct toy *t;
	struct toys g;
	uint64_t until_ns;
	int64_t result;
	uint32_t i;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "two", TOY_HOLD, 2, "");
	t->dirty = 5;
	toys_serve(&g);
	for (i = 0; i < TOYS_DEPTH / 2; i++)
		toys_send(&g, "two", i);
	xseg_port_flush(g.port);
	until_ns = toys_clock_ns() + TOYS_PATIENCE_NS;
	while (peer_outstanding(&t->peer) < TOYS_DEPTH / 2 && toys_clock_ns() < until_ns)
		usleep(1000);
	assert_int_equal(peer_outstanding(&t->peer), TOYS_DEPTH / 2);
	assert_string_equal(toys_admin(&g, "two", "stop", &result), "ok\n");
	usleep(50000);
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "two"), &info));
	assert_int_equal(info.state, XSEG_PEER_LIVE);
	for (; i < TOYS_DEPTH; i++)
		toys_send(&g, "two", i);
	xseg_port_flush(g.port);
	atomic_store(&t->release, true);
	toys_stop(&g);
	for (i = 0; i < TOYS_DEPTH / 2; i++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "two"), &info));
	assert_int_equal(info.state, XSEG_PEER_STOPPED);
	toys_add(&g, "two", TOY_ECHO, 1, "");
	toys_serve(&g);
	for (i = 0; i < TOYS_DEPTH / 2; i++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	assert_int_equal(xseg_port_nr_free(g.port), TOYS_DEPTH);
	toys_stop(&g);
	toys_close(&g);
}

static void what_cannot_be_flushed_does_not_stop_service_for_ever(void **state)
{
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "stuck", TOY_ECHO, 2, "");
	t->dirty = 1ull << 60;			/* one less at each look: never all */
	toys_serve(&g);
	reactor_set_stop(g.set, 0);
	usleep(100000);
	assert_int_equal(toys_ask(&g, "stuck", 7), 7);
	assert_int_equal(toys_ask(&g, "stuck", 8), 8);
	t->dirty = 0;
	toys_stop(&g);
	toys_close(&g);
}

static void a_successor_recovers_what_a_killed_peer_had(void **state)
{
	struct xseg_error err;
	uint64_t next_ns;
	struct toy *t;
	struct toys g;
	uint32_t i;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "mortal", TOY_HOLD, 1, "");
	assert_int_equal(peer_open(&t->peer, g.seg, &err), 0);
	assert_true(peer_try_serve(&t->peer));
	for (i = 0; i < TOYS_DEPTH; i++)
		toys_send(&g, "mortal", i);
	xseg_port_flush(g.port);
	peer_port_round(&t->peer.ports[0], 1, 64, &next_ns);
	assert_int_equal(peer_outstanding(&t->peer), TOYS_DEPTH);
	peer_close(&t->peer, XSEG_CLOSE_ABANDON);
	peer_destroy(g.peers[--g.nr]);
	t = toys_add(&g, "mortal", TOY_ECHO, 1, "");
	toys_serve(&g);
	for (i = 0; i < TOYS_DEPTH; i++)
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
	assert_int_equal(atomic_load(&t->nr_recovered), TOYS_DEPTH);
	toys_stop(&g);
	toys_close(&g);
}

static void a_peer_whose_init_fails_leaves_nothing_behind(void **state)
{
	static const struct {
		uint32_t level;
		int rc;
		const char *why;
	} fails[] = { { 99, -EIO, "level 99 cannot be" }, { 98, -EAGAIN, "level 98 cannot be" } };
	struct xseg_error err = { "" };
	unsigned failed = 1, i;
	struct toy *t;
	struct toys g;

	(void)state;
	for (i = 0; i < 2; i++) {
		toys_open(&g);
		t = toys_add(&g, "broken", TOY_ECHO, 1, "");
		t->level = fails[i].level;
		g.set = reactor_set_create(g.peers, 1, "", &err);
		assert_non_null(g.set);
		assert_int_equal(reactor_set_open(g.set, g.seg, &failed, &err), fails[i].rc);
		assert_string_equal(err.text, fails[i].why);
		assert_int_equal(failed, 0);
		reactor_set_destroy(g.set);
		assert_int_equal(xseg_peer_find(g.seg, "broken"), XSEG_NONE);
		peer_destroy(g.peers[0]);
		toys_close(&g);
	}
}

static void who_gets_no_block_of_statistics_is_not_told_of_ports(void **state)
{
	static const char *const keys[] = { "n" };
	struct xseg_error err = { "" };
	struct xseg_stats *stats;
	unsigned failed = 1;
	char name[16];
	struct toys g;

	(void)state;
	toys_open(&g);
	for (uint32_t i = 0; i < xseg_nr_stats(g.seg); i++) {
		snprintf(name, sizeof(name), "s%u", i);
		assert_int_equal(xseg_stats_open(g.client, name, "test", keys, 1, &stats), 0);
	}
	toys_add(&g, "echo", TOY_ECHO, 1, "");
	g.set = reactor_set_create(g.peers, 1, "", &err);
	assert_non_null(g.set);
	assert_int_equal(reactor_set_open(g.set, g.seg, &failed, &err), -ENOSPC);
	assert_string_equal(err.text, "no place for its statistics: all places are taken; give "
				      "peers fewer threads");
	reactor_set_destroy(g.set);
	peer_destroy(g.peers[0]);
	toys_close(&g);
}

static enum xseg_peer_state state_of(struct toys *g, const char *name)
{
	struct xseg_peer_info info = { .state = XSEG_PEER_FREE };

	xseg_peer_get_info(g->seg, xseg_peer_find(g->seg, name), &info);
	return info.state;
}

/* A peer of that name, which has served, is closed as `how` says. */
static void toys_leave(struct toys *g, const char *name, enum xseg_close how)
{
	struct toy *t = toys_add(g, name, TOY_ECHO, 1, "");

	assert_int_equal(peer_open(&t->peer, g->seg, NULL), 0);
	assert_true(peer_try_serve(&t->peer));
	peer_close(&t->peer, how);
	peer_destroy(g->peers[--g->nr]);
}

static uint64_t unsynced_of(struct toys *g, const char *name)
{
	struct xseg_peer_info info;

	assert_true(xseg_peer_get_info(g->seg, xseg_peer_find(g->seg, name), &info));
	return peer_word_unsynced(&info);
}

/* Anybody can write that word, and it is the reason to refuse a stop. */
static void a_peer_that_leaves_says_anew_what_it_has_not_synced(void **state)
{
	static const enum xseg_close how[] = { XSEG_CLOSE_KEEP_ARENA, XSEG_CLOSE_ABANDON };
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	for (int i = 0; i < 2; i++) {
		t = toys_add(&g, "scribbled", TOY_ECHO, 1, "");
		assert_int_equal(peer_open(&t->peer, g.seg, NULL), 0);
		assert_true(peer_try_serve(&t->peer));
		xseg_peer_user_set(t->peer.xp, PEER_WORD_UNSYNCED, 5);
		peer_close(&t->peer, how[i]);
		peer_destroy(g.peers[--g.nr]);
		assert_int_equal(unsynced_of(&g, "scribbled"), i ? 5 : 0);
	}
	toys_leave(&g, "scribbled", XSEG_CLOSE_ABANDON);
	assert_int_equal(unsynced_of(&g, "scribbled"), 0);
	toys_close(&g);
}

/* Two commands that started a stopped peer: the second one said that it is stopping, by the word of
 * the predecessor. */
static void a_successor_is_not_stopping_while_it_opens(void **state)
{
	struct xseg_peer_params params = { .name = "again", .nr_ports = 1, .nr_requests = 8 };
	struct xseg_peer_info info;
	struct xseg_error err;
	struct xseg_peer *next;
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "again", TOY_ECHO, 1, "");
	assert_int_equal(peer_open(&t->peer, g.seg, NULL), 0);
	assert_true(peer_try_serve(&t->peer));
	peer_stop(&t->peer);
	params.kind = t->peer.cls->kind;
	peer_close(&t->peer, XSEG_CLOSE_KEEP_ARENA);
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_find(g.seg, "again"), &info));
	assert_int_equal(info.state, XSEG_PEER_STOPPED);
	assert_true(peer_word_stopping(&info));

	assert_int_equal(xseg_peer_open(g.seg, &params, &next, &err), 0);
	assert_true(xseg_peer_get_info(g.seg, xseg_peer_index(next), &info));
	assert_int_equal(info.state, XSEG_PEER_OPENING);
	assert_false(peer_word_stopping(&info));
	xseg_peer_close(next, XSEG_CLOSE_ABANDON);
	peer_destroy(g.peers[--g.nr]);
	toys_close(&g);
}

/* All of a process that cannot open the last of them: who was dead is not gone while somebody will
 * start it again. */
static void peers_of_which_one_cannot_begin_are_what_they_were(void **state)
{
	static const struct {
		enum xseg_close how;
		enum xseg_peer_state left;
	} was[] = { { XSEG_CLOSE_ABANDON, XSEG_PEER_DEAD },
		{ XSEG_CLOSE_KEEP_ARENA, XSEG_PEER_STOPPED } };
	struct xseg_error err;
	unsigned failed, i;
	struct toy *t;
	struct toys g;

	(void)state;
	for (i = 0; i < 2; i++) {
		toys_open(&g);
		toys_leave(&g, "low", was[i].how);
		toys_leave(&g, "broken", was[i].how);
		toys_add(&g, "low", TOY_ECHO, 1, "");
		toys_add(&g, "new", TOY_ECHO, 1, "");
		t = toys_add(&g, "broken", TOY_ECHO, 1, "");
		t->level = 99;
		g.set = reactor_set_create(g.peers, 3, "", &err);
		assert_non_null(g.set);
		assert_int_equal(reactor_set_open(g.set, g.seg, &failed, &err), -EIO);
		assert_int_equal(failed, 2);
		reactor_set_destroy(g.set);
		assert_int_equal(state_of(&g, "low"), was[i].left);
		assert_int_equal(state_of(&g, "new"), XSEG_PEER_FREE);
		assert_int_equal(state_of(&g, "broken"), was[i].left);
		while (g.nr)
			peer_destroy(g.peers[--g.nr]);
		toys_close(&g);
	}
}

static void reactors_that_get_no_descriptor_say_so(void **state)
{
	struct xseg_error err = { "" };
	struct rlimit was, none;
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "echo", TOY_ECHO, 1, "");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	g.set = reactor_set_create(g.peers, 1, "", &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_null(g.set);
	assert_non_null(strstr(err.text, "no file descriptor"));
	assert_non_null(strstr(err.text, "Too many open files"));
	peer_destroy(g.peers[0]);
	toys_close(&g);
}

static void peers_that_are_stopped_before_they_serve_leave_by_themselves(void **state)
{
	struct toy *low, *high;
	struct toys g;

	(void)state;
	toys_open(&g);
	low = toys_add(&g, "low", TOY_ECHO, 1, "");
	high = toys_add(&g, "high", TOY_FORWARD, 2, "low");
	atomic_store(&low->peer.stopping, true);
	atomic_store(&high->peer.stopping, true);
	toys_start(&g);
	reactor_set_destroy(g.set);		/* returns when all have left */
	peer_destroy(g.peers[0]);
	peer_destroy(g.peers[1]);
	toys_close(&g);
}

static void steps_handle_one_thing_each(void **state)
{
	struct xseg_error err;
	struct toy *t;
	struct toys g;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "slow", TOY_ECHO, 1, "");
	assert_int_equal(peer_open(&t->peer, g.seg, &err), 0);
	assert_false(peer_port_step_request(&t->peer.ports[0]));
	assert_true(peer_try_serve(&t->peer));
	toys_send(&g, "slow", 1);
	toys_send(&g, "slow", 2);
	xseg_port_flush(g.port);
	assert_true(peer_port_step_request(&t->peer.ports[0]));
	assert_int_equal(peer_port_step_poll(&t->peer.ports[0]), PEER_NEVER);
	assert_int_equal(toys_receive(&g, 0), 1);
	assert_int_equal(toys_receive(&g, 0), -ETIMEDOUT);
	assert_true(peer_port_step_request(&t->peer.ports[0]));
	assert_false(peer_port_step_request(&t->peer.ports[0]));
	assert_false(peer_port_step_reply(&t->peer.ports[0]));
	peer_port_step_poll(&t->peer.ports[0]);
	assert_int_equal(toys_receive(&g, 0), 2);
	peer_close(&t->peer, XSEG_CLOSE_FREE_ARENA);
	peer_destroy(g.peers[0]);
	toys_close(&g);
}

/* ---- commands ---------------------------------------------------------------------------- */

/* A toy that is open and serves, without a thread. */
static struct toy *open_one(struct toys *g, enum toy_way way)
{
	struct xseg_error err;
	struct toy *t;

	toys_open(g);
	t = toys_add(g, "toy", way, 1, "");
	assert_int_equal(peer_open(&t->peer, g->seg, &err), 0);
	assert_true(peer_try_serve(&t->peer));
	return t;
}

static void close_one(struct toys *g)
{
	peer_close(g->peers[0], XSEG_CLOSE_FREE_ARENA);
	peer_destroy(g->peers[--g->nr]);
	toys_close(g);
}

static bool round_of(struct toy *t)
{
	uint64_t next_ns;

	return peer_port_round(&t->peer.ports[0], 1, PEER_TAKE, &next_ns);
}

static void send_some(struct toys *g, uint64_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		toys_send(g, "toy", first + i);
	xseg_port_flush(g->port);
}

static void receive_some(struct toys *g, uint64_t first, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		assert_int_equal(toys_receive(g, 0), first + i);
}

static void a_batch_is_handed_over_at_once_up_to_a_command_or_the_end_of_the_round(void **state)
{
	struct toys g;
	struct toy *t = open_one(&g, TOY_END);
	struct xreq *r;

	(void)state;
	send_some(&g, 1, 8);
	assert_true(round_of(t));
	assert_int_equal(atomic_load(&t->nr_batches), 1);
	receive_some(&g, 1, 8);
	/* a command without room for its answer, between 2 and 5 */
	send_some(&g, 1, 2);
	r = xseg_req_alloc(g.port);
	r->op = XSEG_OP_ADMIN;
	assert_int_equal(xseg_req_submit(g.port, r, xseg_peer_find(g.seg, "toy")), 0);
	send_some(&g, 5, 2);
	assert_true(round_of(t));
	assert_int_equal(atomic_load(&t->nr_batches), 3);
	assert_int_equal(peer_outstanding(&t->peer), 0);
	receive_some(&g, 1, 2);
	assert_int_equal(toys_receive(&g, 0), -EINVAL);
	receive_some(&g, 5, 2);
	/* the round ends behind the first; the others stay for the next one */
	send_some(&g, 0, 4);
	assert_true(round_of(t));
	assert_int_equal(peer_outstanding(&t->peer), 3);
	receive_some(&g, 0, 1);
	assert_true(round_of(t));
	assert_int_equal(peer_outstanding(&t->peer), 0);
	receive_some(&g, 1, 3);
	close_one(&g);
}

/* The client falls asleep just after the round: whether the next one rings tells who was not rung
 * for. */
static bool rings_in_the_next_round(struct toys *g, struct toy *t)
{
	_Atomic uint32_t *bell = &g->seg->bells[g->port->index].word;
	uint32_t before = atomic_fetch_or(bell, 1) | 1;
	bool rang;

	assert_false(round_of(t));
	rang = atomic_load(bell) != before;
	atomic_fetch_add(bell, 1);
	return rang;
}

static void who_rings_a_round_later_serves_alone_and_has_work_at_each_look(void **state)
{
	struct toys g;
	struct toy *t = open_one(&g, TOY_ECHO);
	uint32_t alone, i;

	(void)state;
	for (alone = 0; alone < 2; alone++) {
		t->peer.ports[0].only = alone;
		for (i = 1; i <= 3; i++) {
			for (uint32_t k = 0; k < i; k++) {
				send_some(&g, 1, 1);
				assert_true(round_of(t));
				receive_some(&g, 1, 1);
			}
			assert_int_equal(rings_in_the_next_round(&g, t), alone && i > 1);
		}
	}
	close_one(&g);
}

static void every_peer_understands_the_common_commands(void **state)
{
	int64_t result;
	struct toys g;
	char *text;

	(void)state;
	toys_open(&g);
	toys_add(&g, "toy", TOY_ECHO, 1, "");
	toys_serve(&g);
	assert_string_equal(toys_admin(&g, "toy", "ping", &result), "ok\n");
	assert_int_equal(result, 3);
	assert_string_equal(toys_admin(&g, "toy", "get", &result), "level=1\nspare=4k\nwords=\n");
	assert_string_equal(toys_admin(&g, "toy", " get spare", &result), "spare=4k\n");
	assert_string_equal(toys_admin(&g, "toy", "hello", &result), "hello yourself\n");
	assert_int_equal(result, 15);
	text = toys_admin(&g, "toy", "get nothing", &result);
	assert_int_equal(result, -EINVAL);
	assert_non_null(strstr(text, "no option 'nothing'"));
	text = toys_admin(&g, "toy", "dance now", &result);
	assert_int_equal(result, -ENOSYS);
	assert_non_null(strstr(text, "no command 'dance now'"));
	toys_stop(&g);
	toys_close(&g);
}

static void set_changes_all_or_nothing(void **state)
{
	static const struct {
		const char *line, *says;
	} wrong[] = {
		{ "set level=5 spare=8k", "spare cannot be changed" },
		{ "set level=5 level=101", "0 to 100" },
		{ "set words=x level=13", "not 13" },
		{ "set level", "needs a value" },
		{ "set", "KEY=VALUE" },
		{ "set levle=5", "no option 'levle'" },
	};
	struct toy *t;
	struct toys g;
	int64_t result;
	char *text;
	size_t i;

	(void)state;
	toys_open(&g);
	t = toys_add(&g, "toy", TOY_ECHO, 1, "");
	toys_serve(&g);
	assert_string_equal(toys_admin(&g, "toy", "set words=a level=3 words=b", &result),
		"words=a\nwords=b\nlevel=3\n");
	assert_string_equal(toys_admin(&g, "toy", "get words", &result), "words=a\nwords=b\n");
	assert_string_equal(toys_admin(&g, "toy", "keys", &result), "level=\nwords=\n");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		text = toys_admin(&g, "toy", wrong[i].line, &result);
		assert_int_equal(result, -EINVAL);
		assert_non_null(strstr(text, wrong[i].says));
		assert_int_equal(t->level, 3);
		assert_string_equal(t->words, "a\nb");
	}
	assert_string_equal(toys_admin(&g, "toy", "set words=", &result), "words=\n");
	assert_string_equal(t->words, "");
	toys_stop(&g);
	toys_close(&g);
}

static void an_admin_request_with_too_few_pages_is_refused(void **state)
{
	struct xreq *r;
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "toy", TOY_ECHO, 1, "");
	toys_serve(&g);
	r = xseg_req_alloc(g.port);
	r->op = XSEG_OP_ADMIN;
	r->size = XSEG_REQ_BYTES;
	assert_int_equal(xseg_req_submit(g.port, r, xseg_peer_find(g.seg, "toy")), 0);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), -EINVAL);
	r = xseg_req_alloc(g.port);
	r->op = XSEG_OP_ADMIN;
	r->size = XSEG_REQ_BYTES;
	r->nr_pages = 1;
	r->page[0] = g.page[0];
	r->offset = 4090;
	memcpy((char *)xseg_page(g.seg, g.page[0]) + 4090, "ping", 5);
	assert_int_equal(xseg_req_submit(g.port, r, xseg_peer_find(g.seg, "toy")), 0);
	xseg_port_flush(g.port);
	assert_int_equal(toys_receive(&g, TOYS_PATIENCE_NS), 3);
	toys_stop(&g);
	toys_close(&g);
}

static void send_line(struct toys *g, const char *line, uint32_t nr)
{
	struct xreq *r = xseg_req_alloc(g->port);

	assert_non_null(r);
	r->op = XSEG_OP_ADMIN;
	r->size = XSEG_PAGE_SIZE;
	r->nr_pages = 1;
	r->page[0] = g->page[nr];
	r->hash = nr ? UINT64_MAX : 0;		/* each goes to a port of its own */
	memcpy(xseg_page(g->seg, g->page[nr]), line, strlen(line) + 1);
	assert_int_equal(xseg_req_submit(g->port, r, xseg_peer_find(g->seg, "toy")), 0);
}

/* ThreadSanitizer sees it each time. */
static void a_value_is_not_shown_while_it_changes(void **state)
{
	static const char *const lines[] = { "set words=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"set words=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" };
	const char *value;
	struct toys g;

	(void)state;
	toys_open(&g);
	toys_add(&g, "toy", TOY_ECHO, 2, "");
	toys_serve(&g);
	for (uint32_t i = 0; i < 2000; i++) {
		send_line(&g, lines[i % 2], 0);
		send_line(&g, "get words", 1);
		xseg_port_flush(g.port);
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
		assert_true(toys_receive(&g, TOYS_PATIENCE_NS) >= 0);
		value = (char *)xseg_page(g.seg, g.page[1]) + strlen("words=");
		if (i)
			assert_int_equal(strspn(value, *value == 'a' ? "a" : "b"), 40);
	}
	toys_stop(&g);
	toys_close(&g);
}

/* `xseg down` said that its stop was taken back when it had ended: an earlier one had been, and the
 * supervisor that left had given up its words. */
static void a_supervisor_that_leaves_takes_no_stop_back(void **state)
{
	struct peer_undone once = { .error = ECANCELED, .nr = 1 };
	struct xseg_peer_info info = { .generation = 7 };

	(void)state;
	assert_false(peer_word_taken_back(&info, 0));
	info.user[SUPERVISOR_WORD_UNDONE] = peer_undone_pack(once);
	assert_true(peer_word_taken_back(&info, 0));
	assert_false(peer_word_taken_back(&info, 1));
	info.user[PEER_WORD_STOPPING] = info.generation;
	assert_false(peer_word_taken_back(&info, 0));
	memset(info.user, 0, sizeof(info.user));
	assert_false(peer_word_taken_back(&info, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_waits_for_its_downstream),
		cmocka_unit_test(a_peer_with_nowhere_to_send_answers_enotconn),
		cmocka_unit_test(stopping_answers_what_it_has_and_keeps_the_rest_for_the_successor),
		cmocka_unit_test(what_cannot_be_flushed_does_not_stop_service_for_ever),
		cmocka_unit_test(a_successor_recovers_what_a_killed_peer_had),
		cmocka_unit_test(a_peer_whose_init_fails_leaves_nothing_behind),
		cmocka_unit_test(who_gets_no_block_of_statistics_is_not_told_of_ports),
		cmocka_unit_test(a_peer_that_leaves_says_anew_what_it_has_not_synced),
		cmocka_unit_test(peers_of_which_one_cannot_begin_are_what_they_were),
		cmocka_unit_test(reactors_that_get_no_descriptor_say_so),
		cmocka_unit_test(peers_that_are_stopped_before_they_serve_leave_by_themselves),
		cmocka_unit_test(steps_handle_one_thing_each),
		cmocka_unit_test(
			a_batch_is_handed_over_at_once_up_to_a_command_or_the_end_of_the_round),
		cmocka_unit_test(who_rings_a_round_later_serves_alone_and_has_work_at_each_look),
		cmocka_unit_test(every_peer_understands_the_common_commands),
		cmocka_unit_test(set_changes_all_or_nothing),
		cmocka_unit_test(an_admin_request_with_too_few_pages_is_refused),
		cmocka_unit_test(a_value_is_not_shown_while_it_changes),
		cmocka_unit_test(a_supervisor_that_leaves_takes_no_stop_back),
		cmocka_unit_test(a_successor_is_not_stopping_while_it_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
