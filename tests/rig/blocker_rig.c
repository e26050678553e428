/* blocker_rig - see blocker_rig.h. */
#include "tests/rig/blocker_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <cmocka.h>

#include "peers/common/blocker/listing.h"

#define SLOT_PAGES XSEG_REQ_PAGES

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t real_ns(const struct rig *g)
{
	return clock_ns() + g->ahead_ns;
}

static void set_option(struct rig *g, const char *text)
{
	char key[64];
	size_t len = strcspn(text, "=");
	struct xseg_error err;
	const struct opt *o;

	assert_true(len < sizeof(key) && text[len] == '=');
	memcpy(key, text, len);
	key[len] = '\0';
	o = opt_find(g->cls->opts, key);
	assert_non_null(o);
	assert_int_equal(opt_set(o, g->peer, text + len + 1, &err), 0);
}

static int begin(struct rig *g)
{
	struct xseg_error err = { "" };
	uint32_t i;
	int rc;

	g->peer = peer_create(g->cls);
	assert_non_null(g->peer);
	for (i = 0; g->options && g->options[i]; i++) {
		if (!strncmp(g->options[i], "threads=", 8))
			g->peer->threads = (uint32_t)strtoul(g->options[i] + 8, NULL, 10);
		else
			set_option(g, g->options[i]);
	}
	rc = peer_open(g->peer, g->seg, &err);
	if (rc) {
		print_message("peer_open: %s\n", err.text);
		peer_destroy(g->peer);
		g->peer = NULL;
	}
	return rc;
}

/* A store that was not reached in time is tried again, as a supervisor would. */
int rig_start(struct rig *g)
{
	uint32_t i;
	int rc;

	do {
		rc = begin(g);
	} while (rc == -ETIMEDOUT);
	if (rc)
		return rc;
	for (i = 0; i < g->peer->nr_ports; i++)
		g->peer->ports[i].now_ns = g->real_clock ? real_ns(g) : g->now_ns;
	assert_true(peer_try_serve(g->peer));
	return 0;
}

void rig_open(struct rig *g, const struct peer_class *cls, const char *const *options,
	bool real_clock)
{
	struct xseg_config cfg = { .memory_bytes = 64u << 20,
		.nr_requests = 256,
		.nr_ports = 16,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_peer_params params = {
		.name = "client", .kind = "client", .nr_ports = 1, .nr_requests = RIG_IOS
	};
	struct xseg_error err = { "" };
	uint32_t i;

	memset(g, 0, sizeof(*g));
	g->cls = cls;
	g->options = options;
	g->real_clock = real_clock;
	prctl(PR_SET_TIMERSLACK, 1ul);	/* for rig_rest() */
	g->now_ns = 1000000000;
	assert_int_equal(xseg_create_private(&cfg, &g->seg, &err), 0);
	assert_int_equal(xseg_peer_open(g->seg, &params, &g->client, &err), 0);
	xseg_peer_serve(g->client);
	g->port = xseg_peer_port(g->client, 0);
	g->pages = calloc(xseg_pages_round(RIG_IOS * SLOT_PAGES), sizeof(*g->pages));
	assert_non_null(g->pages);
	assert_int_equal(xseg_pages_take(g->client, RIG_IOS * SLOT_PAGES, g->pages), 0);
	for (i = 0; i < RIG_IOS; i++)
		g->io[i].slot = i;
	assert_int_equal(rig_start(g), 0);
}

void rig_kill(struct rig *g)
{
	peer_close(g->peer, XSEG_CLOSE_ABANDON);
	peer_destroy(g->peer);
	g->peer = NULL;
}

void rig_stop(struct rig *g)
{
	const struct peer_class *cls = g->cls;
	enum xseg_close how =
		cls->close_how ? cls->close_how(g->peer, true) : XSEG_CLOSE_FREE_ARENA;
	uint64_t left = 0;

	while (cls->quiesced && !cls->quiesced(g->peer, &left))
		rig_step(g);
	peer_close(g->peer, how);
	peer_destroy(g->peer);
	g->peer = NULL;
}

void rig_restart(struct rig *g)
{
	rig_kill(g);
	assert_int_equal(rig_start(g), 0);
}

static bool all_is_answered(const struct rig *g)
{
	uint32_t i = 0;

	while (i < RIG_IOS && !g->io[i].sent)
		i++;
	return i == RIG_IOS;
}

void rig_close(struct rig *g)
{
	if (atomic_load(&g->threads_run))
		rig_threads_stop(g);
	if (g->peer && all_is_answered(g))
		rig_stop(g);
	else if (g->peer)
		rig_kill(g);
	xseg_peer_close(g->client, XSEG_CLOSE_FREE_ARENA);
	free(g->pages);
	xseg_detach(g->seg);
}

int rig_set(struct rig *g, const char *key, const char *value)
{
	const struct opt *o = opt_find(g->cls->opts, key);
	struct xseg_error err;
	int rc;

	assert_non_null(o);
	assert_true(o->flags & OPT_LIVE);
	if (o->kind == OPT_LIST)
		*((char *)g->peer + o->off) = '\0';
	rc = opt_set(o, g->peer, value, &err);
	if (!rc && g->cls->changed)
		rc = g->cls->changed(g->peer, o, &err);
	return rc;
}

struct port_thread {
	struct rig *g;
	uint32_t nr;
};

static void *serve_port(void *arg)
{
	struct port_thread self = *(struct port_thread *)arg;
	struct timespec idle = { 0, 20000 };
	uint64_t next;

	free(arg);
	while (atomic_load(&self.g->threads_run))
		if (!peer_port_round(&self.g->peer->ports[self.nr], real_ns(self.g), 8, &next))
			nanosleep(&idle, NULL);
	return NULL;
}

void rig_threads_start(struct rig *g)
{
	struct port_thread *arg;
	uint32_t i;

	g->real_clock = true;
	atomic_store(&g->threads_run, true);
	for (i = 0; i < g->peer->nr_ports; i++) {
		arg = malloc(sizeof(*arg));
		assert_non_null(arg);
		*arg = (struct port_thread){ g, i };
		assert_int_equal(pthread_create(&g->thread[i], NULL, serve_port, arg), 0);
	}
}

void rig_threads_stop(struct rig *g)
{
	uint32_t i;

	atomic_store(&g->threads_run, false);
	for (i = 0; i < g->peer->nr_ports; i++)
		pthread_join(g->thread[i], NULL);
}

/* ---- requests ---------------------------------------------------------------------------- */

static struct rig_io *io_get(struct rig *g)
{
	uint32_t i = 0;

	while (i < RIG_IOS - 1 && g->io[i].sent)
		i++;
	assert_false(g->io[i].sent);
	if (g->io[i].r)
		xseg_req_free(g->port, g->io[i].r);
	g->io[i] = (struct rig_io){ .slot = i, .used = true };
	g->io[i].r = xseg_req_alloc(g->port);
	assert_non_null(g->io[i].r);
	return &g->io[i];
}

static void io_submit_to_peer(struct rig *g, struct rig_io *io)
{
	io->r->cookie = io;
	io->sent = true;
	assert_int_equal(xseg_req_submit(g->port, io->r, xseg_peer_find(g->seg, g->cls->kind)), 0);
	xseg_port_flush(g->port);
}

struct rig_io *rig_send(struct rig *g, enum xseg_op op, const char *object, uint64_t offset,
	uint32_t size, const void *data, unsigned flags)
{
	bool moves = op == XSEG_OP_READ || op == XSEG_OP_WRITE;
	struct rig_io *io = io_get(g);
	struct xreq *r = io->r;
	uint32_t i;

	r->op = (uint8_t)op;
	r->flags = (uint8_t)flags;
	r->offset = r->obj_offset = offset;
	r->size = size;
	r->nr_pages = (uint16_t)(moves ? xseg_req_span(offset, size) : 0);
	for (i = 0; i < r->nr_pages; i++) {
		r->page[i] = g->pages[io->slot * SLOT_PAGES + i];
		memset(xseg_page(g->seg, r->page[i]), 0xee, XSEG_PAGE_SIZE);
	}
	xseg_req_set_target(r, object, strlen(object));
	if (data)
		xseg_req_write_data(g->seg, r, 0, data, size);
	io_submit_to_peer(g, io);
	return io;
}

static void replies_take(struct rig *g)
{
	struct xreq *r[RIG_IOS];
	uint32_t nr = xseg_port_replies(g->port, r, RIG_IOS), i;

	for (i = 0; i < nr; i++) {
		struct rig_io *io = r[i]->cookie;

		io->sent = false;
		io->done = true;
		io->result = r[i]->result;
		io->done_ns = g->now_ns;
		g->nr_done++;
	}
}

static uint64_t step(struct rig *g)
{
	uint64_t next, soonest = PEER_NEVER;
	uint32_t i;

	if (g->real_clock)
		g->now_ns = real_ns(g);
	for (i = 0; i < g->peer->nr_ports && !atomic_load(&g->threads_run); i++) {
		peer_port_round(&g->peer->ports[i], g->now_ns, 8, &next);
		if (next < soonest)
			soonest = next;
	}
	replies_take(g);
	return soonest;
}

void rig_step(struct rig *g)
{
	step(g);
}

void rig_settle(struct rig *g)
{
	struct timespec tick = { 0, 1000000 };
	uint64_t done;
	int quiet = 0;

	while (quiet < (g->real_clock ? 30 : 4)) {
		done = g->nr_done;
		step(g);
		quiet = g->nr_done == done ? quiet + 1 : 0;
		if (g->real_clock)
			nanosleep(&tick, NULL);
	}
}

void rig_advance(struct rig *g, uint64_t ns)
{
	if (g->real_clock)
		g->ahead_ns += ns;
	g->now_ns += ns;
}

void rig_rest(struct rig *g)
{
	struct timespec moment = { 0, 20000 };

	if (++g->nr_rests % 64 == 0)
		nanosleep(&moment, NULL);
}

int64_t rig_wait(struct rig *g, struct rig_io *io)
{
	uint64_t next, done;
	int quiet = 0;

	while (!io->done) {
		done = g->nr_done;
		next = step(g);
		quiet = g->nr_done == done ? quiet + 1 : 0;
		if (quiet > 4 && !g->real_clock) {
			assert_true(next != PEER_NEVER);
			if (next > g->now_ns)
				g->now_ns = next;
		}
		if (!io->done && g->real_clock)
			rig_rest(g);
	}
	return io->result;
}

void rig_data(struct rig *g, struct rig_io *io, void *buf, uint32_t size)
{
	xseg_req_read_data(g->seg, io->r, 0, buf, size);
}

int64_t rig_read(struct rig *g, const char *object, uint64_t offset, void *buf, uint32_t size)
{
	struct rig_io *io = rig_send(g, XSEG_OP_READ, object, offset, size, NULL, 0);
	int64_t result = rig_wait(g, io);

	if (result > 0)
		rig_data(g, io, buf, (uint32_t)result);
	return result;
}

int64_t rig_write(struct rig *g, const char *object, uint64_t offset, const void *data,
	uint32_t size, unsigned flags)
{
	return rig_wait(g, rig_send(g, XSEG_OP_WRITE, object, offset, size, data, flags));
}

int64_t rig_op(struct rig *g, enum xseg_op op, const char *object, uint64_t offset, uint32_t size)
{
	return rig_wait(g, rig_send(g, op, object, offset, size, NULL, 0));
}

struct rig_io *rig_send_copy(
	struct rig *g, const char *from, const char *to, uint64_t offset, uint32_t size)
{
	struct rig_io *io = io_get(g);
	struct xreq *r = io->r;

	r->op = XSEG_OP_COPY;
	r->offset = r->obj_offset = offset;
	r->size = size;
	r->nr_pages = 1;
	r->page[0] = g->pages[io->slot * SLOT_PAGES];
	memset(xseg_page(g->seg, r->page[0]), 0, XSEG_PAGE_SIZE);
	memcpy(xseg_page(g->seg, r->page[0]), from, strlen(from));
	xseg_req_set_target(r, to, strlen(to));
	io_submit_to_peer(g, io);
	return io;
}

int64_t rig_copy(struct rig *g, const char *from, const char *to, uint64_t offset, uint32_t size)
{
	return rig_wait(g, rig_send_copy(g, from, to, offset, size));
}

struct rig_io *rig_send_list(struct rig *g, const char *prefix, uint64_t cursor, uint32_t size)
{
	struct rig_io *io = io_get(g);
	struct xreq *r = io->r;
	uint32_t i;

	r->op = XSEG_OP_LIST;
	r->offset = r->obj_offset = cursor;
	r->size = size;
	r->nr_pages = (uint16_t)xseg_req_span(0, size);
	for (i = 0; i < r->nr_pages; i++)
		r->page[i] = g->pages[io->slot * SLOT_PAGES + i];
	xseg_req_set_target(r, prefix, strlen(prefix));
	io_submit_to_peer(g, io);
	return io;
}

int64_t rig_list(struct rig *g, const char *prefix, uint64_t *cursor,
	void (*tell)(void *arg, const char *name), void *arg)
{
	struct rig_io *io = rig_send_list(g, prefix, *cursor, XSEG_PAGE_SIZE);
	int64_t result = rig_wait(g, io);
	struct listing_names names;
	char name[XSEG_TARGET_MAX];

	if (result < 0)
		return result;
	assert_int_equal(listing_open(&names, g->seg, io->r), 0);
	for (uint32_t i = 0; i < names.head.nr; i++) {
		assert_int_equal(listing_next(&names, name), 1);
		assert_true(listing_wants(io->r, name));
		tell(arg, name);
	}
	*cursor = names.head.next;
	return 0;
}

struct rig_io *rig_send_flush(struct rig *g, uint32_t volume, const char *target)
{
	struct rig_io *io = io_get(g);

	io->r->op = XSEG_OP_FLUSH;
	io->r->volume = volume;
	xseg_req_set_target(io->r, target, strlen(target));
	io_submit_to_peer(g, io);
	return io;
}

int64_t rig_flush(struct rig *g, uint32_t volume, const char *target)
{
	return rig_wait(g, rig_send_flush(g, volume, target));
}

int64_t rig_admin(struct rig *g, const char *line, char *out, size_t size)
{
	struct rig_io *io = io_get(g);
	struct xreq *r = io->r;
	int64_t result;

	r->op = XSEG_OP_ADMIN;
	r->size = XSEG_PAGE_SIZE;
	r->nr_pages = 1;
	r->page[0] = g->pages[io->slot * SLOT_PAGES];
	memcpy(xseg_page(g->seg, r->page[0]), line, strlen(line) + 1);
	io_submit_to_peer(g, io);
	result = rig_wait(g, io);
	memcpy(out, xseg_page(g->seg, r->page[0]), size < XSEG_PAGE_SIZE ? size : XSEG_PAGE_SIZE);
	out[size - 1] = '\0';
	return result;
}

void rig_status_has(struct rig *g, const char *line)
{
	char text[XSEG_PAGE_SIZE];

	assert_true(rig_admin(g, "status", text, sizeof(text)) > 0);
	if (!strstr(text, line))
		print_message("%s is not in\n%s", line, text);
	assert_non_null(strstr(text, line));
}

bool rig_holds(struct rig *g, const char *object, uint64_t offset, uint32_t size, uint8_t byte)
{
	uint8_t *buf = malloc(size);
	uint32_t i = 0;

	assert_non_null(buf);
	assert_int_equal(rig_read(g, object, offset, buf, size), size);
	while (i < size && buf[i] == byte)
		i++;
	if (i < size)
		print_message("%s: byte %lu is %02x, not %02x\n", object, (unsigned long)offset + i,
			buf[i], byte);
	free(buf);
	return i == size;
}

int64_t rig_fill(struct rig *g, const char *object, uint64_t offset, uint32_t size, uint8_t byte,
	unsigned flags)
{
	uint8_t *buf = malloc(size);
	int64_t result;

	assert_non_null(buf);
	memset(buf, byte, size);
	result = rig_write(g, object, offset, buf, size, flags);
	free(buf);
	return result;
}

void rig_fill_many(struct rig *g, uint32_t nr)
{
	char name[16];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		assert_int_equal(rig_fill(g, name, 0, 4096, (uint8_t)(i + 1), 0), 4096);
	}
}

void rig_many_hold(struct rig *g, uint32_t nr)
{
	char name[16];
	uint32_t i;

	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "o%u", i);
		assert_true(rig_holds(g, name, 0, 4096, (uint8_t)(i + 1)));
	}
}
