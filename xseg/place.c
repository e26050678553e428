/* place - impossible place words, and the process that corrects each of them.
 *
 * Contract: a look is a few loads, from any thread, at any time. It can prove that a request has no
 * holder. Only a process's own private copy proves that the process holds it.
 *
 * Any process may have written over a place (R5). For each request a process or a rule knows
 * better:
 *
 *   the place belongs to          known by                        corrected
 *   an idle request               its origin's pool               when it allocates or frees it
 *                                                                 (xs_place_force())
 *   a request that is held        its holder's private copy       when it starts, applies or
 *                                                                 answers it (request.c, E5)
 *   an answer                     its origin's `out`, and a       when its port is alerted
 *                                 result                          (take_answered(), port.c)
 *   a request of the dead         the rules below                 by a successor, a sweep, `xseg
 *                                                                 check --fix`
 *
 * A request whose place says AT, STARTED or APPLIED has no holder (it is *stray*) when
 *   1  its result is XS_IDLE: it was not submitted since it was freed
 *   2  the port is its own peer's: no peer sends to itself
 *   3  the port has no peer, or there is no such state
 *   4  the port's peer serves, and the generation is not that peer's: a successor takes over all
 *      that it finds before it serves
 *
 * Invariants:
 *   F1  An idle request is neither received nor recovered: a place alone cannot have an old request
 *       done again.
 */
#include "xseg/internal.h"

static bool is_held_state(enum xseg_req_state s)
{
	return s == XSEG_REQ_AT || s == XSEG_REQ_STARTED || s == XSEG_REQ_APPLIED;
}

bool xs_req_is_idle(struct xseg *seg, uint32_t index)
{
	return atomic_load_explicit(&seg->reqs[index].result, memory_order_relaxed) == XS_IDLE;
}

/* Rule 4. */
static bool is_of_another_generation(struct xseg *seg, uint64_t place, uint32_t peer)
{
	uint64_t w = xs_peer_word(seg, peer);

	return peer_state(w) == XSEG_PEER_LIVE && place_gen(place) != (peer_gen(w) & 0xfffff);
}

bool xs_place_is_lost(struct xseg *seg, uint64_t place)
{
	uint32_t peer;

	if (place_state(place) > XSEG_REQ_ANSWERED)
		return true;
	if (!is_held_state(place_state(place)))
		return false;
	peer = xs_peer_of_port(seg, place_port(place));
	return peer == 0 || peer > seg->geo.nr_ports ||
	       is_of_another_generation(seg, place, peer - 1);
}

bool xs_place_is_stray(struct xseg *seg, uint32_t index, uint64_t place, uint32_t owner)
{
	if (xs_place_is_lost(seg, place))
		return true;
	return is_held_state(place_state(place)) &&
	       (xs_req_is_idle(seg, index) || xs_peer_has_port(seg, owner, place_port(place)));
}

bool xs_req_is_offered_to(struct xseg *seg, uint32_t index, uint32_t port)
{
	struct xs_req *r = &seg->reqs[index];
	uint32_t via = atomic_load_explicit(&r->via, memory_order_acquire);
	uint64_t w = atomic_load_explicit(&r->place, memory_order_acquire);

	if (!via || atomic_load_explicit(&r->to, memory_order_relaxed) != port + 1 ||
		atomic_load_explicit(&r->result, memory_order_relaxed) != XS_NOT_ANSWERED)
		return false;
	return place_state(w) == XSEG_REQ_PRIVATE ||
	       (place_state(w) == XSEG_REQ_AT &&
		       xs_peer_of_port(seg, place_port(w)) == xs_peer_of_port(seg, via - 1));
}

uint64_t xs_place_force(
	struct xseg *seg, uint32_t index, uint64_t own_place, enum xseg_req_state state)
{
	_Atomic uint64_t *place = &seg->reqs[index].place;
	uint64_t old = atomic_load_explicit(place, memory_order_acquire), new;

	/* acq_rel: as for any edge; see rest_move() in request.c */
	do
		new = place_own(own_place, state, place_seq(old) + 1);
	while (!atomic_compare_exchange_weak_explicit(
		place, &old, new, memory_order_acq_rel, memory_order_acquire));
	xs_count_bad(seg);
	return new;
}
