/* client_rig - see client_rig.h. */
#include "tests/rig/client_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers/common/runtime/reactor.h"
#include "tests/rig/seg_free.h"

enum { MEMD, CACHED, VOLUMED, NR_PEERS };

static struct {
	struct peer *peer[NR_PEERS];
	struct reactor_set *set[NR_PEERS]; /* of each its own: they are stopped from the top down */
	struct segfree before;
} stack;

/* ---- peers ------------------------------------------------------------------------------- */

static void start(struct clientrig *g, int nr, const struct peer_class *cls, const char *downstream,
	uint32_t threads, const char *key, const char *value)
{
	struct peer *p = stack.peer[nr] = peer_create(cls);
	struct xseg_error err = { "" };
	unsigned failed;

	assert_non_null(p);
	snprintf(p->name, sizeof(p->name), "%s", cls->kind);
	snprintf(p->downstream_name, sizeof(p->downstream_name), "%s", downstream);
	p->threads = threads;
	assert_int_equal(opt_set(opt_find(cls->opts, key), p, value, &err), 0);
	stack.set[nr] = reactor_set_create(&stack.peer[nr], 1, "", &err);
	assert_non_null(stack.set[nr]);
	if (reactor_set_open(stack.set[nr], g->seg, &failed, &err))
		fail_msg("%s", err.text);
	assert_int_equal(reactor_set_start(stack.set[nr], &err), 0);
}

static void stop(int nr)
{
	if (!stack.set[nr])
		return;
	reactor_set_stop(stack.set[nr], 0);
	reactor_set_destroy(stack.set[nr]);
	peer_destroy(stack.peer[nr]);
	stack.set[nr] = NULL;
}

void clientrig_start_volumed(struct clientrig *g, uint32_t threads)
{
	start(g, VOLUMED, &volumed_class, "cached", threads, "object_size", "1M");
}

void clientrig_stop_volumed(struct clientrig *g)
{
	(void)g;
	stop(VOLUMED);
}

void clientrig_admin(struct clientrig *g, const char *peer, const char *line)
{
	struct xseg_peer_params params = {
		.name = "admin", .kind = "client", .nr_ports = 1, .nr_requests = 1
	};
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_peer *client;
	int64_t rc;

	assert_int_equal(xseg_peer_open(g->seg, &params, &client, NULL), 0);
	assert_int_equal(xseg_pages_take(client, 1, page), 0);
	rc = xseg_admin_call(xseg_peer_port(client, 0), xseg_peer_find(g->seg, peer), line, page, 1,
		CLIENTRIG_PATIENCE_NS);
	if (rc < 0)
		fail_msg("%s: %s", line, (char *)xseg_page(g->seg, page[0]));
	xseg_peer_close(client, XSEG_CLOSE_FREE_ARENA);
}

uint64_t clientrig_count(struct clientrig *g, const char *name, const char *key)
{
	static struct xseg_stats_view view;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < xseg_nr_stats(g->seg); i++) {
		if (!xseg_stats_view(g->seg, i, &view) || strcmp(view.name, name) != 0)
			continue;
		for (uint32_t k = 0; k < view.nr; k++)
			if (!strcmp(view.key[k], key))
				sum += view.value[k];
	}
	return sum;
}

uint64_t clientrig_count_reaches(
	struct clientrig *g, const char *name, const char *key, uint64_t value)
{
	for (unsigned i = 0; i < 60000 && clientrig_count(g, name, key) < value; i++)
		usleep(10000);
	return clientrig_count(g, name, key);
}

/* A port counts at the end of the round in which it answered, and takes a command that is sent
 * after that in a later one. Commands are not counted. */
uint64_t clientrig_count_all(struct clientrig *g, const char *peer, const char *key)
{
	clientrig_admin(g, peer, "ping");
	return clientrig_count(g, peer, key);
}

/* ---- the whole --------------------------------------------------------------------------- */

/* The stack with `threads` for volumed, the volume, a queue. */
static void clientrig_open(struct clientrig *g, uint32_t threads)
{
	struct xseg_config cfg = { .memory_bytes = 64 << 20,
		.nr_requests = 512,
		.nr_ports = 24,
		.huge = XSEG_HUGE_NEVER };
	struct xseg_error err = { "" };

	memset(g, 0, sizeof(*g));
	memset(&stack, 0, sizeof(stack));
	assert_int_equal(xseg_create_private(&cfg, &g->seg, &err), 0);
	start(g, MEMD, &memd_class, "", 1, "memory", "20M");
	start(g, CACHED, &cached_class, "memd", 1, "memory", "8M");
	clientrig_start_volumed(g, threads);
	clientrig_admin(g, "volumed", "volume create disk size=16M");
	stack.before = segfree_of(g->seg);
	clientrig_reopen(g, 0);
}

void clientrig_reopen(struct clientrig *g, uint64_t gone_ns)
{
	struct xseg_volume_params params = { .attached = g->seg,
		.volume = "disk",
		.gone_ns = gone_ns ? gone_ns : CLIENTRIG_PATIENCE_NS,
		.timeout_ns = CLIENTRIG_PATIENCE_NS };
	struct xseg_error err = { "" };

	xseg_queue_destroy(g->q);
	xseg_volume_close(g->v);
	g->q = NULL;		/* what fails here is torn down as it is */
	g->v = NULL;
	if (xseg_volume_open(&params, &g->v, &err))
		fail_msg("%s", err.text);
	if (xseg_queue_create(g->v,
		    &(struct xseg_queue_params){ .depth = 4, .copy_bytes = 64 << 10 }, &g->q, &err))
		fail_msg("%s", err.text);
}

/* The segment is sound, and all that a client had is free again. */
static void clientrig_close(struct clientrig *g)
{
	xseg_queue_destroy(g->q);
	xseg_volume_close(g->v);
	segfree_wait(g->seg, stack.before);
	for (int nr = NR_PEERS; nr-- > 0;)
		stop(nr);
	assert_int_equal(xseg_check(g->seg, false, NULL, NULL), 0);
	xseg_detach(g->seg);
}

int clientrig_setup(void **state)
{
	static struct clientrig g;

	clientrig_open(&g, 1);
	*state = &g;
	return 0;
}

int clientrig_teardown(void **state)
{
	clientrig_close(*state);
	return 0;
}

/* ---- I/O --------------------------------------------------------------------------------- */

int64_t clientrig_do(
	struct clientrig *g, enum xseg_op op, uint64_t offset, uint64_t size, void *buf)
{
	struct xseg_io io = { .op = op, .offset = offset, .size = size, .buf = buf };

	return xseg_queue_run(g->q, &io);
}

static uint8_t byte_at(uint64_t at, unsigned seed)
{
	return (uint8_t)((at / 512 * 2654435761u >> 7) + at + seed);
}

void clientrig_fill(uint8_t *buf, uint64_t offset, uint64_t size, unsigned seed)
{
	for (uint64_t i = 0; i < size; i++)
		buf[i] = byte_at(offset + i, seed);
}

void clientrig_expect_bytes(const uint8_t *buf, uint64_t offset, uint64_t size, unsigned seed)
{
	for (uint64_t i = 0; i < size; i++)
		if (buf[i] != byte_at(offset + i, seed))
			fail_msg("byte %llu of the volume is not what was written",
				(unsigned long long)(offset + i));
}

void clientrig_expect(struct clientrig *g, uint64_t offset, uint64_t size, unsigned seed)
{
	uint8_t *buf = malloc(size);

	assert_int_equal(clientrig_do(g, XSEG_OP_READ, offset, size, buf), size);
	clientrig_expect_bytes(buf, offset, size, seed);
	free(buf);
}

void clientrig_expect_zeroes(struct clientrig *g, uint64_t offset, uint64_t size)
{
	uint8_t *buf = malloc(size);

	memset(buf, 0xee, size);
	assert_int_equal(clientrig_do(g, XSEG_OP_READ, offset, size, buf), size);
	for (uint64_t i = 0; i < size; i++)
		assert_int_equal(buf[i], 0);
	free(buf);
}

int64_t clientrig_wait(struct xseg_queue *q, struct xseg_io *io)
{
	struct xseg_io *done = NULL;

	assert_int_equal(xseg_queue_wait(q, &done, 1, CLIENTRIG_PATIENCE_NS), 1);
	assert_ptr_equal(done, io);
	return io->result;
}
