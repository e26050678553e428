/* creq - requests: those from above (creq) and those of cached's own that are out below (child).
 *
 * Contract: what takes a struct creq runs inside its object, unless it says otherwise. States:
 * creq.c.
 */
#ifndef PEERS_CACHED_CREQ_H
#define PEERS_CACHED_CREQ_H

#include "peers/cached/object/object.h"
#include "peers/cached/evict/share.h"
#include "peers/common/peer.h"

#define RUN_MAX	       256		/* buckets in one child: 1 MiB */
#define CREQ_FEW       16		/* pages of a write that are listed in its creq */

struct policy;

/* See creq.c. */
enum creq_state {
	CREQ_IDLE, CREQ_RUNNING, CREQ_WAITS_ENTRY, CREQ_WAITS_OBJECT, CREQ_WAITS_MEMORY,
	CREQ_WAITS_REQUEST,
	CREQ_WAITS_THROTTLE, CREQ_AT_STORE,
	CREQ_NR_STATES
};

/* A request from above, while cached has it. Indexed by the request's index. */
struct creq {
	enum creq_state state;			/* written by creq_set_state() only */
	/* its neighbours among the changes of its object (change.c): index of a request + 1 */
	uint32_t older;
	struct xreq *r;
	/* other: COPY: of source and target the one that it is not inside of */
	struct object *obj, *other;
	void (*step)(struct cport *ps, struct creq *c);	/* tries to go on; inside the object */
	struct xwork work;
	struct xwait wait;
	/* where it waited last by `wait`; NULL: nowhere yet, or in the throttle since */
	struct xwaitq *queue;
	/* in one of the object's lists, the throttle's, or among pending FLUSHes */
	struct creq *next;
	/* read: buckets copied; write: while it is applied, those whose pages are given; then, that
	 * the store has */
	uint64_t done[(XSEG_REQ_PAGES + 63) / 64];
	/* write: the object's apply_seq when it was applied; 0: by a predecessor. FLUSH: how many
	 * walks had ended when it began, or are to end before it begins again (sync.c) */
	uint64_t seq;
	uint32_t ticket;	/* FLUSH: what it covers */
	uint32_t newer;				/* as `older` */
	union {
		uint64_t dirty_end;	/* INFO: end of what was dirty when the store was asked */
		/* read: buckets that count as lent to that port, and are not listed (loan.c) */
		struct {
			uint32_t port, nr;
		} granted;
	};
	uint64_t until_ns;			/* throttle: it waits no longer */
	uint32_t debt_bytes;			/* throttle: what it makes dirty */
	uint16_t volume;			/* record of its volume */
	uint16_t first, nr;			/* buckets */
	uint16_t nr_pages;		/* write: of page[] that it holds; read: that it is lent */
	uint16_t nr_done;
	union {
		uint16_t nr_hit;		/* read: done when it was first looked at */
		uint16_t grow;		/* COPY: buckets of its target that had no page */
	};
	uint8_t edges_out;			/* write: edge loads in flight */
	/* enum turn: it may pass those who wait for pages; while it waits: what it will be */
	uint8_t turn;
	bool looked, redo, applied, fua;
	bool lends;	/* read: its buckets may be lent; write: it gives its pages (gift.c) */
	bool used_ahead, used_once;	/* read: buckets that were read ahead, or not to be kept */
	uint8_t around;			/* enum bypass_why: read: why it is to go past the cache */
	bool paced : 1;				/* write: the throttle has seen it */
	bool again : 1;				/* FLUSH: it has begun again */
	bool recovered : 1;			/* a predecessor had it, and may have done it */
	/* write: a predecessor stored slots of it: what they had may have gone to the store
	 * since */
	bool inherited : 1;
	bool listed : 1;			/* it is among the changes of its object, */
	bool voided : 1;			/* and has no effect: a cut came (change.c) */
	_Atomic bool in_way;			/* a cut waits for it (full.c) */
	int error;
	const struct policy *policy;		/* as of its first step */
	uint32_t aside[2]; /* COPY: the source's data for its first and last bucket, or NO_PAGE */
	/* write: the new pages: `few`, or one of the cache's lists; NULL: none yet */
	uint32_t *page;
	uint32_t few[CREQ_FEW];
};

enum child_kind {
	CHILD_LOAD, CHILD_EDGE, CHILD_AROUND, CHILD_FLUSH, CHILD_DELETE, CHILD_INFO, CHILD_SYNC,
	CHILD_ORPHAN, CHILD_OWN_SYNC
};

/* A request of our own that is out at the downstream. Indexed by the request's index. */
struct child {
	struct xreq *r;
	struct object *obj;
	struct creq *c;				/* EDGE, AROUND, DELETE, INFO, SYNC: whose */
	struct xwork work;
	uint64_t seq;		/* FLUSH: object's apply_seq when it started */
	uint64_t sent;		/* SYNC, OWN_SYNC, writes with FUA: its epoch (sync.c) */
	uint64_t gen[RUN_MAX / 64];		/* FLUSH: the dirty set of each bucket */
	uint16_t first, nr;
	uint64_t flags;		/* LOAD: SLOT_AHEAD, SLOT_ONCE: what its buckets are to bear */
	uint8_t kind, why, home;		/* home: number of the port whose request it is */
	bool joined;		/* LOAD: some of its buckets were there, and keep what they have */
	struct child *next;			/* on its way back to its port */
};

/* ---- child.c: by the port's thread, inside an object or outside of any ---- */
/* With a reference to that object, if there is one. NULL: none is free. */
struct child *child_get(struct cport *ps, enum child_kind kind, struct object *o);
/* Sends it; on failure (no downstream) completes it with the error. */
void child_submit(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags);
/* The same, for a range that need not be whole buckets; its pages are listed. */
void child_submit_range(struct cport *ps, struct child *ch, enum xseg_op op, uint32_t flags,
	uint64_t from, uint32_t bytes);
void child_put(struct cport *ps, struct child *ch);	/* frees request and reference */
/* of those that may be when all that came from above is answered */
uint32_t children_out(struct cached *k);
/* A predecessor's, which is out, and is its holder's; the caller gives it his reference to the
 * object. */
void child_adopt(struct cport *ps, struct xreq *r, uint32_t index, struct object *o);
void child_reply(struct cport *ps, struct xreq *r);	/* it is answered: completes it */
void children_collect(struct cport *ps);	/* frees those that other threads have put */
/* w->fn is called by requests_signal(), outside of any object, when one of the port's own requests
 * may be free. */
void requests_wait(struct cport *ps, struct xwait *w);
void requests_signal(struct cport *ps);

/* Completes a child of its kind, and puts it. Inside its object, if it has one. */
void load_done(struct cport *ps, struct child *ch, int64_t result);
void edge_done(struct cport *ps, struct child *ch, int64_t result);
void around_done(struct cport *ps, struct child *ch, int64_t result);
void delete_done(struct cport *ps, struct child *ch, int64_t result);
void info_done(struct cport *ps, struct child *ch, int64_t result);
void orphan_done(struct cport *ps, struct child *ch, int64_t result);

/* ---- adopt.c ---- */
/* Once, before serving, when all slots are known. page_is: enum page_is, by page. */
void orphans_adopt(struct cached *k, uint8_t *page_is);

/* ---- creq.c ---- */
/* Outside of any object: it was accepted just now, or recovered. */
void creq_request(struct cport *ps, struct xreq *r, bool recovered);
/* Port 0, before the cache serves: all of a predecessor's have been handed over. */
void creq_recovered(struct cport *ps);
/* Its range is within an object, and lies there as in the pages of its volume. */
bool creq_range_ok(const struct xreq *r);
/* Answers it; its list of pages and its references go. */
void creq_finish(struct cport *ps, struct creq *c, int64_t result);
void creq_set_state(struct creq *c, enum creq_state s);
bool creq_edge_legal(enum creq_state from, enum creq_state to);
const char *creq_state_name(enum creq_state s);
/* For c->wait.fn: steps it again, inside its object. */
void creq_retry(struct xwait *w, void *ctx);
/* Steps it again when one of our own requests is free. */
void creq_wait_for_request(struct cport *ps, struct creq *c);

/* The part of its i-th bucket that a request covers: *len bytes from *in of the bucket. */
static inline void request_part(const struct xreq *r, uint32_t i, uint32_t *in, uint32_t *len)
{
	uint64_t start = r->obj_offset, end = start + r->size,
		 lo = (start / BUCKET_SIZE + i) * BUCKET_SIZE, hi = lo + BUCKET_SIZE;

	*in = start > lo ? (uint32_t)(start - lo) : 0;
	*len = (uint32_t)((end < hi ? end : hi) - lo) - *in;
}
static inline bool request_is_partial(const struct xreq *r, uint32_t i)
{
	uint32_t in, len;

	request_part(r, i, &in, &len);
	return len != BUCKET_SIZE;
}
/* Its data goes by the processor: it is not lent. */
static inline bool request_is_copied_read(const struct xreq *r)
{
	return r->op == XSEG_OP_READ && !(r->flags & XSEG_REQ_LOAN);
}
static inline bool creq_is_done(const struct creq *c, uint32_t i)
{
	return c->done[i / 64] >> (i % 64) & 1;
}
static inline void creq_set_done(struct creq *c, uint32_t i)
{
	c->done[i / 64] |= 1ull << (i % 64);
	c->nr_done++;
}

/* ---- hit.c ---- */
/* requests of one volume that went the short way, and are not in the port's counters yet */
struct hits {
	uint32_t volume, nr;			/* nr: reads */
	uint64_t buckets, lent, bytes;
	uint64_t writes, given, written;	/* given: buckets; written: bytes */
};
/* Outside of any object. A read that has all it wants is answered; false: it has to go the long way
 * (creq_request). */
bool hit_read(struct cport *ps, struct xreq *r);
/* The same of a write of whole buckets that are there, when nothing has to be waited for. */
bool hit_write(struct cport *ps, struct xreq *r);
void hits_publish(struct cport *ps);

/* The steps of a request: its first one, and again when what it waited for may be there. */
void read_step(struct cport *ps, struct creq *c);
void write_step(struct cport *ps, struct creq *c);
void copy_step(struct cport *ps, struct creq *c);
void delete_step(struct cport *ps, struct creq *c);
void info_step(struct cport *ps, struct creq *c);

/* ---- read.c ---- */
/* Copies what a read wants of its i-th bucket, which is in that page, or NO_PAGE; next and after
 * are data_copy()'s. */
void bucket_copy_out(struct cport *ps, const struct xreq *r, uint32_t i, uint32_t page,
	const void *next, const void *after);

/* ---- write.c ---- */
/* Fills the new page of the i-th bucket. */
void write_fill(struct cport *ps, struct creq *c, uint32_t i);
/* after the last write_fill(), before anything says that the data is there */
void write_settle(const struct creq *c);
/* Stores a slot with a page that is written; returns the old one, if it is free now, or NO_PAGE.
 * promised: see dirty_begin() */
uint32_t write_slot(struct cport *ps, struct object *o, uint32_t b, _Atomic uint64_t *slot,
	uint32_t page, bool promised);
/* the same of its i-th bucket */
uint32_t write_store(struct cport *ps, struct creq *c, uint32_t i, uint32_t page);
/* Answers a request that holds no page; it is inside of what it writes to. */
void write_end(struct cport *ps, struct creq *c, int64_t result);
/* c is answered, or, if it is not applied, stepped, when the store has what its buckets have. */
void through_wait(struct cport *ps, struct creq *c);
/* Those who wait so in an object: a flush of it has ended; it is not shut any more; it is
 * deleted. */
void through_cover(struct cport *ps, struct object *o, struct child *ch, int error);
void through_restart(struct cport *ps, struct object *o);
void through_deleted(struct cport *ps, struct object *o);

/* Inside: a change that was voided ends, as if it had been applied before its cut. */
void write_void(struct cport *ps, struct creq *c);

/* ---- list.c ---- */
/* Outside of any object: answers a LIST, or forwards it. It never waits. */
void list_request(struct cport *ps, struct xreq *r);

/* ---- change.c ---- */
/* Takes something away: nothing older may bring it back. */
static inline bool op_is_cut(uint8_t op)
{
	return op == XSEG_OP_DELETE || op == XSEG_OP_DISCARD || op == XSEG_OP_WRITE_ZEROES;
}
/* Urgent: see room.c. */
static inline bool creq_is_urgent(const struct creq *c)
{
	return op_is_cut(c->r->op) || c->r->target[0] == ':';
}
/* With which it takes pages. */
static inline enum turn creq_turn(const struct creq *c)
{
	return creq_is_urgent(c) ? TURN_URGENT : (enum turn)c->turn;
}
/* It is inside the object for the first time; it is applied or answered. */
void change_enter(struct cached *k, struct object *o, struct creq *c);
void change_leave(struct cached *k, struct object *o, struct creq *c);
/* The cut has to wait for an older change, whose end wakes the object's waiters. That change is
 * noted as in its way. */
bool change_waits(struct cached *k, struct object *o, const struct creq *cut);
/* Voids the older changes that the cut covers, in the segment. The cut is STARTED. Returns those
 * that were parked; the caller hands them to changes_end() when the cut is applied, and is answered
 * or APPLIED. */
struct creq *changes_void(struct cport *ps, struct object *o, const struct creq *cut);
void changes_end(struct cport *ps, struct creq *caught);
/* While a predecessor's requests are handed over: true if c is a cut, which is begun later. */
bool changes_defer(struct cached *k, struct creq *c);
struct creq *changes_recovered(struct cached *k); /* all are handed over: these cuts, by `next` */
void changes_check(struct cached *k, struct object *o);

/* ---- around.c ---- */
/* Past the cache. False: something of its range is newer than the store. A write may have to wait
 * first. */
bool around_read(struct cport *ps, struct creq *c, enum bypass_why why);
bool around_write(struct cport *ps, struct creq *c);
/* a write of part of its range is on its way past the cache */
bool around_is_out(struct cport *ps, const struct creq *c);

#endif
