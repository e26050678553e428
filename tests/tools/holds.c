/* holds - prints how many requests a peer has accepted and not answered yet. It only looks: a peer
 * that stands still is not disturbed.
 *
 *      holds SEGMENT PEER
 *
 * Exit codes: 0; 1, there is no such segment or peer; 2, wrong usage.
 */
#include <stdio.h>
#include <string.h>

#include "xseg/internal.h"

static bool is_held(struct xseg *seg, uint32_t peer, uint64_t place)
{
	enum xseg_req_state s = place_state(place);
	uint32_t port = place_port(place);

	return (s == XSEG_REQ_AT || s == XSEG_REQ_STARTED || s == XSEG_REQ_APPLIED) &&
	       port < seg->geo.nr_ports &&
	       atomic_load_explicit(&seg->ports[port].peer, memory_order_acquire) == peer + 1;
}

int main(int argc, char **argv)
{
	struct xseg_error err = { "" };
	uint32_t peer, nr = 0;
	struct xseg *seg;

	if (argc != 3) {
		fprintf(stderr, "holds SEGMENT PEER\n");
		return 2;
	}
	if (xseg_attach(argv[1], XSEG_ATTACH_OBSERVER, &seg, &err)) {
		fprintf(stderr, "holds: %s\n", err.text);
		return 1;
	}
	peer = xseg_peer_find(seg, argv[2]);
	for (uint32_t i = 0; peer != XSEG_NONE && i < seg->geo.nr_requests; i++)
		nr += is_held(
			seg, peer, atomic_load_explicit(&seg->reqs[i].place, memory_order_acquire));
	if (peer != XSEG_NONE)
		printf("%u\n", nr);
	else
		fprintf(stderr, "holds: there is no peer '%s'\n", argv[2]);
	xseg_detach(seg);
	return peer == XSEG_NONE;
}
