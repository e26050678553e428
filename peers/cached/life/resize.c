/* resize - the cache grows and shrinks while it serves, an extent of 512 pages at a time.
 *
 * The size that is asked for is one word in the arena's head, with the size that the process was
 * started with. The words of the extents tell the size that there is. So both survive a kill at any
 * point, and a successor goes on from there. A successor that is started with the same `memory` as
 * the last one keeps the size that was asked for since. Another `memory` is asked for anew.
 *
 *   growing     extents are taken, one a round; their pages are free. With none left in the segment
 *               it is tried once a second
 *   shrinking   the extents with the most free pages are chosen (they leave). Their pages are not
 *               used again: free ones are out at once, others when they would become free. Then, a
 *               few pages a round:
 *                 - chunks (of slots) move to other chunks
 *                 - clean and dirty data moves to free pages
 *                 - if none is free, hot data and dirty data moves to the page of the least
 *                   recently used bucket
 *                 - else clean data is evicted, and dirty data stays. More is dirty than may be
 *                   then, as the marks count the pages that stay, so the flusher is at work
 *                 - a volume's data up to its minimum (share.h) moves in any case, before requests
 *                   that wait for pages, and if need be when all dirty data has been flushed.
 *               A page that a child in flight lists is left until that has ended. A page on loan is
 *               left until no client reads it. An extent with all of its pages out is given back
 *   asked anew  before it is done: extents that leave stay again, or more are chosen
 *
 * The progress has no state of its own. Each round compares the number of extents, and of those
 * that leave (extent.c), with the number that is asked for, and goes on from there.
 *
 * Contract: resize_run() in port 0's poll, outside of any object; resize_ask() in any port's
 * thread, one at a time. Neither waits for I/O. The only system call wakes ports that sleep.
 */
#include <errno.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/life/cached.h"
#include "peers/common/options/opt.h"
#include "xtypes/xkill.h"

#define ROUND_EXTENTS 4u		/* chosen, or kept again, a round */
#define ROUND_SWEEP   4096u		/* pages of the pool looked at a round */
#define ROUND_PAGES   64u		/* pages emptied a round, */
#define ROUND_LOOKS   1024u		/* and looked at for that */
#define ROUND_ENTRIES 256u		/* entries looked at a round */
#define ENTRY_LOOKS   16u		/* what entering one counts as */
#define RETRY_MIN_NS  10000000ull
#define RETRY_MAX_NS  1000000000ull

static uint32_t target_of(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->target_pages, memory_order_relaxed);
}

bool resizing(struct cached *k)
{
	return nr_owned(k) != target_of(k) ||
	       atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed);
}

uint64_t resize_left(struct cached *k)
{
	uint32_t in = nr_owned(k) -
		      atomic_load_explicit(&memory_of(k)->nr_out, memory_order_relaxed),
		 want = target_of(k);

	return (uint64_t)(in > want ? in - want : want - in) * BUCKET_SIZE;
}

/* ---- what is asked for ---- */

/* Whole extents. */
static uint32_t pages_asked(const struct cached *k)
{
	return xseg_pages_round(
		(uint32_t)((options_of(k)->memory + BUCKET_SIZE - 1) / BUCKET_SIZE));
}

static void size_set(struct cached *k, uint32_t at_start, uint32_t pages)
{
	/* one store: a successor finds both or neither */
	atomic_store_explicit(
		&life_of(k)->head->size, size_word(at_start, pages), memory_order_release);
	XKILL(SIZE_STORED);
	atomic_store_explicit(&memory_of(k)->target_pages, pages, memory_order_relaxed);
	options_of(k)->memory = (uint64_t)pages * BUCKET_SIZE;
}

void size_open(struct cached *k)
{
	uint64_t was = atomic_load_explicit(&life_of(k)->head->size, memory_order_acquire);
	uint32_t asked = pages_asked(k), since = (uint32_t)was;

	if (was >> 32 != asked || since < SIZE_MIN_PAGES || since % XSEG_EXTENT_PAGES)
		since = asked;
	size_set(k, asked, since);
}

/* Under volume_lock: what volumes have for sure has to fit in. */
static int check_minima(struct cached *k, uint32_t want, struct xseg_error *err)
{
	uint32_t sum = atomic_load_explicit(&volume_of(k)->shares.min_sum, memory_order_relaxed),
		 least;
	char size[32];

	if (want >= target_of(k) || sum <= share_limit(k, want))
		return 0;
	least = share_pages_for(k, sum);
	opt_human_size((uint64_t)sum * BUCKET_SIZE, size, sizeof(size));
	return xseg_fail(err, -EBUSY,
		"memory=%uM is too little for the minima of the volumes, %s in all; ask for %uM at "
		"least, or lower them ('xseg cache set %s min=0 --volume VOL')",
		want >> 8, size, least >> 8, peer_of(k)->name);
}

int resize_ask(struct cached *k, struct xseg_error *err)
{
	uint32_t want = pages_asked(k), have = nr_owned(k),
		 free = xseg_nr_free_pages(peer_of(k)->seg);
	char asked[32], more[32], left[32];
	int rc;

	if (want == target_of(k)) {
		options_of(k)->memory = (uint64_t)want * BUCKET_SIZE;
		return 0;
	}
	if (want > have && want - have > free) {
		opt_human_size((uint64_t)want * BUCKET_SIZE, asked, sizeof(asked));
		opt_human_size((uint64_t)(want - have) * BUCKET_SIZE, more, sizeof(more));
		opt_human_size((uint64_t)free * BUCKET_SIZE, left, sizeof(left));
		return xseg_fail(err, -ENOMEM,
			"memory=%s needs %s more than the cache has, and the segment has %s left; "
			"ask for %uM at most, or make the segment with more memory",
			asked, more, left, (have + free) >> 8);
	}
	pthread_mutex_lock(&volume_of(k)->volume_lock);
	rc = check_minima(k, want, err);
	if (rc == 0)
		size_set(k,
			(uint32_t)(atomic_load_explicit(
					   &life_of(k)->head->size, memory_order_relaxed) >>
				   32),
			want);
	pthread_mutex_unlock(&volume_of(k)->volume_lock);
	return rc;
}

/* ---- extents come and go ---- */

static uint64_t grow(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t page[XSEG_EXTENT_PAGES];

	if (xseg_nr_free_pages(peer_of(k)->seg) == 0 ||
		xseg_pages_take(peer_of(k)->xp, XSEG_EXTENT_PAGES, page))
		return ps->pp->now_ns + RETRY_MAX_NS;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	extent_add(k, page[0]);
	for (uint32_t i = XSEG_EXTENT_PAGES; i-- > 0;)
		pool_put(k, page[i]);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	memory_port(ps)->freed = true;
	return ps->pp->now_ns;
}

static void kick_all(struct cached *k)
{
	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		peer_port_kick(&peer_of(k)->ports[i]);
}

/* For data, when one more extent has left: what is cut into chunks stays. */
static uint32_t rest_pages(struct cached *k)
{
	uint32_t pages = data_pages(k);

	return pages > XSEG_EXTENT_PAGES ? pages - XSEG_EXTENT_PAGES : 0;
}

/* As many as are to leave, or a few of them: the others have their turn in the next rounds. */
static uint64_t leave_some(struct cport *ps, uint32_t nr)
{
	struct cached *k = ps->cache;

	for (uint32_t i = 0; i < nr && i < ROUND_EXTENTS; i++) {
		if (!loans_fit(k, rest_pages(k))) {
			kick_all(k);	/* an idle port keeps unused credit until it polls */
			return ps->pp->now_ns + RETRY_MIN_NS;
		}
		if (!extent_leave(k))
			return ps->pp->now_ns + RETRY_MAX_NS;
		loans_recount(k);
	}
	if (nr <= ROUND_EXTENTS)
		kick_all(k);	/* their magazines hold some of them */
	life_of(k)->resize = (struct resize){ .page = 0 };
	return ps->pp->now_ns;
}

static uint64_t keep_some(struct cport *ps, uint32_t nr)
{
	struct cached *k = ps->cache;

	for (uint32_t i = 0; i < nr && i < ROUND_EXTENTS && extent_stay(k); i++)
		;
	memory_port(ps)->freed = true;
	return ps->pp->now_ns;
}

/* ---- emptying them ---- */

static bool enter(struct cport *ps, struct object *o)
{
	if (!xworkq_try_enter(&o->q))
		return false;
	object_port(ps)->inside = o;
	return true;
}

static void go_out(struct cport *ps, struct object *o)
{
	object_port(ps)->inside = NULL;
	if (xworkq_leave(&o->q))
		object_ready(ps, o);
}

/* The old page is the truth until the slot is stored. */
static void move_bucket(struct cport *ps, struct object *o, uint32_t b, uint64_t w, uint32_t to)
{
	struct xseg *seg = peer_of(ps->cache)->seg;
	bool listed = slot_is_evictable(w);

	memcpy(xseg_page(seg, to), xseg_page(seg, slot_page(w)), BUCKET_SIZE);
	XKILL(PAGE_COPIED);
	if (listed)
		page_unclean(ps, slot_page(w));
	bucket_set(ps, o, b, slot_with_page(w, to));
	page_put(ps, slot_page(w));
	if (listed)
		page_clean(ps, to);
}

/* Inside: the page leaves the bucket, if that is clean or dirty. LOADING and WRITING: a child lists
 * it; HELD: an orphan may. */
static void leave_bucket(struct cport *ps, struct object *o, uint32_t b, uint32_t page)
{
	uint64_t w = slot_get(ps->cache, o, b);
	enum bucket_state s = slot_state(w);
	bool spared = share_spares(ps->cache, object_volume(o), OTHERS);
	uint32_t to;

	if (!slot_has_page(w) || slot_page(w) != page || (s != BUCKET_VALID && s != BUCKET_DIRTY) ||
		o->state == OBJECT_HELD)
		return;
	to = page_get(ps, !slot_is_evictable(w) || order_is_hot(w) || spared, spared);
	if (to != XPOOL_NONE)
		move_bucket(ps, o, b, w, to);
	else if (spared)
		atomic_store_explicit(
			&volume_of(ps->cache)->shares.squeezed, true, memory_order_relaxed);
	else if (slot_is_evictable(w))
		evict_drop(ps, o, b, w, EVICT_PRESSURE);
}

static void walk_pages(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct resize *r = &life_of(k)->resize;
	uint32_t end = xseg_nr_pages(peer_of(k)->seg), looks = ROUND_LOOKS, budget = ROUND_PAGES, b;
	struct object *o;

	for (; r->page < end && looks && budget; looks--) {
		struct extent *e = page_extent(k, r->page);

		if (!page_leaves(k, r->page) ||
			(r->page % XSEG_EXTENT_PAGES == 0 && extent_give(k, e))) {
			r->page = extent_page(k, e + 1);
			continue;
		}
		o = page_object(k, r->page, &b);
		if (o && enter(ps, o)) {
			leave_bucket(ps, o, b, r->page);
			go_out(ps, o);
			budget--;
		}
		r->page++;
	}
}

static bool too_many_zeroes(struct cached *k)
{
	return atomic_load_explicit(&memory_of(k)->nr_zeroes, memory_order_relaxed) > zeroes_max(k);
}

/* They hold chunks, perhaps more of them than a smaller cache can have. */
static void drop_zeroes(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0;
		b < OBJECT_BUCKETS && o->nr[BUCKET_VALID] && too_many_zeroes(ps->cache); b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (slot_is_clean_zero(w))
			evict_drop(ps, o, b, w, EVICT_PRESSURE);
	}
}

/* From outside of the object: a hint. */
static bool chunk_leaves(struct cached *k, uint32_t entry, uint32_t nr)
{
	uint32_t chunk =
		atomic_load_explicit(&object_of(k)->entries[entry].chunk[nr], memory_order_relaxed);

	return chunk && (chunk - 1) / CHUNKS_PER_PAGE < memory_of(k)->seg_pages &&
	       page_leaves(k, (chunk - 1) / CHUNKS_PER_PAGE);
}

/* False: there is neither a chunk nor a page. */
static bool move_chunk(struct cport *ps, struct object *o, uint32_t nr)
{
	uint32_t to = chunk_get(ps);

	if (to == NO_CHUNK)
		return false;
	chunk_move(ps, o, nr, to);
	return true;
}

static bool walk_entry(struct cport *ps, uint32_t entry)
{
	struct cached *k = ps->cache;
	struct object *o = &object_of(k)->objects[entry];
	bool wanted = too_many_zeroes(k) && atomic_load_explicit(&o->used, memory_order_relaxed);

	for (uint32_t nr = 0; nr < OBJECT_CHUNKS && !wanted; nr++)
		wanted = chunk_leaves(k, entry, nr);
	if (!wanted || !xcache_try_get(&object_of(k)->xc, entry))
		return false;
	if (enter(ps, o)) {
		drop_zeroes(ps, o);
		for (uint32_t nr = 0; nr < OBJECT_CHUNKS; nr++)
			if (chunk_leaves(k, entry, nr) && !move_chunk(ps, o, nr))
				break;
		go_out(ps, o);
	}
	object_put(ps, o);
	return true;
}

static void walk_entries(struct cport *ps)
{
	struct resize *r = &life_of(ps->cache)->resize;

	for (uint32_t n = 0; r->entry < nr_entries(ps->cache) && n < ROUND_ENTRIES; r->entry++)
		n += walk_entry(ps, r->entry) ? ENTRY_LOOKS : 1;
}

/* After all entries and pages were looked at: at once again if anything went out, else after a
 * pause. */
static uint64_t pass_end(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct resize *r = &life_of(k)->resize;
	uint32_t out = atomic_load_explicit(&memory_of(k)->nr_out, memory_order_relaxed);
	uint64_t pause_ns = 0;

	if (out == r->nr_out)
		pause_ns = !r->pause_ns                      ? RETRY_MIN_NS
			   : r->pause_ns >= RETRY_MAX_NS / 2 ? RETRY_MAX_NS
							     : r->pause_ns * 2;
	atomic_store_explicit(&volume_of(k)->shares.squeezed, false, memory_order_relaxed);
	*r = (struct resize){
		.nr_out = out, .next_ns = ps->pp->now_ns + pause_ns, .pause_ns = pause_ns
	};
	return r->next_ns;
}

static uint64_t empty_some(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct resize *r = &life_of(k)->resize;
	bool swept;

	if (r->next_ns > ps->pp->now_ns)
		return r->next_ns;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	swept = memory_of(k)->leaving_free > 0;
	pool_sweep(k, &r->pool_at, ROUND_SWEEP);
	pages_count(k);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (swept)
		return ps->pp->now_ns;
	if (r->entry < nr_entries(k) &&
		(atomic_load_explicit(&memory_of(k)->leaving_chunk_pages, memory_order_relaxed) ||
			too_many_zeroes(k)))
		walk_entries(ps);
	else if (r->page < xseg_nr_pages(peer_of(k)->seg))
		walk_pages(ps);
	else
		return pass_end(ps);
	return ps->pp->now_ns;
}

static uint64_t resize_step(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t want = target_of(k),
		 have = atomic_load_explicit(&memory_of(k)->nr_pages, memory_order_relaxed);
	bool leaving = atomic_load_explicit(&memory_of(k)->nr_leaving, memory_order_relaxed) > 0;

	if (have > want)
		return leave_some(ps, (have - want) / XSEG_EXTENT_PAGES);
	if (have < want && leaving)
		return keep_some(ps, (want - have) / XSEG_EXTENT_PAGES);
	if (have < want)
		return grow(ps);
	if (leaving)
		return empty_some(ps);
	if (atomic_load_explicit(&volume_of(k)->shares.squeezed, memory_order_relaxed))
		atomic_store_explicit(&volume_of(k)->shares.squeezed, false, memory_order_relaxed);
	return PEER_NEVER;
}

uint64_t resize_run(struct cport *ps)
{
	uint32_t had = nr_owned(ps->cache);
	uint64_t next_ns = resize_step(ps);

	if (nr_owned(ps->cache) != had)
		atomic_store(&admin_of(ps->cache)->gauges_ns, 0);
	return next_ns;
}
