/* direct - whether clients may read from the tables of the cache without a request: opens and shuts
 * the door.
 *
 * A client that sets XSEG_REQ_DIRECT may read a lent page again. It looks into entries, chunks and
 * slots itself (the protocol is in xseg/direct.c). The cache's part in that:
 *   - The first loan for such a client sets DIRECT in the slot. A page that was in a slot with
 *     DIRECT goes to limbo, whatever its era (loan.c). A client may pin it at any time until it
 *     leaves the slot.
 *   - Such loans may follow each other, with no write to the object in between. Then every page in
 *     the same chunk gets the mark (direct_mark). So a client that reads older data does not ask
 *     for each page.
 *   - An entry's version changes before a chunk of it, or its name, can be another's (chunk.c).
 *   - A page that comes up for eviction was used if its byte says so (evict/order.c).
 *   - The door is shut while the slots may differ from the answer to a read. That is so while the
 *     cache begins, while it is off the path, and when it stops. It is also so under pass-through,
 *     which wants reads to go past it. A new setting of a volume shuts and opens the door: readers
 *     learn anew, by requests. A volume under pass-through lends nothing, so they learn nothing.
 * A cache that dies leaves the door as it is. Its slots do not change before its successor has shut
 * the door.
 *
 * Direct reads stay correct alongside writes, deletes, discards and copies: a slot holds
 * acknowledged data, and is stored before the answer. Three kinds of buckets have no DIRECT: those
 * that a write past the cache covers, those of a failed load, and zeroes. A predecessor may have
 * stored a write in part (STARTED). The slots that it stored have no DIRECT, and its successor
 * begins without any DIRECT.
 */
#include <pthread.h>

#include "peers/cached/lend/lend.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/store/store.h"
#include "peers/cached/volume/volume.h"

#define SHARE_OF_PORT 64u	/* of the cache's pages: no port may pin more than that part */
#define MARK_AFTER    8u	/* loans of an object, before more than they get the mark */

void direct_begin(struct cached *k)
{
	xseg_direct_shut(peer_of(k)->xp);
	direct_look(k);
}

void direct_look(struct cached *k)
{
	/* release: what changed is seen by who looks; partner is the exchange in direct_run() */
	atomic_store_explicit(&lend_of(k)->direct.look, true, memory_order_release);
}

static uint32_t max_now(struct cached *k)
{
	uint32_t max = data_pages(k) / SHARE_OF_PORT, all = loans_direct_max(k);

	return max < all ? max : all;
}

static bool is_wanted(struct cached *k)
{
	return !cached_is_off(k) &&
	       !atomic_load_explicit(&policy_of(k)->current, memory_order_relaxed)->reads_around &&
	       !lend_of(k)->direct.ended;
}

static void open_locked(struct cached *k)
{
	const struct xseg_direct_table t = { .off = object_of(k)->off_entries + ARENA_SLOTS,
		.nr = nr_entries(k),
		.stride = sizeof(struct arena_object),
		.max = max_now(k) };

	lend_of(k)->direct.max = t.max;
	xseg_direct_open(peer_of(k)->xp, &t);
}

void direct_run(struct cached *k)
{
	uint32_t max = max_now(k);

	atomic_exchange(&lend_of(k)->direct.look, false);
	if (is_wanted(k) != xseg_direct_is_open(peer_of(k)->xp)) {
		pthread_mutex_lock(&volume_of(k)->volume_lock);
		if (is_wanted(k))
			open_locked(k);
		else
			xseg_direct_shut(peer_of(k)->xp);
		pthread_mutex_unlock(&volume_of(k)->volume_lock);
	}
	if (max != lend_of(k)->direct.max) {
		lend_of(k)->direct.max = max;
		xseg_direct_max_set(peer_of(k)->xp, max);
	}
}

void direct_renew_locked(struct cached *k)
{
	if (!xseg_direct_is_open(peer_of(k)->xp))
		return;
	xseg_direct_shut(peer_of(k)->xp);
	open_locked(k);
}

/* A whole page, which is not filled in place any more. Of what was read ahead the table of streams
 * is told who reads it first (read.c): by a request. */
static bool may_mark(uint64_t w)
{
	return slot_state(w) >= BUCKET_VALID && slot_has_page(w) &&
	       !(w & (SLOT_DIRECT | SLOT_AHEAD));
}

static void mark_chunk(_Atomic uint64_t *slot, uint64_t stamp)
{
	for (uint32_t i = 0; i < CHUNK_SLOTS; i++) {
		uint64_t w = atomic_load_explicit(&slot[i], memory_order_relaxed);

		/* release: as in slot_change() */
		if (may_mark(w))
			atomic_store_explicit(
				&slot[i], (w & ~SLOT_LOAN) | stamp, memory_order_release);
	}
}

/* A page that is written over before somebody reads it directly was marked for nothing, and goes to
 * limbo for that. So it takes some reads that wanted a mark, and no write between them: where an
 * object is read and written by turns that is rare. */
static bool is_read_on(struct object *o)
{
	if (o->opened_seq != (uint16_t)o->apply_seq)
		o->nr_opened = 0;
	o->opened_seq = (uint16_t)o->apply_seq;
	if (o->nr_opened < MARK_AFTER)
		o->nr_opened++;
	return o->nr_opened == MARK_AFTER;
}

void direct_mark(
	struct cport *ps, struct object *o, const struct xreq *r, uint32_t first, uint32_t nr)
{
	struct cached *k = ps->cache;
	uint64_t stamp = lent_stamp(ps, r);

	if (!is_read_on(o))
		return;
	for (uint32_t n = first / CHUNK_SLOTS; n <= (first + nr - 1) / CHUNK_SLOTS; n++) {
		_Atomic uint64_t *slot = slot_word_of(k, o, n * CHUNK_SLOTS);

		if (slot)
			mark_chunk(slot, stamp);
	}
}

void direct_end(struct cached *k)
{
	pthread_mutex_lock(&volume_of(k)->volume_lock);
	lend_of(k)->direct.ended = true;
	xseg_direct_shut(peer_of(k)->xp);
	pthread_mutex_unlock(&volume_of(k)->volume_lock);
}
