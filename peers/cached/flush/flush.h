/* flush - from dirty to stable.
 *
 * Sets and tickets are in ticket.c, flushes in flush.c and dirty_list.c, and FLUSH at the store in
 * sync.c. Writers are slowed to the store's rate in throttle.c.
 *
 * Contract: a function with a struct object runs inside that object. Each structure says which lock
 * guards it.
 */
#ifndef PEERS_CACHED_FLUSH_H
#define PEERS_CACHED_FLUSH_H

#include "peers/cached/creq/creq.h"
#include "peers/cached/object/walk.h"
#include "peers/cached/store/store.h"

#define NR_TICKETS     32
#define NR_SYNCED      64
#define NR_PAUSES      7u	/* after a flush that failed: 0.1 s, doubled each time, up to 5 s */

/* What is dirty of the volumes whose ids are the same modulo the number of groups (or of all
 * volumes). Guarded by dirty_lock. */
struct flush_group {
	_Atomic uint32_t ticket;	/* the one that new dirty sets get; read without the lock */
	uint32_t lowest;			/* no set is older */
	uint32_t sets[NR_TICKETS];		/* dirty sets by ticket */
	bool raise;	/* a FLUSH shares the last ticket: raise it as soon as there is room */
	_Atomic uint32_t flushes; /* FLUSH requests that wait for its sets; read without the lock */
	uint32_t drains;	/* volumes of it that drain after a switch of their policy */
	uint32_t shares;		/* volumes of it that make room below their maximum */
	struct cds_list_head dirty;		/* its objects in the list `dirty`, by in_group */
	struct cds_list_head wanted;	/* in the list `wanted` while somebody waits for it */
};

struct cvolume_sync {				/* guarded by dirty_lock */
	uint64_t below;	/* what was cleaned in an earlier epoch is stable; 0: nothing is known */
	uint64_t noted;				/* the epoch when that was noted */
	uint32_t volume;
};

/* The cache's own FLUSH of everything (sync.c), as it leaves or stops. Port 0 writes it; `out` and
 * `stable` are read by others when the peer stops. */
struct own_sync {
	_Atomic bool out;
	/* so many changes there had been when the last one was sent that was answered well */
	_Atomic uint64_t stable;
	uint64_t changes, next_ns, pause_ns;	/* changes: when it was sent */
	int error;				/* of the last one, */
	bool told;				/* and who stops has said so */
	bool news;			/* it has ended, and plug_run() has not looked */
};

/* How fast the store takes dirty data, and the writers that are slowed to that (throttle.c). */
struct throttle {
	_Atomic bool on;		/* the high mark is exceeded; read without the lock */
	_Atomic uint32_t nr;		/* writes that wait; written under the lock, read without */
	pthread_mutex_t lock;			/* guards all below */
	struct creq *head, **tail;		/* those that wait, in order of arrival */
	/* what was admitted is paid for up to then, but for the last one's bytes */
	uint64_t paid_ns, debt_bytes;
	uint32_t out;				/* flushes at the store */
	uint64_t seen_ns;			/* up to then time is counted */
	/* time with flushes out, and what they wrote; both are halved now and then */
	uint64_t busy_ns, bytes;
};

/* FLUSH at the store, and what it covers (sync.c). Guarded by dirty_lock, but for `walk`. */
struct sync {
	struct cvolume_sync synced[NR_SYNCED];
	struct cvolume_sync lost_synced[NR_SYNCED];	/* as the next walk has to know it */
	struct own_sync own_sync;
	struct creq *failed_syncs; /* wait for the walk that makes dirty again what they covered */
	struct creq *late_flushes;	/* wait for one, too, and begin again then (sync.c) */
	uint64_t walks;			/* that have ended */
	bool walk_wanted;		/* something has failed since the last walk began */
	bool walking;
	struct walk walk;		/* that makes dirty again what may not be stable */
	struct creq *walk_syncs;		/* the walk's: answered when it has ended */
	struct cvolume_sync walk_synced[NR_SYNCED];	/* the walk's: what it spares */
};

struct flush_room {
	/* options as they hold now: any thread may change one */
	_Atomic uint32_t high_percent, low_percent;
	_Atomic bool full_fails;		/* store_full=fail */
	_Atomic uint64_t age_ns, flush_bytes_per_s;

	pthread_mutex_t dirty_lock;
	struct cds_list_head dirty;		/* objects with something to flush */
	/* the same, after a flush that failed: by how long they pause, each in order of dirty_ns;
	 * and those of them that a FLUSH has tried again at once */
	struct cds_list_head failed[NR_PAUSES], again;
	struct cds_list_head wanted;		/* groups that somebody waits for */
	_Atomic uint32_t nr_listed;		/* their number; read without the lock */
	_Atomic uint32_t dirty_news;	/* changes when one may be due earlier (dirty_list.c) */
	struct flush_group *groups, all;	/* of single volumes; of all together */
	uint32_t nr_groups;
	struct creq *flushes;			/* FLUSH requests that wait for sets to drain */
	_Atomic uint32_t nr_flushes, nr_wanted;	/* in `flushes`; groups in `wanted` */
	struct sync sync;
	_Atomic uint32_t nr_full;	/* volumes for which the store is full (full.c) */
	_Atomic bool full_look;			/* full_run() has something to do: any thread */
	_Atomic bool draining;			/* watermark crossed: until dirty_low */
	_Atomic uint64_t rate_ns;		/* flush_rate: not before then */
	struct throttle throttle;
};

struct flush_port {
	/* the flusher: nothing is due by its age before then, while dirty_news is that */
	uint64_t quiet_ns;
	uint32_t quiet_news;
	bool wanted_turn;	/* it looked last for what a single volume's FLUSH waits for */
	bool throttled;	/* a write began to wait in the throttle since the last throttle_run() */
};

struct flush_room *flush_of(const struct cached *k);
struct flush_port *flush_port(const struct cport *ps);

static inline bool throttle_busy(struct cached *k)
{
	return atomic_load_explicit(&flush_of(k)->throttle.nr, memory_order_relaxed) > 0;
}

/* ---- ticket.c ---- */
/* Its b-th bucket has that page, and is dirty; promised: by what is acknowledged, or is before the
 * store has it. Returns what the slot was. */
uint64_t dirty_begin(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot,
	uint32_t page, bool promised);
void dirty_end(struct cport *ps, struct object *o, unsigned gen);
void dirty_restore(struct cached *k, struct object *o);
void group_init(struct flush_group *g);
struct flush_group *object_group(struct cached *k, struct object *o);
/* What is dirty of the volume of that record is flushed in the background; volume.h says how far it
 * is. */
void drain_begin(struct cached *k, uint32_t rec);
void drain_cancel(struct cached *k, uint32_t rec);
/* FLUSH requests that cover this set of the object get the error of its flush. */
void tickets_fail(struct cport *ps, struct object *o, unsigned gen, int error);
void flush_request(struct cport *ps, struct creq *c);
/* It leaves the policy `from`: `switching`, until all that is dirty now is at the store. */
void switch_begin(struct cached *k, const struct policy *from);
/* Each poll: the first one since a switch says when that was. */
void switch_clock(struct cport *ps);
void switch_end(struct cached *k);			/* at once: it is write-back again */

/* ---- sync.c ---- */
/* what c covers is at the store, which now has to make it stable */
void sync_send(struct cport *ps, struct creq *c);
void sync_done(struct cport *ps, struct child *ch, int64_t result);
/* One that was sent at that epoch has failed: what is not known to be stable becomes dirty again,
 * and then c, which may be NULL, is answered. */
void sync_lost(struct cport *ps, uint64_t sent, struct creq *c);
bool sync_walks(struct cached *k);			/* until that is done */
/* Before the cache leaves, the path or for good: the store is asked to make stable all that it has
 * got. Port 0's. False: not now, as no request is free, or one is out. */
bool own_sync_send(struct cport *ps);
void own_sync_done(struct cport *ps, struct child *ch, int64_t result);
/* Before the next try; last: before this one, or 0. */
uint64_t own_sync_pause(uint64_t last_ns);
/* Asked to stop: sees to it that all is stable. Returns when it wants to run again. */
uint64_t own_sync_run(struct cport *ps);
void own_sync_unknown(struct cached *k);	/* it goes on where a predecessor stopped */
bool own_sync_covers(struct cached *k);		/* all that the store has got; any thread */
uint64_t sync_stamp(struct cached *k);		/* flags of a bucket that a flush has cleaned */

/* ---- dirty_list.c ---- */
/* Buckets that may be started: DIRTY, with no older page of theirs on its way (F1). */
static inline uint32_t nr_startable(const struct object *o)
{
	uint32_t inflight = object_nr_dirty(o, 0) + object_nr_dirty(o, 1) - o->nr[BUCKET_DIRTY] -
			    o->nr[BUCKET_WRITING];

	return o->nr[BUCKET_DIRTY] - inflight;
}
void dirty_list(struct cport *ps, struct object *o);	/* if it has buckets to be started */
/* at_head: as the next one */
void dirty_list_at(struct cport *ps, struct object *o, bool at_head);
void dirty_unlist(struct cport *ps, struct object *o);		/* if it has none */
/* Both take it out of the list, with the list's reference, and tell it why; NULL: none now. The
 * next object that those need who wait for single volumes: */
struct object *dirty_next_wanted(struct cport *ps);
/* the next of all; *next_ns, PEER_NEVER before, says when to look again */
struct object *dirty_next(struct cport *ps, enum flush_why why, uint64_t *next_ns);
/* Inside: it failed, and need not pause any more. */
void dirty_unfail(struct cport *ps, struct object *o);
void dirty_try_failed_locked(struct cached *k);	/* all that failed are tried again at once */
/* An object may be due earlier than it was (F6). Any thread, with dirty_lock or without. */
void dirty_is_news(struct cached *k);

/* ---- flush.c ---- */
/* Starts flushing [first, first + nr) of the object; true when all that could be started was. */
bool flush_start(
	struct cport *ps, struct object *o, uint32_t first, uint32_t nr, enum flush_why why);
/* goes on flushing an object that is to be empty */
void flush_evict(struct cport *ps, struct object *o);
void flush_done(struct cport *ps, struct child *ch, int64_t result);
/* The store has taken data of the object, or has deleted it: what failed before counts no more. */
void back_off_end(struct cport *ps, struct object *o);
/* what it was asked for; takes a reference away */
void flush_job(struct cport *ps, struct object *o);
void flush_wait_fn(struct xwait *w, void *ctx);
uint64_t flusher_run(struct cport *ps);			/* returns when it wants to run again */

/* ---- full.c ---- */
/* Inside: a flush of the object has failed, as the store is full; has succeeded. */
void full_begin(struct cport *ps, struct object *o);
void full_end(struct cport *ps, struct object *o);
/* The record is taken from its volume; true: the store was full for that. */
bool full_forget(struct cached *k, uint32_t rec);
/* Inside: the store has no room for the volume of that record, and its new writes are refused. */
bool full_is_refused(struct cport *ps, uint32_t rec);
/* The same of c, at its first step or again, while it has nothing. */
bool full_refuses(struct cport *ps, const struct creq *c);
/* Port 0's poll: those that wait for memory, and are to be refused, go on. */
void full_run(struct cport *ps);
/* Any thread: there may be such ones. */
void full_ask(struct cached *k);
/* Any thread: c waits for memory from now on. It is refused if a cut waits for it. */
void full_waits(struct cached *k, const struct creq *c);
/* The volume for which the store is full the longest, or UINT32_MAX; how many there are. */
uint32_t full_first(struct cached *k, uint32_t *nr);

/* ---- throttle.c ---- */
void throttle_init(struct throttle *t);
void throttle_fini(struct throttle *t);
void throttle_flush_out(struct cport *ps);		/* a flush child goes out; */
void throttle_flush_back(struct cport *ps, uint64_t bytes);	/* it is back: what it wrote */
/* Under the throttle's lock: bytes a second; 0: unknown. */
uint64_t throttle_store_rate(struct throttle *t, uint64_t now_ns);
/* Inside the object, at a write's first step: true if c has to wait, and will be stepped again. It
 * holds nothing yet. */
bool throttle_holds(struct cport *ps, struct creq *c);
/* Inside the object: c does not wait in the throttle any more. False: it did not. */
bool throttle_drop(struct cport *ps, struct creq *c);
/* Outside of any object: lets those go on whose time has come; returns when it wants to run
 * again. */
uint64_t throttle_run(struct cport *ps);

/* ---- through.c: inside the object ---- */
/* c's slots are stored: it is APPLIED, and answered when the store has what is in them. */
void through_applied(struct cport *ps, struct creq *c);
/* c is answered, or, if it is not applied, stepped, when the store has what its buckets have. */
void through_wait(struct cport *ps, struct creq *c);
/* Those who wait so in an object: a flush of it has ended; it is not shut any more; it is
 * deleted. */
void through_cover(struct cport *ps, struct object *o, struct child *ch, int error);
void through_restart(struct cport *ps, struct object *o);
void through_deleted(struct cport *ps, struct object *o);

/* ---- ticket.c: groups of shares ---- */
/* The group of that share is flushed for its sake from now on, or no more: whichever is right. */
void share_look(struct cached *k, uint32_t rec);
/* A request was taken out of that queue, which may be a share's. */
void share_left(struct cached *k, const struct xwaitq *queue);

#endif
