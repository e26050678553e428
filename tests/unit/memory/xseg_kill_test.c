/* xseg_kill_test - processes that attach by themselves and are killed: the survivors take over,
 * sweep, and have all of it back.
 */
#include "tests/rig/seg_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

static struct xseg *seg;

static int teardown(void **state)
{
	(void)state;
	segrig_sound(seg);
	xseg_detach(seg);
	return 0;
}

static void close_peer(struct xseg_peer *peer)
{
	xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
}

struct child {
	const char *name;
	int ready[2];		/* the child writes a byte when it is where it is to be killed */
	unsigned what;
};

static void tell(struct child *ch)
{
	char byte = 'r';

	if (write(ch->ready[1], &byte, 1) != 1)
		_exit(2);
}

static void await(struct child *ch)
{
	char byte;

	assert_int_equal(read(ch->ready[0], &byte, 1), 1);
}

static void begin(struct child *ch)
{
	*ch = (struct child){ .name = segrig_named(&seg) };
	assert_int_equal(pipe(ch->ready), 0);
}

static void end(struct child *ch)
{
	close(ch->ready[0]);
	close(ch->ready[1]);
	assert_int_equal(segrig_bad(seg), 0);
	assert_int_equal(xseg_destroy(ch->name), 0);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Attaches by itself, receives six requests, leaves them in all states, and sleeps. */
static int child_server(void *arg)
{
	struct child *ch = arg;
	struct xseg_peer *peer;
	uint64_t bytes = 2 << 20;
	struct xreq *r[8];
	struct xseg *mine;
	struct xport *s;
	uint32_t n = 0;
	bool fresh;
	void *base;

	if (xseg_attach(ch->name, 0, &mine, NULL) ||
		xseg_peer_open(mine,
			&(struct xseg_peer_params){ .name = "memd",
				.kind = "memd",
				.nr_ports = 1,
				.nr_requests = 16 },
			&peer, NULL) ||
		xseg_arena_open(peer, &bytes, &base, &fresh, NULL))
		return 1;
	memset(base, 0x5a, bytes);
	xseg_peer_serve(peer);
	s = xseg_peer_port(peer, 0);
	tell(ch);
	while (n < 6) {
		n += xseg_port_receive(s, r + n, 6 - n);
		xseg_port_wait(s, 100000000);
	}
	for (unsigned i = 0; i < 4; i++)
		xseg_req_start(s, r[i]);
	for (unsigned i = 0; i < 2; i++)
		xseg_req_apply(s, r[i]);
	xseg_req_answer(s, r[0], 4096);		/* and is killed before it is published */
	tell(ch);
	pause();
	return 0;
}

static void a_killed_server_is_found_dead_and_taken_over(void **state)
{
	struct xseg_peer *client, *server;
	struct xreq *r[6], *out[8];
	struct segrig_taken t = { 0 };
	uint64_t bytes = 0;
	struct child ch;
	struct xport *c;
	bool fresh;
	void *base;
	int pid;

	(void)state;
	begin(&ch);
	pid = segrig_fork(child_server, &ch);
	await(&ch);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_LIVE);
	client = segrig_client(seg, "me", 16);
	c = segrig_port(client);
	for (unsigned i = 0; i < 6; i++)
		r[i] = segrig_send(
			c, XSEG_OP_WRITE, i * XSEG_PAGE_SIZE, xseg_peer_find(seg, "memd"));
	await(&ch);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	/* only the kernel's word counts */
	assert_int_equal(segrig_open_fails(seg, "memd", "memd", 1, 16), -EEXIST);
	assert_int_equal(kill(pid, SIGCONT), 0);
	segrig_kill(pid);
	assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_DEAD);
	assert_int_equal(xseg_sweep(seg), 0);
	/* whoever finds the death makes the answer known */
	assert_ptr_equal(segrig_reply(c), r[0]);
	server = segrig_open(seg, "memd", 1, 16);
	assert_int_equal(xseg_peer_orphans(server), 0);
	assert_int_equal(xseg_arena_open(server, &bytes, &base, &fresh, NULL), 0);
	assert_false(fresh);
	assert_int_equal(bytes, 2 << 20);
	assert_int_equal(((uint8_t *)base)[bytes - 1], 0x5a);
	xseg_peer_recover(server, segrig_take, &t);
	assert_int_equal(t.nr, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(t.state[i], i < 2   ? XSEG_REQ_STARTED
					     : i < 3 ? XSEG_REQ_APPLIED
						     : XSEG_REQ_AT);
		xseg_req_answer(t.port[i], t.r[i], 4096);
	}
	xseg_port_flush(segrig_port(server));
	xseg_peer_serve(server);
	assert_int_equal(xseg_port_replies(c, out, 8), 5);
	close_peer(client);
	close_peer(server);
	end(&ch);
}

/* Answers one request, of which nobody is told, and sleeps. */
static int child_that_answers(void *arg)
{
	struct child *ch = arg;
	struct xseg_peer *peer = segrig_server(segrig_attach(ch->name), "memd", 1, 0);
	struct xport *s = segrig_port(peer);
	struct xreq *r;

	tell(ch);
	while (xseg_port_receive(s, &r, 1) == 0)
		xseg_port_wait(s, 100000000);
	xseg_req_answer(s, r, 0);
	tell(ch);
	pause();
	return 0;
}

static void die(int signal)
{
	(void)signal;
	kill(getpid(), SIGKILL);
}

/* Is killed by its first store in the table of ports, or in that of peers. */
static int child_that_sweeps(void *arg)
{
	struct child *ch = arg;
	struct xseg *mine = segrig_attach(ch->name);
	void *table = ch->what ? (void *)mine->peers : (void *)mine->ports;

	signal(SIGSEGV, die);
	if (mprotect(table, XSEG_PAGE_SIZE, PROT_READ))
		return 1;
	tell(ch);
	raise(SIGSTOP);
	xseg_sweep(mine);
	return 2;
}

static void an_answer_is_found_though_who_finds_the_death_is_killed(void **state)
{
	struct xseg_peer *client;
	struct xreq *r;
	struct child ch;
	int server, sweeper, status;

	(void)state;
	for (unsigned what = 0; what < 2; what++) {
		begin(&ch);
		ch.what = what;
		server = segrig_fork(child_that_answers, &ch);
		await(&ch);
		sweeper = segrig_fork(child_that_sweeps, &ch);
		await(&ch);
		assert_int_equal(waitpid(sweeper, &status, WUNTRACED), sweeper);
		assert_true(WIFSTOPPED(status));
		client = segrig_client(seg, "me", 16);
		r = segrig_send(segrig_port(client), XSEG_OP_INFO, 0, xseg_peer_find(seg, "memd"));
		await(&ch);
		segrig_kill(server);
		assert_int_equal(kill(sweeper, SIGCONT), 0);
		assert_int_equal(waitpid(sweeper, &status, 0), sweeper);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(xseg_sweep(seg), 0);
		assert_ptr_equal(segrig_reply(segrig_port(client)), r);
		xseg_req_free(segrig_port(client), r);
		close_peer(client);
		end(&ch);
		if (what == 0)
			xseg_detach(seg);
	}
}

/* A client with pages, requests out, answered, and at rest. */
static int child_client(void *arg)
{
	struct child *ch = arg;
	uint32_t pages[XSEG_EXTENT_PAGES];
	struct xseg_peer *peer;
	struct xseg *mine;
	struct xport *c;

	if (xseg_attach(ch->name, 0, &mine, NULL) ||
		xseg_peer_open(mine,
			&(struct xseg_peer_params){ .name = "killed",
				.kind = "client",
				.nr_ports = 1,
				.nr_requests = 32 },
			&peer, NULL) ||
		xseg_pages_take(peer, 1, pages))
		return 1;
	c = xseg_peer_port(peer, 0);
	for (unsigned i = 0; i < 12; i++) {
		struct xreq *r = xseg_req_alloc(c);

		r->op = XSEG_OP_INFO;
		if (i < 8 && xseg_req_submit(c, r, xseg_peer_find(mine, "memd")))
			return 2;
		if (i == 5)
			xseg_port_flush(c);
	}
	tell(ch);
	pause();
	return 0;
}

static void a_killed_client_is_swept_and_all_it_had_comes_back(void **state)
{
	struct segrig_accounts before;
	struct xseg_peer *server;
	struct xreq *r[4];
	struct child ch;
	struct xport *s;
	int pid;

	(void)state;
	begin(&ch);
	server = segrig_server(seg, "memd", 1, 0);
	s = segrig_port(server);
	before = segrig_accounts(seg);
	pid = segrig_fork(child_client, &ch);
	await(&ch);
	assert_int_equal(xseg_port_receive(s, r, 4), 4);
	segrig_answer(s, r[0], 0);
	segrig_kill(pid);
	assert_int_equal(xseg_sweep(seg), 0);
	assert_int_equal(segrig_state(seg, "killed"), XSEG_PEER_DEAD);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(xseg_sweep(seg), 0);
		segrig_answer(s, r[i], 0);
	}
	assert_int_equal(xseg_sweep(seg), 1);
	segrig_same(seg, &before);
	segrig_nothing(s);
	close_peer(server);
	end(&ch);
}

/* Of the child that is refused: its segment, and where it is to be told why. */
static struct xseg *refused;
static struct xseg_error *reason;

/* The reason is about to be written, and nothing is given back yet: the first store to the ports
 * after it does that. */
static void die_at_ports(int number)
{
	if (mprotect(reason, XSEG_PAGE_SIZE, PROT_READ | PROT_WRITE) ||
		mprotect(refused->ports, XSEG_PAGE_SIZE, PROT_READ))
		_exit(2);
	signal(number, die);
}

/* A client that gets one port, and no requests for the other. */
static int child_that_is_refused(void *arg)
{
	struct child *ch = arg;
	struct xseg_peer *peer;

	refused = segrig_attach(ch->name);
	reason = mmap(NULL, XSEG_PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reason == MAP_FAILED)
		return 1;
	signal(SIGSEGV, die_at_ports);
	return xseg_peer_open(refused,
		       &(struct xseg_peer_params){ .name = "refused",
			       .kind = "client",
			       .nr_ports = 2,
			       .nr_requests = segrig_config.nr_requests },
		       &peer, reason)
		       ? 2
		       : 3;
}

static void a_client_that_is_killed_as_it_is_refused_is_swept(void **state)
{
	struct segrig_accounts before;
	struct child ch;
	int pid, status;

	(void)state;
	begin(&ch);
	before = segrig_accounts(seg);
	pid = segrig_fork(child_that_is_refused, &ch);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(segrig_accounts(seg).free_ports, before.free_ports - 1);
	assert_int_equal(xseg_sweep(seg), 1);
	segrig_same(seg, &before);
	end(&ch);
}

/* Applies a request in the arena at its offset, and answers; a redone one is the same. */
static void finish(struct xport *port, struct xreq *r, void *arg)
{
	_Atomic uint32_t *applied = arg;

	if (r->state == XSEG_REQ_AT)
		xseg_req_start(port, r);
	if (r->state == XSEG_REQ_STARTED) {
		atomic_store(&applied[r->offset], (uint32_t)r->offset + 1);
		xseg_req_apply(port, r);
	}
	xseg_req_answer(port, r, (int64_t)r->offset);
}

/* Serves until it is killed. */
static int child_restless_server(void *arg)
{
	struct child *ch = arg;
	uint64_t bytes = 4 << 20;
	struct xseg_peer *peer;
	struct xreq *r[8];
	struct xseg *mine;
	struct xport *s;
	bool fresh;
	void *base;

	if (xseg_attach(ch->name, 0, &mine, NULL) ||
	    xseg_peer_open(mine,
		    &(struct xseg_peer_params){ .name = "memd", .kind = "memd", .nr_ports = 1 },
		    &peer, NULL) ||
	    xseg_arena_open(peer, &bytes, &base, &fresh, NULL))
		return 1;
	tell(ch);
	s = xseg_peer_port(peer, 0);
	if (xseg_peer_orphans(peer))
		return 2;
	xseg_peer_recover(peer, finish, base);
	xseg_peer_serve(peer);
	for (;;) {
		uint32_t n = xseg_port_receive(s, r, 8);

		for (uint32_t i = 0; i < n; i++)
			finish(s, r[i], base);
		xseg_port_flush(s);
		if (n == 0)
			xseg_port_wait(s, 1000000000);
	}
}

static void take_replies(struct xport *c, uint64_t *done)
{
	struct xreq *r;

	while (xseg_port_replies(c, &r, 1)) {
		assert_int_equal(r->result, r->offset);
		xseg_req_free(c, r);
		(*done)++;
	}
}

/* The client's part of one life of the server: it keeps 12 requests out until then. */
static void drive(struct xport *c, uint32_t to, uint64_t *sent, uint64_t *done, uint64_t until_ns)
{
	do {
		while (*sent - *done < 12 && *sent < 1000000) {
			struct xreq *r = xseg_req_alloc(c);

			assert_non_null(r);
			r->op = XSEG_OP_INFO;
			r->offset = (*sent)++;
			assert_int_equal(xseg_req_submit(c, r, to), 0);
		}
		xseg_port_flush(c);
		take_replies(c, done);
	} while (now_ns() < until_ns);
}

static void a_server_killed_at_any_point_loses_and_doubles_nothing(void **state)
{
	uint64_t sent = 0, done = 0, seed = 7, bytes = 0;
	struct xseg_peer *client, *server;
	uint32_t *applied;
	struct child ch;
	struct xreq *r;
	struct xport *c;
	bool fresh;
	void *base;

	(void)state;
	begin(&ch);
	client = segrig_client(seg, "me", 16);
	c = segrig_port(client);
	for (unsigned life = 0; life < (SEGRIG_SANITIZED ? 20 : 100); life++) {
		int pid = segrig_fork(child_restless_server, &ch);

		await(&ch);
		drive(c, xseg_peer_find(seg, "memd"), &sent, &done,
			now_ns() + segrig_random(&seed) % 8000000);
		segrig_kill(pid);
		xseg_sweep(seg);
	}
	server = segrig_open(seg, "memd", 1, 0);
	assert_int_equal(xseg_arena_open(server, &bytes, &base, &fresh, NULL), 0);
	applied = base;
	xseg_peer_recover(server, finish, base);
	xseg_peer_serve(server);
	while (done < sent) {
		while (xseg_port_receive(segrig_port(server), &r, 1))
			finish(segrig_port(server), r, base);
		xseg_port_flush(segrig_port(server));
		take_replies(c, &done);
	}
	assert_int_equal(xseg_port_nr_free(c), 16);
	for (uint32_t i = 0; i < sent; i++)
		assert_int_equal(applied[i], i + 1);
	close_peer(client);
	close_peer(server);
	end(&ch);
}

/* Opens, takes, sends, receives, closes, until it is killed. */
static int child_restless_client(void *arg)
{
	struct child *ch = arg;
	uint32_t pages[XSEG_EXTENT_PAGES];
	struct xseg_peer *peer;
	struct xseg *mine;
	struct xreq *r;
	char name[32];

	if (xseg_attach(ch->name, 0, &mine, NULL))
		return 1;
	snprintf(name, sizeof(name), "client-%u", ch->what);
	tell(ch);
	for (;;) {
		struct xport *c;

		if (xseg_peer_open(mine,
			    &(struct xseg_peer_params){ .name = name,
				    .kind = "client",
				    .nr_ports = 1 + ch->what % 2,
				    .nr_requests = 16 },
			    &peer, NULL))
			continue;
		c = xseg_peer_port(peer, 0);
		if (xseg_pages_take(peer, 1, pages))
			return 2;
		while ((r = xseg_req_alloc(c)) != NULL) {
			r->op = XSEG_OP_INFO;
			if (xseg_req_submit(c, r, xseg_peer_find(mine, "memd")))
				return 3;
			xseg_port_flush(c);
		}
		while (xseg_port_replies(c, &r, 1))
			xseg_req_free(c, r);
		xseg_peer_close(peer, XSEG_CLOSE_KEEP_ARENA);
	}
}

static void clients_killed_at_any_point_leave_nothing(void **state)
{
	struct segrig_accounts before;
	struct xseg_peer *server;
	struct xreq *r[16];
	uint64_t seed = 11;
	struct child ch;
	struct xport *s;

	(void)state;
	begin(&ch);
	server = segrig_server(seg, "memd", 1, 0);
	s = segrig_port(server);
	before = segrig_accounts(seg);
	for (ch.what = 0; ch.what < (SEGRIG_SANITIZED ? 20 : 100); ch.what++) {
		int pid = segrig_fork(child_restless_client, &ch);
		uint64_t until_ns;

		await(&ch);
		until_ns = now_ns() + segrig_random(&seed) % 6000000;
		while (now_ns() < until_ns) {
			uint32_t n = xseg_port_receive(s, r, 16);

			for (uint32_t i = 0; i < n; i++)
				xseg_req_answer(s, r[i], 0);
			xseg_port_flush(s);
		}
		segrig_kill(pid);
		xseg_sweep(seg);
		/* as before a sleep: finds what was published and not announced */
		xseg_port_has_work(s);
		segrig_nothing(s);
		segrig_same(seg, &before);
		segrig_sound(seg);
	}
	close_peer(server);
	end(&ch);
}

/* Takes extents, fills them, and gives them back in no order, until it is killed; begins with what
 * the last one left. */
static int child_resizing_server(void *arg)
{
	struct child *ch = arg;
	uint32_t pages[8 * XSEG_EXTENT_PAGES], n;
	uint64_t seed = ch->what + 1;
	struct xseg_peer *peer;
	struct xseg *mine;

	if (xseg_attach(ch->name, 0, &mine, NULL) ||
	    xseg_peer_open(mine,
		    &(struct xseg_peer_params){ .name = "memd", .kind = "memd", .nr_ports = 1 },
		    &peer, NULL))
		return 1;
	n = xseg_pages_owned(peer, pages, 8 * XSEG_EXTENT_PAGES);
	tell(ch);
	for (;;) {
		uint32_t extent = segrig_random(&seed) % 8 * XSEG_EXTENT_PAGES;

		if (extent < n) {
			xseg_pages_give(peer, pages[extent]);
		} else if (xseg_pages_take(peer, 1, pages) == 0) {
			if (*(uint64_t *)xseg_page(mine, pages[0]))
				return 2;
			memset(xseg_page(mine, pages[0]), 0xee, XSEG_EXTENT_SIZE);
		}
		n = xseg_pages_owned(peer, pages, 8 * XSEG_EXTENT_PAGES);
	}
}

static void an_extent_of_a_peer_killed_while_it_resizes_is_its_own_or_free(void **state)
{
	uint32_t pages[8 * XSEG_EXTENT_PAGES], have, all;
	struct xseg_peer *server, *client;
	uint64_t seed = 13;
	struct child ch;

	(void)state;
	begin(&ch);
	all = xseg_nr_free_pages(seg);
	for (ch.what = 0; ch.what < (SEGRIG_SANITIZED ? 20 : 60); ch.what++) {
		int pid = segrig_fork(child_resizing_server, &ch);
		uint64_t until_ns;

		await(&ch);
		until_ns = now_ns() + segrig_random(&seed) % 4000000;
		while (now_ns() < until_ns)
			usleep(200);
		segrig_kill(pid);
		xseg_sweep(seg);
		segrig_sound(seg);
		server = segrig_open(seg, "memd", 1, 0);
		have = xseg_pages_owned(server, pages, 8 * XSEG_EXTENT_PAGES);
		assert_int_equal(have % XSEG_EXTENT_PAGES, 0);
		assert_int_equal(xseg_nr_free_pages(seg) + have, all);
		close_peer(server);
	}
	client = segrig_client(seg, "me", 0);
	assert_int_equal(xseg_pages_take(client, all - have, pages), 0);
	for (uint32_t i = 0; i < all - have; i++)
		for (uint32_t k = 0; k < XSEG_PAGE_SIZE / 8; k++)
			assert_int_equal(((uint64_t *)xseg_page(seg, pages[i]))[k], 0);
	close_peer(client);
	end(&ch);
}

static void dies(int sig)
{
	_exit(sig == SIGSEGV ? 0 : 2);
}

/* Forgets the peer, and dies at the first store to a port that is not in the first page of them. */
static int child_forgets(void *arg)
{
	struct child *ch = arg;
	struct xseg *mine = segrig_attach(ch->name);
	char *ports = (char *)mine->ports;

	signal(SIGSEGV, dies);
	signal(SIGBUS, dies);
	if (mprotect(ports + XSEG_PAGE_SIZE, XSEG_PAGE_SIZE, PROT_READ))
		return 3;
	return xseg_peer_forget(mine, xseg_peer_find(mine, "memd")) ? 4 : 5;
}

static void a_peer_whose_forgetting_was_killed_half_way_is_started_or_forgotten(void **state)
{
	struct segrig_accounts before;
	struct xseg_peer *server;
	struct child ch;
	uint32_t index;

	(void)state;
	begin(&ch);
	before = segrig_accounts(seg);
	for (unsigned starts = 0; starts < 2; starts++) {
		server = segrig_server(seg, "memd", 8, 0);
		index = xseg_peer_index(server);
		assert_true((char *)server->port[0].sh - (char *)seg->ports < XSEG_PAGE_SIZE);
		assert_true((char *)server->port[7].sh - (char *)seg->ports >= XSEG_PAGE_SIZE);
		close_peer(server);
		segrig_wait(segrig_fork(child_forgets, &ch));
		assert_int_equal(segrig_state(seg, "memd"), XSEG_PEER_STOPPED);
		segrig_sound(seg);
		if (starts) {
			server = segrig_server(seg, "memd", 8, 0);
			assert_int_equal(xseg_peer_nr_ports(server), 8);
			close_peer(server);
		}
		assert_int_equal(xseg_peer_forget(seg, index), 0);
		segrig_same(seg, &before);
	}
	end(&ch);
}

/* A cache beside two peers, which calls the upper one when it is asked to enter, and sleeps. */
static int child_cache(void *arg)
{
	struct child *ch = arg;
	struct xseg_peer *peer = segrig_server(segrig_attach(ch->name), "cache", 1, 0);

	tell(ch);
	while (xseg_plug_get(peer).op == XSEG_PLUG_NONE)
		usleep(100);
	if (xseg_plug_call(peer))
		return 1;
	tell(ch);
	pause();
	return 0;
}

/* Who holds for it, and who asks for it, tell by themselves that it is dead: a supervisor there may
 * be none. */
static void a_killed_cache_is_found_dead_by_whoever_plugs_it_and_holds_for_it(void **state)
{
	struct xseg_error err = { "" };
	struct xseg_peer *low, *up;
	uint32_t cache, l, u;
	struct child ch;
	int pid;

	(void)state;
	begin(&ch);
	low = segrig_server(seg, "low", 1, 0);
	up = segrig_server(seg, "up", 1, 0);
	l = xseg_peer_index(low);
	u = xseg_peer_index(up);
	assert_int_equal(xseg_route_set(seg, u, l), 0);
	pid = segrig_fork(child_cache, &ch);
	await(&ch);
	segrig_kill(pid);
	cache = xseg_peer_find(seg, "cache");
	assert_int_equal(xseg_plug(seg, cache, &u, 1, l, &err), -EHOSTDOWN);
	pid = segrig_fork(child_cache, &ch);
	await(&ch);
	assert_int_equal(xseg_plug(seg, cache, &u, 1, l, &err), 0);
	await(&ch);
	assert_int_equal(xseg_turn(up), XSEG_TURN_ASKED);
	segrig_kill(pid);
	xseg_turn_mind(up);
	assert_int_equal(xseg_turn(up), XSEG_TURN_NONE);
	assert_int_equal(xseg_plug_cancel(seg, cache, &err), 0);
	assert_int_equal(xseg_peer_forget(seg, cache), 0);
	xseg_peer_close(up, XSEG_CLOSE_FREE_ARENA);
	xseg_peer_close(low, XSEG_CLOSE_FREE_ARENA);
	end(&ch);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_killed_server_is_found_dead_and_taken_over),
		T(an_answer_is_found_though_who_finds_the_death_is_killed),
		T(a_killed_client_is_swept_and_all_it_had_comes_back),
		T(a_client_that_is_killed_as_it_is_refused_is_swept),
		T(a_server_killed_at_any_point_loses_and_doubles_nothing),
		T(clients_killed_at_any_point_leave_nothing),
		T(an_extent_of_a_peer_killed_while_it_resizes_is_its_own_or_free),
		T(a_killed_cache_is_found_dead_by_whoever_plugs_it_and_holds_for_it),
		T(a_peer_whose_forgetting_was_killed_half_way_is_started_or_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
