/* account - see account.h. */
#include <assert.h>

#include "peers/cached/memory/account.h"
#include "peers/cached/memory/pages.h"

#define CHUNK_PART   8u			/* of the pages may be chunks while the minima hold */
/* pages of a request: its buckets, those put aside, chunks */
#define LARGEST	     (XSEG_REQ_PAGES + 15u)

struct share *share_of(struct cached *k, uint32_t rec)
{
	return &volume_of(k)->states[rec].share;
}

static uint32_t read_relaxed(const _Atomic uint32_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

uint32_t nr_shares(struct cached *k)
{
	/* acquire: partner is the release in add_record(); rec[] up to there is written */
	return atomic_load_explicit(&volume_of(k)->shares.nr, memory_order_acquire);
}

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
	uint32_t promised = read_relaxed(&volume_of(k)->shares.min_sum);

	if (promised)
		promised += reserve(k, pages);
	return pages > promised ? pages - promised : 0;
}

static bool promises_hold(struct cached *k)
{
	uint32_t pages = usable(k, read_relaxed(&memory_of(k)->nr_pages));

	return (uint64_t)read_relaxed(&volume_of(k)->shares.min_sum) +
		       read_relaxed(&memory_of(k)->nr_chunk_pages) + reserve(k, pages) <=
	       pages;
}

/* At its minimum or below. */
bool share_is_kept(struct cached *k, uint32_t rec)
{
	const struct share *sh = share_of(k, rec);
	uint32_t min = read_relaxed(&sh->min);

	return min && read_relaxed(&sh->used) <= min && promises_hold(k);
}

bool share_spares(struct cached *k, uint32_t own, uint32_t rec)
{
	return rec != FOR_NOBODY && rec != own && read_relaxed(&volume_of(k)->shares.nr) &&
	       share_is_kept(k, own);
}

/* share_run() is port 0's, whatever thread finds something for it to do. */
void share_ask(struct cached *k, uint32_t work)
{
	if ((atomic_fetch_or_explicit(&volume_of(k)->shares.work, work, memory_order_relaxed) &
		    work) != work)
		peer_port_kick(&peer_of(k)->ports[0]);
}

void share_count(struct cached *k, uint32_t rec, int by)
{
	struct share *sh = share_of(k, rec);
	uint32_t was = atomic_fetch_add_explicit(&sh->used, (uint32_t)by, memory_order_relaxed);
	uint32_t used = was + (uint32_t)by, max = read_relaxed(&sh->max);

	assert(by >= 0 || was >= (uint32_t)-by);		/* A1 */
	if (max && used > max && !(read_relaxed(&volume_of(k)->shares.work) & SHARE_OVER))
		share_ask(k, SHARE_OVER);
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
	room += clean_nr(&sh->clean);
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

	if (read_relaxed(&volume_of(k)->shares.min_sum) == 0 || !promises_hold(k))
		return nr;
	pthread_mutex_lock(&memory_of(k)->mem_lock);
	for (uint32_t i = 0; i < nr_shares(k); i++) {
		const struct share *sh = share_at(k, i);
		uint32_t min = read_relaxed(&sh->min), used = read_relaxed(&sh->used),
			 more = used > min ? used - min : 0;

		if (min && clean_nr(&sh->clean) > more)
			kept += clean_nr(&sh->clean) - more;
	}
	pthread_mutex_unlock(&memory_of(k)->mem_lock);
	return nr > kept ? nr - kept : 0;
}

void share_has_room(struct cport *ps)
{
	struct cached *k = ps->cache;

	if (read_relaxed(&volume_of(k)->shares.nr) == 0)
		return;
	/* seq_cst: partner is the fence in xwaitq_add(): who begins to wait sees the room, or we
	 * see that he waits */
	atomic_thread_fence(memory_order_seq_cst);
	if (read_relaxed(&volume_of(k)->shares.waiting))
		memory_port(ps)->freed = true;
}

/* The i-th record that has a share, or had one. */
struct share *share_at(struct cached *k, uint32_t i)
{
	return share_of(k, volume_of(k)->shares.rec[i]);
}

bool has_share(struct cached *k, uint32_t rec)
{
	const struct share *sh = share_of(k, rec);

	return read_relaxed(&volume_of(k)->shares.nr) &&
	       (read_relaxed(&sh->min) || read_relaxed(&sh->max));
}
