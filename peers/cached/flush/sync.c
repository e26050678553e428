/* sync - sends FLUSH to the store, and makes clean data dirty again when the store fails it.
 *
 * Why. After a failed FLUSH none of the data that it covered counts as written. A kernel that could
 * not write a page may drop it, and report that once. So the copies that the cache still has become
 * dirty again before the error is answered. The next FLUSH writes them once more.
 *
 * Epochs. A bucket that a flush has cleaned bears WRITTEN and the epoch of that time. Each FLUSH
 * that goes to the store takes the epoch and begins the next one. If the FLUSH succeeds, its volume
 * is synced up to that epoch. A bucket bears 16 bits of the epoch. So a bucket that was cleaned
 * 65,536 FLUSHes ago may look younger than it is, and is written once more than needed. The same
 * goes for a volume that lost its place in the small table, and after a restart. Data that was
 * flushed with FUA needs none of this.
 *
 * Lost data. A FLUSH that fails loses all data that is not known to be synced:
 *
 *   - data of every volume, as a store may sync all of its data at once
 *   - data that was cleaned while the FLUSH was in flight, as a kernel may drop that too
 *   - data that another FLUSH reported as synced, if that one was sent while the failed one was
 *     in flight: the store may have dropped the data before
 *
 * A write with FUA that fails counts as a FLUSH that fails. The store may or may not have synced
 * its older data of that object.
 *
 * Walks. A walk goes through all objects (walk.h), one walk at a time. It may be for several
 * failures. It goes by the data that was known to be synced when the first of them came. FLUSHes
 * that fail during the walk wait for the next one. A FLUSH begins again when the walk has ended in
 * these cases:
 *
 *   - it is to be sent while a walk is wanted or under way
 *   - it was covered before a walk had ended
 *   - it succeeds, and another FLUSH has failed since it was sent
 *
 * The walk makes data dirty that was written before that FLUSH came. A FLUSH begins again only
 * once, as others may fail all the time.
 *
 * A cache that leaves the path, or stops, sends a FLUSH of its own for all data that the store has
 * got, because the cache's copies go away. `own_sync` belongs to port 0.
 *
 * Contract: sync_send() and sync_lost() from anywhere, outside of dirty_lock. That lock guards the
 * tables of synced data, `walking`, `walk_wanted`, and the list of FLUSHes that wait for the next
 * walk. `walk_synced` and the list of the current walk belong to that walk.
 *
 * Invariants:
 *   Y1  WRITTEN stands beside VALID, or beside UNPROMISED for the data below that.
 *   Y2  A FLUSH that failed is answered when a walk that began after its failure has ended.
 *   Y3  A walk makes dirty all data that was cleaned before one of its failures, whatever is
 *       answered meanwhile. It spares data that a FLUSH covers which succeeded before the failed
 *       request was sent.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/cached/flush/flush.h"
#include "peers/cached/memory/pages.h"
#include "peers/cached/object/object.h"
#include "peers/common/log/log.h"
#include "xtypes/xkill.h"

#define OWN_SYNC_LOOK_NS      1000000ull
#define OWN_SYNC_PAUSE_MIN_NS 100000000ull	/* after one that failed; doubles, to at most */
#define OWN_SYNC_PAUSE_MAX_NS 5000000000ull

uint64_t sync_stamp(struct cached *k)
{
	return SLOT_WRITTEN | atomic_load_explicit(&store_of(k)->sync_epoch, memory_order_relaxed)
				      << SLOT_EPOCH_SHIFT;
}

/* All of the volume (0: of all) that was cleaned up to that epoch is stable. */
static void synced_note(struct cached *k, uint32_t volume, uint64_t epoch)
{
	struct cvolume_sync *s = &flush_of(k)->sync.synced[volume % NR_SYNCED];

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	if (s->volume != volume || s->below <= epoch)
		*s = (struct cvolume_sync){ .volume = volume,
			.below = epoch + 1,
			.noted = atomic_load_explicit(
				&store_of(k)->sync_epoch, memory_order_relaxed) };
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
}

/* Under dirty_lock: what is synced for the next walk, which is for a failure of what was sent at
 * that epoch, too. What was noted since then may have been done after that failure. */
static void synced_keep(struct cached *k, uint64_t sent)
{
	for (uint32_t i = 0; i < NR_SYNCED; i++) {
		struct cvolume_sync now = flush_of(k)->sync.synced[i],
				    *kept = &flush_of(k)->sync.lost_synced[i];

		if (now.noted > sent)
			now.below = 0;
		if (!flush_of(k)->sync.walk_wanted)
			*kept = now;
		else if (kept->volume != now.volume)
			kept->below = 0;
		else if (kept->below > now.below)
			kept->below = now.below;
	}
}

/* The first epoch of which nothing said, before the failure that the walk is for, that what was
 * cleaned of the volume then is stable. */
static uint64_t unsynced_from(struct cached *k, uint32_t volume)
{
	const struct cvolume_sync *own = &flush_of(k)->sync.walk_synced[volume % NR_SYNCED],
				  *all = &flush_of(k)->sync.walk_synced[0];
	uint64_t from = 0;

	if (own->volume == volume)
		from = own->below;
	if (all->volume == 0 && all->below > from)
		from = all->below;
	return from;
}

/* ---- sending ---- */

static void sync_retry(struct xwait *w, void *ctx)
{
	struct creq *c = caa_container_of(w, struct creq, wait);

	creq_set_state(c, CREQ_RUNNING);
	sync_send(ctx, c);
}

/* Under dirty_lock: so many walks will have ended when none is wanted any more. */
static uint64_t walks_to_come(const struct cached *k)
{
	return flush_of(k)->sync.walks + flush_of(k)->sync.walking + flush_of(k)->sync.walk_wanted;
}

/* What is lost may not be dirty again, or was not when the FLUSH was covered, or sent. True: it
 * begins again, now or when a walk has ended. */
static bool begins_again(struct cport *ps, struct creq *c)
{
	struct cached *k = ps->cache;
	bool again, waits;

	if (c->r->op != XSEG_OP_FLUSH || c->flush.again)
		return false;
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	c->flush.again = again = c->seq != walks_to_come(k);
	waits = flush_of(k)->sync.walks != walks_to_come(k);
	if (waits) {
		creq_set_state(c, CREQ_AT_STORE);
		c->seq = walks_to_come(k);
		c->next = flush_of(k)->sync.late_flushes;
		flush_of(k)->sync.late_flushes = c;
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (again && !waits)
		flush_request(ps, c);
	return again;
}

/* All that c covers is at the store: now the store has to make it stable. */
void sync_send(struct cport *ps, struct creq *c)
{
	struct child *ch;

	if (begins_again(ps, c))
		return;
	ch = child_get(ps, CHILD_SYNC, NULL);
	if (!ch) {
		creq_set_state(c, CREQ_WAITS_REQUEST);
		c->wait.fn = sync_retry;
		requests_wait(ps, &c->wait);
		return;
	}
	creq_set_state(c, CREQ_AT_STORE);
	ch->c = c;
	ch->sent = sync_begin(ps->cache);
	ch->r->volume = c->r->volume;
	xseg_req_set_target(ch->r, c->r->target, strlen(c->r->target));
	child_submit(ps, ch, XSEG_OP_FLUSH, 0);
}

static void sync_answer(struct cport *ps, struct creq *c)
{
	creq_finish(ps, c,
		c->error                    ? c->error
		: c->r->op == XSEG_OP_FLUSH ? 0
					    : (int64_t)c->r->size);
}

void sync_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct creq *c = ch->c;
	uint64_t epoch = ch->sent;

	child_put(ps, ch);
	creq_set_state(c, CREQ_RUNNING);
	if (result >= 0) {
		synced_note(ps->cache, c->r->volume, epoch);
		trouble_over(ps->cache, TROUBLE_SYNC);
	}
	XKILL(SYNC_ANSWERED);
	if (result < 0) {
		c->error = (int)result;
		trouble_note(ps, TROUBLE_SYNC, c->error);
		sync_lost(ps, epoch, c);
	} else if (!begins_again(ps, c)) {
		sync_answer(ps, c);
	}
}

/* ---- the walk ---- */

/* The latest epoch until now that a stamp of 16 bits can be of. */
static uint64_t epoch_of(uint64_t w, uint64_t now)
{
	return now - (uint16_t)(now - (w >> SLOT_EPOCH_SHIFT));
}

static bool slot_is_written(uint64_t w)
{
	return (slot_state(w) == BUCKET_VALID || slot_is_unpromised(w)) && (w & SLOT_WRITTEN);
}

static bool may_be_written(const struct object *o)
{
	return o->nr[BUCKET_VALID] || o->nr[BUCKET_DIRTY] || o->nr[BUCKET_WRITING];
}

/* What lies below unpromised data may be lost, and is in that data: it is promised from now on. */
static void object_redirty(struct cport *ps, struct object *o)
{
	struct cached *k = ps->cache;
	/* no stamp of the object is later, as they are made inside of it */
	uint64_t now = atomic_load_explicit(&store_of(k)->sync_epoch, memory_order_relaxed),
		 from = unsynced_from(k, object_entry(k, o)->volume);

	for (uint32_t b = 0; b < OBJECT_BUCKETS && may_be_written(o); b++) {
		uint64_t w = slot_get(k, o, b);

		if (!slot_is_written(w) || epoch_of(w, now) < from)
			continue;
		if (slot_is_unpromised(w)) {
			bucket_promise(ps, o, b);
			continue;
		}
		page_unclean(ps, slot_page(w));
		dirty_begin(ps, o, b, slot_word_of(k, o, b), slot_page(w), true);
	}
	dirty_list(ps, o);
}

static void redirty_begin(struct cport *ps);

/* Under dirty_lock: unlinks the FLUSHes that waited for what has ended now. */
static struct creq *take_late(struct cached *k)
{
	struct creq **at = &flush_of(k)->sync.late_flushes, *c, *ready = NULL;

	while ((c = *at) != NULL) {
		if (c->seq > flush_of(k)->sync.walks) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = ready;
		ready = c;
	}
	return ready;
}

static void redirty_end(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct creq *c = flush_of(k)->sync.walk_syncs, *next;

	flush_of(k)->sync.walk_syncs = NULL;
	for (; c; c = next) {
		next = c->next;
		sync_answer(ps, c);
	}
	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	assert(flush_of(k)->sync.walking);			/* Y2: one walk at a time */
	flush_of(k)->sync.walking = false;
	flush_of(k)->sync.walks++;
	c = take_late(k);
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	for (; c; c = next) {
		next = c->next;
		creq_set_state(c, CREQ_RUNNING);
		flush_request(ps, c);
	}
	redirty_begin(ps);
}

static void redirty_begin(struct cport *ps)
{
	struct cached *k = ps->cache;
	bool begin;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	begin = !flush_of(k)->sync.walking && flush_of(k)->sync.walk_wanted;
	if (begin) {
		flush_of(k)->sync.walking = true;
		flush_of(k)->sync.walk_wanted = false;
		memcpy(flush_of(k)->sync.walk_synced, flush_of(k)->sync.lost_synced,
			sizeof(flush_of(k)->sync.walk_synced));
		flush_of(k)->sync.walk_syncs = flush_of(k)->sync.failed_syncs;
		flush_of(k)->sync.failed_syncs = NULL;
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	if (begin)
		walk_begin(ps, &flush_of(k)->sync.walk, object_redirty, redirty_end);
}

void sync_lost(struct cport *ps, uint64_t sent, struct creq *c)
{
	struct cached *k = ps->cache;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	synced_keep(k, sent);
	flush_of(k)->sync.walk_wanted = true;
	if (c) {
		c->next = flush_of(k)->sync.failed_syncs;
		flush_of(k)->sync.failed_syncs = c;
	}
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	redirty_begin(ps);
}

bool sync_walks(struct cached *k)
{
	bool walks;

	pthread_mutex_lock(&flush_of(k)->dirty_lock);
	walks = flush_of(k)->sync.walking || flush_of(k)->sync.walk_wanted;
	pthread_mutex_unlock(&flush_of(k)->dirty_lock);
	return walks;
}

/* ---- the cache's own, before it leaves ----
 *
 * ENOTCONN is the word of a cache below that is off the path. It has taken nothing since then, and
 * all that it had before was made stable. So it is no failure: nobody would ever end that. */

static uint64_t changes(struct cached *k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < peer_of(k)->nr_ports; i++)
		sum += atomic_load_explicit(
			&store_port(cport_at(k, i))->changes, memory_order_relaxed);
	return sum;
}

bool own_sync_send(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct child *ch =
		flush_of(k)->sync.own_sync.out ? NULL : child_get(ps, CHILD_OWN_SYNC, NULL);

	if (!ch)
		return false;
	flush_of(k)->sync.own_sync.out = true;
	flush_of(k)->sync.own_sync.changes = changes(k);
	ch->sent = sync_begin(k);
	xseg_req_set_target(ch->r, "", 0);
	child_submit(ps, ch, XSEG_OP_FLUSH, 0);
	return true;
}

void own_sync_done(struct cport *ps, struct child *ch, int64_t result)
{
	struct cached *k = ps->cache;
	struct own_sync *s = &flush_of(k)->sync.own_sync;
	uint64_t sent = ch->sent;

	child_put(ps, ch);
	s->error = result < 0 && result != -ENOTCONN ? (int)result : 0;
	s->told = false;
	if (s->error) {
		trouble_note(ps, TROUBLE_SYNC, s->error);
		sync_lost(ps, sent, NULL);
	} else {
		synced_note(k, 0, sent);
		trouble_over(k, TROUBLE_SYNC);
		atomic_store_explicit(&s->stable, s->changes, memory_order_relaxed);
	}
	s->out = false;
	s->news = true;
}

uint64_t own_sync_pause(uint64_t last_ns)
{
	uint64_t next_ns = last_ns ? last_ns * 2 : OWN_SYNC_PAUSE_MIN_NS;

	return next_ns < OWN_SYNC_PAUSE_MAX_NS ? next_ns : OWN_SYNC_PAUSE_MAX_NS;
}

void own_sync_unknown(struct cached *k)
{
	atomic_store_explicit(&flush_of(k)->sync.own_sync.stable, UINT64_MAX, memory_order_relaxed);
}

bool own_sync_covers(struct cached *k)
{
	return atomic_load_explicit(&flush_of(k)->sync.own_sync.stable, memory_order_relaxed) ==
	       changes(k);
}

/* When nothing is dirty all of it has to be stable, as nobody else will have it. It looks on: other
 * ports do not say what they have changed. */
uint64_t own_sync_run(struct cport *ps)
{
	struct cached *k = ps->cache;
	struct own_sync *s = &flush_of(k)->sync.own_sync;

	if (!atomic_load_explicit(&peer_of(k)->stopping, memory_order_relaxed) || cached_is_off(k))
		return PEER_NEVER;
	if (ps->pp->now_ns < s->next_ns)
		return s->next_ns;
	s->next_ns = ps->pp->now_ns + OWN_SYNC_LOOK_NS;
	if (own_sync_covers(k) || s->out || cached_total(k, CC_DIRTY_BYTES) || sync_walks(k))
		return s->next_ns;
	if (s->error && !s->told) {
		log_warn(
			"%s: cannot stop yet: the store failed to make its data stable: %s; trying "
			"again",
			peer_of(k)->name, strerror(-s->error));
		s->told = true;
		s->pause_ns = own_sync_pause(s->pause_ns);
		s->next_ns = ps->pp->now_ns + s->pause_ns;
	} else {
		own_sync_send(ps);
	}
	return s->next_ns;
}
