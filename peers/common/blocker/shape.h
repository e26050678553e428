/* shape - facts about an op that every store needs before it begins the op: its bytes, whether it
 * must be alone there, and whether its pages hold the data.
 *
 * Contract: constant, or the request's private copy and its pages; nothing blocks.
 */
#ifndef PEERS_COMMON_SHAPE_H
#define PEERS_COMMON_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "xseg/xseg.h"

enum shape_range {
	SHAPE_NONE,		/* no store knows the op: the rest means nothing */
	SHAPE_ALL,		/* no object: all of them */
	SHAPE_BYTES,		/* [obj_offset, obj_offset + size) of the target */
	SHAPE_OBJECT,		/* the target as a whole */
	SHAPE_NAMES		/* no object: the names that begin with the target */
};

struct shape {
	enum shape_range range;
	bool exclusive;		/* it changes what is there */
	bool data;		/* the request's pages hold the range */
};

extern const struct shape shapes[XSEG_NR_OPS];	/* of xseg/ops.def */

/* -EPROTO: no op of a store, no target where it needs one, a range that is longer than a request
 * may be or ends beyond `end_max`, or fewer pages than it needs. 0: r->op is an index of
 * shapes[]. */
int shape_check(const struct xreq *r, uint64_t end_max) XSEG_MUST_CHECK;

/* The name of the object that a COPY copies from, which is text in its first page: read once, as
 * its client may change it there. name: XSEG_TARGET_MAX bytes. -EOPNOTSUPP: there is none; -EPROTO:
 * it has no end. */
int shape_source(struct xseg *seg, const struct xreq *r, char *name) XSEG_MUST_CHECK;

/* Whether a FLUSH is about the object of that name (XSEG_TARGET_MAX bytes, which may have no end).
 * One of no volume is about all objects, another about those whose names begin as its target does,
 * up to the ':' behind the volume's name: a cache may send one with the name of a single object,
 * and takes the answer for the volume's. */
bool shape_flush_covers(const struct xreq *r, const char *name);

#endif
