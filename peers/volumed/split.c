/* split - requests that cross objects: children of the peer's own, one an object, and their sum.
 *
 * A parent stays AT volumed, which remembers it in the context of its index. Its parts are sent in
 * order, as requests are free. Parents wait for free requests in a FIFO. Only the first of them has
 * parts sent and parts not sent; its followers send nothing before it. So a small pool of requests
 * slows large I/O down and never stops it.
 *
 * Contract: all of a parent happens in the thread of the port that got it. Nothing allocates or
 * blocks. A successor gets the parent again and splits it again, after the old children have been
 * drained. It leaves out the parts that were done (S4).
 *
 * Invariants
 *   S1  A parent is answered once: all of its parts sent, or one failed, and no child out.
 *   S2  After a part has failed no further part is sent. The parent's result is the first error.
 *   S3  A parent is checked as a whole, against the volume as it is when its first part is sent.
 *       After that it is sent as a whole, even beyond the size that the volume is cut to meanwhile.
 *       So it is done before the cut, or answered as one beyond the end. A removal of the volume
 *       ends it.
 *   S4  A successor does not write a part again that was answered, even if the part failed. Another
 *       client may have read the part's effect, overwritten it since, and been answered. The part's
 *       done bit is set before its child is freed.
 *   S5  A parent lists the pages that were lent to a part of a read before the part's child is
 *       freed (xseg/loan.c, H2).
 *   S6  When a port passes a point for a volume that is cut, it counts parents in `cutting`: those
 *       begun, with parts not sent that reach beyond the cut. It takes each off when all is sent.
 *       Until then the cut waits (job.c). A parent of which a predecessor did a part is begun.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "peers/volumed/volumed.h"
#include "xtypes/xhot.h"
#include "xtypes/xkill.h"

/* Requests that a port's children may use: all but what the catalogue and the job need. */
static uint32_t children_max(const struct peer_port *pp)
{
	uint32_t nr = xseg_port_nr_requests(pp->port);

	return nr > VD_RESERVED ? nr - VD_RESERVED : 1;
}

static struct vd_context *context_of(const struct peer_port *pp, const struct xreq *r)
{
	return &vd_of(pp)->context[r->index];
}

static bool all_sent(const struct vd_context *c, const struct xreq *parent)
{
	return c->result < 0 || c->sent == parent->size;
}

static void parent_failed(struct vd_context *c, int rc)
{
	if (c->result >= 0)
		c->result = rc;
}

/* All of its parts are on their way, or it has failed (S6). */
static void parent_is_sent(struct peer_port *pp, struct vd_context *c)
{
	_Atomic uint32_t *cutting = &vd_port_of(pp)->cutting;

	if (!c->cutting)
		return;
	c->cutting = false;
	/* release: partner is the acquire in job.c: who sees it gone finds what was sent */
	atomic_store_explicit(cutting, atomic_load_explicit(cutting, memory_order_relaxed) - 1,
		memory_order_release);
}

void vd_split_mark(struct peer_port *pp, const struct vd_volume *v)
{
	uint64_t end = atomic_load_explicit(&v->size_bytes, memory_order_relaxed);
	uint32_t id = atomic_load_explicit(&v->id, memory_order_relaxed);
	struct vd_port *port = vd_port_of(pp);
	struct xreq *r;

	for (r = port->splitting.first; r && id; r = r->next) {
		struct vd_context *c = context_of(pp, r);

		if (!c->begun || c->cutting || r->volume != id || r->offset + r->size <= end)
			continue;
		c->cutting = true;
		atomic_fetch_add_explicit(&port->cutting, 1, memory_order_relaxed);
	}
}

/* ---- children ---------------------------------------------------------------------------- */

static void splitting_run(struct peer_port *pp);

/* Which of the parent's pages the part that begins `sent` bytes into it begins with: a page of its
 * own, as objects are multiples of a page. */
static uint32_t first_page(const struct xreq *parent, uint64_t sent)
{
	return (uint32_t)((parent->offset % XSEG_PAGE_SIZE + sent) / XSEG_PAGE_SIZE);
}

static void child_done(struct peer_port *pp, struct xreq *child)
{
	struct xreq *parent = context_of(pp, child)->parent;
	struct vd_context *c = context_of(pp, parent);

	if (child->result < 0)
		parent_failed(c, (int)child->result);
	else if (c->result >= 0)
		c->result += child->result < child->size ? child->result : child->size;
	xseg_req_pass_loans(
		pp->port, child, parent, first_page(parent, child->offset - parent->offset));
	xseg_req_part_set_done(pp->port, child);
	xseg_req_free(pp->port, child);
	vd_port_of(pp)->children--;
	c->out--;
	if (!c->out && all_sent(c, parent) && vd_port_of(pp)->splitting.first != parent)
		peer_answer(pp, parent, c->result);
	splitting_run(pp);
}

/* The part that begins `sent` bytes into the parent; it lists the parent's pages of that range. */
static void child_fill(struct xreq *child, const struct xreq *parent, uint32_t sent, uint32_t size)
{
	uint32_t first = first_page(parent, sent);

	child->op = parent->op;
	child->flags = parent->flags;
	child->volume = parent->volume;
	child->offset = parent->offset + sent;
	child->size = size;
	child->parent = parent->index + 1;
	if (parent->op != XSEG_OP_READ && parent->op != XSEG_OP_WRITE)
		return;
	child->nr_pages = (uint16_t)xseg_req_span(child->offset, size);
	assert(first + child->nr_pages <= parent->nr_pages);
	memcpy(child->page, parent->page + first, child->nr_pages * sizeof(child->page[0]));
}

/* Sends the next part; false: no request is free. An error ends the parent (S2). */
static bool part_send(struct peer_port *pp, struct xreq *parent, struct vd_context *c)
{
	struct vd_volume *v = vd_volume_get(vd_of(pp), parent->volume);
	struct vd_port *port = vd_port_of(pp);
	uint64_t offset = parent->offset + c->sent, room;
	uint32_t size = parent->size - c->sent;
	struct xreq *child;
	int rc = v ? 0 : -ENOENT;

	if (v && !c->begun)
		rc = vd_volume_check(v, parent->offset, parent->size);
	if (rc) {
		parent_failed(c, rc);
		return true;
	}
	room = ((uint64_t)1 << v->shift) - (offset & (((uint64_t)1 << v->shift) - 1));
	size = room < size ? (uint32_t)room : size;
	if (parent->op != XSEG_OP_READ && xseg_req_part_is_done(pp->port, parent, c->part)) {
		c->sent += size;
		c->result += size;
		c->part++;
		return true;
	}
	child = port->children < children_max(pp) ? xseg_req_alloc(pp->port) : NULL;
	if (!child)
		return false;
	child_fill(child, parent, c->sent, size);
	child->part = c->part;
	vd_volume_address(v, child, offset);
	context_of(pp, child)->parent = parent;
	rc = vd_submit(pp, child, child_done);
	if (rc) {
		xseg_req_free(pp->port, child);
		parent_failed(c, rc);
		return true;
	}
	c->begun = true;
	c->sent += size;
	c->part++;
	c->out++;
	port->children++;
	XKILL(PART_SENT);
	return true;
}

/* ---- parents ----------------------------------------------------------------------------- */

static void splitting_run(struct peer_port *pp)
{
	struct vd_fifo *q = &vd_port_of(pp)->splitting;
	struct vd_context *c;
	struct xreq *parent;

	while ((parent = q->first)) {
		c = context_of(pp, parent);
		while (!all_sent(c, parent))
			if (!part_send(pp, parent, c))
				return;
		vd_fifo_pop(q);
		parent_is_sent(pp, c);
		if (!c->out)
			peer_answer(pp, parent, c->result);
	}
}

bool vd_split_is_begun(struct peer_port *pp, const struct xreq *r)
{
	uint32_t part;

	for (part = 0; part < XSEG_REQ_PAGES && !r->via; part++)
		if (xseg_req_part_is_done(pp->port, r, part))
			return true;
	return false;
}

XCOLD static void split_begin(struct peer_port *pp, struct xreq *r)
{
	struct vd_context *c = context_of(pp, r);

	memset(c, 0, sizeof(*c));
	c->begun = vd_split_is_begun(pp, r);
	if (r->op != XSEG_OP_READ && xseg_req_part_failed(pp->port, r))
		parent_failed(c, -EIO);
	vd_fifo_push(&vd_port_of(pp)->splitting, r);
	if (vd_port_of(pp)->splitting.first == r)
		splitting_run(pp);
}

XHOT void vd_data_send(struct peer_port *pp, struct vd_volume *v, struct xreq *r)
{
	vd_volume_count(pp, v, r);
	if (!vd_is_in_one_object(v, r)) {
		split_begin(pp, r);
		return;
	}
	vd_volume_address(v, r, r->offset);
	peer_forward(pp, r);
}
