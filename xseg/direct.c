/* direct - reads that send no request: a client reads a cache's tables in the segment.
 *
 * The published tables are the truth itself: entries, chunks and slots (xseg.h). A reader derives
 * one thing: where the entry of each object is that it knows. It learns that from an answer that
 * lends it a page: the owner word of a page in a slot names entry and slot. So no table of names is
 * published, and a request goes the same way as before. A reader need not know how its peer names
 * objects.
 *
 * The steps of a read, and the facts that hold after each:
 *   1  the path is as it was when the object was           a new request would reach this cache
 *      learned
 *   2  entry -> chunk -> slot: it has a page, and DIRECT
 *   3  the page is listed in the reader's own request             it is pinned if 4 succeeds
 *      fence
 *   4  the slot has that page and DIRECT still                    the page was this slot's after it
 *                                                                 was listed: a cache that lets go
 *                                                                 of it looks through all requests
 *                                                                 before it is used again (a
 *                                                                 hazard pointer)
 *   5  the entry has the version that was learned                 the slot was this object's, all
 *                                                                 the time since
 *   6  the path is as it was                                      a request sent at 4 would have
 *                                                                 reached this cache
 * The read takes place at 4. The cache answers a write after it stored the slot, so data that was
 * acknowledged before is there. If a step fails, nothing was read, and the request is sent.
 *
 * The path consists of the peer that requests are sent to, and the cache. The cache is that peer or
 * the next one. Each has a word (`direct`), which is odd while direct reads are allowed. It changes
 * when learned facts may be wrong: when a peer begins anew, stops, leaves the path, or deletes data
 * that others know. Two more facts belong to the path. The route between the two is unchanged. No
 * peer has the cache to itself (`above`), since that peer would have newer data. A peer that dies
 * leaves its word as it is. Then nothing changes below until its successor shuts the word, before
 * it touches anything.
 *
 * Nothing that is read here is trusted (R5): each index is checked before use, and each address is
 * in the segment. Arenas and chunks may belong to others by then; steps 5 and 6 detect that. The
 * words are read by atomic loads, though another process may write them as plain data.
 *
 * Whether a try pays (xseg_direct_pays()). A failed try costs a few loads. Its request asks for a
 * mark, and the cache pays for the mark when the page leaves its slot. So a caller that need not
 * try asks first. Each place of known[] counts the tries of its objects, TRIES in a row. If fewer
 * than ENOUGH of a row succeed, the next PAUSE_MIN reads of these objects are no tries. Such a row
 * ends as soon as ENOUGH cannot be reached any more. The pause doubles after each further row in
 * vain, up to PAUSE_MAX. A row after one in vain ends earlier: after TRIES_AGAIN tries, if all have
 * failed. The first row needs more, since the cache marks whole chunks only after some loans. If
 * nearly all tries of all objects fail for long, the load only misses. Then first rows are as
 * short, and the pause is PAUSE_VAIN at once. Long means AN_OBJECT tries for each object that was
 * tried: if the data were there, some object would have its marks before. When a path opens, all
 * begin anew.
 *
 * Recency: one byte for each page. A reader sets it if it is not set. The cache clears it when the
 * page comes up for eviction. The reader counts its reads at the cache's peer, and a client's in
 * the block of its volume.
 *
 * Contract: a reader belongs to the thread of its port. Open, shut, max: any thread of the peer,
 * one at a time.
 *
 * Invariants:
 *   D1  A page that was in a slot with DIRECT is neither reused nor changed until a look at all
 *       requests has not found it. That look begins after the slot was stored. (The cache sees to
 *       that: loan.c there.)
 *   D2  The version changes before the things that it guards can be another's, and never goes back.
 *       `direct` does the same.
 *   D3  No port pins more pages than it may, by its own count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xseg/internal.h"
#include "xtypes/xkill.h"

#define OBJECTS_MAX  (1u << 20)
#define COUNT_READS  16u	/* that a reader keeps to itself at most */
#define TRIES	     64u	/* a row */
#define ENOUGH	     48u	/* of a row, for the next one to follow at once */
#define TRIES_AGAIN  4u		/* of a row after one in vain: it ends if all these fail */
#define PAUSE_MIN    128u	/* reads that are no tries, after a row in vain */
#define PAUSE_MAX    2048u
#define PAUSE_VAIN   1024u	/* the same at least, while all miss */
#define VAIN_MIN     256u	/* so many tries failed, */
#define AN_OBJECT    8u		/* and so many for each object: all miss */
#define SUCCESS	     16u	/* a try that succeeds makes up for so many */
#define VAIN_MAX     (2 * AN_OBJECT * OBJECTS_MAX)
#define SLOTS_BYTES  (XSEG_CHUNK_SLOTS * sizeof(uint64_t))
#define CHUNKS_PER_PAGE (XSEG_PAGE_SIZE / SLOTS_BYTES)

/* What has to stay as it is. */
struct path {
	uint64_t top, cache, route, keeps;
	uint32_t above;
};

/* An object: where its entry is. Good while path and version are. */
struct known {
	uint64_t object, version;
	const struct xseg_slots *slots;
	uint32_t volume, path;			/* path 0: none */
};

/* The tries of the objects that share a place in known[]. */
struct trial {
	uint16_t left;				/* reads that are no tries */
	uint16_t pause;				/* how many these were at first; 0: it pays */
	uint8_t tries, found;			/* of this row */
	bool tried;				/* since the path opened */
};

struct xseg_direct {
	struct xport *port;
	struct xseg *seg;
	uint32_t top, cache;			/* peers; cache XSEG_NONE: there is no such path */
	uint32_t path_nr;			/* counts paths; not 0 */
	uint32_t credit;	/* pages that it may pin before it has to count again (D3) */
	uint32_t reads, volume;			/* not yet counted, and whose */
	uint64_t bytes;
	uint32_t mask;				/* of known[] */
	uint32_t vain, nr_tried;	/* tries that failed, SUCCESS less for each other; places */
	struct path path;
	struct xseg_direct_table table;		/* of the cache, checked */
	struct known *known;
	struct trial *trial;			/* as many */
	uint32_t *extent, nr_extents;		/* the arena's, by number */
};

/* ---- the served side ---- */

void xseg_direct_open(struct xseg_peer *peer, const struct xseg_direct_table *t)
{
	struct xs_peer *p = peer->sh;

	if (xseg_direct_is_open(peer))
		return;
	atomic_store_explicit(&p->direct_off, t->off, memory_order_relaxed);
	atomic_store_explicit(&p->direct_nr, t->nr, memory_order_relaxed);
	atomic_store_explicit(&p->direct_stride, t->stride, memory_order_relaxed);
	atomic_store_explicit(&p->direct_max, t->max, memory_order_relaxed);
	/* release: partner is the acquire in path_load() */
	atomic_store_explicit(&p->direct,
		atomic_load_explicit(&p->direct, memory_order_relaxed) + 1, memory_order_release);
	XKILL(DIRECT_OPENED);
}

void xs_direct_shut(struct xs_peer *p)
{
	uint64_t w = atomic_load_explicit(&p->direct, memory_order_relaxed);

	if (w & 1)
		atomic_store_explicit(&p->direct, w + 1, memory_order_release);
	/* seq_cst: partner is the fence in pinned(): who has pinned a page before is seen by a look
	 * for it, or he sees that it is shut */
	atomic_thread_fence(memory_order_seq_cst);
}

void xseg_direct_shut(struct xseg_peer *peer)
{
	xs_direct_shut(peer->sh);
	XKILL(DIRECT_SHUT);
}

bool xseg_direct_is_open(struct xseg_peer *peer)
{
	return atomic_load_explicit(&peer->sh->direct, memory_order_relaxed) & 1;
}

void xseg_direct_max_set(struct xseg_peer *peer, uint32_t max)
{
	atomic_store_explicit(&peer->sh->direct_max, max, memory_order_relaxed);
}

bool xseg_page_touched(struct xseg *seg, uint32_t page)
{
	/* relaxed: a touch that is lost, or comes too late, is a page that goes too early */
	if (page >= seg->nr_pages ||
		!atomic_load_explicit(&seg->touched[page], memory_order_relaxed))
		return false;
	atomic_store_explicit(&seg->touched[page], 0, memory_order_relaxed);
	return true;
}

/* ---- counting ---- */

/* What others look at beside it is not in that line. */
static void count_publish(struct xseg_direct *d)
{
	struct xs_peer *p;

	if (!d->reads)
		return;
	p = &d->seg->peers[d->cache];
	atomic_fetch_add_explicit(&p->direct_reads, d->reads, memory_order_relaxed);
	atomic_fetch_add_explicit(&p->direct_bytes, d->bytes, memory_order_relaxed);
	xs_measure_direct(d->port, d->top, d->volume, d->reads, d->bytes);
	d->reads = 0;
	d->bytes = 0;
}

/* A read that was found; some at a time, as others count there too. */
static void count_read(struct xseg_direct *d, const struct xreq *r)
{
	if (d->volume != r->volume)
		count_publish(d);
	d->volume = r->volume;
	d->bytes += r->size;
	if (++d->reads >= COUNT_READS)
		count_publish(d);
}

/* ---- life ---- */

static bool sizes_ok(struct xport *port, uint32_t peer, uint32_t objects)
{
	return peer < port->seg->geo.nr_ports && objects > 0 && objects <= OBJECTS_MAX;
}

int xseg_direct_create(
	struct xport *port, uint32_t peer, uint32_t objects, struct xseg_direct **out)
{
	struct xseg_direct *d;
	uint32_t nr = 1;

	if (!sizes_ok(port, peer, objects))
		return -EINVAL;
	while (nr < objects)
		nr *= 2;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->port = port;
	d->seg = port->seg;
	d->top = peer;
	d->cache = XSEG_NONE;
	d->path_nr = 1;
	d->mask = nr - 1;
	d->known = calloc(nr, sizeof(*d->known));
	d->trial = calloc(nr, sizeof(*d->trial));
	d->extent = calloc(d->seg->geo.nr_extents, sizeof(*d->extent));
	if (!d->known || !d->trial || !d->extent) {
		xseg_direct_destroy(d);
		return -ENOMEM;
	}
	*out = d;
	return 0;
}

void xseg_direct_destroy(struct xseg_direct *d)
{
	if (xs_is_usable(d->seg))		/* it counts in the segment, and for its parent */
		count_publish(d);
	free(d->known);
	free(d->trial);
	free(d->extent);
	free(d);
}

/* ---- the path ---- */

static uint64_t direct_of(struct xseg *seg, uint32_t peer)
{
	return atomic_load_explicit(&seg->peers[peer].direct, memory_order_acquire);
}

static uint64_t route_of(struct xseg *seg, uint32_t peer)
{
	return atomic_load_explicit(&seg->peers[peer].route, memory_order_acquire);
}

static struct path path_load(const struct xseg_direct *d)
{
	uint32_t above = atomic_load_explicit(&d->seg->peers[d->cache].above, memory_order_acquire);

	return (struct path){ .top = direct_of(d->seg, d->top),
		.cache = direct_of(d->seg, d->cache),
		.route = route_of(d->seg, d->top),
		.above = above,
		.keeps = above && above <= d->seg->geo.nr_ports ? route_of(d->seg, above - 1) : 0 };
}

static bool path_is_same(const struct xseg_direct *d)
{
	struct path now = path_load(d);

	return now.top == d->path.top && now.cache == d->path.cache && now.route == d->path.route &&
	       now.above == d->path.above && now.keeps == d->path.keeps;
}

/* Both allow it, and nobody has the cache to himself. `above` may be of one who had, and has
 * left. */
static bool path_is_open(const struct xseg_direct *d)
{
	return d->path.top & d->path.cache & 1 &&
	       (d->path.above == 0 || route_lower(d->path.keeps) != d->cache);
}

/* The extents of the cache's arena, by number (A1). False: they are not all there, at this
 * moment. */
static bool find_arena(struct xseg_direct *d)
{
	struct xseg *seg = d->seg;
	uint32_t nr = atomic_load_explicit(
			 &seg->peers[d->cache].arena_extents, memory_order_acquire),
		 found = 0;

	if (nr > seg->geo.nr_extents)
		return false;
	for (uint32_t i = 0; i < seg->geo.nr_extents; i++) {
		uint64_t w = atomic_load_explicit(&seg->extents[i].word, memory_order_acquire);

		if (extent_kind(w) != XS_EXTENT_ARENA || extent_peer(w) != d->cache ||
			extent_nr(w) >= nr)
			continue;
		d->extent[extent_nr(w)] = i;
		found++;
	}
	d->nr_extents = nr;
	return found == nr;
}

static bool find_table(struct xseg_direct *d)
{
	const struct xs_peer *p = &d->seg->peers[d->cache];
	struct xseg_direct_table *t = &d->table;

	t->off = atomic_load_explicit(&p->direct_off, memory_order_relaxed);
	t->nr = atomic_load_explicit(&p->direct_nr, memory_order_relaxed);
	t->stride = atomic_load_explicit(&p->direct_stride, memory_order_relaxed);
	return t->off % _Alignof(struct xseg_slots) == 0 &&
	       t->stride % _Alignof(struct xseg_slots) == 0 && find_arena(d);
}

/* Which peer has the tables for what is sent to d->top. */
static uint32_t find_cache(const struct xseg_direct *d)
{
	const struct xs_peer *top = &d->seg->peers[d->top];
	uint32_t at = d->top;

	if (!atomic_load_explicit(&top->direct_nr, memory_order_relaxed))
		at = route_lower(route_of(d->seg, d->top));
	return at < d->seg->geo.nr_ports && atomic_load_explicit(&d->seg->peers[at].direct_nr,
						    memory_order_relaxed)
		       ? at
		       : XSEG_NONE;
}

static void trials_anew(struct xseg_direct *d)
{
	memset(d->trial, 0, ((size_t)d->mask + 1) * sizeof(*d->trial));
	d->vain = d->nr_tried = 0;
}

/* The path as it is now; all that was learned by another one is void. The words are loaded first:
 * if something changes while the rest is found out, the next look sees that they differ. */
static void path_find(struct xseg_direct *d)
{
	count_publish(d);
	if (++d->path_nr == 0)
		d->path_nr = 1;
	d->cache = find_cache(d);
	if (d->cache == XSEG_NONE)
		return;
	d->path = path_load(d);
	if (!path_is_open(d) || find_cache(d) != d->cache || !find_table(d) || !path_is_same(d))
		d->cache = XSEG_NONE;
	else
		trials_anew(d);
}

static bool path_is_good(struct xseg_direct *d)
{
	if (d->cache == XSEG_NONE || !path_is_same(d))
		path_find(d);
	return d->cache != XSEG_NONE;
}

/* ---- entries and slots ---- */

static uint32_t place_of(const struct xseg_direct *d, uint32_t volume, uint64_t object)
{
	uint64_t h = (object ^ (uint64_t)volume << 40) * 0x9E3779B97F4A7C15ull;

	return h >> 32 & d->mask;
}

static struct known *known_at(const struct xseg_direct *d, uint32_t volume, uint64_t object)
{
	return &d->known[place_of(d, volume, object)];
}

/* NULL: there is no such entry, or it lies in two extents. */
static const struct xseg_slots *slots_at(const struct xseg_direct *d, uint32_t entry)
{
	uint64_t off = d->table.off + (uint64_t)entry * d->table.stride,
		 in = off % XSEG_EXTENT_SIZE;

	if (entry >= d->table.nr || off / XSEG_EXTENT_SIZE >= d->nr_extents ||
		in + sizeof(struct xseg_slots) > XSEG_EXTENT_SIZE)
		return NULL;
	return (const void *)(d->seg->pages +
			      (uint64_t)d->extent[off / XSEG_EXTENT_SIZE] * XSEG_EXTENT_SIZE + in);
}

static const _Atomic uint64_t *slot_at(
	const struct xseg_direct *d, const struct xseg_slots *s, uint64_t nr)
{
	/* acquire: its slots are this entry's, if the version is the same later */
	uint32_t chunk = atomic_load_explicit(
				 &s->chunk[nr / XSEG_CHUNK_SLOTS], memory_order_acquire) -
			 1;

	if (chunk / CHUNKS_PER_PAGE >= d->seg->nr_pages)	/* also where there is none */
		return NULL;
	return (const _Atomic uint64_t *)(d->seg->pages + (uint64_t)chunk * SLOTS_BYTES) +
	       nr % XSEG_CHUNK_SLOTS;
}

/* ---- pinning ---- */

static uint32_t nr_pinned(const struct xseg_direct *d)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->port->req_nr; i++)
		n += atomic_load_explicit(
			&d->seg->reqs[d->port->req_first + i].nr_lent, memory_order_relaxed);
	return n;
}

/* D3. Its own requests' lines: nobody else writes them while they are at rest. */
static bool may_pin(struct xseg_direct *d, uint32_t nr)
{
	uint32_t max, pinned;

	if (d->credit < nr) {
		max = atomic_load_explicit(
			&d->seg->peers[d->cache].direct_max, memory_order_relaxed);
		pinned = nr_pinned(d);
		d->credit = max > pinned ? max - pinned : 0;
	}
	if (d->credit < nr)
		return false;
	d->credit -= nr;
	return true;
}

struct found {
	const _Atomic uint64_t *slot[XSEG_DIRECT_PAGES];
	uint32_t page[XSEG_DIRECT_PAGES];
};

/* Step 2. */
static bool find(const struct xseg_direct *d, const struct known *k, uint64_t first, uint32_t nr,
	struct found *f)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t w;

		f->slot[i] = slot_at(d, k->slots, first + i);
		if (!f->slot[i])
			return false;
		w = atomic_load_explicit(f->slot[i], memory_order_relaxed);
		f->page[i] = (uint32_t)w & XSEG_PAGE_INDEX;
		if (!(w & XSEG_SLOT_DIRECT) || f->page[i] >= d->seg->nr_pages)
			return false;
		__builtin_prefetch(xseg_page(d->seg, f->page[i]));
		__builtin_prefetch((const void *)&d->seg->touched[f->page[i]]);
	}
	return true;
}

/* Step 3. */
static void pin(const struct xseg_direct *d, struct xreq *r, uint32_t nr, const struct found *f)
{
	struct xs_req *sh = &d->seg->reqs[r->index];

	for (uint32_t i = 0; i < nr; i++) {
		r->lent[i] = f->page[i] | XSEG_LENT_PAGE;
		atomic_store_explicit(&sh->page[i].lent, r->lent[i], memory_order_release);
	}
	r->nr_lent = (uint16_t)nr;
	/* release: what was listed before does not count any more */
	atomic_store_explicit(&sh->nr_lent, (uint16_t)nr, memory_order_release);
	/* seq_cst: partners are the fences before a look for what has left its slot
	 * (cached/loan.c), and in xs_direct_shut(): that look finds the page here, or we see what
	 * came before it */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Steps 4 to 6, in this order: loads acquire. */
static bool is_still(
	const struct xseg_direct *d, const struct known *k, uint32_t nr, const struct found *f)
{
	for (uint32_t i = 0; i < nr; i++) {
		/* acquire: partner is the release in bucket_set() (cached): the page's data */
		uint64_t w = atomic_load_explicit(f->slot[i], memory_order_acquire);

		if (!(w & XSEG_SLOT_DIRECT) || ((uint32_t)w & XSEG_PAGE_INDEX) != f->page[i])
			return false;
	}
	/* acquire: partner is whatever gave the chunk to another entry: what we have seen in its
	 * slots came after the new version */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&k->slots->version, memory_order_acquire) == k->version &&
	       path_is_same(d);
}

static void touch(const struct xseg_direct *d, uint32_t nr, const struct found *f)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!atomic_load_explicit(&d->seg->touched[f->page[i]], memory_order_relaxed))
			atomic_store_explicit(
				&d->seg->touched[f->page[i]], 1, memory_order_relaxed);
}

/* ---- whether a try pays ---- */

bool xseg_direct_pays(struct xseg_direct *d, uint32_t volume, uint64_t object)
{
	struct trial *t = &d->trial[place_of(d, volume, object)];

	if (t->left == 0)
		return true;
	t->left--;
	return false;
}

/* Nearly all tries of all objects fail. */
static bool all_miss(const struct xseg_direct *d)
{
	return d->vain >= VAIN_MIN && d->vain / AN_OBJECT >= d->nr_tried;
}

/* The row goes on. */
static bool trial_is_open(const struct xseg_direct *d, const struct trial *t)
{
	if ((t->pause || all_miss(d)) && t->found == 0 && t->tries >= TRIES_AGAIN)
		return false;
	return t->tries < TRIES && (uint32_t)(t->tries - t->found) <= TRIES - ENOUGH;
}

static uint16_t longer(const struct xseg_direct *d, uint16_t pause)
{
	uint32_t next = pause ? pause * 2u : PAUSE_MIN;

	if (next < PAUSE_VAIN && all_miss(d))
		next = PAUSE_VAIN;
	return (uint16_t)(next < PAUSE_MAX ? next : PAUSE_MAX);
}

static void trial_count(struct xseg_direct *d, struct trial *t, bool found)
{
	if (!found)
		d->vain += d->vain < VAIN_MAX;
	else
		d->vain -= d->vain < SUCCESS ? d->vain : SUCCESS;
	d->nr_tried += !t->tried;
	t->tried = true;
	t->found += found;
	t->tries++;
	if (trial_is_open(d, t))
		return;
	t->pause = t->found >= ENOUGH ? 0 : longer(d, t->pause);
	t->left = t->pause;
	t->tries = t->found = 0;
}

/* ---- reading, learning ---- */

static bool is_fit(const struct xreq *r, uint64_t offset, uint32_t nr)
{
	return r->op == XSEG_OP_READ && r->flags & XSEG_REQ_DIRECT &&
	       r->state == XSEG_REQ_PRIVATE && r->size && nr <= XSEG_DIRECT_PAGES &&
	       nr <= r->nr_pages && r->offset % XSEG_PAGE_SIZE == offset % XSEG_PAGE_SIZE;
}

static bool read_there(struct xseg_direct *d, struct xreq *r, uint64_t object, uint64_t offset)
{
	uint32_t nr = xseg_req_span(offset, r->size);
	const struct known *k = known_at(d, r->volume, object);
	struct found f;

	r->direct = 0;
	if (!is_fit(r, offset, nr) || !path_is_good(d))
		return false;
	r->direct = d->path_nr;
	if (k->path != d->path_nr || k->object != object || k->volume != r->volume)
		return false;
	if (offset / XSEG_PAGE_SIZE + nr > XSEG_SLOTS_CHUNKS * XSEG_CHUNK_SLOTS ||
		!find(d, k, offset / XSEG_PAGE_SIZE, nr, &f) || !may_pin(d, nr))
		return false;
	pin(d, r, nr, &f);
	if (!is_still(d, k, nr, &f)) {
		xs_req_loans_drop(d->seg, r);
		return false;
	}
	touch(d, nr, &f);
	r->result = r->size;
	return true;
}

bool xseg_direct_read(struct xseg_direct *d, struct xreq *r, uint64_t object, uint64_t offset)
{
	bool found = read_there(d, r, object, offset);

	trial_count(d, &d->trial[place_of(d, r->volume, object)], found);
	if (!found) {
		count_publish(d);
		return false;
	}
	count_read(d, r);
	return true;
}

/* The page was lent from a slot of the cache, and is there still: its owner word. 0: it is not. */
static uint64_t owner_of(const struct xseg_direct *d, uint32_t page)
{
	uint64_t w = atomic_load_explicit(
		&d->seg->extents[page / XSEG_EXTENT_PAGES].word, memory_order_acquire);

	if (extent_kind(w) != XS_EXTENT_PAGES || extent_peer(w) != d->cache)
		return 0;
	return atomic_load_explicit(&d->seg->owners[page], memory_order_acquire);
}

/* The page is pinned by r, so it does not get into another slot: where its owner word names one,
 * that was its slot all the time. */
static void learn_from(
	struct xseg_direct *d, const struct xreq *r, uint64_t object, uint64_t nr, uint32_t page)
{
	uint64_t owner = owner_of(d, page), entry = (owner >> 16) - 1, version;
	const struct xseg_slots *s = owner && entry < d->table.nr ? slots_at(d, (uint32_t)entry)
								  : NULL;

	if (!s || nr >= XSEG_SLOTS_CHUNKS * XSEG_CHUNK_SLOTS ||
		owner != xseg_slot_name((uint32_t)entry, (uint32_t)nr))
		return;
	/* acquire: the name is the entry's after this version, if the page is there still */
	version = atomic_load_explicit(&s->version, memory_order_acquire);
	if (owner_of(d, page) != owner || !path_is_same(d))
		return;
	*known_at(d, r->volume, object) = (struct known){ .object = object,
		.version = version,
		.slots = s,
		.volume = r->volume,
		.path = d->path_nr };
}

void xseg_direct_learn(
	struct xseg_direct *d, const struct xreq *r, uint64_t object, uint64_t offset)
{
	if (r->direct == 0 || r->direct != d->path_nr || d->cache == XSEG_NONE || r->result < 0)
		return;
	for (uint32_t i = 0; i < r->nr_lent; i++) {
		if (!(r->lent[i] & XSEG_LENT_PAGE))
			continue;
		learn_from(d, r, object, offset / XSEG_PAGE_SIZE + i, r->lent[i] & XSEG_PAGE_INDEX);
		return;
	}
}
