/* parts - rule S4 of volumed's split.c, checked when it is broken, not when a read shows the
 * consequences. Those take a kill at that point, and another client's write of the same range
 * between it and the second execution.
 *
 *   when a child is freed         its part is marked in its parent: else a successor does it again
 *   when a child is sent          its part is not marked: it has been answered, and another client
 *                                 may have written over it since. Reads are done again: they bring
 *                                 nothing back
 *   when a part exchanges a page  it does so where the split request lists that page
 *   when a parent is answered     none of its parts had failed or was cut short, or it fails or
 *                                 says so
 *
 * Contract: called before a peer acts; looks at the requests where they are, and changes nothing.
 */
#include "tests/sim/sim.h"
#include "xseg/internal.h"

static struct sim *watched;

void parts_watch(struct sim *s)
{
	watched = s;
}

static bool is_marked(struct xport *port, uint32_t parent, uint32_t part)
{
	const struct xreq r = { .index = parent - 1 };

	return xseg_req_part_is_done(port, &r, part);
}

void parts_check_free(struct xport *port, const struct xreq *r)
{
	uint32_t parent = atomic_load(&port->seg->reqs[r->index].parent); /* 0: it was never sent */

	if (watched && parent && !is_marked(port, parent, r->part))
		sim_fail(watched,
			"the child of part %u is freed, and the part is not marked as done",
			r->part);
}

void parts_check_send(struct xport *port, const struct xreq *r)
{
	if (watched && r->parent && r->op != XSEG_OP_READ && is_marked(port, r->parent, r->part))
		sim_fail(watched, "part %u of a %s is sent again, and is marked as done", r->part,
			xseg_op_name(r->op));
}

void parts_check_exchange(struct xseg *seg, const struct xreq *r, uint32_t i, uint32_t page)
{
	const struct xs_req *whole = &seg->reqs[r->parent ? r->parent - 1 : r->index];

	for (uint32_t k = 0; watched && page != XSEG_NONE && k < atomic_load(&whole->nr_lent); k++)
		if (atomic_load(&whole->page[k].lent) == (page | XSEG_LENT_PAGE | XSEG_LENT_GIFT) &&
		    (whole->page[k].page & XSEG_PAGE_INDEX) != r->page[i])
			sim_fail(watched,
				"page %u of a part is exchanged in the place of page %u of the "
				"whole",
				i, k);
}

void parts_check_answer(struct xport *port, const struct xreq *r, int64_t result)
{
	if (watched && result >= (int64_t)r->size && r->op != XSEG_OP_READ &&
		xseg_req_part_failed(port, r))
		sim_fail(watched, "a %s is answered well, and a part of it had failed",
			xseg_op_name(r->op));
}
