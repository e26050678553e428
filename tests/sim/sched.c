/* sched - the scheduler: chooses the next step, and lets time pass.
 *
 * A step is one port of one peer that handles one request, or one reply, or polls (and publishes
 * its offers). Or it is one client that takes its answers, or sends. Steps are chosen by chance,
 * except that a sleeping port gets none, like a thread that the kernel does not run. When chance
 * finds nothing to do, a sweep gives every port and client its turn. When the sweep finds nothing
 * either, time goes on to the next moment at which a port or client wants to be called.
 *
 * Each port has the time from when its round began; others may have read the time since. In some
 * runs time goes on by an hour at once, as for a machine that was stopped.
 *
 * A port polls when it asked for that, after it has handled something, and when another port kicks
 * it. Port 0 also polls when a word in the segment asks something of its peer, like a reactor that
 * is rung. It never polls otherwise. So a port that forgets to ask, or to kick, hangs here, where a
 * real reactor would soon wake up for another reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "peers/cached/life/cached.h"
#include "peers/common/runtime/gate.h"
#include "tests/sim/sim.h"

#define FRUITLESS  10			/* steps by chance before a sweep */
#define SPINS_MAX  2000	/* sweeps at which somebody wants to be called at once, and does nothing */
#define IDLE_MAX   5000			/* jumps in time without a step that did anything */
#define OLD_NS	   (200 * SEC)		/* an I/O as old as that, with nothing disturbing, hangs */
#define JUMP_NS	   (3600 * SEC)
#define JUMP_STEPS 4000				/* one in so many */

enum what { REQUEST, REPLY, POLL };

struct step {
	uint32_t port;
	enum what what;
	bool any;
};

static void step_node(struct sim *s, struct node *n, void *arg)
{
	struct step *step = arg;
	struct peer_port *pp = &n->p->ports[step->port];

	(void)s;
	switch (step->what) {
	case REQUEST:
		step->any = peer_port_step_request(pp);
		break;
	case REPLY:
		step->any = peer_port_step_reply(pp);
		break;
	case POLL:
		n->next_ns[step->port] = peer_port_step_poll(pp);
		break;
	}
}

static bool is_asleep(const struct sim *s, const struct node *n, uint32_t port)
{
	return s->nr_steps < s->asleep.until && n == &s->node[s->asleep.node] &&
	       port == s->asleep.port;
}

/* Whether it is still the round of the step before. One that was awaited is another. */
static bool round_goes_on(struct sim *s, const struct node *n, uint32_t port, enum what what)
{
	return (what != POLL || n->next_ns[port] == 0) && rng_one_in(&s->clock, 2);
}

static bool step_port(struct sim *s, struct node *n, uint32_t i, enum what what)
{
	struct step step = { .port = i, .what = what };

	if (is_asleep(s, n, i)) {
		s->nr_steps++;
		return false;
	}
	if (what == POLL && n->next_ns[i] > s->now && !(i == 0 && gate_called(n->p)))
		return false;
	if (!round_goes_on(s, n, i, what))
		node_set_time(s, n, i);
	s->nr_steps++;
	if (!node_call(s, n, step_node, &step))
		return true;
	n->ran |= step.any || what == POLL;
	world_keep_tiny(s);
	if (step.any)
		n->next_ns[i] = 0;	/* a poll is due */
	return step.any;
}

static bool step_client(struct sim *s, struct client *c, bool send)
{
	if (!send)
		return client_replies(s, c);
	if (s->issuing && script_next(s))
		return client_issue(s, c);
	xseg_port_flush(c->port);
	return false;
}

/* One step by chance; true when it did anything, or may have. */
static bool step_any(struct sim *s)
{
	uint32_t ports = 0, dice;

	for (uint32_t i = 0; i < NR_NODES; i++)
		ports += s->node[i].serving ? s->node[i].p->nr_ports : 0;
	dice = rng_below(&s->rng, ports * 3 + s->plan.nr_clients * 2 + (s->values ? 4 : 0));
	if (dice >= ports * 3) {
		dice -= ports * 3;
		if (dice >= s->plan.nr_clients * 2)
			return dice % 2 ? values_replies(s) : values_flush(s);
		return s->client[dice / 2].port && step_client(s, &s->client[dice / 2], dice & 1);
	}
	for (uint32_t i = 0; i < NR_NODES; i++) {
		uint32_t nr = s->node[i].serving ? s->node[i].p->nr_ports : 0;

		if (dice < nr * 3)
			return step_port(s, &s->node[i], dice / 3, dice % 3);
		dice -= nr * 3;
	}
	return false;
}

/* Everybody's turn. True when somebody did something. */
static bool sweep_once(struct sim *s)
{
	bool any = false;

	node_tend(s);
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		if (s->client[i].port) {
			xseg_port_flush(s->client[i].port);
			any |= client_replies(s, &s->client[i]);
			if (!any)
				any = step_client(s, &s->client[i], true);
		}
	for (uint32_t i = 0; i < NR_NODES; i++)
		for (uint32_t k = 0; s->node[i].serving && k < s->node[i].p->nr_ports; k++) {
			any |= step_port(s, &s->node[i], k, POLL);
			if (s->node[i].serving)
				any |= step_port(s, &s->node[i], k, REQUEST);
			if (s->node[i].serving)
				any |= step_port(s, &s->node[i], k, REPLY);
		}
	values_flush(s);
	any |= values_replies(s);
	admin_replies(s);
	return keeper_tend(s) || any;
}

static bool somebody_has_work(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		for (uint32_t k = 0; s->node[i].serving && k < s->node[i].p->nr_ports; k++)
			if (xseg_port_has_work(s->node[i].p->ports[k].port))
				return true;
	return false;
}

/* What a poll publishes is seen by others at their next turn, and may be passed on from there. A
 * peer that is stopping leaves its requests where they are: hence the bound. */
static bool sweep(struct sim *s)
{
	/* each peer may be the next to pass something on, the one beside volumed, too */
	uint32_t nr = NR_STACKED + (s->plan.node[NODE_BESIDE] != 0) +
		      (s->plan.node[NODE_KVD] != 0);

	for (uint32_t i = 0; i <= nr || (i < 8 * nr && somebody_has_work(s)); i++)
		if (sweep_once(s))
			return true;
	return false;
}

static struct sim *kicked;		/* whose peers kick */

void __wrap_peer_port_kick(struct peer_port *pp);
void __wrap_peer_port_kick(struct peer_port *pp)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (kicked->node[i].p == pp->peer)
			kicked->node[i].next_ns[pp->nr] = 0;
}

/* As a thread that has entered an object, and is not run before others have left it more to do
 * there. */
bool __real_xworkq_run(struct xworkq *q, unsigned budget, void *ctx);
bool __wrap_xworkq_run(struct xworkq *q, unsigned budget, void *ctx);
bool __wrap_xworkq_run(struct xworkq *q, unsigned budget, void *ctx)
{
	bool stalls = kicked && kicked->plan.threads[NODE_CACHED] > 1 &&
		      rng_one_in(&kicked->rng, 8);

	return __real_xworkq_run(q, stalls ? 0 : budget, ctx);
}

void sched_kick(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		memset(s->node[i].next_ns, 0, sizeof(s->node[i].next_ns));
}

void sched_sleep(struct sim *s, const struct item *it)
{
	s->asleep.node = it->with;
	s->asleep.port = it->calls;
	s->asleep.until = s->nr_steps + it->down;
}

void sched_steer(struct sim *s, const struct item *it)
{
	struct node *n = &s->node[it->node];
	uint32_t nr = n->serving ? n->p->nr_ports : 0;

	if (nr > 1)
		xseg_port_steer(n->p->ports[it->nr % nr].port, n->p->ports[it->first % nr].port);
}

static uint64_t next_deadline(const struct sim *s)
{
	/* healing waits for the administrator's line before it to be answered */
	uint64_t next = s->faulty && (s->heal_ns > s->now || !s->admin.r) ? s->heal_ns : PEER_NEVER;

	next = next < keeper_due_ns(s) ? next : keeper_due_ns(s);
	for (uint32_t i = 0; i < NR_NODES; i++)
		for (uint32_t k = 0; s->node[i].serving && k < s->node[i].p->nr_ports; k++)
			if (k == 0 && gate_called(s->node[i].p))
				next = s->now;
			else if (s->node[i].next_ns[k] < next)
				next = s->node[i].next_ns[k];
	return next;
}

/* ---- hangs ---- */

static void dump(struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++) {
		struct node *n = &s->node[i];

		if (!s->plan.node[i])
			continue;
		printf("  %s: %s", node_name(i),
			n->serving ? "serves"
			: n->p     ? "is opening"
				   : "is down");
		for (uint32_t k = 0; n->serving && k < n->p->nr_ports; k++)
			printf("; port %u: %u of %u requests free, wants to be called %s", k,
				xseg_port_nr_free(n->p->ports[k].port),
				xseg_port_nr_requests(n->p->ports[k].port),
				n->next_ns[k] == PEER_NEVER ? "never"
				: n->next_ns[k] <= s->now   ? "now"
							    : "later");
		printf("\n");
	}
	client_dump(s);
	values_dump(s);
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (is_cache(i) && s->node[i].serving)
			cached_dump(s->node[i].p, stdout);
}

static void hang(struct sim *s, const char *how)
{
	printf("stuck at %" PRIu64 " us:\n", s->now / 1000);
	dump(s);
	sim_fail(s, "%s", how);
}

static bool too_old(const struct sim *s)
{
	for (uint32_t i = 0; i < s->plan.nr_clients; i++)
		for (uint32_t k = 0; k < s->plan.depth; k++) {
			const struct io *io = &s->client[i].io[k];
			uint64_t since = io->issued_ns > s->settled_ns ? io->issued_ns
								       : s->settled_ns;

			if (io->r && !io->kept && s->now > since + OLD_NS)
				return true;
		}
	return values_too_old(s, OLD_NS);
}

/* A peer that was killed and begins again after some more steps. What waits for it does not hang,
 * though time may go on by an hour in one of these steps, to a moment that another peer awaits. */
static bool somebody_is_down(const struct sim *s)
{
	for (uint32_t i = 0; i < NR_NODES; i++)
		if (s->plan.node[i] && !s->node[i].p && s->node[i].up_step != UINT64_MAX)
			return true;
	return false;
}

/* Nothing can be done now: when next? */
static void pass_time(struct sim *s, uint32_t *spins, uint32_t *idle)
{
	uint64_t next = next_deadline(s);

	s->step += 64;
	if (s->asleep.until) {
		/* nobody else can do anything; or it woke up in the sweep, after its turn */
		s->asleep.until = 0;
		return;
	}
	if (next == PEER_NEVER && clients_keep(s))
		return;
	if (next == PEER_NEVER) {
		for (uint32_t i = 0; i < NR_NODES; i++)
			if (s->plan.node[i] && !s->node[i].serving && !s->leaving) {
				if (++*idle > IDLE_MAX)
					hang(s, "a peer that was killed does not come back");
				return;
			}
		hang(s, "nobody has anything to do, and not all is done");
	}
	if (next <= s->now) {
		s->now += 200;
		if (++*spins > SPINS_MAX)
			hang(s, "a peer wants to be called again and again, and does nothing");
		return;
	}
	s->now = next;
	if (++*idle > IDLE_MAX || (!s->faulty && !somebody_is_down(s) && too_old(s)))
		hang(s, "time goes on, and nothing is done");
}

/* What is as old as that then does not hang: nobody could do anything about it. */
static void jump(struct sim *s)
{
	sim_log(s, "the clock goes on by an hour");
	s->now += JUMP_NS;
	s->settled_ns = s->now;
}

void sched_run(struct sim *s, bool (*done)(struct sim *s))
{
	uint32_t fruitless = 0, spins = 0, idle = 0;

	kicked = s;
	while (!done(s)) {
		s->step++;
		s->now += rng_below(&s->rng, 1500);
		if (s->plan.jumps && rng_one_in(&s->clock, JUMP_STEPS))
			jump(s);
		world_check(s);
		if (s->step % s->check_every == 0)
			world_check_segment(s);
		world_check_polls(s);
		chaos(s);
		if (step_any(s)) {
			fruitless = spins = idle = 0;
			continue;
		}
		if (++fruitless < FRUITLESS)
			continue;
		fruitless = 0;
		if (sweep(s))
			spins = idle = 0;
		else if (!done(s))
			pass_time(s, &spins, &idle);
	}
}
