/* no_tick - see no_tick.h. */
#include "tests/rig/no_tick.h"

#include "peers/common/runtime/reactor_inside.h"

_Atomic uint64_t no_tick_sleeps, no_tick_overslept;
_Atomic uint32_t no_tick_asleep;

/* When the first of its ports wants to be called. */
static uint64_t wanted_ns(const struct reactor *r)
{
	uint64_t first_ns = PEER_NEVER;

	for (uint32_t i = 0; i < r->nr_seats; i++)
		first_ns = peer_earlier(first_ns,
			atomic_load_explicit(&r->seat[i]->next_ns, memory_order_relaxed));
	return first_ns;
}

bool __real_xseg_bell_wait(
	struct xport *port, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg);
bool __wrap_xseg_bell_wait(
	struct xport *port, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg);

bool __wrap_xseg_bell_wait(
	struct xport *port, uint64_t timeout_ns, bool (*looks)(void *arg), void *arg)
{
	struct reactor *r = arg;
	uint64_t wanted = wanted_ns(r);
	bool rung;

	if (timeout_ns && wanted < r->until_ns)
		atomic_fetch_add_explicit(&no_tick_overslept, 1, memory_order_relaxed);
	if (r->until_ns != r->tick_ns || wanted <= r->tick_ns)
		return __real_xseg_bell_wait(port, timeout_ns, looks, arg);
	if (wanted != PEER_NEVER)
		return __real_xseg_bell_wait(
			port, timeout_ns + (wanted - r->tick_ns), looks, arg);
	atomic_fetch_add_explicit(&no_tick_sleeps, 1, memory_order_relaxed);
	atomic_fetch_add(&no_tick_asleep, 1);
	rung = __real_xseg_bell_wait(port, NO_TICK_FOR_EVER, looks, arg);
	atomic_fetch_sub(&no_tick_asleep, 1);
	return rung;
}
