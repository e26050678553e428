/* script - the events of a run, in order: I/O, kills, losses of power, faults of the store, options
 * that are changed.
 *
 * All of it is chosen from the seed before the run begins, so that a run can be repeated with parts
 * of it left out. The scheduler chooses the client that sends an I/O, and the step after which it
 * does. Options that the peers begin with are items, too, the first ones.
 *
 * Contract: script_make() after plan_make(), with the same random numbers. Its script is for the
 * plan as the seed chose it: a run with a smaller one fits the I/O to that (client.c).
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static const char *const names[NR_NODES] = { "memd", "cached-low", "cached", "volumed",
	"beside", "kvd" };

const char *node_name(enum node_id id)
{
	return names[id];
}

struct item *script_add(struct sim *s, enum act act)
{
	if (s->nr_items == s->room_items) {
		s->room_items = s->room_items ? s->room_items * 2 : 512;
		s->item = realloc(s->item, s->room_items * sizeof(*s->item));
		assert(s->item);
	}
	s->item[s->nr_items] = (struct item){ .act = (uint8_t)act };
	return &s->item[s->nr_items++];
}

struct item *script_next(struct sim *s)
{
	while (s->at < s->nr_items && (s->item[s->at].left_out || s->item[s->at].act == ACT_OPTION))
		s->at++;
	return s->at < s->nr_items ? &s->item[s->at] : NULL;
}

bool script_keep(struct sim *s, const char *only)
{
	unsigned long from, to;
	char *end;

	for (uint32_t i = 0; i < s->nr_items; i++)
		s->item[i].left_out = true;
	for (; *only; only = end + (*end == ',')) {
		from = to = strtoul(only, &end, 10);
		if (end == only)
			return false;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if ((*end && *end != ',') || to >= s->nr_items)
			return false;
		for (; from <= to; from++)
			s->item[from].left_out = false;
	}
	return true;
}

bool script_has(const struct sim *s, enum act act)
{
	for (uint32_t i = 0; i < s->nr_items; i++)
		if (s->item[i].act == act && !s->item[i].left_out)
			return true;
	return false;
}

/* How much of each there is to be in a run, about. */
struct measure {
	uint32_t ops, kills, losses, deaths, changes, resizes, shares, faults, plugs, sleeps;
	uint32_t cuts, steers;
	struct rng own;		/* of these: what a seed has without them does not change */
	struct rng beside, values, bad;
	uint32_t value_kills;
	/* for so many I/Os yet there are more kills, as a cache is being plugged or unplugged */
	uint32_t plugged;
	uint32_t copies;			/* percent of the I/Os */
	bool deletes;
};

/* ---- I/O ---- */

static uint32_t object_sectors(const struct sim *s)
{
	return s->plan.object_size / ORACLE_SECTOR;
}

/* Ranges near a few hot places, so that they overlap, cross buckets and cross objects. */
static void choose_range(struct sim *s, struct item *io)
{
	struct rng *g = &s->rng;
	uint32_t total = s->plan.sectors[io->volume], most = s->plan.max_io / ORACLE_SECTOR, hot,
		 dice = rng_below(g, 100);

	hot = (uint32_t)((rng_mix(s->seed * 16 + rng_below(g, s->plan.about.places)) >> 32) %
			 total);
	if (rng_one_in(g, 3))
		hot = hot / object_sectors(s) * object_sectors(s);
	io->first = rng_percent(g, 80) ? hot + rng_below(g, 24) : rng_below(g, total);
	io->first = io->first > 12 ? io->first - 12 : 0;
	if (dice < 40)
		io->nr = rng_range(g, 1, 20);
	else if (dice < 75)
		io->nr = 8 * rng_range(g, 1, 4);
	else
		io->nr = rng_range(g, 1, dice < 95 && most > 64 ? 64 : most);
	if (dice >= 50 && dice < 90)
		io->first &= ~7u;
	if (s->plan.wide && rng_percent(g, 70)) { /* much that is newly dirty, and needs no load */
		io->first = rng_below(g, total) & ~7u;
		io->nr = 8 * rng_range(g, 1, 4);
	}
}

static uint8_t choose_op(struct sim *s, const struct measure *m)
{
	uint32_t dice = rng_below(&s->rng, 100);
	bool wide = s->plan.wide;

	if (rng_percent(&s->rng, s->plan.about.flushes))
		return XSEG_OP_FLUSH;
	if (rng_percent(&s->rng, s->plan.about.reads))
		return XSEG_OP_READ;
	if (dice < 44)
		return wide && dice < 36 ? XSEG_OP_WRITE : XSEG_OP_READ;
	if (dice < 86)
		return XSEG_OP_WRITE;
	if (dice < 91)
		return wide && dice < 90 ? XSEG_OP_WRITE : XSEG_OP_FLUSH;
	if (dice < 94)
		return XSEG_OP_DISCARD;
	if (dice < 97)
		return XSEG_OP_WRITE_ZEROES;
	return dice < 99 || !m->deletes ? XSEG_OP_INFO : XSEG_OP_DELETE;
}

/* Most are of whole buckets that were written before, and may be the next ones of who gave the
 * last. */
static void choose_gift(struct sim *s, struct item *io)
{
	struct rng *g = &s->rng;

	io->keep = 1 + rng_below(g, rng_one_in(g, 3) ? 3000 : 300);
	if (rng_one_in(g, 4))
		return;
	io->volume = rng_below(g, s->plan.nr_volumes < 2 ? s->plan.nr_volumes : 2);
	io->first = 8 * rng_below(g, 6);
	io->nr = 8 * (rng_one_in(g, 4) ? rng_range(g, 2, 4) : 1);
	io->fua = rng_one_in(g, 20);
}

/* Most are of whole buckets that were read before, and of the next object, at the places of gifts:
 * so their pages are given, too. */
static void choose_direct(struct sim *s, struct item *io)
{
	struct rng *g = &s->rng;
	uint32_t next = object_sectors(s) < 64 ? object_sectors(s) : 64;

	if (!s->plan.about.reads && rng_one_in(g, 4))
		return;
	io->volume = rng_below(g, s->plan.nr_volumes < 2 ? s->plan.nr_volumes : 2);
	io->first = 8 * rng_below(g, 6) + (rng_one_in(g, 3) ? next * rng_below(g, 3) : 0);
	io->nr = 8 * (rng_one_in(g, 4) ? rng_range(g, 2, 4) : 1);
}

/* Mostly what was written lately: it is dirty, or on its way to the store. */
static void choose_source(struct sim *s, struct item *io)
{
	uint32_t back = 1 + rng_below(&s->rng, 40);
	const struct item *it = back < s->nr_items ? io - back : NULL;

	io->source = rng_below(&s->rng, s->plan.nr_volumes);
	if (!it || it->act != ACT_IO || it->op != XSEG_OP_WRITE || rng_one_in(&s->rng, 4))
		return;
	io->source = it->volume;
	io->first = it->first;
	io->nr = it->nr;
	if (io->volume == io->source)
		io->volume = (io->source + 1) % s->plan.nr_volumes;
}

static void add_io(struct sim *s, const struct measure *m)
{
	struct item *io = script_add(s, ACT_IO);

	io->op = rng_percent(&s->rng, m->copies) ? XSEG_OP_COPY : choose_op(s, m);
	io->volume = rng_below(&s->rng, s->plan.nr_volumes);
	choose_range(s, io);
	if (io->op == XSEG_OP_COPY)
		choose_source(s, io);
	if (io->op == XSEG_OP_FLUSH && rng_one_in(&s->rng, 3))
		io->volume = ORACLE_VOLUMES;
	io->fua = rng_percent(&s->rng, s->plan.about.fua);
	io->ranged = io->op == XSEG_OP_INFO && rng_percent(&s->rng, 70);
	io->publish = rng_percent(&s->rng, 70);
	if (io->op == XSEG_OP_READ && s->plan.loans && rng_percent(&s->rng, 70))
		io->keep = 1 + rng_below(&s->rng, rng_one_in(&s->rng, 5) ? 1500 : 40);
	if (io->op == XSEG_OP_READ && io->keep && s->plan.direct)
		choose_direct(s, io);
	io->give = io->op == XSEG_OP_WRITE && s->plan.gifts && rng_percent(&s->rng, 75);
	if (io->give)
		choose_gift(s, io);
	io->once = (io->op == XSEG_OP_READ || io->op == XSEG_OP_WRITE) && rng_one_in(&s->rng, 5);
}

/* ---- what disturbs ---- */

static const char *const faults[] = {
	"write:5%:EIO", "write:40%:EIO", "read:5%:EIO", "read:30%:EIO", "flush:30%:EIO",
	"any:10%:EIO", "write:20%:ENOSPC",
	"any:4%:stall=2s", "write:100%:EIO", "read:100%@3:EIO", "write:100%@2:EIO",
	"write:10%:short", "read:10%:short",
};

static const char *const policies[] = { "write-back", "write-back", "write-through",
	"write-through", "write-around", "pass-through" };

static const char *const cache_changes[] = {
	"set dirty_high=100 dirty_low=0", "set dirty_high=3 dirty_low=1", "set dirty_age=1ms",
	"set dirty_age=20s",
	"set flush_rate=2M", "set flush_rate=0", "drop", "status", "get", "volumes",
};

static const char *const store_changes[] = { "set latency=0", "set latency=3ms jitter=9ms",
	"set jitter=100us" };

#define ONE_OF(s, table) ((table)[rng_below(&(s)->rng, sizeof(table) / sizeof((table)[0]))])

static void add_kill(struct sim *s)
{
	struct item *it = script_add(s, ACT_KILL);
	const struct about *about = &s->plan.about;
	bool again = true;

	do
		it->node = (uint8_t)rng_below(&s->rng, NR_STACKED);
	while (about->victims && !(about->victims & 1u << it->node));
	if (about->together)
		it->with = (uint8_t)about->victims;
	else if (rng_one_in(&s->rng, 5))
		it->with = (uint8_t)rng_below(&s->rng, 1u << NR_STACKED);
	it->aim = (uint8_t)rng_below(&s->rng, 3);
	it->calls = rng_one_in(&s->rng, 3) ? 0
					   : 1 + rng_below(&s->rng, it->aim == AIM_SLOTS ? 30 : 60);
	it->down = rng_below(&s->rng, 400);
	for (uint32_t i = 0; i < MAX_AGAIN; i++) {
		again = again && rng_one_in(&s->rng, 4);
		it->again[i] = again ? 1 + rng_below(&s->rng, 30) : 0;
	}
	if (s->plan.resizable && rng_one_in(&s->rng, 4))
		it->memory = 4 + 2 * rng_below(&s->rng, 3);
}

static void add_loss(struct sim *s, bool promised)
{
	script_add(s, ACT_LOSS)->promised = promised;
}

static void add_fault(struct sim *s)
{
	struct item *it = script_add(s, ACT_FAULT);

	snprintf(it->text, sizeof(it->text), "%s", ONE_OF(s, faults));
	it->down = rng_range(&s->rng, 1, 5000);
	it->nr = rng_range(&s->rng, 10, 80);
}

static enum node_id choose_cache(struct sim *s)
{
	return s->plan.node[NODE_CACHED_LOW] && rng_one_in(&s->rng, 2) ? NODE_CACHED_LOW
								       : NODE_CACHED;
}

/* Policies of the whole cache or of one volume, other options, the store's timing. */
static void add_change(struct sim *s)
{
	struct item *it = script_add(s, ACT_CHANGE);
	uint32_t dice = rng_below(&s->rng, 100);

	it->node = (uint8_t)choose_cache(s);
	it->volume = EVERY;
	if (dice < 30) {
		snprintf(it->text, sizeof(it->text), "set policy=%s", ONE_OF(s, policies));
	} else if (dice < 55) {
		it->volume = rng_below(&s->rng, s->plan.nr_volumes);
		snprintf(it->text, sizeof(it->text), "policy=%s",
			rng_one_in(&s->rng, 4) ? "" : ONE_OF(s, policies));
	} else if (dice < 85) {
		snprintf(it->text, sizeof(it->text), "%s", ONE_OF(s, cache_changes));
	} else {
		it->node = NODE_MEMD;
		snprintf(it->text, sizeof(it->text), "%s", ONE_OF(s, store_changes));
	}
}

/* Some sizes are more than the segment has. */
static void add_resize(struct sim *s)
{
	struct item *it = script_add(s, ACT_CHANGE);

	it->node = (uint8_t)choose_cache(s);
	it->volume = EVERY;
	snprintf(it->text, sizeof(it->text), "set memory=%uM", 4 + 2 * rng_below(&s->rng, 7));
}

/* A minimum, a maximum, both or none, of a few pages or of most of the cache. Some sums are more
 * than it promises. */
static void add_share(struct sim *s)
{
	struct item *it = script_add(s, ACT_CHANGE);
	uint32_t pages = s->plan.cache_pages ? s->plan.cache_pages : 1024, min = 0, max = 0;

	it->node = NODE_CACHED;
	it->volume = rng_below(&s->rng, s->plan.nr_volumes);
	if (rng_percent(&s->rng, 60))
		min = rng_below(&s->rng, rng_one_in(&s->rng, 2) ? pages : pages / 4);
	if (rng_percent(&s->rng, 50))
		max = min + rng_range(&s->rng, 1, rng_one_in(&s->rng, 2) ? 8 : pages);
	snprintf(it->text, sizeof(it->text), "min=%uk max=%uk", min * 4, max * 4);
}

/* As the kernel does with a thread: others get far ahead of it. */
static void choose_sleep(struct sim *s, struct rng *g, struct item *it, enum node_id id)
{
	it->with = (uint8_t)id;
	it->calls = rng_below(g, s->plan.threads[id]);
	it->down = 1 + rng_below(g, 600);
}

static void add_sleep(struct sim *s)
{
	choose_sleep(s, &s->rng, script_add(s, ACT_SLEEP), choose_cache(s));
}

static void add_plug(struct sim *s)
{
	struct item *it = script_add(s, ACT_PLUG);

	it->node = (uint8_t)(s->plan.node[NODE_VOLUMED] ? choose_cache(s) : NODE_CACHED_LOW);
	it->nr = rng_below(&s->rng, 2);
	if (rng_one_in(&s->rng, 2))
		return;
	choose_sleep(s, &s->rng, it, rng_below(&s->rng, NR_STACKED));
}

/* Some of what happens to others happens to the second upper peer, or to it as well. */
static void disturb_beside(struct sim *s, struct item *it, struct rng *g)
{
	if (!s->plan.node[NODE_BESIDE])
		return;
	if (it->act == ACT_KILL && rng_one_in(g, 3))
		it->node = NODE_BESIDE;
	else if (it->act == ACT_KILL && rng_one_in(g, 3))
		it->with |= 1u << NODE_BESIDE;
	else if (it->act == ACT_PLUG && it->down && rng_one_in(g, 3))
		choose_sleep(s, g, it, NODE_BESIDE);
}

/* A size that ends somewhere, or at an object's end; 0: the volume goes. */
static uint32_t choose_size(struct sim *s, struct rng *g, uint32_t volume)
{
	uint32_t most = s->plan.sectors[volume], objects = most / object_sectors(s);

	if (objects && rng_one_in(g, 3))
		return rng_range(g, 1, objects) * object_sectors(s);
	return rng_range(g, 1, rng_one_in(g, 3) ? most : most / 4 + 1);
}

/* Mostly what is cut off, or goes, is there again soon; and somebody has older requests, and is not
 * run meanwhile. */
static void add_cut(struct sim *s, struct rng *g)
{
	uint32_t dice = rng_below(g, 100);
	struct item *it;

	if (rng_one_in(g, 2))
		choose_sleep(s, g, script_add(s, ACT_SLEEP),
			rng_range(g, NODE_CACHED_LOW, NODE_VOLUMED));
	it = script_add(s, ACT_VOLUME);
	it->volume = rng_below(g, s->plan.nr_volumes);
	it->nr = dice < 60 ? choose_size(s, g, it->volume) : 0;
	it->then = rng_one_in(g, 3) ? choose_size(s, g, it->volume)
				    : s->plan.sectors[it->volume];
	if (dice < 10)
		it->then = it->nr;
	it->down = rng_one_in(g, 4) ? rng_below(g, 40) : 0;
}

static void add_steer(struct sim *s, struct rng *g)
{
	struct item *it = script_add(s, ACT_STEER);

	it->node = (uint8_t)rng_range(g, NODE_CACHED_LOW, NODE_VOLUMED);
	it->nr = rng_below(g, s->plan.threads[it->node]);
	it->first = rng_below(g, s->plan.threads[it->node]);
}

static void add_disturbances(struct sim *s, struct measure *m)
{
	if (rng_below(&s->rng, m->ops) < m->plugs) {
		add_plug(s);
		m->plugged = 20;
	}
	if (rng_below(&s->rng, m->ops) < m->kills ||
		(m->plugged && m->plugged-- && m->kills && rng_one_in(&s->rng, 40)))
		add_kill(s);
	if (rng_below(&s->rng, m->ops) < m->losses)
		add_loss(s, rng_one_in(&s->rng, 2));
	if (rng_below(&s->rng, m->ops) < m->deaths)
		script_add(s, ACT_DEATH);
	if (rng_below(&s->rng, m->ops) < m->resizes)
		add_resize(s);
	if (rng_below(&s->rng, m->ops) < m->shares)
		add_share(s);
	if (rng_below(&s->rng, m->ops) < m->faults)
		add_fault(s);
	if (rng_below(&s->rng, m->ops) < m->changes)
		add_change(s);
	if (rng_below(&s->rng, m->ops) < m->sleeps)
		add_sleep(s);
	if (rng_below(&m->own, m->ops) < m->cuts)
		add_cut(s, &m->own);
	if (rng_below(&m->own, m->ops) < m->steers)
		add_steer(s, &m->own);
}

/* Some of the kills hit kvd, or hit it as well; a few of its own come, too. */
static void disturb_values(struct sim *s, struct rng *g, uint32_t from)
{
	for (; from < s->nr_items; from++) {
		struct item *it = &s->item[from];

		if (it->act == ACT_KILL && rng_one_in(g, 3))
			it->node = NODE_KVD;
		else if (it->act == ACT_KILL && rng_one_in(g, 3))
			it->with |= 1u << NODE_KVD;
		else if (it->act == ACT_PLUG && it->down && rng_one_in(g, 3))
			choose_sleep(s, g, it, NODE_KVD);
	}
}

static uint8_t choose_value_op(struct rng *g)
{
	uint32_t dice = rng_below(g, 100);

	if (dice < 52)
		return VALUE_CHANGE;
	if (dice < 62)
		return VALUE_BATCH;
	if (dice < 86)
		return VALUE_GET;
	if (dice == 99 && rng_one_in(g, 2))
		return VALUE_DELETE_ALL;
	return dice < 90 ? VALUE_EXISTS : dice < 93 ? VALUE_SCAN : dice < 97 ? VALUE_FLUSH
									      : VALUE_DATE;
}

static void add_values(struct sim *s, struct measure *m)
{
	struct rng *g = &m->values;
	struct item *it;

	if (rng_below(g, m->ops) < m->value_kills) {
		it = script_add(s, ACT_KILL);
		it->node = NODE_KVD;
		it->calls = rng_one_in(g, 4) ? 0 : 1 + rng_below(g, 40);
		it->down = rng_below(g, 400);
		it->again[0] = rng_one_in(g, 4) ? 1 + rng_below(g, 60) : 0;
	}
	if (s->plan.bad && rng_one_in(&m->bad, 6))
		script_add(s, ACT_VALUE)->op = VALUE_BAD;
	for (uint32_t i = rng_range(g, 1, 4); i; i--) {
		it = script_add(s, ACT_VALUE);
		it->op = choose_value_op(g);
		it->publish = rng_percent(g, 70);
	}
}

static void at_least(uint32_t *nr, uint32_t least)
{
	if (*nr < least)
		*nr = least;
}

void script_make(struct sim *s, uint32_t ops)
{
	struct measure m = { .ops = ops,
		.own = { rng_mix(s->seed + CUTS) + 1 },
		.beside = { rng_mix(s->seed + BESIDES) + 1 },
		.values = { rng_mix(s->seed + VALUES) + 1 },
		.bad = { rng_mix(s->seed + LARGES) + 1 } };
	const struct plan *p = &s->plan;

	m.kills = rng_percent(&s->rng, 55) ? rng_range(&s->rng, 1, rng_one_in(&s->rng, 4) ? 40 : 6)
					   : 0;
	m.losses = p->track && rng_percent(&s->rng, 30) ? rng_range(&s->rng, 1, 4) : 0;
	m.deaths = rng_percent(&s->rng, 25) ? rng_range(&s->rng, 1, 6) : 0;
	m.changes = rng_percent(&s->rng, 50) ? rng_range(&s->rng, 1, 10) : 0;
	m.resizes = p->resizable ? rng_range(&s->rng, 1, 12) : 0;
	m.shares = p->shares ? rng_range(&s->rng, 1, 12) : 0;
	m.faults = rng_percent(&s->rng, 30) ? 4 : 0;
	m.copies = !p->node[NODE_VOLUMED] && p->nr_volumes > 1 && rng_percent(&s->rng, 70)
			   ? rng_range(&s->rng, 2, 30)
			   : 0;
	if (p->node[NODE_CACHED] && (p->node[NODE_VOLUMED] || p->node[NODE_CACHED_LOW]) &&
		rng_percent(&s->rng, 45))
		m.plugs = rng_range(&s->rng, 1, rng_one_in(&s->rng, 3) ? 40 : 8);
	if (p->threads[NODE_CACHED] > 1 && rng_percent(&s->rng, 60))
		m.sleeps = rng_range(&s->rng, 1, 40);
	m.deletes = !p->node[NODE_VOLUMED] && rng_one_in(&s->rng, 3);
	m.cuts = p->cuts ? rng_range(&m.own, 1, rng_one_in(&m.own, 3) ? 16 : 4) : 0;
	m.steers = rng_one_in(&m.own, 4) ? rng_range(&m.own, 1, 12) : 0;
	m.value_kills = rng_one_in(&m.values, 2) ? rng_range(&m.values, 1, 12) : 0;
	at_least(&m.cuts, p->about.cuts * ops / 300);
	at_least(&m.steers, p->about.ports * ops / 3000);
	at_least(&m.kills, p->about.kills * ops / 300);
	at_least(&m.faults, p->about.faults * ops / 300);
	at_least(&m.plugs, p->about.plugs * ops / 300);
	at_least(&m.copies, p->about.copies);
	for (uint32_t i = 0; i < ops; i++) {
		uint32_t from = s->nr_items, before = from;

		add_disturbances(s, &m);
		for (; from < s->nr_items; from++)
			disturb_beside(s, &s->item[from], &m.beside);
		if (p->node[NODE_KVD])
			disturb_values(s, &m.values, before);
		if (p->node[NODE_KVD])
			add_values(s, &m);
		if (p->node[NODE_KVD] && !rng_one_in(&m.values, 4))
			continue;
		add_io(s, &m);
		s->item[s->nr_items - 1].beyond = m.cuts && rng_one_in(&m.own, 8);
	}
}

/* ---- in words ---- */

static void print_io(const struct item *it)
{
	if (it->volume == ORACLE_VOLUMES)
		printf("%s of all volumes", xseg_op_name(it->op));
	else
		printf("%s%s of volume %u, sectors %u+%u", xseg_op_name(it->op),
			it->fua ? " with FUA" : "", it->volume, it->first, it->nr);
	if (it->op == XSEG_OP_COPY)
		printf(", from volume %u", it->source);
	if (it->ranged)
		printf(", of its range");
	if (it->give)
		printf(", gives, and keeps what it is lent for %u steps", it->keep - 1);
	else if (it->keep)
		printf(", by loan, kept for %u steps", it->keep - 1);
	printf("%s%s\n", it->once ? ", once" : "", it->publish ? "" : ", published later");
}

static void print_kill(const struct item *it)
{
	static const char *const aims[] = {
		[AIM_ANY] = "changes", [AIM_PAGES] = "changes or pages", [AIM_SLOTS] = "slots"
	};

	printf("kill of %s", node_name(it->node));
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (it->with & 1u << i && i != it->node)
			printf(" with %s", node_name(i));
	if (it->calls)
		printf(" in a callback, after %u %s", it->calls - 1, aims[it->aim]);
	printf("; a successor %u steps later", it->down);
	for (uint32_t i = 0; i < MAX_AGAIN && it->again[i]; i++)
		printf(", which is killed after %u", it->again[i] - 1);
	if (it->memory)
		printf(", with memory=%uM", it->memory);
	printf("\n");
}

static void print_size(uint32_t volume, uint32_t sectors)
{
	if (sectors)
		printf("volume %u gets %u sectors", volume, sectors);
	else
		printf("volume %u is removed", volume);
}

static const char *const value_names[] = { [VALUE_CHANGE] = "change", [VALUE_BATCH] = "batch",
	[VALUE_GET] = "get", [VALUE_EXISTS] = "exists", [VALUE_SCAN] = "scan",
	[VALUE_FLUSH] = "flush", [VALUE_DATE] = "date", [VALUE_DELETE_ALL] = "delete all",
	[VALUE_BAD] = "bad sector" };

static void print_item(const struct item *it)
{
	switch ((enum act)it->act) {
	case ACT_OPTION:
		printf("%s begins with %s\n", node_name(it->node), it->text);
		break;
	case ACT_IO:
		print_io(it);
		break;
	case ACT_KILL:
		print_kill(it);
		break;
	case ACT_LOSS:
		printf("loss of power%s\n",
			it->promised ? ", when a FLUSH or FUA write is answered" : "");
		break;
	case ACT_DEATH:
		printf("the clients die\n");
		break;
	case ACT_FAULT:
		printf("the store fails %s, for %u I/Os or %u ms\n", it->text, it->nr, it->down);
		break;
	case ACT_CHANGE:
		if (it->volume == EVERY)
			printf("%s: %s\n", node_name(it->node), it->text);
		else
			printf("%s: volume %u: %s\n", node_name(it->node), it->volume, it->text);
		break;
	case ACT_PLUG:
		printf("%s is plugged or unplugged%s", node_name(it->node),
			it->nr ? ", or that taken back" : "");
		if (it->down)
			printf("; port %u of %s sleeps for %u steps", it->calls,
				node_name(it->with), it->down);
		printf("\n");
		break;
	case ACT_VOLUME:
		print_size(it->volume, it->nr);
		printf(", and %u ms later ", it->down);
		print_size(it->volume, it->then);
		printf("\n");
		break;
	case ACT_STEER:
		printf("what is for port %u of %s goes to its port %u\n", it->nr,
			node_name(it->node), it->first);
		break;
	case ACT_VALUE:
		printf("%s of values%s\n", value_names[it->op],
			it->publish ? "" : ", published later");
		break;
	case ACT_SLEEP:
		printf("port %u of %s sleeps for %u steps\n", it->calls, node_name(it->with),
			it->down);
		break;
	default:
		break;
	}
}

void script_print(struct sim *s)
{
	for (uint32_t i = 0; i < s->nr_items; i++)
		if (!s->item[i].left_out &&
			s->plan.node[s->item[i].act == ACT_OPTION ? s->item[i].node : NODE_MEMD]) {
			printf("  %4u  ", i);
			print_item(&s->item[i]);
		}
}
