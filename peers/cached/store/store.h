/* store - cached's own requests, called children, which are out at the store below.
 *
 * Contract: by the port's thread, inside an object or outside of any, unless it says otherwise.
 */
#ifndef PEERS_CACHED_STORE_H
#define PEERS_CACHED_STORE_H

#include "peers/cached/object/object.h"
#include "peers/common/runtime/peer.h"

#define RUN_MAX	      256		/* buckets in one child: 1 MiB */
/* children: then the store below gets them, before more requests are looked at */
#define SENDS_A_ROUND 2

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

/* FLUSH: data that is written; SYNC: a FLUSH of the store. */
enum trouble_kind { TROUBLE_FLUSH, TROUBLE_SYNC, TROUBLE_LOAD, NR_TROUBLES };

/* What the store fails (trouble.c). Written by any thread; it begins anew with the process. */
struct trouble {
	_Atomic int error;
	_Atomic uint64_t since_ns, last_ns;	/* since_ns 0: it does not fail */
};
/* A failure as old as this says nothing of now. */
#define TROUBLE_STALE_NS 60000000000ull

struct store_room {
	struct trouble trouble[NR_TROUBLES];
	struct child *children;			/* by request */
	_Atomic uint32_t nr_orphans;		/* CHILD_ORPHANs; any thread */
	bool adopted;		/* all of a predecessor's children are; set before serving */
	_Atomic uint64_t sync_epoch;		/* counts FLUSHes sent to the store */
	_Atomic bool off; /* U1: read for each request; life/plug.c writes it */
};

struct store_port {
	struct xwaitq want_requests;
	/* own requests that other threads are done with; any thread pushes */
	_Atomic(struct child *) returned;
	/* written by this port's thread; read by others when the peer stops */
	_Atomic uint32_t flushes_out, loads_out;
	_Atomic uint64_t changes;	/* of objects, that the store has answered well */
	uint32_t sent;				/* children since the last poll */
	bool request_freed; /* a request of its own came free since the last requests_signal() */
};

void trouble_note(struct cport *ps, enum trouble_kind kind, int error);
void trouble_over(struct cached *k, enum trouble_kind kind);
/* Whether it fails now: the last error, and for how long it has. */
bool trouble_get(const struct cport *ps, enum trouble_kind kind, int *error, uint64_t *ns);

struct store_room *store_of(const struct cached *k);
struct store_port *store_port(const struct cport *ps);

/* Off the path it has nothing, and nowhere to get it from. */
static inline bool cached_is_off(const struct cached *k)
{
	return atomic_load_explicit(&store_of(k)->off, memory_order_relaxed);
}
/* ---- child.c ---- */
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

uint64_t sync_begin(struct cached *k);	/* a FLUSH, or a write with FUA, is sent: its epoch */

#endif
