/* ticket - which dirty data a FLUSH covers: dirty sets and tickets, FLUSH requests.
 *
 * A FLUSH covers the writes that were answered before it came. Later writes must not prolong it.
 *
 * Sets. Each object has two sets of dirty buckets (slot flag GEN). Writes join the newer one. A set
 * bears the ticket of its volume at the time when the set began, and a ticket of all volumes
 * together (volume 0). A dirty bucket that is written again stays in its set, as its older data
 * must be written back too.
 *
 * Tickets. A FLUSH takes the volume's ticket T and raises it. If an object's current set is older,
 * its next newly dirty bucket begins a new set. A group counts its sets by ticket. The FLUSH is
 * covered when no set of a ticket <= T is left. Only then it goes on to the store. All of that is
 * O(1) a write. A lock is taken only when a set begins or ends.
 *
 * Groups. Volumes whose ids are the same modulo the number of groups share their tickets. A FLUSH
 * of one volume waits for the others' data too. It gets their errors as well, because it could not
 * say when it no longer has to wait for that data. While a FLUSH of a group waits, the flusher
 * takes that group's objects before background flushes. They go by turns with objects that other
 * requests wait for.
 *
 * A switch away from write-back takes a ticket too: of all volumes (switch_begin), or of one
 * (drain_begin). The ticket shows when the data that was dirty at the switch is at the store.
 *
 * Tickets wrap, and begin shortly before they do. Tickets that are compared are less than
 * NR_TICKETS apart.
 *
 * Contract: dirty_begin(), dirty_end() and tickets_fail() run inside the object. FLUSH requests run
 * outside of any. dirty_lock is a leaf.
 *
 * Invariants:
 *   F1  cnt[g] counts the object's buckets that are DIRTY or WRITING in set g, and older pages of
 *       set g in flight
 *   F4  a group's sets have tickets lowest .. ticket; ticket - lowest < NR_TICKETS
 *   F5  a group is in `wanted` iff FLUSHes wait for its sets, or volumes of it drain, or have to
 *       make room below their maximum
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/volume/volume.h"

/* ---- sets and tickets ---- */

_Static_assert(sizeof(struct flush_group) == CACHE_GROUP_BYTES, "cache_cost.h counts it");

#define FIRST_TICKET (UINT32_MAX - 100)

void group_init(struct flush_group *g)
{
	atomic_store_explicit(&g->ticket, FIRST_TICKET, memory_order_relaxed);
	g->lowest = FIRST_TICKET;
	CDS_INIT_LIST_HEAD(&g->dirty);
	CDS_INIT_LIST_HEAD(&g->wanted);
}

static bool is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static struct flush_group *group_of(struct cached *k, uint32_t volume)
{
	return &flush_of(k)->groups[volume % flush_of(k)->nr_groups];
}

struct flush_group *object_group(struct cached *k, struct object *o)
{
	return group_of(k, object_entry(k, o)->volume);
}

/* What a FLUSH of that volume covers. */
static struct flush_group *flushed_group(struct cached *k, uint32_t volume)
{
	return volume ? group_of(k, volume) : &flush_of(k)->all;
}

/* Under dirty_lock. A ticket that FLUSH requests share is raised as soon as there is room, or they
 * would wait for the next one. */
static void group_advance(struct flush_group *g)
{
	while (g->lowest != g->ticket && g->sets[g->lowest % NR_TICKETS] == 0)
		g->lowest++;
	if (!g->raise || g->ticket - g->lowest >= NR_TICKETS - 2)
		return;
	g->raise = false;
	atomic_store_explicit(&g->ticket, g->ticket + 1, memory_order_release);
	group_advance(g);
}

void switch_end(struct cached *k)
{
	atomic_store_explicit(&policy_of(k)->switching, false, memory_order_relaxed);
}

/* Under dirty_lock: what was dirty when the policy was switched is at the store. */
static void switch_look(struct cached *k)
{
	if (atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed) &&
		is_before(policy_of(k)->switch_ticket, flush_of(k)->all.lowest))
		switch_end(k);
}

/* Under dirty_lock: the ticket of what is dirty now, with later sets apart from it. With all
 * tickets out it is shared with some later sets: who waits for it may wait a little longer, never
 * less. */
static uint32_t ticket_cut(struct flush_group *g)
{
	uint32_t ticket;

	group_advance(g);
	ticket = g->ticket;
	g->raise = true;
	group_advance(g);
	return ticket;
}

void switch_begin(struct cached *k, const struct policy *from)
{
	atomic_store_explicit(&policy_of(k)->switch_from, from, memory_order_relaxed);
	atomic_store_explicit(
		&policy_of(k)->switch_bytes, cached_total(k, CC_DIRTY_BYTES), memory_order_relaxed);
	atomic_store_explicit(&policy_of(k)->switch_ns, 0, memory_order_relaxed);
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	policy_of(k)->switch_ticket = ticket_cut(&flush_of(k)->all);
	atomic_store_explicit(&policy_of(k)->switching, true, memory_order_relaxed);
	switch_look(k);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

void switch_clock(struct cport *ps)
{
	struct cached *k = ps->cache;
	uint64_t none = 0;

	if (atomic_load_explicit(&policy_of(k)->switching, memory_order_relaxed) &&
	    !atomic_load_explicit(&policy_of(k)->switch_ns, memory_order_relaxed))
		atomic_compare_exchange_strong_explicit(&policy_of(k)->switch_ns, &none,
			ps->pp->now_ns, memory_order_relaxed, memory_order_relaxed);
}

static void set_begin(struct cached *k, struct object *o, unsigned gen)
{
	struct flush_group *g = object_group(k, o);

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	assert(g->ticket - g->lowest < NR_TICKETS &&
		flush_of(k)->all.ticket - flush_of(k)->all.lowest < NR_TICKETS);	/* F4 */
	o->since[gen] = g->ticket;
	o->since_all[gen] = flush_of(k)->all.ticket;
	g->sets[g->ticket % NR_TICKETS]++;
	flush_of(k)->all.sets[flush_of(k)->all.ticket % NR_TICKETS]++;
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

/* Returns what the set has now. Release: see object_nr_dirty(). */
static uint32_t count_dirty(struct object *o, unsigned gen, int by)
{
	uint32_t nr = (uint32_t)((int)object_nr_dirty(o, gen) + by);

	atomic_store_explicit(&o->cnt[gen], (uint16_t)nr, memory_order_release);
	return nr;
}

static unsigned set_join(struct cached *k, struct object *o)
{
	unsigned g = o->gen;
	bool old = is_before(o->since[g], atomic_load_explicit(&object_group(k, o)->ticket,
						  memory_order_acquire)) ||
		   is_before(o->since_all[g],
			   atomic_load_explicit(&flush_of(k)->all.ticket, memory_order_acquire));

	if (object_nr_dirty(o, g) && old && object_nr_dirty(o, !g) == 0)
		g = o->gen = !g;
	if (count_dirty(o, g, 1) == 1)
		set_begin(k, o, g);
	return g;
}

/* Under dirty_lock: somebody more, or one less, waits for the group. */
static void group_want(struct cached *k, struct flush_group *g)
{
	if (g->flushes + g->drains + g->shares > 1 || g == &flush_of(k)->all)
		return;
	cds_list_add_tail(&g->wanted, &flush_of(k)->wanted);
	atomic_fetch_add_explicit(&flush_of(k)->nr_wanted, 1, memory_order_relaxed);
}

static void group_unwant(struct cached *k, struct flush_group *g)
{
	if (g->flushes + g->drains + g->shares > 0 || g == &flush_of(k)->all)
		return;
	cds_list_del(&g->wanted);
	atomic_fetch_sub_explicit(&flush_of(k)->nr_wanted, 1, memory_order_relaxed);
}

/* Under dirty_lock: a FLUSH waits for the group. */
static void flush_add(struct cached *k, struct creq *c, struct flush_group *g)
{
	creq_set_state(c, CREQ_AT_STORE);
	c->next = flush_of(k)->flushes;
	flush_of(k)->flushes = c;
	atomic_fetch_add_explicit(&flush_of(k)->nr_flushes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&g->flushes, 1, memory_order_relaxed);
	group_want(k, g);
}

/* Under dirty_lock: *at waits no more; puts it before the others in *list. */
static void flush_take(struct cached *k, struct creq **at, struct creq **list)
{
	struct creq *c = *at;
	struct flush_group *g = flushed_group(k, c->r->volume);

	*at = c->next;
	c->next = *list;
	*list = c;
	assert(flush_of(k)->nr_flushes > 0 && g->flushes > 0);	/* F5 */
	atomic_fetch_sub_explicit(&flush_of(k)->nr_flushes, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&g->flushes, 1, memory_order_relaxed);
	group_unwant(k, g);
}

/* Under dirty_lock. */
static void drain_end(struct cached *k, struct volume *v)
{
	struct flush_group *g = v->drains;

	assert(g->drains > 0);					/* F5 */
	v->drains = NULL;
	g->drains--;
	group_unwant(k, g);
}

/* Under dirty_lock: ends the drains of the group's volumes that are covered now. */
static void drains_look(struct cached *k, struct flush_group *g)
{
	for (uint32_t r = 0; r < volume_of(k)->nr_volumes && g->drains; r++) {
		struct volume *v = &volume_of(k)->states[r];

		if (v->drains == g && is_before(v->drain_ticket, g->lowest))
			drain_end(k, v);
	}
}

void drain_cancel(struct cached *k, uint32_t rec)
{
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	if (volume_of(k)->states[rec].drains)
		drain_end(k, &volume_of(k)->states[rec]);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

void drain_begin(struct cached *k, uint32_t rec)
{
	struct flush_group *g = group_of(k, volume_of(k)->volume_ids[rec]);
	struct volume *v = &volume_of(k)->states[rec];

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	v->drain_ticket = ticket_cut(g);
	if (!v->drains) {
		v->drains = g;
		g->drains++;
		group_want(k, g);
	}
	drains_look(k, g);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

static bool needs_room(const struct share *sh)
{
	uint32_t max = atomic_load_explicit(&sh->max, memory_order_relaxed);

	return xwaitq_has_waiters(&sh->want) ||
	       (max && atomic_load_explicit(&sh->used, memory_order_relaxed) > max);
}

void share_look(struct cached *k, uint32_t rec)
{
	struct share *sh = &volume_of(k)->states[rec].share;
	struct flush_group *g;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	g = sh->flushes;
	if (!g && needs_room(sh)) {
		g = group_of(k, volume_of(k)->volume_ids[rec]);
		sh->flushes = g;
		g->shares++;
		group_want(k, g);
	} else if (g && !needs_room(sh)) {
		assert(g->shares > 0);				/* F5 */
		sh->flushes = NULL;
		g->shares--;
		group_unwant(k, g);
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

void share_left(struct cached *k, const struct xwaitq *queue)
{
	for (uint32_t i = 0; i < nr_shares(k); i++) {
		if (queue != &share_at(k, i)->want)
			continue;
		atomic_fetch_sub_explicit(&volume_of(k)->shares.waiting, 1, memory_order_relaxed);
		share_look(k, volume_of(k)->shares.rec[i]);
		return;
	}
}

/* Under dirty_lock: unlinks the FLUSH requests that are covered now. */
static struct creq *take_covered(struct cached *k)
{
	struct creq **at = &flush_of(k)->flushes, *c, *ready = NULL;

	while ((c = *at) != NULL) {
		if (is_before(c->flush.ticket, flushed_group(k, c->r->volume)->lowest))
			flush_take(k, at, &ready);
		else
			at = &c->next;
	}
	return ready;
}

static void sync_all(struct cport *ps, struct creq *c)
{
	for (struct creq *next; c; c = next) {
		next = c->next;
		creq_set_state(c, CREQ_RUNNING);
		sync_send(ps, c);
	}
}

/* Under dirty_lock. */
static void set_end(struct flush_group *g, uint32_t ticket)
{
	/* F4 */
	assert(ticket - g->lowest <= g->ticket - g->lowest && g->sets[ticket % NR_TICKETS] > 0);
	g->sets[ticket % NR_TICKETS]--;
}

void dirty_end(struct cport *ps, struct object *o, unsigned gen)
{
	struct cached *k = ps->cache;
	struct flush_group *g = object_group(k, o);
	struct creq *ready;

	assert(object_nr_dirty(o, gen) > 0);
	if (count_dirty(o, gen, -1))
		return;
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	set_end(g, o->since[gen]);
	set_end(&flush_of(k)->all, o->since_all[gen]);
	group_advance(g);
	group_advance(&flush_of(k)->all);
	switch_look(k);
	drains_look(k, g);
	ready = take_covered(k);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	sync_all(ps, ready);
}

/* What is newer than the store in a bucket stays promised until the store has it. */
static uint64_t promise_flags(uint64_t old, bool promised)
{
	if (promised || slot_is_promised(old))
		return 0;
	if (slot_state(old) == BUCKET_VALID || slot_is_unpromised(old))
		return SLOT_UNPROMISED | (old & (SLOT_WRITTEN | SLOT_EPOCH));
	return SLOT_UNPROMISED;
}

uint64_t dirty_begin(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot,
	uint32_t page, bool promised)
{
	uint64_t old = slot_read(ps->cache, slot), flags = old & SLOT_INFLIGHT;

	flags |= promise_flags(old, promised);
	if (slot_state(old) == BUCKET_DIRTY)
		flags |= old & SLOT_GEN;
	else if (set_join(ps->cache, o))
		flags |= SLOT_GEN;
	if (slot_state(old) == BUCKET_WRITING)
		flags |= SLOT_INFLIGHT;
	bucket_set_at(ps, o, b, slot, slot_word(BUCKET_DIRTY, page, flags));
	return old;
}

/* A predecessor's dirty bucket, found in the arena: all of these are in set 0. */
void dirty_restore(struct cached *k, struct object *o)
{
	if (count_dirty(o, 0, 1) == 1)
		set_begin(k, o, 0);
}

/* FLUSH requests that cover a set whose flush failed are told so, now. */
void tickets_fail(struct cport *ps, struct object *o, unsigned gen, int error)
{
	struct cached *k = ps->cache;
	struct creq **at = &flush_of(k)->flushes, *c, *failed = NULL, *next;
	struct flush_group *g = object_group(k, o);

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	while ((c = *at) != NULL) {
		bool missed = c->r->volume == 0 ? is_before(c->flush.ticket, o->since_all[gen])
						: flushed_group(k, c->r->volume) != g ||
							  is_before(c->flush.ticket, o->since[gen]);

		if (missed)
			at = &c->next;
		else
			flush_take(k, at, &failed);
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	for (c = failed; c; c = next) {
		next = c->next;
		creq_finish(ps, c, error);
	}
}

/* ---- FLUSH requests ---- */

void flush_request(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	struct flush_group *g = flushed_group(k, c->r->volume);
	bool covered;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	dirty_try_failed_locked(k);
	c->seq = flush_of(k)->sync.walks;
	c->flush.ticket = ticket_cut(g);
	covered = is_before(c->flush.ticket, g->lowest);
	if (!covered)
		flush_add(k, c, g);
	dirty_is_news(k);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (covered)
		sync_send(ps, c);
	else
		count_wait(ps, WAIT_FLUSH);
}
