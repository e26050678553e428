/* segment - the bytes of a segment's file, damaged or made up. A process attaches, checks, mends,
 * looks, sweeps, opens a name as a client, takes over a server's. It gets a clear error, or
 * something within the segment.
 *
 * The file is one with a client, two servers that died with requests in every state, a stopped one,
 * arenas, pages, routes, statistics. An input is a list of pieces to write into it: one byte says
 * which table, then come place, length and content.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "xseg/internal.h"

static struct {
	char name[32];
	struct xs_geometry geo;
	uint8_t *file, *was;		/* all but the pages; as it was before anybody damaged it */
} f;

/* ---- the file ---- */

static void file_remove(void)
{
	if (xseg_destroy(f.name))
		fprintf(stderr, "%s is left over\n", f.name);
}

static struct xseg_peer *open_peer(
	struct xseg *seg, const char *name, const char *kind, uint32_t nr_ports)
{
	struct xseg_peer_params params = {
		.name = name, .kind = kind, .nr_ports = nr_ports, .nr_requests = 16
	};
	struct xseg_error err = { "" };
	struct xseg_peer *peer;

	if (xseg_peer_open(seg, &params, &peer, &err)) {
		assert(err.text[0]);
		return NULL;
	}
	return peer;
}

static const char *const keys[] = { "one", "two", "three" };

/* A server with an arena, pages, statistics and a route. */
static struct xseg_peer *server(
	struct xseg *seg, const char *name, const char *kind, uint32_t nr_ports, uint32_t below)
{
	struct xseg_peer *peer = open_peer(seg, name, kind, nr_ports);
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_stats *stats;
	struct xseg_error err;
	uint64_t bytes = XSEG_EXTENT_SIZE;
	void *base;
	bool fresh;

	assert(peer);
	if (xseg_arena_open(peer, &bytes, &base, &fresh, &err) || xseg_pages_take(peer, 1, page) ||
		xseg_stats_open(peer, name, kind, keys, 3, &stats) ||
		xseg_route_set(seg, xseg_peer_index(peer), below))
		abort();
	xseg_peer_serve(peer);
	return peer;
}

static void send_some(struct xport *from, uint32_t to, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct xreq *r = xseg_req_alloc(from);

		r->op = XSEG_OP_WRITE;
		r->size = XSEG_PAGE_SIZE;
		r->nr_pages = 1;
		xseg_req_set_target(r, "object", 6);
		if (xseg_req_submit(from, r, to))
			abort();
	}
	xseg_port_flush(from);
}

/* Requests at the server, in every state. */
static void hold_some(struct xport *at)
{
	struct xreq *r;

	for (unsigned i = 0; xseg_port_receive(at, &r, 1); i++) {
		if (i % 4 > 0)
			xseg_req_start(at, r);
		if (i % 4 > 1)
			xseg_req_apply(at, r);
		if (i % 4 > 2)
			xseg_req_answer(at, r, 4096);
	}
	xseg_port_flush(at);
}

static void people(struct xseg *seg)
{
	struct xseg_peer *memd = server(seg, "memd", "memd", 1, XSEG_NONE);
	struct xseg_peer *cached = server(seg, "cached", "cached", 2, xseg_peer_index(memd));
	struct xseg_peer *filed = server(seg, "filed", "filed", 1, XSEG_NONE);
	struct xseg_peer *client = open_peer(seg, "client", "client", 1);

	send_some(xseg_peer_port(client, 0), xseg_peer_index(cached), 8);
	send_some(xseg_peer_port(cached, 0), xseg_peer_index(memd), 8);
	hold_some(xseg_peer_port(cached, 0));
	hold_some(xseg_peer_port(memd, 0));
	send_some(xseg_peer_port(client, 0), xseg_peer_index(memd), 3);
	if (xseg_stack_set(seg, "[segment]\n", 10))
		abort();
	xseg_peer_close(filed, XSEG_CLOSE_KEEP_ARENA);
	xseg_peer_close(memd, XSEG_CLOSE_ABANDON);
	xseg_peer_close(cached, XSEG_CLOSE_ABANDON);
	xseg_peer_close(client, XSEG_CLOSE_ABANDON);
}

static void file_make(void)
{
	struct xseg_config cfg = { .memory_bytes = 16u << 20,
		.nr_requests = 96,
		.nr_ports = 8,
		.huge = XSEG_HUGE_NEVER,
		.group = -1 };
	struct xseg_error err = { "" };
	struct xseg *seg;
	char path[64];
	int fd;

	snprintf(f.name, sizeof(f.name), "fuzz-%d", (int)getpid());
	if (xseg_create(f.name, &cfg, &err) || xseg_attach(f.name, 0, &seg, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	atexit(file_remove);
	people(seg);
	f.geo = seg->geo;
	xseg_detach(seg);
	snprintf(path, sizeof(path), "/dev/shm/xseg.%s", f.name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	f.file = mmap(NULL, f.geo.off_pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	f.was = malloc(f.geo.off_pages);
	assert(fd >= 0 && f.file != MAP_FAILED && f.was);
	close(fd);
	memcpy(f.was, f.file, f.geo.off_pages);
}

static void piece(struct input *in)
{
	const struct xs_geometry *g = &f.geo;
	const struct {
		uint64_t from, to;
	} part[] = {
		{ 0, sizeof(struct xs_super) }, { g->off_members, g->off_peers },
		  { g->off_peers, g->off_ports },
		{ g->off_peers, g->off_peers + 4 * sizeof(struct xs_peer) },
		  { g->off_ports, g->off_bells },
		{ g->off_bells, g->off_lanes }, { g->off_lanes, g->off_rings },
		  { g->off_rings, g->off_requests },
		{ g->off_requests, g->off_extents }, { g->off_extents, g->off_owners },
		  { g->off_stats, g->off_stack },
	};
	uint32_t n = in_below(in, sizeof(part) / sizeof(part[0]));
	uint64_t at = part[n].from + in_number(in, 3) % (part[n].to - part[n].from),
		 room = part[n].to - at, v;
	unsigned how = in_u8(in);

	if (how < 128) {
		at = at / 4 * 4;
		v = in_wild(in);
		memcpy(f.file + at, &v, how % 8 + 1 < room ? how % 8 + 1 : room);
	} else if (how < 192) {
		memset(f.file + at, how & 1 ? 0xff : 0, how * 4u < room ? how * 4u : room);
	} else {
		in_copy(in, f.file + at, how - 192u < room ? how - 192u : room);
	}
}

/* ---- those who look at it ---- */

static void hear(const char *problem, void *arg)
{
	assert(problem[0] && strlen(problem) < 256);
	(void)arg;
}

static void look_at_all(struct xseg *seg)
{
	struct xseg_info info;

	xseg_get_info(seg, &info);
	assert(info.free_requests <= info.nr_requests && info.free_extents <= info.nr_extents);
	assert((unsigned)info.huge <= XSEG_HUGE_REQUIRE);
}

static void look(struct xseg *seg)
{
	struct xseg_stats_view *view = malloc(sizeof(*view));
	struct xseg_peer_info peer;
	char text[256];

	assert(view);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_get_info(seg, i, &peer))
			assert(memchr(peer.name, 0, sizeof(peer.name)) &&
				memchr(peer.kind, 0, sizeof(peer.kind)) &&
				peer.state <= XSEG_PEER_DEAD && peer.nr_ports <= XSEG_PEER_PORTS);
	for (uint32_t i = 0; i < xseg_nr_stats(seg); i++)
		if (xseg_stats_view(seg, i, view))
			assert(view->nr <= XSEG_STATS_MAX &&
				xhist_percentile(&view->lat, 99) <= view->lat.max);
	assert(xseg_stack_get(seg, text, sizeof(text)) < sizeof(text));
	free(view);
}

static void hand_over(struct xport *port, struct xreq *r, void *arg)
{
	unsigned *nr = arg;

	assert(r->op < XSEG_NR_OPS && r->nr_pages <= XSEG_REQ_PAGES &&
		strlen(r->target) < XSEG_TARGET_MAX);
	if ((*nr)++ % 2)
		xseg_req_answer(port, r, -EIO);
	else if (r->state == XSEG_REQ_AT && xseg_req_forward(port, r, 0))
		xseg_req_answer(port, r, -ENOTCONN);
}

static void take_all(struct xseg_peer *peer)
{
	struct xreq *r[8];

	for (uint32_t i = 0; i < xseg_peer_nr_ports(peer); i++) {
		struct xport *port = xseg_peer_port(peer, i);

		for (uint32_t n, k = 0; k < 100 && (n = xseg_port_receive(port, r, 8)); k++)
			while (n-- > 0)
				xseg_req_answer(port, r[n], 0);
		for (uint32_t n, k = 0; k < 100 && (n = xseg_port_replies(port, r, 8)); k++)
			while (n-- > 0)
				xseg_req_free(port, r[n]);
		xseg_port_has_work(port);
		xseg_port_flush(port);
	}
}

static void succeed(struct xseg *seg, const char *name, const char *kind, uint32_t nr_ports)
{
	struct xseg_peer *peer = open_peer(seg, name, kind, nr_ports);
	struct xseg_error err = { "" };
	uint64_t bytes = XSEG_EXTENT_SIZE;
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xseg_stats *stats;
	unsigned nr = 0;
	void *base;
	bool fresh;

	if (!peer)
		return;
	xseg_peer_orphans(peer);
	if (xseg_arena_open(peer, &bytes, &base, &fresh, &err) == 0)
		((volatile uint8_t *)base)[bytes - 1] = 1;
	else
		assert(err.text[0]);
	if (xseg_stats_open(peer, name, kind, keys, 3, &stats) == 0)
		xseg_stats_add(stats, 2, 1);
	if (xseg_pages_owned(peer, page, XSEG_EXTENT_PAGES))
		memset(xseg_page(seg, page[0]), 1, XSEG_PAGE_SIZE);
	xseg_peer_recover(peer, hand_over, &nr);
	xseg_peer_serve(peer);
	take_all(peer);
	xseg_peer_close(peer, nr % 2 ? XSEG_CLOSE_FREE_ARENA : XSEG_CLOSE_KEEP_ARENA);
}

static void come_and_go(struct xseg *seg)
{
	struct xseg_peer *client = open_peer(seg, "another", "client", 1);
	uint32_t page[XSEG_EXTENT_PAGES];
	struct xreq *r;

	if (!client)
		return;
	if (xseg_pages_take(client, 1, page) == 0 &&
		(r = xseg_req_alloc(xseg_peer_port(client, 0)))) {
		r->op = XSEG_OP_READ;
		r->size = XSEG_PAGE_SIZE;
		r->nr_pages = 1;
		r->page[0] = page[0];
		if (xseg_req_submit(xseg_peer_port(client, 0), r, xseg_peer_find(seg, "cached")))
			xseg_req_free(xseg_peer_port(client, 0), r);
	}
	take_all(client);
	xseg_peer_close(client, XSEG_CLOSE_KEEP_ARENA);
}

static void use(struct xseg *seg)
{
	xseg_check(seg, false, hear, NULL);
	look(seg);
	xseg_sweep(seg);
	come_and_go(seg);
	succeed(seg, "memd", "memd", 1);
	succeed(seg, "cached", "cached", 3);
	succeed(seg, "filed", "filed", 1);
	for (uint32_t i = 0; i < xseg_nr_peers(seg); i++)
		if (xseg_peer_forget(seg, i) == 0)
			xseg_sweep(seg);
	xseg_check(seg, true, hear, NULL);
	look(seg);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct xseg_error err = { "" };
	struct xseg *seg;

	if (!f.file)
		file_make();
	memcpy(f.file, f.was, f.geo.off_pages);
	while (in.left)
		piece(&in);
	if (xseg_attach(f.name, XSEG_ATTACH_OBSERVER, &seg, &err) == 0) {
		look_at_all(seg);
		look(seg);
		xseg_detach(seg);
	}
	err.text[0] = '\0';
	if (xseg_attach(f.name, 0, &seg, &err)) {
		assert(err.text[0]);
		return;
	}
	use(seg);
	xseg_detach(seg);
}
