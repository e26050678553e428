/* sim_sched_test - the simulator's scheduler (tests/sim/sched.c) tells a hang from a peer that is
 * down for some steps.
 *
 * It is linked with the scheduler alone. The rest of the simulator is here: two peers of which one
 * is down, and the other awaits nothing but a moment that is far away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "peers/common/runtime/gate.h"
#include "tests/sim/sim.h"
#include "xtypes/xworkq.h"

#define HOUR_NS (3600ull * 1000000000)

static struct sim s;
static struct peer kvd, memd;
static jmp_buf failed;

/* ---- what the scheduler calls ---- */

void sim_fail(struct sim *sim, const char *fmt, ...)
{
	(void)sim;
	(void)fmt;
	longjmp(failed, 1);
}

void node_tend(struct sim *sim)
{
	struct node *n = &sim->node[NODE_MEMD];

	if (n->p || sim->step < n->up_step)
		return;
	n->p = &memd;
	n->serving = true;
	sim->settled_ns = sim->now;
}

void chaos(struct sim *sim)
{
	node_tend(sim);
}

/* Nothing can be done, in whichever peer. */
bool node_call(struct sim *sim, struct node *n, void (*fn)(struct sim *, struct node *, void *),
	void *arg)
{
	(void)sim, (void)n, (void)fn, (void)arg;
	return true;
}

/* One that was sent at the beginning waits for its answer. */
bool values_too_old(const struct sim *sim, uint64_t age_ns)
{
	return sim->now > sim->settled_ns + age_ns;
}

uint64_t keeper_due_ns(const struct sim *sim)
{
	(void)sim;
	return PEER_NEVER;
}

void sim_log(struct sim *sim, const char *fmt, ...)
{
	(void)sim, (void)fmt;
}

#define NOTHING(name, ...) \
	void name(__VA_ARGS__) {}
#define NO(name, ...) \
	bool name(__VA_ARGS__) { return false; }
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(node_set_time, struct sim *sim, struct node *n, uint32_t port)
NOTHING(admin_replies, struct sim *sim)
NOTHING(client_dump, struct sim *sim)
NOTHING(values_dump, const struct sim *sim)
NOTHING(world_check, struct sim *sim)
NOTHING(world_check_segment, struct sim *sim)
NOTHING(world_check_polls, struct sim *sim)
NOTHING(world_keep_tiny, struct sim *sim)
NOTHING(cached_dump, struct peer *p, FILE *out)
NOTHING(xseg_port_flush, struct xport *port)
NOTHING(xseg_port_steer, struct xport *port, struct xport *to)
NO(client_issue, struct sim *sim, struct client *c)
NO(client_replies, struct sim *sim, struct client *c)
NO(clients_keep, const struct sim *sim)
NO(gate_called, struct peer *p)
NO(is_cache, enum node_id id)
NO(keeper_tend, struct sim *sim)
NO(peer_port_step_request, struct peer_port *pp)
NO(peer_port_step_reply, struct peer_port *pp)
NO(values_flush, struct sim *sim)
NO(values_replies, struct sim *sim)
NO(xseg_port_has_work, struct xport *port)
uint64_t peer_port_step_poll(struct peer_port *pp) { return PEER_NEVER; }
uint32_t xseg_port_nr_free(struct xport *port) { return 0; }
uint32_t xseg_port_nr_requests(struct xport *port) { return 0; }
struct item *script_next(struct sim *sim) { return NULL; }
const char *node_name(enum node_id id) { return "a peer"; }
bool __real_xworkq_run(struct xworkq *q, unsigned budget, void *ctx);
bool __real_xworkq_run(struct xworkq *q, unsigned budget, void *ctx) { return false; }

/* ---- tests ---- */

/* kvd awaits a moment an hour away, and memd is down until that step. */
static int begin(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	kvd.nr_ports = memd.nr_ports = 1;
	s.plan.node[NODE_KVD] = s.plan.node[NODE_MEMD] = true;
	s.check_every = 1;
	s.now = s.settled_ns = HOUR_NS;
	s.node[NODE_KVD].p = &kvd;
	s.node[NODE_KVD].serving = true;
	s.node[NODE_KVD].next_ns[0] = s.now + HOUR_NS;
	s.node[NODE_MEMD].next_ns[0] = PEER_NEVER;
	s.node[NODE_MEMD].up_step = 500;
	return 0;
}

static bool memd_serves(struct sim *sim)
{
	return sim->node[NODE_MEMD].serving;
}

static bool never(struct sim *sim)
{
	(void)sim;
	return false;
}

static bool hangs(bool (*done)(struct sim *sim))
{
	if (setjmp(failed))
		return true;
	sched_run(&s, done);
	return false;
}

static void a_peer_that_is_down_for_some_steps_is_no_hang(void **state)
{
	(void)state;
	assert_false(hangs(memd_serves));
	assert_true(s.step >= 500);
}

static void one_that_does_not_come_back_is(void **state)
{
	(void)state;
	s.node[NODE_MEMD].up_step = UINT64_MAX;
	assert_true(hangs(memd_serves));
}

static void what_is_not_done_when_it_is_back_is(void **state)
{
	(void)state;
	assert_true(hangs(never));
	assert_true(memd_serves(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_peer_that_is_down_for_some_steps_is_no_hang, begin),
		cmocka_unit_test_setup(one_that_does_not_come_back_is, begin),
		cmocka_unit_test_setup(what_is_not_done_when_it_is_back_is, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
