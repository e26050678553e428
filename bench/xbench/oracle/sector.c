/* sector - see sector.h. */
#include "bench/xbench/oracle/sector.h"

#include <assert.h>
#include <string.h>

#define LONG_LIST  8u				/* nodes from which the floors are worth a look */
#define MAX_UNSURE 16u				/* failed writes of a sector, told apart */

/* ---- nodes ------------------------------------------------------------------------------- */

struct xb_node *xb_node_add(const struct xb_lists *l, struct xb_slot *slot, uint64_t value,
			    enum xb_node_state state)
{
	uint32_t link = *l->free;
	struct xb_node *n = xb_node_of(l->nodes, link);

	if (n) {
		*l->free = n->next;
	} else {
		uint64_t i = atomic_fetch_add_explicit(&l->nodes->used, 1, memory_order_relaxed);

		/* N4 */
		assert(i < l->nodes->nr);
		link = (uint32_t)i + 1;
		n = xb_node_of(l->nodes, link);
	}
	*n = (struct xb_node){ .value = value, .state = (uint8_t)state, .next = slot->list };
	slot->list = link;
	return n;
}

void xb_node_drop(const struct xb_lists *l, uint32_t *link)
{
	uint32_t gone = *link;
	struct xb_node *n = xb_node_of(l->nodes, gone);

	*link = n->next;
	n->next = *l->free;
	*l->free = gone;
}

static bool is_certain(const struct xb_node *n)
{
	return n->state != XB_NODE_UNSURE && n->f != XB_NEVER;
}

/* The sure node that was issued last, or if none is sure the first. */
static const struct xb_node *newest(const struct xb_lists *l, const struct xb_slot *slot)
{
	const struct xb_node *best = NULL, *n;

	for (n = xb_first(l, slot); n; n = xb_next(l, n))
		if (!best || (is_certain(n) && (!is_certain(best) || n->issued > best->issued)))
			best = n;
	return best;
}

/* ---- settling ---------------------------------------------------------------------------- */

/* A time before which no read in flight on this sector was issued; 0: not worth finding out. */
static uint64_t floor_of(const struct xb_lists *l, const struct xb_slot *slot, uint32_t nr)
{
	uint64_t least = XB_NEVER, at;

	if (slot->readers == 0)
		return XB_NEVER;
	if (nr < LONG_LIST)
		return 0;
	for (uint32_t i = 0; i < l->nodes->nr_floors; i++) {
		at = atomic_load(&l->nodes->floors[i]);
		if (at < least)
			least = at;
	}
	return least;
}

/* What the acknowledged writes say of the others: the largest s, the largest s of another one, the
 * latest issue. A write that was read before it is acknowledged proves as much, but it may still
 * fail: what it proves is not used to forget. */
struct edge {
	uint64_t s, s_other, issued;
	const struct xb_node *last;		/* whose s is largest */
};

static struct edge edge_of(const struct xb_lists *l, const struct xb_slot *slot, uint64_t floor)
{
	struct edge e = { 0 };

	for (const struct xb_node *n = xb_first(l, slot); n; n = xb_next(l, n)) {
		if (n->state != XB_NODE_DONE || n->f >= floor)
			continue;
		if (n->issued > e.issued)
			e.issued = n->issued;
		if (!e.last || n->s > e.s) {
			e.s_other = e.s;
			e.s = n->s;
			e.last = n;
		} else if (n->s > e.s_other) {
			e.s_other = n->s;
		}
	}
	return e;
}

static bool is_over(const struct xb_node *n, const struct edge *e)
{
	if (n->state == XB_NODE_PENDING)
		return false;
	if (n->state == XB_NODE_UNSURE)
		return n->f < e->issued;
	return n->f < (n == e->last ? e->s_other : e->s);
}

/* At rest when all that is left is acknowledged and the same (more than one zeroing). */
static void try_rest(const struct xb_lists *l, struct xb_slot *slot)
{
	const struct xb_node *first = xb_first(l, slot), *n;
	bool seen = false;

	assert(first);
	for (n = first; n; n = xb_next(l, n)) {
		if (n->state != XB_NODE_DONE || n->value != first->value)
			return;
		seen |= n->seen;
	}
	slot->value = first->value;
	slot->seen = seen;
	while (slot->list)
		xb_node_drop(l, &slot->list);
}

/* Two sure values each of which comes before the other: an end was reported late, after a read that
 * it proves wrong had been judged. Keeps the newer one. */
static void untangle(const struct xb_lists *l, struct xb_slot *slot, struct xb_finding *finding)
{
	const struct xb_node *keep = newest(l, slot), *n;
	uint32_t *link = &slot->list;

	*finding = (struct xb_finding){ .wrong = XB_STALE,
					.expected = keep->value,
					.kind = XB_SEEN_OURS };
	while ((n = xb_node_of(l->nodes, *link))) {
		if (n == keep) {
			link = &xb_node_of(l->nodes, *link)->next;
			continue;
		}
		finding->found = n->value;
		xb_node_drop(l, link);
	}
}

bool xb_sector_settle(const struct xb_lists *l, struct xb_slot *slot, struct xb_finding *finding)
{
	uint32_t nr = 0, left = 0, *link = &slot->list;
	const struct xb_node *n;
	struct edge e;
	uint64_t floor;

	for (n = xb_first(l, slot); n; n = xb_next(l, n))
		nr++;
	floor = nr ? floor_of(l, slot, nr) : 0;
	if (!floor)
		return true;
	e = edge_of(l, slot, floor);
	for (n = xb_first(l, slot); n; n = xb_next(l, n))
		left += !is_over(n, &e);
	if (!left)
		untangle(l, slot, finding);
	while (left && (n = xb_node_of(l->nodes, *link)))
		if (is_over(n, &e))
			xb_node_drop(l, link);
		else
			link = &xb_node_of(l->nodes, *link)->next;
	try_rest(l, slot);
	return left > 0;
}

/* ---- writes ------------------------------------------------------------------------------ */

void xb_sector_write_begin(const struct xb_lists *l, struct xb_slot *slot, uint64_t value,
			   uint64_t issued)
{
	struct xb_node *n;

	if (!slot->list)
		xb_node_add(l, slot, slot->value, XB_NODE_DONE)->seen = slot->seen;
	n = xb_node_add(l, slot, value, XB_NODE_PENDING);
	n->issued = n->s = issued;
	n->f = XB_NEVER;
	slot->suspects = 0;
}

/* One, when nodes become few: then two a sector suffice. */
static uint32_t max_unsure(const struct xb_nodes *nodes)
{
	uint64_t used = atomic_load_explicit(&nodes->used, memory_order_relaxed);

	return used < nodes->limit / 2 ? MAX_UNSURE : 1;
}

/* A sector whose writes fail all the time: what they wrote is no longer told apart. */
static void merge_unsure(const struct xb_lists *l, struct xb_slot *slot)
{
	uint32_t nr = 0, *link = &slot->list;
	struct xb_node *n;
	uint64_t f = 0;

	for (n = xb_first(l, slot); n; n = xb_next(l, n))
		nr += n->state == XB_NODE_UNSURE;
	if (nr <= max_unsure(l->nodes))
		return;
	while ((n = xb_node_of(l->nodes, *link))) {
		if (n->state != XB_NODE_UNSURE) {
			link = &n->next;
			continue;
		}
		if (n->f > f)
			f = n->f;
		xb_node_drop(l, link);
	}
	xb_node_add(l, slot, XB_VALUE_ANY, XB_NODE_UNSURE)->f = f;
}

void xb_sector_write_end(const struct xb_lists *l, struct xb_slot *slot, uint64_t issued,
			 uint64_t ended, bool ok)
{
	struct xb_node *n = xb_first(l, slot);

	while (n && n->issued != issued)
		n = xb_next(l, n);
	assert(n && n->state == XB_NODE_PENDING);
	n->state = ok ? XB_NODE_DONE : XB_NODE_UNSURE;
	if (!ok || ended < n->f)
		n->f = ended;
	if (!ok)
		merge_unsure(l, slot);
}

bool xb_sector_write_refused(const struct xb_lists *l, struct xb_slot *slot, uint64_t issued)
{
	uint32_t *link = &slot->list;
	struct xb_node *n;
	bool seen;

	while ((n = xb_node_of(l->nodes, *link)) && n->issued != issued)
		link = &n->next;
	assert(n && n->state == XB_NODE_PENDING);
	seen = n->seen;
	xb_node_drop(l, link);
	return !seen;
}

/* ---- reads ------------------------------------------------------------------------------- */

/* Whether a read may return this node's value; *newer: one that proves it may not. */
static bool is_possible(const struct xb_lists *l, const struct xb_slot *slot,
			const struct xb_node *v, const struct xb_read *r,
			const struct xb_node **newer)
{
	uint64_t f = v->f < r->ended ? v->f : r->ended;
	uint64_t s = v->s > r->issued ? v->s : r->issued;

	for (const struct xb_node *n = xb_first(l, slot); n; n = xb_next(l, n)) {
		if (n == v || !is_certain(n))
			continue;
		if (v->state == XB_NODE_UNSURE ? v->f < n->issued && n->f < r->issued
					       : f < n->s && n->f < s) {
			if (!*newer || n->seen)
				*newer = n;
			return false;
		}
	}
	return true;
}

static void note_read(struct xb_node *n, const struct xb_read *r)
{
	n->seen = true;
	if (n->state == XB_NODE_UNSURE)
		return;
	if (r->ended < n->f)
		n->f = r->ended;
	if (r->issued > n->s)
		n->s = r->issued;
}

/* Zeroes may be those of any zeroing, of a failed write that is no longer told apart, or what was
 * there before; all else is known by its value. */
static bool is_of(const struct xb_node *n, uint64_t value)
{
	return n->value == value ||
	       (value == XB_VALUE_ZERO &&
		(n->value == XB_VALUE_UNKNOWN || n->value == XB_VALUE_ANY));
}

/* Looks among the nodes of one value (that of the read, unknown, or anything), and notes the read,
 * unless more than one explains it. */
static bool explained_by(const struct xb_lists *l, struct xb_slot *slot, uint64_t value,
			 const struct xb_read *r, const struct xb_node **newer)
{
	struct xb_node *one = NULL, *n;
	uint32_t nr = 0;

	for (n = xb_first(l, slot); n; n = xb_next(l, n))
		if (is_of(n, value) && is_possible(l, slot, n, r, newer)) {
			one = n;
			nr++;
		}
	if (nr == 1) {
		note_read(one, r);
		if (one->value == XB_VALUE_UNKNOWN)
			one->value = r->seen->value;
	}
	return nr > 0;
}

static bool may_be_initial(const struct xb_seen *seen)
{
	return seen->kind == XB_SEEN_ZERO || seen->kind == XB_SEEN_OTHER ||
	       seen->kind == XB_SEEN_BROKEN || seen->kind == XB_SEEN_UNSTAMPED;
}

static bool is_explained(const struct xb_lists *l, struct xb_slot *slot, const struct xb_read *r,
			 const struct xb_node **newer)
{
	const struct xb_seen *seen = r->seen;

	if (seen->kind == XB_SEEN_TORN || seen->kind == XB_SEEN_MISPLACED)
		return false;
	if (slot->list)
		return explained_by(l, slot, seen->value, r, newer) ||
		       (may_be_initial(seen) &&
			explained_by(l, slot, XB_VALUE_UNKNOWN, r, newer)) ||
		       explained_by(l, slot, XB_VALUE_ANY, r, newer);
	if (slot->value == XB_VALUE_UNKNOWN && may_be_initial(seen))
		slot->value = seen->value;
	if (slot->value != seen->value && slot->value != XB_VALUE_ANY)
		return false;
	slot->seen = true;
	return true;
}

/* newer: what proves the value too old, if that is still in the list; else anything sure does. */
static enum xb_wrong classify(const struct xb_lists *l, struct xb_slot *slot,
			      const struct xb_read *r, const struct xb_node *newer)
{
	bool was_there = slot->list ? newer && newer->seen : slot->seen;
	const struct xb_seen *seen = r->seen;

	if (seen->kind == XB_SEEN_TORN || seen->kind == XB_SEEN_BROKEN)
		return XB_TORN;
	if (seen->kind == XB_SEEN_MISPLACED ||
	    (seen->kind == XB_SEEN_OTHER && seen->offset != r->offset))
		return XB_MISPLACED;
	for (const struct xb_node *n = xb_first(l, slot); n && !newer; n = xb_next(l, n))
		was_there |= is_certain(n) && n->seen;
	if (was_there)
		return XB_STALE;
	if (slot->suspects < UINT8_MAX)
		slot->suspects++;
	return XB_LOST;
}

bool xb_sector_read(const struct xb_lists *l, struct xb_slot *slot, const struct xb_read *r,
		    struct xb_finding *finding)
{
	const struct xb_node *newer = NULL;

	if (is_explained(l, slot, r, &newer))
		return true;
	if (!finding)
		return false;
	*finding = (struct xb_finding){
		.wrong = classify(l, slot, r, newer),
		.offset = r->offset,
		.expected = slot->list ? newest(l, slot)->value : slot->value,
		.found = r->seen->value,
		.found_offset = r->seen->offset,
		.kind = r->seen->kind,
	};
	return false;
}
