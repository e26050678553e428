/* chaos - disturbs a run, between two steps: kills, losses of power, deaths of clients, faults of
 * the store, options changed live, caches plugged and unplugged, threads that are not run.
 *
 * Contract: called by the scheduler. Its events are in the script, in their place between the I/Os.
 * An event that is impossible just then (the peer is dead, the administrator waits for an answer)
 * is skipped.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

static void kill_one(struct sim *s, const struct item *it)
{
	struct node *n = &s->node[it->node];

	if (!s->plan.node[it->node] || !n->p)
		return;
	n->death = it;
	n->deaths = 0;
	n->cutting = it->calls > 0;
	n->cut_calls = it->calls - 1;
	if (!it->calls)
		node_die(s, it->node);
}

static void fault_begin(struct sim *s, const struct item *it)
{
	char line[64];

	if (!s->node[NODE_MEMD].serving || s->admin.r || s->faulty)
		return;
	snprintf(line, sizeof(line), "set fail=%s", it->text);
	s->oracle.halves |= strstr(line, "short") != NULL;
	s->faulty = s->errors_ok = true;
	s->healing = false;
	s->heal_ns = s->now + it->down * MS;
	s->heal_at = s->issued + it->nr;
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

static void lose_power(struct sim *s)
{
	s->loss_due = false;
	if (!s->faulty && !s->admin.r)
		world_power_loss(s);
}

/* A volumed that has never served has still to take its buffers: until then no cache takes more
 * memory. */
static void change(struct sim *s, const struct item *it)
{
	char line[96];

	bool resize = strstr(it->text, "memory=");

	if (!s->plan.node[it->node] || s->admin.r || (s->faulty && !resize))
		return;
	if (resize && s->plan.node[NODE_VOLUMED] && !s->node[NODE_VOLUMED].serving)
		return;
	if (it->volume == EVERY)
		snprintf(line, sizeof(line), "%s", it->text);
	else
		snprintf(line, sizeof(line), "volume-set id=%u %s",
			s->volume[it->volume % s->plan.nr_volumes].id, it->text);
	admin_send(s, it->node, line);
}

static void perform(struct sim *s, const struct item *it)
{
	switch ((enum act)it->act) {
	case ACT_KILL:
		kill_one(s, it);
		break;
	case ACT_LOSS:
		s->loss_due = it->promised;
		if (!it->promised)
			lose_power(s);
		break;
	case ACT_DEATH:
		if (!s->faulty && !s->admin.r)
			world_clients_die(s);
		break;
	case ACT_FAULT:
		fault_begin(s, it);
		break;
	case ACT_CHANGE:
		change(s, it);
		break;
	case ACT_PLUG:
		world_plug(s, it);
		break;
	case ACT_SLEEP:
		sched_sleep(s, it);
		break;
	case ACT_VOLUME:
		keeper_change(s, it);
		break;
	case ACT_STEER:
		sched_steer(s, it);
		break;
	case ACT_VALUE:
		values_send(s, it);
		break;
	default:
		break;
	}
}

void chaos(struct sim *s)
{
	const struct item *it;

	node_tend(s);
	if (s->faulty && (s->now >= s->heal_ns || s->issued >= s->heal_at || !s->issuing))
		heal(s);
	admin_replies(s);
	keeper_tend(s);
	if (!s->issuing)
		return;
	if (s->promised && s->loss_due)
		lose_power(s);
	s->promised = false;
	while ((it = script_next(s)) && it->act != ACT_IO &&
		(it->act != ACT_VALUE || values_room(s))) {
		s->at++;
		perform(s, it);
	}
}
