/* creq - a request from above, while cached has it: its content, its waits, its end.
 *
 * The rooms above (lend/, flush/, evict/, request/) park requests and let them go on. They never
 * know a request's next action: its `step` does.
 *
 * Contract: a function that takes a struct creq runs inside its object, unless it says otherwise.
 * States: creq.c.
 */
#ifndef PEERS_CACHED_CREQ_H
#define PEERS_CACHED_CREQ_H

#include "peers/cached/bucket/part.h"
#include "peers/cached/memory/account.h"
#include "peers/cached/object/object.h"
#include "peers/cached/policy/policy.h"
#include "peers/cached/volume/volume.h"
#include "xtypes/xstate.h"

#define CREQ_FEW       16		/* pages of a write that are listed in its creq */

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
	uint32_t newer;				/* as `older` */
	/* By the operation of the request: no other arm may be touched. */
	union {
		struct {
			/* buckets that count as lent to that port, and are not listed (loan.c) */
			struct {
				uint32_t port, nr;
			} granted;
			uint16_t nr_hit;	/* done when it was first looked at */
			bool looked;
			/* buckets that were read ahead, or not to be kept */
			bool used_ahead, used_once;
			uint8_t around;	/* enum bypass_why: why it is to go past the cache */
		} read;
		/* WRITE, DISCARD, WRITE_ZEROES, COPY */
		struct {
			uint64_t until_ns;	/* throttle: it waits no longer */
			uint32_t debt_bytes;	/* throttle: what it makes dirty */
			/* COPY: the source's data for its first and last bucket, or NO_PAGE */
			uint32_t aside[2];
			uint16_t grow;		/* COPY: buckets of its target without a page */
			uint8_t edges_out;	/* loads of edges in flight */
			bool paced;		/* the throttle has seen it */
		} change;
		struct {
			uint32_t ticket;	/* what it covers */
			bool again;		/* it has begun again */
		} flush;
		struct {
			uint64_t dirty_end;	/* of the object, when the store was asked */
		} info;
	};
	uint16_t volume;			/* record of its volume */
	uint16_t first, nr;			/* buckets */
	uint16_t nr_pages;		/* write: of page[] that it holds; read: that it is lent */
	uint16_t nr_done;
	/* enum turn: it may pass those who wait for pages; while it waits: what it will be */
	uint8_t turn;
	bool redo, applied, fua;
	bool lends;	/* read: its buckets may be lent; write: it gives its pages (gift.c) */
	bool recovered : 1;			/* a predecessor had it, and may have done it */
	/* write: a predecessor stored slots of it: what they had may have gone to the store
	 * since */
	bool inherited : 1;
	bool listed : 1;			/* it is among the changes of its object, */
	bool voided : 1;			/* and has no effect: a cut came (change.c) */
	_Atomic bool in_way;			/* a cut waits for it (full.c) */
	int error;
	const struct policy *policy;		/* as of its first step */
	/* write: the new pages: `few`, or one of the cache's lists; NULL: none yet */
	uint32_t *page;
	uint32_t few[CREQ_FEW];
};

struct creq_room {
	struct creq *creqs;			/* by request */
	uint32_t nr_requests;			/* of the segment */
};

struct creq_room *creq_of(const struct cached *k);

/* ---- creq.c ---- */
/* Answers it; its list of pages and its references go. */
void creq_finish(struct cport *ps, struct creq *c, int64_t result);
extern const struct xstates creq_states;
void creq_set_state(struct creq *c, enum creq_state s);
/* For c->wait.fn: steps it again, inside its object. */
void creq_retry(struct xwait *w, void *ctx);
/* Steps it again when one of our own requests is free. */
void creq_wait_for_request(struct cport *ps, struct creq *c);
/* It waits in the object until that is woken. */
void object_wait(struct cport *ps, struct object *o, struct creq *c, enum wait_why why);
void object_wake(struct cport *ps, struct object *o);	/* steps all that wait inside it */

/* ---- lists.c ---- */
/* c->page: where a write lists its new pages. False: all lists are in use, and c waits for one. */
bool list_get(struct cport *ps, struct creq *c);
void list_put(struct cport *ps, struct creq *c);
/* Outside of any object: those who wait for lists go on, as far as there are. */
void lists_signal(struct cport *ps);

/* ---- ring.c: the changes of an object that are not applied (change.c) ---- */
/* It is inside the object for the first time; it is applied or answered. */
void change_enter(struct cached *k, struct object *o, struct creq *c);
void change_leave(struct cached *k, struct object *o, struct creq *c);
/* By its link in the object or in another one. */
struct creq *creq_at(struct cached *k, uint32_t link);

static inline bool creq_is_done(const struct creq *c, uint32_t i)
{
	return c->done[i / 64] >> (i % 64) & 1;
}

static inline void creq_set_done(struct creq *c, uint32_t i)
{
	c->done[i / 64] |= 1ull << (i % 64);
	c->nr_done++;
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

/* Its policy, as of its first step. */
static inline const struct policy *object_policy(struct cport *ps, struct object *o)
{
	return volume_promise(ps->cache, object_volume(o), object_entry(ps->cache, o)->volume);
}

#endif
