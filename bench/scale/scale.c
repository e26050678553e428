/* scale - the cost of one hit in instructions and cache lines, with the tables of 1 to 16 reactors.
 *
 * Two cores cannot run sixteen reactors. But the cost of a request is in the end instructions and
 * lines of memory, and these can be counted. This program has a cache with a given number of ports,
 * over memd, and as many clients. All run in one thread on a private segment. Under valgrind
 * --tool=callgrind it has one port's round and one client's calls counted. Before each of them the
 * simulated caches are empty. So each touched line misses once, as if all of it had been on another
 * core. Without valgrind it does the same and nothing is counted.
 *
 * Each step is a read or a write hit of 4 KiB, by copy or by loan, `batch` of them from one client,
 * of objects
 *      own      of one port of the cache: a client and a reactor that are a pair
 *      spread   as they come: each reactor gets its share of the batch
 *
 * The parts of each step are counted apart:
 *      server   the rounds of the cache's ports that have requests, until these are answered
 *      client   submitting, publishing, and taking the replies
 *
 * Counts are dumped as "PART RW BATCH own|spread". JSON on standard output says how many I/Os
 * each has, and whether all of them were right.
 *
 * Nothing depends on time: the clock stands still, and the same seed does the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/program.h"
#include "peers/common/runtime/peer.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION ((void)0)
#define CALLGRIND_STOP_INSTRUMENTATION	((void)0)
#define CALLGRIND_ZERO_STATS		((void)0)
#define CALLGRIND_DUMP_STATS_AT(name)	((void)(name))
#endif

#define MAX_BATCH	8u
#define OBJECT_PAGES	16u			/* 64 KiB, so that there are many for each port */
#define ROUND_BUDGET	64u
/* more than after how many in vain a port forgets the lanes that had work */
#define IDLE_LOOKS	80u
#define STANDING_NS	UINT64_C(1000000000000)

struct options {
	uint32_t reactors, ios;
	uint64_t size, randseed;
	uint32_t data;
	bool help;
};

struct rig {
	const struct options *o;
	struct xseg *seg;
	struct peer *store, *cache;
	uint32_t cache_at;			/* in the segment */
	struct xseg_peer *clients;
	struct xreq **free;			/* MAX_BATCH for each client */
	uint32_t *page;				/* as many */
	uint64_t random, wrong;
};

enum part { SERVER, CLIENT, NEITHER };

struct step {
	enum part part;
	enum xseg_op op;
	uint32_t batch;
	bool spread;
};

enum data { DATA_COPY, DATA_LOAN };

static const char *const data_names[] = { [DATA_COPY] = "copy", [DATA_LOAN] = "loan", NULL };

#define AT(f) offsetof(struct options, f)
static const struct opt scale_opts[] = {
	{ .name = "reactors", .kind = OPT_UINT, .off = AT(reactors), .min = 1,
	  .max = PEER_MAX_THREADS, .def = "1", .arg = "N",
	  .help = "ports of the cache, and clients" },
	{ .name = "ios", .kind = OPT_UINT, .off = AT(ios), .min = MAX_BATCH, .max = 1000000,
	  .def = "48", .arg = "N", .help = "I/Os of each kind" },
	{ .name = "size", .kind = OPT_SIZE, .off = AT(size), .min = 1u << 20, .max = 1ull << 32,
	  .def = "32M", .arg = "SIZE", .help = "of the set" },
	{ .name = "data", .kind = OPT_ENUM, .off = AT(data), .names = data_names, .def = "copy",
	  .help = "how it moves" },
	BENCH_RANDSEED(AT(randseed)),
	BENCH_HELP(AT(help)),
	{ .name = NULL }
};
#undef AT

/* ---- the rig ----------------------------------------------------------------------------- */

static struct peer *open_peer(struct rig *g, const struct peer_class *cls,
	const char *const *options, struct xseg_error *err)
{
	struct peer *p = peer_create(cls);

	if (!p) {
		xseg_fail(err, -ENOMEM, "no memory");
		return NULL;
	}
	p->threads = g->o->reactors;
	if (cls->sends)
		snprintf(p->downstream_name, sizeof(p->downstream_name), "memd");
	for (; *options; options += 2)
		if (opt_set(opt_find(cls->opts, options[0]), p, options[1], err))
			return NULL;
	for (uint32_t i = 0; i < g->o->reactors; i++)
		p->ports[i].now_ns = STANDING_NS;
	return peer_open(p, g->seg, err) ? NULL : p;
}

static int open_clients(struct rig *g, struct xseg_error *err)
{
	uint32_t nr = g->o->reactors, total = nr * MAX_BATCH;
	struct xseg_peer_params params = {
		.name = "clients", .kind = "client", .nr_ports = nr, .nr_requests = MAX_BATCH
	};
	int rc;

	g->free = calloc(total, sizeof(struct xreq *));
	g->page = calloc(xseg_pages_round(total), sizeof(*g->page));
	if (!g->free || !g->page) {
		xseg_fail(err, -ENOMEM, "no memory");
		return -ENOMEM;
	}
	rc = xseg_peer_open(g->seg, &params, &g->clients, err);
	if (!rc && xseg_pages_take(g->clients, total, g->page))
		rc = xseg_fail(err, -ENOMEM, "no pages for the clients");
	for (uint32_t i = 0; i < total && !rc; i++) {
		g->free[i] = xseg_req_alloc(xseg_peer_port(g->clients, i / MAX_BATCH));
		if (!g->free[i])
			rc = xseg_fail(err, -ENOMEM, "no requests for the clients");
	}
	return rc;
}

static int open_rig(struct rig *g, struct xseg_error *err)
{
	struct xseg_config cfg = { .memory_bytes = 2 * g->o->size + (96u << 20),
		.nr_requests = 2048,
		.nr_ports = 128,
		.huge = XSEG_HUGE_NEVER };
	char memory[24], objects[24];
	const char *const store_options[] = { "memory", "4M", NULL };
	const char *const cache_options[] = { "memory", memory, "objects", objects, "requests",
		"16", "dirty_high", "100", "dirty_low", "99", "dirty_age", "1h", NULL };
	int rc = xseg_create_private(&cfg, &g->seg, err);

	if (rc)
		return rc;
	snprintf(memory, sizeof(memory), "%" PRIu64, g->o->size + g->o->size / 4 + (8u << 20));
	snprintf(objects, sizeof(objects), "%" PRIu64,
		g->o->size / XSEG_PAGE_SIZE / OBJECT_PAGES * 2);
	g->store = open_peer(g, &memd_class, store_options, err);
	if (!g->store || !peer_try_serve(g->store))
		return -EIO;
	g->cache = open_peer(g, &cached_class, cache_options, err);
	if (!g->cache || !peer_try_serve(g->cache))
		return -EIO;
	g->cache_at = xseg_peer_find(g->seg, g->cache->name);
	return open_clients(g, err);
}

/* ---- requests ---------------------------------------------------------------------------- */

static uint64_t next_random(struct rig *g, uint64_t below)
{
	uint64_t x = g->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint64_t)((unsigned __int128)(x ^ x >> 31) * below >> 64);
}

/* Makes request i of a client one for that page of the set, whose number is the first word of its
 * data. */
static struct xreq *prepare(
	struct rig *g, uint32_t client, uint32_t i, enum xseg_op op, uint64_t page)
{
	struct xreq *r = g->free[client * MAX_BATCH + i];
	uint32_t own = g->page[client * MAX_BATCH + i];
	char name[XSEG_TARGET_MAX];
	int len = snprintf(name, sizeof(name), "xbench:%016" PRIx64, page / OBJECT_PAGES);

	r->op = (uint8_t)op;
	r->flags = g->o->data == DATA_COPY ? 0 : op == XSEG_OP_READ ? XSEG_REQ_LOAN : XSEG_REQ_GIVE;
	r->size = XSEG_PAGE_SIZE;
	r->offset = r->obj_offset = page % OBJECT_PAGES * XSEG_PAGE_SIZE;
	r->nr_pages = 1;
	r->page[0] = own;
	r->cookie = (void *)(uintptr_t)page;
	xseg_req_set_target(r, name, (size_t)len);
	if (op == XSEG_OP_WRITE)
		*(uint64_t *)xseg_req_gift_page(g->seg, r, 0) = page;
	else
		*(uint64_t *)xseg_page(g->seg, own) = UINT64_MAX;
	return r;
}

/* The port of a peer with so many that xseg_req_submit() chooses. */
static uint32_t port_of(const struct rig *g, const struct xreq *r)
{
	return (uint32_t)(r->hash >> 32) % g->o->reactors;
}

/* Requests of `batch` pages; those of one port of the cache, unless they are spread. */
static void prepare_batch(struct rig *g, const struct step *s, uint32_t client, struct xreq **r)
{
	uint64_t nr_pages = g->o->size / XSEG_PAGE_SIZE;
	uint32_t i = 0;

	while (i < s->batch) {
		r[i] = prepare(g, client, i, s->op, next_random(g, nr_pages));
		if (s->spread || port_of(g, r[i]) == client)
			i++;
	}
}

static void submit(struct rig *g, struct xport *port, struct xreq **r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (xseg_req_submit(port, r[i], g->cache_at))
			g->wrong++;
	xseg_port_flush(port);
}

static void check(struct rig *g, struct xport *port, struct xreq *r)
{
	g->wrong += r->result != XSEG_PAGE_SIZE;
	if (r->op == XSEG_OP_WRITE)
		return;
	g->wrong += *(const uint64_t *)xseg_req_page(g->seg, r, 0) !=
		    (uint64_t)(uintptr_t)r->cookie;
	xseg_req_drop_loans(port, r);
}

static void round_of(struct peer *p, uint32_t port)
{
	uint64_t next;

	peer_port_round(&p->ports[port], STANDING_NS, ROUND_BUDGET, &next);
}

/* Rounds of all until a client has its n replies, which are checked. */
static void settle(struct rig *g, struct xport *port, uint32_t n)
{
	struct xreq *reply;

	for (uint32_t rounds = 0; n && rounds < 1000; rounds++) {
		for (uint32_t i = 0; i < g->o->reactors; i++) {
			round_of(g->cache, i);
			round_of(g->store, i);
		}
		for (; n && xseg_port_replies(port, &reply, 1); n--)
			check(g, port, reply);
	}
	g->wrong += n;
}

/* ---- what is counted --------------------------------------------------------------------- */

static uint64_t nr_answered(const struct rig *g, uint32_t port)
{
	return xseg_stats_get(g->cache->ports[port].stats, PEER_STAT_OPS);
}

/* Rounds of each port until it has answered what came to it: two where it keeps some of a batch for
 * the next. */
static void serve(struct rig *g, const struct step *s, struct xreq **r)
{
	uint64_t end[PEER_MAX_THREADS];

	for (uint32_t i = 0; i < g->o->reactors; i++)
		end[i] = nr_answered(g, i);
	for (uint32_t i = 0; i < s->batch; i++)
		end[port_of(g, r[i])]++;
	for (uint32_t i = 0; i < g->o->reactors; i++)
		for (uint32_t rounds = 0; rounds < 2 && nr_answered(g, i) < end[i]; rounds++) {
			if (s->part == SERVER)
				CALLGRIND_START_INSTRUMENTATION;
			round_of(g->cache, i);
			if (s->part == SERVER)
				CALLGRIND_STOP_INSTRUMENTATION;
		}
}

static uint32_t take_replies(struct xport *port, const struct step *s, struct xreq **reply)
{
	uint32_t n;

	if (s->part == CLIENT)
		CALLGRIND_START_INSTRUMENTATION;
	n = xseg_port_replies(port, reply, s->batch);
	if (s->part == CLIENT)
		CALLGRIND_STOP_INSTRUMENTATION;
	return n;
}

static void one_batch(struct rig *g, const struct step *s, uint32_t client)
{
	struct xport *port = xseg_peer_port(g->clients, client);
	struct xreq *r[MAX_BATCH], *reply[MAX_BATCH];
	uint32_t n;

	prepare_batch(g, s, client, r);
	if (s->part == CLIENT)
		CALLGRIND_START_INSTRUMENTATION;
	submit(g, port, r, s->batch);
	if (s->part == CLIENT)
		CALLGRIND_STOP_INSTRUMENTATION;
	serve(g, s, r);
	n = take_replies(port, s, reply);
	for (uint32_t i = 0; i < n; i++)
		check(g, port, reply[i]);
	settle(g, port, s->batch - n);
}

/* What was before does not matter any more: a pair's ports know only each other's lanes. */
static void stand_idle(struct rig *g)
{
	struct xreq *reply;

	for (uint32_t looks = 0; looks < IDLE_LOOKS; looks++)
		for (uint32_t i = 0; i < g->o->reactors; i++) {
			round_of(g->cache, i);
			g->wrong += xseg_port_replies(xseg_peer_port(g->clients, i), &reply, 1);
		}
}

static void run_step(struct rig *g, const struct step *s, bool first)
{
	const struct step before = { NEITHER, s->op, s->batch, s->spread };
	uint32_t n = g->o->ios / s->batch;
	char name[64];

	for (uint32_t i = 0; i < g->o->reactors; i++)
		one_batch(g, &before, i);
	stand_idle(g);
	for (uint32_t i = 0; i < n; i++)
		one_batch(g, s, i % g->o->reactors);
	snprintf(name, sizeof(name), "%s %s %u %s", s->part == SERVER ? "server" : "client",
		 s->op == XSEG_OP_READ ? "read" : "write", s->batch, s->spread ? "spread" : "own");
	CALLGRIND_DUMP_STATS_AT(name);
	CALLGRIND_ZERO_STATS;
	printf("%s\n    {\"name\": \"%s\", \"ios\": %u}", first ? "" : ",", name, n * s->batch);
}

/* Every page is written, those of an object by all clients in turn: so every client has a lane to
 * every port. */
static void fill(struct rig *g)
{
	for (uint64_t page = 0; page < g->o->size / XSEG_PAGE_SIZE; page++) {
		uint32_t client = (uint32_t)(page % g->o->reactors);
		struct xport *port = xseg_peer_port(g->clients, client);
		struct xreq *r = prepare(g, client, 0, XSEG_OP_WRITE, page);

		submit(g, port, &r, 1);
		settle(g, port, 1);
	}
}

static void run_all(struct rig *g)
{
	static const enum xseg_op ops[] = { XSEG_OP_READ, XSEG_OP_WRITE };
	bool first = true;

	g->random = g->o->randseed;
	fill(g);
	printf("{\n  \"reactors\": %u,\n  \"steps\": [", g->o->reactors);
	for (uint32_t part = SERVER; part <= CLIENT; part++)
		for (uint32_t op = 0; op < 2; op++)
			for (uint32_t form = 0; form < 3; form++) {
				struct step s = { (enum part)part, ops[op], form ? MAX_BATCH : 1,
					form == 2 };

				run_step(g, &s, first);
				first = false;
			}
	printf("\n  ],\n  \"jobs\": [{\"error\": %d, \"total_err\": %" PRIu64 "}]\n}\n",
		g->wrong ? EIO : 0, g->wrong);
}

static int run(void *options, struct xseg_error *err)
{
	static struct rig g;
	int rc;

	g.o = options;
	rc = open_rig(&g, err);
	if (rc)
		return rc;
	run_all(&g);
	return !g.wrong ? 0 : xseg_fail(err, -EIO, "%" PRIu64 " I/Os were wrong", g.wrong);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = { .name = "bench-scale",
		.usage = "bench-scale [OPTION...]\n"
			 "Hits in one thread, to be counted by valgrind --tool=callgrind.",
		.options = scale_opts, .run = run };
	static struct options o;

	return bench_main(&program, &o, argc, argv);
}
