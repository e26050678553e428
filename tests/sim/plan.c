/* plan - the choices that a seed makes before anything runs: geometry, and the options of the
 * peers.
 *
 * Contract: reads and writes nothing but s->plan, the script's options and the random numbers. The
 * choices may be given other values afterwards (plan_apply): the run does everything by the plan as
 * it is then.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/life/cached.h"
#include "tests/sim/sim.h"

#define VALUES_PERCENT 8
#define CUTS_PERCENT 20	/* of the runs, beside those of the theme */
#define LIMITS_PERCENT 12

#define AT(field) offsetof(struct plan, field)
const struct knob knobs[] = {
	{ "volumed", AT(node[NODE_VOLUMED]), 0 },
	{ "cached", AT(node[NODE_CACHED]), 0 },
	{ "cached-low", AT(node[NODE_CACHED_LOW]), 0 },
	{ "clients", AT(nr_clients), 1 },
	{ "depth", AT(depth), 1 },
	{ "volumes", AT(nr_volumes), 1 },
	{ "beside", AT(node[NODE_BESIDE]), 0 },
	{ "volumed-ports", AT(threads[NODE_VOLUMED]), 1 },
	{ "cached-ports", AT(threads[NODE_CACHED]), 1 },
	{ "cached-low-ports", AT(threads[NODE_CACHED_LOW]), 1 },
	{ "cached-off", AT(off), 0 },
	{ "kvd", AT(node[NODE_KVD]), 0 },
	{ "evicts", AT(evicts), 0 },
	{ "preload", AT(preload), 0 },
	{ "large", AT(large), 0 },
	{ "bad", AT(bad), 0 },
	{ "beside-ports", AT(threads[NODE_BESIDE]), 1 },
	{ "memd-ports", AT(threads[NODE_MEMD]), 1 },
	{ "loans", AT(loans), 0 },
	{ "gifts", AT(gifts), 0 },
	{ "direct", AT(direct), 0 },
	{ "near", AT(near), 0 },
	{ "jumps", AT(jumps), 0 },
	{ "cuts", AT(cuts), 0 },
	{ "limits", AT(limits), 0 },
	{ .name = NULL },
};
#undef AT

uint32_t *knob_of(struct plan *p, const struct knob *k)
{
	return (uint32_t *)((char *)p + k->off);
}

static bool apply_one(struct plan *p, const char *text, size_t len)
{
	const char *is = memchr(text, '=', len);
	unsigned long n = is ? strtoul(is + 1, NULL, 10) : 0;

	for (const struct knob *k = knobs; is && k->name; k++)
		if (strlen(k->name) == (size_t)(is - text) &&
			strncmp(text, k->name, strlen(k->name)) == 0 && n >= k->least &&
			n <= *knob_of(p, k)) {
			*knob_of(p, k) = (uint32_t)n;
			return true;
		}
	return false;
}

bool plan_apply(struct plan *p, const char *with)
{
	size_t len;

	for (; *with; with += len + (with[len] == ',')) {
		len = strcspn(with, ",");
		if (!apply_one(p, with, len))
			return false;
	}
	return true;
}

/* ---- choosing ---- */

void plan_option(struct sim *s, enum node_id id, const char *fmt, ...)
{
	struct item *it = script_add(s, ACT_OPTION);
	va_list ap;

	it->node = (uint8_t)id;
	va_start(ap, fmt);
	vsnprintf(it->text, sizeof(it->text), fmt, ap);
	va_end(ap);
}

/* Which peers there are, and how many ports each has. */
static void choose_nodes(struct sim *s, uint32_t threads)
{
	struct plan *p = &s->plan;
	uint32_t dice = rng_below(&s->rng, 100), i;
	bool several;

	p->node[NODE_MEMD] = true;
	p->node[NODE_CACHED] = dice < 92;
	p->node[NODE_CACHED_LOW] = p->node[NODE_CACHED] && rng_one_in(&s->rng, 4);
	p->node[NODE_VOLUMED] = dice >= 40;
	for (i = 0; i < NR_STACKED; i++)
		p->node[i] = (p->node[i] || p->about.with & 1u << i) &&
			     !(p->about.without & 1u << i);
	p->off = p->node[NODE_CACHED] && p->node[NODE_VOLUMED] && rng_one_in(&s->rng, 10);
	several = p->about.ports && rng_percent(&s->rng, p->about.ports);
	for (i = 0; i < NR_STACKED; i++)
		p->threads[i] = threads                    ? threads
				: several                  ? rng_range(&s->rng, 2, MAX_PORTS)
				: rng_percent(&s->rng, 55) ? 1
				: rng_percent(&s->rng, 70) ? 2
							   : rng_range(&s->rng, 3, MAX_PORTS);
}

static void choose_cache(struct sim *s, enum node_id id)
{
	static const char *const others[] = { "write-through", "write-around", "pass-through" };
	struct plan *p = &s->plan;
	uint32_t high = rng_range(&s->rng, 1, p->slow ? 30 : 100);

	plan_option(s, id, "memory=4M");
	plan_option(s, id, "objects=%u", rng_one_in(&s->rng, 4) ? 64 : rng_range(&s->rng, 2, 24));
	plan_option(s, id, "requests=%u",
		rng_one_in(&s->rng, 3) ? 8 : 16u << rng_below(&s->rng, id == NODE_CACHED ? 3 : 2));
	plan_option(s, id, "policy=%s",
		rng_percent(&s->rng, p->slow ? 90 : 60) ? "write-back"
							: others[rng_below(&s->rng, 3)]);
	plan_option(s, id, "dirty_high=%u", high);
	plan_option(s, id, "dirty_low=%u", rng_below(&s->rng, high + 1));
	plan_option(s, id, "dirty_age=%uus", 1u << rng_range(&s->rng, p->slow ? 16 : 4, 23));
	plan_option(
		s, id, "read_ahead=%uk", rng_one_in(&s->rng, 3) ? 0 : 16u << rng_below(&s->rng, 5));
	plan_option(
		s, id, "seq_cutoff=%uk", rng_one_in(&s->rng, 3) ? 0 : 16u << rng_below(&s->rng, 6));
	if (rng_one_in(&s->rng, 6))
		plan_option(s, id, "flush_rate=%uM", rng_range(&s->rng, 1, 64));
}

static void choose_caches(struct sim *s)
{
	struct plan *p = &s->plan;
	bool tiny = rng_percent(&s->rng, 65);

	/* some are as small as a cache can be whose ports have magazines of pages: these are full
	 * at times, too */
	p->magazines = p->threads[NODE_CACHED] <= 2 && rng_one_in(&s->rng, 4);
	p->cache_pages = !tiny ? 0 : !p->magazines ? rng_range(&s->rng, 40, 160) :
			 8 * MAGAZINE * p->threads[NODE_CACHED] + rng_range(&s->rng, 30, 100);
	p->magazines &= tiny;
	p->max_io = tiny ? 16u << 10 : rng_one_in(&s->rng, 8) ? 1u << 20 : 256u << 10;
	p->resizable = p->node[NODE_CACHED] && rng_percent(&s->rng, 40);
	choose_cache(s, NODE_CACHED);
	if (p->node[NODE_CACHED_LOW])
		choose_cache(s, NODE_CACHED_LOW);
}

/* Most runs with shares have nothing flushed before somebody needs a page: else few ever wait for
 * one. */
static void choose_shares(struct sim *s)
{
	if (!s->plan.shares || rng_one_in(&s->rng, 3))
		return;
	s->plan.wide = true;
	if (!s->plan.magazines)
		s->plan.cache_pages = rng_range(&s->rng, 40, 100);
	s->plan.max_io = 16u << 10;
	plan_option(s, NODE_CACHED, "policy=write-back");
	plan_option(s, NODE_CACHED, "dirty_high=100");
	plan_option(s, NODE_CACHED, "dirty_low=100");
	plan_option(s, NODE_CACHED, "dirty_age=%us", rng_range(&s->rng, 1, 100));
}

static void choose_volumes(struct sim *s)
{
	struct plan *p = &s->plan;
	uint32_t bytes;

	p->nr_volumes = p->magazines ? rng_range(&s->rng, 4, MAX_VOLUMES)
				     : rng_range(&s->rng, p->shares ? 2 : 1,
					       rng_one_in(&s->rng, 4) ? MAX_VOLUMES : 3);
	p->object_size = rng_one_in(&s->rng, 3) ? 4u << 20 : 4096u << rng_below(&s->rng, 9);
	for (uint32_t v = 0; v < p->nr_volumes; v++) {
		bytes = v < 3 && rng_one_in(&s->rng, 4) ? 1u << 20
							: rng_range(&s->rng, 16, 96) * 4096;
		p->sectors[v] = bytes / ORACLE_SECTOR -
				(rng_one_in(&s->rng, 4) ? rng_below(&s->rng, 8) : 0);
	}
	plan_option(s, NODE_VOLUMED, "object_size=%uk", p->object_size >> 10);
	plan_option(s, NODE_VOLUMED, "requests=%u",
		rng_one_in(&s->rng, 3) ? rng_range(&s->rng, 1, 4) : 32);
}

static void choose_store(struct sim *s)
{
	plan_option(s, NODE_MEMD, "memory=5M");
	plan_option(s, NODE_MEMD, "seed=%u", rng_below(&s->rng, 1u << 30) + 1);
	s->plan.track = rng_percent(&s->rng, 80);
	if (s->plan.track)
		plan_option(s, NODE_MEMD, "track_flush=yes");
	if (rng_percent(&s->rng, 75))
		plan_option(s, NODE_MEMD, "latency=%uus", 1u << rng_below(&s->rng, 12));
	if (rng_percent(&s->rng, 60))
		plan_option(s, NODE_MEMD, "jitter=%uus", 1u << rng_below(&s->rng, 14));
	if (s->plan.slow)
		plan_option(s, NODE_MEMD, "iops=%u", 50u << rng_below(&s->rng, 6));
}

static bool has_single_ports(const struct plan *p)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (p->node[i] && p->threads[i] > 1)
			return false;
	return true;
}

/* By numbers of its own: what was chosen without it stays so. What is not deleted yet is in the
 * store beside what has come in its place. */
static void choose_cuts(struct sim *s)
{
	struct rng g = { rng_mix(s->seed + CUTS) };
	struct plan *p = &s->plan;

	p->cuts = p->node[NODE_VOLUMED] && (p->about.cuts || rng_percent(&g, CUTS_PERCENT));
	if (p->cuts)
		plan_option(s, NODE_MEMD, "memory=10M");
}

/* Some volumes are held to limits, by numbers of their own: their requests wait at volumed. */
static void choose_limits(struct sim *s)
{
	struct rng g = { rng_mix(s->seed + LIMITS) };
	struct plan *p = &s->plan;

	if (p->node[NODE_VOLUMED] && rng_percent(&g, LIMITS_PERCENT))
		p->limits = 500u << rng_below(&g, 8);
}

/* A second upper peer, in half of the runs whose theme is plugging. Not where volumes are cut: it
 * does not know their sizes. */
static void choose_beside(struct sim *s, uint32_t threads)
{
	struct rng g = { rng_mix(s->seed + BESIDES) };
	struct plan *p = &s->plan;

	p->node[NODE_BESIDE] = p->node[NODE_VOLUMED] && p->node[NODE_CACHED] && !p->cuts &&
			       rng_percent(&g, p->about.plugs ? 50 : 10);
	p->threads[NODE_BESIDE] = threads     ? threads
				  : p->near   ? 1
					      : rng_range(&g, 1, 2);
}

/* kvd, by numbers of its own. Its log has room for all keys several times, and not for much
 * more. */
static void choose_values(struct sim *s)
{
	static const char *const syncs[] = { "never", "written", "always", "1s", "5ms", "100us" };
	struct rng g = { rng_mix(s->seed + VALUES) };
	struct plan *p = &s->plan;
	uint32_t sync = rng_below(&g, 6);

	p->node[NODE_KVD] = s->values_always || rng_percent(&g, VALUES_PERCENT);
	if (!p->node[NODE_KVD])
		return;
	p->threads[NODE_KVD] = 1;
	p->zone_pages = 4u << rng_below(&g, 2);
	p->zones = rng_range(&g, 10, rng_one_in(&g, 3) ? 24 : 13);
	p->tail_pages = 16u << rng_below(&g, 3);
	p->always = sync == 2;
	plan_option(s, NODE_KVD, "sync=%s", syncs[sync]);
	plan_option(s, NODE_KVD, "keys=400");
	plan_option(s, NODE_MEMD, "memory=16M");
	p->paged_least = rng_one_in(&g, 4) ? 0 : rng_range(&g, 1000, 6000);
}

/* By numbers of its own again. */
static void choose_more_values(struct sim *s)
{
	struct rng g = { rng_mix(s->seed + LARGES) };
	struct plan *p = &s->plan;

	if (!p->node[NODE_KVD])
		return;
	p->evicts = rng_one_in(&g, 3);
	p->preload = rng_one_in(&g, 3);
	p->large = rng_one_in(&g, 3);
	p->bad = rng_one_in(&g, 3);
	if (p->evicts)
		p->zones = rng_range(&g, 7, 10);
	if (p->large)
		p->zones += rng_range(&g, 4, 12);
	if (p->preload)
		plan_option(s, NODE_KVD, "preload=%s", rng_one_in(&g, 3) ? "100k" : "all");
	if (!p->evicts && rng_one_in(&g, 4))	/* fewer than there may be */
		plan_option(s, NODE_KVD, "keys=%u", rng_range(&g, 12, 20));
}

void plan_make(struct sim *s, uint32_t threads)
{
	struct plan *p = &s->plan;

	theme_choose(s);
	choose_nodes(s, threads);
	p->nr_clients = rng_range(&s->rng, 1, 3);
	p->loans = rng_percent(&s->rng, 70);
	p->gifts = rng_percent(&s->rng, 70);
	p->direct = p->loans && rng_percent(&s->rng, 60);
	p->slow = p->wide = rng_one_in(&s->rng, 4);
	p->shares = p->node[NODE_CACHED] && rng_percent(&s->rng, 40);
	choose_caches(s);
	choose_shares(s);
	choose_volumes(s);
	choose_store(s);
	theme_apply(s);
	p->depth = p->max_io > 256u << 10  ? 2
		   : p->max_io > 16u << 10 ? 4
					   : rng_range(&s->rng, 2, MAX_DEPTH);
	p->near = has_single_ports(p) && s->seed % 4;
	p->jumps = s->seed / 4 % 4 == 0;
	choose_cuts(s);
	choose_limits(s);
	choose_beside(s, threads);
	choose_values(s);
	choose_more_values(s);
}
