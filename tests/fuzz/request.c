/* request - an evil client beside volumed, cached and memd, and an honest one.
 *
 * The first byte chooses the stack and how evil the client is. Then each piece of the input chooses
 * an event: the evil client acts, peers take steps, time passes, peers are killed and started
 * again, the honest client writes and reads.
 *
 * At the end, if the evil client kept to its own: every request of the honest one is answered, its
 * volume has its writes, and cached_check() holds. In any case no peer crashes or spins: all comes
 * to rest in bounded time.
 */
#include <assert.h>

#include "peers/cached/life/cached.h"
#include "tests/fuzz/evil.h"
#include "tests/fuzz/honest.h"

#define STACK_VOLUMED 1u
#define ANYWHERE      2u
#define THROUGH	      4u
#define REST_ROUNDS   20000u

/* ---- the stack ---- */

static void kill_and_start(struct input *in)
{
	enum rig_node n = (enum rig_node)in_below(in, RIG_NODES);

	if (rig.node[n].p && in_u8(in) % 2)
		rig_kill(n);
	if (rig.node[n].cls && !rig.node[n].p)
		rig_start(n);
}

static void go_on(struct evil *e)
{
	uint8_t what = in_u8(&e->in);

	switch (what % 8) {
	case 0:
	case 1:
		rig_step((enum rig_node)(what / 8 % RIG_NODES),
			(enum rig_what)(what / 32 % RIG_NR_WHAT));
		break;
	case 2:
		rig_settle(what / 8 + 1u);
		break;
	case 3:
		rig.now_ns += (uint64_t)what * what * RIG_MS / 16;
		break;
	case 4:
		honest_act(&e->in, !e->anywhere);
		break;
	case 5:
		if (what >= 200)
			kill_and_start(&e->in);
		else
			rig_round();
		break;
	default:
		evil_act(e);
	}
}

/* Everybody who is down comes back, the evil one leaves. */
static void come_to_rest(struct evil *e)
{
	for (unsigned n = 0; n < RIG_NODES; n++)
		if (rig.node[n].cls && !rig.node[n].p && !rig_start(n))
			assert(e->anywhere);
	rig_settle(50);
	if (rig.client[RIG_EVIL])
		rig_client_close(RIG_EVIL, XSEG_CLOSE_ABANDON);
	xseg_sweep(rig.seg);
	rig_settle(REST_ROUNDS);
	if (e->anywhere)
		return;
	honest_verify();
	cached_check(rig.node[RIG_CACHED].p);
}

static void count_problem(const char *problem, void *arg)
{
	(void)problem;
	(void)arg;
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct evil e = { .in = { data, size } };
	uint8_t how = in_u8(&e.in);

	e.anywhere = how & ANYWHERE;
	honest_stack(
		how & STACK_VOLUMED, how & THROUGH ? "policy=write-through" : "dirty_age=1s", &e);
	while (e.in.left)
		go_on(&e);
	come_to_rest(&e);
	xseg_check(rig.seg, false, count_problem, NULL);
	rig_end();
}
