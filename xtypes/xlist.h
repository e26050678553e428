/* xlist - doubly linked lists of indices over one array of nodes (LRU order, free lists).
 *
 * Algorithm: the textbook doubly linked list (Knuth, TAOCP 1, 2.2.5) with 32-bit indices for
 * pointers: half the memory, and nothing to relocate. Several lists may share a node array; a node
 * is in one of them at most.
 *
 * Contract: single threaded, the caller locks. O(1). Nothing blocks or allocates.
 *
 * Invariants (asserted where they are cheap):
 *   L1  a node in no list has prev == next == XLIST_OUT
 *   L2  a node in a list has prev and next in the same list, or XLIST_NONE at its ends
 *   L3  next(prev(n)) == n and prev(next(n)) == n; head has no prev, tail has no next
 *   L4  nr is the number of nodes from head to tail; head == XLIST_NONE iff nr == 0
 */
#ifndef XTYPES_XLIST_H
#define XTYPES_XLIST_H

#include <stdbool.h>
#include <stdint.h>

#define XLIST_NONE UINT32_MAX		/* no node: the end of a list */
#define XLIST_OUT (UINT32_MAX - 1)	/* both links of a node that is in no list */

struct xlist_node {
	uint32_t prev;
	uint32_t next;
};

struct xlist {
	struct xlist_node *nodes;
	uint32_t head;
	uint32_t tail;
	uint32_t nr;
};

/* Makes an empty list over nodes, which the caller keeps alive. */
void xlist_init(struct xlist *l, struct xlist_node *nodes);

/* Marks a node as being in no list: once for each, before it is used. */
void xlist_node_init(struct xlist_node *nodes, uint32_t idx);

/* The node must be in no list. */
void xlist_push_head(struct xlist *l, uint32_t idx);
void xlist_push_tail(struct xlist *l, uint32_t idx);

/* The node must be in this list. */
void xlist_remove(struct xlist *l, uint32_t idx);
void xlist_move_head(struct xlist *l, uint32_t idx);

/* True if the node is in a list: in this one, or in one that shares its array. */
static inline bool xlist_in_list(const struct xlist *l, uint32_t idx)
{
	return l->nodes[idx].next != XLIST_OUT;
}

static inline uint32_t xlist_head(const struct xlist *l)
{
	return l->head;
}

static inline uint32_t xlist_tail(const struct xlist *l)
{
	return l->tail;
}

static inline uint32_t xlist_next(const struct xlist *l, uint32_t idx)
{
	return l->nodes[idx].next;
}

static inline uint32_t xlist_prev(const struct xlist *l, uint32_t idx)
{
	return l->nodes[idx].prev;
}

#endif
