/* throttle - how fast the store takes dirty data.
 *
 * The rate is what flushes wrote by the time in which at least one was out: it is that of the store, however little there is
 * to flush, and the last one known when there is nothing. Both sums are halved whenever the time has grown to BUSY_MAX_NS,
 * so older times count for less and less: half of a change shows after about 0.2 s. A flush that fails took its time and
 * wrote nothing. Flushes of zeroes move no data, and do not count. While too little is known the rate is 0: unknown.
 *
 * Contract: any port's thread, inside an object or outside of any. The throttle's lock is a leaf.
 *
 * Invariants:
 *   H1  out is the number of flush children with data that are out, of all ports
 */
#include <assert.h>

#include "peers/cached/cached.h"

#define BUSY_MIN_NS 10000000ull
#define BUSY_MAX_NS 400000000ull

void throttle_init(struct throttle *t)
{
	pthread_mutex_init(&t->lock, NULL);
}

/* ---- the store's rate ---- */

/* Under the lock. */
static void meter_advance(struct throttle *t, uint64_t now_ns)
{
	if (now_ns > t->seen_ns) {	/* ports do not look at the clock at the same time */
		t->busy_ns += t->out ? now_ns - t->seen_ns : 0;
		t->seen_ns = now_ns;
	}
	for (; t->busy_ns >= BUSY_MAX_NS; t->busy_ns /= 2)
		t->bytes -= t->bytes / 2;	/* never 0 again: that a store stalls does not make it unknown */
}

/* Under the lock. Bytes a second; 0: unknown. */
static uint64_t meter_rate(struct throttle *t, uint64_t now_ns)
{
	meter_advance(t, now_ns);
	return t->busy_ns < BUSY_MIN_NS ? 0 : t->bytes * 1000000 / (t->busy_ns / 1000);
}

void throttle_flush_out(struct cport *ps)
{
	struct throttle *t = &ps->cache->throttle;

	pthread_mutex_lock(&t->lock);
	meter_advance(t, ps->pp->now_ns);
	t->out++;
	pthread_mutex_unlock(&t->lock);
}

void throttle_flush_back(struct cport *ps, uint64_t bytes)
{
	struct throttle *t = &ps->cache->throttle;

	pthread_mutex_lock(&t->lock);
	assert(t->out > 0);
	meter_advance(t, ps->pp->now_ns);
	t->out--;
	t->bytes += bytes;
	pthread_mutex_unlock(&t->lock);
}

uint64_t throttle_store_rate(struct cport *ps)
{
	struct throttle *t = &ps->cache->throttle;
	uint64_t rate;

	pthread_mutex_lock(&t->lock);
	rate = meter_rate(t, ps->pp->now_ns);
	pthread_mutex_unlock(&t->lock);
	return rate;
}
