/* send - volumed's own requests to the peer below: sending them, and handling their answers.
 *
 * Contract: a port's thread, for its own requests.
 */
#include "peers/volumed/volumed.h"

static void busy_add(struct peer_port *pp, uint32_t by)
{
	_Atomic uint32_t *busy = &vd_port_of(pp)->busy;
	uint32_t now = atomic_load_explicit(busy, memory_order_relaxed);

	atomic_store_explicit(busy, now + by, memory_order_relaxed);
}

int vd_submit(struct peer_port *pp, struct xreq *r, void (*done)(struct peer_port *, struct xreq *))
{
	int rc = peer_submit(pp, r);

	if (rc)
		return rc;
	vd_of(pp)->context[r->index].done = done;
	busy_add(pp, 1);
	return 0;
}

/* A reply to what is not out is somebody's scribbling in the segment. */
void vd_reply(struct peer_port *pp, struct xreq *r)
{
	struct vd_context *c = &vd_of(pp)->context[r->index];
	void (*done)(struct peer_port *, struct xreq *) = c->done;

	if (!done)
		return;
	c->done = NULL;
	busy_add(pp, UINT32_MAX);
	done(pp, r);
}
