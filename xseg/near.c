/* near - offers between ports that one thread serves: a ring of the receiver's, in this process, in
 * place of a lane.
 *
 * Contract: one thread at a time uses a struct xseg_near and the ports that are in it. Nothing here
 * blocks.
 *
 * Invariants:
 *   N1  A ring holds offers, as a lane does (port.c, Q1): the place word decides. If a process dies
 *       with offers in its rings, its successor finds those requests by their places.
 *   N2  A port may be closed while others of its thread stay. Then lanes offer all that it has sent
 *       and all that was sent to it: its successor may be another process.
 *   N3  An offer stands in one ring or in one lane, and in a ring only while its sender is open. So
 *       only the receiver may change the place of a request in a ring. It accepts it without a
 *       compare-and-swap (request.c, E1).
 */
#include <errno.h>
#include <stdlib.h>

#include "xseg/internal.h"

struct xseg_near *xseg_near_create(struct xseg *seg)
{
	struct xseg_near *near = calloc(1, sizeof(*near));

	if (near)
		near->seg = seg;
	return near;
}

void xseg_near_destroy(struct xseg_near *near)
{
	free(near);
}

int xseg_near_add(struct xseg_near *near, struct xport *port)
{
	if (port->near || port->seg != near->seg)
		return -EINVAL;
	port->near_ring = malloc(near->seg->geo.lane_slots * sizeof(*port->near_ring));
	if (!port->near_ring)
		return -ENOMEM;
	port->near_mask = near->seg->geo.lane_slots - 1;
	port->near_head = port->near_tail = 0;
	port->near = near;
	near->port[port->index] = port;
	return 0;
}

static uint64_t ring_pop(struct xport *port)
{
	return port->near_ring[port->near_head++ & port->near_mask];
}

uint32_t xs_near_take(struct xport *port, struct xreq **out, uint32_t max)
{
	uint32_t got = 0;

	while (got < max && xs_near_has(port)) {
		struct xreq *r = xs_req_accept_near(port, ring_pop(port));

		if (r)
			out[got++] = r;
	}
	/* seq_cst: in the place of those of xs_req_take() */
	if (got)
		atomic_thread_fence(memory_order_seq_cst);
	return got;
}

/* Who has sent it, and can offer it again; NULL: the offer is out of date. */
static struct xport *sender_of(struct xseg_near *near, uint64_t offer)
{
	uint64_t place = atomic_load_explicit(
		&near->seg->reqs[(uint32_t)offer].place, memory_order_relaxed);

	if (place_seq(place) != (uint32_t)(offer >> 32) || place_port(place) >= XSEG_MAX_PORTS)
		return NULL;
	return near->port[place_port(place)];
}

/* Offers by lanes what is in a port's ring and goes from or to the one that leaves. */
static void leave_ring(struct xport *port, const struct xport *leaves)
{
	for (uint32_t nr = port->near_tail - port->near_head; nr > 0; nr--) {
		uint64_t offer = ring_pop(port);
		struct xport *sender = sender_of(port->near, offer);

		if (sender && (sender == leaves || port == leaves))
			xs_offer_by_lane(sender, port->index, offer);
		else if (sender)
			xs_near_push(sender, port->index, offer);
	}
}

void xs_near_close(struct xport *port)
{
	struct xseg_near *near = port->near;

	for (uint32_t i = 0; near && i < XSEG_MAX_PORTS; i++)
		if (near->port[i])
			leave_ring(near->port[i], port);
	for (uint32_t i = 0; near && i < XSEG_MAX_PORTS; i++)
		if (near->port[i])
			xseg_port_flush(near->port[i]);
}
