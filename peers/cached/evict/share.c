/* share - see share.h. */
#include <assert.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/lend/loan.h"
#include "peers/cached/volume/volume.h"

#define SORT_BATCH   256u
#define TRIM_BATCH   64u
#define SIGNAL_BATCH 16u
#define RETRY_NS     100000000ull

static uint32_t read_relaxed(const _Atomic uint32_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* ---- settings ---- */

static bool is_listed(struct cached *k, uint32_t rec)
{
	for (uint32_t i = 0; i < nr_shares(k); i++)
		if (volume_of(k)->shares.rec[i] == rec)
			return true;
	return false;
}

/* Under mem_lock. */
static void add_record(struct cached *k, uint32_t rec)
{
	uint32_t nr = nr_shares(k);

	if (is_listed(k, rec))
		return;
	volume_of(k)->shares.rec[nr] = (uint16_t)rec;
	/* release: partner is the acquire in nr_shares() */
	atomic_store_explicit(&volume_of(k)->shares.nr, nr + 1, memory_order_release);
}

void share_set(struct cached *k, uint32_t rec, uint32_t min, uint32_t max)
{
	struct share *sh = share_of(k, rec);
	bool had = has_share(k, rec);

	assert(rec != OTHERS || (min == 0 && max == 0));
	if (read_relaxed(&sh->min) == min && read_relaxed(&sh->max) == max)
		return;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	assert(volume_of(k)->shares.min_sum >= sh->min);	/* A3 */
	atomic_store_explicit(&volume_of(k)->shares.min_sum,
		volume_of(k)->shares.min_sum - sh->min + min, memory_order_relaxed);
	loans_recount(k);
	atomic_store_explicit(&sh->min, min, memory_order_relaxed);
	atomic_store_explicit(&sh->max, max, memory_order_relaxed);
	add_record(k, rec);
	if (!had)
		volume_of(k)->shares.unsorted = clean_nr(&memory_of(k)->clean);
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	share_ask(k, SHARE_CHANGED | SHARE_OVER);
}

void shares_open(struct cached *k)
{
	uint32_t min, max;

	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		clean_init(&share_of(k, r)->clean, memory_of(k)->chunk_pages.nodes);
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

/* ---- in the background ---- */

/* What it finds may be room for those who wait for some. */
static bool sort_some(struct cport *ps)
{
	struct cached *k = ps->cache;
	bool more;

	pthread_mutex_lock(&memory_of(k)->mem_lock);
	memory_port(ps)->freed |= volume_of(k)->shares.unsorted > 0;
	for (uint32_t n = SORT_BATCH; n && volume_of(k)->shares.unsorted; n--)
		if (clean_turn_locked(k, &memory_of(k)->clean) == XLIST_NONE)
			break;
	if (clean_nr(&memory_of(k)->clean) == 0)
		volume_of(k)->shares.unsorted = 0;
	more = volume_of(k)->shares.unsorted > 0;
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return more;
}

void share_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;

	for (uint32_t i = 0; i < nr_shares(k) && read_relaxed(&volume_of(k)->shares.waiting); i++) {
		uint32_t rec = volume_of(k)->shares.rec[i], tries = SIGNAL_BATCH;
		struct share *sh = share_of(k, rec);

		if (!xwaitq_has_waiters(&sh->want))
			continue;
		for (; tries && (w = xwaitq_pop(&sh->want, share_room(k, rec))) != NULL; tries--) {
			atomic_fetch_sub_explicit(
				&volume_of(k)->shares.waiting, 1, memory_order_relaxed);
			w->fn(w, ps);
		}
		if (!tries)
			memory_port(ps)->freed = true;
		share_look(k, rec);
	}
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
			ps, rec, over < TRIM_BATCH ? over : TRIM_BATCH, EVICT_PRESSURE);
	*more |= pages_over(share_of(k, rec)) > 0;
	share_look(k, rec);
	return n;
}

uint64_t share_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint32_t work, evicted = 0;
	bool unsorted, over = false;

	if (read_relaxed(&volume_of(k)->shares.work) == 0)
		return PEER_NEVER;
	work = atomic_exchange_explicit(&volume_of(k)->shares.work, 0, memory_order_relaxed);
	unsorted = sort_some(ps);
	for (uint32_t i = 0; i < nr_shares(k); i++)
		evicted += trim(ps, volume_of(k)->shares.rec[i], &over);
	if (work & SHARE_CHANGED)
		memory_port(ps)->freed = true;
	if (unsorted || over)
		atomic_fetch_or_explicit(
			&volume_of(k)->shares.work, SHARE_OVER, memory_order_relaxed);
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
	assert(rec != OTHERS || (!min && !max && !clean_nr(&sh->clean)));
	for (uint32_t page = clean_first(&sh->clean); page != XLIST_NONE;
		page = clean_after(&sh->clean, page))
		/* A2 */
		assert(memory_of(k)->page_use[page].list == rec &&
			object_volume(page_object(k, page, &b)) == rec && !page_leaves(k, page));
	/* A4 */
	assert(!sh->flushes || !xwaitq_empty(&sh->want) || pages_over(sh) ||
		volume_of(k)->shares.work);
}

void shares_check(struct cached *k)
{
	uint32_t clean = 0, waiting = 0, min_sum = 0;

	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		check_share(k, r);
		clean += clean_nr(&share_of(k, r)->clean);
		waiting += xwaitq_nr(&share_of(k, r)->want);
		min_sum += share_of(k, r)->min;
	}
	assert(clean == volume_of(k)->shares.clean && waiting == volume_of(k)->shares.waiting &&
		min_sum == volume_of(k)->shares.min_sum);
	for (uint32_t page = clean_first(&memory_of(k)->clean); page != XLIST_NONE;
		page = clean_after(&memory_of(k)->clean, page))
		/* A2 */
		assert(memory_of(k)->page_use[page].list == OTHERS &&
			(volume_of(k)->shares.unsorted || share_list_locked(k, page) == OTHERS));
}
