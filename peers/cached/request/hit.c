/* hit - the short way: a read that finds all of its data, and a write to buckets that are all
 * there.
 *
 * Most reads wait for nothing. Such a read needs no creq, no job and no reference. A thread that
 * can enter the object at once checks whether the read would be served in its first step (read.c).
 * If so, it serves the read there. All other cases go the long way, where everything has its
 * reason. Examples: a thread is inside, a bucket is absent or was read ahead, the object is being
 * emptied, the request is not to be kept (XSEG_REQ_ONCE), the volume bypasses the cache. So the
 * short way does only things that read_step() or write_step() would do.
 *
 * A write of whole buckets goes this way under write-back, if each of them has a page. It waits for
 * nothing. It is answered when its slots are stored, before another thread is inside. A write that
 * gives its pages needs none, if each of them may be taken, and each page that is replaced may be
 * lent for it (gift.c). A write that is copied needs as many pages as it replaces, so nothing grows
 * (share.c). Its thread must have these pages at hand, and no request may be waiting for pages.
 *
 * An object with buckets holds a reference to itself (O4), and drops it inside only. So inside an
 * object that has buckets, its entry keeps its name without a reference of ours. A guess of the
 * index leads there, and is tested there.
 *
 * Contract: a port's thread, outside of any object.
 *
 * Invariants:
 *   T1  When hit_read() or hit_write() returns false, nothing of the request or of the cache has
 *       changed, except the volume's record and the port's hint early.pays.
 *   T2  Counts are in the port's counters some microseconds later (cached_poll). They are there at
 *       once if no more requests come, and before a status is asked for (hits_publish).
 */
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/direct.h"
#include "peers/cached/lend/gift.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/request/request.h"
#include "peers/cached/bucket/data.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

/* More than these go the long way: what counts there is the data. */
#define HIT_BUCKETS 32u

struct hit {
	struct object *obj;
	_Atomic uint64_t *slot;			/* of the first bucket; the others follow */
	uint32_t first, nr, volume;
	bool whole;				/* none of them is wanted in part */
};

static uint64_t slot_at(const struct hit *h, uint32_t i)
{
	return atomic_load_explicit(&h->slot[i], memory_order_relaxed);
}

static bool is_partial(const struct hit *h, const struct xreq *r, uint32_t i)
{
	return !h->whole && request_is_partial(r, i);
}

/* The slots of a range that lies in one chunk. */
static _Atomic uint64_t *slots_of(struct cached *k, const struct hit *h)
{
	if ((h->first + h->nr - 1) / CHUNK_SLOTS != h->first / CHUNK_SLOTS)
		return NULL;
	return slot_word_of(k, h->obj, h->first);
}

/* Inside: read_step() or write_step() would go on to the buckets at once. */
static bool object_is_plain(struct cport *ps, const struct hit *h, const struct xreq *r)
{
	struct cached *k = ps->cache;
	struct object *o = h->obj;

	return atomic_load_explicit(&o->used, memory_order_relaxed) &&
	       xcache_is_active(&object_of(k)->xc, o->index, r->target, r->hash) &&
	       !object_is_shut(o) && !o->nr_redo && !o->reclaiming && !object_passes(o) &&
	       object_volume(o) == h->volume && object_entry(k, o)->volume == r->volume;
}

/* object_policy() of what is plain: the object is of the request's volume. */
static const struct policy *policy_of_hit(
	struct cport *ps, const struct hit *h, const struct xreq *r)
{
	return volume_promise(ps->cache, h->volume, r->volume);
}

/* Inside: all its buckets are there, and none of them was read ahead or is unkept; what is done
 * after them is nothing. */
static bool read_is_plain(struct cport *ps, const struct hit *h, const struct xreq *r)
{
	if (policy_of_hit(ps, h, r)->reads_around)
		return false;
	for (uint32_t i = 0; i < h->nr; i++) {
		uint64_t w = slot_at(h, i);

		if (slot_state(w) < BUCKET_VALID || w & (SLOT_AHEAD | SLOT_ONCE))
			return false;
	}
	return true;
}

/* Its buckets were hit, and with a stamp all the whole ones of them are lent. Slots are written
 * where that is news. True: one may be read directly from now on. */
static bool mark(const struct hit *h, const struct xreq *r, uint64_t stamp)
{
	bool news = false;

	for (uint32_t i = 0; i < h->nr; i++) {
		uint64_t w = slot_at(h, i), new = order_touched(w);

		if (stamp && slot_has_page(w) && !is_partial(h, r, i))
			new = (new & ~SLOT_LOAN) | stamp;
		/* release: as in slot_change() */
		if (new != w)
			atomic_store_explicit(&h->slot[i], new, memory_order_release);
		news = news || (new ^ w) & SLOT_DIRECT;
	}
	return news;
}

/* The page of bucket i, or NULL: there is none. */
static const void *page_of(struct xseg *seg, const struct hit *h, uint32_t i)
{
	return i < h->nr && slot_has_page(slot_at(h, i)) ? xseg_page(seg, slot_page(slot_at(h, i)))
							 : NULL;
}

/* Inside. Returns how many buckets were lent. */
static uint32_t serve(struct cport *ps, const struct hit *h, struct xreq *r)
{
	bool lends = r->flags & XSEG_REQ_LOAN && loan_begin(ps, r, h->nr);
	struct xseg *seg = peer_of(ps->cache)->seg;
	uint32_t lent = 0;

	for (uint32_t i = 0; i < h->nr; i++) {
		uint64_t w = slot_at(h, i);

		if (lends && !is_partial(h, r, i)) {
			xseg_req_lend(
				ps->pp->port, r, i, slot_has_page(w) ? slot_page(w) : XSEG_NONE);
			lent++;
		} else {
			bucket_copy_out(ps, r, i, slot_page(w), page_of(seg, h, i + 1),
				page_of(seg, h, i + 2));
		}
	}
	if (mark(h, r, lent ? lent_stamp(ps, r) : 0))
		direct_mark(ps, h->obj, r, h->first, h->nr);
	return lent;
}

/* ---- counting ---- */

static void publish_reads(struct cport *ps, const struct hits *n)
{
	count(ps, CC_READS, n->nr);
	count(ps, CC_HITS, n->nr);
	count(ps, CC_HIT_BYTES, n->buckets * BUCKET_SIZE);
	if (n->lent)
		count(ps, CC_LENT_BYTES, n->lent * BUCKET_SIZE);
	volume_count_hits(volume_block(ps, n->volume), n->nr, n->buckets, n->bytes);
}

static void publish_writes(struct cport *ps, const struct hits *n)
{
	count(ps, CC_WRITES, n->writes);
	count(ps, CC_WRITES_BACK, n->writes);	/* no others go the short way */
	count(ps, CC_GIVEN_BYTES, n->given * BUCKET_SIZE);
	volume_count_writes(volume_block(ps, n->volume), n->writes, n->written);
}

XCOLD void hits_publish(struct cport *ps)
{
	struct hits *n = &request_port(ps)->hits;

	if (n->nr == 0 && n->writes == 0)
		return;
	if (n->nr)
		publish_reads(ps, n);
	if (n->writes)
		publish_writes(ps, n);
	*n = (struct hits){ .volume = n->volume };
}

/* Counters of that volume, to add to. */
static struct hits *hits_of(struct cport *ps, uint32_t volume)
{
	if (request_port(ps)->hits.volume != volume) {
		hits_publish(ps);
		request_port(ps)->hits.volume = volume;
	}
	return &request_port(ps)->hits;
}

static void read_count(struct cport *ps, const struct hit *h, const struct xreq *r, uint32_t lent)
{
	struct hits *n = hits_of(ps, h->volume);

	n->nr++;
	n->buckets += h->nr;
	n->bytes += r->size;
	n->lent += lent;
}

static void write_count(struct cport *ps, const struct hit *h, const struct xreq *r, uint32_t given)
{
	struct hits *n = hits_of(ps, h->volume);

	n->writes++;
	n->given += given;
	n->written += r->size;
}

/* ---- writes ---- */

/* Nobody waits in the object, and nothing newly becomes dirty while writers are slowed. */
static bool write_is_plain(struct cport *ps, const struct hit *h, const struct xreq *r)
{
	bool slowed = atomic_load_explicit(&flush_of(ps->cache)->throttle.on, memory_order_relaxed);

	if (h->obj->waiters || !policy_of_hit(ps, h, r)->answers_before_store ||
		full_is_refused(ps, h->volume))
		return false;
	for (uint32_t i = 0; i < h->nr; i++) {
		uint64_t w = slot_at(h, i);

		if (!slot_has_page(w) || (slot_state(w) != BUCKET_DIRTY &&
						 (slot_state(w) != BUCKET_VALID || slowed)))
			return false;
	}
	return true;
}

static void write_done(struct cport *ps, const struct hit *h, struct xreq *r)
{
	h->obj->apply_seq++;
	dirty_list(ps, h->obj);
	peer_answer(ps->pp, r, r->size);
}

/* Of the pages that it replaces: each is somewhere else. That of the first one was asked for before
 * (object_prefetch_page). */
static void prefetch_owners(struct xseg *seg, const struct hit *h)
{
	for (uint32_t i = 1; i < h->nr; i++)
		xseg_page_owner_prefetch(seg, slot_page(slot_at(h, i)));
}

/* Pages with its data; false: there are none. */
static bool fill(struct cport *ps, const struct hit *h, const struct xreq *r, uint32_t *page)
{
	struct xseg *seg = peer_of(ps->cache)->seg;

	if (early_take(ps, r, page))
		return true;
	if (!magazine_take(ps, h->nr, page))
		return false;
	prefetch_owners(seg, h);
	for (uint32_t i = 0; i < h->nr; i++)
		data_copy_past(
			xseg_page(seg, page[i]), xseg_page(seg, r->page[i] & XSEG_PAGE_INDEX));
	data_settle();
	return true;
}

/* Inside: copies its data, and applies it. */
static bool apply_copy(struct cport *ps, const struct hit *h, struct xreq *r)
{
	uint32_t page[HIT_BUCKETS];

	if (!fill(ps, h, r, page))
		return false;
	XKILL(WRITE_FILLED);
	xseg_req_start(ps->pp->port, r);
	for (uint32_t i = 0; i < h->nr; i++) {
		page_put(ps, write_slot(ps, h->obj, h->first + i, &h->slot[i], page[i],
				     true));
		XKILL(WRITE_SLOT);
	}
	write_count(ps, h, r, 0);
	count_copied(ps, r->size);
	write_done(ps, h, r);
	return true;
}

/* The old pages can be lent at once, and the given ones be taken. */
static bool give_is_plain(struct cport *ps, const struct hit *h, const struct xreq *r)
{
	struct cached *k = ps->cache;

	for (uint32_t i = 0; i < h->nr; i++)
		if (!gift_may_lend(k, slot_at(h, i)) || !gift_may(k, r, i))
			return false;
	return true;
}

/* All of them, or none. */
static bool take_all(struct cport *ps, const struct hit *h, const struct xreq *r, uint64_t *given)
{
	for (uint32_t i = 0; i < h->nr; i++) {
		if (gift_take(ps, r->page[i], bucket_name(h->obj, h->first + i), &given[i]))
			continue;
		while (i-- > 0)
			xseg_page_owner_set(peer_of(ps->cache)->seg, r->page[i], given[i]);
		return false;
	}
	return true;
}

/* Inside: takes what it gives, and applies it. */
static bool apply_give(struct cport *ps, const struct hit *h, struct xreq *r)
{
	uint64_t given[HIT_BUCKETS];

	prefetch_owners(peer_of(ps->cache)->seg, h);
	if (!give_is_plain(ps, h, r) || !take_all(ps, h, r, given))
		return false;
	xseg_req_start(ps->pp->port, r);
	for (uint32_t i = 0; i < h->nr; i++) {
		uint32_t old = write_slot(ps, h->obj, h->first + i, &h->slot[i], r->page[i],
			true);

		gift_exchange(ps, r, i, old, given[i]);
		XKILL(WRITE_SLOT);
	}
	write_count(ps, h, r, h->nr);
	write_done(ps, h, r);
	return true;
}

/* ---- the whole ---- */

/* Most want one whole bucket. */
static bool is_single(const struct xreq *r)
{
	return r->size == BUCKET_SIZE && (r->obj_offset | r->offset) % BUCKET_SIZE == 0 &&
	       r->obj_offset < OBJECT_BYTES;
}

/* Where it leads; false: it is nothing for the short way. */
static inline bool hit_init(struct cport *ps, struct hit *h, const struct xreq *r, bool single)
{
	*h = (struct hit){ .obj = r->user };
	if (!h->obj || (!single && !creq_range_ok(r)))
		return false;
	h->first = (uint32_t)(r->obj_offset / BUCKET_SIZE);
	h->nr = single ? 1 : xseg_req_span(r->obj_offset, r->size);
	if (h->nr > HIT_BUCKETS)
		return false;
	h->whole = single || (r->obj_offset | r->size) % BUCKET_SIZE == 0;
	h->volume = volume_of_request(ps, r);
	return true;
}

static bool is_plain(struct cport *ps, struct hit *h, const struct xreq *r)
{
	return object_is_plain(ps, h, r) && (h->slot = slots_of(ps->cache, h));
}

static bool enter(struct cport *ps, struct object *o)
{
	return cache_is_alone(ps) ? xworkq_enter_alone(&o->q) : xworkq_try_enter(&o->q);
}

static void leave(struct cport *ps, const struct hit *h)
{
	if (cache_is_alone(ps) ? xworkq_leave_alone(&h->obj->q) : xworkq_leave(&h->obj->q))
		object_ready(ps, h->obj);
}

/* These two are compiled once more for single buckets, without loops: a tenth of what a lent read
 * takes. */
static inline bool read_hit(struct cport *ps, struct xreq *r, bool single)
{
	uint32_t lent = 0;
	struct hit h;
	bool served;

	if (!hit_init(ps, &h, r, single) || !enter(ps, h.obj))
		return false;
	served = is_plain(ps, &h, r) && read_is_plain(ps, &h, r);
	if (served) {
		order_touched_object(ps->cache, h.obj);
		lent = serve(ps, &h, r);
	}
	leave(ps, &h);
	if (!served)
		return false;
	read_count(ps, &h, r, lent);
	if (lent < h.nr)
		count_copied(ps, (h.nr - lent) * BUCKET_SIZE);
	peer_answer(ps->pp, r, r->size);
	return true;
}

static inline bool write_hit(struct cport *ps, struct xreq *r, bool single)
{
	bool served = false;
	struct hit h;

	if (hit_init(ps, &h, r, single)) {
		if (!enter(ps, h.obj))
			return false;
		served = is_plain(ps, &h, r) && write_is_plain(ps, &h, r) &&
			 (r->flags ? apply_give(ps, &h, r) : apply_copy(ps, &h, r));
		if (served)
			order_touched_object(ps->cache, h.obj);
		leave(ps, &h);
	}
	request_port(ps)->early.pays = served;
	return served;
}

XHOT XAPART static bool read_hit_any(struct cport *ps, struct xreq *r)
{
	return read_hit(ps, r, false);
}

XHOT XAPART static bool write_hit_any(struct cport *ps, struct xreq *r)
{
	return write_hit(ps, r, false);
}

XHOT XAPART bool hit_read(struct cport *ps, struct xreq *r)
{
	if (r->flags & XSEG_REQ_ONCE)
		return false;
	return is_single(r) ? read_hit(ps, r, true) : read_hit_any(ps, r);
}

XHOT XAPART bool hit_write(struct cport *ps, struct xreq *r)
{
	bool single = is_single(r);

	if (r->flags & ~XSEG_REQ_GIVE || (!single && (r->obj_offset | r->size) % BUCKET_SIZE))
		return false;
	return single ? write_hit(ps, r, true) : write_hit_any(ps, r);
}
