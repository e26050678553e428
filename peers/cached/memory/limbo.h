/* limbo - pages that a client may still read, and when they are free; lend/loan.c explains it all.
 *
 * Contract: any port's thread, inside an object or outside of any, unless it says otherwise.
 */
#ifndef PEERS_CACHED_LIMBO_H
#define PEERS_CACHED_LIMBO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "peers/cached/bucket/bucket.h"
#include "peers/cached/bucket/cport.h"
#include "xtypes/xlist.h"

/* of a page that is in no bucket: lent to write in; below it which entry has it */
#define OWNER_GIFT (1ull << 57)
#define OWNER_LENT   (1ull << 59)	/* of a page that is in no bucket: it may be on loan */
#define OWNER_LOOKED (1ull << 58) /* the same, and a look for whom it is lent to is under way */

struct limbo {
	struct xlist pages;			/* under mem_lock */
	/* pages in it, and in looks that are under way: the same; read without */
	_Atomic uint32_t nr;
	_Atomic uint32_t nr_pinned;		/* of them: found to be on loan by the last look */
	/* its number, twice; + 1: the look that ends the one before it is under way: who looks */
	_Atomic uint32_t era;
	/* by page: the era that began with the last look that found it; who looks */
	_Atomic uint8_t *seen;
};

/* An era begins, before anything is lent. */
void limbo_open(struct cached *k);
uint64_t lent_now(struct cached *k);	/* what the slot of a page bears that is lent in this era */
/* Inside: what the slot of a page bears (SLOT_LOAN, and SLOT_DIRECT if that is asked for) that r
 * lists since just now. */
uint64_t lent_stamp(struct cport *ps, const struct xreq *r);
/* Inside: whether the page of that slot may be on loan. */
bool slot_may_be_lent(struct cached *k, uint64_t w);
/* A page whose owner word has OWNER_LENT, and that is in no bucket, nor listed by a child: it is
 * free when nobody reads it. */
void limbo_put(struct cport *ps, uint32_t page);
static inline bool limbo_holds(uint64_t owner) { return owner & (OWNER_LENT | OWNER_LOOKED); }
/* Looks who still reads what is in limbo; true: some pages are free now. */
bool limbo_look(struct cport *ps);
/* Under mem_lock: the page comes into limbo; so many more are in it. */
void limbo_add(struct cached *k, uint32_t page, uint32_t more);

#endif
