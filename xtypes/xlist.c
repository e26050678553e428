/* xlist - linking and unlinking. Contract and invariants: xlist.h. */
#include "xtypes/xlist.h"

#include <assert.h>

void xlist_init(struct xlist *l, struct xlist_node *nodes)
{
	l->nodes = nodes;
	l->head = XLIST_NONE;
	l->tail = XLIST_NONE;
	l->nr = 0;
}

void xlist_node_init(struct xlist_node *nodes, uint32_t idx)
{
	nodes[idx].prev = XLIST_OUT;
	nodes[idx].next = XLIST_OUT;
}

/* Links idx between two neighbours, either of which may be XLIST_NONE. */
static void link_between(struct xlist *l, uint32_t prev, uint32_t idx, uint32_t next)
{
	assert(idx < XLIST_OUT);
	assert(!xlist_in_list(l, idx));
	l->nodes[idx].prev = prev;
	l->nodes[idx].next = next;
	if (prev == XLIST_NONE)
		l->head = idx;
	else
		l->nodes[prev].next = idx;
	if (next == XLIST_NONE)
		l->tail = idx;
	else
		l->nodes[next].prev = idx;
	l->nr++;
}

void xlist_push_head(struct xlist *l, uint32_t idx)
{
	link_between(l, XLIST_NONE, idx, l->head);
}

void xlist_push_tail(struct xlist *l, uint32_t idx)
{
	link_between(l, l->tail, idx, XLIST_NONE);
}

void xlist_remove(struct xlist *l, uint32_t idx)
{
	struct xlist_node n = l->nodes[idx];

	assert(n.next != XLIST_OUT && l->nr > 0);
	if (n.prev == XLIST_NONE) {
		assert(l->head == idx);		/* else it is in another list of this array */
		l->head = n.next;
	} else {
		l->nodes[n.prev].next = n.next;
	}
	if (n.next == XLIST_NONE) {
		assert(l->tail == idx);
		l->tail = n.prev;
	} else {
		l->nodes[n.next].prev = n.prev;
	}
	xlist_node_init(l->nodes, idx);
	l->nr--;
}

void xlist_move_head(struct xlist *l, uint32_t idx)
{
	if (l->head == idx)
		return;
	xlist_remove(l, idx);
	xlist_push_head(l, idx);
}
