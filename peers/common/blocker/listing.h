/* listing - the answer to a LIST: names written into its pages, and read from them.
 *
 * The form of an answer stands in xseg/xseg.h, at struct xseg_list.
 *
 * Contract: any thread, about a request that is its caller's. Nothing blocks or allocates. A writer
 * uses the request's own pages only. A reader trusts nothing in them: it copies each name once.
 *
 * Invariants
 *   LS1  a name is in an answer as a whole, with its NUL, or not at all
 *   LS2  a reader never reads behind the bytes that the result says
 */
#ifndef PEERS_COMMON_LISTING_H
#define PEERS_COMMON_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

/* An answer that is being written. */
struct listing {
	struct xseg *seg;
	const struct xreq *r;
	struct xseg_list head;
};

/* Whether the LIST asks for objects of that name. */
bool listing_wants(const struct xreq *r, const char *name);

/* Begins the answer to r, a LIST that shape_check() has accepted. */
void listing_begin(struct listing *l, struct xseg *seg, const struct xreq *r);
/* Adds a name of at most XSEG_TARGET_MAX - 1 bytes. False: no room for it is left, nothing was
 * written, and the name must come first in a later answer. */
bool listing_add(struct listing *l, const char *name) XSEG_MUST_CHECK;
/* Ends the answer. next: the cursor to go on with, or 0. Returns the result to answer with. */
int64_t listing_end(struct listing *l, uint64_t next);

/* An answer that is being read. */
struct listing_names {
	struct xseg *seg;
	const struct xreq *r;
	struct xseg_list head;
	uint32_t at, left; /* the next name's first byte; names not read yet */
};

/* Begins to read the answer to r, whose result is positive. -EPROTO: it has no form of an answer.
 * names->head.next is the cursor to go on with. */
int listing_open(struct listing_names *names, struct xseg *seg, const struct xreq *r)
	XSEG_MUST_CHECK;
/* The next name, in XSEG_TARGET_MAX bytes. 1: there is one; 0: that was all; -EPROTO: what follows
 * is no name. */
int listing_next(struct listing_names *names, char *name) XSEG_MUST_CHECK;

#endif
