/* trouble - what the store fails now: since when, and why.
 *
 * Flushes, FLUSHes of the store and loads are apart. A flush that fails is tried again every 5
 * seconds at most, so its trouble is over when no object waits for that. The others are not tried
 * again, so their trouble is over when the next one succeeds.
 *
 * Contract: any thread. The words of one trouble are written one by one: who reads them between two
 * writes sees an older error or time, which only people read.
 */
#include "peers/cached/store/store.h"
#include "peers/common/clock/clock.h"

void trouble_note(struct cport *ps, enum trouble_kind kind, int error)
{
	struct trouble *t = &store_of(ps->cache)->trouble[kind];
	uint64_t now = ps->pp->now_ns, none = 0;

	if (clock_since(atomic_load_explicit(&t->last_ns, memory_order_relaxed), now) >
		TROUBLE_STALE_NS)
		atomic_store_explicit(&t->since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&t->error, error, memory_order_relaxed);
	atomic_store_explicit(&t->last_ns, now, memory_order_relaxed);
	atomic_compare_exchange_strong_explicit(
		&t->since_ns, &none, now ? now : 1, memory_order_relaxed, memory_order_relaxed);
}

void trouble_over(struct cached *k, enum trouble_kind kind)
{
	struct trouble *t = &store_of(k)->trouble[kind];

	if (atomic_load_explicit(&t->since_ns, memory_order_relaxed))
		atomic_store_explicit(&t->since_ns, 0, memory_order_relaxed);
}

bool trouble_get(const struct cport *ps, enum trouble_kind kind, int *error, uint64_t *ns)
{
	struct trouble *t = &store_of(ps->cache)->trouble[kind];
	uint64_t since = atomic_load_explicit(&t->since_ns, memory_order_relaxed),
		 last = atomic_load_explicit(&t->last_ns, memory_order_relaxed),
		 now = ps->pp->now_ns;

	*error = atomic_load_explicit(&t->error, memory_order_relaxed);
	*ns = clock_since(since, now);
	return since && clock_since(last, now) <= TROUBLE_STALE_NS;
}
