/* throttle - slows writers to the store's rate while the cache fills with dirty data.
 *
 * Up to dirty_high writers run freely. Above it, newly dirty data is admitted at
 *
 *      the store's rate * (full - high) / (dirty - high), at least the store's rate
 *
 * At the mark that is no limit. It falls to the store's own rate at `full`, when all but a little
 * is dirty. So no writer is stopped dead, and none is slower than the store alone would be. Slowing
 * begins at the mark because flushing begins there. Below the mark it helps no writer.
 *
 * The little is an eighth of the space above the mark. From there on, buckets become clean as fast
 * as they become dirty. So some pages are left for readers, and writers seldom have to wait for a
 * page as well. If the measured rate of the store is too low, less becomes dirty than is flushed.
 * The factor then grows until both are the same. So an error costs some of the room above the mark,
 * not speed.
 *
 * A write is charged with the pages that it makes dirty. A bucket that is DIRTY already costs
 * nothing. A bucket that is being written does, as the flush in flight will not make it clean.
 * Zeroes have no page. Some requests are not slowed:
 *
 *   - writes that wait for the store anyway, at its pace (FUA, policies other than write-back)
 *   - copies, which have pages
 *   - a predecessor's requests, as others wait for them
 *
 * The waiting requests stand in one queue of the cache. Any port's poll lets the first one go when
 * its time has come, by the rate at that moment. Polls come with every reply of the store, and when
 * the port asked for one.
 *
 * The store's rate is the data that flushes wrote, divided by the time in which at least one was in
 * flight. So it is the store's rate even if there is little to flush. If there is nothing to flush,
 * it is the last known one. Both sums are halved whenever the time has grown to BUSY_MAX_NS, so
 * older times count for less and less. Half of a change shows after about 0.2 s. A flush that fails
 * took its time and wrote nothing. Flushes of zeroes move no data, and do not count. While too
 * little is known the rate is 0, which means unknown, and no writer is slowed.
 *
 * Contract: any port's thread, inside an object or outside of any, as cached.h says. The throttle's
 * lock is a leaf.
 *
 * Invariants:
 *   H1  `out` is the number of flush children with data that are in flight, of all ports.
 *   H2  A waiting request has no page, no chunk and no child. Waiting requests are served in
 *       order, and newcomers that cost something queue behind them.
 *   H3  No request waits here for longer than WAIT_MAX_NS, whatever the store does.
 */
#include <assert.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"

#define BUSY_MIN_NS 10000000ull
#define BUSY_MAX_NS 400000000ull
#define WAIT_MAX_NS 200000000ull
/* what was not used of so long may be used later: polls are late at times */
#define SLACK_NS    10000000ull
#define RUN_BATCH   16
#define RAMP	    1024u
#define SPARE_PART  8u			/* of what lies above the mark is left, if it goes */

void throttle_init(struct throttle *t)
{
	pthread_mutex_init(&t->lock, NULL);
	t->tail = &t->head;
}

void throttle_fini(struct throttle *t)
{
	pthread_mutex_destroy(&t->lock);
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
		/* never 0 again: that a store stalls does not make it unknown */
		t->bytes -= t->bytes / 2;
}

uint64_t throttle_store_rate(struct throttle *t, uint64_t now_ns)
{
	meter_advance(t, now_ns);
	return t->busy_ns < BUSY_MIN_NS ? 0 : t->bytes * 1000000 / (t->busy_ns / 1000);
}

void throttle_flush_out(struct cport *ps)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;

	pthread_mutex_lock(&t->lock);
	meter_advance(t, ps->pp->now_ns);
	t->out++;
	pthread_mutex_unlock(&t->lock);
}

void throttle_flush_back(struct cport *ps, uint64_t bytes)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;

	pthread_mutex_lock(&t->lock);
	assert(t->out > 0);
	meter_advance(t, ps->pp->now_ns);
	t->out--;
	t->bytes += bytes;
	pthread_mutex_unlock(&t->lock);
}

/* ---- pacing ---- */

static uint32_t high_pages(const struct cached *k, uint32_t all)
{
	return (uint32_t)((uint64_t)all *
			  atomic_load_explicit(&flush_of(k)->high_percent, memory_order_relaxed) /
			  100);
}

/* Pages, of `all`, with data that the store lacks. Dirty zeroes have none, and not all that is
 * taken is dirty: so it is the less of the two. */
static uint32_t dirty_pages(struct cached *k, uint32_t all)
{
	uint32_t available = pages_available(k), taken = available < all ? all - available : 0;
	uint64_t dirty = cached_total(k, CC_DIRTY_BYTES) / BUCKET_SIZE;

	return dirty < taken ? (uint32_t)dirty : taken;
}

/* Under the lock. Bytes a second that may become dirty; 0: no limit, as while the store's rate is
 * unknown. */
static uint64_t pace(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t all = data_pages(k), high = high_pages(k, all),
		 full = all - (all - high) / SPARE_PART;
	uint32_t dirty = dirty_pages(k, all);
	uint64_t store = throttle_store_rate(&flush_of(k)->throttle, ps->pp->now_ns), part;

	if (dirty <= high)
		return 0;
	if (dirty >= full)
		return store;
	part = (uint64_t)(dirty - high) * RAMP / (full - high);
	return store * RAMP / (part ? part : 1);
}

/* Under the lock: when the next one may go. */
static uint64_t due_ns(struct cport *ps)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;
	uint64_t rate = pace(ps);

	return rate ? t->paid_ns + t->debt_bytes * 1000000000 / rate : 0;
}

/* Under the lock: one that was due then goes now. */
static void pay(struct throttle *t, uint64_t due, uint64_t now_ns, uint32_t bytes)
{
	if (due > now_ns)
		due = now_ns;
	t->paid_ns = due + SLACK_NS > now_ns ? due : now_ns - SLACK_NS;
	t->debt_bytes = bytes;
}

/* Inside the object. */
static uint32_t cost(struct cport *ps, const struct creq *c)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < c->nr; i++) {
		uint64_t w = slot_get(ps->cache, c->obj, c->first + i);

		nr += slot_state(w) != BUCKET_DIRTY || !slot_has_page(w);
	}
	return nr * BUCKET_SIZE;
}

static bool is_slowed(const struct creq *c)
{
	return c->r->op == XSEG_OP_WRITE && c->policy->answers_before_store && !c->fua &&
	       !c->recovered;
}

/* Under the lock. */
static void enqueue(struct throttle *t, struct creq *c)
{
	assert(c->nr_pages == 0 && c->change.edges_out == 0);	/* H2 */
	creq_set_state(c, CREQ_WAITS_THROTTLE);
	c->queue = NULL;
	c->next = NULL;
	*t->tail = c;
	t->tail = &c->next;
	atomic_fetch_add_explicit(&t->nr, 1, memory_order_relaxed);
}

/* Under the lock: the first one. */
static void dequeue(struct throttle *t)
{
	creq_set_state(t->head, CREQ_RUNNING);
	t->head = t->head->next;
	if (!t->head)
		t->tail = &t->head;
	atomic_fetch_sub_explicit(&t->nr, 1, memory_order_relaxed);
}

bool throttle_holds(struct cport *ps, struct creq *c)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;
	uint64_t now = ps->pp->now_ns, due;
	bool holds;

	if (c->change.paced)
		return false;
	c->change.paced = true;
	if (!atomic_load_explicit(&t->on, memory_order_relaxed) || !is_slowed(c))
		return false;
	c->change.debt_bytes = cost(ps, c);
	if (c->change.debt_bytes == 0)
		return false;
	c->change.until_ns = now + WAIT_MAX_NS;
	pthread_mutex_lock(&t->lock);
	due = due_ns(ps);
	holds = t->head || due > now;
	if (holds)
		enqueue(t, c);
	else
		pay(t, due, now, c->change.debt_bytes);
	pthread_mutex_unlock(&t->lock);
	if (holds) {
		flush_port(ps)->throttled = true;
		count_wait(ps, WAIT_THROTTLE);
	}
	return holds;
}

bool throttle_drop(struct cport *ps, struct creq *c)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;
	struct creq **at = &t->head;

	if (!throttle_busy(ps->cache))
		return false;
	pthread_mutex_lock(&t->lock);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at) {
		*at = c->next;
		if (!*at)
			t->tail = at;
		atomic_fetch_sub_explicit(&t->nr, 1, memory_order_relaxed);
		pthread_mutex_unlock(&t->lock);
		return true;
	}
	pthread_mutex_unlock(&t->lock);
	return false;
}

/* Takes the first one if it may go; else *next_ns says when to look again. */
static struct creq *take_due(struct cport *ps, uint64_t *next_ns)
{
	struct throttle *t = &flush_of(ps->cache)->throttle;
	uint64_t now = ps->pp->now_ns, due;
	struct creq *c;

	*next_ns = PEER_NEVER;
	pthread_mutex_lock(&t->lock);
	c = t->head;
	if (c) {
		due = due_ns(ps);
		if (due > c->change.until_ns)
			due = c->change.until_ns;
		if (due <= now) {
			dequeue(t);
			pay(t, due, now, c->change.debt_bytes);
		} else {
			*next_ns = due;
			c = NULL;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return c;
}

uint64_t throttle_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t all = data_pages(k);
	bool on = dirty_pages(k, all) > high_pages(k, all);
	uint64_t next_ns;
	struct creq *c;

	flush_port(ps)->throttled = false;
	if (atomic_load_explicit(&flush_of(k)->throttle.on, memory_order_relaxed) != on)
		atomic_store_explicit(&flush_of(k)->throttle.on, on, memory_order_relaxed);
	if (!throttle_busy(k))
		return PEER_NEVER;
	for (unsigned n = 0; n < RUN_BATCH; n++) {
		c = take_due(ps, &next_ns);
		if (!c)
			return next_ns;
		object_push(ps, c->obj, &c->work);
	}
	return ps->pp->now_ns;
}
