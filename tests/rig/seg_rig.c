/* seg_rig - see seg_rig.h. */
#include "tests/rig/seg_rig.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define NR_NAMES 64

static char paths[NR_NAMES][XSEG_NAME_MAX + 16]; /* made beforehand: handlers of signals use them */
static const char prefix[] = "/dev/shm/xseg.";
static unsigned nr_names;
static pid_t maker;

const struct xseg_config segrig_config = {
	.memory_bytes = 16u << 20, .nr_requests = 64, .nr_ports = 16, .huge = XSEG_HUGE_NEVER,
	.group = -1,
};

static void remove_all(void)
{
	for (unsigned i = 0; getpid() == maker && i < nr_names; i++)
		unlink(paths[i]);
}

static void on_abort(int sig)
{
	remove_all();
	signal(sig, SIG_DFL);
	raise(sig);
}

const char *segrig_name(void)
{
	if (nr_names == 0) {
		maker = getpid();
		atexit(remove_all);
		signal(SIGABRT, on_abort);
		signal(SIGTERM, on_abort);
		signal(SIGINT, on_abort);
	}
	assert_true(nr_names < NR_NAMES);
	snprintf(paths[nr_names], sizeof(paths[0]), "%sut-%d-%u", prefix, (int)getpid(), nr_names);
	return paths[nr_names++] + strlen(prefix);
}

struct xseg *segrig_private_of(uint32_t nr_requests, uint32_t nr_ports)
{
	struct xseg_config cfg = segrig_config;
	struct xseg_error err = { "" };
	struct xseg *seg = NULL;

	cfg.nr_requests = nr_requests;
	cfg.nr_ports = nr_ports;
	if (xseg_create_private(&cfg, &seg, &err))
		fail_msg("%s", err.text);
	return seg;
}

struct xseg *segrig_private(void)
{
	return segrig_private_of(segrig_config.nr_requests, segrig_config.nr_ports);
}

struct xseg *segrig_attach(const char *name)
{
	struct xseg_error err = { "" };
	struct xseg *seg = NULL;

	if (xseg_attach(name, 0, &seg, &err))
		fail_msg("%s", err.text);
	return seg;
}

const char *segrig_named(struct xseg **seg)
{
	const char *name = segrig_name();
	struct xseg_error err = { "" };

	if (xseg_create(name, &segrig_config, &err))
		fail_msg("%s", err.text);
	*seg = segrig_attach(name);
	return name;
}

static struct xseg_peer *open_peer(struct xseg *seg, const struct xseg_peer_params *params)
{
	struct xseg_error err = { "" };
	struct xseg_peer *peer = NULL;

	if (xseg_peer_open(seg, params, &peer, &err))
		fail_msg("%s", err.text);
	return peer;
}

struct xseg_peer *segrig_client(struct xseg *seg, const char *name, uint32_t nr_requests)
{
	return open_peer(seg, &(struct xseg_peer_params){
				      .name = name,
				      .kind = "client",
				      .nr_ports = 1,
				      .nr_requests = nr_requests });
}

struct xseg_peer *segrig_open(struct xseg *seg, const char *name, uint32_t nr_ports,
	uint32_t nr_requests)
{
	return open_peer(seg, &(struct xseg_peer_params){
				      .name = name,
				      .kind = "memd",
				      .nr_ports = nr_ports,
				      .nr_requests = nr_requests });
}

int segrig_open_fails(struct xseg *seg, const char *name, const char *kind, uint32_t nr_ports,
	uint32_t nr_requests)
{
	const struct xseg_peer_params params = {
		.name = name, .kind = kind, .nr_ports = nr_ports, .nr_requests = nr_requests
	};
	struct xseg_error err = { "" };
	struct xseg_peer *peer = NULL;
	int rc = xseg_peer_open(seg, &params, &peer, &err);

	assert_true(rc < 0);
	assert_true(err.text[0]);
	assert_null(peer);
	return rc;
}

enum xseg_peer_state segrig_state(struct xseg *seg, const char *name)
{
	struct xseg_peer_info info;

	return xseg_peer_get_info(seg, xseg_peer_find(seg, name), &info) ? info.state
									 : XSEG_PEER_FREE;
}

void segrig_take(struct xport *port, struct xreq *r, void *arg)
{
	struct segrig_taken *t = arg;

	assert_true(t->nr < 64);
	t->port[t->nr] = port;
	t->state[t->nr] = r->state;
	t->r[t->nr++] = r;
}

struct xseg_peer *segrig_server(struct xseg *seg, const char *name, uint32_t nr_ports,
	uint32_t nr_requests)
{
	struct xseg_peer *peer = segrig_open(seg, name, nr_ports, nr_requests);

	xseg_peer_serve(peer);
	return peer;
}

struct xport *segrig_port(struct xseg_peer *peer)
{
	struct xport *port = xseg_peer_port(peer, 0);

	assert_non_null(port);
	return port;
}

void segrig_submit(struct xport *port, struct xreq *r, uint32_t peer)
{
	assert_int_equal(xseg_req_submit(port, r, peer), 0);
	xseg_port_flush(port);
}

struct xreq *segrig_alloc(struct xport *port, enum xseg_op op, unsigned flags, uint32_t n)
{
	struct xreq *r = xseg_req_alloc(port);

	assert_non_null(r);
	r->op = (uint8_t)op;
	r->flags = (uint8_t)flags;
	r->size = n * XSEG_PAGE_SIZE;
	r->nr_pages = (uint16_t)n;
	for (uint32_t i = 0; i < n; i++)
		r->page[i] = i;
	return r;
}

struct xreq *segrig_send(struct xport *port, enum xseg_op op, uint64_t offset, uint32_t peer)
{
	struct xreq *r = segrig_alloc(port, op, 0, 1);

	r->offset = offset;
	segrig_submit(port, r, peer);
	return r;
}

struct xreq *segrig_request(struct xport *port)
{
	struct xreq *r = NULL;

	assert_int_equal(xseg_port_receive(port, &r, 1), 1);
	return r;
}

struct xreq *segrig_reply(struct xport *port)
{
	struct xreq *r = NULL;

	assert_int_equal(xseg_port_replies(port, &r, 1), 1);
	return r;
}

struct xreq *segrig_request_is(struct xport *port, const struct xreq *sent)
{
	struct xreq *r = segrig_request(port);

	assert_int_equal(r->index, sent->index);
	return r;
}

struct xreq *segrig_reply_is(struct xport *port, const struct xreq *sent)
{
	struct xreq *r = segrig_reply(port);

	assert_int_equal(r->index, sent->index);
	return r;
}

void segrig_nothing(struct xport *port)
{
	struct xreq *r;

	assert_int_equal(xseg_port_receive(port, &r, 1), 0);
	assert_int_equal(xseg_port_replies(port, &r, 1), 0);
	assert_false(xseg_port_has_work(port));
}

void segrig_answer(struct xport *port, struct xreq *r, int64_t result)
{
	xseg_req_answer(port, r, result);
	xseg_port_flush(port);
}

uint64_t segrig_place(struct xseg *seg, const struct xreq *r)
{
	return atomic_load(&seg->reqs[r->index].place);
}

uint64_t segrig_bad(struct xseg *seg)
{
	return atomic_load(&seg->super->bad_count);
}

struct segrig_accounts segrig_accounts(struct xseg *seg)
{
	struct segrig_accounts a = { 0 };
	struct xseg_peer_info peer;
	struct xseg_info info;

	xseg_get_info(seg, &info);
	a.free_requests = info.idle_requests;
	a.free_ports = info.free_ports + info.reserve_ports;
	a.free_extents = info.free_extents;
	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++)
		a.nr_stats += atomic_load(&seg->stats[i].peer) != 0;
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		a.nr_peers += xseg_peer_get_info(seg, i, &peer);
	return a;
}

void segrig_same(struct xseg *seg, const struct segrig_accounts *before)
{
	struct segrig_accounts now = segrig_accounts(seg);

	assert_int_equal(now.free_requests, before->free_requests);
	assert_int_equal(now.free_ports, before->free_ports);
	assert_int_equal(now.free_extents, before->free_extents);
	assert_int_equal(now.nr_stats, before->nr_stats);
	assert_int_equal(now.nr_peers, before->nr_peers);
}

static void print_problem(const char *problem, void *arg)
{
	(void)arg;
	print_error("%s\n", problem);
}

void segrig_sound(struct xseg *seg)
{
	assert_int_equal(xseg_check(seg, false, print_problem, NULL), 0);
}

int segrig_fork(int (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(arg));
	return pid;
}

void segrig_kill(int pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

void segrig_wait(int pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void segrig_descriptors(bool some)
{
	static rlim_t usual;
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (!some)
		usual = limit.rlim_cur;
	limit.rlim_cur = some ? usual : 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

uint32_t segrig_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}
