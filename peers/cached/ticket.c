/* ticket - which dirty data a FLUSH covers: dirty sets and tickets, FLUSH requests.
 *
 * FLUSH covers what was answered before it came, and writes that keep coming must not
 * prolong it. So each object has two sets of dirty buckets (slot flag GEN): writes join the newer one, and a set
 * bears the ticket of its volume at the time it began (and one of all volumes together: volume 0). A FLUSH
 * takes the volume's ticket T and raises it; an object whose current set is older begins a new set with its next newly
 * dirty bucket. A volume counts its sets by ticket; the FLUSH is covered when no set of a ticket <= T is
 * left. Then, and only then, it goes on to the store. All of that is O(1) a write, and a lock is taken only when a set begins or
 * ends. A dirty bucket that is written again stays in its set: its older data must get out too.
 *
 * Contract: dirty_begin(), dirty_end() and tickets_fail() run inside the object; FLUSH requests outside of any. dirty_lock is a leaf.
 *
 * Invariants:
 *   F1  cnt[g] counts the object's buckets that are DIRTY or WRITING in set g, and older pages of set g in flight
 *   F4  a volume's sets have tickets lowest .. ticket; ticket - lowest < NR_TICKETS
 */
#include <assert.h>
#include <string.h>

#include "peers/cached/cached.h"

/* ---- sets and tickets ---- */

static struct cvolume *volume_of(struct cached *k, uint32_t volume)
{
	return &k->volumes[volume & (NR_VOLUMES - 1)];
}

static struct cvolume *object_volume(struct cached *k, struct object *o)
{
	return volume_of(k, object_entry(k, o)->volume);
}

/* Under dirty_lock. A ticket that FLUSH requests share is raised as soon as there is room, or they would wait for the next one. */
static void volume_advance(struct cvolume *v)
{
	while (v->lowest < v->ticket && v->sets[v->lowest % NR_TICKETS] == 0)
		v->lowest++;
	if (!v->raise || v->ticket - v->lowest >= NR_TICKETS - 2)
		return;
	v->raise = false;
	atomic_store_explicit(&v->ticket, v->ticket + 1, memory_order_release);
	volume_advance(v);
}

/* Under dirty_lock: what was dirty when the policy was switched is at the store. */
static void switch_look(struct cached *k)
{
	if (atomic_load_explicit(&k->switching, memory_order_relaxed) && volume_of(k, 0)->lowest > k->switch_ticket)
		atomic_store_explicit(&k->switching, false, memory_order_relaxed);
}

/* Under dirty_lock: the ticket of what is dirty now, with later sets apart from it. With all tickets out it is
 * shared with some later sets: who waits for it may wait a little longer, never less. */
static uint64_t ticket_cut(struct cvolume *v)
{
	uint64_t ticket;

	volume_advance(v);
	ticket = v->ticket;
	v->raise = true;
	volume_advance(v);
	return ticket;
}

void switch_begin(struct cached *k)
{
	pthread_mutex_lock(&k->dirty_lock);
	k->switch_ticket = ticket_cut(volume_of(k, 0));
	atomic_store_explicit(&k->switching, true, memory_order_relaxed);
	switch_look(k);
	pthread_mutex_unlock(&k->dirty_lock);
}

static void set_begin(struct cached *k, struct object *o, unsigned gen)
{
	struct cvolume *v = object_volume(k, o), *all = volume_of(k, 0);

	pthread_mutex_lock(&k->dirty_lock);
	o->since[gen] = v->ticket;
	o->since_all[gen] = all->ticket;
	v->sets[v->ticket % NR_TICKETS]++;
	all->sets[all->ticket % NR_TICKETS]++;
	pthread_mutex_unlock(&k->dirty_lock);
}

static unsigned set_join(struct cached *k, struct object *o)
{
	unsigned g = o->gen;
	bool old = o->since[g] < atomic_load_explicit(&object_volume(k, o)->ticket, memory_order_acquire) ||
		   o->since_all[g] < atomic_load_explicit(&volume_of(k, 0)->ticket, memory_order_acquire);

	if (o->cnt[g] && old && o->cnt[!g] == 0)
		g = o->gen = !g;
	if (o->cnt[g]++ == 0)
		set_begin(k, o, g);
	return g;
}

/* Under dirty_lock: unlinks the FLUSH requests that are covered now. */
static struct creq *take_covered(struct cached *k)
{
	struct creq **at = &k->flushes, *c, *ready = NULL;

	while ((c = *at) != NULL) {
		if (volume_of(k, c->r->volume)->lowest <= c->ticket) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = ready;
		ready = c;
		atomic_fetch_sub_explicit(&k->nr_flushes, 1, memory_order_relaxed);
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

void dirty_end(struct cport *ps, struct object *o, unsigned gen)
{
	struct cached *k = ps->cache;
	struct cvolume *v = object_volume(k, o), *all = volume_of(k, 0);
	struct creq *ready;

	assert(o->cnt[gen] > 0);
	if (--o->cnt[gen])
		return;
	pthread_mutex_lock(&k->dirty_lock);
	v->sets[o->since[gen] % NR_TICKETS]--;
	all->sets[o->since_all[gen] % NR_TICKETS]--;
	volume_advance(v);
	volume_advance(all);
	switch_look(k);
	ready = take_covered(k);
	pthread_mutex_unlock(&k->dirty_lock);
	sync_all(ps, ready);
}

void dirty_begin(struct cport *ps, struct object *o, uint32_t b, uint64_t old, uint32_t page)
{
	uint64_t flags = old & SLOT_INFLIGHT;

	if (slot_state(old) == BUCKET_DIRTY)
		flags |= old & SLOT_GEN;
	else if (set_join(ps->cache, o))
		flags |= SLOT_GEN;
	if (slot_state(old) == BUCKET_WRITING)
		flags |= SLOT_INFLIGHT;
	bucket_set(ps, o, b, slot_word(BUCKET_DIRTY, page, flags));
}

/* A predecessor's dirty bucket, found in the arena: all of these are in set 0. */
void dirty_restore(struct cached *k, struct object *o)
{
	if (o->cnt[0]++ == 0)
		set_begin(k, o, 0);
}

/* FLUSH requests that cover a set whose flush failed are told so, now. */
void tickets_fail(struct cport *ps, struct object *o, unsigned gen, int error)
{
	struct cached *k = ps->cache;
	struct creq **at = &k->flushes, *c, *failed = NULL, *next;
	uint32_t volume = object_entry(k, o)->volume;

	pthread_mutex_lock(&k->dirty_lock);
	while ((c = *at) != NULL) {
		bool hit = c->r->volume == 0 ? o->since_all[gen] <= c->ticket :
			   volume_of(k, c->r->volume) == volume_of(k, volume) && o->since[gen] <= c->ticket;

		if (!hit) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = failed;
		failed = c;
		atomic_fetch_sub_explicit(&k->nr_flushes, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&k->dirty_lock);
	for (c = failed; c; c = next) {
		next = c->next;
		creq_finish(ps, c, error);
	}
}

/* ---- FLUSH requests ---- */

void flush_request(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	struct cvolume *v = volume_of(k, c->r->volume);
	bool covered;

	pthread_mutex_lock(&k->dirty_lock);
	k->flush_ns = ps->pp->now_ns;
	c->ticket = ticket_cut(v);
	covered = v->lowest > c->ticket;
	if (!covered) {
		creq_set_state(c, CREQ_AT_STORE);
		c->next = k->flushes;
		k->flushes = c;
		atomic_fetch_add_explicit(&k->nr_flushes, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&k->dirty_lock);
	if (covered)
		sync_send(ps, c);
	else
		count_wait(ps, WAIT_FLUSH);
}
