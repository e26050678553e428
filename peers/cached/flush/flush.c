/* flush - writes dirty buckets back: flush children, and the flusher, which takes objects from the
 * list of dirty ones (dirty_list.c).
 *
 * Order. Two writes of one bucket are never in flight at the same time. While an older page is
 * being written, a newer one stands in the slot as DIRTY with INFLIGHT. It is not started before
 * the reply for the older one. (One flush for each object would give the same order, but neighbours
 * would wait.)
 *
 * Zeroes go out as a DISCARD. If all of the object is zeroes, the store deletes the object. The
 * exceptions are objects of the catalogue, objects with loads or flushes in flight, and objects
 * with a FUA writer. The object is shut until the reply, as a write that came meanwhile could be
 * deleted with it. The flush goes out run by run, so each further run deletes again, and finds
 * nothing. If some of its zeroes have left the cache meanwhile, the rest is discarded, which makes
 * no object.
 *
 * Contract: flush_start(), flush_evict(), flush_done() and flush_job() run inside the object.
 * flusher_run() runs outside of any.
 *
 * Invariants:
 *   F3  data is answered as flushed only after the store has answered it
 */
#include <assert.h>
#include <errno.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/events.h"
#include "peers/cached/policy/policy.h"
#include "xtypes/xkill.h"

#define BACKOFF_MIN_NS 100000000ull
#define BACKOFF_MAX_NS 5000000000ull
#define FLUSHES_MIN    4u		/* in flight for each port, in the background */
#define EVICTIONS_MIN  2u	/* of one object that makes room, while nobody waits for that */
#define RATE_SLICES    20u		/* flush_rate is kept over this part of a second */

/* ---- flush children ---- */

static bool startable(uint64_t w)
{
	return slot_state(w) == BUCKET_DIRTY && !(w & SLOT_INFLIGHT);
}

static uint64_t dirty_limit(struct cached *k, const _Atomic uint32_t *percent)
{
	return (uint64_t)data_pages(k) * BUCKET_SIZE *
	       atomic_load_explicit(percent, memory_order_relaxed) / 100;
}

static bool is_background(enum flush_why why)
{
	return why == FLUSH_WATERMARK || why == FLUSH_AGE;
}

/* ---- flush_rate ---- */

/* Bytes a second; 0: no limit. What somebody waits for has none, and does not count: writers that
 * are slowed wait, too. */
static uint64_t rate_of(struct cached *k, enum flush_why why)
{
	return is_background(why) && !throttle_busy(k)
		       ? atomic_load_explicit(&flush_of(k)->flush_bytes_per_s, memory_order_relaxed)
		       : 0;
}

/* When the next flush may start. */
static uint64_t rate_ns(struct cport *ps, enum flush_why why)
{
	return rate_of(ps->cache, why)
		       ? atomic_load_explicit(&flush_of(ps->cache)->rate_ns, memory_order_relaxed)
		       : 0;
}

static void charge_rate(struct cport *ps, enum flush_why why, uint32_t bytes)
{
	struct cached *k = ps->cache;
	uint64_t rate = rate_of(k, why),
		 at = atomic_load_explicit(&flush_of(k)->rate_ns, memory_order_relaxed);
	uint64_t now = ps->pp->now_ns, next;

	if (rate == 0)
		return;
	do
		next = (at > now ? at : now) + bytes * 1000000000ull / rate;
	while (!atomic_compare_exchange_weak_explicit(
		&flush_of(k)->rate_ns, &at, next, memory_order_relaxed, memory_order_relaxed));
}

/* How many buckets one flush may have. A rate is kept smoothly: none has more than it allows in a
 * RATE_SLICES-th of a second. */
static uint32_t run_limit(struct cached *k, enum flush_why why)
{
	uint64_t rate = rate_of(k, why), nr = rate / RATE_SLICES / BUCKET_SIZE;

	if (rate == 0 || nr > RUN_MAX)
		return RUN_MAX;
	return nr ? (uint32_t)nr : 1;
}

/* What a bucket bears on its way to the store, and back if that failed. */
static uint64_t kept_flags(uint64_t w)
{
	uint64_t promise = slot_is_unpromised(w) ? SLOT_PROMISE & ~SLOT_REFUSED : 0;

	return w & (SLOT_GEN | SLOT_REF | SLOT_UNKEPT | promise);
}

/* The object is nothing but zeroes, and nothing of it is at the store. The catalogue's stay. */
static bool is_all_zeroes(struct cached *k, struct object *o)
{
	if (o->nr[BUCKET_VALID] + o->nr[BUCKET_DIRTY] != OBJECT_BUCKETS || o->flushes_out ||
		o->loads_out || o->nr_fua || object_entry(k, o)->name[0] == ':')
		return false;
	for (uint32_t b = 0; b < OBJECT_BUCKETS; b++)
		if (slot_has_page(slot_get(k, o, b)))
			return false;
	return true;
}

static void start_run(struct cport *ps, struct object *o, struct child *ch, enum flush_why why)
{
	bool zeroes = !slot_has_page(slot_get(ps->cache, o, ch->first));
	bool all = zeroes && is_all_zeroes(ps->cache, o);

	for (uint32_t i = 0; i < ch->nr; i++) {
		uint64_t w = slot_get(ps->cache, o, ch->first + i);

		assert(startable(w));	/* B4: two writes of one bucket never overlap */
		if (w & SLOT_GEN)
			ch->gen[i / 64] |= 1ull << (i % 64);
		ch->r->page[i] = slot_page(w);
		if (slot_is_refused(w))
			page_unclean(ps, slot_page(w));
		bucket_set(ps, o, ch->first + i,
			slot_word(BUCKET_WRITING, slot_page(w), kept_flags(w)));
		XKILL(FLUSH_SLOT);
	}
	ch->seq = o->apply_seq;
	ch->why = (uint8_t)why;
	if (o->flushes_out++ == 0)
		object_set_state(o, all ? OBJECT_DELETING : OBJECT_FLUSHING);
	count(ps, (enum cache_counter)(CC_FLUSHED_WATERMARK + why), ch->nr);
	charge_rate(ps, why, ch->nr * BUCKET_SIZE);
	if (!zeroes)
		throttle_flush_out(ps);
	/* a store makes no object for a DISCARD */
	child_submit(ps, ch, all ? XSEG_OP_DELETE : zeroes ? XSEG_OP_DISCARD : XSEG_OP_WRITE,
		o->nr_fua ? XSEG_REQ_FUA : 0);
}

/* How many flushes this port may have out. What runs in the background takes few, so that requests
 * hardly feel it, and more and more as the cache fills with dirty data; what somebody waits for
 * takes all that there are. */
static uint32_t flush_limit(struct cport *ps, enum flush_why why)
{
	struct cached *k = ps->cache;
	uint32_t nr = xseg_port_nr_requests(ps->pp->port) * 3 / 4;
	uint64_t dirty = cached_total(k, CC_DIRTY_BYTES),
		 high = dirty_limit(k, &flush_of(k)->high_percent);
	uint64_t all = (uint64_t)data_pages(k) * BUCKET_SIZE;

	if (!is_background(why))
		return nr;
	if (dirty <= high || nr <= FLUSHES_MIN)
		return nr < FLUSHES_MIN ? nr : FLUSHES_MIN;
	if (dirty >= all)
		return nr;	/* dirty zeroes take no room */
	return FLUSHES_MIN + (uint32_t)((nr - FLUSHES_MIN) * (dirty - high) / (all - high));
}

/* Below that limit. One that has none out is, if it may have any: nearly always that is all that
 * must be looked at. */
static bool may_flush(struct cport *ps, enum flush_why why)
{
	if (store_port(ps)->flushes_out == 0 && xseg_port_nr_requests(ps->pp->port) > 1)
		return true;
	return store_port(ps)->flushes_out < flush_limit(ps, why);
}

static void wait_for_request(struct cport *ps, struct object *o)
{
	if (atomic_exchange(&o->flush_waiting, true))
		return;
	xcache_get(&object_of(ps->cache)->xc, o->index);
	o->flush_wait.fn = flush_wait_fn;
	requests_wait(ps, &o->flush_wait);
}

/* How many buckets from b on, up to max, can go out in one child: all data, or all zeroes. */
static uint32_t run_length(
	struct cached *k, struct object *o, uint32_t b, uint32_t end, uint32_t max)
{
	uint64_t first = slot_get(k, o, b), w = first;
	uint32_t n = 0;

	while (startable(w) && slot_has_page(w) == slot_has_page(first)) {
		n++;
		if (b + n == end || n == max)
			break;
		w = slot_get(k, o, b + n);
	}
	return n;
}

/* The next run of at least min buckets (or of max) that may be started, from *at on. Returns its
 * length; 0: there is none. */
static uint32_t next_run(
	struct cached *k, struct object *o, uint16_t *at, uint32_t end, uint32_t min, uint32_t max)
{
	uint32_t n;

	while (*at < end && nr_startable(o) >= min) {
		n = run_length(k, o, *at, end, max);
		if (n && (n >= min || n == max))
			return n;
		*at = (uint16_t)(*at + (n ? n : 1));
	}
	return 0;
}

/* Starts the runs of at least min buckets from *at on, while less than `most` of the object are
 * out; false: not all of them, *at is the next. */
static bool flush_runs(struct cport *ps, struct object *o, uint16_t *at, uint32_t end, uint32_t min,
	uint32_t most, enum flush_why why)
{
	uint32_t limit = flush_limit(ps, why), max = run_limit(ps->cache, why), n;
	struct child *ch;

	while ((n = next_run(ps->cache, o, at, end, min, max)) != 0) {
		if (is_background(why) &&
			(store_port(ps)->flushes_out >= limit || rate_ns(ps, why) > ps->pp->now_ns))
			return false; /* the flusher comes back to it: flush_job() lists it again */
		if (o->flushes_out >= most)
			return false;	/* flush_done() goes on */
		ch = child_get(ps, CHILD_FLUSH, o);
		if (!ch) {
			wait_for_request(ps, o);
			return false;
		}
		ch->first = *at;
		ch->nr = (uint16_t)n;
		*at = (uint16_t)(*at + n);
		start_run(ps, o, ch, why);
		if (object_is_shut(o))
			return false;	/* the same */
	}
	return true;
}

bool flush_start(
	struct cport *ps, struct object *o, uint32_t first, uint32_t nr, enum flush_why why)
{
	uint16_t at = (uint16_t)first;

	if (object_is_shut(o))
		return true;
	if (!flush_runs(ps, o, &at, first + nr, 1, UINT32_MAX, why))
		return false;
	dirty_unlist(ps, o);
	return true;
}

/* All of the object, in passes: a request is what is scarce, so the runs that make the most of one
 * go first. It goes on where it had to stop, so that it ends, however often what lies behind is
 * written again. One restart is for the age's sake: all that is as old as that is to go, also what
 * was written behind it while it paused. */
static bool flush_whole(struct cport *ps, struct object *o, uint32_t most, enum flush_why why)
{
	static const uint16_t min[] = { 64, 8, 1 };

	if (object_is_shut(o))
		return true;
	if (why == FLUSH_AGE && !o->pass_aged) {
		o->pass = 0;
		o->pass_at = 0;
		o->pass_aged = true;
	}
	for (; o->pass < sizeof(min) / sizeof(min[0]); o->pass++, o->pass_at = 0)
		if (!flush_runs(ps, o, &o->pass_at, OBJECT_BUCKETS, min[o->pass], most, why))
			return false;
	o->pass = 0;
	o->pass_aged = false;
	dirty_unlist(ps, o);
	return true;
}

/* A few runs at a time, as requests for objects that pass are at the store beside it (admit.c),
 * and, while it is, more of it may become neighbours; but if somebody waits for its entry or pages,
 * all at once. */
void flush_evict(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	bool hurry = !xwaitq_empty(&object_of(k)->want_entries) || pages_wanted(k);
	uint32_t most = hurry ? UINT32_MAX : EVICTIONS_MIN;

	/* one that went on where another had stopped may have found nothing: what is left lies
	 * behind that, and no reply would bring us back */
	if (flush_whole(ps, o, most, FLUSH_EVICTION) && o->flushes_out == 0)
		flush_whole(ps, o, most, FLUSH_EVICTION);
}

/* The caller gives a reference away. */
static void flush_push(struct cport *ps, struct object *o)
{
	if (!object_ask(ps, o, OBJECT_FLUSH))
		object_put(ps, o);
}

void flush_wait_fn(struct xwait *w, void *ctx)
{
	struct object *o = caa_container_of(w, struct object, flush_wait);

	atomic_store(&o->flush_waiting, false);
	flush_push(ctx, o);
}

/* Writers that wait go first; the rest goes if the flusher asked for it. What it has to leave is
 * its next. */
void flush_job(struct cport *ps, struct object *o)
{
	enum flush_why why = (enum flush_why)atomic_load_explicit(
		&o->flush_all, memory_order_relaxed);
	bool all = true;

	for (struct creq *c = o->through; c && all; c = c->next)
		all = flush_start(ps, o, c->first, c->nr, FLUSH_FLUSH);
	if (all && why != FLUSH_NONE)
		all = flush_whole(ps, o, UINT32_MAX, why);
	if (why != FLUSH_NONE && !atomic_load_explicit(&o->flush_waiting, memory_order_relaxed))
		atomic_store_explicit(&o->flush_all, FLUSH_NONE, memory_order_relaxed);
	dirty_list_at(ps, o, !all);
	object_after(ps, o);
	object_put(ps, o);
}

static void flushed_clean(struct cport *ps, struct object *o, uint32_t b, uint64_t w, bool fua)
{
	uint64_t stamp = fua ? 0 : sync_stamp(ps->cache);

	if (bucket_flushed(ps, o, b, w))
		return;
	if (slot_is_unkept(w)) {
		bucket_set(ps, o, b, slot_word(BUCKET_VALID, slot_page(w), SLOT_ONCE | stamp));
		page_clean_first(ps, slot_page(w));
		return;
	}
	bucket_set(ps, o, b, slot_word(BUCKET_VALID, slot_page(w), (w & SLOT_REF) | stamp));
	page_clean(ps, slot_page(w));
}

/* The store has failed to take it. One that is not promised may be evicted from now on, after one
 * more chance. */
static void flush_refused(struct cport *ps, struct object *o, uint32_t b, uint64_t w)
{
	uint64_t refused = slot_is_unpromised(w) ? SLOT_REFUSED | SLOT_REF : 0;

	bucket_set(ps, o, b, slot_word(BUCKET_DIRTY, slot_page(w), kept_flags(w) | refused));
	if (refused)
		page_clean(ps, slot_page(w));
}

/* The store has an older page of it: that is what lies below it now. */
static uint64_t flushed_below(struct cport *ps, uint64_t w, bool fua)
{
	if (!slot_is_unpromised(w))
		return w;
	return (w & ~(SLOT_WRITTEN | SLOT_EPOCH)) | (fua ? 0 : sync_stamp(ps->cache));
}

static void flushed_bucket(struct cport *ps, struct child *ch, uint32_t i, unsigned gen, int error)
{
	struct object *o = ch->obj;
	uint32_t b = ch->first + i, page = ch->r->page[i];
	uint64_t w = slot_get(ps->cache, o, b);

	if (slot_state(w) == BUCKET_WRITING && slot_page(w) == page) {
		if (error) {
			flush_refused(ps, o, b, w);
			return;
		}
		flushed_clean(ps, o, b, w, ch->r->flags & XSEG_REQ_FUA);
		dirty_end(ps, o, gen);
		return;
	}
	assert(slot_state(w) == BUCKET_DIRTY && (w & SLOT_INFLIGHT));
	page_put(ps, page);
	w &= ~SLOT_INFLIGHT;
	if (error && !!(w & SLOT_GEN) != gen) {
		/* the newer data takes the older's place in the older set: that set is not covered
		 * yet */
		bucket_set(ps, o, b, w ^ SLOT_GEN);
		dirty_end(ps, o, !gen);
		return;
	}
	bucket_set(
		ps, o, b, error ? w : flushed_below(ps, w, ch->r->flags & XSEG_REQ_FUA));
	dirty_end(ps, o, gen);
}

/* Those of its flushes that were out together and fail are one failure. */
static void back_off(struct cport *ps, struct object *o)
{
	bool another = o->flush_failed && o->retry_ns;
	uint64_t backoff_ns;

	if (!another && o->nr_failures < NR_PAUSES)
		o->nr_failures++;
	backoff_ns = BACKOFF_MIN_NS << (o->nr_failures - 1);
	o->retry_ns = ps->pp->now_ns +
		      (backoff_ns < BACKOFF_MAX_NS ? backoff_ns : BACKOFF_MAX_NS);
	o->flush_failed = true;
	count(ps, CC_FLUSH_ERRORS, 1);
}

void back_off_end(struct cport *ps, struct object *o)
{
	o->nr_failures = 0;
	if (o->retry_ns == 0)
		return;
	o->retry_ns = 0;
	dirty_unfail(ps, o);
}

static int flush_error(const struct child *ch, int64_t result)
{
	if (ch->r->op == XSEG_OP_DELETE)
		return result < 0 && result != -ENOENT ? (int)result : 0;
	return result < 0 ? (int)result : result < (int64_t)ch->nr * BUCKET_SIZE ? -EIO : 0;
}

/* One of its flushes has ended. */
static void flush_is_back(struct object *o)
{
	assert(o->flushes_out > 0);				/* O3 */
	if (--o->flushes_out > 0)
		return;
	object_set_state(o, o->flush_failed ? OBJECT_FAILED : OBJECT_READY);
	o->flush_failed = false;
}

void flush_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	uint64_t bytes = (uint64_t)ch->nr * BUCKET_SIZE;
	int error = flush_error(ch, result);

	if (ch->r->op == XSEG_OP_WRITE)
		throttle_flush_back(ps, error ? 0 : bytes);
	if (error) {
		back_off(ps, o);
		trouble_note(ps, TROUBLE_FLUSH, error);
		if (error == -ENOSPC)
			full_begin(ps, o);
	} else {
		back_off_end(ps, o);
		/* what removes something succeeds in a full store, too */
		if (ch->r->op == XSEG_OP_WRITE &&
			atomic_load_explicit(&flush_of(ps->cache)->nr_full, memory_order_relaxed))
			full_end(ps, o);
		count(ps, CC_FLUSHED_BYTES, bytes);
	}
	for (uint32_t i = 0; i < ch->nr; i++) {
		unsigned gen = ch->gen[i / 64] >> (i % 64) & 1;

		if (error)
			tickets_fail(ps, o, gen, error);
		flushed_bucket(ps, ch, i, gen, error);
		XKILL(FLUSHED_SLOT);
	}
	flush_is_back(o);
	if (error && ch->r->flags & XSEG_REQ_FUA)
		sync_lost(ps, ch->sent, NULL);
	through_cover(ps, o, ch, error);
	for (struct creq *c = o->through; c; c = c->next)
		if (!flush_start(ps, o, c->first, c->nr, FLUSH_FLUSH))
			break;
	dirty_list(ps, o);
	if (o->waiters)
		object_wake(ps, o);
	object_after(ps, o);
	child_put(ps, ch);
}

/* ---- the flusher ---- */

static enum flush_why flusher_wants(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint64_t dirty = cached_total(k, CC_DIRTY_BYTES);

	if (dirty > dirty_limit(k, &flush_of(k)->high_percent))
		atomic_store_explicit(&flush_of(k)->draining, true, memory_order_relaxed);
	else if (dirty <= dirty_limit(k, &flush_of(k)->low_percent))
		atomic_store_explicit(&flush_of(k)->draining, false, memory_order_relaxed);
	if (atomic_load_explicit(&flush_of(k)->all.flushes, memory_order_relaxed) ||
	    atomic_load_explicit(&peer_of(k)->stopping, memory_order_relaxed))
		return FLUSH_FLUSH;
	if (atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed))
		return FLUSH_SWITCH;
	if (pages_wanted(k) ||
		atomic_load_explicit(&volume_of(k)->shares.squeezed, memory_order_relaxed))
		return FLUSH_EVICTION;
	if (atomic_load_explicit(&flush_of(k)->draining, memory_order_relaxed))
		return FLUSH_WATERMARK;
	return FLUSH_AGE;	/* only what was listed so long ago */
}

/* What those need who wait for single volumes comes before what is done in the background, and by
 * turns with what others wait for. */
static bool may_flush_wanted(struct cport *ps, enum flush_why why)
{
	flush_port(ps)->wanted_turn = is_background(why) || !flush_port(ps)->wanted_turn;
	return flush_port(ps)->wanted_turn && may_flush(ps, FLUSH_FLUSH);
}

uint64_t flusher_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint64_t next_ns = PEER_NEVER;
	enum flush_why why;
	struct object *o;

	if (atomic_load_explicit(&flush_of(k)->nr_listed, memory_order_relaxed) == 0)
		return PEER_NEVER;
	for (unsigned budget = 16; budget; budget--) {
		why = flusher_wants(ps);
		o = may_flush_wanted(ps, why) ? dirty_next_wanted(ps) : NULL;
		if (o) {
			flush_push(ps, o);
			continue;
		}
		if (rate_ns(ps, why) > ps->pp->now_ns)
			return rate_ns(ps, why);
		if (!may_flush(ps, why))
			return PEER_NEVER;	/* a reply will bring us back */
		o = dirty_next(ps, why, &next_ns);
		if (!o)
			return next_ns;
		flush_push(ps, o);
	}
	return ps->pp->now_ns;
}
