/* scribbled - overwrites the place word of a request that a dead peer does not use. Its successor
 * has to see that no port holds the request, whatever the place says.
 *
 * Contract: after the node was killed, just before its successor begins. The word and its new value
 * are chosen from the seed and the item. The choice takes no random number of the run.
 */
#include "tests/sim/sim.h"
#include "xseg/internal.h"

/* One of the requests that the peer has and does not use, from the n-th on; XSEG_NONE: none. */
static uint32_t find_idle(struct xseg *seg, uint32_t peer, uint32_t n)
{
	for (uint32_t i = 0; i < seg->geo.nr_requests; i++) {
		uint32_t at = (n + i) % seg->geo.nr_requests, owner = xs_req_owner(seg, at);
		uint64_t w = atomic_load(&seg->reqs[at].place);

		if (place_state(w) == XSEG_REQ_FREE && owner != XSEG_NONE &&
			xs_peer_has_port(seg, peer, owner))
			return at;
	}
	return XSEG_NONE;
}

void scribbled(struct sim *s, enum node_id id, const struct item *it)
{
	uint64_t dice = rng_mix(s->seed ^ (uint64_t)(it - s->item) << 32);
	uint32_t peer = xseg_peer_find(s->seg, node_name(id)), index;
	enum xseg_req_state state = (enum xseg_req_state)(XSEG_REQ_AT + (dice >> 8) % 3);

	if (dice % 4 || peer == XSEG_NONE)
		return;
	index = find_idle(s->seg, peer, (uint32_t)(dice >> 32));
	if (index == XSEG_NONE)
		return;
	atomic_store(&s->seg->reqs[index].place,
		place_word(state, (uint32_t)(dice >> 16) % s->seg->geo.nr_ports,
			(uint32_t)(dice >> 20) & 1,
			place_seq(atomic_load(&s->seg->reqs[index].place))));
}
