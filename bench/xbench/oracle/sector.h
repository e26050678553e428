/* sector - the possible contents of one sector: the list of possible values, and the rule that
 * shortens it.
 *
 * Contract: private to the oracle (oracle.h has the rule and its source). The caller holds the lock
 * that guards the slot, its nodes and *lists->free. Nothing blocks or allocates: nodes come from
 * one array, and freed ones are kept in a list of each stripe.
 *
 *   a node    is made                        becomes
 *   PENDING   when its write is issued       DONE or UNSURE when that is answered
 *   DONE      from what a sector held        dropped, when no read may return it any more
 *   (PENDING  is dropped when its write was refused)
 *   UNSURE    (a write that failed)          dropped, when a write issued after its end is
 *                                            acknowledged
 *
 * Invariants:
 *   N1  a slot without a list is at rest: `value` is its only possible content
 *   N2  f and s of a node only move towards each other's side as more becomes known: f down, s up
 *   N3  a list is never empty, and has at most MAX_UNSURE + 1 unsure nodes
 *   N4  nodes do not run out: no write begins when `limit` of them are used, and operations that
 *       have begun by then find the rest
 */
#ifndef BENCH_XBENCH_SECTOR_H
#define BENCH_XBENCH_SECTOR_H

#include "bench/xbench/oracle/oracle.h"

#define XB_NEVER UINT64_MAX

enum xb_node_state { XB_NODE_PENDING, XB_NODE_DONE, XB_NODE_UNSURE };

/* PENDING: f is XB_NEVER until a read returned it. UNSURE: f is when the failed write ended. */
struct xb_node {
	uint64_t value, tag, issued, f, s;
	uint32_t next;				/* index + 1, 0: end */
	uint8_t state;
	bool seen;				/* a read returned it */
};

struct xb_slot {
	uint64_t value;				/* at rest: what it holds */
	uint32_t list;				/* index + 1 of the first node; 0: at rest */
	uint16_t readers;			/* reads in flight */
	uint8_t suspects;	/* reads of old values counted as lost that may turn out stale */
	uint8_t seen;				/* at rest: a read returned the value */
};

_Static_assert(sizeof(struct xb_slot) == 16, "the memory of the oracle is promised in the manual");

/* Shared by all stripes. */
struct xb_nodes {
	struct xb_node *all;
	uint64_t nr, limit;
	_Atomic uint64_t used;			/* once, and perhaps free again */
	const _Atomic uint64_t *floors;
	uint32_t nr_floors;
};

struct xb_lists {
	struct xb_nodes *nodes;
	uint32_t *free;				/* of the stripe: index + 1 */
};

struct xb_read {
	uint64_t offset;			/* of this sector */
	uint64_t issued, ended;
	const struct xb_seen *seen;
};

static inline struct xb_node *xb_node_of(const struct xb_nodes *nodes, uint32_t link)
{
	return link ? &nodes->all[link - 1] : NULL;
}

static inline struct xb_node *xb_first(const struct xb_lists *l, const struct xb_slot *slot)
{
	return xb_node_of(l->nodes, slot->list);
}

static inline struct xb_node *xb_next(const struct xb_lists *l, const struct xb_node *n)
{
	return xb_node_of(l->nodes, n->next);
}

/* In front of the slot's list. */
struct xb_node *xb_node_add(const struct xb_lists *l, struct xb_slot *slot, uint64_t value,
			    enum xb_node_state state);
/* Unlinks the node that *link names. */
void xb_node_drop(const struct xb_lists *l, uint32_t *link);

/* A write is issued; it was answered. */
void xb_sector_write_begin(const struct xb_lists *l, struct xb_slot *slot, uint64_t value,
			   uint64_t issued);
void xb_sector_write_end(const struct xb_lists *l, struct xb_slot *slot, uint64_t issued,
			 uint64_t ended, bool ok);
/* It was not done. False when a read returned what it would have written. */
bool xb_sector_write_refused(const struct xb_lists *l, struct xb_slot *slot, uint64_t issued);
/* True when the read is right. Else *finding says what is wrong; NULL: nobody wants to know. */
bool xb_sector_read(const struct xb_lists *l, struct xb_slot *slot, const struct xb_read *r,
		    struct xb_finding *finding);
/* Drops what no read may return any more, and puts a sector with one sure value to rest. False when
 * what was learnt late shows that a read was wrong; then *finding (but for its offset) says what.
 */
bool xb_sector_settle(const struct xb_lists *l, struct xb_slot *slot, struct xb_finding *finding);

#endif
