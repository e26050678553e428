/* loan - pages that reads are lent, and pages that are kept aside as a client may still read them
 * (loan.c).
 *
 * Contract: any port's thread, inside an object or outside of any, unless it says otherwise.
 */
#ifndef PEERS_CACHED_LOAN_H
#define PEERS_CACHED_LOAN_H

#include "peers/cached/object/object.h"
#include "xtypes/xlist.h"

struct creq;
struct peer;

/* One port's side: its thread's. */
struct lender {
	/* pages that it may still lend, by the port that borrows; read by others */
	_Atomic uint32_t credit[XSEG_MAX_PORTS];
	uint32_t epoch;				/* as of the cache's when they were given */
	uint64_t refused_ns;			/* nobody is given credit before then */
	/* somebody waits for pages: no look before then, and how long after one in vain */
	uint64_t next_ns, pause_ns;
	/* gift.c */
	/* entries of pages that are lent to write in; a used one is written by who has its page */
	_Atomic uint64_t *gift;
	uint32_t gift_at;			/* where a free one is looked for next */
	bool has_gifts;				/* one may be used */
	uint64_t gifts_ns;			/* no look for a free one before then */
};

/* The cache's. */
struct loans {
	_Atomic uint32_t epoch;		/* credit of an older one is void: who gives credit */
	pthread_mutex_t lock;			/* to give credit: only tried */
	/* pages of reads that wait, and are not listed yet, by the port that borrows: any thread */
	_Atomic uint32_t granted[XSEG_MAX_PORTS];
	uint32_t nr_ports;			/* of the segment */
	/* the most that may be lent, as it was at most, or what a predecessor had lent: for
	 * loans_check() */
	_Atomic uint32_t most;
};

void loans_open(struct cached *k);
/* Inside: whether the read may be lent its pages, which are listed before the thread goes on to
 * anything else. Those that it is not lent after all count, too. */
bool loan_begin(struct cport *ps, const struct xreq *r, uint32_t nr);
/* Inside: the same for a read that may wait: all of its buckets count from now on, until
 * loan_ungrant() says of so many of them that they are listed, or will not be lent. */
bool loan_grant(struct cport *ps, struct creq *c);
void loan_ungrant(struct cport *ps, struct creq *c, uint32_t nr);
/* Whether what is lent, or may be, is within what a cache of so many pages lends to those who ask.
 * If not only since credit is not used, that is void now: it may be true some rounds later. Any
 * thread. */
bool loans_fit(struct cached *k, uint32_t pages);
/* Less may be lent than before. Any thread. */
void loans_recount(struct cached *k);
/* Pages that one port may pin by reading directly. Any thread. */
uint32_t loans_direct_max(struct cached *k);
/* Inside: the i-th page of r is bucket b's, whose slot is w. True: that may be read directly from
 * now on. */
bool loan_bucket(
	struct cport *ps, struct object *o, struct xreq *r, uint32_t i, uint32_t b, uint64_t w);
/* A port's poll: looks if it is worth it, or if somebody waits for pages; returns when it wants to
 * run again. */
uint64_t limbo_run(struct cport *ps);
/* How many loans of this cache's pages there are. */
uint32_t loans_out(struct cached *k);
/* Before serving: what a predecessor lent. page_is: enum page_is, by page; those that are in no
 * bucket become PAGE_LENT. */
void loans_restore(struct cached *k, uint8_t *page_is);
/* Asserts that each page that is on loan is known to be (tests, simulator). granted: what reads
 * that are not answered hold. */
void loans_check(struct cached *k, uint32_t granted);

#endif
