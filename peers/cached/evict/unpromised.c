/* unpromised - dirty data that was never acknowledged, and how it is given up.
 *
 * A policy that answers after the store (write-through, or FUA) keeps the data of a write in its
 * buckets until a flush has taken it. If the store fails the flush, the writer is answered with an
 * error. The data stays dirty, as the store may take it later. It is promised to no client, so it
 * must not fill the cache: a page that is needed may come from such a bucket.
 *
 *   a bucket               when
 *   becomes unpromised     a write that is answered after the store puts its page into a bucket
 *                          that is not dirty, or is unpromised
 *   becomes promised       a write that is answered before the store has it touches it (its slot
 *                          says so before the answer); a change that its cut has voided is answered
 *                          so; a FLUSH failed, and the data below it may not be stable (sync.c)
 *   stays promised         a write touches it that is answered after the store: it still holds
 *                          acknowledged data that the store has not
 *   is refused             its flush failed; from then on its page is among those that may be
 *                          evicted, and has one chance more than a clean one
 *   is given up            its page is needed; its object is to be emptied; the cache drops its
 *                          data, leaves the path, or stops
 *
 * A bucket is not refused while it is being flushed, or while its newer data waits for an older
 * flush. So when a bucket is given up, nothing of it is in flight, and no write that touched it is
 * unanswered. If its page may be on loan, it goes to limbo, as a clean page does. The next read
 * gets the store's data. A write that failed may have happened, or not. Data that a read saw of it
 * may be undone.
 *
 * Below unpromised data there may be data that a flush has put at the store, acknowledged, and not
 * stable yet. So the slot keeps WRITTEN and the epoch of that data.
 *
 * The mark is in the slot, so a successor takes it over. The successor retries refused data once. A
 * write that is answered before the store has it stores its slots without the mark before the
 * answer. So a kill in between makes too much promised, never too little.
 *
 * Unpromised bytes are counted apart from dirty ones. Commands that are refused while data is dirty
 * (`down`, `destroy`, `cache drop`) are not refused because of them, and `unplug` does not wait.
 *
 * Contract: object_give_up() inside the object; unpromised_run() in port 0's poll.
 *
 * Invariants:
 *   U1  a slot bears UNPROMISED only if every write in its data that is newer than the store was,
 *       or will be, answered after the store's answer
 *   U2  REFUSED stands beside DIRTY and UNPROMISED, without INFLIGHT
 */
#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/store/store.h"
#include "peers/cached/object/object.h"

#define LOOK_NS 1000000ull

void object_give_up(struct cport *ps, struct object *o)
{
	for (uint32_t b = 0; b < OBJECT_BUCKETS && o->nr[BUCKET_DIRTY]; b++) {
		uint64_t w = slot_get(ps->cache, o, b);

		if (!slot_is_refused(w))
			continue;
		evict_drop(ps, o, b, w, EVICT_GIVEN_UP);
	}
	object_reclaim_step(ps, o);
}

static void walked(struct cport *ps)
{
	/* release: partner is the acquire in unpromised_walks() */
	atomic_store_explicit(&evict_of(ps->cache)->giving_up.walking, false, memory_order_release);
}

static bool is_ending(struct cached *k)
{
	return atomic_load_explicit(&peer_of(k)->stopping, memory_order_relaxed) ||
	       atomic_load_explicit(&policy_of(k)->leaving, memory_order_relaxed);
}

bool unpromised_walks(struct cached *k)
{
	return atomic_load_explicit(&evict_of(k)->giving_up.walking, memory_order_acquire);
}

uint64_t unpromised_run(struct cport *ps)
{
	struct cached *k = ps->cache;

	if (!is_ending(k) || cached_is_off(k) || cached_total(k, CC_UNPROMISED_BYTES) == 0)
		return PEER_NEVER;
	if (ps->pp->now_ns < evict_of(k)->giving_up.next_ns ||
		unpromised_walks(k))
		return ps->pp->now_ns + LOOK_NS;
	evict_of(k)->giving_up.next_ns = ps->pp->now_ns + LOOK_NS;
	atomic_store_explicit(&evict_of(k)->giving_up.walking, true, memory_order_relaxed);
	walk_begin(ps, &evict_of(k)->giving_up.walk, object_give_up, walked);
	return evict_of(k)->giving_up.next_ns;
}
