/* check - asserts every invariant of the cache, and makes its pages scarce, for tests and the
 * simulator.
 *
 * Contract: no thread is inside any object: between two steps of the simulator, or when all threads
 * have stopped.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/life/cached.h"

#define PAGES_CUT 8

struct tally {
	uint16_t nr[BUCKET_NR_STATES];
	uint32_t set[2], inflight, startable, pages, zeroes, promised, unpromised;
};

static void check_slot(struct cached *k, struct object *o, uint32_t b, struct tally *t)
{
	uint64_t w = slot_get(k, o, b);
	enum bucket_state s = slot_state(w);

	assert(s < BUCKET_NR_STATES);
	t->nr[s]++;
	assert(!(w & SLOT_INFLIGHT) || s == BUCKET_DIRTY);
	assert(!(w & SLOT_LOADED) || s == BUCKET_LOADING || slot_is_unpromised(w));
	assert(!(w & SLOT_LENT) || (s >= BUCKET_VALID && slot_has_page(w)));
	assert(!(w & SLOT_DIRECT) || w & SLOT_LENT);
	t->inflight += !!(w & SLOT_INFLIGHT);
	t->startable += s == BUCKET_DIRTY && !(w & SLOT_INFLIGHT);
	if (bucket_is_dirty(s))
		t->set[!!(w & SLOT_GEN)]++;
	assert(!(w & SLOT_ZERO) || s >= BUCKET_VALID);
	assert(!(w & SLOT_WRITTEN) || s == BUCKET_VALID || slot_is_unpromised(w));	/* Y1 */
	/* U2 */
	assert(!slot_is_refused(w) || (slot_is_unpromised(w) && !(w & SLOT_INFLIGHT)));
	t->promised += slot_is_promised(w);
	t->unpromised += slot_is_unpromised(w);
	t->zeroes += slot_is_clean_zero(w);
	if (!slot_has_page(w))
		return;
	t->pages++;
	assert(xseg_page_owner(peer_of(k)->seg, slot_page(w)) == bucket_name(o, b));
	assert(page_is_listed(k, slot_page(w)) == slot_is_evictable(w)); /* G1 */
}

static void object_check(struct cached *k, struct object *o, struct tally *tally)
{
	struct tally t = { .inflight = 0 };

	for (uint32_t b = 0; b < OBJECT_BUCKETS; b++) {
		if (b % CHUNK_SLOTS == 0 &&
			atomic_load(&object_entry(k, o)->chunk[b / CHUNK_SLOTS]) == 0) {
			t.nr[BUCKET_FREE] += CHUNK_SLOTS;
			b += CHUNK_SLOTS - 1;
			continue;
		}
		check_slot(k, o, b, &t);
	}
	for (uint32_t s = 0; s < BUCKET_NR_STATES; s++)
		assert(o->nr[s] == t.nr[s]);
	assert(atomic_load(&o->used) == OBJECT_BUCKETS - t.nr[BUCKET_FREE] - t.nr[BUCKET_INVALID]);
	assert(object_nr_dirty(o, 0) + object_nr_dirty(o, 1) ==
		t.nr[BUCKET_DIRTY] + t.nr[BUCKET_WRITING] + t.inflight);
	assert(o->state == OBJECT_DELETING ? o->flushes_out <= 1
					   : (o->state == OBJECT_FLUSHING) == (o->flushes_out > 0));
	assert(o->state != OBJECT_HELD || o->loads_out > 0);
	/* F2 */
	assert(!t.startable || o->listed || (o->asked & OBJECT_FLUSH) || o->flush_waiting ||
		object_is_shut(o));
	assert(!o->listed || o->nr[BUCKET_DIRTY] || o->flushes_out ||
		atomic_load(&o->flush_waiting));
	assert(!o->reclaiming || o->flushes_out || o->loads_out || o->asked ||
		o->nr[BUCKET_DIRTY] || o->nr[BUCKET_LOADING] ||
		o->nr[BUCKET_BYPASS]); /* else nobody goes on with emptying it */
	changes_check(k, o);
	*tally = t;
}

/* H1, H2 of throttle.c. */
static void check_throttle(struct cached *k)
{
	const struct throttle *t = &flush_of(k)->throttle;
	uint32_t out = 0, nr = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		out += store_port(cport_at(k, i))->flushes_out;
	assert(t->out <= out);
	for (const struct creq *c = t->head; c; c = c->next, nr++)
		assert(c->state == CREQ_WAITS_THROTTLE && c->nr_pages == 0 &&
			c->change.debt_bytes > 0);
	assert(nr == atomic_load(&t->nr));
}

/* What the objects have, by record of their volume. */
struct volume_tally {
	uint32_t objects;
	uint64_t used, dirty, unpromised;
};

static void volume_tally(
	struct cached *k, struct object *o, const struct tally *t, struct volume_tally *v)
{
	uint32_t rec = object_volume(o);

	if (atomic_load(&o->used) == 0)
		return;
	assert(rec < volume_of(k)->nr_volumes);
	assert(rec == OTHERS || volume_of(k)->volume_ids[rec] == object_entry(k, o)->volume);
	v[rec].objects++;
	v[rec].used += (uint64_t)t->pages * BUCKET_SIZE;
	v[rec].dirty += (uint64_t)t->promised * BUCKET_SIZE;
	v[rec].unpromised += (uint64_t)t->unpromised * BUCKET_SIZE;
}

static void volumes_check(struct cached *k, const struct volume_tally *v)
{
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes; r++) {
		uint32_t id = volume_of(k)->volume_ids[r];

		assert(id == 0 || volume_find(k, id) == r);				/* N1 */
		/* N2 */
		assert(volume_of(k)->states[r].objects == v[r].objects &&
			(v[r].objects == 0 || id || r == OTHERS));
		assert(volume_total(k, r, VC_USED_BYTES) == v[r].used);			/* N3 */
		assert((uint64_t)volume_of(k)->states[r].share.used * BUCKET_SIZE ==
			v[r].used); /* A1 */
		assert(volume_total(k, r, VC_DIRTY_BYTES) == v[r].dirty);
		assert(volume_total(k, r, VC_UNPROMISED_BYTES) == v[r].unpromised);
	}
}

static void chunks_check(struct cached *k)
{
	for (uint32_t page = xlist_head(&memory_of(k)->chunk_pages); page != XLIST_NONE;
		page = xlist_next(&memory_of(k)->chunk_pages, page))
		/* K2 */
		assert(memory_of(k)->page_use[page].chunks_free != 0 &&
			memory_of(k)->page_use[page].chunks_free != 0xff);
}

/* Of all objects. */
struct sums {
	uint64_t dirty, unpromised, pages, zeroes;	/* buckets */
	uint32_t admitted;
};

static void entry_check(
	struct cached *k, uint32_t i, struct sums *sum, struct volume_tally *volumes)
{
	struct object *o = &object_of(k)->objects[i];
	struct tally t;

	if (xcache_state_of(&object_of(k)->xc, i) == XCACHE_FREE) {
		assert(object_passes(o) && atomic_load(&o->used) == 0 &&
			object_nr_dirty(o, 0) + object_nr_dirty(o, 1) == 0);
		return;
	}
	object_check(k, o, &t);
	assert(!object_passes(o) || atomic_load(&o->used) == o->nr[BUCKET_BYPASS]);	/* E2 */
	volume_tally(k, o, &t, volumes);
	sum->admitted += !object_passes(o);
	sum->dirty += t.promised;
	sum->unpromised += t.unpromised;
	sum->pages += t.pages;
	sum->zeroes += t.zeroes;
}

static void objects_check(struct cached *k)
{
	struct volume_tally *volumes = calloc(volume_of(k)->nr_volumes, sizeof(*volumes));
	struct sums sum = { .dirty = 0 };

	assert(volumes);
	for (uint32_t i = 0; i < nr_entries(k); i++)
		entry_check(k, i, &sum, volumes);
	volumes_check(k, volumes);
	free(volumes);
	assert(cached_total(k, CC_DIRTY_BYTES) == sum.dirty * BUCKET_SIZE);
	assert(cached_total(k, CC_UNPROMISED_BYTES) == sum.unpromised * BUCKET_SIZE);
	assert(cached_total(k, CC_USED_BYTES) == sum.pages * BUCKET_SIZE);
	assert(memory_of(k)->nr_zeroes == sum.zeroes);
	assert(evict_of(k)->nr_admitted == sum.admitted);	/* E1 */
	assert(sum.pages + xpool_nr(&memory_of(k)->free_pages) + memory_of(k)->nr_chunk_pages +
			memory_of(k)->leaving_chunk_pages + memory_of(k)->nr_out +
			memory_of(k)->limbo.nr <=
		nr_owned(k));
}

static void limbo_check(struct cached *k)
{
	assert(memory_of(k)->limbo.pages.nr == memory_of(k)->limbo.nr);
	for (uint32_t page = xlist_head(&memory_of(k)->limbo.pages); page != XLIST_NONE;
		page = xlist_next(&memory_of(k)->limbo.pages, page))
		/* L3: in no slot, as those name the page's bucket (check_slot) */
		assert(xseg_page_owner(peer_of(k)->seg, page) == OWNER_LENT);
}

void cached_check(struct peer *p)
{
	struct cached *k = cached_of(p);

	objects_check(k);
	limbo_check(k);
	extents_check(k);
	chunks_check(k);
	plug_check(k);
	gifts_check(k);
	for (uint32_t i = 0; i < p->nr_ports; i++) {
		early_check(cport_at(k, i));
		batch_check(cport_at(k, i));
	}
	check_throttle(k);
	shares_check(k);
	xcache_check(&object_of(k)->xc);
}

static void unlimit_pages(struct cached *k)
{
	for (uint32_t page = 0; page < xseg_nr_pages(peer_of(k)->seg) && memory_of(k)->withheld;
		page++) {
		if (xseg_page_owner(peer_of(k)->seg, page) != OWNER_WITHHELD ||
			!page_is_ours(k, page))
			continue;	/* another cache's test may do the same */
		xseg_page_owner_set(peer_of(k)->seg, page, 0);
		memory_of(k)->withheld--;
		pool_put(k, page);
	}
}

void cached_check_idle(struct peer *p)
{
	struct cached *k = cached_of(p);
	uint64_t pages = cached_total(k, CC_USED_BYTES) / BUCKET_SIZE +
			 xpool_nr(&memory_of(k)->free_pages) + memory_of(k)->nr_chunk_pages +
			 memory_of(k)->leaving_chunk_pages + memory_of(k)->nr_out +
			 memory_of(k)->limbo.nr + memory_of(k)->withheld +
			 memory_of(k)->reserve.nr;

	for (uint32_t i = 0; i < p->nr_ports; i++)
		pages += memory_port(cport_at(k, i))->nr_magazine + early_pages(cport_at(k, i)) +
			 nr_gifts(cport_at(k, i));
	assert(pages == nr_owned(k));
	assert(xpool_nr(&memory_of(k)->free_lists) == NR_LISTS);
}

/* One chunk of each is nobody's, so that the page stays cut. */
void cached_cut_pages(struct peer *p)
{
	struct cached *k = cached_of(p);

	for (uint32_t i = 0; i < PAGES_CUT; i++) {
		uint32_t page = xpool_get(&memory_of(k)->free_pages);

		page_extent(k, page)->nr_free--;
		page_extent(k, page)->pinned = true;
		chunk_feed(cport_at(k, 0), page);
		memory_of(k)->page_use[page].chunks_free &= 0xfe;
		memory_of(k)->nr_free_chunks--;
	}
	pages_count(k);
}

static void pool_withhold(struct cached *k, uint32_t i)
{
	uint32_t page = xpool_at(&memory_of(k)->free_pages, i);

	xpool_take_at(&memory_of(k)->free_pages, i);
	page_extent(k, page)->nr_free--;
	xseg_page_owner_set(peer_of(k)->seg, page, OWNER_WITHHELD);
	memory_of(k)->withheld++;
}

void cached_drop_reserve(struct peer *p)
{
	struct cached *k = cached_of(p);

	memory_of(k)->reserve.size = 0;
	for (; memory_of(k)->reserve.nr; memory_of(k)->reserve.nr--) {
		xseg_page_owner_set(p->seg,
			memory_of(k)->reserve.page[memory_of(k)->reserve.nr - 1], OWNER_WITHHELD);
		memory_of(k)->withheld++;
	}
}

void cached_limit_pages(struct peer *p, uint32_t n)
{
	struct cached *k = cached_of(p);
	uint64_t free, i = 0;

	unlimit_pages(k);
	free = xpool_nr(&memory_of(k)->free_pages) - memory_of(k)->leaving_free;
	for (uint32_t at = 0; at < xpool_nr(&memory_of(k)->free_pages);) {
		bool leaves = page_leaves(k, xpool_at(&memory_of(k)->free_pages, at));

		/* some of every extent's are kept */
		if (leaves || i * n / free != (i + 1) * n / free)
			at++;
		else
			pool_withhold(k, at);
		i += !leaves;
	}
	pages_count(k);
}

/* What reads that are not answered hold. */
static uint32_t granted_to_reads(struct cached *k)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < creq_of(k)->nr_requests; i++)
		if (creq_of(k)->creqs[i].state != CREQ_IDLE &&
			creq_of(k)->creqs[i].step == read_step)
			sum += creq_of(k)->creqs[i].read.granted.nr;
	return sum;
}

void cached_check_loans(struct peer *p)
{
	struct cached *k = cached_of(p);

	loans_check(k, granted_to_reads(k));
}
