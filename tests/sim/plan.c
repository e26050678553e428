/* plan - what a seed chooses before anything runs: geometry, options, how it will be disturbed.
 *
 * Contract: reads and writes nothing but s->plan, the nodes' options and the random numbers.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/sim/sim.h"

static void option(struct sim *s, enum node_id id, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void option(struct sim *s, enum node_id id, const char *fmt, ...)
{
	struct node *n = &s->node[id];
	va_list ap;

	assert(n->nr_options < sizeof(n->option) / sizeof(n->option[0]));
	va_start(ap, fmt);
	vsnprintf(n->option[n->nr_options++], sizeof(n->option[0]), fmt, ap);
	va_end(ap);
}

/* Which peers there are, and how many ports each has. */
static void choose_nodes(struct sim *s, uint32_t threads)
{
	struct plan *p = &s->plan;
	uint32_t dice = rng_below(&s->rng, 100), i;

	p->node[NODE_MEMD] = true;
	p->node[NODE_CACHED] = dice < 92;
	p->node[NODE_VOLUMED] = dice >= 40;
	for (i = 0; i < NR_NODES; i++)
		p->threads[i] = threads ? threads : rng_percent(&s->rng, 60) ? 1 : 2;
}

static void choose_cache(struct sim *s)
{
	static const char *const others[] = { "write-through", "write-around", "pass-through" };
	struct plan *p = &s->plan;
	bool tiny = rng_percent(&s->rng, 65);
	uint32_t high = rng_range(&s->rng, 1, p->slow ? 30 : 100);

	p->cache_pages = tiny ? rng_range(&s->rng, 40, 160) : 0;
	p->max_io = tiny ? 16u << 10 : rng_one_in(&s->rng, 8) ? 1u << 20 : 256u << 10;
	option(s, NODE_CACHED, "memory=4M");
	option(s, NODE_CACHED, "objects=%u", rng_one_in(&s->rng, 4) ? 64 : rng_range(&s->rng, 2, 24));
	option(s, NODE_CACHED, "requests=%u", rng_one_in(&s->rng, 3) ? 8 : 16u << rng_below(&s->rng, 3));
	option(s, NODE_CACHED, "policy=%s", rng_percent(&s->rng, p->slow ? 90 : 60) ? "write-back" : others[rng_below(&s->rng, 3)]);
	option(s, NODE_CACHED, "dirty_high=%u", high);
	option(s, NODE_CACHED, "dirty_low=%u", rng_below(&s->rng, high + 1));
	option(s, NODE_CACHED, "dirty_age=%uus", 1u << rng_range(&s->rng, p->slow ? 16 : 4, 23));
	option(s, NODE_CACHED, "read_ahead=%uk", rng_one_in(&s->rng, 3) ? 0 : 16u << rng_below(&s->rng, 5));
	option(s, NODE_CACHED, "seq_cutoff=%uk", rng_one_in(&s->rng, 3) ? 0 : 16u << rng_below(&s->rng, 6));
	if (rng_one_in(&s->rng, 6))
		option(s, NODE_CACHED, "flush_rate=%uM", rng_range(&s->rng, 1, 64));
}

/* Most runs with shares have nothing flushed before somebody needs a page: else few ever wait for one. */
static void choose_shares(struct sim *s)
{
	if (!s->plan.shares || rng_one_in(&s->rng, 3))
		return;
	s->plan.wide = true;
	s->plan.cache_pages = rng_range(&s->rng, 40, 100);
	s->plan.max_io = 16u << 10;
	option(s, NODE_CACHED, "policy=write-back");
	option(s, NODE_CACHED, "dirty_high=100");
	option(s, NODE_CACHED, "dirty_low=100");
	option(s, NODE_CACHED, "dirty_age=%us", rng_range(&s->rng, 1, 100));
}

static void choose_volumes(struct sim *s)
{
	struct plan *p = &s->plan;
	uint32_t bytes;

	p->nr_volumes = rng_range(&s->rng, p->shares ? 2 : 1, MAX_VOLUMES);
	p->object_size = rng_one_in(&s->rng, 3) ? 4u << 20 : 4096ull << rng_below(&s->rng, 9);
	for (uint32_t v = 0; v < p->nr_volumes; v++) {
		bytes = rng_one_in(&s->rng, 4) ? 1u << 20 : rng_range(&s->rng, 16, 96) * 4096;
		p->sectors[v] = bytes / ORACLE_SECTOR - (rng_one_in(&s->rng, 4) ? rng_below(&s->rng, 8) : 0);
	}
	option(s, NODE_VOLUMED, "object_size=%uk", (unsigned)(p->object_size >> 10));
	option(s, NODE_VOLUMED, "requests=%u", rng_one_in(&s->rng, 3) ? rng_range(&s->rng, 1, 4) : 32);
}

static void choose_store(struct sim *s)
{
	option(s, NODE_MEMD, "memory=5M");
	option(s, NODE_MEMD, "seed=%u", rng_below(&s->rng, 1u << 30) + 1);
	if (rng_percent(&s->rng, 75))
		option(s, NODE_MEMD, "latency=%uus", 1u << rng_below(&s->rng, 12));
	if (rng_percent(&s->rng, 60))
		option(s, NODE_MEMD, "jitter=%uus", 1u << rng_below(&s->rng, 14));
	if (s->plan.slow)
		option(s, NODE_MEMD, "iops=%u", 50u << rng_below(&s->rng, 6));
	if (s->plan.track)
		option(s, NODE_MEMD, "track_flush=yes");
}

void plan_make(struct sim *s, uint32_t ops, uint32_t threads)
{
	struct plan *p = &s->plan;

	choose_nodes(s, threads);
	p->ops = ops;
	p->nr_clients = rng_range(&s->rng, 1, 3);
	p->kills = rng_percent(&s->rng, 45) ? rng_range(&s->rng, 1, rng_one_in(&s->rng, 5) ? 40 : 6) : 0;
	p->losses = rng_percent(&s->rng, 25) ? rng_range(&s->rng, 1, 3) : 0;
	p->track = p->losses || rng_percent(&s->rng, 70);
	p->changes = rng_percent(&s->rng, 50) ? rng_range(&s->rng, 1, 8) : 0;
	p->resizes = p->node[NODE_CACHED] && rng_percent(&s->rng, 40) ? rng_range(&s->rng, 1, 12) : 0;
	p->shares = p->node[NODE_CACHED] && rng_percent(&s->rng, 40) ? rng_range(&s->rng, 1, 12) : 0;
	p->faults = rng_percent(&s->rng, 30);
	p->slow = p->wide = rng_one_in(&s->rng, 4);
	p->deletes = !p->node[NODE_VOLUMED] && rng_one_in(&s->rng, 3);
	choose_cache(s);
	choose_shares(s);
	choose_volumes(s);
	choose_store(s);
	p->depth = p->max_io > 256u << 10 ? 2 : p->max_io > 16u << 10 ? 4 : rng_range(&s->rng, 2, MAX_DEPTH);
}
