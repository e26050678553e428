/* room - the memory that a request needs before it is applied: pages, chunks, a list of pages, an
 * entry; and the queues of requests that wait for it.
 *
 * A request gets all that it asked for, or nothing and the name of the thing to wait for. A thread
 * that lets memory go sets `freed`. In the port's round pages_signal() then wakes the requests that
 * can go on.
 *
 * A request is *urgent* if it takes data away (DELETE, DISCARD, WRITE_ZEROES), or is for an object
 * with a name that begins with ':' (the catalogue of volumes). Such requests make room in a full
 * store. An urgent request waits for no other request, and its volume's maximum does not bind it.
 * It may take the pages of a *reserve*. It needs few: for the edges of its range, and for chunks.
 * If the reserve is in use, and nothing of its range is newer here than at the store, it bypasses
 * the cache (around.c). Else it waits before all others. Urgent requests that wait in this way
 * replace pages, so they give back as many as they take. So an urgent request never waits for a
 * flush of dirty data, which a full store does not take.
 *
 * Two other kinds of requests may take the reserve. They give it back when the store has answered,
 * whatever the answer is:
 *
 *   - a write that bypasses the cache, for its chunks
 *   - a read of a range that is partly newer here, for one bucket at a time
 *
 * Memory that comes free, in any port, fills the reserve again before others get it. Port 0 evicts
 * for it. Clean zeroes give up their chunks for it. While an urgent request waits, no other request
 * gets pages.
 *
 * Contract: pages_get() and room_get() run inside the object; pages_signal() outside of any.
 *
 * Invariants:
 *   G2  A request that waits for pages holds none, and no list. Requests in a queue are served in
 *       order, newcomers behind them. Those in want_urgent go before those in want_owed, and those
 *       before the ones in want_pages.
 *   G3  Pages of the reserve go to urgent requests, and to those two kinds.
 */
#include <assert.h>

#include "peers/cached/evict/evict.h"
#include "peers/cached/flush/flush.h"
#include "peers/cached/object/object.h"
#include "peers/cached/creq/creq.h"

/* What is full makes room first, or waits for what is returned, if that is something. Who waited
 * for pages has done that. It is found out once: where another thread lifts the maximum meanwhile
 * it would be nothing, and no page be there. */
static struct need make_room(struct cport *ps, const struct claim *cl)
{
	const struct need none = { .nr = 0 };
	struct cached *k = ps->cache;
	struct need need = share_need_room(k, cl);
	uint32_t over = share_over(k, cl);

	if (cl->grow == 0 || need.nr == 0 || cl->turn >= TURN_PAGES)
		return none;
	if (cl->turn == TURN_NONE && !xwaitq_empty(need.queue))
		return need;
	if (over == 0 || (share_room(k, cl->rec) >= need.nr &&
				 pages_evict_own(ps, cl->rec, over, EVICT_WANTED) == over))
		return none;
	return need;
}

/* Others wait for what this claim is for. */
static bool is_behind(struct cached *k, const struct claim *cl)
{
	return cl->turn < TURN_PAGES &&
	       (!xwaitq_empty(&memory_of(k)->want_urgent) ||
		       !xwaitq_empty(&memory_of(k)->want_owed) ||
		       (!cl->owed && !xwaitq_empty(&memory_of(k)->want_pages)));
}

static struct xwaitq *queue_of(struct cached *k, const struct claim *cl)
{
	if (cl->turn == TURN_URGENT)
		return &memory_of(k)->want_urgent;
	return cl->owed ? &memory_of(k)->want_owed : &memory_of(k)->want_pages;
}

struct need pages_get(struct cport *ps, uint32_t n, uint32_t *page, const struct claim *cl)
{
	struct need room = make_room(ps, cl);
	struct cached *k = ps->cache;
	uint32_t got = 0;

	if (room.nr)
		return room;
	if (!is_behind(k, cl))
		got = pages_take(ps, n, page, cl);
	if (got == n)
		return (struct need){ .nr = 0 };
	pages_return(ps, page, got);
	return (struct need){ .nr = n, .queue = queue_of(k, cl), .turn = TURN_PAGES };
}

/* Chunks come last: to get a page may empty one of the object's. */
struct need room_get(struct cport *ps, struct object *o, uint32_t first, uint32_t nr,
	uint32_t *page, uint32_t n, enum turn turn)
{
	struct claim cl = share_claim(ps, o, first, nr, n, turn);
	struct need need = { .nr = 0 };
	uint32_t cut;

	if (n)
		need = pages_get(ps, n, page, &cl);
	if (need.nr)
		return need;
	cl.grow = 0;					/* a chunk is nobody's */
	/* again only if another thread took what we cut, or that left */
	while (!chunks_ensure(ps, o, first, nr)) {
		need = pages_get(ps, 1, &cut, &cl);
		if (need.nr) {
			pages_return(ps, page, n);
			need.nr += n;
			return need;
		}
		chunk_feed(ps, cut);
	}
	return need;
}

void room_put(
	struct cport *ps, struct object *o, uint32_t first, uint32_t nr, uint32_t *page, uint32_t n)
{
	const struct arena_object *e = object_entry(ps->cache, o);

	pages_return(ps, page, n);
	for (uint32_t i = first / CHUNK_SLOTS; i <= (first + nr - 1) / CHUNK_SLOTS; i++)
		if (e->chunk_used[i] == 0)
			chunk_release(ps, o, i);
}

void pages_wait(struct cport *ps, struct creq *c, struct need need)
{
	struct cached *k = ps->cache;

	/* G2; a read that waits has been lent pages, and holds none */
	assert(c->r->op == XSEG_OP_READ || (c->nr_pages == 0 && !c->page));
	assert(need.nr > 0);
	count_wait(ps, WAIT_BUCKET);
	creq_set_state(c, CREQ_WAITS_MEMORY);
	c->turn = (uint8_t)need.turn;
	c->wait.fn = creq_retry;
	c->queue = need.queue;
	if (need.turn == TURN_ROOM)
		atomic_fetch_add_explicit(&volume_of(k)->shares.waiting, 1, memory_order_relaxed);
	xwaitq_add(need.queue, &c->wait, need.nr);
	if (need.turn == TURN_ROOM)
		share_look(k, need.rec);
	full_waits(k, c);
	/* what came free between our look and our waiting: pages_signal() looks again */
	memory_port(ps)->freed = true;
}

void waiters_drop(struct xwaitq *q)
{
	while (xwaitq_pop(q, UINT32_MAX))
		;
	xwaitq_fini(q);
}

/* ---- who waits ---- */

#define SIGNAL_BATCH 16

/* Those who wait for entries: objects are emptied for them, until nobody is left who cannot go
 * on. */
static void entries_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	unsigned tries = SIGNAL_BATCH;
	struct xwait *w;

	while (tries && xwaitq_has_waiters(&object_of(k)->want_entries) &&
		(w = xwaitq_pop(&object_of(k)->want_entries, xcache_nr_free(&object_of(k)->xc)))) {
		w->fn(w, ps);
		tries--;
	}
	if (!tries)
		memory_port(ps)->freed = true;	/* there may be more for more of them */
	else if (!xwaitq_empty(&object_of(k)->want_entries) &&
		 atomic_load_explicit(&evict_of(k)->reclaims, memory_order_relaxed) == 0)
		object_reclaim_one(ps);
}

/* Nobody before those who are urgent. Then those who are owed: it is bounded what they are. */
static struct xwait *next_waiter(struct cached *k)
{
	struct xwaitq *q = xwaitq_empty(&memory_of(k)->want_owed) ? &memory_of(k)->want_pages
								  : &memory_of(k)->want_owed;

	return xwaitq_empty(&memory_of(k)->want_urgent) ? xwaitq_pop(q, share_available(k)) : NULL;
}

static void urgent_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	unsigned tries = SIGNAL_BATCH;
	struct xwait *w;

	if (!xwaitq_has_waiters(&memory_of(k)->want_urgent))
		return;
	magazine_empty(ps);
	if (atomic_load_explicit(&memory_of(k)->nr_zeroes, memory_order_relaxed))
		zeroes_drop(ps);
	for (; tries &&
		(w = xwaitq_pop(&memory_of(k)->want_urgent,
			 share_available(k) + atomic_load_explicit(&memory_of(k)->reserve.nr,
						      memory_order_relaxed))) != NULL;
		tries--)
		w->fn(w, ps);
	if (!tries)
		memory_port(ps)->freed = true;
}

void pages_signal(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct xwait *w;
	unsigned tries = SIGNAL_BATCH;

	urgent_signal(ps);
	lists_signal(ps);
	entries_signal(ps);
	share_signal(ps);
	for (; xwaitq_has_waiters(&memory_of(k)->want_pages) ||
		xwaitq_has_waiters(&memory_of(k)->want_owed);
		tries--) {
		magazine_empty(ps);
		w = next_waiter(k);
		if (!w)
			break;
		w->fn(w, ps);
		if (tries == 1) {
			memory_port(ps)->freed = true;
			break;
		}
	}
}
