/* chaos - what disturbs a run, between two steps: kills, losses of power, faults of the store, options changed live.
 *
 * Contract: called by the scheduler. The dice are thrown once for each I/O that clients send, so that a plan's number of
 * disturbances is met about.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static const char *const faults[] = {
	"write:5%:EIO", "write:40%:EIO", "read:5%:EIO", "read:30%:EIO", "flush:30%:EIO", "any:10%:EIO", "write:20%:ENOSPC",
	"any:4%:stall=2s", "write:100%:EIO", "read:100%@3:EIO", "write:100%@2:EIO", "write:10%:short", "read:10%:short",
};
#define NR_FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Live changes of cached and memd. */
static const struct change {
	enum node_id node;
	const char *line;
} changes[] = {
	{ NODE_CACHED, "set policy=write-through" }, { NODE_CACHED, "set policy=write-through" },
	{ NODE_CACHED, "set policy=write-back" }, { NODE_CACHED, "set policy=write-back" },
	{ NODE_CACHED, "set policy=write-around" }, { NODE_CACHED, "set policy=pass-through" },
	{ NODE_CACHED, "set dirty_high=100 dirty_low=0" }, { NODE_CACHED, "set dirty_high=3 dirty_low=1" },
	{ NODE_CACHED, "set dirty_age=1ms" }, { NODE_CACHED, "set dirty_age=20s" }, { NODE_CACHED, "set flush_rate=2M" },
	{ NODE_CACHED, "set flush_rate=0" }, { NODE_CACHED, "drop" }, { NODE_CACHED, "status" }, { NODE_CACHED, "get" },
	{ NODE_MEMD, "set latency=0" }, { NODE_MEMD, "set latency=3ms jitter=9ms" }, { NODE_MEMD, "set jitter=100us" },
};

static void kill_one(struct sim *s)
{
	enum node_id id = rng_below(&s->rng, NR_NODES);

	if (!s->plan.node[id] || !s->node[id].p)
		return;
	if (rng_one_in(&s->rng, 3)) {
		node_kill(s, id);
		return;
	}
	s->node[id].cutting = true;
	s->node[id].cut_calls = rng_below(&s->rng, 40);
}

static void fault_begin(struct sim *s)
{
	char line[64];

	if (!s->node[NODE_MEMD].serving)
		return;
	snprintf(line, sizeof(line), "set fail=%s", faults[rng_below(&s->rng, NR_FAULTS)]);
	s->oracle.halves |= strstr(line, "short") != NULL;
	s->faulty = s->errors_ok = true;
	s->healing = false;
	s->heal_ns = s->now + rng_range(&s->rng, 1, 5000) * MS;
	s->heal_at = s->issued + rng_range(&s->rng, 10, 80);
	admin_send(s, NODE_MEMD, line);
}

static void heal(struct sim *s)
{
	if (s->admin.r || !s->node[NODE_MEMD].serving)
		return;
	if (s->healing) {
		s->healing = false;
		s->faulty = s->admin.result < 0;	/* it may have been killed in the middle */
		s->settled_ns = s->now;
		return;
	}
	admin_send(s, NODE_MEMD, "set fail=");
	s->healing = true;
}

/* Half of the losses come when something has just been promised. */
static void lose_power(struct sim *s)
{
	if (!s->faulty && !s->admin.r)
		world_power_loss(s);
}

/* Some sizes are more than the segment has. A volumed that has never served has still to take its buffers. */
static void resize(struct sim *s)
{
	char line[32];

	if (s->plan.node[NODE_VOLUMED] && !s->node[NODE_VOLUMED].serving)
		return;
	snprintf(line, sizeof(line), "set memory=%uM", 4 + 2 * rng_below(&s->rng, 7));
	admin_send(s, NODE_CACHED, line);
}

/* A minimum, a maximum, both or none, of a few pages or of most of the cache. Some sums are more than it promises. */
static void share(struct sim *s)
{
	uint32_t pages = s->plan.cache_pages ? s->plan.cache_pages : 1024, min = 0, max = 0;
	char line[64];

	if (rng_percent(&s->rng, 60))
		min = rng_below(&s->rng, rng_one_in(&s->rng, 2) ? pages : pages / 4);
	if (rng_percent(&s->rng, 50))
		max = min + rng_range(&s->rng, 1, rng_one_in(&s->rng, 2) ? 8 : pages);
	snprintf(line, sizeof(line), "volume-set id=%u min=%uk max=%uk", volume_number(s, rng_below(&s->rng, s->plan.nr_volumes)),
		 min * 4, max * 4);
	admin_send(s, NODE_CACHED, line);
}

static bool chance(struct sim *s, uint32_t wanted)
{
	return rng_below(&s->rng, s->plan.ops) < wanted;
}

void chaos(struct sim *s)
{
	const struct change *c;

	node_tend(s);
	if (s->faulty && (s->now >= s->heal_ns || s->issued >= s->heal_at || !s->issuing))
		heal(s);
	admin_replies(s);
	if (!s->issuing)
		return;
	if (s->promised && rng_below(&s->rng, 60) < s->plan.losses)
		lose_power(s);
	s->promised = false;
	if (s->issued == s->chaos_at)
		return;
	s->chaos_at = s->issued;
	if (chance(s, s->plan.kills))
		kill_one(s);
	if (chance(s, s->plan.losses))
		lose_power(s);
	if (!s->admin.r && chance(s, s->plan.resizes))
		resize(s);
	if (!s->admin.r && chance(s, s->plan.shares))
		share(s);
	if (s->admin.r || s->faulty)
		return;
	if (s->plan.faults && chance(s, 4))
		fault_begin(s);
	else if (chance(s, s->plan.changes)) {
		c = &changes[rng_below(&s->rng, sizeof(changes) / sizeof(changes[0]))];
		if (s->plan.node[c->node])
			admin_send(s, c->node, c->line);
	}
}
