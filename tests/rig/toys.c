/* toys - see toys.h. */
#include "tests/rig/toys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- the toy: answers, holds, delays, or waits for an eventfd ------------------------------ */

static struct toy *toy_of(struct peer_port *pp)
{
	return (struct toy *)pp->peer;
}

static int toy_init(struct peer *p, struct xseg_error *err)
{
	struct toy *t = (struct toy *)p;
	uint32_t i;

	t->init_ns = p->ports[p->nr_ports - 1].now_ns;
	for (i = 0; t->way == TOY_EVENT && i < p->nr_ports; i++) {
		t->fd[i] = eventfd(0, EFD_NONBLOCK);
		if (reactor_watch(&p->ports[i], t->fd[i]))
			return xseg_fail(err, -EINVAL, "no watch");
	}
	if (t->level == 98)			/* as the kernel, which has no more of something */
		return xseg_fail(err, -EAGAIN, "level 98 cannot be");
	return t->level == 99 ? xseg_fail(err, -EIO, "level 99 cannot be") : 0;
}

static void toy_request(struct peer_port *pp, struct xreq *r)
{
	struct toy *t = toy_of(pp);

	switch (t->way) {
	case TOY_END:
		if (r->offset == 0)
			peer_end_round(pp);
		/* fall through */
	case TOY_ECHO:
		peer_answer(pp, r, (int64_t)r->offset);
		break;
	case TOY_FORWARD:
		peer_forward(pp, r);
		break;
	case TOY_STAND:
		atomic_store(&t->stands, true);
		while (!atomic_load(&t->release))
			usleep(100);
		peer_answer(pp, r, (int64_t)r->offset);
		break;
	default:
		assert_true(t->nr_held[pp->nr] < TOYS_DEPTH * 2);
		atomic_store(&t->stamp_ns, r->stamp_ns);
		t->held[pp->nr][t->nr_held[pp->nr]++] = r;
	}
}

static uint32_t toy_requests(struct peer_port *pp, struct xreq *const *r, uint32_t nr)
{
	uint32_t i = 0;

	atomic_fetch_add(&toy_of(pp)->nr_batches, 1);
	do {
		toy_request(pp, r[i]);
	} while (++i < nr && !pp->round_over);
	return i;
}

static void toy_recover(struct peer_port *pp, struct xreq *r)
{
	atomic_fetch_add(&toy_of(pp)->nr_recovered, 1);
	toy_request(pp, r);
}

static bool is_due(struct toy *t, struct peer_port *pp, const struct xreq *r)
{
	switch (t->way) {
	case TOY_DELAY:
		return r->stamp_ns + t->delay_ns <= pp->now_ns;
	case TOY_KICK:
	case TOY_HOLD:
		return atomic_load(&t->release);
	default:
		return true;
	}
}

static uint64_t toy_poll(struct peer_port *pp)
{
	struct toy *t = toy_of(pp);
	uint32_t *nr = &t->nr_held[pp->nr], i;
	struct xreq **held = t->held[pp->nr];

	atomic_fetch_add_explicit(&t->nr_polls, 1, memory_order_relaxed);
	if (t->way == TOY_EVENT && !atomic_load(&t->release))
		return PEER_NEVER;
	for (i = 0; i < *nr;)
		if (is_due(t, pp, held[i])) {
			peer_answer(pp, held[i], (int64_t)held[i]->offset);
			held[i] = held[--*nr];
		} else {
			i++;
		}
	return t->way == TOY_DELAY && *nr ? held[0]->stamp_ns + t->delay_ns : PEER_NEVER;
}

static int toy_changed(struct peer *p, const struct opt *o, struct xseg_error *err)
{
	(void)o;
	return ((struct toy *)p)->level == 13 ? xseg_fail(err, -EINVAL, "level: not 13") : 0;
}

static int64_t toy_admin(struct peer_port *pp, struct xreq *r, char *line, char *out, size_t size)
{
	(void)pp;
	(void)r;
	if (strcmp(line, "hello"))
		return -ENOSYS;
	return snprintf(out, size, "hello yourself\n");
}

static bool toy_quiesced(struct peer *p, uint64_t *left)
{
	struct toy *t = (struct toy *)p;
	uint64_t dirty = atomic_load(&t->dirty);

	*left = dirty;
	if (dirty)	/* the test's thread may have set it to 0 meanwhile */
		atomic_compare_exchange_strong(&t->dirty, &dirty, dirty - 1);
	return *left == 0;
}

#define T(field) offsetof(struct toy, field)
static const struct opt toy_opts[] = {
	{ .name = "level", .kind = OPT_UINT, .off = T(level), .max = 100, .def = "1",
	  .flags = OPT_LIVE, .help = "" },
	{ .name = "spare", .kind = OPT_SIZE, .off = T(spare), .def = "4k", .help = "" },
	{ .name = "words", .kind = OPT_LIST, .off = T(words), .len = 64, .flags = OPT_LIVE,
	  .help = "" },
	{ 0 }
};

static const struct peer_class toy_class = {
	.kind = "toy",
	.summary = "a toy",
	.opts = toy_opts,
	.size = sizeof(struct toy),
	.sends = true,
	.init = toy_init,
	.recover = toy_recover,
	.request = toy_request,
	.requests = toy_requests,
	.poll = toy_poll,
	.changed = toy_changed,
	.admin = toy_admin,
	.quiesced = toy_quiesced,
};

/* ---- a segment, a client, peers on threads ------------------------------------------------- */

uint64_t toys_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TOYS_SECOND + (uint64_t)ts.tv_nsec;
}

struct toy *toys_add(struct toys *g, const char *name, enum toy_way way, uint32_t threads,
			   const char *downstream)
{
	struct peer *p = peer_create(&toy_class);

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->downstream_name, sizeof(p->downstream_name), "%s", downstream);
	p->threads = threads;
	((struct toy *)p)->way = way;
	g->peers[g->nr++] = p;
	return (struct toy *)p;
}

void toys_open(struct toys *g)
{
	struct xseg_config cfg = {
		.memory_bytes = 8 << 20, .nr_requests = 256, .nr_ports = 16, .group = -1
	};
	struct xseg_peer_params params = {
		.name = "me", .kind = "client", .nr_ports = 1, .nr_requests = TOYS_DEPTH
	};
	struct xseg_error err;

	memset(g, 0, sizeof(*g));
	assert_int_equal(xseg_create_private(&cfg, &g->seg, &err), 0);
	assert_int_equal(xseg_peer_open(g->seg, &params, &g->client, &err), 0);
	g->port = xseg_peer_port(g->client, 0);
	assert_int_equal(xseg_pages_take(g->client, 1, g->page), 0);
}

void toys_wait_serving(struct toys *g, const char *name)
{
	uint64_t until = toys_clock_ns() + TOYS_PATIENCE_NS;
	struct xseg_peer_info info;

	do {
		assert_true(toys_clock_ns() < until);
		usleep(200);
	} while (!xseg_peer_get_info(g->seg, xseg_peer_find(g->seg, name), &info) ||
		 info.state != XSEG_PEER_LIVE);
}

void toys_start(struct toys *g)
{
	struct xseg_error err;
	unsigned failed;

	g->set = reactor_set_create(g->peers, g->nr, "", &err);
	assert_non_null(g->set);
	assert_int_equal(reactor_set_open(g->set, g->seg, &failed, &err), 0);
	assert_int_equal(reactor_set_start(g->set, &err), 0);
}

void toys_serve(struct toys *g)
{
	unsigned i;

	toys_start(g);
	for (i = 0; i < g->nr; i++)
		toys_wait_serving(g, g->peers[i]->name);
}

void toys_stop(struct toys *g)
{
	unsigned i;

	for (i = g->nr; i-- > 0;)
		reactor_set_stop(g->set, i);
	reactor_set_destroy(g->set);
	while (g->nr > 0)
		peer_destroy(g->peers[--g->nr]);
}

void toys_close(struct toys *g)
{
	xseg_peer_close(g->client, XSEG_CLOSE_FREE_ARENA);
	assert_int_equal(xseg_check(g->seg, false, NULL, NULL), 0);
	xseg_detach(g->seg);
}

/* ---- the client -------------------------------------------------------------------------- */

void toys_send(struct toys *g, const char *to, uint64_t value)
{
	struct xreq *r = xseg_req_alloc(g->port);

	assert_non_null(r);
	r->op = XSEG_OP_INFO;
	r->offset = value;
	r->hash = value * 0x9e3779b97f4a7c15ull;
	assert_int_equal(xseg_req_submit(g->port, r, xseg_peer_find(g->seg, to)), 0);
}

int64_t toys_receive(struct toys *g, uint64_t timeout_ns)
{
	uint64_t until = toys_clock_ns() + timeout_ns;
	struct xreq *r;
	int64_t result;

	while (xseg_port_replies(g->port, &r, 1) == 0) {
		if (toys_clock_ns() >= until)
			return -ETIMEDOUT;
		xseg_port_wait(g->port, TOYS_SECOND / 100);
	}
	result = r->result;
	xseg_req_free(g->port, r);
	return result;
}

int64_t toys_ask(struct toys *g, const char *to, uint64_t value)
{
	toys_send(g, to, value);
	xseg_port_flush(g->port);
	return toys_receive(g, TOYS_PATIENCE_NS);
}

void toys_flood(struct toys *g, const char *to, uint32_t nr)
{
	uint64_t sent = 0, sum = 0, want = 0;
	uint32_t in_flight = 0, done = 0;
	int64_t result;

	while (done < nr) {
		while (in_flight < TOYS_DEPTH && sent < nr) {
			toys_send(g, to, sent);
			want += sent++;
			in_flight++;
		}
		xseg_port_flush(g->port);
		result = toys_receive(g, TOYS_PATIENCE_NS);
		assert_true(result >= 0);
		sum += (uint64_t)result;
		done++;
		in_flight--;
	}
	assert_int_equal(sum, want);
}

uint32_t toys_flood_for_a_while(struct toys *g, const char *to, uint32_t nr)
{
	uint64_t end = toys_clock_ns() + 5 * TOYS_SECOND;
	uint32_t sent = 0;

	do {
		toys_flood(g, to, 1000);
		sent += 1000;
	} while (sent < nr && toys_clock_ns() < end);
	return sent;
}

char *toys_admin(struct toys *g, const char *to, const char *line, int64_t *result)
{
	*result = xseg_admin_call(
		g->port, xseg_peer_find(g->seg, to), line, g->page, 1, TOYS_PATIENCE_NS);
	assert_int_not_equal(*result, -ETIMEDOUT);
	return xseg_page(g->seg, g->page[0]);
}

uint64_t toys_counter(struct toys *g, const char *name, const char *key)
{
	static struct xseg_stats_view view;
	uint64_t sum = 0;
	uint32_t i, k;

	for (i = 0; i < xseg_nr_stats(g->seg); i++) {
		if (!xseg_stats_view(g->seg, i, &view) || strcmp(view.name, name))
			continue;
		for (k = 0; k < view.nr; k++)
			if (!strcmp(view.key[k], key))
				sum += view.value[k];
	}
	return sum;
}

void toys_counts(struct toys *g, const char *name, const char *key, uint64_t n)
{
	uint64_t until = toys_clock_ns() + TOYS_PATIENCE_NS;

	while (toys_counter(g, name, key) < n && toys_clock_ns() < until)
		usleep(1000);
	assert_int_equal(toys_counter(g, name, key), n);
}
