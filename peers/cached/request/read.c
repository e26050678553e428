/* read - answers reads from buckets, and loads absent buckets.
 *
 * A read goes forward bucket by bucket. A present bucket is copied, or lent (loan.c). An absent one
 * is loaded, neighbours in one child. Present buckets between two absent ones are read once more,
 * and dropped, if that costs a store less than another request. Else a read of a range that is here
 * in parts would be slower than the store alone. Each step copies the buckets that can be copied,
 * and marks them done. So a bucket that is evicted again before the last one arrives does not
 * matter. A read needs no more than one page at a time.
 *
 * A read that has a load to wait for waits inside its object, never in a queue for pages, chunks or
 * requests. In a queue it would not see its bucket before that is evicted for another reader, and
 * so on for ever. Readers that miss the same bucket share one load.
 *
 * Misses, and first uses of buckets that were read ahead, are reported to the table of streams
 * (stream.h). The table says which buckets to read ahead. Beyond the cut-off, if the cache is full
 * for its volume, a stream is served and not kept. Its reads bypass the cache, and its read-ahead
 * data is dropped when it has been read.
 *
 * A read with XSEG_REQ_ONCE reads what is here, which does not count as a use. If a bucket is
 * absent, the read bypasses the cache. It cannot where some of its range is newer here. Then the
 * absent buckets are loaded, unkept, and each goes when the read has it. If another request reads
 * an unkept bucket first, that bucket stays. The streams are not told of such reads.
 *
 * Contract: inside the object.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/bucket/stream.h"
#include "peers/cached/evict/evict.h"
#include "peers/cached/lend/direct.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/bucket/data.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xkill.h"

#define JOIN_MAX 4	/* present buckets in a row that a load goes over */

void bucket_copy_out(struct cport *ps, const struct xreq *r, uint32_t i, uint32_t page,
	const void *next, const void *after)
{
	struct xseg *seg = peer_of(ps->cache)->seg;
	char *to = xseg_page(seg, r->page[i] & XSEG_PAGE_INDEX);
	uint32_t in, len;

	request_part(r, i, &in, &len);
	if (page == NO_PAGE)
		memset(to + in, 0, len);
	else if (len == BUCKET_SIZE)
		data_copy(to, xseg_page(seg, page), next, after);
	else
		memcpy(to + in, (char *)xseg_page(seg, page) + in, len);
}

/* Not of one that it wants in part, nor of a write's edge, whose page is filled in place later. */
static bool may_lend(const struct creq *c, uint32_t i, uint64_t w)
{
	return c->lends && slot_state(w) >= BUCKET_VALID && !request_is_partial(c->r, i);
}

/* The same, by a request that wants nothing to be kept. */
static void bucket_seen_once(struct cport *ps, struct creq *c, uint32_t i, uint64_t w)
{
	uint32_t b = c->first + i, in, len;

	request_part(c->r, i, &in, &len);
	if (slot_state(w) == BUCKET_VALID && slot_is_unkept(w) && in + len == BUCKET_SIZE)
		evict_drop(ps, c->obj, b, slot_get(ps->cache, c->obj, b), EVICT_ONCE);
}

/* Bucket i has been copied, or lent. */
static void bucket_used(struct cport *ps, struct creq *c, uint32_t i, uint64_t w)
{
	struct object *o = c->obj;
	uint32_t b = c->first + i, in, len;

	if (request_is_once(c->r)) {
		bucket_seen_once(ps, c, i, w);
		return;
	}
	if (slot_is_unkept(w)) {
		slot_clear_flag(ps->cache, o, b,
			slot_state(w) == BUCKET_VALID ? SLOT_ONCE : SLOT_UNKEPT);
		return;
	}
	if (!slot_is_ahead(w)) {
		/* to get what one had to wait for is no second use */
		if (!c->read.looked && order_touched(w) != w)
			slot_set_flag(ps->cache, o, b, order_touched(w) & ~w);
		return;
	}
	c->read.used_ahead = true;
	request_part(c->r, i, &in, &len);
	if (!(w & SLOT_ONCE)) {
		slot_clear_flag(ps->cache, o, b, SLOT_AHEAD);
		return;
	}
	c->read.used_once = true;
	if (in + len < BUCKET_SIZE)
		return;
	evict_drop(ps, o, b, slot_get(ps->cache, o, b), EVICT_ONCE);
}

/* Copies, or lends, all that is there. Returns how many buckets are absent; those that somebody is
 * working on are counted in *loading. */
static uint32_t copy_present(struct cport *ps, struct creq *c, uint32_t *loading)
{
	uint32_t absent = 0, before = c->nr_done;
	bool news = false;

	*loading = 0;
	for (uint32_t i = 0; i < c->nr; i++) {
		uint64_t w;

		if (creq_is_done(c, i))
			continue;
		w = slot_get(ps->cache, c->obj, c->first + i);
		if (slot_present(w)) {
			if (may_lend(c, i, w)) {
				news |= loan_bucket(ps, c->obj, c->r, i, c->first + i, w);
				c->nr_pages++;
			} else {
				bucket_copy_out(ps, c->r, i, slot_page(w), NULL, NULL);
			}
			creq_set_done(c, i);
			bucket_used(ps, c, i, w);
		} else if (slot_absent(w)) {
			absent++;
		} else {
			++*loading;
		}
	}
	loan_ungrant(ps, c, c->nr_done - before);
	if (news)
		direct_mark(ps, c->obj, c->r, c->first, c->nr);
	return absent;
}

/* A read is counted once, by what was there when it was first looked at; one that goes around is
 * counted there. */
static void read_finish(struct cport *ps, struct creq *c, int64_t result)
{
	loan_ungrant(ps, c, c->nr);
	count(ps, CC_READS, 1);
	count_copied(ps, (uint32_t)(c->nr - c->nr_pages) * BUCKET_SIZE);
	if (c->nr_pages)
		count(ps, CC_LENT_BYTES, (uint64_t)c->nr_pages * BUCKET_SIZE);
	if (c->read.used_once) {
		count(ps, CC_BYPASSED_SEQUENTIAL, 1);
		count(ps, CC_BYPASSED_BYTES, c->r->size);
		volume_count_bypassed(volume_block(ps, c->volume), c->r->size);
		creq_finish(ps, c, result);
		return;
	}
	count(ps, c->read.nr_hit == c->nr ? CC_HITS : c->read.nr_hit ? CC_PARTIAL : CC_MISSES, 1);
	count(ps, CC_HIT_BYTES, (uint64_t)c->read.nr_hit * BUCKET_SIZE);
	count(ps, CC_MISS_BYTES, (uint64_t)(c->nr - c->read.nr_hit) * BUCKET_SIZE);
	volume_count_read(volume_block(ps, c->volume), c->nr, c->read.nr_hit, c->r->size);
	creq_finish(ps, c, result);
}

static void load_send(
	struct cport *ps, struct child *ch, uint32_t b, const uint32_t *page, uint32_t n)
{
	ch->first = (uint16_t)b;
	ch->nr = (uint16_t)n;
	for (uint32_t i = 0; i < n; i++) {
		ch->r->page[i] = page[i];
		if (!slot_absent(slot_get(ps->cache, ch->obj, b + i))) {
			ch->joined = true;	/* load_done() lets go of the page */
			continue;
		}
		bucket_set(ps, ch->obj, b + i, slot_word(BUCKET_LOADING, page[i], 0));
		XKILL(LOAD_SLOT);
	}
	ch->obj->loads_out++;
	child_submit(ps, ch, XSEG_OP_READ, ch->flags == SLOT_ONCE ? XSEG_REQ_ONCE : 0);
}

/* Pages for as many of *n buckets as there are. */
static struct need load_room(
	struct cport *ps, struct object *o, uint32_t b, uint32_t *page, uint32_t *n, enum turn turn)
{
	struct need need = { .nr = 0 };

	for (; *n > 0; *n /= 2) {
		need = room_get(ps, o, b, *n, page, *n, turn);
		if (!need.nr)
			break;
	}
	return need;
}

/* Starts one load of up to nr buckets from b on, which is absent, as many as there are pages for.
 * False: nothing was started, and, if it may, c has gone past the cache that is full, or is in the
 * queue for what is missing; it does not go past one that owes it pages. If it cannot go past, as
 * some of it is newer here, it is urgent for one bucket: its page is clean when it is loaded. */
static bool load_start(struct cport *ps, struct creq *c, uint32_t b, uint32_t nr, bool may_queue)
{
	struct object *o = c->obj;
	uint32_t page[RUN_MAX], n = nr < RUN_MAX ? nr : RUN_MAX;
	struct need need = load_room(ps, o, b, page, &n, c->turn);
	struct child *ch;

	if (n == 0 && may_queue) {
		if (need.queue != &memory_of(ps->cache)->want_owed &&
			around_read(ps, c, BYPASS_FULL))
			return false;
		n = 1;
		need = load_room(ps, o, b, page, &n, TURN_URGENT);
		if (n == 0)
			pages_wait(ps, c, need);
	}
	if (n == 0)
		return false;
	c->turn = TURN_NONE;
	ch = child_get(ps, CHILD_LOAD, o);
	if (!ch) {
		room_put(ps, o, b, n, page, n);
		if (may_queue)
			creq_wait_for_request(ps, c);
		return false;
	}
	if (request_is_once(c->r))
		ch->flags = SLOT_ONCE;
	load_send(ps, ch, b, page, n);
	return true;
}

/* ---- streams ---- */

/* Loads n absent buckets from b on, if nobody has to wait for that. */
static bool ahead_load(struct cport *ps, struct object *o, uint32_t b, uint32_t n, uint64_t flags)
{
	uint32_t page[RUN_MAX];
	struct child *ch;

	if (room_get(ps, o, b, n, page, n, TURN_NONE).nr)
		return false;
	ch = child_get(ps, CHILD_LOAD, o);
	if (!ch) {
		room_put(ps, o, b, n, page, n);
		return false;
	}
	ch->flags = flags;
	count(ps, CC_READ_AHEAD_BYTES, (uint64_t)n * BUCKET_SIZE);
	load_send(ps, ch, b, page, n);
	return true;
}

static void ahead_start(
	struct cport *ps, struct object *o, uint32_t b, uint32_t end, uint64_t flags)
{
	while (b < end) {
		uint32_t n = 0;

		while (b + n < end && n < RUN_MAX && slot_absent(slot_get(ps->cache, o, b + n)))
			n++;
		if (n && !ahead_load(ps, o, b, n, flags))
			return;
		b += n ? n : 1;
	}
}

static bool is_full(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->nr_free, memory_order_relaxed) <
	       data_pages(k) / 16;
}

/* True: c has gone past the cache. */
static bool follow_stream(struct cport *ps, struct creq *c, bool misses)
{
	struct cached *k = ps->cache;
	const struct xreq *r = c->r;
	struct stream_advice a = stream_note(
		streams_of(k), r->volume, r->hash, r->offset, r->obj_offset, r->size);
	bool cut_off = a.cut_off && share_is_full(k, object_volume(c->obj), is_full(k));
	uint32_t from = (uint32_t)(a.ahead_from / BUCKET_SIZE);

	if (a.ahead_bytes)
		ahead_start(ps, c->obj, from, from + a.ahead_bytes / BUCKET_SIZE,
			SLOT_AHEAD | (cut_off ? SLOT_ONCE : 0));
	return cut_off && misses && around_read(ps, c, BYPASS_SEQUENTIAL);
}

/* ---- reading ---- */

/* What the store has of such a bucket may be read in vain: nothing of it is on its way there. */
static bool may_join(uint64_t w)
{
	return slot_absent(w) || slot_state(w) == BUCKET_VALID ||
	       (slot_state(w) == BUCKET_DIRTY && !(w & SLOT_INFLIGHT));
}

/* How many buckets from i on one load is for: the first and the last are absent and wanted. After
 * an error it goes over nothing, as that may have been of what it went over. */
static uint32_t absent_run(struct cport *ps, const struct creq *c, uint32_t i)
{
	uint32_t n, end = 0, join = c->read.around == BYPASS_NONE ? JOIN_MAX : 0;

	for (n = 0; i + n < c->nr && n <= end + join; n++) {
		uint64_t w = slot_get(ps->cache, c->obj, c->first + i + n);

		if (slot_absent(w) && !creq_is_done(c, i + n))
			end = n + 1;
		else if (n == 0 || !may_join(w))
			break;
	}
	return end;
}

/* Starts loads for the runs of absent buckets, as far as that goes; false: c has no load to wait
 * for, and is out of our hands. */
static bool load_absent(struct cport *ps, struct creq *c, bool loading)
{
	uint32_t i = 0, n;

	while (i < c->nr) {
		n = absent_run(ps, c, i);
		if (n == 0) {
			i++;
			continue;
		}
		if (!load_start(ps, c, c->first + i, n, !loading))
			return loading;
		loading = true;
	}
	return true;
}

void read_step(struct cport *ps, struct creq *c)
{
	struct object *o = c->obj;
	bool once = request_is_once(c->r);
	uint32_t absent, loading;

	if (c->error) {
		read_finish(ps, c, c->error);
		return;
	}
	if (object_is_shut(o) || o->nr_redo || around_is_out(ps, c)) {
		object_wait(ps, o, c, WAIT_LOAD);
		return;
	}
	if (!c->policy)
		c->policy = object_policy(ps, o);
	if (c->policy->reads_around && !c->read.looked && around_read(ps, c, BYPASS_POLICY))
		return;
	if (object_passes(o) && around_read(ps, c, once ? BYPASS_ONCE : BYPASS_FULL))
		return;
	if (c->read.around != BYPASS_NONE && around_read(ps, c, (enum bypass_why)c->read.around))
		return;
	/* Data that is dirty still is read here under a policy that reads around. From a loan a
	 * client would learn where the object is, and read all of it without a request. */
	if (c->r->flags & XSEG_REQ_LOAN && !c->read.looked && !c->policy->reads_around)
		c->lends = loan_grant(ps, c);
	absent = copy_present(ps, c, &loading);
	if (!c->read.looked) {
		c->read.looked = true;
		c->read.nr_hit = c->nr_done;
		if (!once && (absent || loading || c->read.used_ahead) &&
			follow_stream(ps, c, absent > 0))
			return;
	}
	if (once && absent && around_read(ps, c, BYPASS_ONCE))
		return;
	if (c->nr_done == c->nr) {
		read_finish(ps, c, c->r->size);
		return;
	}
	if (absent == 0 || load_absent(ps, c, loading > 0))
		object_wait(ps, o, c, WAIT_LOAD);
}

/* Bucket b is still what that load is for: a write may have come since, also one that goes past the
 * cache. */
static bool is_loading(struct cport *ps, const struct child *ch, uint32_t b)
{
	uint64_t w = slot_get(ps->cache, ch->obj, b);

	return slot_state(w) == BUCKET_LOADING && slot_page(w) == ch->r->page[b - ch->first];
}

static bool waits_for(struct cport *ps, const struct creq *c, const struct child *ch)
{
	for (uint32_t i = 0; c->step == read_step && i < c->nr; i++) {
		uint32_t b = c->first + i;

		if (!creq_is_done(c, i) && b >= ch->first && b < (uint32_t)ch->first + ch->nr &&
			is_loading(ps, ch, b))
			return true;
	}
	return false;
}

/* Readers that wait for a bucket that could not be loaded get the store's error, nobody else: a
 * write that needs it finds it absent and loads it for itself. A reader of another range than what
 * was wanted of the load asks the store for just its own, as the error may be another's. */
static void fail_readers(struct cport *ps, const struct child *ch, int error)
{
	uint32_t first = ch->first, nr = ch->nr;

	for (struct creq *c = ch->obj->waiters; c; c = c->next) {
		if (!waits_for(ps, c, ch))
			continue;
		if (c->read.around == BYPASS_NONE &&
			(ch->joined || c->first != first || c->nr != nr))
			c->read.around = BYPASS_ERROR;
		else
			c->error = error;
	}
}

void load_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct object *o = ch->obj;
	int error = result < 0 ? (int)result : result < (int64_t)ch->nr * BUCKET_SIZE ? -EIO : 0;

	assert(o->loads_out > 0);
	o->loads_out--;
	if (error) {
		count(ps, CC_LOAD_ERRORS, 1);
		trouble_note(ps, TROUBLE_LOAD, error);
		fail_readers(ps, ch, error);
	} else {
		trouble_over(ps->cache, TROUBLE_LOAD);
	}
	for (uint32_t i = 0; i < ch->nr; i++) {
		uint32_t b = ch->first + i, page = ch->r->page[i];

		if (!is_loading(ps, ch, b)) {
			page_put(ps, page);	/* it was present, or a write came first */
		} else if (error) {
			bucket_set(ps, o, b, slot_word(BUCKET_INVALID, 0, 0));
			page_put(ps, page);
		} else {
			bucket_set(ps, o, b, slot_word(BUCKET_VALID, page, ch->flags));
			page_clean(ps, page);
			XKILL(LOADED_SLOT);
		}
	}
	object_wake(ps, o);
	object_reclaim_step(ps, o);
	child_put(ps, ch);
}
