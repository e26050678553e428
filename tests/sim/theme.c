/* theme - the subject of a run. Some runs have none in particular. The others bring together the
 * parts that a bug of some kind needs, which chance alone seldom does.
 *
 * A theme is a row of the table: which peers there are, which events are more frequent (struct
 * about), and options that take the place of those that were chosen before. All else is as the seed
 * has it. A mutant that is caught late shows which row is missing.
 *
 * Contract: theme_choose() runs before plan_make() chooses anything, theme_apply() after it; both
 * draw from the same random numbers.
 */
#include "tests/sim/sim.h"

#define NODE(id) (1u << NODE_##id)

/* A request is at the store for so long that others come after it. */
static void slow_store(struct sim *s)
{
	plan_option(s, NODE_MEMD, "latency=%uus", 512u << rng_below(&s->rng, 5));
	plan_option(s, NODE_MEMD, "jitter=%uus", 512u << rng_below(&s->rng, 6));
}

/* Nothing is flushed but for a reason. */
static void keep_dirty(struct sim *s, enum node_id id)
{
	plan_option(s, id, "policy=write-back");
	plan_option(s, id, "dirty_high=100");
	plan_option(s, id, "dirty_low=100");
	plan_option(s, id, "dirty_age=%us", rng_range(&s->rng, 1, 10));
}

static void objects_of(struct sim *s, uint32_t bytes)
{
	s->plan.object_size = bytes;
	plan_option(s, NODE_VOLUMED, "object_size=%uk", bytes >> 10);
}

static void volumes_of(struct sim *s, uint32_t nr, uint32_t least_buckets, uint32_t most_buckets)
{
	s->plan.nr_volumes = nr;
	for (uint32_t v = 0; v < nr; v++)
		s->plan.sectors[v] = rng_range(&s->rng, least_buckets, most_buckets) * 8;
}

static void again(struct sim *s)
{
	slow_store(s);
	plan_option(s, NODE_CACHED, "policy=write-back");
}

static void scarce(struct sim *s)
{
	struct plan *p = &s->plan;

	slow_store(s);
	keep_dirty(s, NODE_CACHED);
	plan_option(s, NODE_CACHED, "objects=2");
	objects_of(s, (128u << 10) << rng_below(&s->rng, 2));
	p->wide = true;
	p->cache_pages = 0;
	volumes_of(s, rng_range(&s->rng, 2, 3), 64, 128);
}

static void small(struct sim *s)
{
	struct plan *p = &s->plan;

	slow_store(s);
	keep_dirty(s, NODE_CACHED);
	plan_option(s, NODE_CACHED, "objects=64");
	plan_option(s, NODE_CACHED, "requests=%u", 8u << rng_below(&s->rng, 2));
	objects_of(s, 4096u << rng_below(&s->rng, 3));
	p->wide = true;
	p->max_io = 16u << 10;
	p->magazines = 0;
	p->cache_pages = rng_range(&s->rng, 40, 60);
	volumes_of(s, 3, 24, 64);
}

static void rewritten(struct sim *s)
{
	struct plan *p = &s->plan;

	slow_store(s);
	plan_option(s, NODE_MEMD, "track_flush=yes");
	keep_dirty(s, NODE_CACHED);
	plan_option(s, NODE_CACHED, "objects=64");
	plan_option(s, NODE_CACHED, "requests=8");
	objects_of(s, 4096u << rng_below(&s->rng, 3));
	p->track = p->wide = true;
	p->loans = false;
	p->max_io = 16u << 10;
	p->cache_pages = 0;
	p->nr_clients = 3;
	volumes_of(s, rng_range(&s->rng, 1, 2), 12, 32);
}

static void pair(struct sim *s)
{
	slow_store(s);
	plan_option(s, NODE_CACHED, "policy=write-back");
	plan_option(s, NODE_CACHED_LOW, "policy=%s",
		rng_one_in(&s->rng, 2) ? "write-around" : "pass-through");
}

static void parts(struct sim *s)
{
	struct plan *p = &s->plan;

	slow_store(s);
	objects_of(s, 4096u << rng_below(&s->rng, 3));
	plan_option(s, NODE_CACHED, "policy=%s",
		rng_one_in(&s->rng, 2) ? "write-through" : "write-around");
	plan_option(s, NODE_CACHED_LOW, "policy=write-through");
	p->max_io = 32u << 10;
	volumes_of(s, rng_range(&s->rng, 1, 2), 16, 64);
}

/* Mostly hits, so that there is always something on its way between two peers. */
static void plugged(struct sim *s)
{
	plan_option(s, NODE_CACHED, "policy=write-back");
	plan_option(s, NODE_MEMD, "latency=%uus", rng_below(&s->rng, 3) * 20);
	plan_option(s, NODE_MEMD, "jitter=0");
}

/* The same buckets are read again, most of them without a request, while what they are of changes:
 * their pages, chunks, entries, the path. */
static void looked(struct sim *s)
{
	struct plan *p = &s->plan;

	p->loans = p->direct = true;
	plan_option(s, NODE_CACHED, "policy=%s",
		rng_one_in(&s->rng, 5) ? "write-around" : "write-back");
	plan_option(s, NODE_CACHED, "objects=%u", rng_range(&s->rng, 2, 8));
	plan_option(s, NODE_CACHED_LOW, "policy=write-back");
	objects_of(s, 16384u << rng_below(&s->rng, 3));
	p->max_io = 16u << 10;
	p->magazines = 0;
	p->cache_pages = rng_range(&s->rng, 40, 80);
	volumes_of(s, rng_range(&s->rng, 1, 3), 24, 64);
}

/* Writes wait in a small cache for what is scarce, while their volume is cut below them. */
static void cut(struct sim *s)
{
	struct plan *p = &s->plan;

	slow_store(s);
	if (rng_one_in(&s->rng, 2))
		plan_option(s, NODE_MEMD, "iops=%u", 100u << rng_below(&s->rng, 4));
	keep_dirty(s, NODE_CACHED);
	plan_option(s, NODE_CACHED, "objects=%u",
		rng_one_in(&s->rng, 2) ? 64 : rng_range(&s->rng, 2, 8));
	plan_option(s, NODE_CACHED, "requests=%u", 8u << rng_below(&s->rng, 2));
	objects_of(s, 8192u << rng_below(&s->rng, 5));
	p->wide = rng_one_in(&s->rng, 2);
	p->resizable = false;
	p->max_io = 16u << 10;
	p->magazines = 0;
	p->cache_pages = rng_range(&s->rng, 40, 60);
	p->nr_clients = rng_range(&s->rng, 2, 3);
	volumes_of(s, rng_range(&s->rng, 1, 3), 24, 64);
}

static const struct theme {
	uint32_t percent;			/* of the runs */
	struct about about;
	void (*options)(struct sim *s);
} themes[] = {
	/* the same few buckets are written again while older writes of them wait for the store, and
	 * caches are killed */
	{ 12, { .with = NODE(CACHED), .gifts = 1, .places = 1, .fua = 35, .kills = 12,
	  .victims = NODE(CACHED) | NODE(CACHED_LOW) }, again },
	/* an object has to leave, and it takes time, while there is much of it to be flushed; and
	 * it is copied from */
	{ 12, { .with = NODE(CACHED), .without = NODE(VOLUMED), .copies = 25 }, scarce },
	/* as many small objects as pages, which are cut for chunks and put together again */
	{ 8, { .with = NODE(CACHED) }, small },
	/* what FLUSH waits for is written again */
	{ 8, { .with = NODE(CACHED), .flushes = 3, .fua = 1 }, rewritten },
	/* writes of one cache go past the one below it, and both are killed */
	{ 3, { .with = NODE(CACHED) | NODE(CACHED_LOW), .places = 2, .kills = 6,
	  .victims = NODE(CACHED) | NODE(CACHED_LOW), .together = 1 }, pair },
	/* caches are plugged and unplugged all the time */
	{ 12, { .with = NODE(CACHED) | NODE(VOLUMED), .gifts = 1, .places = 2, .kills = 12,
	  .plugs = 25,
		.victims = NODE(CACHED) | NODE(CACHED_LOW) | NODE(VOLUMED) }, plugged },
	/* buckets are read again and again, by clients that ask only if they have to */
	{ 10, { .with = NODE(CACHED), .gifts = 1, .reads = 55, .kills = 6,
	  .victims = NODE(CACHED) | NODE(VOLUMED) }, looked },
	{ 6, { .with = NODE(CACHED) | NODE(CACHED_LOW) | NODE(VOLUMED), .gifts = 1, .reads = 55,
	  .kills = 4, .plugs = 25,
	       .victims = NODE(CACHED) | NODE(CACHED_LOW) | NODE(VOLUMED) }, looked },
	/* parts of requests fail, and who split them is killed */
	{ 3, { .with = NODE(VOLUMED), .kills = 6, .faults = 10, .victims = NODE(VOLUMED) }, parts },
	/* volumes shrink, grow, go and come again while writes to them wait */
	{ 8, { .with = NODE(CACHED) | NODE(VOLUMED), .places = 3, .cuts = 20,
	  .ports = 60 }, cut },
};
#define NR_THEMES (sizeof(themes) / sizeof(themes[0]))

void theme_choose(struct sim *s)
{
	uint32_t dice = rng_below(&s->rng, 100), i;
	struct about a = { 0 };

	for (i = 0; i < NR_THEMES && dice >= themes[i].percent; i++)
		dice -= themes[i].percent;
	s->plan.theme = i;
	if (i < NR_THEMES)
		a = themes[i].about;
	a.places = a.places ? a.places : 6;
	a.fua = a.fua ? a.fua : 12;
	s->plan.about = a;
}

void theme_apply(struct sim *s)
{
	if (s->plan.theme >= NR_THEMES)
		return;
	if (!s->plan.about.gifts)
		s->plan.gifts = false;
	themes[s->plan.theme].options(s);
}
