/* share - see share.h. */
#include <assert.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/volume/volume.h"

#define SORT_BATCH   256u
#define TRIM_BATCH   64u
#define SIGNAL_BATCH 16u
#define RETRY_NS     100000000ull
#define CHUNK_PART   8u			/* of the pages may be chunks while the minima hold */
/* pages of a request: its buckets, those put aside, chunks */
#define LARGEST	     (XSEG_REQ_PAGES + 15u)

/* What share_run() has to do. */
/* settings: who waits may go on, the common list may have to be turned round */
#define WORK_CHANGED 1u
#define WORK_OVER    2u			/* somebody is above his maximum */

static struct share *share_of(struct cached *k, uint32_t rec)
{
	return &volume_of(k)->states[rec].share;
}

static uint32_t read_relaxed(const _Atomic uint32_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* The i-th record that has a share, or had one. */
static struct share *share_at(struct cached *k, uint32_t i)
{
	return share_of(k, evict_of(k)->shares.rec[i]);
}

static uint32_t nr_shares(struct cached *k)
{
	/* acquire: partner is the release in add_record(); rec[] up to there is written */
	return atomic_load_explicit(&evict_of(k)->shares.nr, memory_order_acquire);
}

static bool has_share(struct cached *k, uint32_t rec)
{
	const struct share *sh = share_of(k, rec);

	return read_relaxed(&evict_of(k)->shares.nr) &&
	       (read_relaxed(&sh->min) || read_relaxed(&sh->max));
}

/* ---- what can be promised ---- */

static uint32_t reserve(struct cached *k, uint32_t pages)
{
	uint32_t nr = LARGEST + MAGAZINE * peer_of(k)->nr_ports + RESERVE_PAGES;

	return nr < pages / 3 ? nr : pages / 3;
}

static uint32_t usable(struct cached *k, uint32_t pages)
{
	return pages > memory_of(k)->withheld ? pages - memory_of(k)->withheld : 0;
}

uint32_t share_limit(struct cached *k, uint32_t pages)
{
	pages = usable(k, pages);
	return pages - pages / CHUNK_PART - reserve(k, pages);
}

uint32_t share_pages_for(struct cached *k, uint32_t min_sum)
{
	uint32_t pages = SIZE_MIN_PAGES;

	while (share_limit(k, pages) < min_sum)
		pages += XSEG_EXTENT_PAGES;
	return pages;
}

uint32_t share_unpromised(struct cached *k, uint32_t pages)
{
	uint32_t promised = read_relaxed(&evict_of(k)->shares.min_sum);

	if (promised)
		promised += reserve(k, pages);
	return pages > promised ? pages - promised : 0;
}

static bool promises_hold(struct cached *k)
{
	uint32_t pages = usable(k, read_relaxed(&memory_of(k)->nr_pages));

	return (uint64_t)read_relaxed(&evict_of(k)->shares.min_sum) +
		       read_relaxed(&memory_of(k)->nr_chunk_pages) + reserve(k, pages) <=
	       pages;
}

/* At its minimum or below. */
static bool is_kept(struct cached *k, uint32_t rec)
{
	const struct share *sh = share_of(k, rec);
	uint32_t min = read_relaxed(&sh->min);

	return min && read_relaxed(&sh->used) <= min && promises_hold(k);
}

bool share_spares(struct cached *k, struct object *o, uint32_t rec)
{
	uint32_t own = object_volume(o);

	return rec != FOR_NOBODY && rec != own && read_relaxed(&evict_of(k)->shares.nr) &&
	       is_kept(k, own);
}

/* ---- settings ---- */

static bool is_listed(struct cached *k, uint32_t rec)
{
	for (uint32_t i = 0; i < nr_shares(k); i++)
		if (evict_of(k)->shares.rec[i] == rec)
			return true;
	return false;
}

/* Under mem_lock. */
static void add_record(struct cached *k, uint32_t rec)
{
	uint32_t nr = nr_shares(k);

	if (is_listed(k, rec))
		return;
	evict_of(k)->shares.rec[nr] = (uint16_t)rec;
	/* release: partner is the acquire in nr_shares() */
	atomic_store_explicit(&evict_of(k)->shares.nr, nr + 1, memory_order_release);
}

/* share_run() is port 0's, whatever thread finds something for it to do. */
static void add_work(struct cached *k, uint32_t work)
{
	if ((atomic_fetch_or_explicit(&evict_of(k)->shares.work, work, memory_order_relaxed) &
		    work) != work)
		peer_port_kick(&peer_of(k)->ports[0]);
}

void share_set(struct cached *k, uint32_t rec, uint32_t min, uint32_t max)
{
	struct share *sh = share_of(k, rec);
	bool had = has_share(k, rec);

	assert(rec != OTHERS || (min == 0 && max == 0));
	if (read_relaxed(&sh->min) == min && read_relaxed(&sh->max) == max)
		return;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	atomic_store_explicit(&evict_of(k)->shares.min_sum,
		evict_of(k)->shares.min_sum - sh->min + min, memory_order_relaxed);
	loans_recount(k);
	atomic_store_explicit(&sh->min, min, memory_order_relaxed);
	atomic_store_explicit(&sh->max, max, memory_order_relaxed);
	add_record(k, rec);
	if (!had)
		evict_of(k)->shares.unsorted = memory_of(k)->clean.nr;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	add_work(k, WORK_CHANGED | WORK_OVER);
}

void shares_open(struct cached *k)
{
	uint32_t min, max;

	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		xlist_init(&share_of(k, r)->clean, memory_of(k)->clean.nodes);
		xwaitq_init(&share_of(k, r)->want);
		settings_share(atomic_load_explicit(
				       &volume_of(k)->records[r].settings, memory_order_relaxed),
			&min, &max);
		share_set(k, r, min, max);
	}
}

void shares_close(struct cached *k)
{
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++)
		waiters_drop(&share_of(k, r)->want);
}

/* ---- claims ---- */

void share_count(struct cached *k, uint32_t rec, int by)
{
	struct share *sh = share_of(k, rec);
	uint32_t used = atomic_fetch_add_explicit(&sh->used, (uint32_t)by, memory_order_relaxed) +
			(uint32_t)by;
	uint32_t max = read_relaxed(&sh->max);

	if (max && used > max && !(read_relaxed(&evict_of(k)->shares.work) & WORK_OVER))
		add_work(k, WORK_OVER);
}

struct claim share_claim_all(struct cached *k, uint32_t rec, uint32_t n, enum turn turn)
{
	struct claim cl = { .rec = rec, .grow = n, .turn = turn };
	const struct share *sh = share_of(k, rec);

	cl.owed = n && has_share(k, rec) &&
		  (uint64_t)read_relaxed(&sh->used) + n <= read_relaxed(&sh->min) &&
		  promises_hold(k);
	return cl;
}

struct claim share_claim(
	struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t n, enum turn turn)
{
	struct cached *k = ps->cache;
	uint32_t grow = 0, rec = object_volume(o),
		 end = n && has_share(k, rec) ? first + nr : first;

	for (uint32_t b = first; b < end; b++)
		grow += !slot_has_page(slot_get(k, o, b));
	return share_claim_all(k, rec, grow < n ? grow : n, turn);
}

/* What it is to be below its maximum: a request that is larger than that wants to be alone. */
static uint32_t room_wanted(const struct share *sh, const struct claim *cl)
{
	uint32_t max = read_relaxed(&sh->max);

	return cl->grow < max ? cl->grow : max;
}

uint32_t share_over(struct cached *k, const struct claim *cl)
{
	const struct share *sh = share_of(k, cl->rec);
	uint64_t used = (uint64_t)read_relaxed(&sh->used) + room_wanted(sh, cl);
	uint32_t max = read_relaxed(&sh->max);

	return max && cl->grow && used > max ? (uint32_t)(used - max) : 0;
}

struct need share_need_room(struct cached *k, const struct claim *cl)
{
	struct share *sh = share_of(k, cl->rec);

	return (struct need){
		.nr = room_wanted(sh, cl), .rec = cl->rec, .queue = &sh->want, .turn = TURN_ROOM
	};
}

uint32_t share_room(struct cached *k, uint32_t rec)
{
	struct share *sh = share_of(k, rec);
	uint32_t max = read_relaxed(&sh->max), used = read_relaxed(&sh->used);
	uint64_t room = max;

	if (max == 0)
		return UINT32_MAX;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	room += sh->clean.nr;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	if (room >= (uint64_t)used + max)
		/* for any request: who waits may have asked below a larger maximum */
		return UINT32_MAX;
	return room > used ? (uint32_t)(room - used) : 0;
}

bool share_is_full(struct cached *k, uint32_t rec, bool full)
{
	const struct share *sh = share_of(k, rec);
	uint32_t max = read_relaxed(&sh->max), used = read_relaxed(&sh->used);

	if (!has_share(k, rec))
		return full;
	if (max && used + max / 16 >= max)
		return true;
	return full && !(used < read_relaxed(&sh->min) && promises_hold(k));
}

uint32_t share_available(struct cached *k)
{
	uint32_t nr = pages_available(k), kept = 0;

	if (read_relaxed(&evict_of(k)->shares.min_sum) == 0 || !promises_hold(k))
		return nr;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	for (uint32_t i = 0; i < nr_shares(k); i++) {
		const struct share *sh = share_at(k, i);
		uint32_t min = read_relaxed(&sh->min), used = read_relaxed(&sh->used),
			 more = used > min ? used - min : 0;

		if (min && sh->clean.nr > more)
			kept += sh->clean.nr - more;
	}
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return nr > kept ? nr - kept : 0;
}

/* ---- victims ---- */

static bool may_lose(struct cached *k, uint32_t rec, const struct claim *cl)
{
	return rec == cl->rec ? !cl->owed : !is_kept(k, rec);
}

struct xlist *share_victims_locked(struct cached *k, const struct claim *cl)
{
	struct shares *s = &evict_of(k)->shares;
	uint32_t nr = nr_shares(k);

	for (uint32_t i = 0; i <= nr + 1; i++) {
		struct xlist *list = s->at ? &share_at(k, s->at - 1)->clean : &memory_of(k)->clean;

		if (s->left && list->nr && (s->at == 0 || may_lose(k, s->rec[s->at - 1], cl))) {
			s->left--;
			return list;
		}
		s->at = s->at < nr ? s->at + 1 : 0;
		list = s->at ? &share_at(k, s->at - 1)->clean : &memory_of(k)->clean;
		s->left = list->nr / 16 + 1;
	}
	return NULL;
}

uint32_t share_list_locked(struct cached *k, uint32_t page)
{
	struct object *o;
	uint32_t b;

	if (read_relaxed(&evict_of(k)->shares.nr) == 0)
		return OTHERS;
	o = page_object(k, page, &b);
	return o && has_share(k, object_volume(o)) ? object_volume(o) : OTHERS;
}

/* ---- in the background ---- */

/* What it finds may be room for those who wait for some. */
static bool sort_some(struct cport *ps)
{
	struct cached *k = ps->cache;
	bool more;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	memory_port(ps)->freed |= evict_of(k)->shares.unsorted > 0;
	for (uint32_t n = SORT_BATCH; n && evict_of(k)->shares.unsorted && memory_of(k)->clean.nr;
		n--)
		clean_turn_locked(k, &memory_of(k)->clean);
	if (memory_of(k)->clean.nr == 0)
		evict_of(k)->shares.unsorted = 0;
	more = evict_of(k)->shares.unsorted > 0;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return more;
}

void share_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;

	for (uint32_t i = 0; i < nr_shares(k) && read_relaxed(&evict_of(k)->shares.waiting); i++) {
		uint32_t rec = evict_of(k)->shares.rec[i], tries = SIGNAL_BATCH;
		struct share *sh = share_of(k, rec);

		if (!xwaitq_has_waiters(&sh->want))
			continue;
		for (; tries && (w = xwaitq_pop(&sh->want, share_room(k, rec))) != NULL; tries--) {
			atomic_fetch_sub_explicit(
				&evict_of(k)->shares.waiting, 1, memory_order_relaxed);
			w->fn(w, ps);
		}
		if (!tries)
			memory_port(ps)->freed = true;
		share_look(k, rec);
	}
}

void share_left(struct cached *k, const struct xwaitq *queue)
{
	for (uint32_t i = 0; i < nr_shares(k); i++) {
		if (queue != &share_at(k, i)->want)
			continue;
		atomic_fetch_sub_explicit(&evict_of(k)->shares.waiting, 1, memory_order_relaxed);
		share_look(k, evict_of(k)->shares.rec[i]);
		return;
	}
}

void share_has_room(struct cport *ps)
{
	struct cached *k = ps->cache;

	if (read_relaxed(&evict_of(k)->shares.nr) == 0)
		return;
	/* seq_cst: partner is the fence in xwaitq_add(): who begins to wait sees the room, or we
	 * see that he waits */
	atomic_thread_fence(memory_order_seq_cst);
	if (read_relaxed(&evict_of(k)->shares.waiting))
		memory_port(ps)->freed = true;
}

static uint32_t pages_over(const struct share *sh)
{
	uint32_t max = read_relaxed(&sh->max), used = read_relaxed(&sh->used);

	return max && used > max ? used - max : 0;
}

/* Evicts what is too much, of what is clean; returns how much, and whether there is more of it in
 * *more. */
static uint32_t trim(struct cport *ps, uint32_t rec, bool *more)
{
	struct cached *k = ps->cache;
	uint32_t over = pages_over(share_of(k, rec)), n = 0;

	if (over)
		n = pages_evict_own(
			ps, rec, over < TRIM_BATCH ? over : TRIM_BATCH, CC_EVICTED_PRESSURE);
	*more |= pages_over(share_of(k, rec)) > 0;
	share_look(k, rec);
	return n;
}

uint64_t share_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t work, evicted = 0;
	bool unsorted, over = false;

	if (read_relaxed(&evict_of(k)->shares.work) == 0)
		return PEER_NEVER;
	work = atomic_exchange_explicit(&evict_of(k)->shares.work, 0, memory_order_relaxed);
	unsorted = sort_some(ps);
	for (uint32_t i = 0; i < nr_shares(k); i++)
		evicted += trim(ps, evict_of(k)->shares.rec[i], &over);
	if (work & WORK_CHANGED)
		memory_port(ps)->freed = true;
	if (unsorted || over)
		atomic_fetch_or_explicit(
			&evict_of(k)->shares.work, WORK_OVER, memory_order_relaxed);
	if (unsorted || evicted)
		return ps->pp->now_ns;
	return over ? ps->pp->now_ns + RETRY_NS : PEER_NEVER;
}

bool shares_kept(struct cached *k)
{
	for (uint32_t i = 0; i < nr_shares(k); i++)
		if (pages_over(share_at(k, i)))
			return false;
	return true;
}

/* ---- checking ---- */

static void check_share(struct cached *k, uint32_t rec)
{
	struct share *sh = share_of(k, rec);
	uint32_t min, max, b;

	settings_share(atomic_load(&volume_of(k)->records[rec].settings), &min, &max);
	assert(sh->min == min && sh->max == max);
	assert((!min && !max) || is_listed(k, rec));
	assert(rec != OTHERS || (!min && !max && !sh->clean.nr));
	for (uint32_t page = xlist_head(&sh->clean); page != XLIST_NONE;
		page = xlist_next(&sh->clean, page))
		/* A2 */
		assert(memory_of(k)->page_use[page].list == rec &&
			object_volume(page_object(k, page, &b)) == rec && !page_leaves(k, page));
	/* A4 */
	assert(!sh->flushes || !xwaitq_empty(&sh->want) || pages_over(sh) ||
		evict_of(k)->shares.work);
}

void shares_check(struct cached *k)
{
	uint32_t clean = 0, waiting = 0, min_sum = 0;

	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		check_share(k, r);
		clean += share_of(k, r)->clean.nr;
		waiting += xwaitq_nr(&share_of(k, r)->want);
		min_sum += share_of(k, r)->min;
	}
	assert(clean == evict_of(k)->shares.clean && waiting == evict_of(k)->shares.waiting &&
		min_sum == evict_of(k)->shares.min_sum);
	for (uint32_t page = xlist_head(&memory_of(k)->clean); page != XLIST_NONE;
		page = xlist_next(&memory_of(k)->clean, page))
		/* A2 */
		assert(memory_of(k)->page_use[page].list == OTHERS &&
			(evict_of(k)->shares.unsorted || share_list_locked(k, page) == OTHERS));
}
