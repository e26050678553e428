/* request - requests from above: how they arrive, and the work of each operation.
 *
 * Contract: a function with a struct creq runs inside its object, unless it says otherwise.
 */
#ifndef PEERS_CACHED_REQUEST_H
#define PEERS_CACHED_REQUEST_H

#include "peers/cached/creq/creq.h"
#include "peers/cached/store/store.h"
#include "peers/common/runtime/peer.h"

/* bytes: then those get their answers who waited for them, or they would go to sleep */
#define COPIES_A_ROUND (64u << 10)
#define EARLY_MAX      8		/* as many as are accepted at a time */

struct policy;

/* requests of one volume that went the short way, and are not in the port's counters yet */
struct hits {
	uint32_t volume, nr;			/* nr: reads */
	uint64_t buckets, lent, bytes;
	uint64_t writes, given, written;	/* given: buckets; written: bytes */
};
struct request_room {
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

/* ---- arrive.c ---- */
/* Outside of any object: it was accepted just now, or recovered. */
void creq_request(struct cport *ps, struct xreq *r, bool recovered);
/* Port 0, before the cache serves: all of a predecessor's have been handed over. */
void creq_recovered(struct cport *ps);
/* Its range is within an object, and lies there as in the pages of its volume. */
bool creq_range_ok(const struct xreq *r);

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

/* ---- given.c ---- */
/* Of a write that gives, which is STARTED: stores the slot of its i-th bucket, with the page that
 * it gave where that may be taken (it is done), else with its new page; and lends another. A new
 * page that it has no use for stays in c->page. */
void gift_store(struct cport *ps, struct creq *c, uint32_t i);

/* ---- list.c ---- */
/* Outside of any object: answers a LIST, or forwards it. It never waits. */
void list_request(struct cport *ps, struct xreq *r);

/* ---- change.c ---- */

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

/* ---- children that are back (store/events.h) ---- */
void load_done(struct cport *ps, struct child *ch, int64_t result);
void edge_done(struct cport *ps, struct child *ch, int64_t result);
void around_done(struct cport *ps, struct child *ch, int64_t result);
void delete_done(struct cport *ps, struct child *ch, int64_t result);
void info_done(struct cport *ps, struct child *ch, int64_t result);

#endif
