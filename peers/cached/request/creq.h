/* creq - requests from above.
 *
 * Contract: what takes a struct creq runs inside its object, unless it says otherwise. States:
 * creq.c.
 */
#ifndef PEERS_CACHED_CREQ_H
#define PEERS_CACHED_CREQ_H

#include "peers/cached/object/object.h"
#include "peers/cached/evict/share.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/store/store.h"
#include "peers/cached/volume/volume.h"
#include "peers/common/runtime/peer.h"

/* bytes: then those get their answers who waited for them, or they would go to sleep */
#define COPIES_A_ROUND (64u << 10)
#define EARLY_MAX      8		/* as many as are accepted at a time */
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

/* requests of one volume that went the short way, and are not in the port's counters yet */
struct hits {
	uint32_t volume, nr;			/* nr: reads */
	uint64_t buckets, lent, bytes;
	uint64_t writes, given, written;	/* given: buckets; written: bytes */
};
struct request_room {
	struct creq *creqs;			/* by request */
	uint32_t nr_requests;			/* of the segment */
	/* a predecessor's requests are being handed over; cuts among them wait (change.c) */
	bool recovering;
	struct creq *cuts, **cuts_tail;
};

/* Which requests' data pages have already (early.c). */
struct early_note {
	uint64_t place;
	uint32_t index;
	uint32_t page;			/* before `first`: none, or one that is free */
};
struct early {
	struct early_note note[EARLY_MAX];
	uint32_t first, nr;
	bool pays;	/* the last single one was applied in the round in which it came */
};

/* Requests that are served among the next batch (batch.c). */
#define KEPT_MAX 3u
struct kept {
	struct xreq *r[KEPT_MAX];
	uint32_t first, nr;
	bool fresh;			/* they are of this round */
};

struct request_port {
	struct early early;
	struct kept kept;
	struct hits hits;
	uint32_t hits_polled;	/* so many had come at its last poll */
	uint32_t copied;			/* bytes of requests since the last poll */
	bool copies;	/* of the batch at hand a read at least is copied (batch_prefetch) */
};

struct request_room *request_of(const struct cached *k);
struct request_port *request_port(const struct cport *ps);

/* So much of a request's data has been copied; what was lent or given has not. */
static inline void count_copied(struct cport *ps, uint32_t bytes)
{
	request_port(ps)->copied += bytes;
	if (request_port(ps)->copied >= COPIES_A_ROUND)
		peer_end_round(ps->pp);
}
/* ---- batch.c: see peer.h ---- */
void batch_prefetch(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
uint32_t batch_requests(struct peer_port *pp, struct xreq *const *r, uint32_t nr);
/* Each round, after its requests: serves what was kept in an earlier one. True: some was kept in
 * this one, so another has to follow at once. */
bool batch_poll(struct cport *ps);
void batch_check(const struct cport *ps);	/* asserts J1, between two rounds */

/* ---- early.c ---- */
/* Whether the data of some of a batch is worth to be copied before they are served; does it. */
bool early_wanted(const struct cport *ps, struct xreq *const *r, uint32_t nr);
void early_copy(struct cport *ps, struct xreq *const *r, uint32_t nr);
/* A page that has a write's data already, unless somebody waits for pages. */
bool early_take(struct cport *ps, const struct xreq *r, uint32_t *page);
/* The same for a write that has got a free page: it has that instead. Learns whether it pays. */
bool early_change(struct cport *ps, const struct xreq *r, uint32_t *page);
void early_forget(struct cport *ps);	/* pages that nobody took go back to the magazine */
uint32_t early_pages(const struct cport *ps);
void early_check(const struct cport *ps);	/* asserts M1's places, between two steps */

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

/* Its policy, as of its first step. */
static inline const struct policy *object_policy(struct cport *ps, struct object *o)
{
	return volume_promise(ps->cache, object_volume(o), object_entry(ps->cache, o)->volume);
}

/* ---- hit.c ---- */
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
